//! The enums over all kinds of monitors, made from the rows in `kinds`.

use std::fmt;

use crate::time::{Span, Timestamp};
use crate::words::words;

use super::super::Refusal;
use super::kinds::monitors;
use super::{
    Classification, Evidence, MonitorReading, MonitorRule, ParameterSpec, Runs, Verdict, kinds,
};

macro_rules! registry {
    ($($(#[$doc:meta])* $kind:ident, $reading:ident = $word:literal;)+) => {
        words!(
            /// The patterns that can be watched.
            MonitorKind { $($(#[$doc])* $kind = $word,)+ }
        );

        impl MonitorKind {
            /// Its parameters, in the order in which the API shows them.
            pub fn parameters(self) -> Vec<ParameterSpec> {
                match self {
                    $(Self::$kind => kinds::$kind::PARAMETERS.iter().map(|it| it.spec).collect(),)+
                }
            }

            /// A new rule of this kind with these values; what is not given has its default.
            pub fn start_with(self, given: &[(&str, u32)]) -> Rule {
                match self { $(Self::$kind => Rule::$kind(kinds::$kind::start_with(given)),)+ }
            }

            /// What a monitor of this kind may classify a test as.
            pub const fn classifies(self) -> &'static [Classification] {
                match self { $(Self::$kind => kinds::$kind::CLASSIFIES,)+ }
            }
        }

        /// What a monitor looks for, with its parameters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub enum Rule {
            $($(#[$doc])* $kind(kinds::$kind),)+
        }

        impl Rule {
            /// The kind.
            pub const fn kind(self) -> MonitorKind {
                match self { $(Self::$kind(_) => MonitorKind::$kind,)+ }
            }

            /// The names and values of its parameters.
            pub fn values(self) -> Vec<(&'static str, u32)> {
                match self { $(Self::$kind(rule) => rule.values(),)+ }
            }

            /// With these values, within their bounds or not. Names of other kinds are ignored.
            #[must_use]
            pub fn with(self, given: &[(&str, u32)]) -> Self {
                match self { $(Self::$kind(rule) => Self::$kind(rule.with(given)),)+ }
            }

            /// How far back it counts runs.
            pub(super) fn windows(self) -> Vec<Span> {
                match self { $(Self::$kind(rule) => rule.windows(),)+ }
            }

            /// Whether it compares the results of a code.
            pub(super) const fn compares(self) -> bool {
                match self { $(Self::$kind(_) => kinds::$kind::COMPARES,)+ }
            }

            pub(super) fn check(self) -> Result<(), Refusal> {
                match self { $(Self::$kind(rule) => rule.check(),)+ }
            }

            pub(super) fn read(self, runs: &Runs<'_>) -> Reading {
                match self { $(Self::$kind(rule) => Reading::$kind(rule.read(runs)),)+ }
            }

            /// `None` for a reading of another kind. Evidence of another kind is none.
            pub(super) fn judge(
                self,
                active: bool,
                evidence: Option<&Reading>,
                reading: &Reading,
                at: Timestamp,
            ) -> Option<Verdict> {
                match (self, reading) {
                    $((Self::$kind(rule), Reading::$kind(reading)) => {
                        let evidence = match evidence {
                            Some(Reading::$kind(evidence)) => Some(evidence),
                            _ => None,
                        };
                        Some(rule.judge(active, evidence, reading, at))
                    })+
                    ($(Self::$kind(_))|+, _) => None,
                }
            }
        }

        impl Rule {
            /// Until when a reading is a suspicion; `None`: it is none, or of another kind.
            pub(super) fn suspects_until(
                self,
                reading: &Reading,
                at: Timestamp,
            ) -> Option<Timestamp> {
                match (self, reading) {
                    $((Self::$kind(rule), Reading::$kind(reading)) => {
                        rule.suspects_until(reading, at)
                    })+
                    ($(Self::$kind(_))|+, _) => None,
                }
            }
        }

        /// What a monitor sees of one test at one time. It is the evidence of what follows from it.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub enum Reading {
            $($(#[$doc])* $kind(kinds::$reading),)+
        }

        impl Reading {
            /// The last run that the monitor knows of.
            pub fn last_run_at(&self) -> Option<Timestamp> {
                match self { $(Self::$kind(reading) => reading.last_run_at(),)+ }
            }

            /// The evidence as the API and events carry it: names and values.
            pub fn evidence(&self) -> Vec<(&'static str, Evidence)> {
                match self { $(Self::$kind(reading) => reading.evidence(),)+ }
            }
        }

        /// The reading as a short text.
        impl fmt::Display for Reading {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Self::$kind(reading) => reading.fmt(f),)+ }
            }
        }
    };
}

monitors!(registry);
