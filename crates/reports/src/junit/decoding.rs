//! Bytes in any of the usual encodings, turned into UTF-8 piece by piece.

use std::io::{self, ErrorKind, Read};

use encoding_rs::{CoderResult, Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

const RAW_BYTES: usize = 64 * 1024;
/// How far the encoding's name is looked for.
const DECLARATION_BYTES: usize = 256;

/// A reader of bytes with the decoder that a mark or a declaration at the start asks for. Without
/// one it is UTF-8. What cannot be decoded becomes U+FFFD.
pub(super) struct Decoding<R> {
    input: R,
    raw: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
    finished: bool,
    decoder: Option<Decoder>,
    replaced: bool,
}

impl<R: Read> Decoding<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            raw: vec![0; RAW_BYTES],
            start: 0,
            end: 0,
            at_end: false,
            finished: false,
            decoder: None,
            replaced: false,
        }
    }

    /// The encoding's standard name, UTF-8 before anything was read.
    pub(super) fn encoding(&self) -> &'static str {
        self.decoder.as_ref().map_or(UTF_8, Decoder::encoding).name()
    }

    /// Whether something could not be decoded.
    pub(super) fn replaced(&self) -> bool {
        self.replaced
    }

    /// Writes whole characters into `room`, which has at least 16 bytes; 0 means the end.
    pub(super) fn decode(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.finished {
                return Ok(0);
            }
            if self.decoder.is_none() {
                while self.end < DECLARATION_BYTES && !self.at_end {
                    self.fill()?;
                }
                let first = self.raw.get(..self.end).unwrap_or_default();
                self.decoder = Some(encoding_of(first).new_decoder_with_bom_removal());
            } else if self.start == self.end && !self.at_end {
                (self.start, self.end) = (0, 0);
                self.fill()?;
            }
            let (raw, last) = (self.raw.get(self.start..self.end).unwrap_or_default(), self.at_end);
            let Some(decoder) = &mut self.decoder else { continue };
            let (result, read, written, replaced) = decoder.decode_to_utf8(raw, room, last);
            self.start += read;
            self.replaced |= replaced;
            self.finished = last && result == CoderResult::InputEmpty;
            if written > 0 {
                return Ok(written);
            }
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        loop {
            match self.input.read(self.raw.get_mut(self.end..).unwrap_or_default()) {
                Ok(0) => self.at_end = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }
}

fn encoding_of(first: &[u8]) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(first) {
        return encoding;
    }
    match first {
        [b'<', 0, ..] => UTF_16LE,
        [0, b'<', ..] => UTF_16BE,
        _ => declared(first).unwrap_or(UTF_8),
    }
}

/// The encoding that the XML declaration names. UTF-16 is not believed: the declaration was
/// readable without it.
fn declared(first: &[u8]) -> Option<&'static Encoding> {
    let first = first.trim_ascii_start().get(..DECLARATION_BYTES.min(first.len()))?;
    let first = first.strip_prefix(b"<?xml")?;
    let declaration = first.get(..memchr::memchr(b'>', first)?)?;
    let after = memchr::memmem::find(declaration, b"encoding")? + b"encoding".len();
    let value = declaration.get(after..)?.trim_ascii_start().strip_prefix(b"=")?;
    let (quote, value) = value.trim_ascii_start().split_first()?;
    let label = value.get(..memchr::memchr(*quote, value)?)?;
    let encoding = if label.eq_ignore_ascii_case(b"latin-1") {
        WINDOWS_1252
    } else {
        Encoding::for_label_no_replacement(label)?
    };
    Some(encoding).filter(|it| it.is_ascii_compatible())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> (String, &'static str, bool) {
        let mut decoding = Decoding::new(bytes);
        let mut text = Vec::new();
        let mut room = [0; 16];
        loop {
            match decoding.decode(&mut room).unwrap() {
                0 => break,
                written => text.extend(room.iter().take(written)),
            }
        }
        (String::from_utf8(text).unwrap(), decoding.encoding(), decoding.replaced())
    }

    fn utf_16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn marks_decide() {
        assert_eq!(decoded(b"\xef\xbb\xbf<a/>"), ("<a/>".to_owned(), "UTF-8", false));
        let text = "<a n='é\u{1F600}'/>";
        let marked = format!("\u{feff}{text}");
        let little = utf_16(&marked, u16::to_le_bytes);
        assert_eq!(decoded(&little), (text.to_owned(), "UTF-16LE", false));
        let big = utf_16(&marked, u16::to_be_bytes);
        assert_eq!(decoded(&big), (text.to_owned(), "UTF-16BE", false));
        assert_eq!(decoded(&utf_16(text, u16::to_be_bytes)).1, "UTF-16BE");
    }

    #[test]
    fn declarations_decide() {
        for label in ["ISO-8859-1", "latin-1", "windows-1252", "latin1"] {
            let mut bytes = format!("<?xml version='1.0' encoding = '{label}'?>").into_bytes();
            bytes.push(0xe9);
            let (text, encoding, replaced) = decoded(&bytes);
            assert_eq!((encoding, replaced), ("windows-1252", false), "{label}");
            assert!(text.ends_with('é'), "{label}");
        }
        for label in ["UTF-16", "nonsense", "ISO-2022-KR"] {
            let text = format!("<?xml version='1.0' encoding='{label}'?>é");
            assert_eq!(decoded(text.as_bytes()), (text.clone(), "UTF-8", false), "{label}");
        }
    }

    #[test]
    fn invalid_text_is_replaced() {
        let (text, encoding, replaced) = decoded(b"<a n='\xff\xfeb'/>\xc3");
        assert_eq!(text, "<a n='\u{fffd}\u{fffd}b'/>\u{fffd}");
        assert_eq!((encoding, replaced), ("UTF-8", true));
        assert_eq!(decoded(b""), (String::new(), "UTF-8", false));
    }
}
