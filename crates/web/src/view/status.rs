//! The server as those see it who run it.

use signalbox_domain::ports::{Backlog, Failing};
use signalbox_domain::time::{Span, Timestamp};

use crate::model::{Block, Cell, Page, Section, Table};
use crate::text::plain;

/// One thing that the server says of itself.
#[derive(Clone, Debug)]
pub struct ServerFact {
    /// What it is.
    pub name: &'static str,
    /// How it is.
    pub value: String,
    /// Whether that is as it should be.
    pub good: bool,
    /// What to do when it is not.
    pub advice: &'static str,
}

impl ServerFact {
    /// Calls of hosts, checks and uploads that no server has taken, and effects that have failed for
    /// long; `None` where the database does not answer. A backlog is good while the oldest is younger
    /// than the alert rules in `docs/operations` allow.
    pub fn of_work(
        [host, checks, uploads]: [Option<Backlog>; 3],
        failing: Option<&Failing>,
        now: Timestamp,
    ) -> Vec<Self> {
        vec![
            Self::backlog(
                "Calls of git hosts that wait",
                host,
                Span::minutes(2),
                "No server takes them, and queues do not go on: see the log.",
                now,
            ),
            Self::backlog(
                "Checks that wait",
                checks,
                Span::minutes(30),
                "Raise checks.concurrency of the host, or the slots of the queue are too many.",
                now,
            ),
            Self::backlog(
                "Uploads that wait",
                uploads,
                Span::minutes(15),
                "Raise flaky.readers, or look for uploads that cannot be read.",
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
        let name = "Calls of git hosts that keep failing";
        let advice = "The words are the last failure: mend that, and they go on by themselves.";
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
    let mut table = Table::new("facts", "The server", &["What", "State", "Value"]);
    for fact in facts {
        let state = if fact.good {
            Cell { icon: Some("check"), tone: "good", ..Cell::text("Good") }
        } else {
            Cell { icon: Some("warning"), tone: "bad", ..Cell::text("Look here") }
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
