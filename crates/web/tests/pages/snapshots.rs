//! What pages look like: nothing there, the usual, names that would like to be markup, a lot of it,
//! and errors. The files beside this one are read by people; `cargo insta review` shows changes.

use signalbox_domain::queue::{ChangeSource, EffectClass, Mode, RequestedState};
use signalbox_domain::time::Span;
use signalbox_domain::token::Scope;
use signalbox_services::{QueueChange, SubmitOptions};

use crate::reports::report;
use crate::support::{Browser, House, calc, main_branch};

const HOSTILE: &str = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>\u{202e}{{7*7}}";
const QUEUE: &str = "repo=git.test%2Facme%2Fcalc&branch=main";

/// A house with a queue of one slot.
async fn house() -> House {
    let house = House::new().await;
    let (caller, repo, branch) = (&house.caller, calc(), main_branch());
    let queues = &house.pages.queues;
    queues
        .create_queue(caller, &repo, &branch, Mode::Single, Some(1), ChangeSource::Direct)
        .await
        .expect("a queue");
    house.settle().await;
    house
}

/// Pull requests that are submitted, with these titles. The checks of the first one hang.
async fn submit(house: &House, titles: &[&str]) {
    for (at, title) in titles.iter().enumerate() {
        let file = format!("part-{at}");
        let pr = house.host.open(&calc(), "main", &[(file.as_str(), "new")]);
        house.host.edit(&calc(), pr, |it| {
            (*title).clone_into(&mut it.title);
            (*title).clone_into(&mut it.author);
        });
        let (caller, repo, branch) = (&house.caller, calc(), main_branch());
        let queues = &house.pages.queues;
        queues
            .submit(caller, &repo, &branch, pr, SubmitOptions::default())
            .await
            .expect("submitted");
        house.clock.advance(Span::minutes(1));
    }
    house.settle_but(&[EffectClass::Checks]).await;
}

/// A test of that name that passes and fails on the same code.
async fn flaky(house: &House, name: &str, message: &str) {
    for failure in [Some(message), None] {
        report(house, &"a".repeat(40), name, failure).await;
    }
}

/// Every page about the queue, its tests and the organization.
fn pages() -> Vec<(&'static str, String)> {
    let queue = |page: &str| format!("/acme/{page}?{QUEUE}");
    vec![
        ("home", "/".to_owned()),
        ("queue", queue("queue")),
        ("pull_request", format!("{}&pr=1", queue("queue/pr"))),
        ("left", queue("queue/left")),
        ("health", queue("queue/health")),
        ("graph", queue("queue/graph")),
        ("settings", queue("queue/settings")),
        ("all_tests", "/acme/flaky-tests".to_owned()),
        ("tests", queue("flaky-tests")),
        ("quarantine", queue("flaky-tests/quarantine")),
        ("owners", queue("flaky-tests/owners")),
        ("monitors", queue("flaky-tests/monitors")),
        ("uploads", queue("flaky-tests/uploads")),
        ("webhooks", "/acme/webhooks".to_owned()),
        ("events", "/acme/webhooks/events".to_owned()),
        ("tokens", "/acme/tokens".to_owned()),
        ("audit", "/acme/audit".to_owned()),
        ("server", "/status".to_owned()),
    ]
}

/// The content of `main`, without values that differ between runs.
fn main_part(body: &str) -> String {
    let main = body.split_once("<main").map_or("", |(_, rest)| rest);
    let main = main.split_once("</main>").map_or("", |(main, _)| main);
    let mut text = String::from("<main");
    for (at, part) in main.split("name=\"form_token\" value=\"").enumerate() {
        if at == 0 {
            text.push_str(part);
        } else {
            text.push_str("name=\"form_token\" value=\"FORM_TOKEN");
            text.push_str(part.find('"').and_then(|end| part.get(end..)).unwrap_or_default());
        }
    }
    let lines = text.lines().map(str::trim_end).filter(|it| !it.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

async fn shown(browser: &Browser<'_>, path: &str) -> String {
    let reply = browser.get(path).await;
    assert_eq!(reply.status, 200, "{path}");
    let ids = reply.body.split(" id=\"").skip(1).filter_map(|it| it.split('"').next());
    let mut ids: Vec<&str> = ids.collect();
    ids.sort_unstable();
    let twice = ids.windows(2).find(|it| it[0] == it[1]);
    assert_eq!(twice, None, "{path} has an id twice");
    main_part(&reply.body)
}

/// The scopes of the reader: everything is readable and little can be changed, so that there are
/// few forms.
const READER: [Scope; 3] = [Scope::QueueRead, Scope::TestsRead, Scope::QueueAdmin];

#[actix_web::test]
async fn pages_with_nothing_on_them() {
    let house = house().await;
    let browser = house.browser("ada", &READER).await;
    for (name, path) in pages() {
        insta::assert_snapshot!(format!("empty_{name}"), shown(&browser, &path).await);
    }
}

#[actix_web::test]
async fn pages_as_they_usually_are() {
    let house = house().await;
    submit(&house, &["Subtract two numbers", "Round halves to even", "Cache the last result"])
        .await;
    flaky(&house, "subtracts", "expected 3, got 4").await;
    let browser = house.browser("ada", &READER).await;
    for (name, path) in pages() {
        insta::assert_snapshot!(format!("typical_{name}"), shown(&browser, &path).await);
    }
}

#[actix_web::test]
async fn names_that_would_like_to_be_markup() {
    let house = house().await;
    submit(&house, &[HOSTILE, HOSTILE]).await;
    flaky(&house, HOSTILE, HOSTILE).await;
    let (caller, repo, branch) = (&house.caller, calc(), main_branch());
    let (state, reason) = (Some(RequestedState::Paused), Some(HOSTILE.to_owned()));
    let change = QueueChange { state, reason, ..QueueChange::default() };
    let queues = &house.pages.queues;
    queues.update_queue(caller, &repo, &branch, change).await.expect("paused");
    let browser = house.browser(HOSTILE, &READER).await;
    let mut seen = 0;
    for (name, path) in pages() {
        let page = shown(&browser, &path).await;
        for markup in ["<img", "<script", "onerror=alert(1)>\"", "\u{202e}"] {
            assert!(!page.contains(markup), "{name}: {markup}\n{page}");
        }
        seen += usize::from(page.contains("&#60;script&#62;alert(2)"));
        if ["queue", "pull_request", "tests", "audit"].contains(&name) {
            insta::assert_snapshot!(format!("hostile_{name}"), page);
        }
    }
    assert!(seen >= 6, "the names are shown as text on {seen} pages");
}

#[actix_web::test]
async fn a_lot_of_it_is_shown_in_pages() {
    let house = house().await;
    let titles: Vec<String> = (0..250).map(|at| format!("Change {at}")).collect();
    submit(&house, &titles.iter().map(String::as_str).collect::<Vec<_>>()).await;
    for at in 0..120 {
        flaky(&house, &format!("case {at}"), "no").await;
    }
    let browser = house.browser("ada", &READER).await;
    for (name, path) in pages() {
        let page = shown(&browser, &path).await;
        let rows = page.matches("<tr role=\"row\" id=").count();
        assert!(rows <= 202, "{name} has {rows} rows");
        assert!(page.len() < 400_000, "{name} has {} bytes", page.len());
    }
    for path in [format!("/acme/queue?{QUEUE}"), format!("/acme/flaky-tests?{QUEUE}")] {
        let page = shown(&browser, &path).await;
        let next = page.split("rel=\"next\"").next().filter(|it| it.len() < page.len());
        let next = next
            .and_then(|it| it.rsplit("href=\"").next())
            .unwrap_or_else(|| panic!("{path} has no next page"));
        let next = next.trim_end_matches(['"', ' ']).replace("&#38;", "&");
        let more = shown(&browser, &next).await;
        assert!(more.matches("<tr role=\"row\" id=").count() >= 20, "{next}");
    }
}

#[actix_web::test]
async fn errors_have_a_next_step() {
    let house = house().await;
    let browser = house.browser("ada", &[Scope::QueueRead]).await;
    let anonymous = |path: &str| house.call(actix_web::test::TestRequest::get().uri(path));
    for (name, path, status) in [
        ("missing", "/acme/queue?repo=a/b/c&branch=x", 404),
        ("other_organization", "/other/tokens", 404),
        ("forbidden", "/acme/tokens", 403),
        (
            "nonsense",
            "/acme/queue/settings?repo=git.test/acme/calc&branch=main&mode=x&concurrency=2",
            400,
        ),
    ] {
        let reply = browser.get(path).await;
        assert_eq!(reply.status, status, "{path}");
        insta::assert_snapshot!(format!("error_{name}"), main_part(&reply.body));
    }
    let reply = anonymous("/acme/tokens").await;
    assert_eq!(reply.status, 401);
    insta::assert_snapshot!("error_sign_in", main_part(&reply.body));
    let reply = anonymous("/sign-in/back?code=1&state=2").await;
    assert_eq!(reply.status, 404, "without an identity provider there is no way back");
    house.host.set_down(true);
    let admin = house.admin().await;
    let form =
        [("action", "submit"), ("repo", "git.test/acme/calc"), ("branch", "main"), ("pr", "7")];
    let reply = admin.post("/acme/queue/do", &form).await;
    assert_eq!(reply.status, 503);
    insta::assert_snapshot!("error_host", main_part(&reply.body));
}
