"""What a Docker Agent hook says: the table of cases/docker_agent.toml, and that reading is total."""

import json
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from hookproxy.dialects.dialect import Dialect
from hookproxy.dialects.docker_agent.input import DOCKER_AGENT, DOCKER_AGENT_CURRENT
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import Ended, Event, HookResult, HookSpec, Permission, Verdict
from tests.dialects.tables import result, table, verdict

CASES = table("docker_agent")
BOTH = pytest.mark.parametrize("dialect", [DOCKER_AGENT, DOCKER_AGENT_CURRENT], ids=lambda dialect: dialect.name)


def spec(
    dialect: Dialect, event: Event, event_name: str = "", traits: tuple[str, ...] = (), background: bool = False
) -> HookSpec:
    return HookSpec(
        dialect.name,
        "agent.yaml",
        event,
        "guard.sh",
        shell="./guard.sh",
        timeout=dialect.default_timeout,
        background=background,
        event_name=event_name,
        traits=frozenset(traits),
    )


def read_output(dialect: Dialect, event: Event, stdout: bytes, code: int = 0, stderr: bytes = b"") -> Verdict:
    return dialect.read_output(spec(dialect, event), HookResult(Ended.EXITED, code, stdout, stderr))


@pytest.mark.parametrize(
    "case", CASES["result"], ids=lambda case: f"{case['dialect']}: {case['event']}: {case['says']}"
)
def test_a_result_is_read_as_the_table_says(case: dict[str, Any]) -> None:
    dialect = DIALECTS[case["dialect"]]
    asked = spec(dialect, Event(case["event"]), case.get("event_name", ""), case.get("traits", ()))
    assert dialect.read_output(asked, result(case)) == verdict(case)


def test_every_row_of_the_table_names_its_source() -> None:
    rows = CASES["result"] + CASES["occasion"]
    assert all(row["says"] and row["source"] for row in rows)
    assert len({(row["dialect"], row["event"], row["says"]) for row in rows}) == len(rows)


@BOTH
def test_a_hook_in_the_background_only_tells_people(dialect: Dialect) -> None:
    aside = spec(dialect, Event.PRE_TOOL_USE, background=True)
    answer = b'{"decision": "block", "continue": false, "system_message": "M"}'
    assert dialect.read_output(aside, HookResult(Ended.EXITED, 0, answer)) == Verdict(messages=("M",))
    assert dialect.read_output(aside, HookResult(Ended.EXITED, 1)) == Verdict(failure="exited with status 1")


# --- whatever is printed ---


@BOTH
@given(
    result=st.builds(
        HookResult,
        ended=st.sampled_from(Ended),
        code=st.integers(-70, 300),
        stdout=st.binary() | st.text().map(lambda text: b"{" + text.encode() + b"}"),
        stderr=st.binary(),
        cut=st.booleans(),
    ),
    strict=st.booleans(),
)
def test_reading_is_total_for_any_bytes(dialect: Dialect, result: HookResult, strict: bool) -> None:
    for event in Event:
        note(event)
        asked = spec(dialect, event, traits=("strict",) if strict else ())
        heard = dialect.read_output(asked, result)
        assert heard.failure == heard.failure.strip()
        if result.ended is not Ended.EXITED or result.code not in (0, 2):
            assert heard == Verdict(failure=heard.failure, fails_closed=heard.fails_closed)
            assert heard.failure
        elif result.code == 2 and event is Event.PRE_TOOL_USE:
            assert heard.permission is Permission.DENY


KEYS = st.sampled_from([
    "continue", "stop_reason", "suppress_output", "system_message", "decision", "reason", "hook_specific_output",
    "hook_event_name", "permission_decision", "permission_decision_reason", "updated_input", "additional_context",
    "updated_tool_response", "metadata", "unknown",
])  # fmt: skip
WORDS = st.sampled_from(["allow", "deny", "ask", "block", "", "pre_tool_use"])
LEAVES = WORDS | st.none() | st.booleans() | st.integers() | st.floats()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=10)
LONG = st.just("x" * 10_001)


@BOTH
@given(answer=st.dictionaries(KEYS, VALUES | LONG), code=st.sampled_from([0, 1, 2]), strict=st.booleans())
def test_reading_is_total_for_answers_of_any_shape(
    dialect: Dialect, answer: dict[str, Any], code: int, strict: bool
) -> None:
    for event in Event:
        note(event)
        asked = spec(dialect, event, traits=("strict",) if strict else ())
        heard = dialect.read_output(asked, HookResult(Ended.EXITED, code, json.dumps(answer).encode()))
        if heard.arguments is not None:
            assert isinstance(json.loads(heard.arguments), dict)
            assert heard.permission is not Permission.DENY
        if heard.replacement is not None:
            assert isinstance(json.loads(heard.replacement), str)
        assert all(len(text) < 10_100 for text in (heard.reason, *heard.feedback, *heard.messages))
        assert len(heard.failure) < 500


@BOTH
@pytest.mark.parametrize(
    "stdout",
    [
        b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
        b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
        b'{"hook_specific_output":{"updated_input":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_002,
        b'{"decision":"allow","reason":' + b"9" * 100_000 + b"}",
        b'{"decision":"allow","\\ud800":NaN}',
        b"{" + b"\xff" * 10 + b"}",
        b"{\n}\n" * 10_000 + b"}",
        b'{"decision":"allow"',
        b'{"decision":"allow"}{"decision":"allow"}',
        b'{"a":1,"a":1}',
    ],
    ids=lambda stdout: stdout[:20].decode(errors="replace"),
)
def test_output_made_to_hurt_is_survived_and_never_consent(dialect: Dialect, stdout: bytes) -> None:
    heard = read_output(dialect, Event.PRE_TOOL_USE, stdout)
    assert heard == Verdict(failure=heard.failure, fails_closed=dialect is DOCKER_AGENT_CURRENT)
    assert heard.failure
    blocked = read_output(dialect, Event.PRE_TOOL_USE, stdout, code=2, stderr=b"S")
    assert (blocked.permission, blocked.reason, blocked.failure) == (Permission.DENY, "S", "")


@BOTH
def test_a_long_text_is_cut_and_says_so(dialect: Dialect) -> None:
    answer = {"decision": "block", "reason": "r" * 10_007, "system_message": "m" * 10_000}
    heard = read_output(dialect, Event.PRE_TOOL_USE, json.dumps(answer).encode())
    assert heard.reason == "r" * 10_000 + " … [7 more characters cut by hookproxy]"
    assert heard.messages == ("m" * 10_000,)


@BOTH
def test_standard_error_that_is_no_text_is_a_reason_all_the_same(dialect: Dialect) -> None:
    assert read_output(dialect, Event.PRE_TOOL_USE, b"", 2, b"no \xff\r\nway\r\n").reason == "no \ufffd\nway"


@BOTH
def test_a_denial_with_half_a_surrogate_pair_in_its_reason_is_a_denial(dialect: Dialect) -> None:
    heard = read_output(dialect, Event.PRE_TOOL_USE, b'{"decision":"block","reason":"no \\ud83d"}')
    assert (heard.permission, heard.reason) == (Permission.DENY, "no \ufffd")


@BOTH
def test_a_rewrite_is_taken_as_it_was_spelled(dialect: Dialect) -> None:
    patch = '{"n": 1e400, "big": 1180591620717411303424, "s": "\\u0061\\/ü"}'
    answer = '{"hook_specific_output": {"updated_input": ' + patch + "}}"
    heard = read_output(dialect, Event.PRE_TOOL_USE, answer.encode())
    assert heard.arguments is not None
    assert json.loads(heard.arguments) == json.loads(patch)
    assert b"1e400" in heard.arguments
    assert b"1180591620717411303424" in heard.arguments
