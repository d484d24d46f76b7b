//! Who may see which page: every address is in a table, and one that is not fails a test.

use std::collections::BTreeSet;

use actix_web::test::TestRequest;
use signalbox_domain::ids::{OrgId, OrgSlug};
use signalbox_domain::ports::Org;
use signalbox_domain::time::Timestamp;
use signalbox_domain::token::Scope;
use uuid::Uuid;

use crate::support::House;

/// Who may use an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// Every client.
    Open,
    /// A visitor who has signed in.
    Visitor,
    /// A visitor of the organization in the address, by `GET`.
    Read,
    /// The same, by `POST`.
    Change,
    /// The same, by both.
    Both,
}

use Access::{Both, Change, Open, Read, Visitor};

/// The rest of the address of a page about a queue.
const OF_QUEUE: &str = "?repo=git.test/acme/calc&branch=main&pr=1";
const OF_REPO: &str = "?repo=git.test/acme/calc";

const PAGES: [(&str, Access, &str); 32] = [
    ("pageHome", Visitor, ""),
    ("pageSignIn", Open, ""),
    ("pageSignInWith", Open, ""),
    ("pageSignInBack", Open, ""),
    ("pageSignOut", Open, ""),
    ("pageAsset", Open, ""),
    ("pageEvents", Visitor, ""),
    ("pageStatus", Visitor, ""),
    ("pageReference", Visitor, ""),
    ("pageQueue", Read, OF_QUEUE),
    ("pagePullRequest", Read, OF_QUEUE),
    ("pageOutput", Read, OF_QUEUE),
    ("pageDo", Change, OF_QUEUE),
    ("pageLeft", Read, OF_QUEUE),
    ("pageHealth", Read, OF_QUEUE),
    ("pageGraph", Read, OF_QUEUE),
    ("pageSettings", Both, OF_QUEUE),
    ("pageTests", Read, OF_REPO),
    ("pageQuarantine", Read, OF_REPO),
    ("pageOwners", Read, OF_REPO),
    ("pageMonitors", Read, OF_REPO),
    ("pageUploads", Read, OF_REPO),
    ("pageTestDo", Change, OF_REPO),
    ("pageTest", Read, OF_REPO),
    ("pageTokens", Both, ""),
    ("pageToTokens", Read, ""),
    ("pageWebhooks", Read, ""),
    ("pageWebhook", Read, ""),
    ("pageWebhookMessage", Read, ""),
    ("pageWebhookEvents", Read, ""),
    ("pageWebhookDo", Change, ""),
    ("pageAudit", Read, ""),
];

/// The names and addresses of all pages, from the source.
fn addresses() -> Vec<(String, String)> {
    let source: String = include_str!("../../src/routes/mod.rs").split_whitespace().collect();
    let calls = source.split("page(\"").skip(1);
    let named = calls.filter_map(|call| {
        let (address, rest) = call.split_once("\",\"")?;
        Some((rest.split('"').next()?.to_owned(), address.to_owned()))
    });
    named.collect()
}

#[test]
fn every_page_is_in_the_table() {
    let known: BTreeSet<String> = PAGES.iter().map(|(name, ..)| (*name).to_owned()).collect();
    let found: BTreeSet<String> = addresses().into_iter().map(|(name, _)| name).collect();
    assert_eq!(known, found);
}

/// The status of a request: without a session, or with one and its form token.
async fn status(house: &House, get: bool, address: &str, cookie: &str) -> u16 {
    if get {
        let request = TestRequest::get().uri(address).insert_header(("cookie", cookie));
        return house.call(request).await.status;
    }
    house.send(address, &[("form_token", "x")], cookie).await.status
}

#[actix_web::test]
async fn no_page_is_shown_without_the_right_to_see_it() {
    let house = House::with_queue().await;
    let slug = OrgSlug::new("evil").expect("a slug");
    let created_at = Timestamp::from_unix_seconds(0);
    let evil = Org { id: OrgId(Uuid::from_u128(666)), slug, created_at };
    let evil = house.stores.account.orgs.create(&evil).await.expect("an organization");
    let token = house.token_of(evil.id, "eve", &Scope::ALL).await;
    let stranger = house.browser_with(&token).await.expect("a good token").cookie;
    let member = house.admin().await.cookie;
    for (name, address) in addresses() {
        let (_, access, query) = *PAGES.iter().find(|(known, ..)| *known == name).expect("a row");
        let address = address.replace("{org}", "acme").replace("{file}", "x").replace("{id}", "x");
        let address = format!("{address}{query}");
        let seen = async |get: bool, cookie: &str| status(&house, get, &address, cookie).await;
        match access {
            Open => {}
            Visitor => {
                assert_eq!(seen(true, "").await, 401, "{name}");
                assert_ne!(seen(true, &stranger).await, 401, "{name}");
            }
            Read | Both | Change => {
                if access != Change {
                    assert_eq!(seen(true, "").await, 401, "{name}");
                    assert_eq!(seen(true, &stranger).await, 404, "{name}");
                    assert_ne!(seen(true, &member).await, 401, "{name}");
                }
                if access != Read {
                    assert_eq!(seen(false, "").await, 401, "{name}");
                    assert_eq!(seen(false, &stranger).await, 403, "{name}: without a form token");
                    assert_eq!(seen(false, &member).await, 403, "{name}: without a form token");
                }
            }
        }
    }
}
