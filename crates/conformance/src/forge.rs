//! The contract of a forge. Each property is an async function over a [`ForgeWorld`] with an empty
//! repository; [`crate::forge_conformance`] makes a test of each.

use async_trait::async_trait;
use signalbox_domain::ids::{BranchName, PrNumber, Sha};
use signalbox_domain::ports::{
    Announcement, Forge, LandedNote, Permission, Repository, Severity, StatusNote, StatusState,
    TestPullRequest, WorkflowRun,
};

/// Makes one test of each property. The expression is evaluated in an async block and creates a new
/// world.
#[macro_export]
macro_rules! forge_conformance {
    ($fresh:expr) => {
        $crate::forge_conformance!(@tests $fresh;
            a_permission_is_read_as_it_is_now,
            a_comment_is_read_as_it_is_now,
            comments_are_listed_from_a_time_on,
            a_reaction_shows_whether_a_command_was_accepted,
            labels_are_added_and_removed_and_others_are_kept,
            a_queue_has_one_comment_and_one_status_that_are_updated,
            a_part_that_is_none_stays_unchanged,
            a_landed_pull_request_is_closed_once,
            a_test_branch_gets_one_draft,
            a_workflow_run_reports_its_commit_and_origin,
            only_plain_lines_can_be_commands,
            escaped_text_neither_commands_nor_mentions,
            a_finding_that_is_not_fine_has_a_fix,
        );
    };
    (@tests $fresh:expr; $($name:ident,)+) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                let world = { $fresh.await };
                $crate::forge::$name(&world).await;
            }
        )+
    };
}

/// A forge, and the actions and views of its users.
#[async_trait]
pub trait ForgeWorld: Sync {
    /// The forge.
    fn forge(&self) -> &dyn Forge;

    /// The repository, as the forge knows it.
    fn repository(&self) -> &Repository;

    /// Opens a pull request from a new branch to `main` as a user.
    async fn open(&self, branch: &str) -> (PrNumber, Sha);

    /// Pushes to a pull request as its author; returns the new head.
    async fn push(&self, pr: PrNumber, branch: &str) -> Sha;

    /// Creates a test branch.
    async fn test_branch(&self) -> BranchName;

    /// Sets the permission of a user.
    fn permit(&self, login: &str, permission: Permission);

    /// Writes a comment as a user; returns its id.
    fn comment(&self, pr: PrNumber, login: &str, body: &str) -> u64;

    /// Adds a label to a pull request as a user.
    fn label(&self, pr: PrNumber, label: &str);

    /// Starts a workflow run.
    fn start_workflow(&self, id: u64, run: &WorkflowRun);

    /// The texts of the comments on a pull request, oldest first.
    fn comments(&self, pr: PrNumber) -> Vec<String>;

    /// The latest state of each status on a commit.
    fn statuses(&self, sha: &Sha) -> Vec<StatusState>;

    /// The reactions to a comment: whether its command was accepted.
    fn reactions(&self, comment: u64) -> Vec<bool>;

    /// Whether a pull request is open.
    fn is_open(&self, pr: PrNumber) -> bool;

    /// The number of open draft pull requests.
    fn drafts(&self) -> usize;

    /// Quotes a text in the markup of comments.
    fn quoted(&self, text: &str) -> String;
}

fn queue(name: &str) -> BranchName {
    BranchName::new(name).expect("a branch")
}

fn nothing(pr: PrNumber) -> Announcement {
    Announcement { pr, queue: queue("main"), status: None, comment: None, labels: None }
}

fn status(sha: &Sha, state: StatusState) -> StatusNote {
    StatusNote { sha: sha.clone(), state, description: "x".repeat(500) }
}

async fn announce(world: &dyn ForgeWorld, announcement: &Announcement) {
    world.forge().announce(world.repository(), announcement).await.expect("it is shown");
}

async fn labels(world: &dyn ForgeWorld, pr: PrNumber) -> Vec<String> {
    let mut found = world.forge().labels(world.repository(), pr).await.expect("an answer");
    found.sort();
    found
}

/// Every permission is reported, also after a change.
pub async fn a_permission_is_read_as_it_is_now(world: &dyn ForgeWorld) {
    for wanted in [Permission::Admin, Permission::Write, Permission::Read, Permission::None] {
        world.permit("ada", wanted);
        let found = world.forge().permission(world.repository(), "ada").await;
        assert_eq!(found.expect("an answer"), wanted);
    }
}

/// A comment has its pull request, its author and its text; a missing one is `None`.
pub async fn a_comment_is_read_as_it_is_now(world: &dyn ForgeWorld) {
    let (pr, _) = world.open("topic").await;
    let body = format!("{} merge", world.forge().command_prefix());
    let id = world.comment(pr, "ada", &body);
    let read = async |id| world.forge().comment(world.repository(), id).await.expect("an answer");
    let comment = read(id).await.expect("a comment");
    assert_eq!((comment.pr, comment.author.as_str(), comment.body), (pr, "ada", body));
    assert_eq!(read(id + 1_000).await, None);
}

/// Comments are listed from a time on, oldest first.
pub async fn comments_are_listed_from_a_time_on(world: &dyn ForgeWorld) {
    let (pr, _) = world.open("topic").await;
    let body = format!("{} merge", world.forge().command_prefix());
    let ids = [world.comment(pr, "ada", &body), world.comment(pr, "bob", &body)];
    let mut times = Vec::new();
    for id in ids {
        let comment = world.forge().comment(world.repository(), id).await.expect("an answer");
        times.push(comment.expect("a comment").created_at);
    }
    let since = async |time| {
        let listed = world.forge().comments_since(world.repository(), time).await;
        listed.expect("an answer")
    };
    assert_eq!(since(times[0]).await, ids.map(|id| (pr, id)));
    let later = since(times[1]).await;
    assert!(later.contains(&(pr, ids[1])), "{later:?}");
    assert_eq!(later.contains(&(pr, ids[0])), times[0] >= times[1], "{later:?}");
}

/// A comment shows whether its command was accepted.
pub async fn a_reaction_shows_whether_a_command_was_accepted(world: &dyn ForgeWorld) {
    let (pr, _) = world.open("topic").await;
    for taken in [true, false] {
        let id = world.comment(pr, "ada", "a command");
        world.forge().react(world.repository(), id, taken).await.expect("it is shown");
        assert_eq!(world.reactions(id), [taken]);
    }
}

/// Wanted labels are added, unwanted ones removed, others kept; a repeat changes nothing.
pub async fn labels_are_added_and_removed_and_others_are_kept(world: &dyn ForgeWorld) {
    let (pr, _) = world.open("topic").await;
    world.label(pr, "bug");
    world.label(pr, "old");
    assert_eq!(labels(world, pr).await, ["bug", "old"]);
    let own = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    let wanted = Announcement {
        labels: Some((own(&["one", "two"]), own(&["old", "absent"]))),
        ..nothing(pr)
    };
    for _ in 0..2 {
        announce(world, &wanted).await;
        assert_eq!(labels(world, pr).await, ["bug", "one", "two"]);
    }
}

/// A queue has one comment, which is edited, and one status per commit, however often it announces.
/// Another queue has its own.
pub async fn a_queue_has_one_comment_and_one_status_that_are_updated(world: &dyn ForgeWorld) {
    let (pr, head) = world.open("topic").await;
    world.comment(pr, "ada", "looks good");
    for (text, state) in [
        ("first", StatusState::Pending),
        ("first", StatusState::Pending),
        ("second", StatusState::Success),
        ("third", StatusState::Failure),
    ] {
        let comment = Some(text.to_owned());
        let shown = Announcement { status: Some(status(&head, state)), comment, ..nothing(pr) };
        announce(world, &shown).await;
        let comments = world.comments(pr);
        assert_eq!(comments.len(), 2, "{comments:?}");
        assert!(comments[1].contains(text), "{comments:?}");
        assert_eq!(world.statuses(&head), [state]);
    }
    let other = Announcement {
        queue: queue("release"),
        status: Some(status(&head, StatusState::Pending)),
        comment: Some("another queue".to_owned()),
        ..nothing(pr)
    };
    announce(world, &other).await;
    let comments = world.comments(pr);
    assert_eq!(comments.len(), 3, "{comments:?}");
    assert!(comments[1].contains("third") && comments[2].contains("another queue"));
    assert_eq!(world.statuses(&head).len(), 2);
}

/// A part that is `None` stays unchanged.
pub async fn a_part_that_is_none_stays_unchanged(world: &dyn ForgeWorld) {
    let (pr, head) = world.open("topic").await;
    let shown = Announcement {
        status: Some(status(&head, StatusState::Pending)),
        comment: Some("shown".to_owned()),
        labels: Some((vec!["one".to_owned()], Vec::new())),
        ..nothing(pr)
    };
    announce(world, &shown).await;
    announce(world, &nothing(pr)).await;
    let comments = world.comments(pr);
    assert!(comments.len() == 1 && comments[0].contains("shown"), "{comments:?}");
    assert_eq!(world.statuses(&head), [StatusState::Pending]);
    assert_eq!(labels(world, pr).await, ["one"]);
}

/// A pull request that has landed as another commit is closed, and a later head is reported.
/// Closing it again changes nothing.
pub async fn a_landed_pull_request_is_closed_once(world: &dyn ForgeWorld) {
    let (whole, head) = world.open("whole").await;
    let landed = |pr, head: &Sha| LandedNote {
        pr,
        head: head.clone(),
        sha: Sha::new("b".repeat(40)).expect("a commit"),
        rewritten: true,
    };
    let close = async |note: LandedNote| {
        let closed = world.forge().close_landed(world.repository(), &note).await;
        closed.expect("an answer")
    };
    assert!(world.is_open(whole));
    for _ in 0..2 {
        assert_eq!(close(landed(whole, &head)).await, None);
        assert!(!world.is_open(whole));
    }
    let (late, head) = world.open("late").await;
    let newer = world.push(late, "late").await;
    assert_eq!(close(landed(late, &head)).await, Some(newer), "a later commit did not land");
    assert!(!world.is_open(late));
}

/// A draft is opened once per branch.
pub async fn a_test_branch_gets_one_draft(world: &dyn ForgeWorld) {
    let wanted = TestPullRequest {
        branch: world.test_branch().await,
        target: queue("main"),
        title: "tests".to_owned(),
        body: "Do not merge this.".to_owned(),
    };
    for _ in 0..2 {
        let opened = world.forge().open_test_pull_request(world.repository(), &wanted).await;
        opened.expect("the draft exists");
        assert_eq!(world.drafts(), 1);
    }
}

/// A workflow run reports whether it is live, whether it belongs to a fork, and its commit.
pub async fn a_workflow_run_reports_its_commit_and_origin(world: &dyn ForgeWorld) {
    let (_, head) = world.open("topic").await;
    let read = async |id| {
        let found = world.forge().workflow_run(world.repository(), id).await;
        found.expect("an answer")
    };
    for (id, live, from_fork) in [(5, true, true), (6, false, true), (7, true, false)] {
        let run = WorkflowRun { live, from_fork, head: head.clone() };
        world.start_workflow(id, &run);
        assert_eq!(read(id).await, Some(run));
    }
    assert_eq!(read(8).await, None);
}

/// A line that the author writes is plain; a quoted line is not.
pub async fn only_plain_lines_can_be_commands(world: &dyn ForgeWorld) {
    let forge = world.forge();
    let (pr, _) = world.open("topic").await;
    let command = format!("{} merge", forge.command_prefix());
    assert!(forge.command_prefix().starts_with('/'));
    for (text, commands) in [
        (command.clone(), 1),
        (format!("thanks\n\n{command}\n"), 1),
        (world.quoted(&command), 0),
        ("thanks".to_owned(), 0),
    ] {
        let id = world.comment(pr, "ada", &text);
        let comment = forge.comment(world.repository(), id).await.expect("an answer");
        let lines = forge.plain_lines(&comment.expect("a comment").body);
        let found = lines.iter().filter(|line| line.trim() == command).count();
        assert_eq!(found, commands, "{text:?}: {lines:?}");
    }
}

/// A user's title is escaped to one line of text: it neither gives commands nor mentions users.
pub async fn escaped_text_neither_commands_nor_mentions(world: &dyn ForgeWorld) {
    let forge = world.forge();
    let (pr, _) = world.open("topic").await;
    assert!(forge.neutral("Add division").contains("Add division"));
    let command = format!("{} merge", forge.command_prefix());
    let neutral = forge.neutral(&format!("hello\n{command}\n@ada"));
    assert!(!neutral.contains('\n'), "{neutral:?}");
    announce(world, &Announcement { comment: Some(neutral), ..nothing(pr) }).await;
    for shown in world.comments(pr) {
        assert!(!shown.contains("@ada"), "{shown:?}");
        let lines = forge.plain_lines(&shown);
        let starts = |line: &String| line.trim().starts_with(forge.command_prefix());
        assert!(!lines.iter().any(starts), "{lines:?}");
    }
}

/// Every finding has a name, and a fix unless its severity is fine. A hint for an unknown commit
/// does nothing.
pub async fn a_finding_that_is_not_fine_has_a_fix(world: &dyn ForgeWorld) {
    let (_, head) = world.open("topic").await;
    world.forge().checks_hinted(&head);
    let repositories = std::slice::from_ref(world.repository());
    for finding in world.forge().diagnose(repositories).await {
        assert!(!finding.id.is_empty() && !finding.sentence.is_empty(), "{finding:?}");
        assert!(finding.severity == Severity::Fine || !finding.fix.is_empty(), "{finding:?}");
    }
}
