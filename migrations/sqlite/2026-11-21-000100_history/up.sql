-- Columns that lists and histories filter and sort by; so far their values stood in the documents.

ALTER TABLE entries ADD COLUMN submitted_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE entries ADD COLUMN head_branch TEXT;
UPDATE entries SET
    submitted_at = json_extract(document, '$.submitted_at'),
    head_branch = json_extract(document, '$.pull_request.head_branch');
CREATE INDEX entries_by_submission ON entries (queue_id, submitted_at, pr_number);
CREATE INDEX entries_of_branch ON entries (queue_id, head_branch) WHERE head_branch IS NOT NULL;

ALTER TABLE entry_moves ADD COLUMN from_state TEXT;
ALTER TABLE entry_moves ADD COLUMN to_state TEXT NOT NULL DEFAULT '';
UPDATE entry_moves SET
    from_state = CASE json_extract(document, '$.Moved.from')
        WHEN 'NotReady' THEN 'NOT_READY'
        WHEN 'Pending' THEN 'PENDING'
        WHEN 'Testing' THEN 'TESTING'
        WHEN 'TestsPassed' THEN 'TESTS_PASSED'
        WHEN 'Merged' THEN 'MERGED'
        WHEN 'Failed' THEN 'FAILED'
        WHEN 'Cancelled' THEN 'CANCELLED'
        WHEN 'PendingFailure' THEN 'PENDING_FAILURE'
        ELSE NULL END,
    to_state = CASE json_extract(document, '$.Moved.to')
        WHEN 'NotReady' THEN 'NOT_READY'
        WHEN 'Pending' THEN 'PENDING'
        WHEN 'Testing' THEN 'TESTING'
        WHEN 'TestsPassed' THEN 'TESTS_PASSED'
        WHEN 'Merged' THEN 'MERGED'
        WHEN 'Failed' THEN 'FAILED'
        WHEN 'Cancelled' THEN 'CANCELLED'
        WHEN 'PendingFailure' THEN 'PENDING_FAILURE'
        ELSE '' END;
CREATE INDEX entry_moves_from ON entry_moves (queue_id, from_state, at);
CREATE INDEX entry_moves_to ON entry_moves (queue_id, to_state, at);
