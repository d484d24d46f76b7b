//! Errors of pages, and the page that shows them.

use signalbox_domain::ports::StoreError;
use signalbox_domain::token::Scope;
use signalbox_services::{Error, TokenError, WebhookError};

use crate::model::{Block, Page, Section};
use crate::reply::Status;
use crate::visitor::Visitor;

/// Why a page is not shown.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The visitor must sign in first.
    SignIn,
    /// Nothing is there, or the visitor may not see it; the reply is the same.
    Missing,
    /// The visitor may see it, but may not do that.
    Forbidden(String),
    /// The token of the visitor lacks this scope.
    MissingScope(Scope),
    /// The visitor is known, but may not sign in.
    Denied(String),
    /// Invalid input.
    Invalid(String),
    /// The rules of the queue refuse it.
    Conflict(String),
    /// A concurrent change came first; the page shows the current state.
    Changed(Box<(Visitor, Page)>),
    /// Too many attempts.
    TooMany,
    /// A part that the server depends on does not respond.
    Unavailable(String),
    /// An error of the server.
    Internal,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match &error {
            Error::Refused(refusal) => Self::Conflict(refusal.to_string()),
            Error::FlakyRefused(refusal) => Self::Conflict(refusal.to_string()),
            Error::Simulation(cause) if cause.is_internal() => {
                tracing::error!(%cause, "a simulation failed");
                Self::Internal
            }
            Error::QueueExists { .. } | Error::Simulation(_) => Self::Conflict(error.to_string()),
            Error::UnknownTest { .. }
            | Error::UnknownIncident { .. }
            | Error::UnknownRepository(_)
            | Error::UnknownQueue { .. }
            | Error::NeverSubmitted { .. }
            | Error::UnknownRun { .. }
            | Error::Upload(_) => Self::Missing,
            Error::UnknownPullRequest { .. } => Self::Invalid(error.to_string()),
            Error::Webhook(cause) => of_webhook(cause),
            Error::MissingScope(scope) => Self::MissingScope(*scope),
            Error::Host(cause) => {
                tracing::warn!(%cause, "could not reach the git host");
                Self::Unavailable("could not reach the git host".to_owned())
            }
            Error::Busy => Self::Unavailable("the queue is too busy".to_owned()),
            Error::Simulating | Error::Issuer(_) => Self::Unavailable(error.to_string()),
            Error::Store(cause) => {
                tracing::error!(%cause, "could not read a page");
                Self::Internal
            }
        }
    }
}

fn of_webhook(error: &WebhookError) -> Failure {
    match error {
        WebhookError::UnknownEndpoint(_) | WebhookError::UnknownMessage { .. } => Failure::Missing,
        WebhookError::LimitedToken => Failure::Forbidden(error.to_string()),
        WebhookError::Pending(_) | WebhookError::TooMany(_) | WebhookError::Off(_) => {
            Failure::Conflict(error.to_string())
        }
        WebhookError::Settings(_) => Failure::Invalid(error.to_string()),
        WebhookError::Secret(cause) => {
            tracing::error!(%cause, "could not create or read a webhook secret");
            Failure::Unavailable("could not read the keys of webhook secrets".to_owned())
        }
    }
}

impl From<TokenError> for Failure {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Name | TokenError::NoScope | TokenError::Days => {
                Self::Invalid(error.to_string())
            }
            TokenError::NotYours(_) => Self::Forbidden(error.to_string()),
            TokenError::Ended(_) => Self::Conflict(error.to_string()),
            TokenError::Unknown(_) => Self::Missing,
            TokenError::Other(error) => error.into(),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Error::from(error).into()
    }
}

impl Failure {
    pub(crate) const fn status(&self) -> Status {
        match self {
            Self::SignIn => Status::SignIn,
            Self::Missing => Status::Missing,
            Self::Forbidden(_) | Self::MissingScope(_) | Self::Denied(_) => Status::Forbidden,
            Self::Invalid(_) => Status::Invalid,
            Self::Conflict(_) => Status::Conflict,
            Self::Changed(_) => Status::Changed,
            Self::TooMany => Status::TooMany,
            Self::Unavailable(_) => Status::Unavailable,
            Self::Internal => Status::Internal,
        }
    }

    /// The name of the refusal in the log; some are those of the API.
    pub(crate) const fn reason(&self) -> &'static str {
        match self {
            Self::SignIn => "unauthorized",
            Self::Missing => "path_not_found",
            Self::Forbidden(_) => "not_allowed",
            Self::MissingScope(_) => "missing_scope",
            Self::Denied(_) => "sign_in_denied",
            Self::Invalid(_) => "validation_failed",
            Self::Conflict(_) => "not_possible_now",
            Self::Changed(_) => "changed",
            Self::TooMany => "too_many_attempts",
            Self::Unavailable(_) => "unavailable",
            Self::Internal => "internal_error",
        }
    }

    /// The page for an error, except the sign-in page.
    pub(crate) fn page(&self, request: &str) -> Page {
        let (title, text, next) = match self {
            Self::SignIn => ("Sign in", "You need to sign in to see this page.".to_owned(), ""),
            Self::Missing => (
                "Not found",
                "This page does not exist, or you may not see it.".to_owned(),
                "The home page lists the queues and tests that you may see.",
            ),
            Self::Forbidden(why) => (
                "Not allowed",
                crate::text::sentence(why),
                "Ask an administrator, or sign in with another token.",
            ),
            Self::MissingScope(scope) => (
                "Not allowed",
                format!("The token that you signed in with lacks the scope {}.", scope.as_str()),
                "Sign in with a token that has this scope, or ask an administrator for one.",
            ),
            Self::Denied(why) => (
                "You may not sign in",
                crate::text::sentence(why),
                "Ask the operator of this server for access, or sign in with an API token.",
            ),
            Self::Invalid(why) => {
                ("Invalid request", crate::text::sentence(why), "Go back and correct it.")
            }
            Self::Conflict(why) => (
                "Not possible now",
                crate::text::sentence(why),
                "Go back: the page shows the current state.",
            ),
            Self::Changed(shown) => return shown.1.clone(),
            Self::TooMany => (
                "Too many attempts",
                "Too many invalid tokens came from your address.".to_owned(),
                "Wait a minute and try again.",
            ),
            Self::Unavailable(why) => {
                ("Unavailable", crate::text::sentence(why), "Try again in half a minute.")
            }
            Self::Internal => (
                "Something went wrong",
                "The server failed to handle this request.".to_owned(),
                "Its log has the cause under the request id below.",
            ),
        };
        let mut section = Section::plain("what").with(Block::Text(text));
        if !next.is_empty() {
            section = section.with(Block::Text(next.to_owned()));
        }
        if !request.is_empty() {
            section = section.with(Block::Text(format!("Request id: {request}")));
        }
        let home = crate::model::Cell::text("Go to the queues").link("/");
        section = section.with(Block::Links(vec![home]));
        Page { title: title.to_owned(), sections: vec![section], ..Page::default() }
    }
}
