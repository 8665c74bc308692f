"""The keys of hookproxy.toml and what each one means: reference documents are made from these descriptions.

An unknown key is an error: a guard that is misspelled must not be missing in silence (law 3).
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .dialects.hookfile import suggestion
from .errors import ConfigError
from .model import Event
from .settings import Delivery, OnAsk, OnTrouble, Settings, ToolNames

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

LEAST_MESSAGE_BYTES: Final = 1024  # less would not hold an initialize request
_DEFAULT: Final = Settings()

_HEADER: Final = re.compile(r"\s*(\[\[?)([^\[\]]+)\]")
_KEY: Final = re.compile(r"\s*([\w\-.\"' \t]+?)\s*=")

_Path = Annotated[str, Field(min_length=1)]
_Rule = Annotated[str, Field(min_length=1)]
# TOML has no enums: a string that names a member will do.
_OnTrouble = Annotated[OnTrouble, Field(strict=False)]
_OnAsk = Annotated[OnAsk, Field(strict=False)]
_Delivery = Annotated[Delivery, Field(strict=False)]
_ToolNames = Annotated[ToolNames, Field(strict=False)]


class Table(BaseModel):
    """A table of the file: no keys but the named, and no values but of their type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Use(Table):
    """A hook file of another system, as it is."""

    file: _Path = Field(
        description="The hook file. A folder means its *.json files, and a glob pattern those that match. "
        "A relative path starts from the folder of hookproxy.toml, `~` from the home folder."
    )
    dialect: str | None = Field(None, description="Whose hook file it is; not given: seen from its shape.")
    tool_names: _ToolNames | None = Field(
        None,
        description='Which name of a tool its hooks see: "mcp" is mcp__SERVER__TOOL, "bare" is TOOL. '
        "Not given: what its dialect is used to.",
    )
    on_trouble: _OnTrouble | None = Field(None, description="As the top-level key, for the hooks of this file.")
    agent: _Path | None = Field(
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


DIALECT_OPTIONS: Final = {"agent", "await_post", "fire_permission_request", "max_retries", "tool_args"}
"""The keys of `[[use]]` that only some dialects have: `Dialect.options` says which."""


class OwnHook(Table):
    """A hook of our own; `dialects.own` reads it. Exactly one of `command` and `argv` says what runs."""

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
    on_trouble: _OnTrouble | None = Field(None, description="As the top-level key, for this hook.")


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


class Audit(Table):
    """The audit log: one line of JSON for each call."""

    file: _Path | None = Field(
        None,
        description="Where lines are appended. A relative path starts from the folder of hookproxy.toml.",
    )
    required: bool = Field(False, description="Refuse a call whose line cannot be written.")
    arguments: Literal["full", "digest"] = Field(
        "full", description='"full": the call\'s arguments; "digest": their SHA-256 instead.'
    )
    calls: Literal["judged", "all"] = Field(
        "judged", description='"judged": calls that a hook concerns; "all": the others, too.'
    )


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


class Prompter(Table):
    """`on_ask_fallback = { command = ["./ask"] }`: a program that asks the person, by a dialog or a chat message."""

    command: Annotated[list[_Path], Field(min_length=1)] = Field(
        description="The program and its arguments; a relative path starts from the folder of hookproxy.toml. It reads "
        "the question as JSON (server, tool, arguments, reason, asked_by) and exits with 0 for yes, 2 for no."
    )


class ConfigFile(Table):
    """The whole of hookproxy.toml."""

    on_trouble: _OnTrouble = Field(
        _DEFAULT.on_trouble,
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


def parse(path: str, text: str) -> ConfigFile:
    """The file's tables. Raises ConfigError with the line and the key of the first thing that is wrong."""
    try:
        tables: dict[str, object] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(path, text, str(error)) from None
    try:
        return ConfigFile.model_validate(tables)
    except ValidationError as error:
        raise _wrong_key(path, text, error.errors(include_url=False)[0]) from None


def _not_toml(path: str, text: str, message: str) -> ConfigError:
    reason, _, place = message.partition(" (at ")
    line = re.search(r"line (\d+)", place)
    number = int(line[1]) if line else text.count("\n") + 1  # else it says "at end of document"
    hint = "strings stand in quotes" if reason == "Invalid value" else ""
    return ConfigError(f"{path}:{number}", f"not TOML: {_lower(reason)}", hint)


def _wrong_key(path: str, text: str, error: ErrorDetails) -> ConfigError:
    at, kind = error["loc"], error["type"]
    line = _line_of(text, at)
    where = f"{path}:{line}" if line else path
    key = ".".join(str(part) if isinstance(part, str) else f"[{part}]" for part in at).replace(".[", "[")
    if kind == "extra_forbidden":
        what = "event" if at[0] == "hooks" and len(at) == 2 else "key"
        return ConfigError(where, f"{key}: unknown {what}", _hint(str(at[-1]), _keys_beside(at)))
    if kind == "list_type" and isinstance(error["input"], dict):
        return ConfigError(where, f"{key}: there may be several of this table", f"write [[{key}]]")
    if kind == "missing":
        return ConfigError(where, f"{key} is missing")
    message = error["msg"].removeprefix("Input ")
    return ConfigError(where, f"{key}: {_lower(message)}")


def _hint(word: str, known: list[str]) -> str:
    return f"{suggestion(word, known)} known here: {', '.join(known)}".lstrip()


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _keys_beside(at: Sequence[str | int]) -> list[str]:
    """The known keys of the table that has an unknown one."""
    table: type[Table] = ConfigFile
    for part in at[:-1]:
        if isinstance(part, str):
            annotation = table.model_fields[part].annotation
            inner = [each for each in (annotation, *get_args(annotation)) if isinstance(each, type)]
            table = next(each for each in inner if issubclass(each, Table))
    return [field.alias or name for name, field in table.model_fields.items()]


def _line_of(text: str, at: Sequence[str | int]) -> int | None:
    """The line of a key, or of the table that it is missing in, where the file has a line for each."""
    lines = _lines(text)
    return next((lines[*at[:depth]] for depth in range(len(at), 0, -1) if (*at[:depth],) in lines), None)


def _lines(text: str) -> dict[tuple[str | int, ...], int]:
    """The line of each table and key that begins one; a string of several lines may look like more."""
    found: dict[tuple[str | int, ...], int] = {}
    tables: Counter[tuple[str | int, ...]] = Counter()
    here: tuple[str | int, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            here = at = _parts(header[2])
            if header[1] == "[[":
                here = at = (*here, tables[here])
                tables[at[:-1]] += 1
        elif key := _KEY.match(line):
            at = (*here, *_parts(key[1]))
        else:
            continue
        for depth in range(1, len(at) + 1):
            found.setdefault(at[:depth], number)
    return found


def _parts(dotted: str) -> tuple[str | int, ...]:
    return tuple(part.strip(" \t\"'") for part in dotted.split("."))
