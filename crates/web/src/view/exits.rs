//! How a pull request left a queue.

use signalbox_domain::queue::{Culprit, Entry, Exit, LandingChange};
use signalbox_wording::{Named, Word, blame};

use super::QueueAddress;
use crate::model::Cell;
use crate::text::{plain, sentence};

/// The word for an exit's reason.
pub(crate) fn word(exit: &Exit) -> Word {
    match exit {
        Exit::Merged { reason, .. } => reason.named(),
        Exit::Failed { reason, .. } => reason.named(),
        Exit::Cancelled { reason, .. } => reason.named(),
    }
}

/// What happened, in one or two sentences, and whether it is still on the target branch.
pub(crate) fn described(entry: &Entry, exit: &Exit) -> String {
    match entry.off_target_since {
        Some(since) => {
            let gone = LandingChange::Removed.named().sentence;
            format!("{} Since {since}: {gone}.", sentence_of(exit))
        }
        None => sentence_of(exit),
    }
}

/// What happened, in one or two sentences.
pub(crate) fn sentence_of(exit: &Exit) -> String {
    let own = sentence(word(exit).sentence);
    match exit {
        Exit::Merged { sha: Some(sha), .. } => format!("{own} Merged as commit {sha}."),
        Exit::Merged { sha: None, .. } => own,
        Exit::Failed { details, .. } => {
            let fault = blame(exit).unwrap_or_default();
            let details = details.iter().take(5).map(|it| plain(it, 300)).collect::<Vec<_>>();
            let details = if details.is_empty() {
                String::new()
            } else {
                format!(" {}.", details.join("; "))
            };
            format!("{own}{details} {fault}")
        }
        Exit::Cancelled { by, .. } => format!("{own} By {}.", plain(&by.to_string(), 100)),
    }
}

/// The culprit.
pub(crate) fn culprit(exit: &Exit, place: &QueueAddress) -> Cell {
    match exit {
        Exit::Failed { culprit, .. } => {
            let cell = Cell::named(culprit);
            match culprit {
                Culprit::PullRequest(pr) => {
                    Cell { text: format!("#{pr}"), ..cell }.link(place.pr(*pr))
                }
                Culprit::Itself | Culprit::TargetBranch | Culprit::Host => cell,
            }
        }
        Exit::Merged { .. } | Exit::Cancelled { .. } => Cell::text("–"),
    }
}
