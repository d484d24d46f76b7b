DROP INDEX outbox_failing;
DROP INDEX pull_requests_open;
