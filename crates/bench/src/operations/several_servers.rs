//! Submissions to one, two and three servers on one PostgreSQL: to a queue for each server, and to one
//! queue for all.

use async_trait::async_trait;
use signalbox_domain::ids::{BranchName, PrNumber};

use super::Operation;
use crate::database::{Fresh, On};
use crate::failure::{During, Failure};
use crate::load::{self, Client, Request};
use crate::measure::{median, micros_each};
use crate::product::Product;
use crate::report::{Report, Row, count};
use crate::seed;
use crate::servers::{self, Listening};
use crate::setup::Setup;

/// Servers on the database.
const SERVERS: [usize; 3] = [1, 2, 3];
/// Clients of each server.
const CLIENTS: usize = 16;
/// Submissions to each server in a round.
const EACH: usize = 256;
/// The least share of the throughput of as many servers that do not share a database.
const GOAL: f64 = 0.8;

/// Several servers on one PostgreSQL.
pub(crate) struct SeveralServers;

#[async_trait(?Send)]
impl Operation for SeveralServers {
    fn name(&self) -> &'static str {
        "servers"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        let fresh = Fresh::new(setup, On::Postgres).await?;
        let product = Product::on(&fresh.database).await?;
        for (queues, kind) in [(SERVERS.len(), "a queue for each"), (1, "one queue for all")] {
            let mut branches = Vec::new();
            for number in 0..queues {
                let name = format!("of-{queues}-{number}");
                let branch = BranchName::new(name).during("a branch")?;
                seed::queue(&product, &branch).await?;
                branches.push(branch);
            }
            let mut alone = None;
            for number in SERVERS {
                let mut listening = Vec::new();
                for _ in 0..number {
                    let own = signalbox_persistence::connect(&fresh.url).await;
                    let own = own.during("the database")?;
                    listening.push(servers::product(product.another(&own)?)?);
                }
                let each = rate(setup, &product, &listening, &branches).await?;
                let data = format!("{number} on PostgreSQL, {kind}");
                let row = Row::of("servers", data, each, "submissions/s");
                let first = *alone.get_or_insert(each);
                let ideal = first * f64::from(u32::try_from(number).unwrap_or(1));
                report.add(if number == 1 || queues == 1 {
                    row
                } else {
                    row.with_goal(&format!("≥ {GOAL} × {number} × one"), each >= GOAL * ideal)
                });
                for server in listening {
                    server.stop().await;
                }
            }
        }
        report.note(format!(
            "servers: {} clients for each, on the cores of this machine together with the database.",
            count(CLIENTS)
        ));
        Ok(())
    }
}

/// Submissions a second, the median of the rounds.
async fn rate(
    setup: &Setup,
    product: &Product,
    servers: &[Listening],
    branches: &[BranchName],
) -> Result<f64, Failure> {
    let mut clients = Vec::new();
    for server in servers {
        clients.push(Client::with(CLIENTS, server.address).await?);
    }
    let each = setup.many(EACH);
    let mut rates = Vec::new();
    // The first round fills caches and is not counted.
    for round in 0..=setup.rounds {
        let mut submitted = Vec::new();
        for (branch, client) in branches.iter().cycle().zip(clients.drain(..)) {
            let opened = seed::open_many(product, branch, each);
            let requests = |path: &str| -> Vec<Request> {
                let body = |pr: &PrNumber| product.body(branch, Some(pr.0));
                opened.iter().map(|pr| load::post(path, &product.token, &body(pr))).collect()
            };
            submitted.push((
                client,
                requests("/v1/submitPullRequest"),
                requests("/v1/cancelPullRequest"),
            ));
        }
        let mut tasks = Vec::new();
        let begun = std::time::Instant::now();
        for (mut client, submit, cancel) in submitted {
            tasks.push(tokio::spawn(async move {
                client.all(&submit).await?;
                Ok::<_, Failure>((client, cancel))
            }));
        }
        let mut done = Vec::new();
        for task in tasks {
            done.push(task.await.during("a client")??);
        }
        let took = micros_each(begun.elapsed(), each * servers.len());
        for (mut client, cancel) in done {
            client.all(&cancel).await?;
            clients.push(client);
        }
        if round > 0 {
            rates.push(1e6 / took);
        }
    }
    Ok(median(&rates))
}
