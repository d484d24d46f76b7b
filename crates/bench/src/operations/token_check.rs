//! What recognizing callers adds to a small read: the same handler with the token's check and with
//! a caller that is known beforehand.

use std::fmt::Write as _;
use std::sync::Arc;

use actix_web::web::{self, Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use async_trait::async_trait;
use data_encoding::HEXLOWER;
use signalbox_domain::ids::BranchName;
use signalbox_domain::token::Caller;

use super::Operation;
use crate::database::{Fresh, On};
use crate::failure::{During, Failure};
use crate::load::{self, Client};
use crate::measure::{in_turn, micros_each};
use crate::product::{HERE, Product, token};
use crate::report::{Report, Row, count};
use crate::seed;
use crate::servers::{self, Listening, reply};
use crate::setup::Setup;

/// Tokens in the database.
const TOKENS: usize = 100_000;
/// Tokens in use: one, some that are remembered, and another one with each request.
const IN_USE: [usize; 3] = [1, 1_000, TOKENS];
const REQUESTS: usize = 2_000;
/// Entries of the queue that is read.
const ENTRIES: usize = 10;
/// The least share of the floor's throughput: at most 10 % more.
const GOAL: f64 = 1.0 / 1.1;

/// The token's check.
pub(crate) struct TokenCheck;

#[async_trait(?Send)]
impl Operation for TokenCheck {
    fn name(&self) -> &'static str {
        "token-check"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        for on in On::ALL {
            let fresh = Fresh::new(setup, on).await?;
            let product = Arc::new(Product::on(&fresh.database).await?);
            let branch = BranchName::new("main").during("a branch")?;
            let queue = seed::queue(&product, &branch).await?;
            seed::submit(&product, queue, ENTRIES).await?;
            let texts = tokens(&fresh, &product, setup.many(TOKENS)).await?;
            let server = server(&product, &branch)?;
            for in_use in setup.sizes(&IN_USE) {
                let mut at = 0;
                let mut requests = |path: &str| {
                    let mut next = || {
                        at = (at + 1) % (*in_use).min(texts.len());
                        load::get(path, texts.get(at).map_or("", String::as_str))
                    };
                    (0..setup.many(REQUESTS)).map(|_| next()).collect::<Vec<_>>()
                };
                let mut client = Client::to(server.address).await?;
                let mut bare = Client::to(server.address).await?;
                let open = requests("/open");
                let turns = in_turn(
                    setup.rounds,
                    async || Ok(micros_each(bare.all(&open).await?, open.len())),
                    async || {
                        let asked = requests("/checked");
                        Ok(micros_each(client.all(&asked).await?, asked.len()))
                    },
                )
                .await?;
                let data = format!("{}, {} of {} tokens", on.name(), count(*in_use), count(TOKENS));
                let row = Row::against("token check", data, &turns);
                let met = row.ratio() >= GOAL;
                report.add(row.with_goal("adds ≤ 10 %", met));
            }
            server.stop().await;
        }
        Ok(())
    }
}

/// Writes that many tokens; returns their texts.
async fn tokens(fresh: &Fresh, product: &Product, many: usize) -> Result<Vec<String>, Failure> {
    let mut texts = Vec::with_capacity(many);
    for start in (1..=many).step_by(1_000) {
        let mut rows = String::new();
        for number in start..(start + 1_000).min(many + 1) {
            let (token, text) = token(&product.org, u64::try_from(number).unwrap_or_default());
            let separator = if rows.is_empty() { "" } else { ", " };
            let hash = HEXLOWER.encode(&token.hash.0);
            let _ = write!(rows, "{separator}({}, '{hash}')", fresh.on.id(token.id.0));
            texts.push(text);
        }
        // Their scopes are copied from the token that the product has created.
        let sql = format!(
            "INSERT INTO tokens (id, org_id, name, hash, scopes, repos, compatibility, created_at) \
             SELECT v.column1, t.org_id, 'bench', v.column2, t.scopes, t.repos, t.compatibility, \
             t.created_at FROM tokens t, (VALUES {rows}) AS v WHERE t.id = {}",
            fresh.on.id(product.caller.token.0)
        );
        fresh.floor.run_sql(&sql).await?;
    }
    Ok(texts)
}

/// The state of the handlers.
struct Shared {
    product: Arc<Product>,
    branch: BranchName,
    body: Bytes,
}

fn server(product: &Arc<Product>, branch: &BranchName) -> Result<Listening, Failure> {
    let shared = Arc::new(Shared {
        product: product.clone(),
        branch: branch.clone(),
        body: Bytes::from(vec![b'x'; 5_000]),
    });
    servers::floor(move |config| {
        config
            .app_data(Data::from(shared.clone()))
            .route("/open", web::get().to(open))
            .route("/checked", web::get().to(checked));
    })
}

async fn open(shared: Data<Shared>) -> HttpResponse {
    reply(read(&shared, &shared.product.caller).await)
}

async fn checked(shared: Data<Shared>, request: HttpRequest) -> HttpResponse {
    let text = request.headers().get("x-api-token").and_then(|value| value.to_str().ok());
    let authenticator = &shared.product.api.authenticator;
    match authenticator.authenticate(text.unwrap_or_default(), HERE).await {
        Ok(Some(caller)) => reply(read(&shared, &caller).await),
        Ok(None) => reply(Err(Failure::new("a token", "is not recognized"))),
        Err(error) => reply(Err(Failure::new("a token", error))),
    }
}

async fn read(shared: &Shared, caller: &Caller) -> Result<HttpResponse, Failure> {
    let (queues, repo) = (&shared.product.api.queues, &shared.product.repository.name);
    let queue = queues.queue(caller, repo, &shared.branch).await.during("a queue")?;
    let body = shared.body.slice(..shared.body.len().min(500 * queue.live()));
    Ok(HttpResponse::Ok().body(body))
}
