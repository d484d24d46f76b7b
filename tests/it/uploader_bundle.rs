//! Bundles of the public uploader: reports of many frameworks, and the ids of their
//! tests by the rule of its protocol, computed here independently.

use serde_json::{Value, json};
use uuid::Uuid;

/// A test of the reports: how the uploader knows it, and whether it failed in the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) parent: &'static str,
    pub(crate) class: &'static str,
    pub(crate) file: &'static str,
    /// The file by which the uploader asks, where it is another.
    pub(crate) asked_file: &'static str,
    pub(crate) name: &'static str,
    pub(crate) info: &'static str,
    pub(crate) fails: bool,
}

pub(crate) const VERSION_5: &str = "a6e84936-3ee9-57d5-b041-ae124896f654";

const fn case(parent: &'static str, class: &'static str, name: &'static str) -> Case {
    Case { parent, class, file: "", asked_file: "", name, info: "", fails: false }
}

const fn failing(case: Case) -> Case {
    Case { fails: true, ..case }
}

const fn in_file(case: Case, file: &'static str) -> Case {
    Case { file, asked_file: file, ..case }
}

/// A case of the report whose suite has a file too.
const fn spec(name: &'static str, file: &'static str, info: &'static str) -> Case {
    let (parent, class, asked_file) = ("rspec", "spec.cart_spec", "./spec/all.rb");
    Case { parent, class, file, asked_file, name, info, fails: true }
}

const CART: &str = "com.acme.CartTest";
const GO: &str = "example.com/acme/cart";
const UNIX: &str = "trunk:./spec/cart_spec.rb[2:1]-./spec/cart_spec.rb:28";

/// Every test that ran, in the order of the reports.
pub(crate) const CASES: &[Case] = &[
    case("pytest", "tests.test_cart", "test_total[1-2]"),
    failing(case("pytest", "tests.test_cart", "test_naïve[ü–☃ \"a\" <b>]")),
    failing(case("pytest", "", "tests.test_broken")),
    case(CART, CART, "adds"),
    case(CART, CART, "wobbles"),
    failing(case(CART, CART, "fails")),
    failing(in_file(
        case("cart totals", "cart totals rounds", "cart totals rounds"),
        "src/cart.test.ts",
    )),
    case(GO, GO, "TestAdd"),
    failing(case(GO, GO, "TestRound/half_up#01")),
    in_file(
        case("phpunit.xml", "Acme.CartTest", "testAdds with data set #0"),
        "/app/tests/CartTest.php",
    ),
    case("acme::cart", "acme::cart", "retried"),
    spec("Cart rounds", "./spec/cart_spec.rb", ""),
    spec("named by a number", "./spec/all.rb", "123"),
    spec("named by its place", "./spec/all.rb", UNIX),
    spec("named by an id", "./spec/all.rb", VERSION_5),
];

const PYTEST: &str = r#"<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests">
<testsuite name="pytest" errors="1" failures="1" skipped="1" tests="4" time="0.05">
<testcase classname="tests.test_cart" name="test_total[1-2]" time="0.001"/>
<testcase classname="tests.test_cart" name="test_naïve[ü–☃ &quot;a&quot; &lt;b&gt;]" time="0.002">
<failure message="assert 1 == 2&#10;  +1">def test_naïve(): ...</failure></testcase>
<testcase classname="tests.test_cart" name="test_later" time="0"><skipped type="pytest.skip"
 message="later">tests/test_cart.py:12: later</skipped></testcase>
<testcase classname="" name="tests.test_broken" time="0"><error message="collection failure">E
ImportError</error></testcase></testsuite></testsuites>"#;
const SUREFIRE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="com.acme.CartTest" time="1.5" tests="3" errors="0" skipped="0" failures="1">
<properties><property name="secret" value="hunter2"/></properties>
<testcase name="adds" classname="com.acme.CartTest" time="1,200.25"/>
<testcase name="wobbles" classname="com.acme.CartTest" time="0.3"><flakyFailure message="first"
 type="java.lang.AssertionError"><stackTrace>at a</stackTrace></flakyFailure></testcase>
<testcase name="fails" classname="com.acme.CartTest" time="0.1"><failure message="one"
 type="java.lang.AssertionError">at b</failure><rerunFailure message="two"
 type="java.lang.AssertionError"><stackTrace>at b</stackTrace></rerunFailure></testcase>
</testsuite>"#;
const JEST: &str = r#"<testsuites name="jest tests" tests="1" failures="1" errors="0" time="1.2">
<testsuite name="cart totals" errors="0" failures="1" skipped="0" time="0.4" tests="1">
<testcase classname="cart totals rounds" name="cart totals rounds" time="0.01"
 file="src/cart.test.ts"><failure>Error: expect(received).toBe(expected)</failure></testcase>
</testsuite></testsuites>"#;
const GOTESTSUM: &str = r#"<testsuites tests="2" failures="1" errors="0" time="0.2">
<testsuite tests="2" failures="1" time="0.2" name="example.com/acme/cart">
<properties><property name="go.version" value="go1.22"/></properties>
<testcase classname="example.com/acme/cart" name="TestAdd" time="0.000"></testcase>
<testcase classname="example.com/acme/cart" name="TestRound/half_up#01" time="0.100">
<failure message="Failed" type="">cart_test.go:9: got 3, want 2</failure></testcase>
</testsuite></testsuites>"#;
const PHPUNIT: &str = r#"<?xml version="1.0" encoding="UTF-8"?><testsuites>
<testsuite name="phpunit.xml" tests="1" assertions="1"><testsuite name="Unit" tests="1">
<testsuite name="Acme\CartTest" file="/app/tests/CartTest.php" tests="1">
<testcase name="testAdds with data set #0" file="/app/tests/CartTest.php" line="12"
 class="Acme\CartTest" classname="Acme.CartTest" assertions="1" time="0.005"/>
</testsuite></testsuite></testsuite></testsuites>"#;
const NEXTEST: &str = r#"<testsuites name="nextest-run" tests="1" failures="0" errors="0">
<testsuite name="acme::cart" tests="1" disabled="0" errors="0" failures="0">
<testcase name="retried" classname="acme::cart" time="0.012"><flakyFailure time="0.011"
 type="test failure">thread 'retried' panicked</flakyFailure></testcase>
</testsuite></testsuites>"#;
const RSPEC: &str = r#"<testsuite name="rspec" file="./spec/all.rb" tests="4" failures="4">
<testcase classname="spec.cart_spec" name="Cart rounds" file="./spec/cart_spec.rb" time="0.002">
<failure message="expected: 2" type="ExpectationNotMetError">Failure/Error</failure></testcase>
<testcase classname="spec.cart_spec" name="named by a number" id="123"><failure/></testcase>
<testcase classname="spec.cart_spec" name="named by its place"
 id="trunk:./spec/cart_spec.rb[2:1]-./spec/cart_spec.rb:28"><failure/></testcase>
<testcase classname="spec.cart_spec" name="named by an id"
 id="a6e84936-3ee9-57d5-b041-ae124896f654"><failure/></testcase></testsuite>"#;

/// The reports, one file each.
pub(crate) const REPORTS: [&str; 7] = [PYTEST, SUREFIRE, JEST, GOTESTSUM, PHPUNIT, NEXTEST, RSPEC];

fn hashed(parts: &[&str]) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_URL, parts.join("#").as_bytes()).to_string()
}

impl Case {
    /// The id by the fields, with that file.
    fn by_fields(&self, repo: &str, file: &str, variant: &str) -> String {
        let plain =
            ["acme", repo, file, self.class, self.parent, self.name, "JUNIT_TESTCASE", variant];
        with_variant(&plain, variant)
    }

    /// The id that the server makes.
    pub(crate) fn id(&self, repo: &str, variant: &str) -> String {
        if self.info.starts_with("trunk:") {
            with_variant(&["acme", repo, self.info, variant], variant)
        } else if self.info == VERSION_5 && variant.is_empty() {
            VERSION_5.to_owned()
        } else if self.info == VERSION_5 {
            with_variant(&[self.info, variant], variant)
        } else {
            self.by_fields(repo, self.file, variant)
        }
    }

    /// The id that the uploader sends when it asks.
    pub(crate) fn asked_id(&self, repo: &str, variant: &str) -> String {
        if self.info.is_empty() {
            self.by_fields(repo, self.asked_file, variant)
        } else {
            self.info.to_owned()
        }
    }

    /// The test as the uploader sends it.
    pub(crate) fn asked(&self, repo: &str, variant: &str) -> Value {
        let some = |text: &str| if text.is_empty() { Value::Null } else { json!(text) };
        json!({
            "name": self.name, "parentName": self.parent, "className": some(self.class),
            "file": some(self.asked_file), "id": self.asked_id(repo, variant),
            "timestamp_millis": null, "is_quarantined": false, "failure_message": "wrong",
            "variant": some(variant)
        })
    }
}

/// The last of the parts is the variant: omitted when it is empty, and hashed a second time when
/// not.
fn with_variant(parts: &[&str], variant: &str) -> String {
    match (parts.split_last(), variant) {
        (Some((_, plain)), "") => hashed(plain),
        (_, variant) => hashed(&[&hashed(parts), variant]),
    }
}

/// The uploader's metadata about itself and the commit.
pub(crate) fn meta(id: &str, variant: &str, more: &Value) -> Value {
    let file = |at: usize| {
        json!({
            "original_path": format!("/w/report-{at}.xml"), "original_path_rel": null,
            "path": format!("junit/{at}"), "last_modified_epoch_ns": 1_767_225_600_123_456_789_u64,
            "owners": [], "team": null
        })
    };
    let files: Vec<Value> = (0..REPORTS.len()).map(file).collect();
    let mut meta = json!({
        "version": "1", "cli_version": "cargo=0.7.8 git=abc rustc=1.80.0", "org": "acme",
        "repo": {"repo": {"host": "github.com", "owner": "acme", "name": "shop"},
            "repo_root": "/w", "repo_url": "git@github.com:acme/shop.git",
            "repo_head_sha": "b".repeat(40), "repo_head_sha_short": "bbbbbbb",
            "repo_head_branch": "refs/heads/topic", "repo_head_commit_epoch": 1_700_000_000,
            "repo_head_commit_message": "Round halves up\n", "repo_head_author_name": "Ada",
            "repo_head_author_email": "ada@acme.test"},
        "bundle_upload_id": id, "bundle_upload_id_v2": id, "tags": [],
        "file_sets": [{"file_set_type": "Junit", "files": files, "glob": "*.xml"}],
        "envs": {"GITHUB_ACTIONS": "true", "GITHUB_REF": "refs/pull/7/merge",
            "GITHUB_HEAD_REF": "topic", "GITHUB_REPOSITORY": "acme/shop", "GITHUB_RUN_ID": "12",
            "GITHUB_JOB": "unit"},
        "upload_time_epoch": 1_767_225_600, "test_command": null, "os_info": "linux",
        "quarantined_tests": [], "codeowners": {"path": "/w/CODEOWNERS"}, "use_uncloned_repo": null,
        "num_files": REPORTS.len(), "num_tests": 16, "command_line": "upload --junit-paths *.xml",
        "trunk_envs": {"TRUNK_ORG_URL_SLUG": "acme"}, "internal_bundled_file": null,
        "variant": variant, "failed_tests": []
    });
    if let (Some(meta), Some(more)) = (meta.as_object_mut(), more.as_object()) {
        meta.extend(more.clone());
    }
    meta
}

/// A length-delimited field of protobuf.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut left = bytes.len();
    while left >= 0x80 {
        field.push(u8::try_from(left & 0x7f).expect("seven bits") | 0x80);
        left >>= 7;
    }
    field.push(u8::try_from(left).expect("seven bits"));
    field.extend_from_slice(bytes);
    field
}

/// The uploader's own reading of the reports, with an owner for every test.
fn internal(cases: &[Case]) -> Vec<u8> {
    let run = |case: &Case| {
        let texts = [case.info, case.name, case.class, case.file, case.parent];
        let mut run: Vec<u8> =
            (1..).zip(texts).flat_map(|(number, text)| field(number, text.as_bytes())).collect();
        run.extend([7 << 3, if case.fails { 2 } else { 1 }]);
        run.extend(field(13, &field(1, b"@acme/shop")));
        field(1, &run)
    };
    let runs: Vec<u8> = cases.iter().flat_map(run).collect();
    let writer = field(2, &field(1, b"0.7.8"));
    [field(1, &runs), writer].concat()
}

/// The metrics that a run of the uploader sends at its end.
pub(crate) fn telemetry() -> Vec<u8> {
    let repo = [field(1, b"github.com"), field(2, b"acme"), field(3, b"shop")].concat();
    [field(2, &repo), vec![6 << 3, 0], field(7, b""), vec![8 << 3, 1]].concat()
}

/// A bundle in the uploader's order of members and its compression.
pub(crate) fn packed(meta: &Value, reports: &[&str], cases: &[Case]) -> Vec<u8> {
    let mut members = vec![("meta.json".to_owned(), meta.to_string().into_bytes())];
    members.push(("internal.bin".into(), internal(cases)));
    for (at, report) in reports.iter().enumerate() {
        members.push((format!("junit/{at}"), report.as_bytes().to_vec()));
    }
    members.push(("CODEOWNERS".into(), b"* @acme/shop\n".to_vec()));
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(u64::try_from(content.len()).expect("a length"));
        header.set_mode(0o644);
        archive.append_data(&mut header, name, &content[..]).expect("memory");
    }
    let archive = archive.into_inner().expect("memory");
    zstd::encode_all(&archive[..], 15).expect("memory")
}
