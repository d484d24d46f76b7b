#!/bin/sh
# Reports the state of an external check to Signalbox: report-check.sh CHECK STATUS [CONCLUSION]
#
# SIGNALBOX_URL    the server, such as https://signalbox.example
# SIGNALBOX_TOKEN  a token with the scope checks:report, limited to the repository
# REPO             host/owner/name
# TARGET_BRANCH, TEST_RUN_ID, TEST_BRANCH_SHA: from the event test_run.checks_requested
# BUILD_URL        optional: the page of the build
# SUMMARY          optional: one line of at most 500 characters
#
# Exits with 0 when the server has the report, with 3 when the test run does not need it any more, and
# with 1 otherwise. Needs curl and jq.
set -eu

path=${REPO#*/}
report=$(jq -n --arg check "$1" --arg status "$2" --arg conclusion "${3:-}" \
    --arg host "${REPO%%/*}" --arg owner "${path%/*}" --arg name "${path##*/}" \
    --arg branch "$TARGET_BRANCH" --arg run "$TEST_RUN_ID" --arg sha "$TEST_BRANCH_SHA" \
    --arg url "${BUILD_URL:-}" --arg summary "${SUMMARY:-}" '{
        repo: {host: $host, owner: $owner, name: $name}, targetBranch: $branch,
        testRunId: $run, sha: $sha, check: $check, status: $status,
        conclusion: $conclusion, url: $url, summary: $summary
    } | with_entries(select(.value != ""))')

# The token is not an argument, because every user of the machine sees the arguments of processes.
reply=$(printf '%s' "$report" | curl --silent --show-error --config /dev/fd/3 \
    --max-time 30 --retry 8 --retry-connrefused --retry-max-time 300 --write-out '\n%{http_code}' \
    --header 'content-type: application/json' --data-binary @- \
    "$SIGNALBOX_URL/v1/reportCheckResult" 3<<END
header = "x-api-token: $SIGNALBOX_TOKEN"
END
) || exit 1

code=$(printf '%s\n' "$reply" | tail -n 1)
case $code in
200) exit 0 ;;
404 | 409) printf '%s\n' "$reply" >&2 && exit 3 ;;
*) printf '%s\n' "$reply" >&2 && exit 1 ;;
esac
