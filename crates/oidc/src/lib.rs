#![doc = include_str!("../README.md")]

mod claims;
mod discovery;
mod keys;
mod provider;
mod token;
#[cfg(test)]
mod token_tests;

pub use provider::{Provider, ProviderError, Settings};
