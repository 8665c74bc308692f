"""The verdicts on Docker Agent hooks' output: the table of cases/docker_agent.toml; any output gives a verdict."""

import json
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from hookproxy.dialects.dialect import Dialect
from hookproxy.dialects.docker_agent import CURRENT as DOCKER_AGENT_CURRENT
from hookproxy.dialects.docker_agent import DIALECT as DOCKER_AGENT
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import Ended, Event, HookResult, HookSpec, Permission, Verdict
from tests.dialects.tables import result, table
from tests.dialects.tables import verdict as expected_verdict

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


def verdict_on(dialect: Dialect, event: Event, stdout: bytes, code: int = 0, stderr: bytes = b"") -> Verdict:
    return dialect.read_output(spec(dialect, event), HookResult(Ended.EXITED, code, stdout, stderr))


@pytest.mark.parametrize(
    "case", CASES["output"], ids=lambda case: f"{case['dialect']}: {case['event']}: {case['behaviour']}"
)
def test_output_gives_the_verdict_of_the_table(case: dict[str, Any]) -> None:
    dialect = DIALECTS[case["dialect"]]
    hook = spec(dialect, Event(case["event"]), case.get("event_name", ""), case.get("traits", ()))
    assert dialect.read_output(hook, result(case)) == expected_verdict(case)


def test_every_row_of_the_table_names_its_behaviour_and_source() -> None:
    rows = CASES["output"] + CASES["input"]
    assert all(row["behaviour"] and row["source"] for row in rows)
    assert len({(row["dialect"], row["event"], row["behaviour"]) for row in rows}) == len(rows)


@BOTH
def test_a_background_hook_only_has_messages(dialect: Dialect) -> None:
    background_hook = spec(dialect, Event.PRE_TOOL_USE, background=True)
    output = b'{"decision": "block", "continue": false, "system_message": "M"}'
    assert dialect.read_output(background_hook, HookResult(Ended.EXITED, 0, output)) == Verdict(messages=("M",))
    assert dialect.read_output(background_hook, HookResult(Ended.EXITED, 1)) == Verdict(failure="exited with status 1")


# --- any output ---


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
def test_any_bytes_give_a_verdict(dialect: Dialect, result: HookResult, strict: bool) -> None:
    for event in Event:
        note(event)
        hook = spec(dialect, event, traits=("strict",) if strict else ())
        verdict = dialect.read_output(hook, result)
        assert verdict.failure == verdict.failure.strip()
        if result.ended is not Ended.EXITED or result.code not in (0, 2):
            assert verdict == Verdict(failure=verdict.failure, fails_closed=verdict.fails_closed)
            assert verdict.failure
        elif result.code == 2 and event is Event.PRE_TOOL_USE:
            assert verdict.permission is Permission.DENY


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
@given(output=st.dictionaries(KEYS, VALUES | LONG), code=st.sampled_from([0, 1, 2]), strict=st.booleans())
def test_json_of_any_shape_gives_a_verdict(dialect: Dialect, output: dict[str, Any], code: int, strict: bool) -> None:
    for event in Event:
        note(event)
        hook = spec(dialect, event, traits=("strict",) if strict else ())
        verdict = dialect.read_output(hook, HookResult(Ended.EXITED, code, json.dumps(output).encode()))
        if verdict.arguments is not None:
            assert isinstance(json.loads(verdict.arguments), dict)
            assert verdict.permission is not Permission.DENY
        if verdict.replacement is not None:
            assert isinstance(json.loads(verdict.replacement), str)
        assert all(len(text) < 10_100 for text in (verdict.reason, *verdict.feedback, *verdict.messages))
        assert len(verdict.failure) < 500


@BOTH
@pytest.mark.parametrize(
    "stdout",
    [
        b'{"a":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}",
        b'{"a":' * 1_000_000 + b"1" + b"}" * 1_000_000,
        b'{"hook_specific_output":{"updated_input":' + b'{"a":' * 1_000_000 + b"1" + b"}" * 1_000_002,
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
def test_malicious_output_is_a_failure_and_never_an_approval(dialect: Dialect, stdout: bytes) -> None:
    verdict = verdict_on(dialect, Event.PRE_TOOL_USE, stdout)
    assert verdict == Verdict(failure=verdict.failure, fails_closed=dialect is DOCKER_AGENT_CURRENT)
    assert verdict.failure
    blocked = verdict_on(dialect, Event.PRE_TOOL_USE, stdout, code=2, stderr=b"S")
    assert (blocked.permission, blocked.reason, blocked.failure) == (Permission.DENY, "S", "")


@BOTH
def test_a_long_text_is_cut_and_ends_with_the_number_of_missing_characters(dialect: Dialect) -> None:
    output = {"decision": "block", "reason": "r" * 10_007, "system_message": "m" * 10_000}
    verdict = verdict_on(dialect, Event.PRE_TOOL_USE, json.dumps(output).encode())
    assert verdict.reason == "r" * 10_000 + " … [7 more characters cut by hookproxy]"
    assert verdict.messages == ("m" * 10_000,)


@BOTH
def test_standard_error_that_is_not_utf8_is_a_reason_anyway(dialect: Dialect) -> None:
    assert verdict_on(dialect, Event.PRE_TOOL_USE, b"", 2, b"no \xff\r\nway\r\n").reason == "no \ufffd\nway"


@BOTH
def test_a_denial_with_half_a_surrogate_pair_in_its_reason_is_a_denial(dialect: Dialect) -> None:
    verdict = verdict_on(dialect, Event.PRE_TOOL_USE, b'{"decision":"block","reason":"no \\ud83d"}')
    assert (verdict.permission, verdict.reason) == (Permission.DENY, "no \ufffd")


@BOTH
def test_a_rewrite_keeps_the_spelling_of_the_hook(dialect: Dialect) -> None:
    patch = '{"n": 1e400, "big": 1180591620717411303424, "s": "\\u0061\\/ü"}'
    output = '{"hook_specific_output": {"updated_input": ' + patch + "}}"
    verdict = verdict_on(dialect, Event.PRE_TOOL_USE, output.encode())
    assert verdict.arguments is not None
    assert json.loads(verdict.arguments) == json.loads(patch)
    assert b"1e400" in verdict.arguments
    assert b"1180591620717411303424" in verdict.arguments


def test_the_fields_are_those_of_the_pages() -> None:
    members = {
        "continue", "stop_reason", "suppress_output", "system_message", "decision", "reason",
        *(f"hook_specific_output.{name}" for name in (
            "hook_event_name", "permission_decision", "permission_decision_reason", "updated_input",
        )),
    }  # fmt: skip
    assert set(DOCKER_AGENT.output_fields) == members
    newer = {"additional_context", "updated_tool_response", "metadata", "summary"}
    assert set(DOCKER_AGENT_CURRENT.output_fields) == members | {f"hook_specific_output.{name}" for name in newer}
