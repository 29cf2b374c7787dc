"""Constructors of operators that the worker does not run yet: they take what Airflow's take."""


def hold(operator, arguments):
    """Sets a constructor's arguments (`locals()`) as attributes; template fields and messages need them."""
    for name, value in arguments.items():
        if name not in ("self", "kwargs", "__class__"):
            setattr(operator, name, value)
