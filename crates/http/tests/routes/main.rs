//! Status, headers and body of every route, on stores and a git host in memory.

mod support;

mod bundles;
mod cancel_pull_request;
mod check_output;
mod conventions;
mod create_queue;
mod delete_queue;
mod entry_extras;
mod errors;
mod events;
mod flaky;
mod flaky_lists;
mod flaky_page;
mod flaky_quarantined;
mod get_merge_queue_metrics;
mod get_merge_queue_testing_details;
mod get_queue;
mod get_submitted_pull_request;
mod get_submitted_pull_requests;
mod imports;
mod list_audit;
mod list_merge_queue_testing_results;
mod list_pull_requests;
mod live_schema;
mod live_shapes;
mod quarantine_config;
mod restart_tests_on_pull_request;
mod schema;
mod service;
mod set_impacted_targets;
mod submit_pull_request;
mod tenants;
mod update_queue;
mod uploads;
mod webhooks;
