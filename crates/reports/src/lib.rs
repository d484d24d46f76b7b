#![doc = include_str!("../README.md")]
#![warn(missing_docs)]
#![warn(clippy::indexing_slicing, clippy::panic, clippy::as_conversions)]

mod blocking;
mod budget;
pub mod bundle;
mod convert;
pub mod identity;
pub mod junit;
pub mod ndjson;
mod reader;
mod reruns;

pub use blocking::BlockingReader;
pub use reader::{Kind, Reports};

/// The beginning of an error: a parser repeats what it read.
fn shortened(error: &str) -> String {
    error.chars().take(200).collect()
}
