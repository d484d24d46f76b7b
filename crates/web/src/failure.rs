//! Why a page is not shown, and the page that says so.

use signalbox_domain::ports::StoreError;
use signalbox_services::{Error, TokenError, WebhookError};

use crate::model::{Block, Page, Section};
use crate::reply::Status;
use crate::visitor::Visitor;

/// Why a page is not shown.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Somebody must say who they are first.
    SignIn,
    /// There is nothing, or nothing for them: nobody can tell which.
    Missing,
    /// They may see it and may not do that.
    Forbidden(String),
    /// They are known and may not come in.
    Denied(String),
    /// What was sent cannot be used.
    Invalid(String),
    /// The rules say no.
    Conflict(String),
    /// Somebody else was faster; a page that shows what is so now, for the one who asked.
    Changed(Box<(Visitor, Page)>),
    /// Too many attempts.
    TooMany,
    /// Something does not answer.
    Unavailable(String),
    /// The server is at fault.
    Internal,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match &error {
            Error::Refused(refusal) => Self::Conflict(refusal.to_string()),
            Error::FlakyRefused(refusal) => Self::Conflict(refusal.to_string()),
            Error::QueueExists { .. } => Self::Conflict(error.to_string()),
            Error::UnknownTest { .. }
            | Error::UnknownIncident { .. }
            | Error::UnknownRepository(_)
            | Error::UnknownQueue { .. }
            | Error::NeverSubmitted { .. }
            | Error::UnknownRun { .. }
            | Error::Upload(_) => Self::Missing,
            Error::UnknownPullRequest { .. } => Self::Invalid(error.to_string()),
            Error::Webhook(cause) => of_webhook(cause),
            Error::MissingScope(scope) => Self::Forbidden(format!(
                "the token that you signed in with lacks the scope {}",
                scope.as_str()
            )),
            Error::Host(cause) => {
                tracing::warn!(%cause, "the git host could not be asked");
                Self::Unavailable("the git host could not be asked".to_owned())
            }
            Error::Busy => Self::Unavailable("the queue is too busy".to_owned()),
            Error::Store(cause) => {
                tracing::error!(%cause, "a page could not be read");
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
            tracing::error!(%cause, "a secret of a webhook could not be made or read");
            Failure::Unavailable("the keys of webhook secrets cannot be read".to_owned())
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
            Self::Forbidden(_) | Self::Denied(_) => Status::Forbidden,
            Self::Invalid(_) => Status::Invalid,
            Self::Conflict(_) => Status::Conflict,
            Self::Changed(_) => Status::Changed,
            Self::TooMany => Status::TooMany,
            Self::Unavailable(_) => Status::Unavailable,
            Self::Internal => Status::Internal,
        }
    }

    /// The page that says so. The page for signing in is another one.
    pub(crate) fn page(&self, request: &str) -> Page {
        let (title, text, next) = match self {
            Self::SignIn => ("Sign in", "You have to sign in first.".to_owned(), ""),
            Self::Missing => (
                "Not found",
                "There is nothing here, or you may not see it.".to_owned(),
                "Look for it among the queues and tests that you may see.",
            ),
            Self::Forbidden(why) => (
                "Not allowed",
                crate::text::sentence(why),
                "Sign in with a token that has this scope, or ask somebody who has one.",
            ),
            Self::Denied(why) => (
                "You may not sign in",
                crate::text::sentence(why),
                "Ask whoever runs this server to let you in, or sign in with an API token.",
            ),
            Self::Invalid(why) => {
                ("That cannot be done", crate::text::sentence(why), "Go back and correct it.")
            }
            Self::Conflict(why) => (
                "That is not possible now",
                crate::text::sentence(why),
                "Go back: the page shows how things stand.",
            ),
            Self::Changed(shown) => return shown.1.clone(),
            Self::TooMany => (
                "Too many attempts",
                "Somebody has tried to sign in too often.".to_owned(),
                "Wait a minute and try again.",
            ),
            Self::Unavailable(why) => {
                ("Not available", crate::text::sentence(why), "Try again in half a minute.")
            }
            Self::Internal => (
                "Something went wrong",
                "The server failed. It was not your fault.".to_owned(),
                "Its log names the cause under the request id below.",
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
