"""What tools give, without the secrets that are known."""

import _updraft


def mask(value, around=()):
    """The value without secrets, whatever holds them."""
    if isinstance(value, str):
        return _updraft.mask(value)
    if isinstance(value, bytes):
        return _updraft.mask(value.decode("utf-8", "replace"))
    if not isinstance(value, (dict, list, tuple, set, frozenset)):
        return value
    if any(value is outer for outer in around):
        return "<circular reference>"
    around = (*around, value)
    if isinstance(value, dict):
        return {mask(key, around): mask(item, around) for key, item in value.items()}
    return type(value)(mask(item, around) for item in value)
