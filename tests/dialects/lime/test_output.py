"""What a Lime hook says: the table of cases/lime.toml, and that reading is total."""

import json
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from hookproxy.dialects.lime.hook_file import LIME
from hookproxy.dialects.lime.output import FIELDS, read_output
from hookproxy.model.hooks import Ended, Event, HookResult, HookSpec, Permission, Verdict
from tests.dialects.tables import result, table, verdict

CASES = table("lime")
DECIDING = (Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST)


def spec(event: Event, background: bool = False) -> HookSpec:
    return HookSpec("lime", "s.json", event, "guard.sh", shell="guard.sh", timeout=60, background=background)


def heard(stdout: bytes | dict[str, Any], event: Event = Event.PRE_TOOL_USE, code: int = 0) -> Verdict:
    output = stdout if isinstance(stdout, bytes) else json.dumps(stdout).encode()
    return read_output(spec(event), HookResult(Ended.EXITED, code, output))


@pytest.mark.parametrize("case", CASES["result"], ids=lambda case: f"{case['event']}: {case['says']}")
def test_a_result_is_read_as_the_table_says(case: dict[str, Any]) -> None:
    said = read_output(spec(Event(case["event"]), case.get("background", False)), result(case))
    assert said == verdict(case)


def test_every_row_of_the_table_names_its_source() -> None:
    rows = CASES["result"] + CASES["occasion"]
    assert all(row["says"] and row["source"] for row in rows)
    assert len({(row["event"], row["says"]) for row in rows}) == len(rows)


def test_every_event_and_every_field_of_the_page_has_a_row() -> None:
    assert {row["event"] for row in CASES["occasion"]} == set(LIME.events)
    answers = " ".join(row.get("stdout", "") for row in CASES["result"])
    assert all(f'"{field.rpartition(".")[2]}"' in answers for field in FIELDS)


@given(
    code=st.integers(-70, 300),
    ended=st.sampled_from(Ended),
    stdout=st.binary() | st.text().map(lambda text: b"{" + text.encode() + b"}"),
    stderr=st.binary(),
    cut=st.booleans(),
)
def test_reading_is_total_for_any_bytes(code: int, ended: Ended, stdout: bytes, stderr: bytes, cut: bool) -> None:
    for event in Event:
        note(event)
        said = read_output(spec(event), HookResult(ended, code, stdout, stderr, cut=cut))
        assert said.failure == said.failure.strip()
        if ended is Ended.EXITED and code == 2 and event in DECIDING:
            assert said.permission is Permission.DENY
        elif ended is not Ended.EXITED or code:
            assert said.failure
            assert said.permission is None


KEYS = st.sampled_from([
    "continue", "systemMessage", "decision", "reason", "interrupt", "hookSpecificOutput", "permissionDecision",
    "permissionDecisionReason", "updatedInput", "updatedPermissions", "additionalContext", "hookEventName",
])  # fmt: skip
LEAVES = st.sampled_from(["allow", "deny", "ask", "block"]) | st.none() | st.booleans() | st.integers() | st.floats()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=10)
LONG = st.just("x" * 10_001)


@given(answer=st.dictionaries(KEYS, VALUES | LONG), code=st.sampled_from([0, 1, 2]))
def test_reading_is_total_for_answers_of_any_shape(answer: dict[str, Any], code: int) -> None:
    for event in Event:
        note(event)
        said = heard(answer, event, code)
        if said.arguments is not None:
            assert isinstance(json.loads(said.arguments), dict)
            assert (event, said.permission) != (event, Permission.DENY)
            assert event is Event.PRE_TOOL_USE
        if said.stop and event in DECIDING:
            assert said.permission is Permission.DENY
        if event not in DECIDING:
            assert (said.permission, said.allows) == (None, ())
        if said.failure:
            assert said.permission is not Permission.ALLOW
            assert said.allows == ()
        assert all(len(text) < 10_100 for text in (said.reason, *said.feedback, *said.messages, *said.allows))
        assert len(said.failure) < 500


@pytest.mark.parametrize(
    "stdout",
    [
        b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"hookSpecificOutput":{"updatedInput":{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}}}",
        b'{"a":Infinity}',
        b"{" + b"\xff" * 10 + b"}",
        b"{\n}\n" * 10_000 + b"}",
        b"{" * 1_000_000,
    ],
    ids=["lists", "objects", "in arguments", "infinity", "no UTF-8", "lines", "braces"],
)
def test_output_made_to_hurt_is_survived_and_never_consent(stdout: bytes) -> None:
    said = heard(stdout)
    assert said.failure
    assert said == Verdict(failure=said.failure)
    denied = heard(stdout, code=2)
    assert denied.permission is Permission.DENY
    assert denied.messages == (said.failure,)


@pytest.mark.parametrize("stdout", [b'{"a":' + b"9" * 100_000 + b"}", b'{"\\ud800":1}', b'{"":[{"reason":1}]}'])
def test_odd_members_that_the_page_does_not_name_say_nothing(stdout: bytes) -> None:
    assert heard(stdout) == Verdict()


def test_a_long_text_is_cut_and_says_so() -> None:
    said = heard({"decision": "block", "reason": "r" * 10_007})
    assert said.reason == "r" * 10_000 + " … [7 more characters cut by hookproxy]"
    assert heard(b"x" * 10_001, code=2).reason.endswith("[1 more characters cut by hookproxy]")


def test_standard_error_that_is_no_text_is_a_reason_all_the_same() -> None:
    denied = read_output(spec(Event.PRE_TOOL_USE), HookResult(Ended.EXITED, 2, stderr=b"no \xff\r\nway\r\n"))
    assert denied.reason == "no \ufffd\nway"
