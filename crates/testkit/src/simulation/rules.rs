//! Rules of checks: the conclusion of a candidate is a function of its files.

use std::collections::BTreeSet;

use signalbox_domain::ids::RunId;
use signalbox_domain::queue::CheckConclusion;

use super::random::mixed;
use signalbox_conformance::fake_host::Tree;

/// The word in a file that fails every check.
pub(super) const BAD: &str = "bad";
/// The word in a file that fails some runs.
pub(super) const FLAKY: &str = "flaky";

/// The rules of a simulation.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    pub(super) seed: u64,
    /// Paths that fail together, though each passes alone.
    pub(super) clashes: BTreeSet<(String, String)>,
}

impl Rules {
    /// Whether these files pass, apart from flaky failures.
    pub(super) fn are_good(&self, files: &Tree) -> bool {
        let has = |path: &String| files.contains_key(path);
        !files.values().any(|content| content.contains(BAD))
            && !self.clashes.iter().any(|(one, other)| has(one) && has(other))
    }

    /// The conclusion of a check of a run; the same for a run that is repeated after a crash.
    pub(super) fn verdict(&self, files: &Tree, check: &str, run: RunId) -> CheckConclusion {
        let (high, low) = run.0.as_u64_pair();
        let name = check.bytes().fold(0_u64, |sum, byte| sum * 31 + u64::from(byte));
        let luck = mixed(self.seed ^ high ^ low.rotate_left(17) ^ name);
        let unlucky = luck.is_multiple_of(3) && files.values().any(|it| it.contains(FLAKY));
        // The second check always passes: it makes runs end in two steps.
        let good = check == "lint" || (self.are_good(files) && !unlucky);
        match (good, (luck >> 8) % 4) {
            (true, 0) => CheckConclusion::Neutral,
            (true, 1) => CheckConclusion::Skipped,
            (true, _) => CheckConclusion::Success,
            (false, 0) => CheckConclusion::TimedOut,
            (false, 1) => CheckConclusion::Cancelled,
            (false, _) => CheckConclusion::Failure,
        }
    }
}
