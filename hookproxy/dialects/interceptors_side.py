"""Servers of MCP interceptors (SEP-2624) as hooks in other systems' agents: `hookproxy hook --as interceptors`.

Each event starts the server, whose command line or address is the hook's command, and has it judge one message. A host
of interceptors asks a server itself and starts no hooks: `hookproxy interceptors serve` is one for any hook file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..model.errors import ConfigError
from ..model.hooks import Event
from .agent_side import AgentEvent, AgentSide, Can, HookDecision, HookOutput
from .dialect import HookList, WrittenEntry
from .interceptors import INTERCEPTORS, interceptor_group
from .shared.command_file import quoted

FILE: Final = "hookproxy.toml"
_WEB: Final = ("https://", "http://")


def table(name: str, argv: Sequence[str]) -> str:
    """The text of a `[[interceptors]]` table."""
    return f"[[interceptors]]\nname = {quoted(name)}\nargv = [{', '.join(map(quoted, argv))}]\n"


def _read_document(_document: bytes, _environ: Mapping[str, str]) -> AgentEvent:
    raise ValueError("hosts of interceptors start no hooks: hookproxy interceptors serve offers hooks to them")


def _write_output(_event: AgentEvent, _decision: HookDecision) -> HookOutput:
    raise AssertionError("no document can be read")


def _read_command(entry: WrittenEntry, project: str) -> HookList:
    """The hooks of a server: of the phase that the entry names, or of the event. Raises ConfigError."""
    if entry.matcher or entry.only_if:
        problem = "has no matcher: each interceptor says itself which messages it judges"
        raise ConfigError(f"--as {INTERCEPTORS.name}", problem, "leave out --matcher and --if")
    where = {"url": entry.command} if entry.command.startswith(_WEB) else {"argv": ["sh", "-c", entry.command]}
    timeout = {"timeout": entry.timeout} if entry.timeout else {}
    server: dict[str, object] = {"name": entry.command, **where, **timeout}
    specs = interceptor_group([server], "", f"--as {INTERCEPTORS.name}", project).hooks
    return HookList(tuple(spec for spec in specs if entry.event_name in (_PHASES[spec.event], str(spec.event))))


_PHASES: Final = {
    Event.PRE_TOOL_USE: "request",
    Event.POST_TOOL_USE: "response",
    Event.POST_TOOL_USE_FAILURE: "response",
}

AGENT_SIDE: Final = AgentSide(
    name=INTERCEPTORS.name,
    file=FILE,
    can=Can.REWRITE | Can.REPLACE | Can.BLOCK_AFTER,
    read_document=_read_document,
    write_output=_write_output,
    events={"request": Event.PRE_TOOL_USE, "response": Event.POST_TOOL_USE},
    also={Event.POST_TOOL_USE_FAILURE: "response"},
    has_matchers=False,
    read_command=_read_command,
    user_folder=None,
)
