DROP INDEX journal_by_age;
ALTER TABLE outbox DROP COLUMN request_id;
DROP TABLE audit;
