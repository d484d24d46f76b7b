//! Requests and replies of the API.

mod audit;
mod check_result_request;
mod cursor;
mod entry;
mod estimate;
mod events;
mod failure;
mod field;
mod forms;
mod list_requests;
mod lists;
mod place;
mod pull_request_requests;
mod question;
mod queue;
mod queue_requests;
mod readiness;
mod run;
mod setting;
mod shapes;
mod simulation;
mod targets_request;
pub(crate) mod tests;
mod timeline;
mod update;
mod upload;
mod upload_requests;
mod wait_reason;
pub(crate) mod webhooks;
mod words;

pub(crate) use audit::{AuditQuery, AuditReply};
pub(crate) use check_result_request::{CheckReported, CheckResultRequest};
pub(crate) use entry::{EntryReply, ListedEntry};
pub(crate) use events::{CatalogEntry, CatalogReply, EventsReply, EventsRequest, position};
pub(crate) use failure::FailureReply;
pub(crate) use field::{Errors, Field, Form, shown};
pub(crate) use list_requests::{EntriesRequest, ListRequest, Listing, LookUps, ResultsRequest};
pub(crate) use lists::{EntriesReply, ListReply, ResultsReply};
pub(crate) use place::{Empty, Request};
pub(crate) use pull_request_requests::{EntryRequest, LookUp, PullRequestRequest, SubmitRequest};
pub(crate) use question::{AskedCase, AskedRepo, Question};
pub(crate) use queue::{QueueReply, QueuesReply, SettingsReply};
pub(crate) use queue_requests::{Create, CreateRequest, QueueRequest, QueuesRequest, RunRequest};
pub(crate) use run::{TestRunReply, TestRunsReply};
pub(crate) use shapes::{
    BinaryBody, EventWord, FilesForm, PositionText, PrNumberFromOne, RepoText, ShaText, TimeText,
};
pub(crate) use simulation::{Simulation, SimulationQuery, SimulationReply};
pub(crate) use targets_request::{SetTargets, TargetsRequest};
pub(crate) use update::{Update, UpdateRequest};
pub(crate) use upload::{UploadReply, UploadsReply};
pub(crate) use upload_requests::{AnnounceRequest, ListUploads, ListUploadsRequest};
pub(crate) use words::AuditActionWord;
pub(crate) use words::Words;
