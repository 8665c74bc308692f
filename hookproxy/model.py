"""The nouns of the design as frozen values: what is asked, what hooks said, what is decided. No behaviour, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum, StrEnum


class Event(StrEnum):
    """An occasion's name, spelled as Claude Code spells it; dialects have spellings of their own."""

    PRE_TOOL_USE = "PreToolUse"
    POST_TOOL_USE = "PostToolUse"
    POST_TOOL_USE_FAILURE = "PostToolUseFailure"
    SESSION_START = "SessionStart"
    SESSION_END = "SessionEnd"


class Permission(IntEnum):
    """What a hook wants for a call. The highest of many wins: deny beats ask beats allow."""

    ALLOW = 1
    ASK = 2
    DENY = 3


class OnTrouble(StrEnum):
    """What follows when a hook crashes, hangs, cannot start or answers nonsense."""

    DIALECT = "dialect"  # what the dialect's document says
    DENY = "deny"
    ALLOW = "allow"


class OnAsk(StrEnum):
    """What follows when the decision is to ask a person."""

    ELICIT = "elicit"
    DENY = "deny"
    ALLOW = "allow"


class Delivery(StrEnum):
    """How hooks' comments are written into results (design section 6)."""

    AUTO = "auto"
    TEXT = "text"
    STRIP_OUTPUT_SCHEMA = "strip-output-schema"


class ToolNames(StrEnum):
    """Which name of a tool the hooks of a group see."""

    MCP = "mcp"  # mcp__SERVER__TOOL
    BARE = "bare"  # TOOL


class Order(Enum):
    """How the matching hooks of one group run."""

    PARALLEL = "parallel"  # all at once, all to the end
    SERIAL = "serial"  # in the order of the file


class Ground(Enum):
    """Why a call is refused; `feedback` has a sentence for each."""

    DENIED = "denied"  # a hook said so
    TROUBLE = "trouble"  # a hook failed, and the configuration denies then
    FAILED_CLOSED = "failed closed"  # a hook failed, and its own field or its dialect's document denies then
    ASK_DENIED = "ask denied"  # a person must confirm, and the configuration denies then
    ASK_UNAVAILABLE = "ask unavailable"  # a person must confirm, and cannot be asked


class Ended(Enum):
    """How a hook's run came to its end."""

    EXITED = "exited"
    SIGNALLED = "signalled"  # by a signal that was not ours
    TIMED_OUT = "timed out"
    NOT_STARTED = "not started"


@dataclass(frozen=True, slots=True)
class HookSpec:
    """One configured hook, as its dialect read it from its file. Exactly one of `argv` and `shell` is set."""

    dialect: str
    source: str
    """Where it is written, for people: `FILE: KEY`."""
    event: Event
    label: str
    """What people and the model know it by: its name, or the base name of its command."""
    matcher: str = ""
    """The matcher as written, for people; `matches` is what counts."""
    matches: Callable[[str], bool] = field(default=lambda _name: True, compare=False)
    argv: tuple[str, ...] = ()
    shell: str = ""
    cwd: str = ""
    """The folder it runs in; empty: ours."""
    env: tuple[tuple[str, str], ...] = ()
    """Variables of its own, over the dialect's."""
    timeout: float = 600.0
    """Seconds; a hook that runs longer is ended with its whole process group."""
    background: bool = False
    """Not awaited; what it says decides nothing."""
    fails_closed: bool = False
    """With `OnTrouble.DIALECT`, trouble with this hook blocks (its document, or the hook's own field, says so)."""
    withholds: bool = False
    """With `OnTrouble.DIALECT`, trouble with this post hook withholds the result; else the model is only told."""
    on_trouble: OnTrouble | None = None
    """The hook's own choice, over its group's and the configuration's."""
    only_if: str = ""
    """A permission rule as in Claude Code's `if`, tried on the tool's name and its first argument."""
    type: str = "command"
    """Key of the registry in `runners`."""

    @property
    def identity(self) -> tuple[object, ...]:
        """What makes two entries the same hook, which runs once per occasion."""
        return (self.event, self.argv, self.shell, self.cwd, self.env, self.only_if, self.background, self.type)


@dataclass(frozen=True, slots=True)
class HookResult:
    """How one run of a hook ended and what it printed, whatever kind of hook it was."""

    ended: Ended
    code: int = 0
    """The exit code of EXITED, the signal's number of SIGNALLED; else 0."""
    stdout: bytes = b""
    stderr: bytes = b""
    ms: float = 0.0
    """Milliseconds from the decision to run it until it had ended."""
    cut: bool = False
    """It printed more than the limit; the rest is lost."""
    detail: str = ""
    """For NOT_STARTED: the reason in a few words."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one hook said, in no dialect's words."""

    permission: Permission | None = None
    """PreToolUse: what it wants for the call; None: nothing said."""
    reason: str = ""
    """Why, for the model (deny) or the person (ask)."""
    arguments: bytes | None = None
    """PreToolUse: the rewritten arguments, a JSON object exactly as the hook spelled it."""
    feedback: tuple[str, ...] = ()
    """Texts for the model, delivered with the tool's result."""
    replacement: bytes | None = None
    """PostToolUse: JSON that takes the place of the tool's output, exactly as the hook spelled it."""
    messages: tuple[str, ...] = ()
    """Texts for the person, never for the model."""
    stop: bool = False
    """It wants the whole turn to end: this call and the session's other held calls are denied."""
    trouble: str = ""
    """What went wrong with the hook itself, in one sentence without a full stop; empty: nothing did."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One hook's part in one occasion: who, how it ran, what it said."""

    spec: HookSpec
    result: HookResult
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Session:
    """What is the same for all occasions of one run of the proxy."""

    id: str
    server: str
    """The server's name as hooks see it."""
    cwd: str
    project_dir: str
    """`CLAUDE_PROJECT_DIR` as inherited, else our working directory."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to, as PostToolUse and PostToolUseFailure hooks are told."""

    content: bytes = b"[]"
    """The result's content blocks, a JSON array as hooks may read it."""
    has_result: bool = False
    """False: there was a JSON-RPC error, or no answer."""
    error: str = ""
    """The failure in words; empty: the call succeeded."""
    interrupted: bool = False
    """The agent cancelled the call after it was forwarded."""
    duration_ms: int = 0
    """Milliseconds between forwarding the call and its answer: the tool's time, not the hooks'."""


@dataclass(frozen=True, slots=True)
class Occasion:
    """A moment at which hooks may speak, with everything they may be told."""

    event: Event
    session: Session
    tool: str = ""
    """The tool's name as the server knows it; empty for session events."""
    tool_name: str = ""
    """The tool's name as the asked group sees it."""
    tool_use_id: str = ""
    arguments: bytes = b"{}"
    """A JSON object as hooks may read it: normalised (design section 5)."""
    annotations: bytes = b""
    """The tool's `annotations` from a tools/list that passed; empty: not known."""
    outcome: Outcome | None = None
    occasioned_by: str = ""
    """SessionStart: its source. SessionEnd: its reason."""


@dataclass(frozen=True, slots=True)
class Document:
    """What one hook gets: standard input, and variables over those it inherits."""

    stdin: bytes | bytearray
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Tool:
    """What a tools/list result that passed told of one tool; each member as raw JSON, empty where absent."""

    name: str
    input_schema: bytes = b""
    output_schema: bytes = b""
    annotations: bytes = b""
    properties: frozenset[str] = frozenset()
    """The names of its arguments."""
    folded: Mapping[str, str] = field(default_factory=dict)
    """The same names by their case-folded spelling, which some servers accept for them."""


@dataclass(frozen=True, slots=True)
class Proceed:
    """The decision to forward a call."""

    arguments: bytes | None = None
    """The rewritten arguments; None: as the agent sent them."""
    feedback: tuple[str, ...] = ()
    """Texts for the model, to go with the result."""
    asked: bool = False
    """A hook wanted a person to be asked, and the configuration allows without."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """The decision to block a call."""

    by: str
    """The hook's label."""
    reason: str
    """What the hook gave as its reason; for the grounds of trouble, what went wrong with it."""
    asked: bool = False
    """It was refused because a person could not be asked."""
    stop: bool = False
    ground: Ground = Ground.DENIED
    feedback: tuple[str, ...] = ()
    """Texts for the model from all hooks that spoke, to go with the refusal."""


Decision = Proceed | Refuse


@dataclass(frozen=True, slots=True)
class Comments:
    """What PostToolUse or PostToolUseFailure hooks do to a result."""

    feedback: tuple[str, ...] = ()
    replacement: bytes | None = None
    """JSON in place of the tool's output: an array of content blocks, a string, or a result object."""
    withheld: tuple[Statement, ...] = ()
    """Hooks whose trouble keeps the tool's output from the agent: sentences about it stand in its place."""
    noted: tuple[Statement, ...] = ()
    """Hooks of whose trouble the model is told beside the unchanged output."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration's choices that concern every call."""

    on_trouble: OnTrouble = OnTrouble.DIALECT
    on_ask: OnAsk = OnAsk.ELICIT
    feedback: Delivery = Delivery.AUTO
    max_message_bytes: int = 64 * 1024 * 1024
    """Bytes of the longest line that is judged."""
    audit_file: str = ""
    audit_required: bool = False
    audit_digest: bool = False
    """The audit has the arguments' SHA-256 in their place."""
    audit_all_calls: bool = False
