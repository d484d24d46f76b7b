//! Running windows: what monitors need of a test's runs, in a form of bounded size.
//!
//! Each monitor has a window of its own, so that a judgement reads neither the history nor the runs
//! of other branches. An upload adds to windows, and entries that are too old for them expire. A window
//! gives the same counts as the [`Summary`] of the same runs; `tests/flaky_windows.rs` compares them.

mod ring;

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::HEXLOWER;

use crate::time::{Span, Timestamp};

use super::super::digest::digest_of;
use super::super::origin::{Comparison, Doubt};
use super::super::{BranchClass, BranchScope};
use super::kinds::{Disagreement, Uncertainty};
use super::summary::Tally;
use super::{
    BUCKET_MINUTES, Bucket, CodeSummary, MAX_HOURS, Monitor, MonitorId, Period, Reading, SameCode,
    Summary,
};
use ring::Ring;

/// About the most buckets of one window.
const MAX_BUCKETS: i64 = 48;
/// The most disagreements that a window keeps, the newest ones, and as many doubtful ones.
const MAX_DISAGREEMENTS: usize = 8;

/// A failure and a success on one code that can be compared.
pub(in crate::flaky) struct Compared<'a> {
    pub(in crate::flaky) failing: &'a CodeSummary,
    pub(in crate::flaky) failed_at: Timestamp,
    pub(in crate::flaky) passed_at: Timestamp,
    /// What they may differ in.
    pub(in crate::flaky) doubt: Option<Doubt>,
}

/// How long the buckets of a window are: a 48th of it, rounded up to whole multiples of
/// [`BUCKET_MINUTES`]. So a day has buckets of 30 minutes, and a week some of 3.5 hours.
pub fn bucket_length(window: Span) -> Span {
    let unit = Span::minutes(BUCKET_MINUTES).micros();
    let units = window.micros().saturating_add(MAX_BUCKETS * unit - 1) / (MAX_BUCKETS * unit);
    Span::from_micros(units.max(1).saturating_mul(unit))
}

/// The running windows of one test. Monitors that count the same runs share one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Windows {
    /// Whether a run was ever counted, so that a monitor without a window has missed some.
    started: bool,
    /// By the digest of what decides which runs are counted, and for how long.
    windows: BTreeMap<String, Window>,
}

/// What monitors must know of the runs of a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Window {
    /// Whether runs from before the monitor had this rule are missing.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "is_false"))]
    partial: bool,
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    last_run_at: Option<Timestamp>,
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    last_failure_at: Option<Timestamp>,
    /// Runs by time, one for each length of time that the monitor looks back.
    rings: Vec<Ring>,
    /// The newest first.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    disagreements: Vec<Disagreement>,
}

#[cfg(feature = "serde")]
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// What decides how a window counts, by a monitor that has it.
#[derive(Clone, Debug)]
struct Counting<'a> {
    monitor: &'a Monitor,
    /// The lengths of buckets that it needs, and the longest time that it looks back in each.
    rings: BTreeMap<Span, Span>,
}

/// How runs are counted for the working monitors of a repository.
#[derive(Clone, Debug)]
pub struct WindowRules<'a> {
    /// By the digest under which a test has the window.
    countings: BTreeMap<String, Counting<'a>>,
    /// The working monitors, each with the digest of its window.
    monitors: Vec<(&'a Monitor, String)>,
}

impl<'a> WindowRules<'a> {
    /// The rules of these monitors; disabled ones count nothing.
    pub fn of(monitors: &'a [Monitor]) -> Self {
        let (mut countings, mut working) = (BTreeMap::new(), Vec::new());
        for monitor in monitors.iter().filter(|monitor| monitor.enabled) {
            let counting = Counting::of(monitor);
            let digest = rule_digest(monitor, &counting.rings);
            countings.insert(digest.clone(), counting);
            working.push((monitor, digest));
        }
        Self { countings, monitors: working }
    }
}

impl<'a> Counting<'a> {
    fn of(monitor: &'a Monitor) -> Self {
        let mut rings: BTreeMap<Span, Span> = BTreeMap::new();
        for span in monitor.rule.windows() {
            let longest = rings.entry(bucket_length(span)).or_insert(span);
            *longest = span.max(*longest);
        }
        Self { monitor, rings }
    }

    fn window(&self, partial: bool) -> Window {
        let rings = self.rings.keys().map(|length| Ring::new(*length)).collect();
        Window { partial, rings, ..Window::default() }
    }
}

fn rule_digest(monitor: &Monitor, rings: &BTreeMap<Span, Span>) -> String {
    let scope = &monitor.scope;
    let patterns = scope.patterns.iter().map(|pattern| pattern.0.as_str());
    let classes = scope.classes.iter().map(|class| class.as_str());
    let compares = monitor.rule.compares().then_some("compares");
    let spans: Vec<String> = rings.values().map(|span| span.micros().to_string()).collect();
    let spans = spans.iter().map(String::as_str);
    let digest = digest_of(patterns.chain(classes).chain(compares).chain(spans));
    HEXLOWER.encode(digest.get(..6).unwrap_or_default())
}

impl Windows {
    /// The windows of a test of which all runs are known.
    pub fn rebuilt(rules: &WindowRules<'_>, summary: &Summary, at: Timestamp) -> Self {
        let mut windows = Self::default();
        windows.count(rules, summary, &summary.codes, at);
        windows.started = true;
        windows
    }

    /// Whether a working monitor has missed runs, because it is new or looks at other ones than
    /// before. The windows must then be [rebuilt](Self::rebuilt) before they are read.
    pub fn are_partial(&self, rules: &WindowRules<'_>) -> bool {
        self.started
            && rules
                .countings
                .keys()
                .any(|digest| self.windows.get(digest).is_none_or(|window| window.partial))
    }

    /// Counts runs. `codes` has the summaries of the tested codes, including these runs.
    pub fn count(
        &mut self,
        rules: &WindowRules<'_>,
        added: &Summary,
        codes: &[CodeSummary],
        at: Timestamp,
    ) {
        self.windows.retain(|digest, _| rules.countings.contains_key(digest));
        for (digest, counting) in &rules.countings {
            let started = self.started;
            let window =
                self.windows.entry(digest.clone()).or_insert_with(|| counting.window(started));
            window.count(counting, added, codes, at);
        }
        self.started |= !added.buckets.is_empty();
    }

    /// Removes counted failures, with the disagreements on their codes.
    pub fn forget(&mut self, rules: &WindowRules<'_>, failures: &Summary) {
        for (digest, window) in &mut self.windows {
            if let Some(counting) = rules.countings.get(digest) {
                window.forget(&counting.monitor.scope, failures);
            }
        }
    }

    /// The last failure that a monitor counts; approximate after failures were removed.
    pub fn last_failure_at(&self) -> Option<Timestamp> {
        self.windows.values().filter_map(|window| window.last_failure_at).max()
    }

    /// What the working monitors see at a time. The windows must not be
    /// [partial](Self::are_partial) for them.
    pub fn read(
        &self,
        rules: &WindowRules<'_>,
        at: Timestamp,
    ) -> impl Iterator<Item = (MonitorId, Reading)> {
        let read = move |(monitor, digest): &(&Monitor, String)| {
            (monitor.id, monitor.read_window(self.windows.get(digest), at))
        };
        rules.monitors.iter().map(read)
    }
}

impl Window {
    fn count(
        &mut self,
        counting: &Counting<'_>,
        added: &Summary,
        codes: &[CodeSummary],
        at: Timestamp,
    ) {
        let scope = &counting.monitor.scope;
        for bucket in added.buckets.iter().filter(|it| scope.covers(&it.branch, it.class)) {
            self.last_run_at = self.last_run_at.max(Some(bucket.last_run_at));
            self.last_failure_at = self.last_failure_at.max(bucket.last_failure_at);
            for ring in &mut self.rings {
                ring.add(bucket.start, bucket.passed, bucket.failed);
            }
        }
        for (ring, span) in self.rings.iter_mut().zip(counting.rings.values()) {
            ring.forget_until(at.minus(*span));
        }
        if !counting.monitor.rule.compares() {
            return;
        }
        for new in disagreements(codes, scope) {
            self.disagreements.retain(|known| known.code != new.code);
            self.disagreements.push(new);
        }
        self.disagreements.sort_by(|one, other| (other.at, &other.code).cmp(&(one.at, &one.code)));
        let mut kept = [0, 0];
        self.disagreements.retain(|known| {
            let [certain, doubtful] = &mut kept;
            let count = if known.doubt.is_none() { certain } else { doubtful };
            *count += 1;
            *count <= MAX_DISAGREEMENTS
        });
    }

    fn forget(&mut self, scope: &BranchScope, failures: &Summary) {
        let mut last = None;
        for bucket in failures.buckets.iter().filter(|it| scope.covers(&it.branch, it.class)) {
            for ring in &mut self.rings {
                ring.take(bucket.start, bucket.failed);
            }
            last = last.max(bucket.last_failure_at);
        }
        let codes: BTreeSet<&SameCode> = failures.codes.iter().map(|it| &it.code).collect();
        self.disagreements.retain(|known| !codes.contains(&known.code));
        if self.last_failure_at <= last {
            self.last_failure_at = self.rings.iter().filter_map(Ring::last_failing).max();
        }
    }

    pub(super) fn tally(&self, span: Span, at: Timestamp) -> Tally {
        let length = bucket_length(span);
        let ring = self.rings.iter().find(|ring| ring.length() == length);
        let (passed, failed) = ring.map_or((0, 0), |ring| ring.sum(at.minus(span), at));
        let kept = |last: &Timestamp| is_kept(*last, at);
        Tally {
            runs: passed.saturating_add(failed),
            failures: failed,
            last_run_at: self.last_run_at.filter(kept),
            last_failure_at: self.last_failure_at.filter(kept),
        }
    }

    /// Runs by bucket of a window.
    pub(super) fn periods(&self, span: Span, at: Timestamp) -> Vec<Period> {
        let length = bucket_length(span);
        let ring = self.rings.iter().find(|ring| ring.length() == length);
        ring.map_or_else(Vec::new, |ring| ring.periods(at.minus(span), at))
    }

    /// The known disagreements, the newest first.
    pub(super) fn disagreements(&self) -> &[Disagreement] {
        &self.disagreements
    }
}

/// From when on a run can matter to a monitor at a time.
pub fn horizon(at: Timestamp) -> Timestamp {
    at.minus(Span::hours(MAX_HOURS))
}

/// Whether the bucket of a run is within the time that monitors look back.
fn is_kept(run: Timestamp, at: Timestamp) -> bool {
    run.floor(Span::minutes(BUCKET_MINUTES)) >= horizon(at)
}

/// The codes on which runs of a scope failed and passed.
pub(super) fn disagreements(codes: &[CodeSummary], scope: &BranchScope) -> Vec<Disagreement> {
    let mut by_code: BTreeMap<&SameCode, Vec<&CodeSummary>> = BTreeMap::new();
    for row in codes.iter().filter(|row| scope.covers(&row.branch, row.class)) {
        by_code.entry(&row.code).or_default().push(row);
    }
    by_code.into_iter().filter_map(|(code, rows)| disagreement(code, &rows)).collect()
}

/// Each failure with each success among rows of one code that can be compared.
pub(in crate::flaky) fn comparable<'a>(
    code: &SameCode,
    rows: &[&'a CodeSummary],
) -> Vec<Compared<'a>> {
    // Where one attempt of a job both failed and passed, the job has several matrix entries.
    let mixed =
        |row: &&&CodeSummary| row.first_failure_at.is_some() && row.first_success_at.is_some();
    let entries: BTreeSet<_> =
        rows.iter().filter(mixed).filter_map(|row| row.origin.shared_attempt()).collect();
    let mut found = Vec::new();
    for failing in rows {
        let Some(failed_at) = failing.first_failure_at else { continue };
        let has_entries = failing.origin.shared_attempt().is_some_and(|it| entries.contains(&it));
        for passing in rows {
            let Some(passed_at) = passing.first_success_at else { continue };
            let doubt = match code {
                SameCode::Upload(_) => None,
                SameCode::Commit(_) | SameCode::Tree(_) => {
                    match failing.origin.compare(passing.origin, has_entries) {
                        Comparison::Different => continue,
                        Comparison::Same => None,
                        Comparison::Doubtful(about) => Some(about),
                    }
                }
            };
            found.push(Compared { failing, failed_at, passed_at, doubt });
        }
    }
    found
}

/// The first failure and success on a code that can be compared. One in doubt counts only if there is
/// no other.
fn disagreement(code: &SameCode, rows: &[&CodeSummary]) -> Option<Disagreement> {
    let found = comparable(code, rows).into_iter().map(|it| {
        let doubt = it.doubt.map(|about| Uncertainty {
            about,
            failed_at: it.failed_at,
            branch: (it.failing.class != BranchClass::Stable).then(|| it.failing.branch.clone()),
        });
        Disagreement { code: code.clone(), at: it.failed_at.max(it.passed_at), doubt }
    });
    let rank = |it: &Disagreement| (it.doubt.is_some(), it.at, it.doubt.clone());
    found.min_by_key(rank)
}

impl Bucket {
    /// The start of the bucket of a window that this one is a part of.
    pub(super) fn start_in(&self, window: Span) -> Timestamp {
        self.start.floor(bucket_length(window))
    }
}
