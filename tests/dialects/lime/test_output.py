"""The verdicts on Lime hooks' output: the table of cases/lime.toml; any output gives a verdict."""

import json
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from hookproxy.dialects.lime import DIALECT as LIME
from hookproxy.dialects.lime import FIELDS, read_output
from hookproxy.model.hooks import Ended, Event, HookResult, HookSpec, Permission, Verdict
from tests.dialects.tables import result, table
from tests.dialects.tables import verdict as expected_verdict

CASES = table("lime")
DECIDING = (Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST)


def spec(event: Event, background: bool = False) -> HookSpec:
    return HookSpec("lime", "s.json", event, "guard.sh", shell="guard.sh", timeout=60, background=background)


def verdict_on(stdout: bytes | dict[str, Any], event: Event = Event.PRE_TOOL_USE, code: int = 0) -> Verdict:
    output = stdout if isinstance(stdout, bytes) else json.dumps(stdout).encode()
    return read_output(spec(event), HookResult(Ended.EXITED, code, output))


@pytest.mark.parametrize("case", CASES["output"], ids=lambda case: f"{case['event']}: {case['behaviour']}")
def test_output_gives_the_verdict_of_the_table(case: dict[str, Any]) -> None:
    verdict = read_output(spec(Event(case["event"]), case.get("background", False)), result(case))
    assert verdict == expected_verdict(case)


def test_every_row_of_the_table_names_its_behaviour_and_source() -> None:
    rows = CASES["output"] + CASES["input"]
    assert all(row["behaviour"] and row["source"] for row in rows)
    assert len({(row["event"], row["behaviour"]) for row in rows}) == len(rows)


def test_every_event_and_every_field_of_the_page_has_a_row() -> None:
    assert {row["event"] for row in CASES["input"]} == set(LIME.events)
    answers = " ".join(row.get("stdout", "") for row in CASES["output"])
    assert all(f'"{field.rpartition(".")[2]}"' in answers for field in FIELDS)


@given(
    code=st.integers(-70, 300),
    ended=st.sampled_from(Ended),
    stdout=st.binary() | st.text().map(lambda text: b"{" + text.encode() + b"}"),
    stderr=st.binary(),
    cut=st.booleans(),
)
def test_any_bytes_give_a_verdict(code: int, ended: Ended, stdout: bytes, stderr: bytes, cut: bool) -> None:
    for event in Event:
        note(event)
        verdict = read_output(spec(event), HookResult(ended, code, stdout, stderr, cut=cut))
        assert verdict.failure == verdict.failure.strip()
        if ended is Ended.EXITED and code == 2 and event in DECIDING:
            assert verdict.permission is Permission.DENY
        elif ended is not Ended.EXITED or code:
            assert verdict.failure
            assert verdict.permission is None


KEYS = st.sampled_from([
    "continue", "systemMessage", "decision", "reason", "interrupt", "hookSpecificOutput", "permissionDecision",
    "permissionDecisionReason", "updatedInput", "updatedPermissions", "additionalContext", "hookEventName",
])  # fmt: skip
LEAVES = st.sampled_from(["allow", "deny", "ask", "block"]) | st.none() | st.booleans() | st.integers() | st.floats()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=10)
LONG = st.just("x" * 10_001)


@given(answer=st.dictionaries(KEYS, VALUES | LONG), code=st.sampled_from([0, 1, 2]))
def test_json_of_any_shape_gives_a_verdict(answer: dict[str, Any], code: int) -> None:
    for event in Event:
        note(event)
        verdict = verdict_on(answer, event, code)
        if verdict.arguments is not None:
            assert isinstance(json.loads(verdict.arguments), dict)
            assert (event, verdict.permission) != (event, Permission.DENY)
            assert event is Event.PRE_TOOL_USE
        if verdict.stop and event in DECIDING:
            assert verdict.permission is Permission.DENY
        if event not in DECIDING:
            assert (verdict.permission, verdict.allows) == (None, ())
        if verdict.failure:
            assert verdict.permission is not Permission.ALLOW
            assert verdict.allows == ()
        assert all(
            len(text) < 10_100 for text in (verdict.reason, *verdict.feedback, *verdict.messages, *verdict.allows)
        )
        assert len(verdict.failure) < 500


@pytest.mark.parametrize(
    "stdout",
    [
        b'{"a":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}",
        b'{"a":' * 1_000_000 + b"1" + b"}" * 1_000_000,
        b'{"hookSpecificOutput":{"updatedInput":{"a":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}}}",
        b'{"a":Infinity}',
        b"{" + b"\xff" * 10 + b"}",
        b"{\n}\n" * 10_000 + b"}",
        b"{" * 1_000_000,
    ],
    ids=["lists", "objects", "in arguments", "infinity", "no UTF-8", "lines", "braces"],
)
def test_malicious_output_is_a_failure_and_never_an_approval(stdout: bytes) -> None:
    verdict = verdict_on(stdout)
    assert verdict.failure
    assert verdict == Verdict(failure=verdict.failure)
    denied = verdict_on(stdout, code=2)
    assert denied.permission is Permission.DENY
    assert denied.messages == (verdict.failure,)


@pytest.mark.parametrize("stdout", [b'{"a":' + b"9" * 100_000 + b"}", b'{"\\ud800":1}', b'{"":[{"reason":1}]}'])
def test_members_that_the_page_does_not_name_have_no_effect(stdout: bytes) -> None:
    assert verdict_on(stdout) == Verdict()


def test_a_long_text_is_cut_and_ends_with_the_number_of_missing_characters() -> None:
    verdict = verdict_on({"decision": "block", "reason": "r" * 10_007})
    assert verdict.reason == "r" * 10_000 + " … [7 more characters cut by hookproxy]"
    assert verdict_on(b"x" * 10_001, code=2).reason.endswith("[1 more characters cut by hookproxy]")


def test_standard_error_that_is_not_utf8_is_a_reason_anyway() -> None:
    denied = read_output(spec(Event.PRE_TOOL_USE), HookResult(Ended.EXITED, 2, stderr=b"no \xff\r\nway\r\n"))
    assert denied.reason == "no \ufffd\nway"
