"""Which tools of a server are known: from a list in a file, from the server itself, from a preset, or from rules."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from ..checks.idle_rules import known_tools as tools_of_preset
from ..jsonrpc import raw_json
from ..model.errors import UserError, file_hint
from ..model.hooks import Tool
from ..protocol import tool_list

if TYPE_CHECKING:
    from .offline import OfflinePolicy

_HINT: Final = 'write {"tools": [{"name": "…", "inputSchema": {…}}]}, as the server answers to tools/list'
_MOST_BYTES: Final = 64 * 1024 * 1024  # as much as `check` reads of a server


class KnownTools(Struct, frozen=True):
    """The tools of a server, as far as they are known."""

    tools: tuple[Tool, ...]
    complete: bool
    """There are no others."""
    command: tuple[str, ...] = ()
    """The server's command line; empty: not known."""
    server_info: str = ""
    """The name that the server gives itself."""


def known_tools(policy: OfflinePolicy, file: str | None, command: Sequence[str]) -> KnownTools:
    """The tools in a file; else those that the server of the command line lists, unless that is only configured; else
    those that a preset or the configuration names. Raises UserError.
    """
    if file is not None:
        return KnownTools(_read(file), True, tuple(command))
    if command and policy.session("", "", "/").command != tuple(command):
        from ..checks.server_tools import list_tools
        from .hook_runtime import run_until_done
        from .progress import waiting

        with waiting("the server's tools"):
            listed = run_until_done(partial(list_tools, command, os.environ, on_slow=lambda _seconds: None))
        return KnownTools(listed.tools, True, tuple(command), listed.server_info)
    names = dict.fromkeys([*tools_of_preset(command), *_of_configuration(policy)])
    return KnownTools(tuple(map(Tool, names)), False, tuple(command))


def _of_configuration(policy: OfflinePolicy) -> Iterator[str]:
    """The tools that rules, limits and `[tools.X]` name whole."""
    from ..model.aliases import FAMILIAR_NAMES
    from ..policy import matchers

    for settings in policy.loaded.settings.with_rules:
        yield from (alias.tool for alias in settings.aliases)
        texts = (*settings.deny, *settings.ask, *settings.allow, *(limit.tool for limit in settings.limits))
        for text in texts:
            name = matchers.rule(text).text.partition("(")[0]
            if name.startswith("mcp__"):
                name = name.rpartition("__")[2]
            if name and not set(name) & set("*?[]") and name not in FAMILIAR_NAMES:
                yield name


def _read(file: str) -> tuple[Tool, ...]:
    """The tools in a response to tools/list, its result, or its list. Raises UserError."""
    try:
        with open(file, "rb") as opened:
            data = opened.read(_MOST_BYTES)
        value = json.loads(data)
    except OSError as error:
        raise UserError(f"--tools {file}: cannot be read: {error.strerror}", file_hint(file, error)) from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"--tools {file}: is not JSON: {error}", _HINT) from None
    if isinstance(value, dict) and isinstance(value.get("result"), dict):
        value = value["result"]
    tools = value.get("tools") if isinstance(value, dict) else value
    page = raw_json.encode({"result": {"tools": tools}})
    if not isinstance(tools, list):
        raise UserError(f"--tools {file}: has no list of tools", _HINT)
    try:
        return tuple(tool_list.listed_tools(page))
    except (ValueError, msgspec.MsgspecError) as error:
        raise UserError(f"--tools {file}: is not a list of tools: {error}", _HINT) from None
