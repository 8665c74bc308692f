"""The output of Copilot CLI's hooks, in both editions: the table of cases/copilot.toml, and output of any shape."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from hookproxy.dialects.copilot import CURRENT as COPILOT_CURRENT
from hookproxy.dialects.copilot import DIALECT as COPILOT
from hookproxy.dialects.copilot.hook_file import EVENTS
from hookproxy.dialects.copilot.output import read_output, read_output_current
from hookproxy.model.hooks import Ended, Event, HookResult, HookSpec, Permission, Verdict
from tests.dialects.tables import result, table, verdict

CASES = table("copilot")
READERS = {COPILOT.name: read_output, COPILOT_CURRENT.name: read_output_current}
ROWS = [(name, case) for case in CASES["output"] for name in READERS if case.get("dialect", name) == name]
EVENTS_WITH_HOOKS = sorted(set(EVENTS.values()))

CRASHED = (Ended.SIGNALLED, Ended.NOT_STARTED)

Read = Callable[[HookSpec, HookResult], Verdict]
either = pytest.mark.parametrize("reader", READERS.values(), ids=READERS)


def spec(event: Event, background: bool = False) -> HookSpec:
    return HookSpec("copilot", "h.json", event, "guard.sh", argv=("x",), timeout=30, background=background)


@pytest.mark.parametrize(("name", "case"), ROWS, ids=lambda one: one if isinstance(one, str) else one["behaviour"])
def test_output_is_read_as_in_the_table(name: str, case: dict[str, Any]) -> None:
    assert READERS[name](spec(Event(case["event"])), result(case)) == verdict(case)


def test_every_row_of_the_table_names_its_source() -> None:
    assert all(row["behaviour"] and row["source"] for row in CASES["output"] + CASES["input"])
    rows = [(name, row["event"], row["behaviour"]) for name, row in ROWS]
    assert len(set(rows)) == len(rows)
    assert len(CASES["output"]) == len({json.dumps(row, sort_keys=True) for row in CASES["output"]})


@either
def test_a_background_hook_decides_nothing(reader: Read) -> None:
    for printed in (b'{"permissionDecision":"deny","modifiedArgs":{}}', b'{"behavior":"deny"}'):
        for event in EVENTS_WITH_HOOKS:
            actual = reader(spec(event, background=True), HookResult(Ended.EXITED, 2, printed))
            assert actual == Verdict(messages=actual.messages, failure=actual.failure)


RESULTS = st.builds(
    HookResult,
    ended=st.sampled_from(Ended),
    code=st.integers(-70, 300),
    stdout=st.binary() | st.text().map(lambda text: b"{" + text.encode() + b"}"),
    stderr=st.binary(),
    cut=st.booleans(),
)


@either
@given(result=RESULTS)
def test_any_bytes_can_be_read(reader: Read, result: HookResult) -> None:
    for event in EVENTS_WITH_HOOKS:
        note(event)
        actual = reader(spec(event), result)
        exited = result.ended is Ended.EXITED
        assert actual.failure == actual.failure.strip()
        if not exited:
            assert actual.failure
            assert actual.permission is None
        if exited and result.code == 2 and event is Event.PERMISSION_REQUEST:
            assert actual.permission is Permission.DENY
        if reader is read_output:
            assert not actual.fails_closed
        elif event is Event.PRE_TOOL_USE and (result.ended in CRASHED or (exited and result.code)):
            assert actual.fails_closed or actual.permission is Permission.DENY


KEYS = st.sampled_from([
    "permissionDecision", "permissionDecisionReason", "modifiedArgs", "behavior", "message", "interrupt",
    "additionalContext", "modifiedResult", "resultType", "textResultForLlm", "type",
])  # fmt: skip
WORDS = st.sampled_from(["allow", "deny", "ask", "success", "failure", "progress"])
LEAVES = WORDS | st.none() | st.booleans() | st.integers() | st.floats()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=10)
LONG = st.just("x" * 10_001)


@either
@given(output=st.dictionaries(KEYS, VALUES | LONG), code=st.sampled_from([0, 1, 2]))
def test_output_of_any_shape_can_be_read(reader: Read, output: dict[str, Any], code: int) -> None:
    for event in EVENTS_WITH_HOOKS:
        note(event)
        actual = reader(spec(event), HookResult(Ended.EXITED, code, json.dumps(output).encode()))
        if actual.arguments is not None:
            assert isinstance(json.loads(actual.arguments), dict)
            assert actual.permission is not Permission.DENY
        assert actual.replacement is None or isinstance(json.loads(actual.replacement), str)
        assert all(len(text) < 10_100 for text in (actual.reason, *actual.feedback, *actual.messages))
        assert len(actual.failure) < 500


HURTING = {
    "lists in lists": b'{"a":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}",
    "objects in objects": b'{"modifiedArgs":' * 1_000_000 + b"1" + b"}" * 1_000_000,
    "a huge number": b'{"modifiedArgs":{"n":' + b"9" * 100_000 + b"}}",
    "infinity": b'{"modifiedArgs":{"n":-Infinity}}',
    "a key with half a surrogate pair, twice": b'{"modifiedArgs":{"\\ud800":1,"\\ud800":2}}',
    "no UTF-8": b"{" + b"\xff" * 10 + b"}",
    "many lines": b"{\n}\n" * 10_000 + b"}",
    "duplicate keys inside": b'{"permissionDecision":"allow","modifiedArgs":{"p":"a","\\u0070":"b"}}',
    "a progress line with duplicate keys": b'{"type":"progress","type":"x"}\n{"permissionDecision":"allow"}',
    "much progress, no output": b'{"type":"progress"}\n' * 10_000 + b'{"permissionDecision":"allow"',
}


@either
@pytest.mark.parametrize("stdout", HURTING.values(), ids=HURTING)
def test_malicious_output_is_a_failure_and_never_an_approval(reader: Read, stdout: bytes) -> None:
    actual = reader(spec(Event.PRE_TOOL_USE), HookResult(Ended.EXITED, 0, stdout))
    assert actual == Verdict(failure=actual.failure)
    assert actual.failure


@either
def test_a_long_text_is_cut_with_a_note(reader: Read) -> None:
    output = {"permissionDecision": "deny", "permissionDecisionReason": "r" * 10_007}
    actual = reader(spec(Event.PRE_TOOL_USE), HookResult(Ended.EXITED, 0, json.dumps(output).encode()))
    assert actual.reason == "r" * 10_000 + " … [7 more characters cut by hookproxy]"


@either
def test_standard_error_that_is_not_utf8_is_guidance_too(reader: Read) -> None:
    actual = reader(spec(Event.POST_TOOL_USE_FAILURE), HookResult(Ended.EXITED, 2, stderr=b"no \xff\r\nway\r\n"))
    assert actual.feedback == ("no \ufffd\nway",)
