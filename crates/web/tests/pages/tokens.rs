//! Tokens that are made, replaced and revoked in the browser.

use signalbox_domain::ports::AuditFilter;
use signalbox_domain::time::Span;
use signalbox_domain::token::Scope;

use crate::support::House;

const PATH: &str = "/acme/tokens";

async fn deeds(house: &House) -> Vec<String> {
    let listed = house.pages.audit.list(&house.caller, AuditFilter::default(), None, 100).await;
    let listed = listed.expect("records");
    listed.iter().map(|it| format!("{} {}", it.actor, it.action.as_str())).collect()
}

#[actix_web::test]
async fn a_token_is_shown_once_and_has_the_selected_scopes() {
    let house = House::new().await;
    let admin = house.admin().await;
    let form = [
        ("action", "create"),
        ("name", "<b>ci</b>"),
        ("scope", "queue:read"),
        ("scope", "tests:read"),
        ("days", "2"),
        ("repos", ""),
    ];
    let reply = admin.post(PATH, &form).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let text = format!("sbx_{}", reply.between(">sbx_", "<"));
    assert!(
        reply.body.contains("&#60;b&#62;ci") && !reply.body.contains("<b>ci"),
        "{}",
        reply.body
    );
    assert!(!admin.get(PATH).await.body.contains(&text), "the text is on no other page");

    let reader = house.browser_with(&text).await.expect("the new token is valid");
    assert_eq!(reader.get("/").await.status, 200);
    assert_eq!(reader.get(PATH).await.status, 403, "a viewer sees no tokens");
    assert_eq!(deeds(&house).await, ["token ada token.created"]);
    house.clock.advance(Span::days(2));
    assert!(house.browser_with(&text).await.is_none(), "it has ended");
}

#[actix_web::test]
async fn a_new_token_has_only_scopes_of_its_creator() {
    let house = House::new().await;
    let some = house.browser("some", &[Scope::QueueRead, Scope::QueueAdmin]).await;
    let form = |scope| [("action", "create"), ("name", "x"), ("scope", scope), ("days", "")];
    assert_eq!(some.post(PATH, &form("tests:admin")).await.status, 403);
    assert_eq!(some.post(PATH, &form("queue:write")).await.status, 400);
    assert_eq!(some.post(PATH, &form("queue:read")).await.status, 200);
    let reader = house.browser("reader", &[Scope::QueueRead]).await;
    assert_eq!(reader.post(PATH, &form("queue:read")).await.status, 403);
    assert_eq!(deeds(&house).await.len(), 1);
}

#[actix_web::test]
async fn a_token_that_breaks_a_rule_is_refused_with_a_sentence() {
    let house = House::new().await;
    let admin = house.admin().await;
    for (name, scope, days, repos, rule) in [
        ("", "queue:read", "1", "", "1 to 100 characters"),
        ("x", "", "1", "", "Unknown scope"),
        ("x", "everything", "1", "", "Unknown scope"),
        ("x", "queue:read", "0", "", "1 to 36500 days"),
        ("x", "queue:read", "4294967295", "", "1 to 36500 days"),
        ("x", "queue:read", "soon", "", "expected a whole number"),
        ("x", "queue:read", "1", "nonsense", "nonsense"),
    ] {
        let form = [
            ("action", "create"),
            ("name", name),
            ("scope", scope),
            ("days", days),
            ("repos", repos),
        ];
        let reply = admin.post(PATH, &form).await;
        assert_eq!(reply.status, 400, "{rule}");
        assert!(reply.body.contains(rule), "{rule}: {}", reply.body);
    }
    assert_eq!(admin.post(PATH, &[("action", "create"), ("name", "x")]).await.status, 400);
}

#[actix_web::test]
async fn a_replaced_token_is_valid_until_the_overlap_ends() {
    let house = House::new().await;
    let admin = house.admin().await;
    let old = house.token("ci", &[Scope::QueueRead]).await;
    let tokens = house.pages.tokens.tokens(&house.caller).await.expect("tokens");
    let id = tokens.iter().find(|it| it.name == "ci").expect("it is listed").id.to_string();
    let form = [("action", "rotate"), ("token", id.as_str()), ("hours", "1")];
    let reply = admin.post(PATH, &form).await;
    let new = format!("sbx_{}", reply.between(">sbx_", "<"));
    assert_ne!(new, old);
    house.clock.advance(Span::minutes(59));
    assert!(house.browser_with(&old).await.is_some() && house.browser_with(&new).await.is_some());
    house.clock.advance(Span::minutes(1));
    assert!(house.browser_with(&old).await.is_none() && house.browser_with(&new).await.is_some());
    assert_eq!(admin.post(PATH, &form).await.status, 409, "it has ended already");
    let done = deeds(&house).await;
    assert_eq!(done, ["token ada token.rotated", "token ada token.created"]);
}

#[actix_web::test]
async fn the_address_that_uploaders_print_leads_to_the_tokens() {
    let house = House::new().await;
    let admin = house.admin().await;
    let reply = admin.get("/acme/settings").await;
    assert_eq!((reply.status, reply.header("location")), (303, Some(PATH)));
    assert_eq!(admin.get("/other/settings").await.status, 404);
    let anonymous = actix_web::test::TestRequest::get().uri("/acme/settings");
    assert_eq!(house.call(anonymous).await.status, 401);
}

#[actix_web::test]
async fn forms_without_a_session_or_from_elsewhere_create_no_token() {
    let house = House::new().await;
    let admin = house.admin().await;
    let request = actix_web::test::TestRequest::post().uri(PATH).set_form([
        ("action", "create"),
        ("name", "x"),
        ("scope", "queue:read"),
    ]);
    assert_eq!(house.call(request).await.status, 401);
    let unknown = "00000000-0000-4000-8000-000000000000";
    for action in ["rotate", "revoke"] {
        let form = [("action", action), ("token", unknown)];
        assert_eq!(admin.post(PATH, &form).await.status, 404, "{action}");
    }
    assert_eq!(admin.post(PATH, &[("action", "explode")]).await.status, 400);
    assert_eq!(admin.post("/other/tokens", &[("action", "create")]).await.status, 404);
    assert!(deeds(&house).await.is_empty());
}
