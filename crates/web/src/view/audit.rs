//! Who changed what.

use signalbox_domain::audit::AuditRecord;
use signalbox_domain::time::Timestamp;

use crate::model::{Block, Cell, Page, Section, Table};
use crate::text::{ago, plain};

/// The page.
pub(crate) fn page(records: &[AuditRecord], next: Option<String>, now: Timestamp) -> Page {
    let heads = ["When", "Who", "What", "Of what", "Changes", "Request"];
    let mut table =
        Table::new("audit", "Who changed what", &heads).empty("Nothing was changed yet.");
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
                Cell::text(record.action.word().replace(['.', '_'], " ")).sub(reason),
                Cell::text(plain(&record.object, 200)),
                Cell::text(changes.join("; ")),
                Cell::code(plain(record.request.as_deref().unwrap_or("–"), 40)),
            ],
        );
    }
    table.more = next;
    Page {
        title: "Audit log".to_owned(),
        sections: vec![Section::plain("list").with(Block::Table(table))],
        ..Page::default()
    }
}
