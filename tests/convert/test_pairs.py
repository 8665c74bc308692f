"""A hook of any system, run by any agent: what its own system refuses or asks about, the agent does as well."""

from __future__ import annotations

import json
import subprocess
from typing import Final

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.convert.run_hook import ForeignHook, run_hooks
from hookproxy.dialects.agent_side import Can, agent_side, names
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import Ended, Event, HookResult, HookSpec, Permission
from tests.dialects.tables import agents
from tests.support.examples import examples

pytestmark = pytest.mark.slow

AGENTS: Final = agents()
SYSTEMS: Final = sorted(name for name in DIALECTS if name not in ("opencode", "interceptors"))
"""Whose hooks are commands."""

_DECISIONS: Final = st.one_of(
    st.fixed_dictionaries({
        "hookSpecificOutput": st.fixed_dictionaries({
            "hookEventName": st.just("PreToolUse"),
            "permissionDecision": st.sampled_from(["deny", "ask", "allow"]),
            "permissionDecisionReason": st.just("why"),
        })
    }),
    st.fixed_dictionaries({
        "decision": st.sampled_from(["deny", "block", "ask", "approve", "allow"]), "reason": st.just("why"),
    }),
    st.fixed_dictionaries({"permission": st.sampled_from(["deny", "ask", "allow"])}),
    st.fixed_dictionaries({"permissionDecision": st.sampled_from(["deny", "ask", "allow"])}),
    st.fixed_dictionaries({"cancel": st.booleans(), "errorMessage": st.just("why")}),
    st.fixed_dictionaries({"action": st.sampled_from(["block", "allow"]), "message": st.just("why")}),
)  # fmt: skip


def _reading(system: str, result: HookResult) -> str:
    """What the system does with a call after this run of a hook before it."""
    dialect = DIALECTS[system]
    name = next(name for name, event in dialect.events.items() if event is Event.PRE_TOOL_USE)
    spec = HookSpec(system, "f", Event.PRE_TOOL_USE, "h", shell="h", event_name=name)
    verdict = dialect.read_output(spec, result)
    if verdict.permission is Permission.DENY or (verdict.failure and verdict.fails_closed):
        return "refused"
    return "asked" if verdict.permission is Permission.ASK else "passed"


@examples(60)
@given(st.sampled_from(sorted(AGENTS)), st.sampled_from(SYSTEMS), st.sampled_from([0, 0, 0, 1, 2, 3]), _DECISIONS)
def test_no_conversion_lets_a_call_pass_that_the_hooks_own_system_would_not(
    agent: str, system: str, status: int, decision: dict[str, object]
) -> None:
    side = agent_side(agent)
    assert side is not None
    command = f"cat >/dev/null; echo '{json.dumps(decision)}'; echo no >&2; exit {status}"
    done = subprocess.run(["/bin/sh", "-c", command], input=b"", capture_output=True, check=False)
    own = _reading(system, HookResult(Ended.EXITED, done.returncode, done.stdout, done.stderr))
    document, variables = json.dumps(AGENTS[agent].before).encode(), AGENTS[agent].before_variables
    hook, environ = ForeignHook(DIALECTS[system], command), {"PATH": "/usr/bin:/bin", **variables}
    output = anyio.run(run_hooks, [hook], side, document, environ)
    converted = _reading(agent, HookResult(Ended.EXITED, output.status, output.stdout, output.stderr.encode()))
    if own == "refused":
        assert converted == "refused"
    if own == "asked":
        assert converted == ("asked" if Can.ASK in side.can else "refused")


def test_every_agent_and_every_system_takes_part() -> None:
    assert set(names()) - {"agent-hooks", "interceptors"} <= set(AGENTS)
    assert len(AGENTS) * len(SYSTEMS) > 700
