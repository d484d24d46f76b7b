#![doc = include_str!("../README.md")]

pub mod catalogue;
pub mod payloads;

pub use payloads::{EventPayloads, Links};
