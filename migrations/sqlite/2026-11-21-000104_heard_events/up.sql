-- Events that git hosts have told, by the host's own id: one that comes twice does nothing.
CREATE TABLE heard_events (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    host TEXT NOT NULL,
    event_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (org_id, host, event_id)
);
CREATE INDEX heard_events_by_age ON heard_events (at);
