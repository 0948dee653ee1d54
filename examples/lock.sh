#!/usr/bin/env bash
# Runs a command while it holds a lock, and always releases it:
#
#   lock.sh nightly-backup ./backup.sh --full
#
# Waits for about a minute, and exits with 75 if the lock could not be had, with 69
# if the server could not be asked. The lock's name may have letters, digits, ".",
# "_" and "-".
set -euo pipefail

lock=${LOCKS:-http://localhost:8080}/v1/1/$1
shift

# Named, so that both requests can be repeated, and nobody else's release is ours.
holder=$(hostname)-$$-$RANDOM$RANDOM
ask() { curl -sS --globoff --fail-with-body --retry 5 --retry-all-errors "$@"; }

# Also if no answer comes: it may have been lost on its way.
trap 'ask "$lock/release?holder=$holder" >/dev/null || true' EXIT

answer=$(ask "$lock/acquire?holder=$holder&waitTimeoutMs=60000") || { echo "$answer" >&2; exit 69; }
if [[ $answer != '{"acquired":true,'* ]]; then
	echo "somebody else has the lock" >&2
	exit 75
fi

# Told to stop, stop the command first: until it has ended the lock is needed.
"$@" <&0 &
command=$!
trap 'kill -TERM "$command" 2>/dev/null || true' INT TERM HUP
status=0
wait "$command" || status=$?
while kill -0 "$command" 2>/dev/null; do
	status=0
	wait "$command" || status=$?
done
exit "$status"
