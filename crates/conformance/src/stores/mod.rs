//! The promises of the stores. Each property is an async function over the stores of an empty
//! database; [`crate::store_conformance`] makes a test of each.

pub mod accounts;
pub mod announcements;
pub mod audit;
pub mod events;
pub mod flaky;
pub mod flaky_cost;
pub mod flaky_incidents;
pub mod flaky_lists;
pub mod flaky_runs;
mod flaky_scenario;
pub mod history;
pub mod inbound_deliveries;
pub mod jobs;
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

/// Makes one test of each property. The expression gives, in an async block, the stores of an
/// empty database and something that keeps it alive.
#[macro_export]
macro_rules! store_conformance {
    ($fresh:expr) => {
        $crate::store_conformance!(@tests $fresh;
            accounts::an_organization_keeps_the_slug_that_it_got_first,
            accounts::a_token_is_found_by_its_hash_with_everything_it_carries,
            accounts::a_revoked_token_keeps_the_earlier_time,
            accounts::times_keep_their_microseconds,
            sessions::a_session_is_found_noted_and_ended,
            sessions::old_sessions_go,
            accounts::a_repository_is_registered_once_and_belongs_to_its_organization,
            accounts::a_repository_outlives_a_change_of_the_rule_for_its_name,
            accounts::spellings_that_come_at_once_make_one_repository,
            accounts::a_check_output_is_replaced_capped_and_pruned,
            events::events_are_paged_in_order,
            events::events_are_found_by_kind_and_id,
            events::old_events_go_and_positions_are_not_given_again,
            events::events_are_for_their_own_organization,
            events::a_reader_misses_nothing_while_others_commit,
            audit::records_are_paged_newest_first,
            audit::records_are_filtered,
            audit::records_are_for_their_own_organization,
            audit::old_records_are_pruned,
            audit::a_commit_writes_its_record_or_nothing,
            flaky_incidents::a_bad_upload_is_an_incident,
            flaky_incidents::failures_are_recounted,
            flaky_incidents::an_incident_is_recognised_late,
            flaky_cost::an_upload_costs_what_it_contains,
            flaky::summaries_agree_with_the_runs,
            flaky::an_upload_is_taken_in_once,
            flaky::a_disagreement_is_told_and_listed_in_one_commit,
            flaky::a_step_on_an_old_version_writes_nothing,
            flaky::uploads_that_come_at_once_know_each_other,
            flaky_lists::failing_tests_are_found_by_time,
            flaky_lists::lists_are_paged_in_both_directions,
            flaky_lists::numbers_are_counted_over_their_time,
            flaky::quarantine_follows_settings_overrides_and_time,
            flaky::a_test_is_found_by_every_id_that_is_sent_for_it,
            flaky::time_resolves_a_monitor,
            flaky::a_deleted_monitor_resolves_everywhere_at_once,
            flaky::another_organization_sees_no_tests,
            flaky::old_history_goes,
            flaky::a_ticket_is_linked,
            flaky::the_key_of_page_tokens_stays,
            announcements::a_commit_makes_its_pull_requests_due,
            announcements::a_pull_request_is_shown_by_one_holder_at_a_time,
            announcements::a_commit_during_a_lease_is_not_lost,
            announcements::what_was_shown_long_ago_is_forgotten,
            jobs::a_job_is_leased_once_and_is_due_again_after_its_run,
            jobs::a_job_stays_with_its_server_until_that_is_late,
            jobs::a_dead_servers_job_is_taken_over,
            jobs::of_eight_servers_one_gets_the_job,
            jobs::the_agenda_names_what_is_due,
            inbound_deliveries::an_event_is_taken_in_once_until_it_is_forgotten,
            flaky_runs::a_check_is_excused_by_quarantined_tests_only,
            flaky_runs::failed_runs_are_found_by_commit_and_time,
            history::entries_are_paged_by_submission,
            history::entries_are_filtered_by_state_and_by_when_they_left,
            history::several_entries_and_runs_are_found_at_once,
            history::entries_are_found_by_the_branch_that_they_come_from,
            history::ends_of_tests_are_paged_and_counted,
            history::history_is_for_its_own_organization,
            outbox::an_effect_is_leased_once_and_in_order,
            outbox::eight_workers_take_a_thousand_effects_once_each,
            outbox::a_lost_lease_can_do_nothing,
            outbox::an_effect_given_back_comes_again_when_it_is_due,
            outbox::failing_effects_are_told_longest_first,
            outbox::revoked_checks_are_lost_to_their_holder,
            outbox::it_tells_which_runs_are_to_be_answered,
            outbox::a_holder_hands_everything_back,
            pull_requests::twenty_opened_at_once_get_twenty_numbers,
            pull_requests::a_pull_request_is_found_in_every_way_and_only_by_its_organization,
            queues::a_branch_has_one_queue,
            queues::of_two_created_at_once_one_succeeds,
            queues::a_commit_is_whole,
            queues::a_commit_on_an_old_version_writes_nothing,
            queues::what_is_known_is_not_loaded_again,
            queues::only_live_entries_and_runs_that_matter_are_loaded,
            queues::targets_are_kept_apart_and_before_a_submission,
            queues::a_deleted_queue_frees_its_branch,
            queues::another_organization_sees_nothing,
            queues::queues_that_are_due_are_found_the_most_overdue_first,
            queues::versions_of_queues_that_are_looked_at_often,
            reads::an_ended_entry_and_run_are_still_read,
            reads::moves_are_in_order,
            reads::depths_count_live_entries_by_state,
            retention::old_journals_go_and_queues_stay,
            uploads::an_upload_is_created_once_and_found_by_its_own,
            uploads::bytes_are_received_once,
            uploads::uploads_are_leased_once_each,
            uploads::a_lost_upload_lease_can_do_nothing,
            uploads::an_upload_is_finished_or_comes_again,
            uploads::a_digest_belongs_to_the_first_until_it_fails,
            uploads::uploads_are_listed_in_pages_and_pruned_by_age,
            uploads::a_public_id_is_kept_and_leads_to_its_repository,
            services::updates_at_once_lose_nothing,
            several_servers::three_servers_do_the_work_of_one,
            webhook_audit::endpoints_are_changed_with_their_record_or_not_at_all,
            webhook_audit::messages_are_replayed_with_their_record_or_not_at_all,
            webhooks::an_endpoint_is_kept_whole_and_belongs_to_its_organization,
            webhooks::an_organization_has_so_many_endpoints_and_no_more,
            webhooks::a_change_of_an_old_version_is_not_written,
            webhooks::messages_and_the_cursor_move_together,
            webhooks::endpoints_take_turns,
            webhooks::an_endpoint_is_leased_once,
            webhooks::a_try_is_kept_and_moves_its_message,
            webhooks::a_lost_webhook_lease_can_do_nothing,
            webhooks::an_endpoint_that_only_fails_is_switched_off,
            webhooks::messages_are_listed_in_pages_and_filtered,
            webhooks::messages_that_ended_are_replayed,
            webhooks::old_messages_go_and_deletion_takes_everything,
        );
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
