"""What both of OpenAI's APIs are asked with."""

from agents.version import __version__

def is_official(client):
    """Is the server OpenAI's own?"""
    from urllib.parse import urlsplit

    url = urlsplit(str(client.base_url))
    return url.scheme == "https" and url.hostname == "api.openai.com"


def headers(settings):
    """The headers of a request."""
    return {"User-Agent": f"Agents/Python {__version__}", **(settings.extra_headers or {})}


def without_none(given, more, function):
    """Arguments that say something, with others that may say nothing anew."""
    sent = {name: value for name, value in given.items() if value is not None}
    twice = sorted(name for name in more or () if name in sent)
    if twice:
        one = f"argument '{twice[0]}'" if len(twice) == 1 else f"arguments {', '.join(map(repr, twice))}"
        raise TypeError(f"{function} got multiple values for keyword {one}")
    sent.update(more or {})
    return sent
