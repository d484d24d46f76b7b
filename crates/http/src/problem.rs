//! Errors as replies. The only file that knows a status code.

use actix_web::http::StatusCode;
use actix_web::http::header::{ContentType, HeaderName, HeaderValue};
use actix_web::{HttpResponse, ResponseError};
use serde::Serialize;
use signalbox_domain::ports::{HostError, StoreError};
use signalbox_domain::queue::Refusal;
use signalbox_domain::service::Error;
use utoipa::ToSchema;

use crate::request_id::current_request_id;

/// Seconds after which a caller may try again when something is not available.
const RETRY_AFTER: u32 = 5;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $status:literal, $title:literal, $retryable:literal;)+) => {
        /// What went wrong, as a stable code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code { $($(#[$doc])* $name),+ }

        impl Code {
            const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The code, its status, its title, and whether the same request may succeed later.
            const fn row(self) -> (&'static str, u16, &'static str, bool) {
                match self { $(Self::$name => ($code, $status, $title, $retryable)),+ }
            }
        }
    };
}

codes! {
    /// No token, or none that is good.
    Unauthorized = "unauthorized", 401, "Authentication required", false;
    /// The body is not JSON.
    MalformedBody = "malformed_body", 400, "Malformed request body", false;
    /// A field breaks a rule.
    Invalid = "validation_failed", 400, "Invalid request", false;
    /// The token may not do that.
    MissingScope = "missing_scope", 403, "Not allowed", false;
    /// There is nothing at that address.
    UnknownPath = "path_not_found", 404, "Not found", false;
    /// No such repository.
    UnknownRepository = "repository_not_found", 404, "Repository not found", false;
    /// No such queue.
    UnknownQueue = "merge_queue_not_found", 404, "Merge queue not found", false;
    /// No such pull request.
    UnknownPullRequest = "pull_request_not_found", 404, "Pull request not found", false;
    /// The pull request is not, or never was, in the queue.
    NotInQueue = "pull_request_not_in_queue", 404, "Pull request not in the queue", false;
    /// No such test run.
    UnknownRun = "test_run_not_found", 404, "Test run not found", false;
    /// The address knows other methods.
    WrongMethod = "method_not_allowed", 405, "Method not allowed", false;
    /// The queue exists.
    QueueExists = "merge_queue_exists", 409, "Merge queue exists", false;
    /// The queue still has entries.
    QueueNotEmpty = "merge_queue_not_empty", 409, "Merge queue not empty", false;
    /// There are no tests to restart.
    NothingToRestart = "nothing_to_restart", 409, "Nothing to restart", false;
    /// The pull request is being merged.
    Landing = "merge_in_progress", 409, "Merge in progress", true;
    /// The pull request is closed or merged.
    PullRequestNotOpen = "pull_request_not_open", 409, "Pull request not open", false;
    /// Modes are being switched already.
    ModeChange = "mode_change_in_progress", 409, "Mode change in progress", true;
    /// The body is larger than allowed.
    TooLarge = "body_too_large", 413, "Request body too large", false;
    /// The body is not declared as JSON.
    WrongContentType = "unsupported_content_type", 415, "Unsupported content type", false;
    /// The server failed.
    Internal = "internal_error", 500, "Internal error", false;
    /// The server cannot do it now.
    Unavailable = "unavailable", 503, "Not available", true;
}

impl Code {
    /// Its status.
    fn status(self) -> StatusCode {
        StatusCode::from_u16(self.row().1).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// The table of all codes, for the documentation.
pub fn error_table() -> String {
    let mut table = String::from("| code | status | title | retryable |\n|---|---|---|---|\n");
    let rows = Code::ALL.iter().map(|code| {
        let (code, status, title, retryable) = code.row();
        let retryable = if retryable { "yes" } else { "no" };
        format!("| `{code}` | {status} | {title} | {retryable} |\n")
    });
    table.extend(rows);
    table
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

/// An error reply by RFC 9457.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProblemBody {
    /// A URI for the kind of problem.
    #[schema(example = "urn:signalbox:problem:merge_queue_not_found")]
    r#type: String,
    /// The kind in words.
    title: &'static str,
    /// The status of the reply.
    status: u16,
    /// This problem in words.
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

/// An error on its way to a reply.
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

    pub(crate) fn invalid(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        let error = FieldError { pointer: pointer.into(), message: message.into() };
        let name = error.pointer.trim_start_matches('/').replace('/', ".");
        let detail = if name.is_empty() {
            error.message.clone()
        } else {
            format!("{name}: {}", error.message)
        };
        Self { errors: vec![error], ..Self::new(Code::Invalid, detail) }
    }

    /// Two problems of one request as one.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.detail = format!("{}; {}", self.detail, other.detail);
        self.errors.extend(other.errors);
        self
    }

    pub(crate) fn wrong_method(allow: &'static str) -> Self {
        Self { allow: Some(allow), ..Self::new(Code::WrongMethod, format!("use {allow} here")) }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code.row().0, self.detail)
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.code.status()
    }

    fn error_response(&self) -> HttpResponse {
        let (code, status, title, retryable) = self.code.row();
        let mut reply = HttpResponse::build(self.code.status());
        if self.code == Code::Unauthorized {
            // Plain text, the same for every reason.
            return reply
                .insert_header(("www-authenticate", "ApiKey header=\"x-api-token\""))
                .content_type(ContentType::plaintext())
                .body("a valid x-api-token header is required");
        }
        if retryable {
            reply.insert_header(("retry-after", RETRY_AFTER.to_string()));
        }
        if let Some(allow) = self.allow {
            reply
                .insert_header((HeaderName::from_static("allow"), HeaderValue::from_static(allow)));
        }
        let body = ProblemBody {
            r#type: format!("urn:signalbox:problem:{code}"),
            title,
            status,
            detail: self.detail.clone(),
            code,
            retryable,
            request_id: current_request_id(),
            errors: self.errors.clone(),
        };
        reply.content_type("application/problem+json").json(body)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let detail = error.to_string();
        let code = match error {
            Error::Refused(refusal) => return refusal.into(),
            Error::UnknownRepository(_) => Code::UnknownRepository,
            Error::UnknownQueue { .. } => Code::UnknownQueue,
            Error::QueueExists { .. } => Code::QueueExists,
            Error::UnknownPullRequest { .. } => Code::UnknownPullRequest,
            Error::NeverSubmitted { .. } => Code::NotInQueue,
            Error::UnknownRun { .. } => Code::UnknownRun,
            Error::MissingScope(_) => Code::MissingScope,
            Error::Busy => Code::Unavailable,
            Error::Host(error) => return error.into(),
            Error::Store(error) => return error.into(),
        };
        Self::new(code, detail)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let detail = refusal.to_string();
        let code = match refusal {
            Refusal::NotInQueue { .. } => Code::NotInQueue,
            Refusal::NothingToRestart { .. } => Code::NothingToRestart,
            Refusal::Landing { .. } => Code::Landing,
            Refusal::PullRequestNotOpen { .. } => Code::PullRequestNotOpen,
            Refusal::QueueNotEmpty { .. } => Code::QueueNotEmpty,
            Refusal::ModeChangeInProgress => Code::ModeChange,
            Refusal::InvalidSetting { field, rule } => {
                return Self::invalid(format!("/{field}"), rule);
            }
            Refusal::TooManyTargets { .. } => {
                return Self::invalid("/impactedTargets", detail);
            }
        };
        Self::new(code, detail)
    }
}

impl From<HostError> for Problem {
    fn from(error: HostError) -> Self {
        tracing::warn!(error = %chain(&error), "the git host could not be asked");
        match error {
            HostError::RateLimited { .. } | HostError::Unavailable { .. } => {
                Self::new(Code::Unavailable, "the git host does not answer; try again later")
            }
            HostError::Rejected { .. }
            | HostError::NotFound { .. }
            | HostError::Conflict { .. } => {
                Self::new(Code::Internal, "the git host gave an answer that was not expected")
            }
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        tracing::error!(error = %chain(&error), "the database could not be used");
        match error {
            StoreError::Unavailable(_) => {
                Self::new(Code::Unavailable, "the database does not answer; try again later")
            }
            StoreError::Corrupt { .. } | StoreError::Failed(_) => {
                Self::new(Code::Internal, "something went wrong; the log has the request id")
            }
        }
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.ends_with(&words) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    text
}

/// The reply of the readiness probe while the server is not ready.
pub(crate) fn not_ready(words: &str) -> HttpResponse {
    HttpResponse::build(Code::Unavailable.status()).body(format!("not ready: {words}\n"))
}
