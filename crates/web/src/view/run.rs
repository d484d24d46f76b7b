//! A test run: what it is built from and how its checks go.

use signalbox_domain::queue::TestRun;
use signalbox_domain::time::Timestamp;

use super::Place;
use crate::model::{Block, Cell, Section, Table};
use crate::text::{ago, elsewhere, plain, span};

/// The section about a run.
pub(crate) fn section(run: &TestRun, place: &Place, now: Timestamp, heading: &str) -> Section {
    let together = run.group.iter().map(|it| format!("#{}", it.pr)).collect::<Vec<_>>().join(", ");
    let ahead = run.ahead.iter().map(|(_, pr)| format!("#{pr}")).collect::<Vec<_>>().join(", ");
    let ended = run.ended_at.unwrap_or(now);
    let mut facts = vec![
        ("Result", Cell::named(&run.status)),
        ("Tested together", Cell::text(together)),
        ("On top of", Cell::text(if ahead.is_empty() { place.branch.to_string() } else { ahead })),
        ("Branch", Cell::code(run.branch.to_string())),
        ("Started", ago(run.started_at, now)),
        ("Took", Cell::text(span(ended.since(run.started_at)))),
    ];
    if let Some(candidate) = &run.candidate {
        facts.push(("Commit", Cell::code(candidate.sha.to_string())));
    }
    let mut table = Table::new(
        "checks",
        "Checks of the test run",
        &["Check", "Required", "Result", "What it says", "When"],
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
                Cell::text(plain(&check.name, 200)).maybe_link(elsewhere(&check.url)),
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
                Cell {
                    icon: Some("hourglass"),
                    tone: "waiting",
                    ..Cell::text("Nothing heard yet")
                },
                Cell::text("–"),
                Cell::text("–"),
            ],
        );
    }
    Section::new("run", heading).with(Block::Facts(facts)).with(Block::Table(table))
}
