//! Where the time of a pull request in the queue went: its states, its test runs and their checks.

use signalbox_domain::queue::{Entry, PrState, RunStatus, Step, TestRun};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_wording::Named;

use crate::model::{Block, Cell, Section, Table};
use crate::svg::{Bar, spans};
use crate::text::{plain, span};

/// The most states and runs that are drawn.
const MOST: usize = 100;
/// The most runs that get a row, the newest ones.
const RUNS: usize = 8;
/// How long a mark for the result of a check is, as a share of the whole time.
const MARK: i64 = 200;

/// The time that is drawn.
struct Drawn {
    start: Timestamp,
    end: Timestamp,
}

impl Drawn {
    fn at(&self, time: Timestamp) -> Span {
        time.min(self.end).since(self.start.min(time))
    }

    fn bar(&self, from: Timestamp, to: Timestamp, class: &'static str, what: &str) -> Bar {
        let (from, to) = (from.max(self.start), to.min(self.end));
        let title = format!("{what}: {}", span(to.since(from.min(to))));
        Bar { from: self.at(from), to: self.at(to), class, what: what.to_owned(), title }
    }
}

/// How a state is drawn; `None` for one that ends the stay.
const fn drawn_as(state: PrState) -> Option<&'static str> {
    match state {
        PrState::NotReady => Some("quiet"),
        PrState::Pending => Some("c2"),
        PrState::Testing => Some("c1"),
        PrState::PendingFailure => Some("c3"),
        PrState::TestsPassed => Some("good"),
        PrState::Merged | PrState::Failed | PrState::Cancelled => None,
    }
}

const LEGEND: [(&str, &str); 9] = [
    ("quiet", "waiting to enter"),
    ("c2", "waiting to be tested"),
    ("c1", "testing"),
    ("c3", "pending failure"),
    ("good", "passed"),
    ("bad", "failed"),
    ("pale", "building the candidate, or cancelled"),
    ("mark-good", "a check passed"),
    ("mark-bad", "a check failed"),
];

/// The section; `None` if no time has passed. `steps` has the newest step first.
pub(super) fn section(entry: &Entry, steps: &[Step], now: Timestamp) -> Option<Section> {
    // Those before it belong to earlier submissions.
    let submitted = steps.iter().position(|step| step.terms.is_some());
    let own = submitted.map_or(steps.len(), |at| at + 1).min(MOST);
    let steps: Vec<&Step> = steps.iter().take(own).rev().collect();
    let end = if entry.is_live() { now } else { entry.state_changed_at };
    let drawn = Drawn { start: steps.first()?.at, end };
    let total = drawn.at(end);
    if total < Span::seconds(1) {
        return None;
    }
    let states = steps.iter().enumerate().filter_map(|(at, step)| {
        let until = steps.get(at + 1).map_or(end, |next| next.at);
        Some(drawn.bar(step.at, until, drawn_as(step.state)?, step.state.named().label))
    });
    let mut runs: Vec<&TestRun> = Vec::new();
    for run in steps.iter().filter_map(|step| step.run.as_ref()) {
        if runs.iter().all(|known| known.id != run.id) {
            runs.push(run);
        }
    }
    let skipped = runs.len().saturating_sub(RUNS);
    let of_runs = runs.into_iter().skip(skipped).map(|run| of_run(&drawn, run));
    let states = ("State".to_owned(), states.collect());
    let rows: Vec<(String, Vec<Bar>)> = std::iter::once(states).chain(of_runs).collect();
    let heads = ["Row", "Event", "Started after", "Duration"];
    let mut table = Table::new("time-table", "States, test runs and checks", &heads);
    for (name, bars) in &rows {
        for bar in bars {
            let took = span(Span::from_micros(bar.to.micros() - bar.from.micros()));
            let took = if bar.class.starts_with("mark") { "–".to_owned() } else { took };
            let texts = [name.clone(), bar.what.clone(), span(bar.from), took];
            table.push(table.rows.len(), texts.map(Cell::text).to_vec());
        }
    }
    let mut chart = spans("time", "Where the time went", &rows, total);
    let is_drawn = |class: &str| rows.iter().flat_map(|(_, bars)| bars).any(|it| it.class == class);
    let legend = LEGEND.into_iter().filter(|(class, _)| is_drawn(class));
    chart.legend = legend.map(|(class, words)| (class, words.to_owned())).collect();
    let section = Section::new("time-part", "Where the time went");
    Some(section.with(Block::Chart(Box::new(chart), table)))
}

/// The row of a run: the building of its candidate, its tests, and when each check ended.
fn of_run(drawn: &Drawn, run: &TestRun) -> (String, Vec<Bar>) {
    let end = run.ended_at.unwrap_or(drawn.end);
    let built = run.built_at.unwrap_or(end).min(end);
    let class = match &run.status {
        RunStatus::Building | RunStatus::Testing => "c1",
        RunStatus::Passed => "good",
        RunStatus::Failed { .. } => "bad",
        RunStatus::Cancelled { .. } => "pale",
    };
    let mut bars = vec![drawn.bar(run.started_at, built, "pale", "Building")];
    if built < end {
        bars.push(drawn.bar(built, end, class, run.status.named().label));
    }
    let width = Span::from_micros(drawn.at(drawn.end).micros() / MARK);
    for check in &run.checks {
        let Some(conclusion) = check.conclusion else { continue };
        let class = if conclusion.is_success() { "mark-good" } else { "mark-bad" };
        let name = plain(&check.name, 80);
        let what = format!("{name}: {}", conclusion.named().label);
        let took = span(check.at.since(run.started_at.min(check.at)));
        let from = drawn.at(check.at);
        let to = Span::from_micros(from.micros().saturating_add(width.micros()));
        let title = format!("{what}, {took} after the start of the run");
        bars.push(Bar { from, to, class, what, title });
    }
    (format!("Run {}", run.number), bars)
}
