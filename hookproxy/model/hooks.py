"""Hooks, the events they run for, their input and their verdicts, as frozen values. No behaviour, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from enum import Enum, IntEnum, StrEnum
from typing import Final

from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from .aliases import Alias
from .model_endpoint import ModelHook
from .principal import Principal
from .settings import OnFailure


class Event(StrEnum):
    """The name of an event, as Claude Code (or the system that has the event) spells it. Dialects may differ."""

    PRE_TOOL_USE = "PreToolUse"
    PRE_MCP_TOOL_CALL = "PreMcpToolCall"  # a call that is allowed is about to be sent to the server
    POST_TOOL_USE = "PostToolUse"
    POST_TOOL_USE_FAILURE = "PostToolUseFailure"
    SESSION_START = "SessionStart"
    SESSION_END = "SessionEnd"
    PERMISSION_REQUEST = "PermissionRequest"  # a call needs a person's approval
    PERMISSION_DENIED = "PermissionDenied"  # a call was refused, for whatever cause
    STOP = "Stop"  # the agent cancelled a call
    ERROR_OCCURRED = "ErrorOccurred"  # a call came back as a JSON-RPC error, or not at all
    ELICITATION = "Elicitation"  # the server requests input from the person
    ELICITATION_RESULT = "ElicitationResult"  # the person, or the agent, has answered the server
    NOTIFICATION = "Notification"  # a person is asked for approval, or by the server
    USER_INPUT = "OnUserInput"  # the wait for the person begins


class Permission(IntEnum):
    """What a hook decides about a call. The highest of many wins: deny beats ask beats allow."""

    ALLOW = 1
    ASK = 2
    DENY = 3


class Order(Enum):
    """How the matching hooks of one group run."""

    PARALLEL = "parallel"  # all at once, all to the end; the last rewrite is that of the hook that ends last
    TOGETHER = "together"  # all at once, all to the end; the last rewrite is that of the last hook in the file
    SERIAL = "serial"  # one after another, in the order of the file
    UNTIL_DENIED = "until denied"  # as SERIAL, but a denial skips the rest
    UNTIL_STOPPED = "until stopped"  # as SERIAL, but a hook that stops the agent skips the rest
    PIPELINE = "pipeline"  # one after another, and each gets the arguments as rewritten so far
    PIPELINE_UNTIL_DENIED = "pipeline until denied"  # as PIPELINE, but a denial skips the rest
    PIPELINE_UNTIL_ASKED = "pipeline until asked"  # the same, and so does a hook that has the person asked

    @property
    def passes_rewrites(self) -> bool:
        """Each hook gets what those before it have left."""
        return self in (Order.PIPELINE, Order.PIPELINE_UNTIL_DENIED, Order.PIPELINE_UNTIL_ASKED)


class Ended(Enum):
    """How a hook's run ended."""

    EXITED = "exited"
    SIGNALLED = "signalled"  # by a signal that hookproxy did not send
    TIMED_OUT = "timed out"
    NOT_STARTED = "not started"
    CANCELLED = "cancelled"  # its call ended before it did
    DETACHED = "detached"  # it goes on in the background, because its first line of output asks for that
    FAILED = "failed"  # it gave no result, as `detail` says: an exception, an error response, the end of its process


_NOT_IDENTITY = frozenset({"dialect", "source", "label", "matcher", "matches"})
"""Fields that say how a hook is named, where it is configured and which tools it matches: not part of its identity."""


class HookSpec(Struct, frozen=True):
    """One configured hook, as its dialect has read it. Exactly one of `argv`, `shell`, `call`, `url`, `tool`,
    `expression`, `policy`, `model` is set."""

    dialect: str
    source: str
    """Where it is configured, for people: `FILE: KEY`."""
    event: Event
    """The event at which it runs. An entry for two events becomes two hooks."""
    label: str
    """The name that people and the model see: its configured name, or the base name of its command."""
    matcher: str = ""
    """The matcher as written, for people; `matches` decides."""
    matches: Callable[[str], bool] = field(default=lambda _name: True)
    """Whether the hook runs for a tool (or, for events without a tool, for a `trigger`)."""
    argv: tuple[str, ...] = ()
    """Type `command`: the program and its arguments."""
    shell: str = ""
    """Type `command`: a command line for the shell."""
    cwd: str = ""
    """The working directory; empty: hookproxy's own."""
    env: tuple[tuple[str, str], ...] = ()
    """The hook's own environment variables. They override the dialect's."""
    timeout: float = 600.0
    """Seconds after which the hook is ended with its whole process group."""
    background: bool = False
    """It is not awaited, and its output decides nothing."""
    detaches: Callable[[bytes], float | None] | None = None
    """Type `command`: reads the beginning of its standard output, and returns the seconds for which the hook goes on in
    the background from then on; None: it is awaited. If this is not set, it is awaited whatever it prints."""
    fails_closed: bool = False
    """With `OnFailure.DIALECT`, a failure of this hook blocks, because its document or its own field says so."""
    withholds: bool = False
    """With `OnFailure.DIALECT`, a failure of this post hook withholds the result; else the model is only informed."""
    on_failure: OnFailure | None = None
    """The hook's own setting. It overrides its group's and the configuration's."""
    only_if: str = ""
    """A permission rule as in Claude Code's `if`, applied to the tool's name and arguments."""
    accepts: Callable[[bytes], bool] | None = None
    """Whether it runs for a call with these arguments, a JSON object under the names that it sees; None: for all."""
    stage: int = 0
    """Hooks of a file run after those of its earlier stages, on the arguments that these have left, and not at all if
    one of these denies. For systems with several events before one call."""
    sequential: bool = False
    """If one of the hooks that run together has this, they run one after another, as `Order.PIPELINE`."""
    type: str = "command"
    """The hook type: a key of the registry in `runners`."""
    call: str = ""
    """Type `python`: `package.module:function`, searched in `cwd` and among installed packages."""
    url: str = ""
    """Types `http` and `opa`: the address to which the document is posted."""
    headers: tuple[tuple[str, str], ...] = ()
    """Types `http` and `opa`: headers. `$NAME` and `${NAME}` stand for variables that `allowed_env_vars` names."""
    allowed_env_vars: tuple[str, ...] = ()
    """Types `http` and `opa`: the environment variables that `headers` may use."""
    expression: str = ""
    """Type `cel`: the expression."""
    policy: str = ""
    """Type `cedar`: the policies, in Cedar's language."""
    policy_file: str = ""
    """Type `cedar`: the file from which `policy` was read; empty: it stands in the configuration."""
    policy_schema: str = ""
    """Type `cedar`: the schema of the policies, in Cedar's language; empty: there is none."""
    deny_reason: str = ""
    """Types `cel`, `cedar`, `opa`: why a call is refused, for the model; empty: a sentence that names the policy."""
    server: str = ""
    """Type `mcp_tool`: the server whose tool is called, by its name in the agent's configuration."""
    tool: str = ""
    """Type `mcp_tool`: the tool that is called."""
    input: bytes = b"{}"
    """Type `mcp_tool`: the tool's arguments. `${a.b}` in a text stands for a member of the document."""
    sees_values: bool = False
    """It sees the values of secrets that `[secrets]` hides, and not their placeholders."""
    model: ModelHook | None = None
    """Types `prompt` and `agent`: what a model is asked."""
    concurrent: bool = False
    """Type `worker`: it gets further documents before it has answered, and distinguishes them by `id`."""
    process: str = ""
    """Type `worker`: hooks that have the same text here share one process; empty: it has one of its own. Type
    `interceptor`: they are one chain."""
    warm_max_age: float = 600.0
    """Type `warm`: seconds after which a process that was started in advance is ended unused."""
    warm_spares: int = 1
    """Type `warm`: how many such processes wait at most."""
    event_name: str = ""
    """The event as the hook file spells it, if its input depends on the spelling."""
    traits: frozenset[str] = frozenset()
    """Marks from `read_hook_file` of its dialect for `write_input` and `read_output`; nobody else reads them."""
    only_narrows: bool = False
    """It is somebody else's, from a pack: it may deny, ask and rewrite, and what it allows decides nothing."""
    every_call: bool = False
    """PermissionRequest: it runs for each call, even if no approval is needed."""
    max_retries: int = 0
    """How often one call may be repeated because this hook requests it."""

    @property
    def module(self) -> str:
        """The file that a runtime of its system loads; empty: it is a program of its own, or none."""
        return self.process if self.type == "worker" and self.process in self.argv else ""

    @property
    def target(self) -> str:
        """What runs, for people. The query of an address is left out, because it may hold a secret."""
        tool = self.tool and f"{self.server}/{self.tool}"
        policy = self.expression or self.policy_file or self.policy
        question = f"{self.type}: {self.model.summary}" if self.model else ""
        program = self.module or self.shell or " ".join(self.argv)
        return program or self.call or tool or policy or question or self.url.partition("?")[0]

    @property
    def matched_by(self) -> str:
        """What says for which tools it runs, for people: its matcher; its event, if it has none or it is about the
        arguments."""
        if self.matcher and self.accepts is None:
            return f"its matcher {self.matcher!r}"
        return f"its event {self.event_name or self.event}"

    @property
    def condition(self) -> str:
        """What says for which calls of such a tool it runs, for people."""
        return f"its `if` {self.only_if!r}" if self.only_if else f"its matcher {self.matcher!r}"

    @property
    def identity(self) -> tuple[object, ...]:
        """Everything that its run or its failure depends on. Entries with the same identity run once per event."""
        return tuple(getattr(self, name) for name in self.__struct_fields__ if name not in _NOT_IDENTITY)


class HookResult(Struct, frozen=True):
    """How one run of a hook ended and what it printed, whatever its type."""

    ended: Ended
    code: int = 0
    """EXITED: the exit code. SIGNALLED: the signal's number. Else 0."""
    stdout: bytes = b""
    stderr: bytes = b""
    ms: float = 0.0
    """Milliseconds from the decision to run it until it had ended."""
    cut: bool = False
    """It printed more than the limit on standard output, and the rest is lost: what it decided is not known."""
    detail: str = ""
    """NOT_STARTED: the reason in a few words. FAILED: what happened, for use as `Verdict.failure`."""
    rest: Callable[[], Coroutine[None, None, HookResult]] | None = None
    """DETACHED: waits until the run is over, and returns its result. On cancel the hook is ended."""


class Verdict(Struct, frozen=True):
    """What one hook decided, independent of its dialect."""

    permission: Permission | None = None
    """Its decision about the call; None: no decision. After a call, DENY marks the result as an error."""
    reason: str = ""
    """Why, for the model (deny) or the person (ask)."""
    arguments: bytes | None = None
    """PreToolUse: the rewritten arguments, a JSON object exactly as the hook spelled it."""
    meta: bytes | None = None
    """PreMcpToolCall: the `_meta` to send, an object, or `null` to send none; None: the one that there is."""
    merges: bool = False
    """`arguments` holds only the members that change; the others stay."""
    feedback: tuple[str, ...] = ()
    """Texts for the model, delivered with the tool's result."""
    replacement: bytes | None = None
    """PostToolUse: JSON that takes the place of the tool's output, exactly as the hook spelled it."""
    messages: tuple[str, ...] = ()
    """Texts for the person, never for the model."""
    stop: bool = False
    """It stops the agent: this call and the session's other held calls are denied."""
    hides: bool = False
    """PostToolUse: the tool's output must not reach the model."""
    retry: bool = False
    """After a call: the call is to be repeated, and its hooks run again for the new response."""
    allows: tuple[str, ...] = ()
    """Permission rules: calls that one of them covers need no approval for the rest of the session."""
    action: str = ""
    """Elicitation, ElicitationResult: `accept`, `decline` or `cancel` for the person; empty: no decision."""
    content: bytes | None = None
    """With `accept`: the values of the form, a JSON object exactly as the hook spelled it."""
    variables: tuple[tuple[str, str], ...] = ()
    """SessionStart: variables that the session's later hooks of the same system get."""
    added_labels: tuple[str, ...] = ()
    """Of a managed hook: labels that the session gets; after a call, its result."""
    removed_labels: tuple[str, ...] = ()
    """Of a managed hook: labels that the session loses."""
    liftable: bool = False
    """After a call: a program that answers in a person's place may lift the denial. Before a call, that is ASK."""
    answer: str = ""
    """Of such a program: `approval` or `rejection`."""
    fails_closed: bool = False
    """With `OnFailure.DIALECT`, this failure blocks, whatever the hook's own field says."""
    failure: str = ""
    """How the hook itself failed, in one sentence without a full stop; empty: it did not fail."""
    untrusted: bool = False
    """It failed because its script differs from the trusted one. This blocks, whatever is configured."""
    unjudged: bool = False
    """It failed because its input or its output was too long, so its decision does not count. This blocks, whatever is
    configured about failures."""


NO_VERDICT: Final = Verdict()
"""The verdict of most hooks on most calls: none."""


class HookRun(Struct, frozen=True):
    """One run of one hook for one event: which hook, how it ran, what it decided."""

    spec: HookSpec
    result: HookResult
    verdict: Verdict
    consequence: str = ""
    """What follows from its failure, for people."""
    tool_name: str = ""
    """The tool's name as the hook got it; empty outside of calls."""
    input: bytes | bytearray = b""
    """The document that it got, if the audit records it."""
    unread: tuple[str, ...] = ()
    """Sentences, to follow its name, about members of its output that its system does not know."""
    interception: Mapping[str, object] = field(default_factory=dict)
    """Of the last run of an event: the record of it that the hooks' system demands of a host; empty: it has none."""


class Session(Struct, frozen=True):
    """What is the same for all events of one run of the proxy."""

    id: str
    server: str
    """The server's name as hooks see it."""
    cwd: str
    """The working directory, as hooks see it: the project that a person names, else hookproxy's own."""
    project_dir: str
    """The project that a person names, else the inherited `CLAUDE_PROJECT_DIR`, else hookproxy's working directory."""
    command: tuple[str, ...] = ()
    """The server's command line; empty: it is reached at an address, or not known."""
    url: str = ""
    """The server's address; empty: it is a process."""
    principal: Principal | None = None
    """Who has opened the session at a gateway; None: this is not a gateway."""
    server_cwd: str = ""
    """The server's working directory; empty: it is `cwd`."""
    transcript: str = ""
    """The file with what was done in the session, as Claude Code has one; empty: there is none."""

    @property
    def server_folder(self) -> str:
        """The folder from which the server takes relative paths."""
        return self.server_cwd or self.cwd

    def in_project(self, project: str) -> Session:
        """The session as hooks see it that run in this project; itself if `project` is empty."""
        if not project:
            return self
        return replace(self, cwd=project, project_dir=project, server_cwd=self.server_folder)


class Outcome(Struct, frozen=True):
    """How a call ended, as PostToolUse and PostToolUseFailure hooks get it."""

    content: bytes = b"[]"
    """The result's content blocks, a JSON array as hooks may read it."""
    has_result: bool = False
    """False: there was a JSON-RPC error, or no response."""
    error: str = ""
    """The error message; empty: the call succeeded."""
    interrupted: bool = False
    """The agent cancelled the call after it was forwarded."""
    structured: bytes = b""
    """The result's structuredContent; empty: there is none. It is normalised, or a text block is the same."""
    repeats_structured: bool = False
    """The content's text says the same as `structured`."""
    more: bytes = b""
    """A JSON object of the members that no tool's result has in MCP, or a result that is not an object; empty: none."""
    whole: bytes = b""
    """The whole result, normalised, if `structured` or `more` says more than `content`; empty: `content` is enough."""
    duration_ms: int = 0
    """Milliseconds between forwarding the call and its response: the tool's time, without the hooks'."""


class Elicitation(Struct, frozen=True):
    """A request of the server for the person's input, and the response once there is one. JSON is normalised."""

    message: str
    mode: str = "form"
    """`form`: the person fills in a form; `url`: the person visits a page."""
    schema: bytes = b""
    """Mode `form`: the `requestedSchema`; empty: there is none."""
    url: str = ""
    """Mode `url`: the page."""
    elicitation_id: str = ""
    """The server's `elicitationId`; empty: there is none."""
    action: str = ""
    """The response: `accept`, `decline`, `cancel` or `error`; empty: there is none yet."""
    content: bytes | None = None
    """The form's values that the person gave; None: there are none."""


class AgentState(Struct, frozen=True, omit_defaults=True):
    """What only an agent knows of an event, as its own document says it; each is empty if that says nothing.

    The fields have the names of Claude Code's members.
    """

    agent_id: str = ""
    """The subagent that acts; empty: the main agent does."""
    agent_type: str = ""
    """Of what kind the subagent is, or the agent that was started as one of a kind."""
    permission_mode: str = ""
    transcript_path: str = ""
    model: str = ""
    """The model that acts, where a document says it."""


class EventContext(Struct, frozen=True):
    """One event at which hooks run, with everything that they may get as input."""

    event: Event
    session: Session
    tool: str = ""
    """The tool's name as the server knows it; empty for session events."""
    tool_name: str = ""
    """The tool's name as the hook sees it."""
    tool_use_id: str = ""
    """An id that is the same for all events of one call."""
    arguments: bytes = b"{}"
    """The arguments as a normalised JSON object (design section 5): under the server's names, or, in the context of
    one hook, under the names of the alias that this hook sees."""
    alias: Alias | None = None
    """The names by which hooks may know the tool and its arguments; in the context of one hook, the alias that it
    sees. None: there are only the server's own names."""
    managed_alias: Alias | UnsetType | None = UNSET
    """The same for managed hooks and rules, as it was for the decision: it holds for the whole call, whatever the
    server lists meanwhile. UNSET: not worked out yet."""
    meta: bytes = b""
    """PreMcpToolCall: the `_meta` that would be sent, as normalised JSON; empty: there is none."""
    annotations: bytes = b""
    """The tool's `annotations` from a tools/list result that has passed; empty: not known."""
    outcome: Outcome | None = None
    """How the call ended; None before that."""
    trigger: str = ""
    """SessionStart: its source. SessionEnd: its reason. Notification: its type. ErrorOccurred: `tool_execution` or
    `system`. ElicitationResult: the response's action. Matchers of these events apply to it."""
    message: str = ""
    """The text for the person, the reason why a call was refused or needs approval, or an error message."""
    elicitation: Elicitation | None = None
    """Elicitation, ElicitationResult: the whole elicitation, if it is known."""
    request_id: str = ""
    """The JSON-RPC id of the call, as text."""
    at: float = 0.0
    """When the event happened, in seconds since 1970."""
    trace: tuple[tuple[str, str], ...] = ()
    """Environment variables with which hooks continue the call's trace; empty: it has none."""
    agent: str = ""
    """The agent's name and version, as it gives them; empty: not known."""
    agent_state: AgentState | None = None
    """What the agent's own document says beyond that; None: the event did not come from one."""
    labels: tuple[str, ...] | None = None
    """The labels of what the session has read; None: nothing says where data may go."""
    calls: Callable[[], bytes] | None = None
    """Returns the calls of the session that have ended, as JSON (`hooks.session_calls`); None: no hook gets them."""
    denial: bytes = b""
    """For a program that answers in a person's place: the denial that it may lift, as JSON; else empty."""
    own_tool_name: str = ""
    """In the context of one hook that runs only once and sees a name of the alias: the server's own name for the tool,
    as the hook would see it otherwise; else empty."""
    own_tool: bool = False
    """The agent itself has the tool, as its native event says; it is not a server's."""


class Document(Struct, frozen=True):
    """The input of one hook."""

    stdin: bytes | bytearray
    env: Mapping[str, str]
    """Environment variables in addition to the inherited ones."""
    cut: bool = False
    """A variable does not hold all arguments of the call: the system limits its length."""
    names_caller: bool = False
    """It says already who calls at a gateway: nothing is added to it."""
    calls: Callable[[], bytes] | None = None
    """Type `python`: returns the calls before it in the session, a JSON array, for functions that take a typed value.
    They are not in `stdin`: to write two hundred calls takes longer than a hook."""


class Tool(Struct, frozen=True):
    """One tool in a tools/list result that has passed."""

    name: str
    input_schema: bytes = b""
    """`inputSchema` as raw JSON; empty, as all that follows: there is none."""
    output_schema: bytes = b""
    annotations: bytes = b""
    """As normalised JSON."""
    properties: frozenset[str] = frozenset()
    """The names of its arguments."""
    by_loose_key: Mapping[str, str] = field(default_factory=dict)
    """The same names by `raw_json.loose_key`, because some servers accept other spellings."""
