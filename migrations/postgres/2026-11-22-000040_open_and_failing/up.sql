-- A poll of a repository reads what is open, however much was merged; a scrape reads what fails,
-- which is nothing on most days.

CREATE INDEX pull_requests_open ON pull_requests (repo_id, number) WHERE state = 'open';
CREATE INDEX outbox_failing ON outbox (failing_since, position) WHERE failing_since IS NOT NULL;
