//! Refuses JSON that would take too much memory while it arrives. A parser would hold the whole
//! text and its open brackets before any check could see them.

use std::io::{self, Read};

use memchr::memchr2;

/// The most brackets that may be open.
const DEPTH: u32 = 64;
/// The most bytes of one text as it is written.
const TEXT_BYTES: u32 = 8 * 1024 * 1024;

/// Where in the JSON a reader is.
#[derive(Clone, Copy, Debug)]
enum JsonPosition {
    Between,
    /// In a text, after so many of its bytes.
    Text(u32),
    /// After a backslash in a text.
    Escape(u32),
}

/// Passes JSON on as it is, until something in it is too deep or too long.
#[derive(Debug)]
pub(crate) struct Guarded<R> {
    input: R,
    place: JsonPosition,
    depth: u32,
}

impl<R> Guarded<R> {
    pub(crate) const fn new(input: R) -> Self {
        Self { input, place: JsonPosition::Between, depth: 0 }
    }

    fn see(&mut self, byte: u8) -> io::Result<()> {
        self.place = match (self.place, byte) {
            (JsonPosition::Between, b'"') => JsonPosition::Text(0),
            (JsonPosition::Between, b'[' | b'{') => {
                self.depth += 1;
                JsonPosition::Between
            }
            (JsonPosition::Between, b']' | b'}') => {
                self.depth = self.depth.saturating_sub(1);
                JsonPosition::Between
            }
            (JsonPosition::Between, _) | (JsonPosition::Text(_), b'"') => JsonPosition::Between,
            (JsonPosition::Text(bytes), b'\\') => JsonPosition::Escape(bytes + 1),
            (JsonPosition::Text(bytes) | JsonPosition::Escape(bytes), _) => {
                JsonPosition::Text(bytes + 1)
            }
        };
        if self.depth > DEPTH {
            return Err(io::Error::other(format!("it is nested more than {DEPTH} deep")));
        }
        self.check_text()
    }

    /// Passes over the start of `bytes` if it is plain text, and returns how long it is.
    fn pass_text(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let JsonPosition::Text(before) = self.place else { return Ok(0) };
        let plain = memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
        let more = u32::try_from(plain).unwrap_or(u32::MAX);
        self.place = JsonPosition::Text(before.saturating_add(more));
        self.check_text()?;
        Ok(plain)
    }

    fn check_text(&self) -> io::Result<()> {
        match self.place {
            JsonPosition::Text(bytes) if bytes > TEXT_BYTES => {
                Err(io::Error::other(format!("a string has more than {TEXT_BYTES} bytes")))
            }
            JsonPosition::Between | JsonPosition::Text(_) | JsonPosition::Escape(_) => Ok(()),
        }
    }
}

impl<R: Read> Read for Guarded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        let mut rest = buffer.get(..read).unwrap_or_default();
        while !rest.is_empty() {
            let plain = self.pass_text(rest)?;
            rest = rest.get(plain..).unwrap_or_default();
            if let Some((byte, after)) = rest.split_first() {
                self.see(*byte)?;
                rest = after;
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(json: &str) -> Result<String, String> {
        let mut text = String::new();
        let read = Guarded::new(json.as_bytes()).read_to_string(&mut text);
        read.map(|_| text).map_err(|error| error.to_string())
    }

    #[test]
    fn plain_json_passes_unchanged() {
        let texts = r#"{"a [[[ \" {": ["\\", "]", {}], "b": "\\\""}"#;
        let deep = format!("{}{}", "[".repeat(64), "]".repeat(64));
        let in_a_row = "[{}]".repeat(1_000);
        let long = format!("\"{}\"", "x".repeat(8 << 20));
        for json in [texts, &deep, &in_a_row, &long] {
            assert_eq!(passed(json).as_deref(), Ok(json));
        }
    }

    #[test]
    fn pieces_of_any_length_are_judged_alike() {
        let deep = format!(r#"{{"a\\": "[[\"", "b": {}"#, "[".repeat(64));
        for json in [r#"["\"[", "\\", {"x]": "\\\""}]"#, &deep] {
            for length in 1..=json.len() {
                let mut reader = Guarded::new(json.as_bytes());
                let (mut piece, mut text) = (vec![0; length], Vec::new());
                let ended = loop {
                    match reader.read(&mut piece) {
                        Ok(0) => break Ok(String::from_utf8(text).expect("UTF-8")),
                        Ok(read) => text.extend_from_slice(&piece[..read]),
                        Err(error) => break Err(error.to_string()),
                    }
                };
                assert_eq!(ended, passed(json), "{length}");
            }
        }
    }

    #[test]
    fn deep_or_long_json_does_not() {
        let deep = passed(&format!("{{\"x\": {}", "[".repeat(64))).expect_err("too deep");
        assert_eq!(deep, "it is nested more than 64 deep");
        let plain = format!("[\"{}", "x".repeat((8 << 20) + 1));
        for long in [plain, format!("\"{}", "\\n".repeat(5 << 20))] {
            let long = passed(&long).expect_err("too long");
            assert_eq!(long, "a string has more than 8388608 bytes");
        }
    }
}
