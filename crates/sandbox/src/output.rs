//! Output of a check, kept from both ends.

use std::collections::VecDeque;

use signalbox_domain::ports::MAX_CHECK_OUTPUT;

/// How much of the beginning is kept when not all can be.
const HEAD: usize = MAX_CHECK_OUTPUT / 4;
/// How much of the end; the rest is for the line in between.
const TAIL: usize = MAX_CHECK_OUTPUT / 2;

/// The output of a check: all of it, or its beginning and its end.
#[derive(Debug, Default)]
pub struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: usize,
}

impl Output {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let too_many = self.tail.len().saturating_sub(TAIL);
        self.left_out += too_many;
        self.tail.drain(..too_many);
    }

    /// Whether nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    /// The last line that is not empty.
    pub(crate) fn last_line(&self) -> String {
        let tail: Vec<u8> = self.head.iter().chain(&self.tail).copied().collect();
        let text = String::from_utf8_lossy(&tail);
        text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().to_owned()
    }

    /// The text; bytes that are no UTF-8 are replaced.
    pub fn into_text(mut self) -> String {
        let tail = self.tail.make_contiguous();
        if self.left_out == 0 {
            self.head.extend_from_slice(tail);
            return String::from_utf8_lossy(&self.head).into_owned();
        }
        format!(
            "{}\n[{} bytes omitted]\n{}",
            String::from_utf8_lossy(&self.head),
            self.left_out,
            String::from_utf8_lossy(tail)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_kept_whole_and_long_output_from_both_ends() {
        let mut output = Output::default();
        output.push(b"hello ");
        output.push(b"world\xff");
        assert_eq!(output.into_text(), "hello world\u{fffd}");
        let mut output = Output::default();
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
}
