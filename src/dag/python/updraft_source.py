"""Where in the user's files something happens."""

import sys


def _marker():
    pass


_OWN_FILE = _marker.__code__.co_filename
# In the binary the stand-ins are frozen and named alike; on disk they share a folder.
_OWN_PREFIX = _OWN_FILE[: -len("updraft_source.py")] if _OWN_FILE.endswith("/updraft_source.py") else None


def is_own(filename):
    """Is this one of the stand-ins or of the frozen standard library, and none of the user's files?

    Frozen code has the name of its module where other code has a path.
    """
    if "/" not in filename and not filename.endswith(".py"):
        return True
    return _OWN_PREFIX is not None and filename.startswith(_OWN_PREFIX)


def function_location(function):
    """File and line of a function of the user's; without one, of the innermost frame that is the user's."""
    import updraft_signature

    code = getattr(updraft_signature.unwrap(function), "__code__", None)
    if code is None or is_own(code.co_filename):
        return user_location()
    return {"file": code.co_filename, "line": code.co_firstlineno}


def user_location():
    """File and line of the innermost frame that is the user's."""
    frame = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        if not is_own(filename):
            return {"file": filename, "line": frame.f_lineno or 0}
        frame = frame.f_back
    return {"file": "", "line": 0}
