-- Made from migrations/source/2026-11-22-100000_initial.sql: change that and run `just gen`.
-- Every table names the organization; every key that can names the queue or the repository.
-- Hashes and digests are SHA-256 in hexadecimal.

CREATE TABLE orgs (
    id BLOB NOT NULL PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
) STRICT;

-- `scopes` are words with spaces between them; `compatibility` is a word.
CREATE TABLE tokens (
    id BLOB NOT NULL PRIMARY KEY,
    org_id BLOB NOT NULL REFERENCES orgs (id),
    name TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    repos TEXT NOT NULL,
    compatibility TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;

-- One row: a random id, which each revocation of a token replaces. Servers that know a token read it to learn
-- whether to look the token up again.
CREATE TABLE last_revocation (
    id INTEGER NOT NULL PRIMARY KEY,
    revocation BLOB NOT NULL
) STRICT;
INSERT INTO last_revocation (id, revocation) VALUES (1, zeroblob(16));

-- Sessions of the pages. A session allows what its token allows; only hashes are kept.
CREATE TABLE sessions (
    hash TEXT NOT NULL PRIMARY KEY,
    org_id BLOB NOT NULL REFERENCES orgs (id),
    token_hash TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
) STRICT;

CREATE TABLE repos (
    id BLOB NOT NULL PRIMARY KEY,
    org_id BLOB NOT NULL REFERENCES orgs (id),
    lookup TEXT NOT NULL,
    host TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    path TEXT,
    created_at INTEGER NOT NULL,
    UNIQUE (org_id, lookup)
) STRICT;

-- `watched_until`: until when the host of the queue is polled often.
CREATE TABLE queues (
    id BLOB NOT NULL PRIMARY KEY,
    org_id BLOB NOT NULL REFERENCES orgs (id),
    repo_id BLOB NOT NULL REFERENCES repos (id),
    branch TEXT NOT NULL,
    version INTEGER NOT NULL,
    next_deadline INTEGER,
    deleted INTEGER NOT NULL,
    watched_until INTEGER NOT NULL,
    document TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX queues_of_branch ON queues (repo_id, branch) WHERE NOT deleted;
CREATE INDEX queues_of_org ON queues (org_id, id);
CREATE INDEX queues_due ON queues (next_deadline) WHERE next_deadline IS NOT NULL;
CREATE INDEX queues_watched ON queues (watched_until);

CREATE TABLE entries (
    queue_id BLOB NOT NULL REFERENCES queues (id),
    id BLOB NOT NULL,
    org_id BLOB NOT NULL,
    pr_number INTEGER NOT NULL,
    state TEXT NOT NULL,
    live INTEGER NOT NULL,
    run_id BLOB,
    head_branch TEXT,
    submitted_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (queue_id, id)
) STRICT;
CREATE UNIQUE INDEX entries_of_pull_request ON entries (queue_id, pr_number);
CREATE INDEX entries_live ON entries (org_id, queue_id) WHERE live;
CREATE INDEX entries_by_submission ON entries (queue_id, submitted_at, pr_number);
CREATE INDEX entries_of_branch ON entries (queue_id, head_branch, submitted_at, pr_number)
WHERE head_branch IS NOT NULL;

CREATE TABLE runs (
    queue_id BLOB NOT NULL REFERENCES queues (id),
    id BLOB NOT NULL,
    org_id BLOB NOT NULL,
    running INTEGER NOT NULL,
    bisection INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (queue_id, id)
) STRICT;
CREATE INDEX runs_running ON runs (queue_id) WHERE running;

CREATE TABLE impacted_targets (
    queue_id BLOB NOT NULL REFERENCES queues (id),
    pr_number INTEGER NOT NULL,
    org_id BLOB NOT NULL,
    updated_at INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (queue_id, pr_number)
) STRICT;

CREATE TABLE journal (
    queue_id BLOB NOT NULL REFERENCES queues (id),
    number INTEGER NOT NULL,
    org_id BLOB NOT NULL,
    at INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (queue_id, number)
) STRICT;
CREATE INDEX journal_by_age ON journal (at);

CREATE TABLE entry_moves (
    queue_id BLOB NOT NULL REFERENCES queues (id),
    number INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    org_id BLOB NOT NULL,
    repo_id BLOB NOT NULL,
    entry_id BLOB NOT NULL,
    at INTEGER NOT NULL,
    from_state TEXT,
    to_state TEXT NOT NULL,
    restarted INTEGER NOT NULL,
    bisection INTEGER NOT NULL,
    after_micros INTEGER NOT NULL,
    entered_line_at INTEGER,
    document TEXT NOT NULL,
    PRIMARY KEY (queue_id, number, ordinal)
) STRICT;
CREATE INDEX entry_moves_of_queue ON entry_moves (queue_id, at, number, ordinal, to_state);
CREATE INDEX entry_moves_by_time ON entry_moves (org_id, at);
CREATE INDEX entry_moves_of_entry ON entry_moves (queue_id, entry_id, number, ordinal);
CREATE INDEX entry_moves_from ON entry_moves (queue_id, from_state, at, number, ordinal);

-- Public events, of queues and of tests. The payload is text and no document: subscribers verify a
-- signature of its bytes, which must not change.
CREATE TABLE event_log (
    position INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,
    org_id BLOB NOT NULL,
    repo_id BLOB REFERENCES repos (id),
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    payload TEXT NOT NULL,
    request_id TEXT
) STRICT;
CREATE INDEX event_log_of_org ON event_log (org_id, position);
CREATE INDEX event_log_by_age ON event_log (at);

CREATE TABLE outbox (
    position INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    org_id BLOB NOT NULL,
    queue_id BLOB NOT NULL REFERENCES queues (id),
    number INTEGER NOT NULL,
    lane TEXT NOT NULL,
    run_id BLOB,
    due_at INTEGER NOT NULL,
    lease BLOB,
    holder BLOB,
    leased_until INTEGER,
    attempts INTEGER NOT NULL,
    failing_since INTEGER,
    last_error TEXT,
    request_id TEXT,
    document TEXT NOT NULL,
    UNIQUE (queue_id, number)
) STRICT;
CREATE INDEX outbox_due ON outbox (lane, due_at, position);
CREATE INDEX outbox_of_run ON outbox (queue_id, run_id) WHERE run_id IS NOT NULL;
CREATE INDEX outbox_of_holder ON outbox (holder) WHERE holder IS NOT NULL;
-- A scrape reads what fails, which is nothing on most days.
CREATE INDEX outbox_failing ON outbox (failing_since, position) WHERE failing_since IS NOT NULL;

-- What hosts were last shown of pull requests: a fingerprint for each part. Neither a restart nor a
-- second server shows the same again. A commit makes a row due.
CREATE TABLE announcements (
    queue_id BLOB NOT NULL REFERENCES queues (id),
    pr_number INTEGER NOT NULL,
    org_id BLOB NOT NULL,
    status BLOB,
    comment BLOB,
    labels BLOB,
    closed BLOB,
    newer_head TEXT,
    shown_at INTEGER NOT NULL,
    holder BLOB,
    held_until INTEGER NOT NULL,
    due_at INTEGER,
    PRIMARY KEY (queue_id, pr_number)
) STRICT;
CREATE INDEX announcements_by_age ON announcements (shown_at);
CREATE INDEX announcements_due ON announcements (due_at) WHERE due_at IS NOT NULL;

-- Pull requests of hosts that keep none themselves.
CREATE TABLE pull_requests (
    repo_id BLOB NOT NULL REFERENCES repos (id),
    number INTEGER NOT NULL,
    org_id BLOB NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    author TEXT NOT NULL,
    head_branch TEXT,
    topic TEXT,
    head TEXT NOT NULL,
    base TEXT NOT NULL,
    state TEXT NOT NULL,
    draft INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (repo_id, number)
) STRICT;
-- A poll of a repository reads what is open, however much was merged.
CREATE INDEX pull_requests_by_state ON pull_requests (repo_id, state, number);
CREATE INDEX pull_requests_of_branch ON pull_requests (repo_id, head_branch, number)
WHERE head_branch IS NOT NULL;

CREATE TABLE check_outputs (
    org_id BLOB NOT NULL REFERENCES orgs (id),
    run_id BLOB NOT NULL,
    name TEXT NOT NULL,
    at INTEGER NOT NULL,
    output TEXT NOT NULL,
    PRIMARY KEY (org_id, run_id, name)
) STRICT;
CREATE INDEX check_outputs_by_age ON check_outputs (at);

-- Uploads of test results, the work of reading them, and public ids of repositories.
CREATE TABLE uploads (
    id BLOB NOT NULL PRIMARY KEY,
    org_id BLOB NOT NULL REFERENCES orgs (id),
    repo_id BLOB NOT NULL REFERENCES repos (id),
    trust TEXT NOT NULL,
    state TEXT NOT NULL,
    secret TEXT,
    digest TEXT,
    created_at INTEGER NOT NULL,
    document TEXT NOT NULL
) STRICT;
CREATE INDEX uploads_of_repo ON uploads (repo_id, created_at, id);
CREATE INDEX uploads_by_age ON uploads (created_at);
CREATE UNIQUE INDEX uploads_of_digest ON uploads (repo_id, digest) WHERE digest IS NOT NULL;

CREATE TABLE upload_jobs (
    position INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    org_id BLOB NOT NULL,
    upload_id BLOB NOT NULL UNIQUE REFERENCES uploads (id),
    due_at INTEGER NOT NULL,
    lease BLOB,
    holder BLOB,
    leased_until INTEGER,
    attempts INTEGER NOT NULL,
    failing_since INTEGER,
    last_error TEXT
) STRICT;
CREATE INDEX upload_jobs_due ON upload_jobs (due_at, position);
CREATE INDEX upload_jobs_of_holder ON upload_jobs (holder) WHERE holder IS NOT NULL;

CREATE TABLE public_repo_ids (
    id BLOB NOT NULL PRIMARY KEY,
    org_id BLOB NOT NULL REFERENCES orgs (id),
    repo_id BLOB NOT NULL UNIQUE REFERENCES repos (id)
) STRICT;

-- Flaky tests. What is counted is kept beside the results, so that no list depends on how many
-- results there are.
CREATE TABLE flaky_repos (
    repo_id BLOB NOT NULL PRIMARY KEY REFERENCES repos (id),
    org_id BLOB NOT NULL,
    version INTEGER NOT NULL,
    marks INTEGER NOT NULL,
    document TEXT,
    failures TEXT,
    -- How far results were judged, and what was imported since the last summary.
    judged_at INTEGER,
    imported_uploads INTEGER,
    imported_runs INTEGER,
    imported_from INTEGER,
    imported_until INTEGER
) STRICT;

CREATE TABLE flaky_settings_log (
    repo_id BLOB NOT NULL REFERENCES repos (id),
    version INTEGER NOT NULL,
    org_id BLOB NOT NULL,
    at INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (repo_id, version)
) STRICT;

CREATE TABLE test_cases (
    repo_id BLOB NOT NULL REFERENCES repos (id),
    id BLOB NOT NULL,
    org_id BLOB NOT NULL,
    status TEXT NOT NULL,
    quarantine TEXT NOT NULL,
    quarantine_until INTEGER,
    noted INTEGER NOT NULL,
    watched INTEGER NOT NULL,
    owners TEXT,
    ticket TEXT,
    first_seen_at INTEGER NOT NULL,
    stable_since INTEGER,
    last_seen_at INTEGER NOT NULL,
    last_failure_at INTEGER,
    due_at INTEGER,
    windows TEXT,
    document TEXT NOT NULL,
    retired INTEGER NOT NULL,
    PRIMARY KEY (repo_id, id)
) STRICT;
-- Lists of tests are read by repository and organization, in the order of ids. What lists are counted
-- by is in their indexes, so that counting reads no row.
CREATE INDEX test_cases_by_status ON test_cases (repo_id, org_id, status, id)
WHERE status <> 'healthy';
CREATE INDEX test_cases_noted
ON test_cases (repo_id, org_id, id, noted, status, quarantine, quarantine_until) WHERE noted;
CREATE INDEX test_cases_retired ON test_cases (repo_id, org_id, id) WHERE retired;
CREATE INDEX test_cases_watched ON test_cases (repo_id, id) WHERE watched;
CREATE INDEX test_cases_due ON test_cases (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX test_cases_by_age ON test_cases (last_seen_at);

CREATE TABLE test_aliases (
    repo_id BLOB NOT NULL,
    alias TEXT NOT NULL,
    test_id BLOB NOT NULL,
    org_id BLOB NOT NULL,
    PRIMARY KEY (repo_id, alias, test_id),
    FOREIGN KEY (repo_id, test_id) REFERENCES test_cases (repo_id, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX test_aliases_of_test ON test_aliases (repo_id, test_id);

-- How many tests there were on a day, in UTC, and the version of the repository at which they were counted.
CREATE TABLE test_days (
    repo_id BLOB NOT NULL REFERENCES repos (id),
    day INTEGER NOT NULL,
    org_id BLOB NOT NULL,
    version INTEGER NOT NULL,
    flaky INTEGER NOT NULL,
    broken INTEGER NOT NULL,
    quarantined INTEGER NOT NULL,
    PRIMARY KEY (repo_id, day)
) STRICT;
CREATE INDEX test_days_by_age ON test_days (day);

-- Where stable branches report the tests whose absence would show. The place is a digest.
CREATE TABLE test_presences (
    repo_id BLOB NOT NULL,
    test_id BLOB NOT NULL,
    org_id BLOB NOT NULL,
    place TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (repo_id, test_id),
    FOREIGN KEY (repo_id, test_id) REFERENCES test_cases (repo_id, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX test_presences_by_place ON test_presences (repo_id, place);

CREATE TABLE test_journal (
    repo_id BLOB NOT NULL,
    test_id BLOB NOT NULL,
    number INTEGER NOT NULL,
    org_id BLOB NOT NULL,
    at INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (repo_id, test_id, number),
    FOREIGN KEY (repo_id, test_id) REFERENCES test_cases (repo_id, id) ON DELETE CASCADE
) STRICT;

CREATE TABLE result_uploads (
    repo_id BLOB NOT NULL REFERENCES repos (id),
    id BLOB NOT NULL,
    org_id BLOB NOT NULL,
    -- The version of the commit that wrote it, by which packed runs name it.
    number INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    code TEXT NOT NULL,
    upload TEXT NOT NULL,
    taken_in TEXT NOT NULL,
    PRIMARY KEY (repo_id, id),
    UNIQUE (repo_id, number)
) STRICT;
CREATE INDEX result_uploads_of_code ON result_uploads (repo_id, code);
CREATE INDEX result_uploads_by_age ON result_uploads (received_at);

-- Nearly all runs pass, so a run that did not fail has no row of its own: the runs of a test that came
-- within six hours are in one row, as a short text. Tables below count only failures.
--
-- On PostgreSQL runs are in one partition for each day on which they came; the server makes them
-- ahead and drops them whole. On SQLite the key begins with the time, so that an upload writes rows
-- that are next to each other, whatever the length of the history.
CREATE TABLE packed_runs (
    repo_id BLOB NOT NULL,
    test_id BLOB NOT NULL,
    start INTEGER NOT NULL,
    org_id BLOB NOT NULL,
    runs TEXT NOT NULL,
    PRIMARY KEY (start, repo_id, test_id)
) STRICT, WITHOUT ROWID;

-- Runs that failed.
CREATE TABLE test_runs (
    repo_id BLOB NOT NULL,
    test_id BLOB NOT NULL,
    org_id BLOB NOT NULL,
    day INTEGER NOT NULL,
    at INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    document TEXT NOT NULL
) STRICT;
CREATE INDEX test_runs_of_test ON test_runs (repo_id, test_id, at);
CREATE INDEX test_runs_by_time ON test_runs (repo_id, at);
CREATE INDEX test_runs_by_day ON test_runs (day);

CREATE TABLE test_hours (
    repo_id BLOB NOT NULL,
    test_id BLOB NOT NULL,
    hour INTEGER NOT NULL,
    org_id BLOB NOT NULL,
    failed INTEGER NOT NULL,
    first_failure_at INTEGER,
    last_failure_at INTEGER,
    PRIMARY KEY (repo_id, test_id, hour)
) STRICT;
CREATE INDEX test_hours_failing
ON test_hours (repo_id, org_id, test_id, hour, first_failure_at, last_failure_at)
WHERE last_failure_at IS NOT NULL;
CREATE INDEX test_hours_by_age ON test_hours (hour);

CREATE TABLE test_buckets (
    repo_id BLOB NOT NULL,
    test_id BLOB NOT NULL,
    start INTEGER NOT NULL,
    branch TEXT NOT NULL,
    org_id BLOB NOT NULL,
    class TEXT NOT NULL,
    failed INTEGER NOT NULL,
    last_run_at INTEGER NOT NULL,
    last_failure_at INTEGER,
    PRIMARY KEY (repo_id, test_id, start, branch)
) STRICT;
CREATE INDEX test_buckets_by_age ON test_buckets (start);

CREATE TABLE test_codes (
    repo_id BLOB NOT NULL,
    test_id BLOB NOT NULL,
    code TEXT NOT NULL,
    branch TEXT NOT NULL,
    -- Digests of the job and the base.
    origin TEXT NOT NULL,
    org_id BLOB NOT NULL,
    class TEXT NOT NULL,
    first_success_at INTEGER,
    first_failure_at INTEGER,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (repo_id, test_id, code, branch, origin)
) STRICT;
CREATE INDEX test_codes_of_code ON test_codes (repo_id, code);
CREATE INDEX test_codes_by_age ON test_codes (last_at);

CREATE TABLE test_failures (
    repo_id BLOB NOT NULL,
    test_id BLOB NOT NULL,
    day INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    org_id BLOB NOT NULL,
    summary TEXT NOT NULL,
    occurrences INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (repo_id, test_id, day, fingerprint)
) STRICT;
CREATE INDEX test_failures_by_age ON test_failures (day);

CREATE TABLE test_pull_requests (
    repo_id BLOB NOT NULL,
    test_id BLOB NOT NULL,
    pr_number INTEGER NOT NULL,
    org_id BLOB NOT NULL,
    last_failure_at INTEGER NOT NULL,
    PRIMARY KEY (repo_id, test_id, pr_number)
) STRICT;
CREATE INDEX test_pull_requests_by_age ON test_pull_requests (last_failure_at);

-- Incidents: many tests that failed together. Whether their failures count follows from the state.
CREATE TABLE test_incidents (
    repo_id BLOB NOT NULL REFERENCES repos (id),
    id BLOB NOT NULL,
    org_id BLOB NOT NULL,
    last_at INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (repo_id, id)
) STRICT;
CREATE INDEX test_incidents_by_age ON test_incidents (repo_id, last_at, id);
CREATE INDEX test_incidents_to_prune ON test_incidents (last_at);

CREATE TABLE incident_failures (
    repo_id BLOB NOT NULL,
    incident_id BLOB NOT NULL,
    test_id BLOB NOT NULL,
    upload_id BLOB NOT NULL,
    org_id BLOB NOT NULL,
    PRIMARY KEY (repo_id, incident_id, test_id, upload_id),
    FOREIGN KEY (repo_id, incident_id) REFERENCES test_incidents (repo_id, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX incident_failures_of_test ON incident_failures (repo_id, test_id, incident_id);

CREATE TABLE ci_runs (
    id BLOB NOT NULL PRIMARY KEY,
    org_id BLOB NOT NULL,
    repo_id BLOB NOT NULL REFERENCES repos (id),
    at INTEGER NOT NULL,
    document TEXT NOT NULL
) STRICT;
CREATE INDEX ci_runs_by_age ON ci_runs (at);

-- Endpoints of webhooks, the messages on their way to them, and each try. Secrets in documents are
-- sealed under a key that is not in the database. The payload is that of the event, byte by byte.
CREATE TABLE webhook_endpoints (
    id BLOB NOT NULL PRIMARY KEY,
    org_id BLOB NOT NULL REFERENCES orgs (id),
    version INTEGER NOT NULL,
    position INTEGER NOT NULL,
    failing_since INTEGER,
    off_reason TEXT,
    off_at INTEGER,
    lease BLOB,
    holder BLOB,
    leased_until INTEGER,
    turn INTEGER NOT NULL,
    served_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    document TEXT NOT NULL
) STRICT;
CREATE INDEX webhook_endpoints_of_org ON webhook_endpoints (org_id, created_at, id);
CREATE INDEX webhook_endpoints_of_holder ON webhook_endpoints (holder) WHERE holder IS NOT NULL;

CREATE TABLE webhook_messages (
    endpoint_id BLOB NOT NULL REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
    id BLOB NOT NULL,
    org_id BLOB NOT NULL,
    event_id BLOB NOT NULL,
    position INTEGER NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    failures INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    next_at INTEGER,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    payload TEXT NOT NULL,
    request_id TEXT,
    PRIMARY KEY (endpoint_id, id)
) STRICT;
CREATE INDEX webhook_messages_due ON webhook_messages (endpoint_id, next_at, position)
WHERE next_at IS NOT NULL;
CREATE INDEX webhook_messages_log ON webhook_messages (endpoint_id, created_at, id);
CREATE INDEX webhook_messages_by_age ON webhook_messages (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE webhook_attempts (
    endpoint_id BLOB NOT NULL,
    message_id BLOB NOT NULL,
    number INTEGER NOT NULL,
    org_id BLOB NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (endpoint_id, message_id, number),
    FOREIGN KEY (endpoint_id, message_id) REFERENCES webhook_messages (endpoint_id, id)
    ON DELETE CASCADE
) STRICT;

-- Events that git hosts have delivered, by the host's own id: a repeated delivery does nothing.
CREATE TABLE heard_events (
    org_id BLOB NOT NULL REFERENCES orgs (id),
    host TEXT NOT NULL,
    event_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (org_id, host, event_id)
) STRICT;
CREATE INDEX heard_events_by_age ON heard_events (at);

-- Requests with an idempotency key, and the replies to them once they were carried out.
CREATE TABLE idempotency_keys (
    token_id BLOB NOT NULL,
    key TEXT NOT NULL,
    org_id BLOB NOT NULL REFERENCES orgs (id),
    fingerprint TEXT NOT NULL,
    claim BLOB NOT NULL,
    until INTEGER NOT NULL,
    status INTEGER,
    content_type TEXT,
    body TEXT,
    PRIMARY KEY (token_id, key)
) STRICT;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (until);

-- The audit log.
CREATE TABLE audit (
    id BLOB NOT NULL PRIMARY KEY,
    org_id BLOB NOT NULL REFERENCES orgs (id),
    at INTEGER NOT NULL,
    action TEXT NOT NULL,
    token_id BLOB,
    object TEXT NOT NULL,
    repo TEXT,
    document TEXT NOT NULL
) STRICT;
CREATE INDEX audit_of_org ON audit (org_id, at, id);
CREATE INDEX audit_by_age ON audit (at, id);

-- Periodic jobs: each is run by one server at a time.
CREATE TABLE jobs (
    kind TEXT NOT NULL PRIMARY KEY,
    due_at INTEGER NOT NULL,
    server BLOB,
    lease BLOB,
    leased_until INTEGER,
    failures INTEGER NOT NULL,
    last_run INTEGER,
    last_error TEXT
) STRICT;

-- What all servers on one database have in common.
CREATE TABLE server_keys (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

-- One row that each look at readiness writes: whether there is a way to write.
CREATE TABLE write_probe (
    id INTEGER NOT NULL PRIMARY KEY,
    writes INTEGER NOT NULL
) STRICT;
INSERT INTO write_probe (id, writes) VALUES (1, 0);

