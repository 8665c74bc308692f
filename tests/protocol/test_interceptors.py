"""Descriptors and results of MCP interceptors (SEP-2624, docs/sep.md and conformance/ of the working group)."""

from __future__ import annotations

import json

import pytest

from hookproxy.jsonrpc import raw_json
from hookproxy.protocol import interceptors
from hookproxy.protocol.interceptors import Descriptor, Hook


def listed(**members: object) -> list[Descriptor]:
    entry = {"name": "a", "type": "validation", "hooks": [{"events": ["tools/call"], "phase": "request"}], **members}
    entry = {key: value for key, value in entry.items() if value is not None}
    return list(interceptors.read_list(raw_json.fields(json.dumps({"interceptors": [entry]}).encode())))


@pytest.mark.parametrize(
    ("events", "event", "phase", "runs"),
    [
        (("tools/call",), "tools/call", "request", True),
        (("tools/call",), "tools/call", "response", False),
        (("tools/call",), "tools/list", "request", False),
        (("*",), "prompts/get", "request", True),
        (("*/request",), "prompts/get", "request", True),
        (("*/response",), "prompts/get", "request", False),
        (("tools/*",), "tools/list", "request", True),
        (("tools/*",), "resources/list", "request", False),
    ],
)
def test_hooks_say_at_which_events_it_runs(events: tuple[str, ...], event: str, phase: str, runs: bool) -> None:
    descriptor = Descriptor("a", "validation", (Hook(events, "request"),))
    assert descriptor.runs_at(event, "request" if phase == "request" else "response") is runs


def test_mutations_run_by_priority_and_then_by_name() -> None:
    """SEP: "sequential by priorityHint (alphabetical tie-break)"."""
    hooks = interceptors.both("*")
    some = [Descriptor(name, "mutation", hooks, priorities=(at, -at)) for name, at in (("c", 0), ("b", 5), ("a", 0))]
    assert interceptors.plan(some, "tools/call", "request").mutations == (2, 0, 1)
    assert interceptors.plan(some, "tools/call", "response").mutations == (1, 2, 0)


def test_a_request_is_mutated_before_it_is_validated_and_a_response_after() -> None:
    assert interceptors.plan([], "tools/call", "request").mutates_first
    assert not interceptors.plan([], "tools/call", "response").mutates_first


@pytest.mark.parametrize(("mode", "read"), [("enforce", "enforce"), ("active", "enforce"), ("audit", "audit")])
def test_both_drafts_words_for_a_mode_are_read(mode: str, read: str) -> None:
    assert listed(mode=mode)[0].mode == read


def test_a_single_hook_of_both_phases_is_read_as_two() -> None:
    """docs/sep.md: `hook: {events, phase: "both"}`; later drafts have `hooks`."""
    [descriptor] = listed(hooks=None, hook={"events": ["tools/call"], "phase": "both"})
    assert descriptor.hooks == interceptors.both("tools/call")


def test_defaults_are_left_out_of_a_list() -> None:
    hooks = [{"events": ["tools/call"], "phase": "request"}]
    assert listed()[0].listed() == {"name": "a", "type": "validation", "hooks": hooks}
    full = {"mode": "audit", "failOpen": True, "priorityHint": {"request": -5, "response": 0}}
    assert listed(**full)[0].listed() == {"name": "a", "type": "validation", "hooks": hooks, **full}


@pytest.mark.parametrize(
    "members",
    [
        {"name": ""},
        {"name": 1},
        {"type": "observability"},
        {"mode": "of"},
        {"failOpen": "false"},
        {"hooks": []},
        {"hooks": [{"events": [], "phase": "request"}]},
        {"hooks": [{"events": ["tools/call"], "phase": "before"}]},
        {"hooks": [{"events": ["tools/call"]}]},
        {"hook": {"events": ["tools/call"], "phase": "both"}},
        {"priorityHint": 2**31},
        {"priorityHint": 1.5},
    ],
)
def test_what_cannot_be_read_is_refused(members: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="interceptor"):
        listed(**members)


def outcome(kind: interceptors.Type, **members: object) -> interceptors.Outcome:
    descriptor = Descriptor("a", kind, interceptors.both("*"))
    return interceptors.read_outcome(descriptor, "request", raw_json.fields(json.dumps(members).encode()))


@pytest.mark.parametrize(
    ("members", "blocks"),
    [
        ({"valid": True}, False),
        ({"valid": False}, True),
        ({"valid": False, "severity": "error"}, True),
        ({"valid": False, "severity": "warn"}, False),
        ({"valid": False, "severity": "info"}, False),
        ({"valid": False, "severity": "fatal"}, True),
        ({"valid": False, "messages": [{"message": "x", "severity": "warn"}]}, False),
        ({"valid": False, "messages": [{"message": "x", "severity": "error"}]}, True),
    ],
)
def test_only_an_error_blocks(members: dict[str, object], blocks: bool) -> None:
    """SEP: "Only severity error blocks; warn and info MUST NOT block"; an unknown one does here."""
    assert outcome("validation", **members).blocks is blocks


@pytest.mark.parametrize(
    ("kind", "members"),
    [
        ("validation", {}),
        ("validation", {"valid": "true"}),
        ("validation", {"valid": True, "interceptor": "b"}),
        ("validation", {"valid": True, "phase": "response"}),
        ("validation", {"valid": True, "type": "mutation"}),
        ("mutation", {}),
        ("mutation", {"modified": True}),
        ("mutation", {"modified": 0, "payload": {}}),
    ],
)
def test_a_result_that_says_nothing_certain_is_a_failure(kind: interceptors.Type, members: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"result|payload"):
        outcome(kind, **members)
