//! Shapes on the wire.

mod entry;
mod fields;
mod queue;
mod requests;
mod run;
mod update;

pub(crate) use entry::{EntryReply, ListedEntry};
pub(crate) use fields::{Number, PriorityField, TargetsField, Words};
pub(crate) use queue::{BatchingRuleField, QueueReply, SettingsReply};
pub(crate) use requests::{
    CreateQueue, Empty, EntryQuery, PlaceOnly, PullRequestCommand, RunQuery, SetTargets, Submit,
};
pub(crate) use run::{TestRunReply, TestRunsReply};
pub(crate) use update::UpdateQueue;
