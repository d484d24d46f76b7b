//! The arrows between crates, and the shape of the house. A failure says what to do.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates that may not be anywhere below the domain.
const BANNED: [&str; 7] = ["tokio", "actix", "diesel", "hyper", "reqwest", "tracing", "serde_json"];
const ADAPTERS: [&str; 5] = [
    "signalbox-http",
    "signalbox-persistence",
    "signalbox-metrics",
    "signalbox-git",
    "signalbox-testkit",
];
const MAX_LINES: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

fn cargo(args: &[&str]) -> String {
    let done = Command::new(env!("CARGO")).args(args).current_dir(root()).output();
    let done = done.expect("cargo can be run");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Each crate of ours and those of ours that it needs to run.
fn arrows() -> Vec<(String, BTreeSet<String>)> {
    let metadata = cargo(&["metadata", "--format-version", "1", "--no-deps", "--offline"]);
    let metadata: serde_json::Value = serde_json::from_str(&metadata).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let own = |package: &serde_json::Value| {
        let needs = package["dependencies"].as_array().expect("dependencies").iter();
        needs
            .filter(|it| it["kind"].is_null())
            .filter_map(|it| it["name"].as_str())
            .filter(|name| name.starts_with("signalbox"))
            .map(ToOwned::to_owned)
            .collect()
    };
    packages.iter().map(|it| (it["name"].as_str().expect("a name").to_owned(), own(it))).collect()
}

/// What is wrong with the arrows.
fn wrong_arrows(arrows: &[(String, BTreeSet<String>)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, needs) in arrows {
        let allowed: &[&str] = match name.as_str() {
            "signalbox-domain" => &[],
            adapter if ADAPTERS.contains(&adapter) => &["signalbox-domain"],
            "signalbox" => &[
                "signalbox-domain",
                "signalbox-git",
                "signalbox-http",
                "signalbox-metrics",
                "signalbox-persistence",
            ],
            _ => &[],
        };
        for need in needs.iter().filter(|need| !allowed.contains(&need.as_str())) {
            wrong
                .push(format!("{name} must not depend on {need}: go through a port of the domain"));
        }
    }
    wrong
}

fn banned_in(tree: &str) -> Vec<&str> {
    tree.lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| BANNED.iter().any(|it| name == it || name.starts_with(&format!("{it}-"))))
        .collect()
}

#[test]
fn arrows_point_at_the_domain() {
    assert_eq!(wrong_arrows(&arrows()), Vec::<String>::new());
    let bad = [("signalbox-http".to_owned(), BTreeSet::from(["signalbox-git".to_owned()]))];
    assert_eq!(wrong_arrows(&bad).len(), 1, "the check itself works");
}

#[test]
fn the_domain_has_no_runtime_and_no_driver() {
    let args = ["tree", "-p", "signalbox-domain", "-e", "normal", "--prefix", "none", "--offline"];
    let tree = cargo(&[&args[..], &["--all-features"]].concat());
    assert_eq!(banned_in(&tree), Vec::<&str>::new(), "the domain gained a runtime or a driver");
    assert_eq!(banned_in("tokio v1.0.0\nactix-web v4"), ["tokio", "actix-web"]);
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn the_pure_modules_are_pure() {
    for module in ["queue", "flaky"] {
        for path in sources(&root().join("crates/domain/src").join(module)) {
            let text = std::fs::read_to_string(&path).expect("a source");
            for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
                for word in ["async ", "dyn ", "ports::"] {
                    assert!(
                        !line.contains(word),
                        "{}: `{word}` belongs into ports or service: {line}",
                        path.display()
                    );
                }
            }
        }
    }
}

#[test]
fn status_codes_are_in_one_file() {
    for path in sources(&root().join("crates/http/src")) {
        let text = std::fs::read_to_string(&path).expect("a source");
        let home = path.ends_with("problem.rs");
        assert!(
            home || !text.contains("StatusCode"),
            "{}: status codes belong into problem.rs",
            path.display()
        );
    }
}

#[test]
fn files_are_short_and_say_what_they_are() {
    for krate in std::fs::read_dir(root().join("crates")).expect("crates").flatten() {
        for path in sources(&krate.path().join("src")) {
            let text = std::fs::read_to_string(&path).expect("a source");
            let lines = text.lines().count();
            assert!(
                lines <= MAX_LINES,
                "{} has {lines} lines: split it by what it does",
                path.display()
            );
            let documented = text.starts_with("//!") || text.starts_with("#![doc = include_str!");
            assert!(documented, "{} does not say what it is", path.display());
        }
    }
}
