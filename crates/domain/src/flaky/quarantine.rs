//! The quarantine rule, in one place. In any doubt a test is not quarantined.

use std::fmt;

use crate::time::{Span, Timestamp};
use crate::words::words;

use super::{Actor, Settings, TestCase};

words!(
    /// How a test is judged.
    TestStatus {
        /// There is no finding about it.
        Healthy = "healthy",
        /// It passes and fails on the same code.
        Flaky = "flaky",
        /// It fails consistently.
        Broken = "broken",
    }
);

words!(
    /// What was decided about one test.
    QuarantineOverride {
        /// Quarantined whatever its status.
        Always = "ALWAYS_QUARANTINE",
        /// Never quarantined.
        Never = "NEVER_QUARANTINE",
        /// The repository's settings apply.
        Follow = "UNSPECIFIED",
    }
);

words!(
    /// Which tests a repository quarantines automatically.
    AutoQuarantine {
        /// None.
        Off = "off",
        /// Flaky ones.
        Flaky = "flaky",
        /// Flaky and broken ones: what switching it on means in the specification.
        FlakyAndBroken = "flaky_and_broken",
    }
);

impl AutoQuarantine {
    /// What a plain switch means: flaky and broken tests, or none.
    pub const fn from_switch(on: bool) -> Self {
        if on { Self::FlakyAndBroken } else { Self::Off }
    }
}

/// What a repository has decided about quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct QuarantineSettings {
    /// Whether there is any quarantine at all.
    pub enabled: bool,
    /// Which tests it quarantines automatically.
    pub auto: AutoQuarantine,
}

/// Since when the settings have quarantined what they do; `None` where they do not, or have since
/// before this was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct QuarantineSince {
    /// Tests whose override says always: quarantine is enabled.
    pub enabled: Option<Timestamp>,
    /// Flaky tests.
    pub flaky: Option<Timestamp>,
    /// Broken tests.
    pub broken: Option<Timestamp>,
}

impl QuarantineSince {
    /// The times after settings have changed.
    pub(super) fn changed(
        self,
        from: QuarantineSettings,
        to: QuarantineSettings,
        at: Timestamp,
    ) -> Self {
        let dated = |since: Option<Timestamp>, test: Quarantining, status: TestStatus| {
            let covers = |settings| is_quarantined(settings, test, status, at);
            match (covers(from), covers(to)) {
                (_, false) => None,
                (false, true) => Some(at),
                (true, true) => since,
            }
        };
        let always = Quarantining { setting: QuarantineOverride::Always, expires_at: None };
        Self {
            enabled: dated(self.enabled, always, TestStatus::Healthy),
            flaky: dated(self.flaky, Quarantining::FOLLOW, TestStatus::Flaky),
            broken: dated(self.broken, Quarantining::FOLLOW, TestStatus::Broken),
        }
    }

    /// The time for a test with that override and that status.
    pub(super) fn of(self, setting: QuarantineOverride, status: TestStatus) -> Option<Timestamp> {
        match (setting, status) {
            (QuarantineOverride::Always, _) => self.enabled,
            (QuarantineOverride::Follow, TestStatus::Flaky) => self.flaky,
            (QuarantineOverride::Follow, TestStatus::Broken) => self.broken,
            (QuarantineOverride::Follow, TestStatus::Healthy) | (QuarantineOverride::Never, _) => {
                None
            }
        }
    }
}

/// An override, and until when it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Quarantining {
    /// What was decided.
    pub setting: QuarantineOverride,
    /// The first moment at which it no longer holds. Only `Always` may expire: a `Never` that did
    /// would quarantine a test by the mere passing of time.
    pub expires_at: Option<Timestamp>,
}

impl Quarantining {
    /// The repository's settings apply.
    pub const FOLLOW: Self = Self { setting: QuarantineOverride::Follow, expires_at: None };

    /// What holds at that time: an `Always` that has expired is a `Follow`.
    pub fn at(self, at: Timestamp) -> QuarantineOverride {
        match self.setting {
            QuarantineOverride::Always if self.expires_at.is_some_and(|end| end <= at) => {
                QuarantineOverride::Follow
            }
            setting @ (QuarantineOverride::Always
            | QuarantineOverride::Never
            | QuarantineOverride::Follow) => setting,
        }
    }
}

/// Whether a test is quarantined at a time: its next failure then counts as passed.
///
/// True when quarantining is enabled for the repository and either the test's override says
/// always, or the override leaves it to the repository and automatic quarantining covers the
/// test's status. `Never` beats everything.
pub fn is_quarantined(
    settings: QuarantineSettings,
    test: Quarantining,
    status: TestStatus,
    at: Timestamp,
) -> bool {
    settings.enabled
        && match test.at(at) {
            QuarantineOverride::Always => true,
            QuarantineOverride::Never => false,
            QuarantineOverride::Follow => match settings.auto {
                AutoQuarantine::Off => false,
                AutoQuarantine::Flaky => matches!(status, TestStatus::Flaky),
                AutoQuarantine::FlakyAndBroken => {
                    matches!(status, TestStatus::Flaky | TestStatus::Broken)
                }
            },
        }
}

/// Days without a failure after which a quarantined test can be released.
pub const RELEASE_DAYS: u32 = 14;

/// Whether only an override of [`RELEASE_DAYS`] ago or earlier keeps a test in quarantine: it has been
/// healthy since then, and no failure has counted. Whether it ran lately is not known here.
pub fn can_be_released(test: &TestCase, last_failure_at: Option<Timestamp>, at: Timestamp) -> bool {
    let since = at.minus(Span::days(RELEASE_DAYS));
    test.quarantining().at(at) == QuarantineOverride::Always
        && test.quarantine.as_ref().is_none_or(|decision| decision.at <= since)
        && test.standing.value == TestStatus::Healthy
        && test.standing.since <= since
        && last_failure_at.is_none_or(|failed| failed <= since)
}

/// Who or what quarantined a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuarantineCause {
    /// A user, by an override.
    Override {
        /// Who.
        by: Actor,
    },
    /// A user, by a flag.
    Flag {
        /// Who.
        by: Actor,
    },
    /// A monitor.
    Monitor {
        /// What it found the test to be.
        status: TestStatus,
        /// Its name; its id once it is deleted.
        name: String,
    },
}

impl fmt::Display for QuarantineCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Override { by } => write!(f, "always quarantined by {}", by.full_name),
            Self::Flag { by } => write!(f, "flagged as flaky by {}", by.full_name),
            Self::Monitor { status, name } => write!(f, "{} by monitor {name}", status.as_str()),
        }
    }
}

/// [`is_quarantined`] where the repository's settings or the test may be unknown: then it is not.
pub fn is_known_quarantined(
    settings: Option<&Settings>,
    test: Option<&TestCase>,
    at: Timestamp,
) -> bool {
    match (settings, test) {
        (Some(settings), Some(test)) => test.is_quarantined(settings, at),
        (Some(_) | None, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The truth table, written out: enabled, auto, override, status, quarantined.
    #[test]
    fn the_rule_is_its_truth_table() {
        use AutoQuarantine as A;
        use QuarantineOverride as O;
        use TestStatus as S;
        let quarantined_when_enabled = [
            (A::Off, O::Always, S::Healthy),
            (A::Off, O::Always, S::Flaky),
            (A::Off, O::Always, S::Broken),
            (A::Flaky, O::Always, S::Healthy),
            (A::Flaky, O::Always, S::Flaky),
            (A::Flaky, O::Always, S::Broken),
            (A::Flaky, O::Follow, S::Flaky),
            (A::FlakyAndBroken, O::Always, S::Healthy),
            (A::FlakyAndBroken, O::Always, S::Flaky),
            (A::FlakyAndBroken, O::Always, S::Broken),
            (A::FlakyAndBroken, O::Follow, S::Flaky),
            (A::FlakyAndBroken, O::Follow, S::Broken),
        ];
        let mut rows = 0;
        for enabled in [false, true] {
            for &auto in A::ALL {
                for &over in O::ALL {
                    for &status in S::ALL {
                        let expected =
                            enabled && quarantined_when_enabled.contains(&(auto, over, status));
                        let settings = QuarantineSettings { enabled, auto };
                        let test = Quarantining { setting: over, expires_at: None };
                        assert_eq!(
                            is_quarantined(settings, test, status, Timestamp::from_unix_seconds(0)),
                            expected,
                            "{enabled} {auto:?} {over:?} {status:?}"
                        );
                        rows += 1;
                    }
                }
            }
        }
        assert_eq!(rows, 54);
    }

    #[test]
    fn an_expired_override_leaves_it_to_the_repository() {
        let end = Timestamp::from_unix_seconds(100);
        let test = Quarantining { setting: QuarantineOverride::Always, expires_at: Some(end) };
        let before = Timestamp::from_unix_seconds(99);
        for (auto, status, after) in [
            (AutoQuarantine::Off, TestStatus::Flaky, false),
            (AutoQuarantine::Flaky, TestStatus::Flaky, true),
            (AutoQuarantine::Flaky, TestStatus::Broken, false),
            (AutoQuarantine::FlakyAndBroken, TestStatus::Healthy, false),
        ] {
            let settings = QuarantineSettings { enabled: true, auto };
            assert!(is_quarantined(settings, test, status, before));
            assert_eq!(is_quarantined(settings, test, status, end), after, "{auto:?} {status:?}");
        }
        let never = Quarantining { setting: QuarantineOverride::Never, expires_at: Some(end) };
        let settings = QuarantineSettings { enabled: true, auto: AutoQuarantine::FlakyAndBroken };
        assert!(!is_quarantined(settings, never, TestStatus::Broken, end), "never does not expire");
    }

    #[test]
    fn what_is_unknown_is_not_quarantined() {
        assert!(!is_known_quarantined(None, None, Timestamp::from_unix_seconds(0)));
    }
}
