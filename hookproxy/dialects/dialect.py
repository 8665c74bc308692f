"""The shape of a dialect: how one hook system spells hooks, occasions and verdicts, as data and three functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from msgspec import Struct, field

from ..model.hooks import Document, Event, EventContext, HookResult, HookSpec, Order, Verdict
from ..model.settings import OnFailure, ToolNames


class HookFile(Struct, frozen=True):
    """A hook file as found: `read_hooks` parses its text, and names `path` in every error."""

    path: str
    """Absolute."""
    text: str
    project_dir: str
    """The folder that relative commands start from, and CLAUDE_PROJECT_DIR: `config` has decided it."""
    options: Mapping[str, object] = field(default_factory=dict)
    """What `[[use]]` says in the keys that are this dialect's own (`Dialect.options`), of the type it documents."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """The environment that we run in, for variables that a hook file may name."""


class HookList(Struct, frozen=True):
    """What a hook file holds for us."""

    hooks: tuple[HookSpec, ...]
    notes: tuple[str, ...] = ()
    """One sentence for each entry that cannot work behind MCP, with its place; told once at start-up."""


class Effect(StrEnum):
    """What a member of a hook's answer does here; the words stand in the README's table."""

    DECIDES = "allow, deny, ask"
    REASON = "the reason"
    REWRITES = "rewrite the arguments"
    COMMENTS = "tell the model"
    REPLACES = "replace the output"
    HIDES = "hide the output"
    TELLS = "tell the person"
    STOPS = "deny, and stop other calls"
    ALLOWS = "allow for the session"
    REPEATS = "repeat the call"
    ANSWERS = "answer the server's question"
    NOTHING = "accepted, without effect"


class Dialect(Struct, frozen=True):
    """How one hook system spells all this. `described_by` names the text that it follows."""

    name: str
    described_by: str
    events: Mapping[str, Event]
    """The events that can occur behind MCP, by the dialect's spelling."""
    unavailable: Mapping[str, str]
    """The document's other events, each with the reason why it cannot occur behind MCP."""
    fields: Mapping[str, Effect]
    """The members of an answer that the document names, `a.b` for a member of a member, and what each does here."""
    order: Order
    default_timeout: float
    """Seconds."""
    tool_names: ToolNames
    """Which name its hooks see where the configuration does not say."""
    read_hooks: Callable[[HookFile], HookList]
    """Raises ConfigError, naming file and key."""
    write: Callable[[HookSpec, EventContext], Document]
    read: Callable[[HookSpec, HookResult], Verdict]
    """Total: nonsense is a Verdict with `trouble`, never an exception."""
    fits: Callable[[Mapping[str, object]], bool] = lambda _members: False
    """Whether a hook file with these members, as parsed, has this dialect's shape; where several fit, the person
    must say. Total."""
    options: tuple[str, ...] = ()
    """The keys of `[[use]]` that are its own; `config_models.Use` documents them."""
    folders: tuple[str, ...] = ()
    """Where in a project such files lie, as `.github/hooks`: the project is the folder above."""
    suffixes: tuple[str, ...] = (".json",)
    """How the names of its files end, for a folder of them."""
    later_overrides: bool = False
    """Of several answers to PermissionRequest the last counts; else a denial does."""
    agents: tuple[str, ...] = ()
    """Names, as in `clientInfo`, of agents that run such hooks themselves: with us in between they would run twice."""
    steady: bool = False
    """The variables that `write` gives are the same at each occasion: a process may be started before there is one."""
    variables: tuple[str, ...] = ()
    """Names of the identity variables it sets; other dialects' hooks do not inherit them."""

    @property
    def answers(self) -> bool:
        """Its hooks may answer the server's questions in the person's place; others are only told of them."""
        return Effect.ANSWERS in self.fields.values()


class Group(Struct, frozen=True):
    """The hooks of one file: asked together, in their dialect's order."""

    dialect: Dialect
    source: str
    hooks: tuple[HookSpec, ...]
    tool_names: ToolNames
    on_failure: OnFailure | None = None
    """This file's choice, over the configuration's."""
    match_all_names: bool = False
    """Our own hooks: a matcher is tried on the bare name and on mcp__SERVER__TOOL."""
    managed: bool = False
    """The administrator's: asked last, about the final arguments, and in an environment that the user cannot spoil."""
