-- Endpoints of webhooks, the messages on their way to them, and each try. Secrets in documents are
-- sealed under a key that is not in the database.

CREATE TABLE webhook_endpoints (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    version BIGINT NOT NULL,
    position BIGINT NOT NULL,
    failing_since BIGINT,
    off_reason TEXT,
    off_at BIGINT,
    lease TEXT,
    holder TEXT,
    leased_until BIGINT,
    turn BIGINT NOT NULL,
    served_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    format INTEGER NOT NULL,
    document TEXT NOT NULL
);
CREATE INDEX webhook_endpoints_of_org ON webhook_endpoints (org_id, created_at, id);
CREATE INDEX webhook_endpoints_of_holder ON webhook_endpoints (holder) WHERE holder IS NOT NULL;

CREATE TABLE webhook_messages (
    endpoint_id TEXT NOT NULL REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    org_id TEXT NOT NULL,
    event_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    failures INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    next_at BIGINT,
    created_at BIGINT NOT NULL,
    ended_at BIGINT,
    payload TEXT NOT NULL,
    PRIMARY KEY (endpoint_id, id)
);
CREATE INDEX webhook_messages_due ON webhook_messages (endpoint_id, next_at, position)
    WHERE next_at IS NOT NULL;
CREATE INDEX webhook_messages_log ON webhook_messages (endpoint_id, created_at, id);
CREATE INDEX webhook_messages_by_age ON webhook_messages (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE webhook_attempts (
    endpoint_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    org_id TEXT NOT NULL,
    format INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (endpoint_id, message_id, number),
    FOREIGN KEY (endpoint_id, message_id) REFERENCES webhook_messages (endpoint_id, id)
        ON DELETE CASCADE
);
