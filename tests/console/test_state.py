"""What a console knows: bounded lists, exact counts, nothing of runs that have ended."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from hookproxy.console import state as module
from hookproxy.console.state import State
from hookproxy.live.messages import NOTHING, CallInFlight, Changes, Counts, Run, RunSession, Settled, WaitingApproval


def record(call: str, **members: object) -> Raw:
    return Raw(json.dumps({"call": call, "tool": "push", "decision": "allow", "result": "ok", **members}).encode())


def in_flight(call: str, **members: object) -> CallInFlight:
    values: dict[str, Any] = {"stage": "hooks", "since": 1.0, "arguments": Raw(b'{"a":1}'), "arguments_bytes": 7}
    return CallInFlight(call, "s", 1.0, "push", **(values | members))


def approval(name: str) -> WaitingApproval:
    return WaitingApproval(name, "c", "s", "git", "push", Raw(b"{}"), "really?", "a rule", 1.0, 61.0)


def running(*runs: str) -> State:
    state = State()
    for run in runs:
        state.apply(run, Run(1, run, 1, 0.0))
        state.apply(run, Changes(sessions=(RunSession("s", "git", "an agent"),)))
    return state


def test_a_call_is_in_flight_until_it_has_ended() -> None:
    state = running("r")
    state.apply("r", Changes(calls=(in_flight("c"),)))
    state.apply("r", Changes(calls=(in_flight("c", stage="sent", since=2.0, arguments=NOTHING, arguments_bytes=0),)))
    ((run, call),) = state.in_flight()
    assert (call.stage, bytes(call.arguments), run.servers) == ("sent", b'{"a":1}', "git")
    state.apply("r", Changes(Counts(calls=1), ended=(record("c"),)))
    assert list(state.in_flight()) == []
    assert [(one.number, one.record.call) for one in state.ended] == [(1, "c")]
    assert state.counts.calls == 1


def test_the_list_is_bounded_and_the_counts_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ENDED", 10)
    state = running("r")
    for number in range(100):
        ended = tuple(record(f"{number}-{one}") for one in range(5))
        state.apply("r", Changes(Counts(calls=7 * (number + 1)), ended=ended, gone=("x", "y")))
    assert len(state.ended) == 10
    assert state.counts.calls == 700
    assert state.left_out + len(state.ended) == 700
    assert state.ended[-1].number == state.number == 500


def test_long_records_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ENDED_BYTES", 1000)
    state = running("r")
    for number in range(10):
        state.apply("r", Changes(ended=(record(str(number), reason="x" * 400),)))
    assert len(state.ended) == 2
    state.apply("r", Changes(ended=(record("long", reason="x" * 4000),)))
    assert [one.record.call for one in state.ended] == ["long"]


def test_an_approval_waits_until_it_is_settled_and_then_it_is_known_by_whom() -> None:
    state = running("r")
    state.apply("r", Changes(asked=(approval("q"), approval("p"))))
    assert list(state.approvals) == [("r", "q"), ("r", "p")]
    state.apply("r", Changes(settled=(Settled("q", "deny", "you, from there"),)))
    assert list(state.approvals) == [("r", "p")]
    assert state.settled["r", "q"].by == "you, from there"


def test_a_run_that_has_ended_leaves_its_counts_and_no_approval() -> None:
    state = running("r", "s")
    state.apply("r", Changes(Counts(calls=3), calls=(in_flight("c"),), asked=(approval("q"),)))
    state.forget("r")
    state.forget("r")
    assert (list(state.runs), list(state.in_flight()), state.approvals) == (["s"], [], {})
    assert (state.counts.calls, state.settled["r", "q"].action) == (3, "withdrawn")
    state.apply("r", Changes(Counts(calls=9)))
    assert state.counts.calls == 3


def test_a_record_that_cannot_be_read_is_counted() -> None:
    state = running("r")
    state.apply("r", Changes(ended=(Raw(b'{"call": 1}'),)))
    assert (len(state.ended), state.left_out) == (0, 1)


def test_listeners_hear_of_each_change_until_they_end() -> None:
    state = running("r")
    heard: list[int] = []
    end = state.listen(lambda: heard.append(state.version))
    state.apply("r", Changes())
    end()
    state.apply("r", Changes())
    assert heard == [state.version - 1]
