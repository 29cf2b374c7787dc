"""Exceptions as plain data."""

from updraft_source import is_own
from updraft_values import qualified_name

_MAX_CAUSES = 10
_MAX_FRAMES = 100


def describe(error, depth=0):
    """A failure: its class, bases, message, frames, cause, and the file and line at fault."""
    frames = _frames(error)
    file = line = None
    if isinstance(error, SyntaxError):
        file, line = error.filename, error.lineno
    else:
        for frame in reversed(frames):
            if not is_own(frame["filename"]):
                file, line = frame["filename"], frame["lineno"]
                break
    cause = error.__cause__
    if cause is None and not error.__suppress_context__:
        cause = error.__context__
    if cause is error or depth >= _MAX_CAUSES:
        cause = None
    return {
        "class": _class_name(type(error)),
        "bases": [_class_name(cls) for cls in type(error).__mro__[1:-1]],
        "message": _message(error),
        "trace": frames,
        "cause": describe(cause, depth + 1) if cause is not None else None,
        "file": file if isinstance(file, str) else None,
        "line": line if isinstance(line, int) else None,
    }


def _class_name(cls):
    return cls.__qualname__ if cls.__module__ == "builtins" else qualified_name(cls)


def _message(error):
    try:
        if isinstance(error, SyntaxError):
            return str(error.msg)
        if isinstance(error, KeyError) and type(error).__str__ is KeyError.__str__:
            return repr(error.args[0]) if len(error.args) == 1 else str(error)
        return str(error)
    except Exception as other:
        return f"<the text of the exception could not be made: {type(other).__name__}>"


def _frames(error):
    frames = []
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.append({"filename": code.co_filename, "lineno": traceback.tb_lineno, "name": code.co_name})
        traceback = traceback.tb_next
    # The stand-ins' own frames at the start say nothing about the Dag file.
    while frames and is_own(frames[0]["filename"]) and any(not is_own(f["filename"]) for f in frames):
        frames.pop(0)
    if len(frames) > _MAX_FRAMES:
        half = _MAX_FRAMES // 2
        frames = frames[:half] + frames[-half:]
    return frames
