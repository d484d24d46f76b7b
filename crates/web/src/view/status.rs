//! The server as those see it who run it.

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
