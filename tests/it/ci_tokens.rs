//! Jobs of a CI system upload results with the identity tokens that it issues to them.

use reqwest::Method;
use serde_json::{Value, json};
use signalbox_testkit::ci_double::CiDouble;

use crate::harness::{On, Reply, System, program};

const REPORT: &str = r#"<testsuite name="s"><testcase name="a" classname="c"/></testsuite>"#;

fn job(repository: &str, event: &str, reference: &str) -> Value {
    json!({
        "repository": repository, "event_name": event, "ref": reference, "sha": "b".repeat(40),
        "run_id": "17",
    })
}

/// A server that accepts the jobs of a CI system for the repositories of acme.
async fn system(on: On, ci: &CiDouble) -> System {
    let mut system = System::new(on, "exit 0\n", 1).await;
    let config = format!(
        "[[organizations]]\nslug = \"acme\"\n\n[[ci]]\nkind = \"github-actions\"\nissuer = \"{}\"\n\
         audience = \"{}\"\norganization = \"acme\"\nhost = \"git.local\"\nrepositories = [\"acme\"]\n",
        ci.issuer,
        system.url(),
    );
    std::fs::write(system.path("signalbox.toml"), config).expect("written");
    system.terminate();
    system.start().await;
    system
}

/// Uploads a report that says it is of the commit `a…` of main.
async fn upload(system: &System, token: &str, repo: &str) -> Reply {
    let path =
        format!("/v1/flaky-tests/upload?repo={repo}&branch=main&job=unit&sha={}", "a".repeat(40));
    let headers = [("x-api-token", token), ("content-type", "application/xml")];
    system.send(Method::POST, &path, &headers, REPORT.to_owned()).await
}

async fn uploads(system: &System) -> Vec<Value> {
    let query = json!({"page_query": {"page_size": 100}});
    let page = system.call("flaky-tests/list-uploads", query).await;
    page["uploads"].as_array().expect("uploads").clone()
}

async fn a_job_uploads_what_it_is_proven_to_test(on: On) {
    let ci = CiDouble::start(job("acme/calc", "push", "refs/heads/topic"));
    let system = system(on, &ci).await;
    let token = ci.token(&system.url());
    let reply = upload(&system, &token, "git.local/acme/calc").await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let read = async |system: &System| {
        let uploads = uploads(system).await;
        uploads.len() == 1 && uploads[0]["state"] == "read"
    };
    system.until("the report is read", read).await;
    let found = uploads(&system).await;
    assert_eq!(
        found[0]["branch"], "topic",
        "the branch of the token, not of the sender: {found:?}"
    );
    assert_eq!(found[0]["sha"], "b".repeat(40), "{found:?}");

    // It may only upload, and only for its repository.
    let other = upload(&system, &token, "git.local/acme/other").await;
    assert_eq!(other.status, 404, "{}", other.text);
    let headers = [("x-api-token", token.as_str()), ("content-type", "application/json")];
    let repo = json!({"host": "git.local", "owner": "acme", "name": "calc"});
    for (operation, body) in [
        ("getQueue", json!({"repo": repo, "targetBranch": "main"})),
        ("submitPullRequest", json!({"repo": repo, "targetBranch": "main", "pr": {"number": 1}})),
        ("flaky-tests/update-settings", json!({"repo": repo, "quarantineEnabled": true})),
    ] {
        let path = format!("/v1/{operation}");
        let reply = system.send(Method::POST, &path, &headers, body.to_string()).await;
        assert_eq!(reply.status, 403, "{operation}: {}", reply.text);
    }
}

async fn other_tokens_are_refused(on: On) {
    let ci = CiDouble::start(job("acme/calc", "push", "refs/heads/main"));
    let stranger = CiDouble::start(job("acme/calc", "push", "refs/heads/main"));
    let system = system(on, &ci).await;
    let good = ci.token(&system.url());
    let (signed, _) = good.rsplit_once('.').expect("a signature");
    let (_, foreign) = stranger.token(&system.url()).rsplit_once('.').map_or_else(
        || panic!("a signature"),
        |(signed, signature)| (signed.to_owned(), signature.to_owned()),
    );
    ci.set_job(job("other/calc", "push", "refs/heads/main"));
    for (token, why) in [
        (ci.token(&system.url()), "a repository that is not accepted"),
        (ci.token("https://signalbox.test"), "another audience"),
        (stranger.token(&system.url()), "another issuer"),
        (format!("{signed}.{foreign}"), "the signature of another token"),
        (format!("{signed}."), "no signature"),
    ] {
        let reply = upload(&system, &token, "git.local/acme/calc").await;
        assert_eq!(reply.status, 401, "{why}: {}", reply.text);
    }
    let reply = upload(&system, &good, "git.local/acme/calc").await;
    assert_eq!(reply.status, 200, "{}", reply.text);
}

async fn the_gate_gets_a_token_of_its_own(on: On) {
    let ci = CiDouble::start(job("acme/calc", "pull_request", "refs/pull/7/merge"));
    let system = system(on, &ci).await;
    std::fs::create_dir(system.path("job")).expect("a folder");
    let write = format!("echo '{REPORT}' > junit.xml");
    let sha = "c".repeat(40);
    let run = |credential: &str| {
        let done = std::process::Command::new(program())
            .args(["tests", "run", "--repo", "git.local/acme/calc", "--org", "acme"])
            .args(["--junit", "*.xml", "--branch", "main", "--sha", &sha, "--require-server"])
            .args(["--server", &system.url(), "--", "sh", "-c", &write])
            .current_dir(system.path("job"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("ACTIONS_ID_TOKEN_REQUEST_URL", &ci.token_url)
            .env("ACTIONS_ID_TOKEN_REQUEST_TOKEN", credential)
            .output()
            .expect("run");
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        (done.status.code(), text)
    };
    let (code, errors) = run("job");
    assert_eq!(code, Some(0), "{errors}");
    let read = async |system: &System| {
        let uploads = uploads(system).await;
        uploads.len() == 1 && uploads[0]["state"] == "read"
    };
    system.until("the report is read", read).await;
    let (code, errors) = run("another job");
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("could not get an identity token: 404"), "{errors}");
}

async fn a_token_is_not_bad_because_its_issuer_is_away(on: On) {
    let ci = CiDouble::start(job("acme/calc", "push", "refs/heads/main"));
    let system = system(on, &ci).await;
    ci.fail("openid-configuration", 1);
    let reply = upload(&system, &ci.token(&system.url()), "git.local/acme/calc").await;
    assert_eq!(reply.status, 503, "{}", reply.text);
    assert!(
        reply.text.contains("could not reach the issuer of the identity token"),
        "{}",
        reply.text
    );
    let token = [("x-api-token", system.token())];
    let ready = system.send(Method::GET, "/readyz", &token, String::new()).await;
    assert_eq!(ready.text, "ready\n", "the database is there");
}

macro_rules! on_both {
    ($($name:ident),+) => {
        mod on_sqlite {
            $(#[tokio::test] async fn $name() { super::$name(super::On::Sqlite).await; })+
        }
        mod on_postgres {
            $(#[tokio::test] async fn $name() { super::$name(super::On::Postgres).await; })+
        }
    };
}

on_both!(
    a_job_uploads_what_it_is_proven_to_test,
    other_tokens_are_refused,
    the_gate_gets_a_token_of_its_own,
    a_token_is_not_bad_because_its_issuer_is_away
);
