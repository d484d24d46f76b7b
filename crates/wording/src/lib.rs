//! One vocabulary: how every state and reason is called in front of people. Pages, the command line
//! and the documentation use these words and no others. Each match is exhaustive, so a new variant
//! does not compile without its word.

#![warn(missing_docs)]
#![warn(
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::as_conversions
)]

mod blame;
mod estimate;
mod reasons;
mod settings;
mod states;
mod table;
mod tests;
mod waits;
mod webhooks;

pub use blame::{blame, exit_sentence};
pub use estimate::estimate_sentence;
pub use reasons::reason;
pub use settings::{settings_page, settings_warning};
pub use table::table;
pub use tests::upload_warning;
pub use waits::{Wait, after_exit, wait};

/// A colour's meaning. It is never the only sign: the word and the icon say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Nothing to see.
    Quiet,
    /// It waits.
    Waiting,
    /// It goes on.
    Active,
    /// It went well.
    Good,
    /// Somebody should look.
    Warning,
    /// It went wrong.
    Bad,
}

impl Tone {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Waiting => "waiting",
            Self::Active => "active",
            Self::Good => "good",
            Self::Warning => "warning",
            Self::Bad => "bad",
        }
    }
}

/// How something is called: a short word, an icon's name, a tone and a sentence without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// One to five words.
    pub label: &'static str,
    /// The name of an icon.
    pub icon: &'static str,
    /// What kind of news it is.
    pub tone: Tone,
    /// What it means.
    pub sentence: &'static str,
}

const fn word(label: &'static str, icon: &'static str, tone: Tone, sentence: &'static str) -> Word {
    Word { label, icon, tone, sentence }
}

/// Something that is called by a word in front of people.
pub trait Named {
    /// Its word.
    fn named(&self) -> Word;
}

impl<T: Named> Named for &T {
    fn named(&self) -> Word {
        (*self).named()
    }
}
