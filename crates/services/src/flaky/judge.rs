//! From runs to steps that can be committed: measuring tests, and telling what came of it.

use std::collections::BTreeMap;

use signalbox_domain::flaky::{
    Event, Fact, Input, Intake, MEASURE_EVERY_MINUTES, MonitorStatus, Recount, Settings, TestCase,
    TestId, Transition, Upload, UploadSource, WindowRules, Windows, absorb, horizon, next_deadline,
};
use signalbox_domain::ports::{
    EventRecord, RepoRef, Repository, TestRecord, TestSnapshot, TestStep,
};
use signalbox_domain::time::{Span, Timestamp};

use super::super::Error;
use super::FlakyService;
use super::incidents::fact_of;

/// A decision about a test that is not committed yet.
pub(super) struct Judged {
    /// The record of the test without its state.
    pub(super) record: TestRecord,
    /// What comes of it.
    pub(super) transition: Transition,
    /// What led to it.
    pub(super) input: Input,
    /// The ticket that it takes over.
    pub(super) ticket: Option<String>,
}

impl Judged {
    /// An absorbed fact.
    pub(super) fn of(record: TestRecord, settings: &Settings, fact: Fact, at: Timestamp) -> Self {
        let transition = absorb(&record.test, settings, &fact, at);
        Self { record, transition, input: Input::Fact(fact), ticket: None }
    }

    /// A measurement of everything that works.
    pub(super) fn measured(
        record: TestRecord,
        settings: (&Settings, &WindowRules<'_>),
        windows: &Windows,
        at: Timestamp,
    ) -> Self {
        Self::recounted(record, settings, windows, &[], at)
    }

    /// The same after failures of the test were recounted, if they were.
    pub(super) fn recounted(
        record: TestRecord,
        (settings, rules): (&Settings, &WindowRules<'_>),
        windows: &Windows,
        recounts: &[Recount],
        at: Timestamp,
    ) -> Self {
        // Two measurements within one microsecond are still two.
        let next = record.test.measured_at.map(|last| last.plus(Span::MICROSECOND));
        let as_of = next.map_or(at, |next| next.max(at));
        let readings = windows.read(rules, as_of).collect();
        let fact = fact_of(recounts, as_of, readings);
        Self::of(record, settings, fact, at)
    }
}

/// Whether some monitor is active for a test, so that time alone may resolve it.
pub(super) fn is_watched(test: &TestCase) -> bool {
    test.monitors.values().any(|record| record.status == MonitorStatus::Active)
}

/// When a test must be examined again without a new result.
pub(super) fn due_at(test: &TestCase, at: Timestamp) -> Option<Timestamp> {
    let measured = is_watched(test).then(|| at.plus(Span::minutes(MEASURE_EVERY_MINUTES)));
    next_deadline(test).into_iter().chain(measured).min()
}

/// Tests whose history is read together to rebuild their windows.
const REBUILT_AT_ONCE: usize = 100;

impl FlakyService {
    /// New windows for the tests whose windows have missed runs, because monitors were changed: the
    /// only judgement that reads history, once per test and change.
    pub(super) async fn rebuilt<'a>(
        &self,
        repo: RepoRef,
        rules: &WindowRules<'_>,
        records: impl IntoIterator<Item = &'a TestRecord>,
        at: Timestamp,
    ) -> Result<BTreeMap<TestId, Windows>, Error> {
        let partial = records.into_iter().filter(|record| record.windows.are_partial(rules));
        let partial = partial.map(|record| (record.test.id, record.test.renamed_from));
        let partial: Vec<(TestId, Option<TestId>)> = partial.collect();
        let mut rebuilt = BTreeMap::new();
        for ids in partial.chunks(REBUILT_AT_ONCE) {
            let named = ids.iter().flat_map(|(id, from)| [Some(*id), *from]).flatten();
            let named: Vec<TestId> = named.collect();
            let known = self.context.stores.tests.summaries(repo, &named, horizon(at)).await?;
            for (id, from) in ids {
                let mut summary = known.get(id).cloned().unwrap_or_default();
                // Also what its monitors have seen under its previous name.
                if let Some(before) = from.and_then(|from| known.get(&from)) {
                    summary.add(before);
                }
                rebuilt.insert(*id, Windows::rebuilt(rules, &summary, at));
            }
        }
        Ok(rebuilt)
    }

    /// The steps of decisions, with their events. Decisions that change nothing are
    /// omitted. Decisions about an imported upload have no events: they are about the past.
    pub(super) async fn steps(
        &self,
        repository: &Repository,
        settings: &Settings,
        upload: Option<&Upload>,
        intake: Option<&Intake>,
        judged: Vec<Judged>,
        at: Timestamp,
    ) -> Result<Vec<TestStep>, Error> {
        let judged: Vec<Judged> =
            judged.into_iter().filter(|it| !it.transition.is_empty()).collect();
        let repo = RepoRef { org: repository.org, id: repository.id };
        let past = upload.is_some_and(|it| it.source == UploadSource::Import);
        // Time is measured by the clock, also after a judgement as of the past.
        let looked_at = if past { self.context.clock.now() } else { at };
        let telling = judged.iter().filter(|it| !past && !it.transition.events.is_empty());
        let telling: Vec<TestId> = telling.map(|it| it.transition.test.id).collect();
        let numbers = if telling.is_empty() {
            BTreeMap::new()
        } else {
            self.context.stores.reads.numbers(repo, &telling, at).await?
        };
        let mut steps = Vec::with_capacity(judged.len());
        for Judged { mut record, transition, input, ticket } in judged {
            let test = transition.test.id;
            let journal = transition.record(input, at);
            let mut counted = numbers.get(&test).cloned().unwrap_or_default();
            if let Some(intake) = intake {
                if let Some(addition) = intake.additions.get(&test) {
                    counted = counted.with(addition, at);
                }
                let owners = intake.reported_tests.get(&test).map(|it| &it.owners);
                if let Some(owners) = owners.filter(|owners| !owners.is_empty()) {
                    record.owners.clone_from(owners);
                }
            }
            record.test = transition.test;
            let snapshot = TestSnapshot {
                repo: repository.name.clone(),
                quarantined: record.test.is_quarantined(settings, at),
                quarantined_since: record.test.quarantined_since(settings, at),
                record,
                numbers: counted,
            };
            let told = |event: &Event| EventRecord {
                id: self.context.ids.new_id(),
                kind: event.kind.name(),
                at: event.at,
                payload: self.context.events.test_event(&snapshot, event),
                request: self.context.ids.request_id(),
            };
            let events = transition.events.iter().filter(|_| !past).map(told).collect();
            let test = snapshot.record.test;
            let due_at = due_at(&test, looked_at);
            steps.push(TestStep { test, journal, events, due_at, ticket });
        }
        Ok(steps)
    }
}
