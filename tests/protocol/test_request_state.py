"""A request state is valid only if it is ours, unchanged, in time and used once."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hookproxy.model.decision import ApprovalRequest
from hookproxy.protocol.calls import OWN_STATE_PREFIX
from hookproxy.protocol.request_state import LIFETIME, CallRound, StateSealer, embedded_server_state

WAITING = CallRound("write", b'{"a":1}', b'{"a":2}', ("note",), ApprovalRequest("the hook", "why"), state=b'"s\\u0041"')


KEPT = replace(WAITING, arguments=b"")  # the signature covers them


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_request_state_restores_its_round_once() -> None:
    state_sealer = StateSealer()
    text = state_sealer.to_request_state(WAITING)
    assert text.startswith("hookproxy1.")
    assert state_sealer.from_request_state(text.removeprefix(OWN_STATE_PREFIX), "write", b'{"a":1}') is None
    assert state_sealer.from_request_state(text, "write", b'{"a":1}') == KEPT
    assert state_sealer.from_request_state(text, "write", b'{"a":1}') is None


@pytest.mark.parametrize(("tool", "arguments"), [("write", b'{"a":2}'), ("read", b'{"a":1}'), ("", b"")])
def test_a_request_state_is_bound_to_the_tool_and_the_arguments(tool: str, arguments: bytes) -> None:
    state_sealer = StateSealer()
    text = state_sealer.to_request_state(WAITING)
    assert state_sealer.from_request_state(text, tool, arguments) is None
    assert state_sealer.from_request_state(text, "write", b'{"a":1}') == KEPT, "who only tried has used nothing up"


def test_a_request_state_of_another_process_is_invalid() -> None:
    assert StateSealer().from_request_state(StateSealer().to_request_state(WAITING), "write", b'{"a":1}') is None


def test_a_request_state_expires() -> None:
    clock = Clock()
    state_sealer = StateSealer(clock)
    early, late = state_sealer.to_request_state(WAITING), state_sealer.to_request_state(WAITING)
    clock.now += LIFETIME - 1
    assert state_sealer.from_request_state(early, "write", b'{"a":1}') == KEPT
    clock.now += 2
    assert state_sealer.from_request_state(late, "write", b'{"a":1}') is None


@given(st.data())
def test_a_request_state_with_any_changed_bit_is_invalid(data: st.DataObject) -> None:
    state_sealer = StateSealer()
    text = state_sealer.to_request_state(WAITING)
    at = data.draw(st.integers(0, 10**6)) % (len(text.encode()) * 8)
    raw = bytearray(text.encode())
    raw[at // 8] ^= 1 << (at % 8)
    changed = raw.decode("latin-1")
    assert state_sealer.from_request_state(changed, "write", b'{"a":1}') is None
    assert isinstance(embedded_server_state(changed), bytes)


@given(st.text())
def test_any_other_text_is_invalid(text: str) -> None:
    state_sealer = StateSealer()
    state_sealer.to_request_state(WAITING)
    assert state_sealer.from_request_state(text, "write", b'{"a":1}') is None
    assert state_sealer.from_request_state(OWN_STATE_PREFIX + text, "write", b'{"a":1}') is None
    embedded_server_state(text)


def test_agents_that_never_continue_do_not_fill_memory() -> None:
    state_sealer = StateSealer()
    first = state_sealer.to_request_state(WAITING)
    rest = [state_sealer.to_request_state(replace(WAITING, feedback=(str(n),))) for n in range(1024)]
    assert state_sealer.from_request_state(first, "write", b'{"a":1}') is None
    assert state_sealer.from_request_state(rest[0], "write", b'{"a":1}') is not None
    assert len(state_sealer._rounds) < 1024


def test_the_servers_own_state_can_be_extracted_from_a_request_state() -> None:
    assert embedded_server_state(StateSealer().to_request_state(WAITING)) == b'"s\\u0041"'
    assert embedded_server_state(StateSealer().to_request_state(replace(WAITING, state=b""))) == b""
    for text in (
        "",
        OWN_STATE_PREFIX,
        OWN_STATE_PREFIX + "!.x",
        OWN_STATE_PREFIX + "bnVsbA.x",
        OWN_STATE_PREFIX + "eyJzIjogImFiYyJ9.x",
    ):
        assert embedded_server_state(text) == b""


def test_large_calls_that_never_continue_do_not_fill_memory() -> None:
    state_sealer = StateSealer()
    large = replace(WAITING, rewritten=b"x" * 20_000_000)
    texts = [state_sealer.to_request_state(large) for _ in range(5)]
    assert state_sealer._bytes < 70_000_000
    assert state_sealer.from_request_state(texts[0], "write", b'{"a":1}') is None
    assert state_sealer.from_request_state(texts[4], "write", b'{"a":1}') is not None
    small = StateSealer()
    small.to_request_state(replace(WAITING, rewritten=None, arguments=b"x" * 20_000_000))
    assert small._bytes < 1000


def test_the_servers_state_in_an_invented_request_state_is_one_line() -> None:
    payload = base64.urlsafe_b64encode(b'{"s":"\\n \\"a\\" \\r\\n"}').decode().rstrip("=")
    assert embedded_server_state(f"{OWN_STATE_PREFIX}{payload}.x") == b'"a"'
