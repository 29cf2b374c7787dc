"""How sure a decision model was."""

from updraft_record import Fresh, Record


class ModelConfidence(Record):
    """How sure a model was."""

    _positional = {"model": None, "confidence": Fresh(dict), "probabilities": Fresh(dict)}

    @classmethod
    def from_result(cls, result):
        """What the last answer of a run says of it; nothing for a model that says nothing."""
        from math import isfinite

        response = result.response
        details = response.provider_details or {}
        confidence = details.get("confidence")
        probabilities = details.get("probabilities")
        return cls(
            model=response.model_name,
            confidence={
                name: float(value)
                for name, value in (confidence.items() if isinstance(confidence, dict) else ())
                if isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)
            },
            probabilities={
                name: dict(value)
                for name, value in (probabilities.items() if isinstance(probabilities, dict) else ())
                if isinstance(value, dict)
            },
        )
