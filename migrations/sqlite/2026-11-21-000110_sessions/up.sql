-- Sessions of the pages. A session allows what its token allows; only hashes are kept.

CREATE TABLE sessions (
    hash TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    token_hash TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL
);
CREATE INDEX sessions_by_use ON sessions (seen_at);
