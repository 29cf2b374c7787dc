"""Mail servers for the tests, on free ports of loopback, until standard input ends.

    mail.py DIR

Prints one JSON object: the ports of `plain` (no TLS, no login), `starttls` and `ssl`, which both ask for a login. Their
certificate is signed by DIR/ca.crt. Every mail is written to DIR/mails, one JSON object a line; a mail to
`busy@example.com` is put off twice before it is taken, and one to `nobody@example.com` is refused.
"""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import warnings
from pathlib import Path

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import MISSING, AuthResult

USER, PASSWORD, TOKEN = b"mate", b"made-up-mail-password", b"made-up-token"

# A login without TLS of its own is what is wanted where TLS is there from the first byte.
warnings.simplefilter("ignore")
folder = Path(sys.argv[1])
busy = {"left": 2}


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, stderr=subprocess.DEVNULL)


def certificate():
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=Authority of the mail tests",
            "-keyout", "ca.key", "-out", "ca.crt")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr")
    (folder / "extensions").write_text("subjectAltName=DNS:localhost\nextendedKeyUsage=serverAuth\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "extensions", "-out", "server.crt")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    return context


class Handler:
    def __init__(self, name):
        self.name = name

    async def handle_RCPT(self, server, session, envelope, address, rcpt_options):
        if address == "nobody@example.com":
            return "550 5.1.1 there is no such mailbox"
        if address == "busy@example.com" and busy["left"]:
            busy["left"] -= 1
            return "451 4.3.2 come back later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        mail = {
            "server": self.name,
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "encrypted": session.ssl is not None or self.name == "ssl",
            "login": session.auth_data.decode() if session.authenticated and session.auth_data else None,
            "text": envelope.content.decode(),
        }
        with (folder / "mails").open("a") as file:
            print(json.dumps(mail), file=file)
        return "250 OK"

    async def auth_XOAUTH2(self, server, args):
        import base64

        given = base64.b64decode(args[1]) if len(args) > 1 else await server.challenge_auth(b"")
        if given is MISSING or given != b"user=" + USER + b"\x01auth=Bearer " + TOKEN + b"\x01\x01":
            return AuthResult(success=False)
        return AuthResult(success=True, auth_data=b"token of " + USER)


def authenticate(server, session, envelope, mechanism, given):
    known = getattr(given, "login", None) == USER and getattr(given, "password", None) == PASSWORD
    return AuthResult(success=known, handled=False, auth_data=USER if known else None)


context = certificate()
login = {"authenticator": authenticate, "auth_required": True}
servers = {
    "plain": Controller(Handler("plain"), hostname="127.0.0.1", port=0),
    "starttls": Controller(
        Handler("starttls"), hostname="127.0.0.1", port=0, tls_context=context, require_starttls=True, **login
    ),
    "ssl": Controller(
        Handler("ssl"), hostname="127.0.0.1", port=0, ssl_context=context, auth_require_tls=False, **login
    ),
}
ports = {}
for name, controller in servers.items():
    # Starting looks whether the server answers, and for that it must know its port.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        controller.port = probe.getsockname()[1]
    controller.start()
    ports[name] = controller.port
print(json.dumps(ports), flush=True)
sys.stdin.read()
