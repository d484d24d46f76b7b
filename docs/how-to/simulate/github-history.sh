#!/bin/sh
# Prints the pull requests of a GitHub repository that merged in the last DAYS days, as a history for
# signalbox simulate --history. Needs the GitHub CLI, signed in: https://cli.github.com
# Usage: github-history.sh OWNER/NAME [BRANCH] [DAYS]
set -eu
here=$(dirname "$0")
repo=${1:?usage: github-history.sh OWNER/NAME [BRANCH] [DAYS]} branch=${2:-main} days=${3:-30}
since=$(date -u -d "$days days ago" +%Y-%m-%d 2>/dev/null || date -u -v "-${days}d" +%Y-%m-%d)
gh api graphql --paginate \
    -F query=@"$here/github-history.graphql" \
    -f search="repo:$repo is:pr is:merged base:$branch merged:>=$since" \
    --jq "$(cat "$here/github-history.jq")"
