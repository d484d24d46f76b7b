DROP INDEX test_cases_by_status;
CREATE INDEX test_cases_by_status ON test_cases (repo_id, status, id, org_id);
DROP INDEX test_cases_noted;
CREATE INDEX test_cases_noted
ON test_cases (repo_id, id, org_id, noted, status, quarantine, quarantine_until) WHERE noted;
DROP INDEX test_hours_failing;
CREATE INDEX test_hours_failing
ON test_hours (repo_id, test_id, hour, org_id, first_failure_at, last_failure_at)
WHERE last_failure_at IS NOT NULL;
