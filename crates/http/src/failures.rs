//! How each operation may fail, for the description of the API: made from the table of codes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use utoipa::IntoResponses;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::{Ref, RefOr, Response, Type, schema::ObjectBuilder};

use crate::problem::{Code, PROBLEM_JSON, UNAUTHORIZED, problem_type};

type Responses = BTreeMap<String, RefOr<Response>>;

/// The failures that every operation with a token knows.
const ALWAYS: [Code; 5] =
    [Code::Unauthorized, Code::MissingScope, Code::WrongMethod, Code::Internal, Code::Unavailable];

/// Those of operations with a body.
const BODY: [Code; 5] =
    [Code::MalformedBody, Code::Invalid, Code::BodyTooSlow, Code::TooLarge, Code::WrongContentType];

/// Those of operations that change something, with an idempotency key.
const KEYED: [Code; 3] = [Code::RequestInProgress, Code::ReplyNotKept, Code::IdempotencyKeyReused];

/// Those of operations on a queue.
const QUEUE: [Code; 2] = [Code::UnknownRepository, Code::UnknownQueue];

fn string() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn unauthorized() -> Response {
    let content = ContentBuilder::new()
        .schema(Some(string().build()))
        .example(Some(json!(UNAUTHORIZED)))
        .build();
    let header = HeaderBuilder::new().schema(Some(string().build())).build();
    ResponseBuilder::new()
        .description(Code::Unauthorized.row().when.trim())
        .content("text/plain", content)
        .header("www-authenticate", header)
        .build()
}

fn example(code: Code) -> serde_json::Value {
    let row = code.row();
    let mut body = json!({
        "type": problem_type(row.code),
        "title": row.title,
        "status": row.status,
        "detail": row.when.trim(),
        "code": row.code,
        "retryable": row.retryable,
        "request_id": "7f6d0d6e-2f5b-4a61-9c5d-0d7c1f1f3c57",
    });
    if code == Code::Invalid {
        body["detail"] = json!("pr.number is required");
        body["errors"] = json!([{"pointer": "/pr/number", "message": "is required"}]);
    }
    body
}

fn described(codes: &[Code]) -> Responses {
    let statuses: BTreeSet<u16> = codes.iter().map(|code| code.row().status).collect();
    let mut responses = Responses::new();
    for status in statuses {
        let codes = codes.iter().copied().filter(|code| code.row().status == status);
        let codes: Vec<Code> = codes.collect();
        let response = if codes.contains(&Code::Unauthorized) {
            unauthorized()
        } else {
            let words: Vec<&str> = codes.iter().map(|code| code.row().when.trim()).collect();
            let mut content = ContentBuilder::new()
                .schema(Some(RefOr::from(Ref::from_schema_name("ProblemBody"))));
            for code in &codes {
                let one = ExampleBuilder::new().value(Some(example(*code))).build();
                content = content.examples_from_iter([(code.row().code, one)]);
            }
            ResponseBuilder::new()
                .description(words.join(" "))
                .content(PROBLEM_JSON, content.build())
                .build()
        };
        responses.insert(status.to_string(), response.into());
    }
    responses
}

/// Adds the failures of idempotency keys to what an operation replies.
pub(crate) fn add_those_of_keys(responses: &mut Responses) {
    for (status, more) in described(&KEYED) {
        match (responses.get_mut(&status), more) {
            (Some(RefOr::T(known)), RefOr::T(more)) => {
                known.description = format!("{} {}", known.description, more.description);
                for (kind, content) in more.content {
                    match (known.content.get_mut(&kind), content) {
                        (Some(RefOr::T(known)), RefOr::T(content)) => {
                            known.examples.extend(content.examples);
                        }
                        (Some(RefOr::Ref(_)), _) => {}
                        (_, content) => drop(known.content.insert(kind, content)),
                    }
                }
            }
            (Some(RefOr::Ref(_)), _) => {}
            (_, more) => drop(responses.insert(status, more)),
        }
    }
}

macro_rules! failures {
    ($($(#[$doc:meta])* $name:ident = [$($group:expr),*] [$($code:ident),*];)+) => {
        $(
            $(#[$doc])*
            pub(crate) struct $name;

            impl IntoResponses for $name {
                fn responses() -> Responses {
                    let groups: &[&[Code]] = &[$(&$group,)* &[$(Code::$code),*]];
                    let mut codes = groups.concat();
                    // An address with U+0000 is refused, whatever the operation.
                    if !codes.contains(&Code::Invalid) {
                        codes.push(Code::Invalid);
                    }
                    described(&codes)
                }
            }
        )+
    };
}

failures! {
    /// Of reading a queue.
    OfQueue = [ALWAYS, BODY, QUEUE] [];
    OfTargets = [ALWAYS, BODY, QUEUE] [UnknownPullRequest];
    OfSubmit = [ALWAYS, BODY, QUEUE] [UnknownPullRequest, PullRequestNotOpen, DependencyCycle];
    OfCancel = [ALWAYS, BODY, QUEUE] [NotInQueue, Landing];
    OfRestart = [ALWAYS, BODY, QUEUE] [NotInQueue, NothingToRestart, Landing];
    OfEntry = [ALWAYS, BODY, QUEUE] [NotInQueue];
    OfRuns = [ALWAYS, BODY, QUEUE] [UnknownRun];
    OfCheckResult = [ALWAYS, BODY, QUEUE]
        [UnknownRun, TestRunEnded, OtherCommit, CheckNotExternal, CheckCompleted];
    OfCreate = [ALWAYS, BODY] [UnknownRepository, QueueExists];
    OfDelete = [ALWAYS, BODY, QUEUE] [QueueNotEmpty, QueueNotEmptyLive];
    OfUpdate = [ALWAYS, BODY, QUEUE] [ModeChange];
    OfMetrics = [ALWAYS] [Invalid, UnknownRepository];
    OfSimulation = [ALWAYS, QUEUE] [Invalid, NotSimulated];
    OfAudit = [ALWAYS] [Invalid, UnknownRepository];
    OfOutput = [ALWAYS] [UnknownOutput];
    OfUpload = [ALWAYS, BODY] [UnknownRepository, UploadRefused, NoRoom];
    OfAnnouncement = [ALWAYS, BODY] [UploadRefused, NoRoom];
    OfQuarantineConfig = [ALWAYS, BODY] [];
    /// Of sending a bundle, whose URL is the permission.
    OfBundle = [] [WrongSignature, WrongMethod, BodyTooSlow, TooLarge, UploadRefused, Internal, Unavailable, NoRoom];
    OfUploads = [ALWAYS, BODY] [UnknownRepository];
    OfQueues = [ALWAYS, BODY] [UnknownRepository];
    OfUploadStatus = [ALWAYS] [UnknownUpload];
    OfEvents = [ALWAYS] [Invalid];
    OfStream = [ALWAYS] [Invalid, TooManyStreams];
    OfEventSchema = [] [UnknownEvent, WrongMethod];
    /// Of lists of tests.
    OfTests = [ALWAYS, BODY] [UnknownRepository, InvalidPageToken];
    OfTest = [ALWAYS, BODY] [UnknownRepository, UnknownTest];
    OfOverride = [ALWAYS, BODY] [UnknownRepository, UnknownTest, TestRenamed];
    OfIncident = [ALWAYS, BODY] [UnknownRepository, UnknownIncident];
    OfFlag = [ALWAYS, BODY] [UnknownRepository, UnknownTest, FlagUnchanged, TestRenamed];
    OfMute = [ALWAYS, BODY] [UnknownRepository, UnknownTest, UnknownMonitor, MuteUnchanged, TestRenamed];
    /// Of settings and new monitors.
    OfSettings = [ALWAYS, BODY] [UnknownRepository];
    OfMonitor = [ALWAYS, BODY] [UnknownRepository, UnknownMonitor, MonitorKindFixed];
    OfWebhooks = [ALWAYS, BODY] [LimitedToken];
    OfNewWebhook = [ALWAYS, BODY] [LimitedToken, TooManyWebhooks];
    OfWebhook = [ALWAYS, BODY] [LimitedToken, UnknownWebhook];
    OfWebhookSending = [ALWAYS, BODY] [LimitedToken, UnknownWebhook, WebhookOff];
    OfReplay = [ALWAYS, BODY] [LimitedToken, UnknownWebhook, UnknownMessage, WebhookOff, MessagePending];
    /// Of operations without a token.
    OfOpen = [] [WrongMethod];
}
