//! Generated months of a repository through the production judge: how well it judges.

use std::time::Duration;

use signalbox_testkit::memory::MemoryDatabase;
use signalbox_testkit::year::{Cause, Findings, Shape, replay};

/// The least precision after nine days, with an incident on the sixth: one of 16 tests may be wrong.
const PRECISION: f64 = 0.93;
/// The least recall after nine days.
const RECALL: f64 = 0.9;
/// Days that gone tests may be listed, in all: 27 and 24 if no test ever retired. Two tests are deleted and
/// two flaky ones renamed.
const GONE_DAYS: u32 = 8;
/// The least recall over all days, of which tests need some until they are found.
const RECALL_OF_ALL_DAYS: f64 = 0.85;

async fn findings(shape: Shape) -> Findings {
    let stores = MemoryDatabase::new().stores();
    Box::pin(replay(&stores, shape, None, || Duration::ZERO)).await
}

async fn is_judged_well(seed: u64) {
    let found = findings(Shape::month(seed)).await;
    let early = found.early;
    assert!(early.precision() >= PRECISION, "day 9: {early:?}, {found:#?}");
    assert!(early.recall() >= RECALL, "day 9: {early:?}, {found:#?}");
    assert!(found.flaky.recall() >= RECALL_OF_ALL_DAYS, "all days: {:?}", found.flaky);
    assert!(found.incidents >= 2, "recognized incidents: {found:#?}");
    assert!(found.gone <= 4 * GONE_DAYS, "samples of gone tests that are listed: {}", found.gone);
    assert_eq!((found.wrongly_retired, found.wrongly_renamed), (0, 0), "{found:#?}");
    assert!(found.renamed > 0, "a renamed test is recognized: {found:#?}");
    let slowest = found.detected.values().filter_map(signalbox_testkit::year::Delays::longest);
    let slowest = slowest.fold(0.0, f64::max);
    assert!(slowest <= 9.0, "days until a flaky test was found: {slowest}");
    let real = Cause::ALL.into_iter().filter(|cause| cause.is_real());
    let real = real.filter_map(|cause| found.accused.get(&cause)).sum::<u32>();
    assert_eq!(real, 0, "called flaky because of real failures: {:?}", found.accused);
}

#[tokio::test]
async fn a_month_is_judged_well() {
    is_judged_well(1).await;
}

#[tokio::test]
async fn another_month_is_judged_well() {
    is_judged_well(2).await;
}

/// The bounds above can fail: without the guard the incident of the sixth day accuses most tests.
#[tokio::test]
async fn without_the_guard_an_incident_accuses_most_tests() {
    let shape = Shape { days: 10, guard: false, ..Shape::month(2) };
    let found = findings(shape).await;
    assert!(found.early.precision() < 0.5, "day 9: {:?}", found.early);
    assert_eq!((found.incidents, found.false_incidents), (0, 0));
}

#[tokio::test]
async fn a_seed_determines_everything() {
    let shape = Shape { days: 10, tests: 100, pull_requests: 1, ..Shape::month(3) };
    let [one, again] = [findings(shape).await, findings(shape).await];
    assert_eq!(format!("{one:?}"), format!("{again:?}"));
    let other = findings(Shape { seed: 4, ..shape }).await;
    assert_ne!(one.failures, other.failures);
}
