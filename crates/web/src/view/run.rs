//! A test run: its candidate and its checks.

use signalbox_domain::ids::RunId;
use signalbox_domain::queue::{Check, TestRun};
use signalbox_domain::time::Timestamp;
use signalbox_services::{FailedCheck, RunFailure};

use super::output::printable;
use super::{QueueAddress, test_list};
use crate::model::{Block, Cell, Section, Table};
use crate::text::{ago, elsewhere, plain, quoted, span};

/// The section about a run.
pub(crate) fn section(
    run: &TestRun,
    place: &QueueAddress,
    now: Timestamp,
    heading: &str,
) -> Section {
    let together = run.group.iter().map(|it| format!("#{}", it.pr)).collect::<Vec<_>>().join(", ");
    let ahead = run.ahead.iter().map(|(_, pr)| format!("#{pr}")).collect::<Vec<_>>().join(", ");
    let ended = run.ended_at.unwrap_or(now);
    let mut facts = vec![
        ("Result", Cell::named(&run.status)),
        ("Tested together", Cell::text(together)),
        (
            "On top of",
            Cell::text(if ahead.is_empty() { plain(place.branch.as_str(), 250) } else { ahead }),
        ),
        ("Branch", Cell { copy: true, code: true, ..Cell::cut(run.branch.as_str()) }),
        ("Started", ago(run.started_at, now)),
        ("Took", Cell::text(span(ended.since(run.started_at)))),
    ];
    if let Some(candidate) = &run.candidate {
        facts.push(("Commit", Cell::commit(candidate.sha.to_string())));
    }
    let mut table = Table::new(
        "checks",
        "Checks of the test run",
        &["Check", "Required", "Result", "Summary", "When"],
    )
    .empty("No check has reported yet.");
    let required = run.required.as_ref().map(|it| it.names.as_slice()).unwrap_or_default();
    let silent = required.iter().filter(|name| !run.checks.iter().any(|it| it.name == **name));
    for check in &run.checks {
        let result =
            check.conclusion.map_or_else(|| Cell::named(&check.status), |it| Cell::named(&it));
        let yes = if required.contains(&check.name) { "required" } else { "no" };
        table.push(
            table.rows.len(),
            vec![
                Cell::text(plain(&check.name, 200)).maybe_link(details_of(check, run.id, place)),
                Cell::text(yes),
                result,
                Cell::text(plain(check.summary.as_deref().unwrap_or("–"), 400)),
                ago(check.at, now),
            ],
        );
    }
    for name in silent {
        table.push(
            table.rows.len(),
            vec![
                Cell::text(plain(name, 200)),
                Cell::text("required"),
                Cell { icon: Some("hourglass"), tone: "waiting", ..Cell::text("Not reported yet") },
                Cell::text("–"),
                Cell::text("–"),
            ],
        );
    }
    Section::new("run", heading).with(Block::Details(facts)).with(Block::Table(table))
}

/// The address of the page with a check's output.
pub(super) fn output_path(place: &QueueAddress, run: RunId, check: &str) -> String {
    format!("{}&run={run}&check={}", place.path("queue/output"), quoted(check))
}

/// Where the details of a check are: a page here if the server has its output, whose address in the
/// API needs a token.
fn details_of(check: &Check, run: RunId, place: &QueueAddress) -> Option<String> {
    if check.url.contains(&format!("/v1/testRuns/{run}/checks/")) {
        return Some(output_path(place, run, &check.name));
    }
    elsewhere(&check.url)
}

/// The end of the output of each failed check that printed something.
pub(crate) fn outputs(
    checks: &[FailedCheck],
    run: RunId,
    place: &QueueAddress,
) -> impl Iterator<Item = Section> {
    checks.iter().enumerate().filter_map(move |(at, check)| {
        let output = check.output.as_ref().filter(|output| !output.text.is_empty())?;
        let name = plain(&check.name, 200);
        let section = Section::new(&format!("output-{at}"), format!("Output of {name}"));
        let section = if output.is_cut { section.note("its last lines") } else { section };
        let all = Cell::text("The whole output").link(output_path(place, run, &check.name));
        let text = printable(&output.text);
        Some(section.with(Block::Pre(text)).with(Block::Links(vec![all])))
    })
}

/// The tests that failed in a run, in their order. `None` when there are none.
pub(crate) fn failures(
    failed: &[RunFailure],
    place: &QueueAddress,
    now: Timestamp,
) -> Option<Section> {
    if failed.is_empty() {
        return None;
    }
    let fresh = failed.iter().filter(|it| !it.is_known()).count();
    let heads = ["Test", "Known as", "#Failures", "Message", "When"];
    let mut table = Table::new("failed-tests", "Tests that failed in the run", &heads);
    for it in failed.iter().take(super::ROWS) {
        let test = &it.test.record.test;
        let tests = test_list::TestsAddress {
            org: place.org.clone(),
            id: test.repo,
            repo: place.repo.clone(),
        };
        let mark = if it.last.quarantined {
            Some("quarantined: counts as passed")
        } else {
            it.is_known().then_some("known flaky")
        };
        table.push(
            test.id,
            vec![
                Cell::text(plain(&test.key.name, 240)).link(tests.test(test.id)),
                Cell { mark, ..Cell::named(&test.standing.value) },
                Cell::number(it.failures),
                Cell::text(plain(it.last.message.as_deref().unwrap_or("–"), 300)),
                ago(it.last.at, now),
            ],
        );
    }
    let note = format!("{fresh} not known to be flaky");
    Some(Section::new("failed", "Failed tests").note(note).with(Block::Table(table)))
}
