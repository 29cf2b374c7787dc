"""Configuration of models."""


class ConfigDict(dict):
    """Settings of a model: a dict with known keys."""
