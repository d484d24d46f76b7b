//! Traces for a collector: OpenTelemetry's protocol over HTTP, when an address is configured.

use std::time::Duration;

use async_trait::async_trait;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use signalbox_config::Telemetry;
use thiserror::Error;
use tokio::runtime::Handle;

/// The timeout of a batch.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of a response that are read.
const MAX_ANSWER: usize = 64 * 1024;

/// Why the export of traces could not start.
#[derive(Debug, Error)]
pub enum TelemetryError {
    /// The HTTP client could not be created.
    #[error("telemetry: {0}")]
    Client(reqwest::Error),
    /// The exporter refuses its settings.
    #[error("telemetry.otlp_endpoint: {0}")]
    Exporter(ExporterBuildError),
}

/// Sends batches with the HTTP client that the program already has. The exporter has a thread of
/// its own without a runtime, so requests are made on the server's.
#[derive(Debug)]
struct OwnClient {
    client: reqwest::Client,
    runtime: Handle,
}

#[async_trait]
impl HttpClient for OwnClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let request = self
            .client
            .request(parts.method, parts.uri.to_string())
            .headers(parts.headers)
            .body(body);
        let call = self.runtime.spawn(async move {
            let mut answer = request.send().await?;
            let status = answer.status();
            let mut body = Vec::new();
            while let Some(chunk) = answer.chunk().await? {
                if body.len() + chunk.len() > MAX_ANSWER {
                    break;
                }
                body.extend_from_slice(&chunk);
            }
            Ok::<_, reqwest::Error>((status, body))
        });
        let (status, body) = call.await??;
        let mut answer = Response::new(Bytes::from(body));
        *answer.status_mut() = status;
        Ok(answer)
    }
}

/// The processor that collects spans until they are sent.
pub struct Exporting {
    provider: SdkTracerProvider,
}

impl Exporting {
    /// Starts the export, if an address is configured.
    pub(crate) fn start(telemetry: &Telemetry) -> Result<Option<Self>, TelemetryError> {
        let Some(endpoint) = &telemetry.otlp_endpoint else { return Ok(None) };
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(TelemetryError::Client)?;
        let client = OwnClient { client, runtime: Handle::current() };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
            .with_timeout(PATIENCE)
            .build()
            .map_err(TelemetryError::Exporter)?;
        let share = f64::from(telemetry.sample_percent) / 100.0;
        let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(share)));
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_sampler(sampler)
            .with_resource(Resource::builder().with_service_name("signalbox").build())
            .build();
        Ok(Some(Self { provider }))
    }

    /// The tracer.
    pub(crate) fn tracer(&self) -> SdkTracer {
        self.provider.tracer("signalbox")
    }

    /// Sends the remaining spans. It blocks, so it has its own thread.
    pub async fn stop(self) {
        let stopped = tokio::task::spawn_blocking(move || {
            self.provider.shutdown_with_timeout(Duration::from_secs(2))
        });
        if let Ok(Err(error)) = stopped.await {
            tracing::warn!(%error, "could not send all traces");
        }
    }
}
