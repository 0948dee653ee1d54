#!/usr/bin/env bash
# The shortest way, without a holder: simple.sh deploy ./deploy.sh
#
# Such a lock must not be asked for again after an answer was lost, so nothing is
# retried here, and the lock may then stay held; and anybody's release frees it.
set -euo pipefail

lock=${LOCKS:-http://localhost:8080}/v1/1/$1
shift

[[ $(curl -sS --globoff "$lock/acquire?waitTimeoutMs=60000") == '{"acquired":true,'* ]] || exit 75
trap 'curl -sS --globoff "$lock/release" >/dev/null || true' EXIT

"$@"
