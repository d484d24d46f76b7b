//! Pages of tests and uploads, and their forms.

use std::collections::{BTreeMap, BTreeSet};

use actix_web::web::{Bytes, Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use signalbox_domain::flaky::{
    IncidentId, QuarantineOverride, TestId, TestStatus, UploadId, can_be_released,
};
use signalbox_domain::ids::{OrgSlug, RepoName};
use signalbox_domain::ports::{Seek, TestRecord, TestSnapshot};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::token::Scope;
use signalbox_services::{Error, FlakyService, ListKind, Topic};
use uuid::Uuid;

use crate::Pages;
use crate::failure::Failure;
use crate::model::Page;
use crate::shell::{Done, Shown, answer, follow};
use crate::view::home::TestCounts;
use crate::view::test_forms::Change;
use crate::view::test_list::{List, TestsAddress, Wanted};
use crate::view::{self, ROWS};
use crate::visitor::{Asked, Visitor, member, sender, visitor};

/// The most tests of a list that are sorted; longer lists are sorted in blocks.
const SORTED: u32 = 500;
/// The most blocks of a list that are searched for one page.
const BLOCKS: usize = 10;
/// A search from the beginning of a list through all blocks.
const EVERYTHING: (Option<TestId>, usize) = (None, usize::MAX);
/// The most repositories on one page.
const REPOSITORIES: usize = 50;
/// Characters of a reason.
const REASON: usize = 256;

pub(super) async fn place(
    pages: &Pages,
    request: &HttpRequest,
    org: &str,
) -> Result<(Visitor, TestsAddress, Asked), Failure> {
    let visitor = member(pages, request, org).await?;
    let asked = Asked::query(request);
    let place = found(pages, &visitor, asked.repo()?).await?;
    Ok((visitor, place, asked))
}

async fn found(pages: &Pages, visitor: &Visitor, repo: RepoName) -> Result<TestsAddress, Failure> {
    if !visitor.may(Scope::TestsRead) {
        return Err(Failure::MissingScope(Scope::TestsRead));
    }
    let it = pages.reads.repository(&visitor.caller, &repo).await?.ok_or(Failure::Missing)?;
    Ok(TestsAddress { org: visitor.org().to_owned(), id: it.id, repo: it.name })
}

/// The version of these tests that an open page shows; later versions are sent to it.
pub(super) async fn version(
    pages: &Pages,
    visitor: &Visitor,
    place: &TestsAddress,
) -> Result<u64, Failure> {
    Ok(pages.reads.version(visitor.caller.org, Topic::Tests(place.id)).await?)
}

/// `GET /{org}/flaky-tests`.
pub(crate) async fn dashboard(
    pages: Data<Pages>,
    request: HttpRequest,
    org: Path<String>,
) -> HttpResponse {
    let shown = show_dashboard(&pages, &request, &org).await;
    answer(&pages, &request, shown)
}

/// How many tests of a repository there are of each kind.
pub(crate) async fn counts(pages: &Pages, visitor: &Visitor) -> Result<Vec<TestCounts>, Failure> {
    let mut tests = Vec::new();
    for repository in
        pages.reads.repositories(&visitor.caller).await?.into_iter().take(REPOSITORIES)
    {
        let count = async |kind| {
            let seek = Seek::After(None);
            let list = pages.flaky.list(&visitor.caller, &repository.name, kind, seek, 1, true);
            Ok::<_, Failure>(list.await?.total.unwrap_or(0))
        };
        tests.push(TestCounts {
            flaky: count(ListKind::Unhealthy(TestStatus::Flaky)).await?,
            broken: count(ListKind::Unhealthy(TestStatus::Broken)).await?,
            quarantined: count(ListKind::Quarantined).await?,
            repo: repository.name,
        });
    }
    Ok(tests)
}

fn kind(list: List, now: Timestamp) -> ListKind {
    match list {
        List::Flaky => ListKind::Unhealthy(TestStatus::Flaky),
        List::Broken => ListKind::Unhealthy(TestStatus::Broken),
        List::Quarantined => ListKind::Quarantined,
        List::Failing => {
            let until = now.plus(Span::seconds(1));
            ListKind::Failing { from: now.minus(Span::hours(24)), until }
        }
    }
}

fn wanted(asked: &Asked) -> Wanted {
    Wanted { text: asked.text("q").to_owned(), owner: asked.text("owner").to_owned() }
}

/// The tests of a list that are kept, in blocks until there are enough, and where the next block begins.
async fn search(
    (pages, visitor, place): (&Pages, &Visitor, &TestsAddress),
    kind: ListKind,
    (mut after, enough): (Option<TestId>, usize),
    keep: impl Fn(&TestRecord) -> bool,
) -> Result<(Vec<TestSnapshot>, Option<TestId>), Failure> {
    let mut found = Vec::new();
    for _ in 0..BLOCKS {
        let block = (after, SORTED);
        let listed = pages.flaky.list_kept(&visitor.caller, &place.repo, kind, block, &keep);
        let (tests, next) = listed.await?;
        found.extend(tests);
        after = next;
        if after.is_none() || found.len() >= enough {
            break;
        }
    }
    Ok((found, after))
}

/// A page of a list.
struct Listed {
    /// The costliest first.
    shown: Vec<TestSnapshot>,
    /// What the address of the next page ends with.
    next: Option<String>,
}

/// The matches are sorted by what they cost within the blocks that were read; these have several
/// pages.
async fn listed(
    pages: &Pages,
    visitor: &Visitor,
    place: &TestsAddress,
    kind: ListKind,
    (asked, wanted): (&Asked, &Wanted),
) -> Result<Listed, Failure> {
    let after = Uuid::try_parse(asked.text("after")).ok().map(TestId);
    let of = (pages, visitor, place);
    let found = search(of, kind, (after, ROWS), |record| wanted.matches(record)).await?;
    let (mut tests, further) = found;
    tests.sort_by(|one, other| {
        let cost = |it: &TestSnapshot| (it.numbers.pull_requests_7d.len(), it.numbers.failures_7d);
        cost(other).cmp(&cost(one)).then_with(|| one.record.test.id.cmp(&other.record.test.id))
    });
    let from = usize::try_from(asked.number("from").unwrap_or(0)).unwrap_or(0);
    let (all, end) = (tests.len(), from.saturating_add(ROWS));
    let shown: Vec<_> = tests.into_iter().skip(from).take(ROWS).collect();
    let place = if end < all {
        let after = after.map_or_else(String::new, |it| format!("&after={it}"));
        Some(format!("{after}&from={end}"))
    } else {
        further.map(|it| format!("&after={it}"))
    };
    let next = place.map(|place| format!("{}{place}", wanted.query()));
    Ok(Listed { shown, next })
}

async fn show_dashboard(pages: &Pages, request: &HttpRequest, org: &str) -> Shown {
    if !Asked::query(request).has("repo") {
        let visitor = member(pages, request, org).await?;
        let page = view::test_list::repositories(org, &counts(pages, &visitor).await?);
        return Ok((Some(visitor), page));
    }
    let (visitor, place, asked) = place(pages, request, org).await?;
    let version = version(pages, &visitor, &place).await?;
    let (caller, now) = (&visitor.caller, pages.reads.now());
    let list = List::ALL.into_iter().find(|it| it.as_str() == asked.text("list"));
    let list = list.unwrap_or(List::Flaky);
    let mut totals = Vec::new();
    for one in List::ALL {
        let counted =
            pages.flaky.list(caller, &place.repo, kind(one, now), Seek::After(None), 1, true);
        totals.push((one, counted.await?.total.unwrap_or(0)));
    }
    let wanted = wanted(&asked);
    let address = format!("{}&list={}", place.path("flaky-tests"), list.as_str());
    let listed = listed(pages, &visitor, &place, kind(list, now), (&asked, &wanted)).await?;
    let next = listed.next.map(|next| format!("{address}{next}"));
    let uploads = pages.uploads.uploads(caller, &place.repo, None, 1).await?;
    let settings = pages.flaky.settings(caller, &place.repo).await?;
    let incidents = pages.flaky.incidents(caller, &place.repo).await?;
    let trend = pages.flaky.trend(caller, &place.repo, view::trend::DAYS).await?;
    let page = view::test_list::page(&view::test_list::Seen {
        place: &place,
        list,
        wanted: &wanted,
        tests: &listed.shown,
        totals: &totals,
        last_upload: uploads.first().map(|it| it.created_at),
        next,
        settings: &settings,
        incidents: &incidents,
        trend: &trend,
        may_decide: visitor.may_send(Scope::TestsAdmin),
        now,
    });
    Ok((Some(visitor), Page { version, ..page }))
}

/// `GET /{org}/flaky-tests/quarantine`.
pub(crate) async fn quarantine(
    pages: Data<Pages>,
    request: HttpRequest,
    org: Path<String>,
) -> HttpResponse {
    let shown = async {
        let (visitor, place, asked) = place(&pages, &request, &org).await?;
        let version = version(&pages, &visitor, &place).await?;
        let now = pages.reads.now();
        let wanted = wanted(&asked);
        let of = (&asked, &wanted);
        let listed = listed(&pages, &visitor, &place, ListKind::Quarantined, of).await?;
        let settings = pages.flaky.settings(&visitor.caller, &place.repo).await?;
        let is_first = !asked.has("after") && !asked.has("from");
        let mut releasable = Vec::new();
        if is_first {
            let of = (&**pages, &visitor, &place);
            let can = |it: &TestRecord| can_be_released(&it.test, it.last_failure_at, now);
            releasable = search(of, ListKind::Quarantined, EVERYTHING, can).await?.0;
            releasable.retain(|it| it.numbers.runs_7d > 0);
        }
        let address = place.path("flaky-tests/quarantine");
        let page = view::quarantine::page(&view::quarantine::Seen {
            place: &place,
            wanted: &wanted,
            tests: &listed.shown,
            releasable: &releasable,
            next: listed.next.map(|next| format!("{address}{next}")),
            settings: &settings,
            counts: super::quarantine::counts(&pages, &visitor, &place).await?,
            may_change: visitor.may_send(Scope::TestsAdmin),
            now,
        });
        Ok((Some(visitor), Page { version, ..page }))
    };
    answer(&pages, &request, shown.await)
}

/// `GET /{org}/flaky-tests/owners`.
pub(crate) async fn owners(
    pages: Data<Pages>,
    request: HttpRequest,
    org: Path<String>,
) -> HttpResponse {
    let shown = async {
        let (visitor, place, _) = place(&pages, &request, &org).await?;
        let version = version(&pages, &visitor, &place).await?;
        let now = pages.reads.now();
        let mut tests = BTreeMap::new();
        let mut is_whole = true;
        for list in [List::Flaky, List::Broken, List::Quarantined] {
            let of = (&**pages, &visitor, &place);
            let (found, next) = search(of, kind(list, now), EVERYTHING, |_| true).await?;
            is_whole &= next.is_none();
            tests.extend(found.into_iter().map(|it| (it.record.test.id, it)));
        }
        let tests: Vec<TestSnapshot> = tests.into_values().collect();
        let most = BLOCKS * usize::try_from(SORTED).unwrap_or(usize::MAX);
        let most = (!is_whole).then_some(most);
        let delays = pages.flaky.delays(&visitor.caller, &place.repo, &tests).await?;
        let page = view::test_owners::page(&place, &tests, &delays, most);
        Ok((Some(visitor), Page { version, ..page }))
    };
    answer(&pages, &request, shown.await)
}

/// `GET /{org}/flaky-tests/uploads`.
pub(crate) async fn uploads(
    pages: Data<Pages>,
    request: HttpRequest,
    org: Path<String>,
) -> HttpResponse {
    let shown = async {
        let (visitor, place, asked) = place(&pages, &request, &org).await?;
        let version = version(&pages, &visitor, &place).await?;
        let at: Option<i64> = asked.text("at").parse().ok();
        let id = Uuid::try_parse(asked.text("upload")).ok();
        let after = at.zip(id).map(|(at, id)| (Timestamp::from_unix_micros(at), UploadId(id)));
        let list = pages.uploads.uploads(&visitor.caller, &place.repo, after, 100).await?;
        let next = list.last().filter(|_| list.len() >= ROWS).map(|last| {
            let at = last.created_at.unix_micros();
            format!("{}&at={at}&upload={}", place.path("flaky-tests/uploads"), last.id)
        });
        let page = view::uploads::page(&place, &list, next, pages.reads.now());
        Ok((Some(visitor), Page { version, ..page }))
    };
    answer(&pages, &request, shown.await)
}

/// `GET /{org}/flaky-tests/test/{id}`.
pub(crate) async fn test(
    pages: Data<Pages>,
    request: HttpRequest,
    path: Path<(String, String)>,
) -> HttpResponse {
    let (org, id) = path.into_inner();
    let shown = show_test(&pages, &request, &org, &id).await;
    answer(&pages, &request, shown)
}

async fn show_test(pages: &Pages, request: &HttpRequest, org: &str, id: &str) -> Shown {
    let known = visitor(pages, request).await;
    let known = match known {
        Err(Failure::SignIn) if pages.public_tests => None,
        known => Some(known?),
    };
    let own = known.as_ref().filter(|it| it.org() == org && it.may(Scope::TestsRead));
    if own.is_none() && !pages.public_tests {
        return Err(Failure::Missing);
    }
    let asked = Asked::query(request);
    let slug = OrgSlug::new(org).map_err(|_| Failure::Missing)?;
    let (owner, name) = asked.text("repo").rsplit_once('/').ok_or(Failure::Missing)?;
    // An address may name the host too.
    let full = RepoName::parse(asked.text("repo")).ok();
    let seen_by = own.filter(|_| !pages.public_tests).map(|it| &*it.caller);
    let mut found = pages.flaky.details_by_link(&slug, owner, name, id, seen_by).await?;
    if let (None, Some(full)) = (&found, &full) {
        found = pages.flaky.details_by_link(&slug, &full.owner, &full.name, id, seen_by).await?;
    }
    let details = found.ok_or(Failure::Missing)?;
    let record = &details.snapshot.record;
    let place = TestsAddress {
        org: org.to_owned(),
        id: record.test.repo,
        repo: details.snapshot.repo.clone(),
    };
    let ticket = record.ticket.as_deref().zip(pages.ticket_url.as_deref());
    let ticket = ticket.map(|(id, url)| url.replace("{id}", &crate::text::quoted(id)));
    let delays = match own {
        Some(visitor) => {
            let of = std::slice::from_ref(&details.snapshot);
            let mut delays = pages.flaky.delays(&visitor.caller, &place.repo, of).await?;
            Some(delays.remove(&record.test.id).unwrap_or_default())
        }
        None => None,
    };
    let page = view::test::page(&view::test::Seen {
        place: &place,
        details: &details,
        delays: delays.as_deref(),
        ticket,
        visitor: own,
        now: pages.reads.now(),
    });
    let version = match own {
        Some(visitor) => version(pages, visitor, &place).await?,
        None => 0,
    };
    Ok((known, Page { version, ..page }))
}

/// `POST /{org}/flaky-tests/do`.
pub(crate) async fn act(
    pages: Data<Pages>,
    request: HttpRequest,
    org: Path<String>,
    body: Bytes,
) -> HttpResponse {
    let done = done(&pages, &request, &org, &Asked::of(&body)).await;
    follow(&pages, &request, done)
}

async fn done(
    pages: &Pages,
    request: &HttpRequest,
    org: &str,
    sent: &Asked,
) -> Result<Done, Failure> {
    let visitor = sender(pages, request, org, sent).await?;
    let place = found(pages, &visitor, sent.repo()?).await?;
    let (caller, repo) = (&visitor.caller, &place.repo);
    let reason: String = sent.text("reason").chars().take(REASON).collect();
    let reason = Some(reason).filter(|it| !it.is_empty());
    if sent.text("action") == "incident" {
        let id = Uuid::try_parse(sent.text("incident")).map_err(|_| Failure::Missing)?;
        let confirm = match sent.text("decision") {
            "confirm" => true,
            "dismiss" => false,
            _ => return Err(Failure::Invalid("unknown decision".to_owned())),
        };
        pages.flaky.decide_incident(caller, repo, IncidentId(id), confirm, reason).await?;
        return Ok(Done::GoTo(format!("{}&said=incident", place.path("flaky-tests"))));
    }
    if sent.text("action") == "monitor" {
        return Ok(Done::GoTo(super::monitors::change(pages, &visitor, &place, sent).await?));
    }
    if sent.text("action") == "quarantine-settings" {
        return Ok(Done::GoTo(super::quarantine::choose(pages, &visitor, &place, sent).await?));
    }
    if sent.text("action") == "several" {
        let change = Change::parse(sent.text("change"));
        let change = change.ok_or_else(|| Failure::Invalid("unknown change".to_owned()))?;
        let page = match sent.text("list") {
            "quarantined" => place.path("flaky-tests/quarantine"),
            list => format!("{}&list={}", place.path("flaky-tests"), crate::text::quoted(list)),
        };
        change_several(pages, &visitor, &place, sent.all("test"), (change, reason)).await?;
        return Ok(Done::GoTo(format!("{page}{}&said=some-changed", wanted(sent).query())));
    }
    let test = TestId(Uuid::try_parse(sent.text("test")).map_err(|_| Failure::Missing)?);
    let by = FlakyService::actor(caller);
    let change = async |change: Change| {
        let command = change.command(reason.clone(), by.clone());
        pages.flaky.command(caller, repo, test, command).await
    };
    let said = match sent.text("action") {
        "flag" => {
            change(Change::Flag).await?;
            "flagged"
        }
        "unflag" => {
            change(Change::Unflag).await?;
            "unflagged"
        }
        "quarantine" => {
            let setting = QuarantineOverride::parse(sent.text("setting"));
            let setting = setting.ok_or_else(|| Failure::Invalid("unknown setting".to_owned()))?;
            change(Change::Quarantine(setting)).await?;
            "quarantine"
        }
        "ticket" => {
            let ticket: String = sent.text("ticket").chars().take(REASON).collect();
            if ticket.is_empty() {
                return Err(Failure::Invalid("a ticket is required".to_owned()));
            }
            pages.flaky.link_ticket(caller, repo, test, &ticket).await?;
            "ticket"
        }
        _ => return Err(Failure::Invalid("unknown action".to_owned())),
    };
    Ok(Done::GoTo(format!("{}&said={said}", place.test(test))))
}

/// Changes tests one by one. One that is refused does not keep the others from being changed; the
/// failure names it. Another error ends it, and the failure says how far it came.
async fn change_several(
    pages: &Pages,
    visitor: &Visitor,
    place: &TestsAddress,
    tests: &[String],
    (change, reason): (Change, Option<String>),
) -> Result<(), Failure> {
    let ids: Result<BTreeSet<TestId>, _> =
        tests.iter().map(|it| Uuid::try_parse(it).map(TestId)).collect();
    let ids = ids.map_err(|_| Failure::Missing)?;
    if ids.is_empty() || ids.len() > ROWS {
        return Err(Failure::Invalid(format!("select 1 to {ROWS} tests")));
    }
    let (caller, repo) = (&visitor.caller, &place.repo);
    let by = FlakyService::actor(caller);
    let (mut changed, mut refused) = (0_usize, Vec::new());
    for id in &ids {
        let command = change.command(reason.clone(), by.clone());
        match pages.flaky.command(caller, repo, *id, command).await {
            Ok(()) => changed += 1,
            Err(error @ (Error::FlakyRefused(_) | Error::UnknownTest { .. })) => {
                let known = pages.flaky.test(caller, repo, *id).await;
                let name = known.map_or_else(
                    |_| id.to_string(),
                    |it| view::test_list::whole_name(&it.record.test.key),
                );
                refused.push(format!("{name}: {error}"));
            }
            // Nothing was changed, so this is the whole answer.
            Err(error) if changed == 0 => return Err(error.into()),
            Err(error) => {
                tracing::error!(%error, "could not change all selected tests");
                refused.push("the others were not changed: the server failed".to_owned());
                break;
            }
        }
    }
    if refused.is_empty() {
        return Ok(());
    }
    Err(Failure::Conflict(format!(
        "{changed} of {} tests were changed; {}",
        ids.len(),
        refused.join("; ")
    )))
}
