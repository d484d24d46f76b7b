//! Three times as many submissions as the server can handle: their outcomes, and the latency of the
//! accepted ones. Callers do not wait for each other, as they do in every other operation.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use signalbox_domain::ids::{BranchName, PrNumber};
use tokio::task::JoinSet;

use super::Operation;
use crate::database::{Fresh, On};
use crate::failure::{During, Failure};
use crate::load::{self, Client, Request};
use crate::measure::percentile;
use crate::product::Product;
use crate::report::{Report, Row};
use crate::seed;
use crate::servers;
use crate::setup::Setup;

/// Submissions that measure the rate of the server when each caller waits for its reply.
const TO_MEASURE: usize = 400;
/// How many times that are offered, and for how long.
const TIMES: f64 = 3.0;
const LASTING: Duration = Duration::from_secs(10);
/// The longest that 99 of 100 accepted ones may take, in milliseconds.
const GOAL: f64 = 1_000.0;

/// More than there is time for.
pub(crate) struct Overload;

#[async_trait(?Send)]
impl Operation for Overload {
    fn name(&self) -> &'static str {
        "overload"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        for on in On::ALL {
            let fresh = Fresh::new(setup, on).await?;
            let product = Product::on(&fresh.database).await?;
            let server = servers::product(product.api.clone())?;
            let branch = BranchName::new("overload").during("a branch")?;
            seed::queue(&product, &branch).await?;
            let requests = |many: usize| -> Vec<Request> {
                let body = |pr: &PrNumber| product.body(&branch, Some(pr.0));
                let opened = seed::open_many(&product, &branch, many);
                let post =
                    |pr: &PrNumber| load::post("/v1/submitPullRequest", &product.token, &body(pr));
                opened.iter().map(post).collect()
            };
            let few = setup.many(TO_MEASURE);
            let mut client = Client::to(server.address).await?;
            let took = client.all(&requests(few)).await?;
            let pause = took.div_f64(TIMES * f64::from(u32::try_from(few).unwrap_or(u32::MAX)));
            let lasting = if setup.quick { LASTING / 10 } else { LASTING };
            let many = lasting.as_nanos() / pause.as_nanos().max(1);
            let offered = requests(usize::try_from(many).unwrap_or(usize::MAX).max(1));

            let begun = Instant::now();
            let mut callers = JoinSet::new();
            let (mut number, address) = (0_u32, server.address);
            for request in offered {
                tokio::time::sleep_until((begun + pause * number).into()).await;
                number += 1;
                callers.spawn(load::answer(address, request));
            }
            let (mut accepted, mut shed, mut lost) = (Vec::new(), 0_u32, 0_u32);
            while let Some(answer) = callers.join_next().await {
                match answer.during("a caller")? {
                    Ok((200, took)) => accepted.push(took.as_secs_f64() * 1e3),
                    Ok((503, _)) => shed += 1,
                    Ok(_) | Err(_) => lost += 1,
                }
            }
            let taken = f64::from(u32::try_from(accepted.len()).unwrap_or(u32::MAX));
            let data = |what: &str| format!("{}, {TIMES} times what it takes: {what}", on.name());
            let worst = percentile(&mut accepted, 99);
            let row = Row::of("submitPullRequest", data("99 of 100 accepted"), worst, "ms");
            report.add(row.with_goal("≤ 1,000 ms", worst <= GOAL));
            let share = 100.0 * taken / f64::from(number);
            report.add(Row::of("submitPullRequest", data("accepted"), share, "%"));
            let share = 100.0 * f64::from(shed) / f64::from(number);
            report.add(Row::of("submitPullRequest", data("answered with 503"), share, "%"));
            let row = Row::of("submitPullRequest", data("anything else"), f64::from(lost), "");
            report.add(row.with_goal("0", lost == 0));
            server.stop().await;
        }
        Ok(())
    }
}
