"""Which run gets which call: the same act, of its own agent, once, and not too late."""

from __future__ import annotations

from typing import cast

import pytest
from msgspec.structs import replace

from hookproxy.guard import open_calls
from hookproxy.guard.open_calls import Act, OpenCall, OpenCalls
from hookproxy.hooks.evaluate import Hooks
from hookproxy.model.aliases import Alias
from hookproxy.model.decision import Proceed
from hookproxy.model.hooks import Event, EventContext, Session
from hookproxy.processes.ancestry import Process

AGENT, OTHER = Process(10, 1), Process(11, 1)
ACT: Act = ("files", "delete", b"digest")
CONTEXT = EventContext(Event.PRE_TOOL_USE, Session("s", "files", "/", "/"))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def opened(act: Act = ACT, use: str = "", process: Process | None = AGENT, *, asked: bool = False) -> OpenCall:
    call = OpenCall(("claude", "s", use), act, process, CONTEXT, cast("Hooks", None), Proceed(), "", "", None, 0, 0)
    call.asked = asked
    return call


def test_a_call_is_claimed_once() -> None:
    calls, call = OpenCalls(), opened()
    calls.open_call(call)
    assert calls.claim(AGENT, ACT, "") is call
    assert calls.claim(AGENT, ACT, "") is None


def test_two_alike_are_claimed_one_after_another() -> None:
    calls, first, second = OpenCalls(), opened(), opened()
    calls.open_call(first)
    calls.open_call(second)
    assert {calls.claim(AGENT, ACT, ""), calls.claim(AGENT, ACT, "")} == {first, second}


@pytest.mark.parametrize(
    ("process", "act", "call_id"),
    [
        (OTHER, ACT, ""),
        (Process(AGENT.pid, 2), ACT, ""),
        (AGENT, ("mail", "delete", b"digest"), ""),
        (AGENT, ("files", "delete_", b"digest"), ""),
        (AGENT, ("files", "delete", b"digesT"), ""),
        (AGENT, ACT, "t2"),
    ],
)
def test_what_differs_claims_nothing(process: Process, act: Act, call_id: str) -> None:
    calls = OpenCalls()
    calls.open_call(opened(use="t1"))
    assert calls.claim(process, act, call_id) is None
    assert calls.claim(AGENT, ACT, "t1") is not None


def test_an_id_is_enough_where_the_agent_calls_the_server_otherwise() -> None:
    calls = OpenCalls()
    calls.open_call(opened(use="t1"))
    assert calls.claim(AGENT, ("server-files", *ACT[1:]), "t1") is not None


def test_a_tool_of_the_agents_own_is_claimed_by_no_server_that_calls_one_of_its_so() -> None:
    calls, call = OpenCalls(), opened(("", *ACT[1:]), asked=True, use="t1")
    call.context = replace(CONTEXT, alias=Alias("delete", "Bash"), own_tool=True)
    calls.open_call(call)
    assert calls.claim(AGENT, ACT, "") is None
    assert calls.claim(AGENT, ACT, "t1") is None


def test_an_event_whose_agent_does_not_name_the_server_is_claimed_by_any_of_its_servers() -> None:
    calls = OpenCalls()
    calls.open_call(opened(("", *ACT[1:])))
    assert calls.claim(AGENT, ACT, "") is not None


def test_what_was_told_long_ago_is_not_claimed() -> None:
    clock = Clock()
    calls = OpenCalls(clock)
    calls.open_call(opened())
    calls.open_call(opened(("files", "ask", b""), asked=True))
    clock.now = 601.0
    assert calls.claim(AGENT, ACT, "") is None
    assert calls.claim(AGENT, ("files", "ask", b""), "") is not None, "people take their time"


def test_after_a_refusal_what_was_told_of_the_same_act_before_is_not_claimed() -> None:
    calls = OpenCalls()
    calls.open_call(opened())
    calls.open_call(opened(process=OTHER))
    calls.refused(AGENT, ACT)
    assert calls.claim(AGENT, ACT, "") is None
    assert calls.claim(OTHER, ACT, "") is not None


def test_the_end_is_found_by_the_id_and_else_by_the_act() -> None:
    calls, first, second, third = OpenCalls(), opened(use="t1"), opened(use="t2"), opened()
    for call in (first, second, third):
        calls.open_call(call)
    assert calls.end_call(("claude", "s", "t2"), ACT) is second
    assert calls.end_call(("claude", "s", "t1"), ("files", "delete", b"changed by the agent")) is first
    assert calls.end_call(("claude", "s", ""), ("files", "delete", b"another")) is None
    assert calls.end_call(("claude", "s", ""), ACT) is third
    assert len(calls) == 0


def test_an_ended_call_is_not_claimed() -> None:
    calls = OpenCalls()
    calls.open_call(opened())
    calls.end_call(("claude", "s", ""), ACT)
    assert calls.claim(AGENT, ACT, "") is None


def test_of_too_many_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_calls, "_MOST", 2)
    calls, oldest = OpenCalls(), opened()
    assert calls.open_call(oldest) is None
    assert calls.open_call(opened()) is None
    assert calls.open_call(opened()) is oldest
    assert len(calls) == 2
