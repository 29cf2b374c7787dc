"""Secrets that a worker fetches from a secrets backend, and where they must not turn up."""

from __future__ import annotations

import base64
import json
import urllib.parse
from pathlib import Path

import pytest

from harness.airflow import JWT_SECRET, Airflow
from harness.model_server import ModelServer, call, say
from harness.openbao import OpenBao
from harness.otlp import OtlpReceiver
from harness.worker import Worker

MODEL_KEY = 'sk-made-up "key" of/the vault'
SHOP_TOKEN = "made-up-shop-token-ä"

pytestmark = pytest.mark.updraft_only


def forms(secret: str) -> list[str]:
    """A secret as it is, and as it may look in JSON, in JSON within JSON, in a URL and in a header."""
    escaped = json.dumps(secret, ensure_ascii=False)[1:-1]
    return [
        secret,
        json.dumps(secret)[1:-1],
        escaped,
        json.dumps(escaped, ensure_ascii=False)[1:-1],
        urllib.parse.quote(secret),
        urllib.parse.quote(secret, safe=""),
        urllib.parse.quote_plus(secret),
        base64.b64encode(secret.encode()).decode(),
    ]


def test_every_secret_may_come_from_vault_and_none_is_written_anywhere_at_trace_level(
    airflow: Airflow,
    model: ModelServer,
    otlp: OtlpReceiver,
    scratch: Path,
    worker_dags: Path,
    worker_env: dict[str, str],
) -> None:
    bao = OpenBao(scratch / "openbao")
    role_id, secret_id = bao.app_role("worker")
    bao.put("config/jwt", value=JWT_SECRET)
    bao.put(
        "connections/vaulted_model",
        conn_type="pydanticai",
        password=MODEL_KEY,
        host=model.base_url,
        extra=json.dumps({"model": "openai-chat:vaulted"}),
    )
    bao.put("connections/vaulted_shop", conn_uri=f"sqlite:///{worker_dags / 'data' / 'shop.db'}")
    bao.put("variables/shop_token", value=SHOP_TOKEN)
    echo = f"SELECT COUNT(*) AS n, '{MODEL_KEY}' AS echo FROM orders"
    script = model.script("vaulted", [call("query", sql=echo), say("72 orders.")])
    worker = Worker(
        airflow,
        scratch / "worker-vaulted",
        worker_dags,
        "vaulted-1",
        "vaulted",
        env={
            **worker_env,
            "RUST_LOG": "trace",
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "DEBUG",
            "AIRFLOW__COMMON_AI__CAPTURE_CONTENT": "True",
            "AIRFLOW__API_AUTH__JWT_SECRET_SECRET": "jwt",
            "AIRFLOW__WORKERS__SECRETS_BACKEND": "airflow.providers.hashicorp.secrets.vault.VaultBackend",
            "AIRFLOW__WORKERS__SECRETS_BACKEND_KWARGS": json.dumps(
                {"url": bao.url, "auth_type": "approle", "role_id": role_id}
            ),
            "AIRFLOW__WORKERS__SECRETS_BACKEND_KWARG__SECRET_ID": secret_id,
        },
        without=["AIRFLOW__API_AUTH__JWT_SECRET"],
    )
    try:
        worker.wait_until_registered()
        run, state = airflow.run_dag("vaulted")
        assert state == "success", airflow.log(run, "ask").text + airflow.log(run, "look").text
        assert "the token is ***" in airflow.log(run, "look").events
        assert airflow.xcoms(run, "look")["return_value"] == len(SHOP_TOKEN)
        assert len(script.requests) == 2
        spans = [span for span in otlp.spans if span.service and "vaulted" in str(span.attributes)]
        assert spans, "no span of this run"
    finally:
        worker.stop()
        bao.stop()
    written = {
        "worker log": worker.process.log.read_text(),
        "log of look": airflow.log(run, "look").text,
        "log of ask": airflow.log(run, "ask").text,
        "spans": repr(otlp.spans),
        "xcoms": json.dumps(airflow.xcoms(run, "ask"), ensure_ascii=False),
        "tool result": json.dumps(script.requests[-1]["messages"][-1], ensure_ascii=False),
        **{str(path): path.read_text() for path in (worker.home / "logs").rglob("*.log")},
    }
    assert "TRACE" in written["worker log"]
    assert any("attempt=1.log" in name for name in written)
    for secret in (MODEL_KEY, SHOP_TOKEN, JWT_SECRET, secret_id):
        for form in forms(secret):
            for where, text in written.items():
                assert form not in text, f"{form!r} stands in the {where}"
    # JSON web tokens: what begins with the start of one goes no further.
    for where, text in written.items():
        assert "eyJ" not in text.replace("eyJ***", ""), where
