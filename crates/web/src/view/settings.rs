//! The settings of a queue: as they are, as they would be, and what the difference is.

use signalbox_domain::queue::{
    DirectMergeMode, MergeMethod, Mode, OptimizationMode, Queue, Settings, SettingsPatch,
};

use sha2::{Digest, Sha256};

use super::Place;
use crate::failure::Failure;
use crate::model::{Block, Cell, Field, Form, Page, Section, Table};
use crate::text::{plain, sentence};
use crate::visitor::{Asked, Visitor};
use signalbox_domain::token::Scope;
use signalbox_wording::Tone;

/// Says which settings have no effect beside the others.
fn warned(section: Section, settings: &Settings) -> Section {
    settings.warnings().into_iter().fold(section, |section, text| {
        let title = "This setting does less than it says.";
        section.with(Block::notice(Tone::Warning, "warning", title, &sentence(text)))
    })
}

/// A setting: its name in forms, what it is called, its value, and the values that it may have.
struct Setting {
    name: &'static str,
    label: &'static str,
    value: String,
    options: Vec<&'static str>,
    hint: &'static str,
}

fn all(settings: &Settings) -> Vec<Setting> {
    let one = |name, label, value: String, options: Vec<&'static str>, hint| Setting {
        name,
        label,
        value,
        options,
        hint,
    };
    let yes = |value: bool| if value { "yes" } else { "no" }.to_owned();
    let either = || vec!["yes", "no"];
    let words = |all: Vec<&'static str>| all;
    let required = settings.required_statuses.as_ref().map(|it| it.join("\n")).unwrap_or_default();
    vec![
        one(
            "mode",
            "Mode",
            settings.mode.word().to_owned(),
            words(Mode::ALL.iter().map(|it| it.word()).collect()),
            "One line, or lanes of pull requests that share targets.",
        ),
        one(
            "concurrency",
            "Slots for testing",
            settings.concurrency.to_string(),
            vec![],
            "How many candidates are tested at the same time.",
        ),
        one(
            "bisection_concurrency",
            "Slots for split batches",
            settings.bisection_concurrency.to_string(),
            vec![],
            "",
        ),
        one(
            "testing_timeout_minutes",
            "Time limit of a test, in minutes",
            settings.testing_timeout_minutes.to_string(),
            vec![],
            "",
        ),
        one(
            "merge_method",
            "How it merges",
            settings.merge_method.word().to_owned(),
            words(MergeMethod::ALL.iter().map(|it| it.word()).collect()),
            "",
        ),
        one(
            "direct_merge_mode",
            "Merge directly when up to date",
            settings.direct_merge_mode.word().to_owned(),
            words(DirectMergeMode::ALL.iter().map(|it| it.word()).collect()),
            "",
        ),
        one(
            "batch",
            "Batches",
            yes(settings.batch),
            either(),
            "Several pull requests in one test.",
        ),
        one(
            "batching_min_size",
            "Size of a batch",
            settings.batching_min_size.to_string(),
            vec![],
            "",
        ),
        one(
            "batching_max_wait_time_minutes",
            "Minutes that a batch may fill",
            settings.batching_max_wait_time_minutes.to_string(),
            vec![],
            "",
        ),
        one(
            "can_optimistically_merge",
            "A later success absolves",
            yes(settings.can_optimistically_merge),
            either(),
            "A failure counts as passed when one that contains it passes.",
        ),
        one(
            "pending_failure_depth",
            "Levels that may absolve",
            settings.pending_failure_depth.to_string(),
            vec![],
            "",
        ),
        one(
            "optimization_mode",
            "Skip tests that are known",
            settings.optimization_mode.word().to_owned(),
            words(OptimizationMode::ALL.iter().map(|it| it.word()).collect()),
            "",
        ),
        one(
            "required_statuses",
            "Required checks, one a line",
            required,
            vec!["lines"],
            "Empty: those of the repository's configuration or the branch's protection.",
        ),
        one(
            "not_ready_timeout_hours",
            "Hours to become ready",
            settings.not_ready_timeout_hours.to_string(),
            vec![],
            "",
        ),
    ]
}

/// Names the settings as they are: another one after every change of them.
pub(crate) fn version(settings: &Settings) -> String {
    let mut hash = Sha256::new();
    for one in all(settings) {
        hash.update(format!("{}\0{}\0", one.name, one.value));
    }
    let digest: [u8; 32] = hash.finalize().into();
    let first = digest.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    format!("{first:016x}")
}

/// The page for somebody whose form was filled in before somebody else changed the settings.
pub(crate) fn changed(place: &Place, queue: &Queue, wanted: &Settings) -> Page {
    let mut table = Table::new("both", "Both versions", &["Setting", "Now", "In your form"])
        .empty("Your form says what is so already.");
    let mut mine = vec![("repo", place.repo.to_string()), ("branch", place.branch.to_string())];
    for (now, wanted) in all(&queue.header.settings).into_iter().zip(all(wanted)) {
        if now.value != wanted.value {
            let cells = [now.label, &now.value, &wanted.value].map(shown).map(Cell::text);
            table.push(now.name, cells.to_vec());
        }
        mine.push((wanted.name, wanted.value));
    }
    let notice = Block::notice(
        Tone::Warning,
        "warning",
        "Nothing was saved.",
        "Somebody changed the settings after you had opened the form.",
    );
    let again = Form {
        id: "mine".to_owned(),
        action: format!("/{}/queue/settings", place.org),
        hidden: mine,
        button: "Preview mine on top of it".to_owned(),
        ..Form::default()
    };
    let start = Cell::text("Start again from how it is now").link(place.path("queue/settings"));
    Page {
        title: format!("Settings changed meanwhile: {}", place.name()),
        heading: "The settings were changed meanwhile".to_owned(),
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

fn above(place: &Place) -> Vec<Cell> {
    vec![Cell::text("Queues").link("/"), Cell::text(place.name()).link(place.path("queue"))]
}

fn shown(value: &str) -> String {
    if value.is_empty() { "–".to_owned() } else { plain(value, 500) }
}

/// What a form asks for, beside the settings as they are: only what differs.
pub(crate) fn patch(settings: &Settings, sent: &Asked) -> Result<SettingsPatch, Failure> {
    let mut patch = SettingsPatch::default();
    for one in all(settings) {
        if !sent.has(one.name) || sent.text(one.name).replace('\r', "") == one.value {
            continue;
        }
        let text = sent.text(one.name);
        let wrong = || Failure::Invalid(format!("{}: this value cannot be used", one.label));
        let number = || text.parse::<u32>().map_err(|_| wrong());
        let yes = || match text {
            "yes" => Ok(true),
            "no" => Ok(false),
            _ => Err(wrong()),
        };
        match one.name {
            "mode" => patch.mode = Some(Mode::parse(text).ok_or_else(wrong)?),
            "concurrency" => patch.concurrency = Some(number()?),
            "bisection_concurrency" => patch.bisection_concurrency = Some(number()?),
            "testing_timeout_minutes" => patch.testing_timeout_minutes = Some(number()?),
            "merge_method" => {
                patch.merge_method = Some(MergeMethod::parse(text).ok_or_else(wrong)?);
            }
            "direct_merge_mode" => {
                patch.direct_merge_mode = Some(DirectMergeMode::parse(text).ok_or_else(wrong)?);
            }
            "batch" => patch.batch = Some(yes()?),
            "batching_min_size" => patch.batching_min_size = Some(number()?),
            "batching_max_wait_time_minutes" => {
                patch.batching_max_wait_time_minutes = Some(number()?);
            }
            "can_optimistically_merge" => patch.can_optimistically_merge = Some(yes()?),
            "pending_failure_depth" => patch.pending_failure_depth = Some(number()?),
            "optimization_mode" => {
                patch.optimization_mode = Some(OptimizationMode::parse(text).ok_or_else(wrong)?);
            }
            "not_ready_timeout_hours" => patch.not_ready_timeout_hours = Some(number()?),
            "required_statuses" => {
                let names: Vec<String> = text
                    .lines()
                    .map(str::trim)
                    .filter(|it| !it.is_empty())
                    .map(ToOwned::to_owned)
                    .collect();
                patch.delete_required_statuses = names.is_empty();
                patch.required_statuses = (!names.is_empty()).then_some(names);
            }
            _ => {}
        }
    }
    Ok(patch)
}

/// The page: with `proposed` also the difference, and the form that makes it so. `stale` says that
/// the form was filled in beside other settings than those of now.
pub(crate) fn page(
    place: &Place,
    queue: &Queue,
    proposed: Option<&Settings>,
    stale: bool,
    visitor: &Visitor,
) -> Page {
    let settings = &queue.header.settings;
    let now = all(settings);
    let mut sections = Vec::new();
    let hidden = || {
        vec![
            ("repo", place.repo.to_string()),
            ("branch", place.branch.to_string()),
            ("version", version(settings)),
        ]
    };
    if let Some(proposed) = proposed {
        let mut table = Table::new("difference", "What would change", &["Setting", "Now", "Then"])
            .empty("Nothing would change.");
        let mut change = hidden();
        for (old, new) in now.iter().zip(all(proposed)) {
            if old.value != new.value {
                table.push(
                    old.name,
                    vec![
                        Cell::text(old.label),
                        Cell::text(shown(&old.value)),
                        Cell::text(shown(&new.value)),
                    ],
                );
            }
            change.push((new.name, new.value));
        }
        change.push(("save", "yes".to_owned()));
        let any = !table.rows.is_empty();
        let mut section = Section::new("preview", "Preview");
        if stale {
            let text = "What you see here is your form beside the settings as they are now.";
            let title = "Somebody changed the settings after you had opened the form.";
            section = section.with(Block::notice(Tone::Warning, "warning", title, text));
        }
        section = section.with(Block::Table(table));
        if proposed.mode != settings.mode {
            let text = "The line is emptied in the old mode first; nothing new enters meanwhile.";
            section =
                section.with(Block::notice(Tone::Warning, "switch", "This switches modes.", text));
        }
        section = warned(section, proposed);
        if any && visitor.may_send(Scope::QueueAdmin) {
            section = section.with(Block::Forms(vec![Form {
                id: "save".to_owned(),
                action: format!("/{}/queue/settings", place.org),
                post: true,
                hidden: change,
                button: "Save these changes".to_owned(),
                ..Form::default()
            }]));
        }
        sections.push(section);
    }
    if proposed.is_none() && !settings.warnings().is_empty() {
        sections.push(warned(Section::new("warnings", "Warnings"), settings));
    }
    let values = proposed.map_or_else(|| all(settings), all);
    if visitor.may_send(Scope::QueueAdmin) {
        let field = |one: Setting| {
            let lines = one.options == ["lines"];
            let number = one.options.is_empty();
            Field {
                name: one.name,
                label: one.label.to_owned(),
                kind: if lines {
                    "lines"
                } else if number {
                    "number"
                } else {
                    "select"
                },
                value: one.value,
                options: if lines {
                    vec![]
                } else {
                    one.options.iter().map(|it| ((*it).to_owned(), (*it).to_owned())).collect()
                },
                hint: one.hint.to_owned(),
                required: number,
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
                .note("nothing is saved before the preview")
                .with(Block::Forms(vec![form])),
        );
    } else {
        let mut table =
            Table::new("settings", "Settings of the queue", &["Setting", "Value", "What it does"]);
        for one in now {
            let value = if one.value.is_empty() { "–".to_owned() } else { one.value };
            table.push(
                one.name,
                vec![Cell::text(one.label), Cell::text(plain(&value, 500)), Cell::text(one.hint)],
            );
        }
        sections.push(Section::new("settings-part", "Settings").with(Block::Table(table)));
    }
    Page {
        title: format!("Settings: {}", place.name()),
        heading: "Settings".to_owned(),
        above: above(place),
        menu: place.menu("queue/settings"),
        sections,
        curl: place.curl("updateQueue", ",\"concurrency\":3"),
        ..Page::default()
    }
}
