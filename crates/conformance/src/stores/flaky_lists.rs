//! Lists of tests and what is counted of them.

use std::collections::BTreeSet;

use signalbox_domain::flaky::{Admission, TestId, TestStatus};
use signalbox_domain::ports::{RepoRef, Seek, Stores, TestList};
use signalbox_domain::time::Span;

use super::flaky_scenario::Scenario;

/// The tests of a list, after checking that the ways to ask for it agree.
pub(super) async fn ids(stores: &Stores, repo: RepoRef, list: TestList) -> Vec<TestId> {
    let listed = stores.flaky.reads.list(repo, list, Seek::After(None), 100).await;
    let listed: Vec<TestId> = listed.expect("a list").iter().map(|it| it.test.id).collect();
    assert_eq!(stores.flaky.reads.ids(repo, list).await.expect("ids"), listed);
    let count = stores.flaky.reads.count(repo, list).await.expect("a count");
    assert_eq!(usize::try_from(count), Ok(listed.len()));
    listed
}

/// The beginning of a time belongs to it, its end does not; within an hour and across hours.
pub async fn failing_tests_are_found_by_time(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let start = scenario.now();
    scenario.wait(8);
    let report = async |name: &str, minutes: u32, passed: bool| {
        let mut run = scenario.run(name, passed);
        run.started_at = Some(start.plus(Span::minutes(minutes)));
        scenario.report(minutes, vec![run]).await;
    };
    for (name, minutes, passed) in
        [("a", 10, false), ("a", 50, false), ("b", 90, false), ("b", 95, true), ("c", 90, true)]
    {
        report(name, minutes, passed).await;
    }
    let (a, b) = (scenario.key("a").id(), scenario.key("b").id());
    for (from, until, expected) in [
        (10, 50, vec![a]),
        (11, 50, vec![]),
        (11, 51, vec![a]),
        (50, 90, vec![a]),
        (51, 90, vec![]),
        (51, 91, vec![b]),
        (0, 480, vec![a, b]),
        (91, 480, vec![]),
    ] {
        let (from, until) = (start.plus(Span::minutes(from)), start.plus(Span::minutes(until)));
        let found: BTreeSet<TestId> = ids(stores, scenario.repo, TestList::Failing { from, until })
            .await
            .into_iter()
            .collect();
        assert_eq!(found, expected.into_iter().collect(), "{from} to {until}");
    }
}

/// Every way through the pages of a list gives every test once.
pub async fn lists_are_paged_in_both_directions(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    let names: Vec<String> = (0..7).map(|number| format!("test {number}")).collect();
    scenario.report(1, names.iter().map(|name| scenario.run(name, false)).collect()).await;
    scenario.report(1, names.iter().map(|name| scenario.run(name, true)).collect()).await;
    let list = TestList::Unhealthy(TestStatus::Flaky);
    let all = ids(stores, scenario.repo, list).await;
    assert_eq!(all.len(), 7);
    let (from, until) = (scenario.now(), scenario.now().plus(Span::hours(2)));
    for list in [list, TestList::Failing { from, until }] {
        let page = async |seek| {
            let page = stores.flaky.reads.list(scenario.repo, list, seek, 3).await.expect("a page");
            page.iter().map(|it| it.test.id).collect::<Vec<_>>()
        };
        assert_eq!(page(Seek::After(None)).await, all[..3]);
        assert_eq!(page(Seek::After(Some(all[2]))).await, all[3..6]);
        assert_eq!(page(Seek::After(Some(all[5]))).await, all[6..]);
        assert_eq!(page(Seek::After(Some(all[6]))).await, []);
        assert_eq!(page(Seek::Before(None)).await, all[4..]);
        assert_eq!(page(Seek::Before(Some(all[4]))).await, all[1..4]);
        assert_eq!(page(Seek::Before(Some(all[1]))).await, all[..1]);
    }
}

/// Rates, pull requests and clusters are counted over their time, and only runs that count.
pub async fn numbers_are_counted_over_their_time(stores: &Stores) {
    let scenario = Scenario::new(stores, "acme").await;
    scenario.wait(1);
    scenario.report_pr(1, 11, vec![scenario.run("adds", false)]).await;
    scenario.wait(5 * 24);
    scenario.report_pr(2, 12, vec![scenario.run("adds", false)]).await;
    scenario.report_pr(3, 12, vec![scenario.run("adds", false)]).await;
    scenario.report(4, vec![scenario.run("adds", true)]).await;
    let mut infrastructure: Vec<_> =
        (0..25).map(|number| scenario.run(&format!("other {number}"), false)).collect();
    infrastructure.push(scenario.run("adds", false));
    let broken = scenario.report(5, infrastructure).await;
    assert_eq!(broken.admission, Admission::Infrastructure);
    scenario.wait(1);
    let id = scenario.key("adds").id();
    let numbers = async |at| {
        let numbers = stores.flaky.reads.numbers(scenario.repo, &[id], at).await.expect("a read");
        numbers.get(&id).cloned().unwrap_or_default()
    };
    let now = numbers(scenario.now()).await;
    assert_eq!((now.runs_24h, now.failures_24h, now.runs_7d, now.failures_7d), (3, 2, 4, 3));
    let prs: Vec<u32> = now.pull_requests_7d.iter().map(|pr| pr.0).collect();
    assert_eq!(prs, [11, 12]);
    assert_eq!((now.failures.len(), now.failures[0].occurrence_count), (1, 3));
    assert_eq!(now.failures[0].summary, "expected <num>, got <num>");
    let later = numbers(scenario.now().plus(Span::hours(3 * 24))).await;
    assert_eq!((later.runs_24h, later.runs_7d, later.failures_7d), (0, 3, 2));
    assert_eq!(later.pull_requests_7d.iter().map(|pr| pr.0).collect::<Vec<_>>(), [12]);
    let impacted = async |days: u32| {
        let at = scenario.now().plus(Span::hours(days * 24));
        stores.flaky.reads.pull_requests(scenario.repo, &[id], at).await.expect("a read")
    };
    assert_eq!(impacted(0).await, [(id, now.pull_requests_7d)].into());
    assert_eq!(impacted(3).await, [(id, later.pull_requests_7d)].into());
    assert!(impacted(8).await.is_empty(), "a test without any is omitted");
}
