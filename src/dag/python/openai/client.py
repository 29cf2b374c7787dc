"""Clients: what they are given is what each request is sent with."""

import os

import _updraft
import updraft_values
from openai.errors import APIConnectionError, APITimeoutError, OpenAIError, of_answer
from openai.objects import built

_DEFAULT_BASE_URL = "https://api.openai.com/v1"
_DEFAULT_TIMEOUT = 600.0
_DEFAULT_MAX_RETRIES = 2

# Attributes of a request that are no part of its body.
_BESIDE_THE_BODY = ("extra_headers", "extra_query", "extra_body", "timeout", "stream_cls")


class NotGiven:
    """Stands for an argument that is not given."""

    def __bool__(self):
        return False

    def __repr__(self):
        return "NOT_GIVEN"


class Omit:
    """Stands for something that is not sent."""

    def __bool__(self):
        return False


NOT_GIVEN = NotGiven()
omit = Omit()


class _Client:
    def __init__(
        self,
        *,
        api_key=None,
        admin_api_key=None,
        workload_identity=None,
        organization=None,
        project=None,
        webhook_secret=None,
        base_url=None,
        websocket_base_url=None,
        timeout=NOT_GIVEN,
        max_retries=_DEFAULT_MAX_RETRIES,
        default_headers=None,
        default_query=None,
        http_client=None,
        _strict_response_validation=False,
        **more,
    ):
        from updraft_unavailable import refuse

        for name, value in {"http_client": http_client, "workload_identity": workload_identity, **more}.items():
            if value is not None:
                refuse(f"{name}= of an OpenAI client")
        if api_key is None:
            api_key = os.environ.get("OPENAI_API_KEY")
        if api_key is None:
            raise OpenAIError(
                "Missing credentials. Please pass an `api_key`, or set the `OPENAI_API_KEY` environment variable."
            )
        self.api_key = api_key
        self.organization = organization if organization is not None else os.environ.get("OPENAI_ORG_ID")
        self.project = project if project is not None else os.environ.get("OPENAI_PROJECT_ID")
        self.base_url = str(base_url or os.environ.get("OPENAI_BASE_URL") or _DEFAULT_BASE_URL).rstrip("/") + "/"
        self.timeout = _DEFAULT_TIMEOUT if timeout is NOT_GIVEN else timeout
        self.max_retries = max_retries
        self._default_headers = dict(default_headers or {})
        self._default_query = dict(default_query or {})
        self.chat = _Chat(self)
        self.responses = _Responses(self)

    def copy(self, **changed):
        """Another client, with other settings."""
        given = {
            "api_key": self.api_key,
            "organization": self.organization,
            "project": self.project,
            "base_url": self.base_url,
            "timeout": self.timeout,
            "max_retries": self.max_retries,
            "default_headers": self._default_headers,
            "default_query": self._default_query,
        }
        return type(self)(**{**given, **changed})

    with_options = copy

    def _request(self, path, key, given):
        """What the worker is asked to send."""
        body = {name: value for name, value in given.items() if name not in _BESIDE_THE_BODY}
        body.update(given.get("extra_body") or {})
        headers = {
            "authorization": f"Bearer {key}",
            "content-type": "application/json",
            "accept": "application/json",
            "openai-organization": self.organization,
            "openai-project": self.project,
            **self._default_headers,
            **(given.get("extra_headers") or {}),
        }
        query = {**self._default_query, **(given.get("extra_query") or {})}
        url = self.base_url + path
        if query:
            from urllib.parse import urlencode

            url = f"{url}?{urlencode(query, doseq=True)}"
        timeout = given.get("timeout", NOT_GIVEN)
        return {
            "method": "POST",
            "url": url,
            "headers": {str(name): str(value) for name, value in headers.items() if _is_sent(value)},
            "body": _sent(body),
            "timeout": _seconds(self.timeout if isinstance(timeout, NotGiven) else timeout),
            "max_retries": self.max_retries,
        }


def _is_sent(value):
    return value is not None and not isinstance(value, (Omit, NotGiven))


def _sent(value):
    """A body as it is sent: plain data, without what is to be left out."""
    if isinstance(value, dict):
        return {
            str(name): _sent(item) for name, item in value.items() if not isinstance(item, (Omit, NotGiven))
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_sent(item) for item in value]
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return _sent(dump(mode="json", exclude_unset=True))
    isoformat = getattr(value, "isoformat", None)
    return isoformat() if isoformat is not None else value


def _seconds(timeout):
    """Seconds for one try; a `Timeout` with parts counts by its longest."""
    if timeout is None:
        return _DEFAULT_TIMEOUT
    if isinstance(timeout, (int, float)):
        return float(timeout)
    parts = [getattr(timeout, name, None) for name in ("connect", "read", "write", "pool")]
    return float(max((part for part in parts if part is not None), default=_DEFAULT_TIMEOUT))


def _send(request):
    """The worker's answer to a request: `{"status", "headers", "text"}`."""
    text = _updraft.hook(updraft_values.to_json({"hook": "model", "request": request}))
    answer = updraft_values.from_json(text)
    if "broken" in answer:
        if answer["timeout"]:
            raise APITimeoutError(message=answer["broken"])
        raise APIConnectionError(message=answer["broken"])
    if answer["status"] >= 400:
        raise of_answer(answer)
    return answer


def _read(answer):
    made = _completed(built(updraft_values.from_json(answer["text"])))
    if hasattr(made, "__dict__"):
        made._request_id = answer["headers"].get("x-request-id")
    return made


def _completed(made):
    """The parts of a chat completion carry no word of what they are."""
    if getattr(made, "object", None) not in ("chat.completion", "chat.completion.chunk"):
        return made
    from openai.types.chat import ChatCompletionMessage, Choice, CompletionUsage

    for index, choice in enumerate(made.__dict__.get("choices") or ()):
        made.choices[index] = choice = Choice(**choice.__dict__)
        if "message" in choice.__dict__:
            choice.message = ChatCompletionMessage(**choice.message.__dict__)
        if "delta" in choice.__dict__:
            choice.delta = ChatCompletionMessage(**choice.delta.__dict__)
    if made.usage is not None:
        made.usage = CompletionUsage(**made.usage.__dict__)
    return made


def _events(text):
    """The objects of a stream of events."""
    for block in text.replace("\r\n", "\n").split("\n\n"):
        data = "\n".join(line[5:].lstrip(" ") for line in block.split("\n") if line.startswith("data:"))
        if not data or data == "[DONE]":
            continue
        event = updraft_values.from_json(data)
        if isinstance(event, dict) and event.get("error") and "type" not in event:
            from openai.errors import APIError

            told = event["error"]
            message = told.get("message") if isinstance(told, dict) else None
            raise APIError(message or "An error occurred during streaming", body=told)
        yield _completed(built(event))


class Stream:
    """The events of a streamed answer. The worker has read them all before the first one is given."""

    def __init__(self, answer):
        self.response = answer
        self._left = _events(answer["text"])

    def __iter__(self):
        return self._left

    def __next__(self):
        return next(self._left)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Ends the stream."""
        self._left = iter(())


class AsyncStream(Stream):
    """As `Stream`, for coroutines."""

    def __aiter__(self):
        return self

    async def __anext__(self):
        for event in self._left:
            return event
        raise StopAsyncIteration

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exception):
        Stream.close(self)

    async def close(self):
        """Ends the stream."""
        Stream.close(self)

    aclose = close


class OpenAI(_Client):
    """A client whose calls wait for their answers."""

    def _post(self, path, given):
        key = self.api_key() if callable(self.api_key) else self.api_key
        answer = _send(self._request(path, key, given))
        return Stream(answer) if _is_streamed(given) else _read(answer)

    def close(self):
        """There is nothing to close."""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


class AsyncOpenAI(_Client):
    """A client for coroutines."""

    async def _post(self, path, given):
        import asyncio

        key = self.api_key() if callable(self.api_key) else self.api_key
        if hasattr(key, "__await__"):
            key = await key
        # Beside the loop: what else runs on it, such as a guardrail, may end the wait.
        answer = await asyncio.get_running_loop().run_in_executor(None, _send, self._request(path, key, given))
        return AsyncStream(answer) if _is_streamed(given) else _read(answer)

    async def close(self):
        """There is nothing to close."""

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exception):
        pass


def _is_streamed(given):
    return given.get("stream") is True


Client = OpenAI
AsyncClient = AsyncOpenAI


class _Chat:
    def __init__(self, client):
        self.completions = _Completions(client)


class _Completions:
    def __init__(self, client):
        self._client = client

    def create(self, **given):
        """One request of the Chat Completions API."""
        return self._client._post("chat/completions", given)


class _Responses:
    def __init__(self, client):
        self._client = client

    def create(self, **given):
        """One request of the Responses API."""
        return self._client._post("responses", given)
