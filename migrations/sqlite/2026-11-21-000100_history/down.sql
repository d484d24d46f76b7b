DROP INDEX entry_moves_to;
DROP INDEX entry_moves_from;
ALTER TABLE entry_moves DROP COLUMN to_state;
ALTER TABLE entry_moves DROP COLUMN from_state;
DROP INDEX entries_of_branch;
DROP INDEX entries_by_submission;
ALTER TABLE entries DROP COLUMN head_branch;
ALTER TABLE entries DROP COLUMN submitted_at;
