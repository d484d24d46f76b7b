//! Texts that others write: messages and patterns, whatever is in them.

use proptest::prelude::*;
use signalbox_domain::flaky::{BranchPattern, Fingerprint, mask};

/// The pattern's meaning in as few words as possible.
fn fits(pattern: &[char], text: &[char]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some(('*', rest)), after) => {
            fits(rest, text) || after.is_some_and(|(_, after)| fits(pattern, after))
        }
        (Some((sign, rest)), Some((c, after))) => (*sign == '?' || sign == c) && fits(rest, after),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

proptest! {
    #[test]
    fn a_pattern_matches_its_definition(pattern in "[ab/*?]{0,7}", branch in "[ab/]{0,9}") {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        let expected = fits(&chars(&pattern), &chars(&branch));
        prop_assert_eq!(BranchPattern(pattern).matches(&branch), expected);
    }

    #[test]
    fn numbers_do_not_tell_failures_apart(
        words in prop::collection::vec("[g-z]{1,8}", 1..6),
        numbers in prop::collection::vec((0..10_000_u32, 0..10_000_u32), 6),
    ) {
        let message = |pick: fn(&(u32, u32)) -> u32| {
            let parts = words.iter().zip(&numbers).map(|(word, it)| format!("{word} {}", pick(it)));
            parts.collect::<Vec<_>>().join(" ")
        };
        let (one, other) = (message(|it| it.0), message(|it| it.1));
        prop_assert_eq!(Fingerprint::of(&one), Fingerprint::of(&other));
    }

    #[test]
    fn any_text_can_be_masked(text in r#"([a-z0-9:/.'"\\ \n+-]|\PC|\x1b\[){0,60}"#) {
        let masked = mask(&text);
        prop_assert!(!masked.contains('\n'));
        prop_assert!(!masked.chars().any(|c| c.is_ascii_digit()), "{masked}");
        prop_assert_eq!(Fingerprint::of(&text).as_str().len(), 32);
    }
}

#[test]
fn a_hostile_message_costs_no_more_than_its_length() {
    for part in ["a-", "\"", "1.", "/", "0x", "://", "'a", "\u{1b}["] {
        let text = part.repeat(1_000);
        assert!(mask(&text).len() <= text.len() * 8, "{part:?}");
    }
}
