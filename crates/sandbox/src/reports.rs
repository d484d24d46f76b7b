//! Reports that a check wrote: found in its checkout, and nowhere else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use signalbox_domain::flaky::BranchPattern;
use signalbox_domain::ports::ReportFile;

/// The most files that are taken from a check.
pub(crate) const MAX_FILES: usize = 500;
/// The most bytes of one of them.
pub(crate) const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// The most bytes of all of them.
pub(crate) const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// The most directory entries that are read.
pub(crate) const MAX_ENTRIES: usize = 200_000;
/// The most folders below one another.
const MAX_DEPTH: usize = 32;

/// The rule that a pattern breaks, if any. Patterns are relative: `*` and `?` stay within a name,
/// `**` is any number of folders.
pub fn report_pattern_problem(pattern: &str) -> Option<&'static str> {
    if pattern.is_empty() || pattern.len() > 1_000 {
        Some("must have 1 to 1,000 bytes")
    } else if pattern.starts_with('/') {
        Some("must be relative to the checkout")
    } else if pattern.split('/').any(|part| part == "..") {
        Some("must not lead out of the checkout")
    } else {
        None
    }
}

/// The reports of a check.
#[derive(Default)]
pub struct Collected {
    /// By name, opened.
    pub files: Vec<ReportFile>,
    /// How many files exceed the limits and are omitted.
    pub omitted: usize,
    /// How many of the files were there before the check began.
    pub old: usize,
}

/// The files that fit before a check begins: their names, and what changes when one is written.
pub(crate) type Before = BTreeMap<String, [i64; 3]>;

/// What fits one of the patterns before a check begins.
pub(crate) fn before(checkout: &Path, patterns: &[String]) -> Before {
    let found = find(checkout, patterns).into_iter();
    let mark = |(name, path): (String, PathBuf)| Some((name, mark(&fs::metadata(path).ok()?)));
    found.filter_map(mark).collect()
}

fn mark(file: &Metadata) -> [i64; 3] {
    [file.ino().cast_signed(), file.ctime(), file.ctime_nsec()]
}

/// Names and paths of the files that fit one of the patterns, by name. Links are not followed, and
/// `.git` is not searched.
fn find(checkout: &Path, patterns: &[String]) -> Vec<(String, PathBuf)> {
    let mut search = Search { patterns: parse(patterns), entries: 0, found: Vec::new() };
    search.folder(checkout, &mut Vec::new());
    search.found.sort_unstable();
    search.found
}

/// The names of each pattern.
pub(crate) fn parse(patterns: &[String]) -> Vec<Vec<&str>> {
    patterns.iter().map(|it| it.split('/').filter(|it| *it != ".").collect()).collect()
}

/// The folders and files at or below which a file can fit, as few as possible: the names of each
/// pattern before its first wildcard.
pub(crate) fn folders<'a>(patterns: &[Vec<&'a str>]) -> BTreeSet<Vec<&'a str>> {
    let plain = |pattern: &Vec<&'a str>| -> Vec<&'a str> {
        pattern.iter().copied().take_while(|name| !name.contains(['*', '?'])).collect()
    };
    let all: BTreeSet<Vec<&str>> = patterns.iter().map(plain).collect();
    let is_below =
        |folder: &Vec<&str>, other: &Vec<&str>| folder != other && folder.starts_with(other);
    all.iter().filter(|it| !all.iter().any(|other| is_below(it, other))).cloned().collect()
}

/// Whether the path of a file fits one of the patterns, and is where reports are searched.
pub(crate) fn is_report(patterns: &[Vec<&str>], names: &[String]) -> bool {
    let is_searched = names.len() <= MAX_DEPTH && names.first().is_some_and(|name| name != ".git");
    is_searched && patterns.iter().any(|pattern| fits(pattern, names))
}

/// The reports of a check. Files that have not changed since `before` are old.
pub(crate) fn collect(checkout: &Path, patterns: &[String], before: &Before) -> Collected {
    let (mut collected, mut bytes) = (Collected::default(), 0_u64);
    for (name, path) in find(checkout, patterns) {
        let opened =
            if collected.files.len() < MAX_FILES { open(&path).ok().flatten() } else { None };
        match opened {
            Some((file, length)) if bytes.saturating_add(length) <= MAX_BYTES => {
                bytes += length;
                let now = file.metadata().map(|it| mark(&it)).ok();
                collected.old += usize::from(before.get(&name).copied() == now && now.is_some());
                // It may grow while it is read: its writer may still be running.
                let content = Box::new(file.take(length));
                collected.files.push(ReportFile { name, content });
            }
            Some(_) | None => collected.omitted += 1,
        }
    }
    collected
}

/// Opens a plain file that is small enough. A link that took its place meanwhile is none.
fn open(path: &Path) -> io::Result<Option<(File, u64)>> {
    let seen = fs::symlink_metadata(path)?;
    if !seen.is_file() || seen.len() > MAX_FILE_BYTES {
        return Ok(None);
    }
    let file = File::open(path)?;
    let opened = file.metadata()?;
    let same = (opened.dev(), opened.ino()) == (seen.dev(), seen.ino());
    Ok(same.then_some((file, seen.len())))
}

struct Search<'a> {
    patterns: Vec<Vec<&'a str>>,
    entries: usize,
    found: Vec<(String, PathBuf)>,
}

impl Search<'_> {
    fn folder(&mut self, folder: &Path, names: &mut Vec<String>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return;
            }
            // Of the entry itself: a link is neither a folder nor a file.
            let Ok(kind) = entry.file_type() else { continue };
            let Ok(name) = entry.file_name().into_string() else { continue };
            if names.is_empty() && name == ".git" {
                continue;
            }
            names.push(name);
            let fits = self.patterns.iter().any(|pattern| {
                if kind.is_dir() { may_hold(pattern, names) } else { fits(pattern, names) }
            });
            if fits && kind.is_dir() && names.len() < MAX_DEPTH {
                self.folder(&entry.path(), names);
            } else if fits && kind.is_file() {
                self.found.push((names.join("/"), entry.path()));
            }
            names.pop();
        }
    }
}

fn one(pattern: &str, name: &str) -> bool {
    BranchPattern(pattern.to_owned()).matches(name)
}

/// Whether a path fits a pattern.
fn fits(pattern: &[&str], names: &[String]) -> bool {
    match (pattern.split_first(), names.split_first()) {
        (None, None) => true,
        (Some((&"**", rest)), _) if fits(rest, names) => true,
        (Some((&"**", _)), Some((_, inner))) => fits(pattern, inner),
        (Some((first, rest)), Some((name, inner))) => one(first, name) && fits(rest, inner),
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Whether something below a folder can fit a pattern.
fn may_hold(pattern: &[&str], names: &[String]) -> bool {
    match (pattern.split_first(), names.split_first()) {
        (Some((&"**", _)), _) => true,
        (Some((_, rest)), None) => !rest.is_empty() || names.is_empty(),
        (Some((first, rest)), Some((name, inner))) => one(first, name) && may_hold(rest, inner),
        (None, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkout(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::TempDir::new().expect("a folder");
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, file).expect("written");
        }
        folder
    }

    fn names(folder: &Path, patterns: &[&str]) -> Vec<String> {
        let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        let found = collect(folder, &patterns, &Before::new());
        found.files.into_iter().map(|file| file.name).collect()
    }

    #[test]
    fn patterns_find_matching_files() {
        let folder = checkout(&[
            "junit.xml",
            "target/nextest/ci/junit.xml",
            "target/nextest/junit.xml",
            "target/other.txt",
            ".git/junit.xml",
        ]);
        let path = folder.path();
        assert_eq!(names(path, &["junit.xml"]), ["junit.xml"]);
        assert_eq!(names(path, &["./junit.xml", "*.xml"]), ["junit.xml"], "once");
        let nextest = ["target/nextest/ci/junit.xml", "target/nextest/junit.xml"];
        assert_eq!(names(path, &["target/nextest/**/junit.xml"]), nextest);
        assert_eq!(names(path, &["target/*/*/*.xml"]), nextest[..1]);
        assert_eq!(names(path, &["**/*.xml"]).len(), 3);
        assert_eq!(names(path, &["target/other.t?t"]), ["target/other.txt"]);
        assert!(names(path, &["target", "nothing/**", ".git/*"]).is_empty());
        let mut text = String::new();
        let mut found = collect(path, &["junit.xml".to_owned()], &Before::new());
        found.files[0].content.read_to_string(&mut text).expect("text");
        assert_eq!((text.as_str(), found.omitted, found.old), ("junit.xml", 0, 0));
        let all = ["**/*.xml".to_owned()];
        let there = before(path, &all);
        fs::write(path.join("new.xml"), "new").expect("written");
        let found = collect(path, &all, &there);
        assert_eq!((found.files.len(), found.old), (4, 3), "the check wrote one of them");
    }

    #[test]
    fn only_folders_that_can_hold_reports_are_searched() {
        let found = |patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
            let parsed = parse(&patterns);
            folders(&parsed).iter().map(|it| it.join("/")).collect::<Vec<_>>()
        };
        assert_eq!(found(&["target/nextest/**/junit.xml"]), ["target/nextest"]);
        assert_eq!(found(&["./a/b/*.xml", "a/b/c/d.xml", "e/?/f.xml"]), ["a/b", "e"]);
        assert_eq!(found(&["junit.xml", "a/b"]), ["a/b", "junit.xml"]);
        assert_eq!(found(&["*.xml", "a/b/*.xml"]), [""], "the checkout has all of them");
        assert_eq!(found(&[]), [""; 0]);
    }

    #[test]
    fn links_lead_nowhere() {
        let (outside, folder) = (checkout(&["secret.xml"]), checkout(&["own.xml"]));
        let link = |to: &Path, name: &str| {
            std::os::unix::fs::symlink(to, folder.path().join(name)).expect("a link");
        };
        link(&outside.path().join("secret.xml"), "link.xml");
        link(outside.path(), "folder");
        link(folder.path(), "round");
        assert_eq!(names(folder.path(), &["**/*.xml"]), ["own.xml"]);
        assert!(names(folder.path(), &["folder/secret.xml", "link.xml"]).is_empty());
        assert!(open(&folder.path().join("link.xml")).expect("checked").is_none());
    }

    #[test]
    fn files_beyond_the_limits_are_omitted_and_counted() {
        let many: Vec<String> = (0..MAX_FILES + 3).map(|at| format!("{at:04}.xml")).collect();
        let folder = checkout(&many.iter().map(String::as_str).collect::<Vec<_>>());
        let large = File::create(folder.path().join("0000.xml")).expect("a file");
        large.set_len(MAX_FILE_BYTES + 1).expect("a length");
        let found = collect(folder.path(), &["*.xml".to_owned()], &Before::new());
        assert_eq!((found.files.len(), found.omitted), (MAX_FILES, 3));
        assert_eq!(found.files[0].name, "0001.xml");
    }

    #[test]
    fn patterns_stay_inside() {
        for pattern in ["", "/etc/*", "../*.xml", "a/../../b", ".."] {
            assert!(report_pattern_problem(pattern).is_some(), "{pattern}");
        }
        for pattern in ["a", "**/b.xml", "a..b/*"] {
            assert_eq!(report_pattern_problem(pattern), None, "{pattern}");
        }
    }
}
