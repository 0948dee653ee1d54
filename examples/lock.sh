#!/usr/bin/env bash
# Runs a command while it holds a lock, and always releases it:
#
#   lock.sh nightly-backup ./backup.sh --full
#
# Exits with 75 if the lock could not be had within a minute.
set -euo pipefail

lock=${LOCKS:-http://localhost:8080}/v1/1/$1
shift

# Named, so that both requests can be repeated, and nobody else's release is ours.
holder=$(hostname)-$$-$RANDOM

answer=$(curl -sS --fail-with-body --retry 5 "$lock/acquire?holder=$holder&waitTimeoutMs=60000")
if [[ $answer != '{"acquired":true,'* ]]; then
	echo "somebody else has the lock" >&2
	exit 75
fi
trap 'curl -sS --retry 5 "$lock/release?holder=$holder" >/dev/null' EXIT

"$@"
