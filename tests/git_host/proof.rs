//! What lands is computed again from the target and the heads: a candidate with any other content
//! does not land.

use std::path::Path;
use std::process::Command;

use signalbox_conformance::git_host::{HostWorld, build, land};
use signalbox_domain::ids::{Sha, TreeId};
use signalbox_domain::ports::{Built, GitHost, LandAnswer};
use signalbox_domain::queue::{Candidate, Change, Composition, MergeMethod, Mismatch};

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

#[tokio::test(flavor = "multi_thread")]
async fn any_changed_blob_mode_or_path_is_found_before_it_lands() {
    for (seed, method) in [MergeMethod::Squash, MergeMethod::MergeCommit, MergeMethod::Rebase]
        .into_iter()
        .cycle()
        .take(12)
        .enumerate()
    {
        let mut numbers = Numbers(u64::try_from(seed).expect("small") * 7_919 + 1);
        let world = World::new().await;
        let files: Vec<String> = (0..6).map(|at| format!("dir{}/{at}.txt", at % 2)).collect();
        let lines: Vec<String> = (0..20).map(|line| format!("line {line}\n")).collect();
        let text = lines.concat();
        let mut base: Vec<(&str, &str)> =
            files.iter().map(|it| (it.as_str(), text.as_str())).collect();
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
        let Ok(Built::Candidate { candidate, .. }) = built else {
            panic!("seed {seed}: {built:?}")
        };
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
