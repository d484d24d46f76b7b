//! The tests of a repository: the worst first, and the quarantined ones.

use signalbox_domain::flaky::{Incident, QuarantineOverride, Settings};
use signalbox_domain::ids::{RepoId, RepoName};
use signalbox_domain::ports::TestSnapshot;
use signalbox_domain::time::Timestamp;
use signalbox_wording::Tone;

use crate::model::{Block, Cell, Field, Form, MenuItem, Page, Section, Table, Tile};
use crate::text::{ago, plain, tests_path};

/// A repository's pages of tests.
#[derive(Clone, Debug)]
pub(crate) struct TestsAddress {
    pub(crate) org: String,
    pub(crate) id: RepoId,
    pub(crate) repo: RepoName,
}

impl TestsAddress {
    pub(crate) fn path(&self, page: &str) -> String {
        tests_path(&self.org, page, &self.repo)
    }

    pub(crate) fn name(&self) -> String {
        plain(&format!("{}/{}", self.repo.owner, self.repo.name), 250)
    }

    pub(crate) fn test(&self, id: impl std::fmt::Display) -> String {
        let repo = crate::text::quoted(&format!("{}/{}", self.repo.owner, self.repo.name));
        format!("/{}/flaky-tests/test/{id}?repo={repo}", self.org)
    }

    pub(crate) fn menu(&self, current: &str) -> Vec<MenuItem> {
        let pages = [
            ("Tests", "flaky-tests"),
            ("Quarantine", "flaky-tests/quarantine"),
            ("Uploads", "flaky-tests/uploads"),
        ];
        let item = |(label, page): &(&str, &str)| MenuItem {
            label: (*label).to_owned(),
            href: self.path(page),
            current: *page == current,
        };
        pages.iter().map(item).collect()
    }
}

/// The lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Flaky,
    Broken,
    Failing,
    Quarantined,
}

impl List {
    pub(crate) const ALL: [Self; 4] = [Self::Flaky, Self::Broken, Self::Failing, Self::Quarantined];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Flaky => "flaky",
            Self::Broken => "broken",
            Self::Failing => "failing",
            Self::Quarantined => "quarantined",
        }
    }

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Flaky => "Flaky",
            Self::Broken => "Broken",
            Self::Failing => "Failed within 24 h",
            Self::Quarantined => "Quarantined",
        }
    }
}

/// The data of the page.
pub(crate) struct Seen<'a> {
    pub(crate) place: &'a TestsAddress,
    pub(crate) list: List,
    pub(crate) search: &'a str,
    /// The worst first.
    pub(crate) tests: &'a [TestSnapshot],
    /// How many tests each list has.
    pub(crate) totals: &'a [(List, u64)],
    /// When the last upload came.
    pub(crate) last_upload: Option<Timestamp>,
    pub(crate) next: Option<String>,
    pub(crate) settings: &'a Settings,
    /// The newest first.
    pub(crate) incidents: &'a [Incident],
    /// Whether the visitor may decide about incidents.
    pub(crate) may_decide: bool,
    pub(crate) now: Timestamp,
}

/// A share as per cent with one digit.
pub(crate) fn percent(rate: f64) -> String {
    format!("{:.1} %", rate * 100.0)
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "–".to_owned() } else { text }
}

fn row(test: &TestSnapshot, place: &TestsAddress, now: Timestamp) -> Vec<Cell> {
    let (record, key) = (&test.record, &test.record.test.key);
    let whereabouts = [&key.file, &key.parent, &key.classname];
    let whereabouts: Vec<String> =
        whereabouts.iter().filter(|it| !it.is_empty()).map(|it| plain(it, 120)).collect();
    let numbers = &test.numbers;
    vec![
        Cell {
            mark: test.quarantined.then_some("quarantined"),
            ..Cell::text(plain(&key.name, 240)).link(place.test(record.test.id))
        }
        .sub(whereabouts.join(" · ")),
        Cell::named(&record.test.standing.value),
        Cell::number(percent(numbers.failure_rate_7d()))
            .sub(format!("{} of {} runs", numbers.failures_7d, numbers.runs_7d)),
        Cell::number(numbers.pull_requests_7d.len()),
        Cell::text(or_dash(plain(&record.owners.join(", "), 120))),
        Cell::text(plain(record.ticket.as_deref().unwrap_or("–"), 60)),
        record.last_failure_at.map_or_else(|| Cell::text("–"), |at| ago(at, now)),
    ]
}

const COLUMNS: [&str; 7] = [
    "Test",
    "Status",
    "#Failed in 7 d",
    "#Pull requests affected",
    "Owners",
    "Ticket",
    "Last failure",
];

/// The dashboard.
pub(crate) fn page(seen: &Seen<'_>) -> Page {
    let place = seen.place;
    let total =
        |list: List| seen.totals.iter().find(|(it, _)| *it == list).map_or(0, |(_, it)| *it);
    let tiles = List::ALL.iter().map(|list| Tile {
        label: list.label(),
        value: total(*list).to_string(),
        note: match list {
            List::Flaky => "pass and fail on the same code",
            List::Broken => "fail persistently",
            List::Failing => "with at least one failing run",
            List::Quarantined => "failures count as passed",
        }
        .to_owned(),
        href: Some(format!("{}&list={}", place.path("flaky-tests"), list.as_str())),
    });
    let filter = Form {
        id: "filter".to_owned(),
        action: format!("/{}/flaky-tests", place.org),
        hidden: vec![("repo", place.repo.to_string())],
        fields: vec![
            Field {
                name: "list",
                label: "Show".to_owned(),
                kind: "select",
                value: seen.list.as_str().to_owned(),
                options: List::ALL
                    .iter()
                    .map(|it| (it.as_str().to_owned(), it.label().to_owned()))
                    .collect(),
                ..Field::default()
            },
            Field {
                name: "q",
                label: "Name or file contains".to_owned(),
                kind: "search",
                value: seen.search.to_owned(),
                ..Field::default()
            },
        ],
        button: "Show".to_owned(),
        ..Form::default()
    };
    let mut table = Table::new("tests", format!("Tests: {}", seen.list.label()), &COLUMNS);
    table.empty = if seen.search.is_empty() {
        match seen.last_upload {
            None => "No results were uploaded yet.".to_owned(),
            Some(_) => format!("No test of this kind: {}.", seen.list.label().to_lowercase()),
        }
    } else {
        "No test matches.".to_owned()
    };
    let all = if seen.search.is_empty() {
        Vec::new()
    } else {
        let path = format!("{}&list={}", place.path("flaky-tests"), seen.list.as_str());
        vec![Cell::text("Clear the search").link(path)]
    };
    for test in seen.tests {
        table.push(test.record.test.id, row(test, place, seen.now));
    }
    table.more.clone_from(&seen.next);
    let mut top = Section::plain("numbers");
    match seen.last_upload {
        None => {
            top = top
                .with(Block::notice(Tone::Active, "clock", "Waiting for the first upload.", "Send JUnit XML files from CI:"))
                .with(Block::Pre(format!(
                    "curl -H \"x-api-token: $SIGNALBOX_TOKEN\" -H 'content-type: application/xml' \\\n  --data-binary @junit.xml \\\n  \"$SIGNALBOX_URL/v1/flaky-tests/upload?repo={}&branch=main&sha=$(git rev-parse HEAD)&job=unit\"",
                    place.repo
                )));
        }
        Some(at) if at < seen.now.minus(signalbox_domain::time::Span::hours(24)) => {
            let text = format!("The last upload came {}.", ago(at, seen.now).text);
            top = top.with(Block::notice(Tone::Warning, "clock", "No upload in 24 h.", &text));
        }
        Some(_) => {}
    }
    if !seen.settings.quarantine.enabled {
        let text = "Failures of flaky tests fail the checks. Turn quarantine on with flaky-tests/update-settings.";
        top = top.with(Block::notice(Tone::Quiet, "shield", "Quarantine is off.", text));
    }
    top = top.with(Block::Tiles(tiles.collect()));
    Page {
        title: format!("Tests of {}", place.name()),
        above: vec![Cell::text("Tests").link(format!("/{}/flaky-tests", place.org))],
        menu: place.menu("flaky-tests"),
        sections: [
            Some(top),
            Some(
                Section::new("list", seen.list.label())
                    .note("highest failure rate first")
                    .with(Block::Forms(vec![filter]))
                    .with(Block::Links(all))
                    .with(Block::Table(table)),
            ),
            incidents(seen),
        ]
        .into_iter()
        .flatten()
        .collect(),
        topic: format!("tests:{}", place.id),
        only_hint: true,
        announce: String::new(),
        curl: "curl -H \"x-api-token: $SIGNALBOX_TOKEN\" -H 'content-type: application/json' \\\n  -d '…' \"$SIGNALBOX_URL/v1/flaky-tests/list-unhealthy-tests\"".to_owned(),
        ..Page::default()
    }
}

/// Incidents of the last week, with what can be decided about them; nothing when there are none.
fn incidents(seen: &Seen<'_>) -> Option<Section> {
    let week = seen.now.minus(signalbox_domain::time::Span::days(7));
    let recent: Vec<&Incident> = seen.incidents.iter().filter(|it| it.last_at >= week).collect();
    if recent.is_empty() {
        return None;
    }
    let columns = ["Incident", "Status", "#Failures", "#Uploads", "Last failure"];
    let mut table = Table::new("incidents", "Incidents".to_owned(), &columns);
    for incident in &recent {
        let failures = if incident.state.excludes() { "excluded" } else { "counted" };
        table.push(
            incident.id,
            vec![
                Cell::text(plain(&incident.summary, 160))
                    .sub(format!("started {}", incident.started_at)),
                Cell::text(incident.state.as_str()).sub(format!("failures {failures}")),
                Cell::number(usize::try_from(incident.failures).unwrap_or(usize::MAX)),
                Cell::number(usize::try_from(incident.uploads).unwrap_or(usize::MAX)),
                ago(incident.last_at, seen.now),
            ],
        );
    }
    let section = Section::new("incidents", "Incidents")
        .note("many tests that failed together")
        .with(Block::Table(table));
    if !seen.may_decide {
        return Some(section);
    }
    let options = |it: &&Incident| {
        (it.id.to_string(), format!("{}: {}", it.started_at, plain(&it.summary, 80)))
    };
    let form = Form {
        id: "incident".to_owned(),
        action: format!("/{}/flaky-tests/do", seen.place.org),
        post: true,
        title: "Decide about an incident".to_owned(),
        hidden: vec![("action", "incident".to_owned()), ("repo", seen.place.repo.to_string())],
        fields: vec![
            Field {
                name: "incident",
                label: "Incident".to_owned(),
                kind: "select",
                options: recent.iter().map(options).collect(),
                ..Field::default()
            },
            Field {
                name: "decision",
                label: "Decision".to_owned(),
                kind: "select",
                options: vec![
                    ("confirm".to_owned(), "Confirm: exclude its failures".to_owned()),
                    ("dismiss".to_owned(), "Dismiss: count its failures".to_owned()),
                ],
                ..Field::default()
            },
            Field { name: "reason", label: "Reason".to_owned(), kind: "text", ..Field::default() },
        ],
        button: "Decide".to_owned(),
        ..Form::default()
    };
    Some(section.with(Block::Forms(vec![form])))
}

/// All quarantined tests.
pub(crate) fn quarantine(
    place: &TestsAddress,
    tests: &[TestSnapshot],
    settings: &Settings,
    now: Timestamp,
) -> Page {
    let heads = ["Test", "Status", "Since", "Override", "Ends", "#Failed in 7 d"];
    let mut table = Table::new("quarantined", "Quarantined tests", &heads);
    table.empty = if settings.quarantine.enabled {
        "No test is quarantined.".to_owned()
    } else {
        "Quarantine is off for this repository: every failure counts.".to_owned()
    };
    for test in tests {
        let record = &test.record;
        let own = record.test.quarantining();
        let healthy = record.test.standing.value == signalbox_domain::flaky::TestStatus::Healthy;
        let mut status = Cell::named(&record.test.standing.value);
        if healthy {
            status = status.sub("healthy again");
        }
        table.push(
            record.test.id,
            vec![
                Cell::text(plain(&record.test.key.name, 240)).link(place.test(record.test.id)),
                status,
                ago(record.test.standing.since, now),
                Cell::named(&own.setting),
                own.expires_at
                    .filter(|_| own.setting == QuarantineOverride::Always)
                    .map_or_else(|| Cell::text("–"), |at| ago(at, now)),
                Cell::number(percent(test.numbers.failure_rate_7d())),
            ],
        );
    }
    let word = match settings.quarantine.auto {
        signalbox_domain::flaky::AutoQuarantine::Off => "manually selected tests",
        signalbox_domain::flaky::AutoQuarantine::Flaky => "flaky tests, automatically",
        signalbox_domain::flaky::AutoQuarantine::FlakyAndBroken => {
            "flaky and broken tests, automatically"
        }
    };
    let on = if settings.quarantine.enabled { "on" } else { "off" };
    let mut section = Section::plain("quarantine");
    if !settings.quarantine.enabled {
        let text = "When it is on, failures of quarantined tests count as passed: the uploader \
                    exits with 0 despite them. Turn it on with flaky-tests/update-settings.";
        section = section.with(Block::notice(Tone::Quiet, "shield", "Quarantine is off.", text));
    }
    let facts = vec![("Quarantine", Cell::text(on)), ("Quarantined tests", Cell::text(word))];
    Page {
        title: format!("Quarantine of {}", place.name()),
        above: vec![Cell::text("Tests").link(format!("/{}/flaky-tests", place.org))],
        menu: place.menu("flaky-tests/quarantine"),
        sections: vec![section.with(Block::Details(facts)).with(Block::Table(table))],
        topic: format!("tests:{}", place.id),
        only_hint: true,
        ..Page::default()
    }
}

/// The repositories whose tests the visitor can see.
pub(crate) fn repositories(org: &str, counts: &[super::home::TestCounts]) -> Page {
    let mut table = Table::new(
        "repositories",
        "Repositories",
        &["Repository", "#Flaky", "#Broken", "#Quarantined"],
    )
    .empty("No repository is registered yet.");
    for it in counts {
        let name = format!("{}/{}", it.repo.owner, it.repo.name);
        table.push(
            table.rows.len(),
            vec![
                Cell::text(name)
                    .link(tests_path(org, "flaky-tests", &it.repo))
                    .sub(it.repo.host.to_string()),
                Cell::number(it.flaky),
                Cell::number(it.broken),
                Cell::number(it.quarantined),
            ],
        );
    }
    Page {
        title: "Tests".to_owned(),
        sections: vec![Section::plain("list").with(Block::Table(table))],
        ..Page::default()
    }
}
