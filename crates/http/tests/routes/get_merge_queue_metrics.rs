//! `GET /v1/getMergeQueueMetrics`.

use actix_web::test::TestRequest;
use serde_json::json;
use signalbox_domain::ids::{BranchName, OrgSlug, QueueId, RepoId, RepoName};
use signalbox_domain::ports::Repository;
use signalbox_domain::queue::{Mode, Queue, Settings};
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

use crate::support::{Grant, Server, calc};

const PATH: &str = "/v1/getMergeQueueMetrics";

#[actix_web::test]
async fn metrics_are_text_for_scrapers() {
    let server = Server::new().await;
    server.submitted("b").await;
    for query in
        ["", "?repo=acme/calc&repoHost=git.test", "?repo=acme%2Fcalc&repoHost=git.test&x=1"]
    {
        let reply = server.get(&format!("{PATH}{query}")).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let text = "text/plain; version=0.0.4; charset=utf-8";
        assert_eq!(reply.header("content-type"), Some(text));
        assert!(reply.body.starts_with("mq_depth_current 1"), "{}", reply.body);
    }
}

#[actix_web::test]
async fn a_repository_needs_its_host() {
    let server = Server::new().await;
    for (query, pointers) in [
        ("?repo=acme/calc", ["/repoHost"]),
        ("?repo=acme/calc&repoHost=", ["/repoHost"]),
        ("?repoHost=git.test", ["/repo"]),
        ("?repo=&repoHost=git.test", ["/repo"]),
        ("?repo=calc&repoHost=git.test", ["/repo"]),
        ("?repo=calc&repoHost=git.test/acme", ["/repo"]),
        ("?repo=acme/calc&repoHost=git%20test", ["/repoHost"]),
        ("?repo=acme/calc&repo=acme/other&repoHost=git.test", ["/repo"]),
    ] {
        assert_eq!(server.get(&format!("{PATH}{query}")).await.pointers(), pointers, "{query}");
    }
    let reply = server.get(&format!("{PATH}?repo=acme/nope&repoHost=git.test")).await;
    reply.problem(404, "repository_not_found");
}

#[actix_web::test]
async fn another_organization_and_a_limited_token_see_only_their_own() {
    let server = Server::new().await;
    server.ok("createQueue", json!({"targetBranch": "dev"})).await;
    let other = Grant { org: "other", ..Grant::default() };
    let mut elsewhere = calc();
    elsewhere.name = "elsewhere".to_owned();
    let limited = Grant { repos: vec![elsewhere], ..Grant::default() };
    for grant in [other, limited] {
        let token = server.grant(grant).await;
        let request = TestRequest::get().uri(PATH).insert_header(("x-api-token", token));
        let reply = server.call(request).await;
        assert_eq!((reply.status, reply.body.as_str()), (200, ""));
    }
}

/// The page of the whole organization would have every series twice.
#[actix_web::test]
async fn the_host_is_named_where_two_hosts_have_the_repository() {
    let server = Server::new().await;
    assert_eq!(server.get(PATH).await.body, "mq_depth_current 0\nmq_depth_current 0");
    let org = server.stores.account.orgs.find_by_slug(&OrgSlug::new("acme").expect("a slug")).await;
    let name = RepoName::parse("mirror.test/acme/calc").expect("a name");
    let mirror = Repository {
        id: RepoId(Uuid::from_u128(77)),
        org: org.expect("read").expect("the organization").id,
        name,
        path: None,
        created_at: Timestamp::from_unix_seconds(0),
    };
    server.stores.account.repos.register(&mirror, false).await.expect("registered");
    let branch = BranchName::new("main").expect("a branch");
    let (settings, at) =
        (Settings::new(Mode::Single, 1).expect("valid settings"), mirror.created_at);
    let id = QueueId(Uuid::from_u128(78));
    let queue =
        Queue::new(id, mirror.org, mirror.id, branch, settings, at).expect("valid settings");
    server.stores.queue.queues.create(&queue).await.expect("created");
    let all = server.get(PATH).await.body;
    for host in ["git.test", "mirror.test"] {
        assert_eq!(all.matches(&format!("mq_depth_current{host} 0")).count(), 2, "{all}");
    }
    let one = server.get(&format!("{PATH}?repo=acme/calc&repoHost=git.test")).await.body;
    assert_eq!(one, "mq_depth_current 0\nmq_depth_current 0");
}
