"""When an operator may act on a model's answer by itself."""

from updraft_record import Record


def check_bar(value, name):
    """A confidence between 0 and 1."""
    is_number = isinstance(value, (int, float)) and value is not True and value is not False
    if not is_number or not 0 <= value <= 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value!r}.")
    return float(value)


class DecisionPolicy(Record):
    """The confidence an answer needs, and what happens below it."""

    _positional = {"min_confidence": None, "on_uncertain": "review"}

    def _made(self):
        if self.min_confidence is not None:
            self.min_confidence = check_bar(self.min_confidence, "min_confidence")
        if self.on_uncertain not in ("review", "fail"):
            raise ValueError(f"on_uncertain must be one of ('review', 'fail'), got {self.on_uncertain!r}.")

    @property
    def gates(self):
        """Is a bar set?"""
        return self.min_confidence is not None

    @property
    def reviews(self):
        """Does an uncertain answer go to a person?"""
        return self.gates and self.on_uncertain == "review"


class BranchOption(Record):
    """A branch as the model sees it, and the confidence that choosing it needs."""

    template_fields = ("description",)
    _positional = {"description": None, "min_confidence": None}

    def _made(self):
        if self.min_confidence is not None:
            self.min_confidence = check_bar(self.min_confidence, "BranchOption.min_confidence")
