//! submitPullRequest on queues of several lengths, against a handler that writes two rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use actix_web::web::{self, Data, Json};
use actix_web::{HttpResponse, http};
use async_trait::async_trait;
use serde_json::{Value, json};
use signalbox_domain::ids::{BranchName, PrNumber};

use super::Operation;
use crate::database::{Fresh, On};
use crate::failure::{During, Failure};
use crate::floor_store::FloorStore;
use crate::load::{self, Client, Request};
use crate::measure::{in_turn, micros_each};
use crate::product::Product;
use crate::report::{Report, Row, count};
use crate::seed;
use crate::servers::{self, Listening, reply};
use crate::setup::Setup;

/// Entries that are live before each submission, more or less.
const SIZES: [usize; 3] = [10, 1_000, 10_000];
/// Clients, each of which waits for a reply before it sends the next submission.
const CLIENTS: [usize; 2] = [1, 64];
/// Submissions before the queue is emptied, which is not measured.
const CHUNK: usize = 64;
/// How often a round does that.
const CHUNKS: usize = 4;
/// The least share of the floor's throughput, and the most that 10,000 entries may add.
const GOALS: (f64, f64) = (0.6, 1.5);
/// About as many bytes as an entry's document has.
const DOCUMENT_BYTES: usize = 600;

/// submitPullRequest.
pub(crate) struct Submit;

#[async_trait(?Send)]
impl Operation for Submit {
    fn name(&self) -> &'static str {
        "submit"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        for on in On::ALL {
            measure(setup, report, &Fresh::new(setup, on).await?, on.name()).await?;
        }
        let synced = Fresh::with_fsync(setup).await?;
        measure(setup, report, &synced, "PostgreSQL with fsync").await
    }
}

async fn measure(
    setup: &Setup,
    report: &mut Report,
    fresh: &Fresh,
    on: &str,
) -> Result<(), Failure> {
    let product = Product::on(&fresh.database).await?;
    let servers = (floor(fresh.floor.clone())?, servers::product(product.api.clone())?);
    let mut costs = Vec::new();
    for size in setup.sizes(&SIZES) {
        let branch = BranchName::new(format!("with-{size}")).during("a branch")?;
        let queue = seed::queue(&product, &branch).await?;
        seed::submit(&product, queue, *size).await?;
        for clients in CLIENTS {
            let sizes = (*size, clients);
            let row = measured(setup, on, &product, &servers, (&branch, sizes)).await?;
            if clients == 1 {
                costs.push(row.product());
            }
            report.add(row);
        }
    }
    if let [first, .., last] = costs[..] {
        let (ratio, most) = (last / first, GOALS.1);
        let data = format!("{on}: cost at 10,000 live ÷ cost at 10");
        let row = Row::of("submitPullRequest", data, ratio, "×");
        report.add(row.with_goal(&format!("≤ {most} ×"), ratio <= most));
    }
    servers.0.stop().await;
    servers.1.stop().await;
    Ok(())
}

async fn measured(
    setup: &Setup,
    on: &str,
    product: &Product,
    (floor, server): &(Listening, Listening),
    (branch, (size, clients)): (&BranchName, (usize, usize)),
) -> Result<Row, Failure> {
    let mut bare = Client::with(clients, floor.address).await?;
    let mut client = Client::with(clients, server.address).await?;
    let chunks = setup.many(CHUNKS);
    let whole = vec![load::post("/", "", &product.body(branch, Some(1))); CHUNK];
    let turns = in_turn(
        setup.rounds,
        async || {
            let mut took = Duration::ZERO;
            for _ in 0..chunks {
                took += bare.all(&whole).await?;
            }
            Ok(micros_each(took, chunks * CHUNK))
        },
        async || {
            let mut took = Duration::ZERO;
            for _ in 0..chunks {
                let opened = seed::open_many(product, branch, CHUNK);
                let requests = |path: &str| -> Vec<Request> {
                    let body = |pr: &PrNumber| product.body(branch, Some(pr.0));
                    opened.iter().map(|pr| load::post(path, &product.token, &body(pr))).collect()
                };
                took += client.all(&requests("/v1/submitPullRequest")).await?;
                client.all(&requests("/v1/cancelPullRequest")).await?;
            }
            Ok(micros_each(took, chunks * CHUNK))
        },
    )
    .await?;
    let who = if clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") };
    let data = format!("{on}, {} live entries, {who}", count(size));
    Ok(Row::against("submitPullRequest", data, &turns).at_least(GOALS.0))
}

/// Reads the same body, and writes one new row and one that was there.
fn floor(store: FloorStore) -> Result<Listening, Failure> {
    let last = Arc::new(AtomicI64::new(0));
    servers::floor(move |config| {
        config
            .app_data(Data::new(store.clone()))
            .app_data(Data::from(last.clone()))
            .route("/", web::method(http::Method::POST).to(write));
    })
}

async fn write(store: Data<FloorStore>, last: Data<AtomicI64>, _body: Json<Value>) -> HttpResponse {
    let id = last.fetch_add(1, Ordering::Relaxed) + 1;
    let written = store.insert_and_update(id, &"x".repeat(DOCUMENT_BYTES)).await;
    reply(written.map(|()| HttpResponse::Ok().json(json!({}))))
}
