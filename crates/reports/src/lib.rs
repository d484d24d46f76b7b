#![doc = include_str!("../README.md")]
#![warn(missing_docs)]
#![warn(clippy::indexing_slicing, clippy::panic, clippy::as_conversions)]

pub mod bundle;
pub mod identity;
pub mod junit;
