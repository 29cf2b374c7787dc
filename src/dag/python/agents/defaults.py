"""What all models of OpenAI's are asked with, unless more is said."""

from agents.models.openai_provider import defaults


def set_default_openai_key(key, use_for_tracing=True):
    """The key."""
    defaults["key"] = key
    defaults["client"] = None


def set_default_openai_client(client, use_for_tracing=True):
    """The client."""
    defaults["client"] = client


def set_default_openai_api(api):
    """`chat_completions` or `responses`."""
    defaults["api"] = api


def enable_verbose_stdout_logging():
    """The log tells more."""
    import logging

    logging.getLogger("openai.agents").setLevel(logging.DEBUG)
