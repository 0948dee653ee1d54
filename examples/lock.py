"""Locks for Python, with nothing but the standard library.

    with lock("nightly-backup"):
        backup()
"""

import contextlib
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

SERVER = os.environ.get("LOCKS", "http://localhost:8080")


class Busy(Exception):
    """The lock could not be had in time."""


@contextlib.contextmanager
def lock(name, max_value=1, wait=60.0, ttl=None):
    """Holds a slot of a lock: at most max_value do at a time.

    Gives the fencing token. With a ttl in seconds the slot frees itself after
    that long, even while the work still goes on, since nothing here renews it:
    choose one that is longer than the work can take. Without, a signal that kills
    this program leaves the slot held.
    """
    holder = uuid.uuid4().hex  # with it, both requests can be repeated
    query = {"holder": holder, "waitTimeoutMs": round(wait * 1000)}
    if ttl is not None:
        query["ttlMs"] = round(ttl * 1000)
    path = path_of(name, max_value)
    try:
        answer = get(f"{path}/acquire?{urllib.parse.urlencode(query)}", timeout=wait + 30)
        if not answer["acquired"]:
            raise Busy(name)
        yield answer["token"]
    finally:  # also if no answer came: it may have been lost on its way
        get(f"{path}/release?holder={holder}", timeout=30)


@contextlib.contextmanager
def anonymous_lock(name, max_value=1, wait=60.0):
    """The same without a holder. Nothing may be repeated then: if an answer is
    lost, the slot may stay held."""
    path = path_of(name, max_value)
    if not get(f"{path}/acquire?waitTimeoutMs={round(wait * 1000)}", timeout=wait + 30, tries=1)["acquired"]:
        raise Busy(name)
    try:
        yield
    finally:
        get(f"{path}/release", timeout=30, tries=1)


def path_of(name, max_value):
    return f"{SERVER}/v1/{max_value}/{urllib.parse.quote(name, safe='')}"


def get(url, timeout, tries=5):
    """Requests a URL until it is answered."""
    for left in reversed(range(tries)):
        try:
            with urllib.request.urlopen(url, timeout=timeout) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            if error.code < 500 or not left:
                raise
        except OSError:
            if not left:
                raise
        time.sleep(1)
