//! Webhooks in the browser.

use signalbox_domain::token::Scope;
use signalbox_domain::webhook::Sent;

use crate::support::{Browser, House};

const DO: &str = "/acme/webhooks/do";

fn answered(status: u16, body: &str) -> Sent {
    Sent::Answered { status, abort: false, retry_after: None, body: body.to_owned() }
}

/// Makes an endpoint; returns its id.
async fn made(browser: &Browser<'_>) -> String {
    let form = [("action", "create"), ("url", "https://receiver.test/in"), ("description", "ours")];
    let reply = browser.post(DO, &form).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert!(reply.body.contains("whsec_"), "the secret is shown");
    reply.between("/acme/webhooks/endpoint?id=", "\"").to_owned()
}

async fn test_message(house: &House, browser: &Browser<'_>, id: &str) -> String {
    let form = [("action", "test"), ("endpoint", id), ("event", "pull_request.failed")];
    let reply = browser.post(DO, &form).await;
    assert_eq!(reply.status, 303, "{}", reply.body);
    house.send_webhooks().await;
    reply.header("location").expect("an address").to_owned()
}

#[actix_web::test]
async fn an_endpoint_is_made_changed_and_deleted() {
    let house = House::new().await;
    let admin = house.admin().await;
    let empty = admin.get("/acme/webhooks").await;
    assert!(empty.body.contains("No endpoints yet"));
    let id = made(&admin).await;
    let path = format!("/acme/webhooks/endpoint?id={id}");
    let page = admin.get(&path).await;
    assert!(page.body.contains("No deliveries yet") && !page.body.contains("whsec_"));
    let form = [
        ("action", "update"),
        ("endpoint", &id),
        ("url", "https://other.test/"),
        ("kind", "pull_request.merged"),
        ("kind", "pull_request.failed"),
    ];
    assert_eq!(admin.post(DO, &form).await.status, 303);
    let list = admin.get("/acme/webhooks").await;
    assert!(list.body.contains("https://other.test/"));
    assert!(list.body.contains("pull_request.merged, pull_request.failed"));
    for (action, shown) in [("disable", "a user turned it off"), ("enable", "events that match")] {
        assert_eq!(admin.post(DO, &[("action", action), ("endpoint", &id)]).await.status, 303);
        let page = admin.get(&path).await.body.to_lowercase();
        assert!(page.contains(shown), "{action}");
    }
    assert_eq!(admin.post(DO, &[("action", "delete"), ("endpoint", &id)]).await.status, 303);
    assert_eq!(admin.get(&path).await.status, 404);
}

#[actix_web::test]
async fn a_new_secret_is_shown_once_and_the_old_one_signs_for_a_while() {
    let house = House::new().await;
    let admin = house.admin().await;
    let id = made(&admin).await;
    let reply = admin.post(DO, &[("action", "rotate"), ("endpoint", &id), ("hours", "24")]).await;
    assert!(reply.body.contains("whsec_2"));
    let page = admin.get(&format!("/acme/webhooks/endpoint?id={id}")).await;
    assert!(page.body.contains("the previous one for 24 h more") && !page.body.contains("whsec_"));
    test_message(&house, &admin, &id).await;
    let listed = house.pages.webhooks.endpoints(&house.caller).await.expect("endpoints");
    assert_eq!(listed[0].secrets.len(), 2);
}

#[actix_web::test]
async fn a_message_shows_every_attempt_and_can_be_resent() {
    let house = House::new().await;
    let admin = house.admin().await;
    let id = made(&admin).await;
    let hostile = "<script>alert(1)</script>\u{202e}";
    house.hooks.answer([answered(400, hostile)]);
    let message = test_message(&house, &admin, &id).await;
    let page = admin.get(&message).await;
    assert!(page.body.contains("Rejected 400") && page.body.contains("&#60;script&#62;alert(1)"));
    assert!(!page.body.contains("<script>alert") && !page.body.contains('\u{202e}'));
    assert!(page.body.contains("webhook-id:") && page.body.contains("The next attempt is in"));
    house.clock.advance(signalbox_domain::time::Span::hours(1));
    house.send_webhooks().await;
    let page = admin.get(&message).await;
    assert!(page.body.contains("Attempt 2: Delivered 200"), "{}", page.body);
    let uuid = message.split("&id=").nth(1).expect("an id").split('&').next().expect("an id");
    let form = [("action", "resend"), ("endpoint", id.as_str()), ("message", uuid)];
    assert_eq!(admin.post(DO, &form).await.status, 303);
    assert_eq!(admin.post(DO, &form).await.status, 409, "it is already queued");
    house.send_webhooks().await;
    assert!(admin.get(&message).await.body.contains("Attempt 3: Delivered 200"));
}

#[actix_web::test]
async fn the_log_is_filtered_and_paged_and_what_failed_is_sent_again() {
    let house = House::new().await;
    let admin = house.admin().await;
    let id = made(&admin).await;
    let gone = Sent::Answered { status: 400, abort: true, retry_after: None, body: String::new() };
    house.hooks.answer([gone]);
    test_message(&house, &admin, &id).await;
    for _ in 0..60 {
        test_message(&house, &admin, &id).await;
    }
    let path = format!("/acme/webhooks/endpoint?id={id}");
    let rows = |body: &str| body.matches("<tr role=\"row\" id=\"deliveries-").count();
    let page = admin.get(&path).await;
    assert_eq!(rows(&page.body), 50);
    let next = page.body.split("<p class=\"links\"><a href=\"").nth(1).expect("a next page");
    let next = next.split('"').next().expect("an address").replace("&#38;", "&");
    assert_eq!(rows(&admin.get(&next).await.body), 11);
    let declined = format!("{path}&state=ABORTED&event=pull_request.failed");
    assert_eq!(rows(&admin.get(&declined).await.body), 1);
    let none = format!("{path}&event=pull_request.merged");
    assert!(admin.get(&none).await.body.contains("No deliveries match this filter"));
    let form = [("action", "replay"), ("endpoint", id.as_str()), ("hours", "24")];
    let reply = admin.post(DO, &form).await;
    assert!(reply.header("location").is_some_and(|it| it.ends_with("said=hook-none")));
}

#[actix_web::test]
async fn webhooks_are_for_admins_only_and_broken_rules_are_explained() {
    let house = House::new().await;
    let admin = house.admin().await;
    let id = made(&admin).await;
    let reader = house.browser("reader", &[Scope::QueueRead, Scope::QueueSubmit]).await;
    for path in ["/acme/webhooks", &format!("/acme/webhooks/endpoint?id={id}")] {
        assert_eq!(reader.get(path).await.status, 403, "{path}");
    }
    assert!(!reader.get("/").await.body.contains("/acme/webhooks"), "it is not in their menu");
    let form = [("action", "delete"), ("endpoint", id.as_str())];
    assert_eq!(reader.post(DO, &form).await.status, 403);
    let refused = admin.post(DO, &[("action", "create"), ("url", "http://plain.test/")]).await;
    assert_eq!(refused.status, 400);
    assert!(refused.body.contains("must start with https://"));
    made(&admin).await;
    made(&admin).await;
    let more = admin.post(DO, &[("action", "create"), ("url", "https://x.test/")]).await;
    assert_eq!(more.status, 409);
    assert!(more.body.contains("at most 3"));
    assert_eq!(admin.get("/acme/webhooks/endpoint?id=nonsense").await.status, 404);
    assert_eq!(admin.get("/acme/webhooks/events?event=nonsense").await.status, 404);
    let schema = admin.get("/acme/webhooks/events?event=pull_request.merged").await;
    assert!(schema.body.contains("JSON Schema of its payload"));
}
