"""The model that is asked when none is named, and how models of its kind are asked."""

import os
import re

# How much the models of this generation think when nothing is said.
_EFFORTS = {
    "low": r"gpt-5|gpt-5\.2-codex",
    "none": r"gpt-5\.[12]|gpt-5\.3-codex|gpt-5\.4(?:-mini|-nano)?|gpt-5\.5|gpt-5\.6(?:-sol|-terra|-luna)?",
    "medium": r"gpt-5\.[24]-pro",
}
_DATED = r"(?:-\d{4}-\d{2}-\d{2})?"
_CHAT = re.compile(r"gpt-5(?:\.[123])?-chat-latest")


def gpt_5_reasoning_settings_required(model_name):
    """Is it a model that is told how much to think?"""
    return model_name.startswith("gpt-5") and not _CHAT.fullmatch(model_name)


def is_gpt_5_default():
    """Is the default model one that is told how much to think?"""
    return gpt_5_reasoning_settings_required(get_default_model())


def get_default_model():
    """The name of the model that is asked when none is named."""
    return os.environ.get("OPENAI_DEFAULT_MODEL", "gpt-5.6-luna").lower()


def get_default_model_settings(model=None):
    """How a model is asked when nothing is said."""
    from agents.model_settings import ModelSettings

    name = get_default_model() if model is None else model
    if not gpt_5_reasoning_settings_required(name):
        return ModelSettings()
    for effort, pattern in _EFFORTS.items():
        if re.fullmatch(f"(?:{pattern}){_DATED}", name):
            from openai.types.shared import Reasoning

            return ModelSettings(reasoning=Reasoning(effort=effort), verbosity="low")
    return ModelSettings(verbosity="low")
