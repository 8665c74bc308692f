"""The nouns of the design as frozen values: hooks, what they are told, what they say. No behaviour, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, IntEnum, StrEnum
from typing import Final

from msgspec import Struct, field

from .aliases import Alias
from .settings import OnFailure


class Event(StrEnum):
    """An occasion's name, as Claude Code or who else has it spells it; dialects have spellings of their own."""

    PRE_TOOL_USE = "PreToolUse"
    POST_TOOL_USE = "PostToolUse"
    POST_TOOL_USE_FAILURE = "PostToolUseFailure"
    SESSION_START = "SessionStart"
    SESSION_END = "SessionEnd"
    PERMISSION_REQUEST = "PermissionRequest"  # somebody wants a person to be asked about a call
    PERMISSION_DENIED = "PermissionDenied"  # a call was refused, whoever refused it
    STOP = "Stop"  # the agent cancelled a call
    ERROR_OCCURRED = "ErrorOccurred"  # a call came back as a JSON-RPC error, or not at all
    ELICITATION = "Elicitation"  # the server asks the person
    ELICITATION_RESULT = "ElicitationResult"  # the person, or the agent for it, has answered the server
    NOTIFICATION = "Notification"  # the person is shown a question
    USER_INPUT = "OnUserInput"  # somebody begins to wait for the person


class Permission(IntEnum):
    """What a hook wants for a call. The highest of many wins: deny beats ask beats allow."""

    ALLOW = 1
    ASK = 2
    DENY = 3


class Order(Enum):
    """How the matching hooks of one group run."""

    PARALLEL = "parallel"  # all at once, all to the end; the last to finish counts as the last
    TOGETHER = "together"  # all at once, all to the end; the last in the file counts as the last
    SERIAL = "serial"  # one after another, in the order of the file
    UNTIL_DENIED = "until denied"  # the same, but after a denial the rest is skipped
    PIPELINE = "pipeline"  # one after another, and each sees the arguments as rewritten so far


class Ended(Enum):
    """How a hook's run came to its end."""

    EXITED = "exited"
    SIGNALLED = "signalled"  # by a signal that was not ours
    TIMED_OUT = "timed out"
    NOT_STARTED = "not started"
    CANCELLED = "cancelled"  # its call ended before it did
    FAILED = "failed"  # it gave no answer, as `detail` says: an exception, a refusal, the death of what was asked


_FOR_PEOPLE = frozenset({"dialect", "source", "label", "matcher", "matches"})
"""What a hook is called, where it stands and whom it is for: no part of its identity."""


class HookSpec(Struct, frozen=True):
    """One configured hook, as its dialect read it. Of `argv`, `shell`, `call`, `url` and `tool` one is set."""

    dialect: str
    source: str
    """Where it is written, for people: `FILE: KEY`."""
    event: Event
    """The occasion at which it runs. An entry that is for two occasions is two hooks."""
    label: str
    """What people and the model know it by: its name, or the base name of its command."""
    matcher: str = ""
    """The matcher as written, for people; `matches` is what counts."""
    matches: Callable[[str], bool] = field(default=lambda _name: True)
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
    on_failure: OnFailure | None = None
    """The hook's own choice, over its group's and the configuration's."""
    only_if: str = ""
    """A permission rule as in Claude Code's `if`, tried on the tool's name and its first argument."""
    type: str = "command"
    """Key of the registry in `runners`."""
    call: str = ""
    """Of type `python`: `package.module:function`, looked for in `cwd` and among installed packages."""
    url: str = ""
    """Of type `http`: where the document is posted."""
    headers: tuple[tuple[str, str], ...] = ()
    """Of type `http`: sent with it; `$NAME` and `${NAME}` stand for variables that `allowed_env_vars` names."""
    allowed_env_vars: tuple[str, ...] = ()
    server: str = ""
    """Of type `mcp_tool`: whose tool is called, by the name that the agent's configuration gives it."""
    tool: str = ""
    input: bytes = b"{}"
    """Of type `mcp_tool`: the tool's arguments; `${a.b}` in a text stands for a member of the document."""
    concurrent: bool = False
    """Of type `worker`: it is given further documents before it has answered, and tells them apart by `id`."""
    warm_max_age: float = 600.0
    """Of type `warm`: seconds after which a process that was started before it is needed is ended unused."""
    warm_spares: int = 1
    """Of type `warm`: how many such processes wait at most."""
    event_name: str = ""
    """The event as its file spells it, where that decides what it is told."""
    traits: frozenset[str] = frozenset()
    """Marks from `read_hook_file` of its dialect for `write_input` and `read_output`; nobody else reads them."""
    every_call: bool = False
    """PermissionRequest: it is asked about each call, also where nobody wants a person to be asked."""
    max_retries: int = 0
    """How often one call may be repeated because it says so."""

    @property
    def runs(self) -> str:
        """What runs, for people; an address without its query, which may hold a secret."""
        tool = self.tool and f"{self.server}/{self.tool}"
        return self.shell or " ".join(self.argv) or self.call or tool or self.url.partition("?")[0]

    @property
    def identity(self) -> tuple[object, ...]:
        """What makes two entries the same hook, which runs once per occasion: all that its run or failure hangs on."""
        return tuple(getattr(self, name) for name in self.__struct_fields__ if name not in _FOR_PEOPLE)


class HookResult(Struct, frozen=True):
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
    """For NOT_STARTED: the reason in a few words. For FAILED: what it did, to stand as `Verdict.trouble`."""


class Verdict(Struct, frozen=True):
    """What one hook said, in no dialect's words."""

    permission: Permission | None = None
    """What it wants for the call; None: nothing said. After a call, DENY marks the result as an error."""
    reason: str = ""
    """Why, for the model (deny) or the person (ask)."""
    arguments: bytes | None = None
    """PreToolUse: the rewritten arguments, a JSON object exactly as the hook spelled it."""
    merges: bool = False
    """`arguments` has only the members that change; the others stay."""
    feedback: tuple[str, ...] = ()
    """Texts for the model, delivered with the tool's result."""
    replacement: bytes | None = None
    """PostToolUse: JSON that takes the place of the tool's output, exactly as the hook spelled it."""
    messages: tuple[str, ...] = ()
    """Texts for the person, never for the model."""
    stop: bool = False
    """It wants the whole turn to end: this call and the session's other held calls are denied."""
    hides: bool = False
    """PostToolUse: the tool's output is not for the model."""
    retry: bool = False
    """After a call: it is to be repeated, and its hooks asked again about the new answer."""
    allows: tuple[str, ...] = ()
    """Permission rules: calls that one of them covers need no person's consent for the rest of the session."""
    action: str = ""
    """Elicitation, ElicitationResult: `accept`, `decline` or `cancel` in the person's place; empty: nothing said."""
    content: bytes | None = None
    """With `accept`: the values of the form, a JSON object exactly as the hook spelled it."""
    fails_closed: bool = False
    """With `OnTrouble.DIALECT`, this trouble blocks, whatever the hook's own field says."""
    failure: str = ""
    """What went wrong with the hook itself, in one sentence without a full stop; empty: nothing did."""
    untrusted: bool = False  # the trouble is that its script is not what was trusted: it blocks, whatever is configured


NO_VERDICT: Final = Verdict()
"""Nothing was said, as most hooks say of most calls."""


class HookRun(Struct, frozen=True):
    """One hook's part in one occasion: who, how it ran, what it said."""

    spec: HookSpec
    result: HookResult
    verdict: Verdict
    consequence: str = ""
    """What follows from trouble with it, for people."""


class Session(Struct, frozen=True):
    """What is the same for all occasions of one run of the proxy."""

    id: str
    server: str
    """The server's name as hooks see it."""
    cwd: str
    project_dir: str
    """`CLAUDE_PROJECT_DIR` as inherited, else our working directory."""


class Outcome(Struct, frozen=True):
    """What a call came to, as PostToolUse and PostToolUseFailure hooks are told."""

    content: bytes = b"[]"
    """The result's content blocks, a JSON array as hooks may read it."""
    has_result: bool = False
    """False: there was a JSON-RPC error, or no answer."""
    error: str = ""
    """The failure in words; empty: the call succeeded."""
    interrupted: bool = False
    """The agent cancelled the call after it was forwarded."""
    structured: bytes = b""
    """The result's structuredContent as the server spelled it; empty: there is none. `plain` makes it legible."""
    duration_ms: int = 0
    """Milliseconds between forwarding the call and its answer: the tool's time, not the hooks'."""


class Elicitation(Struct, frozen=True):
    """What the server asks the person, and the answer once there is one; JSON as hooks may read it."""

    message: str
    mode: str = "form"
    """`form`: values are asked for; `url`: the person is to visit a page."""
    schema: bytes = b""
    """Of a form: the `requestedSchema`; empty: there is none."""
    url: str = ""
    elicitation_id: str = ""
    action: str = ""
    """The answer: `accept`, `decline`, `cancel` or `error`; empty: there is none yet."""
    content: bytes | None = None
    """The values that the person gave."""


class EventContext(Struct, frozen=True):
    """A moment at which hooks may speak, with everything they may be told."""

    event: Event
    session: Session
    tool: str = ""
    """The tool's name as the server knows it; empty for session events."""
    tool_name: str = ""
    """The tool's name as the asked group sees it."""
    tool_use_id: str = ""
    arguments: bytes = b"{}"
    """A JSON object as hooks may read it: normalised (design section 5), under the names that hooks know."""
    alias: Alias | None = None
    """Where hooks know the tool or its arguments by other names: which ones; `arguments` are under these."""
    annotations: bytes = b""
    """The tool's `annotations` from a tools/list that passed; empty: not known."""
    outcome: Outcome | None = None
    trigger: str = ""
    """SessionStart: its source. SessionEnd: its reason. Notification: its type. ErrorOccurred: `tool_execution` or
    `system`. Matchers of these events are tried on it. ElicitationResult: the answer's action."""
    message: str = ""
    """What the person is asked or told, why a call was refused or a person is to be asked, what an error says."""
    elicitation: Elicitation | None = None
    """Elicitation, ElicitationResult: the question in full, where it is known."""
    request_id: str = ""
    """The JSON-RPC id of the call, as text."""
    at: float = 0.0
    """Seconds since 1970 when it came about."""
    trace: tuple[tuple[str, str], ...] = ()
    """Variables by which hooks go on with the call's trace; none: it has none."""


class Document(Struct, frozen=True):
    """What one hook gets: standard input, and variables over those it inherits."""

    stdin: bytes | bytearray
    env: Mapping[str, str]


class Tool(Struct, frozen=True):
    """What a tools/list result that passed told of one tool; each member as raw JSON, empty where absent."""

    name: str
    input_schema: bytes = b""
    output_schema: bytes = b""
    annotations: bytes = b""
    properties: frozenset[str] = frozenset()
    """The names of its arguments."""
    folded: Mapping[str, str] = field(default_factory=dict)
    """The same names by their case-folded spelling, which some servers accept for them."""
