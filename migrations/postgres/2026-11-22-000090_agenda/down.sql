DROP TABLE jobs;
DROP INDEX queues_watched;
ALTER TABLE queues DROP COLUMN watched_until;
DROP INDEX announcements_due;
ALTER TABLE announcements ADD COLUMN settled BOOLEAN NOT NULL DEFAULT false;
UPDATE announcements SET settled = true WHERE due_at IS NULL;
ALTER TABLE announcements DROP COLUMN due_at;
CREATE INDEX announcements_to_show ON announcements (queue_id, settled, shown_at);
