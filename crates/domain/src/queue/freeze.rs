//! Freezes: periods in which only urgent pull requests merge. The setting `freezes` has the
//! rules.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::{AmbiguousTimestamp, TimeZone};
use jiff::{Error, ToSpan as _};

use crate::time::{Span, Timestamp};

use super::{FreezeScope, InvalidScope};

/// A freeze in force.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Freeze {
    /// When it ends; `None` for a freeze without an end.
    pub until: Option<Timestamp>,
    /// The reason given in its rule.
    pub reason: Option<String>,
}

/// A freeze in force that applies only to some pull requests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PartialFreeze {
    /// The pull requests that it applies to.
    pub scope: FreezeScope,
    /// When it ends; `None` for a freeze without an end.
    pub until: Option<Timestamp>,
    /// The reason given in its rule.
    pub reason: Option<String>,
}

/// The freezes at a point in time, and when they next change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct FreezeState {
    /// The freeze in force that applies to all pull requests.
    pub in_force: Option<Freeze>,
    /// The freezes in force that apply only to some, in the order of their rules.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub partial: Vec<PartialFreeze>,
    /// When a period begins or ends next, so that the rules must be evaluated again; `None` if none
    /// does.
    pub due: Option<Timestamp>,
}

/// How many periods that follow each other without a gap count as one freeze. The end of a longer
/// freeze is not known.
const LINKED: usize = 16;

impl FreezeState {
    /// Evaluates the rules of the setting at a point in time. Invalid rules are ignored.
    pub fn at(rules: &[String], at: Timestamp) -> Self {
        let rules: Vec<Rule> = rules.iter().filter_map(|text| Rule::parse(text).ok()).collect();
        let due = rules.iter().filter_map(|rule| rule.next_bound(at)).min();
        let with_scope = |scope: Option<&FreezeScope>| -> Vec<&Rule> {
            rules.iter().filter(|rule| rule.scope.as_ref() == scope).collect()
        };
        let whole = with_scope(None);
        let mut partial: Vec<PartialFreeze> = Vec::new();
        for scope in rules.iter().filter_map(|rule| rule.scope.as_ref()) {
            let own = with_scope(Some(scope));
            let Some(Freeze { reason, .. }) = in_force(&own, at) else { continue };
            // A freeze of all pull requests may continue it.
            let linked: Vec<&Rule> = own.into_iter().chain(whole.iter().copied()).collect();
            let until = in_force(&linked, at).and_then(|freeze| freeze.until);
            let freeze = PartialFreeze { scope: scope.clone(), until, reason };
            if !partial.contains(&freeze) {
                partial.push(freeze);
            }
        }
        Self { in_force: in_force(&whole, at), partial, due }
    }

    /// Whether no freeze is in force and none is due, as without rules.
    #[cfg(feature = "serde")]
    pub(super) const fn is_empty(&self) -> bool {
        self.in_force.is_none() && self.partial.is_empty() && self.due.is_none()
    }
}

/// The freeze of some rules at a point in time, if one of them has a period then.
fn in_force(rules: &[&Rule], at: Timestamp) -> Option<Freeze> {
    let covering = |at| {
        let near = rules.iter().flat_map(move |rule| rule.periods(at).map(move |it| (rule, it)));
        near.filter(move |(_, period)| period.contains(at))
    };
    covering(at).next()?;
    let mut until = Some(at);
    for _ in 0..LINKED {
        match until.and_then(|until| covering(until).map(|(_, period)| period.until).max()) {
            Some(later) => until = Some(later).filter(|later| *later < OPEN),
            None => break,
        }
    }
    // The last of the linked periods may have another one behind it.
    let until = until.filter(|until| covering(*until).next().is_none());
    let reason = covering(at).find_map(|(rule, _)| rule.reason.clone());
    Some(Freeze { until, reason })
}

/// How long a wait from `at` on lasts, if its time passes only outside freezes and it may not end in
/// one; `None` if it does not end, or after too many freezes to count. Freezes with a scope do not count.
pub(super) fn prolonged(rules: &[String], at: Timestamp, wait: Span) -> Option<Span> {
    let rules: Vec<Rule> = rules.iter().filter_map(|text| Rule::parse(text).ok()).collect();
    let rules: Vec<&Rule> = rules.iter().filter(|rule| rule.scope.is_none()).collect();
    let (mut now, mut left) = (at, wait);
    for _ in 0..4 * LINKED {
        if let Some(freeze) = in_force(&rules, now) {
            now = freeze.until?;
            continue;
        }
        let due = rules.iter().filter_map(|rule| rule.next_bound(now)).min();
        let open = due.map(|due| due.since(now)).filter(|open| *open <= left);
        let Some(open) = open else { return Some(now.plus(left).since(at)) };
        now = now.plus(open);
        left = Span::from_micros(left.micros() - open.micros());
    }
    None
}

/// The first freeze with a scope that applies within a period.
pub(super) fn first_partial(
    rules: &[String],
    applies: impl Fn(&FreezeScope) -> bool,
    from: Timestamp,
    until: Timestamp,
) -> Option<Freeze> {
    let rules: Vec<Rule> = rules.iter().filter_map(|text| Rule::parse(text).ok()).collect();
    let rules: Vec<&Rule> =
        rules.iter().filter(|rule| rule.scope.as_ref().is_some_and(&applies)).collect();
    let start = || rules.iter().filter_map(|rule| rule.next_bound(from)).min();
    in_force(&rules, from).or_else(|| in_force(&rules, start().filter(|start| *start < until)?))
}

/// Why a rule for a freeze is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFreeze {
    /// The text does not have the form of a rule.
    #[error(
        "{0:?} is not of the form START/END[TIME ZONE]{{SCOPE}} REASON, such as \
         \"Fri 16:00/Mon 08:00[Europe/Berlin] weekend\", \"22:00/06:00[UTC]\" or \
         \"2026-12-21T00:00/2027-01-04T08:00[America/New_York]\""
    )]
    Form(String),
    /// Its time zone is not in the IANA database.
    #[error("{0:?} is not a time zone of the IANA database, such as \"Europe/Berlin\" or \"UTC\"")]
    UnknownZone(String),
    /// Its end is not after its start, or too far in the future.
    #[error("{0:?}: the end must be after the start, and before the year 9999")]
    End(String),
    /// Its scope is not a list of labels and targets.
    #[error("{0:?}: {1}")]
    Scope(String, InvalidScope),
    /// It has a comma, which separates rules on the command line, or a line break, which separates them
    /// on pages.
    #[error("{0:?} must not contain commas or control characters")]
    Separator(String),
}

/// Checks a rule of the setting.
pub(super) fn check(text: &str) -> Result<(), InvalidFreeze> {
    Rule::parse(text).map(drop)
}

/// Whether a rule of the setting is for a freeze without an end; `false` for an invalid rule.
pub fn is_endless_freeze(rule: &str) -> bool {
    let times = Rule::parse(rule).map(|rule| rule.times);
    matches!(times, Ok(Times::Once { until: None, .. }))
}

/// Whether a rule of the setting is for a freeze of some pull requests; `false` for an invalid rule.
pub fn is_partial_freeze(rule: &str) -> bool {
    Rule::parse(rule).is_ok_and(|rule| rule.scope.is_some())
}

/// A rule: its periods, in the local time of a time zone.
struct Rule {
    times: Times,
    zone: TimeZone,
    /// `None` if it applies to all pull requests.
    scope: Option<FreezeScope>,
    reason: Option<String>,
}

enum Times {
    /// One period.
    Once { from: DateTime, until: Option<DateTime> },
    /// A period each week, or each day without a weekday; it ends this many days after the day on which
    /// it starts.
    Recurring { weekday: Option<Weekday>, from: Time, days: i32, until: Time },
}

/// A period that includes its start and excludes its end.
struct Period {
    from: Timestamp,
    until: Timestamp,
}

impl Period {
    fn contains(&self, at: Timestamp) -> bool {
        self.from <= at && at < self.until
    }
}

/// Stands for the end of a period without one.
const OPEN: Timestamp = Timestamp::from_unix_micros(i64::MAX);

impl Rule {
    fn parse(text: &str) -> Result<Self, InvalidFreeze> {
        if text.contains(|c: char| c == ',' || c.is_control()) {
            return Err(InvalidFreeze::Separator(text.to_owned()));
        }
        let form = || InvalidFreeze::Form(text.to_owned());
        let (times, rest) = text.split_once('[').ok_or_else(form)?;
        let (zone, rest) = rest.split_once(']').ok_or_else(form)?;
        let (from, until) = times.split_once('/').ok_or_else(form)?;
        let unknown = || InvalidFreeze::UnknownZone(zone.to_owned());
        let times = Times::parse(from.trim(), until.trim()).ok_or_else(form)?;
        let zone = TimeZone::get(zone).ok().filter(|it| !it.is_unknown()).ok_or_else(unknown)?;
        let (scope, reason) = match rest.trim_start().strip_prefix('{') {
            Some(scoped) => {
                let invalid = |it| InvalidFreeze::Scope(text.to_owned(), it);
                let (scope, reason) =
                    scoped.split_once('}').ok_or(InvalidScope).map_err(invalid)?;
                if reason.contains('}') {
                    return Err(invalid(InvalidScope));
                }
                (Some(FreezeScope::parse(scope).map_err(invalid)?), reason)
            }
            None => (None, rest),
        };
        let reason = Some(reason.trim()).filter(|reason| !reason.is_empty());
        let rule = Self { times, zone, scope, reason: reason.map(ToOwned::to_owned) };
        let near = Timestamp::from_unix_seconds(0);
        let is_valid = !rule.times.is_always() && rule.periods(near).all(|it| it.from < it.until);
        let has_periods = rule.periods(near).next().is_some();
        if is_valid && has_periods { Ok(rule) } else { Err(InvalidFreeze::End(text.to_owned())) }
    }

    /// When a period begins or ends next.
    fn next_bound(&self, at: Timestamp) -> Option<Timestamp> {
        let bounds = self.periods(at).flat_map(|period| [period.from, period.until]);
        bounds.filter(|bound| at < *bound && *bound < OPEN).min()
    }

    /// The periods of the rule around a time, in order: at least the one that covers it, and the next.
    fn periods(&self, near: Timestamp) -> impl Iterator<Item = Period> {
        let mut once = None;
        let mut recurring = None;
        match self.times {
            Times::Once { from, until } => once = Some((from, until)),
            Times::Recurring { weekday, from, days, until } => {
                let near =
                    jiff::Timestamp::from_microsecond(near.unix_micros()).unwrap_or_default();
                let today = self.zone.to_datetime(near).date();
                recurring = Some(around(today).filter_map(move |date| {
                    let is_start = weekday.is_none_or(|weekday| weekday == date.weekday());
                    let end = date.checked_add(days.days()).ok().filter(|_| is_start)?;
                    Some((date.to_datetime(from), Some(end.to_datetime(until))))
                }));
            }
        }
        once.into_iter().chain(recurring.into_iter().flatten()).filter_map(|(from, until)| {
            // When clocks go back, some local times occur twice, and when they go forward, some do
            // not occur: the longest possible freeze counts.
            let from = self.instant(from, AmbiguousTimestamp::earlier)?;
            let until = match until {
                Some(until) => self.instant(until, AmbiguousTimestamp::later)?,
                None => OPEN,
            };
            Some(Period { from, until })
        })
    }

    /// `None` for a time that is out of range.
    fn instant(
        &self,
        local: DateTime,
        choose: impl FnOnce(AmbiguousTimestamp) -> Result<jiff::Timestamp, Error>,
    ) -> Option<Timestamp> {
        let instant = choose(self.zone.to_ambiguous_timestamp(local)).ok()?;
        Some(Timestamp::from_unix_micros(instant.as_microsecond()))
    }
}

/// The days on which a period near this one may start: nine days back, because a period can last a
/// week, to eight ahead, where the next weekly one starts.
fn around(today: Date) -> impl Iterator<Item = Date> {
    (-9..=8).filter_map(move |days: i32| today.checked_add(days.days()).ok())
}

impl Times {
    fn parse(from: &str, until: &str) -> Option<Self> {
        if let Some(from) = date_time(from) {
            let until = if until == ".." { None } else { Some(date_time(until)?) };
            return Some(Self::Once { from, until });
        }
        let ((weekday, from), (last, until)) = (clock(from)?, clock(until)?);
        let next_day = i32::from(until <= from);
        let days = match (weekday, last) {
            (None, None) => next_day,
            (Some(first), Some(last)) => match i32::from(first.until(last)) {
                0 => 7 * next_day,
                days => days,
            },
            (None, Some(_)) | (Some(_), None) => return None,
        };
        Some(Self::Recurring { weekday, from, days, until })
    }

    /// Whether it recurs without a gap.
    fn is_always(&self) -> bool {
        match *self {
            Self::Once { .. } => false,
            Self::Recurring { weekday, from, days, until } => {
                from == until && days == if weekday.is_some() { 7 } else { 1 }
            }
        }
    }
}

/// Parses `2026-12-21T08:00`.
fn date_time(text: &str) -> Option<DateTime> {
    has_form(text, "####-##-##T##:##").then(|| text.parse().ok()).flatten()
}

/// Parses `16:00` or `Fri 16:00`.
fn clock(text: &str) -> Option<(Option<Weekday>, Time)> {
    let (weekday, time) = match text.split_once(' ') {
        Some((name, time)) => (Some(weekday(name)?), time.trim_start()),
        None => (None, text),
    };
    has_form(time, "##:##").then(|| Some((weekday, time.parse().ok()?))).flatten()
}

/// Whether a text has the characters of a form, with a digit for each `#`.
fn has_form(text: &str, form: &str) -> bool {
    let fits = |(byte, wanted): (u8, u8)| match wanted {
        b'#' => byte.is_ascii_digit(),
        _ => byte == wanted,
    };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(fits)
}

fn weekday(name: &str) -> Option<Weekday> {
    let names = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let at = names.iter().position(|known| known.eq_ignore_ascii_case(name))?;
    Weekday::from_monday_zero_offset(i8::try_from(at).ok()?).ok()
}

#[cfg(test)]
#[path = "freeze_tests.rs"]
mod tests;
