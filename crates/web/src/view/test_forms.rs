//! The forms of the pages that list tests.

use signalbox_domain::flaky::{Actor, Command, Incident, QuarantineOverride};
use signalbox_domain::ports::TestSnapshot;
use signalbox_wording::Named;

use super::ROWS;
use super::test_list::{List, TestsAddress, Wanted, whole_name};
use crate::model::{Field, Form};
use crate::text::plain;

/// What users change about tests on pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Quarantine(QuarantineOverride),
    Flag,
    Unflag,
}

impl Change {
    /// All of them, in the order in which forms offer them.
    fn all() -> impl Iterator<Item = Self> {
        let overrides = QuarantineOverride::ALL.iter().map(|it| Self::Quarantine(*it));
        overrides.chain([Self::Flag, Self::Unflag])
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Quarantine(setting) => setting.as_str(),
            Self::Flag => "flag",
            Self::Unflag => "unflag",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Quarantine(setting) => setting.named().label,
            Self::Flag => "Flag as flaky",
            Self::Unflag => "Remove the flag",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::all().find(|it| it.as_str() == word)
    }

    pub(crate) fn command(self, reason: Option<String>, by: Actor) -> Command {
        match self {
            Self::Quarantine(setting) => {
                Command::SetQuarantine { setting, expires_at: None, reason, by }
            }
            Self::Flag => Command::Flag { reason, by },
            Self::Unflag => Command::Unflag { reason, by },
        }
    }
}

fn form(place: &TestsAddress, id: &str, title: &str, button: &str) -> Form {
    Form {
        id: id.to_owned(),
        action: format!("/{}/flaky-tests/do", place.org),
        post: true,
        title: title.to_owned(),
        hidden: vec![("action", id.to_owned()), ("repo", place.repo.to_string())],
        button: button.to_owned(),
        ..Form::default()
    }
}

fn reason() -> Field {
    Field { name: "reason", label: "Reason".to_owned(), kind: "text", ..Field::default() }
}

fn select(name: &'static str, label: &str, options: Vec<(String, String)>) -> Field {
    Field { name, label: label.to_owned(), kind: "select", options, ..Field::default() }
}

/// A box for each test.
fn boxes(tests: &[TestSnapshot]) -> Field {
    let shown = tests.iter().take(ROWS);
    let option =
        |it: &TestSnapshot| (it.record.test.id.to_string(), whole_name(&it.record.test.key));
    Field {
        name: "test",
        label: "Tests".to_owned(),
        kind: "boxes",
        options: shown.map(option).collect(),
        ..Field::default()
    }
}

/// Changes several of the shown tests; afterwards the browser shows that search again.
pub(crate) fn several(
    place: &TestsAddress,
    list: List,
    wanted: &Wanted,
    tests: &[TestSnapshot],
) -> Form {
    let options = Change::all().map(|it| (it.as_str().to_owned(), it.label().to_owned()));
    let mut form = form(place, "several", "Change several tests", "Change");
    form.hidden.push(("list", list.as_str().to_owned()));
    form.hidden.push(("q", wanted.text.clone()));
    form.hidden.push(("owner", wanted.owner.clone()));
    "An override replaces an earlier one and its expiry.".clone_into(&mut form.note);
    form.fields = vec![boxes(tests), select("change", "Change", options.collect()), reason()];
    form
}

/// Releases tests from quarantine.
pub(crate) fn release(place: &TestsAddress, tests: &[TestSnapshot]) -> Form {
    let follow = Change::Quarantine(QuarantineOverride::Follow);
    let mut form = form(place, "several", "Release several tests", "Release");
    "release".clone_into(&mut form.id);
    "They follow the settings of the repository again.".clone_into(&mut form.note);
    form.hidden.push(("list", List::Quarantined.as_str().to_owned()));
    form.hidden.push(("change", follow.as_str().to_owned()));
    let mut tests = boxes(tests);
    let all: Vec<&str> = tests.options.iter().map(|(value, _)| value.as_str()).collect();
    tests.value = all.join("\n");
    form.fields = vec![tests, reason()];
    form
}

/// Decides about an incident.
pub(crate) fn incident(place: &TestsAddress, incidents: &[&Incident]) -> Form {
    let option = |it: &&Incident| {
        (it.id.to_string(), format!("{}: {}", it.started_at, plain(&it.summary, 80)))
    };
    let decisions =
        [("confirm", "Confirm: exclude its failures"), ("dismiss", "Dismiss: count its failures")];
    let decisions = decisions.map(|(value, label)| (value.to_owned(), label.to_owned()));
    let mut form = form(place, "incident", "Decide about an incident", "Decide");
    form.fields = vec![
        select("incident", "Incident", incidents.iter().map(option).collect()),
        select("decision", "Decision", decisions.to_vec()),
        reason(),
    ];
    form
}
