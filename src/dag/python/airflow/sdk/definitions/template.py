"""Values that are not rendered."""

from airflow.sdk.definitions._internal.node import ResolveMixin


class LiteralValue(ResolveMixin):
    """A value of a template field that stays as it is."""

    def __init__(self, value):
        self.value = value

    def iter_references(self):
        """It refers to no task."""
        return iter(())

    def resolve(self, context):
        """The value."""
        return self.value


def literal(value):
    """A value that no template engine touches."""
    return LiteralValue(value)
