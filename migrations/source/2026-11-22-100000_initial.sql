-- Every table names the organization; every key that can names the queue or the repository.
-- Hashes and digests are SHA-256 in hexadecimal.

CREATE TABLE orgs (
    id Id NOT NULL PRIMARY KEY,
    slug Text NOT NULL UNIQUE,
    created_at Moment NOT NULL
);

-- `scopes` are words with spaces between them; `compatibility` is a word.
CREATE TABLE tokens (
    id Id NOT NULL PRIMARY KEY,
    org_id Id NOT NULL REFERENCES orgs (id),
    name Text NOT NULL,
    hash Text NOT NULL UNIQUE,
    scopes Text NOT NULL,
    repos Document NOT NULL,
    compatibility Text NOT NULL,
    created_at Moment NOT NULL,
    expires_at Moment,
    revoked_at Moment
);

-- One row: a random id, which each revocation of a token replaces. Servers that know a token read it to learn
-- whether to look the token up again.
CREATE TABLE last_revocation (
    id BigInt NOT NULL PRIMARY KEY,
    revocation Id NOT NULL
);
INSERT INTO last_revocation (id, revocation) VALUES (1, '00000000-0000-0000-0000-000000000000'); -- only on postgres
INSERT INTO last_revocation (id, revocation) VALUES (1, zeroblob(16)); -- only on sqlite

-- Sessions of the pages. A session allows what its token allows; only hashes are kept.
CREATE TABLE sessions (
    hash Text NOT NULL PRIMARY KEY,
    org_id Id NOT NULL REFERENCES orgs (id),
    token_hash Text NOT NULL,
    created_at Moment NOT NULL,
    seen_at Moment NOT NULL
);

CREATE TABLE repos (
    id Id NOT NULL PRIMARY KEY,
    org_id Id NOT NULL REFERENCES orgs (id),
    lookup Text NOT NULL,
    host Text NOT NULL,
    owner Text NOT NULL,
    name Text NOT NULL,
    path Text,
    created_at Moment NOT NULL,
    UNIQUE (org_id, lookup)
);

-- `watched_until`: until when the host of the queue is polled often.
CREATE TABLE queues (
    id Id NOT NULL PRIMARY KEY,
    org_id Id NOT NULL REFERENCES orgs (id),
    repo_id Id NOT NULL REFERENCES repos (id),
    branch Text NOT NULL,
    version BigInt NOT NULL,
    next_deadline Moment,
    deleted Bool NOT NULL,
    watched_until Moment NOT NULL,
    document Document NOT NULL
);
CREATE UNIQUE INDEX queues_of_branch ON queues (repo_id, branch) WHERE NOT deleted;
CREATE INDEX queues_of_org ON queues (org_id, id);
CREATE INDEX queues_due ON queues (next_deadline) WHERE next_deadline IS NOT NULL;
CREATE INDEX queues_watched ON queues (watched_until);

CREATE TABLE entries (
    queue_id Id NOT NULL REFERENCES queues (id),
    id Id NOT NULL,
    org_id Id NOT NULL,
    pr_number BigInt NOT NULL,
    state Text NOT NULL,
    live Bool NOT NULL,
    run_id Id,
    head_branch Text,
    submitted_at Moment NOT NULL,
    updated_at Moment NOT NULL,
    document Document NOT NULL,
    PRIMARY KEY (queue_id, id)
);
CREATE UNIQUE INDEX entries_of_pull_request ON entries (queue_id, pr_number);
CREATE INDEX entries_live ON entries (org_id, queue_id) WHERE live;
CREATE INDEX entries_by_submission ON entries (queue_id, submitted_at, pr_number);
CREATE INDEX entries_of_branch ON entries (queue_id, head_branch, submitted_at, pr_number)
WHERE head_branch IS NOT NULL;

CREATE TABLE runs (
    queue_id Id NOT NULL REFERENCES queues (id),
    id Id NOT NULL,
    org_id Id NOT NULL,
    running Bool NOT NULL,
    bisection Bool NOT NULL,
    updated_at Moment NOT NULL,
    document Document NOT NULL,
    PRIMARY KEY (queue_id, id)
);
CREATE INDEX runs_running ON runs (queue_id) WHERE running;

CREATE TABLE impacted_targets (
    queue_id Id NOT NULL REFERENCES queues (id),
    pr_number BigInt NOT NULL,
    org_id Id NOT NULL,
    updated_at Moment NOT NULL,
    document Document NOT NULL,
    PRIMARY KEY (queue_id, pr_number)
);

CREATE TABLE journal (
    queue_id Id NOT NULL REFERENCES queues (id),
    number BigInt NOT NULL,
    org_id Id NOT NULL,
    at Moment NOT NULL,
    document Document NOT NULL,
    PRIMARY KEY (queue_id, number)
);
CREATE INDEX journal_by_age ON journal (at);

CREATE TABLE entry_moves (
    queue_id Id NOT NULL REFERENCES queues (id),
    number BigInt NOT NULL,
    ordinal BigInt NOT NULL,
    org_id Id NOT NULL,
    repo_id Id NOT NULL,
    entry_id Id NOT NULL,
    at Moment NOT NULL,
    from_state Text,
    to_state Text NOT NULL,
    restarted Bool NOT NULL,
    bisection Bool NOT NULL,
    after_micros BigInt NOT NULL,
    entered_line_at Moment,
    document Document NOT NULL,
    PRIMARY KEY (queue_id, number, ordinal)
);
CREATE INDEX entry_moves_of_queue ON entry_moves (queue_id, at, number, ordinal, to_state);
CREATE INDEX entry_moves_by_time ON entry_moves (org_id, at);
CREATE INDEX entry_moves_of_entry ON entry_moves (queue_id, entry_id, number, ordinal);
CREATE INDEX entry_moves_from ON entry_moves (queue_id, from_state, at, number, ordinal);

-- Public events, of queues and of tests. The payload is text and no document: subscribers verify a
-- signature of its bytes, which must not change.
CREATE TABLE event_log (
    position Position,
    id Id NOT NULL UNIQUE,
    org_id Id NOT NULL,
    repo_id Id REFERENCES repos (id),
    kind Text NOT NULL,
    at Moment NOT NULL,
    payload Text NOT NULL,
    request_id Text
);
CREATE INDEX event_log_of_org ON event_log (org_id, position);
CREATE INDEX event_log_by_age ON event_log (at);

CREATE TABLE outbox (
    position Position,
    org_id Id NOT NULL,
    queue_id Id NOT NULL REFERENCES queues (id),
    number BigInt NOT NULL,
    lane Text NOT NULL,
    run_id Id,
    due_at Moment NOT NULL,
    lease Id,
    holder Id,
    leased_until Moment,
    attempts Integer NOT NULL,
    failing_since Moment,
    last_error Text,
    request_id Text,
    document Document NOT NULL,
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
    queue_id Id NOT NULL REFERENCES queues (id),
    pr_number BigInt NOT NULL,
    org_id Id NOT NULL,
    status Id,
    comment Id,
    labels Id,
    closed Id,
    newer_head Text,
    shown_at Moment NOT NULL,
    holder Id,
    held_until Moment NOT NULL,
    due_at Moment,
    PRIMARY KEY (queue_id, pr_number)
);
CREATE INDEX announcements_by_age ON announcements (shown_at);
CREATE INDEX announcements_due ON announcements (due_at) WHERE due_at IS NOT NULL;

-- Pull requests of hosts that keep none themselves.
CREATE TABLE pull_requests (
    repo_id Id NOT NULL REFERENCES repos (id),
    number BigInt NOT NULL,
    org_id Id NOT NULL,
    title Text NOT NULL,
    body Text NOT NULL,
    author Text NOT NULL,
    head_branch Text,
    topic Text,
    head Text NOT NULL,
    base Text NOT NULL,
    state Text NOT NULL,
    draft Bool NOT NULL,
    created_at Moment NOT NULL,
    updated_at Moment NOT NULL,
    PRIMARY KEY (repo_id, number)
);
-- A poll of a repository reads what is open, however much was merged.
CREATE INDEX pull_requests_by_state ON pull_requests (repo_id, state, number);
CREATE INDEX pull_requests_of_branch ON pull_requests (repo_id, head_branch, number)
WHERE head_branch IS NOT NULL;

CREATE TABLE check_outputs (
    org_id Id NOT NULL REFERENCES orgs (id),
    run_id Id NOT NULL,
    name Text NOT NULL,
    at Moment NOT NULL,
    output Text NOT NULL,
    PRIMARY KEY (org_id, run_id, name)
);
CREATE INDEX check_outputs_by_age ON check_outputs (at);

-- Uploads of test results, the work of reading them, and public ids of repositories.
CREATE TABLE uploads (
    id Id NOT NULL PRIMARY KEY,
    org_id Id NOT NULL REFERENCES orgs (id),
    repo_id Id NOT NULL REFERENCES repos (id),
    trust Text NOT NULL,
    state Text NOT NULL,
    secret Text,
    digest Text,
    created_at Moment NOT NULL,
    document Document NOT NULL
);
CREATE INDEX uploads_of_repo ON uploads (repo_id, created_at, id);
CREATE INDEX uploads_by_age ON uploads (created_at);
CREATE UNIQUE INDEX uploads_of_digest ON uploads (repo_id, digest) WHERE digest IS NOT NULL;

CREATE TABLE upload_jobs (
    position Position,
    org_id Id NOT NULL,
    upload_id Id NOT NULL UNIQUE REFERENCES uploads (id),
    due_at Moment NOT NULL,
    lease Id,
    holder Id,
    leased_until Moment,
    attempts Integer NOT NULL,
    failing_since Moment,
    last_error Text
);
CREATE INDEX upload_jobs_due ON upload_jobs (due_at, position);
CREATE INDEX upload_jobs_of_holder ON upload_jobs (holder) WHERE holder IS NOT NULL;

CREATE TABLE public_repo_ids (
    id Id NOT NULL PRIMARY KEY,
    org_id Id NOT NULL REFERENCES orgs (id),
    repo_id Id NOT NULL UNIQUE REFERENCES repos (id)
);

-- Flaky tests. What is counted is kept beside the results, so that no list depends on how many
-- results there are.
CREATE TABLE flaky_repos (
    repo_id Id NOT NULL PRIMARY KEY REFERENCES repos (id),
    org_id Id NOT NULL,
    version BigInt NOT NULL,
    marks BigInt NOT NULL,
    document Document,
    failures Document,
    -- How far results were judged, and what was imported since the last summary.
    judged_at Moment,
    imported_uploads BigInt,
    imported_runs BigInt,
    imported_from Moment,
    imported_until Moment
);

CREATE TABLE flaky_settings_log (
    repo_id Id NOT NULL REFERENCES repos (id),
    version BigInt NOT NULL,
    org_id Id NOT NULL,
    at Moment NOT NULL,
    document Document NOT NULL,
    PRIMARY KEY (repo_id, version)
);

CREATE TABLE test_cases (
    repo_id Id NOT NULL REFERENCES repos (id),
    id Id NOT NULL,
    org_id Id NOT NULL,
    status Text NOT NULL,
    quarantine Text NOT NULL,
    quarantine_until Moment,
    noted Bool NOT NULL,
    watched Bool NOT NULL,
    owners Document,
    ticket Text,
    first_seen_at Moment NOT NULL,
    stable_since Moment,
    last_seen_at Moment NOT NULL,
    last_failure_at Moment,
    due_at Moment,
    windows Document,
    document Document NOT NULL,
    retired Bool NOT NULL,
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
    repo_id Id NOT NULL,
    alias Text NOT NULL,
    test_id Id NOT NULL,
    org_id Id NOT NULL,
    PRIMARY KEY (repo_id, alias, test_id),
    FOREIGN KEY (repo_id, test_id) REFERENCES test_cases (repo_id, id) ON DELETE CASCADE
);
CREATE INDEX test_aliases_of_test ON test_aliases (repo_id, test_id);

-- How many tests there were on a day, in UTC, and the version of the repository at which they were counted.
CREATE TABLE test_days (
    repo_id Id NOT NULL REFERENCES repos (id),
    day Moment NOT NULL,
    org_id Id NOT NULL,
    version BigInt NOT NULL,
    flaky BigInt NOT NULL,
    broken BigInt NOT NULL,
    quarantined BigInt NOT NULL,
    PRIMARY KEY (repo_id, day)
);
CREATE INDEX test_days_by_age ON test_days (day);

-- Where stable branches report the tests whose absence would show. The place is a digest.
CREATE TABLE test_presences (
    repo_id Id NOT NULL,
    test_id Id NOT NULL,
    org_id Id NOT NULL,
    place Text NOT NULL,
    document Document NOT NULL,
    PRIMARY KEY (repo_id, test_id),
    FOREIGN KEY (repo_id, test_id) REFERENCES test_cases (repo_id, id) ON DELETE CASCADE
);
CREATE INDEX test_presences_by_place ON test_presences (repo_id, place);

CREATE TABLE test_journal (
    repo_id Id NOT NULL,
    test_id Id NOT NULL,
    number BigInt NOT NULL,
    org_id Id NOT NULL,
    at Moment NOT NULL,
    document Document NOT NULL,
    PRIMARY KEY (repo_id, test_id, number),
    FOREIGN KEY (repo_id, test_id) REFERENCES test_cases (repo_id, id) ON DELETE CASCADE
);

CREATE TABLE result_uploads (
    repo_id Id NOT NULL REFERENCES repos (id),
    id Id NOT NULL,
    org_id Id NOT NULL,
    -- The version of the commit that wrote it, by which packed runs name it.
    number BigInt NOT NULL,
    received_at Moment NOT NULL,
    code Text NOT NULL,
    upload Document NOT NULL,
    taken_in Document NOT NULL,
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
    repo_id Id NOT NULL,
    test_id Id NOT NULL,
    start Moment NOT NULL,
    org_id Id NOT NULL,
    runs Text NOT NULL,
    PRIMARY KEY (repo_id, test_id, start) -- only on postgres
    PRIMARY KEY (start, repo_id, test_id) -- only on sqlite
) PARTITION BY RANGE (start); -- only on postgres
) STRICT, WITHOUT ROWID; -- only on sqlite

-- Runs that failed.
CREATE TABLE test_runs (
    repo_id Id NOT NULL,
    test_id Id NOT NULL,
    org_id Id NOT NULL,
    day Moment NOT NULL,
    at Moment NOT NULL,
    attempt BigInt NOT NULL,
    document Document NOT NULL
) PARTITION BY RANGE (day); -- only on postgres
); -- only on sqlite
CREATE INDEX test_runs_of_test ON test_runs (repo_id, test_id, at);
CREATE INDEX test_runs_by_time ON test_runs (repo_id, at);
CREATE INDEX test_runs_by_day ON test_runs (day); -- only on sqlite

CREATE TABLE test_hours (
    repo_id Id NOT NULL,
    test_id Id NOT NULL,
    hour Moment NOT NULL,
    org_id Id NOT NULL,
    failed BigInt NOT NULL,
    first_failure_at Moment,
    last_failure_at Moment,
    PRIMARY KEY (repo_id, test_id, hour)
);
CREATE INDEX test_hours_failing
ON test_hours (repo_id, org_id, test_id, hour, first_failure_at, last_failure_at)
WHERE last_failure_at IS NOT NULL;
CREATE INDEX test_hours_by_age ON test_hours (hour);

CREATE TABLE test_buckets (
    repo_id Id NOT NULL,
    test_id Id NOT NULL,
    start Moment NOT NULL,
    branch Text NOT NULL,
    org_id Id NOT NULL,
    class Text NOT NULL,
    failed BigInt NOT NULL,
    last_run_at Moment NOT NULL,
    last_failure_at Moment,
    PRIMARY KEY (repo_id, test_id, start, branch)
);
CREATE INDEX test_buckets_by_age ON test_buckets (start);

CREATE TABLE test_codes (
    repo_id Id NOT NULL,
    test_id Id NOT NULL,
    code Text NOT NULL,
    branch Text NOT NULL,
    -- Digests of the job and the base.
    origin Text NOT NULL,
    org_id Id NOT NULL,
    class Text NOT NULL,
    first_success_at Moment,
    first_failure_at Moment,
    last_at Moment NOT NULL,
    PRIMARY KEY (repo_id, test_id, code, branch, origin)
);
CREATE INDEX test_codes_of_code ON test_codes (repo_id, code);
CREATE INDEX test_codes_by_age ON test_codes (last_at);

CREATE TABLE test_failures (
    repo_id Id NOT NULL,
    test_id Id NOT NULL,
    day Moment NOT NULL,
    fingerprint Text NOT NULL,
    org_id Id NOT NULL,
    summary Text NOT NULL,
    occurrences BigInt NOT NULL,
    last_at Moment NOT NULL,
    PRIMARY KEY (repo_id, test_id, day, fingerprint)
);
CREATE INDEX test_failures_by_age ON test_failures (day);

CREATE TABLE test_pull_requests (
    repo_id Id NOT NULL,
    test_id Id NOT NULL,
    pr_number BigInt NOT NULL,
    org_id Id NOT NULL,
    last_failure_at Moment NOT NULL,
    PRIMARY KEY (repo_id, test_id, pr_number)
);
CREATE INDEX test_pull_requests_by_age ON test_pull_requests (last_failure_at);

-- Incidents: many tests that failed together. Whether their failures count follows from the state.
CREATE TABLE test_incidents (
    repo_id Id NOT NULL REFERENCES repos (id),
    id Id NOT NULL,
    org_id Id NOT NULL,
    last_at Moment NOT NULL,
    document Document NOT NULL,
    PRIMARY KEY (repo_id, id)
);
CREATE INDEX test_incidents_by_age ON test_incidents (repo_id, last_at, id);
CREATE INDEX test_incidents_to_prune ON test_incidents (last_at);

CREATE TABLE incident_failures (
    repo_id Id NOT NULL,
    incident_id Id NOT NULL,
    test_id Id NOT NULL,
    upload_id Id NOT NULL,
    org_id Id NOT NULL,
    PRIMARY KEY (repo_id, incident_id, test_id, upload_id),
    FOREIGN KEY (repo_id, incident_id) REFERENCES test_incidents (repo_id, id) ON DELETE CASCADE
);
CREATE INDEX incident_failures_of_test ON incident_failures (repo_id, test_id, incident_id);

CREATE TABLE ci_runs (
    id Id NOT NULL PRIMARY KEY,
    org_id Id NOT NULL,
    repo_id Id NOT NULL REFERENCES repos (id),
    at Moment NOT NULL,
    document Document NOT NULL
);
CREATE INDEX ci_runs_by_age ON ci_runs (at);

-- Endpoints of webhooks, the messages on their way to them, and each try. Secrets in documents are
-- sealed under a key that is not in the database. The payload is that of the event, byte by byte.
CREATE TABLE webhook_endpoints (
    id Id NOT NULL PRIMARY KEY,
    org_id Id NOT NULL REFERENCES orgs (id),
    version BigInt NOT NULL,
    position BigInt NOT NULL,
    failing_since Moment,
    off_reason Text,
    off_at Moment,
    lease Id,
    holder Id,
    leased_until Moment,
    turn BigInt NOT NULL,
    served_at Moment NOT NULL,
    created_at Moment NOT NULL,
    document Document NOT NULL
);
CREATE INDEX webhook_endpoints_of_org ON webhook_endpoints (org_id, created_at, id);
CREATE INDEX webhook_endpoints_of_holder ON webhook_endpoints (holder) WHERE holder IS NOT NULL;

CREATE TABLE webhook_messages (
    endpoint_id Id NOT NULL REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
    id Id NOT NULL,
    org_id Id NOT NULL,
    event_id Id NOT NULL,
    position BigInt NOT NULL,
    kind Text NOT NULL,
    state Text NOT NULL,
    failures Integer NOT NULL,
    tries Integer NOT NULL,
    next_at Moment,
    created_at Moment NOT NULL,
    ended_at Moment,
    payload Text NOT NULL,
    request_id Text,
    PRIMARY KEY (endpoint_id, id)
);
CREATE INDEX webhook_messages_due ON webhook_messages (endpoint_id, next_at, position)
WHERE next_at IS NOT NULL;
CREATE INDEX webhook_messages_log ON webhook_messages (endpoint_id, created_at, id);
CREATE INDEX webhook_messages_by_age ON webhook_messages (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE webhook_attempts (
    endpoint_id Id NOT NULL,
    message_id Id NOT NULL,
    number BigInt NOT NULL,
    org_id Id NOT NULL,
    document Document NOT NULL,
    PRIMARY KEY (endpoint_id, message_id, number),
    FOREIGN KEY (endpoint_id, message_id) REFERENCES webhook_messages (endpoint_id, id)
    ON DELETE CASCADE
);

-- Events that git hosts have delivered, by the host's own id: a repeated delivery does nothing.
CREATE TABLE heard_events (
    org_id Id NOT NULL REFERENCES orgs (id),
    host Text NOT NULL,
    event_id Text NOT NULL,
    at Moment NOT NULL,
    PRIMARY KEY (org_id, host, event_id)
);
CREATE INDEX heard_events_by_age ON heard_events (at);

-- Requests with an idempotency key, and the replies to them once they were carried out.
CREATE TABLE idempotency_keys (
    token_id Id NOT NULL,
    key Text NOT NULL,
    org_id Id NOT NULL REFERENCES orgs (id),
    fingerprint Text NOT NULL,
    claim Id NOT NULL,
    until Moment NOT NULL,
    status Integer,
    content_type Text,
    body Text,
    PRIMARY KEY (token_id, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (until);

-- The audit log.
CREATE TABLE audit (
    id Id NOT NULL PRIMARY KEY,
    org_id Id NOT NULL REFERENCES orgs (id),
    at Moment NOT NULL,
    action Text NOT NULL,
    token_id Id,
    object Text NOT NULL,
    repo Text,
    document Document NOT NULL
);
CREATE INDEX audit_of_org ON audit (org_id, at, id);
CREATE INDEX audit_by_age ON audit (at, id);

-- Periodic jobs: each is run by one server at a time.
CREATE TABLE jobs (
    kind Text NOT NULL PRIMARY KEY,
    due_at Moment NOT NULL,
    server Id,
    lease Id,
    leased_until Moment,
    failures Integer NOT NULL,
    last_run Moment,
    last_error Text
);

-- What all servers on one database have in common.
CREATE TABLE server_keys (
    name Text NOT NULL PRIMARY KEY,
    value Text NOT NULL
);

-- One row that each look at readiness writes: whether there is a way to write.
CREATE TABLE write_probe (
    id BigInt NOT NULL PRIMARY KEY,
    writes BigInt NOT NULL
);
INSERT INTO write_probe (id, writes) VALUES (1, 0);

-- A second wall between organizations, beside the conditions of the queries: while the server works for one of them, -- only on postgres
-- it sees and writes the rows of no other. `signalbox.org` is the organization; empty or not set: all of them. -- only on postgres
DO $$ -- only on postgres
DECLARE -- only on postgres
    guarded regclass; -- only on postgres
    column_of_org name; -- only on postgres
BEGIN -- only on postgres
    FOR guarded, column_of_org IN -- only on postgres
        SELECT attrelid::regclass, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid -- only on postgres
        WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') -- only on postgres
            AND (attname = 'org_id' OR (attname = 'id' AND relname = 'orgs')) -- only on postgres
    LOOP -- only on postgres
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', guarded); -- only on postgres
        EXECUTE format( -- only on postgres
            'CREATE POLICY one_organization ON %s USING (' -- only on postgres
            '(SELECT COALESCE(current_setting(''signalbox.org'', true), '''') = '''') ' -- only on postgres
            'OR %I = (SELECT NULLIF(current_setting(''signalbox.org'', true), '''')::uuid))', -- only on postgres
            guarded, column_of_org -- only on postgres
        ); -- only on postgres
    END LOOP; -- only on postgres
END -- only on postgres
$$; -- only on postgres
