//! The other pages of a queue: pull requests that left, health, graph and settings.

use actix_web::web::{Bytes, Data, Path, block};
use actix_web::{HttpRequest, HttpResponse};
use signalbox_domain::ids::PrNumber;
use signalbox_domain::ports::{EntryFilter, SubmissionPlace};
use signalbox_domain::queue::{PrState, SettingsPatch, view_queue};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_services::{Error, WhatIf};
use signalbox_simulator::Replay;

use super::queue::{last, place};
use crate::Pages;
use crate::failure::Failure;
use crate::shell::{Done, Shown, answer, follow};
use crate::view::health::Range;
use crate::view::{self, QueueAddress};
use crate::visitor::{Asked, Visitor, sender};

macro_rules! page {
    ($(#[doc = $doc:literal] $name:ident = $work:ident;)+) => {
        $(
            #[doc = $doc]
            pub(crate) async fn $name(
                pages: Data<Pages>,
                request: HttpRequest,
                org: Path<String>,
            ) -> HttpResponse {
                let shown = $work(&pages, &request, &org).await;
                answer(&pages, &request, shown)
            }
        )+
    };
}

page! {
    /// `GET /{org}/queue/left`.
    left = show_left;
    /// `GET /{org}/queue/health`.
    health = show_health;
    /// `GET /{org}/queue/graph`.
    graph = show_graph;
    /// `GET /{org}/queue/settings`.
    settings = show_settings;
}

/// The number of days, 1 to 30; default 7.
fn days(asked: &Asked) -> u32 {
    asked.number("days").filter(|it| (1..=30).contains(it)).unwrap_or(7)
}

/// The time that is shown: 1 to 23 hours, or 1 to 30 days; default 7 days.
fn range(asked: &Asked) -> Range {
    let hours = asked.number("hours").filter(|it| (1..24).contains(it));
    hours.map_or_else(|| Range::days(days(asked)), |hours| Range { hours })
}

async fn show_left(pages: &Pages, request: &HttpRequest, org: &str) -> Shown {
    let (visitor, place, asked) = place(pages, request, org).await?;
    let (now, days) = (pages.reads.now(), days(&asked));
    let state = PrState::parse(asked.text("state")).filter(|it| it.is_terminal());
    let filter = EntryFilter { state, concluded: Some(last(Span::days(days), now)) };
    let after = after(&asked);
    let listed = pages.queues.pull_requests(
        &visitor.caller,
        &place.repo,
        &place.branch,
        &filter,
        after,
        100,
    );
    let listed = listed.await?;
    let next = listed.next.map(|it| {
        let state = state.map_or("", |it| it.as_str());
        let (at, pr) = (it.submitted_at.unix_micros(), it.pr);
        format!("{}&days={days}&state={state}&at={at}&pr={pr}", place.path("queue/left"))
    });
    let mut left = listed.entries;
    left.retain(|it| !it.entry.is_live());
    left.sort_by_key(|it| std::cmp::Reverse(it.entry.state_changed_at));
    let page = view::left::page(&view::left::Seen {
        place: &place,
        left: &left,
        state,
        days,
        next,
        visitor: &visitor,
        now,
    });
    Ok((Some(visitor), page))
}

/// The end of the previous page.
fn after(asked: &Asked) -> Option<SubmissionPlace> {
    let at: i64 = asked.text("at").parse().ok()?;
    let pr = asked.pr().ok()?;
    Some(SubmissionPlace { submitted_at: Timestamp::from_unix_micros(at), pr })
}

async fn show_health(pages: &Pages, request: &HttpRequest, org: &str) -> Shown {
    let (visitor, place, asked) = place(pages, request, org).await?;
    let (now, range) = (pages.reads.now(), range(&asked));
    let since = view::health::read_since(range, now);
    let moves = pages.reads.moves_since(&visitor.caller, &place.repo, &place.branch, since).await?;
    let queue = pages.queues.queue(&visitor.caller, &place.repo, &place.branch).await?;
    let mut line = (0, 0);
    for entry in queue.entries_in_order() {
        let state = entry.state.name();
        line.0 += u64::from(state != PrState::NotReady);
        line.1 += u64::from(state == PrState::Testing);
    }
    let created_at = queue.header.created_at;
    let seen = view::health::Seen { place: &place, moves: &moves, created_at, line, range, now };
    let page = view::health::page(&seen);
    Ok((Some(visitor), page))
}

async fn show_graph(pages: &Pages, request: &HttpRequest, org: &str) -> Shown {
    let (visitor, place, asked) = place(pages, request, org).await?;
    let queue = pages.queues.queue(&visitor.caller, &place.repo, &place.branch).await?;
    let wanted = view::graph::Wanted {
        size: asked.text("size").to_owned(),
        lanes: asked.text("lanes").to_owned(),
        lane: asked.text("lane").parse().ok().map(PrNumber),
    };
    let page = view::graph::page(&place, &view_queue(&queue), &wanted);
    Ok((Some(visitor), page))
}

async fn show_settings(pages: &Pages, request: &HttpRequest, org: &str) -> Shown {
    let (visitor, place, asked) = place(pages, request, org).await?;
    let queue = pages.queues.queue(&visitor.caller, &place.repo, &place.branch).await?;
    let settings = &queue.header.settings;
    let (mut proposed, mut simulated) = (None, None);
    if asked.has("concurrency") {
        let patch = view::settings::patch(settings, &asked)?;
        proposed = Some(patch.applied_to(settings).map_err(signalbox_services::Error::from)?);
        if asked.has("simulate") {
            simulated = Some(simulate(pages, &visitor, &place, patch).await?);
        }
    }
    let stale = asked.has("version") && asked.text("version") != view::settings::version(settings);
    let now = pages.reads.now();
    let (proposed, simulated) = (proposed.as_ref(), simulated.as_ref());
    let page = view::settings::page(&place, &queue, proposed, stale, simulated, &visitor, now);
    Ok((Some(visitor), page))
}

/// The last days of a queue with changed settings, or why there is no simulation.
async fn simulate(
    pages: &Pages,
    visitor: &Visitor,
    place: &QueueAddress,
    change: SettingsPatch,
) -> Result<Result<Replay, String>, Failure> {
    let (caller, repo, branch) = (&visitor.caller, &place.repo, &place.branch);
    let days = WhatIf::DAYS;
    let answer = match pages.what_if.question(caller, repo, branch, days, change).await {
        Ok(question) => match block(move || question.answer()).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::error!(%error, "a simulation panicked");
                return Err(Failure::Internal);
            }
        },
        Err(error) => Err(error),
    };
    match answer {
        Ok(replay) => Ok(Ok(replay)),
        Err(error @ Error::Simulating) => Ok(Err(error.to_string())),
        Err(Error::Simulation(error)) if !error.is_internal() => Ok(Err(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

/// `POST /{org}/queue/settings`.
pub(crate) async fn save(
    pages: Data<Pages>,
    request: HttpRequest,
    org: Path<String>,
    body: Bytes,
) -> HttpResponse {
    let done = saved(&pages, &request, &org, &Asked::of(&body)).await;
    follow(&pages, &request, done)
}

async fn saved(
    pages: &Pages,
    request: &HttpRequest,
    org: &str,
    sent: &Asked,
) -> Result<Done, Failure> {
    let visitor = sender(pages, request, org, sent).await?;
    let place = QueueAddress { org: org.to_owned(), repo: sent.repo()?, branch: sent.branch()? };
    let queue = pages.queues.queue(&visitor.caller, &place.repo, &place.branch).await?;
    let settings = &queue.header.settings;
    let patch = view::settings::patch(settings, sent)?;
    let wanted = patch.applied_to(settings).map_err(signalbox_services::Error::from)?;
    view::management::check(&queue.header, sent)?;
    let fresh = sent.text("version") == view::settings::version(settings);
    let (newest, done) = if fresh {
        let (caller, repo, branch) = (&visitor.caller, &place.repo, &place.branch);
        pages.queues.update_settings(caller, repo, branch, settings, patch).await?
    } else {
        (queue.clone(), false)
    };
    if done {
        return Ok(Done::GoTo(format!("{}&said=settings", place.path("queue/settings"))));
    }
    let page = view::settings::changed(&place, &newest, &wanted);
    Err(Failure::Changed(Box::new((visitor, page))))
}
