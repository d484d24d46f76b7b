//! Feeds a parser with mutations of a corpus: it must neither panic nor hang, whatever it gets. The
//! input of a panic is kept; after a hang or an abort, the same seed leads to it again.
//!
//! The mutations follow from `PROPTEST_RNG_SEED`, which the test command derives from the commit, so a
//! failed run can be repeated. `SIGNALBOX_FUZZ_INPUTS` sets their number. No coverage guides them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::simulation::random::Random;

/// The usual number of inputs of a parser.
const INPUTS: u32 = 2_000;
/// The most bytes of an input.
pub const LARGEST: usize = 64 * 1_024;
/// The most mutations of an input.
const MUTATIONS: u32 = 8;
/// Bytes at the limits of what they may mean.
const EDGES: [u8; 12] = [0, 1, b'\n', b'"', b'&', b'<', b'{', 0x7f, 0x80, 0xc3, 0xfe, 0xff];

/// The files of a folder below `tests/fuzz/corpus`.
///
/// # Panics
///
/// If there is no such folder, or if it is empty.
pub fn committed(name: &str) -> Vec<Vec<u8>> {
    corpus(
        &PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fuzz/corpus")).join(name),
    )
}

/// The files of a folder, by name.
///
/// # Panics
///
/// If there is no such folder, or if it is empty.
pub fn corpus(folder: &Path) -> Vec<Vec<u8>> {
    let shown = folder.display();
    let files = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("corpus {shown}: {error}"));
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    assert!(!paths.is_empty(), "corpus {shown}: no files");
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a readable file")).collect()
}

/// A folder for parsers that write files, in memory where the system has such a place.
///
/// # Panics
///
/// If it cannot be made.
pub fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder")
}

/// Calls a parser with every input of the corpus and with mutations of them, which also contain these
/// words. An input that makes it panic is written to a file, which the failure names.
pub fn fuzz(target: &str, corpus: &[Vec<u8>], words: &[&str], parse: impl Fn(&[u8])) {
    let mut random = random_of(target);
    let inputs = std::env::var("SIGNALBOX_FUZZ_INPUTS").ok().and_then(|text| text.parse().ok());
    let check = |input: &[u8]| {
        if catch_unwind(AssertUnwindSafe(|| parse(input))).is_err() {
            let hash = Sha256::digest(input);
            let name =
                format!("signalbox-fuzz-{target}-{:02x}{:02x}{:02x}", hash[0], hash[1], hash[2]);
            let path = std::env::temp_dir().join(name);
            std::fs::write(&path, input).expect("written");
            panic!("{target} panics on {}: fix it, and add the file to the corpus", path.display());
        }
    };
    for input in corpus {
        check(input);
    }
    for _ in 0..inputs.unwrap_or(INPUTS) {
        check(&mutated(&mut random, corpus, words));
    }
}

fn mutated(random: &mut Random, corpus: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let mut input = random.pick(corpus).cloned().unwrap_or_default();
    for _ in 0..=random.below(MUTATIONS) {
        mutate(random, &mut input, corpus, words);
        input.truncate(LARGEST);
    }
    input
}

fn mutate(random: &mut Random, input: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[&str]) {
    let from = position(random, input.len());
    let to = from + position(random, (input.len() - from).min(256));
    match random.below(9) {
        0 => {
            if let Some(byte) = input.get_mut(from) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => {
            if let Some(byte) = input.get_mut(from) {
                *byte = *random.pick(&EDGES).expect("an edge");
            }
        }
        2 => drop(input.drain(from..to)),
        3 => {
            let piece = input[from..to].to_vec();
            insert(input, from, &piece);
        }
        4 => {
            let word = random.pick(words).copied().unwrap_or_default();
            insert(input, from, word.as_bytes());
        }
        5 => {
            let other = random.pick(corpus).cloned().unwrap_or_default();
            let start = position(random, other.len());
            input.truncate(from);
            input.extend_from_slice(&other[start..]);
        }
        6 => {
            let bytes: Vec<u8> =
                (0..random.below(16)).map(|_| random.next().to_le_bytes()[0]).collect();
            insert(input, from, &bytes);
        }
        7 => input.truncate(from),
        // Depth and length.
        _ => {
            let times = random.below(500) as usize;
            let piece = input[from..to].repeat(times);
            insert(input, from, &piece[..piece.len().min(LARGEST)]);
        }
    }
}

fn insert(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    input.splice(at..at, bytes.iter().copied());
}

/// Numbers that a seed and the name of a parser determine.
fn random_of(target: &str) -> Random {
    let seed = std::env::var("PROPTEST_RNG_SEED").unwrap_or_default();
    let hash = Sha256::digest(format!("{target} {seed}"));
    Random::new(u64::from_le_bytes(hash[..8].try_into().expect("eight bytes")))
}

/// From 0 up to and with the length.
fn position(random: &mut Random, length: usize) -> usize {
    random.below(u32::try_from(length).expect("a small input") + 1) as usize
}
