-- One log of public events, of queues and of tests, each with the payload as it leaves the house.
-- Events from before get the payload that can be made of what was kept.

CREATE TABLE event_log (
    position INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    org_id TEXT NOT NULL,
    repo_id TEXT REFERENCES repos (id),
    kind TEXT NOT NULL,
    at BIGINT NOT NULL,
    payload TEXT NOT NULL
);

INSERT INTO event_log (id, org_id, repo_id, kind, at, payload)
WITH named AS (
    SELECT events.*, queues.repo_id, queues.branch, repos.host, repos.owner, repos.name,
        CASE events.document ->> 'kind'
            WHEN 'Submitted' THEN 'submitted'
            WHEN 'Queued' THEN 'queued'
            WHEN 'Testing' THEN 'testing'
            WHEN 'PendingFailure' THEN 'pending_failure'
            WHEN 'Failed' THEN 'failed'
            WHEN 'Canceled' THEN 'canceled'
            WHEN 'Merged' THEN 'merged'
        END AS word
    FROM events
    JOIN queues ON queues.id = events.queue_id
    JOIN repos ON repos.id = queues.repo_id
),
earlier AS (
    SELECT org_id, repo_id, at, 0 AS source, position,
        CASE WHEN word IS NOT NULL THEN 'pull_request.' || word
            WHEN document ->> 'kind' = 'QueueStateChanged' THEN 'queue.state_changed'
            ELSE 'queue.config_changed' END AS kind,
        json_patch('{}', json_object(
            'type', CASE WHEN word IS NOT NULL THEN 'pull_request.' || word
                WHEN document ->> 'kind' = 'QueueStateChanged' THEN 'queue.state_changed'
                ELSE 'queue.config_changed' END,
            'action', word,
            'status', word,
            'author', document ->> 'author',
            'http_details_url', document ->> 'url',
            'pr_number', document ->> 'pr',
            'repository', json_object('host', host, 'owner', owner, 'name', name),
            'target_branch', branch,
            'timestamp', strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000000.0, 'unixepoch'),
            'submitted_reason', CASE word WHEN 'submitted' THEN document ->> 'reason' END,
            'queued_reason', CASE word WHEN 'queued' THEN document ->> 'reason' END,
            'failure_reason',
            CASE WHEN word IN ('pending_failure', 'failed') THEN document ->> 'reason' END,
            'cancellation_reason', CASE word WHEN 'canceled' THEN document ->> 'reason' END,
            'merged_reason', CASE word WHEN 'merged' THEN document ->> 'reason' END,
            'reason', CASE WHEN word IS NULL THEN document ->> 'reason' END,
            'test_branch', document ->> 'test_branch',
            'test_branch_sha', document ->> 'test_branch_sha',
            'batched', CASE WHEN word IS NOT NULL THEN json(document -> 'batched') END,
            'is_bisection',
            CASE WHEN word IN ('testing', 'failed', 'canceled') THEN json(document -> 'is_bisection') END
        )) AS payload
    FROM named
    UNION ALL
    SELECT org_id, repo_id, at, 1 AS source, position, kind, payload
    FROM test_events
)
SELECT lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2)
        || '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))),
    org_id, repo_id, kind, at, payload
FROM earlier
ORDER BY at, source, position;

DROP TABLE events;
DROP TABLE test_events;
CREATE INDEX event_log_of_org ON event_log (org_id, position);
CREATE INDEX event_log_by_age ON event_log (at);
