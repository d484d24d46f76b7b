//! `GET /v1/testRuns/{run}/checks/{name}/output`.

use actix_web::test::TestRequest;
use signalbox_domain::ids::RunId;
use signalbox_domain::ports::CheckOutput;

use crate::support::{Grant, Server, calc};

#[actix_web::test]
async fn the_output_of_a_check_is_plain_text() {
    let server = Server::new().await;
    let pr = server.submitted("bad").await;
    let run = server.entry(pr).await["testRunId"].as_str().expect("a run").to_owned();
    server.settle().await;
    let reply = server.get(&format!("/v1/testRuns/{run}/checks/test/output")).await;
    assert_eq!((reply.status, reply.body.as_str()), (200, "test: FAILURE\n"));
    assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(reply.header("content-disposition"), Some("inline; filename=\"output.txt\""));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(reply.header("content-security-policy"), Some("default-src 'none'; sandbox"));
    for path in ["checks/lint/output", "checks/TEST/output"] {
        let reply = server.get(&format!("/v1/testRuns/{run}/{path}")).await;
        reply.problem(404, "check_output_not_found");
    }
    let reply = server.get("/v1/testRuns/nonsense/checks/test/output").await;
    reply.problem(404, "check_output_not_found");
}

#[actix_web::test]
async fn a_name_with_a_slash_is_escaped() {
    let server = Server::new().await;
    let org = server.stores.account.orgs.list().await.expect("organizations")[0].id;
    let run = RunId(server.api.ids.new_id());
    let output = CheckOutput {
        org,
        run,
        check: "ci/test a".to_owned(),
        text: "<b>".to_owned(),
        at: server.api.clock.now(),
    };
    server.stores.queue.check_log.write(&output).await.expect("written");
    let reply = server.get(&format!("/v1/testRuns/{run}/checks/ci%2Ftest%20a/output")).await;
    assert_eq!((reply.status, reply.body.as_str()), (200, "<b>"));
}

#[actix_web::test]
async fn it_is_the_organizations_own() {
    let server = Server::new().await;
    let pr = server.submitted("bad").await;
    let run = server.entry(pr).await["testRunId"].as_str().expect("a run").to_owned();
    server.settle().await;
    let path = format!("/v1/testRuns/{run}/checks/test/output");
    let other = Grant { org: "other", ..Grant::default() };
    let limited = Grant { repos: vec![calc()], ..Grant::default() };
    for grant in [other, limited] {
        let token = server.grant(grant).await;
        let request = TestRequest::get().uri(&path).insert_header(("x-api-token", token));
        server.call(request).await.problem(404, "check_output_not_found");
    }
}
