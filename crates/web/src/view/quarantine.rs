//! The quarantined tests of a repository, and which of them can be released.

use signalbox_domain::flaky::{
    AutoQuarantine, QuarantineOverride, QuarantineSettings, RELEASE_DAYS, Settings, TestStatus,
};
use signalbox_domain::ports::TestSnapshot;
use signalbox_domain::time::Timestamp;
use signalbox_wording::Tone;

use super::ROWS;
use super::test_forms;
use super::test_list::{List, TestsAddress, Wanted, filter, owners, percent, searched, whole_name};
use crate::model::{Block, Cell, Field, Form, Page, Section, Table};
use crate::text::ago;

/// The data of the page.
pub(crate) struct Seen<'a> {
    pub(crate) place: &'a TestsAddress,
    pub(crate) wanted: &'a Wanted,
    /// The tests of this page.
    pub(crate) tests: &'a [TestSnapshot],
    /// Tests of the whole list that can be released; only on its first page.
    pub(crate) releasable: &'a [TestSnapshot],
    pub(crate) next: Option<String>,
    pub(crate) settings: &'a Settings,
    pub(crate) counts: Counts,
    /// Whether the visitor may change tests and settings.
    pub(crate) may_change: bool,
    pub(crate) now: Timestamp,
}

/// How many tests are flaky or broken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) flaky: u64,
    pub(crate) broken: u64,
}

/// Which tests are quarantined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// None.
    Off,
    /// Manually selected ones, and these automatically.
    Auto(AutoQuarantine),
}

impl Choice {
    const ALL: [(&'static str, Self); 4] = [
        ("off", Self::Off),
        ("manual", Self::Auto(AutoQuarantine::Off)),
        ("flaky", Self::Auto(AutoQuarantine::Flaky)),
        ("flaky_and_broken", Self::Auto(AutoQuarantine::FlakyAndBroken)),
    ];

    const fn of(settings: QuarantineSettings) -> Self {
        if settings.enabled { Self::Auto(settings.auto) } else { Self::Off }
    }

    /// A choice by its name in the form.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(it, _)| *it == name).map(|(_, choice)| choice)
    }

    fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, it)| *it == self).map_or("", |(name, _)| name)
    }

    fn label(self, counts: Counts) -> String {
        let Counts { flaky, broken } = counts;
        match self {
            Self::Off => "no tests (off)".to_owned(),
            Self::Auto(AutoQuarantine::Off) => "only manually selected tests".to_owned(),
            Self::Auto(AutoQuarantine::Flaky) => format!("flaky tests ({flaky} flaky now)"),
            Self::Auto(AutoQuarantine::FlakyAndBroken) => {
                format!("flaky and broken tests ({flaky} flaky, {broken} broken now)")
            }
        }
    }
}

/// The form that changes which tests are quarantined.
fn choices(seen: &Seen<'_>) -> Form {
    let options = Choice::ALL.map(|(name, choice)| (name.to_owned(), choice.label(seen.counts)));
    let field = Field {
        name: "choice",
        label: "Quarantine".to_owned(),
        kind: "select",
        value: Choice::of(seen.settings.quarantine).name().to_owned(),
        options: options.to_vec(),
        hint: "Unless quarantine is off, manually selected tests are included.".to_owned(),
        ..Field::default()
    };
    Form {
        id: "quarantine-settings".to_owned(),
        action: format!("/{}/flaky-tests/do", seen.place.org),
        post: true,
        title: "Change which tests are quarantined".to_owned(),
        hidden: vec![
            ("action", "quarantine-settings".to_owned()),
            ("repo", seen.place.repo.to_string()),
        ],
        fields: vec![field],
        button: "Change".to_owned(),
        ..Form::default()
    }
}

/// The page.
pub(crate) fn page(seen: &Seen<'_>) -> Page {
    let place = seen.place;
    let sections = [Some(summary(seen)), releasable(seen), Some(list(seen))];
    Page {
        title: format!("Quarantine of {}", place.name()),
        above: vec![Cell::text("Tests").link(format!("/{}/flaky-tests", place.org))],
        menu: place.menu("flaky-tests/quarantine"),
        sections: sections.into_iter().flatten().collect(),
        topic: format!("tests:{}", place.id),
        only_hint: true,
        ..Page::default()
    }
}

/// What quarantine covers.
fn summary(seen: &Seen<'_>) -> Section {
    let quarantine = seen.settings.quarantine;
    let word = match quarantine.auto {
        _ if !quarantine.enabled => "none",
        AutoQuarantine::Off => "manually selected tests",
        AutoQuarantine::Flaky => "flaky tests, automatically",
        AutoQuarantine::FlakyAndBroken => "flaky and broken tests, automatically",
    };
    let on = if quarantine.enabled { "on" } else { "off" };
    let facts = vec![("Quarantine", Cell::text(on)), ("Quarantined tests", Cell::text(word))];
    let mut section = Section::plain("quarantine");
    if !quarantine.enabled {
        let text = "When it is on, failures of quarantined tests count as passed: the uploader \
                    exits with 0 despite them.";
        section = section.with(Block::notice(Tone::Quiet, "shield", "Quarantine is off.", text));
    }
    let section = section.with(Block::Details(facts));
    if seen.may_change { section.with(Block::Forms(vec![choices(seen)])) } else { section }
}

/// Tests that have been healthy for long enough; nothing when there are none.
fn releasable(seen: &Seen<'_>) -> Option<Section> {
    if seen.releasable.is_empty() {
        return None;
    }
    let heads = ["Test", "Healthy since", "Quarantined since", "#Runs in 7 d", "Owners"];
    let mut table = Table::new("releasable", "Tests that can be released", &heads);
    for test in seen.releasable.iter().take(ROWS) {
        let record = &test.record;
        let since = test.quarantined_since;
        table.push(
            record.test.id,
            vec![
                Cell::text(whole_name(&record.test.key)).link(seen.place.test(record.test.id)),
                ago(record.test.standing.since, seen.now),
                since.map_or_else(|| Cell::text("–"), |at| ago(at, seen.now)),
                Cell::number(test.numbers.runs_7d),
                owners(record, seen.place, List::Quarantined),
            ],
        );
    }
    let (shown, all) = (table.rows.len(), seen.releasable.len());
    if shown < all {
        table.caption = format!("The first {shown} of {all} tests that can be released");
        table.quiet_caption = false;
    }
    let section = Section::new("healthy", "Can be released")
        .note(format!("healthy and without a failure for {RELEASE_DAYS} days"))
        .with(Block::Table(table));
    let form = || test_forms::release(seen.place, seen.releasable);
    Some(if seen.may_change { section.with(Block::Forms(vec![form()])) } else { section })
}

fn list(seen: &Seen<'_>) -> Section {
    let place = seen.place;
    let heads = ["Test", "Status", "Since", "Override", "Ends", "#Failed in 7 d", "Owners"];
    let mut table = Table::new("quarantined", "Quarantined tests", &heads);
    table.empty = if seen.settings.quarantine.enabled {
        "No test is quarantined.".to_owned()
    } else {
        "Quarantine is off for this repository: every failure counts.".to_owned()
    };
    for test in seen.tests {
        table.push(test.record.test.id, row(test, seen));
    }
    table.more.clone_from(&seen.next);
    let path = place.path("flaky-tests/quarantine");
    let links = searched(&mut table, seen.wanted, (path, seen.next.as_ref()));
    let filter = filter(place, "flaky-tests/quarantine", seen.wanted.fields());
    let mut section = Section::new("list", "Quarantined tests");
    if !seen.tests.is_empty() || !seen.wanted.is_all() {
        section = section.with(Block::Forms(vec![filter]));
    }
    section = section.with(links).with(Block::Table(table));
    if seen.may_change && !seen.tests.is_empty() {
        let form = test_forms::several(place, List::Quarantined, seen.wanted, seen.tests);
        section = section.with(Block::Forms(vec![form]));
    }
    section
}

fn row(test: &TestSnapshot, seen: &Seen<'_>) -> Vec<Cell> {
    let record = &test.record;
    let own = record.test.quarantining();
    let mut status = Cell::named(&record.test.standing.value);
    if record.test.standing.value == TestStatus::Healthy {
        status = status.sub("healthy again");
    }
    vec![
        Cell::text(whole_name(&record.test.key)).link(seen.place.test(record.test.id)),
        status,
        ago(record.test.standing.since, seen.now),
        Cell::named(&own.setting),
        own.expires_at
            .filter(|_| own.setting == QuarantineOverride::Always)
            .map_or_else(|| Cell::text("–"), |at| ago(at, seen.now)),
        Cell::number(percent(test.numbers.failure_rate_7d())),
        owners(record, seen.place, List::Quarantined),
    ]
}
