#![doc = include_str!("../README.md")]

mod delivery;
mod events;
mod guard;
mod signing;
mod vault;

pub use delivery::{KnownEvents, Poster, PosterLimits};
pub use events::{EventPayloads, Links, catalog};
pub use guard::{Guard, Lookup, Refused, SystemLookup};
pub use signing::{InvalidSecret, SigningSecret};
pub use vault::{KeyFileError, Vault};
