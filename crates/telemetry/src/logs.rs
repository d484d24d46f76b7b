//! Structured logs: readable lines on a terminal, JSON otherwise. Traces share the same setup.

use std::io::IsTerminal;

use signalbox_config::{Config, Log, LogFormat};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::traces::{Exporting, TelemetryError};

/// Libraries that would log too much: at lower levels they log received data.
const QUIET: &str = "actix_server=warn,actix_http=info,tokio_postgres=info,hyper=info,\
                     hyper_util=info,reqwest=info,rustls=info,mio=info,opentelemetry=warn,\
                     opentelemetry_sdk=warn";

/// The filter: `RUST_LOG` overrides the configured level. Libraries that handle secrets stay quiet
/// unless it names them.
fn filter(log: &Log) -> EnvFilter {
    let own = std::env::var("RUST_LOG").ok().filter(|text| !text.trim().is_empty());
    let text = own.unwrap_or_else(|| log.level.clone());
    EnvFilter::try_new(format!("{QUIET},{text}"))
        .unwrap_or_else(|_| EnvFilter::new(format!("{QUIET},{}", log.level)))
}

/// Starts logging to standard error, and exporting traces if that is configured.
pub fn start(config: &Config) -> Result<Option<Exporting>, TelemetryError> {
    let log = &config.log;
    let exporting = Exporting::start(&config.telemetry)?;
    let json = match log.format {
        LogFormat::Json => true,
        LogFormat::Pretty => false,
        LogFormat::Auto => !std::io::stderr().is_terminal(),
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = if json {
        lines.json().with_current_span(true).with_span_list(false).boxed()
    } else {
        lines.with_target(false).with_ansi(std::io::stderr().is_terminal()).boxed()
    };
    let traces = exporting.as_ref().map(|exporting| {
        // The exporter's own requests must not become spans that it exports.
        let own = tracing_subscriber::filter::filter_fn(|it| it.target().starts_with("signalbox"));
        tracing_opentelemetry::layer().with_tracer(exporting.tracer()).with_filter(own)
    });
    // A second start in one process keeps the first.
    let _started =
        tracing_subscriber::registry().with(lines.with_filter(filter(log))).with(traces).try_init();
    Ok(exporting)
}
