//! The contracts of the stores. Each property is an async function over the stores of an empty
//! database; [`crate::store_conformance`] makes a test of each.

pub mod accounts;
pub mod announcements;
pub mod audit;
pub mod events;
pub mod flaky;
pub mod flaky_cost;
pub mod flaky_draft;
pub mod flaky_evidence;
pub mod flaky_import;
pub mod flaky_incidents;
pub mod flaky_lists;
pub mod flaky_names;
pub mod flaky_runs;
mod flaky_scenario;
pub mod flaky_trend;
pub mod history;
pub mod idempotency;
pub mod inbound_deliveries;
pub mod jobs;
pub mod landing_audit;
pub mod outbox;
pub mod pull_requests;
pub mod queues;
pub mod reads;
pub mod retention;
mod sample;
pub mod services;
pub mod sessions;
pub mod several_servers;
pub mod uploads;
pub mod webhook_audit;
pub mod webhooks;

pub use flaky_scenario::Scenario;
pub use sample::{Sample, at};

/// Makes one test of each property. The expression is evaluated in an async block and returns the
/// stores of an empty database and a value that keeps it alive. With `all` before it, it runs every
/// property, one after the other.
#[macro_export]
macro_rules! store_conformance {
    ($fresh:expr) => {
        $crate::store_conformance!(@list tests $fresh);
    };
    (all $fresh:expr) => {
        $crate::store_conformance!(@list all $fresh);
    };
    (@list $how:ident $fresh:expr) => {
        $crate::store_conformance!(@$how $fresh;
            accounts::a_slug_belongs_to_its_first_organization,
            accounts::a_token_is_found_by_its_hash_unchanged,
            accounts::a_revoked_token_keeps_the_earlier_time,
            accounts::each_revocation_replaces_the_last_one,
            accounts::times_keep_their_microseconds,
            sessions::a_session_is_found_used_and_ended,
            sessions::old_sessions_are_deleted,
            idempotency::a_repeat_gets_the_reply_of_the_first_request,
            idempotency::a_released_or_expired_key_is_new,
            idempotency::one_of_concurrent_claims_is_granted,
            idempotency::expired_keys_are_deleted,
            accounts::a_repository_is_registered_once_and_belongs_to_its_organization,
            accounts::a_repository_outlives_a_change_of_the_rule_for_its_name,
            accounts::concurrent_spellings_register_one_repository,
            accounts::a_check_output_is_replaced_capped_and_pruned,
            events::events_are_paged_in_order,
            events::events_are_found_by_kind_and_id,
            events::old_events_are_deleted_and_positions_are_not_reused,
            events::events_are_for_their_own_organization,
            events::a_reader_misses_no_event_during_concurrent_commits,
            audit::records_are_paged_newest_first,
            audit::records_are_filtered,
            audit::records_are_for_their_own_organization,
            audit::old_records_are_pruned,
            audit::a_commit_writes_its_record_or_nothing,
            flaky_incidents::a_bad_upload_is_an_incident,
            flaky_incidents::failures_are_recounted,
            flaky_incidents::an_incident_is_recognized_late,
            flaky_import::an_imported_run_is_judged_as_of_its_own_time,
            flaky_import::time_runs_forwards_during_an_import,
            flaky_import::a_run_is_imported_once,
            flaky_import::an_incident_of_the_past_is_recognized,
            flaky_cost::an_upload_costs_what_it_contains,
            flaky::summaries_agree_with_the_runs,
            flaky_evidence::a_bug_of_one_platform_is_no_flake,
            flaky_evidence::a_pull_request_on_a_broken_base_is_no_flake,
            flaky_evidence::results_of_unknown_jobs_are_a_suspicion,
            flaky_evidence::a_retry_within_an_upload_needs_no_job,
            flaky_evidence::an_incident_excludes_evidence_of_every_origin,
            flaky::an_upload_is_counted_once,
            flaky::a_disagreement_changes_status_list_and_events_in_one_commit,
            flaky::a_step_on_an_old_version_writes_nothing,
            flaky_draft::a_draft_writes_everything_or_nothing,
            flaky_draft::a_test_that_is_deleted_before_the_commit_is_not_half_stored,
            flaky_draft::parts_of_an_upload_are_one_step,
            flaky::concurrent_uploads_are_judged_together,
            flaky_lists::failing_tests_are_found_by_time,
            flaky_lists::lists_are_paged_in_both_directions,
            flaky_lists::numbers_are_counted_over_their_time,
            flaky_trend::tests_are_counted_day_by_day,
            flaky_trend::what_a_test_delayed_is_counted,
            flaky_names::a_vanished_test_leaves_the_lists,
            flaky_names::a_retired_test_returns_as_it_was,
            flaky_names::runs_that_would_not_contain_a_test_prove_nothing,
            flaky_names::pull_requests_neither_retire_a_test_nor_bring_it_back,
            flaky_names::a_repeated_or_late_upload_changes_nothing,
            flaky_names::a_renamed_test_keeps_everything,
            flaky_names::a_moved_test_keeps_everything,
            flaky_names::a_test_that_is_renamed_back_keeps_what_was_decided_since,
            flaky_names::a_pull_request_takes_over_nothing,
            flaky_names::a_name_that_could_be_two_others_stays_alone,
            flaky_names::a_different_name_is_another_test,
            flaky_names::a_test_that_was_there_before_is_no_new_name,
            flaky_names::a_test_that_moved_between_shards_is_not_renamed,
            flaky::quarantine_follows_settings_overrides_and_time,
            flaky::a_test_is_found_by_every_id_that_is_sent_for_it,
            flaky::time_resolves_a_monitor,
            flaky::a_deleted_monitor_resolves_for_every_test,
            flaky::another_organization_sees_no_tests,
            flaky::old_history_is_deleted,
            flaky::results_of_one_commit_stay_together,
            flaky::recent_runs_are_listed_as_they_were_reported,
            flaky::a_ticket_is_linked,
            flaky::the_key_of_page_tokens_is_stable,
            announcements::a_commit_makes_its_pull_requests_due,
            announcements::a_pull_request_has_one_lease_holder_at_a_time,
            announcements::a_commit_during_a_lease_is_not_lost,
            announcements::old_announcements_are_deleted,
            jobs::a_job_is_leased_once_and_is_due_again_after_its_run,
            jobs::a_job_stays_with_its_server_until_that_is_late,
            jobs::the_job_of_a_dead_server_is_taken_over,
            jobs::one_of_eight_servers_leases_the_job,
            jobs::the_agenda_names_what_is_due,
            inbound_deliveries::a_delivery_is_recorded_once_until_its_record_is_deleted,
            flaky_runs::a_check_is_excused_by_quarantined_tests_only,
            flaky_runs::failed_runs_are_found_by_commit_and_time,
            history::entries_are_paged_by_submission,
            history::entries_are_filtered_by_state_and_by_when_they_left,
            history::several_entries_and_runs_are_found_in_one_call,
            history::entries_are_found_by_their_head_branch,
            history::ends_of_tests_are_paged_and_counted,
            history::history_is_for_its_own_organization,
            outbox::an_effect_is_leased_once_and_in_order,
            outbox::eight_workers_take_a_thousand_effects_once_each,
            outbox::a_lost_lease_has_no_effect,
            outbox::a_retried_effect_is_leased_again_when_it_is_due,
            outbox::failing_effects_are_listed_longest_first,
            outbox::revoked_checks_end_their_lease,
            outbox::runs_with_a_build_or_landing_in_the_outbox_are_listed,
            outbox::a_holder_ends_all_of_its_leases,
            pull_requests::twenty_concurrent_calls_get_twenty_numbers,
            pull_requests::a_pull_request_is_found_by_every_key_and_only_by_its_organization,
            queues::a_branch_has_one_queue,
            queues::of_concurrent_creations_one_succeeds,
            queues::a_commit_is_atomic,
            queues::a_commit_on_an_old_version_writes_nothing,
            queues::a_known_version_is_not_loaded_again,
            queues::external_checks_are_stored_with_their_run,
            queues::the_policy_of_a_queue_is_stored,
            queues::only_live_entries_and_runs_that_matter_are_loaded,
            queues::consecutive_steps_are_committed_together,
            queues::steps_on_an_old_version_write_nothing,
            queues::targets_are_stored_apart_and_before_a_submission,
            queues::a_deleted_queue_frees_its_branch,
            queues::a_queue_is_located_by_names,
            queues::another_organization_sees_nothing,
            queues::due_queues_are_found_most_overdue_first,
            queues::versions_are_read_for_all_or_watched_queues,
            reads::an_ended_entry_and_run_are_still_read,
            reads::moves_are_in_order,
            reads::depths_count_live_entries_by_state,
            retention::old_journal_records_are_deleted_and_queues_stay,
            uploads::an_upload_is_created_once_and_found_by_its_own,
            uploads::bytes_are_received_once,
            uploads::uploads_are_leased_once_each,
            uploads::a_lost_upload_lease_has_no_effect,
            uploads::an_upload_is_finished_or_retried,
            uploads::a_digest_belongs_to_the_first_until_it_fails,
            uploads::trusted_uploads_are_listed_apart,
            uploads::uploads_are_listed_in_pages_and_pruned_by_age,
            uploads::a_public_id_is_kept_and_leads_to_its_repository,
            services::concurrent_updates_are_not_lost,
            landing_audit::a_wrong_landing_is_stored_and_pauses_the_queue_once,
            several_servers::three_servers_do_the_work_of_one,
            webhook_audit::endpoints_are_changed_with_their_record_or_not_at_all,
            webhook_audit::messages_are_replayed_with_their_record_or_not_at_all,
            webhooks::an_endpoint_is_stored_unchanged_and_belongs_to_its_organization,
            webhooks::the_number_of_endpoints_is_limited,
            webhooks::a_change_of_an_old_version_is_not_written,
            webhooks::messages_and_the_cursor_move_together,
            webhooks::endpoints_take_turns,
            webhooks::an_endpoint_is_leased_once,
            webhooks::an_attempt_is_recorded_and_updates_its_message,
            webhooks::a_lost_webhook_lease_has_no_effect,
            webhooks::a_failing_endpoint_is_disabled,
            webhooks::messages_are_listed_in_pages_and_filtered,
            webhooks::ended_messages_are_replayed,
            webhooks::old_messages_are_pruned_and_deletion_removes_all_messages,
        );
    };
    (@all $fresh:expr; $($suite:ident::$property:ident),+ $(,)?) => {
        $({
            let (stores, _alive) = $fresh.await;
            $crate::stores::$suite::$property(&stores).await;
        })+
    };
    (@tests $fresh:expr; $($suite:ident::$property:ident),+ $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $property() {
                let (stores, _alive) = $fresh.await;
                $crate::stores::$suite::$property(&stores).await;
            }
        )+
    };
}
