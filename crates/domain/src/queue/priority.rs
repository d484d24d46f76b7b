//! How soon an entry wants its turn: lower is sooner.

use crate::words::words;

words!(
    /// The names that clients may use instead of a number.
    PriorityName {
        /// 0: goes to the front and interrupts what would then include it.
        Urgent = "urgent",
        /// 10.
        High = "high",
        /// 100, the default.
        Medium = "medium",
        /// 200.
        Low = "low",
    }
);

impl PriorityName {
    const fn value(self) -> u32 {
        match self {
            Self::Urgent => 0,
            Self::High => 10,
            Self::Medium => 100,
            Self::Low => 200,
        }
    }
}

/// An entry's priority: a number, and whether it was the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Priority {
    /// Lower goes first; 0 is urgent.
    pub value: u32,
    /// Whether nobody asked for it.
    pub by_default: bool,
}

impl Priority {
    /// What an entry gets when nothing was asked for: medium, 100.
    pub const DEFAULT: Self = Self { value: 100, by_default: true };
    /// The default's name.
    pub const DEFAULT_NAME: &'static str = "medium";

    /// A priority asked for by number.
    pub const fn number(value: u32) -> Self {
        Self { value, by_default: false }
    }

    /// A priority asked for by name, in any case. `None` when there is no such name.
    pub fn named(name: &str) -> Option<Self> {
        PriorityName::parse(name).map(|name| Self::number(name.value()))
    }

    /// Whether it goes to the front of the line.
    pub const fn is_urgent(self) -> bool {
        self.value == 0
    }

    /// Its name; a number without a name is its own decimal text.
    pub fn name(self) -> String {
        PriorityName::ALL
            .iter()
            .find(|name| name.value() == self.value)
            .map_or_else(|| self.value.to_string(), |name| name.as_str().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        assert_eq!(Priority::named("URGENT"), Some(Priority::number(0)));
        assert_eq!(Priority::number(10).name(), "high");
        assert_eq!(Priority::number(42).name(), "42");
        assert_eq!(Priority::named("soon"), None);
        assert_eq!(Priority::DEFAULT.name(), Priority::DEFAULT_NAME);
    }
}
