-- One row that each look at readiness writes: whether there is a way to write.
CREATE TABLE write_probe (
    id INTEGER PRIMARY KEY,
    writes INTEGER NOT NULL
);
INSERT INTO write_probe (id, writes) VALUES (1, 0);
