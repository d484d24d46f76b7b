//! The same page for programs: everything on it as JSON, its first table as CSV.

use actix_web::HttpRequest;
use actix_web::http::header::ACCEPT;
use serde_json::{Map, Value, json};

use crate::model::{Block, Cell, Page, Table};
use crate::visitor::Asked;

/// The format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Html,
    Json,
    Csv,
}

impl Form {
    /// The requested format: from `format`, otherwise from the `Accept` header.
    pub(crate) fn of(request: &HttpRequest) -> Self {
        let accepts = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
        let first = accepts.unwrap_or_default().split([',', ';']).next().unwrap_or_default().trim();
        match Asked::query(request).text("format") {
            "json" => Self::Json,
            "csv" => Self::Csv,
            _ if first == "application/json" => Self::Json,
            _ if first == "text/csv" => Self::Csv,
            _ => Self::Html,
        }
    }
}

fn cell(cell: &Cell) -> Value {
    let mut all = Map::new();
    all.insert("text".to_owned(), json!(cell.text));
    if let Some(mark) = cell.mark {
        all.insert("mark".to_owned(), json!(mark));
    }
    let more =
        [("href", cell.href.as_ref()), ("time", cell.time.as_ref()), ("note", cell.sub.as_ref())];
    for (name, value) in more {
        if let Some(value) = value {
            all.insert(name.to_owned(), json!(value));
        }
    }
    Value::Object(all)
}

fn table(table: &Table) -> Value {
    let columns: Vec<&str> = table.heads.iter().map(|it| it.label).collect();
    let rows = table.rows.iter().map(|row| row.cells.iter().map(cell).collect());
    let rows: Vec<Vec<Value>> = rows.collect();
    json!({ "table": table.caption, "columns": columns, "rows": rows, "next": table.more })
}

fn block(block: &Block) -> Option<Value> {
    Some(match block {
        Block::Notice { title, text, .. } => json!({ "notice": title, "text": text }),
        Block::Answer { label, text, next, .. } => {
            json!({ "answer": label, "text": text, "next": next })
        }
        Block::Text(text) | Block::Pre(text) | Block::Log { text, .. } => json!({ "text": text }),
        Block::Part(name, text) => json!({ "name": name, "text": text }),
        Block::Tiles(tiles) | Block::Summary(tiles) => {
            let tile = |it: &crate::model::Tile| json!({ "name": it.label, "value": it.value, "note": it.note });
            json!({ "numbers": tiles.iter().map(tile).collect::<Vec<_>>() })
        }
        Block::Details(facts) => {
            let facts = facts.iter().map(|(name, it)| ((*name).to_owned(), cell(it)));
            json!({ "facts": facts.collect::<Map<_, _>>() })
        }
        Block::Table(it) | Block::Chart(_, it) => table(it),
        Block::Timeline(steps) => {
            let step = |it: &crate::model::TimelineStep| {
                let lines: Vec<Value> = it.lines.iter().map(cell).collect();
                json!({ "what": cell(&it.what), "when": cell(&it.when), "lines": lines })
            };
            json!({ "timeline": steps.iter().map(step).collect::<Vec<_>>() })
        }
        Block::Links(links) => json!({ "links": links.iter().map(cell).collect::<Vec<_>>() }),
        Block::Forms(_) | Block::Picture(_) => return None,
    })
}

/// Everything on a page but its forms.
pub(crate) fn json(page: &Page) -> String {
    let sections = page.sections.iter().map(|section| {
        let blocks: Vec<Value> = section.blocks.iter().filter_map(block).collect();
        json!({ "heading": section.heading, "note": section.note, "blocks": blocks })
    });
    let beside: Vec<Value> = page.beside.iter().map(cell).collect();
    let sections: Vec<Value> = sections.collect();
    json!({ "title": page.title, "beside": beside, "sections": sections }).to_string()
}

/// The first table of a page, with a head; nothing when it has none. Texts that a spreadsheet would
/// take for a formula begin with an apostrophe.
pub(crate) fn csv(page: &Page) -> String {
    let blocks = page.sections.iter().flat_map(|section| &section.blocks);
    let table = blocks.filter_map(|it| match it {
        Block::Table(table) => Some(table),
        Block::Notice { .. }
        | Block::Answer { .. }
        | Block::Text(_)
        | Block::Tiles(_)
        | Block::Summary(_)
        | Block::Picture(_)
        | Block::Details(_)
        | Block::Chart(..)
        | Block::Forms(_)
        | Block::Timeline(_)
        | Block::Pre(_)
        | Block::Log { .. }
        | Block::Part(..)
        | Block::Links(_) => None,
    });
    let Some(table) = table.into_iter().next() else { return String::new() };
    let mut text = String::new();
    let mut line = |cells: Vec<&str>| {
        let cells: Vec<String> = cells.into_iter().map(quoted).collect();
        text.push_str(&cells.join(","));
        text.push_str("\r\n");
    };
    line(table.heads.iter().map(|it| it.label).collect());
    for row in &table.rows {
        let texts: Vec<String> = row.cells.iter().map(value).collect();
        line(texts.iter().map(String::as_str).collect());
    }
    text
}

/// A cell as one value: its time or its text, and unless it is a number its badge and its note.
fn value(cell: &Cell) -> String {
    let main = cell.time.as_deref().unwrap_or(&cell.text);
    let more = [cell.mark, cell.sub.as_deref()].into_iter().flatten();
    let more = more.filter(|_| !cell.number && cell.time.is_none());
    std::iter::once(main).chain(more).filter(|it| !it.is_empty()).collect::<Vec<_>>().join("; ")
}

fn quoted(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.len() > 1;
    let sign = if formula { "'" } else { "" };
    format!("\"{sign}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;
    use crate::model::Section;

    #[test]
    fn the_format_of_a_page_comes_from_its_query_or_its_accept_header() {
        let form = |path: &str, accept: &str| {
            Form::of(
                &TestRequest::get().uri(path).insert_header((ACCEPT, accept)).to_http_request(),
            )
        };
        assert_eq!(form("/", "text/html,application/json;q=0.9"), Form::Html);
        assert_eq!(form("/", "application/json"), Form::Json);
        assert_eq!(form("/", "text/csv;q=1"), Form::Csv);
        assert_eq!(form("/?format=json", "text/html"), Form::Json);
        assert_eq!(form("/?format=xml", "*/*"), Form::Html);
    }

    #[test]
    fn cells_are_no_formulas_and_keep_their_quotes() {
        let mut table = Table::new("t", "T", &["A", "#B"]);
        table.push(1, vec![Cell::text("=1+1"), Cell::text("-")]);
        table.push(2, vec![Cell::text("a \"b\",\nc"), Cell::text("")]);
        let page = Page {
            sections: vec![Section::plain("s").with(Block::Table(table))],
            ..Page::default()
        };
        let text = csv(&page);
        assert_eq!(text, "\"A\",\"B\"\r\n\"'=1+1\",\"-\"\r\n\"a \"\"b\"\",\nc\",\"\"\r\n");
        assert_eq!(csv(&Page::default()), "");
        let twin: Value = serde_json::from_str(&json(&page)).expect("JSON");
        assert_eq!(twin["sections"][0]["blocks"][0]["rows"][1][0]["text"], "a \"b\",\nc");
    }
}
