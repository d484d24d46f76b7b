//! The audit log.

use signalbox_domain::audit::{AuditAction, AuditRecord};
use signalbox_domain::ports::AuditFilter;
use signalbox_domain::time::Timestamp;

use crate::model::{Block, Cell, Field, Form, Page, Section, Table};
use crate::text::{ago, plain, quoted};

/// The address of the page with that filter.
pub(crate) fn path(org: &str, action: Option<AuditAction>, object: Option<&str>) -> String {
    let action = action.map_or("", AuditAction::as_str);
    let object = quoted(object.unwrap_or_default());
    format!("/{org}/audit?action={action}&object={object}")
}

fn filters(org: &str, filter: &AuditFilter) -> Form {
    let mut actions = vec![(String::new(), "any".to_owned())];
    let words = AuditAction::ALL.iter().map(|it| it.as_str());
    actions.extend(words.map(|it| (it.to_owned(), it.replace(['.', '_'], " "))));
    Form {
        id: "filter".to_owned(),
        action: format!("/{org}/audit"),
        fields: vec![
            Field {
                name: "action",
                label: "Action".to_owned(),
                kind: "select",
                value: filter.action.map_or("", AuditAction::as_str).to_owned(),
                options: actions,
                ..Field::default()
            },
            Field {
                name: "object",
                label: "Object".to_owned(),
                kind: "search",
                value: filter.object.clone().unwrap_or_default(),
                ..Field::default()
            },
        ],
        button: "Show".to_owned(),
        ..Form::default()
    }
}

/// The page.
pub(crate) fn page(
    org: &str,
    filter: &AuditFilter,
    records: &[AuditRecord],
    next: Option<String>,
    now: Timestamp,
) -> Page {
    let heads = ["When", "Actor", "Action", "Object", "Changes", "Request"];
    let mut table = Table::new("audit", "Audit log", &heads).empty("No changes yet.");
    for record in records {
        let changes = record.changes.iter().take(10).map(|change| {
            let side = |value: &Option<String>| plain(value.as_deref().unwrap_or("–"), 120);
            format!("{}: {} → {}", change.field, side(&change.before), side(&change.after))
        });
        let changes: Vec<String> = changes.collect();
        let reason = record.reason.as_deref().map(|it| plain(it, 300)).unwrap_or_default();
        table.push(
            record.id,
            vec![
                ago(record.at, now),
                Cell::text(plain(&record.actor.to_string(), 120)),
                Cell::text(record.action.as_str().replace(['.', '_'], " ")).sub(reason),
                Cell::text(plain(&record.object, 200)).link(path(org, None, Some(&record.object))),
                Cell::text(changes.join("; ")),
                Cell::code(plain(record.request.as_deref().unwrap_or("–"), 40)),
            ],
        );
    }
    table.more = next;
    let mut section = Section::plain("list").with(Block::Forms(vec![filters(org, filter)]));
    if filter.action.is_some() || filter.object.is_some() {
        "No changes match this filter.".clone_into(&mut table.empty);
        let all = Cell::text("Show all changes").link(path(org, None, None));
        section = section.with(Block::Links(vec![all]));
    }
    Page {
        title: "Audit log".to_owned(),
        sections: vec![section.with(Block::Table(table))],
        ..Page::default()
    }
}
