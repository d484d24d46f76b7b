//! The list of a queue: the state of each pull request, its reason, and since when.

use std::collections::BTreeMap;

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    Culprit, EntryState, EntryView, Estimate, Exit, HostTroubleKind, Mode, PrState, Queue,
    QueueState, WaitReason,
};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_services::EntrySnapshot;
use signalbox_wording::{Named, Tone, frozen};

use super::health::percentile;
use super::queue_list::{MANY, Shown, filters, listed};
use super::{QueueAddress, actions, exits};
use crate::model::{Block, Cell, Page, Section, Table, Tile};
use crate::text::{ago, elsewhere, plain, sentence, span};
use crate::visitor::Visitor;

/// The data of the page.
pub(crate) struct Seen<'a> {
    pub(crate) place: &'a QueueAddress,
    pub(crate) queue: &'a Queue,
    pub(crate) shown: &'a Shown<'a>,
    /// The estimates of shown pull requests in the line, and of the last one in the line.
    pub(crate) estimates: &'a BTreeMap<PrNumber, Estimate>,
    /// The median duration of earlier runs, and the longest one; `None` if there are few.
    pub(crate) usual: Option<(Span, Span)>,
    /// The pull requests that left last, newest first.
    pub(crate) left: &'a [EntrySnapshot],
    /// How many have merged within 24 hours.
    pub(crate) merged: usize,
    pub(crate) visitor: &'a Visitor,
    pub(crate) now: Timestamp,
}

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
        Some((None, _)) | None => Cell { tone: "quiet", ..Cell::text("unknown") },
    }
}

/// The order in which the pull requests of the queue are shown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Merging,
    Testing,
    Passed,
    Doubtful,
    Waiting,
    NotReady,
}

impl Stage {
    pub(super) const fn of(state: PrState, is_landing: bool) -> Self {
        match state {
            _ if is_landing => Self::Merging,
            PrState::Testing => Self::Testing,
            PrState::TestsPassed => Self::Passed,
            PrState::PendingFailure => Self::Doubtful,
            PrState::Pending => Self::Waiting,
            PrState::NotReady | PrState::Merged | PrState::Failed | PrState::Cancelled => {
                Self::NotReady
            }
        }
    }

    pub(super) fn of_view(entry: &EntryView<'_>) -> Self {
        Self::of(entry.state, entry.waits == Some(WaitReason::Landing))
    }

    pub(super) const ALL: [Self; 6] =
        [Self::Merging, Self::Testing, Self::Passed, Self::Doubtful, Self::Waiting, Self::NotReady];

    pub(super) const fn heading(self) -> (&'static str, &'static str) {
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

/// Whether failures have reduced the number of test slots.
fn reduced(queue: &Queue) -> String {
    let most = queue.header.settings.concurrency;
    if queue.slots_of_line().1 < most {
        format!("reduced from {most} after failures")
    } else {
        String::new()
    }
}

/// The page.
pub(crate) fn page(seen: &Seen<'_>) -> Page {
    let (place, queue) = (seen.place, seen.queue);
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
    let shown = seen.shown;
    let (count, line) = (|stage| shown.count(stage), shown.in_line);
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
    let clears = shown.last.as_ref().and_then(|it| seen.estimates.get(&it.entry.pr)?.time);
    let clears = clears.filter(|time| *time >= Span::seconds(1));
    let mut numbers = vec![
        tile("in the line", line.to_string(), not_ready(count(Stage::NotReady))),
        tile("test slots in use", format!("{used} of {limit}"), reduced(queue)),
        tile("passed, waiting to merge", count(Stage::Passed).to_string(), String::new()),
    ];
    if let Some(clears) = clears {
        numbers.push(tile(
            "until the line is empty",
            about(clears),
            "if all tests pass".to_owned(),
        ));
    }
    numbers.extend(merged_lately(seen));
    top = top.with(Block::Summary(numbers));
    if queue.live() > MANY || shown.filter.is_used() {
        top = top.with(Block::Forms(vec![filters(seen)]));
    }
    if shown.filter.is_used() {
        let all = Cell::text("Show all").link(place.path("queue"));
        top = top.with(Block::Links(vec![all]));
    }
    page.sections.push(top);
    let (first, last) = (shown.filter.after + 1, shown.filter.after + shown.entries.len());
    let note = if shown.entries.len() < shown.all {
        format!("{first} to {last} of {}", shown.all)
    } else {
        shown.all.to_string()
    };
    let section = Section::new("entries", "Pull requests").note(note);
    page.sections.push(section.with(Block::Table(listed(seen))));
    let doing = actions::of_queue(place, header, seen.visitor);
    if !doing.is_empty() {
        page.sections.push(Section::new("do", "Actions").with(Block::Forms(doing)));
    }
    page.sections.push(left(seen));
    page
}

/// The merges of the last day, with the median time from submission of the latest ones.
fn merged_lately(seen: &Seen<'_>) -> Option<Tile> {
    let merged = seen.left.iter().filter(|it| it.state == PrState::Merged);
    let mut stays: Vec<Span> =
        merged.map(|it| it.entry.state_changed_at.since(it.entry.submitted_at)).collect();
    stays.sort_unstable();
    let median = percentile(&stays, 50)?;
    // The list may be newer than the count, or have only the latest ones.
    let count = stays.len().max(seen.merged);
    let of = if stays.len() < count {
        format!(", over the last {}", stays.len())
    } else {
        String::new()
    };
    let note = format!("median {} from submission{of}", span(median));
    Some(tile("merged in 24 h", count.to_string(), note))
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
    let queue = seen.queue;
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
    for freeze in &header.freeze.partial {
        let title = format!("Frozen: {}.", plain(&freeze.scope.to_string(), 512));
        let until = freeze.until.map_or_else(String::new, |until| format!(" until {until}"));
        let reason = freeze.reason.as_deref().map(|reason| sentence(&plain(reason, 500)));
        let text = format!(
            "Pull requests to which this applies stay outside the line{until}. Urgent ones are not affected."
        );
        let text = reason.into_iter().chain([text]).collect::<Vec<_>>().join(" ");
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
