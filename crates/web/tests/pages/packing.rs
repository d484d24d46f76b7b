//! Pages packed by gzip, and the tokens of forms in them.

use actix_web::test::TestRequest;

use crate::support::{Browser, House, Reply};

async fn taking_gzip(house: &House, browser: &Browser<'_>, path: &str) -> Reply {
    let request = TestRequest::get().uri(path).insert_header(("cookie", browser.cookie.as_str()));
    house.call(request.insert_header(("accept-encoding", "gzip"))).await
}

#[actix_web::test]
async fn a_page_is_packed_and_the_answer_to_a_form_is_not() {
    let house = House::new().await;
    let admin = house.admin().await;
    let plain = admin.get("/acme/tokens").await;
    assert_eq!(plain.header("content-encoding"), None, "without Accept-Encoding");
    let packed = taking_gzip(&house, &admin, "/acme/tokens").await;
    assert_eq!((packed.status, packed.header("content-encoding")), (200, Some("gzip")));
    assert_eq!(packed.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(packed.header("content-security-policy").is_some(), "with the headers of every page");
    assert!(packed.body.contains("<h1>"), "{}", packed.body);
    let missing = taking_gzip(&house, &admin, "/acme/nothing").await;
    assert_ne!(missing.status, 200);

    let token = packed.between("name=\"form_token\" value=\"", "\"").to_owned();
    let form = [
        ("action", "create"),
        ("name", "ci"),
        ("scope", "queue:read"),
        ("days", "2"),
        ("form_token", token.as_str()),
    ];
    let request = TestRequest::post()
        .uri("/acme/tokens")
        .insert_header(("host", "box.test"))
        .insert_header(("origin", crate::support::HERE))
        .insert_header(("cookie", admin.cookie.as_str()))
        .insert_header(("accept-encoding", "gzip"))
        .set_form(form);
    let shown_once = house.call(request).await;
    assert!(shown_once.body.contains(">sbx_"), "{}", shown_once.body);
    assert_eq!(shown_once.header("content-encoding"), None, "it shows a secret");
}

#[actix_web::test]
async fn each_page_has_another_form_token_and_all_of_them_are_good() {
    let house = House::new().await;
    let admin = house.admin().await;
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let page = admin.get("/acme/tokens").await;
        tokens.push(page.between("name=\"form_token\" value=\"", "\"").to_owned());
    }
    assert_ne!(tokens.first(), tokens.last());
    let other = house.admin().await;
    for (browser, status) in [(&admin, 200), (&other, 403)] {
        for token in &tokens {
            let form = [
                ("action", "create"),
                ("name", "ci"),
                ("scope", "queue:read"),
                ("form_token", token.as_str()),
            ];
            let reply = house.send("/acme/tokens", &form, &browser.cookie).await;
            assert_eq!(reply.status, status, "{}", reply.body);
        }
    }
}
