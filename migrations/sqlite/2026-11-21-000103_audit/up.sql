-- Who changed what; for each effect the request that has caused it; and what is needed to forget.

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

CREATE INDEX journal_by_age ON journal (at);
