"""What was meant by a key that its table does not have: another word, or the key of another table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ..dialects.shared.hook_file import meant, suggestion
from .model_keys import (
    annotation_of,
    is_of_cases,
    item_of,
    model_around,
    names_of,
    table_of,
    tables_with,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

_NEARLY_THE_SAME: Final = 0.9  # of two keys: `source` and `sources`; nothing else is meant then
_LIKE: Final = 0.8  # of two keys: `user` and `users`; no key of another table is meant then
_SIMILAR: Final = 0.7  # of two keys: `pre_tool_use` and `PreToolUse`, but not `version` and `permissions`
_MOST_HOMES: Final = 3  # tables that have a key: a word that more of them have says nothing of which is meant

_KEYS_OF_GATEWAYS: Final = (("gateway",), ("servers",), ("server",), ("permissions", "for"))
"""Keys that gateway.toml has and hookproxy.toml has not: somebody took the one for the other."""

_EVENT_KEYS: Final = ("event", "events", "on", "hook_event_name")
"""In a hook, by which other systems say for which event it is."""

_SWITCHES: Final = ("enabled", "enable", "disabled", "active")
"""By which other systems switch something on or off."""

_ONLY_AGENTS: Final = ("Stop", "SubagentStop", "SubagentStart", "UserPromptSubmit", "PreCompact", "PostCompact")
"""Events of agents that neither a server nor the guard sees."""

_SPELLED: Final = {
    (
        "approvals",
        "console",
    ): 'consoles show what waits by themselves; on_ask = "console", above all tables, asks there',
    ("groups",): "whose groups a user has, the machine or the token says: hookproxy token new USER --group GROUP",
    ("mode",): "a table has it: [permissions], [[limits]], [[use]], [[hooks.PreToolUse]]; [monitor] is a whole policy",
    ("model", "model"): 'the model is named by name = "…"',
    ("permissions", "for", "groups"): 'a group is named in `users`, with @ in front: users = ["@developers"]',
    ("use", "hooks"): 'write file = "…", and its system as dialect = "claude" if the file does not show it',
    ("users",): "who a user is, the machine or the token says: hookproxy token new USER --group GROUP",
}
"""By table and key: how to write what has another form here than on the command line, or than people expect."""

_SAME_KEYS: Final = tuple(
    tuple(words.split())
    for words in (
        "PreToolUse BeforeTool before_tool beforeTool beforeToolCall beforeMCPExecution",
        "PostToolUse AfterTool after_tool afterTool afterToolCall afterMCPExecution",
        "deny deny_tools denied_tools disallowed_tools disallowedTools",
        "deny denied block blocked forbid forbidden refuse reject disallow denylist deny_list blacklist",
        "allow allowed allow_tools allowed_tools allowedTools permit permitted accept allowlist allow_list whitelist",
        "ask confirm prompt approve approval",
        "calls max limit count max_calls",
        "per every period interval",
        "then action on_exceed exceeded",
        "otel telemetry opentelemetry tracing",
        "api provider vendor",
        "url endpoint base_url api_url baseurl address uri",
        "endpoint url address",
        "key api_key apikey api_token",
        "argv command args",
        "command args arguments cmd",
        "certificate cert crt",
        "params arguments args",
        "hide hidden",
        "default fallback otherwise",
        "file path",
    )
)
"""Words that people take for a key of a configuration, which is the first of each."""


def unknown_key(at: tuple[str | int, ...], value: object, model: type[BaseModel]) -> tuple[str, str]:
    """What is wrong with a key at this place, and its repair; `value` is what the file has there."""
    name, known = str(at[-1]), names_of(model_around(at, model))
    names = tuple(part for part in at if isinstance(part, str))
    in_hooks = at[0] == "hooks"
    if at in _KEYS_OF_GATEWAYS and "gateway" not in model.model_fields:
        hint = "only a gateway's file has it, which `hookproxy serve --config FILE` reads"
    elif in_hooks and name in _EVENT_KEYS:
        hint = "the name of the table says the event: [[hooks.PreToolUse]]"
    elif in_hooks and name == "hooks" and len(at) > 2:  # as the files of most other systems have it
        hint = f"each of them is a table of its own here: write [[hooks.{at[1]}]], and below it matcher and command"
    elif not (hint := _SPELLED.get(names, "")):
        hint = meant(name, known) or ("" if in_hooks else suggestion(name, known, _NEARLY_THE_SAME))
        hint = hint or _same_key(name, known) or _switch(name, in_hooks)
        if not hint and not suggestion(name, known, _LIKE):
            hint = _where_it_belongs(at, value, model)
    what = "unknown event" if in_hooks and len(at) == 2 else "unknown key"
    if hint:
        return what, hint
    near = "only the agent itself has it;" if name in _ONLY_AGENTS else suggestion(name, known, _SIMILAR)
    if near and len(known) == 1:
        return what, near
    return what, f"{near} expected one of: {', '.join(known)}".lstrip()


def _same_key(name: str, known: Sequence[str]) -> str:
    """What is meant by another word for one of the `known` keys; empty if none is."""
    same = next((words[0] for words in _SAME_KEYS if name in words[1:] and words[0] in known), "")
    return f"did you mean {same!r}?" if same else ""


def _switch(name: str, in_hooks: bool) -> str:
    if name not in _SWITCHES:
        return ""
    if in_hooks:
        return 'a hook that is there runs: remove this line, or put # before all lines of the hook, or mode = "monitor"'
    return "what is there is in force: remove this line, or the whole table"


def _where_it_belongs(at: Sequence[str | int], value: object, model: type[BaseModel]) -> str:
    """The repair for a key that the file has, but in another table; empty if it has none of this name."""
    name, here = str(at[-1]), ".".join(part for part in at[:-1] if isinstance(part, str))
    inner = _inner_tables(at, model)
    homes = tables_with(name, model)
    if not here:
        return _of_top(name, value, model, homes)
    if inner and is_of_cases(model):
        return f"it is a key of {inner[0]}: write {inner[0]} = {{ {name} = … }}"
    if inner:
        return f"it is a key of [{here}.{inner[0]}]: write it below that line"
    if name in names_of(model) and table_of(model, name) is None:
        table = f"[{here}]" if isinstance(at[-2], str) else f"[[{here}]]"
        others = [header for header in homes if header != table and not header.startswith("[[")]
        if item_of(model, name) is not None:
            move = f"it is a key of {_and_of(others)}: move it there; or " if others else "it is "
            return f"{move}a table of its own: write [[{name}]], and its keys below that line"
        stands = f"`{name}` stands in {table} because it is written below that table"
        return f"{stands}: move it above {table}, before the first line with brackets"
    others = [header for header in homes if not header.startswith("[[") and ".NAME" not in header]
    is_known = others == homes and 0 < len(homes) <= _MOST_HOMES
    return f"it is a key of {_and_of(homes)}: move it there" if is_known else ""


def _of_top(name: str, value: object, model: type[BaseModel], homes: Sequence[str]) -> str:
    """As `_where_it_belongs`, for a key or a table at the top of the file."""
    if isinstance(value, Mapping) and value and all(key in names_of(model) for key in value):
        return f"its keys stand in no table: write them above all lines with brackets, and remove [{name}]"
    first = value[0] if isinstance(value, list) and value else value
    if isinstance(first, Mapping):
        brackets = "[]" if first is value else "[[]]"
        within = [home.strip("[]") for home in homes if _is_table_of(name, home.strip("[]"), model)]
        half = len(brackets) // 2
        if within:
            return f"write {brackets[:half]}{within[0]}.{name}{brackets[half:]}"
        return f"it is a key, and not a table: write {name} = … below {homes[0]}" if len(homes) == 1 else ""
    return f"it is a key of {_and_of(homes)}: write it below that line" if 0 < len(homes) <= _MOST_HOMES else ""


def _is_table_of(name: str, header: str, model: type[BaseModel]) -> bool:
    """Whether a table has a key of this name that is a table, too."""
    around = model_around((*header.split("."), name), model)
    return table_of(around, name) is not None or item_of(around, name) is not None


def _inner_tables(at: Sequence[str | int], model: type[BaseModel]) -> list[str]:
    """The tables of the table around a key that have it."""
    around = model_around(at, model)
    tables = {name: table_of(around, name) for name in names_of(around) if annotation_of(around, name) is not None}
    return [name for name, table in tables.items() if table is not None and str(at[-1]) in names_of(table)]


def _and_of(headers: Sequence[str]) -> str:
    return " and of ".join(headers)
