//! Pages as JSON and CSV, and forms about several pull requests.

use signalbox_domain::queue::{ChangeSource, EffectClass, Mode, PrState};
use signalbox_services::SubmitOptions;

use crate::support::{House, calc, main_branch};

const QUEUE: &str = "repo=git.test%2Facme%2Fcalc&branch=main";

async fn house() -> House {
    let house = House::new().await;
    let (caller, repo, branch) = (&house.caller, calc(), main_branch());
    let queues = &house.pages.queues;
    queues
        .create_queue(caller, &repo, &branch, Mode::Single, Some(1), ChangeSource::Direct)
        .await
        .expect("a queue");
    for file in ["a1", "a2", "a3"] {
        let pr = house.host.open(&calc(), "main", &[(file, "new")]);
        queues
            .submit(caller, &repo, &branch, pr, SubmitOptions::default())
            .await
            .expect("submitted");
    }
    house.settle_but(&[EffectClass::Checks]).await;
    house
}

#[actix_web::test]
async fn a_page_is_had_as_json_and_its_table_as_csv() {
    let house = house().await;
    let admin = house.admin().await;
    let page = admin.get(&format!("/acme/queue?{QUEUE}")).await;
    assert!(page.body.contains("&#38;format=json") && page.body.contains("&#38;format=csv"));
    let twin = admin.get(&format!("/acme/queue?{QUEUE}&format=json")).await;
    assert_eq!(twin.header("content-type"), Some("application/json"));
    let json: serde_json::Value = serde_json::from_str(&twin.body).expect("JSON");
    assert_eq!(json["title"].as_str().map(|it| it.contains("acme/calc")), Some(true));
    assert!(!twin.body.contains("form_token"));
    let csv = admin.get("/acme/tokens?format=csv").await;
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
    let file = "attachment; filename=\"tokens.csv\"";
    assert_eq!(csv.header("content-disposition"), Some(file));
    assert_eq!(csv.header("x-content-type-options"), Some("nosniff"));
    assert!(csv.body.starts_with("\"Name\",\"Allows\""), "{}", csv.body);
    let missing = admin.get("/acme/queue?repo=a/b/c&branch=x&format=json").await;
    assert_eq!(missing.status, 404);
    assert!(missing.body.starts_with('{'));
}

#[actix_web::test]
async fn several_are_removed_after_a_typed_confirmation() {
    let house = house().await;
    let admin = house.admin().await;
    let form = |numbers, confirm| {
        [
            ("action", "remove-several"),
            ("repo", "git.test/acme/calc"),
            ("branch", "main"),
            ("numbers", numbers),
            ("confirm", confirm),
        ]
    };
    let live = async || {
        let queue = house.pages.queues.queue(&house.caller, &calc(), &main_branch()).await;
        let queue = queue.expect("a queue");
        let view = signalbox_domain::queue::view_queue(&queue);
        view.entries.iter().filter(|it| it.state != PrState::Cancelled).count()
    };
    let before = live().await;
    assert_eq!(admin.post("/acme/queue/do", &form("2 3", "yes")).await.status, 400);
    assert_eq!(admin.post("/acme/queue/do", &form("two", "remove")).await.status, 400);
    assert_eq!(live().await, before);
    let done = admin.post("/acme/queue/do", &form("#2, 3", "remove")).await;
    assert_eq!(done.status, 303, "{}", done.body);
    assert_eq!(live().await, before - 2);
    let left = admin.get(&format!("/acme/queue/left?{QUEUE}")).await;
    assert!(left.body.contains("Submit #2 again") && left.body.contains("Submit #3 again"));
}
