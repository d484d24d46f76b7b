//! The home page: all queues, and a search for pull requests.

use signalbox_domain::queue::{PrState, QueueState};
use signalbox_domain::time::Timestamp;
use signalbox_services::{HourlyMerges, SeenQueue};
use signalbox_wording::{Tone, frozen};

use super::QueueAddress;
use crate::model::{Block, Cell, Field, Form, Page, Section, Table};
use crate::text::{lasting, plain, tests_path};
use crate::visitor::Visitor;

/// The tests of a repository, counted.
pub(crate) struct TestCounts {
    pub(crate) repo: signalbox_domain::ids::RepoName,
    pub(crate) flaky: u64,
    pub(crate) broken: u64,
    pub(crate) quarantined: u64,
}

/// The data of the page.
pub(crate) struct Seen<'a> {
    pub(crate) queues: &'a [SeenQueue],
    pub(crate) merges: &'a HourlyMerges,
    pub(crate) tests: &'a [TestCounts],
    /// The search text.
    pub(crate) search: &'a str,
    pub(crate) visitor: &'a Visitor,
    pub(crate) now: Timestamp,
}

/// The page.
pub(crate) fn page(seen: &Seen<'_>) -> Page {
    let mut page = Page { title: "Queues".to_owned(), topic: "org".to_owned(), ..Page::default() };
    let org = seen.visitor.org();
    let wanted = seen.search.to_lowercase();
    let mut table = Table::new(
        "queues",
        "Merge queues",
        &[
            "Queue",
            "State",
            "#In the line",
            "Testing",
            "#Pending failure",
            "Longest wait",
            "Merged (24 h)",
        ],
    )
    .empty("No queue matches.");
    let mut total = 0;
    for it in seen.queues {
        let header = &it.queue.header;
        let place = QueueAddress {
            org: org.to_owned(),
            repo: it.repository.name.clone(),
            branch: header.branch.clone(),
        };
        if !place.name().to_lowercase().contains(&wanted) {
            continue;
        }
        let (mut line, mut doubtful, mut oldest) = (0_u64, 0_u64, None);
        for entry in it.queue.entries_in_order() {
            let state = entry.state.name();
            line += u64::from(state != PrState::NotReady);
            doubtful += u64::from(state == PrState::PendingFailure);
            oldest = oldest.into_iter().chain([entry.submitted_at]).min();
        }
        total += line;
        let (used, limit) = it.queue.slots_of_line();
        let count = |slots: u32| usize::try_from(slots).unwrap_or(usize::MAX);
        let state = Cell::named(&header.state.name()).sub(match &header.state {
            QueueState::Paused { reason: Some(reason), .. } => plain(reason, 120),
            QueueState::Paused { reason: None, .. }
            | QueueState::Running
            | QueueState::Draining
            | QueueState::SwitchingModes { .. } => match &header.freeze.in_force {
                Some(freeze) => plain(&frozen(freeze.until, freeze.reason.as_deref()), 120),
                None => String::new(),
            },
        });
        table.push(
            header.id,
            vec![
                Cell::text(place.name())
                    .link(place.path("queue"))
                    .sub(it.repository.name.host.to_string()),
                state,
                Cell::number(line),
                Cell {
                    progress: Some((count(used), count(limit))),
                    ..Cell::text(format!("{used} of {limit} slots"))
                },
                Cell::number(doubtful),
                oldest.map_or_else(|| Cell::text("–"), |at| lasting(at, seen.now)),
                merged(seen.merges.get(&header.id)),
            ],
        );
    }
    page.announce = format!("{total} pull requests in the lines of all queues");
    if seen.queues.is_empty() {
        page.sections.push(first_steps());
    } else {
        let search = Form {
            id: "search".to_owned(),
            action: "/".to_owned(),
            fields: vec![Field {
                name: "q",
                label: "Repository, branch or #number".to_owned(),
                kind: "search",
                value: seen.search.to_owned(),
                ..Field::default()
            }],
            button: "Find".to_owned(),
            ..Form::default()
        };
        let queues = Section::new("queues-part", "Merge queues")
            .with(Block::Forms(vec![search]))
            .with(Block::Table(table));
        page.sections.push(queues);
        page.sections.push(mine(seen));
    }
    if !seen.tests.is_empty() {
        page.sections.push(tests(seen, org));
    }
    page
}

/// The merges of the last 24 hours, in all and hour by hour.
fn merged(hourly: Option<&[u32; 24]>) -> Cell {
    let Some(hourly) = hourly else { return Cell::text("0") };
    Cell { spark: hourly.to_vec(), ..Cell::text(hourly.iter().sum::<u32>().to_string()) }
}

/// Pull requests that the visitor's token has submitted.
fn mine(seen: &Seen<'_>) -> Section {
    let actor = seen.visitor.caller.actor();
    let mut table =
        Table::new("mine", "Submitted by you", &["Pull request", "Queue", "State", "In queue"])
            .empty("None of your pull requests is in a queue.");
    for it in seen.queues {
        let place = QueueAddress {
            org: seen.visitor.org().to_owned(),
            repo: it.repository.name.clone(),
            branch: it.queue.header.branch.clone(),
        };
        for entry in it.queue.entries_in_order().filter(|entry| entry.submitted_by == actor) {
            if table.rows.len() >= 20 {
                break;
            }
            table.push(
                format!("{}-{}", it.queue.header.id, entry.pr),
                vec![
                    super::queue::titled(entry, &place),
                    Cell::text(place.name()),
                    Cell::named(&entry.state.name()),
                    lasting(entry.submitted_at, seen.now),
                ],
            );
        }
    }
    Section::new("mine-part", "Submitted by you").with(Block::Table(table))
}

fn tests(seen: &Seen<'_>, org: &str) -> Section {
    let mut table = Table::new(
        "tests",
        "Tests by repository",
        &["Repository", "#Flaky", "#Broken", "#Quarantined"],
    );
    for it in seen.tests {
        table.push(
            table.rows.len(),
            vec![
                Cell::text(format!("{}/{}", it.repo.owner, it.repo.name)).link(tests_path(
                    org,
                    "flaky-tests",
                    &it.repo,
                )),
                Cell::number(it.flaky),
                Cell::number(it.broken),
                Cell::number(it.quarantined),
            ],
        );
    }
    Section::new("tests-part", "Tests").with(Block::Table(table))
}

fn first_steps() -> Section {
    let step = |text: &str, command: &str| (text.to_owned(), command.to_owned());
    let steps = [
        step(
            "1. Register a repository",
            "signalbox repo add git.local/acme/calc --org acme --path /srv/git/calc.git",
        ),
        step(
            "2. Create a queue for a branch",
            "signalbox queue create --repo git.local/acme/calc --branch main",
        ),
        step("3. Submit a pull request", "signalbox queue submit 1 --repo git.local/acme/calc"),
    ];
    let mut section = Section::new("first", "Three steps to your first merge").with(Block::notice(
        Tone::Active,
        "play",
        "No queue yet.",
        "This page shows queues as soon as they exist.",
    ));
    for (text, command) in steps {
        section = section.with(Block::Text(text)).with(Block::Pre(command));
    }
    section
}
