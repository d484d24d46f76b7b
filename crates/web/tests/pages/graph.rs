//! The graph of a queue: sizes, lanes and batches.

use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    CheckConclusion, CheckStatus, EffectClass, HostStatuses, Mode, ReportedTargets, RequestedState,
    SettingsPatch,
};
use signalbox_services::{CheckResult, QueueChange, SubmitOptions};

use crate::queue::house;
use crate::support::{House, calc, main_branch};

const PATH: &str = "/acme/queue/graph?repo=git.test%2Facme%2Fcalc&branch=main";

async fn graph(house: &House, more: &str) -> String {
    house.admin().await.get(&format!("{PATH}{more}")).await.body
}

/// The labels of the boxes with that class.
fn boxes(page: &str, class: &str) -> Vec<String> {
    let start = format!("<rect class=\"{class}\" x=");
    let all = page.split(&start).skip(1);
    let text = |it: &str| {
        let label = it.split_once("</rect><text")?.1.split_once('>')?.1.split('<').next()?;
        Some(label.to_owned())
    };
    all.filter_map(text).collect()
}

/// The height of the picture.
fn height(page: &str) -> u32 {
    let svg = page.split_once("id=\"graph\"").expect("a picture").1;
    let value = svg.split_once(" height=\"").expect("a height").1;
    value.split('"').next().and_then(|it| it.parse().ok()).expect("a number")
}

/// The cells of the table, without its head.
fn cells(page: &str) -> Vec<String> {
    let table = page.split_once("id=\"graph-table\"").expect("a table").1;
    let table = table.split_once("</table>").expect("its end").0;
    let cells = table.split("<td ").skip(1);
    let text = |cell: &str| {
        let text = cell.split_once("<span class=\"cell")?.1.split_once('>')?.1;
        let text = text.rsplit_once("</svg>").map_or(text, |(_, rest)| rest);
        let text =
            text.strip_prefix("<a ").and_then(|it| it.split_once('>')).map_or(text, |it| it.1);
        Some(text.split('<').next()?.to_owned())
    };
    cells.filter_map(text).collect()
}

#[actix_web::test]
async fn a_long_line_is_drawn_whole_and_in_small_boxes() {
    let settings = SettingsPatch { concurrency: Some(80), ..SettingsPatch::default() };
    let house = house(settings, 110).await;
    let page = graph(&house, "").await;
    let tested: Vec<String> = (1..=80).map(|pr| format!("#{pr}")).collect();
    assert_eq!(boxes(&page, "node-active"), tested);
    assert_eq!(boxes(&page, "node"), ["30 waiting"]);
    assert!(height(&page) <= 450, "{page}");
    assert_eq!(cells(&page)[80 * 5..], ["–", "30 pull requests", "Waiting to be tested", "–", "–"]);
    let list = "/acme/queue?repo=git.test%2Facme%2Fcalc&#38;branch=main&#38;stage=waiting";
    assert!(page.contains(list), "{page}");
    let large = graph(&house, "&size=large").await;
    assert!(boxes(&large, "node-active")[79].starts_with("#80 "), "{large}");
    assert!(height(&large) > 2 * height(&page), "{large}");
    assert!(!page.contains("Fold"), "one lane is not folded");
}

#[actix_web::test]
async fn few_pull_requests_are_drawn_large_also_while_they_wait() {
    let house = house(SettingsPatch { concurrency: Some(2), ..SettingsPatch::default() }, 4).await;
    let page = graph(&house, "").await;
    let labels = |page: &str, class| -> Vec<String> {
        boxes(page, class).iter().filter_map(|it| it.split(' ').next().map(str::to_owned)).collect()
    };
    assert_eq!(labels(&page, "node-active"), ["#1", "#2"]);
    assert_eq!(labels(&page, "node"), ["#3", "#4"]);
    let small = graph(&house, "&size=small").await;
    assert_eq!(boxes(&small, "node-active"), ["#1", "#2"]);
    assert_eq!(boxes(&small, "node"), ["2 waiting"]);
    for odd in ["&size=huge", "&lanes=x", "&lane=x", "&lane=-1"] {
        assert_eq!(boxes(&graph(&house, odd).await, "node-active").len(), 2, "{odd}");
    }
    let none = graph(&house, "&lane=99").await;
    assert!(none.contains("#99 is not in a test run, so it has no lane."), "{none}");
    assert!(
        !none.contains("No pull request is in the line") && !none.contains("<svg id=\"graph\""),
        "{none}"
    );
}

#[actix_web::test]
async fn a_batch_is_one_small_box() {
    let settings = SettingsPatch {
        concurrency: Some(2),
        batch: Some(true),
        batching_min_size: Some(3),
        ..SettingsPatch::default()
    };
    let house = house(settings, 6).await;
    let small = graph(&house, "&size=small").await;
    assert_eq!(boxes(&small, "node-active"), ["#1 +2", "#4 +2"]);
    assert!(small.contains("#7 +3 is a batch"), "{small}");
    let large = graph(&house, "").await;
    assert_eq!(boxes(&large, "node-active").len(), 6);
    assert_eq!(large.matches("<rect class=\"lane\" x").count(), 2);
}

/// Pull requests with a target each, `count` for each of `lanes` targets in turn.
async fn parallel(lanes: u32, count: u32) -> House {
    let house = House::with_queue().await;
    let (caller, repo, branch) = (&house.caller, calc(), main_branch());
    let queues = &house.pages.queues;
    let settings = SettingsPatch {
        concurrency: Some(lanes * count),
        mode: Some(Mode::Parallel),
        ..SettingsPatch::default()
    };
    let change = QueueChange { settings, ..QueueChange::default() };
    queues.update_queue(caller, &repo, &branch, change).await.expect("changed");
    house.settle().await;
    for at in 0..lanes * count {
        let file = format!("part-{at}");
        let pr = house.host.open(&repo, "main", &[(file.as_str(), "new")]);
        let targets = ReportedTargets::only(None, [format!("lane-{}", at % lanes)]);
        queues.set_targets(caller, &repo, &branch, pr, targets).await.expect("reported");
        let options = SubmitOptions::default();
        queues.submit(caller, &repo, &branch, pr, options).await.expect("submitted");
    }
    house.settle_but(&[EffectClass::Checks]).await;
    house
}

#[actix_web::test]
async fn lanes_are_folded_when_there_are_many_and_shown_one_by_one() {
    let house = parallel(4, 40).await;
    let page = graph(&house, "").await;
    assert_eq!(boxes(&page, "node-active"), ["#1 +39", "#2 +39", "#3 +39", "#4 +39"]);
    assert!(page.contains("Lane of #3 (40 test runs)"), "{page}");
    assert!(page.contains("<title>Lane of #3, 40 test runs: 40 testing</title>"), "{page}");
    assert_eq!(cells(&page)[..3], ["–", "Lane of #1, 40 test runs", "40 testing"]);
    assert!(page.contains("&#38;lane=159\">Lane of #3"), "the last one: {page}");
    let unfolded = graph(&house, "&lanes=unfolded").await;
    assert_eq!(boxes(&unfolded, "node-active").len(), 160);
    let lane = graph(&house, "&lane=3").await;
    let own: Vec<String> = (0..40).map(|at| format!("#{}", 3 + 4 * at)).collect();
    let shown = boxes(&lane, "node-active");
    let shown: Vec<&str> = shown.iter().filter_map(|it| it.split(' ').next()).collect();
    assert_eq!(shown, own);
    assert_eq!(graph(&house, "&lane=7").await.matches("node-active\" x").count(), 40);
}

#[actix_web::test]
async fn pull_requests_that_pass_by_a_later_run_are_no_batch() {
    let settings = SettingsPatch {
        concurrency: Some(3),
        can_optimistically_merge: Some(true),
        pending_failure_depth: Some(3),
        ..SettingsPatch::default()
    };
    let house = house(settings, 0).await;
    let (caller, repo, branch) = (&house.caller, calc(), main_branch());
    let queues = &house.pages.queues;
    let external = vec!["test".to_owned()];
    house.host.set_required_statuses(HostStatuses {
        repository: Some(external.clone()),
        external,
        ..HostStatuses::default()
    });
    for file in ["a", "b", "c"] {
        let pr = house.host.open(&repo, "main", &[(file, "new")]);
        let options = SubmitOptions::default();
        queues.submit(caller, &repo, &branch, pr, options).await.expect("submitted");
    }
    house.settle().await;
    let pause = QueueChange { state: Some(RequestedState::Paused), ..QueueChange::default() };
    queues.update_queue(caller, &repo, &branch, pause).await.expect("paused");
    let queue = queues.queue(caller, &repo, &branch).await.expect("a queue");
    let last = queue.entry_of(PrNumber(3)).and_then(|it| it.state.run());
    let run = last.and_then(|it| queue.run(it)).expect("its run");
    let result = CheckResult {
        run: run.id,
        sha: run.candidate.as_ref().expect("a candidate").sha.clone(),
        check: "test".to_owned(),
        status: CheckStatus::Completed,
        conclusion: Some(CheckConclusion::Success),
        url: String::new(),
        summary: None,
    };
    queues.report_check(caller, &repo, &branch, result).await.expect("reported");
    house.settle().await;
    let page = graph(&house, "&size=small").await;
    assert_eq!(boxes(&page, "node-good"), ["#1", "#2", "#3"]);
    let cells = cells(&page);
    let columns: Vec<[&str; 2]> = cells.chunks(5).map(|row| [&*row[3], &*row[4]]).collect();
    assert_eq!(columns, [["–", "–"], ["–", "–"], ["#3", "#1, #2"]], "{cells:?}");
}

#[actix_web::test]
async fn at_most_five_hundred_are_drawn_and_the_others_are_counted() {
    let house = parallel(26, 20).await;
    let page = graph(&house, "&lanes=unfolded").await;
    assert_eq!(boxes(&page, "node-active").len(), 500);
    assert!(
        page.contains("At most 500 pull requests are drawn: 20 more are in test runs."),
        "{page}"
    );
    let folded = graph(&house, "").await;
    assert_eq!(boxes(&folded, "node-active").len(), 26);
    assert!(!folded.contains("At most 500"), "every lane is drawn: {folded}");
    let last = graph(&house, "&lane=520").await;
    assert_eq!(boxes(&last, "node-active").len(), 20);
}
