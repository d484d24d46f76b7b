//! The release program while nothing happens: how often it uses its database, by number of queues.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use signalbox_domain::ids::BranchName;

use super::Operation;
use crate::database::{Fresh, On};
use crate::failure::{During, Failure};
use crate::load::{self, Client};
use crate::process::{Running, program};
use crate::product::Product;
use crate::report::{Report, Row};
use crate::seed;
use crate::setup::Setup;

/// The warm-up: work that runs once after the start is over.
const REST: Duration = Duration::from_secs(5);
/// For how long transactions are counted.
const WINDOW: Duration = Duration::from_secs(20);
/// Numbers of queues, none of which has entries.
const QUEUES: [u32; 3] = [1, 100, 500];
/// The most transactions a second.
const GOAL: f64 = 5.0;

/// An idle release program.
pub(crate) struct Idle;

#[async_trait(?Send)]
impl Operation for Idle {
    fn name(&self) -> &'static str {
        "idle"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        let Some(program) = program()? else {
            report.note("idle: skipped, there is no release program.".to_owned());
            return Ok(());
        };
        for on in On::ALL {
            for queues in setup.sizes(&QUEUES) {
                let fresh = Fresh::new(setup, on).await?;
                let product = Product::on(&fresh.database).await?;
                for number in 0..*queues {
                    let branch = BranchName::new(format!("release-{number}")).during("a branch")?;
                    let queue = seed::queue(&product, &branch).await?;
                    // Its target is known, and nothing waits.
                    seed::submit(&product, queue, 0).await?;
                }
                let folder = setup.folder()?;
                let metrics = {
                    let listener = std::net::TcpListener::bind("127.0.0.1:0").during("a port")?;
                    listener.local_addr().during("a port")?
                };
                let listen = metrics.to_string();
                let environment = [("SIGNALBOX_SERVER__METRICS_LISTEN", listen.as_str())];
                let server =
                    Running::start_with(&program, folder.path(), &fresh.url, &environment).await?;
                tokio::time::sleep(REST).await;
                let mut client = Client::to(metrics).await?;
                let begun = Instant::now();
                let first = uses(&mut client).await?;
                // The cost of the page itself.
                let page = uses(&mut client).await? - first;
                tokio::time::sleep(WINDOW).await;
                let all = uses(&mut client).await? - first - 2.0 * page;
                let rate = all / begun.elapsed().as_secs_f64();
                drop(server);
                let data = format!("{}, {queues} queues without entries", on.name());
                let row = Row::of("transactions of an idle server", data, rate, "per second");
                report.add(row.with_goal("≤ 5 a second", rate <= GOAL));
            }
        }
        Ok(())
    }
}

async fn uses(client: &mut Client) -> Result<f64, Failure> {
    let page = client.one(&load::get("/metrics", "")).await?;
    let page = String::from_utf8_lossy(&page).into_owned();
    let line = page.lines().find_map(|line| line.strip_prefix("signalbox_database_uses_total "));
    let number = line.and_then(|number| number.parse().ok());
    number.ok_or_else(|| Failure::new("the metrics", "have no values of the database"))
}
