"""Exceptions of AI operators."""


class ReviewedOutputValidationError(ValueError):
    """What a person has made of an answer is not of the type that it must have."""


class LowConfidenceError(ValueError):
    """A model is not sure enough of its answer for a `DecisionPolicy` with `on_uncertain="fail"`."""


class MCPToolsetNotSupportedError(NotImplementedError):
    """`MCPToolset` is for other agents."""
