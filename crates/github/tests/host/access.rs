//! Missing permissions are not the fault of a change; the call succeeds once they are granted.

use std::path::Path;

use signalbox_conformance::git_host::{build, land};
use signalbox_domain::ids::{BranchName, PrNumber};
use signalbox_domain::ports::{
    Announcement, Forge, GitHost, HostError, LandAnswer, LandedNote, PullRequestQuery, Severity,
    StatusNote, StatusState,
};
use signalbox_domain::queue::{HostTroubleKind, Land, MergeMethod};
use signalbox_domain::time::Span;
use signalbox_github::{Credentials, GitHubHost};
use signalbox_testkit::github_double::{Access, Fault};
use tempfile::TempDir;

use crate::limits::key_pair;
use crate::world::{TOKEN, World, config};

fn started() -> World {
    let world = World::new();
    world.commit(&[("a.txt", "base\n")], "base");
    world.push("main");
    world
}

/// Everything that a queue does, and the errors that it meets.
struct Work {
    order: Land,
    pr: PrNumber,
}

impl Work {
    async fn prepare(world: &World) -> Self {
        let main = world.bare(&["rev-parse", "main"]);
        let main = signalbox_domain::ids::Sha::new(main).expect("a commit");
        let topic = world.open("topic", &[("b.txt", "b\n")]);
        let request = build(&main, vec![topic.clone()], MergeMethod::Squash);
        let candidate = world.candidate(&request).await;
        Self { order: land(&request, &candidate), pr: topic.pr }
    }

    async fn reads(&self, world: &World) -> Vec<(&'static str, Option<HostError>)> {
        let (host, repository) = (&world.host, &world.repository);
        let main = BranchName::new("main").expect("a branch");
        let query = PullRequestQuery::Number(self.pr);
        let gone = PullRequestQuery::Number(PrNumber(99));
        let nowhere = BranchName::new("nowhere").expect("a branch");
        let at = &self.order.expected;
        vec![
            ("a pull request", host.pull_request(repository, &query).await.err()),
            ("one that is not there", host.pull_request(repository, &gone).await.err()),
            ("the target", host.head(repository, &main).await.err()),
            ("a branch that is not there", host.head(repository, &nowhere).await.err()),
            ("what is required", host.required_statuses(repository, &main, at).await.err()),
            ("labels", host.labels(repository, self.pr).await.err()),
        ]
    }

    async fn writes(&self, world: &World) -> Vec<(&'static str, Option<HostError>)> {
        let (host, repository) = (&world.host, &world.repository);
        let Land { target, changes, candidate, .. } = &self.order;
        let mut request = build(&self.order.expected, changes.clone(), MergeMethod::Squash);
        request.branch = BranchName::new("signalbox-merge/again").expect("a branch");
        let part = |status, comment, labels| Announcement {
            pr: self.pr,
            queue: target.clone(),
            status,
            comment,
            labels,
        };
        let head = changes[0].head.clone();
        let status =
            StatusNote { sha: head.clone(), state: StatusState::Pending, description: "x".into() };
        let status = part(Some(status), None, None);
        let comment = part(None, Some("text".into()), None);
        let labels = part(None, None, Some((vec!["a".into()], Vec::new())));
        let landed = LandedNote { pr: self.pr, head, sha: candidate.sha.clone(), rewritten: true };
        vec![
            ("building", host.build_candidate(repository, &request).await.err()),
            ("landing", host.land(repository, &self.order).await.err()),
            ("a status", host.announce(repository, &status).await.err()),
            ("a comment", host.announce(repository, &comment).await.err()),
            ("labels", host.announce(repository, &labels).await.err()),
            ("closing", host.close_landed(repository, &landed).await.err()),
            ("deleting", host.delete_branch(repository, &request.branch, None).await.err()),
        ]
    }
}

fn all_denied(answers: &[(&'static str, Option<HostError>)], access: Access) {
    for (what, error) in answers {
        let kind = error.as_ref().and_then(HostError::trouble).map(|it| it.kind);
        assert_eq!(kind, Some(HostTroubleKind::AccessDenied), "{access:?}, {what}: {error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn denied_reads_fail_no_pull_request() {
    let world = started();
    let work = Work::prepare(&world).await;
    for access in [Access::Hidden, Access::OtherAddresses, Access::SingleSignOn] {
        world.double.set_access(access);
        // Cached rules are read again after two minutes.
        world.clock.advance(Span::minutes(2));
        all_denied(&work.reads(&world).await, access);
        all_denied(&work.writes(&world).await, access);
    }
    world.double.set_access(Access::Full);
    let reads = work.reads(&world).await;
    assert!(reads.iter().all(|(_, error)| error.is_none()), "{reads:?}");
    let gone = PullRequestQuery::Number(PrNumber(99));
    let gone = world.host.pull_request(&world.repository, &gone).await;
    assert_eq!(gone.expect("an answer"), None, "what is gone is gone when we may look");
    assert!(matches!(world.land(&work.order).await, LandAnswer::Landed(..)), "nothing was lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn denied_writes_fail_no_pull_request() {
    let world = started();
    let work = Work::prepare(&world).await;
    for access in [Access::ReadOnly, Access::ReadOnlyHidden, Access::Archived] {
        world.double.set_access(access);
        let reads = work.reads(&world).await;
        assert!(reads.iter().all(|(_, error)| error.is_none()), "{access:?}: {reads:?}");
        let mut writes = work.writes(&world).await;
        // There is nothing to delete: whether we may is not asked.
        writes.retain(|(what, error)| *what != "deleting" || error.is_some());
        all_denied(&writes, access);
        let found = world.host.diagnose(std::slice::from_ref(&world.repository)).await;
        let problems = found.iter().filter(|it| it.severity == Severity::Problem);
        let problems: Vec<&str> = problems.map(|it| it.id.as_str()).collect();
        assert!(problems.contains(&"refs.acme/calc"), "{access:?}: {found:?}");
        let archived = problems.contains(&"archived.acme/calc");
        assert_eq!(archived, access == Access::Archived, "{found:?}");
    }
    world.double.set_access(Access::Full);
    let writes = work.writes(&world).await;
    assert!(writes.iter().all(|(_, error)| error.is_none()), "{writes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_pull_request_may_not_is_its_own_matter() {
    let world = started();
    let topic = world.open("topic", &[("b.txt", "b\n")]);
    world.double.guard("main");
    let main = signalbox_domain::ids::Sha::new(world.bare(&["rev-parse", "main"])).expect("it");
    let request = build(&main, vec![topic], MergeMethod::Squash);
    let candidate = world.candidate(&request).await;
    let order = land(&request, &candidate);
    for (words, is_its_own) in [
        ("Required status check \"test\" is expected.", true),
        ("At least 1 approving review is required by reviewers with write access.", true),
        ("Pull Request is not mergeable", true),
        ("Repository rule violations found: Cannot update this protected ref.", false),
        ("Squash merges are not allowed on this repository.", false),
        ("You're not authorized to push to this branch.", false),
    ] {
        world.double.plan("PUT", "/merge", 1, Fault::Refusal(405, words));
        let refused = world.host.land(&world.repository, &order).await.expect_err("refused");
        let rejected = matches!(refused, HostError::Rejected { .. });
        let denied = matches!(refused, HostError::AccessDenied { .. });
        assert_eq!((rejected, denied), (is_its_own, !is_its_own), "{words}: {refused:?}");
    }
}

async fn head(host: &GitHubHost, world: &World) -> Result<(), HostError> {
    let main = BranchName::new("main").expect("a branch");
    host.head(&world.repository, &main).await.map(drop)
}

fn on_file(world: &World, credentials: Credentials, file: &Path) -> GitHubHost {
    let mut config = config(&world.double.url, credentials);
    config.credentials_file = Some(file.to_owned());
    GitHubHost::new(config, world.clock.clone()).expect("a host")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_was_replaced_is_used_without_a_restart() {
    let world = started();
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, TOKEN).expect("written");
    let host = on_file(&world, Credentials::token(TOKEN).expect("a token"), &file);
    head(&host, &world).await.expect("an answer");
    world.double.set_token("ghp_second");
    let rejected = head(&host, &world).await;
    let Err(HostError::CredentialRejected { words }) = rejected else { panic!("{rejected:?}") };
    assert!(words.contains("Bad credentials") && !words.contains(TOKEN), "{words}");
    // Half written, then whole: only the file changes.
    std::fs::write(&file, "").expect("written");
    assert!(head(&host, &world).await.is_err());
    std::fs::write(&file, "ghp_second\n").expect("written");
    head(&host, &world).await.expect("it is used immediately");
    // One that is replaced before the old one ends is noticed in a while.
    std::fs::write(&file, "ghp_third").expect("written");
    world.clock.advance(Span::seconds(10));
    assert!(matches!(head(&host, &world).await, Err(HostError::CredentialRejected { .. })));
    world.double.set_token("ghp_third");
    head(&host, &world).await.expect("it was read");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_replaced_is_used_without_a_restart() {
    let (first, first_public) = key_pair();
    let (second, second_public) = key_pair();
    let install = |world: &World, public: &[u8]| {
        world.double.install_app(77, public, &serde_json::json!({}), &[]);
        world.double.revoke_tokens();
    };
    let world = started();
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("key.pem");
    std::fs::write(&file, &first).expect("written");
    install(&world, &first_public);
    let host = on_file(&world, Credentials::app(77, &first).expect("a key"), &file);
    head(&host, &world).await.expect("an answer");
    install(&world, &second_public);
    let rejected = head(&host, &world).await;
    assert!(matches!(rejected, Err(HostError::CredentialRejected { .. })), "{rejected:?}");
    std::fs::write(&file, &second).expect("written");
    head(&host, &world).await.expect("the new key signs");
}
