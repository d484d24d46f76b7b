//! getMergeQueueMetrics for many queues, against a handler that sends the same bytes.

use async_trait::async_trait;
use signalbox_domain::ids::BranchName;

use super::Operation;
use crate::database::{Fresh, On};
use crate::failure::{During, Failure};
use crate::load::{self, Client};
use crate::measure::{in_turn, micros_each};
use crate::product::Product;
use crate::report::{Report, Row, count};
use crate::seed;
use crate::servers;
use crate::setup::Setup;

const SIZES: [usize; 2] = [100, 1_000];
/// Entries of each queue.
const ENTRIES: usize = 5;
const SCRAPES: usize = 12;
/// Milliseconds for each thousand queues.
const GOAL: f64 = 30.0;

/// A scrape of the queue metrics.
pub(crate) struct Scrape;

#[async_trait(?Send)]
impl Operation for Scrape {
    fn name(&self) -> &'static str {
        "scrape"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        for on in On::ALL {
            let fresh = Fresh::new(setup, on).await?;
            let product = Product::on(&fresh.database).await?;
            let server = servers::product(product.api.clone())?;
            let mut client = Client::to(server.address).await?;
            let asked = load::get("/v1/getMergeQueueMetrics", &product.token);
            let mut queues = 0;
            for size in setup.sizes(&SIZES) {
                while queues < *size {
                    queues += 1;
                    let branch = BranchName::new(format!("release-{queues}"));
                    let queue = seed::queue(&product, &branch.during("a branch")?).await?;
                    seed::submit(&product, queue, ENTRIES).await?;
                }
                let page = client.one(&asked).await?;
                let kilobytes = page.len() / 1_000;
                let floor = servers::bytes(page)?;
                let mut bare = Client::to(floor.address).await?;
                let scrapes = setup.many(SCRAPES);
                let simple = load::get("/", "");
                // One at a time: a scrape is measured as its scraper sees it.
                let turns = in_turn(
                    setup.rounds,
                    async || Ok(micros_each(bare.repeat(&simple, scrapes).await?, scrapes)),
                    async || Ok(micros_each(client.repeat(&asked, scrapes).await?, scrapes)),
                )
                .await?;
                let data = format!("{}, {} queues, {kilobytes} kB", on.name(), count(*size));
                let row = Row::against("metrics scrape", data, &turns);
                let millis = row.product() / 1e3;
                let met =
                    millis * 1e3 <= GOAL * f64::from(u32::try_from(*size).unwrap_or(u32::MAX));
                report.add(row.with_goal(&format!("≤ {GOAL} ms per 1,000"), met));
                floor.stop().await;
            }
            server.stop().await;
        }
        Ok(())
    }
}
