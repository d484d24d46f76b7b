//! The tables, the same on both databases. Kept by hand next to the migrations; a test compares.

use diesel::table;

table! { orgs (id) { id -> Text, slug -> Text, created_at -> BigInt, } }

table! {
    tokens (id) {
        id -> Text, org_id -> Text, name -> Text, hash -> Text, scopes -> Text, repos -> Text,
        enum_case -> Text, created_at -> BigInt, expires_at -> Nullable<BigInt>,
        revoked_at -> Nullable<BigInt>,
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
    events (position) {
        position -> BigInt, org_id -> Text, queue_id -> Text, at -> BigInt, format -> Integer,
        document -> Text,
    }
}

table! {
    outbox (position) {
        position -> BigInt, org_id -> Text, queue_id -> Text, number -> BigInt, lane -> Text,
        run_id -> Nullable<Text>, due_at -> BigInt, lease -> Nullable<Text>,
        holder -> Nullable<Text>, leased_until -> Nullable<BigInt>, attempts -> Integer,
        failing_since -> Nullable<BigInt>, last_error -> Nullable<Text>, format -> Integer,
        document -> Text,
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
    upload_jobs (position) {
        position -> BigInt, org_id -> Text, upload_id -> Text, due_at -> BigInt,
        lease -> Nullable<Text>, holder -> Nullable<Text>, leased_until -> Nullable<BigInt>,
        attempts -> Integer, failing_since -> Nullable<BigInt>, last_error -> Nullable<Text>,
    }
}

table! { public_repo_ids (id) { id -> Text, org_id -> Text, repo_id -> Text, } }

diesel::joinable!(queues -> repos (repo_id));
diesel::joinable!(events -> queues (queue_id));
diesel::joinable!(entry_moves -> queues (queue_id));
diesel::allow_tables_to_appear_in_same_query!(
    queues,
    repos,
    events,
    entries,
    runs,
    impacted_targets,
    entry_moves
);
