//! `GET /{org}/flaky-tests/test/{id}?repo=OWNER/NAME`: the page of a test. The id is the test's
//! own, or the one that the public uploader prints for it.

use std::sync::Arc;

use actix_web::web::{Data, Path, Query};
use actix_web::{HttpRequest, HttpResponse};
use serde::Deserialize;
use signalbox_domain::flaky::{Incident, RunOutcome, RunRecord};
use signalbox_domain::ids::OrgSlug;
use signalbox_domain::token::{Caller, Scope};
use signalbox_services::TestDetails;

use crate::api::Api;
use crate::authenticated::Credentials as _;
use crate::dto::tests::{TestLinks, decision};
use crate::page::Html;
use crate::problem::{PageKind, Problem};

/// The repository of the page.
#[derive(Debug, Deserialize)]
pub(crate) struct Question {
    /// `OWNER/NAME`.
    #[serde(default)]
    repo: String,
}

/// The page of a test. Without permission the reply does not reveal whether it exists.
pub(crate) async fn handle(
    api: Data<Api>,
    path: Path<(String, String)>,
    question: Query<Question>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let (org, id) = path.into_inner();
    let caller = Arc::<Caller>::authenticate(&request).await.ok();
    let public = api.flaky.public_pages;
    if caller.is_none() && !public {
        return Ok(sign_in());
    }
    let Ok(org) = OrgSlug::new(org) else { return Ok(missing()) };
    let Some((owner, name)) = question.repo.rsplit_once('/') else { return Ok(missing()) };
    let own = caller.as_ref().filter(|it| it.org_slug == org && it.may(Scope::TestsRead));
    if own.is_none() && !public {
        return Ok(missing());
    }
    let seen_by = own.filter(|_| !public);
    let service = &api.flaky.service;
    let found = service.details_by_link(&org, owner, name, &id, seen_by.map(|it| &**it)).await?;
    Ok(found.map_or_else(missing, |details| shown(&details, &api.flaky.links)))
}

fn sign_in() -> HttpResponse {
    let mut page = Html::default();
    page.element("h1", "A token is needed").element(
        "p",
        "This page shows results of tests. Send a token with the scope tests:read in the header \
         x-api-token. Signing in with a browser is not possible here; the operator of this server can \
         make these pages public with public_pages = true in the section [flaky].",
    );
    page.reply(PageKind::SignIn, "A token is needed")
}

fn missing() -> HttpResponse {
    let mut page = Html::default();
    page.element("h1", "Not found")
        .element("p", "This test does not exist, or you may not see it.");
    page.reply(PageKind::Missing, "Not found")
}

fn percent(rate: f64, runs: u32) -> String {
    format!("{:.1} % of {runs} runs", rate * 100.0)
}

fn shown(details: &TestDetails, links: &TestLinks) -> HttpResponse {
    let (snapshot, record) = (&details.snapshot, &details.snapshot.record);
    let (test, key, numbers) = (&record.test, &record.test.key, &snapshot.numbers);
    let standing = &test.standing;
    let quarantined = if snapshot.quarantined { "yes: failures count as passed" } else { "no" };
    let mut page = Html::default();
    page.element("h1", &key.name).facts(&[
        ("Repository", snapshot.repo.to_string()),
        ("Status", format!("{} since {}", standing.value.as_str(), standing.since)),
        ("Why", standing.reason_text()),
        ("Quarantined", quarantined.to_owned()),
        ("Override", test.quarantining().setting.as_str().to_owned()),
        ("Failed in 24 hours", percent(numbers.failure_rate_24h(), numbers.runs_24h)),
        ("Failed in 7 days", percent(numbers.failure_rate_7d(), numbers.runs_7d)),
        ("Pull requests in 7 days", numbers.pull_requests_7d.len().to_string()),
        ("File", key.file.clone()),
        ("Suite", key.parent.clone()),
        ("Class", key.classname.clone()),
        ("Variant", key.variant.clone()),
        ("Owners", record.owners.join(", ")),
        ("First seen", record.first_seen_at.to_string()),
        ("Last seen", record.last_known_at().to_string()),
        ("Id", test.id.to_string()),
    ]);
    if let Some(retired) = &test.retired {
        let (commits, since) = (retired.commits, retired.missing_since);
        let words =
            format!("Retired at {}: missing in {commits} commits since {since}", retired.at);
        page.element("p", &words);
    }
    for (id, words) in [(test.renamed_to(), "Renamed to"), (test.renamed_from, "Renamed from")] {
        if let Some(id) = id {
            page.element("p", &format!("{words} {id}"));
        }
    }
    if let Some(ticket) = &record.ticket {
        page.link(&links.ticket(ticket).unwrap_or_default(), &format!("Ticket {ticket}"));
    }
    let incidents: Vec<Vec<String>> = details.incidents.iter().map(incident).collect();
    if !incidents.is_empty() {
        page.element("h2", "Incidents")
            .table(&["Failures", "What failed", "Status", "Since"], &incidents);
    }
    let monitors = test.monitors.iter().map(|(id, record)| {
        let mute = match &record.mute {
            Some(mute) => mute.until.map_or("muted".into(), |end| format!("muted until {end}")),
            None => String::new(),
        };
        vec![
            format!("{} {id}", record.kind.as_str()),
            format!("{} since {}", record.status.as_str(), record.since),
            record.evidence.to_string(),
            mute,
        ]
    });
    let monitors: Vec<Vec<String>> = monitors.collect();
    if !monitors.is_empty() {
        page.element("h2", "Monitors").table(&["Monitor", "Status", "Evidence", ""], &monitors);
    }
    let failures = numbers.failures.iter().map(|failure| {
        let (count, last) = (failure.occurrence_count, failure.last_occurrence);
        vec![failure.summary.clone(), count.to_string(), last.to_string()]
    });
    let failures: Vec<Vec<String>> = failures.collect();
    if !failures.is_empty() {
        page.element("h2", "Failures").table(&["Message", "Times", "Last"], &failures);
    }
    let runs: Vec<Vec<String>> = details.runs.iter().map(run).collect();
    let head = ["Time", "Result", "Commit", "Branch", "Pull request", "Duration", "Message"];
    page.element("h2", "Recent runs").table(&head, &runs);
    let decided = details.journal.iter().flat_map(|step| {
        let said = step.decisions.iter().filter_map(decision);
        said.map(|line| vec![step.at.to_string(), line.line()]).collect::<Vec<_>>()
    });
    let decided: Vec<Vec<String>> = decided.collect();
    if !decided.is_empty() {
        page.element("h2", "History").table(&["Time", "What"], &decided);
    }
    page.reply(PageKind::Shown, &key.name)
}

fn incident(incident: &Incident) -> Vec<String> {
    let failures = if incident.state.excludes() {
        format!("excluded: incident of {}", incident.started_at)
    } else {
        format!("counted: {} of {}", incident.state.as_str(), incident.started_at)
    };
    vec![
        failures,
        incident.summary.clone(),
        incident.state.as_str().to_owned(),
        incident.since.to_string(),
    ]
}

fn run(run: &RunRecord) -> Vec<String> {
    let result = match (run.outcome, run.counts) {
        (RunOutcome::Skipped, _) | (_, true) => run.outcome.as_str().to_owned(),
        (RunOutcome::Passed | RunOutcome::Failed, false) => {
            format!("{}, excluded", run.outcome.as_str())
        }
    };
    let message: String = run.message.iter().flat_map(|it| it.chars()).take(500).collect();
    vec![
        run.at.to_string(),
        result,
        run.sha.clone().unwrap_or_default(),
        run.branch.clone(),
        run.pr.map(|pr| pr.to_string()).unwrap_or_default(),
        run.took.map(|took| format!("{} ms", took.millis())).unwrap_or_default(),
        message,
    ]
}
