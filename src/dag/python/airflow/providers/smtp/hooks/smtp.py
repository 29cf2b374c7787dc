"""`SmtpHook`: mail through the server of a connection."""

from collections.abc import Iterable
from typing import Any

from airflow.sdk.bases.hook import BaseHook
from updraft_native_hook import ask


class SmtpHook(BaseHook):
    """Sends mail; the worker connects for each one."""

    conn_name_attr = "smtp_conn_id"
    default_conn_name = "smtp_default"
    conn_type = "smtp"
    hook_name = "SMTP"

    def __init__(self, smtp_conn_id="smtp_default", auth_type="basic"):
        super().__init__()
        self.smtp_conn_id = smtp_conn_id
        self._auth_type = auth_type

    def __enter__(self):
        return self.get_conn()

    def __exit__(self, exc_type, exc_val, exc_tb):
        pass

    async def __aenter__(self):
        return self.get_conn()

    async def __aexit__(self, exc_type, exc_val, exc_tb):
        pass

    def get_conn(self):
        """The hook itself: there is nothing to open beforehand."""
        return self

    async def aget_conn(self):
        """The hook itself: there is nothing to open beforehand."""
        return self

    def test_connection(self):
        """Does the server answer, and let the login in?"""
        try:
            ask("smtp_test", self.smtp_conn_id, auth_type=self._auth_type)
        except Exception as error:
            return False, str(error)
        return True, "Connection successfully tested"

    async def atest_connection(self):
        """Does the server answer, and let the login in?"""
        return self.test_connection()

    def send_email_smtp(
        self,
        *,
        to: str | Iterable[str],
        subject: str | None = None,
        html_content: str | None = None,
        from_email: str | None = None,
        files: list[str] | None = None,
        dryrun: bool = False,
        cc: str | Iterable[str] | None = None,
        bcc: str | Iterable[str] | None = None,
        mime_subtype: str = "mixed",
        mime_charset: str = "utf-8",
        custom_headers: dict[str, Any] | None = None,
        **kwargs,
    ) -> None:
        """Send a mail whose text is HTML.

        :param to: The address it goes to, or several, with commas between them or as a list.
        :param subject: The subject; left out, the connection's template is it.
        :param html_content: The text, as HTML; left out, the connection's template is it.
        :param from_email: The sender's address; left out, the connection has one.
        :param files: Paths of files of the Dag folder to attach.
        :param dryrun: Make the mail and do not send it.
        :param cc: Addresses that get a copy.
        :param bcc: Addresses that get a copy nobody else sees.
        :param mime_subtype: How the parts belong together: mixed, alternative or related.
        :param mime_charset: The encoding of the text: utf-8.
        :param custom_headers: More headers.
        """
        from updraft_toolsets import jsonable

        email = {
            "to": _addresses(to),
            "cc": _addresses(cc or ()),
            "bcc": _addresses(bcc or ()),
            "subject": subject,
            "html_content": html_content,
            "from_email": from_email,
            "mime_subtype": mime_subtype,
            "mime_charset": mime_charset,
            "custom_headers": jsonable(custom_headers or {}),
            "files": [_attachment(path) for path in files or ()],
            "dryrun": bool(dryrun),
            "auth_type": self._auth_type,
        }
        ask("smtp", self.smtp_conn_id, email=email)

    async def asend_email_smtp(self, **kwargs) -> None:
        """Send a mail whose text is HTML."""
        self.send_email_smtp(**kwargs)


def _addresses(given):
    if isinstance(given, str):
        return [part.strip() for part in given.replace(";", ",").split(",")]
    addresses = list(given) if isinstance(given, Iterable) else [given]
    for address in addresses:
        if not isinstance(address, str):
            raise TypeError(f"a mail's address must be text, and {address!r} is a {type(address).__name__}")
    return addresses


def _attachment(path):
    """Read here, where Dag code sees its own folder and no other files of the worker."""
    import base64

    with open(path, "rb") as file:
        return {"name": path.rpartition("/")[2], "base64": base64.b64encode(file.read()).decode("ascii")}
