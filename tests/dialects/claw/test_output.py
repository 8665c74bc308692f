"""The verdicts on claw-code hooks' output: the table of cases/claw.toml; any output gives a verdict."""

import json
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from hookproxy.dialects.claw import CURRENT as CLAW_CURRENT
from hookproxy.dialects.claw import DIALECT as CLAW
from hookproxy.dialects.dialect import Dialect
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import Ended, Event, HookResult, HookSpec, Permission, Verdict
from tests.dialects.tables import result, table
from tests.dialects.tables import verdict as expected_verdict

CASES = table("claw")
BOTH = pytest.mark.parametrize("dialect", [CLAW, CLAW_CURRENT], ids=lambda dialect: dialect.name)


def spec(dialect: Dialect, event: Event, event_name: str = "") -> HookSpec:
    name = event_name or event.value
    return HookSpec(
        dialect.name, "s.json", event, "guard.sh", shell="./guard.sh", timeout=dialect.default_timeout, event_name=name
    )


@pytest.mark.parametrize("case", CASES["output"], ids=lambda case: f"{case['dialect']}: {case['behaviour']}")
def test_output_gives_the_verdict_of_the_table(case: dict[str, Any]) -> None:
    dialect = DIALECTS[case["dialect"]]
    verdict = dialect.read_output(spec(dialect, Event(case["event"]), case.get("event_name", "")), result(case))
    assert verdict == expected_verdict(case)


def test_every_row_of_the_table_names_its_behaviour_and_source() -> None:
    rows = CASES["output"] + CASES["input"]
    assert all(row["behaviour"] and row["source"] for row in rows)
    assert len({(row["dialect"], row["event"], row["behaviour"]) for row in rows}) == len(rows)


@BOTH
@given(
    result=st.builds(
        HookResult,
        ended=st.sampled_from(Ended),
        code=st.integers(-70, 300),
        stdout=st.binary() | st.text().map(lambda text: b"{" + text.encode() + b"}"),
        stderr=st.binary(),
        cut=st.booleans(),
    )
)
def test_any_bytes_give_a_verdict(dialect: Dialect, result: HookResult) -> None:
    for event in (Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE):
        note(event)
        verdict = dialect.read_output(spec(dialect, event), result)
        assert verdict.failure == verdict.failure.strip()
        if result.ended is Ended.EXITED and result.code == 2:
            assert verdict.permission is Permission.DENY
        if result.ended is not Ended.EXITED or result.code not in (0, 2):
            assert verdict.failure
            assert verdict.permission is not Permission.ALLOW
            assert verdict.fails_closed is (dialect is CLAW_CURRENT and event is Event.PRE_TOOL_USE)
        if event is not Event.PRE_TOOL_USE and verdict.permission is Permission.DENY:
            assert verdict.feedback


KEYS = st.sampled_from([
    "continue", "decision", "reason", "systemMessage", "hookSpecificOutput", "hookEventName", "permissionDecision",
    "permissionDecisionReason", "updatedInput", "additionalContext",
])  # fmt: skip
WORDS = st.sampled_from(["allow", "deny", "ask", "defer", "approve", "block", "x" * 10_001])
LEAVES = WORDS | st.none() | st.booleans() | st.integers() | st.floats()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=10)


@given(output=st.dictionaries(KEYS, VALUES), code=st.sampled_from([0, 1, 2]))
def test_json_of_any_shape_gives_a_verdict(output: dict[str, Any], code: int) -> None:
    for event in (Event.PRE_TOOL_USE, Event.POST_TOOL_USE):
        note(event)
        printed = json.dumps(output).encode()
        verdict = CLAW_CURRENT.read_output(spec(CLAW_CURRENT, event), HookResult(Ended.EXITED, code, printed))
        if verdict.arguments is not None:
            assert isinstance(json.loads(verdict.arguments), dict)
            assert verdict.permission is not Permission.DENY
            assert not verdict.failure
        if output.get("continue") is False or output.get("decision") == "block":
            assert verdict.permission is Permission.DENY or "NaN" in str(printed) or "Infinity" in str(printed)
        assert all(len(text) < 10_200 for text in (verdict.reason, *verdict.feedback, *verdict.messages))
        assert len(verdict.failure) < 500


MALICIOUS = {
    "lists in lists": b'{"a":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}",
    "only lists": b"[" * 1_000_000 + b"]" * 1_000_000,
    "objects in objects": b'{"a":' * 1_000_000 + b"1" + b"}" * 1_000_000,
    "no UTF-8": b"{" + b"\xff" * 10 + b"}",
    "many lines": b"{\n}\n" * 10_000 + b"}",
    "no end": b'{"decision":"approve"',
    "a duplicate key below": b'{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecision":"allow"}}',
}


@pytest.mark.parametrize("stdout", MALICIOUS.values(), ids=MALICIOUS.keys())
def test_malicious_output_is_a_failure_and_never_an_approval(stdout: bytes) -> None:
    verdict = CLAW_CURRENT.read_output(spec(CLAW_CURRENT, Event.PRE_TOOL_USE), HookResult(Ended.EXITED, 0, stdout))
    assert verdict == Verdict(feedback=verdict.feedback, failure=verdict.failure)
    assert verdict.failure
    assert len(verdict.feedback[0]) < 1000
    as_text = CLAW.read_output(spec(CLAW, Event.PRE_TOOL_USE), HookResult(Ended.EXITED, 0, stdout))
    assert as_text == Verdict(feedback=as_text.feedback, messages=as_text.messages)


@pytest.mark.parametrize("other", [b'"a":' + b"9" * 100_000, rb'"\ud800":1'], ids=["a huge number", "half a key"])
def test_unknown_members_have_no_effect(other: bytes) -> None:
    printed = b'{"decision":"block","reason":"R",' + other + b"}"
    verdict = CLAW_CURRENT.read_output(spec(CLAW_CURRENT, Event.PRE_TOOL_USE), HookResult(Ended.EXITED, 0, printed))
    assert verdict == Verdict(permission=Permission.DENY, reason="R")


@pytest.mark.parametrize("number", [b"9" * 100_000, b"-0", b"1e999", b"  7  "])
def test_a_number_alone_is_not_a_decision(number: bytes) -> None:
    verdict = CLAW_CURRENT.read_output(spec(CLAW_CURRENT, Event.PRE_TOOL_USE), HookResult(Ended.EXITED, 0, number))
    assert verdict.permission is None
    assert verdict.feedback


@BOTH
def test_a_long_text_is_cut_and_ends_with_the_number_of_missing_characters(dialect: Dialect) -> None:
    verdict = dialect.read_output(spec(dialect, Event.POST_TOOL_USE), HookResult(Ended.EXITED, 0, b"r" * 10_007))
    assert verdict.feedback == ("Hook feedback:\n" + "r" * 10_000 + " … [7 more characters cut by hookproxy]",)
    denied = dialect.read_output(spec(dialect, Event.PRE_TOOL_USE), HookResult(Ended.EXITED, 2, b"r" * 10_007))
    assert denied.reason == "r" * 10_000 + " … [7 more characters cut by hookproxy]"


@BOTH
def test_text_that_is_not_utf8_is_decoded_anyway(dialect: Dialect) -> None:
    verdict = dialect.read_output(spec(dialect, Event.PRE_TOOL_USE), HookResult(Ended.EXITED, 2, b"no \xff\r\nway\r\n"))
    assert verdict.reason == "no \ufffd\nway"


def test_previews_of_unreadable_json_are_short() -> None:
    verdict = CLAW_CURRENT.read_output(
        spec(CLAW_CURRENT, Event.PRE_TOOL_USE), HookResult(Ended.EXITED, 0, b"{" + b"x" * 200, b"\xc2\x9b" * 161)
    )
    previews = "stdout_preview={" + "x" * 159 + "… stderr_preview=" + "\\u{9b}" * 160 + "…"
    assert previews in verdict.feedback[0]


def test_json_is_read_with_a_byte_order_mark_and_line_ends_of_windows() -> None:
    printed = '\ufeff{\r\n"decision": "block",\r\n"reason": "R"\r\n}\r\n'.encode()
    verdict = CLAW_CURRENT.read_output(spec(CLAW_CURRENT, Event.PRE_TOOL_USE), HookResult(Ended.EXITED, 0, printed))
    assert verdict == Verdict(permission=Permission.DENY, reason="R")


def test_escapes_do_not_hide_a_decision() -> None:
    printed = rb'{"d\u0065cision":"bl\u006fck","reason":"R"}'
    verdict = CLAW_CURRENT.read_output(spec(CLAW_CURRENT, Event.PRE_TOOL_USE), HookResult(Ended.EXITED, 0, printed))
    assert verdict == Verdict(permission=Permission.DENY, reason="R")


def test_claw_current_lists_every_member_that_it_reads() -> None:
    assert CLAW.output_fields == {}
    assert {name.rpartition(".")[2] for name in CLAW_CURRENT.output_fields} == {
        "systemMessage", "reason", "continue", "decision", "additionalContext", "permissionDecision",
        "permissionDecisionReason", "updatedInput", "hookEventName",
    }  # fmt: skip
