"""Constructors that keep what they are given."""


def hold(made, arguments, prefix=""):
    """Sets a constructor's arguments (`locals()`) as attributes, each under its name behind `prefix`."""
    for name, value in arguments.items():
        if name not in ("self", "kwargs", "__class__"):
            setattr(made, prefix + name, value)
