//! What authors use: pull requests that enter the line, and minutes of test runs.
//!
//! Both are counted in short periods, and a count expires with its period, so that what is kept is
//! bounded by the authors of a day. Nothing is counted while no quota needs it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::time::{Span, Timestamp};

use super::Settings;

/// The quotas of an author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quota {
    /// Pull requests that enter the line within an hour.
    HourlyPullRequests,
    /// Minutes of test runs within a day.
    DailyMinutes,
}

impl Quota {
    pub(super) const ALL: [Self; 2] = [Self::HourlyPullRequests, Self::DailyMinutes];

    /// The name of its setting.
    pub(super) const fn setting(self) -> &'static str {
        match self {
            Self::HourlyPullRequests => "authorHourlyLimit",
            Self::DailyMinutes => "authorDailyMinutes",
        }
    }

    /// How much an author may use; `None` without a limit.
    pub(super) const fn limit(self, settings: &Settings) -> Option<u32> {
        let limit = match self {
            Self::HourlyPullRequests => settings.author_hourly_limit,
            Self::DailyMinutes => settings.author_daily_minutes,
        };
        if limit > 0 { Some(limit) } else { None }
    }

    /// How long what is used counts, and the length of the periods in which it is counted.
    fn window(self) -> (Span, Span) {
        match self {
            Self::HourlyPullRequests => (Span::hours(1), Span::minutes(5)),
            Self::DailyMinutes => (Span::hours(24), Span::hours(4)),
        }
    }

    /// What of an amount counts against the limit: whole minutes of seconds.
    const fn counted(self, amount: u64) -> u64 {
        match self {
            Self::HourlyPullRequests => amount,
            Self::DailyMinutes => amount / 60,
        }
    }
}

/// What an author used in a period: its number since 1970, and the amount.
type Period = (i64, u32);

/// What one author has used, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
struct Used {
    /// Pull requests that entered the line.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    entered: Vec<Period>,
    /// Seconds of test runs.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    tested: Vec<Period>,
}

impl Used {
    const fn of(&self, quota: Quota) -> &Vec<Period> {
        match quota {
            Quota::HourlyPullRequests => &self.entered,
            Quota::DailyMinutes => &self.tested,
        }
    }

    const fn of_mut(&mut self, quota: Quota) -> &mut Vec<Period> {
        match quota {
            Quota::HourlyPullRequests => &mut self.entered,
            Quota::DailyMinutes => &mut self.tested,
        }
    }
}

/// What authors have used of their quotas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(from = "BTreeMap<String, Used>"))]
pub struct Usage(Arc<BTreeMap<String, Used>>);

impl From<BTreeMap<String, Used>> for Usage {
    fn from(used: BTreeMap<String, Used>) -> Self {
        Self(Arc::new(used))
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Usage {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// A quota that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UsedUp {
    pub(super) quota: Quota,
    pub(super) limit: u32,
    /// When enough of it has expired.
    pub(super) until: Timestamp,
}

impl Usage {
    /// Whether nothing is counted.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts what an author uses, if there is a limit for it.
    pub(super) fn count(
        &mut self,
        quota: Quota,
        settings: &Settings,
        author: &str,
        (at, amount): (Timestamp, u32),
    ) {
        if author.is_empty() || amount == 0 || quota.limit(settings).is_none() {
            return;
        }
        let (_, length) = quota.window();
        let number = at.unix_micros().div_euclid(length.micros());
        let used = Arc::make_mut(&mut self.0).entry(author.to_owned()).or_default();
        let periods = used.of_mut(quota);
        match periods.last_mut() {
            Some((last, sum)) if *last >= number => *sum = sum.saturating_add(amount),
            Some(_) | None => periods.push((number, amount)),
        }
    }

    /// Drops what no longer counts at that time, or is of a quota without a limit. Returns whether there
    /// was any.
    pub(super) fn forget(&mut self, settings: &Settings, at: Timestamp) -> bool {
        let is_gone = |quota: Quota, period: &Period| {
            quota.limit(settings).is_none() || expires(quota, *period) <= at
        };
        let any_gone = |used: &Used| {
            Quota::ALL.iter().any(|quota| used.of(*quota).iter().any(|it| is_gone(*quota, it)))
        };
        if !self.0.values().any(any_gone) {
            return false;
        }
        let all = Arc::make_mut(&mut self.0);
        all.retain(|_, used| {
            for quota in Quota::ALL {
                used.of_mut(quota).retain(|it| !is_gone(quota, it));
            }
            *used != Used::default()
        });
        true
    }

    /// The quota that an author has used up and that is restored last.
    pub(super) fn used_up(&self, settings: &Settings, author: &str) -> Option<UsedUp> {
        let used = self.0.get(author)?;
        let used_up = Quota::ALL.into_iter().filter_map(|quota| {
            let limit = quota.limit(settings)?;
            let periods = used.of(quota);
            let mut left: u64 = periods.iter().map(|(_, amount)| u64::from(*amount)).sum();
            let mut until = None;
            for period in periods {
                if quota.counted(left) < u64::from(limit) {
                    break;
                }
                left -= u64::from(period.1);
                until = Some(expires(quota, *period));
            }
            Some(UsedUp { quota, limit, until: until? })
        });
        used_up.max_by_key(|it| it.until)
    }
}

/// When a period no longer counts: its end is as long ago as the quota looks back.
fn expires(quota: Quota, (number, _): Period) -> Timestamp {
    let (window, length) = quota.window();
    let end = number.saturating_add(1).saturating_mul(length.micros());
    Timestamp::from_unix_micros(end).plus(window)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(hourly: u32, daily: u32) -> Settings {
        let builder = Settings::builder().author_hourly_limit(hourly);
        builder.author_daily_minutes(daily).build().expect("valid settings")
    }

    fn at(minutes: u32) -> Timestamp {
        Timestamp::from_unix_seconds(1_764_288_000).plus(Span::minutes(minutes))
    }

    #[test]
    fn a_quota_is_restored_when_enough_has_expired() {
        let settings = settings(3, 0);
        let mut usage = Usage::default();
        let enter = |usage: &mut Usage, minute| {
            usage.count(Quota::HourlyPullRequests, &settings, "ada", (at(minute), 1));
        };
        for minute in [1, 2, 20] {
            assert_eq!(usage.used_up(&settings, "ada"), None);
            enter(&mut usage, minute);
        }
        let used_up = usage.used_up(&settings, "ada").expect("used up");
        assert_eq!((used_up.limit, used_up.until), (3, at(65)));
        assert_eq!(usage.used_up(&settings, "grace"), None);
        enter(&mut usage, 21);
        enter(&mut usage, 30);
        let used_up = usage.used_up(&settings, "ada").expect("used up");
        assert_eq!(used_up.until, at(85), "five are in use, so three must expire");
        assert!(usage.forget(&settings, at(65)) && usage.forget(&settings, at(85)));
        assert_eq!(usage.used_up(&settings, "ada"), None);
        assert!(usage.forget(&settings, at(95)));
        assert_eq!(usage, Usage::default());
    }

    #[test]
    fn minutes_of_test_runs_count_for_a_day() {
        let settings = settings(0, 90);
        let mut usage = Usage::default();
        let test = |usage: &mut Usage, hour: u32, seconds| {
            usage.count(Quota::DailyMinutes, &settings, "ada", (at(60 * hour), seconds));
        };
        test(&mut usage, 1, 3_000);
        test(&mut usage, 2, 2_399);
        assert_eq!(usage.used_up(&settings, "ada"), None);
        test(&mut usage, 5, 1);
        let used_up = usage.used_up(&settings, "ada").expect("used up");
        assert_eq!((used_up.limit, used_up.until), (90, at(60 * 28)));
    }

    #[test]
    fn without_a_limit_nothing_is_counted_or_kept() {
        let (limited, unlimited) = (settings(1, 1), settings(0, 0));
        let mut usage = Usage::default();
        for quota in Quota::ALL {
            usage.count(quota, &unlimited, "ada", (at(0), 60));
            usage.count(quota, &limited, "", (at(0), 60));
        }
        assert_eq!(usage, Usage::default());
        for quota in Quota::ALL {
            usage.count(quota, &limited, "ada", (at(0), 60));
        }
        assert!(usage.used_up(&limited, "ada").is_some());
        assert_eq!(usage.used_up(&unlimited, "ada"), None);
        assert!(!usage.forget(&limited, at(0)) && usage.forget(&unlimited, at(0)));
        assert_eq!(usage, Usage::default());
    }
}
