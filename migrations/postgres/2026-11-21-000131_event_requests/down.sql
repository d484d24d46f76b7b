ALTER TABLE webhook_messages DROP COLUMN request_id;
ALTER TABLE event_log DROP COLUMN request_id;
