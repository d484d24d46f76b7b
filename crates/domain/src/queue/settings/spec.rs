//! Descriptions of settings: name, kind of values, and access by name.

use super::{
    BatchingRule, BisectionMode, DirectMergeMode, MergeMethod, Mode, OptimizationMode, Refusal,
    ReparentingMode, SETTINGS, Settings, SettingsPatch, SuccessEstimates,
    TestBranchConstructionMode,
};
use crate::queue::{capacity, freeze, target_rules};

/// The most items in one list of a setting.
pub const MAX_LIST: usize = 100;

/// The most bytes of one name in a list.
pub const MAX_NAME: usize = 255;

/// The only policy of a [`BatchingRule`].
const POLICY: &str = "isolate";

/// The values that a setting may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    /// A whole number in an inclusive range.
    Whole {
        /// The minimum.
        min: u32,
        /// The maximum.
        max: u32,
        /// `minutes` or `hours`; empty for a count.
        unit: &'static str,
    },
    /// A boolean.
    Flag,
    /// One of these names, upper case.
    Word(&'static [&'static str]),
    /// A text of 1 to `max` bytes.
    Text {
        /// The maximum length in bytes.
        max: usize,
    },
    /// At most 100 names of 1 to 255 bytes.
    Names {
        /// Whether an empty list means "not set", so that another source decides.
        optional: bool,
    },
    /// At most 100 rules.
    Rules,
    /// At most 100 rules of 1 to 255 bytes.
    Lines(LineSyntax),
}

/// The syntax of a rule in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineSyntax {
    /// A rule for freezes, such as `Fri 16:00/Mon 08:00[UTC] weekend`.
    Freeze,
    /// A rule for impacted targets, such as `api/** api web`.
    TargetRule,
    /// A rule for the capacity of a target, such as `ios 2`.
    Capacity,
}

impl LineSyntax {
    /// Its form, for help texts.
    pub const fn form(self) -> &'static str {
        match self {
            Self::Freeze => "START/END[TIME ZONE]{SCOPE} REASON",
            Self::TargetRule => "PATTERN TARGET...",
            Self::Capacity => "TARGET NUMBER",
        }
    }

    /// Checks rules; fails with the first that is invalid.
    fn check(self, rules: &[String]) -> Result<(), String> {
        match self {
            Self::Freeze => rules
                .iter()
                .try_for_each(|rule| freeze::check(rule))
                .map_err(|invalid| invalid.to_string()),
            Self::TargetRule => {
                target_rules::check_all(rules).map_err(|invalid| invalid.to_string())
            }
            Self::Capacity => rules
                .iter()
                .try_for_each(|rule| capacity::check(rule))
                .map_err(|invalid| invalid.to_string()),
        }
    }
}

impl SettingKind {
    /// Whether its text has one item per line.
    pub const fn is_list(self) -> bool {
        match self {
            Self::Names { .. } | Self::Rules | Self::Lines(_) => true,
            Self::Whole { .. } | Self::Flag | Self::Word(_) | Self::Text { .. } => false,
        }
    }
}

/// A value of any setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingValue {
    /// A value of [`SettingKind::Whole`].
    Whole(u32),
    /// A value of [`SettingKind::Flag`].
    Flag(bool),
    /// A value of [`SettingKind::Word`], upper case.
    Word(&'static str),
    /// A value of [`SettingKind::Text`].
    Text(String),
    /// A value of [`SettingKind::Names`] or [`SettingKind::Lines`].
    Names(Vec<String>),
    /// A value of [`SettingKind::Rules`].
    Rules(Vec<BatchingRule>),
}

/// The topic of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingGroup {
    /// What is tested, when and for how long.
    Testing,
    /// What happens after a failure.
    Failures,
    /// Which pull requests are tested together.
    Batching,
    /// How changes reach the target branch.
    Merging,
    /// What the queue reads from and shows on the git host.
    Host,
    /// Accepted and stored for clients that send it; the queue ignores it.
    WithoutEffect,
}

impl SettingGroup {
    /// Every group, in display order.
    pub const ALL: &'static [Self] = &[
        Self::Testing,
        Self::Failures,
        Self::Batching,
        Self::Merging,
        Self::Host,
        Self::WithoutEffect,
    ];
}

/// The description of a setting.
#[derive(Debug)]
pub struct SettingSpec {
    /// Its name in the API, such as `testingTimeoutMinutes`.
    pub name: &'static str,
    /// Its field in [`Settings`], such as `testing_timeout_minutes`.
    pub field: &'static str,
    /// Its title on pages, without the unit.
    pub title: &'static str,
    /// Its topic.
    pub group: SettingGroup,
    /// The kind and bounds of its values.
    pub kind: SettingKind,
    pub(super) raw_doc: &'static str,
    pub(super) read: fn(&Settings) -> SettingValue,
    pub(super) proposed: fn(&SettingsPatch) -> Option<SettingValue>,
    pub(super) write: fn(&mut SettingsPatch, SettingValue) -> bool,
}

/// Finds a setting by its name in the API.
pub fn setting(name: &str) -> Option<&'static SettingSpec> {
    SETTINGS.iter().find(|spec| spec.name == name)
}

impl SettingSpec {
    /// What it does, in one or two sentences.
    pub fn doc(&self) -> &'static str {
        self.raw_doc.trim_start()
    }

    /// Its value in these settings.
    pub fn value(&self, settings: &Settings) -> SettingValue {
        (self.read)(settings)
    }

    /// The value in a patch; `None` if the patch does not change it.
    pub fn proposed(&self, patch: &SettingsPatch) -> Option<SettingValue> {
        (self.proposed)(patch)
    }

    /// Sets its value in a patch, without checking bounds. Returns `false`, and changes nothing, if
    /// the value is of another kind.
    pub fn set(&self, patch: &mut SettingsPatch, value: SettingValue) -> bool {
        (self.write)(patch, value)
    }

    /// Parses a value from a form or a command line: `yes`, `no`, `true` or `false`; a whole
    /// number; a name in any case; a text; names or target patterns, one per line. `None` if the
    /// text is of another kind. Bounds are not checked.
    pub fn parse(&self, text: &str) -> Option<SettingValue> {
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
        match self.kind {
            SettingKind::Whole { .. } => text.parse().ok().map(SettingValue::Whole),
            SettingKind::Flag => match text {
                "yes" | "true" => Some(SettingValue::Flag(true)),
                "no" | "false" => Some(SettingValue::Flag(false)),
                _ => None,
            },
            SettingKind::Word(words) => one_of(words, text).map(SettingValue::Word),
            SettingKind::Text { .. } => Some(SettingValue::Text(text.to_owned())),
            SettingKind::Names { .. } | SettingKind::Lines(_) => {
                Some(SettingValue::Names(lines().map(ToOwned::to_owned).collect()))
            }
            SettingKind::Rules => Some(SettingValue::Rules(
                lines()
                    .map(|pattern| BatchingRule {
                        target_pattern: pattern.to_owned(),
                        policy: POLICY.to_owned(),
                    })
                    .collect(),
            )),
        }
    }

    /// Checks the bounds of a value; refused with the rule that it breaks.
    pub fn check(&self, value: &SettingValue) -> Result<(), Refusal> {
        let refused = |rule: String| Err(Refusal::InvalidSetting { field: self.name.into(), rule });
        let too_many = |count: usize| count > MAX_LIST;
        match (self.kind, value) {
            (SettingKind::Whole { min, max, .. }, SettingValue::Whole(number))
                if !(min..=max).contains(number) =>
            {
                refused(format!("must be a whole number from {min} to {max}"))
            }
            (SettingKind::Text { max }, SettingValue::Text(text))
                if text.is_empty() || text.len() > max =>
            {
                refused(format!("must have 1 to {max} characters"))
            }
            (_, SettingValue::Names(names)) if too_many(names.len()) => {
                refused(format!("must have at most {MAX_LIST} items"))
            }
            (_, SettingValue::Names(names))
                if names.iter().any(|name| name.is_empty() || name.len() > MAX_NAME) =>
            {
                refused(format!("each must have 1 to {MAX_NAME} characters"))
            }
            (SettingKind::Lines(syntax), SettingValue::Names(rules)) => syntax
                .check(rules)
                .or_else(|wrong| refused(format!("has an invalid rule: {wrong}"))),
            (SettingKind::Rules, SettingValue::Rules(rules)) if too_many(rules.len()) => {
                refused(format!("must have at most {MAX_LIST} items"))
            }
            (SettingKind::Rules, SettingValue::Rules(rules))
                if rules.iter().any(|it| it.policy != POLICY || it.target_pattern.is_empty()) =>
            {
                refused(format!("each needs a targetPattern and the policy \"{POLICY}\""))
            }
            _ => Ok(()),
        }
    }

    /// The value as one line of text for the audit log; `None` if another source decides.
    pub fn text(&self, settings: &Settings) -> Option<String> {
        let rule = |rule: &BatchingRule| format!("{}: {}", rule.target_pattern, rule.policy);
        Some(match (self.kind, self.value(settings)) {
            (SettingKind::Names { optional: true }, SettingValue::Names(names))
                if names.is_empty() =>
            {
                return None;
            }
            (_, SettingValue::Whole(number)) => number.to_string(),
            (_, SettingValue::Flag(flag)) => flag.to_string(),
            (_, SettingValue::Word(word)) => word.to_owned(),
            (_, SettingValue::Text(text)) => text,
            (_, SettingValue::Names(names)) => names.join(", "),
            (_, SettingValue::Rules(rules)) => {
                rules.iter().map(rule).collect::<Vec<_>>().join(", ")
            }
        })
    }
}

fn one_of(words: &'static [&'static str], text: &str) -> Option<&'static str> {
    words.iter().copied().find(|word| word.eq_ignore_ascii_case(text))
}

/// A Rust type of a setting.
pub trait SettingType: Sized {
    /// The type of its values in a [`SettingsPatch`].
    type Patch: SettingType;

    /// Converts to a value.
    fn value(&self) -> SettingValue;

    /// Converts from a value; `None` for one of another kind.
    fn from_value(value: SettingValue) -> Option<Self>;

    /// Converts a value of a patch into the setting's value.
    fn patched(value: Self::Patch) -> Self;
}

macro_rules! setting_types {
    ($($type:ty, $kind:ident;)+) => {
        $(impl SettingType for $type {
            type Patch = Self;

            fn value(&self) -> SettingValue {
                SettingValue::$kind(self.clone())
            }

            fn from_value(value: SettingValue) -> Option<Self> {
                if let SettingValue::$kind(value) = value { Some(value) } else { None }
            }

            fn patched(value: Self) -> Self {
                value
            }
        })+
    };
    ($($words:ty),+ $(,)?) => {
        $(impl SettingType for $words {
            type Patch = Self;

            fn value(&self) -> SettingValue {
                SettingValue::Word(self.as_str())
            }

            fn from_value(value: SettingValue) -> Option<Self> {
                if let SettingValue::Word(word) = value { Self::parse(word) } else { None }
            }

            fn patched(value: Self) -> Self {
                value
            }
        })+
    };
}

setting_types! {
    u32, Whole;
    bool, Flag;
    String, Text;
    Vec<String>, Names;
    Vec<BatchingRule>, Rules;
}

setting_types!(
    Mode,
    MergeMethod,
    DirectMergeMode,
    OptimizationMode,
    BisectionMode,
    ReparentingMode,
    SuccessEstimates,
    TestBranchConstructionMode
);

/// A list for which another source decides while it is empty.
impl SettingType for Option<Vec<String>> {
    type Patch = Vec<String>;

    fn value(&self) -> SettingValue {
        SettingValue::Names(self.clone().unwrap_or_default())
    }

    fn from_value(value: SettingValue) -> Option<Self> {
        Vec::from_value(value).map(Self::patched)
    }

    fn patched(value: Vec<String>) -> Self {
        Some(value).filter(|list| !list.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_parsed_line_by_line_without_blank_ones() {
        let spec = |name: &str| SETTINGS.iter().find(|it| it.name == name).expect("one");
        let names = spec("requiredStatuses").parse("test\n\n  lint \n");
        assert_eq!(names, Some(SettingValue::Names(vec!["test".into(), "lint".into()])));
    }

    #[test]
    fn every_constructor_checks_bounds() {
        let refused = |made: Result<Settings, Refusal>| made.expect_err("refused").to_string();
        let rule = "concurrency must be a whole number from 1 to 1000";
        assert_eq!(refused(Settings::new(Mode::Single, 0)), rule);
        assert_eq!(refused(Settings::builder().concurrency(1001_u32).build()), rule);
        let patch = SettingsPatch { concurrency: Some(0), ..SettingsPatch::default() };
        assert_eq!(refused(patch.applied_to(&Settings::default())), rule);
        let label = Settings::builder().enqueueing_label("");
        assert_eq!(refused(label.build()), "enqueueingLabel must have 1 to 100 characters");
        assert!(Settings::default().check().is_ok());
    }

    #[test]
    fn a_value_survives_a_patch_unchanged() {
        let everything = Settings::builder()
            .mode(Mode::Parallel)
            .concurrency(7_u32)
            .batch(true)
            .required_statuses(vec!["test".to_owned()])
            .enqueueing_label("ship-it")
            .build()
            .expect("valid");
        let mut patch = SettingsPatch::default();
        for spec in SETTINGS {
            assert!(spec.set(&mut patch, spec.value(&everything)), "{}", spec.name);
            assert_eq!(spec.proposed(&patch), Some(spec.value(&everything)), "{}", spec.name);
            assert!(!spec.doc().is_empty() && !spec.title.is_empty(), "{}", spec.name);
        }
        let applied = patch.applied_to(&Settings::default()).expect("valid");
        assert_eq!(applied, everything);
    }

    #[test]
    fn a_value_of_another_kind_changes_nothing() {
        let mut patch = SettingsPatch { batch: Some(true), ..SettingsPatch::default() };
        let spec = setting("batch").expect("known");
        assert!(!spec.set(&mut patch, SettingValue::Whole(1)));
        assert_eq!(patch.batch, Some(true));
        assert_eq!(spec.parse("perhaps"), None);
        assert_eq!(spec.parse("no"), Some(SettingValue::Flag(false)));
    }
}
