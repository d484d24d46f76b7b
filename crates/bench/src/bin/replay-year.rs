//! Replays generated years of a repository through the production judge, and prints how well it
//! judges and what that costs: `just replay-year`.
//!
//! The years, and the truth about them, come from `signalbox_testkit::year`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use signalbox_domain::flaky::{Monitor, offered};
use signalbox_domain::ports::Stores;
use signalbox_testkit::memory::MemoryDatabase;
use signalbox_testkit::postgres::Server;
use signalbox_testkit::year::{Cause, DayCost, Delays, Findings, Quality, Retries, Shape, replay};
use tempfile::TempDir;

/// Days of a row of costs.
const DAYS_OF_ROW: usize = 30;
/// The ticks of a second in which Linux reports CPU time.
const TICKS: u64 = 100;

/// Replays generated years of a repository through the production judge.
#[derive(Debug, Parser)]
#[command(name = "replay-year")]
struct Options {
    /// The seeds; each gives a year.
    #[arg(long, value_delimiter = ',', default_value = "1,2,3")]
    seeds: Vec<u64>,
    /// Days.
    #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(10..=730))]
    days: u32,
    /// Days after which the replay ends; all of them if not given.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(9..=730))]
    stop_after: Option<u32>,
    /// Tests on the first day.
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u32).range(100..=10_000))]
    tests: u32,
    /// Pull requests that are opened on a workday.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=100))]
    pull_requests: u32,
    /// Which failures are run again.
    #[arg(long, value_enum, default_value = "jobs")]
    retries: Again,
    /// Each platform is a variant.
    #[arg(long)]
    variants: bool,
    /// Switch the infrastructure guard off.
    #[arg(long)]
    no_guard: bool,
    /// A monitor in place of those of a new repository: `pass_on_retry`, or a template such as
    /// `broken_on_stable`; may be repeated.
    #[arg(long, value_name = "NAME")]
    monitor: Vec<String>,
    /// Where tests are stored.
    #[arg(long, value_enum, default_value = "memory")]
    database: Kind,
    /// Print the cost of each day instead of the means of 30.
    #[arg(long)]
    by_day: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Again {
    /// None.
    Never,
    /// Most failed jobs.
    Jobs,
    /// Every failed test in its job, and most failed jobs.
    Tests,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// Memory.
    Memory,
    /// A file that is deleted afterwards.
    Sqlite,
    /// A server that is started for it.
    Postgres,
}

/// What went wrong, as a sentence fragment.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let options = Options::parse();
    let done = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failure::from)
        .and_then(|runtime| runtime.block_on(Box::pin(run(&options))));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!("replay-year: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Result<(), Failure> {
    let last_day = options.stop_after.unwrap_or(options.days);
    if last_day > options.days {
        return Err(format!(
            "--stop-after must be at most the {} days that are planned",
            options.days
        )
        .into());
    }
    let monitors = monitors(options)?;
    let mut all = Vec::new();
    for seed in &options.seeds {
        tell(&format!("seed {seed} …"));
        let database = Fresh::new(options.database).await?;
        let shape = Shape {
            days: options.days,
            last_day,
            tests: options.tests,
            pull_requests: options.pull_requests,
            retries: match options.retries {
                Again::Never => Retries::Never,
                Again::Jobs => Retries::Jobs,
                Again::Tests => Retries::Tests,
            },
            variants: options.variants,
            guard: !options.no_guard,
            ..Shape::year(*seed)
        };
        let findings = Box::pin(replay(&database.stores, shape, monitors.as_deref(), cpu)).await;
        tell(&seed_row(*seed, &findings));
        all.push((*seed, findings));
    }
    let text = tables(&all, options.by_day);
    // A closed pipe at the other end is no reason to fail.
    drop(write!(std::io::stdout().lock(), "{text}"));
    Ok(())
}

fn monitors(options: &Options) -> Result<Option<Vec<Monitor>>, Failure> {
    let known = offered();
    let found = options.monitor.iter().map(|name| {
        let monitor = known.iter().find(|(it, _)| it == name).map(|(_, monitor)| monitor.clone());
        monitor.ok_or_else(|| {
            let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            let known = known.join(", ");
            Failure::from(format!("unknown monitor {name:?}: expected one of {known}"))
        })
    });
    let monitors = found.collect::<Result<Vec<Monitor>, Failure>>()?;
    Ok(Some(monitors).filter(|it| !it.is_empty()))
}

/// An empty database.
struct Fresh {
    stores: Stores,
    _folder: Option<TempDir>,
    _server: Option<Server>,
}

impl Fresh {
    async fn new(kind: Kind) -> Result<Self, Failure> {
        let (url, folder, server) = match kind {
            Kind::Memory => {
                let stores = MemoryDatabase::new().stores();
                return Ok(Self { stores, _folder: None, _server: None });
            }
            Kind::Sqlite => {
                let folder = TempDir::with_prefix("signalbox-year-")?;
                (
                    format!("sqlite://{}", folder.path().join("year.db").display()),
                    Some(folder),
                    None,
                )
            }
            Kind::Postgres => {
                let server = Server::start();
                (server.create_database(), None, Some(server))
            }
        };
        let database = signalbox_persistence::connect(&url).await?;
        database.migrate().await?;
        Ok(Self { stores: database.stores(), _folder: folder, _server: server })
    }
}

/// The CPU time of this process; 0 where Linux does not report it.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|it| it.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1_000 / TICKS)
}

/// Prints the progress on standard error.
fn tell(line: &str) {
    drop(writeln!(std::io::stderr().lock(), "{line}"));
}

fn seed_row(seed: u64, it: &Findings) -> String {
    let accused: u32 = it.accused.values().sum();
    format!(
        "| {seed} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} | {accused} | {} of {} | {} of 5, {} more | {} |",
        it.early.precision(),
        it.early.recall(),
        it.flaky.precision(),
        it.flaky.recall(),
        it.broken.precision(),
        it.broken.recall(),
        it.wrongly_excused,
        it.real,
        it.incidents,
        it.false_incidents,
        it.gone / 4,
    )
}

fn tables(all: &[(u64, Findings)], by_day: bool) -> String {
    let mut text = String::from(
        "| seed | day 9: precision | recall | flaky: precision | recall | broken: precision | recall \
         | wrongly called flaky | real failures excused wrongly | incidents | days of gone tests |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for (seed, findings) in all {
        text.push_str(&seed_row(*seed, findings));
        text.push('\n');
    }
    text.push_str("\n| test | found | median days | longest |\n|---|--:|--:|--:|\n");
    let mut detected = BTreeMap::new();
    for (kind, delays) in all.iter().flat_map(|(_, it)| &it.detected) {
        merge(detected.entry(*kind).or_default(), delays);
    }
    let (mut recovered, mut broken) = (Delays::default(), Delays::default());
    for (_, findings) in all {
        merge(&mut recovered, &findings.recovered);
        merge(&mut broken, &findings.broken_detected);
    }
    for (kind, delays) in &detected {
        delay_row(&mut text, &kind.label(), delays);
    }
    delay_row(&mut text, "broken on main, called broken", &broken);
    delay_row(&mut text, "fixed, no longer called flaky", &recovered);
    text.push_str(
        "\n| cause | failing tests of jobs | excused | tests wrongly called flaky |\n|---|--:|--:|--:|\n",
    );
    for cause in Cause::ALL {
        let of = |(_, it): &(u64, Findings)| it.failures.get(&cause).copied().unwrap_or_default();
        let (failures, excused) =
            all.iter().map(of).fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        let accused: u32 = all.iter().filter_map(|(_, it)| it.accused.get(&cause)).sum();
        // Writing to a string does not fail.
        let _ = writeln!(text, "| {} | {failures} | {excused} | {accused} |", cause.label());
    }
    costs(&mut text, all, if by_day { 1 } else { DAYS_OF_ROW });
    text.push_str(&early(all));
    text
}

/// Day 9 over all seeds, and the worst of them.
fn early(all: &[(u64, Findings)]) -> String {
    let each = |of: fn(Quality) -> f64| all.iter().map(move |(_, it)| of(it.early));
    let count = f64::from(u32::try_from(all.len().max(1)).unwrap_or(u32::MAX));
    let mean = |of| each(of).sum::<f64>() / count;
    let worst = |of| each(of).fold(1.0, f64::min);
    format!(
        "\nDay 9, mean of the seeds: precision {:.3} (target ≥ 0.95), recall {:.3} (target ≥ 0.9); worst seed: \
         {:.3} and {:.3}.\n",
        mean(Quality::precision),
        mean(Quality::recall),
        worst(Quality::precision),
        worst(Quality::recall),
    )
}

fn merge(all: &mut Delays, more: &Delays) {
    all.of += more.of;
    all.days.extend(&more.days);
    all.days.sort_by(f64::total_cmp);
}

fn delay_row(text: &mut String, label: &str, delays: &Delays) {
    let days = |days: Option<f64>| days.map_or_else(|| "–".into(), |days| format!("{days:.1}"));
    let _ = writeln!(
        text,
        "| {label} | {} of {} | {} | {} |",
        delays.days.len(),
        delays.of,
        days(delays.median()),
        days(delays.longest())
    );
}

/// Means over the seeds.
fn costs(text: &mut String, all: &[(u64, Findings)], days: usize) {
    text.push_str(
        "\n| days | uploads | results | rows read per result | rows written per result | CPU ms per upload |\n\
         |---|--:|--:|--:|--:|--:|\n",
    );
    let longest = all.iter().map(|(_, it)| it.cost.len()).max().unwrap_or_default();
    for from in (0..longest).step_by(days) {
        let of_days = all.iter().flat_map(|(_, it)| it.cost.iter().skip(from).take(days));
        let sum = of_days.fold(DayCost::default(), |sum, day| DayCost {
            uploads: sum.uploads + day.uploads,
            results: sum.results + day.results,
            rows_read: sum.rows_read + day.rows_read,
            rows_written: sum.rows_written + day.rows_written,
            cpu: sum.cpu + day.cpu,
        });
        let rows = |rows: usize| f64::from(u32::try_from(rows).unwrap_or(u32::MAX));
        let results = f64::from(sum.results.max(1));
        let _ = writeln!(
            text,
            "| {}–{} | {} | {} | {:.2} | {:.2} | {:.1} |",
            from + 1,
            (from + days).min(longest),
            sum.uploads,
            sum.results,
            rows(sum.rows_read) / results,
            rows(sum.rows_written) / results,
            sum.cpu.as_secs_f64() * 1_000.0 / f64::from(sum.uploads.max(1)),
        );
    }
}
