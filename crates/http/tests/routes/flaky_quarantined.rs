//! Since when a test is quarantined, and tickets without pages.

use serde_json::{Value, json};
use signalbox_domain::time::Span;

use crate::flaky_lists::{DETAILS, QUARANTINED, key, make_flaky, query};
use crate::support::Server;

async fn quarantined(server: &Server) -> Value {
    server.ok(QUARANTINED, query(json!({}))).await["quarantined_tests"][0].clone()
}

fn hour_later(server: &Server) -> String {
    server.clock.advance(Span::hours(1));
    server.api.clock.now().to_string()
}

#[actix_web::test]
async fn a_test_is_quarantined_since_the_settings_or_override_changed() {
    let server = Server::new().await;
    make_flaky(&server, 1, &["adds"]).await;
    let settings = async |auto: &str| {
        let body = json!({"quarantineEnabled": true, "autoQuarantine": auto});
        server.ok("flaky-tests/update-settings", body).await;
    };
    let setting = async |setting: &str| {
        let body = json!({"testId": key("adds").id().to_string(), "setting": setting});
        server.ok("flaky-tests/override-quarantine", body).await;
    };
    let enabled = hour_later(&server);
    settings("flaky").await;
    let test = quarantined(&server).await;
    assert_eq!(test["quarantined_at"], enabled, "it was flaky before quarantine was enabled");
    assert!(test["status_last_updated_at"].as_str().expect("a time") < enabled.as_str());
    hour_later(&server);
    setting("ALWAYS_QUARANTINE").await;
    assert_eq!(quarantined(&server).await["quarantined_at"], enabled, "without a pause");
    hour_later(&server);
    settings("flaky_and_broken").await;
    setting("UNSPECIFIED").await;
    assert_eq!(quarantined(&server).await["quarantined_at"], enabled, "nor one here");
    setting("NEVER_QUARANTINE").await;
    assert_eq!(quarantined(&server).await, Value::Null);
    let follows = hour_later(&server);
    setting("UNSPECIFIED").await;
    assert_eq!(quarantined(&server).await["quarantined_at"], follows);
    hour_later(&server);
    settings("off").await;
    assert_eq!(quarantined(&server).await, Value::Null);
    let again = hour_later(&server);
    settings("flaky").await;
    assert_eq!(quarantined(&server).await["quarantined_at"], again);
}

#[actix_web::test]
async fn a_ticket_without_a_page_is_shown_on_that_of_its_test() {
    let mut server = Server::new().await;
    server.api.flaky.links.ticket_url = None;
    make_flaky(&server, 1, &["adds"]).await;
    let id = key("adds").id().to_string();
    let link = json!({"test_case_id": id, "external_ticket_id": "KAN-123"});
    server.ok("flaky-tests/link-ticket-to-test-case", link).await;
    let asked = json!({"org_url_slug": "acme", "test_id": id});
    let test = server.ok(DETAILS, asked).await["test"].clone();
    let page = test["html_url"].as_str().expect("an address");
    assert_eq!(test["ticket"], json!({"html_url": format!("{page}#KAN-123")}));
}
