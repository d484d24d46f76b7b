//! Shapes on the wire.

mod entry;
mod field;
mod forms;
mod queue;
mod requests;
mod run;
mod update;
mod wait_reason;
mod words;

#[cfg(test)]
mod reply_tests;
#[cfg(test)]
mod request_tests;

pub(crate) use entry::{EntryReply, ListedEntry};
pub(crate) use field::{Errors, Field, Form, shown};
pub(crate) use queue::{BatchingRuleReply, QueueReply, SettingsReply};
pub(crate) use requests::{
    Create, CreateRequest, Empty, EntryRequest, PullRequestRequest, QueueRequest, Request,
    RunRequest, SetTargets, Submit, SubmitRequest, TargetsRequest,
};
pub(crate) use run::{TestRunReply, TestRunsReply};
pub(crate) use update::{Update, UpdateRequest};
pub(crate) use words::Words;
