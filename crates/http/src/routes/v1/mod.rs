//! Version 1: one operation a file.

pub(crate) mod cancel_pull_request;
pub(crate) mod check_output;
pub(crate) mod create_bundle_upload;
pub(crate) mod create_queue;
pub(crate) mod delete_queue;
pub(crate) mod flaky;
pub(crate) mod get_merge_queue_metrics;
pub(crate) mod get_merge_queue_testing_details;
pub(crate) mod get_quarantine_config;
pub(crate) mod get_queue;
pub(crate) mod get_submitted_pull_request;
pub(crate) mod get_submitted_pull_requests;
pub(crate) mod get_upload;
pub(crate) mod list_audit;
pub(crate) mod list_merge_queue_testing_results;
pub(crate) mod list_pull_requests;
pub(crate) mod list_uploads;
pub(crate) mod openapi;
pub(crate) mod receive_bundle;
pub(crate) mod restart_tests_on_pull_request;
pub(crate) mod set_impacted_targets;
pub(crate) mod status;
pub(crate) mod submit_pull_request;
pub(crate) mod update_queue;
pub(crate) mod upload_metrics;
pub(crate) mod upload_reports;
