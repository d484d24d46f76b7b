//! The list of a queue: which pull requests are shown, and their rows.

use std::collections::{BTreeMap, BTreeSet};

use signalbox_domain::ids::{PrNumber, RunId};
use signalbox_domain::queue::{
    Entry, EntryView, LinePosition, Mode, Part, Priority, Queue, TestRun, view_entries,
    view_landing,
};
use signalbox_domain::time::Span;
use signalbox_wording::wait;

use super::ROWS;
use super::health::percentile;
use super::queue::{Seen, Stage, due, titled};
use crate::model::{Cell, Field, Form, Table};
use crate::text::{lasting, plain, quoted, sentence, span};

/// Which pull requests are listed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// The id of a stage; empty for all.
    stage: String,
    /// A part of the name of the author, in any case; empty for all.
    author: String,
    /// How many of them come before the page.
    pub(super) after: usize,
}

impl Filter {
    /// A filter for pull requests from that place in the list on. An unknown stage is none.
    pub(crate) fn new(stage: &str, author: &str, after: usize) -> Self {
        let is_known = Stage::ALL.iter().any(|it| it.heading().0 == stage);
        let stage = if is_known { stage } else { "" };
        Self { stage: stage.to_owned(), author: author.trim().to_owned(), after }
    }

    pub(super) const fn is_used(&self) -> bool {
        !self.stage.is_empty() || !self.author.is_empty()
    }

    fn admits(&self, entry: &Entry, stage: Stage) -> bool {
        let author = || entry.pull_request.author.to_lowercase();
        (self.stage.is_empty() || stage.heading().0 == self.stage)
            && (self.author.is_empty() || author().contains(&self.author.to_lowercase()))
    }
}

/// The pull requests on a page. Why they wait is determined only for these, and for the entries that
/// are being merged.
pub(crate) struct Shown<'a> {
    pub(super) filter: Filter,
    pub(crate) entries: Vec<EntryView<'a>>,
    /// How many the filter admits.
    pub(super) all: usize,
    /// How many of the queue are in the line.
    pub(super) in_line: usize,
    /// The last one in the line; `None` in parallel lanes, where it is not the last one to merge.
    pub(crate) last: Option<EntryView<'a>>,
    stages: BTreeMap<Stage, usize>,
}

impl<'a> Shown<'a> {
    /// The pull requests of a queue that a filter admits, in queue order.
    pub(crate) fn of(queue: &'a Queue, mut filter: Filter) -> Self {
        let live: Vec<&Entry> = queue.entries_in_order().collect();
        let merging: BTreeSet<PrNumber> =
            view_landing(queue).iter().map(|it| it.entry.pr).collect();
        let (mut admitted, mut in_line, mut stages) = (Vec::new(), 0, BTreeMap::new());
        for entry in &live {
            let stage = Stage::of(entry.state.name(), merging.contains(&entry.pr));
            *stages.entry(stage).or_default() += 1;
            in_line += usize::from(entry.place != LinePosition::Outside);
            if filter.admits(entry, stage) {
                admitted.push(entry.pr);
            }
        }
        let all = admitted.len();
        // The queue may have become shorter than the page that was left.
        filter.after = filter.after.min(all.saturating_sub(1) / ROWS * ROWS);
        let page: BTreeSet<PrNumber> = admitted.into_iter().skip(filter.after).take(ROWS).collect();
        let last = live.iter().rfind(|it| it.place != LinePosition::Outside);
        let last = last.filter(|_| queue.mode() == Mode::Single).map(|it| it.pr);
        let mut entries = view_entries(queue, &page.iter().copied().chain(last).collect());
        let last = last.and_then(|last| entries.iter().find(|it| it.entry.pr == last).cloned());
        entries.retain(|it| page.contains(&it.entry.pr));
        Self { filter, entries, all, in_line, last, stages }
    }

    /// How many of the queue are in a stage.
    pub(super) fn count(&self, stage: Stage) -> usize {
        self.stages.get(&stage).copied().unwrap_or_default()
    }
}

/// The fewest durations of which one can be called usual.
const ENOUGH: usize = 5;

/// The median and the longest of these durations, if there are enough.
pub(crate) fn usual(durations: &[Span]) -> Option<(Span, Span)> {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let enough = Some(sorted).filter(|sorted| sorted.len() >= ENOUGH)?;
    Some((percentile(&enough, 50)?, *enough.last()?))
}

/// With more pull requests than that there are filters.
pub(super) const MANY: usize = 10;

const COLUMNS: [&str; 6] =
    ["#Position", "Pull request", "State", "Test run", "Merges in", "In queue"];

/// The state of a pull request and why it waits. What is not tested yet is named by its reason.
fn state(entry: &EntryView<'_>) -> Cell {
    let Some(waits) = &entry.waits else { return Cell::named(&entry.state) };
    let wait = wait(waits);
    let cell = match Stage::of_view(entry) {
        Stage::Merging | Stage::Waiting | Stage::NotReady => Cell::word(wait.word),
        Stage::Testing | Stage::Passed | Stage::Doubtful => Cell::named(&entry.state),
    };
    cell.sub(plain(&sentence(&wait.sentence), 300))
}

/// The test run of a pull request: how long it takes, and what it tests. `before` is the run of the row
/// above.
fn tested(seen: &Seen<'_>, entry: &EntryView<'_>, before: Option<RunId>) -> Cell {
    let Some(run) = entry.entry.state.run().and_then(|run| seen.queue.run(run)) else {
        return Cell::default();
    };
    if before == Some(run.id) {
        return Cell::default().sub("in the same run");
    }
    let what = contents(seen, run);
    let Some(end) = run.ended_at else {
        // Parts of batches are not among the earlier runs.
        let usual = seen.usual.filter(|_| !run.bisection);
        let median = |(median, _)| format!(", usually {}", span(median));
        let usually = usual.map_or_else(String::new, median);
        let progress = Some(run.progress()).filter(|(_, of)| *of > 0);
        let running = seen.now.since(run.started_at);
        let mark = if run.deadline.is_some_and(|end| end < seen.now) {
            Some("overdue")
        } else {
            usual.filter(|(_, longest)| running > *longest).map(|_| "longer than usual")
        };
        let lasting = span(running);
        return Cell { progress, mark, ..Cell::text(format!("running {lasting}{usually}")) }
            .sub(what);
    };
    Cell::text(format!("took {}", span(end.since(run.started_at)))).sub(what)
}

fn row(seen: &Seen<'_>, entry: &EntryView<'_>, before: Option<RunId>) -> Vec<Cell> {
    let place = entry.position.map_or_else(|| "–".to_owned(), |it| it.to_string());
    let mut title = titled(entry.entry, seen.place);
    let priority = entry.entry.priority.name();
    if priority != Priority::DEFAULT_NAME {
        title.sub = title.sub.map(|by| format!("{by}, priority {priority}"));
    }
    let due = match entry.position {
        Some(_) => Cell { sub: None, ..due(seen.estimates.get(&entry.entry.pr)) },
        None => Cell { tone: "quiet", ..Cell::text("–") },
    };
    vec![
        Cell::number(place),
        title,
        state(entry),
        tested(seen, entry, before),
        due,
        lasting(entry.entry.submitted_at, seen.now),
    ]
}

/// The rows of the shown pull requests. A rail joins those of one run.
pub(super) fn listed(seen: &Seen<'_>) -> Table {
    let mut table = Table::new("line", "Pull requests of the queue", &COLUMNS);
    table.dense = true;
    let shown = seen.shown;
    let mut before = None;
    for entry in &shown.entries {
        let run = entry.entry.state.run();
        table.push(entry.entry.pr, row(seen, entry, before.filter(|_| run.is_some())));
        let is_group = |run: &TestRun| run.group.len() > 1;
        if let Some(row) = table.rows.last_mut()
            && run.and_then(|run| seen.queue.run(run)).is_some_and(is_group)
        {
            row.class = if before == run { "rail more" } else { "rail" };
        }
        before = run;
    }
    let Filter { stage, author, after } = &shown.filter;
    let end = after + shown.entries.len();
    if end < shown.all {
        let (path, author) = (seen.place.path("queue"), quoted(author));
        table.more = Some(format!("{path}&stage={}&author={author}&after={end}", quoted(stage)));
    }
    table.empty(if shown.filter.is_used() {
        "No pull request in the queue matches."
    } else {
        "No pull request is in the queue."
    })
}

/// The form that filters the list.
pub(super) fn filters(seen: &Seen<'_>) -> Form {
    let filter = &seen.shown.filter;
    let stages = Stage::ALL.map(Stage::heading).map(|(id, name)| (id.to_owned(), name.to_owned()));
    let options = [(String::new(), "any".to_owned())].into_iter().chain(stages).collect();
    let field = |name, label: &str, kind, value: &str, options| Field {
        name,
        label: label.to_owned(),
        kind,
        value: value.to_owned(),
        options,
        ..Field::default()
    };
    Form {
        id: "filters".to_owned(),
        action: format!("/{}/queue", seen.place.org),
        hidden: vec![
            ("repo", seen.place.repo.to_string()),
            ("branch", seen.place.branch.to_string()),
        ],
        fields: vec![
            field("stage", "State", "select", &filter.stage, options),
            field("author", "Author", "search", &filter.author, Vec::new()),
        ],
        button: "Filter".to_owned(),
        ..Form::default()
    }
}

/// What a run tests: a single pull request or a batch, and what it is built on.
fn contents(seen: &Seen<'_>, run: &TestRun) -> String {
    let first = run.group.first().and_then(|first| seen.queue.entry(first.entry));
    let part = first.and_then(|first| first.part.as_ref());
    let is_alone = part.is_some_and(Part::is_alone);
    let kind = match (run.bisection, run.group.len()) {
        (true, _) if is_alone => "retested alone after failing behind others, ".to_owned(),
        (true, _) => "part of a failed batch, ".to_owned(),
        (false, 1) => String::new(),
        (false, many) => format!("batch of {many}, "),
    };
    let on = if run.ahead.is_empty() {
        "on the target branch".to_owned()
    } else {
        // The nearest ones: those before them are contained in these.
        let named: Vec<String> =
            run.ahead.iter().rev().take(3).map(|(_, pr)| format!("#{pr}")).collect();
        let more = run.ahead.len().saturating_sub(3);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("on top of {}{more}", named.join(", "))
    };
    format!("{kind}{on}")
}
