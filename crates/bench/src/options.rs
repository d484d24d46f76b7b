//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// Measures Signalbox against floors in the same run.
#[derive(Debug, Parser)]
#[command(name = "signalbox-bench")]
pub(crate) struct Options {
    /// The operations to measure; all of them if none is named.
    pub(crate) operations: Vec<String>,
    /// One round and the smallest sizes: shows that it works, not how fast.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Rounds of each measurement, 1 to 100.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// Tests of the largest repository with flaky tests; the smaller ones have a tenth and a
    /// hundredth.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(10_000..=10_000_000))]
    pub(crate) tests: u32,
    /// Results in the largest repository with flaky tests.
    #[arg(long, default_value_t = 10_000_000)]
    pub(crate) results: u32,
    /// Tests of each upload of `flaky-growth`, half of which have failed once.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..=100_000))]
    pub(crate) growth_tests: u32,
    /// Uploads of a day of `flaky-growth`.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_440))]
    pub(crate) growth_uploads: u32,
    /// Days of `flaky-growth`; the clock is moved.
    #[arg(long, default_value_t = 45, value_parser = clap::value_parser!(u32).range(7..=365))]
    pub(crate) growth_days: u32,
    /// Failing tests of the upload of `flaky-large`.
    #[arg(long, default_value_t = 250_000, value_parser = clap::value_parser!(u32).range(1..=250_000))]
    pub(crate) failing: u32,
    /// The file that the figures are written to.
    #[arg(long, default_value = "target/bench.json", value_name = "FILE")]
    pub(crate) json: PathBuf,
    /// The file of an earlier run: the figures of both are printed side by side. Of rates, such as
    /// steps a second, more is better; of all others, less.
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<PathBuf>,
}
