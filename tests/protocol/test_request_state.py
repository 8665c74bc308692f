"""A request state is valid only if it is ours, unchanged, in time and used once."""

from __future__ import annotations

import base64
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hookproxy.model.decision import ApprovalRequest
from hookproxy.protocol import request_state
from hookproxy.protocol.calls import OWN_STATE_PREFIX
from hookproxy.protocol.request_state import (
    LIFETIME,
    USED_SECONDS,
    CallRound,
    SealKey,
    SharedStates,
    StateSealer,
    UsedHere,
    embedded_server_state,
)

WAITING = CallRound("write", b'{"a":1}', b'{"a":2}', ("note",), ApprovalRequest("the hook", "why"), state=b'"s\\u0041"')


KEPT = replace(WAITING, arguments=b"")  # a digest of them is kept


def taken(states: StateSealer, text: str, tool: str, arguments: bytes) -> CallRound | None:
    """What `take` returns, which waits for nothing in one process."""
    taking = states.take(text, tool, arguments)
    try:
        taking.send(None)
    except StopIteration as done:
        found: CallRound | None = done.value
        return found
    raise AssertionError("it waits")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_request_state_restores_its_round_once() -> None:
    state_sealer = StateSealer()
    text = state_sealer.to_request_state(WAITING)
    assert text.startswith("hookproxy1.")
    assert taken(state_sealer, text.removeprefix(OWN_STATE_PREFIX), "write", b'{"a":1}') is None
    assert taken(state_sealer, text, "write", b'{"a":1}') == KEPT
    assert taken(state_sealer, text, "write", b'{"a":1}') is None


@pytest.mark.parametrize(("tool", "arguments"), [("write", b'{"a":2}'), ("read", b'{"a":1}'), ("", b"")])
def test_a_request_state_is_bound_to_the_tool_and_the_arguments(tool: str, arguments: bytes) -> None:
    state_sealer = StateSealer()
    text = state_sealer.to_request_state(WAITING)
    assert taken(state_sealer, text, tool, arguments) is None
    assert taken(state_sealer, text, "write", b'{"a":1}') == KEPT, "who only tried has used nothing up"


def test_a_request_state_of_another_process_is_invalid() -> None:
    assert taken(StateSealer(), StateSealer().to_request_state(WAITING), "write", b'{"a":1}') is None


def test_a_request_state_expires() -> None:
    clock = Clock()
    state_sealer = StateSealer(clock)
    early, late = state_sealer.to_request_state(WAITING), state_sealer.to_request_state(WAITING)
    clock.now += LIFETIME - 1
    assert taken(state_sealer, early, "write", b'{"a":1}') == KEPT
    clock.now += 2
    assert taken(state_sealer, late, "write", b'{"a":1}') is None


@given(st.data())
def test_a_request_state_with_any_changed_bit_is_invalid(data: st.DataObject) -> None:
    state_sealer = StateSealer()
    text = state_sealer.to_request_state(WAITING)
    at = data.draw(st.integers(0, 10**6)) % (len(text.encode()) * 8)
    raw = bytearray(text.encode())
    raw[at // 8] ^= 1 << (at % 8)
    changed = raw.decode("latin-1")
    assert taken(state_sealer, changed, "write", b'{"a":1}') is None
    assert isinstance(embedded_server_state(changed), bytes)


@given(st.text())
def test_any_other_text_is_invalid(text: str) -> None:
    state_sealer = StateSealer()
    state_sealer.to_request_state(WAITING)
    assert taken(state_sealer, text, "write", b'{"a":1}') is None
    assert taken(state_sealer, OWN_STATE_PREFIX + text, "write", b'{"a":1}') is None
    embedded_server_state(text)


def test_agents_that_never_continue_do_not_fill_memory() -> None:
    state_sealer = StateSealer()
    first = state_sealer.to_request_state(WAITING)
    rest = [state_sealer.to_request_state(replace(WAITING, feedback=(str(n),))) for n in range(1024)]
    assert taken(state_sealer, first, "write", b'{"a":1}') is None
    assert taken(state_sealer, rest[0], "write", b'{"a":1}') is not None
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
    assert taken(state_sealer, texts[0], "write", b'{"a":1}') is None
    assert taken(state_sealer, texts[4], "write", b'{"a":1}') is not None
    small = StateSealer()
    small.to_request_state(replace(WAITING, rewritten=None, arguments=b"x" * 20_000_000))
    assert small._bytes < 1000


def test_long_states_of_the_server_take_no_more_memory_than_is_counted() -> None:
    state_sealer = StateSealer()
    state = b'"' + b"\\\\" * 500_000 + b'"'
    tracemalloc.start()
    try:
        for _ in range(4):
            state_sealer.to_request_state(replace(WAITING, state=bytes(bytearray(state))))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < state_sealer._bytes + 100_000


def test_the_servers_state_in_an_invented_request_state_is_one_line() -> None:
    payload = base64.urlsafe_b64encode(b'{"s":"\\n \\"a\\" \\r\\n"}').decode().rstrip("=")
    assert embedded_server_state(f"{OWN_STATE_PREFIX}{payload}.x") == b'"a"'


# --- states that several gateways continue ---

FIRST, SECOND = SealKey(b"1" * 32), SealKey(b"2" * 32)


class Store:
    """What two gateways share."""

    def __init__(self) -> None:
        self.used = UsedHere()

    def states(
        self, *keys: SealKey, owner: tuple[str, ...] = ("uid:1", "files"), clock: Clock | None = None
    ) -> SharedStates:
        return SharedStates(lambda: keys or (FIRST,), owner, self.used, clock or Clock())


async def test_another_gateway_with_the_key_continues_a_round_once() -> None:
    store = Store()
    text = store.states().to_request_state(WAITING)
    assert text.startswith(FIRST.prefix)
    assert await store.states().take(text.removeprefix(FIRST.prefix), "write", b'{"a":1}') is None
    assert await store.states().take(text, "write", b'{"a":1}') == KEPT
    assert await store.states().take(text, "write", b'{"a":1}') is None


@pytest.mark.parametrize(
    "owner", [("uid:2", "files"), ("uid:1", "other"), ("uid:1",), ("uid:1fi", "les"), ("files", "uid:1"), ("", "")]
)
async def test_a_shared_state_is_for_one_user_at_one_server(owner: tuple[str, ...]) -> None:
    store = Store()
    text = store.states().to_request_state(WAITING)
    assert await store.states(owner=owner).take(text, "write", b'{"a":1}') is None
    assert await store.states().take(text, "write", b'{"a":1}') == KEPT, "who only tried has used nothing up"


@pytest.mark.parametrize(("tool", "arguments"), [("write", b'{"a":2}'), ("read", b'{"a":1}'), ("", b"")])
async def test_a_shared_state_is_bound_to_the_tool_and_the_arguments(tool: str, arguments: bytes) -> None:
    store = Store()
    text = store.states().to_request_state(WAITING)
    assert await store.states().take(text, tool, arguments) is None
    assert await store.states().take(text, "write", b'{"a":1}') == KEPT


async def test_the_first_key_seals_and_every_key_opens() -> None:
    store = Store()
    old, new = store.states(FIRST), store.states(SECOND, FIRST)
    assert await new.take(old.to_request_state(WAITING), "write", b'{"a":1}') == KEPT
    assert await old.take(new.to_request_state(WAITING), "write", b'{"a":1}') is None
    assert await store.states(SECOND).take(new.to_request_state(WAITING), "write", b'{"a":1}') == KEPT


async def test_states_of_other_keys_and_of_one_process_are_not_ours() -> None:
    states = Store().states(SECOND, FIRST)
    for one in (FIRST, SECOND):
        assert states.is_own(Store().states(one).to_request_state(WAITING))
    for text in (Store().states(SealKey(b"3" * 32)).to_request_state(WAITING), StateSealer().to_request_state(WAITING)):
        assert not states.is_own(text), "another hookproxy may be the server"
        assert await states.take(text, "write", b'{"a":1}') is None


async def test_a_shared_state_expires() -> None:
    store, clock = Store(), Clock()
    states = store.states(clock=clock)
    early, late = states.to_request_state(WAITING), states.to_request_state(WAITING)
    clock.now += LIFETIME - 1
    assert await states.take(early, "write", b'{"a":1}') == KEPT
    clock.now += 2
    assert await states.take(late, "write", b'{"a":1}') is None


async def test_a_shared_state_shows_nothing_of_the_round_but_the_servers_own_state() -> None:
    secret = replace(WAITING, rewritten=b'{"key":"sekret"}', feedback=("sekret",))
    text = Store().states().to_request_state(secret)
    parts = [base64.urlsafe_b64decode(part + "==") for part in text.removeprefix(FIRST.prefix).split(".")]
    assert not any(b"sekret" in part for part in parts)
    assert embedded_server_state(text) == b'"s\\u0041"'


@given(st.data())
async def test_a_shared_state_with_any_changed_bit_is_invalid(data: st.DataObject) -> None:
    states = Store().states()
    text = states.to_request_state(WAITING)
    index = data.draw(st.integers(0, len(text) - 1))
    changed = text[:index] + chr(ord(text[index]) ^ (1 << data.draw(st.integers(0, 6)))) + text[index + 1 :]
    found = await states.take(changed, "write", b'{"a":1}')
    assert found is None or base64.urlsafe_b64decode(changed[-4:]) == base64.urlsafe_b64decode(text[-4:])


@given(st.text())
async def test_an_invented_shared_state_is_invalid(text: str) -> None:
    states = Store().states()
    assert await states.take(text, "write", b'{"a":1}') is None
    assert await states.take(FIRST.prefix + text, "write", b'{"a":1}') is None


async def test_half_of_a_surrogate_pair_in_a_shared_round_becomes_a_question_mark() -> None:
    states = Store().states()
    odd = CallRound("\ud800", b"{}", None, ("\udc00 note",), ApprovalRequest("a hook", "\ud83d why"))
    found = await states.take(states.to_request_state(odd), "\ud800", b"{}")
    assert found is not None
    assert (found.tool, found.feedback) == ("\ud800", ("? note",))
    assert found.approval_request == ApprovalRequest("a hook", "? why")


async def test_texts_are_used_once_and_remembered_long_enough() -> None:
    clock = Clock()
    used = UsedHere(clock)
    assert await used.use_once("a", 0)
    clock.now += USED_SECONDS - 1
    assert not await used.use_once("a", 0)
    assert await used.use_once("b", 0)
    clock.now += 1
    assert await used.use_once("a", 0)
    assert not await used.use_once("b", 0)


async def test_with_too_many_texts_none_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_state, "_MAX_USED", 100)
    clock = Clock()
    used = UsedHere(clock)
    for number in range(100):
        assert await used.use_once(str(number), 0)
    assert not await used.use_once("one more", 0)
    clock.now += USED_SECONDS
    assert await used.use_once("one more", 0)
