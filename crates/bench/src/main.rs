//! Measures what Signalbox costs, each operation against a floor in the same run: `just bench`.
//!
//! An operation is one file in `operations`. It prepares its data, lets floor and product take
//! turns, and adds rows to the report. The report goes to standard output as a table and to a file
//! as JSON; a missed goal is not a failure.

mod bare;
mod database;
mod disk;
mod earlier;
mod failure;
mod flaky_data;
mod flaky_seed;
mod floor_store;
mod load;
mod measure;
mod operations;
mod options;
mod parts;
mod process;
mod product;
mod report;
mod seed;
mod servers;
mod setup;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::earlier::Earlier;
use crate::failure::Failure;
use crate::options::Options;
use crate::report::Report;
use crate::setup::Setup;

fn main() -> ExitCode {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(Box::pin(run(&options))),
        Err(error) => Err(Failure::new("the runtime", error)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!("signalbox-bench: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Result<(), Failure> {
    let wanted = operations::wanted(&options.operations)?;
    let earlier = options.against.as_deref().map(Earlier::read).transpose()?;
    let setup = Setup::new(options)?;
    let mut report = Report::new(&setup);
    for operation in wanted {
        tell(&format!("{} …", operation.name()));
        operation.run(&setup, &mut report).await?;
    }
    let mut table = report.table();
    if let Some(earlier) = earlier {
        table = format!("{table}\n{}", earlier.compared(report.rows()));
    }
    // A closed pipe at the other end is no reason to fail.
    drop(write!(std::io::stdout().lock(), "{table}"));
    report.write_json(&options.json)
}

/// Prints the progress on standard error.
fn tell(line: &str) {
    drop(writeln!(std::io::stderr().lock(), "{line}"));
}
