//! API tokens of an organization.

use signalbox_domain::time::Timestamp;
use signalbox_domain::token::Token;

use crate::model::{Block, Cell, Form, Page, Section, Table};
use crate::text::{ago, plain};
use crate::visitor::Visitor;

/// The page.
pub(crate) fn page(tokens: &[Token], visitor: &Visitor, now: Timestamp) -> Page {
    let mut table = Table::new(
        "tokens",
        "API tokens",
        &["Name", "Allows", "Repositories", "State", "Made", "Ends"],
    )
    .empty("There is no token.");
    let mut forms = Vec::new();
    for token in tokens.iter().take(super::ROWS) {
        let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.word()).collect();
        let repos: Vec<String> = token.repos.iter().map(ToString::to_string).collect();
        let repos = if repos.is_empty() { "all".to_owned() } else { repos.join(", ") };
        let good = token.is_valid(now);
        let own = token.id == visitor.caller.token;
        let state = match (good, token.revoked_at.is_some()) {
            (true, _) => Cell { icon: Some("check"), tone: "good", ..Cell::text("Good") },
            (false, true) => Cell { icon: Some("minus"), tone: "quiet", ..Cell::text("Revoked") },
            (false, false) => Cell { icon: Some("clock"), tone: "quiet", ..Cell::text("Expired") },
        };
        let ends = token.revoked_at.or(token.expires_at);
        table.push(
            token.id,
            vec![
                Cell { mark: own.then_some("yours"), ..Cell::text(plain(&token.name, 100)) },
                Cell::text(scopes.join(", ")),
                Cell::text(plain(&repos, 300)),
                state,
                ago(token.created_at, now),
                ends.map_or_else(|| Cell::text("never"), |at| ago(at, now)),
            ],
        );
        if good && visitor.session.is_some() {
            let note = if own {
                "You are signed in with this token and will be signed out."
            } else {
                "Whoever uses it is refused within a second."
            };
            forms.push(Form {
                id: format!("revoke-{}", token.id),
                action: format!("/{}/tokens", visitor.org()),
                post: true,
                title: format!("Revoke {}", plain(&token.name, 60)),
                note: note.to_owned(),
                hidden: vec![("token", token.id.to_string())],
                button: "Revoke it".to_owned(),
                danger: true,
                ..Form::default()
            });
        }
    }
    let create = "signalbox token create --help".to_owned();
    Page {
        title: "Tokens".to_owned(),
        sections: vec![
            Section::plain("list").with(Block::Table(table)),
            Section::new("revoke", "Revoke").with(Block::Forms(forms)),
            Section::new("make", "Make one")
                .with(Block::Text(
                    "Tokens are made on the command line, where their text is shown once."
                        .to_owned(),
                ))
                .with(Block::Pre(create)),
        ],
        ..Page::default()
    }
}
