//! How the composition of a landing was checked.

use signalbox_domain::queue::{Composition, CompositionCheck};

/// The sentence about a check. One that ends with a colon is followed by the paths, or the reason.
pub const fn composition(checked: &Composition) -> &'static str {
    match checked.check {
        CompositionCheck::Recomputed => {
            "It was computed a second time from the target branch and the heads of the pull requests, \
             with the same result."
        }
        CompositionCheck::Compared if checked.merged_by_host.is_empty() => {
            "It contains the changes of its pull requests and no others."
        }
        CompositionCheck::Compared => {
            "It contains the changes of its pull requests and no others. These files were changed on \
             both sides and merged by the git host:"
        }
        CompositionCheck::NotChecked => "Whether it contains other changes was not checked:",
    }
}
