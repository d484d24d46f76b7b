-- What is shown on hosts follows commits: a commit makes pull requests due. What had not been shown
-- is due at once.
DROP INDEX announcements_to_show;
ALTER TABLE announcements ADD COLUMN due_at BIGINT;
UPDATE announcements SET due_at = shown_at WHERE settled = false;
ALTER TABLE announcements DROP COLUMN settled;
CREATE INDEX announcements_due ON announcements (due_at) WHERE due_at IS NOT NULL;

-- Until when the host of a queue is looked at often.
ALTER TABLE queues ADD COLUMN watched_until BIGINT NOT NULL DEFAULT 0;
UPDATE queues SET watched_until = 9223372036854775807
WHERE EXISTS (SELECT 1 FROM entries WHERE entries.queue_id = queues.id AND entries.live);
CREATE INDEX queues_watched ON queues (watched_until);

-- Periodic jobs: each is run by one server at a time.
CREATE TABLE jobs (
    kind TEXT NOT NULL PRIMARY KEY,
    due_at BIGINT NOT NULL,
    server TEXT,
    lease TEXT,
    leased_until BIGINT,
    failures INTEGER NOT NULL,
    last_run BIGINT,
    last_error TEXT
);
