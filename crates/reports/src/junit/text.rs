//! Text with references, trimmed and cut while it is collected.

/// The longest entity reference that is read, without `&` and `;`.
const LONGEST_REFERENCE: usize = 12;

/// Collects text: leading white space is skipped, and text beyond `most` bytes is cut between two
/// characters. A NUL, which databases refuse, becomes U+FFFD.
#[derive(Debug, Default)]
pub(super) struct Kept {
    text: String,
    full: bool,
}

impl Kept {
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.full = false;
    }

    /// The text without white space around it.
    pub(super) fn as_str(&self) -> &str {
        self.text.trim_end()
    }

    /// The text, if there is any.
    pub(super) fn some(&self) -> Option<&str> {
        Some(self.as_str()).filter(|it| !it.is_empty())
    }

    /// Adds text that holds no references.
    pub(super) fn push(&mut self, text: &str, most: usize) {
        let mut pieces = text.split('\0');
        self.push_plain(pieces.next().unwrap_or_default(), most);
        for piece in pieces {
            self.push_plain("\u{fffd}", most);
            self.push_plain(piece, most);
        }
    }

    fn push_plain(&mut self, text: &str, most: usize) {
        if self.full {
            return;
        }
        let text = if self.text.is_empty() { text.trim_start() } else { text };
        let room = most.saturating_sub(self.text.len());
        if text.len() <= room {
            self.text.push_str(text);
        } else {
            let end = last_boundary(text.as_bytes(), room).unwrap_or(0);
            self.text.push_str(text.get(..end).unwrap_or_default());
            self.full = true;
        }
    }

    /// Forgets what there was and adds text with references.
    pub(super) fn set_escaped(&mut self, text: &str, most: usize) {
        self.clear();
        self.push_escaped(text, most);
    }

    /// Adds text with references: the five of XML and numbers. Others stay as they are written.
    pub(super) fn push_escaped(&mut self, mut text: &str, most: usize) {
        if memchr::memchr2(b'&', 0, text.as_bytes()).is_none() {
            return self.push_plain(text, most);
        }
        while let Some(at) = memchr::memchr(b'&', text.as_bytes()) {
            let (before, reference) = text.split_at(at);
            self.push(before, most);
            let inside = reference.get(1..).unwrap_or_default();
            let end = inside.bytes().take(LONGEST_REFERENCE + 1).position(|it| it == b';');
            let known = end.and_then(|end| Some((resolved(inside.get(..end)?)?, end)));
            if let Some((character, end)) = known {
                self.push_char(character, most);
                text = inside.get(end + 1..).unwrap_or_default();
            } else {
                self.push_char('&', most);
                text = inside;
            }
            if self.full {
                return;
            }
        }
        self.push(text, most);
    }

    /// Adds the character of a reference, which is given without `&` and `;`.
    pub(super) fn push_reference(&mut self, name: &str, most: usize) {
        if let Some(character) = resolved(name) {
            self.push_char(character, most);
        } else {
            self.push("&", most);
            self.push(name, most);
            self.push(";", most);
        }
    }

    fn push_char(&mut self, character: char, most: usize) {
        self.push(character.encode_utf8(&mut [0; 4]), most);
    }
}

/// The character of a reference. Numbers that are no character of XML become U+FFFD.
fn resolved(name: &str) -> Option<char> {
    let number = match name {
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "amp" => return Some('&'),
        "quot" => return Some('"'),
        "apos" => return Some('\''),
        name => name.strip_prefix('#')?,
    };
    let digits = number.strip_prefix(['x', 'X']);
    let (digits, radix) = digits.map_or((number, 10), |it| (it, 16));
    if digits.is_empty() || !digits.chars().all(|it| it.is_digit(radix)) {
        return None;
    }
    let code = u32::from_str_radix(digits, radix).ok();
    let character = code.and_then(char::from_u32).filter(|it| *it != '\0');
    Some(character.unwrap_or(char::REPLACEMENT_CHARACTER))
}

/// The last place between two characters, after the first and up to `most` bytes.
pub(super) fn last_boundary(text: &[u8], most: usize) -> Option<usize> {
    let inside = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    (1..=most).rev().find(|at| !text.get(*at).is_some_and(inside))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(text: &str, most: usize) -> String {
        let mut kept = Kept::default();
        kept.push_escaped(text, most);
        kept.as_str().to_owned()
    }

    #[test]
    fn references_are_resolved() {
        assert_eq!(kept("a &lt;b&gt; &amp; &quot;c&apos;", 100), "a <b> & \"c'");
        assert_eq!(kept("&#65;&#x42;&#X43;&#10;d", 100), "ABC\nd");
        assert_eq!(kept("&#0;&#xD800;&#99999999;", 100), "\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(kept("&nbsp; & &; &#; &#xg; &unended", 100), "&nbsp; & &; &#; &#xg; &unended");
    }

    #[test]
    fn text_is_trimmed_and_cut_between_characters() {
        assert_eq!(kept("  \n a b \t", 100), "a b");
        assert_eq!(kept("aé", 2), "a");
        assert_eq!(kept("a\0b", 100), "a\u{fffd}b");
        assert_eq!(kept("ab&amp;cd", 3), "ab&");
        assert_eq!(kept("&amp;", 0), "");
    }

    proptest! {
        #[test]
        fn never_longer_than_allowed(text in "[ a&;#x1é\u{1F600}]{0,60}", most in 0_usize..20) {
            prop_assert!(kept(&text, most).len() <= most);
        }
    }
}
