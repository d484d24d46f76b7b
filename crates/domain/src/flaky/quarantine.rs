//! The quarantine rule.

use crate::words::words;

words!(
    /// How a test is judged.
    TestStatus {
        /// Nothing speaks against it.
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
    /// Which tests a repository quarantines by itself.
    AutoQuarantine {
        /// None.
        Off = "off",
        /// Flaky ones.
        Flaky = "flaky",
        /// Flaky and broken ones: what switching it on means in the specification.
        FlakyAndBroken = "flaky_and_broken",
    }
);

/// What a repository has decided about quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuarantineSettings {
    /// Whether there is any quarantine at all.
    pub enabled: bool,
    /// Which tests it takes by itself.
    pub auto: AutoQuarantine,
}

/// Whether a test is quarantined: its next failure then counts as passed.
///
/// True when quarantining is enabled for the repository and either the test's override says
/// always, or the override leaves it to the repository and automatic quarantining covers the
/// test's status. `Never` beats everything.
pub const fn is_quarantined(
    settings: QuarantineSettings,
    test: QuarantineOverride,
    status: TestStatus,
) -> bool {
    settings.enabled
        && match test {
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
                        assert_eq!(
                            is_quarantined(settings, over, status),
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
}
