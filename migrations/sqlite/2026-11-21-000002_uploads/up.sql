-- Uploads of test results, the work of reading them, and public ids of repositories. Secrets and
-- digests are SHA-256 in hexadecimal.

CREATE TABLE uploads (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    repo_id TEXT NOT NULL REFERENCES repos (id),
    state TEXT NOT NULL,
    secret TEXT,
    digest TEXT,
    created_at BIGINT NOT NULL,
    format INTEGER NOT NULL,
    document TEXT NOT NULL
);
CREATE INDEX uploads_of_repo ON uploads (repo_id, created_at, id);
CREATE INDEX uploads_by_age ON uploads (created_at);
CREATE UNIQUE INDEX uploads_of_digest ON uploads (repo_id, digest) WHERE digest IS NOT NULL;

CREATE TABLE upload_jobs (
    position INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    org_id TEXT NOT NULL,
    upload_id TEXT NOT NULL UNIQUE REFERENCES uploads (id),
    due_at BIGINT NOT NULL,
    lease TEXT,
    holder TEXT,
    leased_until BIGINT,
    attempts INTEGER NOT NULL,
    failing_since BIGINT,
    last_error TEXT
);
CREATE INDEX upload_jobs_due ON upload_jobs (due_at, position);
CREATE INDEX upload_jobs_of_holder ON upload_jobs (holder) WHERE holder IS NOT NULL;

CREATE TABLE public_repo_ids (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    repo_id TEXT NOT NULL UNIQUE REFERENCES repos (id)
);
