//! Messages are posted.

mod poster;

pub use poster::{Poster, PosterLimits};
