"""Masking of secrets."""

import _updraft
import updraft_values


def mask_secret(secret, name=None):
    """Registers a secret: the logs show *** in its place."""
    if secret is not None:
        _updraft.mask_secret(updraft_values.to_json(_plain(secret)), name)


def _plain(value):
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(item) for item in value]
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def redact(value, name=None, max_depth=None):
    """The value as it is: the worker masks what leaves it."""
    return value
