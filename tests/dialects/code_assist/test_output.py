"""The verdicts on code-assist hooks' output: the table of cases/code_assist.toml; any output gives a verdict."""

import json
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from hookproxy.dialects.code_assist import DIALECT as CODE_ASSIST
from hookproxy.dialects.code_assist import FIELDS, read_output
from hookproxy.model.hooks import Ended, Event, HookResult, HookSpec, Permission, Verdict
from tests.dialects.tables import result, table
from tests.dialects.tables import verdict as expected_verdict
from tests.support.examples import examples

CASES = table("code_assist")
EVENTS = list(CODE_ASSIST.events.values())


def spec(event: Event, background: bool = False) -> HookSpec:
    return HookSpec("code-assist", "s.json", event, "guard", shell="guard.sh", timeout=3, background=background)


def verdict_on(output: object, event: Event = Event.PRE_TOOL_USE, code: int = 0) -> Verdict:
    return read_output(spec(event), HookResult(Ended.EXITED, code, json.dumps(output).encode()))


@pytest.mark.parametrize("case", CASES["output"], ids=lambda case: f"{case['event']}: {case['behaviour']}")
def test_output_gives_the_verdict_of_the_table(case: dict[str, Any]) -> None:
    verdict = read_output(spec(Event(case["event"]), case.get("background", False)), result(case))
    assert verdict == expected_verdict(case)


def test_every_row_of_the_table_names_its_behaviour_and_source() -> None:
    rows = CASES["output"] + CASES["input"]
    assert all(row["behaviour"] and row["source"] for row in rows)
    assert len({(row["event"], row["behaviour"]) for row in rows}) == len(rows)


def test_every_member_of_the_document_is_in_the_table() -> None:
    assert set(FIELDS) == {
        "decision", "reason", "updated_input",  # PreToolUse Output
        "suppress_output", "updated_output", "additional_context",  # PostToolUse Output
        "updated_prompt", "prevent_continuation", "stop_reason",  # UserPromptSubmit Output
        "status_message", "permission_updates", "retry",  # Universal Output Fields
    }  # fmt: skip
    printed = "".join(row.get("stdout", "") for row in CASES["output"])
    assert all(f'"{name}"' in printed for name in FIELDS)


@given(
    code=st.integers(-70, 300),
    ended=st.sampled_from(Ended),
    stdout=st.binary() | st.text().map(lambda text: b"{" + text.encode() + b"}"),
    stderr=st.binary(),
    cut=st.booleans(),
)
def test_any_bytes_give_a_verdict(code: int, ended: Ended, stdout: bytes, stderr: bytes, cut: bool) -> None:
    for event in EVENTS:
        note(event)
        verdict = read_output(spec(event), HookResult(ended, code, stdout, stderr, cut=cut))
        assert verdict.failure == verdict.failure.strip()
        if ended is not Ended.EXITED or code not in (0, 2):
            assert verdict == Verdict(failure=verdict.failure)
            assert verdict.failure
        elif code == 2 and event in (Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST):
            assert verdict.permission is Permission.DENY


LEAVES = (
    st.sampled_from(["approve", "deny", "block", "BashTool", "BashTool(git *)", "addRules", "allow", "x" * 10_001])
    | st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
)
KEYS = st.sampled_from([*FIELDS, "rule", "rules", "type", "behavior", "tool_name", "rule_content"])
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=10)


@pytest.mark.slow
@examples(90)
@given(event=st.sampled_from(EVENTS), output=st.dictionaries(KEYS, VALUES), code=st.sampled_from([0, 1, 2]))
def test_json_of_any_shape_gives_a_verdict(event: Event, output: dict[str, Any], code: int) -> None:
    verdict = verdict_on(output, event, code)
    if verdict.arguments is not None:
        assert isinstance(json.loads(verdict.arguments), dict)
        assert event is Event.PRE_TOOL_USE
    if verdict.permission is Permission.DENY or verdict.failure:
        assert (verdict.arguments, verdict.allows, verdict.retry) == (None, (), False)
    if verdict.failure:
        assert verdict.permission is None
    assert all(len(text) < 10_100 for text in (verdict.reason, *verdict.feedback, *verdict.messages))
    assert len(verdict.failure) < 500


@pytest.mark.parametrize(
    "stdout",
    [
        b'{"a":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}",
        b'{"a":' * 1_000_000 + b"1" + b"}" * 1_000_000,
        b'{"decision":"approve","updated_input":{"a":' + b"9" * 100_000 + b"}}",
        b'{"decision":"approve","updated_input":{"a":Infinity}}',
        b'{"decision":"approve\xff"}',
        b"{" + b"\xff" * 10 + b"}",
        b"{\n}\n" * 10_000 + b"}",
        b"\xef\xbb\xbf\xef\xbb\xbf{}",
        b'\x00{"decision":"approve"}',
        b'{"decision":"approve"} {"',
        b'{"decision":1e999}',
        b'{"permission_updates":[' + b'"a",' * 1000 + b'"b"]}',
        b'{"permission_updates":["a b"]}',
        b'{"permission_updates":["Bash(a) && Bash(b)"]}',
        b'{"permission_updates":[{"rules":[{"tool_name":"a)("}]}]}',
        b'{"permission_updates":[{"rules":[{"tool_name":""}]}]}',
    ],
    ids=lambda stdout: repr(stdout[:40]),
)
def test_malicious_output_is_a_failure_and_never_an_approval(stdout: bytes) -> None:
    verdict = read_output(spec(Event.PRE_TOOL_USE), HookResult(Ended.EXITED, 0, stdout))
    assert verdict == Verdict(failure=verdict.failure)
    assert verdict.failure


def test_a_rewrite_that_no_server_can_read_is_repaired() -> None:
    output = b'{"updated_input":{"a":"\\ud800","b":"\\u002d"}}'
    verdict = read_output(spec(Event.PRE_TOOL_USE), HookResult(Ended.EXITED, 0, output))
    assert verdict.arguments == '{"a":"\ufffd","b":"-"}'.encode()


def test_numbers_of_a_rewrite_stay_as_the_hook_spelled_them() -> None:
    numbers = b'{"a":1e400,"b":0.10,"c":1180591620717411303424,"d":-0}'
    verdict = read_output(spec(Event.PRE_TOOL_USE), HookResult(Ended.EXITED, 0, b'{"updated_input":' + numbers + b"}"))
    assert verdict.arguments == numbers


def test_a_replacement_is_a_json_string_whatever_is_in_it() -> None:
    text = 'é "quoted"\n\u2028\x7f\\'
    verdict = verdict_on({"updated_output": text}, Event.POST_TOOL_USE)
    assert verdict.replacement is not None
    assert json.loads(verdict.replacement) == text


@pytest.mark.parametrize("event", [Event.PRE_TOOL_USE, Event.POST_TOOL_USE])
def test_a_long_text_is_cut_once_and_ends_with_the_number_of_missing_characters(event: Event) -> None:
    long = {name: name[0] * 10_007 for name in ("reason", "status_message", "additional_context")}
    verdict = verdict_on({"decision": "block", **long}, event)
    rest = " … [7 more characters cut by hookproxy]"
    assert verdict.reason == "r" * 10_000 + rest
    assert verdict.messages == ("s" * 10_000 + rest,)
    assert verdict.feedback[-1] == "a" * 10_000 + rest
    assert verdict.feedback[:-1] == ((verdict.reason,) if event is Event.POST_TOOL_USE else ())


def test_standard_error_that_is_not_utf8_is_a_reason_anyway() -> None:
    verdict = read_output(spec(Event.PRE_TOOL_USE), HookResult(Ended.EXITED, 2, stderr=b"no \xff\r\nway\r\n"))
    assert verdict.reason == "no \ufffd\nway"
