//! Errors as replies. The only file that knows a status code.

use actix_web::http::StatusCode;
use actix_web::http::header::{
    ALLOW, CONTENT_TYPE, ContentType, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use actix_web::{HttpResponse, HttpResponseBuilder, ResponseError};
use serde::Serialize;
use signalbox_domain::ports::KeptReply;
use signalbox_services::RefusalReason;
use utoipa::ToSchema;

use crate::request_id::current_request_id;

/// Seconds after which a caller may try again when something is not available.
const RETRY_SECONDS: u32 = 5;
/// The header of a kept reply to an earlier request.
const REPLAYED: (&str, &str) = ("idempotent-replayed", "true");
/// The authentication challenge.
const CHALLENGE: &str = "ApiKey header=\"x-api-token\"";
/// The body of every 401.
pub(crate) const UNAUTHORIZED: &str = "a valid x-api-token header is required";

/// A row of the table of codes.
pub(crate) struct Row {
    /// The code as it is written.
    pub(crate) code: &'static str,
    /// The status of the reply.
    pub(crate) status: u16,
    /// The kind as a title.
    pub(crate) title: &'static str,
    /// Whether the same request may succeed later.
    pub(crate) retryable: bool,
    /// When it is sent.
    pub(crate) when: &'static str,
}

macro_rules! codes {
    ($(#[doc = $when:literal] $name:ident = $code:literal, $status:literal, $title:literal, $retryable:literal;)+) => {
        /// What went wrong, as a stable code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code { $(#[doc = $when] $name),+ }

        impl Code {
            const ALL: &'static [Self] = &[$(Self::$name),+];

            pub(crate) const fn row(self) -> Row {
                let (code, status, title, retryable, when) = match self {
                    $(Self::$name => ($code, $status, $title, $retryable, $when)),+
                };
                Row { code, status, title, retryable, when }
            }
        }
    };
}

codes! {
    /// There is no token, or it is malformed, unknown, expired or revoked. Plain text.
    Unauthorized = "unauthorized", 401, "Authentication required", false;
    /// The body is empty, not UTF-8 or not JSON.
    MalformedBody = "malformed_body", 400, "Malformed request body", false;
    /// Fields break a rule; `errors` names each.
    Invalid = "validation_failed", 400, "Invalid request", false;
    /// The token lacks the scope for this operation.
    MissingScope = "missing_scope", 403, "Not allowed", false;
    /// The operation concerns the whole organization, but the token is limited to repositories.
    LimitedToken = "limited_token", 403, "Not allowed", false;
    /// The signature of a bundle's upload URL or of a git host's event is invalid.
    WrongSignature = "wrong_signature", 403, "Not allowed", false;
    /// The path of the address has more than 2,048 bytes.
    AddressTooLong = "address_too_long", 414, "Address too long", false;
    /// No operation or page has this address.
    UnknownPath = "path_not_found", 404, "Not found", false;
    /// The organization has no such repository, or the token may not see it.
    UnknownRepository = "repository_not_found", 404, "Repository not found", false;
    /// The repository has no queue for this branch.
    UnknownQueue = "merge_queue_not_found", 404, "Merge queue not found", false;
    /// The git host has no such pull request.
    UnknownPullRequest = "pull_request_not_found", 404, "Pull request not found", false;
    /// The pull request has left the queue, or was never submitted to it.
    NotInQueue = "pull_request_not_in_queue", 404, "Pull request not in the queue", false;
    /// The queue has no such test run.
    UnknownRun = "test_run_not_found", 404, "Test run not found", false;
    /// The test run has no output of this check.
    UnknownOutput = "check_output_not_found", 404, "Check output not found", false;
    /// The organization has no such upload, or the token may not see it.
    UnknownUpload = "upload_not_found", 404, "Upload not found", false;
    /// The repository has no such test.
    UnknownTest = "test_not_found", 404, "Test not found", false;
    /// The repository has no such monitor.
    UnknownMonitor = "monitor_not_found", 404, "Monitor not found", false;
    /// The repository has no such incident.
    UnknownIncident = "incident_not_found", 404, "Incident not found", false;
    /// The organization has no such webhook endpoint.
    UnknownWebhook = "webhook_not_found", 404, "Webhook endpoint not found", false;
    /// The webhook endpoint has no such message, or it was deleted.
    UnknownMessage = "message_not_found", 404, "Message not found", false;
    /// The address supports other methods; `Allow` lists them.
    WrongMethod = "method_not_allowed", 405, "Method not allowed", false;
    /// The repository already has a queue for this branch.
    QueueExists = "merge_queue_exists", 409, "Merge queue exists", false;
    /// The queue still has pull requests in it.
    QueueNotEmpty = "merge_queue_not_empty", 409, "Merge queue not empty", false;
    /// The same, for a token with the compatibility profile `v1-live`.
    QueueNotEmptyLive = "merge_queue_not_empty", 400, "Merge queue not empty", false;
    /// The pull request is in a state that has no tests to restart.
    NothingToRestart = "nothing_to_restart", 409, "Nothing to restart", false;
    /// The pull request is being merged into the target branch.
    Landing = "merge_in_progress", 409, "Merge in progress", true;
    /// The pull request is closed or merged.
    PullRequestNotOpen = "pull_request_not_open", 409, "Pull request not open", false;
    /// The pull request depends on itself through others in the queue.
    DependencyCycle = "dependency_cycle", 409, "Dependency cycle", false;
    /// The test run has ended, so its checks cannot change any more.
    TestRunEnded = "test_run_ended", 409, "Test run has ended", false;
    /// The reported commit is not the one that the test run tests.
    OtherCommit = "commit_not_tested", 409, "Commit not tested", false;
    /// The check is not an external check of the test run.
    CheckNotExternal = "check_not_external", 409, "Not an external check", false;
    /// The check has completed with another conclusion.
    CheckCompleted = "check_completed", 409, "Check has completed", false;
    /// The queue is switching modes.
    ModeChange = "mode_change_in_progress", 409, "Mode change in progress", true;
    /// The test is already flagged, or is not flagged.
    FlagUnchanged = "flag_unchanged", 409, "Nothing to change", false;
    /// The test has another name now; the detail has the id of the test that it was renamed to.
    TestRenamed = "test_renamed", 409, "Test renamed", false;
    /// The monitor has never been active for this test, or is not muted.
    MuteUnchanged = "mute_unchanged", 409, "Nothing to mute or unmute", false;
    /// The kind of a monitor cannot be changed.
    MonitorKindFixed = "monitor_kind_fixed", 409, "Kind of monitor is fixed", false;
    /// The organization has the maximum number of webhook endpoints.
    TooManyWebhooks = "too_many_webhooks", 409, "Too many webhook endpoints", false;
    /// The webhook endpoint is off, so no messages are sent.
    WebhookOff = "webhook_off", 409, "Webhook endpoint is off", false;
    /// The message is already being delivered.
    MessagePending = "message_pending", 409, "Message is pending", false;
    /// No tested pull request left the queue in these days, no test duration is known, targets are missing or too many, pull requests would never leave the queue, or the simulation takes too long.
    NotSimulated = "simulation_not_possible", 409, "Simulation not possible", false;
    /// A request with the same idempotency key is being carried out.
    RequestInProgress = "request_in_progress", 409, "Request in progress", true;
    /// A request with the same idempotency key was carried out. Its reply was not kept, because it contained a secret or was too large.
    ReplyNotKept = "reply_not_kept", 409, "Reply not kept", false;
    /// The idempotency key was used for another request.
    IdempotencyKeyReused = "idempotency_key_reused", 422, "Idempotency key reused", false;
    /// The client sends the body too slowly.
    BodyTooSlow = "body_too_slow", 408, "Request body too slow", true;
    /// The body exceeds 20 MiB, an event of a git host exceeds 1 MiB, or an upload exceeds the limit of the server.
    TooLarge = "body_too_large", 413, "Request body too large", false;
    /// The body is not declared as JSON, or is compressed.
    WrongContentType = "unsupported_content_type", 415, "Unsupported content type", false;
    /// The upload came too late or too often, has too many files or none, or names another repository.
    UploadRefused = "upload_refused", 422, "Upload refused", false;
    /// The token, its organization or the server has the maximum number of open streams.
    TooManyStreams = "too_many_streams", 429, "Too many streams", true;
    /// There is no public event with this name.
    UnknownEvent = "event_not_found", 404, "Event not found", false;
    /// The page token was not issued for this list. Despite the status, the caller made the mistake.
    InvalidPageToken = "invalid_page_token", 500, "Invalid page token", false;
    /// The server failed; its log has the cause under the request id.
    Internal = "internal_error", 500, "Internal error", false;
    /// The git host denies access or rejects the server's credential: an operator must act.
    HostAccess = "git_host_access", 502, "Git host denies access", true;
    /// The database or the git host does not respond, or the server or the queue is overloaded.
    Unavailable = "unavailable", 503, "Not available", true;
    /// The store of uploads is full, or the share of it that the sender has. There is room again when older uploads are deleted.
    NoRoom = "no_room_for_uploads", 507, "No room for uploads", false;
}

impl Code {
    /// Its status.
    pub(crate) fn status(self) -> StatusCode {
        StatusCode::from_u16(self.row().status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// The page about errors for the documentation, with the table of all codes.
pub fn error_page() -> String {
    let mut page = String::from(include_str!("errors_head.md"));
    page += "\n| code | status | title | retryable | when |\n|---|---|---|---|---|\n";
    let lines = Code::ALL.iter().map(|code| {
        let Row { code, status, title, retryable, when } = code.row();
        let (retryable, when) = (if retryable { "yes" } else { "no" }, when.trim());
        format!("| `{code}` | {status} | {title} | {retryable} | {when} |")
    });
    page + &lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// One field that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct FieldError {
    /// Where it is, as a JSON pointer.
    #[schema(example = "/pr/number")]
    pub(crate) pointer: String,
    /// The rule.
    pub(crate) message: String,
}

impl FieldError {
    /// The field's name and its rule: `pr.number is required`.
    fn sentence(&self) -> String {
        let name = self.pointer.trim_start_matches('/').replace('/', ".");
        let name = if name.is_empty() { "the body" } else { &name };
        format!("{name} {}", self.message)
    }
}

/// An error reply by RFC 9457.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProblemBody {
    /// A URI for the kind of problem.
    #[schema(example = "urn:signalbox:problem:merge_queue_not_found")]
    r#type: String,
    /// The kind of problem as a title.
    title: &'static str,
    /// The status of the reply.
    status: u16,
    /// What went wrong, for users. The text may change.
    detail: String,
    /// The kind as a stable code.
    code: &'static str,
    /// Whether the same request may succeed later.
    retryable: bool,
    /// Names the request in the server's log.
    request_id: String,
    /// The fields that break a rule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldError>,
}

/// An error that becomes a reply.
#[derive(Debug)]
pub(crate) struct Problem {
    code: Code,
    detail: String,
    errors: Vec<FieldError>,
    allow: Option<&'static str>,
}

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), errors: Vec::new(), allow: None }
    }

    /// A failure of the server that its log explains.
    pub(crate) fn internal() -> Self {
        Self::new(Code::Internal, "the server failed; its log has the cause under the request id")
    }

    /// One field that breaks a rule.
    pub(crate) fn invalid(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self::fields(vec![FieldError { pointer: pointer.into(), message: message.into() }])
    }

    /// All fields that break a rule.
    pub(crate) fn fields(errors: Vec<FieldError>) -> Self {
        let sentences: Vec<String> = errors.iter().map(FieldError::sentence).collect();
        Self { errors, ..Self::new(Code::Invalid, sentences.join("; ")) }
    }

    pub(crate) fn wrong_method(allow: &'static str) -> Self {
        Self { allow: Some(allow), ..Self::new(Code::WrongMethod, format!("use {allow} here")) }
    }
}

/// Marks a reply with a server status that is the caller's mistake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallersMistake;

impl CallersMistake {
    /// The status that such a reply is counted as.
    pub(crate) const COUNTED_AS: u16 = 400;
}

/// The status of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageKind {
    /// It is shown.
    Shown,
    /// The visitor must sign in first.
    SignIn,
    /// It does not exist, or the visitor may not see it.
    Missing,
}

impl PageKind {
    /// The beginning of the reply.
    pub(crate) fn reply(self) -> HttpResponseBuilder {
        HttpResponse::build(match self {
            Self::Shown => StatusCode::OK,
            Self::SignIn => Code::Unauthorized.status(),
            Self::Missing => Code::UnknownTest.status(),
        })
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code.row().code, self.detail)
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.code.status()
    }

    fn error_response(&self) -> HttpResponse {
        let row = self.code.row();
        let mut reply = HttpResponse::build(self.code.status());
        reply.extensions_mut().insert(RefusalReason(row.code));
        if self.code == Code::Unauthorized {
            // Plain text, the same for every reason.
            return reply
                .insert_header((WWW_AUTHENTICATE, CHALLENGE))
                .content_type(ContentType::plaintext())
                .body(UNAUTHORIZED);
        }
        if row.retryable {
            reply.insert_header((RETRY_AFTER, RETRY_SECONDS.to_string()));
        }
        if let Some(allow) = self.allow {
            reply.insert_header((ALLOW, HeaderValue::from_static(allow)));
        }
        if self.code == Code::InvalidPageToken {
            reply.extensions_mut().insert(CallersMistake);
        }
        let body = ProblemBody {
            r#type: problem_type(row.code),
            title: row.title,
            status: row.status,
            detail: self.detail.clone(),
            code: row.code,
            retryable: row.retryable,
            request_id: current_request_id().unwrap_or_default(),
            errors: self.errors.clone(),
        };
        reply.content_type(PROBLEM_JSON).json(body)
    }
}

/// Why a request is not handled.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// It is refused.
    Problem(Problem),
    /// It repeats another one, which had this reply.
    Replied(KeptReply),
}

impl<P: Into<Problem>> From<P> for Stopped {
    fn from(problem: P) -> Self {
        Self::Problem(problem.into())
    }
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Problem(problem) => problem.fmt(f),
            Self::Replied(_) => f.write_str("a repeated request"),
        }
    }
}

impl ResponseError for Stopped {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Problem(problem) => problem.status_code(),
            Self::Replied(reply) => StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK),
        }
    }

    fn error_response(&self) -> HttpResponse {
        match self {
            Self::Problem(problem) => problem.error_response(),
            Self::Replied(reply) => HttpResponse::build(self.status_code())
                .insert_header((CONTENT_TYPE, reply.content_type.as_str()))
                .insert_header(REPLAYED)
                .body(reply.body.clone().unwrap_or_default()),
        }
    }
}

/// The content type of problems.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// The URI of a kind of problem.
pub(crate) fn problem_type(code: &str) -> String {
    format!("urn:signalbox:problem:{code}")
}

/// The reply of the readiness probe while the server is not ready.
pub(crate) fn not_ready(words: &str) -> HttpResponse {
    HttpResponse::build(Code::Unavailable.status())
        .insert_header((RETRY_AFTER, RETRY_SECONDS.to_string()))
        .content_type(ContentType::plaintext())
        .body(format!("not ready: {words}\n"))
}
