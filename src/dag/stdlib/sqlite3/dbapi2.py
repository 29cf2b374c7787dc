"""The old name of `sqlite3`."""

from sqlite3 import *  # noqa: F403
