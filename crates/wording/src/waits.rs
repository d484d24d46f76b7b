//! Labels and sentences for wait reasons, and for the culprit of a failure.

use std::borrow::Cow;

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    Culprit, DependencyState, Exit, FailedTests, MAX_DEPENDENCIES, NextStep, RetryClass, WaitReason,
};
use signalbox_domain::time::Timestamp;

use super::{Named, Tone, Word, word};

/// Everything that is shown for a wait reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Its label, icon, tone and meaning.
    pub word: Word,
    /// The sentence with the particulars, without a full stop.
    pub sentence: Cow<'static, str>,
    /// What happens next, or what users can do: whole sentences.
    pub next: Cow<'static, str>,
    /// The latest time at which that happens; `None` when it is unknown.
    pub latest: Option<Timestamp>,
}

/// `#1, #2 and 3 more`: at most five are named.
fn list(prs: &[PrNumber], count: u32) -> String {
    let named: Vec<String> = prs.iter().take(5).map(|pr| format!("#{pr}")).collect();
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let more = count.max(prs.len()).saturating_sub(named.len());
    let named = named.join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}

/// What is shown for a wait reason. The one place with the texts of all of them.
pub fn wait(reason: &WaitReason) -> Wait {
    let says =
        |label, icon, tone, meaning, sentence: Cow<'static, str>, next: Cow<'static, str>| Wait {
            word: word(label, icon, tone, meaning),
            sentence,
            next,
            latest: None,
        };
    match reason {
        WaitReason::Draft => says("Draft", "minus", Tone::Waiting, "the pull request is marked as unfinished", "the pull request is a draft".into(), "Mark the pull request as ready; it then enters the line automatically.".into()),
        WaitReason::BaseBranchDiffers => says("Other base branch", "warning", Tone::Warning, "its base is another branch", "the pull request's base is not the branch of this queue".into(), "Change the base of the pull request to the branch of this queue, or submit it to the \
             queue of its own base.".into()),
        WaitReason::MissingTargets => says("Targets missing", "hourglass", Tone::Waiting, "its impacted targets were not reported for its current head", "its impacted targets have not been reported for its current head".into(), "Report its impacted targets from CI; it then enters the line automatically.".into()),
        WaitReason::ComputingTargets => says("Computing targets", "clock", Tone::Waiting, "the queue is computing its impacted targets", "the queue is computing its impacted targets from the files that it changes".into(), "Enters the line when its targets are known.".into()),
        WaitReason::HostMergeability { detail } => says("Not mergeable", "warning", Tone::Warning, "the git host reports that it is not mergeable", format!("the host reports: {detail}").into(), "Resolve what the host reports; it then enters the line automatically.".into()),
        WaitReason::Dependencies { on } => says("Waiting for dependencies", "clock", Tone::Waiting, "the pull requests that it depends on have not merged yet", depends_on(on, "which has not merged yet", "which have not merged yet").into(), "Enters the line when its dependencies have merged.".into()),
        WaitReason::DependencyClosed { on } => says("Dependency closed", "warning", Tone::Warning, "a pull request that it depends on was closed without merging", depends_on(on, "which was closed without merging", "which were closed without merging").into(), "Reopen and merge it, or remove its `Depends-On` line from the description.".into()),
        WaitReason::DependencyUnknown { on } => says("Dependency not found", "warning", Tone::Warning, "its description names a dependency that the server cannot find", format!("its description names dependencies that the server cannot find: {}", on.join(", ")).into(), format!("Correct the `Depends-On` line in the description: at most {MAX_DEPENDENCIES} pull requests, each as `#12`, `owner/name#12` or a URL, in repositories that this server can read.").into()),
        WaitReason::DependencyCycle { prs } => says("Dependency cycle", "warning", Tone::Warning, "pull requests depend on one another", match prs.as_slice() {
            [_] => "it depends on itself".to_owned(),
            _ => format!("they depend on one another: {}", around(prs)),
        }.into(), "Remove one of the `Depends-On` lines.".into()),
        WaitReason::RequiredChecksUnknown => says("Checks unknown", "hourglass", Tone::Waiting, "the required checks are not known yet", "its required statuses are not known yet".into(), "The queue is reading which checks are required; nothing to do.".into()),
        WaitReason::SlotsFull { used, limit, ahead } => says("Waiting for a test slot", "clock", Tone::Waiting, "all test slots are in use", slots(*used, *limit, *ahead).into(), match ahead {
            0 => "Starts when a running test finishes.".into(),
            _ => format!("Starts when a test slot is free and the {ahead} ahead of it have started.").into(),
        }),
        WaitReason::WindowClosed { used, window, limit, ahead } => says("Fewer test slots", "clock", Tone::Waiting, "failures have reduced the test slots, and all of them are in use", closed(*used, *window, *limit, *ahead).into(), match ahead {
            0 => "Starts when fewer than the reduced number of tests are running. Each merged pull request adds a test slot.".into(),
            _ => format!("Starts when a test slot is free and the {ahead} ahead of it have started. Each merged pull request adds a test slot.").into(),
        }),
        WaitReason::TargetFull { target, used, limit } => says("Target in use", "clock", Tone::Waiting, "as many test runs as allowed use one of its targets", in_use(target, *used, *limit).into(), "Starts when fewer test runs use this target.".into()),
        WaitReason::BatchFilling { have, target, until } => Wait {
            latest: Some(*until),
            ..says("Batch is filling", "clock", Tone::Waiting, "more pull requests may join its batch", format!("its batch is filling: {have} of {target}, at the latest until {until}").into(), "Its batch starts when it is full.".into())
        },
        WaitReason::BehindPrs { prs, ahead } => says("Waiting for earlier candidates", "clock", Tone::Waiting, "the candidates of earlier pull requests are built first", format!("{} ahead must be built first", list(prs, *ahead)).into(), "Starts when the pull requests ahead have been built.".into()),
        WaitReason::BuildingCandidate => says("Building candidate", "play", Tone::Active, "its candidate is being built", "its candidate is being built".into(), "Its tests start when the candidate is pushed.".into()),
        WaitReason::ChecksRunning { done, of } => says("Checks running", "play", Tone::Active, "its checks are running", format!("{done} of {of} required checks are done").into(), "Merges when all required checks have passed and the pull requests ahead of it have merged.".into()),
        WaitReason::ChecksSilent { names, since } => says("Checks silent", "warning", Tone::Warning, "no required check has started", silent(names, *since).into(), "Check the CI configuration: these checks must run for the test branches of the queue. \
             If none starts, the test run fails at its timeout.".into()),
        WaitReason::ChecksQueued { names, since } => says("Checks queued", "clock", Tone::Waiting, "CI has queued its checks and has not started them", format!("CI queued {} after the push at {since}, and none has started", quoted(names, " and ")).into(), "Its tests start when CI has a free runner; until then the test timeout does not count.".into()),
        WaitReason::Retrying { class, attempt, of, evidence } => says("Checks run again", "restart", Tone::Active, "failed checks run again on the same candidate", retrying(class, *attempt, *of, evidence).into(), "Nothing has to be done. Pull requests behind it continue.".into()),
        WaitReason::AwaitingReports { names, until } => Wait {
            latest: Some(*until),
            ..says("Waiting for test results", "hourglass", Tone::Waiting, "a check failed, and its test results are expected", format!("{} failed; the queue waits for the test results until {until}", quoted(names, " and ")).into(), "The test results decide whether the failure counts.".into())
        },
        WaitReason::TargetRed { tests, since, until } => Wait {
            latest: Some(*until),
            ..says("Target branch is red", "warning", Tone::Warning, "tests fail on the target branch itself, so nothing is tested until it moves", red_target(tests, *since).into(), "Is tested when the target branch moves, at the latest at the end of the hold. Submit the repair with priority urgent.".into())
        },
        WaitReason::PredecessorTesting { prs } => says("Waiting for pull requests ahead", "clock", Tone::Waiting, "pull requests ahead of it are still being tested", format!("waiting for {} ahead", list(prs, 0)).into(), "Merges right after the pull requests ahead of it.".into()),
        WaitReason::SuccessorTesting { prs } => says("Waiting for pull requests behind", "clock", Tone::Waiting, "a later run that contains it has passed, but others in that run are still being tested", format!("a later run that contains it has passed; waiting for {} in that run", list(prs, 0)).into(), "Merges when they have passed, too.".into()),
        WaitReason::BatchBisected { prs } => says("Waiting for the bisection", "split", Tone::Waiting, "its part of a failed batch has passed, and the rest is still being bisected", format!("its part of a failed batch has passed; waiting for the bisection of {}", list(prs, 0)).into(), "When the bisection ends, it merges if the target branch has not moved and no related test run has started; otherwise it is tested again.".into()),
        WaitReason::SuccessorWindow { depth } => says("Waiting for later pull requests", "warning", Tone::Warning, "later pull requests may still show that it is not at fault", window(*depth).into(), "If a later pull request that contains it passes, it counts as passed; otherwise it fails.".into()),
        WaitReason::ConflictWithAhead { pr } => says("Conflict ahead", "warning", Tone::Warning, "it conflicts with a pull request ahead", format!("it conflicts with #{pr} ahead, and waits until #{pr} merges or leaves the queue").into(), "If that pull request leaves the queue, this one continues; if it merges, this one must be rebased.".into()),
        WaitReason::BehindLanding { prs } => says("Another merge first", "clock", Tone::Waiting, "another pull request is being merged", format!("{} merges first", list(prs, 0)).into(), "Continues when that merge is done.".into()),
        WaitReason::Unexplained => says("Unexplained", "warning", Tone::Bad, "no known reason keeps it waiting; this is a bug in Signalbox", "no known reason keeps it waiting; this is a bug in Signalbox".into(), "The server retries automatically; please report this with the server's log.".into()),
        WaitReason::Landing => says("Merging", "merge", Tone::Active, "it is being merged into the target branch", "is being merged into the target branch".into(), "Merges in a few seconds.".into()),
        WaitReason::AuthorLimit { author, limit, prs } => says("Author limit", "clock", Tone::Waiting, "its author or agent has reached the limit of pull requests in the line", format!("{author} has reached the limit for each author, {limit} in the line: {}", list(prs, 0)).into(), "Enters the line when fewer of these are in it; the pull request that has waited longest goes first.".into()),
        WaitReason::Quota { author, of, limit, until } => says("Author quota", "clock", Tone::Waiting, "its author or agent has used up a quota", format!("{}; the next one may enter the line at {until}", quota(author, of, *limit)).into(), "Enters the line when enough of the quota is restored; the pull request that has waited longest goes first.".into()),
        WaitReason::Frozen { until, reason } => Wait {
            latest: *until,
            ..says("Frozen", "pause", Tone::Waiting, "a freeze applies to it", held_by_freeze(*until, reason.as_deref()).into(), "Continues when the freeze ends. Urgent pull requests merge during a freeze.".into())
        },
        WaitReason::QueuePaused { by, reason } => says("Queue paused", "pause", Tone::Warning, "the queue is paused", match reason {
            Some(reason) => format!("the queue was paused by {by}: {reason}").into(),
            None => format!("the queue was paused by {by}").into(),
        }, "Continues when the queue is resumed.".into()),
        WaitReason::QueueDraining => says("Queue draining", "drain", Tone::Warning, "the queue accepts no new pull requests", "the queue is draining and accepts no new pull requests".into(), "Enters the line when the queue is set to RUNNING.".into()),
        WaitReason::QueueSwitchingModes => says("Queue switching modes", "switch", Tone::Warning, "the queue changes its mode when its line is empty", "the queue is switching modes and accepts no new pull requests until its line is empty".into(), "Enters the line when the line is empty.".into()),
        WaitReason::HostUnreachable { since, detail } => says("Host unreachable", "warning", Tone::Bad, "the git host does not answer", if detail.is_empty() {
            format!("the git host has not answered since {since}").into()
        } else {
            format!("the git host has not been available since {since}: {detail}").into()
        }, "The queue retries automatically; the server's log has the details.".into()),
        WaitReason::HostAccessDenied { since, detail } => says("Host denies access", "warning", Tone::Bad, "the git host denies this server a permission that the queue needs", format!("the git host has denied access since {since}: {detail}").into(), "Continues when an operator restores the server's access; `signalbox doctor` lists what is missing.".into()),
        WaitReason::HostCredentialRejected { since, detail } => says("Credential rejected", "warning", Tone::Bad, "the git host does not accept this server's credential", format!("the git host has rejected the server's credential since {since}: {detail}").into(), "Continues when an operator replaces the server's credential for this host.".into()),
        WaitReason::TargetBranchMissing => says("Target branch missing", "warning", Tone::Bad, "the target branch does not exist", "the target branch does not exist on the host".into(), "Create the branch on the host, or delete this queue.".into()),
        WaitReason::TargetUnknown => says("Reading the target", "clock", Tone::Waiting, "the head of the target branch is being read", "the target branch's head is being read".into(), "Continues when the host has answered.".into()),
    }
}

/// The state of a dependency, after its name.
pub const fn dependency_state(state: DependencyState) -> &'static str {
    match state {
        DependencyState::Unread => "not read yet",
        DependencyState::Open => "not merged yet",
        DependencyState::Closed => "closed without merging",
        DependencyState::Missing => "not found",
        DependencyState::Merged => "merged",
    }
}

/// `it depends on #1 and #2, which have not merged yet`.
fn depends_on(on: &[String], one: &str, several: &str) -> String {
    match on {
        [first @ .., last] if !first.is_empty() => {
            format!("it depends on {} and {last}, {several}", first.join(", "))
        }
        _ => format!("it depends on {}, {one}", on.join(", ")),
    }
}

/// `#1 → #2 → #1`.
fn around(prs: &[PrNumber]) -> String {
    let names: Vec<String> = prs.iter().chain(prs.first()).map(|pr| format!("#{pr}")).collect();
    names.join(" → ")
}

fn slots(used: u32, limit: u32, ahead: u32) -> String {
    let taken = format!("all test slots are in use ({used} of {limit})");
    match ahead {
        0 => taken,
        1 => format!("{taken} and 1 pull request ahead of it waits for one"),
        _ => format!("{taken} and {ahead} pull requests ahead of it wait for one"),
    }
}

fn closed(used: u32, window: u32, limit: u32, ahead: u32) -> String {
    let reduced = format!("failures have reduced the test slots from {limit} to {window}");
    format!("{reduced}, and {}", slots(used, window, ahead))
}

fn window(depth: u32) -> String {
    let runs = match depth {
        1 => "the next test run".to_owned(),
        _ => format!("the next {depth} test runs"),
    };
    format!("its tests failed; {runs} behind it may still show that it is not at fault")
}

fn red_target(tests: &[String], since: Timestamp) -> String {
    let named = quoted(tests, ", ");
    format!(
        "{named} failed in the same way on the target branch; no test run has started since {since}"
    )
}

/// Describes the freeze that a pull request waits for, as a sentence without a full stop.
pub fn held_by_freeze(until: Option<Timestamp>, reason: Option<&str>) -> String {
    format!("a freeze applies to it{}", ends_because(until, reason))
}

/// Describes a freeze of all pull requests, as a sentence without a full stop.
pub fn frozen(until: Option<Timestamp>, reason: Option<&str>) -> String {
    format!("the target branch is frozen{}", ends_because(until, reason))
}

fn ends_because(until: Option<Timestamp>, reason: Option<&str>) -> String {
    let until = until.map_or_else(String::new, |until| format!(" until {until}"));
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    until + &reason
}

/// What an author has used up: `of` names the setting of the quota.
fn quota(author: &str, of: &str, limit: u32) -> String {
    match of {
        "authorHourlyLimit" => {
            format!(
                "{author} has reached the hourly limit of pull requests for each author, {limit}"
            )
        }
        "authorDailyMinutes" => {
            format!("{author} has reached the daily limit of test minutes for each author, {limit}")
        }
        other => format!("{author} has reached {other}, {limit}"),
    }
}

/// How many test runs use a target; `target` may be a pattern.
fn in_use(target: &str, used: u32, limit: u32) -> String {
    let targets = if target.contains('*') { "targets that match" } else { "the target" };
    let runs =
        if used == 1 { "1 test run uses".to_owned() } else { format!("{used} test runs use") };
    format!("{runs} {targets} {target}, and the limit is {limit}")
}

fn quoted(names: &[String], separator: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(separator)
}

/// Why failed checks run again. A class of a later version gets a general text.
fn retrying(class: &str, attempt: u32, of: u32, evidence: &[String]) -> String {
    let cause = RetryClass::parse(class).map_or("the evidence allows it", |class| match class {
        RetryClass::Infrastructure => "CI failed, and not a test",
        RetryClass::KnownFlaky => "only tests failed that are known to be flaky",
        RetryClass::SeenElsewhere => "the same tests failed in the same way without these changes",
    });
    let evidence = match evidence {
        [] => String::new(),
        found => format!(": {}", found.join(", ")),
    };
    format!("its failed checks run again ({attempt} of {of}), because {cause}{evidence}")
}

fn silent(names: &[String], since: Timestamp) -> String {
    format!(
        "no check named {} has started since the push at {since}; \
         is it configured for the test branches?",
        quoted(names, " or ")
    )
}

impl Named for WaitReason {
    fn named(&self) -> Word {
        wait(self).word
    }
}

/// The next step for a pull request that has left the queue. `is_gone`: the target branch was moved
/// to a commit that does not contain what landed. `tests`: the tests that failed, if it failed.
pub const fn after_exit(exit: &Exit, is_gone: bool, tests: FailedTests) -> &'static str {
    match exit {
        Exit::Merged { .. } if is_gone => {
            "To land it again, push a new commit to a pull request and submit that."
        }
        Exit::Merged { .. } => "There is nothing left to do.",
        Exit::Failed { reason, culprit, .. } => next_step(NextStep::after(*reason, culprit, tests)),
        Exit::Cancelled { .. } => "Submit it again to merge it.",
    }
}

/// What to do about a pull request that has failed.
pub const fn next_step(step: NextStep) -> &'static str {
    match step {
        NextStep::FixTests => {
            "Fix the failed tests that are not known to be flaky, push, and submit it again."
        }
        NextStep::FixChecks => {
            "Find the cause in the output of the failed checks, fix it, push, and submit it again."
        }
        NextStep::SubmitAgainOrQuarantine => {
            "All tests that failed are known to be flaky: submit it again, or quarantine them first."
        }
        NextStep::SubmitAgain => {
            "Submit it again: commits were pushed to it while it was being merged."
        }
        NextStep::ResolveConflicts => {
            "Merge the target branch into it, resolve the conflicts, push, and submit it again."
        }
        NextStep::WaitForCulprit => {
            "Wait until the pull request at fault is fixed or has left the queue, then submit this \
             one again."
        }
        NextStep::RepairTarget => "Repair the target branch first, then submit it again.",
        NextStep::CorrectConfiguration => {
            "Correct the configuration on the target branch, then submit it again."
        }
        NextStep::ShortenChecks => {
            "Make the checks faster, or raise `testingTimeoutMinutes`, and submit it again."
        }
        NextStep::AskHost => "Remove the cause that the git host names, then submit it again.",
    }
}

impl Named for Culprit {
    fn named(&self) -> Word {
        match self {
            Self::Itself => word(
                "The pull request itself",
                "cross",
                Tone::Bad,
                "no other change is known to be at fault",
            ),
            Self::Host => {
                word("The git host", "warning", Tone::Warning, "the git host refused the merge")
            }
            Self::PullRequest(_) => word(
                "Another pull request",
                "warning",
                Tone::Warning,
                "a pull request ahead of it is at fault",
            ),
            Self::TargetBranch => word(
                "The target branch",
                "warning",
                Tone::Bad,
                "the target branch fails without it",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_all_its_words() {
        for (_, reason) in WaitReason::samples() {
            let wait = wait(&reason);
            assert!(!wait.sentence.is_empty() && !wait.sentence.ends_with('.'), "{wait:?}");
            assert!(wait.next.ends_with('.'), "{wait:?}");
        }
    }

    #[test]
    fn particulars_are_in_the_sentence() {
        let slots = |ahead| wait(&WaitReason::SlotsFull { used: 5, limit: 5, ahead }).sentence;
        assert_eq!(slots(0), "all test slots are in use (5 of 5)");
        let many =
            "all test slots are in use (5 of 5) and 244 pull requests ahead of it wait for one";
        assert_eq!(slots(244), many);
        let prs: Vec<PrNumber> = (1..=6).map(PrNumber).collect();
        let behind = WaitReason::BehindPrs { prs, ahead: 9 };
        assert_eq!(
            wait(&behind).sentence,
            "#1, #2, #3, #4, #5 and 4 more ahead must be built first"
        );
    }
}
