//! How long pull requests and candidates of a merge queue waited for a failed test to pass.

use std::collections::BTreeMap;

use crate::time::{Span, Timestamp};

use super::monitor::comparable;
use super::{BranchClass, CodeSummary, Doubt, Origin, SameCode};

/// The time from a failure of a test to its first success on the same code, by the same job as far as
/// is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Delay {
    /// The branch of the pull request or of the candidate.
    pub branch: String,
    /// The failure.
    pub from: Timestamp,
    /// The success.
    pub until: Timestamp,
}

/// The delays by a test, from the summaries of its runs. Only pull requests and merge queues are delayed. The
/// first failure of a job on a code counts, at `since` or later, if the first success came after it: what
/// was fixed by another commit was no delay by the test.
pub fn delays(codes: &[CodeSummary], since: Timestamp) -> Vec<Delay> {
    let mut rows: BTreeMap<(&SameCode, &str), Vec<&CodeSummary>> = BTreeMap::new();
    let waits = |class| matches!(class, BranchClass::PullRequest | BranchClass::Merge);
    for row in codes.iter().filter(|row| waits(row.class)) {
        rows.entry((&row.code, &row.branch)).or_default().push(row);
    }
    let mut found = Vec::new();
    for ((code, branch), rows) in rows {
        // By job: of two that failed at the same time, the branch waits for both.
        let mut first: BTreeMap<(Origin, Timestamp), Timestamp> = BTreeMap::new();
        for it in comparable(code, &rows) {
            // A pull request waits on whatever base; but another platform may have passed meanwhile.
            let is_of_job = it.doubt.is_none_or(|doubt| doubt == Doubt::Base);
            if is_of_job && it.failed_at >= since && it.passed_at > it.failed_at {
                let failure = (it.failing.origin, it.failed_at);
                let until = first.entry(failure).or_insert(it.passed_at);
                *until = it.passed_at.min(*until);
            }
        }
        let delay = |((_, from), until)| Delay { branch: branch.to_owned(), from, until };
        found.extend(first.into_iter().map(delay));
    }
    found
}

/// How long branches were delayed in all. Delays of one branch at the same time count once.
pub fn delayed<'a>(delays: impl IntoIterator<Item = &'a Delay>) -> Span {
    let mut by_branch: BTreeMap<&str, Vec<(Timestamp, Timestamp)>> = BTreeMap::new();
    for it in delays {
        by_branch.entry(&it.branch).or_default().push((it.from, it.until));
    }
    let mut total = Span::ZERO;
    for mut times in by_branch.into_values() {
        times.sort_unstable();
        let mut reached = None;
        for (from, until) in times {
            let from = from.max(reached.unwrap_or(from));
            if until > from {
                total =
                    Span::from_micros(total.micros().saturating_add(until.since(from).micros()));
                reached = Some(until);
            }
        }
    }
    total
}
