//! The list of a queue: its columns, its filters and its pages.

use signalbox_domain::ids::{PrNumber, RepoName};
use signalbox_domain::queue::{EffectClass, SettingsPatch};
use signalbox_domain::time::Span;
use signalbox_services::{QueueChange, SubmitOptions};

use crate::support::{House, calc, main_branch};

const PATH: &str = "/acme/queue?repo=git.test%2Facme%2Fcalc&branch=main";

/// A queue with these settings, and as many pull requests: those with even numbers by grace, the others
/// by ada. Checks hang.
pub(crate) async fn house(settings: SettingsPatch, count: usize) -> House {
    let house = House::with_queue().await;
    let (caller, repo, branch) = (&house.caller, calc(), main_branch());
    let queues = &house.pages.queues;
    let change = QueueChange { settings, ..QueueChange::default() };
    queues.update_queue(caller, &repo, &branch, change).await.expect("changed");
    house.settle().await;
    for at in 1..=count {
        let file = format!("part-{at}");
        let pr = house.host.open(&repo, "main", &[(file.as_str(), "new")]);
        let author = if at % 2 == 0 { "grace" } else { "ada" };
        house.host.edit(&repo, pr, |it| author.clone_into(&mut it.author));
        let options = SubmitOptions::default();
        queues.submit(caller, &repo, &branch, pr, options).await.expect("submitted");
        house.clock.advance(Span::seconds(1));
    }
    house.settle_but(&[EffectClass::Checks]).await;
    house
}

/// The numbers of the pull requests in the list, in its order.
fn listed(page: &str) -> Vec<u32> {
    let table = page.split_once("id=\"line\"").map_or("", |(_, rest)| rest);
    let table = table.split_once("</table>").map_or(table, |(table, _)| table);
    let rows = table.split(" id=\"line-").skip(1);
    rows.filter_map(|row| row.split('"').next()?.parse().ok()).collect()
}

#[actix_web::test]
async fn the_list_is_in_queue_order_whatever_is_tested() {
    let house = house(SettingsPatch { concurrency: Some(3), ..SettingsPatch::default() }, 5).await;
    let page = house.admin().await.get(PATH).await.body;
    assert_eq!(listed(&page), [1, 2, 3, 4, 5]);
    assert_eq!(page.matches("<thead").count(), 1 + usize::from(page.contains("id=\"left\"")));
    assert!(page.contains("on top of #2, #1"), "{page}");
    assert!(page.contains("<strong>3 of 3</strong> test slots in use"), "{page}");
    assert!(!page.contains("id=\"filters\""), "few need no filter");
}

#[actix_web::test]
async fn the_list_is_filtered_by_state_and_author() {
    let house = house(SettingsPatch { concurrency: Some(3), ..SettingsPatch::default() }, 12).await;
    let browser = house.admin().await;
    let find = async |more: &str| browser.get(&format!("{PATH}{more}")).await.body;
    assert!(find("").await.contains("id=\"filters\""));
    assert_eq!(listed(&find("&stage=testing").await), [1, 2, 3]);
    assert_eq!(listed(&find("&author=GRA").await), [2, 4, 6, 8, 10, 12]);
    assert_eq!(listed(&find("&stage=testing&author=grace").await), [2]);
    let page = find("&author=linus").await;
    assert!(page.contains("No pull request in the queue matches."), "{page}");
    assert!(page.contains(">Show all</a>"), "{page}");
    let everything: Vec<u32> = (1..=12).collect();
    for all in ["&stage=none", "&after=99"] {
        let page = find(all).await;
        assert_eq!(listed(&page), everything, "{all}");
        assert!(!page.contains(">Show all</a>"), "{page}");
    }
    assert!(find("&author=linus").await.contains("3 of 3"), "the numbers are of the whole queue");
}

#[actix_web::test]
async fn what_is_being_merged_is_apart_from_what_has_only_passed() {
    let house = house(SettingsPatch { concurrency: Some(3), ..SettingsPatch::default() }, 3).await;
    // The checks pass; nothing lands, as the host is not called.
    house.settle_but(&[EffectClass::Host]).await;
    let browser = house.admin().await;
    assert_eq!(listed(&browser.get(&format!("{PATH}&stage=merging")).await.body), [1]);
    assert_eq!(listed(&browser.get(&format!("{PATH}&stage=passed")).await.body), [2, 3]);
    assert!(browser.get(PATH).await.body.contains("eing merged into the target branch"));
}

#[actix_web::test]
async fn a_long_list_has_pages_that_keep_the_filter() {
    let house = house(SettingsPatch::default(), 230).await;
    let browser = house.admin().await;
    let (mut address, mut seen) = (format!("{PATH}&author=ada"), Vec::new());
    loop {
        let page = browser.get(&address).await.body;
        seen.extend(listed(&page));
        let Some((before, _)) = page.split_once("\" rel=\"next\"") else { break };
        let next = before.rsplit_once("href=\"").expect("an address").1;
        address = next.replace("&#38;", "&").replace("&amp;", "&");
    }
    assert_eq!(seen, (1..=229).step_by(2).collect::<Vec<u32>>());
    let past = browser.get(&format!("{PATH}&after=5000")).await.body;
    assert_eq!(listed(&past), (201..=230).collect::<Vec<u32>>(), "the last page");
    assert!(past.contains("201 to 230 of 230"), "{past}");
}

#[actix_web::test]
async fn a_rail_joins_the_pull_requests_of_a_batch() {
    let batches =
        SettingsPatch { batch: Some(true), batching_min_size: Some(3), ..SettingsPatch::default() };
    let house = house(batches, 4).await;
    let page = house.admin().await.get(PATH).await.body;
    let class = |pr: u32| {
        let row = page.split_once(&format!("id=\"line-{pr}\"")).expect("a row").1;
        let tag = row.split_once('>').expect("a tag").0;
        tag.split_once("class=\"").and_then(|(_, rest)| rest.split('"').next()).unwrap_or("")
    };
    assert_eq!([1, 2, 3, 4].map(class), ["rail", "rail more", "rail more", ""]);
    assert!(page.contains("batch of 3, on the target branch"), "{page}");
    assert_eq!(page.matches("in the same run").count(), 2);
}

#[actix_web::test]
async fn merges_of_the_last_day_are_counted_on_the_queue_and_drawn_at_home() {
    let house = house(SettingsPatch::default(), 3).await;
    house.settle().await;
    let browser = house.admin().await;
    let page = browser.get(PATH).await.body;
    assert!(page.contains("<strong>3</strong> merged in 24 h"), "{page}");
    let home = browser.get("/").await.body;
    assert_eq!(home.matches("class=\"spark\"").count(), 1);
    let spark = home.split_once("class=\"spark\"").expect("a picture").1;
    let spark = spark.split_once("</svg>").expect("its end").0;
    assert_eq!(spark.matches("<rect").count(), 1, "all within an hour: {spark}");
    assert!(spark.contains("x=\"69\"") && spark.contains("height=\"16\""), "{spark}");
    house.clock.advance(Span::hours(23));
    // The session has ended.
    let later = house.admin().await.get("/").await.body;
    assert!(later.contains("x=\"0\""), "a day later they are on the left");
    house.clock.advance(Span::hours(2));
    let home = house.admin().await.get("/").await.body;
    assert!(!home.contains("class=\"spark\""), "they are older than a day");
}

/// The numbers of the pull requests that left, in the order of the page.
fn left(page: &str) -> Vec<u32> {
    let rows = page.split(" id=\"left-").skip(1);
    rows.filter_map(|row| row.split('"').next()?.parse().ok()).collect()
}

#[actix_web::test]
async fn what_left_is_shown_after_each_step_and_for_a_day() {
    let house = house(SettingsPatch { concurrency: Some(3), ..SettingsPatch::default() }, 3).await;
    let (caller, repo, branch) = (&house.caller, calc(), main_branch());
    let browser = house.admin().await;
    let shown = async || left(&browser.get(PATH).await.body);
    assert_eq!(shown().await, [0_u32; 0]);
    for (pr, expected) in [(2, vec![2]), (1, vec![1, 2])] {
        house.pages.queues.cancel(caller, &repo, &branch, PrNumber(pr)).await.expect("removed");
        assert_eq!(shown().await, expected);
        assert_eq!(shown().await, expected, "again");
        house.clock.advance(Span::hours(1));
    }
    let before = house.pages.queues.queue(caller, &repo, &branch).await.expect("a queue");
    // One removed 2 hours ago, the other 1 hour ago; sessions end sooner than a day later.
    house.clock.advance(Span::hours(22));
    let later = house.admin().await;
    let shown = async || left(&later.get(PATH).await.body);
    assert_eq!(shown().await, [1, 2]);
    house.clock.advance(Span::seconds(61));
    assert_eq!(shown().await, [1], "the other left more than a day ago");
    let mut stranger = house.caller.clone();
    stranger.repos = vec![RepoName::parse("git.test/acme/other").expect("a name")];
    let refused = house.pages.reads.queue_with_past(&stranger, &repo, &branch).await;
    assert!(refused.is_err(), "{refused:?}");
    let after = house.pages.queues.queue(caller, &repo, &branch).await.expect("a queue");
    assert_eq!(after.header.sequence, before.header.sequence, "without a step of the queue");
}
