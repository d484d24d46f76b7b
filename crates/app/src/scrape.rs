//! The page of the server's own metrics, on a listener of its own.

use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::web::{Data, ServiceConfig, get};
use signalbox_domain::ports::{Backlog, StoreError};
use signalbox_domain::queue::EffectClass;
use signalbox_metrics::Sample;
use signalbox_services::failing;

use crate::wiring::App;

/// How long the database may take: a scrape must end before the scraper's timeout.
const PATIENCE: Duration = Duration::from_secs(3);
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Adds the page.
pub(crate) fn configure(app: Arc<App>) -> impl FnOnce(&mut ServiceConfig) {
    move |config| {
        config.app_data(Data::from(app)).route("/metrics", get().to(page));
    }
}

async fn page(app: Data<App>) -> HttpResponse {
    let sample = sample(&app).await;
    HttpResponse::Ok().content_type(CONTENT_TYPE).body(app.metrics.encode(&sample))
}

/// Samples the current state. What the database does not return in time is omitted.
async fn sample(app: &App) -> Sample {
    let (at, stores) = (app.context.clock.now(), &app.context.stores);
    let in_time = async |asked: &mut (dyn Future<Output = Result<Backlog, StoreError>> + Unpin)| {
        tokio::time::timeout(PATIENCE, asked).await.ok().and_then(Result::ok)
    };
    let mut backlogs = Vec::new();
    for class in EffectClass::ALL {
        let mut asked = stores.queue.outbox.backlog(*class, at);
        let name = match class {
            EffectClass::Host => "host",
            EffectClass::Checks => "checks",
        };
        backlogs.push((name, in_time(&mut asked).await));
    }
    backlogs.push(("uploads", in_time(&mut stores.flaky.uploads.backlog(at)).await));
    let failing = failing::for_long(&*stores.queue.outbox, at, 1);
    let failing = tokio::time::timeout(PATIENCE, failing).await;
    let failing = failing.ok().and_then(Result::ok);
    let pool = app.database.pool();
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    Sample {
        at,
        backlogs,
        failing,
        connections: (count(pool.open.saturating_sub(pool.idle)), count(pool.idle)),
        max_connections: count(pool.max),
        waiting: count(pool.waiting),
        uses: pool.uses,
        in_flight: app.admission.in_flight(),
        webhooks_on: app.lost_key.is_none(),
    }
}
