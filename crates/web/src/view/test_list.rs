//! The tests of a repository: the worst first, and the quarantined ones.

use signalbox_domain::flaky::{Incident, Settings, TestKey};
use signalbox_domain::ids::{RepoId, RepoName};
use signalbox_domain::ports::{DayCounts, TestRecord, TestSnapshot};
use signalbox_domain::time::Timestamp;
use signalbox_wording::Tone;

use super::test_forms;
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

    /// A list with the tests of an owner only.
    pub(crate) fn owned(&self, list: List, owner: &str) -> String {
        let owner = crate::text::quoted(owner);
        match list {
            List::Quarantined => format!("{}&owner={owner}", self.path("flaky-tests/quarantine")),
            list => {
                format!("{}&list={}&owner={owner}", self.path("flaky-tests"), list.as_str())
            }
        }
    }

    pub(crate) fn menu(&self, current: &str) -> Vec<MenuItem> {
        let pages = [
            ("Tests", "flaky-tests"),
            ("Quarantine", "flaky-tests/quarantine"),
            ("Owners", "flaky-tests/owners"),
            ("Monitors", "flaky-tests/monitors"),
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
    pub(crate) wanted: &'a Wanted,
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
    /// The counts of the last days, the oldest first.
    pub(crate) trend: &'a [DayCounts],
    /// Whether the visitor may change tests and decide about incidents.
    pub(crate) may_decide: bool,
    pub(crate) now: Timestamp,
}

/// Which tests of a list are shown; by default all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// A part of the name or file; empty: any.
    pub(crate) text: String,
    /// The owner, or [`NO_OWNER`]; empty: any.
    pub(crate) owner: String,
}

/// The value of `owner` for tests without one.
pub(crate) const NO_OWNER: &str = "-";

/// The owners of a test.
pub(crate) fn owners_of(record: &TestRecord) -> impl Iterator<Item = &str> {
    record.owners.iter().map(|it| it.trim()).filter(|it| !it.is_empty())
}

/// A test's name and where it is.
pub(crate) fn whole_name(key: &TestKey) -> String {
    let parts = [&key.name, &key.file, &key.parent, &key.classname, &key.variant];
    let parts: Vec<String> =
        parts.iter().filter(|it| !it.is_empty()).map(|it| plain(it, 120)).collect();
    parts.join(" · ")
}

impl Wanted {
    pub(crate) const fn is_all(&self) -> bool {
        self.text.is_empty() && self.owner.is_empty()
    }

    pub(crate) fn matches(&self, record: &TestRecord) -> bool {
        let key = &record.test.key;
        let part = self.text.to_lowercase();
        let is_named = part.is_empty()
            || key.name.to_lowercase().contains(&part)
            || key.file.to_lowercase().contains(&part);
        let is_owned = match self.owner.as_str() {
            "" => true,
            NO_OWNER => owners_of(record).next().is_none(),
            // GitHub ignores the case of letters.
            owner => {
                let owner = owner.to_lowercase();
                owners_of(record).any(|it| it.to_lowercase() == owner)
            }
        };
        is_named && is_owned
    }

    /// What an address with this search ends with.
    pub(crate) fn query(&self) -> String {
        let value = |name, text: &str| match text {
            "" => String::new(),
            text => format!("&{name}={}", crate::text::quoted(text)),
        };
        format!("{}{}", value("q", &self.text), value("owner", &self.owner))
    }

    /// The fields of the form that sets it.
    pub(crate) fn fields(&self) -> Vec<Field> {
        let field = |name, label: &str, value: &str| Field {
            name,
            label: label.to_owned(),
            kind: "search",
            value: value.to_owned(),
            ..Field::default()
        };
        vec![
            field("q", "Name or file contains", &self.text),
            Field {
                hint: format!("As in CODEOWNERS, or {NO_OWNER} for tests without an owner."),
                ..field("owner", "Owner", &self.owner)
            },
        ]
    }
}

/// A share as per cent with one digit.
pub(crate) fn percent(rate: f64) -> String {
    format!("{:.1} %", rate * 100.0)
}

/// The owners of a test; the only one links to its tests.
pub(crate) fn owners(record: &TestRecord, place: &TestsAddress, list: List) -> Cell {
    let owners: Vec<&str> = owners_of(record).collect();
    match owners.as_slice() {
        [] => Cell::text("–"),
        [owner] => Cell::text(plain(owner, 120)).link(place.owned(list, owner)),
        several => Cell::text(plain(&several.join(", "), 120)),
    }
}

/// The search form of a list.
pub(crate) fn filter(place: &TestsAddress, page: &str, fields: Vec<Field>) -> Form {
    Form {
        id: "filter".to_owned(),
        action: format!("/{}/{page}", place.org),
        hidden: vec![("repo", place.repo.to_string())],
        fields,
        button: "Show".to_owned(),
        ..Form::default()
    }
}

/// The text of a list without rows, and the links of a search.
pub(crate) fn searched(
    table: &mut Table,
    wanted: &Wanted,
    (all, next): (String, Option<&String>),
) -> Block {
    let mut links = Vec::new();
    if !wanted.is_all() {
        "No test matches.".clone_into(&mut table.empty);
        links.push(Cell::text("Clear the search").link(all));
    }
    if let (true, Some(next)) = (table.rows.is_empty(), next) {
        "No test matches in this part of the list.".clone_into(&mut table.empty);
        links.push(Cell::text("Search the next part").link(next.clone()));
    }
    Block::Links(links)
}

fn row(test: &TestSnapshot, place: &TestsAddress, list: List, now: Timestamp) -> Vec<Cell> {
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
        owners(record, place, list),
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
    let shown = Field {
        name: "list",
        label: "Show".to_owned(),
        kind: "select",
        value: seen.list.as_str().to_owned(),
        options: List::ALL
            .iter()
            .map(|it| (it.as_str().to_owned(), it.label().to_owned()))
            .collect(),
        ..Field::default()
    };
    let fields = std::iter::once(shown).chain(seen.wanted.fields()).collect();
    let filter = filter(place, "flaky-tests", fields);
    let mut table = Table::new("tests", format!("Tests: {}", seen.list.label()), &COLUMNS);
    table.empty = match seen.last_upload {
        None => "No results were uploaded yet.".to_owned(),
        Some(_) => format!("No test of this kind: {}.", seen.list.label().to_lowercase()),
    };
    for test in seen.tests {
        table.push(test.record.test.id, row(test, place, seen.list, seen.now));
    }
    table.more.clone_from(&seen.next);
    let all = format!("{}&list={}", place.path("flaky-tests"), seen.list.as_str());
    let links = searched(&mut table, seen.wanted, (all, seen.next.as_ref()));
    let mut list = Section::new("list", seen.list.label())
        .note("most pull requests affected first")
        .with(Block::Forms(vec![filter]))
        .with(links)
        .with(Block::Table(table));
    if seen.may_decide && !seen.tests.is_empty() {
        list = list.with(Block::Forms(vec![test_forms::several(
            place,
            seen.list,
            seen.wanted,
            seen.tests,
        )]));
    }
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
        let text = if seen.may_decide {
            "Failures of flaky tests fail the checks. To change this, use the Quarantine page."
        } else {
            "Failures of flaky tests fail the checks."
        };
        top = top.with(Block::notice(Tone::Quiet, "shield", "Quarantine is off.", text));
    }
    top = top.with(Block::Tiles(tiles.collect()));
    Page {
        title: format!("Tests of {}", place.name()),
        above: vec![Cell::text("Tests").link(format!("/{}/flaky-tests", place.org))],
        menu: place.menu("flaky-tests"),
        sections: [
            Some(top),
            super::trend::section(seen.trend),
            Some(list),
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
    let form = test_forms::incident(seen.place, &recent);
    Some(section.with(Block::Forms(vec![form])))
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
