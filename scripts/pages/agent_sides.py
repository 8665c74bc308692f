"""The generated tables of what agents let hooks do, and of what they do where the guard's entries start nothing."""

from __future__ import annotations

from typing import Final

from hookproxy.dialects.agent_side import AgentSide, Can, agent_side, convertible, names, side_of
from hookproxy.dialects.dialect import Group, HookFile, WrittenEntry
from hookproxy.dialects.registry import DIALECTS
from hookproxy.guard import entries
from hookproxy.hooks.read_verdict import read_verdict
from hookproxy.model.decision import Refuse
from hookproxy.model.hooks import Ended, Event, HookResult, HookRun, HookSpec
from hookproxy.model.settings import Settings, ToolNames
from hookproxy.policy import decide

TEXTS = {
    Can.ALLOW: "allow",
    Can.ASK: "ask the person",
    Can.REWRITE: "rewrite arguments",
    Can.TELL_BEFORE: "tell the model before a call",
    Can.TELL_AFTER: "tell the model after a call",
    Can.REPLACE: "replace the output",
    Can.BLOCK_AFTER: "reject a result",
}


def agent_sides() -> str:
    """A row for each agent and for the hosts of each standard: the hook file, and what hooks can do beyond refusing."""
    rows = ["| `--to` | its hook file | its hooks refuse calls, and can |", "|---|---|---|"]
    for name in convertible():
        side = side_of(name)
        assert side is not None
        can = ", ".join(text for ability, text in TEXTS.items() if ability in side.can) or "nothing else"
        rows.append(f"| `{name}` | `{side.file}` | {can} |")
    return "\n".join(rows)


_GONE: Final = {
    "hookproxy is gone, and Python is there": HookResult(
        Ended.EXITED, 2, b"", b"/usr/bin/python3: can't open file '/x/hookproxy/guard/client.py': [Errno 2]\n"
    ),
    "Python is gone, too": HookResult(Ended.EXITED, 127, b"", b"sh: 1: /usr/bin/python3: not found\n"),
}
"""How an entry ends that starts what is gone."""


def gone_entries() -> str:
    """A row for agents that do the same about calls where the guard's entries start what is gone."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name in names():
        side = agent_side(name)
        assert side is not None
        if side.user_folder is not None:
            does = tuple("refused" if _refuses(side, result) else "goes on" for result in _GONE.values())
            alike.setdefault(does, []).append(f"`{name}`")
    rows = [f"| agent | {' | '.join(_GONE)} |", f"|{'---|' * (len(_GONE) + 1)}"]
    rows += [f"| {', '.join(agents)} | {' | '.join(does)} |" for does, agents in sorted(alike.items(), reverse=True)]
    return "\n".join(rows)


def _refuses(side: AgentSide, result: HookResult) -> bool:
    dialect, spec = DIALECTS[side.name], _entry_before_a_call(side)
    group = Group(dialect, "f", (spec,), ToolNames.BARE)
    run = HookRun(spec, result, read_verdict(group, spec, result, Settings()))
    return isinstance(decide.decide([run], Settings(), group.on_failure), Refuse)


def _entry_before_a_call(side: AgentSide) -> HookSpec:
    """The guard's entry before a call, as the agent reads it."""
    line = entries.command(side, "/s/guard.sock", "/bin/hookproxy", fails_closed=True)
    if side.read_command is not None:
        (name,) = (name for name, event in side.events.items() if event is Event.PRE_TOOL_USE)
        hooks = side.read_command(WrittenEntry(name, line), "/p").hooks
    else:
        read = DIALECTS[side.name].read_hook_file
        files = entries.files(side, line).items()
        hooks = tuple(spec for path, text in files for spec in read(HookFile(f"/p/{path}", text, "/p", cwd="/p")).hooks)
    return next(spec for spec in hooks if spec.event is Event.PRE_TOOL_USE)
