//! The page of tokens, and its forms.

use actix_web::web::{Bytes, Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use signalbox_domain::ids::{RepoName, TokenId};
use signalbox_domain::time::Span;
use signalbox_domain::token::{Compatibility, Scope};
use signalbox_services::NewToken;

use crate::Pages;
use crate::failure::Failure;
use crate::shell::{Done, answer, follow};
use crate::view;
use crate::visitor::{Asked, Visitor, member, sender};

/// The longest overlap of two tokens that the form offers, in hours.
const MAX_OVERLAP: u32 = 168;

/// `GET /{org}/tokens`.
pub(crate) async fn list(
    pages: Data<Pages>,
    request: HttpRequest,
    org: Path<String>,
) -> HttpResponse {
    let shown = async {
        let visitor = member(&pages, &request, &org).await?;
        let tokens = pages.tokens.tokens(&visitor.caller).await?;
        let page = view::tokens::page(&tokens, &visitor, pages.reads.now());
        Ok((Some(visitor), page))
    };
    answer(&pages, &request, shown.await)
}

/// `GET /{org}/settings`: the address that uploaders print for tokens.
pub(crate) async fn hinted(
    pages: Data<Pages>,
    request: HttpRequest,
    org: Path<String>,
) -> HttpResponse {
    let done = member(&pages, &request, &org).await;
    follow(&pages, &request, done.map(|_| Done::GoTo(format!("/{org}/tokens"))))
}

/// `POST /{org}/tokens`.
pub(crate) async fn act(
    pages: Data<Pages>,
    request: HttpRequest,
    org: Path<String>,
    body: Bytes,
) -> HttpResponse {
    let done = done(&pages, &request, &org, &Asked::of(&body)).await;
    follow(&pages, &request, done)
}

/// Runs the action of a form; returns a page when it shows a new token.
async fn done(
    pages: &Pages,
    request: &HttpRequest,
    org: &str,
    sent: &Asked,
) -> Result<Done, Failure> {
    let visitor = sender(pages, request, org, sent).await?;
    let (token, text) = match sent.text("action") {
        "create" => pages.tokens.create(&visitor.caller, asked(&visitor, sent)?).await?,
        "rotate" => {
            let overlap = Span::hours(sent.number("hours").unwrap_or(1).min(MAX_OVERLAP));
            let id = TokenId(sent.uuid("token")?);
            pages.tokens.rotate(&visitor.caller, id, overlap).await?
        }
        "revoke" => {
            let id = TokenId(sent.uuid("token")?);
            let revoked = pages.tokens.revoke(&visitor.caller, id).await?;
            let list = format!("/{org}/tokens?said=revoked");
            return if revoked { Ok(Done::GoTo(list)) } else { Err(Failure::Missing) };
        }
        _ => return Err(Failure::Invalid("unknown action".to_owned())),
    };
    let page = view::tokens::made(org, &token, &text);
    Ok(Done::Once(Box::new((visitor, page))))
}

fn asked(visitor: &Visitor, sent: &Asked) -> Result<NewToken, Failure> {
    let invalid = |why: &str| Failure::Invalid(why.to_owned());
    let scopes = sent.all("scope").iter().map(|word| Scope::parse(word));
    let scopes = scopes.collect::<Option<Vec<_>>>();
    let repos = sent.text("repos").lines().map(str::trim).filter(|it| !it.is_empty());
    let repos = repos.map(RepoName::parse).collect::<Result<Vec<_>, _>>();
    let compatibility = match sent.text("compat") {
        "" => Some(visitor.caller.compatibility),
        word => Compatibility::parse(word),
    };
    let days = sent.text("days");
    let days = if days.is_empty() { Ok(None) } else { days.parse().map(Span::days).map(Some) };
    Ok(NewToken {
        name: sent.text("name").to_owned(),
        scopes: scopes.ok_or_else(|| invalid("unknown scope"))?,
        repos: repos.map_err(|error| invalid(&error.to_string()))?,
        valid_for: days.map_err(|_| invalid("invalid days: expected a whole number"))?,
        compatibility: compatibility.ok_or_else(|| invalid("unknown compatibility profile"))?,
    })
}
