#![doc = include_str!("../README.md")]

mod delivery;
mod guard;
mod signing;
mod vault;

pub use delivery::{KnownEvents, Poster, PosterLimits};
pub use guard::{Guard, Lookup, Refused, SystemLookup};
pub use signing::{InvalidSecret, SigningSecret};
pub use vault::{KeyFileError, Vault};
pub mod catalogue;
pub mod payloads;

pub use payloads::{EventPayloads, Links};
