"""Brings what Python reports on its own (`logging`, `warnings`, exceptions of threads) into the task log."""

import json
import sys

import _updraft

LEVELS = ((50, "critical"), (40, "error"), (30, "warning"), (20, "info"))


def send(logger, level, message, **fields):
    """One record of the task log. A lone surrogate has no place in it."""
    message, fields = (
        text.encode("utf-8", "backslashreplace").decode() for text in (message, json.dumps(fields, default=repr))
    )
    _updraft.log(logger, level, message, fields)


def error_detail(error):
    """The log's form of an exception and of those it came from."""
    details = []
    seen = set()
    is_cause = False
    while error is not None and id(error) not in seen and len(details) < 20:
        seen.add(id(error))
        frames = []
        trace = error.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            if not code.co_filename.startswith(("updraft_", "_frozen_importlib")):
                frames.append({"filename": code.co_filename, "lineno": trace.tb_lineno, "name": code.co_name})
            trace = trace.tb_next
        details.append(
            {
                "exc_type": type(error).__name__,
                "exc_value": _text(error),
                "exc_notes": [str(note) for note in getattr(error, "__notes__", ())],
                "syntax_error": None,
                "is_cause": is_cause,
                "frames": frames[-100:],
                "is_group": False,
                "exceptions": [],
            }
        )
        is_cause = error.__cause__ is not None
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return details


def _text(error):
    try:
        return str(error)
    except Exception as other:
        return f"<the text of the exception could not be made: {type(other).__name__}>"


class _Nowhere:
    """A file of a log handler: Dag code writes no files here, and a Dag that keeps a log of its own still loads."""

    def write(self, text):
        return len(text)

    def seek(self, offset, whence=0):
        return 0

    def tell(self):
        return 0

    def flush(self):
        pass

    def close(self):
        pass


def after_logging(logging):
    """The root logger writes to the task log, from `[logging] logging_level` on, as in a task of Airflow."""

    class TaskLogHandler(logging.Handler):
        def emit(self, record):
            try:
                level = next((name for number, name in LEVELS if record.levelno >= number), "debug")
                fields = {"filename": record.filename if hasattr(record, "filename") else "", "lineno": record.lineno}
                error = record.exc_info[1] if record.exc_info else None
                if error is not None:
                    fields["error_detail"] = error_detail(error)
                send(record.name, level, record.getMessage(), **fields)
            except Exception:
                self.handleError(record)

    logging.root.addHandler(TaskLogHandler())
    level = (_updraft.config("logging", "logging_level") or "INFO").upper()
    logging.root.setLevel(logging.getLevelNamesMapping().get(level, logging.INFO))
    logging.FileHandler._open = lambda handler: _Nowhere()


def after_warnings(warnings):
    def showwarning(message, category, filename, lineno, file=None, line=None):
        if file is not None:
            file.write(warnings.formatwarning(message, category, filename, lineno, line))
            return
        send(
            "py.warnings", "warning", str(message), category=category.__name__, filename=str(filename), lineno=lineno
        )

    warnings.showwarning = showwarning


def after_threading(threading):
    def excepthook(args):
        if args.exc_type is not SystemExit and args.exc_value is not None:
            name = args.thread.name if args.thread is not None else "?"
            send(
                "task.stderr", "error", f"Exception in thread {name}", error_detail=error_detail(args.exc_value)
            )

    threading.excepthook = threading.__excepthook__ = excepthook


def excepthook(kind, error, trace):
    send("task.stderr", "error", "Exception that nothing handled", error_detail=error_detail(error))


def unraisablehook(unraisable):
    text = unraisable.err_msg or "Exception ignored"
    detail = error_detail(unraisable.exc_value) if unraisable.exc_value is not None else []
    send("task.stderr", "error", str(text), error_detail=detail)


AFTER = {"logging": after_logging, "warnings": after_warnings, "threading": after_threading}
