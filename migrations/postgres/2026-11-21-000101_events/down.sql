-- Payloads of queues' events cannot be made into the documents of before: those events go.
CREATE TABLE events (
    position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    org_id TEXT NOT NULL,
    queue_id TEXT NOT NULL REFERENCES queues (id),
    at BIGINT NOT NULL,
    format INTEGER NOT NULL,
    document TEXT NOT NULL
);
CREATE INDEX events_of_org ON events (org_id, position);

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
INSERT INTO test_events (org_id, repo_id, test_id, number, at, kind, payload)
SELECT org_id, repo_id, payload::json -> 'test_case' ->> 'id', 0, at, kind, payload
FROM event_log WHERE kind LIKE '%test_case.%' AND repo_id IS NOT NULL ORDER BY position;
CREATE INDEX test_events_of_org ON test_events (org_id, position);
CREATE INDEX test_events_by_age ON test_events (at);

DROP TABLE event_log;
