"""The settings of a configuration, as frozen values with their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal

from msgspec import Struct

from .aliases import Alias
from .approval_settings import NOT_TOLD, ApprovalSettings
from .flow import Sink, Source
from .limits import Limit
from .lock_settings import LockSettings
from .policy_source import PolicyBundle
from .secret_settings import SecretSettings
from .shown_tools import ShownTool

FORMER_KEYS: Final = {"on_trouble": "on_failure"}
"""The present name of each key of hookproxy.toml that had another one before: both are read."""


MAX_DEPTH: Final = 64
"""The default of `max_depth`: four times what tools use, and a quarter of what jq 1.6 reads."""

MAX_ASK_SECONDS: Final = 3600.0
"""The default and the most of `ask_seconds`: longer than people think about a form; later, nobody will answer."""


DEFAULTS: Final = ("allow", "ask", "deny")
"""The defaults of permissions, from the laxest to the strictest: where several hold, the strictest counts."""


class OnFailure(StrEnum):
    """What follows if a hook crashes, hangs, cannot start or gives invalid output."""

    DIALECT = "dialect"  # as the dialect's document says
    DENY = "deny"
    ALLOW = "allow"


class OnAsk(StrEnum):
    """What follows if a call needs approval."""

    ELICIT = "elicit"
    CONSOLE = "console"  # on a console; through the agent only if no console can find the run
    DENY = "deny"
    ALLOW = "allow"


class ConsoleUse(StrEnum):
    """Whether a call waits for approval on a console if the agent cannot ask."""

    NEVER = ""
    IF_OPEN = "auto"  # as long as a console or `top` is open
    ALWAYS = "console"  # until somebody opens one and answers, or the time is over


class Delivery(StrEnum):
    """How hooks' feedback is written into results (design section 6)."""

    AUTO = "auto"
    TEXT = "text"
    STRIP_OUTPUT_SCHEMA = "strip-output-schema"


class ServerNamed(StrEnum):
    """Whether an agent's document says of which server a tool is."""

    FOR_CERTAIN = "for certain"
    IN_TOOL_NAME = "in the tool's name"
    """It begins with the server's, and nobody knows where that ends."""
    NOT = "not"
    """At best in the tool's name."""


class ToolNames(StrEnum):
    """Which name of a tool the hooks of a group get."""

    MCP = "mcp"  # mcp__SERVER__TOOL
    BARE = "bare"  # TOOL


class SeenNames(StrEnum):
    """Under which of a tool's names a hook runs whose matcher matches the server's own name and a recognised one."""

    OWN = "own"
    FAMILIAR = "familiar"
    BOTH = "both"  # one run under each before a call; one under the familiar name after it


class Arguments(StrEnum):
    """What the audit records of arguments, and of what hooks before a call got and printed. Each one records more."""

    DIGEST = "digest"  # the SHA-256
    MASKED = "masked"  # the text, but not what looks like a secret, nor all of a long one
    FULL = "full"


class Results(StrEnum):
    """What the audit records of results. In this order each one records more."""

    NONE = "none"  # calls whose response no hook needs are recorded when they are forwarded
    OUTCOME = "outcome"  # whether the call succeeded, and how long it took
    FULL = "full"  # also what hooks after the call got and printed, and results that they changed


class AgentRule(Struct, frozen=True):
    """A permission rule of an agent's own settings file, which `[[use]] permissions = true` applies."""

    decision: Literal["deny", "ask", "allow"]
    text: str
    """The rule as written, in the syntax of a rule of hookproxy.toml unless it is about paths."""
    place: str
    """Where it is written, for people: `FILE:LINE`."""
    names: tuple[str, ...] = ()
    """Of a rule about paths: the names of the tools that it is about."""
    path: str = ""
    """Of a rule about paths: a pattern of gitignore; empty: it is another rule."""
    bases: tuple[str, ...] = ()
    """The folder that the pattern starts from, as it is written and without links."""
    folders: tuple[str, ...] = ()
    """The folders that a relative path of a call may start from."""
    home: str = ""
    watched: bool = False
    """It is only watched: it decides nothing."""


class RootsRule(Struct, frozen=True):
    """Which folders a server learns of when it asks its agent for roots."""

    given: tuple[tuple[str, str], ...] | None = None
    """Address and name of each folder that it gets in place of the agent's own; None: those of the agent."""
    allowed: tuple[tuple[str, ...], ...] = ()
    """Lists of folders: a root must be one of each list, or lie below it. None: all roots are allowed."""

    @property
    def passes_all(self) -> bool:
        """The server gets what the agent says."""
        return self.given is None and not self.allowed

    def __str__(self) -> str:
        """What holds, for people."""
        if self.given is None:
            text = "those of the agent"
        else:
            text = ", ".join(address for address, _name in self.given) or "none"
        for folders in self.allowed:
            text += f", only below {', '.join(folders) or 'no folder'}"
        return text


ROOTS_OF_AGENT: Final = RootsRule()


class Settings(Struct, frozen=True):
    """The configuration's choices that concern every call."""

    on_failure: OnFailure = OnFailure.DIALECT
    fail_closed: bool = False
    """`on_failure` is DENY for every hook, also for those that have another rule of their own."""
    on_ask: OnAsk = OnAsk.ELICIT
    on_ask_fallback: OnFailure = OnFailure.DENY
    """What follows if the agent cannot ask the person, and nobody else is asked: DENY or ALLOW."""
    prompter: tuple[str, ...] = ()
    """A command that asks the person if the agent cannot; empty: there is none."""
    approvers: tuple[str, ...] = ()
    """Who approves calls, at a gateway: names of users, and of groups with `@` in front. Nobody else does, and nobody
    his own calls. Empty: the user whose agent has asked for the call."""
    console: ConsoleUse = ConsoleUse.IF_OPEN
    """Whether the call waits for approval on a console if the agent cannot ask."""
    ask_seconds: float = MAX_ASK_SECONDS
    """How long a call waits for approval on a console, or in a prompter, before it is denied."""
    approvals: ApprovalSettings = NOT_TOLD
    """How approvals that wait are reported, beside the agent and open consoles."""
    feedback: Delivery = Delivery.AUTO
    strict: bool = False
    """A finding of `check` stops start-up."""
    on_cut_input: OnFailure = OnFailure.DENY
    """What follows if a hook gets a call's arguments in a variable that does not hold all of them: DENY or ALLOW."""
    max_message_bytes: int = 64 * 1024 * 1024
    """The longest line that is judged, in bytes."""
    max_depth: int = MAX_DEPTH
    """How deep the arguments of a judged call, and the output that hooks judge, may be nested."""
    audit_file: str = ""
    """The file to which audit lines are appended; empty: none. `{user}` in it stands for the name of our account."""
    audit_default: bool = False
    """Nobody named this file: it is the one in the state folder."""
    audit_enabled: bool = True
    """A run that names no file writes to the one in the state folder."""
    audit_required: bool = False
    audit_begun: bool = False
    """A line is written before a call is forwarded, too; always if records are required."""
    audit_arguments: Arguments = Arguments.MASKED
    audit_results: Results = Results.OUTCOME
    audit_all_calls: bool = False
    audit_chain: bool = False
    """Each line contains the hash of the line before it."""
    audit_chain_key_file: str = ""
    """The file with the key of the chain; empty: it has none."""
    audit_sign_key: str = ""
    """The file with the private key that signs checkpoints; empty: there are none."""
    audit_checkpoint_lines: int = 100
    """After so many lines, a checkpoint is written: as many as signing them takes one millisecond."""
    audit_checkpoint_seconds: float = 60.0
    """After this time, lines are signed in any case: what a crash leaves unsigned is a minute of calls at most."""
    audit_shared: bool = False
    """The file belongs to a group of accounts."""
    audit_max_file_bytes: int = 0
    """The size in bytes at which a new file begins; 0: never."""
    audit_keep_files: int = 0
    """How many rotated files are kept; 0: all."""
    audit_redact: tuple[str, ...] = ()
    """Regular expressions that match secrets in texts."""
    audit_redact_keys: tuple[str, ...] = ()
    """The names of members whose values are secret."""
    audit_secrets: tuple[str, ...] = ()
    """Secret values, which are removed however they are encoded."""
    otel: bool = False
    """Send spans and metrics of judged calls to an OpenTelemetry collector."""
    otel_endpoint: str = ""
    """The collector's address; empty: as the `OTEL_*` variables say."""
    allow: tuple[str, ...] = ()
    """Permission rules as written; `policy.rules` parses them."""
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    rule_places: Mapping[str, str] = {}
    """File, line and key of each rule, for people: by `deny RULE`, `ask RULE` or `allow RULE`; by `default` that of
    the default."""
    agent_rules: tuple[AgentRule, ...] = ()
    """The permission rules of agents' settings files. They count like the ones above."""
    default_permission: Literal["allow", "ask", "deny"] = "allow"
    """What happens to a call that no rule is about, and that no hook allows or wants to ask about."""
    hide_denied: bool = True
    """Hide a tool from tools/list if every call of it is denied."""
    unreadable: Literal["ask", "deny", "allow"] = "ask"
    """What happens to a call whose command line cannot be read, and might run what a rule denies."""
    check_types: bool = False
    """Every argument of a judged call must be of the type that the server lists, not only those that hooks read."""
    hold_notifications: bool = False
    """Notifications that may repeat the output of a call wait until its post hooks have judged the output."""
    aliases: tuple[Alias, ...] = ()
    """The configured names of tools and arguments for hooks; at most one alias for each tool."""
    shown_tools: tuple[ShownTool, ...] = ()
    """How the agent sees tools, where it is not as the server lists them; at most one entry for each tool."""
    auto_aliases: bool = True
    """All other tools get the names of Claude Code's tools that do the same, beside their own."""
    limits: tuple[Limit, ...] = ()
    flow_sources: tuple[Source, ...] = ()
    """What gives labels to a session."""
    flow_sinks: tuple[Sink, ...] = ()
    """What some labels may not reach."""
    lock: LockSettings | None = None
    """What pins what servers say of themselves; None: nothing does."""
    secrets: SecretSettings | None = None
    """What the agent gets placeholders for; None: for nothing."""
    roots: RootsRule = ROOTS_OF_AGENT
    """What the server learns of the agent's folders."""
    remote_connect_seconds: float = 10.0
    """How long a connection to a remote server may take."""
    remote_silence_seconds: float = 600.0
    """How long a remote server may send no byte of a response; 0: for ever."""
    remote_connections: int = 256
    """The most connections to a remote server."""
    guard_idle_seconds: float = 900.0
    """How long a guard waits for an event before it ends: a person who works makes one more often."""
    guard_fail_closed: bool = True
    """Agents' entries refuse a call that no guard can judge."""
    called: str = "hookproxy.toml"
    """Whose rules and limits they are, in messages."""
    bundle: PolicyBundle | None = None
    """The signed policy that is a part of the managed settings; None: there is none."""
    watched_rules: Settings | None = None
    """The permission rules that are only watched, in the place of the ones above; None: there are none."""
    pack_rules: tuple[Settings, ...] = ()
    """The permission rules of each pack that has some: a call must pass each of them as well."""
    managed: Settings | None = None
    """The settings for managed hooks and rules, and for the approvals that they require; None: nothing is managed.

    Its permission rules are the managed ones. The rules of the outer settings are the user's.
    """

    @property
    def uses_console(self) -> bool:
        """Some approvals are for a console, whether one is open or not."""
        own = self.console is ConsoleUse.ALWAYS or self.on_ask is OnAsk.CONSOLE
        own = own or (self.lock is not None and self.lock.on_change == "ask")
        return own or (self.managed is not None and self.managed.uses_console)

    @property
    def rule_count(self) -> int:
        """The number of permission rules."""
        return len(self.allow) + len(self.ask) + len(self.deny) + len(self.agent_rules)

    @property
    def has_flow(self) -> bool:
        """Some source or sink of data is configured, for the user or by the administrator."""
        own = bool(self.flow_sources or self.flow_sinks)
        return own or (self.managed is not None and self.managed.has_flow)

    @property
    def has_rules(self) -> bool:
        """Some permission rule, or another default than to allow, is configured, or a pack has some."""
        return self.has_own_rules or bool(self.pack_rules)

    @property
    def has_own_rules(self) -> bool:
        """As `has_rules`, without those of packs that are layers of their own."""
        return bool(self.rule_count) or self.default_permission != "allow"

    @property
    def with_rules(self) -> tuple[Settings, ...]:
        """All that have permission rules of their own, the user's first and the administrator's last."""
        return (self, *self.pack_rules, *(() if self.managed is None else (self.managed,)))
