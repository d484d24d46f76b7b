//! What frameworks that can run a test again, or have cases of their own kind, wrote in truth:
//! reports of small suites that were run for this, with the texts of failures cut to their first
//! line.

use super::read;

/// The attempts, each as one line: status, number, suites and name.
#[track_caller]
fn ran(report: &[u8], expected: &[&str]) {
    let (lines, summary) = read(report, &super::Limits::default(), |run| {
        format!("{} #{} {} | {}", run.status, run.attempt, run.suites.join(" / "), run.name)
    })
    .expect("a report");
    assert_eq!(lines, expected);
    assert_eq!(summary.declared, summary.cases, "each case is counted");
}

#[test]
fn playwright_reports_retries_of_both_projects() {
    let both = [
        "passed #1 cart.spec.ts | cart ☃ › adds up",
        "failed #1 cart.spec.ts | cart ☃ › rounds",
        "failed #2 cart.spec.ts | cart ☃ › rounds",
        "skipped #1 cart.spec.ts | cart ☃ › is off",
        "skipped #1 cart.spec.ts | cart ☃ › is unfinished",
        "passed #1 cart.spec.ts | cart ☃ › is known to fail",
        "errored #1 cart.spec.ts | cart ☃ › wobbles",
        "passed #2 cart.spec.ts | cart ☃ › wobbles",
        "errored #1 cart.spec.ts | cart ☃ › times out",
        "errored #2 cart.spec.ts | cart ☃ › times out",
    ];
    // The second project has the same tests under the same names.
    let second = [
        "passed #2 cart.spec.ts | cart ☃ › adds up",
        "failed #3 cart.spec.ts | cart ☃ › rounds",
        "failed #4 cart.spec.ts | cart ☃ › rounds",
        "skipped #2 cart.spec.ts | cart ☃ › is off",
        "skipped #2 cart.spec.ts | cart ☃ › is unfinished",
        "passed #2 cart.spec.ts | cart ☃ › is known to fail",
        "errored #3 cart.spec.ts | cart ☃ › wobbles",
        "passed #4 cart.spec.ts | cart ☃ › wobbles",
        "errored #3 cart.spec.ts | cart ☃ › times out",
        "errored #4 cart.spec.ts | cart ☃ › times out",
    ];
    ran(include_bytes!("fixtures/playwright-retries.xml"), &[both, second].concat());
}

#[test]
fn gotestsum_reports_failures_of_all_reruns_first() {
    let cart = |it: &str| {
        let (status, name) = it.split_once(' ').expect("two words");
        let (number, name) = name.split_once(' ').expect("two words");
        format!("{status} {number} example.com/acme/cart | {name}")
    };
    let expected: Vec<String> = [
        "failed #1 TestRound/ü",
        "failed #1 TestRound",
        "failed #1 TestWobble",
        "failed #2 TestRound/ü",
        "failed #2 TestRound",
        "failed #3 TestRound/ü",
        "failed #3 TestRound",
        "skipped #1 TestShip",
        "passed #1 TestAdd",
        "passed #1 TestRound/half_up",
        "passed #1 TestRound/half_up#01",
        "passed #2 TestWobble",
    ]
    .map(cart)
    .to_vec();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    ran(include_bytes!("fixtures/gotestsum-reruns.xml"), &expected);
}

#[test]
fn nextest_reports_every_retry() {
    ran(
        include_bytes!("fixtures/nextest-retries.xml"),
        &[
            "passed #1 cart | tests::adds",
            "failed #1 cart | tests::aborts",
            "failed #2 cart | tests::aborts",
            "failed #3 cart | tests::aborts",
            "failed #1 cart | tests::rounds",
            "failed #2 cart | tests::rounds",
            "failed #3 cart | tests::rounds",
            "failed #1 cart | tests::wobbles",
            "passed #2 cart | tests::wobbles",
            "failed #1 cart | tests::hangs",
            "failed #2 cart | tests::hangs",
            "failed #3 cart | tests::hangs",
        ],
    );
}

#[test]
fn node_reports_failed_todo_tests_as_skipped() {
    ran(
        include_bytes!("fixtures/node-test.xml"),
        &[
            "passed #1 cart ☃ | adds up",
            "failed #1 cart ☃ | rounds",
            "skipped #1 cart ☃ | ships",
            "skipped #1 cart ☃ | is off",
            // Node escapes quotes twice.
            "passed #1 cart ☃ / inner | deep <b> & &quot;c&quot;",
            "passed #1 on its own | sub",
            "failed #1 on its own | bad sub",
        ],
    );
}

#[test]
fn googletest_marks_disabled_tests_with_an_attribute() {
    ran(
        include_bytes!("fixtures/gtest.xml"),
        &[
            "passed #1 Cart | Adds",
            "failed #1 Cart | Rounds",
            "skipped #1 Cart | Ships",
            "skipped #1 Cart | DISABLED_Off",
            "failed #1 Some/P | Takes/0",
            "passed #1 Some/P | Takes/1",
        ],
    );
}

#[test]
fn bats() {
    ran(
        include_bytes!("fixtures/bats.xml"),
        &[
            "passed #1 cart.bats | adds up",
            "failed #1 cart.bats | rounds <&> ü",
            "skipped #1 cart.bats | ships",
        ],
    );
}
