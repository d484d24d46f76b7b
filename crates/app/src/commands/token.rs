//! `signalbox token`.

use clap::{Subcommand, ValueEnum};
use serde_json::json;
use signalbox_domain::audit::{AuditAction, Facts, of_token};
use signalbox_domain::ids::{OrgSlug, RepoName, TokenId};
use signalbox_domain::time::Span;
use signalbox_domain::token::{EnumCase, Scope, Token as Stored, TokenText};

use super::audit::note;
use super::offline::{existing_organization, open, organization, slugs};
use crate::config::Flags;
use crate::terminal::say;
use crate::wiring::{App, chain};

/// The longest span that can be asked for: a hundred years.
const MAX_DAYS: u32 = 36_500;

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Case {
    Upper,
    Lower,
}

#[derive(Subcommand)]
pub(crate) enum Token {
    /// Create a token; its text is shown once.
    #[command(
        after_help = "Example: signalbox token create --org acme --name ci --scope queue:submit --expires 90d --json"
    )]
    Create {
        /// Whose; the organization is created when it is not there.
        #[arg(long, value_name = "SLUG")]
        org: String,
        /// What it is called.
        #[arg(long, default_value = "token")]
        name: String,
        /// What it may do; all when left out. One of queue:read, queue:submit, queue:urgent,
        /// queue:admin, tests:read, tests:write.
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,
        /// The repositories that it is limited to; all when left out.
        #[arg(long = "repo", value_name = "HOST/OWNER/NAME")]
        repos: Vec<String>,
        /// When it ends: 90d, 12h, 30m; never when left out.
        #[arg(long)]
        expires: Option<String>,
        /// How replies write states and modes.
        #[arg(long, value_enum, default_value = "upper")]
        enum_case: Case,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// List tokens.
    #[command(after_help = "Example: signalbox token list --json")]
    List {
        /// Only those of this organization.
        #[arg(long, value_name = "SLUG")]
        org: Option<String>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Make a token useless.
    #[command(after_help = "Example: signalbox token revoke 4f6c0a58-6a0f-4c2b-9d2e-6f3f7a1d5b10")]
    Revoke {
        /// Its id.
        id: String,
    },
    /// Replace a token; the old one stays good for a while.
    #[command(
        after_help = "Example: signalbox token rotate 4f6c0a58-6a0f-4c2b-9d2e-6f3f7a1d5b10 --overlap 1h"
    )]
    Rotate {
        /// Its id.
        id: String,
        /// How long the old one stays good.
        #[arg(long, default_value = "1h")]
        overlap: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Makes a token and returns its id and text.
pub(crate) async fn create(app: &App, token: Stored) -> Result<(TokenId, TokenText), String> {
    let mut random = [0; 20];
    getrandom::fill(&mut random).map_err(|error| error.to_string())?;
    let text = TokenText::from_random(random);
    let id = TokenId(app.context.ids.new_id());
    let token = Stored {
        id,
        hash: text.hash(),
        created_at: app.context.clock.now(),
        revoked_at: None,
        ..token
    };
    let after = of_token(&token);
    let object = object(id);
    note(app, token.org, AuditAction::TokenCreated, object, (&Facts::new(), &after)).await?;
    let stored = app.context.stores.tokens.insert(&token).await;
    stored.map_err(|error| chain("token", &error))?;
    Ok((id, text))
}

pub(crate) async fn token(flags: &Flags, action: Token) -> Result<(), String> {
    let app = open(flags).await?;
    let now = app.context.clock.now();
    match action {
        Token::Create { org, name, scopes, repos, expires, enum_case, json } => {
            if name.is_empty() || name.chars().count() > 100 {
                return Err("a token's name must have 1 to 100 characters".into());
            }
            let scope = |word: &String| {
                Scope::parse(word).ok_or_else(|| {
                    let all: Vec<&str> = Scope::ALL.into_iter().map(Scope::word).collect();
                    format!("{word:?} is no scope: use one of {}", all.join(", "))
                })
            };
            let mut granted = scopes.iter().map(scope).collect::<Result<Vec<_>, _>>()?;
            if granted.is_empty() {
                granted = Scope::ALL.to_vec();
            }
            let repos = repos.iter().map(|name| RepoName::parse(name));
            let repos = repos.collect::<Result<Vec<_>, _>>().map_err(|it| it.to_string())?;
            let expires = expires.as_deref().map(span).transpose()?;
            if expires == Some(Span::ZERO) {
                return Err("a token must not end at once: use 90d, 12h or 30m".into());
            }
            let token = Stored {
                id: TokenId(uuid::Uuid::nil()),
                org: organization(&app, &org).await?.id,
                name,
                hash: TokenText::from_random([0; 20]).hash(),
                scopes: granted,
                repos,
                enum_case: match enum_case {
                    Case::Upper => EnumCase::Upper,
                    Case::Lower => EnumCase::Lower,
                },
                created_at: now,
                expires_at: expires.map(|span| now.plus(span)),
                revoked_at: None,
            };
            show(&create(&app, token).await?, json);
        }
        Token::List { org, json } => {
            let org = existing_organization(&app, org.as_deref()).await?;
            let slugs = slugs(&app).await?;
            let tokens = app.context.stores.tokens.list(org.map(|it| it.id)).await;
            for token in tokens.map_err(|error| chain("tokens", &error))? {
                list(&token, &slugs[&token.org], token.is_valid(now), json);
            }
        }
        Token::Revoke { id } => {
            let id = parse_id(&id)?;
            let old = find(&app, id).await?;
            let end = Stored { revoked_at: Some(now), ..old.clone() };
            let (from, to) = (of_token(&old), of_token(&end));
            note(&app, old.org, AuditAction::TokenRevoked, object(id), (&from, &to)).await?;
            let revoked = app.context.stores.tokens.revoke(id, now).await;
            if !revoked.map_err(|error| chain("token", &error))? {
                return Err(format!("token {id} not found"));
            }
            say(&format!("token {id} is revoked"));
        }
        Token::Rotate { id, overlap, json } => {
            let (id, overlap) = (parse_id(&id)?, span(&overlap)?);
            let old = find(&app, id).await?;
            if !old.is_valid(now) {
                return Err(format!("token {id} is no longer good: create a new one"));
            }
            let end = now.plus(overlap);
            let new = create(&app, old.clone()).await?;
            let from = of_token(&old);
            let mut to = of_token(&Stored { revoked_at: Some(end), ..old.clone() });
            to.insert("replacedBy".into(), new.0.to_string());
            note(&app, old.org, AuditAction::TokenRotated, object(id), (&from, &to)).await?;
            let revoked = app.context.stores.tokens.revoke(id, end).await;
            revoked.map_err(|error| chain("token", &error))?;
            show(&new, json);
        }
    }
    Ok(())
}

fn object(id: TokenId) -> String {
    format!("token {id}")
}

async fn find(app: &App, id: TokenId) -> Result<Stored, String> {
    let tokens = app.context.stores.tokens.list(None).await;
    let tokens = tokens.map_err(|error| chain("tokens", &error))?;
    let found = tokens.into_iter().find(|it| it.id == id);
    found.ok_or_else(|| format!("token {id} not found"))
}

fn parse_id(text: &str) -> Result<TokenId, String> {
    text.parse().map(TokenId).map_err(|_| format!("{text:?} is no token id"))
}

fn show((id, text): &(TokenId, TokenText), json: bool) {
    say(&if json {
        json!({ "id": id.to_string(), "token": text.reveal() }).to_string()
    } else {
        format!("{}\nThis is shown once. Its id is {id}.", text.reveal())
    });
}

fn list(token: &Stored, org: &OrgSlug, valid: bool, json: bool) {
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.word()).collect();
    let repos: Vec<String> = token.repos.iter().map(ToString::to_string).collect();
    let expires = token.expires_at.map(|at| at.to_string());
    let case = match token.enum_case {
        EnumCase::Upper => "upper",
        EnumCase::Lower => "lower",
    };
    if json {
        let line = json!({
            "id": token.id.to_string(), "org": org.as_str(), "name": token.name,
            "scopes": scopes, "repos": repos, "enum_case": case, "valid": valid,
            "created_at": token.created_at.to_string(), "expires_at": expires,
            "revoked_at": token.revoked_at.map(|at| at.to_string()),
        });
        say(&line.to_string());
        return;
    }
    let state = if valid { "good" } else { "ended" };
    let (id, name, scopes) = (token.id, &token.name, scopes.join(" "));
    let end = token.expires_at.into_iter().chain(token.revoked_at).min();
    let end = end.map_or(String::new(), |at| format!(" until {at}"));
    say(&format!("{id} {state:5} {org} {name} [{scopes}] {case}{end}"));
}

/// Reads `90d`, `12h` or `30m`.
fn span(text: &str) -> Result<Span, String> {
    let wrong = || format!("{text:?} is no span of time: use 90d, 12h or 30m");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let number: u32 = text.strip_suffix(unit).and_then(|it| it.parse().ok()).ok_or_else(wrong)?;
    let minutes = match unit {
        'd' => number.checked_mul(24 * 60),
        'h' => number.checked_mul(60),
        'm' => Some(number),
        _ => return Err(wrong()),
    };
    let longest = format!("{text:?} is too long: at most {MAX_DAYS}d");
    minutes.filter(|it| *it <= MAX_DAYS * 24 * 60).map(Span::minutes).ok_or(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_are_read_and_nonsense_is_refused() {
        assert_eq!(span("90d"), Ok(Span::hours(90 * 24)));
        assert_eq!(span("12h"), Ok(Span::hours(12)));
        assert_eq!(span("30m"), Ok(Span::minutes(30)));
        for wrong in ["", "d", "1", "-1d", "1.5h", "5é", "1w", "4000000000h", "36501d"] {
            assert!(span(wrong).is_err(), "{wrong:?}");
        }
    }
}
