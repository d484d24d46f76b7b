//! Home.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use signalbox_domain::token::Scope;
use signalbox_services::Topic;

use crate::Pages;
use crate::failure::Failure;
use crate::model::Page;
use crate::reply::go_to;
use crate::shell::answer;
use crate::view::QueueAddress;
use crate::view::home::{Seen, page};
use crate::visitor::{Asked, Visitor, visitor};

/// `GET /`.
pub(crate) async fn show(pages: Data<Pages>, request: HttpRequest) -> HttpResponse {
    let asked = Asked::query(&request);
    match found(&pages, &request, &asked).await {
        Ok(Ok((visitor, page))) => answer(&pages, &request, Ok((Some(visitor), page))),
        Ok(Err(address)) => go_to(&address).finish(),
        Err(failure) => answer(&pages, &request, Err(failure)),
    }
}

/// The page, or the address of the pull request that was searched for.
async fn found(
    pages: &Pages,
    request: &HttpRequest,
    asked: &Asked,
) -> Result<Result<(Visitor, Page), String>, Failure> {
    let visitor = visitor(pages, request).await?;
    let version = pages.reads.version(visitor.caller.org, Topic::Org).await?;
    let queues = if visitor.caller.may(Scope::QueueRead) {
        pages.queues.list(&visitor.caller, None).await?
    } else {
        Vec::new()
    };
    let search = asked.text("q");
    if let Ok(pr) = search.trim_start_matches('#').parse::<u32>() {
        let pr = signalbox_domain::ids::PrNumber(pr);
        let mut of = queues.iter().filter(|it| it.queue.entry_of(pr).is_some());
        if let (Some(only), None) = (of.next(), of.next()) {
            let place = QueueAddress {
                org: visitor.org().to_owned(),
                repo: only.repository.name.clone(),
                branch: only.queue.header.branch.clone(),
            };
            return Ok(Err(place.pr(pr)));
        }
    }
    let mut tests = Vec::new();
    if visitor.may(Scope::TestsRead) {
        tests = super::test_list::counts(pages, &visitor).await?;
    }
    let merges = pages.reads.hourly_merges(&visitor.caller).await?;
    let now = pages.reads.now();
    let (queues, tests) = (&*queues, &*tests);
    let seen = Seen { queues, merges: &merges, tests, search, visitor: &visitor, now };
    let page = Page { version, ..page(&seen) };
    Ok(Ok((visitor, page)))
}
