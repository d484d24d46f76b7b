//! The memory of a server that reads one upload in which very many tests fail.

use std::fmt::Write as _;

use async_trait::async_trait;

use super::Operation;
use super::flaky_ingest::above_idle;
use crate::database::{Fresh, On};
use crate::failure::Failure;
use crate::process::program;
use crate::product::Product;
use crate::report::{Report, Row, count};
use crate::setup::Setup;

/// The most memory above that of an idle server, in MiB.
const GOAL: f64 = 256.0;

/// One large upload.
pub(crate) struct FlakyLarge;

#[async_trait(?Send)]
impl Operation for FlakyLarge {
    fn name(&self) -> &'static str {
        "flaky-large"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        let Some(program) = program()? else {
            let words = "large: memory was not measured, there is no release program.";
            report.note(words.to_owned());
            return Ok(());
        };
        let mut xml = String::from("<testsuite name=\"bench\">");
        for at in 0..setup.failing {
            // Writing to a string does not fail.
            let _ = write!(
                xml,
                "<testcase name=\"test number {at:07}\" classname=\"Calc\" file=\"tests/calc.rs\" \
                 time=\"1\"><failure message=\"sum {at} is not what it was\">at line {at}</failure></testcase>"
            );
        }
        xml.push_str("</testsuite>");
        for on in On::ALL {
            let fresh = Fresh::new(setup, on).await?;
            let product = Product::on(&fresh.database).await?;
            let more = above_idle(setup, (&fresh, &product, &program), 0, &xml).await?;
            let data =
                format!("{}, {} failing tests: memory above idle", on.name(), count(setup.failing));
            let row = Row::of("large upload", data, more, "MiB");
            report.add(row.with_goal(&format!("≤ {GOAL} MiB"), more <= GOAL));
        }
        Ok(())
    }
}
