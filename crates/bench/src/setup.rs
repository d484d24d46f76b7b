//! What every operation starts from: how much to do, and where.

use tempfile::TempDir;

use crate::failure::{During, Failure};
use crate::options::Options;

/// How much to do, and a folder for it that goes away with the run.
pub(crate) struct Setup {
    /// Rounds of each measurement.
    pub(crate) rounds: u32,
    /// Whether the smallest sizes are enough.
    pub(crate) quick: bool,
    /// The sizes of `flaky-growth`.
    pub(crate) growth: Growth,
    /// Failing tests of one large upload.
    pub(crate) failing: usize,
    tests: (usize, usize),
    folder: TempDir,
}

/// How many uploads there are, for how long, and their size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    pub(crate) days: u32,
    pub(crate) uploads: u32,
    pub(crate) tests: u32,
}

impl Setup {
    /// From the command line.
    pub(crate) fn new(options: &Options) -> Result<Self, Failure> {
        let rounds = if options.quick { 1 } else { options.rounds };
        let folder = TempDir::with_prefix("signalbox-bench-").during("a temporary folder")?;
        let number = |it: u32| usize::try_from(it).unwrap_or(usize::MAX);
        let tests = (number(options.tests), number(options.results));
        let growth = if options.quick {
            Growth { days: 8, uploads: 4, tests: 100 }
        } else {
            let (uploads, tests) = (options.growth_uploads, options.growth_tests);
            Growth { days: options.growth_days, uploads, tests }
        };
        let failing = number(if options.quick { 1_000 } else { options.failing });
        Ok(Self { rounds, quick: options.quick, growth, failing, tests, folder })
    }

    /// A new, empty folder.
    pub(crate) fn folder(&self) -> Result<TempDir, Failure> {
        TempDir::new_in(self.folder.path()).during("a temporary folder")
    }

    /// Sizes a decade apart, smallest first; only the smallest when the run is quick.
    pub(crate) fn sizes<'a, T>(&self, sizes: &'a [T]) -> &'a [T] {
        if self.quick { sizes.get(..1).unwrap_or_default() } else { sizes }
    }

    /// Tests and results of repositories, a decade apart, smallest first; only the smallest when
    /// the run is quick.
    pub(crate) fn tests(&self) -> Vec<(usize, usize)> {
        let (tests, results) = self.tests;
        let sizes = [100, 10, 1].map(|share| (tests / share, results / share));
        self.sizes(&sizes).to_vec()
    }

    /// Tests of the largest repository, or of the smallest when the run is quick.
    pub(crate) const fn most_tests(&self) -> usize {
        if self.quick { self.tests.0 / 1_000 } else { self.tests.0 }
    }

    /// A number of repetitions, a tenth of it when the run is quick.
    pub(crate) const fn many(&self, count: usize) -> usize {
        if self.quick { count.div_ceil(10) } else { count }
    }
}
