//! The API reference, generated from the OpenAPI description. It sends no requests.

use serde_json::Value;

use crate::model::{Block, Cell, Page, Section, Table};
use crate::text::plain;

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// An operation: method, path, description.
type Call = (String, String, Value);

/// The page.
pub(crate) fn page(document: &str) -> Page {
    let document: Value = serde_json::from_str(document).unwrap_or_default();
    let mut groups: Vec<(String, Vec<Call>)> = Vec::new();
    let paths = document.get("paths").and_then(Value::as_object).cloned().unwrap_or_default();
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().cloned().unwrap_or_default() {
            let tag =
                operation.pointer("/tags/0").and_then(Value::as_str).unwrap_or("other").to_owned();
            let row = (method.to_uppercase(), path.clone(), operation);
            match groups.iter_mut().find(|(name, _)| *name == tag) {
                Some((_, rows)) => rows.push(row),
                None => groups.push((tag, vec![row])),
            }
        }
    }
    let mut sections = vec![
        Section::plain("intro")
            .with(Block::Text("Send a token in the header x-api-token. Errors are problem documents; their codes are listed in the documentation.".to_owned()))
            .with(Block::Links(vec![Cell::text("OpenAPI description").link("/v1/openapi.json")])),
    ];
    for (number, (tag, rows)) in groups.into_iter().enumerate() {
        let mut table = Table::new(
            &format!("api-{number}"),
            format!("Operations: {tag}"),
            &["Call", "What it does", "Replies"],
        );
        for (method, path, operation) in rows {
            let replies = operation.get("responses").and_then(Value::as_object);
            let replies: Vec<String> =
                replies.map(|it| it.keys().cloned().collect()).unwrap_or_default();
            let about = plain(text(&operation, "description"), 400);
            let summary = plain(text(&operation, "summary"), 200);
            let (first, more) =
                if summary.is_empty() { (about, String::new()) } else { (summary, about) };
            table.push(
                table.rows.len(),
                vec![
                    Cell::code(format!("{method} {path}")),
                    Cell::text(first).sub(more),
                    Cell::text(replies.join(", ")),
                ],
            );
        }
        sections.push(Section::new(&format!("group-{number}"), tag).with(Block::Table(table)));
    }
    Page { title: "API".to_owned(), sections, ..Page::default() }
}
