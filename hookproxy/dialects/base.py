"""The shape of a dialect: how one hook system spells hooks, occasions and verdicts, as data and three functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..model import Document, Event, HookResult, HookSpec, Occasion, OnTrouble, Order, ToolNames, Verdict


@dataclass(frozen=True, slots=True)
class HookFile:
    """A hook file as found: `read_hooks` parses its text, and names `path` in every error."""

    path: str
    """Absolute."""
    text: str
    project_dir: str
    """The folder that relative commands start from, and CLAUDE_PROJECT_DIR: `config` has decided it."""


@dataclass(frozen=True, slots=True)
class HookList:
    """What a hook file holds for us."""

    hooks: tuple[HookSpec, ...]
    notes: tuple[str, ...] = ()
    """One sentence for each entry that cannot work behind MCP, with its place; told once at start-up."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one hook system spells all this. `described_by` names the text that it follows."""

    name: str
    described_by: str
    events: Mapping[str, Event]
    """The events that can occur behind MCP, by the dialect's spelling."""
    order: Order
    default_timeout: float
    """Seconds."""
    tool_names: ToolNames
    """Which name its hooks see where the configuration does not say."""
    read_hooks: Callable[[HookFile], HookList]
    """Raises ConfigError, naming file and key."""
    write: Callable[[HookSpec, Occasion], Document]
    read: Callable[[HookSpec, HookResult], Verdict]
    """Total: nonsense is a Verdict with `trouble`, never an exception."""
    agents: tuple[str, ...] = ()
    """Names, as in `clientInfo`, of agents that run such hooks themselves: with us in between they would run twice."""
    variables: tuple[str, ...] = ()
    """Names of the identity variables it sets; other dialects' hooks do not inherit them."""


@dataclass(frozen=True, slots=True)
class Group:
    """The hooks of one file: asked together, in their dialect's order."""

    dialect: Dialect
    source: str
    hooks: tuple[HookSpec, ...]
    tool_names: ToolNames
    on_trouble: OnTrouble | None = None
    """This file's choice, over the configuration's."""
    match_all_names: bool = False
    """Our own hooks: a matcher is tried on the bare name and on mcp__SERVER__TOOL."""
