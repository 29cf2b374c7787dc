"""Python's `logging`, with its records in the task log."""

import _updraft
import updraft_values

_LEVELS = ((50, "critical"), (40, "error"), (30, "warning"), (20, "info"))


def install(logging):
    """Gives the root logger the task log, and files of other handlers nowhere to go: Dag code writes no files here."""

    class TaskLogHandler(logging.Handler):
        """Sends records to the task log."""

        def emit(self, record):
            """One record."""
            try:
                level = next((name for number, name in _LEVELS if record.levelno >= number), "debug")
                fields = {}
                if record.exc_info and record.exc_info[1] is not None:
                    fields["error_detail"] = _details(record.exc_info[1])
                message = record.getMessage().encode("utf-8", "backslashreplace").decode()
                _updraft.log(record.name, level, message, updraft_values.to_json(fields))
            except RecursionError:
                raise
            except Exception:
                self.handleError(record)

    root = logging.getLogger()
    root.addHandler(TaskLogHandler())
    level = (_updraft.config("logging", "logging_level") or "INFO").upper()
    root.setLevel(level if level in logging.getLevelNamesMapping() else "INFO")
    logging.FileHandler._open = lambda handler: _Nowhere()


class _Nowhere:
    """A stream that keeps nothing."""

    def write(self, text):
        """Keeps nothing."""
        return len(text)

    def flush(self):
        """Nothing."""

    def close(self):
        """Nothing."""

    def seek(self, offset, whence=0):
        """Nothing."""
        return 0

    def tell(self):
        """Always the start."""
        return 0


def _details(error):
    """An exception and its causes in the form of `error_detail` in Airflow's log records."""
    details = []
    is_cause = False
    while error is not None and len(details) < 10:
        frames = []
        traceback = error.__traceback__
        while traceback is not None:
            code = traceback.tb_frame.f_code
            frames.append({"filename": code.co_filename, "lineno": traceback.tb_lineno, "name": code.co_name})
            traceback = traceback.tb_next
        details.append(
            {
                "exc_type": type(error).__name__,
                "exc_value": str(error),
                "exc_notes": [str(note) for note in getattr(error, "__notes__", ())],
                "syntax_error": None,
                "is_cause": is_cause,
                "frames": frames,
                "is_group": False,
                "exceptions": [],
            }
        )
        is_cause = error.__cause__ is not None
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return details
