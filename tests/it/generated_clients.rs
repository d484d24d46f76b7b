//! The description of the API as other programs read it: clients are generated from it, compiled, and
//! bring a pull request through the queue, and a fuzzer compares it with the behavior of the server.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use signalbox_domain::queue::Settings;
use signalbox_tests::not_tested;
use tempfile::TempDir;

use crate::harness::{On, System};

/// What `tests/fetch tests/clients FOLDER` has installed.
struct Installed(PathBuf);

fn installed() -> Option<Installed> {
    let folder = std::env::var_os("SIGNALBOX_CLIENTS").map(|it| Installed(it.into()));
    if folder.is_none() {
        not_tested("SIGNALBOX_CLIENTS names no folder with generators of clients");
    }
    folder
}

/// The folder with what the generated code is used by.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients")
}

/// Runs a program; returns its output.
fn run(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let printed = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let (out, errors) = (printed(&done.stdout), printed(&done.stderr));
    assert!(done.status.success(), "{command:?}:\n{out}\n{errors}");
    out + &errors
}

fn exists(program: &str) -> bool {
    Command::new(program).arg("version").output().is_ok()
}

impl Installed {
    /// A command in a folder with the installed programs.
    fn command(&self, folder: &Path, program: &str) -> Command {
        let own = [self.0.join("node_modules/.bin"), self.0.join("venv/bin")];
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = own.into_iter().chain(std::env::split_paths(&path));
        let path = std::env::join_paths(path).expect("a path");
        let found = std::env::split_paths(&path).map(|it| it.join(program)).find(|it| it.exists());
        let mut command = Command::new(found.unwrap_or_else(|| program.into()));
        command.current_dir(folder).env("PATH", path);
        command
    }

    /// A folder for generated code, where packages of the installation are found, with the description.
    fn folder(&self) -> TempDir {
        let folder = TempDir::with_prefix_in("generated-", &self.0).expect("a folder");
        let description = signalbox::openapi_document();
        std::fs::write(folder.path().join("openapi.json"), description).expect("written");
        folder
    }
}

fn copy(names: &[&str], folder: &Path) {
    for name in names {
        std::fs::copy(sources().join(name), folder.join(name)).expect("a copy");
    }
}

/// A server with a pull request: its system and the environment of a program that merges it.
async fn system() -> (System, [(&'static str, String); 3]) {
    let system = System::new(On::Sqlite, "exit 0\n", 2).await;
    let pr = system.pull_request("topic", &[("new.txt", "new\n")]);
    let environment = [
        ("SIGNALBOX_URL", system.url()),
        ("SIGNALBOX_TOKEN", system.token().to_owned()),
        ("SIGNALBOX_PR", pr.to_string()),
    ];
    (system, environment)
}

fn merged(system: &System) {
    assert_eq!(system.history(), ["base", "change topic (#1)"].map(ToOwned::to_owned));
}

/// Compiles a TypeScript program with what was generated, and runs it.
async fn typescript(generate: &[&str], program: &str) {
    let Some(installed) = installed() else { return };
    let folder = installed.folder();
    let at = folder.path();
    let (system, environment) = system().await;
    copy(&["tsconfig.json", "openapi-ts.config.mjs", program], at);
    std::fs::write(at.join("package.json"), r#"{"type": "module"}"#).expect("written");
    run(installed.command(at, generate[0]).args(&generate[1..]));
    run(&mut installed.command(at, "tsc"));
    let built = program.replace(".ts", ".js");
    run(installed.command(&at.join("built"), "node").arg(built).envs(environment));
    merged(&system);
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_typescript_makes_types_that_fit() {
    let generate = ["openapi-typescript", "openapi.json", "--output", "schema.d.ts"];
    typescript(&generate, "openapi_typescript.ts").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hey_api_makes_a_client_that_works() {
    typescript(&["openapi-ts"], "hey_api.ts").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_python_client_makes_a_client_that_works() {
    let Some(installed) = installed() else { return };
    let folder = installed.folder();
    let (system, environment) = system().await;
    let generator = ["generate", "--path", "openapi.json", "--output-path", "python"];
    let printed = run(installed.command(folder.path(), "openapi-python-client").args(generator));
    // It reads no XML, NDJSON and Protocol Buffers; everything else it must read.
    let formats = ["application/xml", "application/x-ndjson", "application/x-protobuf"];
    let known = |line: &str| formats.iter().any(|it| line.ends_with(it));
    let warnings = printed.lines().filter(|it| it.contains("Unsupported") || it.contains("Unable"));
    assert_eq!(warnings.filter(|it| !known(it)).collect::<Vec<_>>(), Vec::<&str>::new());
    let program = sources().join("python.py");
    run(installed
        .command(&folder.path().join("python"), "python")
        .arg(program)
        .env("PYTHONPATH", ".")
        .envs(environment));
    merged(&system);
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_generator_makes_a_client_in_go_that_works() {
    let Some(installed) = installed() else { return };
    if !exists("go") || !exists("java") {
        not_tested("a client in Go, which needs go and java");
        return;
    }
    let folder = installed.folder();
    let (system, environment) = system().await;
    run(installed.command(folder.path(), "openapi-generator-cli").args([
        "generate",
        "--generator-name=go",
        "--input-spec=openapi.json",
        "--output=signalbox",
        "--additional-properties=packageName=signalbox,enumClassPrefix=true,withGoMod=false",
        "--additional-properties=useOneOfDiscriminatorLookup=true",
        "--global-property=models,apis,supportingFiles,modelTests=false,apiTests=false",
        "--global-property=modelDocs=false,apiDocs=false",
    ]));
    let at = folder.path();
    // Go's regular expressions cannot look ahead, as the pattern of branch names does: the server checks it.
    let files = [
        (
            "go.mod",
            "module example\n\ngo 1.18\n\nrequire (\n\tgopkg.in/validator.v2 v2.0.1\n\tsignalbox v0.0.0\n)\n\nreplace signalbox => ./signalbox\n\nreplace gopkg.in/validator.v2 => ./validator\n",
        ),
        (
            "signalbox/go.mod",
            "module signalbox\n\ngo 1.18\n\nrequire gopkg.in/validator.v2 v2.0.1\n",
        ),
        ("validator/go.mod", "module gopkg.in/validator.v2\n\ngo 1.18\n"),
        (
            "validator/validator.go",
            "package validator\n\nfunc Validate(interface{}) error { return nil }\n",
        ),
    ];
    std::fs::create_dir(at.join("validator")).expect("a folder");
    for (name, text) in files {
        std::fs::write(at.join(name), text).expect("written");
    }
    copy(&["main.go"], at);
    run(installed
        .command(at, "go")
        .args(["run", "."])
        .env("GOFLAGS", "-mod=mod")
        .env("GOPROXY", "off")
        .envs(environment));
    merged(&system);
}

/// The description with the repository and the branch of the test, so that the fuzzer gets past looking
/// them up, without idempotency keys, which it gives the same value in requests that differ, without
/// a format that it cannot write, with webhooks for named hosts and with a few rules: a schema cannot say
/// which addresses a host may have, which times and time zones there are, and which patterns are complete.
fn narrowed() -> String {
    let text = signalbox::openapi_document();
    let mut document: Value = serde_json::from_str(&text).expect("JSON");
    let repo = &mut document["components"]["schemas"]["RepoRef"]["properties"];
    for (part, value) in [("host", "git.local"), ("owner", "acme"), ("name", "calc")] {
        repo[part] = json!({"type": "string", "enum": [value]});
    }
    document["components"]["schemas"]["BranchText"] = json!({"type": "string", "enum": ["main"]});
    let url = document["components"]["schemas"]["HookText"]["pattern"].as_str().expect("a pattern");
    let (_, name) = url.split_once("|(?!").expect("addresses, then names");
    let url = format!("^https://((?!{name}");
    let port = "(:[0-9]{0,5})?";
    assert!(url.contains(port), "{url}");
    let url = url.replace(port, "(:([1-9][0-9]{0,3})?)?");
    document["components"]["schemas"]["HookText"]["pattern"] = json!(url);
    let schemas = document["components"]["schemas"].as_object_mut().expect("schemas");
    for (setting, rules) in [
        ("freezes", ["22:00/06:00[UTC]", "Fri 16:00/Mon 08:00[Europe/Berlin] weekend"]),
        ("impactedTargetRules", ["api/** api web", "**/*.md NONE"]),
    ] {
        let items = format!("/properties/{setting}/items");
        for rule in schemas.values_mut().filter_map(|it| it.pointer_mut(&items)) {
            *rule = json!({"enum": rules});
        }
    }
    let paths = document["paths"].as_object_mut().expect("paths");
    for operation in paths.values_mut().filter_map(|item| item.get_mut("post")) {
        if let Some(Value::Array(parameters)) = operation.get_mut("parameters") {
            parameters.retain(|it| it["name"] != "Idempotency-Key");
        }
        if let Some(Value::Object(content)) = operation.pointer_mut("/requestBody/content") {
            content.remove("application/x-ndjson");
        }
    }
    document.to_string().replace("github.com", "git.local")
}

/// The schema of a rule of this setting in a request.
fn schema_of_rule(setting: &str) -> jsonschema::Validator {
    let document: Value = serde_json::from_str(&signalbox::openapi_document()).expect("JSON");
    let schema = &document["components"]["schemas"]["UpdateRequest"];
    jsonschema::validator_for(&schema["properties"][setting]["items"]).expect("a schema")
}

#[test]
fn the_description_of_target_rules_has_their_form() {
    let schema = schema_of_rule("impactedTargetRules");
    let accepted = |rule: &str| {
        Settings::builder().impacted_target_rules(vec![rule.to_owned()]).build().is_ok()
    };
    for rule in ["api/** api web", " a  b ", "**/*.[ch] //lib:c", "docs/** NONE", "\u{fc}/** ALL"] {
        assert!(accepted(rule) && schema.is_valid(&json!(rule)), "{rule}");
    }
    for rule in
        ["", " ", "api/**", "/api/** api", "!a b", "api/ api", "/ a", "a b,c", "a\tb", "a b\n"]
    {
        assert!(!accepted(rule) && !schema.is_valid(&json!(rule)), "{rule:?}");
    }
}

#[test]
fn the_description_of_freezes_has_the_form_of_their_rules() {
    let schema = schema_of_rule("freezes");
    let accepted = |rule: &str| Settings::builder().freezes(vec![rule.to_owned()]).build().is_ok();
    for rule in [
        "22:00/06:00[UTC]",
        " fri  16:00 / Mon 08:00 [America/Argentina/Buenos_Aires]weekend [sic] / x",
        "2026-12-21T00:00/2027-01-04T08:00[Etc/GMT-3] holidays",
        "2026-12-21T00:00/..[UTC] \u{fc}bung",
    ] {
        assert!(accepted(rule) && schema.is_valid(&json!(rule)), "{rule}");
    }
    for rule in [
        "",
        "22:00/06:00",
        "22:00[UTC]",
        "22:00/06:00[]",
        "22:00/06:00[UTC] a, b",
        "22:00/06:00[UTC] a\nb",
        "22:00/06:00[UTC] a\u{85}b",
    ] {
        assert!(!accepted(rule) && !schema.is_valid(&json!(rule)), "{rule:?}");
    }
}

#[test]
fn the_description_of_webhook_urls_is_what_their_guard_accepts() {
    let document: Value = serde_json::from_str(&signalbox::openapi_document()).expect("JSON");
    let schema = &document["components"]["schemas"]["HookText"];
    let schema = jsonschema::validator_for(schema).expect("a schema");
    let guard = signalbox_webhooks::Guard::default();
    let hosts = [
        ("hooks.test", true),
        ("hooks.test.", true),
        ("a-b.c_d.test", true),
        ("1st.test", true),
        ("hooks.1st", true),
        ("8.8.8.8", true),
        ("[2606:4700:4700::1111]", true),
        ("0000", false),
        ("hooks.1", false),
        ("hooks.0x1f", false),
        ("8.8.8.8.", false),
        ("08.8.8.8", false),
        ("8.8.8", false),
        ("256.8.8.8", false),
        ("hooks..test", false),
        ("hooks.test*", false),
        ("user@hooks.test", false),
        ("", false),
    ];
    let ends = [("", true), ("/", true), ("?a=%U", true), ("/a[1]@b", true), (":8443/x", true)];
    let broken = [("#a", false), ("/a b", false), ("/{a}", false), (":x/", false)];
    for (host, is_host) in hosts {
        for (end, is_end) in ends.into_iter().chain(broken) {
            let url = format!("https://{host}{end}");
            let described = schema.is_valid(&json!(url));
            assert_eq!(described, is_host && is_end, "the description and {url}");
            assert_eq!(guard.check_url(&url).is_ok(), described, "the guard and {url}");
        }
    }
    for url in ["http://hooks.test/", "HTTPS://hooks.test/", "https:hooks.test/x://hooks.test"] {
        assert_eq!((schema.is_valid(&json!(url)), guard.check_url(url).is_ok()), (false, false));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fuzzer_finds_no_difference_between_the_description_and_the_server() {
    let Some(installed) = installed() else { return };
    let folder = installed.folder();
    let (system, _) = system().await;
    std::fs::write(folder.path().join("openapi.json"), narrowed()).expect("written");
    let examples = std::env::var("SIGNALBOX_FUZZ_EXAMPLES").unwrap_or_else(|_| "3".to_owned());
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|it| it.parse::<u64>().ok());
    let mut command = installed.command(folder.path(), "schemathesis");
    command
        .arg("--config-file")
        .arg(sources().join("schemathesis.toml"))
        .args(["run", "openapi.json", "--url", &system.url()])
        .args(["--phases", "examples,coverage,fuzzing", "--max-examples", &examples])
        .args(["--seed", &(seed.unwrap_or(1) % 1_000_000).to_string()])
        .args(["--continue-on-failure", "--no-color", "--workers", "2"])
        .args(["-H", &format!("x-api-token: {}", system.token())]);
    let printed = run(&mut command);
    let tested = printed.lines().find_map(|line| line.trim().strip_prefix("Tested:"));
    let tested: u32 = tested.and_then(|it| it.trim().parse().ok()).expect("a number");
    assert!(tested >= 60, "{printed}");
}
