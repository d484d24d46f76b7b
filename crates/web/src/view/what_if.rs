//! What-if: the last days of a queue, simulated with other settings.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{SETTINGS, Settings};
use signalbox_simulator::{Example, Finding, Interval, PATIENCE, Replay, is_simulated};
use signalbox_wording::{Tone, model};

use super::QueueAddress;
use crate::model::{Block, Cell, Section, Table};
use crate::text::sentence;

/// The columns of the comparison.
const HEADS: [&str; 7] = [
    "Settings",
    "#Median (minutes)",
    "#P95 (minutes)",
    "#Median, P95 vs oracle",
    "#Test runs for each pull request",
    "#Cancelled runs",
    "#False ejections",
];

/// The section; instead of a simulation, why there is none.
pub(crate) fn section(
    place: &QueueAddress,
    now: &Settings,
    proposed: &Settings,
    simulated: &Result<Replay, String>,
) -> Section {
    let section = Section::new("what-if", "What if");
    let replay = match simulated {
        Ok(replay) => replay,
        Err(reason) => {
            let title = "This queue could not be simulated.";
            let notice = Block::notice(Tone::Warning, "warning", title, &sentence(reason));
            return section.with(notice);
        }
    };
    let (study, (from, until)) = (&replay.study, replay.period);
    let of = match study.pull_requests {
        1 => "1 submission".to_owned(),
        count => format!("{count} submissions"),
    };
    let mut note = format!("{of} from {from} to {until}, {} seeds, 95 % intervals", study.seeds);
    if replay.cancelled > 0 {
        note = format!("{note}; not simulated: {} cancelled", replay.cancelled);
    }
    let mut table = Table::new("simulation", "Recorded and simulated", &HEADS);
    table.push("recorded", recorded(replay));
    for finding in &study.findings {
        let (id, name) = if study.is_recorded(finding) {
            ("now", "present settings, simulated")
        } else {
            ("changed", "your form, simulated")
        };
        table.push(id, row(name, finding));
    }
    let section = section.note(note).with(Block::Table(table));
    let model = model(replay.fits() == Some(true));
    let mut text = format!("{model} {}", advice(replay));
    let ignored = not_simulated(now, proposed);
    if !ignored.is_empty() {
        text = format!("{text} Not simulated: {}.", ignored.join(", "));
    }
    let section = section.with(Block::Text(text));
    examples(section, place, &replay.examples)
}

fn recorded(replay: &Replay) -> Vec<Cell> {
    let mut cells = vec![
        Cell::text("recorded"),
        Cell::number(interval(replay.median, 0, 1.0)),
        Cell::number(format!("{:.0}", replay.p95)),
    ];
    cells.resize_with(HEADS.len(), || Cell::number("–"));
    cells
}

fn row(name: &str, finding: &Finding) -> Vec<Cell> {
    vec![
        Cell::text(name),
        Cell::number(interval(finding.median, 0, 1.0)),
        Cell::number(interval(finding.p95, 0, 1.0)),
        Cell::number(by_oracle(finding)),
        Cell::number(interval(finding.runs, 2, 1.0)),
        Cell::number(format!("{} %", interval(finding.cancelled, 1, 100.0))),
        Cell::number(format!("{} %", interval(finding.false_ejections, 2, 100.0))),
    ]
}

/// The median and the P95, divided by those of an oracle.
fn by_oracle(finding: &Finding) -> String {
    format!("{:.2}, {:.2}", finding.median_by_oracle.mean, finding.p95_by_oracle.mean)
}

fn interval(interval: Interval, digits: usize, times: f64) -> String {
    let Interval { mean, low, high } = interval;
    signalbox_wording::interval([mean, low, high].map(|it| it * times), digits)
}

/// Which settings are advised.
fn advice(replay: &Replay) -> String {
    let study = &replay.study;
    let Some(advised) = study.advice().filter(|_| study.findings.len() > 1) else {
        return "The changes in your form make no difference in the simulation.".to_owned();
    };
    let which = if study.is_recorded(advised) { "the present settings" } else { "your form" };
    format!(
        "Recommended: {which}, with the fewest test runs among the settings whose median is at most {PATIENCE} times the lowest."
    )
}

/// The changed settings that the simulation does not have, by title.
fn not_simulated(now: &Settings, proposed: &Settings) -> Vec<&'static str> {
    let ignored = SETTINGS.iter().filter(|spec| !is_simulated(spec));
    let changed = ignored.filter(|spec| spec.value(now) != spec.value(proposed));
    changed.map(|spec| spec.title).collect()
}

fn examples(section: Section, place: &QueueAddress, examples: &[Example]) -> Section {
    if examples.is_empty() {
        return section;
    }
    let heads = ["Pull request", "#Minutes with the present settings", "#Minutes with your form"];
    let mut table = Table::new("examples", "Pull requests that would have changed most", &heads);
    table.quiet_caption = false;
    for (row, Example { number, before, after }) in examples.iter().enumerate() {
        let pr = PrNumber(*number);
        table.push(
            row,
            vec![
                Cell::text(format!("#{number}")).link(place.pr(pr)),
                Cell::number(format!("{before:.0}")),
                Cell::number(format!("{after:.0}")),
            ],
        );
    }
    section.with(Block::Table(table))
}
