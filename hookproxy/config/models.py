"""The keys of hookproxy.toml and what each one means: reference documents are made from these descriptions.

An unknown key is an error: a guard that is misspelled must not be missing in silence (law 3).
"""

from __future__ import annotations

import tomllib
from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ..model.errors import ConfigError
from ..model.hooks import Event
from ..model.settings import Delivery, OnAsk, OnFailure, Settings, ToolNames
from .errors import FORMER_KEYS, not_toml, wrong_key

Path = Annotated[str, Field(min_length=1)]
"""A file as written; where a relative one starts from, its key says."""


class Table(BaseModel):
    """A table of the file: no keys but the named, and no values but of their type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


LEAST_FILE_BYTES: Final = 64 * 1024  # less would begin a new file every few calls
_Word = Annotated[str, Field(min_length=1)]


class Audit(Table):
    """The audit log: one line of JSON for each call."""

    file: Path | None = Field(
        None,
        description="Where lines are appended. A relative path starts from the folder of hookproxy.toml. `{user}` in "
        "it stands for the name of the account that hookproxy runs as; after a slash at its end, USER.jsonl is added.",
    )
    required: bool = Field(False, description="Refuse a call whose line cannot be written.")
    arguments: Literal["full", "digest"] = Field(
        "full", description='"full": the call\'s arguments; "digest": their SHA-256 instead.'
    )
    calls: Literal["judged", "all"] = Field(
        "judged", description='"judged": calls that a hook concerns; "all": the others, too.'
    )
    chain: bool = Field(
        False,
        description="Each line names the SHA-256 of the one before as `previous`: `hookproxy audit verify` finds what "
        "was changed, removed or inserted later. All who write to the file must have it.",
    )
    shared: bool = Field(
        False,
        description="Several accounts write to this file: it is readable and writable for the group of its folder, "
        "which must be there. Otherwise it is its owner's alone.",
    )
    max_file_bytes: Annotated[int, Field(ge=LEAST_FILE_BYTES)] | None = Field(
        None,
        description="A file that would grow beyond is renamed to FILE.1, the next one to FILE.2 and so on, and a new "
        "one is begun; none is removed. Not given: never.",
    )
    redact: list[_Word] = Field(
        [],
        description="Regular expressions of Python's: what one finds in a text (in arguments, and in what hooks said) "
        "is recorded as [redacted], and a text of more than 65536 characters as a whole. One that repeats what "
        "repeats, as (a+)+ does, may take for ever: leave such out.",
    )
    redact_keys: list[_Word] = Field(
        [],
        description="Names of arguments, at any depth, whose values are recorded as [redacted], in any spelling: "
        "api_key means apiKey and API-Key, too.",
    )


class Otel(Table):
    """Spans and metrics of judged calls, for an OpenTelemetry collector. Needs `hookproxy[otel]`."""

    enabled: bool = Field(False, description="Send them.")
    endpoint: Annotated[str, Field(pattern=r"^https?://[^/]")] | None = Field(
        None,
        description="The collector's OTLP/HTTP address, to which /v1/traces and /v1/metrics are added. Not given: what "
        "OTEL_EXPORTER_OTLP_ENDPOINT says, else http://localhost:4318.",
    )


LEAST_MESSAGE_BYTES: Final = 1024  # less would not hold an initialize request
MOST_CALLS: Final = 100_000  # of a limit: the time of each is kept, in 32 bytes
_DEFAULT: Final = Settings()

_Rule = Annotated[str, Field(min_length=1)]
_Name = Annotated[str, Field(min_length=1)]
# TOML has no enums: a string that names a member will do.
_OnFailure = Annotated[OnFailure, Field(strict=False)]
_OnAsk = Annotated[OnAsk, Field(strict=False)]
_Delivery = Annotated[Delivery, Field(strict=False)]
_ToolNames = Annotated[ToolNames, Field(strict=False)]


class Use(Table):
    """A hook file of another system, as it is."""

    file: Path = Field(
        description="The hook file. A folder means its *.json files, and a glob pattern those that match. "
        "A relative path starts from the folder of hookproxy.toml, `~` from the home folder."
    )
    dialect: str | None = Field(None, description="Whose hook file it is; not given: seen from its shape.")
    tool_names: _ToolNames | None = Field(
        None,
        description='Which name of a tool its hooks see: "mcp" is mcp__SERVER__TOOL, "bare" is TOOL. '
        "Not given: what its dialect is used to.",
    )
    on_failure: _OnFailure | None = Field(None, description="As the top-level key, for the hooks of this file.")
    agent: Path | None = Field(
        None, description="docker-agent: the agent in the file whose hooks are meant; not given: root."
    )
    await_post: bool | None = Field(
        None, description="lime: true waits for its hooks after a call, so that the model sees what they say."
    )
    fire_permission_request: Literal["asked", "always"] | None = Field(
        None,
        description='copilot: "always" asks permissionRequest hooks about each call, "asked" (the default) '
        "where somebody wants a person to be asked.",
    )
    max_retries: Annotated[int, Field(ge=0, le=10)] | None = Field(
        None, description="code-assist: how often one call is repeated because its hooks say `retry`; not given: 1."
    )
    tool_args: Literal["string", "object"] | None = Field(
        None, description='copilot: whether toolArgs is a JSON "string" (the default) or an "object".'
    )
    warm: bool | None = Field(
        None,
        description="true starts the next process of each of its commands before it is needed, as `warm` of our own "
        "hooks does. Not for lime and claw, whose variables depend on the call.",
    )
    warm_max_age: float | None = Field(None, description="As for our own hooks, for those of this file.")
    warm_spares: int | None = Field(None, description="As for our own hooks, for those of this file.")


WARMTH: Final = {"warm", "warm_max_age", "warm_spares"}
"""The keys of `[[use]]` about processes that are started before they are needed."""

DIALECT_OPTIONS: Final = {"agent", "await_post", "fire_permission_request", "max_retries", "tool_args"}
"""The keys of `[[use]]` that only some dialects have: `Dialect.options` says which."""


class OwnHook(Table):
    """A hook of our own. One of `command`, `argv`, `call` and `url` says what runs."""

    name: str | None = Field(None, description="What people and the model know it by; not given: the command's name.")
    matcher: str | None = Field(
        None,
        description="Which tools it concerns, by Claude Code's rules, tried on the bare name and on "
        "mcp__SERVER__TOOL; not given: all.",
    )
    only_if: str | None = Field(
        None,
        alias="if",
        description="A permission rule as in Claude Code's `if`: other calls do not concern it.",
    )
    type: Literal["command", "worker", "python", "http"] | None = Field(
        None,
        description='"command" (the default): a process for each occasion. "worker": one process that is kept, reads a '
        'JSON document per line and answers each with a JSON object on one line. "python": a function, called in '
        'this process. "http": the document is posted, and what comes back is the answer.',
    )
    concurrent: bool | None = Field(
        None,
        description="worker: true gives it further documents before it has answered; each has an `id`, which its "
        "answer repeats.",
    )
    call: str | None = Field(
        None,
        description='python: "package.module:function", looked for in the folder of hookproxy.toml, then among '
        "installed packages. It gets the document and gives the answer that a command would print, or None. "
        "Sync functions run in a thread, which a timeout cannot end.",
    )
    url: str | None = Field(
        None, description="http: where the document is posted. https, or http to this machine; redirects are refused."
    )
    headers: dict[str, str] | None = Field(
        None, description="http: sent with it. `$NAME` stands for a variable that allowed_env_vars names."
    )
    allowed_env_vars: list[str] | None = Field(None, description="http: variables that headers may hold.")
    warm: bool | None = Field(
        None,
        description="command: true starts its next process before it is needed. For hooks that read standard input "
        "before they act: such a process waits there, and is used once.",
    )
    warm_max_age: float | None = Field(
        None, description="warm: seconds after which a process that waits is ended unused; not given: 600."
    )
    warm_spares: int | None = Field(
        None, description="warm: how many processes wait at most where calls overlap, 1 to 16; not given: 1."
    )
    command: str | None = Field(None, description="A command line for sh. It starts in the folder of hookproxy.toml.")
    argv: list[str] | None = Field(
        None,
        description="A program and its arguments, started without a shell in the folder of hookproxy.toml.",
    )
    env: dict[str, str] | None = Field(None, description="Variables that it gets beside those it inherits.")
    timeout: float | None = Field(
        None, description="Seconds after which it is ended, with everything it started; not given: 60."
    )
    background: bool | None = Field(
        None, alias="async", description="true: nobody waits for it, and what it says decides nothing."
    )
    on_failure: _OnFailure | None = Field(None, description="As the top-level key, for this hook.")


class OwnHooks(Table):
    """Hooks of our own by their occasion: `[[hooks.PreToolUse]]`, one flat table for each hook."""

    PreToolUse: list[OwnHook] = Field([], description="Before a call: may rewrite, block, or have a person asked.")
    PostToolUse: list[OwnHook] = Field([], description="After a call that succeeded: may comment or replace.")
    PostToolUseFailure: list[OwnHook] = Field([], description="After a call that failed: may comment.")
    SessionStart: list[OwnHook] = Field([], description="When an agent connects: may add instructions.")
    SessionEnd: list[OwnHook] = Field([], description="When the agent has gone.")
    PermissionRequest: list[OwnHook] = Field([], description="When a person is to be asked about a call: may answer.")
    Elicitation: list[OwnHook] = Field([], description="When the server asks the person: may answer.")
    ElicitationResult: list[OwnHook] = Field([], description="When the person has answered: may change the answer.")
    Notification: list[OwnHook] = Field([], description="When the person is shown a question.")

    def of(self, event: Event) -> list[OwnHook]:
        """The hooks of one occasion."""
        hooks: list[OwnHook] = getattr(self, event)
        return hooks


class Permissions(Table):
    """Permission rules, as `Tool` or `Tool(what)`: globs over a tool's names. Deny beats ask beats allow."""

    allow: list[_Rule] = Field(
        [], description="Calls for which nobody is asked, although a hook wants it; an ask rule beats it."
    )
    ask: list[_Rule] = Field([], description="Calls for which a person must be asked; an allow rule changes nothing.")
    deny: list[_Rule] = Field([], description="Calls that are refused, whatever hooks and other rules say.")
    hide_denied: bool = Field(
        True, description="Tools that a deny rule names without parentheses are left out of tools/list."
    )


class ToolTable(Table):
    """`[tools.X]`: what hooks know the server's tool X by, in each dialect."""

    known_as: Annotated[str, Field(pattern=r"^[^\s()]+$")] | None = Field(
        None,
        alias="as",
        description="The name that hooks see and rules may use, so that guards for it work unchanged; the tool's own "
        "names still match.",
    )
    arguments: dict[_Name, _Name] = Field(
        {},
        description="The server's name of an argument by the name that hooks see; others stay. A rewrite is mapped "
        "back.",
    )


class LimitTable(Table):
    """`[[limits]]`: so many calls in a time, and no more. Each run of hookproxy counts its own."""

    tool: _Rule = Field(description="A glob over a tool's names; all tools that match are counted together.")
    calls: Annotated[int, Field(ge=1, le=MOST_CALLS)] = Field(
        description="How many calls may be forwarded; what hooks or rules refuse does not count."
    )
    per: Literal["second", "minute", "hour", "day", "session"] = Field(
        description='In which time, wherever that begins; "session" is one run.'
    )


class Prompter(Table):
    """`on_ask_fallback = { command = ["./ask"] }`: a program that asks the person, by a dialog or a chat message."""

    command: Annotated[list[Path], Field(min_length=1)] = Field(
        description="The program and its arguments; a relative path starts from the folder of hookproxy.toml. It reads "
        "the question as JSON (server, tool, arguments, reason, asked_by) and exits with 0 for yes, 2 for no."
    )


def _as_list(value: object) -> object:
    """One word stands for a list of it."""
    return [value] if isinstance(value, str) else value


class ConfigFile(Table):
    """The whole of hookproxy.toml."""

    on_failure: _OnFailure = Field(
        _DEFAULT.on_failure,
        description='What follows when a hook crashes, hangs, cannot start or answers nonsense: "deny", '
        '"allow", or "dialect", what its system\'s document says. Hooks of our own then deny.',
    )
    on_ask: _OnAsk = Field(
        _DEFAULT.on_ask,
        description='What follows when a person is to be asked: "elicit" asks through the agent; "deny" and "allow" '
        "do not ask.",
    )
    on_ask_fallback: Literal["deny", "allow"] | Prompter = Field(
        "deny",
        description='What follows when a person is to be asked and the agent cannot: "deny", "allow", or a prompter of '
        "your own.",
    )
    feedback: _Delivery = Field(
        _DEFAULT.feedback,
        description='How comments reach the model: "auto": as text, and in structuredContent where it is '
        'open; "text": as text only; "strip-output-schema": hooked tools lose outputSchema and '
        "structuredContent.",
    )
    max_message_bytes: Annotated[int, Field(ge=LEAST_MESSAGE_BYTES)] = Field(
        _DEFAULT.max_message_bytes,
        description="The longest line that is passed on, in bytes; 67108864 are 64 MiB.",
    )
    use: list[Use] = Field([], description="Hook files of other systems, as they are: one `[[use]]` table each.")
    hooks: OwnHooks = Field(OwnHooks(), description="Hooks of our own.")
    permissions: Permissions = Field(
        Permissions(), description="Permission rules, judged on the final arguments, after every rewrite."
    )
    audit: Audit = Field(Audit(), description="The audit log.")
    otel: Otel = Field(Otel(), description="Spans and metrics for an OpenTelemetry collector.")
    preset: Annotated[list[str], BeforeValidator(_as_list, json_schema_input_type=str | list[str])] = Field(
        [],
        description="A widely used server, or several, whose tools hooks are to know by Claude Code's names: "
        '"filesystem", "git", "fetch", "desktop-commander", "playwright". `[tools.X]` counts before it.',
    )
    tools: dict[_Name, ToolTable] = Field({}, description="What hooks know single tools by: one table for each.")
    limits: list[LimitTable] = Field([], description="How many calls are allowed; a refused one says when to retry.")
    require_trust: bool = Field(
        False,
        description="true: hook files, and the scripts that they start, are used only as `hookproxy trust FILE` has "
        "remembered them. Nothing lifts it where the user's own file or the administrator's says so.",
    )
    managed_only: bool = Field(
        False, description="The administrator's file: true runs no hooks but those of the administrator's files."
    )


def parse(path: str, text: str) -> ConfigFile:
    """The file's tables. Raises ConfigError with the line and the key of the first thing that is wrong."""
    try:
        tables: dict[str, object] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise not_toml(path, text, str(error)) from None
    try:
        return ConfigFile.model_validate(_with_present_keys(path, tables))
    except ValidationError as error:
        raise wrong_key(path, text, error.errors(include_url=False)[0], ConfigFile) from None


def _with_present_keys(path: str, tables: dict[str, object]) -> dict[str, object]:
    """The file with its own keys, and those of its hooks, under their present names. Raises ConfigError.

    Only where the keys are ours: a variable, a tool or an argument may have any name.
    """
    hooks = tables.get("hooks")
    hooks = hooks.items() if isinstance(hooks, dict) else ()
    found = _renamed(path, tables)
    if "use" in found:
        found["use"] = _each_renamed(path, found["use"])
    if hooks:
        found["hooks"] = {event: _each_renamed(path, entries) for event, entries in hooks}
    return found


def _each_renamed(path: str, tables: object) -> object:
    if not isinstance(tables, list):
        return tables
    return [_renamed(path, table) if isinstance(table, dict) else table for table in tables]


def _renamed(path: str, table: dict[str, object]) -> dict[str, object]:
    for former, name in FORMER_KEYS.items():
        if former in table and name in table:
            raise ConfigError(path, f"{former} and {name} are the same key", f"leave out {former}, its former name")
    return {FORMER_KEYS.get(key, key): value for key, value in table.items()}
