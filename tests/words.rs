//! The project's words: phrases that it does not use, in `tests/words.txt`, are found in every text
//! file, and each term that has forbidden synonyms is in the glossary.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

const LIST: &str = include_str!("words.txt");
/// Files whose words are not ours to choose, by the end of their path, and why.
const FOREIGN: [(&str, &str); 9] = [
    ("Cargo.lock", "names of dependencies"),
    ("package-lock.json", "names of dependencies"),
    (".svg", "drawings"),
    (".xml", "reports of other tools"),
    ("LICENSE", "the text of a license"),
    ("LICENSE-APACHE", "the text of a license"),
    ("LICENSE-MIT", "the text of a license"),
    ("tests/words.txt", "the list itself"),
    ("tests/words.rs", "the test of the list"),
];
/// Folders whose words are not ours to choose, and why.
const FOREIGN_FOLDERS: [(&str, &str); 2] = [
    ("crates/web/assets/vendor/", "scripts of other projects"),
    ("crates/domain/tests/histories/", "recorded histories"),
];
/// Uses of a phrase that stay: the file, the phrase, and why.
const ALLOWED: [(&str, &str, &str); 1] =
    [("crates/github/src/webhook.rs", "everybody", "the example secret in GitHub's documentation")];
/// Documents that quote phrases in order to advise against them.
const QUOTING: [&str; 1] = ["docs/contributing/style.md"];

/// A phrase in lower case, and what to write instead.
struct Phrase {
    words: Vec<String>,
    instead: &'static str,
}

/// The phrases by their first word.
struct Phrases(BTreeMap<String, Vec<Phrase>>);

/// A use of a phrase: the line from 1, the phrase, and what to write instead.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    line: usize,
    phrase: String,
    instead: &'static str,
}

/// A word in lower case, its line from 1, and whether only white space is before it.
struct Word {
    text: String,
    line: usize,
    follows: bool,
}

fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    LIST.lines().filter_map(|line| line.split_once('\t'))
}

fn phrases() -> Phrases {
    let mut phrases = BTreeMap::<String, Vec<Phrase>>::new();
    for (phrase, instead) in rows() {
        let words: Vec<String> = phrase.split(' ').map(ToOwned::to_owned).collect();
        let first = words.first().expect("a word").clone();
        phrases.entry(first).or_default().push(Phrase { words, instead });
    }
    Phrases(phrases)
}

impl Phrases {
    fn find(&self, path: &str, text: &str) -> Vec<Found> {
        let words = words(&prose(path, text));
        let mut found = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let Some(candidates) = self.0.get(&word.text) else { continue };
            for Phrase { words: phrase, instead } in candidates {
                let Some(here) = words.get(at..at + phrase.len()) else { continue };
                let is_joined = here.iter().skip(1).all(|word| word.follows);
                if is_joined && here.iter().map(|word| &word.text).eq(phrase) {
                    found.push(Found { line: word.line, phrase: phrase.join(" "), instead });
                }
            }
        }
        found
    }
}

fn words(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let (mut line, mut follows, mut inside) = (1, false, false);
    for c in text.chars() {
        if c.is_alphanumeric() || matches!(c, '_' | '-') {
            if !inside {
                words.push(Word { text: String::new(), line, follows });
            }
            let word = words.last_mut().expect("the word that was begun");
            word.text.extend(c.to_lowercase());
            (inside, follows) = (true, true);
        } else {
            inside = false;
            follows &= c.is_whitespace();
            line += usize::from(c == '\n');
        }
    }
    words
}

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|it| it == extension)
}

/// The same text with everything replaced that is not prose; the lines stay.
fn prose(path: &str, text: &str) -> String {
    if has_extension(path, "rs") { rust_prose(text) } else { plain_prose(text) }
}

/// A text without the marks of comments, lists and tables before each line.
fn plain_prose(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let rest = line.trim_start_matches([' ', '\t', '#', '/', '*', '-', '>', '!', '|']);
        rest.trim_end_matches('\\')
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Comments, strings and names of functions of a source file. Code in between becomes `|`.
fn rust_prose(text: &str) -> String {
    let mut prose = String::with_capacity(text.len());
    let mut rest = text;
    let mut word = String::new();
    while let Some(c) = rest.chars().next() {
        if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            prose += rest[..end].trim_start_matches(['/', '!']);
            rest = &rest[end..];
        } else if let Some(hashes) = raw_string(rest) {
            let close = format!("\"{}", "#".repeat(hashes));
            let start = hashes + 2;
            let end = rest[start..].find(&close).map_or(rest.len(), |at| start + at);
            prose.extend(["|", &rest[start..end], "|"]);
            rest = rest.get(end + close.len()..).unwrap_or_default();
        } else if c == '"' {
            rest = string(&rest[1..], &mut prose);
        } else if c == '\'' {
            // A character or a lifetime: neither is prose.
            let skipped = match rest[1..].chars().next() {
                Some('\\') => 4 + rest[3..].find('\'').unwrap_or(0),
                Some(inner) if rest[1 + inner.len_utf8()..].starts_with('\'') => {
                    2 + inner.len_utf8()
                }
                Some(_) | None => 1,
            };
            prose.push('|');
            rest = rest.get(skipped..).unwrap_or_default();
        } else if c.is_alphanumeric() || c == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let is_name = word == "fn";
            rest[..end].clone_into(&mut word);
            if is_name {
                prose.extend(["|", &word.replace('_', " "), "|"]);
            } else {
                prose.push('|');
            }
            rest = &rest[end..];
        } else {
            if !c.is_whitespace() {
                word.clear();
            }
            prose.push(if c.is_whitespace() { c } else { '|' });
            rest = &rest[c.len_utf8()..];
        }
    }
    prose
}

/// How many `#` a raw string has that begins here; `None` when none does.
fn raw_string(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

/// Adds the content of a string to the prose; returns what is behind it.
fn string<'a>(text: &'a str, prose: &mut String) -> &'a str {
    prose.push('|');
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => {
                prose.push('|');
                return &text[at + 1..];
            }
            '\\' => match characters.next() {
                Some((_, '\n')) => prose.push('\n'),
                Some(_) | None => prose.push('|'),
            },
            _ => prose.push(c),
        }
    }
    ""
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}

/// The tracked files whose words we choose.
fn files() -> Vec<String> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    let listed = listed.expect("git runs").stdout;
    let listed = String::from_utf8(listed).expect("paths are UTF-8");
    let is_ours = |path: &&str| {
        !path.is_empty()
            && !FOREIGN.iter().any(|(end, _)| path.ends_with(end))
            && !FOREIGN_FOLDERS.iter().any(|(folder, _)| path.starts_with(folder))
            // Data of tests is in JSON; documents are only in docs.
            && (!has_extension(path, "json") || path.starts_with("docs/"))
    };
    listed.split('\0').filter(is_ours).map(ToOwned::to_owned).collect()
}

fn read(path: &str) -> Option<String> {
    let bytes = std::fs::read(root().join(path)).ok()?;
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

#[test]
fn every_text_uses_the_words_of_the_project() {
    let phrases = phrases();
    let mut complaints = Vec::new();
    let mut used = BTreeSet::new();
    for path in files().iter().filter(|path| !QUOTING.contains(&path.as_str())) {
        let Some(text) = read(path) else { continue };
        for Found { line, phrase, instead } in phrases.find(path, &text) {
            let is_allowed =
                |(file, allowed, _): &(&str, &str, &str)| file == path && *allowed == phrase;
            match ALLOWED.iter().position(is_allowed) {
                Some(number) => drop(used.insert(number)),
                None => complaints.push(format!("{path}:{line}: {phrase:?}: write {instead}")),
            }
        }
    }
    assert!(complaints.is_empty(), "{} phrases:\n{}", complaints.len(), complaints.join("\n"));
    assert_eq!(used.len(), ALLOWED.len(), "an exception is not needed any more");
}

#[test]
fn terms_with_synonyms_are_in_the_glossary() {
    let files = files();
    let glossary = files.iter().find(|path| path.ends_with("/glossary.md")).expect("a glossary");
    let glossary = read(glossary).expect("a text").to_lowercase();
    let synonyms = LIST.split("\n## Synonyms").nth(1).expect("a section");
    for (synonym, term) in synonyms.lines().filter_map(|line| line.split_once('\t')) {
        assert!(glossary.contains(&format!("**{term}")), "{term:?}, instead of {synonym:?}");
    }
}

#[test]
fn the_list_has_each_phrase_once_with_advice() {
    let mut seen = BTreeSet::new();
    for (phrase, instead) in rows() {
        assert_eq!(phrase, phrase.to_lowercase().trim(), "{phrase:?}");
        assert!(!instead.trim().is_empty(), "{phrase:?} has no advice");
        assert!(seen.insert(phrase), "{phrase:?} is listed twice");
    }
    assert!(seen.len() >= 100, "{}", seen.len());
}

fn lines(path: &str, text: &str) -> Vec<usize> {
    phrases().find(path, text).into_iter().map(|found| found.line).collect()
}

#[test]
fn planted_phrases_are_found_in_every_kind_of_file() {
    for (path, text) in [
        ("a.md", "A page.\n\nIt is told\nonce more.\n"),
        ("a.md", "> A quote that somebody\n"),
        ("a.md", "| a table | of whoever |\n"),
        ("a.toml", "# What is told of it.\nkey = 1\n"),
        ("justfile", "# Do it once\n# more\nrun:\n"),
        ("a.sh", "echo 'ask somebody'\n"),
        ("a.sql", "-- Nobody reads\n-- this.\nSELECT 1;\n"),
        ("a.html", "<p>Somebody waits.</p>\n"),
        ("a.js", "// for ever\ntest('a', () => 1);\n"),
        ("docs/a.json", "{\"description\": \"What became of it\"}\n"),
        ("a.snap", "Nobody is here\n"),
    ] {
        assert!(!lines(path, text).is_empty(), "{path}: {text:?}");
    }
}

#[test]
fn planted_phrases_are_found_in_comments_strings_and_names_of_functions() {
    for (number, text) in [
        (1, "/// Those\n/// that wait.\nstruct A;\n"),
        (2, "fn a() {\n    let b = 1; // at once\n}\n"),
        (2, "fn a() {\n    say(\"it goes on\");\n}\n"),
        (1, "const A: &str = \"it goes \\\n    on\";\n"),
        (1, "const A: &str = r#\"a \"quote\" in vain\"#;\n"),
        (1, "async fn nobody_waits() {}\n"),
        (3, "/* a\n   block */\n// anew\n"),
        (2, "const A: char = '\"';\n// somebody\nconst B: char = '\"';\n"),
    ] {
        assert_eq!(lines("a.rs", text), [number], "{text}");
    }
}

#[test]
fn clean_texts_and_code_have_no_findings() {
    for (path, text) in [
        ("a.md", "The queue tests pull requests immediately. Those, that is, of main.\n"),
        ("a.rs", "/// Runs checks.\nfn run(at_once: bool) -> Those { that(at_once) }\n"),
        ("a.rs", "const A: [&str; 2] = [\"those\", \"that\"];\n"),
        ("a.rs", "impl<'a> A<'a> { fn b(&'a self) -> char { '\\'' } }\n"),
        ("a.toml", "at_once = 5\n"),
    ] {
        assert_eq!(lines(path, text), [0; 0], "{path}: {text:?}");
    }
}
