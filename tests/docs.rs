//! Generated documents are not stale, and documents name files that exist. `SIGNALBOX_UPDATE=1` writes them again.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use signalbox_domain::queue::ANSWERS;
use signalbox_terminal::Exit;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}

fn check(path: &str, fresh: &str) {
    let path = root().join(path);
    if std::env::var_os("SIGNALBOX_UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(&path, fresh).expect("written");
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == fresh, "{} is stale: run `just gen`", path.display());
}

#[test]
fn the_description_of_the_api_is_not_stale() {
    check("docs/api/openapi.json", &signalbox::openapi_document());
}

#[test]
fn the_page_of_errors_is_not_stale() {
    check("docs/api/errors.md", &signalbox_http::error_page());
}

#[test]
fn the_page_of_events_is_not_stale() {
    check("docs/api/events.md", &signalbox_webhooks::catalog::page());
}

#[test]
fn the_example_configuration_is_not_stale() {
    check("docs/operations/config.example.toml", &signalbox::example());
}

#[test]
fn the_page_of_metrics_is_not_stale() {
    check("docs/operations/metrics.md", &signalbox_metrics::document());
}

/// The part of a page between two comments is made from the program.
fn check_part(path: &str, name: &str, fresh: &str) {
    let (start, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let page = std::fs::read_to_string(root().join(path)).expect("the page is there");
    let (before, rest) = page.split_once(&start).expect("it says where the part starts");
    let (_, after) = rest.split_once(&end).expect("it says where the part ends");
    check(path, &format!("{before}{start}{fresh}{end}{after}"));
}

#[test]
fn the_table_of_states_and_inputs_is_not_stale() {
    check_part("docs/domain/queue.md", "table", &signalbox_domain::testing::matrix());
}

#[test]
fn the_table_of_effects_is_not_stale() {
    let rows = ANSWERS.iter().map(|answer| {
        let facts: Vec<String> = answer.facts.iter().map(|fact| format!("`{fact}`")).collect();
        let facts = if facts.is_empty() { "–".to_owned() } else { facts.join(", ") };
        format!("| `{}` | {facts} |\n", answer.effect)
    });
    let head = "| effect | facts that answer it |\n|---|---|\n";
    check_part("docs/domain/queue.md", "effects", &(head.to_owned() + &rows.collect::<String>()));
}

#[test]
fn the_code_map_is_not_stale() {
    check_part("docs/architecture.md", "code map", &code_map());
}

/// The crates of the workspace: what each is for and where to start reading, from its manifest.
fn code_map() -> String {
    let args = ["metadata", "--format-version", "1", "--no-deps", "--offline"];
    let done = Command::new(env!("CARGO")).args(args).current_dir(root()).output();
    let metadata: Value = serde_json::from_slice(&done.expect("cargo runs").stdout).expect("JSON");
    let mut map = String::from("| crate | what | start reading at |\n|---|---|---|\n");
    let mut rows = BTreeSet::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
        let folder = manifest.parent().expect("a folder");
        let shown = folder.strip_prefix(root()).expect("inside the root").display().to_string();
        if !shown.starts_with("crates/") {
            continue;
        }
        let start = package["metadata"]["signalbox"]["start"].as_array();
        let start = start.unwrap_or_else(|| panic!("{shown}/Cargo.toml: add `start`"));
        let start: Vec<String> = start
            .iter()
            .map(|file| {
                let file = file.as_str().expect("a path");
                assert!(folder.join(file).exists(), "{shown}/Cargo.toml: there is no {file}");
                format!("`{file}`")
            })
            .collect();
        let what = package["description"].as_str().expect("a description");
        rows.insert(format!("| `{shown}` | {what} | {} |\n", start.join(", ")));
    }
    map.extend(rows);
    map
}

/// A file that a page names: a path with a known ending, from the root or from a crate's `src`.
fn named_files(page: &str) -> BTreeSet<String> {
    const ENDINGS: [&str; 7] = ["rs", "md", "toml", "sql", "json", "yml", "service"];
    let spans = page.split('`').skip(1).step_by(2);
    let is_path = |span: &&str| {
        let starts = ["crates/", "tests/", "docs/", "migrations/"];
        let ending = Path::new(span).extension().and_then(|it| it.to_str());
        starts.iter().any(|start| span.starts_with(start))
            && !span.contains(['<', '*', ' ', '\n', '{', 'N'])
            && (ending.is_none_or(|it| ENDINGS.contains(&it)))
    };
    spans.filter(is_path).map(str::to_owned).collect()
}

#[test]
fn files_that_the_docs_name_exist() {
    let mut pages = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            match path.extension() {
                _ if path.is_dir() => folders.push(path),
                Some(it) if it == "md" => pages.push(path),
                _ => {}
            }
        }
    }
    let mut missing = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page");
        let gone = named_files(&text).into_iter().filter(|file| !root().join(file).exists());
        missing.extend(gone.map(|file| format!("{}: there is no {file}", page.display())));
    }
    assert!(missing.is_empty(), "\n{}\n", missing.join("\n"));
}

#[test]
fn a_file_that_is_gone_is_found() {
    let page = "See `crates/domain/src/gone.rs`, `cargo test` and `docs/README.md`.";
    let named = named_files(page);
    assert_eq!(
        named.into_iter().collect::<Vec<_>>(),
        ["crates/domain/src/gone.rs", "docs/README.md"]
    );
}

#[test]
fn the_page_of_settings_is_not_stale() {
    check("docs/domain/settings.md", &signalbox_wording::settings_page());
}

#[test]
fn the_page_of_words_is_not_stale() {
    check("docs/domain/vocabulary.md", &signalbox_wording::table());
}

#[test]
fn the_page_of_operations_is_not_stale() {
    check("docs/api/operations.md", &operations());
}

/// The operations of the API by tag, from the OpenAPI document.
fn operations() -> String {
    let document: Value = serde_json::from_str(&signalbox::openapi_document()).expect("JSON");
    let mut tags: Vec<(String, String)> = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let tag = operation["tags"][0].as_str().expect("a tag").to_owned();
            let name = operation["operationId"].as_str().expect("an id");
            let summary = operation["summary"].as_str().expect("a summary").replace('\n', " ");
            let method = method.to_uppercase();
            let row = format!("| `{name}` | `{method} {path}` | {summary} |\n");
            match tags.iter_mut().find(|(known, _)| *known == tag) {
                Some((_, rows)) => rows.push_str(&row),
                None => tags.push((tag, row)),
            }
        }
    }
    tags.sort();
    let mut page = String::from(
        "# API operations\n\n\
         Every operation with its address. Bodies, replies and examples are in \
         [openapi.json](openapi.json), which a running server also serves at `/v1/openapi.json`; what \
         holds for all of them is in [API conventions](conventions.md). This page is generated from \
         the OpenAPI document.\n",
    );
    for (tag, rows) in tags {
        let mut title = tag;
        title[..1].make_ascii_uppercase();
        let head = "| operation | address | summary |\n|---|---|---|\n";
        page.extend(["\n## ", &title, "\n\n", head, &rows]);
    }
    page
}

#[test]
fn the_page_of_the_command_line_is_not_stale() {
    check("docs/reference/cli.md", &command_line());
}

/// Every command with its arguments, from the command line itself.
fn command_line() -> String {
    let mut program = signalbox::command();
    program.build();
    let mut page = String::from(
        "# Command line\n\n\
         Every command of `signalbox` with its arguments. This page is generated from the program; \
         `--help` after a command prints the same.\n\n\
         Commands that talk to a running server (`queue`, `tests`, `webhooks`, `events`) take its \
         address and a token from `SIGNALBOX_SERVER` and `SIGNALBOX_TOKEN`. All other commands open the \
         database: run them where the server runs, with the same configuration.\n\n\
         `SIGNALBOX_REPO` (`HOST/OWNER/NAME`) and `SIGNALBOX_ORG` stand for `--repo` and `--org`.\n\n\
         Lists are tables. On a terminal a table is cut to its width and times to the minute; elsewhere every \
         value is whole. `--output json`, or `--json` for short, prints JSON: of lists one value per line. \
         Colours and progress bars appear on terminals only.\n\n\
         ## Exit codes\n\n\
         Every command ends with one of these codes; `tests run` and `tests gate` pass on the code of the tests.\n\n",
    );
    page.push_str(&Exit::page());
    page.push_str(
        "\n## Options of every command\n\n\
         These options exist for every command:\n\n",
    );
    page.push_str(&options(program.get_arguments().filter(|argument| argument.is_global_set())));
    for command in program.get_subcommands() {
        describe(command, 2, &mut page);
    }
    page
}

/// A command with its arguments, and the commands below it.
fn describe(command: &clap::Command, level: usize, page: &mut String) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let name = command.get_bin_name().expect("a built command");
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    page.extend(["\n", &"#".repeat(level), " ", name, "\n\n", &about, ".\n"]);
    if command.has_subcommands() {
        for below in command.get_subcommands() {
            describe(below, level + 1, page);
        }
        return;
    }
    let usage = command.clone().render_usage().to_string();
    page.extend(["\n```text\n", usage.trim_start_matches("Usage: "), "\n```\n"]);
    let own = |argument: &&clap::Arg| !argument.is_global_set();
    let table = options(command.get_arguments().filter(own));
    if !table.is_empty() {
        page.extend(["\n", &table]);
    }
    if let Some(after) = command.get_after_help() {
        page.extend(["\n```text\n", &after.to_string(), "\n```\n"]);
    }
}

/// A table of arguments; empty when there are none.
fn options<'a>(arguments: impl Iterator<Item = &'a clap::Arg>) -> String {
    let mut table = String::new();
    for argument in arguments {
        if argument.is_hide_set() || ["help", "version"].contains(&argument.get_id().as_str()) {
            continue;
        }
        let mut meaning = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let names = argument.get_possible_values();
        if argument.get_action().takes_values() && !names.is_empty() {
            let names: Vec<String> =
                names.iter().map(|value| format!("`{}`", value.get_name())).collect();
            meaning.extend(["; one of ", &names.join(", ")]);
        }
        if let Some(variable) = argument.get_env() {
            meaning.extend(["; also from `", &variable.to_string_lossy(), "`"]);
        }
        if let ([default], true) =
            (argument.get_default_values(), argument.get_action().takes_values())
        {
            meaning.extend(["; default `", &default.to_string_lossy(), "`"]);
        }
        let name = argument.to_string().replace('|', "\\|");
        table.extend(["| `", &name, "` | ", &meaning.replace('|', "\\|"), " |\n"]);
    }
    if table.is_empty() {
        return table;
    }
    format!("| argument | meaning |\n|---|---|\n{table}")
}

/// Commands that print data have both forms of the flag, and every command names its repository in
/// the same way.
#[test]
fn flags_are_the_same_in_every_command() {
    fn check(command: &clap::Command, wrong: &mut Vec<String>) {
        let name = command.get_bin_name().unwrap_or_default();
        let flag = |long: &str| command.get_arguments().find(|it| it.get_long() == Some(long));
        if flag("json").is_some() != flag("output").is_some() {
            wrong.push(format!("{name}: --json without --output, or the other way round"));
        }
        // Where it only narrows a list, a variable would hide the rest.
        let narrows = ["token list", "repo list", "audit list", "queue list"];
        let narrows = narrows.iter().any(|it| name == format!("signalbox {it}"));
        for (long, variable) in
            [("org", "SIGNALBOX_ORG"), ("repo", "SIGNALBOX_REPO"), ("server", "SIGNALBOX_SERVER")]
        {
            // The repository that a token is limited to, and the name of a new one, are no defaults.
            let own = ["signalbox init", "signalbox token create"].contains(&name);
            let is_alone = long != "server" && narrows || long == "repo" && own;
            let wanted = (!is_alone).then_some(variable);
            if flag(long).is_some_and(|it| it.get_env().and_then(|it| it.to_str()) != wanted) {
                wrong.push(format!("{name}: --{long} is from {wanted:?}"));
            }
        }
        if let Some(repo) = flag("repo") {
            let names: Vec<_> = repo.get_value_names().unwrap_or_default().iter().collect();
            if names != ["HOST/OWNER/NAME"] {
                wrong.push(format!("{name}: --repo is HOST/OWNER/NAME"));
            }
        }
        command.get_subcommands().for_each(|below| check(below, wrong));
    }
    let mut program = signalbox::command();
    program.build();
    let mut wrong = Vec::new();
    check(&program, &mut wrong);
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}
