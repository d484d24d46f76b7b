//! A pull request in a queue: first, why it waits and what happens next.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    Culprit, DependsOn, Entry, EntryState, Exit, Queue, Readiness, ReportedTargets, Step, Targets,
    TargetsOrigin, TestRun,
};
use signalbox_domain::time::Timestamp;
use signalbox_services::{EntryDetails, Explanation};
use signalbox_wording::{
    Named, Wait, after_exit, dependency_state, estimate_sentence, reason, wait,
};

use super::queue::{due, outside};
use super::{QueueAddress, actions, bisection, exits, landing, neighbours, passed_time, run};
use crate::model::{Block, Cell, Page, Section, Table, TimelineStep};
use crate::text::{ago, lasting, plain, sentence, span};
use crate::visitor::Visitor;

/// The most impacted targets that are listed.
const SHOWN_TARGETS: usize = 10;

/// The data of the page.
pub(crate) struct Seen<'a> {
    pub(crate) place: &'a QueueAddress,
    /// The queue, read before the pull request.
    pub(crate) queue: &'a Queue,
    pub(crate) details: &'a EntryDetails,
    /// What failed in the run that is shown.
    pub(crate) explanation: &'a Explanation,
    pub(crate) visitor: &'a Visitor,
    pub(crate) now: Timestamp,
}

/// The page.
pub(crate) fn page(seen: &Seen<'_>) -> Page {
    let (place, snapshot) = (seen.place, &seen.details.snapshot);
    let entry = &snapshot.entry;
    let title = format!("#{} {}", entry.pr, plain(&entry.pull_request.title, 300));
    let mut page = Page {
        title: format!("#{} in {}", entry.pr, place.name()),
        heading: title,
        above: vec![
            Cell::text("Queues").link("/"),
            Cell::text(place.name()).link(place.path("queue")),
        ],
        beside: vec![Cell::named(&snapshot.state)],
        topic: format!("queue:{}", seen.queue.header.id),
        version: seen.queue.header.sequence,
        announce: format!("Pull request {} is now: {}", entry.pr, snapshot.state.named().label),
        curl: place.curl(
            "getSubmittedPullRequest",
            &format!(",\"pr\":{{\"number\":{}}},\"includeTimeline\":true", entry.pr),
        ),
        ..Page::default()
    };
    let mut top = Section::plain("why").with(answer(seen));
    if let Some(pr) = culprit(entry) {
        let link = Cell::text(format!("See #{pr}, which is at fault")).link(place.pr(pr));
        top = top.with(Block::Links(vec![link]));
    }
    top = top.with(Block::Details(facts(seen)));
    let doing = actions::of_pr(place, entry.pr, snapshot.state, seen.visitor);
    if !doing.is_empty() {
        top = top.with(Block::Forms(doing));
    }
    page.sections.push(top);
    page.sections.extend(landing::incident(place, entry));
    if entry.is_live() {
        page.sections.push(readiness(&snapshot.entry, &snapshot.readiness));
    }
    let steps = seen.details.timeline.as_deref().unwrap_or_default();
    if let Some(test) = seen.details.last_run() {
        let own = entry.state.run() == Some(test.id) && test.status.is_running();
        let heading = if own { "Test run" } else { "Last test run" };
        let tests = seen.explanation.tests.as_deref().unwrap_or_default();
        page.sections.extend(run::failures(tests, place, seen.now));
        page.sections.extend(run::outputs(&seen.explanation.checks, test.id, place));
        page.sections.push(run::section(test, place, seen.now, heading));
    }
    let split = seen.details.bisection.as_ref();
    page.sections.extend(split.and_then(|it| bisection::section(place, it, seen.now)));
    page.sections.extend(landing::section(place, entry));
    page.sections.extend(neighbours::section(place, seen.queue, entry.pr));
    page.sections.extend(passed_time::section(entry, steps, seen.now));
    page.sections.push(timeline(seen, steps));
    page.sections.push(attempts(seen, steps));
    page
}

fn answer(seen: &Seen<'_>) -> Block {
    let snapshot = &seen.details.snapshot;
    if let EntryState::Ended(exit) = &snapshot.entry.state {
        let word = snapshot.state.named();
        return Block::Answer {
            icon: word.icon,
            tone: word.tone.name(),
            label: format!(
                "{} {}",
                word.label,
                ago(snapshot.entry.state_changed_at, seen.now).text
            ),
            text: exits::described(&snapshot.entry, exit),
            next: after_exit(
                exit,
                snapshot.entry.off_target_since.is_some(),
                seen.explanation.failed_tests(),
            )
            .to_owned(),
        };
    }
    let Some(waits) = &snapshot.waits else {
        let word = snapshot.state.named();
        return Block::Answer {
            icon: word.icon,
            tone: word.tone.name(),
            label: word.label.to_owned(),
            text: sentence(word.sentence),
            next: String::new(),
        };
    };
    let Wait { word, sentence: why, next, latest } = wait(waits);
    let next = latest.map_or_else(
        || next.to_string(),
        |at| {
            format!(
                "{}, at the latest in {}.",
                next.trim_end_matches('.'),
                span(at.since(seen.now))
            )
        },
    );
    Block::Answer {
        icon: word.icon,
        tone: word.tone.name(),
        label: word.label.to_owned(),
        text: plain(&sentence(&why), 600),
        next,
    }
}

/// The other pull request that is the culprit.
fn culprit(entry: &Entry) -> Option<PrNumber> {
    let EntryState::Ended(Exit::Failed { culprit, .. }) = &entry.state else { return None };
    match culprit {
        Culprit::PullRequest(pr) => Some(*pr),
        Culprit::Itself | Culprit::TargetBranch | Culprit::Host => None,
    }
}

fn facts(seen: &Seen<'_>) -> Vec<(&'static str, Cell)> {
    let (details, now) = (seen.details, seen.now);
    let entry = &details.snapshot.entry;
    let position = details.snapshot.position;
    let mut facts = Vec::new();
    if entry.is_live() {
        let shown = position.map_or_else(|| "not in the line".to_owned(), |it| it.to_string());
        facts.push(("Position", Cell::text(shown)));
        let estimate = details.estimate.as_ref();
        let basis =
            estimate.map(|it| plain(&sentence(&estimate_sentence(it)), 600)).unwrap_or_default();
        facts.push(("Merges in", Cell { sub: Some(basis), ..due(estimate) }));
        facts.push(("In queue", lasting(entry.submitted_at, now)));
    }
    facts.extend([
        ("Priority", Cell::text(entry.priority.name())),
        ("Author", Cell::text(plain(&entry.pull_request.author, 100))),
        (
            "Submitted",
            ago(entry.submitted_at, now)
                .sub(format!("by {}", plain(&entry.submitted_by.to_string(), 100))),
        ),
        ("Head", Cell::commit(entry.pull_request.head.to_string())),
        ("Page on the host", outside("open", &entry.pull_request.url)),
    ]);
    facts
}

/// The impacted targets, and where they come from.
fn targets(known: &ReportedTargets) -> String {
    let (which, source) = match (&known.targets, &known.origin) {
        (Targets::All, TargetsOrigin::Computed { why_all: Some(why), .. }) => {
            return format!("all: {}", plain(&why.to_string(), 600));
        }
        (Targets::All, origin) => ("all".to_owned(), origin),
        (Targets::Only(names), origin) => {
            let mut shown: Vec<String> = names.iter().map(|name| plain(name, 100)).collect();
            shown.sort_unstable();
            let rest = shown.len().saturating_sub(SHOWN_TARGETS);
            shown.truncate(SHOWN_TARGETS);
            if rest > 0 {
                shown.push(format!("{rest} more"));
            }
            (if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }, origin)
        }
    };
    let source =
        if source.is_reported() { "reported for its head" } else { "computed for its head" };
    format!("{which} ({source})")
}

fn readiness(entry: &Entry, ready: &Readiness) -> Section {
    let line = |good: bool, what: &str, bad: &str| {
        let (icon, tone, text) =
            if good { ("check", "good", what) } else { ("hourglass", "waiting", bad) };
        Cell { icon: Some(icon), tone, ..Cell::text(text) }
    };
    let mut lines = vec![
        ("Draft", line(!ready.draft, "it is ready for review", "it is a draft")),
        (
            "Base",
            line(
                ready.does_base_branch_match,
                "it is the target branch of this queue",
                "it is another branch",
            ),
        ),
        (
            "Mergeable",
            match &ready.mergeability {
                signalbox_domain::queue::Mergeability::Mergeable => {
                    line(true, "mergeable according to the host", "")
                }
                signalbox_domain::queue::Mergeability::NotMergeable(why) => {
                    line(false, "", &plain(why, 300))
                }
                signalbox_domain::queue::Mergeability::InProgress
                | signalbox_domain::queue::Mergeability::Unspecified => {
                    line(false, "", "the host is still computing it")
                }
            },
        ),
    ];
    let is_outside = entry.state == EntryState::NotReady;
    let usable = entry.applied_targets().filter(|_| ready.has_impacted_targets || !is_outside);
    if let Some(usable) = usable {
        lines.push(("Targets", line(true, &targets(usable), "")));
    } else if ready.requires_impacted_targets {
        let missing = if ready.computes_impacted_targets {
            "being computed for its head"
        } else {
            "not reported for its head"
        };
        lines.push(("Targets", line(false, "", missing)));
    }
    for DependsOn { on, state } in &ready.dependencies {
        let text = format!("{}: {}", plain(&on.to_string(), 100), dependency_state(*state));
        lines.push(("Depends on", line(false, "", &text)));
    }
    Section::new("ready", "Ready to enter").with(Block::Details(lines))
}

fn lines(step: &Step, entry: &Entry, place: &QueueAddress) -> Vec<Cell> {
    let mut lines = Vec::new();
    if let Some(word) = reason(step.reason) {
        let says_more = !word.sentence.contains(&word.label.to_lowercase());
        let more = if says_more { sentence(word.sentence) } else { String::new() };
        lines.push(Cell::word(word).sub(more));
    }
    let named = |prs: &[signalbox_domain::queue::PrRef]| {
        prs.iter().take(20).map(|it| format!("#{}", it.pr)).collect::<Vec<_>>().join(", ")
    };
    if !step.prerequisites.is_empty() {
        lines.push(Cell::text(format!("Waiting for {}", named(&step.prerequisites))));
    }
    let with: Vec<String> = step.tested_with(entry.pr).map(|it| format!("#{}", it.pr)).collect();
    if !with.is_empty() {
        lines.push(Cell::text(format!("Together with {}", with.join(", "))));
    }
    for failed in &step.failed_statuses {
        let text = failed.conclusion.map_or("timed out", |it| it.named().label);
        let cell =
            Cell { icon: Some("cross"), tone: "bad", ..Cell::text(plain(&failed.name, 200)) };
        lines.push(
            cell.maybe_link(failed.url.as_deref().and_then(crate::text::elsewhere)).sub(text),
        );
    }
    if step.failed_statuses.is_empty() {
        lines.extend(step.details.iter().take(10).map(|it| Cell::text(plain(it, 400))));
    }
    if let Some(signalbox_domain::queue::Culprit::PullRequest(pr)) = step.culprit {
        lines.push(Cell::text(format!("#{pr} is at fault")).link(place.pr(pr)));
    }
    lines
}

fn timeline(seen: &Seen<'_>, steps: &[Step]) -> Section {
    let entry = &seen.details.snapshot.entry;
    let all = steps.len();
    let shown = steps.iter().enumerate().take(50).map(|(at, step)| {
        let by = plain(&step.actor.to_string(), 100);
        TimelineStep {
            id: format!("step-{}", all - at),
            what: Cell::named(&step.state),
            when: Cell { sub: Some(format!("by {by}")), ..ago(step.at, seen.now) },
            lines: lines(step, entry, seen.place),
        }
    });
    Section::new("timeline", "Timeline").with(Block::Timeline(shown.collect()))
}

fn attempts(seen: &Seen<'_>, steps: &[Step]) -> Section {
    let mut table = Table::new(
        "attempts",
        "Test runs",
        &["#Run", "Result", "Started", "Tested together", "Commit"],
    )
    .empty("No test run yet.");
    let mut known: Vec<&TestRun> = Vec::new();
    for test in steps.iter().filter_map(|step| step.run.as_ref()) {
        if known.iter().all(|it| it.id != test.id) {
            known.push(test);
        }
    }
    for test in known {
        let together =
            test.group.iter().map(|it| format!("#{}", it.pr)).collect::<Vec<_>>().join(", ");
        let sha = test.candidate.as_ref().map(|it| it.sha.to_string()).unwrap_or_default();
        table.push(
            test.number,
            vec![
                Cell::number(test.number),
                Cell::named(&test.status),
                ago(test.started_at, seen.now),
                Cell::text(together),
                if sha.is_empty() { Cell::text("–") } else { Cell::commit(sha) },
            ],
        );
    }
    Section::new("attempts-part", "Test runs").with(Block::Table(table))
}

/// The page of a pull request that was never submitted.
pub(crate) fn never(
    place: &QueueAddress,
    pr: signalbox_domain::ids::PrNumber,
    visitor: &Visitor,
) -> Page {
    let answer = Block::Answer {
        icon: "minus",
        tone: "quiet",
        label: "Never submitted".to_owned(),
        text: format!("Pull request #{pr} was never submitted to this queue."),
        next: "Submit it here, with `signalbox queue submit`, or through the API.".to_owned(),
    };
    let mut section = Section::plain("why").with(answer);
    let state = signalbox_domain::queue::PrState::Cancelled;
    let doing = actions::of_pr(place, pr, state, visitor);
    let doing: Vec<_> = doing
        .into_iter()
        .map(|form| crate::model::Form { button: "Submit".to_owned(), ..form })
        .collect();
    if !doing.is_empty() {
        section = section.with(Block::Forms(doing));
    }
    Page {
        title: format!("#{pr} in {}", place.name()),
        above: vec![
            Cell::text("Queues").link("/"),
            Cell::text(place.name()).link(place.path("queue")),
        ],
        sections: vec![section],
        ..Page::default()
    }
}
