//! A picture on the terminal that is replaced repeatedly.

use std::io::{self, Write};

use terminal_size::{Height, Width, terminal_size};

use crate::output::keep;
use crate::text::plain;

/// The alternate screen of the terminal: the earlier content comes back when this is dropped.
#[derive(Debug)]
pub struct Screen(());

impl Screen {
    /// Changes to the alternate screen.
    pub fn open() -> Self {
        keep(write!(io::stdout().lock(), "\u{1b}[?1049h\u{1b}[?25l"));
        Self(())
    }

    /// Replaces the picture. What does not fit into the terminal is cut.
    pub fn draw(&self, text: &str) {
        let size =
            terminal_size().map_or((80, 24), |(Width(width), Height(height))| (width, height));
        let mut output = io::stdout().lock();
        let text = fitted(&plain(text), size.0.into(), size.1.into());
        let drawn = write!(output, "\u{1b}[H\u{1b}[2J{text}").and_then(|()| output.flush());
        keep(drawn);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let mut output = io::stdout().lock();
        keep(write!(output, "\u{1b}[?25h\u{1b}[?1049l").and_then(|()| output.flush()));
    }
}

/// The lines that fit, cut at the width; the last one says how many are missing.
fn fitted(text: &str, width: usize, height: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let room = height.max(2);
    let kept = if lines.len() > room { room - 1 } else { lines.len() };
    let cut = |line: &&str| match line.char_indices().nth(width) {
        Some(_) => line.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        None => (*line).to_owned(),
    };
    let mut shown: Vec<String> = lines.iter().take(kept).map(cut).collect();
    if kept < lines.len() {
        shown.push(format!("and {} more", lines.len() - kept));
    }
    shown.join("\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_picture_is_cut_to_the_terminal() {
        assert_eq!(fitted("1\n2\n3", 80, 3), "1\r\n2\r\n3");
        assert_eq!(fitted("1\n2\n3\n4", 80, 3), "1\r\n2\r\nand 2 more");
        assert_eq!(fitted("abcdef\nabc", 4, 24), "abc…\r\nabc");
    }
}
