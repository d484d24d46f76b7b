//! The contract of the history store.

use std::collections::BTreeSet;

use signalbox_domain::ids::{OrgId, PrNumber, RunId, Sha};
use signalbox_domain::ports::{EntryFilter, QueueRef, Stores, SubmissionPlace};
use signalbox_domain::queue::{Command, Entry, Move, PrState, ReportedTargets};
use signalbox_domain::testing::Rules;
use signalbox_domain::time::{Span, Timestamp, Window};
use uuid::Uuid;

use super::Sample;

fn numbers(entries: &[Entry]) -> Vec<u32> {
    entries.iter().map(|entry| entry.pr.0).collect()
}

async fn listed(sample: &Sample<'_>, filter: EntryFilter) -> Vec<u32> {
    let history = &sample.stores.queue.history;
    let found = history.entries_by_submission(sample.queue, &filter, None, 100).await;
    numbers(&found.expect("a list"))
}

/// Pages of any size make up the list, most recently submitted first, and by descending number for
/// the same time. A concurrent submission moves no other entry.
pub async fn entries_are_paged_by_submission(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    for (pr, pause) in [(2, 1), (5, 0), (4, 0), (1, 1), (3, 0)] {
        sample.submit(pr).await;
        sample.world.wait(Span::seconds(pause));
    }
    sample.settle().await;
    let whole = [3, 5, 4, 1, 2];
    assert_eq!(listed(&sample, EntryFilter::default()).await, whole);
    for size in 1..=6 {
        let (mut seen, mut before, mut first) = (Vec::new(), None, true);
        loop {
            let filter = EntryFilter::default();
            let page =
                stores.queue.history.entries_by_submission(sample.queue, &filter, before, size);
            let page = page.await.expect("a page");
            assert!(page.len() <= usize::try_from(size).expect("small"));
            let Some(last) = page.last() else { break };
            before = Some(SubmissionPlace::of(last));
            seen.extend(numbers(&page));
            if first {
                sample.submit(100 + size).await;
                first = false;
            }
        }
        // Entries submitted in earlier rounds come first, and none twice.
        assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), seen.len());
        assert!(!seen.contains(&(100 + size)));
        let known: Vec<u32> = seen.into_iter().filter(|pr| *pr < 100).collect();
        assert_eq!(known, whole, "pages of {size}");
    }
}

/// A window filters by the time of exits, both ends included; a state filters by the present state.
pub async fn entries_are_filtered_by_state_and_by_when_they_left(stores: &Stores) {
    let rules = Rules { bad: BTreeSet::from([2]), ..Rules::default() };
    let mut sample = Sample::with(stores, rules).await;
    let beginning = sample.world.at;
    sample.submit(1).await;
    sample.submit(2).await;
    sample.settle().await;
    sample.world.wait(Span::hours(1));
    sample.submit(2).await;
    sample.submit(3).await;
    let left = |pr: u32| {
        let entry = sample.world.queue.entry_id(PrNumber(pr));
        stores.queue.history.moves_of(sample.queue, entry, 100)
    };
    let moves: Vec<Move> = left(2).await.expect("moves");
    let failed_at = moves.iter().find(|it| it.to == PrState::Failed).expect("it failed").at;
    let window = |since: Option<Timestamp>, until: Option<Timestamp>| EntryFilter {
        concluded: Some(Window { since, until }),
        ..EntryFilter::default()
    };
    let second = Span::seconds(1);
    // It failed and was resubmitted: the window still finds it.
    assert_eq!(listed(&sample, window(Some(failed_at), Some(failed_at))).await, [2]);
    assert_eq!(listed(&sample, window(Some(beginning), None)).await, [2, 1]);
    assert_eq!(
        listed(&sample, window(Some(failed_at.plus(second)), None)).await,
        Vec::<u32>::new()
    );
    assert_eq!(listed(&sample, window(None, Some(failed_at.minus(second)))).await, [1]);
    let state = |state| EntryFilter { state: Some(state), ..EntryFilter::default() };
    assert_eq!(listed(&sample, state(PrState::Failed)).await, Vec::<u32>::new());
    assert_eq!(listed(&sample, state(PrState::Merged)).await, [1]);
    assert_eq!(listed(&sample, state(PrState::Testing)).await, [2]);
    let both = EntryFilter { state: Some(PrState::Testing), ..window(Some(failed_at), None) };
    assert_eq!(listed(&sample, both).await, [2]);
    let neither = EntryFilter { state: Some(PrState::Pending), ..window(Some(failed_at), None) };
    assert_eq!(listed(&sample, neither).await, Vec::<u32>::new());
}

/// Several entries, with their targets, and several runs are read in one call.
pub async fn several_entries_and_runs_are_found_in_one_call(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    for pr in [3, 1, 2] {
        sample.submit(pr).await;
    }
    let targets = ReportedTargets::all(None);
    sample.ask(Command::SetTargets { pr: PrNumber(2), targets: targets.clone() }).await;
    sample.ask(Command::SetTargets { pr: PrNumber(9), targets: targets.clone() }).await;
    sample.settle().await;
    let wanted = [9, 2, 3, 2].map(PrNumber);
    let found = stores.queue.history.entries(sample.queue, &wanted).await.expect("entries");
    assert_eq!(numbers(&found), [2, 3]);
    assert_eq!(found[0].targets.as_deref(), Some(&targets));
    assert_eq!(found[1].targets, None);
    assert!(stores.queue.history.entries(sample.queue, &[]).await.expect("entries").is_empty());
    let mut runs: Vec<RunId> = found.iter().filter_map(|entry| entry.verified_by).collect();
    runs.push(RunId(Uuid::new_v4()));
    let found = stores.queue.history.runs(sample.queue, &runs).await.expect("runs");
    assert_eq!(found.len(), 2);
    assert!(found[0].number < found[1].number);
    assert!(found.iter().all(|run| run.status.as_str() == "SUCCEEDED"));
}

/// A head branch finds the entries of its pull requests, most recently submitted first.
pub async fn entries_are_found_by_their_head_branch(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    for (pr, branch) in [(1, Some("fix")), (2, Some("fix")), (3, Some("Fix")), (4, None)] {
        sample.submit_with(pr, |it| it.pull_request.head_branch = branch.map(str::to_owned)).await;
        sample.world.wait(Span::seconds(1));
    }
    let by = sample.world.caller();
    sample.ask(Command::Cancel { pr: PrNumber(2), by }).await;
    let found = |branch, limit| stores.queue.history.entries_of_branch(sample.queue, branch, limit);
    let of_fix = found("fix", 10).await.expect("entries");
    assert_eq!(numbers(&of_fix), [2, 1]);
    assert_eq!(of_fix[0].state.name(), PrState::Cancelled);
    assert_eq!(numbers(&found("fix", 1).await.expect("entries")), [2]);
    assert_eq!(numbers(&found("Fix", 10).await.expect("entries")), [3]);
    assert!(found("unknown", 10).await.expect("entries").is_empty());
}

/// Ends of tests are paged and counted, newest first; later moves are listed oldest first; passes
/// have a list of their own.
pub async fn ends_of_tests_are_paged_and_counted(stores: &Stores) {
    let rules = Rules { bad: BTreeSet::from([2]), ..Rules::default() };
    let mut sample = Sample::with(stores, rules).await;
    for pr in 1..=3 {
        sample.submit(pr).await;
    }
    sample.settle().await;
    let history = &stores.queue.history;
    let all = history.test_ends(sample.queue, Window::default(), 0, 100).await.expect("ends");
    assert_eq!(u64::try_from(all.moves.len()).expect("small"), all.total);
    assert!(all.moves.iter().all(|it| it.from == Some(PrState::Testing)));
    assert!(all.moves.is_sorted_by_key(|it| std::cmp::Reverse((it.at, it.place()))));
    let outcomes: BTreeSet<(u32, PrState)> = all.moves.iter().map(|it| (it.pr.0, it.to)).collect();
    assert!(outcomes.contains(&(1, PrState::TestsPassed)), "{outcomes:?}");
    assert!(outcomes.contains(&(3, PrState::TestsPassed)), "{outcomes:?}");
    let mut paged = Vec::new();
    for offset in 0..=u32::try_from(all.moves.len()).expect("small") {
        let page = history.test_ends(sample.queue, Window::default(), offset, 1).await;
        let page = page.expect("a page");
        assert_eq!(page.total, all.total);
        paged.extend(page.moves);
    }
    assert_eq!(paged, all.moves);
    let newest = &all.moves[0];
    let exactly = Window { since: Some(newest.at), until: Some(newest.at) };
    let only = history.test_ends(sample.queue, exactly, 0, 100).await.expect("ends");
    assert!(only.moves.contains(newest) && only.moves.iter().all(|it| it.at == newest.at));

    let following = history.moves_from(sample.queue, &[newest.entry], newest.number).await;
    let following = following.expect("moves");
    assert!(following.contains(newest));
    assert!(following.iter().all(|it| it.entry == newest.entry && it.number >= newest.number));
    assert!(following.is_sorted_by_key(Move::place));
    let passes = history.passes(sample.queue, 100).await.expect("passes");
    assert_eq!(passes.len(), 2);
    assert!(passes.iter().all(|it| it.to == PrState::TestsPassed));
    assert_eq!(history.passes(sample.queue, 1).await.expect("passes"), passes[..1]);
    let of_one = history.moves_of(sample.queue, newest.entry, 2).await.expect("moves");
    assert_eq!(of_one.len(), 2);
    assert!(of_one[0].place() > of_one[1].place());
}

/// Another organization has no history of this queue.
pub async fn history_is_for_its_own_organization(stores: &Stores) {
    let mut sample = Sample::new(stores).await;
    sample.submit_with(1, |it| it.pull_request.head_branch = Some("fix".to_owned())).await;
    sample.settle().await;
    let queue = QueueRef { org: OrgId(Uuid::new_v4()), id: sample.queue.id };
    let entry = sample.world.queue.entry_id(PrNumber(1));
    let history = &stores.queue.history;
    let run = history.passes(sample.queue, 1).await.expect("passes")[0].run.expect("a run");
    let filter = EntryFilter::default();
    assert!(history.entries_by_submission(queue, &filter, None, 9).await.expect("none").is_empty());
    assert!(history.entries(queue, &[PrNumber(1)]).await.expect("none").is_empty());
    assert!(history.entries_of_branch(queue, "fix", 9).await.expect("none").is_empty());
    assert!(history.runs(queue, &[run]).await.expect("none").is_empty());
    let ends = history.test_ends(queue, Window::default(), 0, 9).await.expect("none");
    assert_eq!((ends.moves.len(), ends.total), (0, 0));
    assert!(history.moves_from(queue, &[entry], 0).await.expect("none").is_empty());
    assert!(history.moves_of(queue, entry, 9).await.expect("none").is_empty());
    assert!(history.passes(queue, 9).await.expect("none").is_empty());
    let head: Option<Sha> = history
        .entries(sample.queue, &[PrNumber(1)])
        .await
        .expect("entries")
        .pop()
        .map(|entry| entry.pull_request.head.clone());
    assert!(head.is_some(), "its own organization has");
}
