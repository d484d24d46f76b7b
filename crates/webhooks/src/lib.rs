#![doc = include_str!("../README.md")]

pub mod catalogue;
mod delivery;
mod guard;
pub mod payloads;
mod signing;
mod vault;

pub use delivery::{KnownEvents, Poster, PosterLimits};
pub use guard::{Guard, Lookup, Refused, SystemLookup};
pub use payloads::{EventPayloads, Links};
pub use signing::{InvalidSecret, SigningSecret};
pub use vault::{KeyFileError, Vault};
