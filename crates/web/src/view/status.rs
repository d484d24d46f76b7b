//! The page about the server, for operators.

use signalbox_domain::ports::{Backlog, Failing};
use signalbox_domain::time::{Span, Timestamp};

use crate::model::{Block, Cell, Page, Section, Table};
use crate::text::plain;

/// A fact about the server.
#[derive(Clone, Debug)]
pub struct ServerFact {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// Whether it is healthy.
    pub good: bool,
    /// What to do when it is not healthy.
    pub advice: &'static str,
}

impl ServerFact {
    /// Calls of hosts, checks and uploads that no server has leased, and effects that keep failing;
    /// `None` where the database does not respond. A backlog is healthy while the oldest item is
    /// younger than the alert rules in `docs/operations` allow.
    pub fn of_work(
        [host, checks, uploads]: [Option<Backlog>; 3],
        failing: Option<&Failing>,
        now: Timestamp,
    ) -> Vec<Self> {
        vec![
            Self::backlog(
                "Waiting calls of git hosts",
                host,
                Span::minutes(2),
                "No server runs them, so queues make no progress: see the log.",
                now,
            ),
            Self::backlog(
                "Waiting checks",
                checks,
                Span::minutes(30),
                "Raise checks.concurrency of the host, or lower the concurrency of the queues.",
                now,
            ),
            Self::backlog(
                "Waiting uploads",
                uploads,
                Span::minutes(15),
                "Raise flaky.readers, or check the log for uploads that fail.",
                now,
            ),
            Self::failing(failing, now),
        ]
    }

    fn backlog(
        name: &'static str,
        backlog: Option<Backlog>,
        patience: Span,
        advice: &'static str,
        now: Timestamp,
    ) -> Self {
        let (value, good) = match backlog {
            Some(Backlog { due, oldest }) => {
                let age = oldest.map_or(Span::ZERO, |at| now.since(at));
                let minutes = age.millis() / 60_000;
                let value = match (due, minutes) {
                    (0, _) => "none".to_owned(),
                    (_, 0) => format!("{due}"),
                    (_, _) => format!("{due}, the oldest for {minutes} min"),
                };
                (value, age <= patience)
            }
            None => ("unknown".to_owned(), false),
        };
        Self { name, value, good, advice }
    }

    fn failing(failing: Option<&Failing>, now: Timestamp) -> Self {
        let name = "Failing calls of git hosts";
        let advice = "The text is the last error: fix its cause, and they continue automatically.";
        let longest = failing.map(|failing| (failing.count, failing.longest.first()));
        let (value, good) = match longest {
            Some((count, Some(longest))) => {
                let minutes = now.since(longest.since).millis() / 60_000;
                (format!("{count}, one for {minutes} min: {}", longest.error), false)
            }
            Some((_, None)) => ("none".to_owned(), true),
            None => ("unknown".to_owned(), false),
        };
        Self { name, value, good, advice }
    }
}

/// The page.
pub(crate) fn page(facts: &[ServerFact]) -> Page {
    let mut table = Table::new("facts", "The server", &["Name", "State", "Value"]);
    for fact in facts {
        let state = if fact.good {
            Cell { icon: Some("check"), tone: "good", ..Cell::text("Good") }
        } else {
            Cell { icon: Some("warning"), tone: "bad", ..Cell::text("Needs attention") }
        };
        table.push(
            table.rows.len(),
            vec![
                Cell::text(fact.name),
                state,
                Cell::text(plain(&fact.value, 300)).sub(if fact.good { "" } else { fact.advice }),
            ],
        );
    }
    Page {
        title: "Server".to_owned(),
        sections: vec![Section::plain("server").with(Block::Table(table))],
        curl: "curl \"$SIGNALBOX_URL/readyz\"".to_owned(),
        ..Page::default()
    }
}
