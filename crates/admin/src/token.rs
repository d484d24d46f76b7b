//! `signalbox token`.

use clap::builder::PossibleValuesParser;
use clap::{Subcommand, ValueEnum};
use serde_json::{Value, json};
use signalbox_domain::ids::{OrgSlug, RepoName, TokenId};
use signalbox_domain::time::Span;
use signalbox_domain::token::{Compatibility, EnumCase, Scope, Token as Stored, TokenText};
use signalbox_services::{MAX_TOKEN_DAYS, NewToken, TokenError, TokenService};
use signalbox_terminal::{Cell, Format, Table, say_json, written};

use crate::AdminError;
use crate::offline::{existing_organization, organization, slugs};
use crate::program::{Offline, Program, open, open_for_setup};

#[derive(Clone, Copy, ValueEnum)]
pub enum Case {
    Upper,
    Lower,
}

#[derive(Subcommand)]
pub enum Token {
    /// Create a token; it is shown only once.
    #[command(
        after_help = "Example: signalbox token create --org acme --name ci --scope queue:submit --expires 30d --json"
    )]
    Create {
        /// The organization; created when it does not exist.
        #[arg(long, env = "SIGNALBOX_ORG", value_name = "SLUG")]
        org: String,
        /// A name for the token.
        #[arg(long, default_value = "token")]
        name: String,
        /// What it allows, separated by commas: queue:read, queue:submit, queue:urgent, queue:admin,
        /// tests:read, tests:upload, tests:admin, checks:report; all: all of them; default: queue:read,
        /// queue:submit, tests:read, tests:upload.
        #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',')]
        scopes: Vec<String>,
        /// The repositories that it is limited to; default: all.
        #[arg(long = "repo", value_name = "HOST/OWNER/NAME", value_parser = RepoName::parse)]
        repos: Vec<RepoName>,
        /// When it expires: 90d, 12h, 30m, or never.
        #[arg(long, default_value = "90d")]
        expires: String,
        /// The clients to be compatible with: v1-live for clients of the public service, such as
        /// its Terraform provider (states in lower case, and other status codes of deleteQueue, which they
        /// expect).
        #[arg(long, value_name = "PROFILE", default_value = Compatibility::Specification.as_str(), value_parser = profiles())]
        compat: String,
        /// Deprecated: lower is --compat v1-live, upper is --compat specification.
        #[arg(long, value_enum, conflicts_with = "compat")]
        enum_case: Option<Case>,
        #[command(flatten)]
        format: Format,
    },
    /// List tokens.
    #[command(after_help = "Example: signalbox token list --json")]
    List {
        /// Only tokens of this organization.
        #[arg(long, value_name = "SLUG")]
        org: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Revoke a token.
    #[command(after_help = "Example: signalbox token revoke 4f6c0a58-6a0f-4c2b-9d2e-6f3f7a1d5b10")]
    Revoke {
        /// The id of the token.
        id: String,
        #[command(flatten)]
        format: Format,
    },
    /// Replace a token; the old one stays valid for the overlap.
    #[command(
        after_help = "Example: signalbox token rotate 4f6c0a58-6a0f-4c2b-9d2e-6f3f7a1d5b10 --overlap 1h"
    )]
    Rotate {
        /// The id of the token.
        id: String,
        /// How long the old token stays valid.
        #[arg(long, default_value = "1h")]
        overlap: String,
        #[command(flatten)]
        format: Format,
    },
}

pub async fn token(program: &dyn Program, action: Token) -> Result<(), AdminError> {
    let tokens = |app: &Offline| TokenService::new(app.context.clone());
    match action {
        Token::Create { org, name, scopes, repos, expires, compat, enum_case, format } => {
            let granted = granted(&scopes)?;
            let expires = if expires == "never" { None } else { Some(span(&expires)?) };
            if expires == Some(Span::ZERO) {
                let rule = "a token must not expire immediately: expected a duration such as 90d, 12h or 30m, or never";
                return Err(AdminError::Argument(rule.to_owned()));
            }
            let compatibility = match enum_case {
                Some(Case::Upper) => Compatibility::Specification,
                Some(Case::Lower) => Compatibility::V1Live,
                None => Compatibility::parse(&compat).unwrap_or_default(),
            };
            let new = NewToken { name, scopes: granted, repos, valid_for: expires, compatibility };
            let app = open_for_setup(program).await?;
            let org = organization(&app, &org).await?.id;
            show(tokens(&app).create_as_operator(org, new).await, format)?;
        }
        Token::List { org, format } => {
            let app = open(program).await?;
            let org = existing_organization(&app, org.as_deref()).await?;
            let (slugs, now) = (slugs(&app).await?, app.context.clock.now());
            let tokens = app.context.stores.account.tokens.list(org.map(|it| it.id)).await;
            let mut table = Table::new("no tokens found", &HEADERS);
            for token in tokens.map_err(AdminError::failed("tokens"))? {
                let org = &slugs[&token.org];
                if format.is_json() {
                    say_json(&described(&token, org, token.is_valid(now)));
                } else {
                    row(&mut table, &token, org, token.is_valid(now));
                }
            }
            table.print_unless(format);
        }
        Token::Revoke { id, format } => {
            let id = parse_id(&id)?;
            let app = open(program).await?;
            let revoked = tokens(&app).revoke_as_operator(id).await.map_err(TokenError::Other);
            if !revoked.map_err(failed)? {
                return Err(failed(TokenError::Unknown(id)));
            }
            let line = json!({ "id": id.to_string(), "revoked": true });
            format.say(&line, || format!("token {id} is revoked"));
        }
        Token::Rotate { id, overlap, format } => {
            let (id, overlap) = (parse_id(&id)?, span(&overlap)?);
            let app = open(program).await?;
            show(tokens(&app).rotate_as_operator(id, overlap).await, format)?;
        }
    }
    Ok(())
}

/// The scopes of a new token.
fn granted(words: &[String]) -> Result<Vec<Scope>, AdminError> {
    if words.is_empty() {
        return Ok(Scope::DEFAULT.to_vec());
    }
    if words.iter().any(|word| word == "all") {
        return Ok(Scope::ALL.to_vec());
    }
    let scope = |word: &String| {
        Scope::parse(word).ok_or_else(|| {
            let all: Vec<&str> = Scope::ALL.into_iter().map(Scope::as_str).collect();
            let all = all.join(", ");
            AdminError::Argument(format!("unknown scope {word:?}: expected all, or one of {all}"))
        })
    };
    words.iter().map(scope).collect()
}

fn failed(error: TokenError) -> AdminError {
    match error {
        TokenError::Other(cause) => AdminError::failed("token")(cause),
        unknown @ TokenError::Unknown(_) => AdminError::NotFound(unknown.to_string()),
        refused => AdminError::Argument(refused.to_string()),
    }
}

fn parse_id(text: &str) -> Result<TokenId, AdminError> {
    let wrong = || AdminError::Argument(format!("invalid token id {text:?}: expected a UUID"));
    text.parse().map(TokenId).map_err(|_| wrong())
}

fn show(made: Result<(Stored, TokenText), TokenError>, format: Format) -> Result<(), AdminError> {
    let (Stored { id, .. }, text) = made.map_err(failed)?;
    let line = json!({ "id": id.to_string(), "token": text.reveal() });
    format
        .say(&line, || format!("{}\nThe token is shown only once. Its id is {id}.", text.reveal()));
    // It cannot be shown again.
    let lost = |error| {
        let revoke = format!("revoke it with: signalbox token revoke {id}");
        AdminError::Refused(format!("could not print the token: {error}; {revoke}"))
    };
    written().map_err(lost)
}

/// The columns of a list of tokens.
const HEADERS: [&str; 7] = ["ID", "STATE", "ORGANIZATION", "NAME…", "SCOPES…", "PROFILE…", "UNTIL"];

fn row(table: &mut Table, token: &Stored, org: &OrgSlug, is_valid: bool) {
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    table.row([
        token.id.to_string().into(),
        if is_valid { "valid" } else { "ended" }.into(),
        org.as_str().into(),
        token.name.clone().into(),
        scopes.join(" ").into(),
        token.compatibility.as_str().into(),
        Cell::time(token.expires_at.into_iter().chain(token.revoked_at).min()),
    ]);
}

fn described(token: &Stored, org: &OrgSlug, is_valid: bool) -> Value {
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    let repos: Vec<String> = token.repos.iter().map(ToString::to_string).collect();
    let case = match token.compatibility.enum_case() {
        EnumCase::Upper => "upper",
        EnumCase::Lower => "lower",
    };
    json!({
        "id": token.id.to_string(), "org": org.as_str(), "name": token.name,
        "scopes": scopes, "repos": repos, "compat": token.compatibility.as_str(),
        "enum_case": case, "valid": is_valid,
        "created_at": token.created_at.to_string(),
        "expires_at": token.expires_at.map(|at| at.to_string()),
        "revoked_at": token.revoked_at.map(|at| at.to_string()),
    })
}

fn profiles() -> PossibleValuesParser {
    PossibleValuesParser::new(Compatibility::ALL.map(Compatibility::as_str))
}

/// Reads `90d`, `12h` or `30m`.
fn span(text: &str) -> Result<Span, AdminError> {
    let wrong = || {
        AdminError::Argument(format!(
            "invalid duration {text:?}: expected a duration such as 90d, 12h or 30m"
        ))
    };
    let unit = text.chars().last().ok_or_else(wrong)?;
    let number: u32 = text.strip_suffix(unit).and_then(|it| it.parse().ok()).ok_or_else(wrong)?;
    let minutes = match unit {
        'd' => number.checked_mul(24 * 60),
        'h' => number.checked_mul(60),
        'm' => Some(number),
        _ => return Err(wrong()),
    };
    let long = || {
        AdminError::Argument(format!(
            "invalid duration {text:?}: expected at most {MAX_TOKEN_DAYS}d"
        ))
    };
    minutes.filter(|it| *it <= MAX_TOKEN_DAYS * 24 * 60).map(Span::minutes).ok_or_else(long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_and_malformed_ones_refused() {
        assert_eq!(span("90d").ok(), Some(Span::hours(90 * 24)));
        assert_eq!(span("12h").ok(), Some(Span::hours(12)));
        assert_eq!(span("30m").ok(), Some(Span::minutes(30)));
        for wrong in ["", "d", "1", "-1d", "1.5h", "5é", "1w", "4000000000h", "36501d"] {
            assert!(span(wrong).is_err(), "{wrong:?}");
        }
    }
}
