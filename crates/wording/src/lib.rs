//! One vocabulary: the label of every state and reason. Pages, the command line
//! and the documentation use these labels and no others. Each match is exhaustive, so a new variant
//! does not compile without its label.

#![warn(missing_docs)]
#![warn(
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::as_conversions
)]

mod blame;
mod composition;
mod estimate;
mod reasons;
mod settings;
mod shell;
mod simulation;
mod states;
mod table;
mod tests;
mod undo;
mod waits;
mod webhooks;

pub use blame::{blame, exit_sentence};
pub use composition::composition;
pub use estimate::estimate_sentence;
pub use reasons::reason;
pub use settings::{settings_group, settings_page, settings_warning};
pub use shell::shell_word;
pub use simulation::{interval, model};
pub use table::table;
pub use tests::upload_warning;
pub use undo::{compare_landing, undo_landing};
pub use waits::{Wait, after_exit, dependency_state, frozen, held_by_freeze, next_step, wait};

/// The meaning of a color, never its only sign: the label and the icon carry the same meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Informational.
    Quiet,
    /// Waiting.
    Waiting,
    /// In progress.
    Active,
    /// Success.
    Good,
    /// Deserves attention.
    Warning,
    /// Failure.
    Bad,
}

impl Tone {
    /// The name of its CSS class.
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

/// How a value is shown: a label, an icon, a tone and a sentence without a full stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// One to five words, capitalized.
    pub label: &'static str,
    /// The name of an icon in the sprite of the pages.
    pub icon: &'static str,
    /// The tone that pages show it in.
    pub tone: Tone,
    /// The meaning, as a lower-case sentence without a full stop.
    pub sentence: &'static str,
}

const fn word(label: &'static str, icon: &'static str, tone: Tone, sentence: &'static str) -> Word {
    Word { label, icon, tone, sentence }
}

/// A value with a label.
pub trait Named {
    /// Its label, icon, tone and meaning.
    fn named(&self) -> Word;
}

impl<T: Named> Named for &T {
    fn named(&self) -> Word {
        (*self).named()
    }
}
