//! The text of a file as the XML parser may see it: no comments, no long text, no long tags.
//!
//! The parser keeps one piece of markup or text in memory at a time, however long it is. This
//! reader is what makes memory independent of the file: it finds where pieces start and end, drops
//! what goes beyond a limit in texts, and stops at tags that are too long, at declarations and at
//! markup that it does not know.

use std::io::{self, BufRead, Read};

use memchr::memmem;

use super::decoding::Decoding;
use super::error::{Position, Stop};
use super::limits::Limit;
use super::lines::{Lines, count};
use super::text::last_boundary;

const BUFFER_BYTES: usize = 128 * 1024;
const COMMENT: &[u8] = b"<!--";
const CDATA: &[u8] = b"<![CDATA[";
/// The longest opening of a piece of markup.
const OPENING_BYTES: usize = CDATA.len();

/// Where in the XML the reader is.
#[derive(Clone, Copy, Debug)]
enum State {
    Text { passed: usize },
    Tag { passed: u64, quote: Option<u8> },
    Instruction { passed: u64 },
    Cdata { passed: usize },
    Comment,
}

/// Where a tag starts.
#[derive(Clone, Copy, Debug)]
enum Place {
    InBuffer(usize),
    /// What was before it is no longer in the buffer.
    Before(Position),
}

pub(super) struct Source<R> {
    input: Decoding<R>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// So many bytes from `start` may be given to the parser.
    approved: usize,
    at_end: bool,
    state: State,
    /// Where the buffer starts.
    lines: Lines,
    markup: Place,
    stop: Option<Stop>,
    text_bytes: usize,
    tag_bytes: u64,
}

impl<R: Read> Source<R> {
    /// `text_bytes` of one text and `tag_bytes` of one tag are passed on; a longer text is cut and
    /// a longer tag is an error.
    pub(super) fn new(input: R, text_bytes: usize, tag_bytes: u64) -> Self {
        Self {
            input: Decoding::new(input),
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            approved: 0,
            at_end: false,
            state: State::Text { passed: 0 },
            lines: Lines::new(),
            markup: Place::InBuffer(0),
            stop: None,
            text_bytes,
            tag_bytes,
        }
    }

    /// Where the last tag starts.
    pub(super) fn markup(&self) -> Position {
        match self.markup {
            Place::InBuffer(at) => self.lines_at(at).position(),
            Place::Before(position) => position,
        }
    }

    /// Up to where the text was passed on.
    pub(super) fn position(&self) -> Position {
        self.lines_at(self.start).position()
    }

    /// Only errors and a new filling of the buffer count lines: together they are counted faster.
    fn lines_at(&self, at: usize) -> Lines {
        let mut lines = self.lines;
        lines.pass(self.buffer.get(..at).unwrap_or_default());
        lines
    }

    /// Whether everything was passed on.
    pub(super) fn at_end(&self) -> bool {
        self.at_end && self.start == self.end
    }

    pub(super) fn stop(&self) -> Option<Stop> {
        self.stop
    }

    pub(super) fn encoding(&self) -> &'static str {
        self.input.encoding()
    }

    pub(super) fn replaced(&self) -> bool {
        self.input.replaced()
    }

    fn available(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Reads more after the available bytes.
    fn refill(&mut self) -> io::Result<()> {
        self.markup = Place::Before(self.markup());
        self.lines = self.lines_at(self.start);
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let room = self.buffer.get_mut(self.end..).unwrap_or_default();
        let read = self.input.decode(room)?;
        self.end += read;
        self.at_end = read == 0;
        Ok(())
    }

    fn stopped(&mut self, stop: Stop) -> io::Error {
        self.stop = Some(stop);
        io::Error::other("stopped")
    }

    /// Approves or drops some bytes. False at the end.
    fn step(&mut self) -> io::Result<bool> {
        if self.start == self.end {
            if !self.at_end {
                self.refill()?;
            }
            if self.start == self.end {
                return Ok(false);
            }
        }
        match self.state {
            State::Text { passed } => self.text(passed)?,
            State::Tag { passed, quote } => self.tag(passed, quote)?,
            State::Instruction { passed } => {
                let (bytes, closed) = self.up_to(b"?>")?;
                self.state = State::Instruction { passed: self.longer(passed, bytes)? };
                if closed {
                    self.state = State::Text { passed: 0 };
                }
                self.approved = bytes;
            }
            State::Cdata { passed } => self.cdata(passed)?,
            State::Comment => {
                let (bytes, closed) = self.up_to(b"-->")?;
                if closed {
                    self.start += bytes - 3;
                    self.approved = 3;
                    self.state = State::Text { passed: 0 };
                } else {
                    self.start += bytes;
                }
            }
        }
        Ok(true)
    }

    fn text(&mut self, passed: usize) -> io::Result<()> {
        let available = self.available();
        let bytes = memchr::memchr(b'<', available).unwrap_or(available.len());
        if bytes == 0 {
            return self.open();
        }
        let room = self.text_bytes.saturating_sub(passed);
        if bytes <= room {
            self.approved = bytes;
            self.state = State::Text { passed: passed + bytes };
            return Ok(());
        }
        self.cut(bytes, room);
        self.state = State::Text { passed: self.text_bytes };
        Ok(())
    }

    /// Of `bytes` bytes passes those on that fit into `room`, or drops them when there is none.
    fn cut(&mut self, bytes: usize, room: usize) {
        match last_boundary(self.available(), room) {
            Some(fitting) => self.approved = fitting,
            None => self.start += bytes,
        }
    }

    /// At a `<`: which piece of markup starts?
    fn open(&mut self) -> io::Result<()> {
        while self.end - self.start < OPENING_BYTES && !self.at_end {
            self.refill()?;
        }
        self.markup = Place::InBuffer(self.start);
        let available = self.available();
        let (state, bytes) = if available.starts_with(CDATA) {
            (State::Cdata { passed: 0 }, CDATA.len())
        } else if available.starts_with(COMMENT) {
            (State::Comment, COMMENT.len())
        } else if available.starts_with(b"<?") {
            (State::Instruction { passed: 0 }, 2)
        } else if available.get(1) == Some(&b'!')
            && available.get(2).is_some_and(u8::is_ascii_alphabetic)
        {
            return Err(self.stopped(Stop::Declaration));
        } else if available.get(1) == Some(&b'!')
            && !CDATA.starts_with(available)
            && !COMMENT.starts_with(available)
        {
            // The parser would collect everything until it ends.
            return Err(self.stopped(Stop::UnknownMarkup));
        } else {
            (State::Tag { passed: 0, quote: None }, 1)
        };
        self.state = state;
        self.approved = bytes;
        Ok(())
    }

    fn tag(&mut self, passed: u64, mut quote: Option<u8>) -> io::Result<()> {
        let available = self.available();
        let mut bytes = 0;
        let mut closed = false;
        while let Some(rest) = available.get(bytes..).filter(|it| !it.is_empty() && !closed) {
            let found = match quote {
                Some(quote) => memchr::memchr(quote, rest),
                None => memchr::memchr3(b'>', b'"', b'\'', rest),
            };
            let Some(at) = found else {
                bytes = available.len();
                break;
            };
            closed = quote.is_none() && rest.get(at) == Some(&b'>');
            quote = if quote.is_some() { None } else { rest.get(at).copied() };
            bytes += at + 1;
        }
        let passed = self.longer(passed, bytes)?;
        self.state = if closed { State::Text { passed: 0 } } else { State::Tag { passed, quote } };
        self.approved = bytes;
        Ok(())
    }

    fn cdata(&mut self, passed: usize) -> io::Result<()> {
        let (bytes, closed) = self.up_to(b"]]>")?;
        let content = if closed { bytes - 3 } else { bytes };
        let room = self.text_bytes.saturating_sub(passed);
        if content > room {
            self.cut(content, room);
            self.state = State::Cdata { passed: self.text_bytes };
            return Ok(());
        }
        self.approved = bytes;
        self.state = if closed {
            State::Text { passed: 0 }
        } else {
            State::Cdata { passed: passed + bytes }
        };
        Ok(())
    }

    /// So many bytes up to and with `end`, and whether it was found. At least one byte, and no
    /// part of an `end` that lies across two fillings.
    fn up_to(&mut self, end: &[u8]) -> io::Result<(usize, bool)> {
        loop {
            let available = self.available();
            if let Some(at) = memmem::find(available, end) {
                return Ok((at + end.len(), true));
            }
            let safe = available.len().saturating_sub(end.len() - 1);
            if let Some(boundary) = last_boundary(available, safe) {
                return Ok((boundary, false));
            }
            if self.at_end {
                return Ok((available.len(), false));
            }
            self.refill()?;
        }
    }

    fn longer(&mut self, passed: u64, bytes: usize) -> io::Result<u64> {
        let passed = passed + count(bytes);
        if passed > self.tag_bytes {
            return Err(self.stopped(Stop::Limit(Limit::TagBytes, self.tag_bytes)));
        }
        Ok(passed)
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(room)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R: Read> BufRead for Source<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.approved == 0 && self.step()? {}
        Ok(self.buffer.get(self.start..self.start + self.approved).unwrap_or_default())
    }

    fn consume(&mut self, bytes: usize) {
        let bytes = bytes.min(self.approved);
        self.approved -= bytes;
        self.start += bytes;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quick_xml::Reader;
    use quick_xml::events::Event;

    use super::*;

    const TEXT_BYTES: usize = 40;
    const TAG_BYTES: u64 = 60;
    const PIECES: &str =
        r#"<a>|</a>|<a b='>'/>|<!--|-->|<!\[CDATA\[|\]\]>|<\?|\?>|<!\[|<!-|['"&;x\]>-]"#;

    /// The most bytes that the parser held for one event.
    fn most_held(xml: impl Read) -> usize {
        let mut reader = Reader::from_reader(Source::new(xml, TEXT_BYTES, TAG_BYTES));
        reader.config_mut().allow_dangling_amp = true;
        reader.config_mut().allow_unmatched_ends = true;
        reader.config_mut().check_end_names = false;
        let (mut held, mut most) = (Vec::new(), 0);
        loop {
            held.clear();
            let ended = matches!(reader.read_event_into(&mut held), Ok(Event::Eof) | Err(_));
            most = most.max(held.len());
            if ended {
                return most;
            }
        }
    }

    #[test]
    fn the_parser_holds_little_of_any_piece() {
        for start in ["", "<", "</", "<a b='", "<?", "<!--", "<![CDATA[", "<![x>", "<!-x", "<!"] {
            for rest in ["x", "<a>", "]", "-", "?", "&"] {
                let endless = rest.bytes().cycle().take(300_000).collect::<Vec<_>>();
                let most = most_held(start.as_bytes().chain(&endless[..]));
                assert!(most < 200, "{start}{rest}: {most} bytes");
            }
        }
    }

    proptest! {
        /// Otherwise the parser and this reader could disagree about where a piece ends.
        #[test]
        fn the_parser_sees_the_same_pieces(
            pieces in prop::collection::vec(PIECES, 0..30),
        ) {
            let xml = pieces.concat() + &"<a>".repeat(100);
            prop_assert!(most_held(xml.as_bytes()) < 200);
        }
    }
}
