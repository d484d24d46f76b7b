//! Foreign text in comments: shown as it is, without markup, mentions or references.

/// Splits what would be a mention or a reference, and is not seen.
const INVISIBLE: char = '\u{200b}';

/// Text that Markdown shows as it was written. Every sign that could be markup is escaped;
/// mentions, references to issues and bare links are split; line ends become spaces; control
/// characters, and characters that change the direction of text, are dropped.
pub fn neutral(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() * 2);
    let mut previous = ' ';
    for sign in text.chars() {
        let sign = if matches!(sign, '\n' | '\r' | '\t') { ' ' } else { sign };
        if is_hidden(sign) {
            continue;
        }
        if sign.is_ascii_punctuation() {
            shown.push('\\');
        }
        // `GH-1` is a reference although nothing before its hyphen is special.
        if sign == '-' && previous.eq_ignore_ascii_case(&'h') {
            shown.insert(shown.len() - 1, INVISIBLE);
        }
        shown.push(sign);
        if matches!(sign, '@' | '#') {
            shown.push(INVISIBLE);
        }
        previous = sign;
    }
    shown
}

/// Characters without a place in a line of text: controls, marks of direction, our own splitter.
fn is_hidden(sign: char) -> bool {
    sign.is_control()
        || matches!(sign, INVISIBLE | '\u{200e}' | '\u{200f}' | '\u{feff}')
        || ('\u{202a}'..='\u{202e}').contains(&sign)
        || ('\u{2066}'..='\u{2069}').contains(&sign)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What Markdown shows of escaped text.
    fn rendered(text: &str) -> String {
        let mut shown = String::new();
        let mut signs = text.chars();
        while let Some(sign) = signs.next() {
            shown.extend(if sign == '\\' { signs.next() } else { Some(sign) });
        }
        shown.replace(INVISIBLE, "")
    }

    #[test]
    fn mentions_and_links_are_split() {
        for text in ["@acme/all", "#12", "a/b#1", "<!-- x -->", "[x](y)", "```", "GH-12"] {
            let shown = neutral(text);
            assert_eq!(rendered(&shown), text);
            assert!(!shown.contains(text), "{shown}");
        }
        assert_eq!(neutral("a\nb\u{202e}c\u{0}"), "a bc");
    }

    proptest! {
        #[test]
        fn every_markdown_character_is_escaped_and_others_are_unchanged(text in any::<String>()) {
            let shown = neutral(&text);
            let signs: Vec<char> = shown.chars().collect();
            let mut at = 0;
            while let Some(sign) = signs.get(at) {
                if *sign == '\\' {
                    let escaped = signs.get(at + 1).expect("something is escaped");
                    prop_assert!(escaped.is_ascii_punctuation());
                    if matches!(escaped, '@' | '#') {
                        prop_assert_eq!(signs.get(at + 2), Some(&INVISIBLE));
                    }
                    at += 2;
                } else {
                    prop_assert!(!sign.is_ascii_punctuation() && !sign.is_control());
                    at += 1;
                }
            }
            let wanted: String = text
                .chars()
                .map(|it| if matches!(it, '\n' | '\r' | '\t') { ' ' } else { it })
                .filter(|it| !is_hidden(*it))
                .collect();
            prop_assert_eq!(rendered(&shown), wanted);
        }
    }
}
