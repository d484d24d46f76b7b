//! The settings of a queue: current values, a preview, and the difference.

use signalbox_domain::queue::{
    Queue, SETTINGS, SettingGroup, SettingKind, SettingSpec, SettingValue, Settings, SettingsPatch,
};

use sha2::{Digest, Sha256};
use signalbox_domain::time::Timestamp;

use super::{QueueAddress, management, what_if};
use crate::failure::Failure;
use crate::model::{Block, Cell, Field, Form, Page, Section, Table};
use crate::text::{plain, sentence};
use crate::visitor::{Asked, Visitor};
use signalbox_domain::token::Scope;
use signalbox_services::WhatIf;
use signalbox_simulator::Replay;
use signalbox_wording::{Tone, settings_group, settings_warning};

/// Warnings about settings that have no effect with the others.
fn warned(section: Section, settings: &Settings) -> Section {
    settings.warnings().into_iter().fold(section, |section, text| {
        let title = "This setting has no effect on its own.";
        section.with(Block::notice(
            Tone::Warning,
            "warning",
            title,
            &sentence(settings_warning(text)),
        ))
    })
}

/// A setting and its value in a form.
struct Setting {
    spec: &'static SettingSpec,
    /// Its name in forms.
    name: &'static str,
    label: String,
    value: String,
}

/// Every setting, group by group.
fn all(settings: &Settings) -> Vec<Setting> {
    let of_group = |group| SETTINGS.iter().filter(move |spec| spec.group == group);
    let shown = |spec: &'static SettingSpec| {
        let label = match spec.kind {
            SettingKind::Whole { unit, .. } if !unit.is_empty() => {
                format!("{} ({unit})", spec.title)
            }
            SettingKind::Names { .. } | SettingKind::Lines(_) => {
                format!("{}, one per line", spec.title)
            }
            SettingKind::Rules => format!("{}, one pattern per line", spec.title),
            SettingKind::Whole { .. }
            | SettingKind::Flag
            | SettingKind::Word(_)
            | SettingKind::Text { .. } => spec.title.to_owned(),
        };
        Setting { spec, name: spec.field, label, value: value(spec.value(settings)) }
    };
    SettingGroup::ALL.iter().copied().flat_map(of_group).map(shown).collect()
}

fn value(value: SettingValue) -> String {
    match value {
        SettingValue::Whole(number) => number.to_string(),
        SettingValue::Flag(flag) => if flag { "yes" } else { "no" }.to_owned(),
        SettingValue::Word(word) => word.to_owned(),
        SettingValue::Text(text) => text,
        SettingValue::Names(names) => names.join("\n"),
        SettingValue::Rules(rules) => {
            rules.into_iter().map(|rule| rule.target_pattern).collect::<Vec<_>>().join("\n")
        }
    }
}

/// A version of the settings, which changes with every change of them.
pub(crate) fn version(settings: &Settings) -> String {
    let mut hash = Sha256::new();
    for one in all(settings) {
        hash.update(format!("{}\0{}\0", one.name, one.value));
    }
    let digest: [u8; 32] = hash.finalize().into();
    let first = digest.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    format!("{first:016x}")
}

/// The page after a conflict: the settings changed while the form was open.
pub(crate) fn changed(place: &QueueAddress, queue: &Queue, wanted: &Settings) -> Page {
    let mut table = Table::new("both", "Both versions", &["Setting", "Now", "In your form"])
        .empty("Your form has the current values.");
    let mut mine = vec![("repo", place.repo.to_string()), ("branch", place.branch.to_string())];
    for (now, wanted) in all(&queue.header.settings).into_iter().zip(all(wanted)) {
        if now.value != wanted.value {
            let cells = [&now.label, &now.value, &wanted.value];
            let cells = cells.map(|text| Cell::text(shown(text)));
            table.push(now.name, cells.to_vec());
        }
        mine.push((wanted.name, wanted.value));
    }
    let notice = Block::notice(
        Tone::Warning,
        "warning",
        "Your changes were not saved.",
        "Another user changed the settings after you opened the form.",
    );
    let again = Form {
        id: "mine".to_owned(),
        action: format!("/{}/queue/settings", place.org),
        hidden: mine,
        button: "Preview my changes".to_owned(),
        ..Form::default()
    };
    let start =
        Cell::text("Start again from the current settings").link(place.path("queue/settings"));
    Page {
        title: format!("Settings changed: {}", place.name()),
        heading: "The settings have changed".to_owned(),
        above: above(place),
        menu: place.menu("queue/settings"),
        sections: vec![
            Section::plain("why").with(notice),
            Section::new("both-part", "Both versions")
                .with(Block::Table(table))
                .with(Block::Forms(vec![again]))
                .with(Block::Links(vec![start])),
        ],
        ..Page::default()
    }
}

fn above(place: &QueueAddress) -> Vec<Cell> {
    vec![Cell::text("Queues").link("/"), Cell::text(place.name()).link(place.path("queue"))]
}

fn shown(value: &str) -> String {
    if value.is_empty() { "–".to_owned() } else { plain(value, 500) }
}

/// The changes of a form against the current settings: only what differs.
pub(crate) fn patch(settings: &Settings, sent: &Asked) -> Result<SettingsPatch, Failure> {
    let mut patch = SettingsPatch::default();
    for one in all(settings) {
        let text = sent.text(one.name).replace('\r', "");
        if !sent.has(one.name) || text == one.value {
            continue;
        }
        let value = one.spec.parse(&text);
        if !value.is_some_and(|value| one.spec.set(&mut patch, value)) {
            return Err(Failure::Invalid(format!("{}: invalid value", one.label)));
        }
    }
    Ok(patch)
}

/// The page: with `proposed` also the difference, and the form that saves it. `stale`: the settings
/// changed after the form was opened. `simulated`: the last days with the proposed settings.
pub(crate) fn page(
    place: &QueueAddress,
    queue: &Queue,
    proposed: Option<&Settings>,
    stale: bool,
    simulated: Option<&Result<Replay, String>>,
    visitor: &Visitor,
    now: Timestamp,
) -> Page {
    let settings = &queue.header.settings;
    let current = all(settings);
    let mut sections: Vec<Section> = management::section(&queue.header, now).into_iter().collect();
    let hidden = || {
        vec![
            ("repo", place.repo.to_string()),
            ("branch", place.branch.to_string()),
            ("version", version(settings)),
        ]
    };
    if let Some(proposed) = proposed {
        let mut table =
            Table::new("difference", "Changes", &["Setting", "Now", "New"]).empty("No changes.");
        let mut change = hidden();
        for (old, new) in current.iter().zip(all(proposed)) {
            if old.value != new.value {
                table.push(
                    old.name,
                    vec![
                        Cell::text(&old.label),
                        Cell::text(shown(&old.value)),
                        Cell::text(shown(&new.value)),
                    ],
                );
            }
            change.push((new.name, new.value));
        }
        let mut simulation = change.clone();
        simulation.push(("simulate", "yes".to_owned()));
        if stale {
            // The warning remains on the next page.
            simulation.retain(|(name, _)| *name != "version");
            simulation.push(("version", String::new()));
        }
        change.push(("save", "yes".to_owned()));
        let any = !table.rows.is_empty();
        let mut section = Section::new("preview", "Preview");
        if stale {
            let text = "The preview compares your form with the current settings.";
            let title = "Another user changed the settings after you opened the form.";
            section = section.with(Block::notice(Tone::Warning, "warning", title, text));
        }
        section = section.with(Block::Table(table));
        if proposed.mode != settings.mode {
            let text =
                "Pull requests in the line finish in the old mode first; new ones wait until then.";
            section =
                section.with(Block::notice(Tone::Warning, "switch", "This switches modes.", text));
        }
        section = warned(section, proposed);
        let mut forms = Vec::new();
        if any && !matches!(simulated, Some(Ok(_))) {
            forms.push(Form {
                id: "simulate".to_owned(),
                action: format!("/{}/queue/settings", place.org),
                hidden: simulation,
                button: format!("Simulate the last {} days", WhatIf::DAYS),
                ..Form::default()
            });
        }
        if any && visitor.may_send(Scope::QueueAdmin) {
            forms.push(Form {
                id: "save".to_owned(),
                action: format!("/{}/queue/settings", place.org),
                post: true,
                hidden: change,
                fields: management::confirmation(&queue.header),
                button: "Save these changes".to_owned(),
                ..Form::default()
            });
        }
        if !forms.is_empty() {
            section = section.with(Block::Forms(forms));
        }
        sections.push(section);
    }
    if let (Some(proposed), Some(simulated)) = (proposed, simulated) {
        sections.push(what_if::section(place, settings, proposed, simulated));
    }
    if proposed.is_none() && !settings.warnings().is_empty() {
        sections.push(warned(Section::new("warnings", "Warnings"), settings));
    }
    let values = proposed.map_or_else(|| all(settings), all);
    if visitor.may_send(Scope::QueueAdmin) {
        let options = |words: &[&str]| -> Vec<(String, String)> {
            words.iter().map(|word| ((*word).to_owned(), (*word).to_owned())).collect()
        };
        let (defaults, mut group) = (all(&Settings::default()), None);
        let field = |one: Setting| {
            let (kind, options) = match one.spec.kind {
                SettingKind::Whole { .. } => ("number", Vec::new()),
                SettingKind::Flag => ("select", options(&["yes", "no"])),
                SettingKind::Word(words) => ("select", options(words)),
                SettingKind::Text { .. } => ("text", Vec::new()),
                SettingKind::Names { .. } | SettingKind::Rules | SettingKind::Lines(_) => {
                    ("lines", Vec::new())
                }
            };
            let heading = if group.replace(one.spec.group) == Some(one.spec.group) {
                ""
            } else {
                settings_group(one.spec.group)
            };
            let default = defaults.iter().find(|it| it.name == one.name);
            let default = default.filter(|it| it.value != one.value && kind != "lines");
            Field {
                name: one.name,
                label: one.label,
                heading,
                kind,
                value: one.value,
                options,
                hint: match default {
                    Some(default) => format!("{} Default: {}.", one.spec.doc(), default.value),
                    None => one.spec.doc().to_owned(),
                },
                required: matches!(kind, "number" | "text"),
            }
        };
        let form = Form {
            id: "settings-form".to_owned(),
            action: format!("/{}/queue/settings", place.org),
            hidden: hidden(),
            fields: values.into_iter().map(field).collect(),
            button: "Preview the change".to_owned(),
            ..Form::default()
        };
        sections.push(
            Section::new("change", "Settings")
                .note("saved after a preview")
                .with(Block::Forms(vec![form])),
        );
    } else {
        let mut table =
            Table::new("settings", "Settings of the queue", &["Setting", "Value", "What it does"]);
        for one in current {
            let value = if one.value.is_empty() { "–".to_owned() } else { one.value };
            table.push(
                one.name,
                vec![
                    Cell::text(one.label),
                    Cell::text(plain(&value, 500)),
                    Cell::text(one.spec.doc()),
                ],
            );
        }
        sections.push(Section::new("settings-part", "Settings").with(Block::Table(table)));
    }
    Page {
        title: format!("Settings: {}", place.name()),
        heading: "Settings".to_owned(),
        above: above(place),
        beside: management::badge(&queue.header),
        menu: place.menu("queue/settings"),
        sections,
        curl: place.curl("updateQueue", ",\"concurrency\":3"),
        ..Page::default()
    }
}
