//! The figures of `docs/domain/policies.md` are what its commands print. `SIGNALBOX_UPDATE=1` writes
//! them again.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Parser;
use signalbox_cli::Simulate;
use signalbox_domain::queue::SharedPolicy;

/// The command of a block, after which its output follows.
const PROMPT: &str = "$ signalbox simulate ";
const BEGIN: &str = "```console\n";
const END: &str = "```\n";

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    simulate: Simulate,
}

fn parsed(command: &str) -> Simulate {
    let flags = command.strip_prefix(PROMPT).expect("a simulation").split(' ');
    Program::try_parse_from(std::iter::once("simulate").chain(flags)).expect("valid flags").simulate
}

fn page() -> (PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/domain/policies.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    (path, page)
}

/// The page with this instead of each block of a command and its output.
fn rewritten(page: &str, block: impl Fn(&str) -> String) -> String {
    let mut blocks = page.split(BEGIN);
    let mut text = blocks.next().unwrap_or_default().to_owned();
    for block_and_text in blocks {
        let (old, after) = block_and_text.split_once(END).expect("a block ends");
        let command = old.lines().next().expect("a block has a command");
        let output = block(command);
        let _written = write!(text, "{BEGIN}{command}\n{output}\n{END}{after}");
    }
    text
}

#[test]
fn every_command_is_valid() {
    let (_, page) = page();
    let commands = page.lines().filter(|line| line.starts_with('$'));
    let seeds: Vec<u32> = commands.map(|command| parsed(command).seeds).collect();
    assert!(seeds.len() > 5 && seeds.iter().all(|seeds| *seeds >= 20), "{seeds:?}");
}

#[test]
#[ignore = "takes minutes without optimization: run `just policies`"]
fn every_figure_is_what_its_command_prints() {
    let (path, page) = page();
    let now = rewritten(&page, |command| {
        parsed(command).run(None, &SharedPolicy::default()).expect("a result")
    });
    if std::env::var_os("SIGNALBOX_UPDATE").is_some() {
        std::fs::write(&path, now).expect("written");
    } else {
        assert_eq!(page, now, "write it again with SIGNALBOX_UPDATE=1");
    }
}
