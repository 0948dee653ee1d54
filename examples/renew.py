"""A lock that lasts as long as the work, and not much longer if this program dies:
it is renewed while the work goes on. renew.py COMMAND..."""

import subprocess
import sys
import uuid

from lock import get, path_of

TTL = 30  # seconds; the lock ends so long after the program died

path = path_of("renewed", 1)
query = f"holder={uuid.uuid4().hex}&ttlMs={TTL * 1000}"
held = get(f"{path}/acquire?{query}&waitTimeoutMs=60000", timeout=90)
if not held["acquired"]:
    sys.exit("somebody else has the lock")
try:
    work = subprocess.Popen(sys.argv[1:])
    while work.poll() is None:
        try:
            work.wait(timeout=TTL / 3)
        except subprocess.TimeoutExpired:
            # The same request again, without a wait. Another token would mean that
            # the lock was lost in between.
            again = get(f"{path}/acquire?{query}", timeout=TTL / 3, tries=1)
            if again.get("token") != held["token"]:
                work.terminate()
finally:
    get(f"{path}/release?{query}", timeout=30)
sys.exit(work.returncode)
