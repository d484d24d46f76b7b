//! `verify = "local"`: candidates are computed again in a mirror, which git fetches over HTTP with
//! the host's own credential.

use std::path::{Path, PathBuf};
use std::time::Duration;

use signalbox_conformance::git_host::build;
use signalbox_domain::ids::Sha;
use signalbox_domain::ports::{Built, GitHost, HostError};
use signalbox_domain::queue::{
    BuildCandidate, Change, Composition, CompositionCheck, MergeMethod, Mismatch,
};
use signalbox_domain::time::Span;
use signalbox_git::{Limits, Mirrors};
use signalbox_github::Credentials;
use signalbox_hosts::{Recomputation, Recomputer as _, Remote};
use signalbox_testkit::github_double::{Access, Fault, WrongMerge};

use crate::composition::{METHODS, composition, work};
use crate::limits::key_pair;
use crate::world::{TOKEN, World, time_now};

fn world() -> World {
    limited(Limits::default())
}

fn limited(limits: Limits) -> World {
    World::recomputing(Credentials::token(TOKEN).expect("a token"), limits)
}

async fn failed(world: &World, request: &BuildCandidate) -> HostError {
    let answer = world.host.build_candidate(&world.repository, request).await;
    answer.expect_err("an error")
}

async fn agrees(world: &World, request: &BuildCandidate) {
    let checked = composition(world, request).await;
    assert_eq!(checked, Composition::recomputed());
}

async fn why_not(world: &World, request: &BuildCandidate) -> String {
    let unknown = composition(world, request).await;
    assert_eq!(unknown.check, CompositionCheck::NotChecked);
    unknown.why_not.expect("a reason")
}

fn squash(main: &Sha, changes: &[Change]) -> BuildCandidate {
    build(main, changes.to_vec(), MergeMethod::Squash)
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_candidate_is_computed_again_with_each_method() {
    let world = world();
    let (main, changes) = work(&world);
    for method in METHODS {
        for group in [&changes[..], &changes[..1], &changes[1..]] {
            agrees(&world, &build(&main, group.to_vec(), method)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_both_sides_have_changed_is_merged_and_compared() {
    let world = world();
    let (_, mut changes) = work(&world);
    // `diff` leaves this file to the host.
    world.git(&["checkout", "-q", "main"]);
    world.commit(&[("a.txt", "one\n2\n3\n4\n5\n6\n7\n")], "the other end");
    let main = world.push("main");
    // Pull requests with merge commits, too, which `diff` cannot compare when they are replayed.
    world.git(&["checkout", "-q", "one"]);
    world.git(&["merge", "-q", "--no-edit", "two"]);
    changes[0].head = world.push("one");
    for method in METHODS {
        agrees(&world, &build(&main, changes[1..].to_vec(), method)).await;
        agrees(&world, &build(&main, changes[..1].to_vec(), method)).await;
    }
    // Its content is compared.
    world.double.merge_wrongly(Some(WrongMerge::Base));
    let built = world.build(&squash(&main, &changes[1..])).await;
    let Built::Mismatch(Mismatch { paths, .. }) = built else { panic!("{built:?}") };
    assert_eq!(paths, ["a.txt", "landed.txt"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_merge_is_never_a_candidate() {
    for how in [WrongMerge::Base, WrongMerge::DropsAFile, WrongMerge::RevertsAhead] {
        let world = world();
        let (main, changes) = work(&world);
        for method in METHODS {
            for group in [&changes[..], &changes[..1]] {
                world.double.merge_wrongly(None);
                let request = build(&main, group.to_vec(), method);
                let right = world.candidate(&request).await;
                world.double.merge_wrongly(Some(how));
                let request = build(&main, group.to_vec(), method);
                let built = world.build(&request).await;
                let Built::Mismatch(mismatch) = built else {
                    panic!("{how:?} {method:?}: {built:?}")
                };
                let context = format!("{how:?} {method:?}: {mismatch:?}");
                assert_eq!(mismatch.base, main, "{context}");
                assert_eq!(mismatch.expected.as_ref(), Some(&right.tree), "{context}");
                assert_ne!(mismatch.found, right.tree, "{context}");
                let commit = mismatch.commit.as_str();
                let differing = ["diff", "--name-only", right.tree.as_str(), commit];
                let differing = world.bare(&differing);
                assert!(!differing.is_empty(), "{context}");
                assert_eq!(mismatch.paths, differing.lines().collect::<Vec<_>>(), "{context}");
                let branch = format!("refs/heads/{}", request.branch);
                assert_eq!(world.bare(&["for-each-ref", &branch]), "", "nothing is tested");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_that_only_this_git_sees_is_not_called_checked() {
    let world = world();
    let (main, changes) = work(&world);
    let other = world.open("other", &[("a.txt", "1\n2\n3\n4\n5\n6\n7\neight\n")]);
    world.git(&["checkout", "-q", "main"]);
    world.commit(&[("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n")], "conflicting");
    let main_after = world.push("main");
    // The host has an attribute that keeps both lines, as a custom merge driver may.
    let attributes = world.bare_folder().join("info/attributes");
    std::fs::create_dir_all(attributes.parent().expect("a folder")).expect("a folder");
    std::fs::write(&attributes, "a.txt merge=union\n").expect("written");
    let why = why_not(&world, &squash(&main_after, std::slice::from_ref(&other))).await;
    assert_eq!(why, format!("#{} conflicts for git on this server, in a.txt", other.pr));
    std::fs::remove_file(attributes).expect("removed");
    agrees(&world, &squash(&main, &changes)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_has_no_contents_that_no_merge_needed_and_no_credential() {
    let world = world();
    let (main, changes) = work(&world);
    agrees(&world, &squash(&main, &changes)).await;
    let missing = std::process::Command::new("git")
        .args(["--git-dir", &world.mirror().display().to_string()])
        .args(["rev-list", "--objects", "--missing=print", main.as_str()])
        .output()
        .expect("git can be run");
    let missing = String::from_utf8_lossy(&missing.stdout).into_owned();
    assert!(missing.lines().any(|line| line.starts_with('?')), "{missing}");
    let encoded = base64_of(&format!("x-access-token:{TOKEN}"));
    for file in files(&world.folder().join("mirrors")) {
        let content = String::from_utf8_lossy(&std::fs::read(&file).expect("a file")).into_owned();
        let shown = file.display();
        assert!(!content.contains(TOKEN) && !content.contains(&encoded), "{shown}");
        assert!(!content.contains("extraHeader"), "{shown}");
    }
}

fn base64_of(text: &str) -> String {
    data_encoding::BASE64.encode(text.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_that_is_missing_or_damaged_is_made_again() {
    let world = world();
    let (main, changes) = work(&world);
    agrees(&world, &squash(&main, &changes)).await;
    let mirror = world.mirror();
    std::fs::remove_dir_all(&mirror).expect("removed");
    agrees(&world, &squash(&main, &changes)).await;
    std::fs::write(mirror.join("HEAD"), "nonsense").expect("written");
    agrees(&world, &squash(&main, &changes)).await;
    std::fs::write(mirror.join("config"), "[core").expect("written");
    agrees(&world, &squash(&main, &changes)).await;
    for end in ["pack", "idx"] {
        let damaged = files(&mirror.join("objects/pack"));
        let damaged = damaged.iter().filter(|path| path.extension().is_some_and(|it| it == end));
        for file in damaged {
            std::fs::remove_file(file).expect("removed");
            std::fs::write(file, "damaged").expect("written");
        }
        agrees(&world, &squash(&main, &changes)).await;
    }
    std::fs::remove_dir_all(mirror.join("objects")).expect("removed");
    agrees(&world, &squash(&main, &changes)).await;
    std::fs::remove_dir_all(&mirror).expect("removed");
    std::fs::write(&mirror, "not a folder").expect("written");
    agrees(&world, &squash(&main, &changes)).await;
    // A fetch that was killed leaves such a file.
    let left = mirror.join("objects/pack/tmp_pack_abc");
    std::fs::write(&left, "half").expect("written");
    agrees(&world, &squash(&main, &changes)).await;
    assert!(!left.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_is_bounded() {
    let world = limited(Limits { files: 60, ..Limits::default() });
    let (mut main, _) = work(&world);
    let mut most = 0;
    for number in 0..8 {
        let change = world.open(&format!("more-{number}"), &[("more.txt", &format!("{number}\n"))]);
        agrees(&world, &squash(&main, std::slice::from_ref(&change))).await;
        most = most.max(files(&world.mirror()).len());
        world.git(&["checkout", "-q", "main"]);
        world.commit(&[("landed.txt", &format!("{number}\n"))], "more");
        main = world.push("main");
    }
    assert!((40..=100).contains(&most), "{most}");
    // An unused mirror goes when another is made.
    let beside = world.mirror().with_file_name("unused.git");
    std::fs::create_dir(&beside).expect("created");
    let lock = std::fs::File::create(beside.with_extension("lock")).expect("created");
    lock.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("an old file");
    std::fs::remove_dir_all(world.mirror()).expect("removed");
    let change = world.open("last", &[("last.txt", "last\n")]);
    agrees(&world, &squash(&main, std::slice::from_ref(&change))).await;
    assert!(!beside.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_is_too_large_is_not_called_checked() {
    let slow = Limits { time: Duration::ZERO, ..Limits::default() };
    let small = Limits { bytes: 1_000, ..Limits::default() };
    for (limits, expected) in [
        (slow, "git fetch took more than 0 s"),
        (small, "the mirror of the repository exceeds 1000 bytes"),
    ] {
        let world = limited(limits);
        let (main, changes) = work(&world);
        assert_eq!(why_not(&world, &squash(&main, &changes)).await, expected);
        assert!(!world.mirror().exists());
        // It is not fetched again on the same day.
        world.double.plan("GET", ".git/info/refs", 1, Fault::Status(500));
        assert_eq!(why_not(&world, &squash(&main, &changes)).await, expected);
        world.clock.advance(Span::hours(25));
        if !limits.time.is_zero() {
            let error = failed(&world, &squash(&main, &changes)).await;
            assert!(matches!(error, HostError::Unavailable { .. }), "{error:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_at_the_same_time_do_not_disturb_each_other() {
    let world = world();
    let (main, changes) = work(&world);
    let requests: Vec<BuildCandidate> = METHODS
        .into_iter()
        .flat_map(|method| [&changes[..1], &changes[1..]].map(|it| (method, it.to_vec())))
        .map(|(method, group)| build(&main, group, method))
        .collect();
    let tasks = requests.into_iter().map(|request| {
        let (host, repository) = (world.host.clone(), world.repository.clone());
        tokio::spawn(async move { host.build_candidate(&repository, &request).await })
    });
    let tasks: Vec<_> = tasks.collect();
    for task in tasks {
        let built = task.await.expect("no panic").expect("an answer");
        let Built::Candidate { composition, .. } = built else { panic!("{built:?}") };
        assert_eq!(composition, Some(Composition::recomputed()));
    }
    remove_benches(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_down_is_unavailable() {
    let world = world();
    let (main, changes) = work(&world);
    let candidate = world.candidate(&squash(&main, &changes)).await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let order = Recomputation {
        mirror: world.folder().join("other/calc.git"),
        remote: Remote {
            url: format!("http://{address}/acme/calc.git"),
            authorization: format!("Basic {}", base64_of(TOKEN)),
        },
        base: &main,
        heads: changes.iter().map(|change| &change.head).collect(),
        method: MergeMethod::Squash,
        candidate: &candidate.sha,
        now: time_now(),
    };
    let error = Mirrors::default().recompute(order).await.expect_err("no answer");
    assert!(matches!(error, HostError::Unavailable { .. }), "{error:?}");
    assert!(!error.to_string().contains(&base64_of(TOKEN)), "{error}");
}

/// Candidates that are built at the same time leave a temporary branch each.
fn remove_benches(world: &World) {
    for branch in world.temporary().lines() {
        world.bare(&["update-ref", "-d", branch]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_refuses_or_fails_is_an_error_that_passes() {
    let world = world();
    let (main, changes) = work(&world);
    let request = squash(&main, &changes[..1]);
    let fault = |status| world.double.plan("GET", ".git/info/refs", 1, Fault::Status(status));
    let shown = |error: &HostError| {
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains(TOKEN) && !shown.contains(&base64_of(TOKEN)), "{shown}");
        assert!(error.is_passing(), "{shown}");
    };
    for status in [500, 502, 503] {
        fault(status);
        let error = failed(&world, &request).await;
        assert!(matches!(error, HostError::Unavailable { .. }), "{error:?}");
        shown(&error);
    }
    world.double.plan("POST", ".git/git-upload-pack", 1, Fault::Status(502));
    let error = failed(&world, &request).await;
    assert!(matches!(error, HostError::Unavailable { .. }), "{error:?}");
    fault(429);
    let error = failed(&world, &request).await;
    assert!(matches!(error, HostError::RateLimited { .. }), "{error:?}");
    fault(403);
    let error = failed(&world, &request).await;
    assert!(matches!(error, HostError::AccessDenied { .. }), "{error:?}");
    shown(&error);
    fault(401);
    let error = failed(&world, &request).await;
    assert!(matches!(error, HostError::CredentialRejected { .. }), "{error:?}");
    shown(&error);
    // What will not pass.
    fault(422);
    let why = why_not(&world, &request).await;
    assert!(why.contains("422"), "{why}");
    fault(404);
    let why = why_not(&world, &request).await;
    assert!(why.contains("not found"), "{why}");
    agrees(&world, &request).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_disappears_is_no_fault_of_the_candidate() {
    let world = world();
    let (main, changes) = work(&world);
    let request = squash(&main, &changes[..1]);
    agrees(&world, &request).await;
    world.double.set_access(Access::Hidden);
    let error = failed(&world, &request).await;
    assert!(matches!(error, HostError::AccessDenied { .. }), "{error:?}");
    world.double.set_access(Access::Full);
    agrees(&world, &request).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_repository_is_found_and_redirects_are_not_followed() {
    let world = world();
    let (main, changes) = work(&world);
    world.double.rename("calculator");
    agrees(&world, &squash(&main, &changes)).await;
    world.double.plan("GET", ".git/info/refs", 2, Fault::Status(302));
    let why = why_not(&world, &squash(&main, &changes[1..])).await;
    assert!(why.contains("302"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_the_host_does_not_serve_is_not_called_checked() {
    let world = world();
    let (main, changes) = work(&world);
    let request = squash(&main, &changes[..1]);
    world.double.serve_only_refs(true);
    // The candidate is on no branch yet.
    let why = why_not(&world, &request).await;
    assert!(why.contains("unadvertised object"), "{why}");
    world.double.serve_only_refs(false);
    agrees(&world, &request).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_revoked_is_replaced() {
    let (key, public) = key_pair();
    let credentials = Credentials::app(7, &key).expect("a key");
    let world = World::recomputing_with(credentials, Limits::default(), |double| {
        double.install_app(7, &public, &serde_json::json!({}), &[]);
    });
    let (main, changes) = work(&world);
    agrees(&world, &squash(&main, &changes[..1])).await;
    let tokens = || {
        let log = world.double.log();
        log.iter().filter(|it| it.path.ends_with("/access_tokens") && it.status == 201).count()
    };
    assert_eq!(tokens(), 1);
    world.double.plan("GET", ".git/info/refs", 1, Fault::Status(401));
    agrees(&world, &squash(&main, &changes[1..])).await;
    assert_eq!(tokens(), 2);
}
