"""What both APIs have."""

from openai.objects import BaseModel


class Reasoning(BaseModel):
    """How much a model thinks."""

    _defaults = dict.fromkeys(("effort", "generate_summary", "summary"))
