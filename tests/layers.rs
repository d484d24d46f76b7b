//! The dependencies between crates, and the structure of their files. Each failure has advice.
//!
//! Every check is a function from text or names to complaints, so that it can be shown to fail: at
//! the end each is run on something that breaks its rule.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates that may not be anywhere below the domain, with everything that starts like them.
const BANNED: [&str; 7] = ["tokio", "actix", "diesel", "hyper", "reqwest", "tracing", "serde_json"];
/// What makes code async, which the planners alone do not need: names start like these.
const ASYNC: [&str; 3] = ["async", "futures", "pin-"];
const DOMAIN: &str = "signalbox-domain";
/// The use cases, and the words in which their results are shown: what stands between the domain
/// and the crates that answer requests.
const SERVICES: &str = "signalbox-services";
const WORDING: &str = "signalbox-wording";
/// Simulated queues: pure like the domain, so that use cases can run them.
const SIMULATOR: &str = "signalbox-simulator";
/// Adapters that callers come through. They run use cases and show their results.
const INBOUND: [&str; 2] = ["signalbox-http", "signalbox-web"];
/// The crates that depend only on the domain.
const OUTBOUND: [&str; 5] = [
    "signalbox-metrics",
    "signalbox-oidc",
    "signalbox-persistence",
    "signalbox-reports",
    "signalbox-webhooks",
];
/// The other parts of the program: each with the workspace crates that it may depend on.
const PARTS: [(&str, &[&str]); 13] = [
    ("signalbox-terminal", &[]),
    ("signalbox-loops", &["signalbox-terminal", DOMAIN, SERVICES]),
    ("signalbox-client", &[]),
    (SIMULATOR, &[DOMAIN]),
    (SANDBOX, &[DOMAIN]),
    (HOSTS, &[DOMAIN, SANDBOX]),
    ("signalbox-git", &[DOMAIN, HOSTS, SANDBOX]),
    ("signalbox-github", &[DOMAIN, HOSTS]),
    (CONFIG, &[DOMAIN, HOSTS, SANDBOX]),
    ("signalbox-telemetry", &[CONFIG, DOMAIN]),
    (
        "signalbox-cli",
        &[
            "signalbox-client",
            // Landings are verified with git alone.
            "signalbox-git",
            // An import checks its files before it sends any.
            "signalbox-reports",
            // The command that needs no server, and the form of a history.
            SIMULATOR,
            "signalbox-terminal",
            DOMAIN,
            WORDING,
        ],
    ),
    (
        "signalbox-demo",
        &["signalbox-client", "signalbox-terminal", CONFIG, DOMAIN, HOSTS, SERVICES, WORDING],
    ),
    (
        "signalbox-admin",
        &[
            // For the protocol of git's hooks.
            "signalbox-git",
            "signalbox-persistence",
            "signalbox-terminal",
            CONFIG,
            DOMAIN,
            HOSTS,
            SANDBOX,
            SERVICES,
            WORDING,
        ],
    ),
];
/// The interface of a git host's crate, and the registry of hosts.
const HOSTS: &str = "signalbox-hosts";
const CONFIG: &str = "signalbox-config";
/// What runs checks on this machine: its seam, which hosts are given, and the sandbox.
const SANDBOX: &str = "signalbox-sandbox";
/// The crates that name git hosts: their own, and those for tests and measurements.
const HOST_CRATES: [&str; 4] =
    ["crates/git/", "crates/github/", "crates/testkit/", "crates/bench/"];
/// The other files that may name a host or its crate, and why.
const NAMING_HOSTS: [(&str, &str); 7] = [
    ("crates/app/src/hosts.rs", "the list of kinds"),
    ("crates/admin/src/hook.rs", "git runs it, with the protocol of git's hooks"),
    ("crates/admin/src/init.rs", "it creates a bare repository"),
    ("crates/cli/src/gate/shown.rs", "CI systems, not hosts"),
    ("crates/cli/src/proof.rs", "landings are verified with git alone"),
    ("crates/demo/src/lib.rs", "the demo's own repository"),
    ("crates/domain/src/upload/ci.rs", "a CI provider, not a host"),
];
/// What tests depend on, and nothing that is shipped.
const TESTKIT: &str = "signalbox-testkit";
/// The suites that adapters run in their tests: like the testkit, but without a web framework.
const CONFORMANCE: &str = "signalbox-conformance";
/// What measures: it may use every adapter and the testkit, and nothing may use it.
const BENCH: &str = "signalbox-bench";
/// The folders that answer requests, each with its one file that knows status codes.
const STATUS_CODES: [(&str, &str); 2] = [
    ("crates/http/src", "crates/http/src/problem.rs"),
    ("crates/web/src", "crates/web/src/reply.rs"),
];
const MAX_LINES: usize = 500;
/// The most lines of the app: it only puts the other crates together.
const MAX_LINES_OF_APP: usize = 2_500;

/// A workspace crate, and the workspace crates that it needs outside its tests.
type Arrows = (String, BTreeSet<String>);

/// A source file: its path from the root, and its text.
type Source = (String, String);

#[test]
fn arrows_point_at_the_domain() {
    agreed(arrows().iter().flat_map(wrong_arrows));
}

#[test]
fn every_crate_is_known_to_these_checks() {
    let known = |name: &str| {
        name == DOMAIN
            || name == "signalbox"
            || name == "signalbox-tests"
            || name == BENCH
            || [SERVICES, WORDING, TESTKIT, CONFORMANCE].contains(&name)
            || INBOUND.contains(&name)
            || OUTBOUND.contains(&name)
            || PARTS.iter().any(|(part, _)| *part == name)
    };
    let new = arrows().into_iter().map(|(name, _)| name).filter(|name| !known(name));
    agreed(
        new.map(|name| format!("{name} is new: add its allowed dependencies to tests/layers.rs")),
    );
}

#[test]
fn the_domain_has_no_runtime_and_no_driver() {
    let args = ["tree", "-p", "signalbox-domain", "-e", "normal", "--prefix", "none", "--offline"];
    for features in [&["--no-default-features"][..], &["--all-features"]] {
        agreed(banned(&cargo(&[&args[..], features].concat())));
    }
}

#[test]
fn the_suites_have_no_web_framework_and_no_driver() {
    let args = ["tree", "-p", CONFORMANCE, "-e", "normal", "--prefix", "none", "--offline"];
    agreed(banned_for_suites(&cargo(&args)));
}

#[test]
fn a_port_has_a_file_of_its_own() {
    agreed(sources("crates/domain/src/ports").iter().filter_map(crowded));
}

#[test]
fn the_planners_alone_compile_nothing_async() {
    let args = ["tree", "-p", "signalbox-domain", "-e", "normal", "--prefix", "none", "--offline"];
    agreed(asynchronous(&cargo(&[&args[..], &["--no-default-features"]].concat())));
    agreed(asynchronous(&cargo(&[&args[..], &["--no-default-features", "-F", "serde"]].concat())));
}

#[test]
fn the_pure_modules_are_pure() {
    let pure = ["queue", "flaky", "upload", "webhook"].map(|it| format!("crates/domain/src/{it}"));
    agreed(pure.iter().flat_map(|folder| sources(folder)).flat_map(|source| impurities(&source)));
}

#[test]
fn a_git_host_is_named_in_its_crate_and_in_the_list_of_kinds() {
    let foreign = |(path, _): &Source| !HOST_CRATES.iter().any(|it| path.starts_with(it));
    let sources: Vec<Source> = sources("crates").into_iter().filter(foreign).collect();
    let excused = |path: &str| NAMING_HOSTS.iter().any(|(file, _)| *file == path);
    agreed(sources.iter().filter(|(path, _)| !excused(path)).flat_map(host_names));
    // An exception that is no longer needed goes.
    for (file, reason) in NAMING_HOSTS {
        let source = sources.iter().find(|(path, _)| path == file);
        let needed = source.is_some_and(|it| !host_names(it).is_empty());
        assert!(needed, "{file} names no host: remove its exception ({reason})");
    }
}

#[test]
fn status_codes_are_in_one_file() {
    agreed(STATUS_CODES.iter().flat_map(|(folder, home)| {
        let others = sources(folder).into_iter().filter(move |(path, _)| path != home);
        others.flat_map(move |source| status_codes(home, &source))
    }));
}

#[test]
fn files_are_short_and_have_a_doc_comment() {
    agreed(sources("crates").iter().flat_map(shapeless));
}

#[test]
fn the_app_is_thin() {
    let lines: usize = sources("crates/app/src").iter().map(|(_, text)| text.lines().count()).sum();
    assert!(lines < MAX_LINES_OF_APP, "the app has {lines} lines: move what is no wiring");
}

#[test]
fn the_checks_can_fail() {
    let arrows = |name: &str, needs: &[&str]| {
        wrong_arrows(&(name.to_owned(), needs.iter().map(ToString::to_string).collect()))
    };
    assert_eq!(arrows(DOMAIN, &["signalbox-git"]).len(), 1);
    assert_eq!(arrows(DOMAIN, &[SERVICES, WORDING]).len(), 2);
    assert_eq!(arrows(SERVICES, &[DOMAIN, WORDING, "signalbox-git"]).len(), 1);
    assert_eq!(arrows("signalbox-git", &[DOMAIN, HOSTS, SERVICES]).len(), 1);
    assert_eq!(arrows("signalbox-web", &[DOMAIN, SERVICES, WORDING, "signalbox-http"]).len(), 1);
    assert_eq!(arrows("signalbox-http", &[DOMAIN, "signalbox-git"]).len(), 1);
    assert_eq!(arrows("signalbox-cli", &["signalbox-client", SERVICES]).len(), 1);
    assert_eq!(arrows("signalbox-client", &[DOMAIN]).len(), 1);
    assert_eq!(arrows("signalbox", &[DOMAIN, TESTKIT]).len(), 1);
    assert_eq!(arrows(TESTKIT, &[DOMAIN, "signalbox-persistence"]).len(), 1);
    assert_eq!(arrows("signalbox", &[DOMAIN, CONFORMANCE]).len(), 1);
    assert_eq!(arrows(CONFORMANCE, &[DOMAIN, SERVICES, TESTKIT]).len(), 1);
    assert!(arrows(TESTKIT, &[DOMAIN, SERVICES, CONFORMANCE]).is_empty());
    assert_eq!(arrows("signalbox", &[DOMAIN, BENCH]).len(), 1);
    assert_eq!(arrows(BENCH, &["signalbox", TESTKIT]).len(), 1);

    let tree = "signalbox-domain v0.1.0 (/x)\nsha2 v0.11.0\nactix-web v4.0.0\ntokio v1.0.0 (*)\n";
    assert_eq!(banned(tree).len(), 2);
    assert!(banned("tokenizers v1.0.0\nserde v1.0.0\n").is_empty());

    let tree = "signalbox-conformance v0.1.0 (/x)\ntokio v1.0.0\nactix-web v4.0.0\nhyper v1.0.0\n";
    assert_eq!(banned_for_suites(tree).len(), 2);
    let text = "pub trait One {}\n\npub trait Two {}\n".to_owned();
    assert!(crowded(&("sample.rs".to_owned(), text)).is_some());

    let tree = "signalbox-domain v0.1.0 (/x)\nsha2 v0.11.0\nasync-trait v0.1.0 (proc-macro)\n";
    assert_eq!(asynchronous(tree).len(), 1);

    let source = |text: &str| ("sample.rs".to_owned(), text.to_owned());
    for line in ["async fn f() {}", "fn f(x: &dyn Any) {}", "use crate::ports::Clock;"] {
        assert_eq!(impurities(&source(&format!("//! x\n{line}\n"))).len(), 1, "{line}");
    }
    let allowed =
        "//! no async, dyn or ports:: here\n\n#[cfg(test)]\nmod tests {\n    async fn f() {}\n}\n";
    assert!(impurities(&source(allowed)).is_empty());

    for line in [
        "use signalbox_github::KIND;",
        "Host::GitHub(_) => true,",
        "Host::Git { root, .. } => root,",
        "if kind == \"git\" {}",
        "table.insert(\"kind\", \"github\");",
    ] {
        assert_eq!(host_names(&source(line)).len(), 1, "{line}");
    }
    for line in
        ["Command::new(\"git\")", "\"host\": \"github.com\"", "// GitHub", "gitHubMergeability"]
    {
        assert!(host_names(&source(line)).is_empty(), "{line}");
    }

    for line in [
        "reply.status(404)",
        "    responses((status = 409, description = \"it exists\"))",
        "StatusCode::CONFLICT",
        "HttpResponse::NotFound().finish()",
        "HttpResponse::build(code)",
    ] {
        assert_eq!(status_codes("home.rs", &source(line)).len(), 1, "{line}");
    }
    for line in ["const MAX: usize = 500;", "HttpResponse::Ok().body(x)", "// status 404"] {
        assert!(status_codes("home.rs", &source(line)).is_empty(), "{line}");
    }

    assert_eq!(shapeless(&source("use std::fmt;\n")).len(), 1);
    assert_eq!(shapeless(&source(&format!("//! Long.\n{}", "\n".repeat(MAX_LINES)))).len(), 1);
    assert!(shapeless(&source("//! Short.\n")).is_empty());
}

/// Fails with all complaints together.
fn agreed(complaints: impl IntoIterator<Item = String>) {
    let complaints: Vec<String> = complaints.into_iter().collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

fn wrong_arrows((name, needs): &Arrows) -> Vec<String> {
    let allowed = |need: &String| match name.as_str() {
        "signalbox" => ![TESTKIT, CONFORMANCE, BENCH].contains(&need.as_str()),
        BENCH => need != "signalbox",
        SERVICES => [DOMAIN, SIMULATOR, WORDING].contains(&need.as_str()),
        CONFORMANCE => [DOMAIN, SERVICES].contains(&need.as_str()),
        TESTKIT => [DOMAIN, SERVICES, CONFORMANCE].contains(&need.as_str()),
        inbound if INBOUND.contains(&inbound) => {
            [DOMAIN, SERVICES, SIMULATOR, WORDING].contains(&need.as_str())
        }
        outbound if OUTBOUND.contains(&outbound) || outbound == WORDING => need == DOMAIN,
        part if PARTS.iter().any(|(name, _)| *name == part) => {
            PARTS.iter().any(|(name, may)| *name == part && may.contains(&need.as_str()))
        }
        // The domain, and the crate of whole-system tests, which has dev-dependencies only.
        _ => false,
    };
    let advice = |need: &String| {
        let way_out = if need == TESTKIT || need == CONFORMANCE {
            "make it a dev-dependency: the program contains no test support"
        } else if name == BENCH || need == BENCH {
            "measure the program from outside; the program contains no benchmarks"
        } else {
            "go through a port of the domain, and wire the two in the app crate"
        };
        format!("{name} must not depend on {need}: {way_out}")
    };
    needs.iter().filter(|need| !allowed(need)).map(advice).collect()
}

/// `tree` is what `cargo tree --prefix none` prints: a crate's name first on each line.
fn banned(tree: &str) -> Vec<String> {
    let names: BTreeSet<&str> =
        tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let is_banned =
        |name: &&str| BANNED.iter().any(|it| name == it || name.starts_with(&format!("{it}-")));
    let advice = |name: &str| {
        format!("the domain needs {name}: what needs it belongs into an adapter, behind a port")
    };
    names.into_iter().filter(is_banned).map(advice).collect()
}

/// `tree` as for [`banned`]; the suites may run tasks; otherwise the rules of the domain apply.
fn banned_for_suites(tree: &str) -> Vec<String> {
    let is_runtime = |name: &str| name.starts_with("tokio");
    let names: BTreeSet<&str> =
        tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let banned = |name: &&str| {
        !is_runtime(name)
            && BANNED.iter().any(|it| name == it || name.starts_with(&format!("{it}-")))
    };
    let advice =
        |name: &str| format!("the suites need {name}: what needs it belongs into {TESTKIT}");
    names.into_iter().filter(banned).map(advice).collect()
}

/// A file with more than one trait.
fn crowded((path, text): &Source) -> Option<String> {
    let traits = code(text).filter(|(_, line)| line.starts_with("pub trait ")).count();
    (traits > 1).then(|| format!("{path} has {traits} traits: a port has a file of its own"))
}

/// `tree` as for [`banned`].
fn asynchronous(tree: &str) -> Vec<String> {
    let names: BTreeSet<&str> =
        tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let is_async = |name: &&str| ASYNC.iter().any(|it| name.starts_with(it));
    let advice = |name: &str| {
        format!("the planners compile {name}: put what needs it behind the feature `ports`")
    };
    names.into_iter().filter(is_async).map(advice).collect()
}

fn impurities((path, text): &Source) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in code(text) {
        // The decisions of a team, which are pure functions, too.
        let line = line.replace("dyn Policy", "");
        for word in ["async ", "dyn ", "ports::"] {
            if line.contains(word) {
                found.push(format!(
                    "{path}:{number}: `{}` makes a pure module impure: move what needs it to \
                     crates/services",
                    word.trim()
                ));
            }
        }
    }
    found
}

/// Lines that name a kind of git host or its crate.
fn host_names((path, text): &Source) -> Vec<String> {
    const WORDS: [&str; 3] = ["GitHub", "signalbox_git", "signalbox_github"];
    let named = |line: &str| {
        let mut words = line.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
        let kind = line.contains("kind") && line.contains("\"git\"") || line.contains("Host::Git");
        kind || line.contains("\"github\"") || words.any(|word| WORDS.contains(&word))
    };
    code(text)
        .filter(|(_, line)| named(line))
        .map(|(number, line)| {
            format!(
                "{path}:{number}: ask `signalbox-hosts` for what the host can do instead of naming \
                 it: {}",
                line.trim()
            )
        })
        .collect()
}

fn status_codes(home: &str, (path, text): &Source) -> Vec<String> {
    let other_reply = |line: &str| {
        line.split("HttpResponse::").skip(1).any(|rest| {
            rest.starts_with(|it: char| it.is_ascii_alphabetic()) && !rest.starts_with("Ok(")
        })
    };
    let error_number = |line: &str| {
        let numbers = line.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
        line.to_lowercase().contains("status")
            && numbers.filter_map(|it| it.parse::<u16>().ok()).any(|it| (400..600).contains(&it))
    };
    code(text)
        .filter(|(_, line)| line.contains("StatusCode") || other_reply(line) || error_number(line))
        .map(|(number, line)| {
            format!(
                "{path}:{number}: return an outcome of the request; status codes are in {home} \
                 only: {}",
                line.trim()
            )
        })
        .collect()
}

fn shapeless((path, text): &Source) -> Vec<String> {
    let mut found = Vec::new();
    let lines = text.lines().count();
    if lines > MAX_LINES {
        found.push(format!("{path} has {lines} lines, {MAX_LINES} at most: split it by concern"));
    }
    if !text.starts_with("//!") && !text.starts_with("#![doc = include_str!") {
        found.push(format!("{path}: start with a `//!` line that describes the file"));
    }
    found
}

/// The lines that are neither comments nor part of the test module at a file's end, with their
/// numbers.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let is_module = |line: &&str| line.starts_with("mod ") && line.ends_with('{');
    let tests = (0..lines.len())
        .find(|at| lines[*at] == "#[cfg(test)]" && lines.get(at + 1).is_some_and(is_module));
    let end = tests.unwrap_or(lines.len());
    lines
        .into_iter()
        .enumerate()
        .take(end)
        .map(|(index, line)| (index + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// The workspace crates with their dependencies outside tests, from their manifests.
fn arrows() -> Vec<Arrows> {
    let metadata = cargo(&["metadata", "--format-version", "1", "--no-deps", "--offline"]);
    let metadata: serde_json::Value = serde_json::from_str(&metadata).expect("JSON");
    let list = |value: &serde_json::Value| value.as_array().expect("a list").clone();
    let name = |value: &serde_json::Value| value["name"].as_str().expect("a name").to_owned();
    list(&metadata["packages"])
        .iter()
        .map(|package| {
            let needs = list(&package["dependencies"]);
            let needs = needs.iter().filter(|it| it["kind"] != "dev").map(name);
            (name(package), needs.filter(|it| it.starts_with("signalbox")).collect())
        })
        .collect()
}

/// The sources of a folder, without files that contain only tests.
fn sources(folder: &str) -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_rust = path.extension().is_some_and(|it| it == "rs");
            let only_tests = name == "tests.rs" || name.ends_with("_tests.rs");
            if path.is_dir() && name != "tests" && name != "target" {
                folders.push(path);
            } else if is_rust && !only_tests {
                let shown = path.strip_prefix(root()).expect("inside the root").display();
                found.push((shown.to_string(), std::fs::read_to_string(&path).expect("UTF-8")));
            }
        }
    }
    assert!(
        !found.is_empty(),
        "there is nothing in {folder}: these checks look in the wrong place"
    );
    found.sort();
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

fn cargo(args: &[&str]) -> String {
    let done = Command::new(env!("CARGO")).args(args).current_dir(root()).output();
    let done = done.expect("cargo can be run");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}
