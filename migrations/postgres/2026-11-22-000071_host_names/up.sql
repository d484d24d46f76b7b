-- Names of hosts have no case. A repository that is there under the lower-case name too stays as it
-- is: it can no longer be reached, and its results stay where they are.
UPDATE repos SET lookup = lower(host) || substr(lookup, length(host) + 1)
WHERE host <> lower(host) AND NOT EXISTS (
    SELECT 1 FROM repos AS other WHERE other.org_id = repos.org_id
    AND other.lookup = lower(repos.host) || substr(repos.lookup, length(repos.host) + 1));
UPDATE repos SET host = lower(host) WHERE host <> lower(host);
