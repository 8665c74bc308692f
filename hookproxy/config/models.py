"""The keys of hookproxy.toml and what each one means. The reference page and the JSON Schema are generated from here.

An unknown key is an error: a misspelled guard must not be missing silently (law 3).

`parse` reads a valid file with these classes alone. `pydantic_models` derives models from them and from the texts below
their keys: those explain what is wrong with an invalid file, but to import pydantic takes 100 ms and 12 MB. Annotations
are evaluated when the classes are made: as strings (`from __future__ import annotations`) they would be compiled later,
which takes longer.
"""

from typing import Annotated, Final, Literal, TypeVar

from msgspec import Meta, Struct, field

from ..model.durations import DURATION
from ..model.flow import Label
from ..model.settings import (
    MAX_ASK_SECONDS,
    Arguments,
    Delivery,
    OnAsk,
    OnFailure,
    Results,
    SeenNames,
    Settings,
    ToolNames,
)
from ..model.sizes import SIZE

MIN_MESSAGE_BYTES: Final = 1024  # less would not hold an initialize request
MIN_DEPTH: Final = 4  # less would refuse what ordinary tools need
MAX_DEPTH: Final = 250  # more would leave no room for the document around the arguments in jq 1.6
MIN_AUDIT_FILE_BYTES: Final = 64 * 1024  # less would start a new file every few calls
MAX_CHECKPOINT_LINES: Final = 10_000  # their hashes are computed in one go, which takes 50 ms
MAX_CHECKPOINT_SECONDS: Final = 86_400.0  # a day; whoever wants fewer signatures wants none
MAX_CALLS: Final = 100_000  # of a rate limit: the time of each call is kept, in 32 bytes
MAX_SAME: Final = 1000  # times of the same call: the time of each is kept, for up to 1,024 different calls
OR_ONE_STRING: Final = "or_one_string"
"""In the `extra` of a list of strings: a single string is read as a list of one."""

SAME_PATTERN: Final = "same_pattern"
"""In the `extra` of a text: its pattern as pydantic and JSON Schema need it, whose `\\s` has no U+001C to U+001F."""

_DEFAULTS: Final = Settings()

_NAME_OF_TOOL: Final = Meta(pattern=r"^(?:[^\s()]|[\x1c-\x1f])+\Z", extra={SAME_PATTERN: r"^[^\s()]+$"})
_Text = Annotated[str, Meta(min_length=1)]
Size = Annotated[str, Meta(pattern=SIZE)]
Duration = Annotated[str, Meta(pattern=DURATION)]


Mode = Literal["enforce", "monitor"]
"""Whether something decides, or is only watched."""


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the file. It accepts only the keys that it defines, and only values of their types."""


# --- what servers learn of the agent's folders ---


class Roots(Table, frozen=True):
    """Which folders a server learns of when it asks its agent for *roots*: many servers work in any folder that they
    are given so.
    """

    passes: bool | None = field(default=None, name="pass")
    """true: the server gets the roots that the agent says, as by default with `run`. false: it gets none, and learns
    that the agent has none.
    """
    give: list[_Text] | None = None
    """The folders that the server gets in place of the agent's, as paths or as file:// addresses. A relative path
    starts from the folder of the file. The agent is not asked.
    """
    allow: list[_Text] | None = None
    """The server gets only those roots of the agent that are one of these folders, or lie below one. Links are
    followed.
    """


# --- hooks ---


SeenSecrets = Literal["placeholders", "values"]
"""What hooks see of secrets."""


class Use(Table, frozen=True):
    """A hook file of another system, used unchanged."""

    file: _Text
    """The hook file. A folder means the *.json files in it, a glob pattern the files that match. A relative path starts
    from the folder of hookproxy.toml, and `~` is the home folder.
    """
    dialect: str | None = None
    """The system that the hook file is written for. Default: recognised from the file's content."""
    tool_names: ToolNames | None = None
    """Which tool names these hooks see: "mcp" is mcp__SERVER__TOOL, "bare" is TOOL. Default: the names that the dialect
    uses.
    """
    names: SeenNames | None = None
    """What hooks see of a tool that their matcher matches by its own name and by a familiar name that was recognised
    (Bash, Write), as hooks for all tools do. "both" (the default) runs them once under each name before a call, and
    under the familiar name after it; "own" only under the server's own name; "familiar" only under the familiar one.
    """
    on_failure: OnFailure | None = None
    """Like the top-level `on_failure`, but only for the hooks of this file."""
    project: _Text | None = None
    """The folder in which these hooks run, and which they get as their working directory. A relative path starts from
    the folder of hookproxy.toml. Default: the project that the file belongs to, such as DIR for
    DIR/.claude/settings.json; for all other files, a plugin's among them, the folder in which hookproxy is started.
    """
    agent: _Text | None = None
    """docker-agent: which agent in the file has the hooks to use. Default: root."""
    await_post: bool | None = None
    """lime: true waits for the hooks that run after a call, so that the model sees their output."""
    fire_permission_request: Literal["asked", "always"] | None = None
    """copilot: "always" runs permissionRequest hooks for each call; "asked" (the default) runs them only when a person
    would be asked.
    """
    max_retries: Annotated[int, Meta(ge=0, le=10)] | None = None
    """code-assist: how often a call is repeated when its hooks ask for a `retry`. Default: 1."""
    permissions: bool | None = None
    """claude: true applies the permission rules of the settings file (`permissions.allow`, `ask` and `deny`) together
    with those of `[permissions]`.
    """
    tool_args: Literal["string", "object"] | None = None
    """copilot: whether toolArgs is sent as a JSON "string" (the default) or as an "object"."""
    warm: bool | None = None
    """true starts the next process of each command before it is needed, like `warm` in `[[hooks.EVENT]]`. Not for
    dialects whose environment variables depend on the call, such as lime and claw.
    """
    warm_max_age: float | None = None
    """Like `warm_max_age` in `[[hooks.EVENT]]`, for the hooks of this file."""
    warm_spares: int | None = None
    """Like `warm_spares` in `[[hooks.EVENT]]`, for the hooks of this file."""
    secrets: SeenSecrets | None = None
    """What these hooks see of the secrets that `[secrets]` hides: "placeholders" (the default), or their "values"."""
    mode: Mode = "enforce"
    """ "monitor" runs the hooks of this file and records what they would have done; nothing is changed by them. The
    same holds for its rules, with `permissions`.
    """


WARM_OPTIONS: Final = {"warm", "warm_max_age", "warm_spares"}
"""The keys of `[[use]]` about processes that are started before they are needed."""

DIALECT_OPTIONS: Final = {"agent", "await_post", "fire_permission_request", "max_retries", "permissions", "tool_args"}
"""The keys of `[[use]]` that only some dialects have; `Dialect.options` lists them."""


class OwnHook(Table, frozen=True):
    """A hook in hookproxy's own format. Exactly one of `command`, `argv`, `call`, `url`, `expression`, `policy` and
    `file` says what runs.
    """

    name: str | None = None
    """The name that people and the model see. Default: the name of the command."""
    matcher: str | None = None
    """Which tools the hook is for, by the rules of Claude Code's matchers. It is tried on TOOL and on
    mcp__SERVER__TOOL. Default: all tools.
    """
    only_if: str | None = field(default=None, name="if")
    """A permission rule, like Claude Code's `if`. The hook does not run for calls that the rule does not match."""
    type: Literal["command", "worker", "python", "http", "cel", "cedar", "opa", "agent-hooks"] | None = None
    """How the hook runs. "command" (the default): a new process for each event. "worker": one process that keeps
    running, reads one JSON document per line and answers each with a JSON object on one line. "python": a function that
    is called in hookproxy's process. "http": the document is sent as a POST request, and the response is the hook's
    output. "cel", "cedar", "opa": a policy in the language of that engine allows or refuses the call. "agent-hooks": a
    new process for each event, which reads the context of AGENT-HOOKS-0.1 and prints its verdict.
    """
    concurrent: bool | None = None
    """worker: true sends further documents before the first one is answered. Each document has an `id`, and its output
    repeats it.
    """
    call: str | None = None
    """python: "package.module:function". The module is looked for in the folder of hookproxy.toml, then among the
    installed packages. The function gets the document and returns what a command would print, or None. A function that
    is not async runs in a thread, which a timeout cannot stop.
    """
    url: str | None = None
    """http, opa: where the document is sent. It must be https, or http to this machine. Redirects are not followed.
    For opa it is the address of a rule, such as "http://localhost:8181/v1/data/mcp/allow".
    """
    headers: dict[str, str] | None = None
    """http, opa: headers of the request. `$NAME` is replaced by the environment variable, which `allowed_env_vars` must
    list.
    """
    allowed_env_vars: list[str] | None = None
    """http, opa: the environment variables that `headers` may use."""
    expression: str | None = None
    """cel: true allows the call, false refuses it. It may use `tool`, `server`, `arguments`, `agent`, `user`, `groups`
    and `session`. Needs the extra `cel`.
    """
    policy: str | None = None
    """cedar: the policies themselves. Needs the extra `cedar`."""
    file: _Text | None = None
    """cedar: the file with the policies. A relative path starts from the folder of hookproxy.toml."""
    policy_schema: _Text | None = field(default=None, name="schema")
    """cedar: the file with the schema of the policies. `hookproxy check` validates the policies against it, and a call
    that does not fit it is refused.
    """
    reason: str | None = None
    """cel, cedar, opa: why a call is refused, for the model. Default: a sentence that names the policy."""
    warm: bool | None = None
    """command: true starts the next process before it is needed. Only for hooks that read standard input before they do
    anything else: the process waits there, and handles one event.
    """
    warm_max_age: float | None = None
    """warm: seconds after which an unused process is ended. Default: 600."""
    warm_spares: int | None = None
    """warm: the largest number of waiting processes when calls overlap, 1 to 16. Default: 1."""
    command: str | None = None
    """A command line for sh. It starts in the folder of hookproxy.toml."""
    argv: list[str] | None = None
    """A program and its arguments. It starts without a shell, in the folder of hookproxy.toml."""
    env: dict[str, str] | None = None
    """Environment variables for the hook, in addition to those that it inherits."""
    timeout: float | None = None
    """Seconds after which the hook is ended, together with all processes that it started. Default: 60. For
    the types "cel", "cedar", "opa" and "agent-hooks" it is 5.
    """
    background: bool | None = field(default=None, name="async")
    """true runs the hook in the background: nothing waits for it, and its output decides nothing."""
    on_failure: OnFailure | None = None
    """Like the top-level `on_failure`, but only for this hook."""
    secrets: SeenSecrets | None = None
    """What the hook sees of the secrets that `[secrets]` hides: "placeholders" (the default), or their "values"."""
    mode: Literal["enforce", "monitor", "evaluate_only"] | None = None
    """ "enforce" is the default, unless `[hooks.composition]` says otherwise. "monitor" runs the hook and records what
    it would have done; nothing is changed by it. "evaluate_only" is for hooks of type "agent-hooks": calls wait for the
    hook, and what it would have decided is reported and recorded.
    """


class Interceptors(Table, frozen=True):
    """`[[interceptors]]`: a server of MCP interceptors (SEP-2624), which judges the messages that its hooks name."""

    name: _Text
    """The name that people and the model see."""
    argv: Annotated[list[_Text], Meta(min_length=1)] | None = None
    """The server's program and its arguments. It starts without a shell, in the folder of hookproxy.toml. Exactly one
    of `argv` and `url` says where the server is.
    """
    url: _Text | None = None
    """The server's address (Streamable HTTP). It must be https, or http to this machine. Redirects are not followed."""
    headers: dict[str, str] | None = None
    """url: headers of the requests. `$NAME` is replaced by the environment variable, which `allowed_env_vars` must
    list.
    """
    allowed_env_vars: list[str] | None = None
    """url: the environment variables that `headers` may use."""
    env: dict[str, str] | None = None
    """Environment variables for the server, in addition to those that it inherits."""
    timeout: float | None = None
    """Seconds that each of its interceptors may take for a message, and the server for its start. Default: 60."""


class Resolver(Table, frozen=True):
    """A program that may lift the denials with `approval` of hooks of type "agent-hooks", in a person's place. It reads
    an ApprovalRequest from standard input, and prints an ApprovalResolution.
    """

    argv: Annotated[list[_Text], Meta(min_length=1)] | None = None
    """The program and its arguments. It starts in the folder of hookproxy.toml."""
    command: _Text | None = None
    """Instead of `argv`: a command line for the shell."""
    timeout: Annotated[float, Meta(gt=0)] | None = None
    """Seconds after which the program is ended, and the denial stands. Default: 120."""


class Composition(Table, frozen=True):
    """How the verdicts of several hooks of type "agent-hooks" become one, as AGENT-HOOKS-0.1 says it, and what else the
    standard leaves to their host.
    """

    mode: Literal["enforce", "evaluate_only"] | None = None
    """ "evaluate_only": the same as in each hook that has no `mode`. Only then the file may have no such hook: then the
    record of each call says so.
    """
    identity_provider: Literal["jcs-sha256"] | None = None
    """ "jcs-sha256": records have the SHA-256 of what was judged, as canonical JSON, and an approval counts for just
    that. A call with an integer beyond 2^53 is refused. Default: no identities.
    """
    resolver: Resolver | None = None
    """The program that decides where a hook denies with `approval`. Default: a person is asked about calls, and the
    denial of a result stands.
    """
    redact: list[_Text] | None = None
    """What the resolver does not get: paths such as "$target.password"."""

    profile: (
        Literal["sequential/run_all", "sequential/first_deny", "parallel/strictest", "parallel/unanimous"] | None
    ) = None
    """ "sequential/run_all" (the default): one after another, each on what those before it have left; a denial beats an
    approval, which beats a rewrite. "sequential/first_deny": the same, but a denial skips the rest.
    "parallel/strictest": all get the same, and two rewrites are a conflict. "parallel/unanimous": all get the same, and
    whatever is not an "allow" of all is refused.
    """
    on_approval: Literal["stop", "resume"] | None = None
    """sequential/first_deny: "stop" (the default) leaves out the hooks after one that has the person asked."""
    on_disagreement: Literal["deny", "approval"] | None = None
    """parallel/unanimous: "approval" has the person asked instead of refusing, even if a hook denies. Default:
    "deny".
    """
    on_transform_conflict: Literal["deny", "approval"] | None = None
    """parallel/strictest: "approval" has the person asked whether the call may run without a rewrite. Default:
    "deny".
    """


class OwnHooks(Table, frozen=True):
    """Hooks in hookproxy's own format, by event: one flat table `[[hooks.PreToolUse]]` for each hook."""

    PreToolUse: list[OwnHook] = []
    """Before a call. May rewrite its arguments, block it, or have a person asked."""
    PostToolUse: list[OwnHook] = []
    """After a call that succeeded. May comment on the result or replace it."""
    PostToolUseFailure: list[OwnHook] = []
    """After a call that failed. May comment on the failure."""
    SessionStart: list[OwnHook] = []
    """When an agent connects. May add instructions."""
    SessionEnd: list[OwnHook] = []
    """When the agent has disconnected."""
    PermissionRequest: list[OwnHook] = []
    """When a person is about to be asked about a call. May answer in their place."""
    Elicitation: list[OwnHook] = []
    """When the server asks the person something. May answer in their place."""
    ElicitationResult: list[OwnHook] = []
    """When the person has answered the server. May change the answer."""
    Notification: list[OwnHook] = []
    """When a person is asked for approval, or by the server."""
    composition: Composition = field(default_factory=Composition)
    """How the verdicts of several hooks of type "agent-hooks" become one."""
    notifications: Literal["pass", "hold"] = "pass"
    """What happens to progress, log messages and task statuses of the server that may repeat the output of a call with
    post hooks of any file. "pass": they pass at once, and hooks do not see them. "hold": they wait until the hooks have
    judged the output; if a hook replaces, hides or withholds it, they are dropped.
    """


# --- tools and rules ---


class Permissions(Table, frozen=True):
    """Permission rules: `Tool` or `Tool(argument)`, with globs. A deny rule beats ask, ask beats allow, and allow beats
    the default.
    """

    default: Literal["allow", "ask", "deny"] = "allow"
    """What happens to a call of a tool that no rule is about. "deny" makes a list of what is allowed of the rules: all
    else is refused. What a hook decides (allow, ask) comes before it. It holds for requests of another method, such as
    `resources/read`, if a rule names the method.
    """
    allow: list[_Text] = []
    """Calls for which no person is asked, even when a hook wants to ask. An ask rule takes precedence."""
    ask: list[_Text] = []
    """Calls for which a person must be asked, even when an allow rule matches."""
    deny: list[_Text] = []
    """Calls that are refused, whatever hooks and other rules decide."""
    hide_denied: bool = True
    """true leaves out of tools/list the tools of which every call would be refused: those that a deny rule without
    parentheses matches, and with `default = "deny"` those that nothing could allow.
    """
    unreadable: Literal["ask", "deny", "allow"] = "ask"
    """What happens to a command line that cannot be read for certain (`$TOOL x`, `curl … | sh`), and so might run what
    a deny or an ask rule about commands names. It matches no allow rule.
    """
    mode: Mode = "enforce"
    """ "monitor" records what these rules would have decided; no call is refused or asked about because of them, and no
    tool is hidden.
    """


class Calls(Table, frozen=True):
    """Checks of the calls that hooks or rules judge, before any of them runs."""

    check_types: bool = False
    """true refuses a call with an argument that is missing although the server's inputSchema requires it, or that is
    not of the type that it states. What hooks read by a familiar name (a command, a path, an address, a text) is
    checked in any case; the rest is not by default, because servers coerce, and models send "5" for 5.
    """


class ToolTable(Table, frozen=True):
    """`[tools.X]`: the name and the argument names by which hooks of all dialects know the server's tool X, and how the
    agent sees it.
    """

    known_as: Annotated[str, _NAME_OF_TOOL] | None = field(default=None, name="as")
    """The name that hooks see, so that guards written for that name work unchanged. Rules may use it, too. The tool's
    own names still match.
    """
    arguments: dict[_Text, _Text] = {}
    """Names of arguments: `name that hooks see = name that the server uses`. Other arguments keep their names.
    Rewritten arguments are mapped back.
    """
    hide: bool | None = None
    """true leaves the tool out of tools/list, and answers calls of it as those of an unknown tool."""
    rename: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.\-]{1,128}\Z")] | None = None
    """The name by which the agent sees and calls the tool, in place of its own. Hooks, rules, the audit and the server
    know it by its own name.
    """
    description: _Text | None = None
    """The description that the agent sees, in place of the server's. All else of the tool stays as it is."""


class LimitTable(Table, frozen=True):
    """`[[limits]]`: how much calls may be in a period: how many, how often the same one, how long, or how long their
    results. Each run of hookproxy counts its own calls. A table may have several of these measures.
    """

    tool: _Text | None = None
    """A glob over tool names. The calls of all matching tools are counted together. Default: all tools."""
    calls: Annotated[int, Meta(ge=1, le=MAX_CALLS)] | None = None
    """How many calls may be forwarded. Calls that hooks or rules refuse do not count."""
    same: Annotated[int, Meta(ge=1, le=MAX_SAME)] | None = None
    """How often the same call may be forwarded: that of one tool with the same arguments, in whatever order these are
    written.
    """
    seconds: Annotated[float, Meta(gt=0, le=31_536_000)] | None = None
    """How many seconds calls may take, all of them together. It is known after a call how long it took: the call that
    passes the limit is the last one.
    """
    result_bytes: Size | None = None
    """How many bytes the results of calls may have, all of them together, such as "5MiB". As for `seconds`, the call
    that passes the limit is the last one.
    """
    per: Literal["second", "minute", "hour", "day", "session"] | None = None
    """The length of the period, which may start at any time. "session", the default, is one run of hookproxy, or the
    session of an agent whose own tools `hookproxy guard` judges.
    """
    window: Duration | None = None
    """The length of the period, in place of `per`: a whole number of seconds, minutes, hours or days, such as "90s" or
    "10m".
    """
    within: Literal["session", "agent", "subagent"] | None = None
    """Whose calls count together. "session", the default: those of the session. "agent": those of the agent with all
    its subagents, which is the same. "subagent": each subagent's alone, and the main agent's alone. A call of which it
    is not known who makes it counts as the main agent's.
    """
    then: Literal["deny", "ask", "comment"] = "deny"
    """What happens to a call that exceeds the limit. "deny": it is refused, and the model reads when to go on. "ask": a
    person is asked, as `on_ask` says, and each call that they allow runs. "comment": it runs, and the model reads with
    its result that the limit is exceeded.
    """
    mode: Mode = "enforce"
    """ "monitor" counts calls and records which ones would have been refused; none is."""


# --- where data may go ---


_Texts = _Text | Annotated[list[_Text], Meta(min_length=1)]
_Labels = Annotated[list[Label], Meta(min_length=1)]


class FlowEntry(Table, frozen=True):
    """What a source or a sink is. Of the keys that are set, each must match; a list matches if one of its values does.
    At least one must be set.
    """

    tool: _Texts | None = None
    """Globs over tool names, as in permission rules: "read_file", "mcp__github__*", "Read", "WebFetch"."""
    method: _Texts | None = None
    """Methods besides tool calls, such as "resources/read" or "prompts/*". An entry with `tool` and `method` is about
    these tools and these methods; one with neither is about all of them.
    """
    server: _Texts | None = None
    """Globs over names of servers."""
    path: _Texts | None = None
    """Paths in the arguments, as in the parentheses of a permission rule: "**/.env", "~/.ssh/**"."""
    host: _Texts | None = None
    """Domains in the arguments, with all below them, as behind `domain:` in a permission rule: "example.com"."""
    resource: _Texts | None = None
    """Globs over URIs of resources: "https://wiki.example.com/*"."""
    annotation: _Texts | None = None
    """What the server says of the tool, or of a result: "readOnlyHint", "!readOnlyHint", "openWorldHint",
    "sensitiveHint=high", "returnMetadata.source=untrustedPublic". What it does not say is as MCP has it: open-world,
    and not read-only.
    """


class FlowSource(FlowEntry, frozen=True, kw_only=True):
    """`[[flow.sources]]`: what it returns gets labels, from the moment at which it reaches the agent."""

    labels: _Labels
    """The labels: `untrusted`, `private`, `secret`, or words of your own."""
    secrets: bool = False
    """true: only what looks like a secret in a result gets the labels."""


class FlowSink(FlowEntry, frozen=True, kw_only=True):
    """`[[flow.sinks]]`: what some labels may not reach."""

    labels: _Labels
    """The labels that may not reach it."""
    action: Literal["ask", "deny", "comment"] = "ask"
    """What happens to a call that would carry them: "ask" asks a person, and refuses it where nobody can be asked;
    "deny" refuses it; "comment" lets it pass and tells the model.
    """
    by: Literal["session", "value", "address"] = "session"
    """"session": every call after the source's result carries its labels. "value": only a call that has something of
    what was read in its arguments does, also in another encoding. "address": as "value", but only for what names a
    place or an account: addresses of pages, of hosts and of mail, and numbers and codes of at least eight characters.
    """
    arguments: _Texts | None = None
    """Names of arguments of tools, such as ["recipients", "cc"]: only these are looked at, and those that the server
    does not list; a call without any of them is not this sink. Default: all arguments.
    """
    back_to_origin: bool = False
    """true: what comes from a server may go back to it."""
    mode: Mode = "enforce"
    """ "monitor" records which calls would have been refused or asked about; none is."""


class Flow(Table, frozen=True):
    """Where data may go: what was read at one place must not leave by another one."""

    seconds: Annotated[float, Meta(ge=0, le=31_536_000)] = 0.0
    """How many seconds a label sticks to the session. 0: until the session ends."""
    sources: list[FlowSource] = []
    """What gives labels."""
    sinks: list[FlowSink] = []
    """What labels may not reach."""


# --- secrets that tools can use and models cannot see ---


class SecretsOff(Table, frozen=True):
    """`[[secrets.off]]`: tools whose results are not looked at. At least one key must be set."""

    tool: _Texts | None = None
    """Globs over tool names. Default: all tools of these servers."""
    server: _Texts | None = None
    """Globs over names of servers. Default: all."""


class SecretsRestore(Table, frozen=True):
    """`[[secrets.restore]]`: where placeholders in arguments become the values again. Everywhere else they stay."""

    tool: _Texts
    """Globs over tool names: the tools that may have the values."""
    server: _Texts | None = None
    """Globs over names of servers. Default: all that have such a tool, also one that calls a tool so to get them."""
    rules: _Texts = "*"
    """Globs over the names of what has found the secrets: rules, detectors and values."""


class Secrets(Table, frozen=True):
    """Secrets in results become placeholders, which tell a model nothing. The table turns it on, even an empty one."""

    detectors: dict[_Text, _Text] = {}
    """What you call a secret besides what the rules of gitleaks do: `NAME = "REGULAR EXPRESSION"` in the syntax of RE2.
    Its first group that takes part is the secret, or else the whole match.
    """
    values: dict[_Text, _Text] = {}
    """Secrets that are found wherever they appear, in any encoding: `NAME = "env:VARIABLE"`, "file:PATH",
    "keyring:SERVICE/USER", or "command:PROGRAM ARGUMENTS", whose output is the value. They are read at the start and at
    a reload. A relative path starts from the folder of this file.
    """
    allow: list[_Text] = []
    """False alarms, as regular expressions: what a rule or a detector has found is not a secret if one of them matches
    all of it.
    """
    skip: list[_Text] = []
    """Globs over the names of gitleaks' rules that are not used, such as "generic-api-key"."""
    off: list[SecretsOff] = []
    """Tools that are not looked at."""
    restore: list[SecretsRestore] = []
    """Tools that may have the values."""


class Monitor(Table, frozen=True):
    """A policy that is only watched, as a whole: what it would decide is recorded, beside what this file decides."""

    file: _Text
    """A second file with keys of hookproxy.toml. Its hooks, rules, limits and names of tools are evaluated for each
    call as if they stood in the place of those of this file. A relative path starts from the folder of this file.
    """


class Prompter(Table, frozen=True):
    """`on_ask_fallback = { command = ["./ask"] }`: a program that asks the person, in a dialog or a chat message."""

    command: Annotated[list[_Text], Meta(min_length=1)]
    """The program and its arguments. A relative path starts from the folder of hookproxy.toml. The program reads what
    needs approval as JSON (server, tool, arguments, reason, asked_by) from standard input, and exits with 0 for yes or
    2 for no. It may print a response as the webhook's, with a reason or with other arguments.
    """


# --- records of what happened ---


class Audit(Table, frozen=True):
    """The audit log: one line of JSON for each call. It is kept unless `enabled` is false."""

    enabled: bool = True
    """false keeps no audit log. It is on by default: decisions, and arguments without secrets, are recorded in a file
    that only you can read.
    """
    file: _Text | None = None
    """The file that lines are appended to. Default: hookproxy/audit.jsonl in $XDG_STATE_HOME, or else in
    ~/.local/state. A relative path starts from the folder of hookproxy.toml. `{user}` is replaced by the name of the
    account that runs hookproxy. If the path ends with a slash, USER.jsonl is added.
    """
    required: bool = False
    """true refuses a call when its audit line cannot be written. Then a line is written before each call, as with
    `begun`.
    """
    begun: bool | None = None
    """true writes a line before a call is forwarded, too, with the result `begun`: so calls that were running when
    hookproxy was killed are in the audit. Default: true for a gateway, else only where `required` is true.
    """
    arguments: Arguments = _DEFAULTS.audit_arguments
    """ "masked" records the arguments of calls, and what hooks print; [masked: RULE] stands for what looks like a
    secret (well-known tokens, passwords by their names or in commands and addresses, private keys), and of arguments of
    more than 64 KiB the rest is left out. "full" records all of it, and what hooks before a call got; "digest" the
    SHA-256 instead. "masked" records the SHA-256 as well, unless a short password could be found by it.
    """
    results: Results | None = None
    """ "none" does not wait for a response that no hook needs: such a call is recorded when it is forwarded, with the
    result `sent`. "outcome" records whether each call succeeded, and its time. "full" also records what hooks after a
    call got and printed, and the results that they changed, before and after. Default: "outcome" if `file` is set, else
    "none".
    """
    calls: Literal["judged", "all"] = "judged"
    """ "judged" records the calls that a hook or rule applies to; "all" records every call, which takes 0.08 ms of
    computing time for each call that would pass unread. Refused messages are recorded in any case.
    """
    chain: bool | Literal["keyed"] = False
    """true adds the SHA-256 of the previous line to each line, as `previous`. `hookproxy audit verify` then finds lines
    that were changed, removed or inserted later, unless somebody made the whole chain anew. "keyed" also numbers each
    line (`n`) and signs it (`mac`, HMAC-SHA256): nobody without the key can do that. Everyone who writes to the file
    must set the same.
    """
    chain_key_file: _Text | None = None
    """With chain = "keyed": the file with the key, at least 32 bytes that only the account that runs hookproxy may
    read, or root and a group. A relative path starts from the folder of hookproxy.toml;
    "$CREDENTIALS_DIRECTORY/NAME" is one of systemd's credentials.
    """
    sign_key: _Text | None = None
    """The file with an Ed25519 key that signs the end of the audit from time to time: PEM, or as `ssh-keygen -t ed25519
    -N ''` makes it. Such a checkpoint is a line of the audit, and the newest one is also in FILE.signed: `hookproxy
    audit verify --public-key` then finds lines that were removed from the end. It implies chain = true. The file is
    found, and must be protected, like that of `chain_key_file`. Needs the extra `gateway`.
    """
    checkpoint_lines: Annotated[int, Meta(ge=1, le=MAX_CHECKPOINT_LINES)] = _DEFAULTS.audit_checkpoint_lines
    """With `sign_key`: after how many lines a checkpoint is written."""
    checkpoint_seconds: Annotated[float, Meta(ge=0.1, le=MAX_CHECKPOINT_SECONDS)] = _DEFAULTS.audit_checkpoint_seconds
    """With `sign_key`: after how many seconds lines are signed, however few they are."""
    shared: bool = False
    """true lets several accounts write to this file: the group of its folder may read and write it. The folder must
    exist. Otherwise only the owner may read or write the file.
    """
    max_file_bytes: Annotated[int, Meta(ge=MIN_AUDIT_FILE_BYTES)] | None = None
    """A file that would grow larger than this is renamed to FILE.1 (the next one to FILE.2, and so on), and a new file
    is started. Default: no limit if `file` is set, else 20000000.
    """
    keep_files: Annotated[int, Meta(ge=1)] | None = None
    """How many renamed files are kept; the oldest ones are removed. Default: all if `file` is set, else 3."""
    redact: list[_Text] = []
    """Python regular expressions. What they match in arguments and in hook output is recorded as [redacted]. A text of
    more than 65536 characters is redacted as a whole. Avoid nested repetition such as (a+)+: matching it may never end.
    """
    redact_keys: list[_Text] = []
    """Names of arguments, at any depth, whose values are recorded as [redacted]. The spelling does not matter: api_key
    also covers apiKey and API-Key.
    """


class Otel(Table, frozen=True):
    """Spans and metrics of judged calls, for an OpenTelemetry collector. Needs the extra `otel`."""

    enabled: bool = False
    """true sends spans and metrics."""
    endpoint: Annotated[str, Meta(pattern=r"^https?://[^/]")] | None = None
    """The OTLP/HTTP address of the collector; /v1/traces and /v1/metrics are added to it. Default: the value of
    OTEL_EXPORTER_OTLP_ENDPOINT, or else http://localhost:4318.
    """


class Remote(Table, frozen=True):
    """`hookproxy run --url URL`: how long hookproxy waits for a server at an address."""

    connect_seconds: Annotated[float, Meta(gt=0, le=600)] = _DEFAULTS.remote_connect_seconds
    """How many seconds a connection to the server may take, with the look-up of its name and TLS. A request that gets
    no connection in this time is answered with an error.
    """
    silence_seconds: Annotated[float, Meta(ge=0, le=86400)] = _DEFAULTS.remote_silence_seconds
    """How many seconds the server may send nothing while a request waits for its response. Then the request is answered
    with an error. Progress and keep-alive comments count as something. 0 waits for ever.
    """
    connections: Annotated[int, Meta(ge=2, le=4096)] = _DEFAULTS.remote_connections
    """How many connections to the server may be open at a time. Each request takes one until it is answered, and so
    does the stream of what the server sends by itself. Further requests wait.
    """


class Model(Table, frozen=True):
    """The language model that hooks of type `prompt` and `agent` in hook files ask. Without it they do not run."""

    api: Literal["openai", "anthropic"]
    """The interface of the endpoint: OpenAI's chat completions, which many servers have, or Anthropic's messages."""
    url: _Text
    """The endpoint's address, to which "/chat/completions" or "/v1/messages" is added: "https://host/v1" for the first,
    "https://host" for the second. It begins with https, or with http for this machine.
    """
    name: _Text
    """The model of hooks that name none, as the endpoint calls it."""
    key: _Text | None = None
    """Where the endpoint's key is: "env:VARIABLE" or "file:PATH". It is read for each question. A relative path starts
    from the folder of this file. Default: no key is sent.
    """
    aliases: dict[_Text, _Text] = {}
    """The endpoint's names of models that hooks name otherwise: `haiku = "small-model"`. Others are sent as they are
    written.
    """


class GuardTable(Table, frozen=True):
    """`hookproxy guard`, which judges the agents' own tools."""

    idle_seconds: Annotated[float, Meta(gt=0, le=604800)] = _DEFAULTS.guard_idle_seconds
    """How many seconds the guard waits for an event of an agent before it ends. The next event starts it again."""
    fail_closed: bool = _DEFAULTS.guard_fail_closed
    """true: a call that no guard can judge is refused. false: the agent does what it does for a hook that fails, and
    most let the call go on. `hookproxy guard install` writes it into the agents' hook files, unless its own option says
    otherwise; entries that are there already stay as they are. With a configuration of the administrator it is always
    true.
    """


class ApprovalWebhook(Table, frozen=True):
    """`[approvals.webhook]`: a chat program, or another service, that gets approvals and may answer them."""

    url: _Text
    """Where each approval is posted as JSON, with a signature. https, except on this machine."""
    secret: _Text
    """The secret of the signature: "env:NAME", "file:PATH", "keyring:SERVICE/USER" or "command:WORDS". A relative path
    starts from the folder of this file.
    """
    listen: _Text = "127.0.0.1:0"
    """Where answers come: an address of this machine, and a port; 0 is any free one."""
    public_url: _Text | None = None
    """The address of `listen` for the service, where a tunnel or a reverse proxy stands before it."""


class ApprovalsTable(Table, frozen=True):
    """How calls that wait for approval are reported, beside the agent and open consoles."""

    desktop: bool = False
    """true shows a notification of the desktop, by notify-send, or osascript on macOS."""
    webhook: ApprovalWebhook | None = None
    """A chat program, or another service, that gets approvals and may answer them."""


class LockTable(Table, frozen=True):
    """What servers say of themselves is compared with what `hookproxy lock` has recorded of them."""

    file: _Text | None = None
    """The file. Default: hookproxy.lock beside this file, once it exists. A relative path starts from the folder of
    this file.
    """
    on_change: Literal["withhold", "ask", "deny", "warn"] = "withhold"
    """What happens to a tool, a prompt or a resource template that is new or differs from the record, and to changed
    instructions. "withhold": they do not reach the agent, and calls of them are refused. "ask": the same, until a
    person accepts them on a console. "deny": the whole server is refused. "warn": they pass, and are reported.
    """
    create: bool = False
    """true records a server that is not in the file as it is at its first use."""
    hidden_text: Literal["warn", "withhold"] = "warn"
    """What happens to a text that hides something, such as invisible characters: "withhold" treats it as changed."""


# --- a policy from elsewhere ---


class Policy(Table, frozen=True):
    """A signed policy that is fetched, for many machines. Only in the administrator's file, and in gateway.toml."""

    source: _Text
    """Where it is: "https://HOST/PATH.tar.gz", "oci://HOST/NAME" (a registry), or "git+https://HOST/PATH",
    "git+ssh://git@HOST/PATH" and the like. `{ring}` in it is replaced by `ring`; a registry's tag and a git branch are
    the ring unless the address has another one behind `:` or `#`.
    """
    keys: Annotated[list[_Text], Meta(min_length=1)]
    """Who may sign it: public Ed25519 keys as ssh-keygen writes them, "ssh-ed25519 AAAA…", or files with such keys. One
    of them is enough. A relative path starts from the folder of this file.
    """
    ring: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}\Z")] = "stable"
    """The channel: a bundle is used only if its manifest names this ring."""
    min_version: Annotated[int, Meta(ge=1)] = 1
    """The lowest version that is used, also if what is known of earlier ones is lost."""
    refresh_seconds: Annotated[float, Meta(ge=1, le=86400)] = 300.0
    """How often a gateway asks the source. For `run`, a timer does: `hookproxy policy update`."""
    on_missing: Literal["deny", "allow"] = "deny"
    """What holds while no policy was ever taken, or none that these keys have signed is there: "deny" starts nothing
    and lets nothing pass; "allow" goes on with the local configuration alone.
    """
    on_expired: Literal["deny", "keep"] = "deny"
    """What holds when the policy in force expires and no newer one has come: "deny" starts nothing and lets nothing
    pass; "keep" goes on with it, and says so.
    """
    ca: _Text | None = None
    """Trust the certificates in this file instead of the system's."""
    credential: Annotated[str, Meta(pattern=r"^file:.")] | None = None
    """The file with what the source asks for, as "file:/etc/hookproxy/policy-token": a token, or user:password; for git
    over ssh a private key.
    """
    folder: _Text | None = None
    """Where policies that were taken are kept. Default: /var/lib/hookproxy/policy for a gateway, and
    /var/lib/hookproxy-policy for the administrator's file.
    """


class Packs(Table, frozen=True):
    """Packs: hooks, rules and tests of somebody else, which `hookproxy init --from` has installed."""

    use: list[Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9\-]{0,63}\Z")]] = []
    """The packs that count, by their names. Their hooks run before those of this file, so that the hooks of this file
    judge what those have rewritten; their deny and ask rules and their limits add up with those of this file.
    """
    keys: Annotated[list[_Text], Meta(min_length=1)] | None = None
    """Who may sign packs: public Ed25519 keys as ssh-keygen writes them, "ssh-ed25519 AAAA…", or files with such keys.
    A pack that none of them has signed is not installed, and a start with it stops. Only in the administrator's file
    and in your own ~/.config/hookproxy/hookproxy.toml, whose keys do not count where the administrator's file has some.
    """


# --- the whole file ---


class ConfigFile(Table, frozen=True):
    """The whole of hookproxy.toml."""

    on_failure: OnFailure = _DEFAULTS.on_failure
    """What happens when a hook crashes, times out, cannot start or prints invalid output: "deny", "allow", or
    "dialect", which follows the document of the hook's own system. With "dialect", hooks in hookproxy's own format
    deny. With "deny", everything before a call that is not a clean verdict of the hook's system is invalid.
    """
    on_ask: OnAsk = _DEFAULTS.on_ask
    """What happens when a person should be asked: "elicit" asks through the agent; "console" asks on `hookproxy
    console` and `hookproxy top`; "deny" and "allow" decide without asking.
    """
    on_ask_fallback: Literal["auto", "deny", "allow", "console"] | Prompter = "auto"
    """What happens when a person should be asked and the agent cannot ask. "auto" asks on `hookproxy console` and
    `hookproxy top` while one of them is open, and else denies; "console" waits until one is opened; "deny" and "allow"
    decide without asking; a table names a program of your own that asks. In the administrator's file, the default is
    "deny".
    """
    ask_seconds: Annotated[float, Meta(ge=1, le=MAX_ASK_SECONDS)] = _DEFAULTS.ask_seconds
    """How long a call waits for approval on a console, or by a program that asks, before it is denied. How long an
    agent asks is its own choice.
    """
    on_cut_input: Literal["deny", "allow"] = "deny"
    """What happens when the arguments of a call are too long for the environment variable HOOK_TOOL_INPUT, which hooks
    of claw and lime may read instead of standard input: "deny" refuses the call; "allow" follows the hooks, although
    they may not have seen all of it.
    """
    feedback: Delivery = _DEFAULTS.feedback
    """How feedback of hooks reaches the model. "auto": as text, and in structuredContent when its schema allows it.
    "text": as text only. "strip-output-schema": outputSchema and structuredContent are removed from tools that have
    hooks.
    """
    strict: bool = _DEFAULTS.strict
    """true stops start-up if `hookproxy check` has a warning: a hook that can never run, an unknown event, a matcher
    that cannot be read, a missing script. What depends on the tools of the server is not known at start-up: `hookproxy
    check -- COMMAND` finds it.
    """
    max_message_bytes: Annotated[int, Meta(ge=MIN_MESSAGE_BYTES)] = _DEFAULTS.max_message_bytes
    """The longest line that is forwarded, in bytes. 67108864 is 64 MiB."""
    max_depth: Annotated[int, Meta(ge=MIN_DEPTH, le=MAX_DEPTH)] = _DEFAULTS.max_depth
    """How many objects and arrays may lie in one another in the arguments of a call that hooks judge, and in a result
    that they judge. A deeper call is refused and a deeper result withheld, because a hook whose JSON reader gives up
    (jq 1.6: at 256) would judge nothing.
    """
    use: list[Use] = []
    """Hook files of other systems, used unchanged: one `[[use]]` table for each."""
    hooks: OwnHooks = field(default_factory=OwnHooks)
    """Hooks in hookproxy's own format."""
    interceptors: list[Interceptors] = []
    """Servers of MCP interceptors. They judge calls after the hooks of this file, all of them as one chain."""
    permissions: Permissions = field(default_factory=Permissions)
    """Permission rules. They are applied to the final arguments, after every rewrite."""
    calls: Calls = field(default_factory=Calls)
    """What the arguments of a judged call must be."""
    audit: Audit = field(default_factory=Audit)
    """The audit log."""
    otel: Otel = field(default_factory=Otel)
    """Spans and metrics for an OpenTelemetry collector."""
    aliases: Literal["auto", "off"] = "auto"
    """ "auto": a tool that does what one of Claude Code's tools does gets the name of that tool (Bash, Write, Edit,
    MultiEdit, Read, WebFetch, Grep, Glob, LS) beside its own, so that hooks for that name run for it. `hookproxy check
    -- COMMAND` shows the names. "off": only `preset` and `[tools.X]` give names.
    """
    preset: Annotated[list[str], Meta(extra={OR_ONE_STRING: True})] = []
    """One or several widely used servers, by their names in the list of presets below. Hooks then see their tools under
    the names of Claude Code's tools. `[tools.X]` takes precedence.
    """
    tools: dict[_Text, ToolTable] = {}
    """The names by which hooks know single tools, and how the agent sees them: one table for each tool."""
    flow: Flow = field(default_factory=Flow)
    """Where data may go."""
    lock: LockTable | None = None
    """What servers say of themselves, pinned."""
    approvals: ApprovalsTable = field(default_factory=ApprovalsTable)
    """How calls that wait for approval are reported."""
    secrets: Secrets | None = None
    """Secrets that tools can use and models cannot see."""
    model: Model | None = None
    """The language model that hooks of type `prompt` and `agent` ask."""
    remote: Remote = field(default_factory=Remote)
    """Deadlines for a server at an address."""
    guard: GuardTable = field(default_factory=GuardTable)
    """When the guard of the agents' own tools ends, and what happens without it."""
    limits: list[LimitTable] = []
    """Rate limits. The refusal of a call says when to try again."""
    monitor: Monitor | None = None
    """A second policy, which is only watched."""
    roots: Roots | None = None
    """Which folders the server learns of when it asks its agent for roots."""
    require_trust: bool = False
    """true uses hook files, and the scripts that they start, only in the version that `hookproxy trust FILE` has
    recorded. When the user's own file or the administrator's file says true, nothing can turn it off.
    """
    managed_only: bool = False
    """Only in the administrator's file: true runs no hooks except those of the administrator's files."""
    policy: Policy | None = None
    """A signed policy that is fetched. Its rules and hooks count like the administrator's own."""
    packs: Packs | None = None
    """Packs of hooks and rules. They only narrow what is allowed without them."""


File = TypeVar("File", bound=ConfigFile)
"""A table that stands for a whole file."""


def keys_set(table: Use | OwnHook | Composition | Resolver | Interceptors) -> dict[str, object]:
    """The keys that the file contains in this table, as it spells them, without `mode`. TOML has no null: None is a key
    left out.
    """
    names = zip(table.__struct_fields__, table.__struct_encode_fields__, strict=True)
    return {key: value for name, key in names if key != "mode" and (value := getattr(table, name)) is not None}
