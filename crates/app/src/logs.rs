//! Structured logs: for people on a terminal, JSON otherwise.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};

/// Starts logging to standard error. `RUST_LOG` goes before the configured level.
pub(crate) fn start(log: &Log) {
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new(format!("{},actix_server=warn", log.level)));
    let base = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let json = match log.format {
        LogFormat::Json => true,
        LogFormat::Pretty => false,
        LogFormat::Auto => !std::io::stderr().is_terminal(),
    };
    // A second start in one process keeps the first.
    let _started = if json {
        base.json().with_current_span(true).with_span_list(false).try_init()
    } else {
        base.with_target(false).try_init()
    };
}
