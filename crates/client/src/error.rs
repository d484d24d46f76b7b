//! Why a call of the API failed.

use std::error::Error;

use reqwest::StatusCode;
use serde_json::Value;
use thiserror::Error;

/// Why a call of the API failed.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The address of the server is not one.
    #[error("invalid server URL {server:?}: expected a URL such as https://signalbox.example.org")]
    Server {
        /// The address.
        server: String,
    },
    /// The token is empty, or has characters that a token never has, such as a line break.
    #[error(
        "invalid API token: it is empty, or has a space, a line break or another character that tokens do not have"
    )]
    Token,
    /// The HTTP client could not be set up.
    #[error("could not set up the HTTP client: {}", innermost(.0))]
    Setup(reqwest::Error),
    /// No answer came: the address is wrong, nothing listens there, or the time ran out.
    #[error("could not reach {url}: {}", innermost(error))]
    Unreachable {
        /// The address of the operation.
        url: String,
        /// The error of the HTTP client.
        error: reqwest::Error,
    },
    /// The server answered with a status that is not 2xx.
    #[error("{status}: {detail}")]
    Refused {
        /// The status.
        status: StatusCode,
        /// The stable code, such as `queue_not_found`; `None` when the answer is not a problem
        /// document.
        code: Option<String>,
        /// The problem's title.
        title: Option<String>,
        /// The problem's detail, or the whole answer when it is not a problem document.
        detail: String,
        /// The seconds after which the same call may succeed, if the server named them.
        retry_after: Option<u32>,
    },
    /// Another address was named instead of an answer; a token is not sent there.
    #[error("{url} redirects to {to:?}: use the URL of the server itself")]
    Redirected {
        /// The address of the operation.
        url: String,
        /// The other address.
        to: String,
    },
    /// The server sent nothing for too long.
    #[error("{url} sends nothing")]
    Silent {
        /// The address of the operation.
        url: String,
    },
    /// The answer is not the JSON that the operation promises.
    #[error("could not read the answer of {url}: {problem}")]
    Unreadable {
        /// The address of the operation.
        url: String,
        /// The problem of the response.
        problem: String,
    },
}

impl ClientError {
    /// Whether the same call may succeed later: no answer came, or the server is busy or restarts.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { error, .. } => !error.is_builder(),
            Self::Refused { status, .. } => {
                *status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
            }
            Self::Silent { .. } => true,
            Self::Server { .. }
            | Self::Token
            | Self::Setup(_)
            | Self::Redirected { .. }
            | Self::Unreadable { .. } => false,
        }
    }

    /// Reads a problem document.
    pub(crate) fn refused(status: StatusCode, retry_after: Option<u32>, text: &str) -> Self {
        let problem: Value = serde_json::from_str(text).unwrap_or_default();
        let field = |name: &str| problem[name].as_str().map(ToOwned::to_owned);
        Self::Refused {
            status,
            code: field("code"),
            title: field("title"),
            detail: field("detail").unwrap_or_else(|| text.to_owned()),
            retry_after,
        }
    }
}

/// The last error in a chain: that of the operating system or the URL parser.
fn innermost(error: &reqwest::Error) -> String {
    let mut last: &dyn Error = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_the_code_and_the_title_of_its_problem() {
        let text = r#"{"code":"queue_not_found","title":"No queue","detail":"no queue for main"}"#;
        let error = ClientError::refused(StatusCode::NOT_FOUND, None, text);
        assert_eq!(error.to_string(), "404 Not Found: no queue for main");
        let ClientError::Refused { code, title, .. } = error else { panic!("{error}") };
        assert_eq!(code.as_deref(), Some("queue_not_found"));
        assert_eq!(title.as_deref(), Some("No queue"));
    }

    #[test]
    fn an_answer_that_is_no_problem_is_shown_as_it_is() {
        let error = ClientError::refused(StatusCode::BAD_GATEWAY, None, "nginx");
        assert_eq!(error.to_string(), "502 Bad Gateway: nginx");
    }
}
