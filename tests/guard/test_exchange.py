"""The client and the guard agree on requests and responses, and what is not one is refused."""

from __future__ import annotations

import os

import pytest

from hookproxy.dialects.agent_side import HookOutput
from hookproxy.guard import client, exchange
from hookproxy.guard.exchange import Control, Head, NotARequest, OtherVersion


def test_the_guard_reads_what_the_client_writes() -> None:
    message = client.request("claude", b'{"a":\n1}')
    line, _, parts = message.partition(b"\n")
    head = exchange.read_head(line)
    assert isinstance(head, Head)
    assert sum(head.lengths) == len(parts)
    request = exchange.read_request(head, parts)
    assert (request.agent, request.cwd, request.document) == ("claude", os.getcwd(), b'{"a":\n1}')
    assert request.environ == dict(os.environ)


@pytest.mark.parametrize(
    ("output", "response"),
    [
        (HookOutput(), b"0 0 0\n"),
        (HookOutput(b"{}\n", "no\n\n", 2), b"2 3 3\n{}\nno\n"),
        (HookOutput(stderr="ä\ud800"), b"0 0 4\n\xc3\xa4?\n"),
    ],
)
def test_a_response_has_what_the_agent_reads(output: HookOutput, response: bytes) -> None:
    assert exchange.write_response(output) == response


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"GET / HTTP/1.1",
        b"hookproxy-guard 1",
        b"hookproxy-guard 1 end",
        b"hookproxy-guard 1 claude 1 1",
        b"hookproxy-guard 1 claude 1 1 -1",
        b"hookproxy-guard 1 claude 1 1 1 1",
        b"hookproxy-guard 1 claude 1 1 \xc2\xb2",
        b"hookproxy-guard 1 claude 1 5000000 1",
        b"hookproxy-guard 1 claude 1 1 50000000",
    ],
)
def test_what_is_not_a_request_of_this_version_is_refused(line: bytes) -> None:
    with pytest.raises(NotARequest):
        exchange.read_head(line)


@pytest.mark.parametrize("line", [b"hookproxy-guard 2 claude 1 1 1", b"hookproxy-guard 2", b"hookproxy-guard"])
def test_a_request_of_another_version_is_known_as_such(line: bytes) -> None:
    with pytest.raises(OtherVersion):
        exchange.read_head(line)


@pytest.mark.parametrize("control", ["status", "stop"])
def test_the_guard_reads_what_a_person_asks(control: Control) -> None:
    assert exchange.read_head(exchange.write_control(control).removesuffix(b"\n")) == control
