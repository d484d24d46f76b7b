//! Faults, limits, conditional reads, tokens.

use std::process::Command;

use serde_json::json;
use signalbox_domain::ids::BranchName;
use signalbox_domain::ports::{
    Announcement, Forge, GitHost, HostError, PullRequestQuery, Severity,
};
use signalbox_domain::time::Span;
use signalbox_github::Credentials;
use signalbox_testkit::github_double::Fault;
use tempfile::TempDir;

use crate::world::World;

fn started() -> World {
    prepared(World::new())
}

fn prepared(world: World) -> World {
    world.commit(&[("a.txt", "base\n")], "base");
    world.push("main");
    world
}

async fn head(world: &World) -> Result<(), HostError> {
    let main = BranchName::new("main").expect("a branch");
    world.host.head(&world.repository, &main).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_host_is_unavailable() {
    let world = started();
    for status in [500, 502, 503, 504] {
        world.double.plan("", "", 1, Fault::Status(status));
        let answer = head(&world).await;
        assert!(matches!(answer, Err(HostError::Unavailable { .. })), "{status}: {answer:?}");
    }
    head(&world).await.expect("it is back");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_is_made_while_the_host_limits_calls() {
    let world = started();
    for (fault, seconds) in [(Fault::QuotaUsedUp(900), 900), (Fault::Secondary(90), 90)] {
        world.double.plan("", "", 1, fault);
        let now = signalbox_domain::ports::Clock::now(&*world.clock);
        let answer = head(&world).await;
        let Err(HostError::RateLimited { retry_at }) = answer else { panic!("{answer:?}") };
        let wait = retry_at.since(now);
        assert!(wait >= Span::seconds(seconds - 5) && wait <= Span::seconds(seconds + 30));
        let made = world.double.log().len();
        let again = head(&world).await;
        assert!(matches!(again, Err(HostError::RateLimited { .. })), "{again:?}");
        assert_eq!(world.double.log().len(), made, "the host is not called");
        world.clock.advance(wait);
        head(&world).await.expect("calls are allowed again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_not_changed_is_not_sent_again() {
    let world = started();
    for _ in 0..3 {
        head(&world).await.expect("an answer");
    }
    let statuses: Vec<u16> = world.double.log().iter().map(|it| it.status).collect();
    assert_eq!(statuses, [200, 304, 304]);
    let moved = world.branch("main", "main", &[("b.txt", "b\n")]);
    let main = BranchName::new("main").expect("a branch");
    let seen = world.host.head(&world.repository, &main).await.expect("an answer");
    assert_eq!(seen.map(|it| it.sha), Some(moved));
}

/// A key pair, as the host hands them out: the private key in PEM form, and the public one as the
/// double wants it.
pub(crate) fn key_pair() -> (Vec<u8>, Vec<u8>) {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("key.pem");
    let openssl = |args: &[&str]| {
        let done =
            Command::new("openssl").args(args).arg(&file).output().expect("openssl is there");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        done.stdout
    };
    openssl(&["genrsa", "-traditional", "-out"]);
    let public = openssl(&["rsa", "-RSAPublicKey_out", "-outform", "DER", "-in"]);
    (std::fs::read(&file).expect("a key"), public)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_signs_for_itself_and_keeps_its_installation_token() {
    let (private, public) = key_pair();
    let granted = json!({"contents": "write", "pull_requests": "write", "metadata": "read",
        "checks": "read", "issues": "read"});
    let credentials = Credentials::app(77, &private).expect("a key");
    let world = World::with(credentials, |double| {
        double.install_app(77, &public, &granted, &["pull_request", "push"]);
    });
    world.commit(&[("a.txt", "base\n")], "base");
    world.push("main");
    let tokens = || {
        let log = world.double.log();
        log.iter().filter(|it| it.path.ends_with("/access_tokens") && it.status == 201).count()
    };
    for _ in 0..3 {
        head(&world).await.expect("an answer");
    }
    assert_eq!(tokens(), 1, "the token is kept");
    world.double.revoke_tokens();
    head(&world).await.expect("a new token is fetched");
    assert_eq!(tokens(), 2);
    world.clock.advance(Span::minutes(56));
    // The double's own clock has not moved, so the app's own token may look as if from the future.
    drop(head(&world).await);
    let tried = world.double.log();
    assert_eq!(tried.iter().filter(|it| it.path.ends_with("/access_tokens")).count(), 3);

    let found = world.host.diagnose(std::slice::from_ref(&world.repository)).await;
    assert!(
        found.iter().any(|it| it.severity == Severity::Problem),
        "the clocks differ: {found:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_names_what_is_missing() {
    let (private, public) = key_pair();
    let granted = json!({"contents": "write", "pull_requests": "write", "metadata": "read",
        "checks": "read", "issues": "read"});
    let credentials = Credentials::app(77, &private).expect("a key");
    let world = World::with(credentials, |double| {
        double.install_app(77, &public, &granted, &["pull_request", "push"]);
    });
    let found = world.host.diagnose(std::slice::from_ref(&world.repository)).await;
    let of = |severity| {
        let ids = found.iter().filter(move |it| it.severity == severity);
        ids.map(|it| it.id.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(of(Severity::Problem), ["permission.statuses", "permission.issues"]);
    let warnings = of(Severity::Warning);
    for id in ["permission.administration", "permission.actions", "event.issue_comment"] {
        assert!(warnings.contains(&id), "{id}: {warnings:?}");
    }
    assert!(!warnings.contains(&"event.push"));
    let fine = of(Severity::Fine);
    for id in ["credentials", "repository.acme/calc", "refs.acme/calc"] {
        assert!(fine.contains(&id), "{id}: {fine:?}");
    }
    assert!(found.iter().all(|it| it.severity == Severity::Fine || !it.fix.is_empty()));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_credentials_fail_no_pull_request() {
    let world = World::with(Credentials::token("wrong").expect("a token"), |_| {});
    let query = PullRequestQuery::Number(signalbox_domain::ids::PrNumber(1));
    let answer = world.host.pull_request(&world.repository, &query).await;
    let Err(HostError::CredentialRejected { words }) = answer else { panic!("{answer:?}") };
    assert!(words.contains("credentials") && !words.contains("wrong"), "{words}");
    assert!(!format!("{:?}", Credentials::token("sesame")).contains("sesame"));
}

/// Hundreds of pull requests are announced at the same time, and branches are deleted.
#[tokio::test(flavor = "multi_thread")]
async fn writes_stay_below_the_published_limits() {
    let world = prepared(World::paced());
    let change = world.open("topic", &[("b.txt", "b\n")]);
    world.double.limit_writes(world.clock.clone());
    let began = signalbox_domain::ports::Clock::now(&*world.clock);
    let (mut texts, mut deleted, mut rounds) = (600, 400, 0);
    let mut hold_until = None;
    while texts + deleted > 0 {
        rounds += 1;
        let announcement = Announcement {
            pr: change.pr,
            queue: BranchName::new("main").expect("a branch"),
            status: None,
            comment: Some(format!("text {texts}")),
            labels: None,
        };
        let now = signalbox_domain::ports::Clock::now(&*world.clock);
        let mut next = None;
        if texts > 0 && hold_until.is_none_or(|until| until <= now) {
            match world.host.announce(&world.repository, &announcement).await {
                Ok(()) => texts -= 1,
                Err(HostError::RateLimited { retry_at }) => hold_until = Some(retry_at),
                Err(error) => panic!("{error}"),
            }
        }
        if deleted > 0 {
            let branch = BranchName::new(format!("stray/{deleted}")).expect("a branch");
            match world.host.delete_branch(&world.repository, &branch, None).await {
                Ok(()) => deleted -= 1,
                Err(HostError::RateLimited { retry_at }) => next = Some(retry_at),
                Err(error) => panic!("{error}"),
            }
        }
        let is_held = texts == 0 || hold_until.is_some_and(|until| until > now);
        let waits = next.or(hold_until).filter(|_| is_held && (deleted == 0 || next.is_some()));
        if let Some(until) = waits {
            world.clock.advance(until.since(now));
        }
        assert!(rounds < 10_000, "{texts} texts and {deleted} branches are left");
    }
    assert_eq!(world.double.exceeded_limits(), 0);
    let took = signalbox_domain::ports::Clock::now(&*world.clock).since(began);
    assert!(took >= Span::hours(1), "600 texts in {took:?}");
    assert!(took <= Span::minutes(70), "600 texts in {took:?}");
}
