#![doc = include_str!("../README.md")]

mod exit;
mod format;
mod input;
mod output;
mod progress;
mod screen;
mod signals;
mod table;
mod text;

pub use exit::Exit;
pub use format::Format;
pub use input::read;
pub use output::{complain, is_closed, is_interactive, note, say, say_json, written};
pub use progress::Progress;
pub use screen::Screen;
pub use signals::Signals;
pub use table::{Cell, Table};
pub use text::{causes, chain, one_line, plain};
