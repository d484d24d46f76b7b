//! Pages of the documentation, split into what the checks read: links, headings and code.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}

/// A Markdown file.
pub(crate) struct Page {
    /// Its path below the root.
    pub(crate) path: PathBuf,
    /// The ids of its headings, as a code host and mdBook make them.
    pub(crate) anchors: Vec<String>,
    /// Links and images: the line and the target.
    pub(crate) links: Vec<(usize, String)>,
    /// Code in text: the line and the code.
    pub(crate) spans: Vec<(usize, String)>,
    /// Fenced code.
    pub(crate) blocks: Vec<Block>,
}

/// Fenced code.
pub(crate) struct Block {
    /// The line on which it begins.
    pub(crate) line: usize,
    /// The word after the fence; empty without one.
    pub(crate) language: String,
    /// Its content.
    pub(crate) text: String,
}

impl Page {
    /// Splits the text of a page.
    pub(crate) fn parse(path: impl Into<PathBuf>, text: &str) -> Self {
        let (mut links, mut spans, mut blocks) = (Vec::new(), Vec::new(), Vec::new());
        let mut anchors: Vec<String> = Vec::new();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut open: Option<Block> = None;
        // A paragraph: code and links may continue on the next line.
        let (mut start, mut paragraph) = (1, String::new());
        for (at, line) in text.lines().chain([""]).enumerate() {
            let number = at + 1;
            let fence = line.trim_start().strip_prefix("```");
            if fence.is_some() || line.trim().is_empty() || open.is_some() {
                collect(&paragraph, start, &mut links, &mut spans);
                paragraph.clear();
            }
            if let Some(language) = fence {
                if let Some(block) = open.take() {
                    blocks.push(block);
                } else {
                    let language = language.trim().to_owned();
                    open = Some(Block { line: number, language, text: String::new() });
                }
            } else if let Some(block) = &mut open {
                block.text.push_str(line);
                block.text.push('\n');
            } else {
                if line.starts_with('#') && line.trim_start_matches('#').starts_with(' ') {
                    let id = anchor(line.trim_start_matches('#').trim());
                    let earlier = seen.entry(id.clone()).or_default();
                    anchors.push(if *earlier == 0 { id } else { format!("{id}-{earlier}") });
                    *earlier += 1;
                }
                if paragraph.is_empty() {
                    start = number;
                }
                paragraph.push_str(line);
                paragraph.push('\n');
            }
        }
        Self { path: path.into(), anchors, links, spans, blocks }
    }

    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("a page");
        Self::parse(path.strip_prefix(root()).expect("below the root"), &text)
    }

    /// `docs/page.md:12`.
    pub(crate) fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }
}

/// The id of a heading: lower case, without punctuation, with hyphens for spaces.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|char| char.is_alphanumeric() || " -_".contains(*char));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The code and the links of a paragraph that begins on this line.
fn collect(
    paragraph: &str,
    mut line: usize,
    links: &mut Vec<(usize, String)>,
    spans: &mut Vec<(usize, String)>,
) {
    let mut plain = String::new();
    for (at, part) in paragraph.split('`').enumerate() {
        if at % 2 == 1 {
            spans.push((line, part.replace('\n', " ")));
        } else {
            plain.push_str(part);
        }
        line += part.matches('\n').count();
        if at % 2 == 1 {
            // Lines inside of code count for the links after it.
            plain.extend(part.chars().filter(|char| *char == '\n'));
        }
    }
    let mut line = line - paragraph.matches('\n').count();
    let mut parts = plain.split("](");
    line += parts.next().unwrap_or_default().matches('\n').count();
    for part in parts {
        if let Some((target, _)) = part.split_once(')') {
            links.push((line, target.to_owned()));
        }
        line += part.matches('\n').count();
    }
}

/// Every page below `docs`, in the order of their paths.
pub(crate) fn book() -> Vec<Page> {
    let mut folders = vec![root().join("docs")];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths.iter().map(|path| Page::read(path)).collect()
}

/// The book, and the pages at the root of the repository and of its crates.
pub(crate) fn pages() -> Vec<Page> {
    let mut pages = book();
    for name in ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"] {
        pages.push(Page::read(&root().join(name)));
    }
    for entry in std::fs::read_dir(root().join("crates")).expect("a folder").flatten() {
        let path = entry.path().join("README.md");
        if path.exists() {
            pages.push(Page::read(&path));
        }
    }
    pages
}

/// Fails with a list.
#[track_caller]
pub(crate) fn none(found: &[String]) {
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}
