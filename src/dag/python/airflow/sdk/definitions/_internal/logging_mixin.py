"""Loggers for hooks and operators."""


class LoggingMixin:
    """Gives a class a logger."""

    _logger_name = None

    def __init__(self, context=None):
        pass

    @property
    def log(self):
        """The logger."""
        import logging

        cls = type(self)
        return logging.getLogger(self._logger_name or f"{cls.__module__}.{cls.__name__}")

    logger = log
