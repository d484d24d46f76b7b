//! The page with the output of a check, while it runs and afterwards.

use signalbox_domain::ids::{RunId, Sha};
use signalbox_domain::ports::{CheckOutput, Clock, QueueRef};
use signalbox_domain::queue::{CheckConclusion, CheckReport, CheckStatus, Fact};
use signalbox_domain::time::Span;

use crate::pull_request::{PAGE, house};
use crate::support::{House, calc, main_branch};

/// Reports about the check `test` of the first pull request.
struct Running<'a> {
    house: &'a House,
    queue: QueueRef,
    run: RunId,
    sha: Sha,
}

impl<'a> Running<'a> {
    async fn of(house: &'a House) -> Self {
        let (repo, branch) = (calc(), main_branch());
        let queue = house.pages.queues.queue(&house.caller, &repo, &branch).await;
        let queue = queue.expect("a queue");
        let run = queue.runs().next().expect("a run");
        let sha = run.candidate.as_ref().expect("a candidate").sha.clone();
        Self {
            house,
            queue: QueueRef { org: house.caller.org, id: queue.header.id },
            run: run.id,
            sha,
        }
    }

    async fn reports(&self, status: CheckStatus) {
        let is_over = status == CheckStatus::Completed;
        let report = CheckReport {
            name: "test".to_owned(),
            status,
            conclusion: is_over.then_some(CheckConclusion::Failure),
            url: format!("http://localhost/v1/testRuns/{}/checks/test/output", self.run),
            summary: None,
            at: self.house.clock.now(),
            excused: Vec::new(),
        };
        let (run, sha, checks) = (self.run, self.sha.clone(), vec![report]);
        let fact = Fact::ChecksReported { run, sha, checks, read: false };
        self.house.pages.queues.absorb(self.queue, fact).await.expect("absorbed");
    }

    async fn prints(&self, text: &str) {
        self.house.clock.advance(Span::seconds(2));
        let output = CheckOutput {
            org: self.house.caller.org,
            run: self.run,
            check: "test".to_owned(),
            text: text.to_owned(),
            at: self.house.clock.now(),
        };
        self.house.stores.queue.check_log.write(&output).await.expect("written");
    }
}

/// The number after `since=` in the address of the updates.
fn version(page: &str) -> &str {
    let rest = page.split_once("since=").expect("updates").1;
    rest.split_once('"').expect("an end").0
}

#[actix_web::test]
async fn it_grows_while_the_check_runs() {
    let house = house(&["a"]).await;
    let admin = house.admin().await;
    let running = Running::of(&house).await;
    running.reports(CheckStatus::InProgress).await;
    let page = admin.get(&format!("{PAGE}1")).await;
    let start = page.body.find("/acme/queue/output?").expect("a link to the output");
    let link = page.body[start..].split_once('"').expect("an end").0;
    let link = link.replace("&#38;", "&").replace("&amp;", "&");
    let empty = admin.get(&link).await;
    assert!(empty.body.contains("The check has not printed anything yet."), "{}", empty.body);
    let before = version(&empty.body).to_owned();

    running.prints("compiling <b>calc</b>\n").await;
    let some = admin.get(&link).await;
    assert!(some.body.contains("compiling &#60;b&#62;calc"), "{}", some.body);
    assert!(some.body.contains("data-follow") && some.body.contains("the latest output"));
    assert_ne!(version(&some.body), before, "its readers see it");

    running.prints("compiling\nrunning\nassertion failed\n").await;
    running.reports(CheckStatus::Completed).await;
    let whole = admin.get(&link).await;
    assert!(whole.body.contains("running\nassertion failed"), "{}", whole.body);
    assert!(!whole.body.contains("data-follow") && !whole.body.contains("the latest output"));
    assert!(!whole.body.contains("since="), "it does not change any more");
}

#[actix_web::test]
async fn its_lines_can_be_searched() {
    let house = house(&["a"]).await;
    let admin = house.admin().await;
    let running = Running::of(&house).await;
    running.reports(CheckStatus::InProgress).await;
    let lines: Vec<String> = (1..=100).map(|it| format!("case {it} <ok>")).collect();
    running.prints(&lines.join("\n")).await;
    let path = format!(
        "/acme/queue/output?repo=git.test%2Facme%2Fcalc&branch=main&run={}&check=test",
        running.run
    );
    let found = admin.get(&format!("{path}&q=CASE+77+%3C")).await;
    assert!(found.body.contains("1 of 100 lines match:"), "{}", found.body);
    assert!(found.body.contains("&#62;  77  case 77 &#60;ok&#62;"), "{}", found.body);
    assert!(found.body.contains("value=\"CASE 77 &#60;\""), "{}", found.body);
    let none = admin.get(&format!("{path}&q=%3Cscript%3E")).await;
    assert!(none.body.contains("No lines match. 100 lines searched."), "{}", none.body);
    assert!(!none.body.contains("<script>alert"), "{}", none.body);
}

#[actix_web::test]
async fn only_the_output_of_runs_of_the_queue_can_be_watched() {
    let house = house(&["a"]).await;
    let admin = house.admin().await;
    let running = Running::of(&house).await;
    let watch = async |queue: uuid::Uuid, run: uuid::Uuid| {
        admin.get(&format!("/ui/events?topics=output:{queue}:{run}")).await.status
    };
    let (queue, run) = (running.queue.id.0, running.run.0);
    for (queue, run) in [(queue, queue), (run, run)] {
        assert_eq!(watch(queue, run).await, 404);
    }
}

#[actix_web::test]
async fn a_failed_check_that_printed_nothing_has_no_section() {
    let house = house(&["a"]).await;
    let admin = house.admin().await;
    let running = Running::of(&house).await;
    running.reports(CheckStatus::InProgress).await;
    for (text, sections) in [("", 0), ("assertion failed", 1)] {
        running.prints(text).await;
        running.reports(CheckStatus::Completed).await;
        let page = admin.get(&format!("{PAGE}1")).await;
        assert_eq!(page.body.matches("Output of test</h2>").count(), sections, "{}", page.body);
    }
}
