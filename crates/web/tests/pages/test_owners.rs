//! Owners of tests, changes of several tests, and release from quarantine.

use std::collections::BTreeSet;

use signalbox_domain::flaky::{
    AutoQuarantine, Command, QuarantineOverride, Settings, SettingsPatch, TestId, TestStatus,
};
use signalbox_domain::ports::Seek;
use signalbox_domain::time::Span;
use signalbox_domain::token::Scope;
use signalbox_services::{FlakyService, ListKind};

use crate::reports::{report, report_all};
use crate::support::{Browser, House, calc};

const REPO: &str = "repo=git.test%2Facme%2Fcalc";

/// A flaky test of that name with these owners.
async fn flaky(house: &House, name: &str, owners: &[&str]) {
    let sha = format!("{:0>40}", name.len());
    for failure in [Some("expected 3"), None] {
        report_all(house, &sha, &[(name, failure)], owners).await;
    }
}

/// Quarantine covers the tests with an override.
async fn quarantine_by_hand(house: &House) {
    let patch = |_: &Settings| SettingsPatch {
        quarantine_enabled: Some(true),
        auto_quarantine: Some(AutoQuarantine::Off),
        ..SettingsPatch::default()
    };
    let (flaky, repo) = (&house.pages.flaky, calc());
    let changed = flaky.update_settings(&house.caller, &repo, patch);
    changed.await.expect("changed");
}

/// The ids of the flaky or quarantined tests, by name.
async fn ids(house: &House, kind: ListKind, limit: u32) -> Vec<(String, TestId)> {
    let (flaky, repo) = (&house.pages.flaky, calc());
    let list = flaky.list(&house.caller, &repo, kind, Seek::After(None), limit, false);
    let tests = list.await.expect("a list").tests;
    let mut ids: Vec<_> =
        tests.into_iter().map(|it| (it.record.test.key.name, it.record.test.id)).collect();
    ids.sort();
    ids
}

async fn page(browser: &Browser<'_>, page: &str) -> String {
    let reply = browser.get(&format!("/acme/{page}{REPO}")).await;
    assert_eq!(reply.status, 200, "{page}: {}", reply.body);
    reply.body
}

/// The cells of a table's rows.
fn rows(body: &str, table: &str) -> Vec<Vec<String>> {
    let Some((_, rest)) = body.split_once(&format!("id=\"{table}\"")) else { return Vec::new() };
    let rest = rest.split_once("<tbody").map_or("", |(_, rest)| rest);
    let rest = rest.split_once("</tbody>").map_or("", |(rows, _)| rows);
    let cells = |row: &str| {
        let cells = row.split("<td").skip(1).map(|cell| {
            let cell = cell.split_once('>').map_or("", |(_, cell)| cell);
            let texts = cell.split('<').filter_map(|it| it.split_once('>'));
            texts.map(|(_, text)| text.trim()).collect()
        });
        cells.collect()
    };
    rest.split("<tr").skip(1).map(cells).collect()
}

#[actix_web::test]
async fn owners_see_what_their_tests_cost_and_which_they_are() {
    let house = House::with_queue().await;
    flaky(&house, "adds", &["@acme/calc"]).await;
    flaky(&house, "divides", &["@acme/calc", "@acme/math"]).await;
    flaky(&house, "prints", &[]).await;
    let browser = house.admin().await;
    let owners = page(&browser, "flaky-tests/owners?").await;
    assert_eq!(
        rows(&owners, "owners"),
        [
            ["@acme/calc", "2", "0", "0", "2", "1", "2 s"],
            ["No owner", "1", "0", "0", "1", "1", "1 s"],
            ["@acme/math", "1", "0", "0", "1", "1", "1 s"],
        ]
    );
    let listed = page(&browser, "flaky-tests?list=flaky&").await;
    let (_, link) = listed.split_once("href=\"/acme/flaky-tests/test/").expect("a test");
    let (id, _) = link.split_once('?').expect("an address");
    let test = page(&browser, &format!("flaky-tests/test/{id}?")).await;
    let (_, delay) = test.split_once("Delay in 7 d").expect("the delay");
    assert!(delay.chars().take(60).collect::<String>().contains(">1 s<"), "{delay:.60}");
    let names = |body: &str| {
        let first = rows(body, "tests").into_iter().filter_map(|it| it.into_iter().next());
        let mut names: Vec<String> = first.map(|it| it.replace("Calc", "")).collect();
        names.sort();
        names
    };
    let owned = async |owner: &str| {
        names(&page(&browser, &format!("flaky-tests?list=flaky&owner={owner}&")).await)
    };
    assert_eq!(owned("%40acme%2Fcalc").await, ["adds", "divides"]);
    assert_eq!(owned("%40acme%2Fmath").await, ["divides"]);
    assert_eq!(owned("%40ACME%2Fmath").await, ["divides"], "GitHub ignores the case");
    assert_eq!(owned("-").await, ["prints"]);
    assert_eq!(owned("%40acme").await, [""; 0], "a part of an owner is no owner");
    assert_eq!(names(&page(&browser, "flaky-tests?owner=-&q=add&").await), [""; 0]);
}

/// The tests that failed within a day of now.
fn failing(house: &House) -> ListKind {
    let now = house.pages.reads.now();
    ListKind::Failing { from: now.minus(Span::days(1)), until: now.plus(Span::days(1)) }
}

#[actix_web::test]
async fn a_search_reads_a_long_list_to_its_last_test() {
    let house = House::with_queue().await;
    let names: Vec<String> = (0..800).map(|number| format!("adds {number} and 1")).collect();
    let failure = |at: usize| (at < 600).then_some("expected 3");
    let tests: Vec<(&str, Option<&str>)> =
        names.iter().enumerate().map(|(at, name)| (name.as_str(), failure(at))).collect();
    report_all(&house, &"a".repeat(40), &tests, &["@acme/calc"]).await;
    let mut failed = ids(&house, failing(&house), 1_000).await;
    assert_eq!(failed.len(), 600);
    failed.sort_by_key(|(_, id)| *id);
    let (name, _) = failed.last().expect("a test");
    let browser = house.admin().await;
    let asked = format!("flaky-tests?list=failing&q={}&", name.replace(' ', "+"));
    assert_eq!(rows(&page(&browser, &asked).await, "tests").len(), 1, "{name}");
    // The pages contain each test once, and keep the search.
    let all = format!("/acme/flaky-tests?{REPO}&list=failing&q=and&owner=%40acme%2Fcalc");
    let (mut next, mut shown) = (all, Vec::new());
    while !next.is_empty() {
        let reply = browser.get(&next).await;
        shown.extend(rows(&reply.body, "tests").into_iter().filter_map(|it| it.into_iter().next()));
        let mut links = reply.body.split("<a href=\"").skip(1);
        let found = links.find_map(|it| it.split_once("\" rel=\"next\""));
        next = found.map_or_else(String::new, |(it, _)| it.replace("&#38;", "&"));
    }
    assert_eq!(shown.len(), 600);
    assert_eq!(shown.iter().collect::<BTreeSet<_>>().len(), 600, "each once");
}

#[actix_web::test]
async fn several_tests_are_changed_by_one_form() {
    let house = House::with_queue().await;
    for name in ["adds", "divides", "prints"] {
        flaky(&house, name, &["@acme/calc"]).await;
    }
    let tests = ids(&house, ListKind::Unhealthy(TestStatus::Flaky), 9).await;
    let [adds, divides, prints] = [0, 1, 2].map(|at: usize| tests[at].1.to_string());
    let browser = house.admin().await;
    let send = async |change: &str, tests: &[&str]| {
        let mut form = vec![
            ("action", "several"),
            ("repo", "git.test/acme/calc"),
            ("list", "flaky"),
            ("owner", "@acme/calc"),
            ("change", change),
            ("reason", "they wait for a clock"),
        ];
        form.extend(tests.iter().map(|test| ("test", *test)));
        browser.post("/acme/flaky-tests/do", &form).await
    };
    let done = send("flag", &[&adds, &divides]).await;
    assert_eq!(done.status, 303, "{}", done.body);
    let back = done.header("location").expect("an address");
    let end = "&list=flaky&owner=%40acme%2Fcalc&said=some-changed";
    assert!(back.ends_with(end), "the search is kept: {back}");
    assert!(browser.get(back).await.body.contains("The tests were changed."));

    let done = send("flag", &[&divides, &prints]).await;
    assert_eq!(done.status, 409, "one is flagged already");
    assert!(done.body.contains("1 of 2 tests were changed"), "{}", done.body);
    let names = ["divides · Calc", "prints · Calc"].map(|name| done.body.contains(name));
    assert_eq!(names, [true, false], "{}", done.body);
    let done = send("unflag", &[&adds, &divides, &prints]).await;
    assert_eq!(done.status, 303, "all three have a flag: {}", done.body);

    assert_eq!(send("ALWAYS_QUARANTINE", &[&adds, &prints]).await.status, 303);
    quarantine_by_hand(&house).await;
    let quarantined = ids(&house, ListKind::Quarantined, 9).await;
    let names: Vec<&str> = quarantined.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["adds", "prints"]);

    assert_eq!(send("delete", &[&adds]).await.status, 400, "there is no such change");
    assert_eq!(send("flag", &[]).await.status, 400, "no test is selected");
    assert_eq!(send("flag", &["x"]).await.status, 404);
    let unknown = "00000000-0000-0000-0000-000000000001";
    let done = send("flag", &[&adds, unknown]).await;
    assert_eq!(done.status, 409);
    assert!(done.body.contains("1 of 2 tests were changed"), "{}", done.body);
    let viewer = house.browser("eve", &[Scope::TestsRead]).await;
    let form = [("action", "several"), ("repo", "git.test/acme/calc"), ("change", "flag")];
    let form = [&form[..], &[("test", adds.as_str())]].concat();
    assert_eq!(viewer.post("/acme/flaky-tests/do", &form).await.status, 403);
    for listed in ["flaky-tests?", "flaky-tests/quarantine?"] {
        assert!(page(&browser, listed).await.contains("id=\"several\""), "{listed}");
        assert!(!page(&viewer, listed).await.contains("id=\"several\""), "{listed}");
    }
}

#[actix_web::test]
async fn a_test_that_has_been_healthy_for_long_can_be_released_from_quarantine() {
    let house = House::with_queue().await;
    let (caller, flaky) = (&house.caller, &house.pages.flaky);
    quarantine_by_hand(&house).await;
    report(&house, &"a".repeat(40), "adds", None).await;
    report(&house, &"a".repeat(40), "rests", None).await;
    for name in ["adds", "rests"] {
        report(&house, &"b".repeat(40), name, Some("expected 3")).await;
    }
    let tests = ids(&house, failing(&house), 9).await;
    assert_eq!(tests.len(), 2);
    for (_, id) in &tests {
        let always = Command::SetQuarantine {
            setting: QuarantineOverride::Always,
            expires_at: None,
            reason: None,
            by: FlakyService::actor(caller),
        };
        flaky.command(caller, &calc(), *id, always).await.expect("quarantined");
    }
    // Sessions end earlier than that.
    let released = async || {
        let page = page(&house.admin().await, "flaky-tests/quarantine?").await;
        let first = rows(&page, "releasable").into_iter().filter_map(|it| it.into_iter().next());
        first.collect::<Vec<String>>()
    };
    house.clock.advance(Span::days(13));
    report(&house, &"c".repeat(40), "adds", None).await;
    assert_eq!(released().await, [""; 0], "13 days are not enough");
    house.clock.advance(Span::days(2));
    assert_eq!(released().await, ["adds · Calc"], "the other one has not run for 15 days");
    report(&house, &"d".repeat(40), "adds", Some("expected 3")).await;
    assert_eq!(released().await, [""; 0], "it has failed again");
    house.clock.advance(Span::days(15));
    report(&house, &"e".repeat(40), "adds", None).await;
    assert_eq!(released().await, ["adds · Calc"]);

    let browser = house.admin().await;
    let page = browser.get(&format!("/acme/flaky-tests/quarantine?{REPO}")).await;
    assert_eq!(page.body.matches(" id=\"release\"").count(), 1);
    let form = page.between("id=\"release\"", "</form>");
    let field = |name: &str| {
        let rest = form.split_once(&format!("name=\"{name}\" value=\"")).expect(name).1;
        rest.split_once('"').expect("a value").0
    };
    let names = ["action", "repo", "list", "change", "test"];
    let sent: Vec<(&str, &str)> = names.iter().map(|name| (*name, field(name))).collect();
    let done = browser.post("/acme/flaky-tests/do", &sent).await;
    assert_eq!(done.status, 303, "{}", done.body);
    assert_eq!(released().await, [""; 0]);
    let left = ids(&house, ListKind::Quarantined, 9).await;
    assert_eq!(left.len(), 1, "only the one that rests is still quarantined: {left:?}");
}
