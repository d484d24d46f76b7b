//! The description of the API, made from the handlers.

mod completion;
mod fields;
mod webhooks;

use std::io::Write as _;

use actix_web::web::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};
use utoipa::{Modify, OpenApi};

use completion::Complete;

use crate::api::EventDescription;
use crate::dto::tests::DescribeParameters;
use crate::dto::{AuditActionWord, PositionText, RepoText, TimeText};
use crate::problem::ProblemBody;
use crate::routes::v1;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Signalbox",
        description = "A merge queue: pull requests are tested on top of the pull requests ahead of them, and only tested commits are merged.\n\nStates and modes are in upper case; a token that was created with `--compat v1-live` gets those in lower case whose schemas have `x-lower-case-for`. Requests may use any case.",
        version = "1.0.0",
        license(name = "Apache-2.0 OR MIT", identifier = "Apache-2.0 OR MIT")
    ),
    servers((url = "/", description = "This server.")),
    paths(
        v1::submit_pull_request::handle,
        v1::cancel_pull_request::handle,
        v1::restart_tests_on_pull_request::handle,
        v1::explain_failure::handle,
        v1::get_submitted_pull_request::handle,
        v1::get_submitted_pull_requests::handle,
        v1::list_pull_requests::handle,
        v1::list_merge_queue_testing_results::handle,
        v1::set_impacted_targets::handle,
        v1::get_merge_queue_testing_details::handle,
        v1::report_check_result::handle,
        v1::create_queue::handle,
        v1::delete_queue::handle,
        v1::get_queue::handle,
        v1::list_queues::handle,
        v1::update_queue::handle,
        v1::get_merge_queue_metrics::handle,
        v1::simulate::handle,
        v1::check_output::handle,
        v1::upload_reports::handle,
        v1::import_reports::handle,
        v1::list_uploads::handle,
        v1::get_upload::handle,
        v1::get_quarantine_config::handle,
        v1::create_bundle_upload::handle,
        v1::receive_bundle::handle,
        v1::upload_metrics::handle,
        v1::flaky::list_failing_tests::handle,
        v1::flaky::list_unhealthy_tests::handle,
        v1::flaky::list_quarantined_tests::handle,
        v1::flaky::get_test_details::handle,
        v1::flaky::link_ticket_to_test_case::handle,
        v1::flaky::create_ci_run::handle,
        v1::flaky::get_settings::handle,
        v1::flaky::update_settings::handle,
        v1::flaky::get_settings_history::handle,
        v1::flaky::list_monitors::handle,
        v1::flaky::create_monitor::handle,
        v1::flaky::update_monitor::handle,
        v1::flaky::delete_monitor::handle,
        v1::flaky::preview_monitor::handle,
        v1::flaky::flag_test::handle,
        v1::flaky::mute_monitor::handle,
        v1::flaky::override_quarantine::handle,
        v1::flaky::get_test_history::handle,
        v1::flaky::list_failures_of_test_run::handle,
        v1::flaky::list_incidents::handle,
        v1::flaky::decide_incident::handle,
        v1::flaky::finish_import::handle,
        v1::webhooks::create::handle,
        v1::webhooks::list::handle,
        v1::webhooks::get::handle,
        v1::webhooks::update::handle,
        v1::webhooks::delete::handle,
        v1::webhooks::rotate_secret::handle,
        v1::webhooks::send_test::handle,
        v1::webhooks::list_deliveries::handle,
        v1::webhooks::replay::handle,
        v1::events::list_events::handle,
        v1::events::stream_events::handle,
        v1::events::schemas::handle,
        v1::events::schema::handle,
        v1::status::handle,
        v1::openapi::handle,
        v1::list_audit::handle,
    ),
    components(schemas(ProblemBody, AuditActionWord, PositionText, RepoText, TimeText)),
    tags(
        (name = "merge queue", description = "Queues, and pull requests in them."),
        (name = "flaky tests", description = "Test results, flaky tests and quarantine."),
        (name = "webhooks", description = "Webhook endpoints and their deliveries."),
        (name = "messages", description = "Messages to webhook endpoints."),
        (name = "events", description = "What happened, in the order in which it was committed."),
        (name = "service", description = "The service itself; no token is needed.")
    ),
    modifiers(&Keys, &DescribeParameters, &Complete)
)]
struct Document;

struct Keys;

impl Modify for Keys {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let components = openapi.components.get_or_insert_default();
        for (name, header, description) in KEYS {
            let value = ApiKeyValue::with_description(header, description);
            components.add_security_scheme(name, SecurityScheme::ApiKey(ApiKey::Header(value)));
        }
    }
}

/// The credentials: the name of the scheme, its header and a description.
const KEYS: [(&str, &str, &str); 3] = [
    ("ApiKeyAuth", "x-api-token", "A token. It may also be sent as `Authorization: Bearer`."),
    (
        "ForkedWorkflowRun",
        "x-forked-workflow-run-id",
        "The id of a running workflow for a pull request from a fork, which has no token. The git \
         host confirms that it belongs to the pull request. Ignored when there is a token.",
    ),
    (
        "PublicRepositoryId",
        "x-trunk-public-repo-id",
        "The public id of a repository, for uploads without a token. Ignored when there is a token.",
    ),
];

/// The description of the API as JSON, with the payloads of the events of the catalog.
pub fn document(catalog: &[EventDescription]) -> String {
    let whole = Whole { document: Document::openapi(), webhooks: webhooks::messages(catalog) };
    let mut text = serde_json::to_string_pretty(&whole).unwrap_or_default();
    text.push('\n');
    text
}

/// The derived description, and what cannot be derived.
#[derive(Serialize)]
struct Whole {
    #[serde(flatten)]
    document: utoipa::openapi::OpenApi,
    webhooks: Map<String, Value>,
}

/// The description of the API as it is served.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    /// The JSON.
    pub(crate) plain: Bytes,
    /// The same in gzip.
    pub(crate) gzip: Option<Bytes>,
}

impl Served {
    pub(crate) fn of(catalog: &[EventDescription]) -> Self {
        let plain = document(catalog);
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let written = encoder.write_all(plain.as_bytes()).and_then(|()| encoder.finish());
        Self { plain: plain.into(), gzip: written.ok().map(Bytes::from) }
    }
}
