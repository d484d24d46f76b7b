//! getQueue on queues of several lengths, against a handler that reads the queue's row and writes
//! the same JSON.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::web::{self, Data, Json};
use async_trait::async_trait;
use serde_json::Value;
use signalbox_domain::ids::BranchName;

use super::Operation;
use crate::database::{Fresh, On};
use crate::failure::{During, Failure};
use crate::floor_store::FloorStore;
use crate::load::{self, Client};
use crate::measure::{in_turn, micros_each};
use crate::product::Product;
use crate::report::{Report, Row, count};
use crate::seed;
use crate::servers::{self, Listening, reply};
use crate::setup::Setup;

/// Entries of the queue, and requests in a round.
const SIZES: [(usize, usize); 3] = [(100, 400), (1_000, 120), (10_000, 16)];
/// The size that the goal is about, and the least share of the floor's throughput.
const GOAL: (usize, f64) = (1_000, 0.8);

/// getQueue.
pub(crate) struct GetQueue;

#[async_trait(?Send)]
impl Operation for GetQueue {
    fn name(&self) -> &'static str {
        "get-queue"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        for on in On::ALL {
            let fresh = Fresh::new(setup, on).await?;
            let product = Product::on(&fresh.database).await?;
            let server = servers::product(product.api.clone())?;
            for (size, requests) in setup.sizes(&SIZES) {
                let branch = BranchName::new(format!("with-{size}")).during("a branch")?;
                let queue = seed::queue(&product, &branch).await?;
                seed::submit(&product, queue, *size).await?;
                let body = product.body(&branch, None);
                let asked = load::post("/v1/getQueue", &product.token, &body);
                let mut client = Client::to(server.address).await?;
                let shown = client.one(&asked).await?;
                let shown: Value = serde_json::from_slice(&shown).during("a queue")?;
                let repo = product.repository.id.to_string();
                let floor = floor(fresh.floor.clone(), [repo, branch.to_string()], shown)?;
                let mut bare = Client::to(floor.address).await?;
                let requests = setup.many(*requests);
                let simple = vec![load::post("/", "", &body); requests];
                let asked = vec![asked; requests];
                let turns = in_turn(
                    setup.rounds,
                    async || Ok(micros_each(bare.all(&simple).await?, requests)),
                    async || Ok(micros_each(client.all(&asked).await?, requests)),
                )
                .await?;
                let data = format!("{}, {} entries", on.name(), count(*size));
                let row = Row::against("getQueue", data, &turns);
                report.add(if *size == GOAL.0 { row.at_least(GOAL.1) } else { row });
                floor.stop().await;
            }
            server.stop().await;
        }
        Ok(())
    }
}

/// The queue, and the product's description of it.
struct Known {
    place: [String; 2],
    shown: Value,
}

fn floor(store: FloorStore, place: [String; 2], shown: Value) -> Result<Listening, Failure> {
    let known = Arc::new(Known { place, shown });
    servers::floor(move |config| {
        config
            .app_data(Data::new(store.clone()))
            .app_data(Data::from(known.clone()))
            .route("/", web::post().to(show));
    })
}

async fn show(store: Data<FloorStore>, known: Data<Known>, _body: Json<Value>) -> HttpResponse {
    let [repo, branch] = &known.place;
    let read = store.queue_row(repo, branch).await;
    reply(read.map(|_| HttpResponse::Ok().json(&known.shown)))
}
