//! The tables, the same on both databases. Maintained by hand; a test compares each column with
//! both databases.

/// Tables with columns of [`crate::sql_types`].
macro_rules! tables {
    ($($name:ident $key:tt $columns:tt)+) => {
        $(diesel::table! {
            use crate::sql_types::columns::*;
            $name $key $columns
        })+
    };
}

tables! {
    orgs (id) { id -> Id, slug -> Text, created_at -> Moment, }

    tokens (id) {
        id -> Id, org_id -> Id, name -> Text, hash -> Text, scopes -> Text, repos -> Document,
        compatibility -> Text, created_at -> Moment, expires_at -> Nullable<Moment>,
        revoked_at -> Nullable<Moment>,
    }

    last_revocation (id) { id -> BigInt, revocation -> Id, }

    sessions (hash) {
        hash -> Text, org_id -> Id, token_hash -> Text, created_at -> Moment, seen_at -> Moment,
    }

    repos (id) {
        id -> Id, org_id -> Id, lookup -> Text, host -> Text, owner -> Text, name -> Text,
        path -> Nullable<Text>, created_at -> Moment,
    }

    queues (id) {
        id -> Id, org_id -> Id, repo_id -> Id, branch -> Text, version -> BigInt,
        next_deadline -> Nullable<Moment>, deleted -> Bool, document -> Document,
        watched_until -> Moment,
    }

    entries (queue_id, id) {
        queue_id -> Id, id -> Id, org_id -> Id, pr_number -> BigInt, state -> Text, live -> Bool,
        run_id -> Nullable<Id>, updated_at -> Moment, document -> Document, submitted_at -> Moment,
        head_branch -> Nullable<Text>,
    }

    runs (queue_id, id) {
        queue_id -> Id, id -> Id, org_id -> Id, running -> Bool, bisection -> Bool,
        updated_at -> Moment, document -> Document,
    }

    impacted_targets (queue_id, pr_number) {
        queue_id -> Id, pr_number -> BigInt, org_id -> Id, updated_at -> Moment,
        document -> Document,
    }

    journal (queue_id, number) {
        queue_id -> Id, number -> BigInt, org_id -> Id, at -> Moment, document -> Document,
    }

    entry_moves (queue_id, number, ordinal) {
        queue_id -> Id, number -> BigInt, ordinal -> BigInt, org_id -> Id, repo_id -> Id,
        entry_id -> Id, at -> Moment, document -> Document, from_state -> Nullable<Text>,
        to_state -> Text, restarted -> Bool, bisection -> Bool, after_micros -> BigInt,
        entered_line_at -> Nullable<Moment>,
    }

    event_log (position) {
        position -> BigInt, id -> Id, org_id -> Id, repo_id -> Nullable<Id>, kind -> Text,
        at -> Moment, payload -> Text, request_id -> Nullable<Text>,
    }

    outbox (position) {
        position -> BigInt, org_id -> Id, queue_id -> Id, number -> BigInt, lane -> Text,
        run_id -> Nullable<Id>, due_at -> Moment, lease -> Nullable<Id>, holder -> Nullable<Id>,
        leased_until -> Nullable<Moment>, attempts -> Integer, failing_since -> Nullable<Moment>,
        last_error -> Nullable<Text>, document -> Document, request_id -> Nullable<Text>,
    }

    pull_requests (repo_id, number) {
        repo_id -> Id, number -> BigInt, org_id -> Id, title -> Text, body -> Text, author -> Text,
        head_branch -> Nullable<Text>, topic -> Nullable<Text>, head -> Text, base -> Text,
        state -> Text, draft -> Bool, created_at -> Moment, updated_at -> Moment,
    }

    check_outputs (org_id, run_id, name) {
        org_id -> Id, run_id -> Id, name -> Text, at -> Moment, output -> Text,
    }

    uploads (id) {
        id -> Id, org_id -> Id, repo_id -> Id, trust -> Text, state -> Text,
        secret -> Nullable<Text>, digest -> Nullable<Text>, created_at -> Moment,
        document -> Document,
    }

    flaky_repos (repo_id) {
        repo_id -> Id, org_id -> Id, version -> BigInt, marks -> BigInt,
        document -> Nullable<Document>, failures -> Nullable<Document>,
        judged_at -> Nullable<Moment>, imported_uploads -> Nullable<BigInt>,
        imported_runs -> Nullable<BigInt>, imported_from -> Nullable<Moment>,
        imported_until -> Nullable<Moment>,
    }

    upload_jobs (position) {
        position -> BigInt, org_id -> Id, upload_id -> Id, due_at -> Moment, lease -> Nullable<Id>,
        holder -> Nullable<Id>, leased_until -> Nullable<Moment>, attempts -> Integer,
        failing_since -> Nullable<Moment>, last_error -> Nullable<Text>,
    }

    public_repo_ids (id) { id -> Id, org_id -> Id, repo_id -> Id, }

    flaky_settings_log (repo_id, version) {
        repo_id -> Id, version -> BigInt, org_id -> Id, at -> Moment, document -> Document,
    }

    test_cases (repo_id, id) {
        repo_id -> Id, id -> Id, org_id -> Id, status -> Text, quarantine -> Text,
        quarantine_until -> Nullable<Moment>, noted -> Bool, watched -> Bool, owners -> Nullable<Document>,
        ticket -> Nullable<Text>, first_seen_at -> Moment, stable_since -> Nullable<Moment>,
        last_seen_at -> Moment, last_failure_at -> Nullable<Moment>, due_at -> Nullable<Moment>,
        windows -> Nullable<Document>, document -> Document, retired -> Bool,
    }

    test_days (repo_id, day) {
        repo_id -> Id, day -> Moment, org_id -> Id, version -> BigInt, flaky -> BigInt,
        broken -> BigInt, quarantined -> BigInt,
    }

    test_presences (repo_id, test_id) {
        repo_id -> Id, test_id -> Id, org_id -> Id, place -> Text, document -> Document,
    }

    test_incidents (repo_id, id) {
        repo_id -> Id, id -> Id, org_id -> Id, last_at -> Moment, document -> Document,
    }

    incident_failures (repo_id, incident_id, test_id, upload_id) {
        repo_id -> Id, incident_id -> Id, test_id -> Id, upload_id -> Id, org_id -> Id,
    }

    test_aliases (repo_id, alias, test_id) {
        repo_id -> Id, alias -> Text, test_id -> Id, org_id -> Id,
    }

    test_journal (repo_id, test_id, number) {
        repo_id -> Id, test_id -> Id, number -> BigInt, org_id -> Id, at -> Moment,
        document -> Document,
    }

    result_uploads (repo_id, id) {
        repo_id -> Id, id -> Id, org_id -> Id, number -> BigInt, received_at -> Moment,
        code -> Text, upload -> Document, taken_in -> Document,
    }

    packed_runs (repo_id, test_id, start) {
        repo_id -> Id, test_id -> Id, start -> Moment, org_id -> Id, runs -> Text,
    }

    // The table has no primary key; Diesel requires one here.
    test_runs (repo_id, test_id, at) {
        repo_id -> Id, test_id -> Id, org_id -> Id, day -> Moment, at -> Moment, attempt -> BigInt,
        document -> Document,
    }

    test_hours (repo_id, test_id, hour) {
        repo_id -> Id, test_id -> Id, hour -> Moment, org_id -> Id, failed -> BigInt,
         first_failure_at -> Nullable<Moment>, last_failure_at -> Nullable<Moment>,
    }

    test_buckets (repo_id, test_id, start, branch) {
        repo_id -> Id, test_id -> Id, start -> Moment, branch -> Text, org_id -> Id, class -> Text,
        failed -> BigInt, last_run_at -> Moment,
        last_failure_at -> Nullable<Moment>,
    }

    test_codes (repo_id, test_id, code, branch, origin) {
        repo_id -> Id, test_id -> Id, code -> Text, branch -> Text, origin -> Text, org_id -> Id,
        class -> Text,
        first_success_at -> Nullable<Moment>, first_failure_at -> Nullable<Moment>,
        last_at -> Moment,
    }

    test_failures (repo_id, test_id, day, fingerprint) {
        repo_id -> Id, test_id -> Id, day -> Moment, fingerprint -> Text, org_id -> Id,
        summary -> Text, occurrences -> BigInt, last_at -> Moment,
    }

    test_pull_requests (repo_id, test_id, pr_number) {
        repo_id -> Id, test_id -> Id, pr_number -> BigInt, org_id -> Id, last_failure_at -> Moment,
    }

    ci_runs (id) { id -> Id, org_id -> Id, repo_id -> Id, at -> Moment, document -> Document, }

    webhook_endpoints (id) {
        id -> Id, org_id -> Id, version -> BigInt, position -> BigInt,
        failing_since -> Nullable<Moment>, off_reason -> Nullable<Text>, off_at -> Nullable<Moment>,
        lease -> Nullable<Id>, holder -> Nullable<Id>, leased_until -> Nullable<Moment>,
        turn -> BigInt, served_at -> Moment, created_at -> Moment, document -> Document,
    }

    webhook_messages (endpoint_id, id) {
        endpoint_id -> Id, id -> Id, org_id -> Id, event_id -> Id, position -> BigInt, kind -> Text,
        state -> Text, failures -> Integer, tries -> Integer, next_at -> Nullable<Moment>,
        created_at -> Moment, ended_at -> Nullable<Moment>, payload -> Text,
        request_id -> Nullable<Text>,
    }

    webhook_attempts (endpoint_id, message_id, number) {
        endpoint_id -> Id, message_id -> Id, number -> BigInt, org_id -> Id, document -> Document,
    }

    server_keys (name) { name -> Text, value -> Text, }

    announcements (queue_id, pr_number) {
        queue_id -> Id, pr_number -> BigInt, org_id -> Id, status -> Nullable<Id>,
        comment -> Nullable<Id>, labels -> Nullable<Id>, closed -> Nullable<Id>,
        newer_head -> Nullable<Text>, shown_at -> Moment, holder -> Nullable<Id>,
        held_until -> Moment, due_at -> Nullable<Moment>,
    }

    heard_events (org_id, host, event_id) {
        org_id -> Id, host -> Text, event_id -> Text, at -> Moment,
    }

    idempotency_keys (token_id, key) {
        token_id -> Id, key -> Text, org_id -> Id, fingerprint -> Text, claim -> Id,
        until -> Moment, status -> Nullable<Integer>, content_type -> Nullable<Text>,
        body -> Nullable<Text>,
    }

    audit (id) {
        id -> Id, org_id -> Id, at -> Moment, action -> Text, token_id -> Nullable<Id>,
        object -> Text, repo -> Nullable<Text>, document -> Document,
    }

    jobs (kind) {
        kind -> Text, due_at -> Moment, server -> Nullable<Id>, lease -> Nullable<Id>,
        leased_until -> Nullable<Moment>, failures -> Integer, last_run -> Nullable<Moment>,
        last_error -> Nullable<Text>,
    }
}

diesel::joinable!(queues -> repos (repo_id));
diesel::joinable!(entry_moves -> queues (queue_id));
diesel::allow_tables_to_appear_in_same_query!(
    queues,
    repos,
    entries,
    runs,
    impacted_targets,
    entry_moves
);
diesel::allow_tables_to_appear_in_same_query!(webhook_endpoints, webhook_messages);
diesel::allow_tables_to_appear_in_same_query!(flaky_repos, test_days);
