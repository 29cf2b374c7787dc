"""`SlackWebhookHook`: messages to an incoming webhook."""

from typing import Any

from airflow.sdk.bases.hook import BaseHook
from updraft_native_hook import ask, not_here


class WebhookResponse:
    """Slack's answer."""

    # What a model is shown of it names its class, as on a Python worker.
    __module__ = "slack_sdk.webhook.webhook_response"

    def __init__(self, answer):
        self.status_code = answer["status"]
        self.body = answer["body"]
        self.headers = answer["headers"]


class SlackWebhookHook(BaseHook):
    """Posts messages to a Slack incoming webhook."""

    conn_name_attr = "slack_webhook_conn_id"
    default_conn_name = "slack_default"
    conn_type = "slackwebhook"
    hook_name = "Slack Incoming Webhook"

    def __init__(self, *, slack_webhook_conn_id, timeout=None, proxy=None, retry_handlers=None, **extra_client_args):
        super().__init__()
        self.slack_webhook_conn_id = slack_webhook_conn_id
        self.timeout = timeout
        self.proxy = proxy
        self.retry_handlers = retry_handlers
        self.extra_client_args = extra_client_args

    def _updraft_obstacle(self):
        """Why the hook, as it was made, can't run here; None when it can."""
        if self.retry_handlers:
            return "has retry_handlers, which are objects of slack_sdk"
        given = sorted(set(self.extra_client_args) - {"logger", "webhook_token"})
        if given:
            return f"has {', '.join(given)} for the client of slack_sdk"
        return None

    def send_dict(self, body: dict[str, Any] | str, *, headers: dict[str, str] | None = None):
        """Post a message that is JSON already.

        :param body: The message: an object, or its JSON text.
        :param headers: More headers for this request.
        """
        obstacle = self._updraft_obstacle()
        if obstacle is not None:
            raise ValueError(f"SlackWebhookHook does not run on this worker: it {obstacle}")
        from updraft_toolsets import jsonable

        message = {
            "body": jsonable(_message(body)),
            "headers": jsonable(headers or {}),
            "timeout": self.timeout,
            "proxy": self.proxy,
        }
        response = WebhookResponse(ask("slack", self.slack_webhook_conn_id, message=message))
        if response.status_code == 200:
            return response
        from airflow.sdk.exceptions import AirflowException

        raise AirflowException(
            f"Slack did not take the message and answered {response.status_code} with {response.body!r}, which "
            "https://api.slack.com/messaging/webhooks#handling_errors explains"
        )

    def send(
        self,
        *,
        text: str | None = None,
        blocks: list[dict[str, Any]] | None = None,
        response_type: str | None = None,
        replace_original: bool | None = None,
        delete_original: bool | None = None,
        unfurl_links: bool | None = None,
        unfurl_media: bool | None = None,
        headers: dict[str, str] | None = None,
        attachments: list[dict[str, Any]] | None = None,
        **kwargs,
    ):
        """Post a message made of its parts.

        :param text: The text; beside blocks, what is shown where blocks are not.
        :param blocks: Parts of Slack's Block Kit.
        :param response_type: Who sees it: in_channel or ephemeral.
        :param replace_original: For answers: take the place of the message that is answered.
        :param delete_original: For answers: delete the message that is answered.
        :param unfurl_links: Show what links lead to.
        :param unfurl_media: Show the media that links lead to.
        :param headers: More headers for this request.
        :param attachments: Attachments of the older kind.
        """
        body = {
            "text": text,
            "attachments": attachments,
            "blocks": blocks,
            "response_type": response_type,
            "replace_original": replace_original,
            "delete_original": delete_original,
            "unfurl_links": unfurl_links,
            "unfurl_media": unfurl_media,
            **kwargs,
        }
        return self.send_dict({name: value for name, value in body.items() if value is not None}, headers=headers)

    def send_text(
        self,
        text: str,
        *,
        unfurl_links: bool | None = None,
        unfurl_media: bool | None = None,
        headers: dict[str, str] | None = None,
    ):
        """Post a text.

        :param text: The text.
        :param unfurl_links: Show what links lead to.
        :param unfurl_media: Show the media that links lead to.
        :param headers: More headers for this request.
        """
        return self.send(text=text, unfurl_links=unfurl_links, unfurl_media=unfurl_media, headers=headers)

    async def async_send_dict(self, body: dict[str, Any] | str, *, headers: dict[str, str] | None = None):
        """Post a message that is JSON already."""
        return self.send_dict(body, headers=headers)

    async def async_send(self, **kwargs):
        """Post a message made of its parts."""
        return self.send(**kwargs)

    client = property(not_here("hands out a client of slack_sdk"))
    get_conn = get_async_client = not_here("hands out a client of slack_sdk")


def _message(given):
    """A message that was given as an object, or as its text."""
    import json

    try:
        message = json.loads(given) if isinstance(given, str) else given
    except ValueError as error:
        from airflow.sdk.exceptions import AirflowException

        raise AirflowException(f"the message {given!r} is not JSON: {error}") from None
    if isinstance(message, dict):
        return message
    raise TypeError(f"a message must be a JSON object, and this is a {type(message).__name__}")
