//! Steps before they are decided.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use signalbox_domain::ids::PrNumber;
use signalbox_domain::ports::Version;
use signalbox_domain::queue::{Command, Input, Queue, ReportedTargets, Submission, Targets};

use super::turns::Weigh;
use crate::audit::AuditEntryBuilder;

/// So many targets weigh as much as a small step: there may be 100,000 of them, which the journal contains.
const TARGETS: usize = 1_000;

/// Reported targets by pull request.
pub(super) type Reported = BTreeMap<PrNumber, Arc<ReportedTargets>>;

/// A step.
pub(crate) struct Step {
    pub(super) input: Input,
    pub(super) audit_entry: Option<AuditEntryBuilder>,
    pub(super) out_of_date: Box<dyn Fn(&Queue) -> bool + Send + Sync>,
    pub(super) seen: Option<Seen>,
    /// The id of the request that caused it.
    pub(super) request: Option<String>,
}

/// What the request that causes a step has just read. While the cached state has that version, the step
/// is decided on it without another read.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The version of the queue.
    pub(crate) version: Version,
    /// The reported targets of the pull request, of a submission.
    pub(crate) targets: Option<ReportedTargets>,
}

impl Step {
    pub(crate) fn new(input: Input) -> Self {
        let out_of_date = Box::new(|_: &Queue| false);
        Self { input, audit_entry: None, out_of_date, seen: None, request: None }
    }

    /// Writes its changes to the audit log.
    pub(crate) fn audited(self, audit_entry: &AuditEntryBuilder) -> Self {
        Self { audit_entry: Some(audit_entry.clone()), ..self }
    }

    /// Is not executed if the input is out of date for the latest state.
    pub(crate) fn unless(
        self,
        out_of_date: impl Fn(&Queue) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { out_of_date: Box::new(out_of_date), ..self }
    }

    /// See [`Seen`].
    pub(crate) fn seen(self, version: Version, targets: Option<ReportedTargets>) -> Self {
        Self { seen: Some(Seen { version, targets }), ..self }
    }

    /// The number of targets that it writes, as far as it is known.
    fn targets(&self) -> usize {
        let of = |reported: &ReportedTargets| match &reported.targets {
            Targets::All => 0,
            Targets::Only(targets) => targets.len(),
        };
        let seen = self.seen.as_ref().and_then(|seen| seen.targets.as_ref());
        match &self.input {
            Input::Command(Command::SetTargets { targets, .. }) => of(targets),
            Input::Command(_) | Input::Fact(_) => seen.map_or(0, of),
        }
    }

    /// The targets that were read with the version.
    pub(super) fn reported(&self) -> Option<(PrNumber, Arc<ReportedTargets>)> {
        let pr = submission(&self.input)?.pull_request.number;
        Some((pr, Arc::new(self.seen.as_ref()?.targets.clone()?)))
    }
}

impl Weigh for Step {
    fn weight(&self) -> usize {
        self.targets() / TARGETS + 1
    }
}

pub(super) fn submission(input: &Input) -> Option<&Submission> {
    match input {
        Input::Command(Command::Submit(submission)) => Some(submission),
        Input::Command(_) | Input::Fact(_) => None,
    }
}

/// Adds its targets to a submission.
pub(super) fn with_targets<'a>(input: &'a Input, reported: &Reported) -> Cow<'a, Input> {
    let Some(submission) = submission(input) else { return Cow::Borrowed(input) };
    let targets = reported.get(&submission.pull_request.number);
    let targets = targets.map(|targets| targets.as_ref().clone());
    let submission = Submission { targets, ..submission.clone() };
    Cow::Owned(Input::Command(Command::Submit(Box::new(submission))))
}
