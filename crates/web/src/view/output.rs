//! The output of a check: while it runs, the end so far; and the lines that contain a text.

use std::fmt::Write as _;

use signalbox_domain::ids::QueueId;
use signalbox_domain::ports::{CheckOutput, is_omission};
use signalbox_domain::queue::{Check, CheckStatus, TestRun};
use signalbox_domain::time::Timestamp;
use signalbox_services::without_sequences;

use super::QueueAddress;
use crate::model::{Block, Cell, Field, Form, Page, Section};
use crate::text::{ago, plain};

/// The most characters of a line of output.
const MAX_COLUMNS: usize = 2_000;
/// The most lines with the text of a search that are shown.
const MAX_MATCHES: usize = 200;
/// The lines that are shown before and after one with the text.
const AROUND: usize = 2;

/// A text of several lines, each as pages show text.
pub(crate) fn printable(text: &str) -> String {
    text.lines().map(printable_line).collect::<Vec<_>>().join("\n")
}

fn printable_line(line: &str) -> String {
    plain(&line.replace('\t', "    "), MAX_COLUMNS)
}

/// What a page about an output shows.
pub(crate) struct Seen<'a> {
    pub(crate) place: &'a QueueAddress,
    pub(crate) queue: QueueId,
    pub(crate) run: &'a TestRun,
    pub(crate) check: &'a Check,
    /// `None`: the server has none.
    pub(crate) output: Option<&'a CheckOutput>,
    /// The text whose lines are searched; empty: no search.
    pub(crate) search: &'a str,
    /// The version of its live updates.
    pub(crate) version: u64,
    pub(crate) now: Timestamp,
}

impl Seen<'_> {
    /// Whether there may be more output.
    fn is_open(&self) -> bool {
        self.run.status.is_running() && self.check.status != CheckStatus::Completed
    }
}

/// The page with the output of a check.
pub(crate) fn page(seen: &Seen<'_>) -> Page {
    let Seen { place, run, check, .. } = seen;
    let name = plain(&check.name, 200);
    let text = seen.output.map(|output| without_sequences(&output.text));
    let mut sections = vec![facts(seen)];
    if let Some(text) = text.as_deref().filter(|text| !text.is_empty()) {
        sections.push(search(seen, text));
    }
    let none = if seen.is_open() {
        "The check has not printed anything yet. Output appears here within a few seconds."
    } else {
        "No output is stored for this check. Outputs are deleted after `retention.outputs_days` days."
    };
    let section = Section::new("output", "Output");
    sections.push(match text {
        Some(text) if text.is_empty() && !seen.is_open() => {
            section.with(Block::Text("The check printed nothing.".to_owned()))
        }
        None => section.with(Block::Text(none.to_owned())),
        Some(text) if text.is_empty() => section.with(Block::Text(none.to_owned())),
        Some(text) if seen.is_open() => section
            .note("the latest output, updated while the check runs")
            .with(Block::Log { text: printable(&text), follow: true }),
        Some(text) => section.with(Block::Log { text: printable(&text), follow: false }),
    });
    Page {
        title: format!("Output of {name}"),
        above: vec![
            Cell::text("Queues").link("/"),
            Cell::text(place.name()).link(place.path("queue")),
        ],
        topic: if seen.is_open() {
            format!("output:{}:{}", seen.queue, run.id)
        } else {
            String::new()
        },
        version: seen.version,
        sections,
        ..Page::default()
    }
}

fn facts(seen: &Seen<'_>) -> Section {
    let Seen { place, run, check, .. } = seen;
    let result = check.conclusion.map_or_else(|| Cell::named(&check.status), |it| Cell::named(&it));
    let prs = run
        .group
        .iter()
        .map(|member| Cell::text(format!("#{}", member.pr)).link(place.pr(member.pr)));
    let candidate = run.candidate.as_ref();
    let commit = candidate.map_or_else(Cell::default, |it| Cell::to_copy(it.sha.to_string()));
    let facts = vec![
        ("Test run", Cell::number(run.number)),
        ("Commit", commit),
        ("Result", result),
        ("Reported", ago(check.at, seen.now)),
    ];
    Section::plain("run").with(Block::Links(prs.collect())).with(Block::Details(facts))
}

/// The form, and the lines that contain the text.
fn search(seen: &Seen<'_>, text: &str) -> Section {
    let Seen { place, run, check, search, .. } = seen;
    let form = Form {
        id: "find".to_owned(),
        action: format!("/{}/queue/output", place.org),
        hidden: vec![
            ("repo", place.repo.to_string()),
            ("branch", place.branch.to_string()),
            ("run", run.id.to_string()),
            ("check", check.name.clone()),
        ],
        fields: vec![Field {
            name: "q",
            label: "Search output".to_owned(),
            kind: "search",
            value: (*search).to_owned(),
            ..Field::default()
        }],
        button: "Search".to_owned(),
        ..Form::default()
    };
    let section = Section::plain("found").with(Block::Forms(vec![form]));
    if search.is_empty() {
        return section;
    }
    let all =
        Cell::text("Clear the search").link(super::run::output_path(place, run.id, &check.name));
    let found = Found::of(text, search);
    let section = section.with(Block::Text(found.words())).with(Block::Links(vec![all]));
    if found.count == 0 {
        section
    } else {
        section.with(Block::Log { text: found.text, follow: false })
    }
}

/// The lines that contain a text, with their numbers and the lines around them.
struct Found {
    count: usize,
    lines: usize,
    text: String,
    /// Whether a part of the output is not stored.
    is_cut: bool,
}

impl Found {
    /// The case of letters does not count.
    fn of(text: &str, search: &str) -> Self {
        let search = search.to_lowercase();
        let lines: Vec<&str> = text.lines().collect();
        let matches = |line: &&str| line.to_lowercase().contains(&search);
        let hits: Vec<usize> =
            (0..lines.len()).filter(|at| lines.get(*at).is_some_and(matches)).collect();
        let width = lines.len().to_string().len();
        let is_cut = lines.iter().any(|line| is_omission(line));
        let (count, text) = (hits.len(), String::new());
        let mut found = Self { count, lines: lines.len(), text, is_cut };
        let mut next = 0;
        for hit in hits.iter().take(MAX_MATCHES) {
            let from = hit.saturating_sub(AROUND).max(next);
            if next > 0 && from > next {
                found.text.push_str("⋯\n");
            }
            let to = (hit + AROUND + 1).min(lines.len());
            for (number, line) in lines.iter().enumerate().take(to).skip(from) {
                let mark = if hits.binary_search(&number).is_ok() { '>' } else { ' ' };
                let (number, line) = (number + 1, printable_line(line));
                let _always = writeln!(found.text, "{mark} {number:>width$}  {line}");
            }
            next = to.max(next);
        }
        found
    }

    fn words(&self) -> String {
        let found = match self.count {
            0 => format!("No lines match. {} lines searched.", self.lines),
            count if count > MAX_MATCHES => {
                format!(
                    "Showing the first {MAX_MATCHES} of {count} matching lines; {} lines searched:",
                    self.lines
                )
            }
            count => format!("{count} of {} lines match:", self.lines),
        };
        if self.is_cut {
            format!("Parts of the output are not stored, and their lines are not counted. {found}")
        } else {
            found
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_with_their_numbers_and_neighbours() {
        let lines: Vec<String> = (1..=30).map(|it| format!("line {it}")).collect();
        let mut text = lines.join("\n");
        text = text.replace("line 10\n", "An ERROR\n").replace("line 12\n", "error: b\n");
        text = text.replace("line 30", "Error at the end");
        let found = Found::of(&text, "error");
        let expected = "   8  line 8\n   9  line 9\n> 10  An ERROR\n  11  line 11\n> 12  error: b\n  13  \
                        line 13\n  14  line 14\n⋯\n  28  line 28\n  29  line 29\n> 30  Error at the \
                        end\n";
        assert_eq!(found.text, expected);
        assert_eq!(found.words(), "3 of 30 lines match:");
        let none = Found::of(&text, "panic");
        assert_eq!(
            (none.text.as_str(), none.words().as_str()),
            ("", "No lines match. 30 lines searched.")
        );
    }

    #[test]
    fn the_end_of_a_long_line_is_found_and_omissions_are_stated() {
        let omission = signalbox_domain::ports::omission(12);
        let text = format!("{}needle\n{omission}\nlast", "x".repeat(2 * MAX_COLUMNS));
        let found = Found::of(&text, "Needle");
        assert!(found.text.starts_with("> 1  xxx") && found.text.contains("x…\n"));
        assert_eq!(
            found.words(),
            "Parts of the output are not stored, and their lines are not counted. 1 of 3 lines match:"
        );
    }

    #[test]
    fn many_lines_are_cut() {
        let found = Found::of(&"same\n".repeat(1_000), "SAME");
        assert_eq!(
            found.words(),
            "Showing the first 200 of 1000 matching lines; 1000 lines searched:"
        );
        assert_eq!(found.text.lines().count(), MAX_MATCHES + AROUND);
        assert_eq!(Found::of(&"é\n".repeat(3), "É").count, 3);
    }
}
