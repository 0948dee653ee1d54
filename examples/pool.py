"""A pool of workers, on however many machines, of which at most three work at
the same time: pool.py JOB..."""

import concurrent.futures
import subprocess
import sys

from lock import lock


def work(job):
    with lock("workers", max_value=3, wait=24 * 3600):
        subprocess.run(job, shell=True, check=True)


with concurrent.futures.ThreadPoolExecutor(max_workers=10) as pool:
    for _ in pool.map(work, sys.argv[1:]):
        pass
