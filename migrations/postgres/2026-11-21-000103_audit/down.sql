ALTER TABLE outbox DROP COLUMN request_id;
DROP TABLE audit;
