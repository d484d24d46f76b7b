-- Flaky tests. Times are microseconds since 1970; what is counted is kept beside the results, so that
-- no list depends on how many results there are. The results are in one partition for each day on
-- which they came; the server makes them ahead and drops them whole.

CREATE TABLE flaky_repos (
    repo_id TEXT NOT NULL PRIMARY KEY REFERENCES repos (id),
    org_id TEXT NOT NULL,
    version BIGINT NOT NULL,
    marks BIGINT NOT NULL,
    format INTEGER NOT NULL,
    document TEXT
);

CREATE TABLE flaky_settings_log (
    repo_id TEXT NOT NULL REFERENCES repos (id),
    version BIGINT NOT NULL,
    org_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    format INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (repo_id, version)
);

CREATE TABLE test_cases (
    repo_id TEXT NOT NULL REFERENCES repos (id),
    id TEXT NOT NULL,
    org_id TEXT NOT NULL,
    status TEXT NOT NULL,
    quarantine TEXT NOT NULL,
    quarantine_until BIGINT,
    noted BOOLEAN NOT NULL,
    watched BOOLEAN NOT NULL,
    owners TEXT NOT NULL,
    ticket TEXT,
    first_seen_at BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    last_failure_at BIGINT,
    due_at BIGINT,
    format INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (repo_id, id)
);
CREATE INDEX test_cases_by_status ON test_cases (repo_id, status, id);
CREATE INDEX test_cases_noted ON test_cases (repo_id, id) WHERE noted;
CREATE INDEX test_cases_watched ON test_cases (repo_id, id) WHERE watched;
CREATE INDEX test_cases_due ON test_cases (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX test_cases_by_age ON test_cases (last_seen_at);

CREATE TABLE test_aliases (
    repo_id TEXT NOT NULL,
    alias TEXT NOT NULL,
    test_id TEXT NOT NULL,
    org_id TEXT NOT NULL,
    PRIMARY KEY (repo_id, alias, test_id),
    FOREIGN KEY (repo_id, test_id) REFERENCES test_cases (repo_id, id) ON DELETE CASCADE
);
CREATE INDEX test_aliases_of_test ON test_aliases (repo_id, test_id);

CREATE TABLE test_journal (
    repo_id TEXT NOT NULL,
    test_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    org_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    format INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (repo_id, test_id, number),
    FOREIGN KEY (repo_id, test_id) REFERENCES test_cases (repo_id, id) ON DELETE CASCADE
);

CREATE TABLE test_events (
    position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    org_id TEXT NOT NULL,
    repo_id TEXT NOT NULL REFERENCES repos (id),
    test_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL
);
CREATE INDEX test_events_of_org ON test_events (org_id, position);
CREATE INDEX test_events_by_age ON test_events (at);

CREATE TABLE result_uploads (
    repo_id TEXT NOT NULL REFERENCES repos (id),
    id TEXT NOT NULL,
    org_id TEXT NOT NULL,
    received_at BIGINT NOT NULL,
    format INTEGER NOT NULL,
    upload TEXT NOT NULL,
    taken_in TEXT NOT NULL,
    PRIMARY KEY (repo_id, id)
);
CREATE INDEX result_uploads_by_age ON result_uploads (received_at);

CREATE TABLE test_runs (
    repo_id TEXT NOT NULL,
    test_id TEXT NOT NULL,
    org_id TEXT NOT NULL,
    day BIGINT NOT NULL,
    at BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    failed BOOLEAN NOT NULL,
    format INTEGER NOT NULL,
    document TEXT NOT NULL
) PARTITION BY RANGE (day);
CREATE INDEX test_runs_of_test ON test_runs (repo_id, test_id, at);
CREATE INDEX test_runs_failed ON test_runs (repo_id, at) WHERE failed;

CREATE TABLE test_hours (
    repo_id TEXT NOT NULL,
    test_id TEXT NOT NULL,
    hour BIGINT NOT NULL,
    org_id TEXT NOT NULL,
    passed BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    first_failure_at BIGINT,
    last_failure_at BIGINT,
    PRIMARY KEY (repo_id, test_id, hour)
);
CREATE INDEX test_hours_failing ON test_hours (repo_id, test_id, hour)
WHERE last_failure_at IS NOT NULL;
CREATE INDEX test_hours_by_age ON test_hours (hour);

CREATE TABLE test_buckets (
    repo_id TEXT NOT NULL,
    test_id TEXT NOT NULL,
    start BIGINT NOT NULL,
    branch TEXT NOT NULL,
    org_id TEXT NOT NULL,
    class TEXT NOT NULL,
    passed BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    last_run_at BIGINT NOT NULL,
    last_failure_at BIGINT,
    PRIMARY KEY (repo_id, test_id, start, branch)
);
CREATE INDEX test_buckets_by_age ON test_buckets (start);

CREATE TABLE test_codes (
    repo_id TEXT NOT NULL,
    test_id TEXT NOT NULL,
    code TEXT NOT NULL,
    branch TEXT NOT NULL,
    org_id TEXT NOT NULL,
    class TEXT NOT NULL,
    first_success_at BIGINT,
    first_failure_at BIGINT,
    last_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, test_id, code, branch)
);
CREATE INDEX test_codes_by_age ON test_codes (last_at);

CREATE TABLE test_failures (
    repo_id TEXT NOT NULL,
    test_id TEXT NOT NULL,
    day BIGINT NOT NULL,
    fingerprint TEXT NOT NULL,
    org_id TEXT NOT NULL,
    summary TEXT NOT NULL,
    occurrences BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, test_id, day, fingerprint)
);
CREATE INDEX test_failures_by_age ON test_failures (day);

CREATE TABLE test_pull_requests (
    repo_id TEXT NOT NULL,
    test_id TEXT NOT NULL,
    pr_number BIGINT NOT NULL,
    org_id TEXT NOT NULL,
    last_failure_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, test_id, pr_number)
);
CREATE INDEX test_pull_requests_by_age ON test_pull_requests (last_failure_at);

CREATE TABLE ci_runs (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    repo_id TEXT NOT NULL REFERENCES repos (id),
    at BIGINT NOT NULL,
    document TEXT NOT NULL
);
CREATE INDEX ci_runs_by_age ON ci_runs (at);

CREATE TABLE server_keys (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);
