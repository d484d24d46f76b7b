//! The contract of a checks runner. Each property is an async function over a [`ChecksWorld`];
//! [`crate::checks_runner_conformance`] makes a test of each.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use signalbox_domain::ports::{CheckOutput, ChecksJob, ChecksRunner, ChecksSink, SinkClosed};
use signalbox_domain::queue::{CheckConclusion, CheckReport, CheckStatus};
use tokio::sync::watch;

/// The time limit for stopping a job.
const STOPS_WITHIN: Duration = Duration::from_mins(1);

/// Makes one test of each property. The expression is evaluated in an async block and creates a new
/// world.
#[macro_export]
macro_rules! checks_runner_conformance {
    ($fresh:expr) => {
        $crate::checks_runner_conformance!(@tests $fresh;
            each_required_check_reports_its_conclusion,
            a_required_name_without_a_check_fails_with_a_summary,
            a_job_ends_when_its_sink_closes,
            a_rejected_report_ends_the_job,
            a_dropped_job_leaves_nothing_running,
            an_unknown_repository_is_an_error_without_a_report,
        );
    };
    (@tests $fresh:expr; $($name:ident,)+) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                let world = { $fresh.await };
                $crate::checks_runner::$name(&world).await;
            }
        )+
    };
}

/// The behavior of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It succeeds.
    Success,
    /// It fails.
    Failure,
    /// It starts and never completes.
    Never,
}

/// A runner, and a repository to run checks in.
#[async_trait]
pub trait ChecksWorld: Sync {
    /// The runner.
    fn runner(&self) -> &dyn ChecksRunner;

    /// Creates a candidate in a repository with these configured checks, and a job that requires
    /// these names.
    async fn job(&self, configured: &[(&str, Ending)], required: &[&str]) -> ChecksJob;

    /// Whether the runner knows the configured checks. A runner that only reads the host's CI does
    /// not.
    fn knows_what_is_configured(&self) -> bool;

    /// Returns when no process of a job runs any more.
    async fn nothing_runs(&self);
}

/// A sink that records reports.
struct Sink {
    reports: Mutex<Vec<CheckReport>>,
    reported: watch::Sender<bool>,
    closed: watch::Sender<bool>,
    refuses: bool,
}

impl Sink {
    fn new(refuses: bool) -> Self {
        Self {
            reports: Mutex::default(),
            reported: watch::Sender::new(false),
            closed: watch::Sender::new(false),
            refuses,
        }
    }

    fn reports(&self) -> Vec<CheckReport> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn close(&self) {
        self.closed.send_replace(true);
    }

    async fn first_report(&self) {
        let mut reported = self.reported.subscribe();
        reported.wait_for(|reported| *reported).await.expect("the sink is there");
    }
}

#[async_trait]
impl ChecksSink for Sink {
    async fn report(&self, checks: Vec<CheckReport>) -> Result<(), SinkClosed> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).extend(checks);
        self.reported.send_replace(true);
        if self.refuses { Err(SinkClosed) } else { Ok(()) }
    }

    async fn output(&self, _: CheckOutput) -> Result<(), SinkClosed> {
        if self.refuses { Err(SinkClosed) } else { Ok(()) }
    }

    async fn closed(&self) {
        let mut closed = self.closed.subscribe();
        closed.wait_for(|closed| *closed).await.expect("the sink is there");
    }
}

/// The last report of a completed check.
fn ended<'a>(reports: &'a [CheckReport], name: &str) -> Option<&'a CheckReport> {
    let of = reports.iter().rev().find(|it| it.name == name);
    of.filter(|it| it.status == CheckStatus::Completed)
}

/// A runner returns when every required check has completed and reported its conclusion. A runner
/// that runs checks itself first reports each as in progress. A report has a conclusion if and only
/// if the check has completed.
pub async fn each_required_check_reports_its_conclusion(world: &dyn ChecksWorld) {
    let configured = [("build", Ending::Success), ("test", Ending::Failure)];
    let job = world.job(&configured, &["build", "test"]).await;
    let sink = Sink::new(false);
    world.runner().run(&job, &sink).await.expect("the job succeeds");
    let reports = sink.reports();
    for (name, ending) in configured {
        let report = ended(&reports, name).unwrap_or_else(|| panic!("{name}: {reports:?}"));
        let conclusion = report.conclusion.map(CheckConclusion::is_success);
        assert_eq!(conclusion, Some(ending == Ending::Success), "{name}");
        let began = reports.iter().find(|it| it.name == name).map(|it| it.status);
        if !world.runner().reads_the_host() {
            assert_ne!(began, Some(CheckStatus::Completed), "{name} was not reported at its start");
        }
    }
    for report in &reports {
        let has_ended = report.status == CheckStatus::Completed;
        assert_eq!(report.conclusion.is_some(), has_ended, "{report:?}");
    }
}

/// A required name that the repository does not configure is reported as failed, with a summary,
/// and does not delay other checks.
pub async fn a_required_name_without_a_check_fails_with_a_summary(world: &dyn ChecksWorld) {
    if !world.knows_what_is_configured() {
        return;
    }
    let job = world.job(&[("test", Ending::Success)], &["test", "missing"]).await;
    let sink = Sink::new(false);
    world.runner().run(&job, &sink).await.expect("the job succeeds");
    let reports = sink.reports();
    let missing = ended(&reports, "missing").expect("it is reported");
    assert_eq!(missing.conclusion.map(CheckConclusion::is_success), Some(false));
    assert!(missing.summary.as_deref().is_some_and(|words| !words.is_empty()), "{missing:?}");
    let test = ended(&reports, "test").and_then(|it| it.conclusion);
    assert_eq!(test, Some(CheckConclusion::Success));
}

/// [`ChecksSink::closed`] ends a job with running checks, and their processes.
pub async fn a_job_ends_when_its_sink_closes(world: &dyn ChecksWorld) {
    let job = world.job(&[("test", Ending::Never)], &["test"]).await;
    let sink = Sink::new(false);
    let ended = async {
        let closes = async {
            sink.first_report().await;
            sink.close();
        };
        let (done, ()) = tokio::join!(world.runner().run(&job, &sink), closes);
        done
    };
    let done = tokio::time::timeout(STOPS_WITHIN, ended).await.expect("it stops");
    done.expect("a closed sink is not an error");
    world.nothing_runs().await;
    let reports = sink.reports();
    let succeeded = reports.iter().any(|it| it.conclusion == Some(CheckConclusion::Success));
    assert!(!succeeded, "{reports:?}");
}

/// [`SinkClosed`] ends a job as well.
pub async fn a_rejected_report_ends_the_job(world: &dyn ChecksWorld) {
    let job = world.job(&[("test", Ending::Never)], &["test"]).await;
    let sink = Sink::new(true);
    let run = world.runner().run(&job, &sink);
    let done = tokio::time::timeout(STOPS_WITHIN, run).await.expect("it stops");
    done.expect("a closed sink is not an error");
    world.nothing_runs().await;
}

/// A job whose future is dropped leaves no process running.
pub async fn a_dropped_job_leaves_nothing_running(world: &dyn ChecksWorld) {
    let job = world.job(&[("test", Ending::Never)], &["test"]).await;
    let sink = Sink::new(false);
    tokio::select! {
        done = world.runner().run(&job, &sink) => panic!("it has ended: {done:?}"),
        () = sink.first_report() => {}
    }
    world.nothing_runs().await;
}

/// A repository that the host does not have is an error, without a report that would fail a pull
/// request.
pub async fn an_unknown_repository_is_an_error_without_a_report(world: &dyn ChecksWorld) {
    let mut job = world.job(&[("test", Ending::Success)], &["test"]).await;
    "nowhere".clone_into(&mut job.repository.name.name);
    job.repository.path = None;
    let sink = Sink::new(false);
    let done = world.runner().run(&job, &sink).await;
    assert!(done.is_err(), "{done:?}");
    assert!(sink.reports().is_empty(), "{:?}", sink.reports());
}
