"""Waiting for file descriptors, of which Dag code has none worth waiting for."""

import time as _time

error = OSError


def select(rlist, wlist, xlist, timeout=None):
    if rlist or wlist or xlist or timeout is None:
        raise PermissionError(13, "sockets are not available in the Dag interpreter; run this task on a Python worker")
    _time.sleep(timeout)
    return [], [], []
