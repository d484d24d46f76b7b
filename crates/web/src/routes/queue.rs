//! Pages of a queue, and their forms.

use std::collections::BTreeMap;

use actix_web::web::{Bytes, Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use signalbox_domain::ids::{PrNumber, RunId};
use signalbox_domain::ports::PullRequestQuery;
use signalbox_domain::queue::{Estimate, Estimates, Priority, RequestedState};
use signalbox_domain::time::{Span, Timestamp, Window};
use signalbox_services::{Extras, QueueChange, SubmitOptions, Topic};

use crate::Pages;
use crate::failure::Failure;
use crate::shell::{Done, Shown, answer, follow};
use crate::view::{self, QueueAddress};
use crate::visitor::{Asked, Visitor, member, sender};

/// The most pull requests whose landing is estimated on one page.
const ESTIMATES: usize = 40;

/// The most pull requests that are removed with one form.
const MOST_NUMBERS: usize = 100;

/// The queue that an address names, and the visitor.
pub(crate) async fn place(
    pages: &Pages,
    request: &HttpRequest,
    org: &str,
) -> Result<(Visitor, QueueAddress, Asked), Failure> {
    let visitor = member(pages, request, org).await?;
    let asked = Asked::query(request);
    let place = QueueAddress { org: org.to_owned(), repo: asked.repo()?, branch: asked.branch()? };
    Ok((visitor, place, asked))
}

/// A window that ends now.
pub(crate) fn last(span: Span, now: Timestamp) -> Window {
    Window { since: Some(now.minus(span)), until: None }
}

/// `GET /{org}/queue`.
pub(crate) async fn list(
    pages: Data<Pages>,
    request: HttpRequest,
    org: Path<String>,
) -> HttpResponse {
    let shown = show_list(&pages, &request, &org).await;
    answer(&pages, &request, shown)
}

async fn show_list(pages: &Pages, request: &HttpRequest, org: &str) -> Shown {
    let (visitor, place, asked) = place(pages, request, org).await?;
    let (queue, past) =
        pages.reads.queue_with_past(&visitor.caller, &place.repo, &place.branch).await?;
    let merges = pages.reads.hourly_merges(&visitor.caller).await?;
    let lately = merges.get(&queue.header.id).map_or(0, |hourly| hourly.iter().sum::<u32>());
    let now = pages.reads.now();
    let after = usize::try_from(asked.number("after").unwrap_or(0)).unwrap_or(0);
    let filter = view::queue_list::Filter::new(asked.text("stage"), asked.text("author"), after);
    let shown = view::queue_list::Shown::of(&queue, filter);
    let in_line = shown.entries.iter().filter(|it| it.position.is_some());
    let estimates = Estimates::new(&queue, &past.durations, now);
    let estimates: BTreeMap<PrNumber, Estimate> = in_line
        .take(ESTIMATES)
        .chain(&shown.last)
        .map(|it| (it.entry.pr, estimates.of(it)))
        .collect();
    let page = view::queue::page(&view::queue::Seen {
        place: &place,
        queue: &queue,
        shown: &shown,
        estimates: &estimates,
        usual: view::queue_list::usual(&past.durations),
        left: &past.left,
        merged: usize::try_from(lately).unwrap_or(usize::MAX),
        visitor: &visitor,
        now,
    });
    Ok((Some(visitor), page))
}

/// `GET /{org}/queue/pr`.
pub(crate) async fn pr(
    pages: Data<Pages>,
    request: HttpRequest,
    org: Path<String>,
) -> HttpResponse {
    let shown = show_pr(&pages, &request, &org).await;
    answer(&pages, &request, shown)
}

async fn show_pr(pages: &Pages, request: &HttpRequest, org: &str) -> Shown {
    let (visitor, place, asked) = place(pages, request, org).await?;
    let (caller, pr) = (&visitor.caller, asked.pr()?);
    let queue = pages.queues.queue(caller, &place.repo, &place.branch).await?;
    let extras = Extras { timeline: true, estimate: true, bisection: true };
    let query = PullRequestQuery::Number(pr);
    let found =
        pages.queues.entry_details(caller, &place.repo, &place.branch, &query, extras).await;
    let details = match found {
        Ok(details) => details,
        Err(signalbox_services::Error::NeverSubmitted { .. }) => {
            let page = view::pr::never(&place, pr, &visitor);
            return Ok((Some(visitor), page));
        }
        Err(error) => return Err(error.into()),
    };
    let explanation = pages.failures().explain(caller, &place.repo, &details).await?;
    let page = view::pr::page(&view::pr::Seen {
        place: &place,
        queue: &queue,
        details: &details,
        explanation: &explanation,
        visitor: &visitor,
        now: pages.reads.now(),
    });
    Ok((Some(visitor), page))
}

/// `GET /{org}/queue/output`.
pub(crate) async fn output(
    pages: Data<Pages>,
    request: HttpRequest,
    org: Path<String>,
) -> HttpResponse {
    let shown = show_output(&pages, &request, &org).await;
    answer(&pages, &request, shown)
}

async fn show_output(pages: &Pages, request: &HttpRequest, org: &str) -> Shown {
    let (visitor, place, asked) = place(pages, request, org).await?;
    let (caller, check) = (&visitor.caller, asked.text("check"));
    let run = asked.text("run").parse().map(RunId).map_err(|_| Failure::Missing)?;
    let queue = pages.queues.queue(caller, &place.repo, &place.branch).await?.header.id;
    // The version before what it is the version of, so that no change is missed.
    let version = pages.reads.version(caller.org, Topic::Output(queue, run)).await?;
    let run = pages.queues.run(caller, &place.repo, &place.branch, run).await?.run;
    let check = run.checks.iter().find(|it| it.name == check).ok_or(Failure::Missing)?;
    let output = pages.failures().output(caller, run.id, &check.name).await?;
    let page = view::output::page(&view::output::Seen {
        place: &place,
        queue,
        run: &run,
        check,
        output: output.as_ref(),
        search: asked.text("q"),
        version,
        now: pages.reads.now(),
    });
    Ok((Some(visitor), page))
}

/// `POST /{org}/queue/do`.
pub(crate) async fn act(
    pages: Data<Pages>,
    request: HttpRequest,
    org: Path<String>,
    body: Bytes,
) -> HttpResponse {
    let done = done(&pages, &request, &org, &Asked::of(&body)).await;
    follow(&pages, &request, done)
}

/// Runs the action of a form.
async fn done(
    pages: &Pages,
    request: &HttpRequest,
    org: &str,
    sent: &Asked,
) -> Result<Done, Failure> {
    let visitor = sender(pages, request, org, sent).await?;
    let place = QueueAddress { org: org.to_owned(), repo: sent.repo()?, branch: sent.branch()? };
    let (queues, caller) = (&pages.queues, &*visitor.caller);
    let (repo, branch) = (&place.repo, &place.branch);
    let state = async |state, required: bool| {
        let reason = Some(sent.text("reason").to_owned()).filter(|it| !it.is_empty());
        if required && reason.is_none() {
            return Err(Failure::Invalid("a reason is required".to_owned()));
        }
        let change = QueueChange { state: Some(state), reason, ..QueueChange::default() };
        queues.update_queue(caller, repo, branch, change).await?;
        Ok(())
    };
    let said = match sent.text("action") {
        "submit" => {
            queues.submit(caller, repo, branch, sent.pr()?, options(sent)?).await?;
            "submitted"
        }
        "priority" => {
            queues.submit(caller, repo, branch, sent.pr()?, options(sent)?).await?;
            "priority"
        }
        "remove" => {
            queues.cancel(caller, repo, branch, sent.pr()?).await?;
            "removed"
        }
        "remove-several" => {
            if sent.text("confirm") != "remove" {
                let why = "nothing was removed: type remove to confirm";
                return Err(Failure::Invalid(why.to_owned()));
            }
            for pr in numbers(sent.text("numbers"))? {
                queues.cancel(caller, repo, branch, pr).await?;
            }
            "some-removed"
        }
        "restart" => {
            queues.restart(caller, repo, branch, sent.pr()?).await?;
            "restarted"
        }
        "pause" => {
            state(RequestedState::Paused, true).await?;
            "paused"
        }
        "drain" => {
            state(RequestedState::Draining, true).await?;
            "draining"
        }
        "resume" => {
            state(RequestedState::Running, false).await?;
            "running"
        }
        _ => return Err(Failure::Invalid("unknown action".to_owned())),
    };
    let back = if sent.has("pr") { place.pr(sent.pr()?) } else { place.path("queue") };
    Ok(Done::GoTo(format!("{back}&said={said}")))
}

/// Parses numbers of pull requests, separated by spaces or commas.
fn numbers(text: &str) -> Result<Vec<PrNumber>, Failure> {
    let parts = text.split([' ', ',', '\n', '\t']).map(|it| it.trim_start_matches('#'));
    let read = |it: &str| it.parse().ok().filter(|it| *it > 0).map(PrNumber);
    let all: Option<Vec<PrNumber>> = parts.filter(|it| !it.is_empty()).map(read).collect();
    let wrong =
        || Failure::Invalid(format!("expected 1 to {MOST_NUMBERS} numbers of pull requests"));
    all.filter(|it| (1..=MOST_NUMBERS).contains(&it.len())).ok_or_else(wrong)
}

fn options(sent: &Asked) -> Result<SubmitOptions, Failure> {
    let text = sent.text("priority");
    if text.is_empty() {
        return Ok(SubmitOptions::default());
    }
    let named = Priority::named(text).or_else(|| text.parse().ok().map(Priority::number));
    let wrong = || Failure::Invalid("unknown priority".to_owned());
    Ok(SubmitOptions { priority: Some(named.ok_or_else(wrong)?), ..SubmitOptions::default() })
}
