"""Where failures refuse, only a clean verdict of its system lets a call pass. What systems do by default is a table."""

from __future__ import annotations

from time import perf_counter
from typing import Final

import pytest
from msgspec.structs import replace

from hookproxy.dialects.dialect import Group
from hookproxy.dialects.own import OWN
from hookproxy.hooks.read_verdict import read_verdict
from hookproxy.model.decision import Comments, Proceed, Refuse
from hookproxy.model.hooks import Ended, Event, HookResult, HookRun
from hookproxy.model.settings import OnFailure, Settings, ToolNames
from hookproxy.policy import decide
from tests.hooks.broken_outputs import (
    DENIALS,
    all_dialects,
    broken_outputs,
    decision_on,
    denial_last,
    event_names,
    group_of,
)
from tests.support.proxy_rig import hook

ALL: Final = all_dialects()
DENY: Final = Settings(on_failure=OnFailure.DENY)


def with_rule(group: Group, on_failure: OnFailure) -> Group:
    """The group, whose hook has an `on_failure` of its own."""
    return replace(group, hooks=tuple(replace(spec, on_failure=on_failure) for spec in group.hooks))


def test_there_are_enough_broken_outputs_and_a_denial_of_each_system() -> None:
    assert DENIALS.keys() == ALL.keys()
    assert sum(map(len, broken_outputs(DENIALS["claude"]).values())) >= 50


@pytest.mark.parametrize("name", ALL)
def test_every_broken_output_of_a_hook_refuses_the_call_if_failures_refuse(name: str) -> None:
    passed = [
        (event, what)
        for event in event_names(ALL[name])
        for runs in broken_outputs(DENIALS[name]).values()
        for what, result in runs.items()
        if (ALL[name].events[event], what)
        != (Event.PERMISSION_REQUEST, "a decision that is null")  # the person decides
        for group, settings in (
            (group_of(ALL[name], None, event), DENY),
            (group_of(ALL[name], OnFailure.DENY, event), Settings()),
            (with_rule(group_of(ALL[name], OnFailure.ALLOW, event), OnFailure.DENY), Settings()),
        )
        if not isinstance(decision_on(group, result, settings), Refuse)
    ]
    assert passed == []


@pytest.mark.parametrize("type_name", ["http", "mcp_tool", "python", "worker"])
def test_the_same_holds_for_hooks_of_every_handler_type(type_name: str) -> None:
    for name in ("claude", "own", "codex", "copilot", "vscode"):
        for runs in broken_outputs(DENIALS[name]).values():
            for what, result in runs.items():
                group = group_of(ALL[name], OnFailure.DENY, type=type_name)
                assert isinstance(decision_on(group, result), Refuse), what


@pytest.mark.parametrize("name", ["own", "claude", "cursor", "goose"])
def test_a_hook_whose_own_field_refuses_after_failures_is_strict_unless_the_configuration_says_otherwise(
    name: str,
) -> None:
    for runs in broken_outputs(DENIALS[name]).values():
        for what, result in runs.items():
            assert isinstance(decision_on(group_of(ALL[name], fails_closed=True), result), Refuse), what
    lax = with_rule(group_of(ALL["own"], fails_closed=True), OnFailure.ALLOW)
    assert isinstance(decision_on(lax, HookResult(Ended.EXITED, 0, b'log\n{"decision":"block"}')), Proceed)


CLEAN: Final = {
    "nothing": b"",
    "white space": b"\r\n \n",
    "text": b"checked 3 files in {src}: all fine [ok]\n",
    "a log": b"[INFO] 2026-01-01 10:00:00 guard: the command is allowed\n[INFO] done\n",
    "an empty object": b"{}\n",
    "an approval of another system": b'{"permission": "allow", "continue": true}',
    "other members": b'{"version": 1, "took": 0.5, "checked": ["a", "b"], "error": null}',
    "its own document": b'{"hook_event_name":"PreToolUse","permission_mode":"default","tool_name":"x",'
    b'"tool_input":{"action":"deny","command":"ls"}}',
}
REQUESTS: Final = {
    "lime": b'{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"R"}}',
    "docker-agent@current": b'{"hook_specific_output":{"permission_decision":"ask","updated_input":{"a":1}}}',
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_permission_hook_may_leave_the_decision_to_the_person(name: str) -> None:
    event_name = next(spelled for spelled, event in ALL[name].events.items() if event is Event.PERMISSION_REQUEST)
    group = group_of(ALL[name], OnFailure.DENY, event_name)
    assert isinstance(decision_on(group, HookResult(Ended.EXITED, 0, REQUESTS[name])), Proceed)
    leaves = b'{"decision":{"behavior":"deny"}}'
    assert isinstance(decision_on(group, HookResult(Ended.EXITED, 0, leaves)), Refuse)


TEXT_FAILS: Final = {
    "antigravity": tuple(CLEAN),
    "cline": ("text", "a log"),
    "code-assist": ("text", "a log"),
    "codex": ("a log", "an approval of another system", "other members", "its own document"),
    "claw@current": ("a log",),
    "cursor": ("text", "a log"),
    "goose": tuple(name for name in CLEAN if name not in ("nothing", "white space")),
    "opencode": tuple(name for name in CLEAN if name != "an empty object"),
    "vibe": ("text", "a log"),
}
"""What these systems do not accept themselves, as their sources say. Antigravity accepts nothing but a decision. For a
plugin of OpenCode a program of ours prints, which prints nothing else."""


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("what", CLEAN)
def test_a_clean_verdict_lets_the_call_pass_although_failures_refuse(name: str, what: str) -> None:
    group = group_of(ALL[name], OnFailure.DENY)
    decision = decision_on(group, HookResult(Ended.EXITED, 0, CLEAN[what], b"guard: checked /src\n"))
    assert isinstance(decision, Proceed) is (what not in TEXT_FAILS.get(name, ())), decision


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("copilot", b'{"permissionDecision":"allow","behavior":null}'),
        ("crush", b'{"decision":"allow","hookSpecificOutput":{"permissionDecision":null}}'),
        ("lime", b'{"decision":null,"hookSpecificOutput":{"permissionDecision":"allow"}}'),
    ],
)
def test_an_approval_is_clean_although_another_member_has_a_null_decision(name: str, output: bytes) -> None:
    decision = decision_on(group_of(ALL[name], OnFailure.DENY), HookResult(Ended.EXITED, 0, output))
    assert isinstance(decision, Proceed)


STRICT: Final = ("cascade", "claw", "iflow", "kiro", "codex", "opencode")
"""Systems that read no such JSON: it is a failure."""


@pytest.mark.parametrize("name", [name for name in ALL if name not in STRICT])
def test_of_two_equal_members_the_last_one_denies_in_every_mode(name: str) -> None:
    for on_failure in OnFailure:
        decision = decision_on(group_of(ALL[name], on_failure), denial_last(DENIALS[name]))
        assert isinstance(decision, Refuse)


@pytest.mark.parametrize(
    ("name", "stdout"),
    [
        ("crush", b'{"decision":"Deny"}'),
        ("crush", b'{"decision":"BLOCK"}'),
        ("crush", b'{"Decision":"deny"}'),
        ("crush", b'{"hookSpecificOutput":{"PermissionDecision":"Deny"}}'),
        ("crush", b'{"Halt":true}'),
        ("docker-agent", b'{"Decision":"block"}'),
        ("docker-agent@current", b'{"Hook_Specific_Output":{"PERMISSION_DECISION":"deny"}}'),
        ("docker-agent@current", b'{"Continue":false}'),
        ("claude", b'\xef\xbb\xbf{"decision":"block"}\xef\xbb\xbf\n'),
        ("claude", b'{"decision":"approve","decision":"block","x":{"a":1,"a":2}}'),
    ],
)
def test_what_the_system_itself_reads_as_a_denial_is_one_in_every_mode(name: str, stdout: bytes) -> None:
    for on_failure in OnFailure:
        group = group_of(ALL[name], on_failure)
        assert isinstance(decision_on(group, HookResult(Ended.EXITED, 0, stdout)), Refuse)


@pytest.mark.slow
def test_what_a_hook_prints_is_looked_at_in_linear_time() -> None:
    group = group_of(ALL["iflow"], OnFailure.DENY)  # reads no JSON, so that all of it is looked at
    for sign in (b"A", b"{", b'"', b"x: 1: ", b"{a", b" \n", b"a.Error", b"[ ", b"{ "):
        stdout = sign * (1_000_000 // len(sign))
        begun = perf_counter()
        decision_on(group, HookResult(Ended.EXITED, 0, stdout, stdout))
        assert perf_counter() - begun < 20  # a quadratic pattern takes hours


OWN_POST: Final = replace(
    hook("x", Event.POST_TOOL_USE), dialect="own", source="hookproxy.toml", fails_closed=True, withholds=True
)
BROKEN_RESULTS: Final = [
    b'{"decision": "blo',
    b'{"hookSpecificOutput": {"updatedToolOutput": "clean"}',
    b'checking\n{"decision": "block", "reason": "secret"}',
    b'```json\n{"decision": "block"}\n```',
    b'[{"decision": "block"}]',
    b'{"decision": "block"}{"decision": "block"}',
    b'{"decision": "block", "decision": "approve"}',
    '{"decision": "block"}'.encode("utf-16"),
]


def after_call(printed: bytes, on_failure: OnFailure = OnFailure.DIALECT) -> Comments:
    own = Group(OWN, "hookproxy.toml", (OWN_POST,), ToolNames.BARE)
    settings = Settings(on_failure=on_failure)
    result = HookResult(Ended.EXITED, 0, printed)
    return decide.comments([HookRun(OWN_POST, result, read_verdict(own, OWN_POST, result, settings))], settings, None)


@pytest.mark.parametrize("printed", BROKEN_RESULTS)
def test_a_result_is_withheld_if_a_hook_of_ours_prints_a_verdict_that_cannot_be_read(printed: bytes) -> None:
    comments = after_call(printed)
    assert comments.failed or comments.withheld


@pytest.mark.parametrize(
    "printed",
    [
        b"",
        b"formatted 3 files\n",
        b"a.py:3: error: x = {1: 2}\nTraceback (most recent call last):",
        b"[1, 2]",
        b"[x] done {ok}",
        b"\xff\xfe",
        b'{"systemMessage": "done"}',
        b"null",
        b"blocked 3 ads",
    ],
)
def test_whatever_else_a_hook_prints_after_a_call_withholds_nothing(printed: bytes) -> None:
    comments = after_call(printed)
    assert not comments.failed
    assert not comments.withheld
