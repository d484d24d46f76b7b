//! The ground truth: the tests of a repository, their faults with times, and the incidents.

use signalbox_domain::time::{Span, Timestamp};

use super::Shape;
use super::tests_of::Generator;
use crate::simulation::random::Random;

/// What a test is, apart from when it was made, renamed or broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It fails only when something else is wrong.
    Stable,
    /// It fails in so many of a thousand runs.
    Flaky(u32),
    /// It fails when another test ran before it; the order is random in each job.
    RandomOrder,
    /// The same, in an order that the commit determines: running the job again changes nothing.
    FixedOrder,
    /// It fails on one platform for some days.
    Platform,
}

impl Kind {
    /// Its name in tables.
    pub fn label(self) -> String {
        match self {
            Self::Stable => "stable".into(),
            Self::Flaky(per_mille) => format!("flaky, {} %", per_mille / 10),
            Self::RandomOrder => "order, random".into(),
            Self::FixedOrder => "order, by commit".into(),
            Self::Platform => "one platform".into(),
        }
    }
}

/// From when until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Period {
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
}

impl Period {
    pub(super) fn contains(self, at: Timestamp) -> bool {
        self.from <= at && at < self.until
    }
}

/// A name of a test, from a time on.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) since: Timestamp,
    pub(super) file: String,
    pub(super) text: String,
}

/// The truth about a test.
#[derive(Clone, Debug)]
pub(super) struct PlannedTest {
    pub(super) kind: Kind,
    /// The first one is there from the first day or from when the test is new.
    pub(super) names: Vec<Name>,
    /// When it is in the code.
    pub(super) exists: Period,
    /// When its kind shows; the whole time of a stable test.
    pub(super) wrong: Period,
    /// When it is broken on `main`, and whether by the helper that breaks many.
    pub(super) broken: Vec<(Period, bool)>,
    /// The test that must run before it so that it fails.
    pub(super) polluter: usize,
}

impl PlannedTest {
    /// The name that it has in the code of a time.
    pub(super) fn name_at(&self, at: Timestamp) -> Option<&Name> {
        let mut names = self.names.iter().filter(|name| name.since <= at);
        names.next_back().filter(|_| self.exists.contains(at))
    }

    /// Whether it passes and fails on the same code.
    pub(super) fn is_flaky(&self, at: Timestamp) -> bool {
        let is_kind = matches!(self.kind, Kind::Flaky(_) | Kind::RandomOrder | Kind::FixedOrder);
        is_kind && self.exists.contains(at) && self.wrong.contains(at)
    }

    /// Whether it always fails on `main`, and whether by the helper.
    pub(super) fn broken_at(&self, at: Timestamp) -> Option<bool> {
        let broken = self.broken.iter().find(|(period, _)| period.contains(at));
        broken.map(|(_, by_helper)| *by_helper)
    }
}

/// How an incident shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IncidentKind {
    /// Every third job runs on a machine on which 60 % of its tests fail, each with a message of its own.
    BadMachine,
    /// One in 5 tests cannot reach a host, in every job.
    HostDown,
    /// 5 % of the tests fail in the same function, in every job.
    Certificate,
    /// 8 % of the tests run into their time limits, others in every job.
    SlowDisk,
    /// In the first shard the last tests fail: its disk is full.
    FullDisk,
}

/// Something that happens to CI, not to the code.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlannedIncident {
    pub(super) kind: IncidentKind,
    pub(super) period: Period,
}

/// Everything that is true.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) shape: Shape,
    pub(super) calendar: Calendar,
    pub(super) tests: Vec<PlannedTest>,
    pub(super) incidents: Vec<PlannedIncident>,
}

impl Plan {
    pub(super) fn new(shape: Shape, start: Timestamp) -> Self {
        let calendar = Calendar { start, days: shape.days };
        let mut random = Random::new(shape.seed);
        let incidents = incidents(calendar, &mut random);
        let tests = Generator::new(&shape, calendar, random).tests();
        Self { shape, calendar, tests, incidents }
    }
}

/// Days and hours of the year.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calendar {
    pub(super) start: Timestamp,
    pub(super) days: u32,
}

impl Calendar {
    pub(super) fn at(self, day: u32, minutes: u32) -> Timestamp {
        self.start.plus(Span::days(day)).plus(Span::minutes(minutes))
    }

    pub(super) fn end(self) -> Timestamp {
        self.at(self.days, 0)
    }

    /// The year begins on a Thursday.
    pub(super) const fn is_weekend(day: u32) -> bool {
        matches!(day % 7, 2 | 3)
    }

    /// The first workday from so many thousandths of the time on.
    pub(super) fn workday(self, per_mille: u32) -> u32 {
        let day = self.days * per_mille / 1_000;
        (day..day + 7).find(|day| !Self::is_weekend(*day)).unwrap_or(day)
    }
}

/// Five incidents, the first one on the sixth day.
fn incidents(calendar: Calendar, random: &mut Random) -> Vec<PlannedIncident> {
    let kinds = [
        (IncidentKind::BadMachine, 0, 5),
        (IncidentKind::HostDown, 330, 3),
        (IncidentKind::Certificate, 460, 9),
        (IncidentKind::SlowDisk, 620, 5),
        (IncidentKind::FullDisk, 790, 6),
    ];
    let planned = kinds.into_iter().map(|(kind, per_mille, hours)| {
        let day = if per_mille == 0 { 5 } else { calendar.workday(per_mille) };
        let from = calendar.at(day, 60 * random.between(9, 12));
        let period = Period { from, until: from.plus(Span::hours(hours)) };
        PlannedIncident { kind, period }
    });
    planned.collect()
}
