//! Comments, labels, statuses, permissions, workflow runs.

use serde_json::json;
use signalbox_domain::ids::BranchName;
use signalbox_domain::ports::{
    Announcement, Forge, Permission, StatusNote, StatusState, TestPullRequest,
};
use signalbox_domain::queue::MergeMethod;

use crate::world::{World, config};
use signalbox_conformance::git_host::build;

#[tokio::test(flavor = "multi_thread")]
async fn there_is_one_comment_which_is_edited() {
    let world = World::new();
    world.commit(&[("a.txt", "base\n")], "base");
    world.push("main");
    let topic = world.open("topic", &[("b.txt", "b\n")]);
    let number = u64::from(topic.pr.0);
    // Another user writes the same mark: their comment is not touched.
    world.double.comment(number, "mallory", "<!-- signalbox queue main -->\nhello");
    let show = async |text: &str, labels: Option<(&[&str], &[&str])>| {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        let wanted = Announcement {
            pr: topic.pr,
            queue: BranchName::new("main").expect("a branch"),
            status: Some(StatusNote {
                sha: topic.head.clone(),
                state: StatusState::Pending,
                description: "x".repeat(500),
            }),
            comment: Some(text.to_owned()),
            labels: labels.map(|(wanted, unwanted)| (owned(wanted), owned(unwanted))),
        };
        world.host.announce(&world.repository, &wanted).await.expect("shown");
    };
    show("first", Some((&["a", "b"], &["c"]))).await;
    show("second", Some((&["b", "c"], &["a", "z"]))).await;
    let texts = || world.double.comments(number).into_iter().map(|it| it.1).collect::<Vec<_>>();
    assert_eq!(texts().len(), 2);
    assert_eq!(texts()[0], "<!-- signalbox queue main -->\nhello");
    assert_eq!(texts()[1], "<!-- signalbox queue main -->\nsecond");
    assert_eq!(world.double.labels(number), ["b", "c"]);
    let statuses = world.double.statuses(topic.head.as_str());
    assert_eq!(statuses, [("signalbox/main".to_owned(), "pending".to_owned())]);

    // A restarted server finds its own comment.
    let token = signalbox_github::Credentials::token(crate::world::TOKEN).expect("a token");
    let config = config(&world.double.url, token);
    let restarted = signalbox_github::GitHubHost::new(config, world.clock.clone()).expect("a host");
    let wanted = Announcement {
        pr: topic.pr,
        queue: BranchName::new("main").expect("a branch"),
        status: None,
        comment: Some("third".to_owned()),
        labels: None,
    };
    restarted.announce(&world.repository, &wanted).await.expect("shown");
    assert_eq!(texts().len(), 2);
    assert_eq!(texts()[1], "<!-- signalbox queue main -->\nthird");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_branch_gets_one_draft() {
    let world = World::new();
    world.commit(&[("a.txt", "base\n")], "base");
    let main = world.push("main");
    let topic = world.open("topic", &[("b.txt", "b\n")]);
    let request = build(&main, vec![topic], MergeMethod::Squash);
    world.candidate(&request).await;
    let wanted = TestPullRequest {
        branch: request.branch,
        target: request.target,
        title: "tests".into(),
        body: "nothing to see".into(),
    };
    for _ in 0..2 {
        let opened = world.host.open_test_pull_request(&world.repository, &wanted).await;
        opened.expect("opened, or it already exists");
    }
    assert_eq!(world.double.drafts(), ["tests"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn permissions_are_those_of_the_host() {
    let world = World::new();
    world.commit(&[("a.txt", "base\n")], "base");
    world.push("main");
    for (login, word, wanted) in [
        ("root", "admin", Permission::Admin),
        ("ada", "write", Permission::Write),
        ("bob", "read", Permission::Read),
        ("eve", "none", Permission::None),
        ("odd", "something new", Permission::None),
    ] {
        world.double.permit(login, word);
        let has = world.host.permission(&world.repository, login).await.expect("an answer");
        assert_eq!(has, wanted, "{login}");
    }
    let topic = world.open("topic", &[("b.txt", "b\n")]);
    let id = world.double.comment(u64::from(topic.pr.0), "ada", "/signalbox merge");
    let comment = world.host.comment(&world.repository, id).await.expect("an answer");
    let comment = comment.expect("a comment");
    assert_eq!((comment.pr, comment.author.as_str()), (topic.pr, "ada"));
    world.host.react(&world.repository, id, true).await.expect("shown");
    assert_eq!(world.double.reactions(id), ["+1"]);
    assert_eq!(world.host.comment(&world.repository, 4).await.expect("an answer"), None);
    let sha = topic.head.as_str();
    world.double.add_workflow_run(
        5,
        json!({
            "id": 5, "status": "in_progress", "event": "pull_request", "head_sha": sha,
            "head_repository": {"full_name": "eve/calc"}, "repository": {"full_name": "acme/calc"},
        }),
    );
    let run = world.host.workflow_run(&world.repository, 5).await.expect("an answer");
    assert!(run.is_some_and(|run| run.live && run.from_fork && run.head == topic.head));
    assert_eq!(world.host.workflow_run(&world.repository, 6).await.expect("an answer"), None);
}
