-- What hosts were last shown of pull requests: a fingerprint for each part. Neither a restart nor
-- a second server shows the same again; what is not settled is shown until the host takes it.
CREATE TABLE announcements (
    queue_id TEXT NOT NULL REFERENCES queues (id),
    pr_number BIGINT NOT NULL,
    org_id TEXT NOT NULL,
    status TEXT,
    comment TEXT,
    labels TEXT,
    closed TEXT,
    newer_head TEXT,
    settled BOOLEAN NOT NULL,
    shown_at BIGINT NOT NULL,
    holder TEXT,
    held_until BIGINT NOT NULL,
    PRIMARY KEY (queue_id, pr_number)
);
CREATE INDEX announcements_to_show ON announcements (queue_id, settled, shown_at);
CREATE INDEX announcements_by_age ON announcements (shown_at);
