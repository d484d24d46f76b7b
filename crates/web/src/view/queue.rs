//! The list of a queue: the state of each pull request, its reason, and since when.

use std::collections::BTreeMap;

use signalbox_domain::ids::{PrNumber, RunId};
use signalbox_domain::queue::{
    Culprit, EntryState, EntryView, Estimate, Exit, HostTroubleKind, Mode, Part, PrState, Priority,
    Queue, QueueState, QueueView, TestRun, WaitReason,
};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_services::EntrySnapshot;
use signalbox_wording::{Named, Tone, frozen, wait};

use super::{QueueAddress, ROWS, actions, exits};
use crate::model::{Block, Cell, Field, Form, Page, Section, Table, Tile};
use crate::text::{ago, elsewhere, lasting, plain, quoted, sentence, span};
use crate::visitor::Visitor;

/// The data of the page.
pub(crate) struct Seen<'a> {
    pub(crate) place: &'a QueueAddress,
    pub(crate) view: &'a QueueView<'a>,
    pub(crate) shown: &'a Shown<'a>,
    /// The estimates of shown pull requests in the line, and of the last one in the line.
    pub(crate) estimates: &'a BTreeMap<PrNumber, Estimate>,
    /// The median duration of earlier runs.
    pub(crate) usual: Option<Span>,
    /// The pull requests that left last, newest first.
    pub(crate) left: &'a [EntrySnapshot],
    pub(crate) visitor: &'a Visitor,
    pub(crate) now: Timestamp,
}

/// Which pull requests are listed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// The id of a stage; empty for all.
    pub(crate) stage: String,
    /// A part of the name of the author, in any case; empty for all.
    pub(crate) author: String,
    /// How many of them come before the page.
    pub(crate) after: usize,
}

impl Filter {
    const fn is_used(&self) -> bool {
        !self.stage.is_empty() || !self.author.is_empty()
    }

    fn admits(&self, entry: &EntryView<'_>) -> bool {
        let author = || entry.entry.pull_request.author.to_lowercase();
        (self.stage.is_empty() || stage(entry).heading().0 == self.stage)
            && (self.author.is_empty() || author().contains(&self.author.to_lowercase()))
    }
}

/// The pull requests on a page.
pub(crate) struct Shown<'a> {
    filter: Filter,
    pub(crate) entries: Vec<&'a EntryView<'a>>,
    /// How many the filter admits.
    all: usize,
}

impl<'a> Shown<'a> {
    /// The pull requests of a queue that a filter admits, in queue order.
    pub(crate) fn of(view: &'a QueueView<'a>, filter: Filter) -> Self {
        let admitted = || view.entries.iter().filter(|it| filter.admits(it));
        let entries = admitted().skip(filter.after).take(ROWS).collect();
        Self { all: admitted().count(), entries, filter }
    }
}

/// The fewest pull requests for which there are filters.
const MANY: usize = 10;

const COLUMNS: [&str; 6] =
    ["#Position", "Pull request", "State", "Test run", "Merged in", "In queue"];

/// A pull request's title with its number and author.
pub(crate) fn titled(entry: &signalbox_domain::queue::Entry, place: &QueueAddress) -> Cell {
    let title = plain(&entry.pull_request.title, 200);
    let by = plain(&entry.pull_request.author, 80);
    Cell::text(format!("#{} {title}", entry.pr)).link(place.pr(entry.pr)).sub(format!("by {by}"))
}

/// An estimated time from now. It is zero when tests take longer than usual.
fn about(time: Span) -> String {
    if time < Span::seconds(1) { "soon".to_owned() } else { format!("about {}", span(time)) }
}

/// The estimate until its merge.
pub(crate) fn due(estimate: Option<&Estimate>) -> Cell {
    match estimate.map(|it| (it.time, it)) {
        Some((Some(time), it)) => {
            let runs = it.runs;
            Cell::text(about(time)).sub(format!(
                "{} ahead, median of {runs} {}",
                it.ahead.len(),
                if runs == 1 { "run" } else { "runs" }
            ))
        }
        Some((None, _)) | None => Cell::text("unknown"),
    }
}

/// The state of a pull request and why it waits. What is not tested yet is named by its reason.
fn state(entry: &EntryView<'_>) -> Cell {
    let Some(waits) = &entry.waits else { return Cell::named(&entry.state) };
    let wait = wait(waits);
    let cell = match stage(entry) {
        Stage::Merging | Stage::Waiting | Stage::NotReady => Cell::word(wait.word),
        Stage::Testing | Stage::Passed | Stage::Doubtful => Cell::named(&entry.state),
    };
    cell.sub(plain(&sentence(&wait.sentence), 300))
}

/// The test run of a pull request: how long it takes, and what it tests. `before` is the run of the row
/// above.
fn tested(seen: &Seen<'_>, entry: &EntryView<'_>, before: Option<RunId>) -> Cell {
    let Some(run) = entry.entry.state.run().and_then(|run| seen.view.queue.run(run)) else {
        return Cell::default();
    };
    if before == Some(run.id) {
        return Cell::default().sub("in the same run");
    }
    let what = contents(seen, run);
    let Some(end) = run.ended_at else {
        let usual = seen.usual.map_or_else(String::new, |it| format!(", usually {}", span(it)));
        let progress = Some(run.progress()).filter(|(_, of)| *of > 0);
        let lasting = span(seen.now.since(run.started_at));
        let overdue = run.deadline.is_some_and(|end| end < seen.now);
        let mark = overdue.then_some("overdue");
        return Cell { progress, mark, ..Cell::text(format!("running {lasting}{usual}")) }
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
    let due = match seen.estimates.get(&entry.entry.pr) {
        Some(estimate) => Cell { sub: None, ..due(Some(estimate)) },
        None => Cell::text("–"),
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
fn listed(seen: &Seen<'_>) -> Table {
    let mut table = Table::new("line", "Pull requests of the queue", &COLUMNS);
    table.dense = true;
    let shown = seen.shown;
    let mut before = None;
    for entry in &shown.entries {
        let run = entry.entry.state.run();
        table.push(entry.entry.pr, row(seen, entry, before.filter(|_| run.is_some())));
        let is_group = |run: &TestRun| run.group.len() > 1;
        if let Some(row) = table.rows.last_mut()
            && run.and_then(|run| seen.view.queue.run(run)).is_some_and(is_group)
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
        "No pull request of the queue matches."
    } else {
        "No pull request is in the queue."
    })
}

/// The form that filters the list.
fn filters(seen: &Seen<'_>) -> Form {
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

/// The order in which the pull requests of the queue are shown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Merging,
    Testing,
    Passed,
    Doubtful,
    Waiting,
    NotReady,
}

fn stage(entry: &EntryView<'_>) -> Stage {
    if entry.waits == Some(WaitReason::Landing) {
        return Stage::Merging;
    }
    match entry.state {
        PrState::Testing => Stage::Testing,
        PrState::TestsPassed => Stage::Passed,
        PrState::PendingFailure => Stage::Doubtful,
        PrState::Pending => Stage::Waiting,
        PrState::NotReady | PrState::Merged | PrState::Failed | PrState::Cancelled => {
            Stage::NotReady
        }
    }
}

impl Stage {
    const ALL: [Self; 6] =
        [Self::Merging, Self::Testing, Self::Passed, Self::Doubtful, Self::Waiting, Self::NotReady];

    const fn heading(self) -> (&'static str, &'static str) {
        match self {
            Self::Merging => ("merging", "Merging now"),
            Self::Testing => ("testing", "Testing"),
            Self::Passed => ("passed", "Passed, waiting to merge"),
            Self::Doubtful => ("doubtful", "Pending failure"),
            Self::Waiting => ("waiting", "Waiting to be tested"),
            Self::NotReady => ("not-ready", "Waiting to enter"),
        }
    }
}

/// What the number of test slots is.
fn slots_note(queue: &Queue) -> &'static str {
    if queue.slots_of_line().1 < queue.header.settings.concurrency {
        "test slots in use, reduced after failures"
    } else {
        "test slots in use"
    }
}

/// The page.
pub(crate) fn page(seen: &Seen<'_>) -> Page {
    let (place, queue) = (seen.place, seen.view.queue);
    let header = &queue.header;
    let name = header.state.name();
    let mut page = Page {
        title: place.name(),
        above: vec![Cell::text("Queues").link("/")],
        beside: vec![Cell::named(&name), mode(queue.mode())],
        menu: place.menu("queue"),
        topic: format!("queue:{}", header.id),
        version: header.sequence,
        curl: place.curl("getQueue", ""),
        ..Page::default()
    };
    let count = |wanted: Stage| seen.view.entries.iter().filter(|it| stage(it) == wanted).count();
    let line = seen.view.entries.iter().filter(|it| it.position.is_some()).count();
    let (used, limit) = queue.slots_of_line();
    page.announce = format!(
        "{line} in the line, {} testing, {} waiting",
        count(Stage::Testing),
        count(Stage::Waiting)
    );
    let mut top = Section::plain("now");
    for notice in notices(seen) {
        top = top.with(notice);
    }
    let clears = seen.estimates.values().filter_map(|it| it.time).max();
    let mut numbers = vec![
        tile("in the line", line.to_string(), not_ready(count(Stage::NotReady))),
        tile(slots_note(queue), format!("{used} of {limit}"), String::new()),
        tile("passed, waiting to merge", count(Stage::Passed).to_string(), String::new()),
    ];
    if let Some(clears) = clears {
        numbers.push(tile(
            "until the line is empty",
            about(clears),
            "if all tests pass".to_owned(),
        ));
    }
    top = top.with(Block::Summary(numbers));
    let shown = seen.shown;
    if seen.view.entries.len() > MANY || shown.filter.is_used() {
        top = top.with(Block::Forms(vec![filters(seen)]));
    }
    page.sections.push(top);
    if shown.all > 0 || shown.filter.is_used() {
        let mut section = Section::plain("entries");
        if shown.entries.len() < shown.all {
            let first = shown.filter.after + 1;
            let last = shown.filter.after + shown.entries.len();
            section = section.with(Block::Text(format!("{first} to {last} of {}", shown.all)));
        }
        page.sections.push(section.with(Block::Table(listed(seen))));
    }
    let doing = actions::of_queue(place, header, seen.visitor);
    if !doing.is_empty() {
        page.sections.push(Section::new("do", "Actions").with(Block::Forms(doing)));
    }
    page.sections.push(left(seen));
    page
}

fn not_ready(count: usize) -> String {
    if count == 0 { String::new() } else { format!("and {count} waiting to enter") }
}

fn tile(label: &'static str, value: String, note: String) -> Tile {
    Tile { label, value, note, href: None }
}

fn mode(mode: Mode) -> Cell {
    Cell::text(match mode {
        Mode::Single => "one line",
        Mode::Parallel => "parallel lanes",
    })
}

fn notices(seen: &Seen<'_>) -> Vec<Block> {
    let queue = seen.view.queue;
    let header = &queue.header;
    let mut notices = Vec::new();
    let word = header.state.name().named();
    match &header.state {
        QueueState::Running => {}
        QueueState::Paused { by, reason, .. } => {
            let by = plain(&by.to_string(), 100);
            let why = reason
                .as_deref()
                .map_or_else(|| "No reason was given.".to_owned(), |it| sentence(&plain(it, 500)));
            notices.push(Block::notice(
                Tone::Warning,
                word.icon,
                &format!("Paused by {by}."),
                &why,
            ));
        }
        QueueState::Draining | QueueState::SwitchingModes { .. } => {
            let text = sentence(word.sentence);
            notices.push(Block::notice(
                Tone::Warning,
                word.icon,
                &format!("{}.", word.label),
                &text,
            ));
        }
    }
    if let Some(freeze) = &header.freeze.in_force {
        let title = sentence(&frozen(freeze.until, None));
        let reason = freeze.reason.as_deref().map(|reason| sentence(&plain(reason, 500)));
        let tested = if header.settings.test_while_frozen {
            "Pull requests are tested, and merge when the freeze ends. Urgent pull requests merge now."
        } else {
            "Until the freeze ends, only urgent pull requests are tested and merged."
        };
        let text = reason.into_iter().chain([tested.to_owned()]).collect::<Vec<_>>().join(" ");
        notices.push(Block::notice(Tone::Warning, "pause", &title, &text));
    }
    if let Some(since) = header.host.unreachable_since {
        let lasted = span(seen.now.since(since));
        let trouble = header.host.trouble.as_ref();
        let title = match trouble.map_or(HostTroubleKind::Unreachable, |trouble| trouble.kind) {
            HostTroubleKind::Unreachable => "The git host does not respond.",
            HostTroubleKind::AccessDenied => "The git host denies access.",
            HostTroubleKind::CredentialRejected => "The git host rejects this server's credential.",
        };
        let detail = trouble.map_or("", |trouble| trouble.words.as_str());
        let text = match detail {
            "" => format!("Nothing is tested or merged. This has lasted {lasted}."),
            detail => format!("Nothing is tested or merged. This has lasted {lasted}: {detail}"),
        };
        notices.push(Block::notice(Tone::Bad, "warning", title, &text));
    }
    if header.target.missing {
        let text = "Nothing can be tested or merged until it exists.";
        notices.push(Block::notice(
            Tone::Bad,
            "warning",
            "The target branch does not exist.",
            text,
        ));
    }
    let broken = seen.left.iter().find(|it| {
        matches!(
            &it.entry.state,
            EntryState::Ended(Exit::Failed { culprit: Culprit::TargetBranch, .. })
        )
    });
    let passed_since = seen.left.iter().any(|it| {
        it.state == PrState::Merged
            && broken
                .is_some_and(|broken| it.entry.state_changed_at > broken.entry.state_changed_at)
    });
    if let (Some(broken), false) = (broken, passed_since) {
        let at = ago(broken.entry.state_changed_at, seen.now).text;
        let text =
            format!("The tests of #{} failed {at}, and also fail without it.", broken.entry.pr);
        notices.push(Block::notice(Tone::Bad, "warning", "The target branch is broken.", &text));
    }
    if queue.live() == 0 && notices.is_empty() {
        let last = seen.left.iter().find(|it| it.state == PrState::Merged);
        let text = last.map_or_else(
            || "No pull request merged in the last day.".to_owned(),
            |it| {
                format!(
                    "The last merge was #{}, {}.",
                    it.entry.pr,
                    ago(it.entry.state_changed_at, seen.now).text
                )
            },
        );
        notices.push(Block::notice(Tone::Good, "check", "The queue is running and empty.", &text));
    }
    notices
}

/// What a run tests: a single pull request or a batch, and what it is built on.
fn contents(seen: &Seen<'_>, run: &TestRun) -> String {
    let first = run.group.first().and_then(|first| seen.view.queue.entry(first.entry));
    let part = first.and_then(|first| first.part.as_ref());
    let is_alone = part.is_some_and(Part::is_alone);
    let kind = match (run.bisection, run.group.len()) {
        (true, _) if is_alone => "failed behind others, ".to_owned(),
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

fn left(seen: &Seen<'_>) -> Section {
    let mut table = Table::new(
        "left",
        "Pull requests that left last",
        &["Pull request", "State", "Reason", "When"],
    )
    .empty("No pull request left the queue in the last day.");
    for it in seen.left.iter().take(10) {
        let EntryState::Ended(exit) = &it.entry.state else { continue };
        let reason = Cell::word(exits::word(exit)).sub(match exit {
            Exit::Failed { .. } => plain(&exits::sentence_of(exit), 240),
            Exit::Merged { .. } | Exit::Cancelled { .. } => String::new(),
        });
        table.push(
            it.entry.pr,
            vec![
                titled(&it.entry, seen.place),
                Cell::named(&it.state),
                reason,
                ago(it.entry.state_changed_at, seen.now),
            ],
        );
    }
    Section::new("recent", "Recently left").with(Block::Table(table))
}

/// A link to a page elsewhere, if there is one.
pub(crate) fn outside(text: &str, address: &str) -> Cell {
    Cell::text(text).maybe_link(elsewhere(address))
}
