//! The monitors of a repository, and what one would find.

use signalbox_domain::flaky::{Action, Monitor, MonitorId, Settings, offered};
use signalbox_services::Preview;
use signalbox_wording::Tone;
use uuid::Uuid;

use super::test_list::TestsAddress;
use crate::model::{Block, Cell, Field, Form, Page, Section, Table};
use crate::text::{plain, sentence};

/// A monitor that is shown in detail, with the requested parameters.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    /// Its id, the name of a template, or `pass_on_retry`.
    pub(crate) word: String,
    pub(crate) monitor: Monitor,
    /// Whether the repository does not have it yet.
    pub(crate) is_new: bool,
}

impl Chosen {
    /// The monitor of that word. A new one has no id yet.
    pub(crate) fn find(settings: &Settings, word: &str) -> Option<Self> {
        let known = Uuid::try_parse(word).ok().and_then(|id| settings.monitor(MonitorId(id)));
        let new = || offered().into_iter().find(|(name, _)| *name == word).map(|(_, it)| it);
        let (monitor, is_new) = match known {
            Some(monitor) => (monitor.clone(), false),
            None => (new()?, true),
        };
        Some(Self { word: word.to_owned(), monitor, is_new })
    }
}

/// The data of the page.
pub(crate) struct Seen<'a> {
    pub(crate) place: &'a TestsAddress,
    pub(crate) settings: &'a Settings,
    pub(crate) chosen: Option<&'a Chosen>,
    /// What the chosen one would find, or why it cannot be.
    pub(crate) preview: Option<Result<Preview, String>>,
    /// Whether the visitor may change monitors.
    pub(crate) may_change: bool,
}

/// The page.
pub(crate) fn page(seen: &Seen<'_>) -> Page {
    let place = seen.place;
    let sections = [Some(list(seen)), seen.chosen.map(|chosen| preview(seen, chosen))];
    let title = match seen.chosen {
        None => format!("Monitors of {}", place.name()),
        Some(chosen) => format!("{} of {}", plain(&chosen.monitor.name, 100), place.name()),
    };
    Page {
        title,
        above: vec![Cell::text("Tests").link(format!("/{}/flaky-tests", place.org))],
        menu: place.menu("flaky-tests/monitors"),
        sections: sections.into_iter().flatten().collect(),
        topic: format!("tests:{}", place.id),
        only_hint: true,
        ..Page::default()
    }
}

fn kind(monitor: &Monitor) -> String {
    sentence(&monitor.rule.kind().as_str().replace('_', " ")).trim_end_matches('.').to_owned()
}

/// Which runs it looks at.
fn scope(monitor: &Monitor) -> String {
    let patterns = monitor.scope.patterns.iter().map(|it| it.0.as_str());
    let patterns: Vec<&str> = patterns.filter(|it| *it != "*").collect();
    let classes: Vec<String> =
        monitor.scope.classes.iter().map(|it| it.as_str().replace('_', " ")).collect();
    let branches = match (classes.is_empty(), patterns.is_empty()) {
        (true, true) => return "all branches".to_owned(),
        (false, true) => format!("{} branches", classes.join(", ")),
        (true, false) => format!("branches {}", patterns.join(", ")),
        (false, false) => format!("{} branches {}", classes.join(", "), patterns.join(", ")),
    };
    plain(&branches, 200)
}

/// What it does to a test.
fn effect(monitor: &Monitor) -> String {
    match &monitor.action {
        Action::Classify(as_what) => format!("calls it {}", as_what.as_str().to_lowercase()),
        Action::Label { labels, .. } => plain(&format!("adds {}", labels.join(", ")), 200),
    }
}

fn parameters(monitor: &Monitor) -> String {
    let values = monitor.rule.values();
    let values = values.into_iter().map(|(name, value)| format!("{name} {value}"));
    values.collect::<Vec<_>>().join(", ")
}

fn list(seen: &Seen<'_>) -> Section {
    let place = seen.place;
    let heads = ["Monitor", "Pattern", "Looks at", "When active", "Parameters"];
    let mut table =
        Table::new("monitors", "Monitors", &heads).empty("This repository has no monitor.");
    for monitor in &seen.settings.monitors {
        let off = (!monitor.enabled).then_some("off");
        let path = format!("{}&monitor={}", place.path("flaky-tests/monitors"), monitor.id);
        table.push(
            monitor.id,
            vec![
                Cell { mark: off, ..Cell::text(plain(&monitor.name, 100)).link(path) },
                Cell::text(kind(monitor)),
                Cell::text(scope(monitor)),
                Cell::text(effect(monitor)),
                Cell::text(parameters(monitor)),
            ],
        );
    }
    let own = seen.settings.monitors.iter();
    let own = own.map(|it| (it.id.to_string(), plain(&it.name, 100)));
    let new = offered().into_iter();
    let new = new.map(|(word, it)| (word.to_owned(), format!("New: {}", it.name)));
    let choose = Form {
        id: "choose".to_owned(),
        action: format!("/{}/flaky-tests/monitors", place.org),
        hidden: vec![("repo", place.repo.to_string())],
        fields: vec![Field {
            name: "monitor",
            label: "Monitor".to_owned(),
            kind: "select",
            value: seen.chosen.map(|it| it.word.clone()).unwrap_or_default(),
            options: own.chain(new).collect(),
            ..Field::default()
        }],
        button: "Show what it finds".to_owned(),
        ..Form::default()
    };
    Section::plain("list").with(Block::Table(table)).with(Block::Forms(vec![choose]))
}

/// What a monitor would find with these parameters, and the forms that change it.
fn preview(seen: &Seen<'_>, chosen: &Chosen) -> Section {
    let mut section =
        Section::new("preview", plain(&chosen.monitor.name, 100)).note("what it would find now");
    section = section.with(Block::Forms(vec![try_out(seen, chosen)]));
    match &seen.preview {
        Some(Ok(found)) => section = section.with(tests(seen, found)),
        Some(Err(refused)) => {
            let title = "A monitor cannot have these parameters.";
            section =
                section.with(Block::notice(Tone::Bad, "cross", title, &format!("{refused}.")));
        }
        None => {}
    }
    if seen.may_change && matches!(seen.preview, Some(Ok(_))) {
        section = section.with(Block::Forms(changes(seen, chosen)));
    }
    section
}

/// A field for each parameter.
fn try_out(seen: &Seen<'_>, chosen: &Chosen) -> Form {
    let values = chosen.monitor.rule.values();
    let fields = chosen.monitor.rule.kind().parameters().into_iter().map(|parameter| {
        let value = values.iter().find(|(name, _)| *name == parameter.name);
        Field {
            name: parameter.name,
            label: parameter.name.to_owned(),
            kind: "number",
            value: value.map(|(_, value)| value.to_string()).unwrap_or_default(),
            hint: format!("{} {} to {}.", sentence(parameter.doc), parameter.min, parameter.max),
            ..Field::default()
        }
    });
    Form {
        id: "try".to_owned(),
        action: format!("/{}/flaky-tests/monitors", seen.place.org),
        hidden: vec![("repo", seen.place.repo.to_string()), ("monitor", chosen.word.clone())],
        fields: fields.collect(),
        button: "Preview".to_owned(),
        ..Form::default()
    }
}

fn tests(seen: &Seen<'_>, found: &Preview) -> Block {
    let shown = u32::try_from(found.tests.len()).unwrap_or(u32::MAX);
    let first = if shown < found.found { format!(" The first {shown}:") } else { String::new() };
    let caption = format!(
        "It would find {} of the {} tests with failures that were examined.{first}",
        found.found, found.looked_at
    );
    let heads = ["Test", "Status now", "Evidence"];
    let mut table = Table::new("found", caption.clone(), &heads).empty(caption);
    table.quiet_caption = false;
    for test in &found.tests {
        table.push(
            test.id,
            vec![
                Cell::text(plain(&test.name, 240))
                    .link(seen.place.test(test.id))
                    .sub(plain(&test.variant, 100)),
                Cell::named(&test.status),
                Cell::text(plain(&test.evidence.to_string(), 300)),
            ],
        );
    }
    Block::Table(table)
}

/// Creating a new monitor, or changing one of the repository.
fn changes(seen: &Seen<'_>, chosen: &Chosen) -> Vec<Form> {
    let form = |change: &str, title: &str, button: &str| {
        let mut hidden = vec![
            ("action", "monitor".to_owned()),
            ("repo", seen.place.repo.to_string()),
            ("monitor", chosen.word.clone()),
            ("change", change.to_owned()),
        ];
        if change == "save" {
            let values = chosen.monitor.rule.values();
            hidden.extend(values.into_iter().map(|(name, value)| (name, value.to_string())));
        }
        Form {
            id: format!("monitor-{change}"),
            action: format!("/{}/flaky-tests/do", seen.place.org),
            post: true,
            title: title.to_owned(),
            hidden,
            button: button.to_owned(),
            danger: change == "delete",
            ..Form::default()
        }
    };
    if chosen.is_new {
        return vec![form("save", "Create this monitor", "Create")];
    }
    let mut forms = vec![form("save", "Save these parameters", "Save")];
    if chosen.monitor.enabled {
        forms.push(form("off", "Turn the monitor off", "Turn off"));
    } else {
        forms.push(form("on", "Turn the monitor on", "Turn on"));
    }
    forms.push(form("delete", "Delete the monitor", "Delete"));
    let ends = |it: &&mut Form| ["monitor-off", "monitor-delete"].contains(&it.id.as_str());
    for form in forms.iter_mut().filter(ends) {
        "Its findings end immediately.".clone_into(&mut form.note);
    }
    forms
}
