//! How far long work is, on the error output while that is a terminal.

use std::io::Read;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often a bar without a length moves.
const TICK: Duration = Duration::from_millis(120);

/// A bar, which disappears when it is dropped.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// Work of unknown length.
    pub fn endless(what: &str) -> Self {
        let bar = ProgressBar::new_spinner().with_message(what.to_owned());
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Work on so many things.
    pub fn count(what: &str, all: usize) -> Self {
        Self::bar(what, all.try_into().unwrap_or(u64::MAX), "{msg} {wide_bar} {pos}/{len} {eta}")
    }

    /// Work on so many bytes.
    pub fn bytes(what: &str, all: u64) -> Self {
        Self::bar(what, all, "{msg} {wide_bar} {bytes}/{total_bytes} {eta}")
    }

    fn bar(what: &str, all: u64, form: &str) -> Self {
        let style = ProgressStyle::with_template(form);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(ProgressBar::new(all).with_message(what.to_owned()).with_style(style))
    }

    /// So much more is done.
    pub fn add(&self, done: u64) {
        self.0.inc(done);
    }

    /// A reader that counts the bytes that are read.
    pub fn reading<R: Read>(&self, reader: R) -> impl Read {
        self.0.wrap_read(reader)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
