//! A test: its status, quarantine and evidence.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use signalbox_domain::flaky::{
    BranchClass, Delay, IncidentState, QuarantineOverride, RunOutcome, RunRecord,
};
use signalbox_domain::time::Timestamp;
use signalbox_domain::token::Scope;
use signalbox_services::TestDetails;
use signalbox_wording::{Named, Tone};

use super::test_list::{TestsAddress, percent};
use crate::model::{Block, Cell, Field, Form, Page, Section, Table, TimelineStep};
use crate::svg::{Height, Mark, strips};
use crate::text::{ago, elsewhere, plain, sentence};
use crate::visitor::Visitor;

/// The data of the page.
pub(crate) struct Seen<'a> {
    pub(crate) place: &'a TestsAddress,
    pub(crate) details: &'a TestDetails,
    /// How it delayed pull requests; `None` when the page is public.
    pub(crate) delays: Option<&'a [Delay]>,
    pub(crate) ticket: Option<String>,
    /// The visitor; `None` when the page is public.
    pub(crate) visitor: Option<&'a Visitor>,
    pub(crate) now: Timestamp,
}

/// The page.
pub(crate) fn page(seen: &Seen<'_>) -> Page {
    let (place, snapshot, now) = (seen.place, &seen.details.snapshot, seen.now);
    let (record, numbers) = (&snapshot.record, &snapshot.numbers);
    let (test, key) = (&record.test, &record.test.key);
    let standing = &test.standing;
    let (word, why) = (standing.value.named(), standing.reason.named());
    let quarantine =
        if snapshot.quarantined { " It is quarantined: its failures count as passed." } else { "" };
    let evidence = standing
        .evidence
        .as_ref()
        .map(|it| format!(" {}", sentence(&it.to_string())))
        .unwrap_or_default();
    let answer = Block::Answer {
        icon: word.icon,
        tone: word.tone.name(),
        label: format!("{} {}", word.label, ago(standing.since, now).text),
        text: plain(&format!("{}{evidence}", sentence(why.sentence)), 600),
        next: format!("{}{quarantine}", sentence(word.sentence)),
    };
    let rate =
        |rate, failed, runs: u32| Cell::text(percent(rate)).sub(format!("{failed} of {runs} runs"));
    let mut facts = vec![
        (
            "Failed in 24 h",
            rate(numbers.failure_rate_24h(), numbers.failures_24h, numbers.runs_24h),
        ),
        ("Failed in 7 d", rate(numbers.failure_rate_7d(), numbers.failures_7d, numbers.runs_7d)),
        ("Pull requests affected in 7 d", Cell::text(numbers.pull_requests_7d.len().to_string())),
        (
            "Delay in 7 d",
            Cell::text(seen.delays.map(super::test_owners::delay).unwrap_or_default()),
        ),
        ("Quarantine", Cell::named(&test.quarantining().setting)),
        ("File", Cell::code(plain(&key.file, 300))),
        ("Suite", Cell::text(plain(&key.parent, 300))),
        ("Class", Cell::text(plain(&key.classname, 300))),
        ("Variant", Cell::text(plain(&key.variant, 100))),
        ("Owners", Cell::text(plain(&record.owners.join(", "), 300))),
        ("First seen", ago(record.first_seen_at, now)),
        ("Last seen", ago(record.last_known_at(), now)),
        ("Id", Cell::to_copy(test.id.to_string())),
    ];
    if let Some(ticket) = &record.ticket {
        let address = seen.ticket.as_deref().and_then(elsewhere);
        facts.push(("Ticket", Cell::text(plain(ticket, 100)).maybe_link(address)));
    }
    for (head, id) in [("Renamed to", test.renamed_to()), ("Renamed from", test.renamed_from)] {
        facts.extend(id.map(|id| (head, Cell::code(id.to_string()).link(place.test(id)))));
    }
    facts.retain(|(_, cell)| !cell.text.is_empty());
    let mut top = Section::plain("why").with(answer);
    if let Some(decision) = &test.quarantine {
        let by = plain(&decision.by.full_name, 100);
        let reason = decision.reason.as_deref().map(|it| plain(it, 300)).unwrap_or_default();
        let until =
            decision.quarantining.expires_at.map(|at| format!(" until {at}")).unwrap_or_default();
        let word = decision.quarantining.setting.named();
        let title = format!("{} by {by}{until}.", word.label);
        top = top.with(Block::notice(word.tone, word.icon, &title, &reason));
    }
    if let Some(retired) = &test.retired {
        let title = format!("Retired at {}.", retired.at);
        let said = format!(
            "Since {}, {} commits of stable branches ran other tests of the same file or class, and not \
             this one. What was decided about it holds again when a stable branch contains it again.",
            retired.missing_since, retired.commits
        );
        top = top.with(Block::notice(Tone::Quiet, "minus", &title, &said));
    }
    for incident in seen.details.incidents.iter().filter(|it| it.state.excludes()) {
        let started = incident.started_at;
        let title = format!("Failures excluded: incident of {started}.");
        let known = match incident.state {
            IncidentState::Recovered => "Its tests passed again on the same commit.",
            IncidentState::Confirmed => "A user confirmed it.",
            _ => "It is not yet known whether its tests are at fault.",
        };
        let said = format!(
            "{} tests failed together: {}. {known} Its failures feed no monitor.",
            incident.failures,
            plain(&incident.summary, 160)
        );
        top = top.with(Block::notice(Tone::Quiet, "shield", &title, &said));
    }
    top = top.with(Block::Details(facts));
    let forms = seen.visitor.map(|visitor| forms(seen, visitor)).unwrap_or_default();
    if !forms.is_empty() {
        top = top.with(Block::Forms(forms));
    }
    Page {
        title: plain(&key.name, 300),
        above: vec![
            Cell::text("Tests").link(format!("/{}/flaky-tests", place.org)),
            Cell::text(place.name()).link(place.path("flaky-tests")),
        ],
        beside: vec![Cell::named(&standing.value)],
        sections: vec![top, evidence_of(seen), failures(seen), runs(seen), journal(seen)],
        topic: if seen.visitor.is_some() { format!("tests:{}", place.id) } else { String::new() },
        only_hint: true,
        ..Page::default()
    }
}

fn forms(seen: &Seen<'_>, visitor: &Visitor) -> Vec<Form> {
    let is_renamed = seen.details.snapshot.record.test.renamed_to().is_some();
    if is_renamed || !visitor.may_send(Scope::TestsAdmin) {
        return Vec::new();
    }
    let test = &seen.details.snapshot.record.test;
    let form = |action: &str, title: &str, button: &str, fields| Form {
        id: action.to_owned(),
        action: format!("/{}/flaky-tests/do", seen.place.org),
        post: true,
        title: title.to_owned(),
        hidden: vec![
            ("action", action.to_owned()),
            ("repo", seen.place.repo.to_string()),
            ("test", test.id.to_string()),
        ],
        fields,
        button: button.to_owned(),
        ..Form::default()
    };
    let reason =
        || Field { name: "reason", label: "Reason".to_owned(), kind: "text", ..Field::default() };
    let options = QuarantineOverride::ALL
        .iter()
        .map(|it| (it.as_str().to_owned(), it.named().label.to_owned()));
    let setting = Field {
        name: "setting",
        label: "Quarantine".to_owned(),
        kind: "select",
        value: test.quarantining().setting.as_str().to_owned(),
        options: options.collect(),
        ..Field::default()
    };
    let flag = if test.flag.is_some() {
        form("unflag", "Remove the flag", "Remove", vec![reason()])
    } else {
        form("flag", "Flag as flaky", "Flag", vec![reason()])
    };
    let ticket = Field {
        name: "ticket",
        label: "Ticket id".to_owned(),
        kind: "text",
        required: true,
        ..Field::default()
    };
    vec![
        form("quarantine", "Change quarantine", "Change", vec![setting, reason()]),
        flag,
        form("ticket", "Link a ticket", "Link", vec![ticket]),
    ]
}

fn outcome(run: &RunRecord) -> Cell {
    let (icon, tone, text) = match run.outcome {
        RunOutcome::Passed => ("check", "good", "Passed"),
        RunOutcome::Failed => ("cross", "bad", "Failed"),
        RunOutcome::Skipped => ("minus", "quiet", "Skipped"),
    };
    let mark = if run.quarantined {
        Some("quarantined")
    } else if run.counts {
        None
    } else {
        Some("excluded")
    };
    Cell { icon: Some(icon), tone, mark, ..Cell::text(text) }
}

/// The evidence that it is flaky: commits on which it passed and failed.
fn evidence_of(seen: &Seen<'_>) -> Section {
    let mut table = Table::new(
        "evidence",
        "Commits on which it passed and failed",
        &["Commit", "#Passed", "#Failed", "Last"],
    )
    .empty("In recent runs it did not both pass and fail on the same commit.");
    let mut commits: Vec<(&str, u32, u32, Timestamp)> = Vec::new();
    for run in &seen.details.runs {
        let Some(sha) = run.sha.as_deref() else { continue };
        let (passed, failed) = match run.outcome {
            RunOutcome::Passed => (1, 0),
            RunOutcome::Failed => (0, 1),
            RunOutcome::Skipped => (0, 0),
        };
        match commits.iter_mut().find(|it| it.0 == sha) {
            Some(it) => {
                it.1 += passed;
                it.2 += failed;
            }
            None => commits.push((sha, passed, failed, run.at)),
        }
    }
    for (sha, passed, failed, at) in commits.into_iter().filter(|it| it.1 > 0 && it.2 > 0).take(10)
    {
        table.push(
            plain(sha, 40),
            vec![
                Cell::commit(plain(sha, 64)),
                Cell::number(passed),
                Cell::number(failed),
                ago(at, seen.now),
            ],
        );
    }
    let mut monitors =
        Table::new("monitors", "Monitors", &["Monitor", "State", "Evidence", "Since"])
            .empty("No monitor reports a problem.");
    for (id, record) in &seen.details.snapshot.record.test.monitors {
        let muted = record.mute.as_ref().map(|_| "muted");
        monitors.push(
            id,
            vec![
                Cell { mark: muted, ..Cell::text(record.kind.as_str().replace('_', " ")) },
                Cell::text(record.status.as_str()),
                Cell::text(plain(&record.evidence.to_string(), 300)),
                ago(record.since, seen.now),
            ],
        );
    }
    Section::new("evidence-part", "Evidence").with(Block::Table(table)).with(Block::Table(monitors))
}

fn failures(seen: &Seen<'_>) -> Section {
    let mut section = Section::new("failures", "Most frequent failures");
    let failures = &seen.details.snapshot.numbers.failures;
    if failures.is_empty() {
        return section.with(Block::Text("No recent failures.".to_owned()));
    }
    for failure in failures {
        let last = ago(failure.last_occurrence, seen.now).text;
        section = section
            .with(Block::Text(format!("{} times, last {last}", failure.occurrence_count)))
            .with(Block::Pre(plain(&failure.summary, 2_000)));
    }
    section
}

fn runs(seen: &Seen<'_>) -> Section {
    let heads = ["When", "Result", "Branch", "Pull request", "Commit", "#Took", "Message"];
    let mut table = Table::new("runs", "Runs", &heads).empty("No recent runs.");
    for run in &seen.details.runs {
        let sha: String = run.sha.as_deref().unwrap_or("–").chars().take(12).collect();
        let job = run.job_url.as_deref().and_then(elsewhere);
        table.push(
            table.rows.len(),
            vec![
                ago(run.at, seen.now),
                outcome(run).maybe_link(job),
                Cell::cut(&run.branch),
                Cell::text(run.pr.map_or_else(|| "–".to_owned(), |pr| format!("#{pr}"))),
                Cell::code(plain(&sha, 12)),
                Cell::number(
                    run.took.map(|took| format!("{} ms", took.millis())).unwrap_or_default(),
                ),
                Cell::text(plain(run.message.as_deref().unwrap_or("–"), 300)),
            ],
        );
    }
    let section = Section::new("runs-part", "Recent runs");
    let section = if seen.details.runs.len() < FEW { section } else { section.with(strip(seen)) };
    section.with(Block::Table(table))
}

/// The fewest runs that are drawn.
const FEW: usize = 3;
/// The most stable branches that have a row.
const BRANCHES: usize = 4;

/// The name of a branch in at most 12 characters: its start and its end.
fn shortened(name: &str) -> String {
    let name: Vec<char> = plain(name, 250).chars().collect();
    if name.len() <= 12 {
        return name.into_iter().collect();
    }
    let (start, end) = (name.iter().take(5), name.iter().skip(name.len() - 6));
    start.chain(&['…']).chain(end).collect()
}

/// The runs as a picture: a row for each stable branch, those with the most runs first, and one for each
/// other class of branches.
fn strip(seen: &Seen<'_>) -> Block {
    let runs = &seen.details.runs;
    let of_stable = |run: &&RunRecord| run.class == BranchClass::Stable;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for run in runs.iter().filter(of_stable) {
        *counts.entry(&run.branch).or_default() += 1;
    }
    let mut stable: Vec<&str> = counts.keys().copied().collect();
    stable.sort_by_key(|name| Reverse(counts.get(name)));
    stable.truncate(BRANCHES);
    let rows = stable.iter().map(|name| (shortened(name), Some(*name)));
    let others = ["merge queue", "pull requests", "others"].map(|name| (name.to_owned(), None));
    let mut rows: Vec<(String, Option<&str>, Vec<Mark>)> =
        rows.chain(others).map(|(label, branch)| (label, branch, Vec::new())).collect();
    for run in runs.iter().rev() {
        let own = Some(run.branch.as_str()).filter(|branch| stable.contains(branch));
        let class = match run.class {
            BranchClass::Stable if own.is_some() => "",
            BranchClass::PullRequest => "pull requests",
            BranchClass::Merge => "merge queue",
            BranchClass::Stable | BranchClass::Other => "others",
        };
        let is_row = |(label, branch, _): &&mut (String, Option<&str>, _)| {
            if class.is_empty() { *branch == own } else { branch.is_none() && label == class }
        };
        let (class, word, height) = match run.outcome {
            RunOutcome::Passed => ("good", "passed", Height::Half),
            RunOutcome::Failed => ("bad", "failed", Height::Whole),
            RunOutcome::Skipped => ("quiet", "skipped", Height::Quarter),
        };
        let excluded = if run.counts { "" } else { ", excluded" };
        let (when, on) = (ago(run.at, seen.now).text, plain(&run.branch, 80));
        let title = format!("{word}{excluded}, {when}, {on}");
        if let Some((_, _, marks)) = rows.iter_mut().find(is_row) {
            marks.push(Mark { class, title, height });
        }
    }
    let rows: Vec<(String, Vec<Mark>)> = rows
        .into_iter()
        .filter(|(_, _, marks)| !marks.is_empty())
        .map(|(label, _, marks)| (label, marks))
        .collect();
    let mut chart = strips("strip", "Latest runs by branch, newest on the right", &rows);
    let legend = [("good", "passed"), ("bad", "failed"), ("quiet", "skipped")];
    chart.legend = legend.map(|(class, name)| (class, name.to_owned())).to_vec();
    Block::Picture(Box::new(chart))
}

fn journal(seen: &Seen<'_>) -> Section {
    use signalbox_domain::flaky::Decision;
    let mut steps = Vec::new();
    for record in &seen.details.journal {
        for decision in &record.decisions {
            let what = match decision {
                Decision::StatusChanged { to, reason, .. } => {
                    Some((Cell::named(to), sentence(reason.named().sentence)))
                }
                Decision::Flagged { reason, by } => {
                    let text = reason.as_deref().map(|it| plain(it, 300)).unwrap_or_default();
                    Some((
                        Cell {
                            icon: Some("flag"),
                            tone: "warning",
                            ..Cell::text(format!("Flagged by {}", plain(&by.full_name, 80)))
                        },
                        text,
                    ))
                }
                Decision::Unflagged { reason, by } => {
                    let text = reason.as_deref().map(|it| plain(it, 300)).unwrap_or_default();
                    Some((
                        Cell {
                            icon: Some("flag"),
                            tone: "quiet",
                            ..Cell::text(format!("Flag removed by {}", plain(&by.full_name, 80)))
                        },
                        text,
                    ))
                }
                Decision::QuarantineSet { updated, by, reason, .. } => {
                    let by = plain(&by.full_name, 80);
                    let reason = reason
                        .as_deref()
                        .map(|it| format!(": {}", plain(it, 300)))
                        .unwrap_or_default();
                    Some((Cell::named(&updated.setting), format!("By {by}{reason}")))
                }
                Decision::MonitorMoved { kind, to, .. } => Some((
                    Cell {
                        icon: Some("half"),
                        tone: "quiet",
                        ..Cell::text(format!(
                            "Monitor {} is {}",
                            kind.as_str().replace('_', " "),
                            to.as_str()
                        ))
                    },
                    String::new(),
                )),
                Decision::Retired(retired) => Some((
                    Cell { icon: Some("minus"), tone: "quiet", ..Cell::text("Retired") },
                    format!(
                        "Missing in {} commits since {}",
                        retired.commits, retired.missing_since
                    ),
                )),
                Decision::Inherited { from } => Some((
                    Cell { icon: Some("check"), tone: "quiet", ..Cell::text("Renamed") },
                    format!("From {from}, with everything that was found and decided"),
                )),
                Decision::Returned => Some((
                    Cell { icon: Some("check"), tone: "quiet", ..Cell::text("Returned") },
                    "A stable branch contains it again".to_owned(),
                )),
                Decision::ReasonChanged { .. }
                | Decision::MonitorRenewed { .. }
                | Decision::Muted { .. }
                | Decision::Unmuted { .. }
                | Decision::Labelled { .. }
                | Decision::Unlabelled { .. }
                | Decision::Ignored { .. } => None,
            };
            if let Some((what, text)) = what {
                let lines = if text.is_empty() { Vec::new() } else { vec![Cell::text(text)] };
                steps.push(TimelineStep {
                    id: format!("step-{}-{}", record.number, steps.len()),
                    what,
                    when: ago(record.at, seen.now),
                    lines,
                });
            }
        }
    }
    if steps.is_empty() {
        return Section::new("journal", "History").with(Block::Text("No changes yet.".to_owned()));
    }
    Section::new("journal", "History").with(Block::Timeline(steps))
}
