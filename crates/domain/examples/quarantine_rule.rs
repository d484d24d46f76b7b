//! The quarantine rule: a test that fails half of its runs is detected as flaky, and a check in
//! which only quarantined tests failed counts as passed.
//!
//! `cargo run -p signalbox-domain --example quarantine_rule`

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;

use signalbox_domain::flaky::{
    AskedTest, AutoQuarantine, Base, BranchScope, Excuse, Fact, FailedCheck, FailureRate, Monitor,
    MonitorId, Origin, QuarantineCause, Rule, Run, SameCode, Settings, Summary, Template, TestCase,
    TestKey, absorb, excuse,
};
use signalbox_domain::ids::{OrgId, RepoId, Sha};
use signalbox_domain::time::{Span, Timestamp};
use uuid::Uuid;

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for line in run()? {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Evaluates a test by its runs, then two checks by the tests that failed in them.
pub(crate) fn run() -> Result<Vec<String>, Failure> {
    let start = Timestamp::parse("2026-11-02T00:00:00Z").ok_or("a time")?;
    let (org, repo) = (OrgId(Uuid::from_u128(1)), RepoId(Uuid::from_u128(2)));
    let mut settings = Settings { monitors: vec![monitor()], ..Settings::new(repo) };
    settings.quarantine.enabled = true;
    settings.quarantine.auto = AutoQuarantine::Flaky;

    // Twenty runs on the main branch, each on a commit of its own; every second one fails.
    let mut runs = Vec::new();
    for number in 0..20_u32 {
        runs.push(Run {
            at: start.plus(Span::minutes(number)),
            branch: "main".to_owned(),
            class: settings.branches.classify("main", false),
            codes: vec![SameCode::Commit(Sha::new(format!("{number:040x}"))?)],
            origin: Origin::new(Some(&["unit"]), Base::Itself),
            passed: number % 2 == 0,
        });
    }

    let key = TestKey { name: "opens the door".to_owned(), ..TestKey::default() };
    let test = TestCase::new(org, repo, key.clone(), start);
    let now = start.plus(Span::hours(1));
    let summary = Summary::of(&runs);
    let read = |monitor: &Monitor| (monitor.id, monitor.read(&summary, now));
    let readings = settings.monitors.iter().map(read).collect();
    let measured = Fact::Measured { as_of: now, readings };
    let test = absorb(&test, &settings, &measured, now).test;
    let is_quarantined = test.is_quarantined(&settings, now);
    let mut lines = vec![
        format!("{}: {}", test.key.name, test.standing.value.as_str()),
        format!("quarantined: {is_quarantined}"),
    ];

    let flaky = AskedTest { id: key.id().to_string(), key };
    let other = TestKey { name: "closes the door".to_owned(), ..TestKey::default() };
    let other = AskedTest { id: other.id().to_string(), key: other };
    let cause = test.quarantine_cause(&settings, now);
    let quarantined: BTreeMap<String, QuarantineCause> =
        cause.map(|cause| (flaky.id.clone(), cause)).into_iter().collect();
    for failing in [vec![flaky.clone()], vec![flaky, other]] {
        let verdict = excuse(FailedCheck { failing: &failing, complete: true }, &quarantined);
        let passes = matches!(verdict, Excuse::Excused(_));
        let outcome = if passes { "passes" } else { "fails" };
        lines.push(format!("the check {outcome}: {}", verdict.words()));
    }
    Ok(lines)
}

/// Flaky from half of at least ten runs within a day, healthy again below a tenth.
fn monitor() -> Monitor {
    let template = Template::FlakyInQueue.monitor(MonitorId(Uuid::from_u128(7)));
    let rule = Rule::FailureRate(FailureRate {
        activation_percent: 50,
        resolution_percent: 10,
        window_hours: 24,
        min_sample: 10,
        min_failing_times: 1,
    });
    Monitor { rule, scope: BranchScope::all(), ..template }
}
