//! Priorities of entries: a lower value goes first.

use crate::words::words;

words!(
    /// The names that clients may use instead of a number.
    PriorityName {
        /// 0: goes to the front and interrupts the tests behind it.
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
    /// 0 to 4,294,967,295; lower goes first, 0 is urgent.
    pub value: u32,
    /// Whether the submission named no priority.
    pub by_default: bool,
}

impl Priority {
    /// The priority of a submission that names none: medium, 100.
    pub const DEFAULT: Self = Self { value: 100, by_default: true };
    /// The default's name.
    pub const DEFAULT_NAME: &'static str = "medium";

    /// A priority given by number.
    pub const fn number(value: u32) -> Self {
        Self { value, by_default: false }
    }

    /// A priority given by name, in any case; `None` for an unknown name.
    pub fn named(name: &str) -> Option<Self> {
        PriorityName::parse(name).map(|name| Self::number(name.value()))
    }

    /// Whether it goes to the front of the line.
    pub const fn is_urgent(self) -> bool {
        self.value == 0
    }

    /// Its name, or its number in decimal if it has none.
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
    fn names_match_their_numbers() {
        assert_eq!(Priority::named("URGENT"), Some(Priority::number(0)));
        assert_eq!(Priority::number(10).name(), "high");
        assert_eq!(Priority::number(42).name(), "42");
        assert_eq!(Priority::named("soon"), None);
        assert_eq!(Priority::DEFAULT.name(), Priority::DEFAULT_NAME);
    }
}
