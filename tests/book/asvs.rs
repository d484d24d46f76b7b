//! The checklist of ASVS 5.0 (`docs/security/asvs.csv`) and the pages about security name tests that
//! exist, and the counts on the page agree with the list.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::page::{book, none, root};

const LIST: &str = "docs/security/asvs.csv";
const PAGE: &str = "docs/security/asvs.md";
const HEAD: [&str; 6] = ["id", "level", "requirement", "status", "tests", "reason"];
const STATUSES: [&str; 3] = ["met", "not met", "not applicable"];
/// Files whose functions become tests by a macro.
const SUITES: [&str; 2] = ["crates/conformance/src/", "tests/it/attacks/mod.rs"];

/// A requirement.
struct Row {
    line: usize,
    id: String,
    level: String,
    requirement: String,
    status: String,
    tests: String,
    reason: String,
}

impl Row {
    /// `3.4.1` of `v5.0.0-3.4.1`; `None` if the id is malformed.
    fn number(&self) -> Option<&str> {
        let number = self.id.strip_prefix("v5.0.0-")?;
        let parts: Vec<&str> = number.split('.').collect();
        let is_plain = |part: &&str| part.parse::<u8>().is_ok_and(|it| it.to_string() == **part);
        (parts.len() == 3 && parts.iter().all(is_plain)).then_some(number)
    }

    fn chapter(&self) -> Option<u8> {
        self.number()?.split('.').next()?.parse().ok()
    }
}

/// The fields of a line; a field in quotes may contain commas and doubled quotes.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '"' if quoted && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            _ => field.push(char),
        }
    }
    fields.push(field);
    fields
}

/// The rows of a list, and the lines that are none.
fn rows(text: &str) -> (Vec<Row>, Vec<String>) {
    let (mut rows, mut wrong) = (Vec::new(), Vec::new());
    for (at, line) in text.lines().enumerate() {
        let line_number = at + 1;
        let fields = fields(line);
        if at == 0 {
            if fields != HEAD {
                wrong.push(format!("the columns must be {}", HEAD.join(",")));
            }
            continue;
        }
        match <[String; 6]>::try_from(fields) {
            Ok([id, level, requirement, status, tests, reason]) => {
                rows.push(Row { line: line_number, id, level, requirement, status, tests, reason });
            }
            Err(fields) => wrong.push(format!("line {line_number}: {} fields", fields.len())),
        }
    }
    (rows, wrong)
}

/// The error in a test's name, `file::function` or, of a browser test, `file::words`.
fn missing(name: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let Some((file, function)) = name.split_once("::") else {
        return Some(format!("{name:?} must be file::test"));
    };
    let Some(text) = read(file) else { return Some(format!("there is no {file}")) };
    let found = if Path::new(file).extension().is_some_and(|it| it == "js") {
        text.contains(&format!("test({function:?}, "))
    } else {
        let is_suite = SUITES.iter().any(|suite| file.starts_with(suite));
        is_test(&text, function, is_suite)
    };
    (!found).then(|| format!("{file} has no test {function:?}"))
}

/// Whether a source file has a function with an attribute for tests above it, or any if the file is
/// a suite.
fn is_test(text: &str, function: &str, is_suite: bool) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let start = format!("fn {function}(");
    let is_it = |line: &str| {
        let at = line.find(&start);
        at.is_some_and(|at| line[..at].split(' ').all(|it| ["", "pub", "async"].contains(&it)))
    };
    let above = |at: usize| lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
    lines
        .iter()
        .enumerate()
        .any(|(at, line)| is_it(line) && (is_suite || above(at).any(|line| line.contains("test"))))
}

/// The mistakes of a list.
fn mistakes(rows: &[Row], read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let (mut ids, mut found) = (BTreeSet::new(), Vec::new());
    for row in rows {
        let mut wrong = |words: String| found.push(format!("line {}: {words}", row.line));
        if row.number().is_none() {
            wrong(format!("invalid id {:?}: expected v5.0.0- and three numbers", row.id));
        }
        if !ids.insert(&row.id) {
            wrong(format!("duplicate id {}", row.id));
        }
        if !["1", "2"].contains(&row.level.as_str()) {
            wrong(format!("invalid level {:?}: expected 1 or 2", row.level));
        }
        if row.requirement.is_empty() || row.requirement.split(' ').count() > 12 {
            wrong(format!("{} must be summarized in 1 to 12 words", row.id));
        }
        match row.status.as_str() {
            "met" if row.tests.is_empty() => wrong(format!("{} names no test", row.id)),
            "met" => row.tests.split("; ").filter_map(|it| missing(it, read)).for_each(wrong),
            "not met" | "not applicable" => {
                if row.reason.is_empty() || !row.tests.is_empty() {
                    wrong(format!("{} must have a reason, and tests only in it", row.id));
                }
            }
            other => {
                wrong(format!("invalid status {other:?}: expected {}", STATUSES.join(", ")));
            }
        }
    }
    found
}

/// Lines that the page must have, by their beginning and end, and the requirements not met that it
/// must name.
fn disagreements(rows: &[Row], page: &str) -> Vec<String> {
    let mut counts: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    let total = (rows.len(), "rows, one for each requirement");
    let mut found = Vec::new();
    if !page.contains(&format!("{} {}", total.0, total.1)) {
        found.push(format!("the page must have: {} {}", total.0, total.1));
    }
    let (_, listed) = page.split_once("## What is not met").unwrap_or_default();
    let not_number = |char: char| !char.is_ascii_digit() && char != '.';
    let listed: BTreeSet<&str> =
        listed.split(not_number).filter(|word| word.matches('.').count() == 2).collect();
    let mut open = BTreeSet::new();
    for row in rows {
        let Some(at) = STATUSES.iter().position(|status| *status == row.status) else { continue };
        let chapter = row.chapter().map_or_else(String::new, |it| format!("V{it} "));
        for key in [format!("level {} ", row.level), chapter] {
            if let Some(count) = counts.entry(key).or_default().get_mut(at) {
                *count += 1;
            }
        }
        if row.status == "not met" {
            open.extend(row.number());
        }
    }
    for (key, [met, not_met, not_applicable]) in counts {
        let (start, end) =
            (format!("| {key}"), format!("| {met} | {not_met} | {not_applicable} |"));
        if !page.lines().any(|line| line.starts_with(&start) && line.ends_with(&end)) {
            found.push(format!("the page must have: {start}… {end}"));
        }
    }
    let forgotten = open.difference(&listed).map(|it| format!("{it} is not met, and not listed"));
    found.extend(forgotten);
    let wrong = listed.difference(&open).map(|it| format!("{it} is listed, and not one not met"));
    found.extend(wrong);
    found
}

fn read(file: &str) -> Option<String> {
    std::fs::read_to_string(root().join(file)).ok()
}

#[test]
fn the_checklist_names_tests_and_reasons() {
    let (rows, mut found) = rows(&read(LIST).expect("the list"));
    found.extend(mistakes(&rows, &read));
    for row in &rows {
        let words =
            row.reason.split([' ', '(', ')', ',', ';', ':']).map(|it| it.trim_end_matches('.'));
        let files = words.filter(|it| it.starts_with("docs/") || it.starts_with("crates/"));
        let gone = files.filter(|file| !root().join(file).exists());
        found.extend(gone.map(|file| format!("line {}: there is no {file}", row.line)));
    }
    none(&found);
}

#[test]
fn the_page_agrees_with_the_checklist() {
    let (rows, _) = rows(&read(LIST).expect("the list"));
    none(&disagreements(&rows, &read(PAGE).expect("the page")));
}

#[test]
fn tests_that_pages_about_security_name_exist() {
    let mut found = Vec::new();
    let pages = book();
    for page in pages.iter().filter(|page| page.path.starts_with("docs/security")) {
        let is_name = |span: &str| {
            let file = span.split_once("::").map(|(file, _)| Path::new(file));
            file.and_then(Path::extension).is_some_and(|it| it == "rs" || it == "js")
        };
        for (line, span) in page.spans.iter().filter(|(_, span)| is_name(span)) {
            found.extend(missing(span, &read).map(|words| format!("{}: {words}", page.at(*line))));
        }
    }
    none(&found);
}

#[test]
fn mistakes_in_a_checklist_are_found() {
    let file = "#[test]\nfn shown() {}\nfn helper() {}\n#[tokio::test]\nasync fn waits() {}\n";
    let read = |name: &str| match name {
        "a.rs" => Some(file.to_owned()),
        "a.js" => Some("await test(\"a, b\", async () => {".to_owned()),
        _ => None,
    };
    let text = "id,level,requirement,status,tests,reason\n\
        v5.0.0-1.1.1,1,\"One, \"\"two\"\"\",met,a.rs::shown; a.rs::waits,\n\
        v5.0.0-1.1.2,2,Two,met,\"a.js::a, b\",\n\
        v5.0.0-1.1.3,2,Three,not met,,why\n";
    let (good, wrong) = rows(text);
    assert!(wrong.is_empty() && mistakes(&good, &read).is_empty());
    assert_eq!(good[0].requirement, "One, \"two\"");
    for (row, words) in [
        ("1.1.1,1,One,met,a.rs::shown,", "invalid id"),
        ("v5.0.0-1.1.01,1,One,met,a.rs::shown,", "invalid id"),
        ("v5.0.0-1.1.1,3,One,met,a.rs::shown,", "invalid level"),
        ("v5.0.0-1.1.1,1,,met,a.rs::shown,", "must be summarized"),
        ("v5.0.0-1.1.1,1,One,done,a.rs::shown,", "invalid status"),
        ("v5.0.0-1.1.1,1,One,met,,", "names no test"),
        ("v5.0.0-1.1.1,1,One,met,a.rs::helper,", "a.rs has no test"),
        ("v5.0.0-1.1.1,1,One,met,a.rs::gone,", "a.rs has no test"),
        ("v5.0.0-1.1.1,1,One,met,a.js::gone,", "a.js has no test"),
        ("v5.0.0-1.1.1,1,One,met,b.rs::shown,", "there is no b.rs"),
        ("v5.0.0-1.1.1,1,One,met,shown,", "must be file::test"),
        ("v5.0.0-1.1.1,1,One,not met,,", "must have a reason"),
        ("v5.0.0-1.1.1,1,One,not applicable,a.rs::shown,", "must have a reason"),
    ] {
        let (rows, _) = rows(&format!("head\n{row}"));
        let found = mistakes(&rows, &read);
        assert!(found.len() == 1 && found[0].contains(words), "{row}: {found:?}");
    }
    let (twice, _) = rows(&format!("{text}v5.0.0-1.1.3,2,Three,not met,,why"));
    assert_eq!(mistakes(&twice, &read), ["line 5: duplicate id v5.0.0-1.1.3"]);
    assert_eq!(rows("id,level\nv5.0.0-1.1.1,1").1.len(), 2);
    let page = "3 rows, one for each requirement\n| level 1 | 1 | 0 | 0 |\n\
        | level 2 | 1 | 1 | 0 |\n| V1 One | 2 | 1 | 0 |\n## What is not met\n1.1.3";
    assert_eq!(disagreements(&good, page), [""; 0]);
    for (from, to) in
        [("3 rows", "4 rows"), ("2 | 1", "1 | 1"), ("\n1.1.3", ""), ("1.1.3", "1.1.2")]
    {
        assert!(!disagreements(&good, &page.replace(from, to)).is_empty(), "{from}");
    }
}

/// Whether all of a workspace's crates take its lints, and these forbid unsafe code.
fn forbids_unsafe(workspace: &str, crates: &[String]) -> bool {
    let table = |text: &str| text.parse::<toml::Table>().expect("TOML");
    let workspace = table(workspace);
    let lint = &workspace["workspace"]["lints"]["rust"]["unsafe_code"];
    let inherits = |text: &String| {
        let table = table(text);
        let lints = table.get("lints").and_then(|it| it.get("workspace"));
        lints.and_then(toml::Value::as_bool) == Some(true)
    };
    lint.as_str() == Some("forbid") && crates.iter().all(inherits)
}

#[test]
fn every_crate_forbids_unsafe_code() {
    let folders = std::fs::read_dir(root().join("crates")).expect("the crates").flatten();
    let manifests = folders.map(|it| it.path().join("Cargo.toml"));
    let mut crates: Vec<String> =
        manifests.map(|path| std::fs::read_to_string(path).expect("a manifest")).collect();
    crates.extend(read("tests/Cargo.toml"));
    assert!(crates.len() > 20);
    let workspace = read("Cargo.toml").expect("the workspace");
    assert!(forbids_unsafe(&workspace, &crates));
    assert!(!forbids_unsafe(&workspace, &["[package]\nname = \"a\"".to_owned()]));
    assert!(!forbids_unsafe(&workspace.replace("\"forbid\"", "\"warn\""), &crates));
}
