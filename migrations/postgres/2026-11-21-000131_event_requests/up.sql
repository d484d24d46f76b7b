-- The request that has caused an event, and with it the messages that tell of it.

ALTER TABLE event_log ADD COLUMN request_id TEXT;
ALTER TABLE webhook_messages ADD COLUMN request_id TEXT;
