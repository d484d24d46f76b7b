//! The plain git host on real repositories: its merges are git's own, its landings move the target
//! to what was tested or not at all, and names are only names.
#![expect(clippy::disallowed_methods, reason = "tests make ids and clocks of their own")]

mod checks;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use signalbox_domain::ids::{BranchName, OrgId, OrgSlug, PrNumber, RepoId, RepoName, RunId, Sha};
use signalbox_domain::ports::{
    Built, GitHost, HostError, LandAnswer, Org, PullRequestQuery, Repository,
};
use signalbox_domain::queue::{
    Ahead, BuildCandidate, Candidate, Change, ConflictWith, Land, MergeMethod, PullRequestState,
};
use signalbox_domain::testing::ManualClock;
use signalbox_domain::time::Timestamp;
use signalbox_git::{HostConfig, OpenRequest, PlainGitHost};
use tempfile::TempDir;
use uuid::Uuid;

struct World {
    folder: TempDir,
    host: Arc<PlainGitHost>,
    repository: Repository,
}

fn git_in(folder: &Path, args: &[&str]) -> Output {
    Command::new("git")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
        .args(["-c", "init.defaultBranch=main", "-C"])
        .arg(folder)
        .args(args)
        .output()
        .expect("git can be run")
}

impl World {
    async fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let url = format!("sqlite://{}", folder.path().join("test.db").display());
        let database = signalbox_persistence::connect(&url).await.expect("a database");
        database.migrate().await.expect("migrated");
        let stores = database.stores();
        let slug = OrgSlug::new("acme").expect("a slug");
        let at = Timestamp::from_unix_seconds(0);
        let org = Org { id: OrgId(Uuid::new_v4()), slug, created_at: at };
        stores.orgs.create(&org).await.expect("an organization");
        let root = folder.path().join("git");
        let repository = Repository {
            id: RepoId(Uuid::new_v4()),
            org: org.id,
            name: RepoName::new("git.local", "acme", "calc").expect("a name"),
            path: None,
            created_at: at,
        };
        stores.repos.register(&repository, false).await.expect("a repository");
        for inner in ["git/acme/calc.git", "work"] {
            std::fs::create_dir_all(folder.path().join(inner)).expect("a folder");
        }
        let config = HostConfig { root: Some(root), public_url: "http://localhost".into() };
        let clock = Arc::new(ManualClock::default());
        let host = Arc::new(PlainGitHost::new(config, stores.pull_requests, clock));
        let world = Self { folder, host, repository };
        world.bare(&["init", "-q", "--bare"]);
        world.git(&["init", "-q"]);
        world
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn bare_folder(&self) -> PathBuf {
        self.folder.path().join("git/acme/calc.git")
    }

    fn git(&self, args: &[&str]) -> String {
        let done = git_in(&self.work(), args);
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
    }

    fn bare(&self, args: &[&str]) -> String {
        let done = git_in(&self.bare_folder(), args);
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
    }

    fn commit(&self, files: &[(&str, &str)], title: &str) {
        for (name, text) in files {
            let path = self.work().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", title]);
    }

    fn push(&self, branch: &str) -> Sha {
        let bare = self.bare_folder().display().to_string();
        self.git(&["push", "-q", "-f", &bare, branch]);
        Sha::new(self.git(&["rev-parse", branch])).expect("a commit")
    }

    /// A branch on `from` with one commit; pushed.
    fn branch(&self, name: &str, from: &str, files: &[(&str, &str)]) -> Sha {
        self.git(&["checkout", "-q", "-B", name, from]);
        self.commit(files, &format!("change {name}"));
        self.push(name)
    }

    async fn open(&self, branch: &str) -> Result<PrNumber, HostError> {
        let name = |text: &str| BranchName::new(text).expect("a branch");
        let request = OpenRequest {
            branch: name(branch),
            target: name("main"),
            title: None,
            body: None,
            author: None,
        };
        self.host.open_pull_request(&self.repository, request).await.map(|it| it.number)
    }

    async fn build(&self, build: &BuildCandidate) -> Built {
        self.host.build_candidate(&self.repository, build).await.expect("an answer")
    }

    async fn candidate(&self, build: &BuildCandidate) -> Candidate {
        match self.build(build).await {
            Built::Candidate { candidate, .. } => candidate,
            conflict @ Built::Conflict { .. } => panic!("{conflict:?}"),
        }
    }

    fn tree(&self, commit: &Sha) -> String {
        self.bare(&["rev-parse", &format!("{commit}^{{tree}}")])
    }
}

fn change(pr: u32, head: &Sha) -> Change {
    Change {
        pr: PrNumber(pr),
        head: head.clone(),
        title: format!("change {pr}"),
        body: String::new(),
        author: "ada".into(),
    }
}

fn build(head: &Sha, changes: Vec<Change>, method: MergeMethod) -> BuildCandidate {
    let run = RunId(Uuid::new_v4());
    BuildCandidate {
        run,
        target: BranchName::new("main").expect("a branch"),
        target_head: head.clone(),
        base: head.clone(),
        before: Vec::new(),
        direct: false,
        ahead: Vec::new(),
        changes,
        method,
        branch: BranchName::new(format!("signalbox-merge/pr-1/{run}")).expect("a branch"),
    }
}

fn land(build: &BuildCandidate, candidate: &Candidate) -> Land {
    Land {
        run: build.run,
        target: build.target.clone(),
        expected: build.target_head.clone(),
        candidate: candidate.clone(),
        exact: true,
        changes: build.changes.clone(),
        method: build.method,
    }
}

/// A small generator of numbers: the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Edits files at random: lines, whole files, names.
fn edit(world: &World, numbers: &mut Numbers, mark: &str) {
    for _ in 0..=numbers.below(3) {
        let name = format!("dir{}/file{}.txt", numbers.below(2), numbers.below(4));
        let path = world.work().join(&name);
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        match numbers.below(6) {
            0 => std::fs::remove_file(&path).expect("removed"),
            1 => {
                let to = world.work().join(format!("moved-{mark}-{}.txt", numbers.below(3)));
                std::fs::rename(&path, to).expect("moved");
            }
            _ => {
                let mut lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
                let at = usize::try_from(numbers.below(lines.len().max(1) as u64)).expect("small");
                if let Some(line) = lines.get_mut(at) {
                    *line = format!("{mark} {}", numbers.below(2));
                }
                std::fs::write(&path, lines.join("\n") + "\n").expect("written");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn merges_are_those_of_git_itself() {
    let world = World::new().await;
    let lines: Vec<String> = (0..12).map(|line| format!("line {line}")).collect();
    let text = lines.join("\n") + "\n";
    let files: Vec<String> = (0..8).map(|at| format!("dir{}/file{}.txt", at % 2, at / 2)).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|it| (it.as_str(), text.as_str())).collect();
    world.commit(&files, "base");
    world.push("main");
    let (mut clean, mut conflicts) = (0, 0);
    for seed in 0..60 {
        let mut numbers = Numbers(seed * 7_919 + 1);
        let mut heads = Vec::new();
        for name in ["ours", "theirs"] {
            world.git(&["checkout", "-q", "-B", name, "main"]);
            edit(&world, &mut numbers, name);
            world.commit(&[], name);
            heads.push(world.push(name));
        }
        let request = build(&heads[0], vec![change(1, &heads[1])], MergeMethod::Squash);
        let built = world.build(&request).await;
        world.git(&["checkout", "-q", "-B", "reference", "ours"]);
        let merged = git_in(&world.work(), &["merge", "-q", "--no-edit", "theirs"]);
        if merged.status.success() {
            clean += 1;
            let Built::Candidate { candidate, .. } = built else {
                panic!("seed {seed}: {built:?}")
            };
            assert_eq!(candidate.tree.as_str(), world.git(&["rev-parse", "HEAD^{tree}"]), "{seed}");
        } else {
            conflicts += 1;
            let Built::Conflict { pr, with, paths } = built else {
                panic!("seed {seed}: {built:?}")
            };
            assert_eq!((pr, with), (PrNumber(1), ConflictWith::Target));
            let unmerged = world.git(&["diff", "--name-only", "--diff-filter=U"]);
            let wanted: std::collections::BTreeSet<&str> = unmerged.lines().collect();
            let told = paths.iter().map(String::as_str).collect();
            assert_eq!(wanted, told, "seed {seed}");
            world.git(&["merge", "--abort"]);
        }
    }
    assert!(clean > 10 && conflicts > 10, "{clean} clean, {conflicts} conflicts");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_method_gives_its_own_history_and_the_same_tree() {
    let world = World::new().await;
    world.commit(&[("a.txt", "1\n2\n3\n")], "base");
    world.push("main");
    world.branch("topic", "main", &[("b.txt", "b\n")]);
    world.commit(&[("a.txt", "1\n2\n3\n4\n")], "second commit");
    let topic = world.push("topic");
    let main = world.branch("main", "main", &[("c.txt", "c\n")]);
    let mut trees = Vec::new();
    for (method, commits, parents) in
        [(MergeMethod::Squash, 1, 1), (MergeMethod::MergeCommit, 3, 2), (MergeMethod::Rebase, 2, 1)]
    {
        let request = build(&main, vec![change(1, &topic)], method);
        let candidate = world.candidate(&request).await;
        let range = format!("{main}..{}", candidate.sha);
        assert_eq!(world.bare(&["rev-list", "--count", &range]), commits.to_string(), "{method:?}");
        let line = world.bare(&["rev-list", "--parents", "-n1", candidate.sha.as_str()]);
        assert_eq!(line.split(' ').count(), parents + 1, "{method:?}");
        assert_eq!(world.bare(&["log", "-1", "--format=%an", candidate.sha.as_str()]), "Ada");
        let branch = world.bare(&["rev-parse", &format!("refs/heads/{}", request.branch)]);
        assert_eq!(branch, candidate.sha.as_str());
        trees.push(candidate.tree.clone());
        let again = world.candidate(&request).await;
        assert_eq!(again.tree, candidate.tree, "repeating gives the same tree");
    }
    trees.dedup();
    assert_eq!(trees.len(), 1);
    let rebased = build(&main, vec![change(1, &topic)], MergeMethod::Rebase);
    let rebased = world.candidate(&rebased).await;
    let subjects = world.bare(&["log", "-2", "--format=%s", rebased.sha.as_str()]);
    assert_eq!(subjects, "second commit\nchange topic");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_names_the_first_candidate_ahead_that_it_is_with() {
    let world = World::new().await;
    world.commit(&[("a.txt", "base\n")], "base");
    let main = world.push("main");
    let harmless = world.branch("harmless", "main", &[("b.txt", "b\n")]);
    let one = world.branch("one", "main", &[("a.txt", "one\n")]);
    let other = world.branch("other", "main", &[("a.txt", "other\n")]);
    let first = build(&main, vec![change(1, &harmless)], MergeMethod::Squash);
    let first_built = world.candidate(&first).await;
    let mut second = build(&main, vec![change(2, &one)], MergeMethod::Squash);
    second.ahead = vec![Ahead { run: first.run, sha: first_built.sha.clone() }];
    second.base = first_built.sha.clone();
    let second_built = world.candidate(&second).await;
    let mut third = build(&main, vec![change(3, &other)], MergeMethod::Squash);
    third.ahead = second.ahead.clone();
    third.ahead.push(Ahead { run: second.run, sha: second_built.sha.clone() });
    third.base = second_built.sha.clone();
    let conflict = world.build(&third).await;
    let wanted = Built::Conflict {
        pr: PrNumber(3),
        with: ConflictWith::Ahead(second.run),
        paths: vec!["a.txt".into()],
    };
    assert_eq!(conflict, wanted);
    let stray = world.host.test_branches(&world.repository).await.expect("branches");
    assert_eq!(stray.len(), 2, "a conflict leaves no branch behind");
    let batch = build(&main, vec![change(2, &one), change(3, &other)], MergeMethod::Squash);
    let conflict = world.build(&batch).await;
    let Built::Conflict { pr, with, .. } = conflict else { panic!("{conflict:?}") };
    assert_eq!((pr, with), (PrNumber(3), ConflictWith::Group(PrNumber(2))));
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_land_beside_each_other_and_only_where_they_do_not_meet() {
    let world = World::new().await;
    world.commit(&[("a.txt", "base\n"), ("b.txt", "base\n")], "base");
    let main = world.push("main");
    let one = world.branch("one", "main", &[("a.txt", "one\n")]);
    let two = world.branch("two", "main", &[("b.txt", "two\n")]);
    let both = world.branch("both", "main", &[("a.txt", "both\n"), ("c.txt", "both\n")]);
    for branch in ["one", "two", "both"] {
        world.open(branch).await.expect("opened");
    }
    let first = build(&main, vec![change(1, &one)], MergeMethod::Squash);
    let second = build(&main, vec![change(2, &two)], MergeMethod::Squash);
    let third = build(&main, vec![change(3, &both)], MergeMethod::Squash);
    let landing = land(&first, &world.candidate(&first).await);
    let answer = world.host.land(&world.repository, &landing).await.expect("an answer");
    let LandAnswer::Landed(after_first) = answer else { panic!("{answer:?}") };

    let mut landing = land(&second, &world.candidate(&second).await);
    landing.expected = after_first.sha.clone();
    let exact = world.host.land(&world.repository, &landing).await.expect("an answer");
    assert_eq!(exact, LandAnswer::TargetMoved(after_first), "the tested tree itself cannot land");
    landing.exact = false;
    let answer = world.host.land(&world.repository, &landing).await.expect("an answer");
    let LandAnswer::Landed(after_second) = answer.clone() else { panic!("{answer:?}") };
    let files = ["a.txt", "b.txt"].map(|file| world.bare(&["show", &format!("main:{file}")]));
    assert_eq!(files, ["one", "two"]);
    let again = world.host.land(&world.repository, &landing).await.expect("an answer");
    assert_eq!(again, answer, "an answer that was lost is found again");

    let mut landing = land(&third, &world.candidate(&third).await);
    (landing.expected, landing.exact) = (after_second.sha.clone(), false);
    let answer = world.host.land(&world.repository, &landing).await.expect("an answer");
    assert_eq!(answer, LandAnswer::TargetMoved(after_second), "it is in the way of what landed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_is_put_together_from_lanes_that_have_not_landed() {
    let world = World::new().await;
    world.commit(&[("a.txt", "base\n"), ("b.txt", "base\n")], "base");
    let main = world.push("main");
    let one = world.branch("one", "main", &[("a.txt", "one\n")]);
    let two = world.branch("two", "main", &[("b.txt", "two\n")]);
    let top = world.branch("top", "main", &[("c.txt", "top\n")]);
    let runs = [RunId(Uuid::new_v4()), RunId(Uuid::new_v4())];
    let mut joined = build(&main, vec![change(3, &top)], MergeMethod::Squash);
    joined.before = vec![(runs[0], change(1, &one)), (runs[1], change(2, &two))];
    let candidate = world.candidate(&joined).await;
    let names = world.bare(&["diff", "--name-only", main.as_str(), candidate.sha.as_str()]);
    assert_eq!(names, "a.txt\nb.txt\nc.txt");
    let other = world.branch("other", "main", &[("a.txt", "other\n")]);
    joined.before = vec![(runs[0], change(1, &one)), (runs[1], change(2, &other))];
    let built = world.build(&joined).await;
    let Built::Conflict { pr, with, .. } = built else { panic!("{built:?}") };
    assert_eq!((pr, with), (PrNumber(3), ConflictWith::Ahead(runs[1])));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_reported_on_an_up_to_date_head_is_told() {
    let world = World::new().await;
    world.commit(&[("a.txt", "base\n")], "base");
    let main = world.push("main");
    let head = world.branch("topic", "main", &[("b.txt", "b\n")]);
    let note = ["notes", "--ref=signalbox-statuses", "add", "-m", "test: success"];
    world.bare(&[&note[..], &[head.as_str()]].concat());
    let mut request = build(&main, vec![change(1, &head)], MergeMethod::Squash);
    let Built::Candidate { head_checks, .. } = world.build(&request).await else { panic!() };
    assert_eq!(head_checks, Vec::new(), "nobody asked");
    request.direct = true;
    let Built::Candidate { head_checks, .. } = world.build(&request).await else { panic!() };
    assert_eq!(head_checks.len(), 1);
    assert!(head_checks.iter().all(|it| it.name == "test"));
    let main = world.branch("main", "main", &[("c.txt", "c\n")]);
    let mut behind = build(&main, vec![change(1, &head)], MergeMethod::Squash);
    behind.direct = true;
    let Built::Candidate { head_checks, .. } = world.build(&behind).await else { panic!() };
    assert_eq!(head_checks, Vec::new(), "the head is not on top of the target");
}

#[tokio::test(flavor = "multi_thread")]
async fn landing_moves_the_target_to_what_was_tested_or_not_at_all() {
    let world = World::new().await;
    world.commit(&[("a.txt", "base\n")], "base");
    let main = world.push("main");
    let head = world.branch("topic", "main", &[("b.txt", "b\n")]);
    let pr = world.open("topic").await.expect("opened");
    let request = build(&main, vec![change(pr.0, &head)], MergeMethod::Squash);
    let candidate = world.candidate(&request).await;
    let order = land(&request, &candidate);
    let landing = async |order: &Land| world.host.land(&world.repository, order).await;

    world.commit(&[("b.txt", "pushed meanwhile\n")], "more");
    world.push("topic");
    assert_eq!(landing(&order).await.expect("an answer"), LandAnswer::HeadMoved { pr });
    assert_eq!(world.bare(&["rev-parse", "main"]), main.as_str(), "not touched");
    world.bare(&["update-ref", "refs/heads/topic", head.as_str()]);

    let outside = world.branch("main", "main", &[("outside.txt", "x\n")]);
    let answer = landing(&order).await.expect("an answer");
    assert!(matches!(&answer, LandAnswer::TargetMoved(it) if it.sha == outside), "{answer:?}");

    // The same content under another commit: the tree is still the tested one.
    world.bare(&["update-ref", "refs/heads/main", main.as_str()]);
    let tree = world.tree(&main);
    let twin = world.bare(&[
        "-c",
        "user.name=x",
        "-c",
        "user.email=x",
        "commit-tree",
        &tree,
        "-p",
        main.as_str(),
        "-m",
        "twin",
    ]);
    world.bare(&["update-ref", "refs/heads/main", &twin]);
    let on_twin = Land { expected: Sha::new(twin).expect("a commit"), ..order.clone() };
    let LandAnswer::Landed(head) = landing(&on_twin).await.expect("an answer") else {
        panic!("the tree is the tested one");
    };
    assert_eq!(head.tree, candidate.tree);
    assert_eq!(world.bare(&["rev-parse", "main^{tree}"]), candidate.tree.as_str());

    let again = landing(&on_twin).await.expect("an answer");
    assert_eq!(again, LandAnswer::Landed(head), "a repeat whose first answer was lost");

    // On the head that was expected it is the candidate itself; repeating it moves nothing.
    world.bare(&["update-ref", "refs/heads/main", main.as_str()]);
    for _ in 0..2 {
        let seen = world.host.pull_request(&world.repository, &PullRequestQuery::Number(pr)).await;
        assert_eq!(seen.expect("an answer").expect("it").state, PullRequestState::Merged);
        let landed = landing(&Land { changes: Vec::new(), ..order.clone() }).await;
        let LandAnswer::Landed(head) = landed.expect("an answer") else { panic!("it lands") };
        assert_eq!((&head.sha, &head.tree), (&candidate.sha, &candidate.tree));
        assert_eq!(world.bare(&["rev-parse", "main"]), candidate.sha.as_str());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_only_names() {
    let world = World::new().await;
    world.commit(&[("a.txt", "base\n")], "base");
    let main = world.push("main");
    let evil = "x;touch${IFS}pwned;$(touch${IFS}pwned)`id`|\"'&&";
    let head = world.branch(
        evil,
        "main",
        &[("--upload-pack=touch pwned", "x\n"), ("$(touch pwned)", "y\n")],
    );
    world.git(&["commit", "-q", "--amend", "-m", "$(touch pwned) `touch pwned`\n\n--author=evil"]);
    let head2 = world.push(evil);
    assert_ne!(head, head2);
    let pr = world.open(evil).await.expect("opened");
    let request = build(&main, vec![change(pr.0, &head2)], MergeMethod::Squash);
    let candidate = world.candidate(&request).await;
    let landed = world.host.land(&world.repository, &land(&request, &candidate)).await;
    assert!(matches!(landed, Ok(LandAnswer::Landed(_))), "{landed:?}");
    let folders = [world.work(), world.bare_folder(), PathBuf::from(".")];
    assert!(folders.iter().all(|folder| !folder.join("pwned").exists()));
    assert!(BranchName::new("--help").is_err());
    let missing = world.open("no-such-branch").await;
    assert!(matches!(missing, Err(HostError::NotFound { .. })), "{missing:?}");
}
