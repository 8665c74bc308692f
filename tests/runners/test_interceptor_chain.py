"""The order of interceptors, and what follows from each: SEP-2624 "Execution Model", conformance/src/catalog.ts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import pytest

from hookproxy.protocol.interceptors import Descriptor, Mode, Outcome, Phase, Type, both
from hookproxy.runners.interceptor_chain import ChainResult, run_chain
from hookproxy.runners.runner import HookFailed

pytestmark = pytest.mark.anyio

VALID: Final = Outcome()
INVALID: Final = Outcome(valid=False, messages=("denied by policy",))
CRASH: Final = HookFailed("crashed")


def of(name: str, kind: Type = "validation", *, mode: Mode = "enforce", fail_open: bool = False) -> Descriptor:
    return Descriptor(name, kind, both("tools/call"), mode, fail_open)


async def played(
    descriptors: list[Descriptor],
    outcomes: Mapping[str, Outcome | Exception],
    phase: Phase = "request",
    *,
    from_server: bool = False,
) -> tuple[ChainResult, list[tuple[str, bytes]], list[str]]:
    ran: list[tuple[str, bytes]] = []
    sinks: list[str] = []

    async def invoke(place: int, payload: bytes) -> Outcome:
        name = descriptors[place].name
        ran.append((name, payload))
        outcome = outcomes.get(name, VALID)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def observe(place: int, payload: bytes) -> None:
        sinks.append(f"{descriptors[place].name} {payload.decode()}")

    result = await run_chain(descriptors, "tools/call", phase, b"{}", invoke, observe, from_server=from_server)
    return result, ran, sinks


CHANGED: Final = Outcome(payload=b'{"a":1}')


@pytest.mark.parametrize(
    ("phase", "from_server", "validated"),
    [
        ("request", False, b'{"a":1}'),
        ("response", False, b"{}"),
        ("request", True, b"{}"),
        ("response", True, b'{"a":1}'),
    ],
)
async def test_what_is_sent_is_validated_as_changed_and_what_is_received_as_it_came(
    phase: Phase, from_server: bool, validated: bytes
) -> None:
    some = [of("v"), of("m", "mutation")]
    result, ran, _ = await played(some, {"m": CHANGED}, phase, from_server=from_server)
    assert ("v", validated) in ran
    assert json.loads(result.payload) == {"a": 1}


async def test_each_mutation_gets_what_the_one_before_has_left() -> None:
    some = [of("b", "mutation"), of("a", "mutation")]
    _, ran, _ = await played(some, {"a": CHANGED})
    assert ran == [("a", b"{}"), ("b", b'{"a":1}')]


async def test_a_validation_with_an_error_blocks_and_no_mutation_counts() -> None:
    result, _, _ = await played([of("v"), of("m", "mutation")], {"v": INVALID, "m": CHANGED})
    assert (result.blocked, result.place, result.payload) == ("denied by policy", 0, b"{}")


async def test_nothing_is_changed_of_a_response_that_is_not_valid() -> None:
    _, ran, _ = await played([of("v"), of("m", "mutation")], {"v": INVALID}, "response")
    assert [name for name, _ in ran] == ["v"]


@pytest.mark.parametrize("outcome", [INVALID, CRASH, TimeoutError()])
async def test_audit_never_blocks_and_says_what_would_have_been(outcome: Outcome | Exception) -> None:
    result, _, _ = await played([of("v", mode="audit")], {"v": outcome})
    assert not result.blocked
    assert result.notes


async def test_a_mutation_that_audits_changes_nothing() -> None:
    result, _, _ = await played([of("m", "mutation", mode="audit")], {"m": CHANGED})
    assert result.payload == b"{}"
    assert "would have changed it" in result.notes[0][1]


@pytest.mark.parametrize("kind", ["validation", "mutation"])
@pytest.mark.parametrize("failure", [CRASH, TimeoutError()])
async def test_a_failure_blocks_unless_it_fails_open(kind: Type, failure: Exception) -> None:
    closed, _, _ = await played([of("x", kind)], {"x": failure})
    opened, _, _ = await played([of("x", kind, fail_open=True)], {"x": failure})
    assert (bool(closed.blocked), closed.failed) == (True, True)
    assert not opened.blocked


async def test_a_reason_is_reported_rather_than_a_failure() -> None:
    result, _, _ = await played([of("x"), of("y")], {"x": CRASH, "y": INVALID})
    assert (result.place, result.failed) == (1, False)


async def test_a_sink_sees_what_is_sent_and_decides_nothing() -> None:
    result, ran, sinks = await played([of("s", "sink"), of("m", "mutation")], {"m": CHANGED, "s": CRASH})
    assert sinks == ['s {"a":1}']
    assert not result.blocked
    assert [name for name, _ in ran] == ["m"]
