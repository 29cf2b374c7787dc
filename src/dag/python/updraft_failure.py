"""Exceptions as plain data."""

from updraft_source import is_own
from updraft_values import qualified_name

_MAX_CAUSES = 10
_MAX_FRAMES = 100

# The last exception that went to Rust, and its number.
_last = (0, None)


def keep(error):
    """A number by which Rust can name an exception until the next one is kept."""
    global _last
    _last = (_last[0] + 1, error)
    return _last[0]


def kept(number):
    """The exception of a number; None when it is not kept any more."""
    return _last[1] if number is not None and number == _last[0] else None


def forget():
    """Drops the exception that is kept, with all that its frames hold."""
    global _last
    _last = (_last[0], None)


def like(class_name, message):
    """An exception of the named class (`module.QualName`), or of one that looks like it, without a traceback."""
    module, _, name = class_name.rpartition(".")
    cls = _known_class(module or "builtins", name)
    for cls in (cls, type(name, (Exception,), {"__module__": module or "builtins"})):
        if cls is None:
            continue
        try:
            error = cls.__new__(cls, message)
            error.args = (message,)
            if not hasattr(error, "message"):
                error.message = message
            if str(error):
                return error
        except Exception:
            # Its constructor or its text wants more than a message.
            continue
    return Exception(message)


def _known_class(module, name):
    import sys

    if module.partition(".")[0] in ("airflow", "pydantic_ai"):
        try:
            __import__(module)
        except ImportError:
            return None
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


# Exceptions with which Dag code asks for more than a failure, and what Rust needs of them.
_DATA = {
    "TaskDeferred": lambda error: error.deferral,
    "AirflowRescheduleException": lambda error: {"reschedule_date": _moment(error.reschedule_date)},
    "DownstreamTasksSkipped": lambda error: {"tasks": [_skipped(task) for task in _list(error.tasks)]},
}


def _data(error):
    for cls in type(error).__mro__:
        make = _DATA.get(cls.__name__) if cls.__module__ == "airflow.sdk.exceptions" else None
        if make is not None:
            return make(error)
    return None


def _list(tasks):
    return tasks if isinstance(tasks, (list, tuple, set)) else [tasks]


def _skipped(task):
    return list(task) if isinstance(task, tuple) else getattr(task, "task_id", task)


def _moment(value):
    from updraft_moment import moment_text

    return moment_text(value)


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
        "data": _data(error),
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
