//! Prints public events as lines, and collects the test runs that they report.

use serde_json::Value;
use signalbox_domain::ports::PublicEvent;
use signalbox_domain::queue::{PrState, QueuedReason, Reason};
use signalbox_terminal::say;
use signalbox_wording::{Named as _, reason};

use crate::DemoError;
use crate::Running;
use crate::client::Client;
use crate::scenario::Scenario;
use crate::story::Pr;

/// A test run that was started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The pull requests that are tested together.
    pub(crate) prs: Vec<u32>,
    /// Whether it looks for the culprit of a failed batch.
    pub(crate) bisection: bool,
}

/// Prints the events of a scenario, and collects its test runs.
pub(crate) struct Narrator<'a> {
    scenario: &'a Scenario,
    client: &'a Client,
    after: i64,
    pub(crate) runs: Vec<Run>,
}

impl<'a> Narrator<'a> {
    pub(crate) const fn new(scenario: &'a Scenario, client: &'a Client) -> Self {
        Self { scenario, client, after: 0, runs: Vec::new() }
    }

    /// Prints the events since the last call.
    pub(crate) async fn print_news(
        &mut self,
        app: &dyn Running,
        prs: &[Pr],
    ) -> Result<(), DemoError> {
        let log = &app.context().stores.webhook.event_log;
        let logged = log.after(self.client.org, self.after, None, 1_000).await?;
        self.after = logged.last().map_or(self.after, |it| it.position);
        let news: Vec<News> = logged.iter().filter_map(News::of).collect();
        let of_queue: Vec<&News> =
            news.iter().filter(|it| it.branch == self.scenario.target).collect();
        for together in of_queue.chunk_by(|one, next| one.is_same(next)) {
            let Some(first) = together.first() else { continue };
            let numbers: Vec<u32> = together.iter().map(|it| it.pr).collect();
            if let Some(words) = self.words(first, numbers.len()).await? {
                let time = first.at.get(11..19).unwrap_or_default();
                say(&format!("  {time}  {:38} {words}", who(&numbers, prs)));
            }
            if first.kind == "testing" {
                self.runs.push(Run { prs: numbers, bisection: first.bisection });
            }
        }
        Ok(())
    }

    /// What happened, in the vocabulary of the pages; `None` for an event that is not shown.
    async fn words(&self, news: &News, together: usize) -> Result<Option<String>, DemoError> {
        let because = |state| sentence(state, &news.reason);
        Ok(Some(match news.kind.as_str() {
            "queued" if news.reason == QueuedReason::NowReady.as_str() => {
                "entered the line".to_owned()
            }
            "queued" => format!("back in the line: {}", because(PrState::Pending)),
            "testing" => testing(news, together, &self.ahead(news).await?),
            "pending_failure" => {
                pending_failure(&because(PrState::PendingFailure), &self.ahead(news).await?)
            }
            "failed" => format!("{}: {}", label(PrState::Failed), because(PrState::Failed)),
            "canceled" => {
                format!("{}: {}", label(PrState::Cancelled), because(PrState::Cancelled))
            }
            "merged" => label(PrState::Merged).to_owned(),
            _ => return Ok(None),
        }))
    }

    /// The pull requests ahead of the test run on the event's test branch, from the timeline.
    async fn ahead(&self, news: &News) -> Result<Vec<u32>, DemoError> {
        let entry = self.client.entry(self.scenario.target, news.pr).await?;
        let steps = entry["timeline"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut steps = steps.iter().map(|step| &step["testing"]);
        let run = steps.find(|step| step["testRun"]["branch"] == news.test_branch);
        let listed = run.and_then(|step| step["prerequisitePullRequests"].as_array());
        let numbers = listed.into_iter().flatten().filter_map(|pr| pr["prNumber"].as_u64());
        Ok(numbers.filter_map(|number| u32::try_from(number).ok()).collect())
    }
}

fn testing(news: &News, together: usize, ahead: &[u32]) -> String {
    let what = match (news.bisection, news.batched, together) {
        (false, true, _) => "testing as one batch",
        (true, _, 2..) => "testing as half of the failed batch",
        (true, _, _) => "testing alone, after its run failed",
        (false, false, _) => "testing",
    };
    match ahead {
        [] => format!("{what} on the target branch"),
        _ => format!("{what} on top of {}", list(ahead)),
    }
}

fn pending_failure(because: &str, ahead: &[u32]) -> String {
    match ahead {
        [] => format!("failed: {because}; a later pull request may still pass with it"),
        [one] => format!("failed: {because}; waiting to see whether #{one} is at fault"),
        _ => format!("failed: {because}; waiting to see whether {} are at fault", list(ahead)),
    }
}

fn label(state: PrState) -> &'static str {
    state.named().label
}

fn list(prs: &[u32]) -> String {
    prs.iter().map(|pr| format!("#{pr}")).collect::<Vec<_>>().join(", ")
}

/// The vocabulary's sentence for a reason of that state; the reason itself when it has none.
fn sentence(state: PrState, text: &str) -> String {
    let known = Reason::parse(state, text).and_then(reason);
    known.map_or_else(|| text.to_owned(), |word| word.sentence.to_owned())
}

/// The payload of a pull request's event.
struct News {
    kind: String,
    at: String,
    branch: String,
    pr: u32,
    reason: String,
    test_branch: String,
    batched: bool,
    bisection: bool,
}

impl News {
    /// Reads a payload. Events of batches and queues repeat what the events of their pull requests
    /// report, and are skipped.
    fn of(event: &PublicEvent) -> Option<Self> {
        let kind = event.kind.strip_prefix("pull_request.")?;
        let payload: Value = serde_json::from_str(&event.payload).ok()?;
        let text = |field: &str| payload[field].as_str().unwrap_or_default().to_owned();
        let reasons = ["queued_reason", "failure_reason", "cancellation_reason"];
        Some(Self {
            kind: kind.to_owned(),
            at: text("timestamp"),
            branch: text("target_branch"),
            pr: u32::try_from(payload["pr_number"].as_u64()?).ok()?,
            reason: reasons.iter().map(|field| text(field)).collect(),
            test_branch: text("test_branch"),
            batched: payload["batched"] == true,
            bisection: payload["is_bisection"] == true,
        })
    }

    /// Whether two events are one step of several pull requests, such as the test of a batch.
    fn is_same(&self, next: &Self) -> bool {
        let parts =
            |it: &Self| (it.kind.clone(), it.at.clone(), it.test_branch.clone(), it.reason.clone());
        self.kind != "submitted"
            && self.reason != QueuedReason::NowReady.as_str()
            && parts(self) == parts(next)
    }
}

fn who(numbers: &[u32], prs: &[Pr]) -> String {
    if let [number] = numbers {
        let title = prs.iter().find(|pr| pr.number == *number).map_or("", |pr| pr.branch.title);
        return format!("#{number} {title}");
    }
    let named: Vec<String> = numbers.iter().map(|number| format!("#{number}")).collect();
    named.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(batched: bool, bisection: bool) -> News {
        let text = String::new;
        let (kind, at, branch, reason) = ("testing".to_owned(), text(), text(), text());
        News { kind, at, branch, pr: 4, reason, test_branch: text(), batched, bisection }
    }

    #[test]
    fn a_test_names_the_pull_requests_ahead() {
        let one = |ahead: &[u32]| testing(&news(false, false), 1, ahead);
        assert_eq!(one(&[]), "testing on the target branch");
        assert_eq!(one(&[1, 2]), "testing on top of #1, #2");
        assert_eq!(
            testing(&news(true, false), 4, &[]),
            "testing as one batch on the target branch"
        );
        let half = testing(&news(true, true), 2, &[7]);
        assert_eq!(half, "testing as half of the failed batch on top of #7");
    }

    #[test]
    fn a_pending_failure_names_the_pull_requests_that_may_be_at_fault() {
        let one = pending_failure("a required check failed", &[1]);
        let expected = "failed: a required check failed; waiting to see whether #1 is at fault";
        assert_eq!(one, expected);
        let several = pending_failure("a required check failed", &[1, 2]);
        assert!(several.ends_with("waiting to see whether #1, #2 are at fault"), "{several}");
    }

    #[test]
    fn reasons_are_sentences_of_the_vocabulary() {
        for known in QueuedReason::ALL {
            assert_ne!(sentence(PrState::Pending, known.as_str()), known.as_str());
        }
        assert_eq!(sentence(PrState::Pending, "UNHEARD_OF"), "UNHEARD_OF");
    }
}
