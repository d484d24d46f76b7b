-- Ids are UUIDs as text, times are microseconds since 1970 in UTC, documents are JSON as text.
-- Every table names the organization; every key that can names the queue or the repository.

CREATE TABLE orgs (
    id TEXT NOT NULL PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    created_at BIGINT NOT NULL
);

CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    name TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    repos TEXT NOT NULL,
    enum_case TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
);

CREATE TABLE repos (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    lookup TEXT NOT NULL,
    host TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    path TEXT,
    created_at BIGINT NOT NULL,
    UNIQUE (org_id, lookup)
);

CREATE TABLE queues (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    repo_id TEXT NOT NULL REFERENCES repos (id),
    branch TEXT NOT NULL,
    version BIGINT NOT NULL,
    next_deadline BIGINT,
    deleted BOOLEAN NOT NULL,
    format INTEGER NOT NULL,
    document TEXT NOT NULL
);
CREATE UNIQUE INDEX queues_of_branch ON queues (repo_id, branch) WHERE NOT deleted;
CREATE INDEX queues_of_org ON queues (org_id, id);
CREATE INDEX queues_due ON queues (next_deadline) WHERE next_deadline IS NOT NULL;

CREATE TABLE entries (
    queue_id TEXT NOT NULL REFERENCES queues (id),
    id TEXT NOT NULL,
    org_id TEXT NOT NULL,
    pr_number BIGINT NOT NULL,
    state TEXT NOT NULL,
    live BOOLEAN NOT NULL,
    run_id TEXT,
    updated_at BIGINT NOT NULL,
    format INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (queue_id, id)
);
CREATE UNIQUE INDEX entries_of_pull_request ON entries (queue_id, pr_number);
CREATE INDEX entries_live ON entries (queue_id) WHERE live;

CREATE TABLE runs (
    queue_id TEXT NOT NULL REFERENCES queues (id),
    id TEXT NOT NULL,
    org_id TEXT NOT NULL,
    running BOOLEAN NOT NULL,
    bisection BOOLEAN NOT NULL,
    updated_at BIGINT NOT NULL,
    format INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (queue_id, id)
);
CREATE INDEX runs_running ON runs (queue_id) WHERE running;

CREATE TABLE impacted_targets (
    queue_id TEXT NOT NULL REFERENCES queues (id),
    pr_number BIGINT NOT NULL,
    org_id TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    format INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (queue_id, pr_number)
);

CREATE TABLE journal (
    queue_id TEXT NOT NULL REFERENCES queues (id),
    number BIGINT NOT NULL,
    org_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    format INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (queue_id, number)
);

CREATE TABLE entry_moves (
    queue_id TEXT NOT NULL REFERENCES queues (id),
    number BIGINT NOT NULL,
    ordinal BIGINT NOT NULL,
    org_id TEXT NOT NULL,
    repo_id TEXT NOT NULL,
    entry_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    format INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (queue_id, number, ordinal)
);
CREATE INDEX entry_moves_by_time ON entry_moves (org_id, at);
CREATE INDEX entry_moves_of_entry ON entry_moves (queue_id, entry_id, number);

CREATE TABLE events (
    position INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    org_id TEXT NOT NULL,
    queue_id TEXT NOT NULL REFERENCES queues (id),
    at BIGINT NOT NULL,
    format INTEGER NOT NULL,
    document TEXT NOT NULL
);
CREATE INDEX events_of_org ON events (org_id, position);

CREATE TABLE outbox (
    position INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    org_id TEXT NOT NULL,
    queue_id TEXT NOT NULL REFERENCES queues (id),
    number BIGINT NOT NULL,
    lane TEXT NOT NULL,
    run_id TEXT,
    due_at BIGINT NOT NULL,
    lease TEXT,
    holder TEXT,
    leased_until BIGINT,
    attempts INTEGER NOT NULL,
    failing_since BIGINT,
    last_error TEXT,
    format INTEGER NOT NULL,
    document TEXT NOT NULL,
    UNIQUE (queue_id, number)
);
CREATE INDEX outbox_due ON outbox (lane, due_at, position);
CREATE INDEX outbox_of_run ON outbox (queue_id, run_id) WHERE run_id IS NOT NULL;
CREATE INDEX outbox_of_holder ON outbox (holder) WHERE holder IS NOT NULL;

CREATE TABLE pull_requests (
    repo_id TEXT NOT NULL REFERENCES repos (id),
    number BIGINT NOT NULL,
    org_id TEXT NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    author TEXT NOT NULL,
    head_branch TEXT,
    topic TEXT,
    head TEXT NOT NULL,
    base TEXT NOT NULL,
    state TEXT NOT NULL,
    draft BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (repo_id, number)
);

CREATE TABLE check_outputs (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    run_id TEXT NOT NULL,
    name TEXT NOT NULL,
    at BIGINT NOT NULL,
    output TEXT NOT NULL,
    PRIMARY KEY (org_id, run_id, name)
);
CREATE INDEX check_outputs_by_age ON check_outputs (at);
