//! Lines and columns of a text that is passed piece by piece.

use super::error::Position;

/// Where the next byte lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines {
    next: Position,
}

impl Lines {
    pub(super) fn new() -> Self {
        Self { next: Position { line: 1, column: 1 } }
    }

    pub(super) fn position(&self) -> Position {
        self.next
    }

    pub(super) fn pass(&mut self, piece: &[u8]) {
        match memchr::memrchr(b'\n', piece) {
            Some(last) => {
                self.next.line += count(memchr::memchr_iter(b'\n', piece).count());
                self.next.column = count(piece.len() - last);
            }
            None => self.next.column += count(piece.len()),
        }
    }
}

pub(super) fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_restart_on_each_line() {
        let mut lines = Lines::new();
        for (piece, line, column) in [("", 1, 1), ("ab", 1, 3), ("c\n\nd", 3, 2), ("\n", 4, 1)] {
            lines.pass(piece.as_bytes());
            assert_eq!(lines.position(), Position { line, column }, "{piece:?}");
        }
    }
}
