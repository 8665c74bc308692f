"""A gateway posts approvals to a webhook, and takes the answers at its own address: real processes, real HTTP."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end.test_gateway_http import SERVER, HttpGateway, request
from tests.support.webhook_receiver import SECRET, Receiver, receiver, send

pytestmark = pytest.mark.slow


@pytest.fixture
def service() -> Iterator[Receiver]:
    with receiver() as one:
        yield one


@pytest.fixture
def gateway(tmp_path: Path, service: Receiver) -> Iterator[HttpGateway]:
    (tmp_path / "secret").write_bytes(SECRET + b"\n")
    (tmp_path / "secret").chmod(0o600)
    config = f"""\
[audit]
file = "audit.jsonl"
[servers.tools]
command = ["python3", "{SERVER}"]
sandbox = "off"
[servers.tools.permissions]
ask = ["echo"]
[servers.tools.approvals.webhook]
url = "{service.url}"
secret = "file:{tmp_path}/secret"
"""
    started = HttpGateway(tmp_path, config)
    yield started
    started.kill()


def call_in_thread(gateway: HttpGateway, session: str) -> tuple[threading.Thread, list[str]]:
    responses: list[str] = []

    def ask() -> None:
        params = {"name": "echo", "arguments": {"a": 1}}
        responses.append(gateway.ask("alice", request(1, "tools/call", params), session)[2])

    thread = threading.Thread(target=ask)
    thread.start()
    return thread, responses


@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_the_answer_comes_to_the_gateways_own_address(gateway: HttpGateway, service: Receiver, decision: str) -> None:
    thread, responses = call_in_thread(gateway, gateway.opened("alice"))
    posted = service.message()
    assert posted["answer_url"].startswith(f"http://127.0.0.1:{gateway.port}/approvals/")
    assert (posted["server"], posted["tool"]) == ("tools", "echo")
    assert send(posted["answer_url"], {"decision": decision}, "GET")[0] == 405
    assert send(f"{posted['answer_url'][:-43]}{'A' * 43}", {"decision": decision})[0] in (404, 409)
    in_two_pieces(gateway.port, posted["answer_url"], {"decision": decision})
    thread.join(30)
    assert send(posted["answer_url"], {"decision": "allow"})[0] == 409
    [text] = responses
    assert ("did not allow it" in text) is (decision == "deny")
    [record] = gateway.audit()
    assert record["answered_by"].startswith("the webhook http://127.0.0.1:")


def in_two_pieces(port: int, url: str, answer: dict[str, Any]) -> None:
    """Head and body come apart, as from many HTTP clients."""
    body = json.dumps(answer).encode()
    target = url.partition(f":{port}")[2]
    head = f"POST {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(f"{head}Expect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        assert connection.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
