//! Links, and the table of contents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::page::{Page, book, none, pages, root};

/// `docs/a/../b.md` as `docs/b.md`; `None` when it leaves the repository.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut parts = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => parts.pop().then_some(())?,
            Component::CurDir => {}
            other => parts.push(other),
        }
    }
    Some(parts)
}

/// Relative links whose file or heading does not exist, and links of the book to files outside of it,
/// which mdBook does not copy.
fn broken(pages: &[Page], exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let anchors: BTreeMap<&Path, BTreeSet<&str>> = pages
        .iter()
        .map(|page| (page.path.as_path(), page.anchors.iter().map(String::as_str).collect()))
        .collect();
    let mut found = Vec::new();
    for page in pages {
        for (line, target) in &page.links {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let folder = page.path.parent().expect("a folder");
            let path =
                if file.is_empty() { Some(page.path.clone()) } else { normal(&folder.join(file)) };
            let Some(path) = path.filter(|path| exists(path)) else {
                found.push(format!("{}: {target} does not exist", page.at(*line)));
                continue;
            };
            if page.path.starts_with("docs") && !path.starts_with("docs") {
                let advice = "name the file as code";
                found.push(format!(
                    "{}: {target} is not part of the book: {advice}",
                    page.at(*line)
                ));
            }
            let known = anchors.get(path.as_path());
            if !anchor.is_empty() && !known.is_some_and(|known| known.contains(anchor)) {
                found.push(format!("{}: {target} has no such heading", page.at(*line)));
            }
        }
    }
    found
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    none(&broken(&pages(), |path| root().join(path).exists()));
}

#[test]
fn a_broken_link_is_found() {
    let text =
        "# One Page: `x`\n[a](#one-page-x) [b](other.md#gone) ![c](no.svg)\n[d](../README.md)";
    let other = Page::parse("docs/other.md", "# Other");
    let found = broken(&[Page::parse("docs/page.md", text), other], |path| {
        ["docs/page.md", "docs/other.md", "README.md"].iter().any(|known| Path::new(known) == path)
    });
    assert_eq!(
        found,
        [
            "docs/page.md:2: other.md#gone has no such heading",
            "docs/page.md:2: no.svg does not exist",
            "docs/page.md:3: ../README.md is not part of the book: name the file as code",
        ]
    );
}

/// Pages that the table of contents does not list exactly once.
fn unlisted(book: &[Page]) -> Vec<String> {
    let summary = book.iter().find(|page| page.path.ends_with("SUMMARY.md")).expect("a summary");
    let listed: Vec<PathBuf> =
        summary.links.iter().map(|(_, target)| Path::new("docs").join(target)).collect();
    let mut found = Vec::new();
    for page in book.iter().filter(|page| !page.path.ends_with("SUMMARY.md")) {
        match listed.iter().filter(|path| **path == page.path).count() {
            1 => {}
            count => found.push(format!("{} is listed {count} times", page.path.display())),
        }
    }
    found
}

#[test]
fn every_page_is_listed_once_in_the_table_of_contents() {
    none(&unlisted(&book()));
}

#[test]
fn a_page_that_is_not_listed_is_found() {
    let pages = [
        Page::parse("docs/SUMMARY.md", "- [A](a.md)\n- [A](a.md)"),
        Page::parse("docs/a.md", "# A"),
        Page::parse("docs/b.md", "# B"),
    ];
    assert_eq!(unlisted(&pages), ["docs/a.md is listed 2 times", "docs/b.md is listed 0 times"]);
}

#[test]
fn titles_in_the_table_of_contents_are_those_of_the_pages() {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).expect("a summary");
    let mut found = Vec::new();
    for line in summary.lines() {
        let entry = line.split_once('[').and_then(|(_, rest)| rest.split_once("]("));
        let Some((title, path)) = entry else { continue };
        let path = Path::new("docs").join(path.trim_end_matches(')'));
        let text = std::fs::read_to_string(root().join(&path)).expect("a page");
        let heading = text.lines().next().unwrap_or_default().trim_start_matches("# ");
        if heading != title && !path.ends_with("0000-template.md") {
            found
                .push(format!("{}: {title:?} is listed, {heading:?} is the title", path.display()));
        }
    }
    none(&found);
}

#[test]
fn every_picture_is_shown_by_a_page() {
    let shown: BTreeSet<PathBuf> = pages()
        .iter()
        .flat_map(|page| {
            let folder = page.path.parent().expect("a folder").to_path_buf();
            page.links.iter().filter_map(move |(_, target)| normal(&folder.join(target)))
        })
        .collect();
    let images = std::fs::read_dir(root().join("docs/images")).expect("a folder").flatten();
    let paths = images.map(|image| Path::new("docs/images").join(image.file_name()));
    none(
        &paths
            .filter(|path| !shown.contains(path))
            .map(|path| format!("{path:?}"))
            .collect::<Vec<_>>(),
    );
}
