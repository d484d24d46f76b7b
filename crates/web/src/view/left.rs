//! Pull requests that left a queue: how, why, and the culprit.

use signalbox_domain::queue::{Culprit, EntryState, Exit, PrState};
use signalbox_domain::time::Timestamp;
use signalbox_services::EntrySnapshot;
use signalbox_wording::Named;

use super::{QueueAddress, actions, exits, queue::titled};
use crate::model::{Block, Cell, Field, Form, Page, Section, Table, Tile};
use crate::text::{ago, plain, span};
use crate::visitor::Visitor;

/// The most pull requests with a form to submit them again.
const MOST_AGAIN: usize = 20;

/// The data of the page.
pub(crate) struct Seen<'a> {
    pub(crate) place: &'a QueueAddress,
    pub(crate) left: &'a [EntrySnapshot],
    /// Only pull requests that left in this state.
    pub(crate) state: Option<PrState>,
    pub(crate) days: u32,
    pub(crate) next: Option<String>,
    pub(crate) visitor: &'a Visitor,
    pub(crate) now: Timestamp,
}

/// The page.
pub(crate) fn page(seen: &Seen<'_>) -> Page {
    let count = |state: PrState| seen.left.iter().filter(|it| it.state == state).count();
    let days = seen.days;
    let tile = |label, value: usize, note: &str| Tile {
        label,
        value: value.to_string(),
        note: note.to_owned(),
        href: None,
    };
    let target = seen.left.iter().filter(|it| {
        matches!(
            &it.entry.state,
            EntryState::Ended(Exit::Failed { culprit: Culprit::TargetBranch, .. })
        )
    });
    let again = count(PrState::Failed) + count(PrState::Cancelled);
    let tiles = vec![
        tile("Merged", count(PrState::Merged), "on this page"),
        tile("Failed", count(PrState::Failed), "on this page"),
        tile("To submit again", again, "failed or cancelled"),
        tile("Target branch at fault", target.count(), "not the pull request"),
    ];
    let mut states = vec![(String::new(), "any".to_owned())];
    states.extend(
        PrState::ALL
            .iter()
            .filter(|it| it.is_terminal())
            .map(|it| (it.as_str().to_owned(), it.named().label.to_owned())),
    );
    let filter = Form {
        id: "filter".to_owned(),
        action: format!("/{}/queue/left", seen.place.org),
        hidden: vec![
            ("repo", seen.place.repo.to_string()),
            ("branch", seen.place.branch.to_string()),
        ],
        fields: vec![
            Field {
                name: "state",
                label: "How".to_owned(),
                kind: "select",
                value: seen.state.map(|it| it.as_str().to_owned()).unwrap_or_default(),
                options: states,
                ..Field::default()
            },
            Field {
                name: "days",
                label: "Within".to_owned(),
                kind: "select",
                value: days.to_string(),
                options: [1, 7, 30].iter().map(|it| (it.to_string(), format!("{it} d"))).collect(),
                ..Field::default()
            },
        ],
        button: "Show".to_owned(),
        ..Form::default()
    };
    let heads = ["Pull request", "State", "Reason", "Culprit", "In queue", "When"];
    let mut table = Table::new("left", "Pull requests that left the queue", &heads)
        .empty(format!("No pull request left the queue like this within {days} d."));
    for it in seen.left {
        let EntryState::Ended(exit) = &it.entry.state else { continue };
        let stayed = it.entry.state_changed_at.since(it.entry.submitted_at);
        table.push(
            it.entry.pr,
            vec![
                titled(&it.entry, seen.place),
                Cell::named(&it.state),
                Cell::word(exits::word(exit)).sub(plain(&exits::described(&it.entry, exit), 240)),
                exits::culprit(exit, seen.place),
                Cell::text(span(stayed)),
                ago(it.entry.state_changed_at, seen.now),
            ],
        );
    }
    table.more.clone_from(&seen.next);
    let mut sections = vec![
        Section::plain("numbers")
            .with(Block::Tiles(tiles))
            .with(Block::Forms(vec![filter]))
            .with(Block::Table(table)),
    ];
    let again = seen.left.iter().filter(|it| it.state != PrState::Merged);
    let again: Vec<_> = again.map(|it| it.entry.pr).take(MOST_AGAIN).collect();
    let forms = actions::again(seen.place, &again, seen.visitor);
    if !forms.is_empty() {
        sections.push(Section::new("again", "Submit again").with(Block::Forms(forms)));
    }
    Page {
        title: format!("Left the queue: {}", seen.place.name()),
        heading: "Left the queue".to_owned(),
        above: vec![
            Cell::text("Queues").link("/"),
            Cell::text(seen.place.name()).link(seen.place.path("queue")),
        ],
        menu: seen.place.menu("queue/left"),
        sections,
        curl: seen.place.curl("listPullRequests", ""),
        ..Page::default()
    }
}
