//! No unit test is forgotten: a library without a test target has its unit tests included by a file in `tests`.

use std::path::{Path, PathBuf};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path);
        }
    }
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).expect("UTF-8")
}

/// The files of a crate with unit tests that are never run.
fn forgotten(krate: &Path) -> Vec<String> {
    if !text(&krate.join("Cargo.toml")).contains("\ntest = false\n") {
        return Vec::new();
    }
    let (mut sources, mut tests) = (Vec::new(), Vec::new());
    files(&krate.join("src"), &mut sources);
    files(&krate.join("tests"), &mut tests);
    let included: String = tests.iter().map(|path| text(path)).collect();
    let is_included = |path: &Path| included.contains(&format!("\"../{}\"", path.display()));
    let with_tests = sources.iter().filter(|path| text(path).contains("#[cfg(test)]"));
    let own = with_tests.map(|path| path.strip_prefix(krate).expect("inside the crate"));
    own.filter(|path| !is_included(path)).map(|path| path.display().to_string()).collect()
}

#[test]
fn every_unit_test_is_run() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the root").join("crates");
    let mut without = 0;
    for krate in std::fs::read_dir(crates).expect("crates").flatten() {
        let krate = krate.path();
        without += usize::from(text(&krate.join("Cargo.toml")).contains("\ntest = false\n"));
        assert_eq!(forgotten(&krate), Vec::<String>::new(), "{}", krate.display());
    }
    assert!(without > 0, "this check looks in the wrong place");
}

#[test]
fn a_forgotten_unit_test_is_found() {
    let krate = tempfile::TempDir::new().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = krate.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    };
    write("Cargo.toml", "[lib]\ntest = false\n");
    write("src/a.rs", "#[cfg(test)]\nmod tests {}\n");
    write("tests/modules.rs", "");
    assert_eq!(forgotten(krate.path()), ["src/a.rs"]);
    write("tests/modules.rs", "#[path = \"../src/a.rs\"]\nmod a;\n");
    assert!(forgotten(krate.path()).is_empty());
}
