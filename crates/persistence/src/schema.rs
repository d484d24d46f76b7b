//! The tables, the same on both databases. Kept by hand next to the migrations; a test compares.

use diesel::table;

table! { orgs (id) { id -> Text, slug -> Text, created_at -> BigInt, } }

table! {
    tokens (id) {
        id -> Text, org_id -> Text, name -> Text, hash -> Text, scopes -> Text, repos -> Text,
        compatibility -> Text, created_at -> BigInt, expires_at -> Nullable<BigInt>,
        revoked_at -> Nullable<BigInt>,
    }
}

table! {
    sessions (hash) {
        hash -> Text, org_id -> Text, token_hash -> Text, created_at -> BigInt,
        seen_at -> BigInt,
    }
}

table! {
    repos (id) {
        id -> Text, org_id -> Text, lookup -> Text, host -> Text, owner -> Text, name -> Text,
        path -> Nullable<Text>, created_at -> BigInt,
    }
}

table! {
    queues (id) {
        id -> Text, org_id -> Text, repo_id -> Text, branch -> Text, version -> BigInt,
        next_deadline -> Nullable<BigInt>, deleted -> Bool, format -> Integer, document -> Text,
        watched_until -> BigInt,
    }
}

table! {
    entries (queue_id, id) {
        queue_id -> Text, id -> Text, org_id -> Text, pr_number -> BigInt, state -> Text,
        live -> Bool, run_id -> Nullable<Text>, updated_at -> BigInt, format -> Integer,
        document -> Text, submitted_at -> BigInt, head_branch -> Nullable<Text>,
    }
}

table! {
    runs (queue_id, id) {
        queue_id -> Text, id -> Text, org_id -> Text, running -> Bool, bisection -> Bool,
        updated_at -> BigInt, format -> Integer, document -> Text,
    }
}

table! {
    impacted_targets (queue_id, pr_number) {
        queue_id -> Text, pr_number -> BigInt, org_id -> Text, updated_at -> BigInt,
        format -> Integer, document -> Text,
    }
}

table! {
    journal (queue_id, number) {
        queue_id -> Text, number -> BigInt, org_id -> Text, at -> BigInt, format -> Integer,
        document -> Text,
    }
}

table! {
    entry_moves (queue_id, number, ordinal) {
        queue_id -> Text, number -> BigInt, ordinal -> BigInt, org_id -> Text, repo_id -> Text,
        entry_id -> Text, at -> BigInt, format -> Integer, document -> Text,
        from_state -> Nullable<Text>, to_state -> Text,
    }
}

table! {
    event_log (position) {
        position -> BigInt, id -> Text, org_id -> Text, repo_id -> Nullable<Text>, kind -> Text,
        at -> BigInt, payload -> Text, request_id -> Nullable<Text>,
    }
}

table! {
    outbox (position) {
        position -> BigInt, org_id -> Text, queue_id -> Text, number -> BigInt, lane -> Text,
        run_id -> Nullable<Text>, due_at -> BigInt, lease -> Nullable<Text>,
        holder -> Nullable<Text>, leased_until -> Nullable<BigInt>, attempts -> Integer,
        failing_since -> Nullable<BigInt>, last_error -> Nullable<Text>, format -> Integer,
        document -> Text, request_id -> Nullable<Text>,
    }
}

table! {
    pull_requests (repo_id, number) {
        repo_id -> Text, number -> BigInt, org_id -> Text, title -> Text, body -> Text,
        author -> Text, head_branch -> Nullable<Text>, topic -> Nullable<Text>, head -> Text,
        base -> Text, state -> Text, draft -> Bool, created_at -> BigInt, updated_at -> BigInt,
    }
}

table! {
    check_outputs (org_id, run_id, name) {
        org_id -> Text, run_id -> Text, name -> Text, at -> BigInt, output -> Text,
    }
}

table! {
    uploads (id) {
        id -> Text, org_id -> Text, repo_id -> Text, state -> Text, secret -> Nullable<Text>,
        digest -> Nullable<Text>, created_at -> BigInt, format -> Integer, document -> Text,
    }
}

table! {
    flaky_repos (repo_id) {
        repo_id -> Text, org_id -> Text, version -> BigInt, marks -> BigInt, format -> Integer,
        document -> Nullable<Text>,
    }
}

table! {
    upload_jobs (position) {
        position -> BigInt, org_id -> Text, upload_id -> Text, due_at -> BigInt,
        lease -> Nullable<Text>, holder -> Nullable<Text>, leased_until -> Nullable<BigInt>,
        attempts -> Integer, failing_since -> Nullable<BigInt>, last_error -> Nullable<Text>,
    }
}

table! { public_repo_ids (id) { id -> Text, org_id -> Text, repo_id -> Text, } }

table! {
    flaky_settings_log (repo_id, version) {
        repo_id -> Text, version -> BigInt, org_id -> Text, at -> BigInt, actor -> Text,
        format -> Integer, document -> Text,
    }
}

table! {
    test_cases (repo_id, id) {
        repo_id -> Text, id -> Text, org_id -> Text, status -> Text, quarantine -> Text,
        quarantine_until -> Nullable<BigInt>, noted -> Bool, watched -> Bool, owners -> Text,
        ticket -> Nullable<Text>, first_seen_at -> BigInt, last_seen_at -> BigInt,
        last_failure_at -> Nullable<BigInt>, due_at -> Nullable<BigInt>, format -> Integer,
        document -> Text,
    }
}

table! {
    test_aliases (repo_id, alias, test_id) {
        repo_id -> Text, alias -> Text, test_id -> Text, org_id -> Text,
    }
}

table! {
    test_journal (repo_id, test_id, number) {
        repo_id -> Text, test_id -> Text, number -> BigInt, org_id -> Text, at -> BigInt,
        format -> Integer, document -> Text,
    }
}

table! {
    result_uploads (repo_id, id) {
        repo_id -> Text, id -> Text, org_id -> Text, received_at -> BigInt, format -> Integer,
        upload -> Text, taken_in -> Text,
    }
}

// It has no key; this one is for the macro only.
table! {
    test_runs (repo_id, test_id, at) {
        repo_id -> Text, test_id -> Text, org_id -> Text, day -> BigInt, at -> BigInt,
        attempt -> BigInt, failed -> Bool, format -> Integer, document -> Text,
    }
}

table! {
    test_hours (repo_id, test_id, hour) {
        repo_id -> Text, test_id -> Text, hour -> BigInt, org_id -> Text, passed -> BigInt,
        failed -> BigInt, first_failure_at -> Nullable<BigInt>,
        last_failure_at -> Nullable<BigInt>,
    }
}

table! {
    test_buckets (repo_id, test_id, start, branch) {
        repo_id -> Text, test_id -> Text, start -> BigInt, branch -> Text, org_id -> Text,
        class -> Text, passed -> BigInt, failed -> BigInt, last_run_at -> BigInt,
        last_failure_at -> Nullable<BigInt>,
    }
}

table! {
    test_codes (repo_id, test_id, code, branch) {
        repo_id -> Text, test_id -> Text, code -> Text, branch -> Text, org_id -> Text,
        class -> Text, first_success_at -> Nullable<BigInt>,
        first_failure_at -> Nullable<BigInt>, last_at -> BigInt,
    }
}

table! {
    test_failures (repo_id, test_id, day, fingerprint) {
        repo_id -> Text, test_id -> Text, day -> BigInt, fingerprint -> Text, org_id -> Text,
        summary -> Text, occurrences -> BigInt, last_at -> BigInt,
    }
}

table! {
    test_pull_requests (repo_id, test_id, pr_number) {
        repo_id -> Text, test_id -> Text, pr_number -> BigInt, org_id -> Text,
        last_failure_at -> BigInt,
    }
}

table! {
    ci_runs (id) { id -> Text, org_id -> Text, repo_id -> Text, at -> BigInt, document -> Text, }
}

table! {
    webhook_endpoints (id) {
        id -> Text, org_id -> Text, version -> BigInt, position -> BigInt,
        failing_since -> Nullable<BigInt>, off_reason -> Nullable<Text>,
        off_at -> Nullable<BigInt>, lease -> Nullable<Text>, holder -> Nullable<Text>,
        leased_until -> Nullable<BigInt>, turn -> BigInt, served_at -> BigInt,
        created_at -> BigInt, format -> Integer, document -> Text,
    }
}

table! {
    webhook_messages (endpoint_id, id) {
        endpoint_id -> Text, id -> Text, org_id -> Text, event_id -> Text, position -> BigInt,
        kind -> Text, state -> Text, failures -> Integer, tries -> Integer,
        next_at -> Nullable<BigInt>, created_at -> BigInt, ended_at -> Nullable<BigInt>,
        payload -> Text, request_id -> Nullable<Text>,
    }
}

table! {
    webhook_attempts (endpoint_id, message_id, number) {
        endpoint_id -> Text, message_id -> Text, number -> BigInt, org_id -> Text,
        format -> Integer, document -> Text,
    }
}

table! { server_keys (name) { name -> Text, value -> Text, } }

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

table! {
    announcements (queue_id, pr_number) {
        queue_id -> Text, pr_number -> BigInt, org_id -> Text, status -> Nullable<Text>,
        comment -> Nullable<Text>, labels -> Nullable<Text>, closed -> Nullable<Text>,
        newer_head -> Nullable<Text>, shown_at -> BigInt, holder -> Nullable<Text>,
        held_until -> BigInt, due_at -> Nullable<BigInt>,
    }
}

table! {
    heard_events (org_id, host, event_id) {
        org_id -> Text, host -> Text, event_id -> Text, at -> BigInt,
    }
}

table! {
    audit (id) {
        id -> Text, org_id -> Text, at -> BigInt, action -> Text, token_id -> Nullable<Text>,
        object -> Text, repo -> Nullable<Text>, format -> Integer, document -> Text,
    }
}

table! {
    jobs (kind) {
        kind -> Text, due_at -> BigInt, server -> Nullable<Text>, lease -> Nullable<Text>,
        leased_until -> Nullable<BigInt>, failures -> Integer, last_run -> Nullable<BigInt>,
        last_error -> Nullable<Text>,
    }
}
