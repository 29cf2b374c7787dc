"""Jinja templates that Dag code asks for while it runs: the worker renders them with the context of the task."""

import _updraft
from updraft_values import to_json


def render(value, more=None):
    """The value with its texts rendered, however deep they lie in lists, tuples and dicts.

    `more` holds texts that templates see beside the task's context.
    """
    if isinstance(value, str):
        return _updraft.render_template(value, to_json(more or {})) if "{" in value else value
    if type(value) in (list, tuple, set):
        return type(value)(render(item, more) for item in value)
    if type(value) is dict:
        return {key: render(item, more) for key, item in value.items()}
    return value
