-- Who changed what; and for each effect the request that has caused it.

CREATE TABLE audit (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    at BIGINT NOT NULL,
    action TEXT NOT NULL,
    token_id TEXT,
    object TEXT NOT NULL,
    repo TEXT,
    format INTEGER NOT NULL,
    document TEXT NOT NULL
);
CREATE INDEX audit_of_org ON audit (org_id, at, id);
CREATE INDEX audit_by_age ON audit (at, id);

ALTER TABLE outbox ADD COLUMN request_id TEXT;
