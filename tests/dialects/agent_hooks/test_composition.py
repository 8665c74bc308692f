"""How the verdicts of several hooks of type "agent-hooks" become one, by the profiles of AGENT-HOOKS-0.1."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from hookproxy.config.composition import composed
from hookproxy.dialects.agent_hooks import AGENT_HOOKS
from hookproxy.dialects.agent_hooks_verdicts import NAME, real_output, with_result
from hookproxy.dialects.own import own_hook
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import (
    Ended,
    Event,
    EventContext,
    HookResult,
    HookRun,
    HookSpec,
    Order,
    Outcome,
    Permission,
    Session,
    Verdict,
)

ALLOW: Final[dict[str, object]] = {"decision": "allow"}
DENY: Final[dict[str, object]] = {"decision": "deny", "reason": "corp:no"}
ASK: Final[dict[str, object]] = {**DENY, "approval": {}}
REWRITE: Final[dict[str, object]] = {"decision": "transform", "transform": {"path": "$target.path", "value": "/b"}}


def spec(event: Event) -> HookSpec:
    return own_hook({"type": "agent-hooks", "command": "guard"}, event, "/etc/hookproxy.toml", "/etc")


def verdicts(table: dict[str, object], *outputs: object, event: Event = Event.PRE_TOOL_USE) -> list[Verdict]:
    """What counts of these outputs of hooks that all ran."""
    dialect = composed(table, "hookproxy.toml: hooks.composition")
    results = [HookResult(Ended.EXITED, 0, json.dumps(output).encode()) for output in outputs]
    runs = [HookRun(spec(event), result, dialect.read_output(spec(event), result)) for result in results]
    return [run.verdict for run in dialect.settle(runs)]


def permissions(table: dict[str, object], *outputs: object) -> list[Permission]:
    return [verdict.permission for verdict in verdicts(table, *outputs) if verdict.permission is not None]


def test_no_hook_is_left_out_by_default() -> None:
    assert composed({}, "") is AGENT_HOOKS
    assert AGENT_HOOKS.order is Order.PIPELINE


@pytest.mark.parametrize(
    ("table", "order"),
    [
        ({"profile": "sequential/first_deny"}, Order.PIPELINE_UNTIL_ASKED),
        ({"profile": "sequential/first_deny", "on_approval": "resume"}, Order.PIPELINE_UNTIL_DENIED),
        ({"profile": "parallel/strictest"}, Order.TOGETHER),
        ({"profile": "parallel/unanimous"}, Order.TOGETHER),
    ],
)
def test_a_profile_says_in_which_order_hooks_run(table: dict[str, object], order: Order) -> None:
    assert composed(table, "").order is order


STRICTEST: Final[dict[str, object]] = {"profile": "parallel/strictest"}


def test_one_rewrite_counts_and_two_of_the_same_input_conflict() -> None:
    assert [verdict.arguments is not None for verdict in verdicts(STRICTEST, ALLOW, REWRITE)] == [False, True]
    conflict = verdicts(STRICTEST, REWRITE, REWRITE)
    assert [verdict.arguments for verdict in conflict] == [None, None, None]
    assert (conflict[-1].permission, conflict[-1].reason) == (Permission.DENY, "host_error:transform_conflict")
    asking = {**STRICTEST, "on_transform_conflict": "approval"}
    assert permissions(asking, REWRITE, REWRITE) == [Permission.ASK]


def test_a_rewrite_beside_a_request_for_approval_does_not_count() -> None:
    assert [verdict.arguments for verdict in verdicts(STRICTEST, REWRITE, ASK)] == [None, None]


def test_two_rewrites_of_one_result_hide_it() -> None:
    rewrite = {"decision": "transform", "transform": {"path": "$target", "value": "x"}}
    *_, conflict = verdicts(STRICTEST, rewrite, rewrite, event=Event.POST_TOOL_USE)
    assert (conflict.hides, conflict.replacement) == (True, None)


@pytest.mark.parametrize("output", [DENY, ASK, REWRITE])
def test_whatever_not_all_allow_is_a_disagreement(output: dict[str, object]) -> None:
    table: dict[str, object] = {"profile": "parallel/unanimous"}
    assert permissions(table, ALLOW, output) == [Permission.DENY]
    assert permissions({**table, "on_disagreement": "approval"}, ALLOW, output) == [Permission.ASK]
    assert permissions(table, ALLOW, ALLOW) == []


def test_a_failure_is_no_disagreement_that_a_person_could_lift() -> None:
    [verdict] = verdicts({"profile": "parallel/unanimous", "on_disagreement": "approval"}, {"decision": "maybe"})
    assert verdict.failure
    assert verdict.permission is None


@pytest.mark.parametrize(
    ("table", "profile"),
    [
        ({"on_approval": "resume"}, "sequential/first_deny"),
        ({"profile": "parallel/strictest", "on_disagreement": "deny"}, "parallel/unanimous"),
        ({"profile": "parallel/unanimous", "on_transform_conflict": "deny"}, "parallel/strictest"),
    ],
)
def test_a_key_that_the_profile_does_not_consult_is_refused(table: dict[str, object], profile: str) -> None:
    with pytest.raises(ConfigError, match="is not for the profile") as caught:
        composed(table, "hookproxy.toml: hooks.composition")
    assert profile in caught.value.hint


CALL: Final = EventContext(Event.POST_TOOL_USE, Session("s", "files", "/", "/"), tool="t", tool_name="t", at=1.0)
OUTCOMES: Final = {
    "text": Outcome(b'[{"type":"text","text":"a"}]', has_result=True),
    "blocks": Outcome(b'[{"type":"image","data":"a","mimeType":"b"}]', has_result=True),
    "structured": Outcome(
        b'[{"type":"text","text":"{}"}]', has_result=True, structured=b'{"a":1}', repeats_structured=True
    ),
    "whole": Outcome(
        b"[]", has_result=True, structured=b'{"a":1}', whole=b'{"content":[],"structuredContent":{"a":1}}'
    ),
    "error": Outcome(error="a"),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_hook_after_a_rewrite_gets_the_result_as_that_has_left_it(name: str) -> None:
    context = EventContext(**{**{key: getattr(CALL, key) for key in CALL.__struct_fields__}, "outcome": OUTCOMES[name]})
    left: object = {"a": [2]} if name == "structured" else "b"
    transform = json.dumps({"path": "$target", "value": left}).encode()
    seen = json.loads(
        AGENT_HOOKS.write_input(spec(context.event), with_result(context, real_output(context, transform))).stdin
    )
    assert seen["target"] == (left if name != "whole" else {"content": [{"type": "text", "text": "b"}]})


REDACTS: Final = """
import json, sys
target = json.load(sys.stdin)["target"]
value = target.replace(sys.argv[1], "[redacted]")
print(json.dumps({"decision": "transform", "transform": {"path": "$target", "value": value}}))
"""


@pytest.mark.slow
def test_two_hooks_that_redact_a_result_both_do(tmp_path: Path) -> None:
    (tmp_path / "redact.py").write_text(REDACTS)
    hook = '[[hooks.PostToolUse]]\ntype = "agent-hooks"\nargv = ["{}", "redact.py", "{}"]\n'
    (tmp_path / "hookproxy.toml").write_text("".join(hook.format(sys.executable, word) for word in ("one", "two")))
    result = json.dumps({"content": [{"type": "text", "text": "one two three"}]})
    line = [sys.executable, "-m", "hookproxy", "try", "t", "{}", "--config", "hookproxy.toml", "--result", result]
    ended = subprocess.run([*line, "--json"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert "[redacted] [redacted] three" in ended.stdout
    assert NAME in ended.stdout
