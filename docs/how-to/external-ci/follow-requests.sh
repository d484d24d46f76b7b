#!/bin/sh
# Runs a command for each event test_run.checks_requested: follow-requests.sh COMMAND [ARGUMENT...]
#
# SIGNALBOX_URL    the server, such as https://signalbox.example
# SIGNALBOX_TOKEN  a token with the scope queue:read, limited to the repository
# POSITION         the file with the position in the event log; without it new events only
#
# COMMAND reads the event as JSON from standard input. It must return soon, for example when it has
# started a build. If it fails, this script exits, and repeats the event when it is started again: let
# a service manager restart it. Needs curl and jq.
set -eu

get() {
    curl --silent --show-error --fail --config /dev/fd/3 \
        --max-time 30 --retry 8 --retry-connrefused --retry-max-time 300 \
        "$SIGNALBOX_URL/v1/events?type=test_run.checks_requested&$1" 3<<END
header = "x-api-token: $SIGNALBOX_TOKEN"
END
}

keep() {
    printf '%s\n' "$1" >"$POSITION.new"
    mv "$POSITION.new" "$POSITION"
}

if [ ! -s "$POSITION" ]; then
    page=$(get limit=1)
    position=$(printf '%s' "$page" | jq -er .newest)
    keep "$position"
fi
while :; do
    page=$(get "after=$(cat "$POSITION")")
    # What is no page of events ends this script here and loses no position.
    position=$(printf '%s' "$page" | jq -er .next)
    printf '%s' "$page" | jq -c '.events[].payload' | while IFS= read -r event; do
        printf '%s\n' "$event" | "$@" || exit 1
    done
    keep "$position"
    if printf '%s' "$page" | jq -e '.next == .newest' >/dev/null; then
        sleep 2
    fi
done
