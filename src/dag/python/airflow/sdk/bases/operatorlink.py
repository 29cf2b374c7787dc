"""Links of operators in Airflow's UI."""


class BaseOperatorLink:
    """A link that a button of the UI opens."""

    operators = ()
    name = ""

    @property
    def xcom_key(self):
        """Where the link is kept."""
        return f"_link_{type(self).__name__}"

    def get_link(self, operator, *, ti_key):
        """The address."""
        raise NotImplementedError
