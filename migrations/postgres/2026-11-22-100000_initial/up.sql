-- Made from migrations/source/2026-11-22-100000_initial.sql: change that and run `just gen`.
-- Every table names the organization; every key that can names the queue or the repository.
-- Hashes and digests are SHA-256 in hexadecimal.

CREATE TABLE orgs (
    id UUID NOT NULL PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    created_at TIMESTAMPTZ NOT NULL
);

-- `scopes` are words with spaces between them; `compatibility` is a word.
CREATE TABLE tokens (
    id UUID NOT NULL PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES orgs (id),
    name TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    repos JSONB NOT NULL,
    compatibility TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ,
    revoked_at TIMESTAMPTZ
);

-- One row: a random id, which each revocation of a token replaces. Servers that know a token read it to learn
-- whether to look the token up again.
CREATE TABLE last_revocation (
    id BIGINT NOT NULL PRIMARY KEY,
    revocation UUID NOT NULL
);
INSERT INTO last_revocation (id, revocation) VALUES (1, '00000000-0000-0000-0000-000000000000');

-- Sessions of the pages. A session allows what its token allows; only hashes are kept.
CREATE TABLE sessions (
    hash TEXT NOT NULL PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES orgs (id),
    token_hash TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    seen_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE repos (
    id UUID NOT NULL PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES orgs (id),
    lookup TEXT NOT NULL,
    host TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    path TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    UNIQUE (org_id, lookup)
);

-- `watched_until`: until when the host of the queue is polled often.
CREATE TABLE queues (
    id UUID NOT NULL PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES orgs (id),
    repo_id UUID NOT NULL REFERENCES repos (id),
    branch TEXT NOT NULL,
    version BIGINT NOT NULL,
    next_deadline TIMESTAMPTZ,
    deleted BOOLEAN NOT NULL,
    watched_until TIMESTAMPTZ NOT NULL,
    document JSONB NOT NULL
);
CREATE UNIQUE INDEX queues_of_branch ON queues (repo_id, branch) WHERE NOT deleted;
CREATE INDEX queues_of_org ON queues (org_id, id);
CREATE INDEX queues_due ON queues (next_deadline) WHERE next_deadline IS NOT NULL;
CREATE INDEX queues_watched ON queues (watched_until);

CREATE TABLE entries (
    queue_id UUID NOT NULL REFERENCES queues (id),
    id UUID NOT NULL,
    org_id UUID NOT NULL,
    pr_number BIGINT NOT NULL,
    state TEXT NOT NULL,
    live BOOLEAN NOT NULL,
    run_id UUID,
    head_branch TEXT,
    submitted_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    document JSONB NOT NULL,
    PRIMARY KEY (queue_id, id)
);
CREATE UNIQUE INDEX entries_of_pull_request ON entries (queue_id, pr_number);
CREATE INDEX entries_live ON entries (org_id, queue_id) WHERE live;
CREATE INDEX entries_by_submission ON entries (queue_id, submitted_at, pr_number);
CREATE INDEX entries_of_branch ON entries (queue_id, head_branch, submitted_at, pr_number)
WHERE head_branch IS NOT NULL;

CREATE TABLE runs (
    queue_id UUID NOT NULL REFERENCES queues (id),
    id UUID NOT NULL,
    org_id UUID NOT NULL,
    running BOOLEAN NOT NULL,
    bisection BOOLEAN NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    document JSONB NOT NULL,
    PRIMARY KEY (queue_id, id)
);
CREATE INDEX runs_running ON runs (queue_id) WHERE running;

CREATE TABLE impacted_targets (
    queue_id UUID NOT NULL REFERENCES queues (id),
    pr_number BIGINT NOT NULL,
    org_id UUID NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    document JSONB NOT NULL,
    PRIMARY KEY (queue_id, pr_number)
);

CREATE TABLE journal (
    queue_id UUID NOT NULL REFERENCES queues (id),
    number BIGINT NOT NULL,
    org_id UUID NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    document JSONB NOT NULL,
    PRIMARY KEY (queue_id, number)
);
CREATE INDEX journal_by_age ON journal (at);

CREATE TABLE entry_moves (
    queue_id UUID NOT NULL REFERENCES queues (id),
    number BIGINT NOT NULL,
    ordinal BIGINT NOT NULL,
    org_id UUID NOT NULL,
    repo_id UUID NOT NULL,
    entry_id UUID NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    from_state TEXT,
    to_state TEXT NOT NULL,
    restarted BOOLEAN NOT NULL,
    bisection BOOLEAN NOT NULL,
    after_micros BIGINT NOT NULL,
    entered_line_at TIMESTAMPTZ,
    document JSONB NOT NULL,
    PRIMARY KEY (queue_id, number, ordinal)
);
CREATE INDEX entry_moves_of_queue ON entry_moves (queue_id, at, number, ordinal, to_state);
CREATE INDEX entry_moves_by_time ON entry_moves (org_id, at);
CREATE INDEX entry_moves_of_entry ON entry_moves (queue_id, entry_id, number, ordinal);
CREATE INDEX entry_moves_from ON entry_moves (queue_id, from_state, at, number, ordinal);

-- Public events, of queues and of tests. The payload is text and no document: subscribers verify a
-- signature of its bytes, which must not change.
CREATE TABLE event_log (
    position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id UUID NOT NULL UNIQUE,
    org_id UUID NOT NULL,
    repo_id UUID REFERENCES repos (id),
    kind TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    payload TEXT NOT NULL,
    request_id TEXT
);
CREATE INDEX event_log_of_org ON event_log (org_id, position);
CREATE INDEX event_log_by_age ON event_log (at);

CREATE TABLE outbox (
    position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    org_id UUID NOT NULL,
    queue_id UUID NOT NULL REFERENCES queues (id),
    number BIGINT NOT NULL,
    lane TEXT NOT NULL,
    run_id UUID,
    due_at TIMESTAMPTZ NOT NULL,
    lease UUID,
    holder UUID,
    leased_until TIMESTAMPTZ,
    attempts INTEGER NOT NULL,
    failing_since TIMESTAMPTZ,
    last_error TEXT,
    request_id TEXT,
    document JSONB NOT NULL,
    UNIQUE (queue_id, number)
);
CREATE INDEX outbox_due ON outbox (lane, due_at, position);
CREATE INDEX outbox_of_run ON outbox (queue_id, run_id) WHERE run_id IS NOT NULL;
CREATE INDEX outbox_of_holder ON outbox (holder) WHERE holder IS NOT NULL;
-- A scrape reads what fails, which is nothing on most days.
CREATE INDEX outbox_failing ON outbox (failing_since, position) WHERE failing_since IS NOT NULL;

-- What hosts were last shown of pull requests: a fingerprint for each part. Neither a restart nor a
-- second server shows the same again. A commit makes a row due.
CREATE TABLE announcements (
    queue_id UUID NOT NULL REFERENCES queues (id),
    pr_number BIGINT NOT NULL,
    org_id UUID NOT NULL,
    status UUID,
    comment UUID,
    labels UUID,
    closed UUID,
    newer_head TEXT,
    shown_at TIMESTAMPTZ NOT NULL,
    holder UUID,
    held_until TIMESTAMPTZ NOT NULL,
    due_at TIMESTAMPTZ,
    PRIMARY KEY (queue_id, pr_number)
);
CREATE INDEX announcements_by_age ON announcements (shown_at);
CREATE INDEX announcements_due ON announcements (due_at) WHERE due_at IS NOT NULL;

-- Pull requests of hosts that keep none themselves.
CREATE TABLE pull_requests (
    repo_id UUID NOT NULL REFERENCES repos (id),
    number BIGINT NOT NULL,
    org_id UUID NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    author TEXT NOT NULL,
    head_branch TEXT,
    topic TEXT,
    head TEXT NOT NULL,
    base TEXT NOT NULL,
    state TEXT NOT NULL,
    draft BOOLEAN NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (repo_id, number)
);
-- A poll of a repository reads what is open, however much was merged.
CREATE INDEX pull_requests_by_state ON pull_requests (repo_id, state, number);
CREATE INDEX pull_requests_of_branch ON pull_requests (repo_id, head_branch, number)
WHERE head_branch IS NOT NULL;

CREATE TABLE check_outputs (
    org_id UUID NOT NULL REFERENCES orgs (id),
    run_id UUID NOT NULL,
    name TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    output TEXT NOT NULL,
    PRIMARY KEY (org_id, run_id, name)
);
CREATE INDEX check_outputs_by_age ON check_outputs (at);

-- Uploads of test results, the work of reading them, and public ids of repositories.
CREATE TABLE uploads (
    id UUID NOT NULL PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES orgs (id),
    repo_id UUID NOT NULL REFERENCES repos (id),
    trust TEXT NOT NULL,
    state TEXT NOT NULL,
    secret TEXT,
    digest TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    document JSONB NOT NULL
);
CREATE INDEX uploads_of_repo ON uploads (repo_id, created_at, id);
CREATE INDEX uploads_by_age ON uploads (created_at);
CREATE UNIQUE INDEX uploads_of_digest ON uploads (repo_id, digest) WHERE digest IS NOT NULL;

CREATE TABLE upload_jobs (
    position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    org_id UUID NOT NULL,
    upload_id UUID NOT NULL UNIQUE REFERENCES uploads (id),
    due_at TIMESTAMPTZ NOT NULL,
    lease UUID,
    holder UUID,
    leased_until TIMESTAMPTZ,
    attempts INTEGER NOT NULL,
    failing_since TIMESTAMPTZ,
    last_error TEXT
);
CREATE INDEX upload_jobs_due ON upload_jobs (due_at, position);
CREATE INDEX upload_jobs_of_holder ON upload_jobs (holder) WHERE holder IS NOT NULL;

CREATE TABLE public_repo_ids (
    id UUID NOT NULL PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES orgs (id),
    repo_id UUID NOT NULL UNIQUE REFERENCES repos (id)
);

-- Flaky tests. What is counted is kept beside the results, so that no list depends on how many
-- results there are.
CREATE TABLE flaky_repos (
    repo_id UUID NOT NULL PRIMARY KEY REFERENCES repos (id),
    org_id UUID NOT NULL,
    version BIGINT NOT NULL,
    marks BIGINT NOT NULL,
    document JSONB,
    failures JSONB,
    -- How far results were judged, and what was imported since the last summary.
    judged_at TIMESTAMPTZ,
    imported_uploads BIGINT,
    imported_runs BIGINT,
    imported_from TIMESTAMPTZ,
    imported_until TIMESTAMPTZ
);

CREATE TABLE flaky_settings_log (
    repo_id UUID NOT NULL REFERENCES repos (id),
    version BIGINT NOT NULL,
    org_id UUID NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    document JSONB NOT NULL,
    PRIMARY KEY (repo_id, version)
);

CREATE TABLE test_cases (
    repo_id UUID NOT NULL REFERENCES repos (id),
    id UUID NOT NULL,
    org_id UUID NOT NULL,
    status TEXT NOT NULL,
    quarantine TEXT NOT NULL,
    quarantine_until TIMESTAMPTZ,
    noted BOOLEAN NOT NULL,
    watched BOOLEAN NOT NULL,
    owners JSONB,
    ticket TEXT,
    first_seen_at TIMESTAMPTZ NOT NULL,
    stable_since TIMESTAMPTZ,
    last_seen_at TIMESTAMPTZ NOT NULL,
    last_failure_at TIMESTAMPTZ,
    due_at TIMESTAMPTZ,
    windows JSONB,
    document JSONB NOT NULL,
    retired BOOLEAN NOT NULL,
    PRIMARY KEY (repo_id, id)
);
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
    repo_id UUID NOT NULL,
    alias TEXT NOT NULL,
    test_id UUID NOT NULL,
    org_id UUID NOT NULL,
    PRIMARY KEY (repo_id, alias, test_id),
    FOREIGN KEY (repo_id, test_id) REFERENCES test_cases (repo_id, id) ON DELETE CASCADE
);
CREATE INDEX test_aliases_of_test ON test_aliases (repo_id, test_id);

-- How many tests there were on a day, in UTC, and the version of the repository at which they were counted.
CREATE TABLE test_days (
    repo_id UUID NOT NULL REFERENCES repos (id),
    day TIMESTAMPTZ NOT NULL,
    org_id UUID NOT NULL,
    version BIGINT NOT NULL,
    flaky BIGINT NOT NULL,
    broken BIGINT NOT NULL,
    quarantined BIGINT NOT NULL,
    PRIMARY KEY (repo_id, day)
);
CREATE INDEX test_days_by_age ON test_days (day);

-- Where stable branches report the tests whose absence would show. The place is a digest.
CREATE TABLE test_presences (
    repo_id UUID NOT NULL,
    test_id UUID NOT NULL,
    org_id UUID NOT NULL,
    place TEXT NOT NULL,
    document JSONB NOT NULL,
    PRIMARY KEY (repo_id, test_id),
    FOREIGN KEY (repo_id, test_id) REFERENCES test_cases (repo_id, id) ON DELETE CASCADE
);
CREATE INDEX test_presences_by_place ON test_presences (repo_id, place);

CREATE TABLE test_journal (
    repo_id UUID NOT NULL,
    test_id UUID NOT NULL,
    number BIGINT NOT NULL,
    org_id UUID NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    document JSONB NOT NULL,
    PRIMARY KEY (repo_id, test_id, number),
    FOREIGN KEY (repo_id, test_id) REFERENCES test_cases (repo_id, id) ON DELETE CASCADE
);

CREATE TABLE result_uploads (
    repo_id UUID NOT NULL REFERENCES repos (id),
    id UUID NOT NULL,
    org_id UUID NOT NULL,
    -- The version of the commit that wrote it, by which packed runs name it.
    number BIGINT NOT NULL,
    received_at TIMESTAMPTZ NOT NULL,
    code TEXT NOT NULL,
    upload JSONB NOT NULL,
    taken_in JSONB NOT NULL,
    PRIMARY KEY (repo_id, id),
    UNIQUE (repo_id, number)
);
CREATE INDEX result_uploads_of_code ON result_uploads (repo_id, code);
CREATE INDEX result_uploads_by_age ON result_uploads (received_at);

-- Nearly all runs pass, so a run that did not fail has no row of its own: the runs of a test that came
-- within six hours are in one row, as a short text. Tables below count only failures.
--
-- On PostgreSQL runs are in one partition for each day on which they came; the server makes them
-- ahead and drops them whole. On SQLite the key begins with the time, so that an upload writes rows
-- that are next to each other, whatever the length of the history.
CREATE TABLE packed_runs (
    repo_id UUID NOT NULL,
    test_id UUID NOT NULL,
    start TIMESTAMPTZ NOT NULL,
    org_id UUID NOT NULL,
    runs TEXT NOT NULL,
    PRIMARY KEY (repo_id, test_id, start)
) PARTITION BY RANGE (start);

-- Runs that failed.
CREATE TABLE test_runs (
    repo_id UUID NOT NULL,
    test_id UUID NOT NULL,
    org_id UUID NOT NULL,
    day TIMESTAMPTZ NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    attempt BIGINT NOT NULL,
    document JSONB NOT NULL
) PARTITION BY RANGE (day);
CREATE INDEX test_runs_of_test ON test_runs (repo_id, test_id, at);
CREATE INDEX test_runs_by_time ON test_runs (repo_id, at);

CREATE TABLE test_hours (
    repo_id UUID NOT NULL,
    test_id UUID NOT NULL,
    hour TIMESTAMPTZ NOT NULL,
    org_id UUID NOT NULL,
    failed BIGINT NOT NULL,
    first_failure_at TIMESTAMPTZ,
    last_failure_at TIMESTAMPTZ,
    PRIMARY KEY (repo_id, test_id, hour)
);
CREATE INDEX test_hours_failing
ON test_hours (repo_id, org_id, test_id, hour, first_failure_at, last_failure_at)
WHERE last_failure_at IS NOT NULL;
CREATE INDEX test_hours_by_age ON test_hours (hour);

CREATE TABLE test_buckets (
    repo_id UUID NOT NULL,
    test_id UUID NOT NULL,
    start TIMESTAMPTZ NOT NULL,
    branch TEXT NOT NULL,
    org_id UUID NOT NULL,
    class TEXT NOT NULL,
    failed BIGINT NOT NULL,
    last_run_at TIMESTAMPTZ NOT NULL,
    last_failure_at TIMESTAMPTZ,
    PRIMARY KEY (repo_id, test_id, start, branch)
);
CREATE INDEX test_buckets_by_age ON test_buckets (start);

CREATE TABLE test_codes (
    repo_id UUID NOT NULL,
    test_id UUID NOT NULL,
    code TEXT NOT NULL,
    branch TEXT NOT NULL,
    -- Digests of the job and the base.
    origin TEXT NOT NULL,
    org_id UUID NOT NULL,
    class TEXT NOT NULL,
    first_success_at TIMESTAMPTZ,
    first_failure_at TIMESTAMPTZ,
    last_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (repo_id, test_id, code, branch, origin)
);
CREATE INDEX test_codes_of_code ON test_codes (repo_id, code);
CREATE INDEX test_codes_by_age ON test_codes (last_at);

CREATE TABLE test_failures (
    repo_id UUID NOT NULL,
    test_id UUID NOT NULL,
    day TIMESTAMPTZ NOT NULL,
    fingerprint TEXT NOT NULL,
    org_id UUID NOT NULL,
    summary TEXT NOT NULL,
    occurrences BIGINT NOT NULL,
    last_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (repo_id, test_id, day, fingerprint)
);
CREATE INDEX test_failures_by_age ON test_failures (day);

CREATE TABLE test_pull_requests (
    repo_id UUID NOT NULL,
    test_id UUID NOT NULL,
    pr_number BIGINT NOT NULL,
    org_id UUID NOT NULL,
    last_failure_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (repo_id, test_id, pr_number)
);
CREATE INDEX test_pull_requests_by_age ON test_pull_requests (last_failure_at);

-- Incidents: many tests that failed together. Whether their failures count follows from the state.
CREATE TABLE test_incidents (
    repo_id UUID NOT NULL REFERENCES repos (id),
    id UUID NOT NULL,
    org_id UUID NOT NULL,
    last_at TIMESTAMPTZ NOT NULL,
    document JSONB NOT NULL,
    PRIMARY KEY (repo_id, id)
);
CREATE INDEX test_incidents_by_age ON test_incidents (repo_id, last_at, id);
CREATE INDEX test_incidents_to_prune ON test_incidents (last_at);

CREATE TABLE incident_failures (
    repo_id UUID NOT NULL,
    incident_id UUID NOT NULL,
    test_id UUID NOT NULL,
    upload_id UUID NOT NULL,
    org_id UUID NOT NULL,
    PRIMARY KEY (repo_id, incident_id, test_id, upload_id),
    FOREIGN KEY (repo_id, incident_id) REFERENCES test_incidents (repo_id, id) ON DELETE CASCADE
);
CREATE INDEX incident_failures_of_test ON incident_failures (repo_id, test_id, incident_id);

CREATE TABLE ci_runs (
    id UUID NOT NULL PRIMARY KEY,
    org_id UUID NOT NULL,
    repo_id UUID NOT NULL REFERENCES repos (id),
    at TIMESTAMPTZ NOT NULL,
    document JSONB NOT NULL
);
CREATE INDEX ci_runs_by_age ON ci_runs (at);

-- Endpoints of webhooks, the messages on their way to them, and each try. Secrets in documents are
-- sealed under a key that is not in the database. The payload is that of the event, byte by byte.
CREATE TABLE webhook_endpoints (
    id UUID NOT NULL PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES orgs (id),
    version BIGINT NOT NULL,
    position BIGINT NOT NULL,
    failing_since TIMESTAMPTZ,
    off_reason TEXT,
    off_at TIMESTAMPTZ,
    lease UUID,
    holder UUID,
    leased_until TIMESTAMPTZ,
    turn BIGINT NOT NULL,
    served_at TIMESTAMPTZ NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    document JSONB NOT NULL
);
CREATE INDEX webhook_endpoints_of_org ON webhook_endpoints (org_id, created_at, id);
CREATE INDEX webhook_endpoints_of_holder ON webhook_endpoints (holder) WHERE holder IS NOT NULL;

CREATE TABLE webhook_messages (
    endpoint_id UUID NOT NULL REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
    id UUID NOT NULL,
    org_id UUID NOT NULL,
    event_id UUID NOT NULL,
    position BIGINT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    failures INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    next_at TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL,
    ended_at TIMESTAMPTZ,
    payload TEXT NOT NULL,
    request_id TEXT,
    PRIMARY KEY (endpoint_id, id)
);
CREATE INDEX webhook_messages_due ON webhook_messages (endpoint_id, next_at, position)
WHERE next_at IS NOT NULL;
CREATE INDEX webhook_messages_log ON webhook_messages (endpoint_id, created_at, id);
CREATE INDEX webhook_messages_by_age ON webhook_messages (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE webhook_attempts (
    endpoint_id UUID NOT NULL,
    message_id UUID NOT NULL,
    number BIGINT NOT NULL,
    org_id UUID NOT NULL,
    document JSONB NOT NULL,
    PRIMARY KEY (endpoint_id, message_id, number),
    FOREIGN KEY (endpoint_id, message_id) REFERENCES webhook_messages (endpoint_id, id)
    ON DELETE CASCADE
);

-- Events that git hosts have delivered, by the host's own id: a repeated delivery does nothing.
CREATE TABLE heard_events (
    org_id UUID NOT NULL REFERENCES orgs (id),
    host TEXT NOT NULL,
    event_id TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (org_id, host, event_id)
);
CREATE INDEX heard_events_by_age ON heard_events (at);

-- Requests with an idempotency key, and the replies to them once they were carried out.
CREATE TABLE idempotency_keys (
    token_id UUID NOT NULL,
    key TEXT NOT NULL,
    org_id UUID NOT NULL REFERENCES orgs (id),
    fingerprint TEXT NOT NULL,
    claim UUID NOT NULL,
    until TIMESTAMPTZ NOT NULL,
    status INTEGER,
    content_type TEXT,
    body TEXT,
    PRIMARY KEY (token_id, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (until);

-- The audit log.
CREATE TABLE audit (
    id UUID NOT NULL PRIMARY KEY,
    org_id UUID NOT NULL REFERENCES orgs (id),
    at TIMESTAMPTZ NOT NULL,
    action TEXT NOT NULL,
    token_id UUID,
    object TEXT NOT NULL,
    repo TEXT,
    document JSONB NOT NULL
);
CREATE INDEX audit_of_org ON audit (org_id, at, id);
CREATE INDEX audit_by_age ON audit (at, id);

-- Periodic jobs: each is run by one server at a time.
CREATE TABLE jobs (
    kind TEXT NOT NULL PRIMARY KEY,
    due_at TIMESTAMPTZ NOT NULL,
    server UUID,
    lease UUID,
    leased_until TIMESTAMPTZ,
    failures INTEGER NOT NULL,
    last_run TIMESTAMPTZ,
    last_error TEXT
);

-- What all servers on one database have in common.
CREATE TABLE server_keys (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- One row that each look at readiness writes: whether there is a way to write.
CREATE TABLE write_probe (
    id BIGINT NOT NULL PRIMARY KEY,
    writes BIGINT NOT NULL
);
INSERT INTO write_probe (id, writes) VALUES (1, 0);

-- A second wall between organizations, beside the conditions of the queries: while the server works for one of them,
-- it sees and writes the rows of no other. `signalbox.org` is the organization; empty or not set: all of them.
DO $$
DECLARE
    guarded regclass;
    column_of_org name;
BEGIN
    FOR guarded, column_of_org IN
        SELECT attrelid::regclass, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
            AND (attname = 'org_id' OR (attname = 'id' AND relname = 'orgs'))
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', guarded);
        EXECUTE format(
            'CREATE POLICY one_organization ON %s USING ('
            '(SELECT COALESCE(current_setting(''signalbox.org'', true), '''') = '''') '
            'OR %I = (SELECT NULLIF(current_setting(''signalbox.org'', true), '''')::uuid))',
            guarded, column_of_org
        );
    END LOOP;
END
$$;
