"""The output that several systems share with Claude Code: any bytes give a verdict, and no doubt is an approval."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import Ended, Event, HookResult, HookSpec, Permission, Verdict

NAMES: Final = ("codex", "droid", "kimi", "qwen")
KEYS: Final = st.sampled_from([
    "continue", "stopReason", "suppressOutput", "systemMessage", "decision", "reason", "hookSpecificOutput",
    "hookEventName", "permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext",
    "updatedMCPToolOutput", "updatedToolOutput", "behavior", "message", "interrupt", "updatedPermissions", "foo",
])  # fmt: skip
WORDS: Final = st.sampled_from(["allow", "approve", "ask", "deny", "block", "PreToolUse", "PostToolUse", "", "\ud800"])
LEAVES: Final = WORDS | st.none() | st.booleans() | st.integers() | st.floats()
VALUES: Final = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=12)
OBJECTS: Final = st.dictionaries(KEYS, VALUES).map(lambda value: json.dumps(value).encode())


def spec(name: str, event: Event) -> HookSpec:
    return HookSpec(name, "f", event, "guard.sh", shell="guard.sh", timeout=60)


def verdict(name: str, event: Event, stdout: bytes = b"", stderr: bytes = b"", code: int = 0) -> Verdict:
    return DIALECTS[name].read_output(spec(name, event), HookResult(Ended.EXITED, code, stdout, stderr))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
@given(code=st.sampled_from([0, 1, 2, 3]), stdout=OBJECTS | st.binary(), stderr=OBJECTS | st.binary())
def test_json_of_any_shape_gives_a_verdict(name: str, code: int, stdout: bytes, stderr: bytes) -> None:
    for event in DIALECTS[name].events.values():
        note(event)
        one = verdict(name, event, stdout, stderr, code)
        if one.failure:
            assert one.permission is not Permission.ALLOW
            assert one.allows == ()
        if one.arguments is not None:
            assert event in (Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST)
            assert isinstance(json.loads(one.arguments), dict)
            assert one.permission is not Permission.DENY
        if one.replacement is not None:
            assert event is Event.POST_TOOL_USE
        assert len(one.failure) < 500


@pytest.mark.parametrize("name", ["droid", "kimi", "qwen"])
@pytest.mark.slow
@given(stdout=OBJECTS | st.binary(), stderr=OBJECTS | st.binary())
def test_exit_code_2_denies_whatever_is_printed(name: str, stdout: bytes, stderr: bytes) -> None:
    one = verdict(name, Event.PRE_TOOL_USE, stdout, stderr, 2)
    assert one.permission is Permission.DENY
    assert one.arguments is None
    assert not one.failure


@pytest.mark.parametrize("name", ["droid", "qwen"])
@pytest.mark.slow
@given(answer=st.dictionaries(KEYS, VALUES), code=st.sampled_from([0, 1, 2]))
def test_a_top_level_denial_is_never_lost(name: str, answer: dict[str, Any], code: int) -> None:
    stdout = json.dumps({**answer, "decision": "block"}).encode()
    for event in (Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST):
        if event in DIALECTS[name].events.values():
            assert verdict(name, event, stdout, code=code).permission is Permission.DENY


@pytest.mark.parametrize("name", ["droid", "qwen"])
@pytest.mark.parametrize(
    "stdout",
    [b'{"decision":"block","decision":"approve"}', b'{"decision":"approve","reason":1}', b'{"decision":"yes"}'],
)
def test_json_that_may_mean_two_things_approves_nothing(name: str, stdout: bytes) -> None:
    one = verdict(name, Event.PRE_TOOL_USE, stdout)
    assert one.permission is None
    assert one.failure


@pytest.mark.parametrize("name", ["droid", "qwen"])
def test_a_background_hook_decides_nothing(name: str) -> None:
    one = HookSpec(name, "f", Event.PRE_TOOL_USE, "g", shell="g", background=True)
    result = HookResult(Ended.EXITED, 0, b'{"decision":"block","systemMessage":"M"}')
    assert DIALECTS[name].read_output(one, result) == Verdict(messages=("M",))


def test_a_decision_with_invalid_rules_is_a_failure_and_no_approval() -> None:
    decision = {"behavior": "allow", "updatedPermissions": [{"type": "addRules", "behavior": "deny"}]}
    stdout = json.dumps({"hookSpecificOutput": {"decision": decision}}).encode()
    one = verdict("qwen", Event.PERMISSION_REQUEST, stdout)
    assert one.permission is None
    assert "not supported" in one.failure
