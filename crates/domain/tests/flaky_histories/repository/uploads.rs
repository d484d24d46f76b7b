//! Uploads: what ran, what failed, and what the rules make of it.

use super::*;
use signalbox_domain::flaky::Admission;

const JOBS: [&str; 3] = ["unit", "windows", "nightly"];

impl Repository {
    pub(super) fn upload(&mut self) -> String {
        let upload = self.metadata();
        let runs = self.results(&upload);
        self.take_in(&upload, &runs);
        let (branch, job) = (&upload.branch, upload.job_name.as_deref().unwrap_or("no job"));
        format!("upload {} of {branch} by {job}, {} runs", self.uploads, runs.len())
    }

    fn metadata(&mut self) -> Upload {
        self.uploads += 1;
        let (branch, pr) = match self.numbers.below(10) {
            0..=4 => ("main".to_owned(), None),
            5 => ("gh-readonly-queue/main/pr-1".to_owned(), None),
            6 => (String::new(), None),
            _ => {
                let number = 1 + self.numbers.below(4);
                (format!("feature/{number}"), Some(PrNumber(number)))
            }
        };
        if self.numbers.percent(60) {
            self.commits += 1;
        }
        let sha = Sha::new(format!("{:040x}", self.commits)).expect("forty digits");
        let job = *self.numbers.pick(&JOBS);
        let names_job = self.numbers.percent(70);
        let base = *self.numbers.pick(&[Base::Itself, Base::Merged("abc"), Base::Unknown]);
        let mut origin = Origin::new(names_job.then_some([job]).as_ref().map(|it| &it[..]), base);
        if self.numbers.percent(20) {
            origin = origin.in_attempt(&[if self.numbers.percent(50) { "1" } else { "2" }]);
        }
        Upload {
            id: UploadId(Uuid::from_u128(1_000 + u128::from(self.uploads))),
            org: ORG,
            repo: REPO,
            source: UploadSource::JUnit,
            trust: if self.numbers.percent(3) { Trust::Public } else { Trust::Token },
            received_at: self.now,
            sha: self.numbers.percent(90).then_some(sha),
            committed_at: None,
            class: self.settings.branches.classify(&branch, pr.is_some()),
            branch,
            pr,
            job_url: None,
            job_name: names_job.then(|| job.to_owned()),
            origin,
            author: None,
            variant: String::new(),
        }
    }

    fn results(&mut self, upload: &Upload) -> Vec<ReportedRun> {
        // A shard, or everything.
        let (from, until) = match self.numbers.below(4) {
            0 => (0, TESTS / 2),
            1 => (TESTS / 2, TESTS),
            _ => (0, TESTS),
        };
        let clears = if self.weather == Weather::Helper { 5 } else { 15 };
        if self.numbers.percent(clears) {
            self.weather = Weather::Fine;
        }
        let hit = self.weather != Weather::Fine && self.numbers.percent(60);
        let mut runs = Vec::new();
        for test in from..until {
            let shows = match self.weather {
                Weather::Machine if hit => {
                    self.numbers.percent(70).then(|| reports::failure(&mut self.numbers, test))
                }
                Weather::Shared(way) if hit => {
                    self.numbers.percent(30).then(|| reports::shared(&mut self.numbers, way))
                }
                Weather::Helper if upload.pr.is_none() => {
                    (test % 5 < 2).then(|| reports::shared(&mut self.numbers, 1))
                }
                Weather::Fine | Weather::Machine | Weather::Shared(_) | Weather::Helper => None,
            };
            let flaky = match test % 13 {
                0 => 20,
                1 => 4,
                _ => 0,
            };
            let failure = shows.or_else(|| {
                self.numbers.percent(flaky).then(|| reports::failure(&mut self.numbers, test))
            });
            self.attempts(test, failure, &mut runs);
        }
        runs
    }

    /// The attempts of a test: a failed one is sometimes repeated immediately.
    fn attempts(
        &mut self,
        test: u32,
        failure: Option<ReportedFailure>,
        runs: &mut Vec<ReportedRun>,
    ) {
        let skipped = self.numbers.percent(3);
        let retried = failure.is_some() && self.numbers.percent(40);
        let passes = self.numbers.percent(60);
        let ago = match self.numbers.below(20) {
            0 => Some(self.numbers.below(5_000)),
            1..=6 => Some(self.numbers.below(30)),
            _ => None,
        };
        let mut run = |attempt, failure: Option<ReportedFailure>| {
            let outcome = match (&failure, skipped) {
                (_, true) => RunOutcome::Skipped,
                (Some(_), false) => RunOutcome::Failed,
                (None, false) => RunOutcome::Passed,
            };
            runs.push(ReportedRun {
                key: reports::key(test),
                other_files: if test == 4 { vec!["other.rs".into()] } else { Vec::new() },
                outcome,
                attempt,
                started_at: ago.map(|ago| self.now.minus(Span::minutes(ago))),
                took: None,
                failure,
                owners: if test.is_multiple_of(9) { vec!["@ada".into()] } else { Vec::new() },
                quarantined: false,
            });
        };
        run(0, failure.clone());
        if retried {
            run(1, if passes { None } else { failure });
        }
    }

    fn take_in(&mut self, upload: &Upload, runs: &[ReportedRun]) {
        let runs = UploadRuns::new(runs.to_vec());
        let size = usize::try_from(self.numbers.below(50)).unwrap_or(0);
        let keys: BTreeMap<TestId, TestKey> =
            self.records.iter().map(|(id, record)| (*id, record.test.key.clone())).collect();
        let known: KnownKeys<'_> = keys.iter().map(|(id, key)| (*id, key)).collect();
        let mut outline = Outline::new(upload, &self.settings);
        for part in runs.parts(size) {
            outline.add(part, &known);
        }
        let excluded = self.look_at(&outline);
        self.note(&outline.outcome());
        let mut most = None;
        for part in runs.parts(size) {
            let intake = intake(&outline, part, &excluded, &known);
            self.note(&(&intake.reported_tests, &intake.runs, &intake.additions));
            self.runs.extend(intake.runs.iter().cloned());
            let counted = intake.additions.iter().filter(|(_, it)| !it.summary.buckets.is_empty());
            for (id, addition) in counted {
                self.count(*id, &intake, &addition.summary);
            }
            let failures = intake.additions.values().flat_map(|it| &it.failures);
            most = most.max(failures.map(|it| it.occurrence_count).max());
        }
        self.note(&most);
        self.said.push(outline.outcome().admission.as_str().to_owned());
    }

    /// What the upload means for incidents: the tests whose failures do not count.
    fn look_at(&mut self, outline: &Outline) -> BTreeSet<TestId> {
        let counts = Admission::Counts;
        if outline.outcome().admission != counts || !self.settings.guard.enabled {
            return BTreeSet::new();
        }
        let known = self.records.iter().map(|(id, record)| (*id, record.last_failure_at)).collect();
        let look = outline.look(&known);
        let week_ago = self.now.minus(Span::days(7));
        let open: Vec<Incident> =
            self.incidents.iter().filter(|it| it.last_at >= week_ago).cloned().collect();
        let assessment = assess(&look, &self.history, &open);
        self.note(&assessment);
        self.history = assessment.history;
        for (_, incident) in assessment.changed {
            if assessment.incident == Some(incident.id) {
                let upload = outline.upload().id;
                let mine = self.excluded.entry(incident.id).or_default();
                mine.extend(assessment.excluded.iter().map(|test| (*test, upload)));
                mine.extend(assessment.late.iter().copied());
                self.recount(&incident, &assessment.late, false);
            }
            if let Some(at) = self.incidents.iter().position(|it| it.id == incident.id) {
                let before = self.incidents[at].clone();
                self.flip(&before, &incident);
                self.incidents[at] = incident;
            } else {
                self.said.push(format!("incident: {}", incident.cause.as_str()));
                self.incidents.insert(0, incident);
            }
        }
        assessment.excluded
    }

    fn count(&mut self, id: TestId, intake: &Intake, added: &Summary) {
        let reported = &intake.reported_tests[&id];
        let (key, at, now) = (reported.key.clone(), intake.upload.received_at, self.now);
        self.records.entry(id).or_insert_with(|| Record {
            test: TestCase::new(ORG, REPO, key, at),
            windows: Windows::default(),
            last_failure_at: None,
            summary: Summary::default(),
        });
        self.rebuild(id);
        let monitors = self.settings.monitors.clone();
        let rules = WindowRules::of(&monitors);
        let Some(record) = self.records.get_mut(&id) else { return };
        record.summary.add(added);
        let tested: BTreeSet<_> = added.codes.iter().map(|it| it.code.clone()).collect();
        let codes: Vec<CodeSummary> =
            record.summary.codes.iter().filter(|it| tested.contains(&it.code)).cloned().collect();
        record.windows.count(&rules, added, &codes, now);
        record.last_failure_at = record.last_failure_at.max(reported.last_failure_at);
        let windows = record.windows.clone();
        self.note(&windows);
        self.judge(id, None);
    }
}
