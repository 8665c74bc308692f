"""What a configuration can choose, as frozen values with their defaults."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from .aliases import Alias


class OnFailure(StrEnum):
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


class Per(StrEnum):
    """The time in which a limit allows so many calls."""

    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    SESSION = "session"  # one run of the proxy


class Limit(Struct, frozen=True):
    """So many calls of these tools, all together, and no more; each run of the proxy counts its own."""

    tool: str
    """A glob over a tool's names, as a permission rule without parentheses."""
    calls: int
    per: Per
    by: str
    """The key that says so, for people: `limits[0]`."""


class Settings(Struct, frozen=True):
    """The configuration's choices that concern every call."""

    on_failure: OnFailure = OnFailure.DIALECT
    on_ask: OnAsk = OnAsk.ELICIT
    on_ask_fallback: OnFailure = OnFailure.DENY
    """What follows where the agent cannot ask: DENY or ALLOW."""
    prompter: tuple[str, ...] = ()
    """A command that asks the person where the agent cannot; empty: there is none."""
    feedback: Delivery = Delivery.AUTO
    max_message_bytes: int = 64 * 1024 * 1024
    """Bytes of the longest line that is judged."""
    audit_file: str = ""
    """Where lines are appended; `{user}` in it stands for the name of the account we run as."""
    audit_required: bool = False
    audit_digest: bool = False
    """The audit has the arguments' SHA-256 in their place."""
    audit_all_calls: bool = False
    audit_chain: bool = False
    """Each line has the hash of the one before."""
    audit_shared: bool = False
    """The file is a group's."""
    audit_max_file_bytes: int = 0
    """Bytes after which a new file is begun; 0: never."""
    audit_redact: tuple[str, ...] = ()
    """Regular expressions that find secrets in texts."""
    audit_redact_keys: tuple[str, ...] = ()
    """Names of members whose values are secret."""
    otel: bool = False
    """Spans and metrics of judged calls go to a collector."""
    otel_endpoint: str = ""
    """Where it is; empty: where its own variables say."""
    allow: tuple[str, ...] = ()
    """Permission rules as written; `rules` reads them."""
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    hide_denied: bool = True
    """Tools of which every call is denied are not listed."""
    aliases: tuple[Alias, ...] = ()
    """What hooks call tools and arguments; one for a tool."""
    limits: tuple[Limit, ...] = ()
    managed: Settings | None = None
    """What holds for managed hooks and rules instead, and for the questions that they raise; None: nothing is managed.

    Its permission rules are the managed ones, those beside it the user's.
    """
