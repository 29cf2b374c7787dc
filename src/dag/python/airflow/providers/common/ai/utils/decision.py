"""How sure a decision model was."""

from updraft_record import Fresh, Record


class ModelConfidence(Record):
    """How sure a model was."""

    _positional = {"model": None, "confidence": Fresh(dict), "probabilities": Fresh(dict)}

    @classmethod
    def from_result(cls, result):
        """Needs an answer of a model that this worker's interpreter does not have."""
        raise RuntimeError("ModelConfidence.from_result is not available in the Dag interpreter")
