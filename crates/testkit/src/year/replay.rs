//! The year through the production judge: the clock moves, jobs upload their reports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use signalbox_conformance::stores::Scenario;
use signalbox_conformance::stores::flaky_cost::Counting;
use signalbox_domain::flaky::{
    AskedTest, AutoQuarantine, Base, BranchClass, InfrastructureGuard, Monitor, Origin,
    ReportedRun, RunOutcome, SettingsPatch, TestId, TestKey, TestStatus, Upload, UploadId,
};
use signalbox_domain::ids::{PrNumber, Sha};
use signalbox_domain::ports::{Stores, TestList, TestRecord};
use signalbox_domain::time::{Span, Timestamp};
use signalbox_services::{FlakyService, QuarantineLookup, ResultsSink};
use uuid::Uuid;

use super::ci::{Ci, Execution};
use super::failures::{Cause, Circumstances};
use super::plan::{Name, Plan};
use super::score::{Failed, Findings, Sample, Score};
use super::{DayCost, Retries, Shape};

/// Hours between two comparisons with the truth.
const SAMPLE_HOURS: u32 = 6;
/// Days for which history is kept, as by default.
const HISTORY_DAYS: u32 = 45;
/// Days after which precision and recall are reported.
pub(super) const EARLY_DAYS: u32 = 9;

/// Replays a year on the stores of an empty database, with these monitors; `None`: those of a new
/// repository. `cpu` returns the CPU time of the process.
///
/// Quarantine of flaky tests is on. Jobs request the quarantined tests before they upload, as the
/// uploader does.
pub async fn replay(
    stores: &Stores,
    shape: Shape,
    monitors: Option<&[Monitor]>,
    cpu: impl Fn() -> Duration,
) -> Findings {
    let counting = Arc::new(Counting::new(stores.flaky.tests.clone()));
    let mut stores = stores.clone();
    stores.flaky.tests = counting.clone();
    let scenario = Scenario::new(&stores, "acme").await;
    let plan = Plan::new(shape, scenario.now());
    let mut replay = Replay { scenario, plan: &plan };
    replay.prepare(monitors).await;
    let mut score = Score::new(&plan, |name, platform| replay.key(name, platform).id());
    let mut ci = Ci::new(&plan);
    let mut days: Vec<DayCost> = Vec::new();
    let mut today = DayCost::default();
    let mut begun = cpu();
    let (mut hours, mut next) = (0_u32, ci.next());
    let last_day = shape.last_day.min(shape.days);
    while hours < last_day * 24 {
        let until = plan.calendar.start.plus(Span::hours(hours + 1));
        while let Some(execution) = next.take_if(|it| it.at < until) {
            let (results, is_red) = replay.run(&execution, &mut score).await;
            (today.uploads, today.results) = (today.uploads + 1, today.results + results);
            if is_red {
                ci.failed(&execution);
            }
            next = ci.next();
        }
        hours += 1;
        replay.advance_to(until);
        replay.measure().await;
        if hours % SAMPLE_HOURS == 0 {
            let heads = [until, until.minus(Span::days(1))].map(|at| ci.head_at(at));
            score.sample(&replay.sample(heads).await);
        }
        if hours % 24 == 0 {
            replay.tidy().await;
            (today.rows_read, today.rows_written) = counting.take();
            let now = cpu();
            today.cpu = now.saturating_sub(begun);
            begun = now;
            days.push(std::mem::take(&mut today));
        }
    }
    score.findings(days)
}

struct Replay<'a> {
    scenario: Scenario<'a>,
    plan: &'a Plan,
}

impl Replay<'_> {
    async fn prepare(&mut self, monitors: Option<&[Monitor]>) {
        let guard = InfrastructureGuard {
            enabled: self.plan.shape.guard,
            ..InfrastructureGuard::default()
        };
        let patch = SettingsPatch {
            quarantine_enabled: Some(true),
            auto_quarantine: Some(AutoQuarantine::Flaky),
            guard: Some(guard),
            ..SettingsPatch::default()
        };
        self.scenario.set(patch).await;
        let Scenario { service, caller, .. } = &self.scenario;
        let name = self.scenario.name();
        if let Some(monitors) = monitors {
            let known = service.settings(caller, name).await.expect("settings").monitors;
            for monitor in known {
                let deleted = service.delete_monitor(caller, name, monitor.id);
                deleted.await.expect("a monitor is deleted");
            }
            for monitor in monitors {
                let created = service.create_monitor(caller, name, monitor.clone());
                created.await.expect("a monitor is created");
            }
        }
        service.prepare_days().await.expect("days are prepared");
    }

    fn advance_to(&self, at: Timestamp) {
        self.scenario.clock.advance(at.since(self.scenario.now()));
    }

    /// The upload of a job's report: the only place that decides what an uploader knows of a job.
    fn upload(&self, execution: &Execution) -> Upload {
        let Execution { number, commit, job, pr, .. } = execution;
        let main = commit.code_of.unix_micros().to_string();
        let base = pr.map_or(Base::Itself, |_| Base::Merged(&main));
        let sha: String = format!("{:016x}", commit.sha).repeat(3).chars().take(40).collect();
        Upload {
            id: UploadId(Uuid::from_u128(u128::from(*number))),
            sha: Some(Sha::new(sha).expect("a commit")),
            branch: pr.map_or_else(|| "main".into(), |pr| format!("topic-{pr}")),
            class: pr.map_or(BranchClass::Stable, |_| BranchClass::PullRequest),
            pr: pr.map(PrNumber),
            job_url: Some(format!("https://ci.example/{number}")),
            job_name: Some(job.name()),
            origin: Origin::new(Some(&["ci", &job.name()]), base),
            variant: self.variant(job.platform()),
            ..self.scenario.upload(0)
        }
    }

    fn variant(&self, platform: &str) -> String {
        if self.plan.shape.variants { platform.to_owned() } else { String::new() }
    }

    fn key(&self, name: &Name, platform: &str) -> TestKey {
        TestKey {
            file: name.file.clone(),
            name: name.text.clone(),
            variant: self.variant(platform),
            ..self.scenario.key("")
        }
    }

    /// Uploads the report of a job. Returns its results, and whether the job is red.
    async fn run(&self, execution: &Execution, score: &mut Score<'_>) -> (u32, bool) {
        self.advance_to(execution.at);
        let circumstances = Circumstances::new(self.plan, execution);
        let attempts = if self.plan.shape.retries == Retries::Tests { 2 } else { 1 };
        let mut runs: Vec<ReportedRun> = Vec::new();
        let mut failed: Vec<(usize, Cause, AskedTest)> = Vec::new();
        for (number, test) in self.plan.tests.iter().enumerate() {
            let Some(name) = test.name_at(execution.commit.code_of) else { continue };
            if !circumstances.runs(number, test) {
                continue;
            }
            let key = self.key(name, execution.job.platform());
            let passing = ReportedRun { key: key.clone(), ..self.scenario.run("", true) };
            let mut last = None;
            for attempt in 0..attempts {
                last = circumstances.failure(number, test, attempt);
                let mut run = ReportedRun { attempt, ..passing.clone() };
                if let Some((cause, failure)) = &last {
                    score.failed_attempt(number, *cause);
                    run.outcome = RunOutcome::Failed;
                    run.failure = Some(failure.clone());
                }
                runs.push(run);
                if last.is_none() {
                    break;
                }
            }
            if let Some((cause, _)) = last {
                failed.push((number, cause, AskedTest { id: key.id().to_string(), key }));
            }
        }
        let asked: Vec<AskedTest> = failed.iter().map(|(_, _, asked)| asked.clone()).collect();
        let excused = self.quarantined(&asked).await;
        for run in &mut runs {
            run.quarantined = run.failure.is_some() && excused.contains(&run.key.id().to_string());
        }
        let mut is_red = false;
        for (test, cause, asked) in failed {
            let is_excused = excused.contains(&asked.id);
            score.failed(&Failed { test, cause, is_excused, at: execution.at });
            is_red |= !is_excused;
        }
        let count = u32::try_from(runs.len()).unwrap_or(u32::MAX);
        let stored = self.scenario.service.take_in(&self.upload(execution), runs).await;
        stored.expect("the results are stored");
        (count, is_red)
    }

    async fn quarantined(&self, asked: &[AskedTest]) -> BTreeSet<String> {
        if asked.is_empty() {
            return BTreeSet::new();
        }
        let Scenario { service, repo, .. } = &self.scenario;
        let answer = service.quarantined(repo.org, repo.id, asked).await;
        answer.expect("quarantined tests").ids.into_iter().collect()
    }

    async fn measure(&self) {
        while self.scenario.service.measure().await.expect("measured") == FlakyService::AT_ONCE {}
    }

    /// What the judge says now.
    async fn sample(&self, [head, head_day_ago]: [Timestamp; 2]) -> Sample {
        let Scenario { service, caller, .. } = &self.scenario;
        let incidents = service.incidents(caller, self.scenario.name()).await;
        let broken = self.listed(TestStatus::Broken).await;
        Sample {
            at: self.scenario.now(),
            head,
            head_day_ago,
            flaky: self.listed(TestStatus::Flaky).await,
            hidden: self.hidden(&broken).await,
            broken,
            incidents: incidents.expect("incidents"),
            retired: self.retired().await,
        }
    }

    /// The broken tests that would be called flaky otherwise.
    async fn hidden(&self, broken: &BTreeSet<TestId>) -> BTreeSet<TestId> {
        let Scenario { service, caller, repo, stores, .. } = &self.scenario;
        let settings = service.settings(caller, self.scenario.name()).await.expect("settings");
        let ids: Vec<TestId> = broken.iter().copied().collect();
        let records = stores.flaky.tests.tests(*repo, &ids).await.expect("a read");
        let is_flaky = |it: &&TestRecord| {
            let findings = it.test.findings(&settings);
            findings.iter().any(|finding| finding.status == TestStatus::Flaky)
        };
        records.iter().filter(is_flaky).map(|it| it.test.id).collect()
    }

    async fn retired(&self) -> BTreeMap<TestId, Option<TestId>> {
        let stores = &self.scenario.stores.flaky;
        let ids = stores.reads.ids(self.scenario.repo, TestList::Retired).await.expect("a list");
        let records = stores.tests.tests(self.scenario.repo, &ids).await.expect("a read");
        records.iter().map(|it| (it.test.id, it.test.renamed_to())).collect()
    }

    async fn listed(&self, status: TestStatus) -> BTreeSet<TestId> {
        let reads = &self.scenario.stores.flaky.reads;
        let listed = reads.ids(self.scenario.repo, TestList::Unhealthy(status)).await;
        listed.expect("a list").into_iter().collect()
    }

    /// Makes room for tomorrow, and deletes what is too old.
    async fn tidy(&self) {
        let service = &self.scenario.service;
        service.prepare_days().await.expect("days are prepared");
        while service.prune(Span::days(HISTORY_DAYS)).await.expect("pruned") > 0 {}
    }
}
