//! Structured logs: readable lines on a terminal, JSON otherwise. Traces share the same setup.

use std::fmt;
use std::io::IsTerminal;

use signalbox_config::{Config, Log, LogFormat};
use tracing::Subscriber;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{DefaultFields, FormatFields, Writer};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
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

/// The fields of spans and events, without control characters: a value may come from a stranger, and
/// must neither end its line nor give commands to a terminal.
struct EscapedFields;

impl<'line> FormatFields<'line> for EscapedFields {
    fn format_fields<R: RecordFields>(&self, mut line: Writer<'line>, fields: R) -> fmt::Result {
        let mut text = String::new();
        DefaultFields::new().format_fields(Writer::new(&mut text), fields)?;
        for c in text.chars() {
            if c.is_control() {
                write!(line, "{}", c.escape_default())?;
            } else {
                line.write_char(c)?;
            }
        }
        Ok(())
    }
}

/// Writes a line for each event, as JSON or as readable text.
fn lines<S, W>(json: bool, in_color: bool, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    if json {
        lines.json().with_current_span(true).with_span_list(false).boxed()
    } else {
        lines.with_target(false).with_ansi(in_color).fmt_fields(EscapedFields).boxed()
    }
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
    let lines = lines(json, std::io::stderr().is_terminal(), std::io::stderr);
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt::writer::BoxMakeWriter;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("not poisoned").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// What a stranger sends stays in its line, does not reach the terminal as a command, and does not
    /// look like another field.
    #[test]
    fn no_text_ends_a_line_or_controls_a_terminal() {
        let hostile = "a\nb\r2026-01-01T00:00:00Z ERROR forged\u{1b}[31m\u{9b}2J\u{7}\u{8}\" x=\"y";
        for json in [false, true] {
            let written = Written::default();
            let to = written.clone();
            let writer = BoxMakeWriter::new(move || to.clone());
            let subscriber = tracing_subscriber::registry().with(lines(json, false, writer));
            tracing::subscriber::with_default(subscriber, || {
                let span = tracing::info_span!("request", path = hostile, shown = %hostile);
                let _inside = span.enter();
                tracing::warn!(error = %hostile, debug = ?hostile, text = hostile, "refused");
                tracing::warn!("{hostile}");
            });
            let text = written.0.lock().expect("not poisoned").clone();
            let text = String::from_utf8(text).expect("UTF-8");
            assert_eq!(text.lines().count(), 2, "{text}");
            for line in text.lines() {
                // JSON may have the control characters after ASCII; it is for machines.
                let controls = |it: char| it.is_control() && !(json && it > '\u{7e}');
                assert!(!line.contains(controls), "{line:?}");
                let time = line.trim_start_matches("{\"timestamp\":\"").split(['"', ' ']).next();
                let time = time.expect("a time");
                assert!(time.ends_with('Z') && time.contains('T'), "{time} is not in UTC");
            }
        }
    }
}
