//! The page of a pull request: everything besides its wait reason.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::ports::{Clock, PullRequestQuery};
use signalbox_domain::queue::{
    ChangeSource, EffectClass, EntryState, Exit, Mode, OptimizationMode, SettingsPatch,
};
use signalbox_domain::time::Span;
use signalbox_services::{QueueChange, SubmitOptions};

use crate::reports::report;
use crate::support::{House, Reply, calc, main_branch};

pub(crate) const PAGE: &str = "/acme/queue/pr?repo=git.test%2Facme%2Fcalc&branch=main&pr=";

/// A queue with two slots and these files' pull requests; their checks have not begun.
pub(crate) async fn house(files: &[&str]) -> House {
    let house = House::new().await;
    let (caller, repo, branch) = (&house.caller, calc(), main_branch());
    let queues = &house.pages.queues;
    queues
        .create_queue(caller, &repo, &branch, Mode::Single, Some(2), ChangeSource::Direct)
        .await
        .expect("a queue");
    for (at, file) in files.iter().enumerate() {
        let pr = house.host.open(&calc(), "main", &[(*file, format!("new {at}").as_str())]);
        queues
            .submit(caller, &repo, &branch, pr, SubmitOptions::default())
            .await
            .expect("submitted");
    }
    house.settle_but(&[EffectClass::Checks]).await;
    house
}

/// The commit of the run on a page.
fn tested_commit(page: &Reply) -> String {
    let shown = page.between("<dt>Commit</dt>", "</dd>");
    let whole = shown.split_once("title=\"").and_then(|(_, rest)| rest.split_once('"'));
    let whole = whole.expect("the commit of the run").0;
    assert!(shown.contains("class=\"commit\""), "{shown}");
    let words = "the whole id can be found, read and copied";
    assert!(shown.contains(&format!(">{whole}</code>")), "{words}: {shown}");
    whole.to_owned()
}

#[actix_web::test]
async fn tests_not_known_to_be_flaky_come_first() {
    let house = house(&["a1"]).await;
    let admin = house.admin().await;
    let page = admin.get(&format!("{PAGE}1")).await;
    let sha = tested_commit(&page);
    assert!(!page.body.contains("Failed tests"));
    let old = "a".repeat(40);
    for (sha, name, failure) in [
        (&old, "a wobbly test", Some("no")),
        (&old, "a wobbly test", None),
        (&sha, "a wobbly test", Some("no again")),
        (&sha, "the sum", Some("expected 5, got 4")),
    ] {
        report(&house, sha, name, failure).await;
    }
    let page = admin.get(&format!("{PAGE}1")).await;
    assert!(page.body.contains("1 not known to be flaky"), "{}", page.body);
    let table = page.between("id=\"failed-tests\"", "</table>");
    let place = |words: &str| table.find(words).unwrap_or_else(|| panic!("{words}: {table}"));
    assert!(place("the sum") < place("a wobbly test"));
    assert!(place("a wobbly test") < place("known flaky"));
    assert!(place("expected 5, got 4") < place("no again"));
}

#[actix_web::test]
async fn dependencies_are_shown_with_their_states() {
    let house = house(&["a"]).await;
    let pr = house.host.open(&calc(), "main", &[("b", "b")]);
    let description = "Depends-On: #1, #9, <script>alert(1)</script>";
    house.host.edit(&calc(), pr, |it| description.clone_into(&mut it.body));
    let queues = &house.pages.queues;
    queues
        .submit(&house.caller, &calc(), &main_branch(), pr, SubmitOptions::default())
        .await
        .expect("submitted");
    house.settle_but(&[EffectClass::Checks]).await;
    let page = house.admin().await.get(&format!("{PAGE}{pr}")).await;
    let why = "Its description names dependencies that the server cannot find: #9";
    for words in [why, "#1: not merged yet", "#9: not found"] {
        assert!(page.body.contains(words), "{words}: {}", page.body);
    }
    let shown = "&#60;script&#62;alert(1)&#60;/script&#62;: not found";
    assert!(page.body.contains(shown) && !page.body.contains("<script>alert"), "{}", page.body);
}

#[actix_web::test]
async fn impacted_targets_are_shown_with_their_source() {
    let house = house(&["a"]).await;
    let rules = ["api/** api web", "docs/** NONE", "lock ALL"].map(ToOwned::to_owned);
    let settings =
        SettingsPatch { impacted_target_rules: Some(rules.into()), ..SettingsPatch::default() };
    let change = QueueChange { settings, ..QueueChange::default() };
    let updated =
        house.pages.queues.update_queue(&house.caller, &calc(), &main_branch(), change).await;
    updated.expect("not refused");
    for (path, expected) in [
        ("api/a", "api, web (computed for its head)"),
        ("docs/a", "none (computed for its head)"),
        ("lock", "all: lock matches the rule lock ALL"),
        ("<b>x</b>", "all: no rule matches &#60;b&#62;x&#60;/b&#62;"),
    ] {
        let pr = house.host.open(&calc(), "main", &[(path, "x")]);
        let queues = &house.pages.queues;
        queues
            .submit(&house.caller, &calc(), &main_branch(), pr, SubmitOptions::default())
            .await
            .expect("submitted");
        let read = async || house.admin().await.get(&format!("{PAGE}{pr}")).await.body;
        house.settle_but(&[EffectClass::Checks]).await;
        let after = read().await;
        assert!(after.contains(expected), "{expected}: {after}");
    }
}

#[actix_web::test]
async fn neighbours_in_the_line_are_shown_and_at_most_five_on_each_side() {
    let files: Vec<String> = (1..=13).map(|at| format!("file-{at}")).collect();
    let house = house(&files.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let admin = house.admin().await;
    let page = admin.get(&format!("{PAGE}7")).await;
    assert!(page.body.contains("6 ahead, 6 behind"), "{}", page.body);
    let table = page.between("id=\"neighbours\"", "</table>").to_owned();
    let rows: Vec<u32> =
        (1..=13).filter(|at| table.contains(&format!("id=\"neighbours-{at}\""))).collect();
    assert_eq!(rows, [2, 3, 4, 5, 6, 8, 9, 10, 11, 12]);
    assert_eq!((table.matches(">ahead<").count(), table.matches(">behind<").count()), (5, 5));
}

#[actix_web::test]
async fn a_failure_that_is_not_its_own_leads_to_the_one_at_fault() {
    let house = house(&["a", "a"]).await;
    house.settle().await;
    let admin = house.admin().await;
    let (first, second) =
        (admin.get(&format!("{PAGE}1")).await, admin.get(&format!("{PAGE}2")).await);
    assert!(first.body.contains("Merged"), "{}", first.body);
    assert!(second.body.contains("See #1, which is at fault"), "{}", second.body);
    assert!(!first.body.contains("which is at fault"));
}

/// A queue whose first batch has these files' pull requests, which has been bisected, with one more behind.
async fn bisected(files: &[&str], settings: SettingsPatch) -> House {
    let house = House::with_queue().await;
    let batch = u32::try_from(files.len()).expect("few");
    let settings = SettingsPatch { batch: Some(true), batching_min_size: Some(batch), ..settings };
    let change = QueueChange { settings, ..QueueChange::default() };
    let (queues, caller) = (&house.pages.queues, &house.caller);
    queues.update_queue(caller, &calc(), &main_branch(), change).await.expect("changed");
    house.settle().await;
    for file in files.iter().chain(&["behind"]) {
        let pr = house.host.open(&calc(), "main", &[(file, "new")]);
        let options = SubmitOptions::default();
        queues.submit(caller, &calc(), &main_branch(), pr, options).await.expect("submitted");
    }
    house.settle().await;
    house
}

/// The tooltips of the bars with that class in the picture of a bisection, without the numbers of runs.
fn bars(page: &Reply, class: &str) -> Vec<String> {
    let start = format!("class=\"{class}\" x=");
    let bars = page.between("id=\"bisection\"", "</svg>").split(&start).skip(1);
    let title = |it: &str| {
        let title = it.split_once("<title>Run ")?.1.split_once('<')?.0;
        Some(title.trim_start_matches(|it: char| it.is_ascii_digit()).to_owned())
    };
    bars.filter_map(title).collect()
}

#[actix_web::test]
async fn the_bisection_of_its_batch_is_drawn() {
    let house = bisected(&["a", "b", "bad", "d"], SettingsPatch::default()).await;
    let admin = house.admin().await;
    for pr in 1..=4 {
        let page = admin.get(&format!("{PAGE}{pr}")).await;
        let failed = [": #1, #2, #3, #4: Failed", ": #3, #4: Failed", ": #3: Failed"];
        assert_eq!(bars(&page, "bad"), failed, "{pr}: {}", page.body);
        assert_eq!(bars(&page, "good"), [": #1, #2: Passed"], "{pr}: {}", page.body);
        let contained = [" is on top of #1, #2"; 2];
        assert_eq!(bars(&page, "pale"), contained, "{pr}: {}", page.body);
    }
    assert!(!admin.get(&format!("{PAGE}5")).await.body.contains("bisection-part"));
}

#[actix_web::test]
async fn every_member_shows_the_bisection_also_if_results_were_skipped() {
    let skip = OptimizationMode::BisectionSkipRedundantTests;
    let settings = SettingsPatch { optimization_mode: Some(skip), ..SettingsPatch::default() };
    let house = bisected(&["a", "b", "c", "d", "e", "f", "bad", "h"], settings).await;
    let admin = house.admin().await;
    let first = admin.get(&format!("{PAGE}1")).await;
    let failed = bars(&first, "bad");
    assert_eq!(failed.last().map(String::as_str), Some(": #7: Failed"), "{failed:?}");
    for pr in 2..=8 {
        let page = admin.get(&format!("{PAGE}{pr}")).await;
        assert_eq!(bars(&page, "bad"), failed, "{pr}: {}", page.body);
    }
}

/// The page of the first pull request after its check has failed with these tests failing on its
/// commit. `wobbly` is known to be flaky.
async fn failed_with(tests: &[&str]) -> (House, String) {
    let house = house(&["bad"]).await;
    let admin = house.admin().await;
    let page = admin.get(&format!("{PAGE}1")).await;
    let sha = tested_commit(&page);
    let old = "a".repeat(40);
    report(&house, &old, "wobbly", Some("no")).await;
    report(&house, &old, "wobbly", None).await;
    for test in tests {
        report(&house, &sha, test, Some("expected 5")).await;
    }
    house.settle().await;
    let page = admin.get(&format!("{PAGE}1")).await;
    (house, page.body)
}

#[actix_web::test]
async fn a_failure_comes_with_what_to_do_next() {
    for (tests, step) in [
        (&[] as &[&str], "Find the cause in the output of the failed checks"),
        (&["wobbly"], "All tests that failed are known to be flaky: submit it again"),
        (&["wobbly", "the sum"], "Fix the failed tests that are not known to be flaky"),
    ] {
        let (_, page) = failed_with(tests).await;
        assert!(page.contains(step), "{tests:?}: {page}");
    }
}

#[actix_web::test]
async fn the_output_of_a_failed_check_is_read_without_a_token() {
    let (house, page) = failed_with(&[]).await;
    let output = page.split_once("Output of test").expect("a section").1;
    assert!(output.contains("test: FAILURE"), "{output}");
    let link = output.split_once("href=\"").and_then(|(_, rest)| rest.split_once('"'));
    let link = link.expect("a link").0.replace("&#38;", "&").replace("&amp;", "&");
    assert!(link.starts_with("/acme/queue/output?"), "{link}");
    let admin = house.admin().await;
    let shown = admin.get(&link).await;
    assert_eq!(shown.status, 200, "{link}");
    assert!(shown.body.contains("test: FAILURE"), "{}", shown.body);
    for wrong in [link.replace("check=test", "check=other"), link.replace("run=", "run=x")] {
        assert_eq!(admin.get(&wrong).await.status, 404, "{wrong}");
    }
    let later = house.clock.now().plus(Span::days(1));
    house.stores.queue.check_log.prune(later, 10).await.expect("removed");
    let removed = admin.get(&link).await;
    assert_eq!(removed.status, 200, "{link}");
    assert!(removed.body.contains("No output is stored for this check."), "{}", removed.body);
}

#[actix_web::test]
async fn a_wrong_landing_is_shown_with_the_commands_that_undo_it() {
    let house = house(&["one"]).await;
    house.settle().await;
    let admin = house.admin().await;
    assert!(!admin.get(&format!("{PAGE}1")).await.body.contains("This landing is wrong"));
    let (repo, branch) = (calc(), main_branch());
    let query = PullRequestQuery::Number(PrNumber(1));
    let entry = house.pages.queues.entry(&house.caller, &repo, &branch, &query).await;
    let entry = entry.expect("it was submitted").entry;
    let EntryState::Ended(Exit::Merged { sha: Some(sha), proof: Some(proof), .. }) = &entry.state
    else {
        panic!("{entry:?}")
    };
    house.host.landed_wrongly(sha);
    house.audit().await;
    let page = admin.get(&format!("{PAGE}1")).await;
    assert!(page.body.contains("This landing is wrong"), "{}", page.body);
    let incident = page.between("id=\"incident\"", "</section>");
    assert!(incident.contains("<code>file</code>"), "{incident}");
    assert!(incident.contains(&format!("{sha} {} | git apply", proof.base)), "{incident}");
    let queue = admin.get("/acme/queue?repo=git.test%2Facme%2Fcalc&branch=main").await;
    assert!(queue.body.contains(&format!("{sha}, which landed #1, is not its base")));
}

#[actix_web::test]
async fn the_time_of_an_earlier_submission_is_not_drawn() {
    let house = house(&["bad"]).await;
    house.settle().await;
    house.clock.advance(Span::days(6));
    let (caller, repo, branch) = (&house.caller, calc(), main_branch());
    let options = SubmitOptions::default();
    let queues = &house.pages.queues;
    queues.submit(caller, &repo, &branch, PrNumber(1), options).await.expect("submitted again");
    house.settle_but(&[EffectClass::Checks]).await;
    house.clock.advance(Span::minutes(3));
    let page = house.admin().await.get(&format!("{PAGE}1")).await;
    let chart = page.between("id=\"time\"", "</svg>");
    assert!(chart.contains(">0 s</text>") && chart.contains(">3:00 min</text>"), "{chart}");
    assert_eq!(chart.matches(">Run ").count(), 1, "{chart}");
    let table = page.between("id=\"time-table\"", "</table>");
    assert!(table.contains("Testing") && !table.contains(" d<"), "{table}");
}
