//! The standard output and the error output.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::text::{escaped, plain};

/// Why the standard output could not be written, the first time.
static FAILED: OnceLock<io::Error> = OnceLock::new();

/// Prints a line. An error is kept for [`written`].
pub fn say(line: &str) {
    print(&plain(line));
}

/// Prints JSON. Characters that could control a terminal are escaped, which does not change its
/// value.
pub fn say_json(json: &impl Display) {
    print(&escaped(&json.to_string()));
}

pub(crate) fn print(text: &str) {
    let mut output = io::stdout().lock();
    keep(writeln!(output, "{text}").and_then(|()| output.flush()));
}

pub(crate) fn keep(printed: io::Result<()>) {
    if let Err(error) = printed {
        // Only the first one counts.
        let _kept = FAILED.set(error);
    }
}

/// Whether everything was printed. That a reader has closed its end is not an error.
pub fn written() -> Result<(), &'static io::Error> {
    match FAILED.get() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        Some(_) | None => Ok(()),
    }
}

/// Whether nothing that is printed from now on can arrive: the reader has closed its end, or an
/// earlier line could not be written. Commands that follow something end then.
pub fn is_closed() -> bool {
    if FAILED.get().is_some() {
        return true;
    }
    let output = io::stdout();
    let mut waited = [PollFd::new(&output, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut waited, Some(&now)).is_ok_and(|ready| {
        ready > 0 && waited[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
    })
}

/// Whether the output goes to a terminal.
pub fn is_interactive() -> bool {
    io::stdout().is_terminal()
}

/// Prints a line about progress, where it does not mix with results.
pub fn note(line: &str) {
    // There is no other place for an error of the error output.
    let _printed = writeln!(io::stderr().lock(), "{}", plain(line));
}

/// Prints an error on one line.
pub fn complain(words: &str) {
    let words = plain(words).replace('\n', "; ");
    let _printed = writeln!(io::stderr().lock(), "signalbox: {words}");
}
