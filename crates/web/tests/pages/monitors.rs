//! The page of monitors: what one would find, and the forms that change it.

use signalbox_domain::flaky::{Monitor, Rule};
use signalbox_domain::token::Scope;

use crate::reports::report;
use crate::support::{Browser, House, calc};

const PATH: &str = "/acme/flaky-tests/monitors?repo=git.test%2Facme%2Fcalc";

async fn monitors(house: &House) -> Vec<Monitor> {
    let settings = house.pages.flaky.settings(&house.caller, &calc()).await;
    settings.expect("settings").monitors
}

/// The hidden fields and numbers of a form.
fn fields(page: &str, id: &str) -> Vec<(String, String)> {
    let form = page.split_once(&format!("<form id=\"{id}\"")).expect(id).1;
    let form = form.split_once("</form>").expect("an end").0;
    let named = form.split("name=\"").skip(1).map(|rest| {
        let (name, rest) = rest.split_once('"').expect("a name");
        let value = rest.split_once("value=\"").map_or("", |(_, rest)| rest);
        (name.to_owned(), value.split('"').next().unwrap_or_default().to_owned())
    });
    named.filter(|(name, _)| name != "form_token").collect()
}

async fn send(browser: &Browser<'_>, fields: &[(String, String)]) -> (u16, String) {
    let form: Vec<(&str, &str)> =
        fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let reply = browser.post("/acme/flaky-tests/do", &form).await;
    (reply.status, reply.header("location").map_or(reply.body.clone(), str::to_owned))
}

#[actix_web::test]
async fn a_monitor_shows_what_it_would_find_with_other_parameters() {
    let house = House::with_queue().await;
    for (number, name) in ["adds", "adds", "divides"].iter().enumerate() {
        report(&house, &format!("{number:0>40}"), name, Some("expected 3")).await;
    }
    let browser = house.admin().await;
    let page = browser.get(PATH).await;
    for monitor in monitors(&house).await {
        assert!(page.body.contains(&monitor.name), "{}", monitor.name);
    }
    assert!(!page.body.contains("It would find"), "none is chosen");
    let count = |found: &str| format!("It would find {found} of the 2 tests with failures");
    let page = browser.get(&format!("{PATH}&monitor=flaky_in_queue")).await;
    assert!(page.body.contains(&count("0")), "{}", page.body);
    let own = house.pages.flaky.settings(&house.caller, &calc()).await.expect("settings").monitors;
    let streak = own.iter().find(|it| matches!(it.rule, Rule::FailureStreak(_))).expect("one");
    let mut everywhere = streak.clone();
    everywhere.scope.classes.clear();
    let made = house.pages.flaky.create_monitor(&house.caller, &calc(), everywhere).await;
    let path = format!("{PATH}&monitor={}", made.expect("created").id);
    let found = async |streak: &str| {
        let page = browser.get(&format!("{path}&failureStreak={streak}")).await;
        assert_eq!(page.status, 200);
        page.body
    };
    assert!(found("5").await.contains(&count("0")));
    assert!(found("2").await.contains(&count("1")));
    let refused = found("1").await;
    assert!(refused.contains("failureStreak must be a whole number from 2 to 100."), "{refused}");
    assert!(!refused.contains("monitor-save"), "what is refused cannot be saved");
    let words = browser.get(&format!("{path}&failureStreak=many")).await;
    assert_eq!(words.status, 400);
    assert!(
        words.body.contains("parameter failureStreak must be a whole number"),
        "{}",
        words.body
    );
    assert_eq!(browser.get(&format!("{PATH}&monitor=unknown")).await.status, 404);
}

#[actix_web::test]
async fn monitors_are_created_changed_turned_off_and_deleted() {
    let house = House::with_queue().await;
    let browser = house.admin().await;
    let before = monitors(&house).await;

    let page = browser.get(&format!("{PATH}&monitor=flaky_in_queue&failureCount=3")).await;
    let sent = fields(&page.body, "monitor-save");
    let (status, back) = send(&browser, &sent).await;
    assert_eq!(status, 303, "{back}");
    assert!(browser.get(&back).await.body.contains("The monitor was created."));
    let created = monitors(&house).await;
    let new = created.iter().find(|it| !before.contains(it)).expect("a new one");
    assert_eq!((created.len(), new.rule.values()[0]), (before.len() + 1, ("failureCount", 3)));

    let path = format!("{PATH}&monitor={}", new.id);
    let page = browser.get(&format!("{path}&failureCount=4")).await;
    let (status, back) = send(&browser, &fields(&page.body, "monitor-save")).await;
    assert_eq!(status, 303, "{back}");
    let now = async || monitors(&house).await.into_iter().find(|it| it.id == new.id);
    let changed = now().await.expect("it is still there");
    assert_eq!(changed.rule.values()[0], ("failureCount", 4));
    assert_eq!((changed.scope, changed.action), (new.scope.clone(), new.action.clone()));

    for (form, enabled) in [("monitor-off", false), ("monitor-on", true)] {
        let page = browser.get(&path).await;
        assert_eq!(send(&browser, &fields(&page.body, form)).await.0, 303);
        assert_eq!(now().await.expect("it is still there").enabled, enabled, "{form}");
    }
    let page = browser.get(&path).await;
    assert_eq!(send(&browser, &fields(&page.body, "monitor-delete")).await.0, 303);
    assert_eq!(now().await, None);
    assert_eq!(send(&browser, &fields(&page.body, "monitor-delete")).await.0, 404, "it is gone");
    assert_eq!(monitors(&house).await, before);

    let viewer = house.browser("eve", &[Scope::TestsRead]).await;
    let page = viewer.get(&format!("{PATH}&monitor=pass_on_retry")).await;
    assert_eq!(page.status, 200, "it is shown to them");
    assert!(!page.body.contains("monitor-save"), "and they cannot change it");
    assert_eq!(send(&viewer, &sent).await.0, 403);
}
