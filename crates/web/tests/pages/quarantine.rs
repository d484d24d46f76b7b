//! The form that chooses which tests are quarantined.

use signalbox_domain::flaky::AutoQuarantine;
use signalbox_domain::token::Scope;

use crate::reports::report;
use crate::support::{House, calc};

const PATH: &str = "/acme/flaky-tests/quarantine?repo=git.test%2Facme%2Fcalc";

#[actix_web::test]
async fn the_form_shows_how_many_tests_each_choice_covers_and_makes_it() {
    let house = House::with_queue().await;
    for (name, failure) in [("adds", Some("no")), ("adds", None), ("divides", None)] {
        report(&house, &"a".repeat(40), name, failure).await;
    }
    let browser = house.admin().await;
    let page = browser.get(PATH).await.body;
    assert!(page.contains("Quarantine is off."), "{page}");
    assert!(page.contains("(1 flaky, 0 broken now)"), "{page}");
    assert!(page.contains("flaky tests (1 flaky now)"), "{page}");
    let choose = async |choice: &str| {
        let form =
            [("action", "quarantine-settings"), ("repo", "git.test/acme/calc"), ("choice", choice)];
        browser.post("/acme/flaky-tests/do", &form).await
    };
    for (choice, expected) in [
        ("flaky", (true, AutoQuarantine::Flaky)),
        ("flaky_and_broken", (true, AutoQuarantine::FlakyAndBroken)),
        ("manual", (true, AutoQuarantine::Off)),
        ("off", (false, AutoQuarantine::Off)),
        ("flaky", (true, AutoQuarantine::Flaky)),
    ] {
        let reply = choose(choice).await;
        assert_eq!(reply.status, 303, "{choice}: {}", reply.body);
        let settings = house.pages.flaky.settings(&house.caller, &calc()).await;
        let now = settings.expect("settings").quarantine;
        assert_eq!((now.enabled, now.auto), expected, "{choice}");
        let page = browser.get(PATH).await.body;
        assert!(page.contains(&format!("<option value=\"{choice}\" selected>")), "{page}");
    }
    let page = browser.get(PATH).await.body;
    assert!(page.contains("adds") && !page.contains("Quarantine is off."), "{page}");
    assert_eq!(choose("everything").await.status, 400);
}

#[actix_web::test]
async fn a_reader_sees_what_is_quarantined_and_cannot_change_it() {
    let house = House::with_queue().await;
    let reader = house.browser("grace", &[Scope::TestsRead, Scope::TestsUpload]).await;
    let page = reader.get(PATH).await;
    assert_eq!(page.status, 200);
    assert!(page.body.contains("Quarantine is off."), "{}", page.body);
    assert!(!page.body.contains("Change which tests are quarantined"));
    let form =
        [("action", "quarantine-settings"), ("repo", "git.test/acme/calc"), ("choice", "flaky")];
    assert_eq!(reader.post("/acme/flaky-tests/do", &form).await.status, 403);
    let settings = house.pages.flaky.settings(&house.caller, &calc()).await.expect("settings");
    assert!(!settings.quarantine.enabled);
}
