"""The keys of hookproxy.toml and what each one means. The reference page and the JSON Schema are generated from here.

An unknown key is an error: a misspelled guard must not be missing silently (law 3).
"""

from __future__ import annotations

import tomllib
from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ..model.errors import ConfigError
from ..model.hooks import Event
from ..model.settings import FORMER_KEYS, Delivery, OnAsk, OnFailure, Results, Settings, ToolNames
from .errors import toml_error, validation_error

MIN_MESSAGE_BYTES: Final = 1024  # less would not hold an initialize request
MIN_DEPTH: Final = 4  # less would refuse what ordinary tools need
MAX_DEPTH: Final = 250  # more would leave no room for the document around the arguments in jq 1.6
MIN_AUDIT_FILE_BYTES: Final = 64 * 1024  # less would start a new file every few calls
MAX_CALLS: Final = 100_000  # of a rate limit: the time of each call is kept, in 32 bytes

_DEFAULTS: Final = Settings()

_Text = Annotated[str, Field(min_length=1)]
# TOML has no enums: the name of a member is accepted as a string.
_OnFailure = Annotated[OnFailure, Field(strict=False)]
_OnAsk = Annotated[OnAsk, Field(strict=False)]
_Delivery = Annotated[Delivery, Field(strict=False)]
_Results = Annotated[Results, Field(strict=False)]
_ToolNames = Annotated[ToolNames, Field(strict=False)]


class Table(BaseModel):
    """A table of the file. It accepts only the keys that it defines, and only values of their types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


# --- hooks ---


class Use(Table):
    """A hook file of another system, used unchanged."""

    file: _Text = Field(
        description="The hook file. A folder means the *.json files in it, a glob pattern the files that "
        "match. A relative path starts from the folder of hookproxy.toml, and `~` is the home folder."
    )
    dialect: str | None = Field(
        None, description="The system that the hook file is written for. Default: recognised from the file's content."
    )
    tool_names: _ToolNames | None = Field(
        None,
        description='Which tool names these hooks see: "mcp" is mcp__SERVER__TOOL, "bare" is TOOL. '
        "Default: the names that the dialect uses.",
    )
    on_failure: _OnFailure | None = Field(
        None, description="Like the top-level `on_failure`, but only for the hooks of this file."
    )
    project: _Text | None = Field(
        None,
        description="The folder in which these hooks run. A relative path starts from the folder of hookproxy.toml. "
        "Default: the project that the file belongs to, such as DIR for DIR/.claude/settings.json; for all other "
        "files, a plugin's among them, the folder in which hookproxy is started.",
    )
    agent: _Text | None = Field(
        None, description="docker-agent: which agent in the file has the hooks to use. Default: root."
    )
    await_post: bool | None = Field(
        None,
        description="lime: true waits for the hooks that run after a call, so that the model sees their output.",
    )
    fire_permission_request: Literal["asked", "always"] | None = Field(
        None,
        description='copilot: "always" runs permissionRequest hooks for each call; "asked" (the default) runs them '
        "only when a person would be asked.",
    )
    max_retries: Annotated[int, Field(ge=0, le=10)] | None = Field(
        None, description="code-assist: how often a call is repeated when its hooks ask for a `retry`. Default: 1."
    )
    permissions: bool | None = Field(
        None,
        description="claude: true applies the permission rules of the settings file (`permissions.allow`, `ask` and "
        "`deny`) together with those of `[permissions]`.",
    )
    tool_args: Literal["string", "object"] | None = Field(
        None, description='copilot: whether toolArgs is sent as a JSON "string" (the default) or as an "object".'
    )
    warm: bool | None = Field(
        None,
        description="true starts the next process of each command before it is needed, like `warm` in "
        "`[[hooks.EVENT]]`. Not for lime and claw: their environment variables depend on the call.",
    )
    warm_max_age: float | None = Field(
        None, description="Like `warm_max_age` in `[[hooks.EVENT]]`, for the hooks of this file."
    )
    warm_spares: int | None = Field(
        None, description="Like `warm_spares` in `[[hooks.EVENT]]`, for the hooks of this file."
    )


WARM_OPTIONS: Final = {"warm", "warm_max_age", "warm_spares"}
"""The keys of `[[use]]` about processes that are started before they are needed."""

DIALECT_OPTIONS: Final = {"agent", "await_post", "fire_permission_request", "max_retries", "permissions", "tool_args"}
"""The keys of `[[use]]` that only some dialects have; `Dialect.options` lists them."""


class OwnHook(Table):
    """A hook in hookproxy's own format. Exactly one of `command`, `argv`, `call` and `url` says what runs."""

    name: str | None = Field(
        None, description="The name that people and the model see. Default: the name of the command."
    )
    matcher: str | None = Field(
        None,
        description="Which tools the hook is for, by the rules of Claude Code's matchers. It is tried on TOOL and on "
        "mcp__SERVER__TOOL. Default: all tools.",
    )
    only_if: str | None = Field(
        None,
        alias="if",
        description="A permission rule, like Claude Code's `if`. The hook does not run for calls that the rule does "
        "not match.",
    )
    type: Literal["command", "worker", "python", "http"] | None = Field(
        None,
        description='How the hook runs. "command" (the default): a new process for each event. "worker": one process '
        "that keeps running, reads one JSON document per line and answers each with a JSON object on one line. "
        '"python": a function that is called in hookproxy\'s process. "http": the document is sent as a POST request, '
        "and the response is the hook's output.",
    )
    concurrent: bool | None = Field(
        None,
        description="worker: true sends further documents before the first one is answered. Each document has an "
        "`id`, and its answer repeats it.",
    )
    call: str | None = Field(
        None,
        description='python: "package.module:function". The module is looked for in the folder of hookproxy.toml, '
        "then among the installed packages. The function gets the document and returns what a command would print, "
        "or None. A function that is not async runs in a thread, which a timeout cannot stop.",
    )
    url: str | None = Field(
        None,
        description="http: where the document is sent. It must be https, or http to this machine. Redirects are not "
        "followed.",
    )
    headers: dict[str, str] | None = Field(
        None,
        description="http: headers of the request. `$NAME` is replaced by the environment variable, which "
        "`allowed_env_vars` must list.",
    )
    allowed_env_vars: list[str] | None = Field(
        None, description="http: the environment variables that `headers` may use."
    )
    warm: bool | None = Field(
        None,
        description="command: true starts the next process before it is needed. Only for hooks that read standard "
        "input before they do anything else: the process waits there, and handles one event.",
    )
    warm_max_age: float | None = Field(
        None, description="warm: seconds after which an unused process is ended. Default: 600."
    )
    warm_spares: int | None = Field(
        None, description="warm: the largest number of waiting processes when calls overlap, 1 to 16. Default: 1."
    )
    command: str | None = Field(None, description="A command line for sh. It starts in the folder of hookproxy.toml.")
    argv: list[str] | None = Field(
        None,
        description="A program and its arguments. It starts without a shell, in the folder of hookproxy.toml.",
    )
    env: dict[str, str] | None = Field(
        None, description="Environment variables for the hook, in addition to those that it inherits."
    )
    timeout: float | None = Field(
        None,
        description="Seconds after which the hook is ended, together with all processes that it started. Default: 60.",
    )
    background: bool | None = Field(
        None,
        alias="async",
        description="true runs the hook in the background: nothing waits for it, and its output decides nothing.",
    )
    on_failure: _OnFailure | None = Field(None, description="Like the top-level `on_failure`, but only for this hook.")


class OwnHooks(Table):
    """Hooks in hookproxy's own format, by event: one flat table `[[hooks.PreToolUse]]` for each hook."""

    PreToolUse: list[OwnHook] = Field(
        [], description="Before a call. May rewrite its arguments, block it, or have a person asked."
    )
    PostToolUse: list[OwnHook] = Field(
        [], description="After a call that succeeded. May comment on the result or replace it."
    )
    PostToolUseFailure: list[OwnHook] = Field([], description="After a call that failed. May comment on the failure.")
    SessionStart: list[OwnHook] = Field([], description="When an agent connects. May add instructions.")
    SessionEnd: list[OwnHook] = Field([], description="When the agent has disconnected.")
    PermissionRequest: list[OwnHook] = Field(
        [], description="When a person is about to be asked about a call. May answer in their place."
    )
    Elicitation: list[OwnHook] = Field(
        [], description="When the server asks the person something. May answer in their place."
    )
    ElicitationResult: list[OwnHook] = Field(
        [], description="When the person has answered the server. May change the answer."
    )
    Notification: list[OwnHook] = Field([], description="When a question is shown to the person.")

    def for_event(self, event: Event) -> list[OwnHook]:
        """The hooks of one event."""
        hooks: list[OwnHook] = getattr(self, event)
        return hooks


# --- tools and rules ---


class Permissions(Table):
    """Permission rules: `Tool` or `Tool(argument)`, with globs. A deny rule beats ask, and ask beats allow."""

    allow: list[_Text] = Field(
        [],
        description="Calls for which no person is asked, even when a hook wants to ask. An ask rule takes precedence.",
    )
    ask: list[_Text] = Field([], description="Calls for which a person must be asked, even when an allow rule matches.")
    deny: list[_Text] = Field([], description="Calls that are refused, whatever hooks and other rules decide.")
    hide_denied: bool = Field(
        True,
        description="true leaves out of tools/list the tools that a deny rule without parentheses matches.",
    )


class ToolTable(Table):
    """`[tools.X]`: the name and the argument names by which hooks of all dialects know the server's tool X."""

    known_as: Annotated[str, Field(pattern=r"^[^\s()]+$")] | None = Field(
        None,
        alias="as",
        description="The name that hooks see, so that guards written for that name work unchanged. Rules may use it, "
        "too. The tool's own names still match.",
    )
    arguments: dict[_Text, _Text] = Field(
        {},
        description="Names of arguments: `name that hooks see = name that the server uses`. Other arguments keep their "
        "names. Rewritten arguments are mapped back.",
    )


class LimitTable(Table):
    """`[[limits]]`: how many calls are allowed in a period. Each run of hookproxy counts its own calls."""

    tool: _Text = Field(description="A glob over tool names. The calls of all matching tools are counted together.")
    calls: Annotated[int, Field(ge=1, le=MAX_CALLS)] = Field(
        description="How many calls may be forwarded. Calls that hooks or rules refuse do not count."
    )
    per: Literal["second", "minute", "hour", "day", "session"] = Field(
        description='The length of the period, which may start at any time. "session" is one run of hookproxy.'
    )


class Prompter(Table):
    """`on_ask_fallback = { command = ["./ask"] }`: a program that asks the person, in a dialog or a chat message."""

    command: Annotated[list[_Text], Field(min_length=1)] = Field(
        description="The program and its arguments. A relative path starts from the folder of hookproxy.toml. The "
        "program reads the question as JSON (server, tool, arguments, reason, asked_by) from standard input, and exits "
        "with 0 for yes or 2 for no."
    )


# --- records of what happened ---


class Audit(Table):
    """The audit log: one line of JSON for each call. It is kept unless `enabled` is false."""

    enabled: bool = Field(
        True,
        description="false keeps no audit log. It is on by default: decisions, with digests of arguments, are recorded "
        "in a file that only you can read.",
    )
    file: _Text | None = Field(
        None,
        description="The file that lines are appended to. Default: hookproxy/audit.jsonl in $XDG_STATE_HOME, or else "
        "in ~/.local/state. A relative path starts from the folder of hookproxy.toml. "
        "`{user}` is replaced by the name of the account that runs hookproxy. If the path ends with a slash, "
        "USER.jsonl is added.",
    )
    required: bool = Field(False, description="true refuses a call when its audit line cannot be written.")
    arguments: Literal["full", "digest"] | None = Field(
        None,
        description='"full" records the arguments of calls, and what hooks before a call got and printed; "digest" '
        'records the SHA-256 of these instead. Default: "full" if `file` is set, else "digest".',
    )
    results: _Results | None = Field(
        None,
        description='"none" does not wait for a response that no hook needs: such a call is recorded when it is '
        'forwarded, with the result `sent`. "outcome" records whether each call succeeded, and its time. "full" also '
        "records what hooks after a call got and printed, and the results that they changed, before and after. "
        'Default: "outcome" if `file` is set, else "none".',
    )
    calls: Literal["judged", "all"] = Field(
        "judged",
        description='"judged" records the calls that a hook or rule applies to; "all" records every call.',
    )
    chain: bool | Literal["keyed"] = Field(
        False,
        description="true adds the SHA-256 of the previous line to each line, as `previous`. `hookproxy audit verify` "
        "then finds lines that were changed, removed or inserted later, unless somebody made the whole chain anew. "
        '"keyed" also numbers each line (`n`) and signs it (`mac`, HMAC-SHA256): nobody without the key can do that. '
        "Everyone who writes to the file must set the same.",
    )
    chain_key_file: _Text | None = Field(
        None,
        description='With chain = "keyed": the file with the key, at least 32 bytes that only the account that runs '
        "hookproxy may read. A relative path starts from the folder of hookproxy.toml.",
    )
    shared: bool = Field(
        False,
        description="true lets several accounts write to this file: the group of its folder may read and write it. "
        "The folder must exist. Otherwise only the owner may read or write the file.",
    )
    max_file_bytes: Annotated[int, Field(ge=MIN_AUDIT_FILE_BYTES)] | None = Field(
        None,
        description="A file that would grow larger than this is renamed to FILE.1 (the next one to FILE.2, and so on), "
        "and a new file is started. Default: no limit if `file` is set, else 20000000.",
    )
    keep_files: Annotated[int, Field(ge=1)] | None = Field(
        None,
        description="How many renamed files are kept; the oldest ones are removed. Default: all if `file` is set, "
        "else 3.",
    )
    redact: list[_Text] = Field(
        [],
        description="Python regular expressions. What they match in arguments and in hook output is recorded as "
        "[redacted]. A text of more than 65536 characters is redacted as a whole. Avoid nested repetition such as "
        "(a+)+: matching it may never end.",
    )
    redact_keys: list[_Text] = Field(
        [],
        description="Names of arguments, at any depth, whose values are recorded as [redacted]. The spelling does not "
        "matter: api_key also covers apiKey and API-Key.",
    )


class Otel(Table):
    """Spans and metrics of judged calls, for an OpenTelemetry collector. Needs `hookproxy[otel]`."""

    enabled: bool = Field(False, description="true sends spans and metrics.")
    endpoint: Annotated[str, Field(pattern=r"^https?://[^/]")] | None = Field(
        None,
        description="The OTLP/HTTP address of the collector; /v1/traces and /v1/metrics are added to it. Default: "
        "the value of OTEL_EXPORTER_OTLP_ENDPOINT, or else http://localhost:4318.",
    )


# --- the whole file ---


def _as_list(value: object) -> object:
    """Turn a single string into a list of one."""
    return [value] if isinstance(value, str) else value


class ConfigFile(Table):
    """The whole of hookproxy.toml."""

    on_failure: _OnFailure = Field(
        _DEFAULTS.on_failure,
        description="What happens when a hook crashes, times out, cannot start or prints invalid output: "
        '"deny", "allow", or "dialect", which follows the document of the hook\'s own system. With "dialect", '
        "hooks in hookproxy's own format deny.",
    )
    on_ask: _OnAsk = Field(
        _DEFAULTS.on_ask,
        description='What happens when a person should be asked: "elicit" asks through the agent; "deny" and "allow" '
        "decide without asking.",
    )
    on_ask_fallback: Literal["deny", "allow"] | Prompter = Field(
        "deny",
        description="What happens when a person should be asked and the agent cannot ask: "
        '"deny", "allow", or a program of your own that asks.',
    )
    on_cut_input: Literal["deny", "allow"] = Field(
        "deny",
        description="What happens when the arguments of a call are too long for the environment variable "
        'HOOK_TOOL_INPUT, which hooks of claw and lime may read instead of standard input: "deny" refuses the call; '
        '"allow" follows the hooks, although they may not have seen all of it.',
    )
    feedback: _Delivery = Field(
        _DEFAULTS.feedback,
        description='How feedback of hooks reaches the model. "auto": as text, and in structuredContent when its '
        'schema allows it. "text": as text only. "strip-output-schema": outputSchema and structuredContent are removed '
        "from tools that have hooks.",
    )
    strict: bool = Field(
        _DEFAULTS.strict,
        description="true stops start-up if `hookproxy check` has a warning: a hook that can never run, an unknown "
        "event, a matcher that cannot be read, a missing script. What depends on the tools of the server is not known "
        "at start-up: `hookproxy check -- COMMAND` finds it.",
    )
    max_message_bytes: Annotated[int, Field(ge=MIN_MESSAGE_BYTES)] = Field(
        _DEFAULTS.max_message_bytes,
        description="The longest line that is forwarded, in bytes. 67108864 is 64 MiB.",
    )
    max_depth: Annotated[int, Field(ge=MIN_DEPTH, le=MAX_DEPTH)] = Field(
        _DEFAULTS.max_depth,
        description="How many objects and arrays may lie in one another in the arguments of a call that hooks judge, "
        "and in a result that they judge. A deeper call is refused and a deeper result withheld, because a hook whose "
        "JSON reader gives up (jq 1.6: at 256) would judge nothing.",
    )
    use: list[Use] = Field([], description="Hook files of other systems, used unchanged: one `[[use]]` table for each.")
    hooks: OwnHooks = Field(OwnHooks(), description="Hooks in hookproxy's own format.")
    permissions: Permissions = Field(
        Permissions(), description="Permission rules. They are applied to the final arguments, after every rewrite."
    )
    audit: Audit = Field(Audit(), description="The audit log.")
    otel: Otel = Field(Otel(), description="Spans and metrics for an OpenTelemetry collector.")
    aliases: Literal["auto", "off"] = Field(
        "auto",
        description='"auto": a tool that does what one of Claude Code\'s tools does gets the name of that tool (Bash, '
        "Write, Edit, MultiEdit, Read, WebFetch, Grep, Glob, LS) beside its own, so that hooks for that name run for "
        'it. `hookproxy check -- COMMAND` shows the names. "off": only `preset` and `[tools.X]` give names.',
    )
    preset: Annotated[list[str], BeforeValidator(_as_list, json_schema_input_type=str | list[str])] = Field(
        [],
        description="One or several widely used servers, by their names in the list of presets below. Hooks then see "
        "their tools under the names of Claude Code's tools. `[tools.X]` takes precedence.",
    )
    tools: dict[_Text, ToolTable] = Field(
        {}, description="The names by which hooks know single tools: one table for each tool."
    )
    limits: list[LimitTable] = Field([], description="Rate limits. The refusal of a call says when to try again.")
    require_trust: bool = Field(
        False,
        description="true uses hook files, and the scripts that they start, only in the version that `hookproxy trust "
        "FILE` has recorded. When the user's own file or the administrator's file says true, nothing can turn it off.",
    )
    managed_only: bool = Field(
        False,
        description="Only in the administrator's file: true runs no hooks except those of the administrator's files.",
    )


def parse(path: str, text: str) -> ConfigFile:
    """Parse and validate the file. Raises ConfigError with the line and the key of the first error."""
    try:
        tables: dict[str, object] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise toml_error(path, text, str(error)) from None
    try:
        return ConfigFile.model_validate(_with_current_keys(path, tables))
    except ValidationError as error:
        raise validation_error(path, text, error.errors(include_url=False)[0], ConfigFile) from None


def _with_current_keys(path: str, tables: dict[str, object]) -> dict[str, object]:
    """Rename former keys at the top level, in `[[use]]` and in hooks. Raises ConfigError.

    Other tables are left alone: a variable, a tool or an argument may have any name.
    """
    renamed = _rename_keys(path, tables)
    if "use" in renamed:
        renamed["use"] = _rename_in_each(path, renamed["use"])
    hooks = renamed.get("hooks")
    if isinstance(hooks, dict):
        renamed["hooks"] = {event: _rename_in_each(path, entries) for event, entries in hooks.items()}
    return renamed


def _rename_in_each(path: str, tables: object) -> object:
    if not isinstance(tables, list):
        return tables
    return [_rename_keys(path, table) if isinstance(table, dict) else table for table in tables]


def _rename_keys(path: str, table: dict[str, object]) -> dict[str, object]:
    for former, name in FORMER_KEYS.items():
        if former in table and name in table:
            raise ConfigError(path, f"{former} and {name} are the same key", f"remove {former}, the former name")
    return {FORMER_KEYS.get(key, key): value for key, value in table.items()}
