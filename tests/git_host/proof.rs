//! What lands is computed again from the target and the heads: a candidate with any other content
//! does not land.

use std::path::Path;
use std::process::Command;

use signalbox_conformance::git_host::{HostWorld, build, land};
use signalbox_domain::ids::{BranchName, PrNumber, Sha, TreeId};
use signalbox_domain::ports::{Built, GitHost, LandAnswer, PastLanding};
use signalbox_domain::queue::{
    BuildCandidate, Candidate, Change, Composition, CompositionCheck, LandingProof, MergeMethod,
    Mismatch,
};
use signalbox_git::{LandingRecord, verify_landing};
use signalbox_wording::{compare_landing, undo_landing};

use crate::World;

/// A reproducible series of numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("32 bits") % end
    }
}

/// Calls git in a bare repository with an index of its own.
fn git(bare: &Path, args: &[&str]) -> String {
    let done = Command::new("git")
        .arg("--git-dir")
        .arg(bare)
        .arg("--work-tree")
        .arg(bare)
        .env("GIT_INDEX_FILE", bare.join("index-of-the-test"))
        .args(["-c", "user.name=Eve", "-c", "user.email=eve@acme.example"])
        .args(args)
        .output()
        .expect("git can be run");
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
}

/// A commit with the candidate's parents, and one blob, mode or path changed; what was changed.
fn changed(bare: &Path, candidate: &Candidate, numbers: &mut Numbers) -> (Candidate, String) {
    let of = candidate.sha.as_str();
    git(bare, &["read-tree", of]);
    let listed = git(bare, &["ls-tree", "-r", of]);
    let lines: Vec<&str> = listed.lines().collect();
    let line = lines[numbers.below(lines.len())];
    let (about, path) = line.split_once('\t').expect("a path");
    let about: Vec<&str> = about.split(' ').collect();
    let [mode, _, id] = about.as_slice() else { panic!("{line}") };
    let other = git(bare, &["rev-parse", "main:never.txt"]);
    let put = |mode: &str, id: &str, path: &str| {
        git(bare, &["update-index", "--add", "--cacheinfo", &format!("{mode},{id},{path}")]);
    };
    let kind = ["blob", "mode", "link", "path", "more", "less"][numbers.below(6)];
    match kind {
        "blob" if *id == other => put("100755", id, path),
        "blob" => put(mode, &other, path),
        "mode" => put(if *mode == "100644" { "100755" } else { "100644" }, id, path),
        "link" => put("120000", id, path),
        "more" => put(mode, id, "more.txt"),
        "path" | "less" => {
            git(bare, &["update-index", "--force-remove", "--", path]);
            if kind == "path" {
                put(mode, id, "elsewhere/moved.txt");
            }
        }
        other => panic!("{other}"),
    }
    let tree = git(bare, &["write-tree"]);
    let parents = git(bare, &["show", "-s", "--format=%P", of]);
    let mut args = vec!["commit-tree", &tree, "-m", "wrong"];
    for parent in parents.split(' ') {
        args.extend(["-p", parent]);
    }
    let sha = Sha::new(git(bare, &args)).expect("a commit");
    let wrong = Candidate { sha, tree: TreeId::new(tree).expect("a tree") };
    (wrong, format!("{kind} of {path}"))
}

/// Three changes of the same few files, the newest target, and their candidate on it.
async fn composed(
    world: &World,
    method: MergeMethod,
    numbers: &mut Numbers,
) -> (Sha, BuildCandidate, Candidate) {
    let files: Vec<String> = (0..6).map(|at| format!("dir{}/{at}.txt", at % 2)).collect();
    let lines: Vec<String> = (0..20).map(|line| format!("line {line}\n")).collect();
    let text = lines.concat();
    let mut base: Vec<(&str, &str)> = files.iter().map(|it| (it.as_str(), text.as_str())).collect();
    base.push(("never.txt", "never changed\n"));
    world.commit(&base, "base");
    let before = world.push("main");
    let mut changes = Vec::new();
    for at in 0..3 {
        let name = format!("topic-{at}");
        let line = numbers.below(6) + at * 7;
        let edited = text.replace(&format!("line {line}\n"), &format!("{name}\n"));
        let own = format!("own-{at}.txt");
        let path = files[numbers.below(files.len())].as_str();
        world.branch(&name, before.as_str(), &[(path, &edited), (&own, "own\n")]);
        let (head, pr) = (world.push(&name), world.open(&name).await);
        let title = name.clone();
        changes.push(Change { pr, head, title, body: String::new(), author: "ada".into() });
    }
    world.git(&["checkout", "-q", "main"]);
    world.commit(&[("landed.txt", "since then\n")], "since then");
    let main = world.push("main");
    let request = build(&main, changes, method);
    let built = world.host.build_candidate(&world.repository, &request).await;
    let Ok(Built::Candidate { candidate, .. }) = built else { panic!("{method:?}: {built:?}") };
    (main, request, candidate)
}

const METHODS: [MergeMethod; 3] =
    [MergeMethod::Squash, MergeMethod::MergeCommit, MergeMethod::Rebase];

#[tokio::test(flavor = "multi_thread")]
async fn any_changed_blob_mode_or_path_is_found_before_it_lands() {
    for (seed, method) in METHODS.into_iter().cycle().take(12).enumerate() {
        let mut numbers = Numbers(u64::try_from(seed).expect("small") * 7_919 + 1);
        let world = World::new().await;
        let (main, request, candidate) = composed(&world, method, &mut numbers).await;
        for _ in 0..4 {
            let (wrong, what) = changed(&world.bare_folder(), &candidate, &mut numbers);
            let answer = world.host.land(&world.repository, &land(&request, &wrong)).await;
            let Ok(LandAnswer::Mismatch(mismatch)) = &answer else {
                panic!("seed {seed}, {method:?}, {what}: {answer:?}")
            };
            let Mismatch { base, commit, found, expected, paths } = mismatch;
            assert_eq!((base, commit, found), (&main, &wrong.sha, &wrong.tree), "{what}");
            assert_eq!(expected.as_ref(), Some(&candidate.tree), "{what}");
            assert!(!paths.is_empty() && paths.len() < 3, "{what}: {paths:?}");
            assert_eq!(world.bare(&["rev-parse", "main"]), main.as_str(), "nothing has landed");
        }
        // A candidate without one of its pull requests, which the request names.
        let without = build(&main, request.changes[..2].to_vec(), method);
        let built = world.host.build_candidate(&world.repository, &without).await;
        let Ok(Built::Candidate { candidate: short, .. }) = built else { panic!("{built:?}") };
        let answer = world.host.land(&world.repository, &land(&request, &short)).await;
        assert!(matches!(answer, Ok(LandAnswer::Mismatch(_))), "seed {seed}: {answer:?}");
        let answer = world.host.land(&world.repository, &land(&request, &candidate)).await;
        let Ok(LandAnswer::Landed(head, composition)) = answer else { panic!("{answer:?}") };
        assert_eq!((head.sha, composition), (candidate.sha, Some(Composition::recomputed())));
    }
}

/// Every wrong commit that has landed is found afterwards, and the commands of the page undo it.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_landing_is_found_afterwards_and_undone() {
    for (seed, method) in METHODS.into_iter().cycle().take(6).enumerate() {
        let mut numbers = Numbers(u64::try_from(seed).expect("small") * 15_485_863 + 1);
        let world = World::new().await;
        let (main, request, candidate) = composed(&world, method, &mut numbers).await;
        let answer = world.host.land(&world.repository, &land(&request, &candidate)).await;
        assert!(matches!(answer, Ok(LandAnswer::Landed(..))), "{answer:?}");
        let proof = LandingProof {
            base: main.clone(),
            changes: request.changes.iter().map(|it| (it.pr, it.head.clone())).collect(),
            method,
            exact: true,
            composition: None,
            mismatch: None,
        };
        let prove = async |landed: &Candidate, proof: &LandingProof| {
            let landing = PastLanding { landed: landed.clone(), proof: proof.clone() };
            world.host.prove(&world.repository, &landing).await.expect("an answer")
        };
        let bare = world.bare_folder();
        assert_eq!(prove(&candidate, &proof).await, Ok(Composition::recomputed()));
        let objects = git(&bare, &["count-objects"]);
        assert_eq!(prove(&candidate, &proof).await, Ok(Composition::recomputed()));
        assert_eq!(git(&bare, &["count-objects"]), objects, "a second proof writes nothing");

        // A record without one of its pull requests, and a head that is gone.
        let mut short = proof.clone();
        short.changes.pop();
        assert!(prove(&candidate, &short).await.is_err(), "{method:?}");
        let mut gone = proof.clone();
        gone.changes[0].1 = Sha::new("1".repeat(40)).expect("a commit");
        let unknown = prove(&candidate, &gone).await.expect("not a wrong one");
        assert_eq!(unknown.check, CompositionCheck::NotChecked);
        assert!(unknown.why_not.is_some_and(|why| why.contains(&"1".repeat(40))));

        // Something else is on the target, and a later commit on top of it.
        let (wrong, what) = changed(&bare, &candidate, &mut numbers);
        git(&bare, &["update-ref", "refs/heads/main", wrong.sha.as_str()]);
        let mismatch = prove(&wrong, &proof).await.expect_err(&what);
        assert_eq!((&mismatch.base, &mismatch.commit), (&main, &wrong.sha), "{what}");
        assert_eq!(mismatch.expected.as_ref(), Some(&candidate.tree), "{what}");
        assert!(!mismatch.paths.is_empty(), "{what}");
        let clone = world.folder().join("undo");
        std::fs::create_dir(&clone).expect("a folder");
        let shell = |script: &str| {
            let done = Command::new("sh")
                .args(["-c", script])
                .current_dir(&clone)
                .envs([("GIT_AUTHOR_NAME", "Eve"), ("GIT_AUTHOR_EMAIL", "eve@acme.example")])
                .envs([("GIT_COMMITTER_NAME", "Eve"), ("GIT_COMMITTER_EMAIL", "eve@acme.example")])
                .output()
                .expect("a shell");
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
            assert!(done.status.success(), "{what}: {script}: {}", text(&done.stderr));
            text(&done.stdout)
        };
        shell(&format!("git clone -q '{}' .", bare.display()));
        shell(
            "echo later >later.txt && git add . && git commit -qm later && git push -q origin main",
        );
        // A tag of the same name, a configuration that changes patches, and a second attempt.
        shell("git push -q origin main~1:refs/tags/main");
        shell("git config diff.noprefix true && git config color.diff always");
        let branch = BranchName::new("main").expect("a branch");
        let prs: Vec<PrNumber> = request.changes.iter().map(|it| it.pr).collect();
        assert!(shell(&compare_landing(&branch, &mismatch)).contains("diff --git"), "{what}");
        shell(&undo_landing(&branch, &prs, &mismatch));
        let left = shell(&format!("git diff --name-only {main} HEAD"));
        assert_eq!(left, "later.txt", "{method:?}, {what}: only the later commit is left");
        let again = undo_landing(&branch, &prs, &mismatch);
        shell("git switch -q --no-track -c mine refs/remotes/origin/main");
        shell(&format!("! ( {again} ) 2>/dev/null"));
        let made = shell("git log --oneline mine ^refs/remotes/origin/main");
        assert_eq!(made, "", "a failed step ends it");
    }
}

/// The statements that do not hold.
async fn faults(clone: &Path, record: &LandingRecord) -> Vec<String> {
    let steps = verify_landing(clone, record).await.expect("a clone");
    let faults =
        steps.into_iter().filter_map(|it| Some(format!("{}: {}", it.statement, it.fault?)));
    faults.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_landing_is_verified_in_a_clone_and_tampering_is_found() {
    for (seed, method) in METHODS.into_iter().enumerate() {
        let mut numbers = Numbers(u64::try_from(seed).expect("small") * 104_729 + 1);
        let world = World::new().await;
        let (main, request, candidate) = composed(&world, method, &mut numbers).await;
        let answer = world.host.land(&world.repository, &land(&request, &candidate)).await;
        assert!(matches!(answer, Ok(LandAnswer::Landed(..))), "{answer:?}");
        let changes = request.changes.iter().map(|it| (it.pr, it.head.clone())).collect();
        let record = LandingRecord {
            sha: candidate.sha.clone(),
            tested_tree: Some(candidate.tree.clone()),
            landed_tree: candidate.tree.clone(),
            branch: BranchName::new("main").expect("a branch"),
            proof: LandingProof {
                base: main,
                changes,
                method,
                exact: true,
                composition: None,
                mismatch: None,
            },
        };
        let bare = world.bare_folder();
        let objects = || git(&bare, &["count-objects"]);
        let before = objects();
        assert_eq!(faults(&bare, &record).await, [""; 0], "{method:?}");
        // A linked working tree of a clone.
        let (clone, linked) = (world.folder().join("clone"), world.folder().join("linked"));
        let path = |path: &Path| path.display().to_string();
        git(&bare, &["clone", "-q", "--mirror", &path(&bare), &path(&clone.join(".git"))]);
        git(&clone.join(".git"), &["worktree", "add", "-q", "--detach", &path(&linked)]);
        assert_eq!(faults(&clone, &record).await, [""; 0], "{method:?}");
        assert_eq!(faults(&linked, &record).await, [""; 0], "{method:?}");
        assert_eq!(objects(), before, "nothing is written to the clone");

        // Another commit than the recorded one, also if the clone replaces it.
        let (wrong, what) = changed(&bare, &candidate, &mut numbers);
        git(&bare, &["replace", wrong.sha.as_str(), candidate.sha.as_str()]);
        let other = LandingRecord {
            sha: wrong.sha.clone(),
            landed_tree: wrong.tree.clone(),
            ..record.clone()
        };
        let found = faults(&bare, &other).await;
        assert!(found.iter().any(|it| it.contains("only these changes")), "{what}: {found:?}");
        assert!(found.iter().any(|it| it.contains("the tested tree")), "{what}: {found:?}");
        assert!(found.iter().any(|it| it.contains("recorded changes")), "{what}: {found:?}");
        // A record without one of the changes, and with another former head.
        let mut short = record.clone();
        short.proof.changes.pop();
        assert!(!faults(&bare, &short).await.is_empty(), "{method:?}");
        let mut late = record.clone();
        late.proof.base = wrong.sha.clone();
        let found = faults(&bare, &late).await;
        assert!(found.iter().any(|it| it.contains("descends")), "{found:?}");
        // A head that was not fetched.
        let mut unknown = record.clone();
        let missing = Sha::new("1".repeat(40)).expect("a commit");
        unknown.proof.changes[0].1 = missing.clone();
        let found = faults(&bare, &unknown).await;
        assert!(found[0].contains("git fetch origin") && found[0].contains(missing.as_str()));
        // A target that was moved.
        git(&bare, &["update-ref", "refs/heads/main", wrong.sha.as_str()]);
        let found = faults(&bare, &record).await;
        assert!(found.len() == 1 && found[0].contains("was moved"), "{found:?}");
        git(&bare, &["update-ref", "refs/heads/main", candidate.sha.as_str()]);
        let other = BranchName::new("release").expect("a branch");
        let found = faults(&bare, &LandingRecord { branch: other, ..record.clone() }).await;
        assert!(found.len() == 1 && found[0].contains("no branch release"), "{found:?}");
        // A tree, and then a file, whose content is not that of its id.
        let object = |id: &str| bare.join("objects").join(&id[..2]).join(&id[2..]);
        let tree = git(&bare, &["rev-parse", &format!("{}:dir0", candidate.sha)]);
        let other = git(&bare, &["rev-parse", &format!("{}:dir1", candidate.sha)]);
        let kept = std::fs::read(object(&tree)).expect("a loose object");
        std::fs::remove_file(object(&tree)).expect("removed");
        std::fs::copy(object(&other), object(&tree)).expect("replaced");
        let found = faults(&bare, &record).await;
        assert!(found.iter().any(|it| it.contains("intact")), "{found:?}");
        std::fs::remove_file(object(&tree)).expect("removed");
        std::fs::write(object(&tree), kept).expect("restored");
        assert_eq!(faults(&bare, &record).await, [""; 0], "{method:?}");
        let own = git(&bare, &["rev-parse", &format!("{}:own-0.txt", candidate.sha)]);
        let never = git(&bare, &["rev-parse", &format!("{}:never.txt", candidate.sha)]);
        std::fs::remove_file(object(&own)).expect("a loose object");
        std::fs::copy(object(&never), object(&own)).expect("replaced");
        let found = faults(&bare, &record).await;
        assert!(found.iter().any(|it| it.contains("intact")), "{found:?}");
    }
}

/// A user who may push may push refs/replace, too: then git shows one commit for another.
#[tokio::test(flavor = "multi_thread")]
async fn a_replacement_changes_no_candidate_and_no_landing() {
    for (seed, method) in METHODS.into_iter().enumerate() {
        let mut numbers = Numbers(u64::try_from(seed).expect("small") * 15_485_863 + 1);
        let world = World::new().await;
        let (_, request, candidate) = composed(&world, method, &mut numbers).await;
        let bare = world.bare_folder();
        let (wrong, what) = changed(&bare, &candidate, &mut numbers);
        for replaced in [&request.changes[0].head, &request.base, &candidate.sha] {
            git(&bare, &["replace", "-f", replaced.as_str(), wrong.sha.as_str()]);
        }
        let built = world.host.build_candidate(&world.repository, &request).await;
        let Ok(Built::Candidate { candidate: again, .. }) = built else { panic!("{built:?}") };
        assert_eq!(again.tree, candidate.tree, "{what}");
        let answer = world.host.land(&world.repository, &land(&request, &candidate)).await;
        let Ok(LandAnswer::Landed(head, _)) = answer else { panic!("{answer:?}") };
        assert_eq!(head.tree, candidate.tree, "{what}");
    }
}
