//! The reports of frameworks and their converters, one small report each.

use super::lines;

#[track_caller]
fn means(report: &[u8], expected: &[&str]) {
    assert_eq!(lines(report).expect("a report"), expected);
}

#[test]
fn pytest() {
    means(
        include_bytes!("fixtures/pytest.xml"),
        &[
            "passed #1 pytest | tests.test_money | test_add[1-2] | tests/test_money.py:3 | 0.001s",
            "failed #1 pytest | tests.test_money | test_sub | tests/test_money.py:9 | 0.002s | message assert 1 == 2\n  +1 | text def test_sub():",
            "skipped #1 pytest | tests.test_money | test_later | 0s | message not yet | kind pytest.skip | text tests/test_money.py:12: not yet",
            "errored #1 pytest | - | tests.test_broken | 0s | message collection failure | text ImportError",
            "passed #1 pytest | tests.test_money | test_again | 0.003s",
            "passed #2 pytest | tests.test_money | test_again | 0.004s",
        ],
    );
}

#[test]
fn jest() {
    means(
        include_bytes!("fixtures/jest.xml"),
        &[
            "passed #1 cart totals | cart totals adds up | cart totals adds up | 0.003s",
            "failed #1 cart totals | cart totals rounds | cart totals rounds | 0.01s | text Error: expect(received).toBe(expected)",
        ],
    );
}

#[test]
fn vitest() {
    means(
        include_bytes!("fixtures/vitest.xml"),
        &[
            "passed #1 src/cart.test.ts | src/cart.test.ts | cart > adds up | 0.001s",
            "failed #1 src/cart.test.ts | src/cart.test.ts | cart > rounds | 0.006s | message expected 3 to be 2 // Object.is equality | kind AssertionError | text AssertionError: expected 3 to be 2",
            "skipped #1 src/cart.test.ts | src/cart.test.ts | cart > ships | 0s",
        ],
    );
}

#[test]
fn surefire() {
    means(
        include_bytes!("fixtures/surefire.xml"),
        &[
            "passed #1 com.acme.CartTest | com.acme.CartTest | adds | 1200.25s",
            "failed #1 com.acme.CartTest | com.acme.CartTest | wobbles | message first | kind java.lang.AssertionError | text java.lang.AssertionError: first",
            "errored #2 com.acme.CartTest | com.acme.CartTest | wobbles | message second | kind java.io.IOException | text java.io.IOException: second",
            "passed #3 com.acme.CartTest | com.acme.CartTest | wobbles | 0.3s",
            "failed #1 com.acme.CartTest | com.acme.CartTest | fails | 0.1s | message one | kind java.lang.AssertionError | text java.lang.AssertionError: one",
            "failed #2 com.acme.CartTest | com.acme.CartTest | fails | 0.2s | message two | kind java.lang.AssertionError | text trace two",
            "errored #3 com.acme.CartTest | com.acme.CartTest | fails | message three | kind java.io.IOException | text trace three",
        ],
    );
}

#[test]
fn gradle() {
    means(
        include_bytes!("fixtures/gradle.xml"),
        &[
            "passed #1 com.acme.CartTest | com.acme.CartTest | adds() | 0.02s",
            "failed #1 com.acme.CartTest | com.acme.CartTest | retried() | 0.005s | message org.opentest4j.AssertionFailedError: no | kind org.opentest4j.AssertionFailedError | text org.opentest4j.AssertionFailedError: no",
            "passed #2 com.acme.CartTest | com.acme.CartTest | retried() | 0.004s",
            "skipped #1 com.acme.CartTest | com.acme.CartTest | off() | 0s",
        ],
    );
}

#[test]
fn go_junit_report() {
    means(
        include_bytes!("fixtures/go-junit-report.xml"),
        &[
            "passed #1 example.com/acme/cart | example.com/acme/cart | TestAdd | 0.06s",
            "failed #1 example.com/acme/cart | example.com/acme/cart | TestRound/half_up | 0.1s | message Failed | text cart_test.go:9: got 3, want 2",
            "skipped #1 example.com/acme/cart | example.com/acme/cart | TestSkip | 0s | message cart_test.go:20: later",
        ],
    );
}

#[test]
fn gotestsum() {
    means(
        include_bytes!("fixtures/gotestsum.xml"),
        &[
            "failed #1 example.com/acme/cart | example.com/acme/cart | TestRetry | 0.01s | message Failed | text === RUN   TestRetry",
            "passed #1 example.com/acme/cart | example.com/acme/cart | TestAdd | 0.02s",
            "passed #2 example.com/acme/cart | example.com/acme/cart | TestRetry | 0.03s",
        ],
    );
}

#[test]
fn nextest() {
    means(
        include_bytes!("fixtures/nextest.xml"),
        &[
            "passed #1 acme::cart | acme::cart | adds | 0.01s",
            "failed #1 acme::cart | acme::cart | wobbles | 0.011s | kind test failure | text thread 'wobbles' panicked",
            "passed #2 acme::cart | acme::cart | wobbles | 0.012s",
            "failed #1 acme::cart | acme::cart | fails | 0.013s | kind test failure with exit code 101 | text panicked at src/cart.rs:9",
            "failed #2 acme::cart | acme::cart | fails | 0.014s | kind test failure with exit code 101 | text panicked again",
        ],
    );
}

#[test]
fn rspec() {
    means(
        include_bytes!("fixtures/rspec.xml"),
        &[
            "passed #1 rspec | spec.cart_spec | Cart adds up | ./spec/cart_spec.rb | 0.001s",
            "failed #1 rspec | spec.cart_spec | Cart rounds | ./spec/cart_spec.rb | 0.002s | message expected: 2\n     got: 3 | kind RSpec::Expectations::ExpectationNotMetError | text Failure/Error: expect(total).to eq 2",
            "skipped #1 rspec | spec.cart_spec | Cart ships | ./spec/cart_spec.rb | 0s",
        ],
    );
}

#[test]
fn phpunit() {
    means(
        include_bytes!("fixtures/phpunit.xml"),
        &[
            "passed #1 phpunit.xml / Unit / Acme\\CartTest | Acme.CartTest | testAdds | /app/tests/CartTest.php:12 | 0.005s",
            "failed #1 phpunit.xml / Unit / Acme\\CartTest / Acme\\CartTest::testRounds | Acme.CartTest | testRounds with data set #0 | /app/tests/CartTest.php:20 | 0.01s | kind PHPUnit\\Framework\\ExpectationFailedException | text Acme\\CartTest::testRounds with data set #0",
            "errored #1 phpunit.xml / Unit / Acme\\CartTest | Acme\\CartTest | testWarns | 0.001s | kind PHPUnit\\Framework\\Exception | text boom",
        ],
    );
}

#[test]
fn nunit() {
    means(
        include_bytes!("fixtures/nunit.xml"),
        &[
            "passed #1 Acme.CartTests | Acme.CartTests | Adds(1,2) | 0.25s",
            "failed #1 Acme.CartTests | Acme.CartTests | Rounds | 0.25s | message Expected: 2\r\n  But was:  3 | text at Acme.CartTests.Rounds() in C:\\acme\\CartTests.cs:line 9",
            "skipped #1 Acme.CartTests | Acme.CartTests | Ships | 0s",
        ],
    );
}

#[test]
fn xunit() {
    means(
        include_bytes!("fixtures/xunit.xml"),
        &[
            "passed #1 Acme.Tests.dll | Acme.Tests.CartTests | Adds | 0.021s",
            "skipped #1 Acme.Tests.dll | Acme.Tests.CartTests | Ships | 0s | message later",
            "errored #1 Acme.Tests.dll | Acme.Tests.CartTests | Throws | 0.104s | message boom | kind System.InvalidOperationException",
        ],
    );
}

#[test]
fn bazel() {
    means(
        include_bytes!("fixtures/bazel.xml"),
        &["errored #1 acme/cart_test | - | acme/cart_test | 3s | message exited with error code 1"],
    );
}

#[test]
fn playwright() {
    means(
        include_bytes!("fixtures/playwright.xml"),
        &[
            "passed #1 cart.spec.ts | cart.spec.ts | cart › adds up | 0.9s",
            "failed #1 cart.spec.ts | cart.spec.ts | cart › rounds | 3s | message cart.spec.ts:9:5 rounds | kind FAILURE | text [chromium] › cart.spec.ts:9:5 › cart › rounds ]]> tail",
            "skipped #1 cart.spec.ts | cart.spec.ts | cart › ships | 0s",
        ],
    );
}

#[test]
fn cypress() {
    means(
        include_bytes!("fixtures/cypress.xml"),
        &[
            "passed #1 cart | adds up | cart adds up | cypress/e2e/cart.cy.js | 1.234s",
            "failed #1 cart | rounds | cart rounds | cypress/e2e/cart.cy.js | 3.5s | message Timed out retrying after 4000ms | kind AssertionError | text AssertionError: Timed out retrying after 4000ms",
        ],
    );
}

#[test]
fn ctest() {
    means(
        include_bytes!("fixtures/ctest.xml"),
        &[
            "passed #1 Linux-c++ | cart.adds | cart.adds | 0.5s",
            "failed #1 Linux-c++ | cart.rounds | cart.rounds | 0.4s",
            "skipped #1 Linux-c++ | cart.ships | cart.ships | 0s",
        ],
    );
}

#[test]
fn robot() {
    means(
        include_bytes!("fixtures/robot.xml"),
        &[
            "passed #1 Acme / Cart | Acme.Cart | Adds Up | 0.01s",
            "failed #1 Acme / Cart | Acme.Cart | Rounds | 0.02s | message 3 != 2 | kind AssertionError",
            "skipped #1 Acme / Cart | Acme.Cart | Ships | 0s | message later | kind SkipExecution",
        ],
    );
}
