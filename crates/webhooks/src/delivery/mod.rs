//! Messages are posted.

mod known;
mod poster;

pub use known::KnownEvents;
pub use poster::{Poster, PosterLimits};
