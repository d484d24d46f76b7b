//! API tokens of an organization.

use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::token::{Compatibility, Scope, Token, TokenText};
use signalbox_services::MAX_TOKEN_DAYS;
use signalbox_wording::Tone;

use crate::model::{Block, Cell, Field, Form, Page, Section, Table};
use crate::text::{ago, plain};
use crate::visitor::Visitor;

/// The page.
pub(crate) fn page(tokens: &[Token], visitor: &Visitor, now: Timestamp) -> Page {
    let mut table = Table::new(
        "tokens",
        "API tokens",
        &["Name", "Allows", "Repositories", "State", "Created", "Expires"],
    )
    .empty("No tokens.");
    let mut forms = Vec::new();
    for token in tokens.iter().take(super::ROWS) {
        let own = token.id == visitor.caller.token;
        table.push(token.id, row(token, own, now));
        if token.is_valid(now) && visitor.session.is_some() {
            forms.extend(of_token(token, own, visitor));
        }
    }
    let mut sections = Vec::new();
    let good = || tokens.iter().filter(|it| it.is_valid(now));
    let endless = good().filter(|it| it.expires_at.is_none() && it.revoked_at.is_none()).count();
    if endless > 0 {
        let text = "Replace them with tokens that expire.";
        let title = format!("Tokens that never expire: {endless}.");
        let notice = Block::notice(Tone::Warning, "warning", &title, text);
        sections.push(Section::plain("warnings").with(notice));
    }
    sections.push(Section::plain("list").with(Block::Table(table)));
    if visitor.session.is_some() {
        let make = Section::new("make", "New token").with(Block::Forms(vec![create(visitor)]));
        sections.push(make);
    }
    if !forms.is_empty() {
        sections.push(Section::new("revoke", "Replace or revoke").with(Block::Forms(forms)));
    }
    Page { title: "Tokens".to_owned(), sections, ..Page::default() }
}

fn row(token: &Token, own: bool, now: Timestamp) -> Vec<Cell> {
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    let repos: Vec<String> = token.repos.iter().map(ToString::to_string).collect();
    let repos = if repos.is_empty() { "all".to_owned() } else { repos.join(", ") };
    let state = match (token.is_valid(now), token.revoked_at.is_some()) {
        (true, false) => Cell { icon: Some("check"), tone: "good", ..Cell::text("Valid") },
        (true, true) => Cell { icon: Some("clock"), tone: "quiet", ..Cell::text("Replaced") },
        (false, true) => Cell { icon: Some("minus"), tone: "quiet", ..Cell::text("Revoked") },
        (false, false) => Cell { icon: Some("clock"), tone: "quiet", ..Cell::text("Expired") },
    };
    let ends = token.revoked_at.or(token.expires_at);
    vec![
        Cell { mark: own.then_some("yours"), ..Cell::text(plain(&token.name, 100)) },
        Cell::text(scopes.join(", ")),
        Cell::text(plain(&repos, 300)),
        state,
        ago(token.created_at, now),
        ends.map_or_else(|| Cell::text("never"), |at| ago(at, now)),
    ]
}

fn post(visitor: &Visitor, action: &str) -> Form {
    Form {
        action: format!("/{}/tokens", visitor.org()),
        post: true,
        hidden: vec![("action", action.to_owned())],
        ..Form::default()
    }
}

fn of_token(token: &Token, own: bool, visitor: &Visitor) -> Vec<Form> {
    let name = plain(&token.name, 60);
    let mut forms = Vec::new();
    let mine = |scope: &Scope| visitor.may(*scope);
    if token.revoked_at.is_none() && token.scopes.iter().all(mine) {
        let mut rotate = Form {
            id: format!("rotate-{}", token.id),
            title: format!("Replace {name}"),
            note: "The new token has the same scopes and is shown only once.".to_owned(),
            fields: vec![Field {
                name: "hours",
                label: "The old token expires".to_owned(),
                kind: "select",
                options: [
                    ("0", "immediately"),
                    ("1", "in an hour"),
                    ("24", "in a day"),
                    ("168", "in 7 days"),
                ]
                .map(|(hours, label)| (hours.to_owned(), label.to_owned()))
                .to_vec(),
                value: "1".to_owned(),
                ..Field::default()
            }],
            button: "Replace".to_owned(),
            ..post(visitor, "rotate")
        };
        rotate.hidden.push(("token", token.id.to_string()));
        forms.push(rotate);
    }
    let note = if own {
        "You are signed in with this token and will be signed out."
    } else {
        "Clients that use it are refused within a second."
    };
    let mut revoke = Form {
        id: format!("revoke-{}", token.id),
        title: format!("Revoke {name}"),
        note: note.to_owned(),
        button: "Revoke".to_owned(),
        danger: true,
        ..post(visitor, "revoke")
    };
    revoke.hidden.push(("token", token.id.to_string()));
    forms.push(revoke);
    forms
}

fn create(visitor: &Visitor) -> Form {
    let means = |scope: Scope| match scope {
        Scope::QueueRead => "read queues",
        Scope::QueueSubmit => "submit, restart and cancel",
        Scope::QueueUrgent => "submit as urgent",
        Scope::QueueAdmin => "administer queues, webhooks and tokens",
        Scope::TestsRead => "read test results",
        Scope::TestsUpload => "upload results, ask about quarantine",
        Scope::TestsAdmin => "change quarantine, monitors and settings of tests",
        Scope::ChecksReport => "report results of external checks",
    };
    let offered = Scope::ALL.into_iter().filter(|scope| visitor.may(*scope));
    let option =
        |scope: Scope| (scope.as_str().to_owned(), format!("{}: {}", scope.as_str(), means(scope)));
    let profile = |profile: Compatibility| {
        let means = match profile {
            Compatibility::Specification => "written for the specification",
            Compatibility::V1Live => "of the public service, version 1 (v1-live)",
        };
        (profile.as_str().to_owned(), means.to_owned())
    };
    Form {
        id: "create".to_owned(),
        title: "Create a token".to_owned(),
        note: "The token is shown only once.".to_owned(),
        fields: vec![
            Field {
                name: "name",
                label: "Name".to_owned(),
                kind: "text",
                hint: "Shown as the actor in queues and in the audit log.".to_owned(),
                required: true,
                ..Field::default()
            },
            Field {
                name: "scope",
                label: "Allows".to_owned(),
                kind: "boxes",
                options: offered.map(option).collect(),
                value: format!("{}\n{}", Scope::QueueRead.as_str(), Scope::TestsRead.as_str()),
                ..Field::default()
            },
            Field {
                name: "days",
                label: "Expires after (days)".to_owned(),
                kind: "number",
                value: "90".to_owned(),
                hint: format!("1 to {MAX_TOKEN_DAYS}; empty: never."),
                ..Field::default()
            },
            Field {
                name: "compat",
                label: "Clients".to_owned(),
                kind: "select",
                options: Compatibility::ALL.into_iter().map(profile).collect(),
                value: visitor.caller.compatibility.as_str().to_owned(),
                ..Field::default()
            },
            Field {
                name: "repos",
                label: "Repositories".to_owned(),
                kind: "lines",
                hint: "HOST/OWNER/NAME, one per line; empty: all of the organization.".to_owned(),
                ..Field::default()
            },
        ],
        button: "Create".to_owned(),
        ..post(visitor, "create")
    }
}

/// The page that shows a new token.
pub(crate) fn made(org: &str, token: &Token, text: &TokenText) -> Page {
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    let ends = token.expires_at.map(|at| format!(" until {}", at.floor(Span::seconds(1))));
    let next = format!(
        "{} allows {}{}.",
        plain(&token.name, 100),
        scopes.join(", "),
        ends.unwrap_or_default()
    );
    super::webhooks::secret("Token created", text.reveal(), &next, &format!("/{org}/tokens"))
}
