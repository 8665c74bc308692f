"""The output of Claude Code's hooks: the table of cases/claude.toml, and that any output can be read."""

import json
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from hookproxy.dialects.claude.output import detach_time, read_output
from hookproxy.model.hooks import Ended, Event, HookResult, HookSpec, Permission, Verdict
from tests.dialects.tables import result, table, verdict

CASES = table("claude")


def spec(event: Event, background: bool = False, detaches: bool = False) -> HookSpec:
    return HookSpec(
        "claude",
        "s.json",
        event,
        "guard.sh",
        shell="guard.sh",
        timeout=30,
        background=background,
        detaches=detach_time if detaches else None,
    )


@pytest.mark.parametrize("case", CASES["output"], ids=lambda case: f"{case['event']}: {case['behaviour']}")
def test_output_is_read_as_in_the_table(case: dict[str, Any]) -> None:
    hook = spec(Event(case["event"]), case.get("background", False), case.get("detaches", False))
    actual = read_output(hook, result(case))
    assert actual == verdict(case)


def test_every_row_of_the_table_names_its_source() -> None:
    rows = [row for name in ("output", "input", "response", "replaced") for row in CASES[name]]
    assert all(row["behaviour"] and row["source"] for row in rows)
    assert len({(row.get("event"), row.get("tool"), row["behaviour"]) for row in rows}) == len(rows)


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        (b'{"async":true}', float("inf")),
        (b' {"async": true, "asyncTimeout": 1500} ', 1.5),
        (b'{"async":true,"asyncTimeout":-1}', 0.0),
        (b'{"async":true,"other":[1]}', float("inf")),
        (b'{"async":false}', None),
        (b'{"async":"true"}', None),
        (b'{"async":1}', None),
        (b'{"async":true,"async":false}', None),
        (b'{"async":true,"asyncTimeout":"1"}', None),
        (b'{"async":true', None),
        (b'[{"async":true}]', None),
        (b"", None),
    ],
)
def test_the_first_line_of_output_asks_for_the_background(line: bytes, seconds: float | None) -> None:
    assert detach_time(line) == seconds


@given(
    code=st.integers(-70, 300),
    ended=st.sampled_from(Ended),
    stdout=st.binary() | st.text().map(lambda text: b"{" + text.encode() + b"}"),
    stderr=st.binary(),
    cut=st.booleans(),
)
def test_any_bytes_can_be_read(code: int, ended: Ended, stdout: bytes, stderr: bytes, cut: bool) -> None:
    for event in Event:
        note(event)
        actual = read_output(spec(event), HookResult(ended, code, stdout, stderr, cut=cut))
        assert actual.failure == actual.failure.strip()
        if ended is Ended.EXITED and code == 2 and event is Event.PRE_TOOL_USE:
            assert actual.permission is Permission.DENY
        if ended is not Ended.EXITED:
            assert actual.failure
            assert actual.permission is None


KEYS = st.sampled_from([
    "continue", "stopReason", "suppressOutput", "systemMessage", "decision", "reason", "hookSpecificOutput",
    "hookEventName", "permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext",
    "updatedToolOutput", "updatedMCPToolOutput", "behavior", "updatedPermissions", "interrupt", "message", "action",
    "content", "type", "rules", "toolName", "ruleContent",
])  # fmt: skip
WORDS = st.sampled_from(["allow", "deny", "ask", "defer", "approve", "block", "accept", "decline", "addRules", *Event])
LEAVES = WORDS | st.none() | st.booleans() | st.integers() | st.floats()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=10)
LONG = st.just("x" * 10_001)


@given(output=st.dictionaries(KEYS, VALUES | LONG), code=st.sampled_from([0, 1, 2]))
@pytest.mark.slow
def test_output_of_any_shape_can_be_read(output: dict[str, Any], code: int) -> None:
    for event in Event:
        note(event)
        actual = read_output(spec(event), HookResult(Ended.EXITED, code, json.dumps(output).encode()))
        if actual.content is not None:
            assert isinstance(json.loads(actual.content), dict)
            assert actual.action == "accept"
        if actual.arguments is not None:
            assert isinstance(json.loads(actual.arguments), dict)
            assert actual.permission is not Permission.DENY
        assert all(len(text) < 10_100 for text in (actual.reason, *actual.feedback, *actual.messages))
        assert len(actual.failure) < 500


@pytest.mark.parametrize(
    "stdout",
    [
        b'{"a":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}",
        b'{"a":' * 1_000_000 + b"1" + b"}" * 1_000_000,
        b'{"a":' + b"9" * 100_000 + b"}",
        b'{"\\ud800":1}',
        b"{" + b"\xff" * 10 + b"}",
        b"{\n}\n" * 10_000 + b"}",
    ],
    ids=["lists in lists", "objects in objects", "a huge number", "half a key", "no UTF-8", "many lines"],
)
def test_malicious_output_is_a_failure_and_never_an_approval(stdout: bytes) -> None:
    actual = read_output(spec(Event.PRE_TOOL_USE), HookResult(Ended.EXITED, 0, stdout))
    assert actual == Verdict(failure=actual.failure)


def test_a_long_text_is_cut_with_a_note() -> None:
    output = {"decision": "block", "reason": "r" * 10_007, "systemMessage": "m" * 10_000}
    actual = read_output(spec(Event.PRE_TOOL_USE), HookResult(Ended.EXITED, 0, json.dumps(output).encode()))
    assert actual.reason == "r" * 10_000 + " … [7 more characters cut by hookproxy]"
    assert actual.messages == ("m" * 10_000,)


def test_standard_error_that_is_not_utf8_is_a_reason_too() -> None:
    actual = read_output(spec(Event.PRE_TOOL_USE), HookResult(Ended.EXITED, 2, stderr=b"no \xff\r\nway\r\n"))
    assert actual.reason == "no \ufffd\nway"
