//! Mutations of a corpus.

use std::cell::RefCell;
use std::collections::BTreeSet;

use signalbox_testkit::fuzz::{LARGEST, committed, fuzz};

#[test]
fn inputs_differ_and_are_the_same_again() {
    let inputs = || {
        let seen = RefCell::new(Vec::new());
        fuzz("sample", &[b"<a b=\"c\"/>\n".repeat(30)], &["<!--"], |input| {
            seen.borrow_mut().push(input.to_vec());
        });
        seen.into_inner()
    };
    let first = inputs();
    assert_eq!(first, inputs());
    let different: BTreeSet<&Vec<u8>> = first.iter().collect();
    assert!(different.len() * 10 > first.len() * 9, "{} of {}", different.len(), first.len());
    assert!(first.iter().any(|input| input.len() > 1_000));
    assert!(first.iter().all(|input| input.len() <= LARGEST));
}

#[test]
#[should_panic(expected = "sample panics on ")]
fn a_panic_names_the_file_with_its_input() {
    fuzz("sample", &[b"abc".to_vec()], &["boom"], |input| {
        assert!(!input.windows(4).any(|window| window == b"boom"), "boom");
    });
}

#[test]
#[should_panic(expected = "tests/fuzz/corpus/missing: ")]
fn a_corpus_without_files_is_no_corpus() {
    committed("missing");
}
