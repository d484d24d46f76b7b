#!/bin/sh
# Tests the commit of an event test_run.checks_requested, and reports each of its checks. The event is
# JSON in standard input.
#
# SIGNALBOX_URL, SIGNALBOX_TOKEN, BUILD_URL: see report-check.sh
# REMOTE     the address of the repository for git
# RUN_CHECK  a program: it runs the check that its argument names, in the current folder
#
# The code of a pull request runs in RUN_CHECK. It must run as another user or in a container: a process
# of the same user could read the token in the environment of this script. Needs git, curl and jq.
set -eu

here=$(dirname "$(readlink -f "$0")")
event=$(cat)
field() {
    printf '%s' "$event" | jq -er "$1"
}
REPO=$(field '.repository | "\(.host)/\(.owner)/\(.name)"')
TARGET_BRANCH=$(field .target_branch)
TEST_RUN_ID=$(field .test_run_id)
TEST_BRANCH_SHA=$(field .test_branch_sha)
export REPO TARGET_BRANCH TEST_RUN_ID TEST_BRANCH_SHA
branch=refs/heads/$(field .test_branch)

report() {
    "$here/report-check.sh" "$@" || {
        # The test run has ended: nothing is left to do.
        [ $? = 3 ] && exit 0
        exit 1
    }
}

# Without its branch the test run has ended.
git ls-remote --exit-code "$REMOTE" "$branch" >/dev/null || {
    [ $? = 2 ] && exit 0
    exit 1
}
folder=$(mktemp -d)
checks=$(mktemp)
trap 'rm -rf "$folder" "$checks"' EXIT
field '.checks[]' >"$checks"
git init -q "$folder"
git -C "$folder" fetch -q --depth 20 "$REMOTE" "$branch"
git -C "$folder" checkout -q --detach "$TEST_BRANCH_SHA"

while IFS= read -r check; do
    report "$check" IN_PROGRESS
    if (cd "$folder" && env -u SIGNALBOX_TOKEN "$RUN_CHECK" "$check") </dev/null; then
        report "$check" COMPLETED SUCCESS
    else
        report "$check" COMPLETED FAILURE
    fi
done <"$checks"
