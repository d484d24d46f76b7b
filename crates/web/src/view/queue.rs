//! The list of a queue: the state of each pull request, its reason, and since when.

use std::collections::BTreeMap;

use signalbox_domain::ids::{PrNumber, RunId};
use signalbox_domain::queue::{
    Culprit, EntryState, EntryView, Estimate, Exit, HostTroubleKind, Mode, Part, PrState, Queue,
    QueueState, QueueView, TestRun, WaitReason,
};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_services::EntrySnapshot;
use signalbox_wording::{Named, Tone, frozen, wait};

use super::{QueueAddress, ROWS, actions, exits};
use crate::model::{Block, Cell, Page, Section, Table, Tile};
use crate::text::{ago, elsewhere, lasting, plain, sentence, span};
use crate::visitor::Visitor;

/// The data of the page.
pub(crate) struct Seen<'a> {
    pub(crate) place: &'a QueueAddress,
    pub(crate) view: &'a QueueView<'a>,
    /// The estimates of the shown pull requests in the line.
    pub(crate) estimates: &'a BTreeMap<PrNumber, Estimate>,
    /// The pull requests that left last, newest first.
    pub(crate) left: &'a [EntrySnapshot],
    pub(crate) visitor: &'a Visitor,
    /// How many waiting pull requests come before the shown ones.
    pub(crate) offset: usize,
    pub(crate) now: Timestamp,
}

const COLUMNS: [&str; 7] =
    ["#Position", "Pull request", "Priority", "State", "Why it waits", "Merged in", "In queue"];

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

fn why(waits: Option<&WaitReason>) -> Cell {
    waits.map_or_else(
        || Cell::text("–"),
        |waits| {
            let wait = wait(waits);
            Cell::word(wait.word).sub(plain(&sentence(&wait.sentence), 300))
        },
    )
}

fn row(seen: &Seen<'_>, entry: &EntryView<'_>) -> Vec<Cell> {
    let place = entry.position.map_or_else(|| "–".to_owned(), |it| it.to_string());
    let under_test = entry.run.filter(|_| entry.state == PrState::Testing);
    let progress = under_test.map(TestRun::progress).filter(|(_, of)| *of > 0);
    vec![
        Cell::number(place),
        titled(entry.entry, seen.place),
        Cell::text(entry.entry.priority.name()),
        Cell::named(&entry.state),
        Cell { progress, ..why(entry.waits.as_ref()) },
        due(seen.estimates.get(&entry.entry.pr)),
        lasting(entry.entry.submitted_at, seen.now),
    ]
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
fn slots_note(queue: &Queue) -> String {
    let most = queue.header.settings.concurrency;
    if queue.slots_of_line().1 < most {
        format!("test slots in use; failures reduced them from {most}")
    } else {
        "test slots in use".to_owned()
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
    top = top.with(Block::Tiles(vec![
        tile("In the line", line.to_string(), format!("{} not ready", count(Stage::NotReady))),
        tile("Testing", format!("{used} of {limit}"), slots_note(queue)),
        tile("Passed", count(Stage::Passed).to_string(), "waiting to merge".to_owned()),
        tile(
            "Line empty in",
            clears.map_or_else(|| "–".to_owned(), about),
            "if all tests pass".to_owned(),
        ),
    ]));
    page.sections.push(top);
    let mut shown = 0;
    for wanted in Stage::ALL {
        let (id, heading) = wanted.heading();
        let own: Vec<&EntryView<'_>> =
            seen.view.entries.iter().filter(|it| stage(it) == wanted).collect();
        if own.is_empty() {
            continue;
        }
        let mut section = Section::new(id, heading).note(format!("{}", own.len()));
        let offset = if wanted == Stage::Waiting { seen.offset } else { 0 };
        let room = ROWS.saturating_sub(shown);
        if wanted == Stage::Testing {
            for group in grouped(&own) {
                let mut table = Table::new(&format!("run-{}", group.0), "", &COLUMNS);
                table.caption = run_caption(seen, group.0);
                table.quiet_caption = false;
                for entry in group.1.iter().take(room) {
                    table.push(entry.entry.pr, row(seen, entry));
                    shown += 1;
                }
                section = section.with(Block::Table(table));
            }
        } else {
            let mut table = Table::new(&format!("{id}-table"), heading, &COLUMNS);
            for entry in own.iter().skip(offset).take(room.max(10)) {
                table.push(entry.entry.pr, row(seen, entry));
                shown += 1;
            }
            let end = offset + table.rows.len();
            if end < own.len() {
                if wanted == Stage::Waiting {
                    table.more = Some(format!("{}&after={end}", place.path("queue")));
                }
                section.note = format!("{} to {end} of {}", offset + 1, own.len());
            }
            section = section.with(Block::Table(table));
        }
        page.sections.push(section);
    }
    let doing = actions::of_queue(place, header, seen.visitor);
    if !doing.is_empty() {
        page.sections.push(Section::new("do", "Actions").with(Block::Forms(doing)));
    }
    page.sections.push(left(seen));
    page
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

type Group<'a, 'b> = (RunId, Vec<&'a &'b EntryView<'b>>);

/// The pull requests of one test run.
fn grouped<'a, 'b>(entries: &'a [&'b EntryView<'b>]) -> Vec<Group<'a, 'b>> {
    let mut groups: Vec<Group<'a, 'b>> = Vec::new();
    for entry in entries {
        let Some(run) = entry.entry.state.run() else { continue };
        match groups.iter_mut().find(|(id, _)| *id == run) {
            Some((_, group)) => group.push(entry),
            None => groups.push((run, vec![entry])),
        }
    }
    groups
}

fn run_caption(seen: &Seen<'_>, id: RunId) -> String {
    let Some(run) = seen.view.queue.run(id) else { return "A test run".to_owned() };
    let first = run.group.first().and_then(|first| seen.view.queue.entry(first.entry));
    let part = first.and_then(|first| first.part.as_ref());
    let is_alone = part.is_some_and(Part::is_alone);
    let kind = match (run.bisection, run.group.len()) {
        (true, _) if is_alone => "Single pull request that failed behind others".to_owned(),
        (true, _) => "Part of a batch that failed".to_owned(),
        (false, 1) => "Single pull request".to_owned(),
        (false, many) => format!("Batch of {many}"),
    };
    let since = span(seen.now.since(run.started_at));
    let on = if run.ahead.is_empty() {
        "on the target branch".to_owned()
    } else {
        let named: Vec<String> = run.ahead.iter().take(5).map(|(_, pr)| format!("#{pr}")).collect();
        let more = run.ahead.len().saturating_sub(5);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("on top of {}{more}", named.join(", "))
    };
    let overdue = run.deadline.is_some_and(|end| end < seen.now);
    let overdue = if overdue { ", overdue" } else { "" };
    format!("{kind}, {on}, since {since}{overdue}")
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
