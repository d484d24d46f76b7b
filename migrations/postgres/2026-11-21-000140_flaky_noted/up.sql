-- Lists of tests are read by repository and organization, in the order of ids. With both in front,
-- the short index of noted tests is taken, and not the long one of all.

DROP INDEX test_cases_by_status;
CREATE INDEX test_cases_by_status ON test_cases (repo_id, org_id, status, id);
DROP INDEX test_cases_noted;
CREATE INDEX test_cases_noted
ON test_cases (repo_id, org_id, id, noted, status, quarantine, quarantine_until) WHERE noted;
DROP INDEX test_hours_failing;
CREATE INDEX test_hours_failing
ON test_hours (repo_id, org_id, test_id, hour, first_failure_at, last_failure_at)
WHERE last_failure_at IS NOT NULL;
