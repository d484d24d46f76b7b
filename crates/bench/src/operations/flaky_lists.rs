//! Lists of tests: the first page and the last, and all pages there and back while rows change.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use actix_web::HttpResponse;
use actix_web::web::{self, Data, Json};
use async_trait::async_trait;
use serde_json::{Value, json};
use signalbox_domain::ports::Clock;
use signalbox_domain::time::{Span, Timestamp};

use super::Operation;
use crate::database::{Fresh, On};
use crate::failure::{During, Failure};
use crate::flaky_data;
use crate::flaky_seed::{self, Mix};
use crate::floor_store::FloorStore;
use crate::load::{self, Client, Request};
use crate::measure::{in_turn, micros_each};
use crate::parts::SystemClock;
use crate::product::Product;
use crate::report::{Report, Row, count};
use crate::servers::{self, Listening, reply};
use crate::setup::Setup;

const REQUESTS: usize = 60;
/// The least share of the floor's throughput, and how much more the last page may cost.
const GOAL: (f64, f64) = (0.7, 1.2);
/// The same for tests that failed within 7 days.
const FAILING_GOAL: f64 = 0.5;

/// The lists, read completely.
pub(crate) struct FlakyLists;

#[async_trait(?Send)]
impl Operation for FlakyLists {
    fn name(&self) -> &'static str {
        "flaky-lists"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        for on in On::ALL {
            for (tests, results) in setup.tests() {
                let fresh = Fresh::new(setup, on).await?;
                let product = Product::on(&fresh.database).await?;
                let begun = Instant::now();
                flaky_seed::seed(&fresh, &product, tests, results, Mix::Usual).await?;
                let data =
                    format!("{}, {} tests, {} results", on.name(), count(tests), count(results));
                report.note(format!("{data}: written in {} s.", begun.elapsed().as_secs()));
                // One server for all of them: the stores' connections end with its workers.
                let server = servers::product(product.api.clone())?;
                let mut client = Client::to(server.address).await?;
                for list in LISTS {
                    let fresh_side = (&fresh, &product, &mut client);
                    pages(setup, report, fresh_side, list, &data).await?;
                }
                server.stop().await;
            }
        }
        Ok(())
    }
}

/// A list: its operation, what else it asks for, and whether it is the one of failing tests.
#[derive(Clone, Copy)]
enum List {
    Unhealthy,
    Quarantined,
    Failing,
}

const LISTS: [List; 3] = [List::Unhealthy, List::Quarantined, List::Failing];

impl List {
    const fn name(self) -> &'static str {
        match self {
            Self::Unhealthy => "list-unhealthy-tests",
            Self::Quarantined => "list-quarantined-tests",
            Self::Failing => "list-failing-tests",
        }
    }

    const fn key(self) -> &'static str {
        match self {
            Self::Quarantined => "quarantined_tests",
            Self::Unhealthy | Self::Failing => "tests",
        }
    }

    /// A page; of failing tests those of the week until then, the same for all pages of a list.
    fn asked(self, product: &Product, until: Timestamp, token: &str) -> Request {
        let name = &product.repository.name;
        let mut body = json!({
            "repo": {"host": name.host.as_str(), "owner": name.owner.as_str(),
                "name": name.name.as_str()},
            "org_url_slug": product.org.slug.as_str(),
            "page_query": {"page_size": 100, "page_token": token}
        });
        match self {
            Self::Unhealthy => body["status"] = json!("FLAKY"),
            Self::Quarantined => {}
            Self::Failing => {
                body["start_time"] = json!(until.minus(Span::hours(7 * 24)).to_string());
                body["end_time"] = json!(until.to_string());
            }
        }
        load::post(&format!("/v1/flaky-tests/{}", self.name()), &product.token, &body)
    }
}

async fn pages(
    setup: &Setup,
    report: &mut Report,
    (fresh, product, client): (&Fresh, &Product, &mut Client),
    list: List,
    data: &str,
) -> Result<(), Failure> {
    let until = SystemClock.now().plus(Span::hours(1));
    let first = list.asked(product, until, "");
    let shown: Value = serde_json::from_slice(&client.one(&first).await?).during("a page")?;
    let token = shown["page"]["last_page_token"].as_str().unwrap_or_default().to_owned();
    let total = shown["page"]["total_rows"].as_u64().unwrap_or_default();
    let ids = (product.repository.id.to_string(), product.org.id.to_string());
    let floor = floor(fresh.floor.clone(), ids, shown)?;
    let mut bare = Client::to(floor.address).await?;
    let requests = setup.many(REQUESTS);
    let simple = vec![load::post("/", "", &json!({})); requests];
    let asked = vec![first; requests];
    let turns = in_turn(
        setup.rounds,
        async || Ok(micros_each(bare.all(&simple).await?, requests)),
        async || Ok(micros_each(client.all(&asked).await?, requests)),
    )
    .await?;
    let data = format!("{data}, {total} listed");
    let goal = match list {
        List::Failing => FAILING_GOAL,
        List::Unhealthy | List::Quarantined => GOAL.0,
    };
    let row = Row::against(list.name(), data.clone(), &turns).at_least(goal);
    let cost = row.product();
    report.add(row);
    let end = vec![list.asked(product, until, &token); requests];
    client.all(&end).await?;
    let ratio = micros_each(client.all(&end).await?, requests) / cost;
    let row = Row::of(list.name(), format!("{data}: last page ÷ first"), ratio, "×");
    report.add(row.with_goal(&format!("≤ {} ×", GOAL.1), ratio <= GOAL.1));
    floor.stop().await;
    Ok(())
}

/// The state of the floor's handler.
struct Known {
    repo: String,
    org: String,
    shown: Value,
}

fn floor(
    store: FloorStore,
    (repo, org): (String, String),
    shown: Value,
) -> Result<Listening, Failure> {
    let known = Arc::new(Known { repo, org, shown });
    servers::floor(move |config| {
        config
            .app_data(Data::new(store.clone()))
            .app_data(Data::from(known.clone()))
            .route("/", web::post().to(show));
    })
}

async fn show(store: Data<FloorStore>, known: Data<Known>, _body: Json<Value>) -> HttpResponse {
    let read = store.flaky_tests((&known.repo, &known.org), 100).await;
    reply(read.map(|_| HttpResponse::Ok().json(&known.shown)))
}

/// The list of all tests, page by page to the last one and back.
pub(crate) struct FlakyPaging;

#[async_trait(?Send)]
impl Operation for FlakyPaging {
    fn name(&self) -> &'static str {
        "flaky-paging"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        for on in On::ALL {
            for (tests, _) in setup.tests() {
                let fresh = Fresh::new(setup, on).await?;
                let product = Product::on(&fresh.database).await?;
                flaky_seed::seed(&fresh, &product, tests, 0, Mix::AllFlaky).await?;
                let server = servers::product(product.api.clone())?;
                let mut client = Client::to(server.address).await?;
                let all: BTreeSet<String> = (0..tests)
                    .map(|number| {
                        let name = flaky_data::name(number);
                        flaky_data::key(&product, &name).id().to_string()
                    })
                    .collect();
                let data = format!("{}, {} tests", on.name(), count(tests));
                for list in [List::Unhealthy, List::Quarantined] {
                    let walked = walk(&fresh, &product, &mut client, list, &all).await?;
                    let name = list.name();
                    let words = "to the end and back: each page";
                    report.add(Row::of(name, format!("{data}, {words}"), walked.0, "µs"));
                    report.note(format!(
                        "{name}, {data}: every test came once forwards and once backwards, on {} \
                         pages, while one row changed for each page.",
                        count(walked.1)
                    ));
                }
                server.stop().await;
            }
        }
        Ok(())
    }
}

/// Reads a list to the last page and back; fails unless every test comes once each way. Returns the
/// time per page in microseconds, and the number of pages.
async fn walk(
    fresh: &Fresh,
    product: &Product,
    client: &mut Client,
    list: List,
    all: &BTreeSet<String>,
) -> Result<(f64, usize), Failure> {
    let mut token = String::new();
    let (mut took, mut pages) = (0.0, 0);
    let until = SystemClock.now().plus(Span::hours(1));
    for direction in ["next_page_token", "prev_page_token"] {
        let mut seen: Vec<String> = Vec::with_capacity(all.len());
        let mut changes = all.iter();
        loop {
            let begun = Instant::now();
            let page = client.one(&list.asked(product, until, &token)).await?;
            took += begun.elapsed().as_secs_f64() * 1e6;
            pages += 1;
            let page: Value = serde_json::from_slice(&page).during("a page")?;
            let tests = page[list.key()].as_array().cloned().unwrap_or_default();
            let ids = tests.iter().filter_map(|test| {
                let id = test.get("id").or_else(|| test.get("test_case_id"))?;
                Some(id.as_str()?.to_owned())
            });
            let mut ids: Vec<String> = ids.collect();
            if direction == "prev_page_token" {
                ids.reverse();
            }
            seen.extend(ids);
            if let Some(id) = changes.next() {
                let step = match fresh.on {
                    On::Sqlite => "1",
                    On::Postgres => "INTERVAL '1 microsecond'",
                };
                let sql = format!(
                    "UPDATE test_cases SET last_seen_at = last_seen_at + {step} \
                     WHERE repo_id = {} AND id = {}",
                    fresh.on.id(product.repository.id.0),
                    fresh.on.id(id.parse().during("an id")?)
                );
                fresh.floor.run_sql(&sql).await?;
            }
            let next = page["page"][direction].as_str().unwrap_or_default();
            if next.is_empty() {
                token = page["page"]["last_page_token"].as_str().unwrap_or_default().to_owned();
                break;
            }
            next.clone_into(&mut token);
        }
        let in_order = if direction == "next_page_token" {
            seen.is_sorted()
        } else {
            seen.iter().rev().is_sorted()
        };
        // The template is flaky too, and so in the list.
        let known = seen.iter().filter(|id| all.contains(*id)).count();
        if !in_order || known != all.len() || seen.len() != all.len() + 1 {
            let words = format!("{} of {} tests came, {} in all", known, all.len(), seen.len());
            return Err(Failure::new(list.name(), words));
        }
    }
    let each = took / f64::from(u32::try_from(pages.max(1)).unwrap_or(u32::MAX));
    Ok((each, pages))
}
