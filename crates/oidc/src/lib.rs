#![doc = include_str!("../README.md")]

mod ci;
mod claims;
mod discovery;
#[cfg(test)]
mod fuzz;
mod issuer;
mod keys;
mod provider;
mod token;
#[cfg(test)]
mod token_tests;

pub use ci::CiSystems;
pub use provider::{Provider, ProviderError, Settings};
