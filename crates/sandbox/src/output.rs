//! Output of a check, kept from both ends.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use signalbox_domain::ports::{MAX_CHECK_OUTPUT, omission};
use tokio::sync::mpsc::UnboundedSender;

/// How much of the beginning is kept when not all can be.
const HEAD: usize = MAX_CHECK_OUTPUT / 4;
/// How much of the end; the rest is for the line in between.
const TAIL: usize = MAX_CHECK_OUTPUT / 2;

/// How much of the end is shown while the check runs.
const SHOWN: usize = 64 * 1024;

/// The output of a check: all of it, or its beginning and its end. It can be read while the check
/// writes.
#[derive(Debug, Default)]
pub struct Output(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: usize,
    /// Where all of it goes, too. What is not read yet is at most what a check may print.
    copy: Option<UnboundedSender<Vec<u8>>>,
}

impl Output {
    /// An output that is also sent, as it comes.
    pub(crate) fn sent_to(copy: UnboundedSender<Vec<u8>>) -> Self {
        Self(Mutex::new(Kept { copy: Some(copy), ..Kept::default() }))
    }

    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut kept = self.kept();
        if let Some(copy) = &kept.copy {
            // Its reader may be gone.
            let _unread = copy.send(bytes.to_owned());
        }
        let room = HEAD - kept.head.len();
        let (first, rest) = bytes.split_at(bytes.len().min(room));
        kept.head.extend_from_slice(first);
        kept.tail.extend(rest);
        let too_many = kept.tail.len().saturating_sub(TAIL);
        kept.left_out += too_many;
        kept.tail.drain(..too_many);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.kept().head.is_empty()
    }

    /// The number of bytes that were printed so far.
    pub fn length(&self) -> usize {
        self.kept().length()
    }

    /// The last line that is not empty.
    pub(crate) fn last_line(&self) -> String {
        let kept = self.kept();
        let tail: Vec<u8> = kept.head.iter().chain(&kept.tail).copied().collect();
        let text = String::from_utf8_lossy(&tail);
        text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().to_owned()
    }

    /// The end of what was printed so far, at most 64 KiB from the beginning of a line on.
    pub fn end(&self) -> String {
        let kept = self.kept();
        let skipped = (kept.head.len() + kept.tail.len()).saturating_sub(SHOWN);
        let end: Vec<u8> = kept.head.iter().chain(&kept.tail).skip(skipped).copied().collect();
        if kept.left_out + skipped == 0 {
            return String::from_utf8_lossy(&end).into_owned();
        }
        // From the beginning of a line on, unless that would leave nothing.
        let start = end.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let start = if start == end.len() { 0 } else { start };
        let omitted = kept.length() - (end.len() - start);
        let shown = String::from_utf8_lossy(end.get(start..).unwrap_or_default());
        format!("{}\n{shown}", omission(omitted))
    }

    /// The text; bytes that are no UTF-8 are replaced.
    pub fn into_text(self) -> String {
        let mut kept = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let tail = kept.tail.make_contiguous();
        if kept.left_out == 0 {
            kept.head.extend_from_slice(tail);
            return String::from_utf8_lossy(&kept.head).into_owned();
        }
        format!(
            "{}\n{}\n{}",
            String::from_utf8_lossy(&kept.head),
            omission(kept.left_out),
            String::from_utf8_lossy(tail)
        )
    }
}

impl Kept {
    fn length(&self) -> usize {
        self.head.len() + self.left_out + self.tail.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_kept_whole_and_long_output_from_both_ends() {
        let output = Output::default();
        output.push(b"hello ");
        output.push(b"world\xff");
        assert_eq!(output.into_text(), "hello world\u{fffd}");
        let output = Output::default();
        output.push(b"begin");
        for _ in 0..1_000 {
            output.push(&[b'x'; 1_000]);
        }
        output.push(b"end");
        let text = output.into_text();
        assert!(text.starts_with("begin") && text.ends_with("end"));
        assert!(text.contains("bytes omitted"));
        assert!(text.len() <= MAX_CHECK_OUTPUT, "{}", text.len());
    }

    #[test]
    fn the_end_is_read_while_the_check_writes() {
        let output = Output::default();
        assert_eq!((output.end(), output.length()), (String::new(), 0));
        output.push(b"one\ntwo");
        assert_eq!((output.end(), output.length()), ("one\ntwo".to_owned(), 7));
        for number in 0..40_000 {
            output.push(format!("line {number}\n").as_bytes());
        }
        let (end, length) = (output.end(), output.length());
        assert!(end.len() <= SHOWN + 40, "{}", end.len());
        let (note, lines) = end.split_once('\n').expect("lines");
        assert_eq!(note, omission(length - lines.len()));
        assert!(lines.starts_with("line ") && lines.ends_with("line 39999\n"));
        output.push("x".repeat(2 * SHOWN).as_bytes());
        assert!(output.end().ends_with('x'), "one line without an end");
        output.push(b"\n");
        assert!(output.end().ends_with("x\n"), "one line");
    }
}
