"""How a GitHub Copilot CLI hook runs, in two editions of the reference: as a command, or as a web service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...model.hooks import Event
from ..shared import handler_types
from ..shared.handler_types import NOWHERE, Post
from ..shared.hook_file import Table

CURRENT: Final = "copilot@current"
"""The name of the current edition's dialect."""

NEWER_KEYS: Final = ("command", "exec", "args", "timeout", "url", "headers", "allowedEnvVars")
"""Of the current edition only."""

_PROMPT_IS_IMPOSSIBLE: Final = "type 'prompt' is impossible here: there is no prompt that it could be sent to"
_ONE_COMMAND: Final = ("bash", "powershell", "command")
"""What `exec` excludes."""
_GRANTING: Final = (Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST)
"""Whose services must be asked by https, "because the response can grant tool permissions"."""
_LOOPBACK: Final = "COPILOT_HOOK_ALLOW_LOCALHOST"


def impossible(newer: bool, event: Event, entry: Table) -> str:
    """Why an entry does not run here; empty: it does."""
    if not newer:
        entry.require("type", 'write "type": "command"')
    kind = entry.choice("type", ("command", "prompt", "http") if newer else ("command", "prompt"), "command")
    if kind == "prompt":
        entry.require("prompt")
        entry.text("prompt")
        elsewhere = "" if event is Event.SESSION_START else ", and known to sessionStart only"
        return _PROMPT_IS_IMPOSSIBLE + elsewhere
    return ""


def post(environ: Mapping[str, str], event: Event, entry: Table) -> Post:
    """Where an HTTP hook's document goes, as the reference restricts it; NOWHERE: it is none. Raises ConfigError."""
    if entry.text("type") != "http":
        return NOWHERE
    found = handler_types.post(entry, "allowedEnvVars")
    if found.url.lower().startswith("https:"):
        return found
    if event in _GRANTING:
        raise entry.wrong(
            "url", f"must begin with https:// for {event}", "the answer can grant permissions, as documented"
        )
    if found.allowed_env_vars:
        raise entry.wrong("url", "must begin with https:// where allowedEnvVars is set", "as documented")
    if environ.get(_LOOPBACK) != "1":
        raise entry.wrong("url", "is no https:// address", f"set {_LOOPBACK}=1 for this machine's, as documented")
    return found


def argv(newer: bool, entry: Table) -> tuple[str, ...]:
    """The command; empty where there is one for PowerShell only. Raises ConfigError where there is none."""
    if newer and "exec" in entry.members:
        beside = next((key for key in _ONE_COMMAND if key in entry.members), "")
        if beside:
            raise entry.wrong(
                "exec", f"stands beside {beside}", "one entry has either exec and args or a shell command"
            )
        return (_command(entry, "exec"), *(entry.texts("args") or ()))
    if newer and "args" in entry.members:
        raise entry.wrong("args", "is for exec, which is missing", "name the program in exec, or leave args out")
    powershell = "powershell" in entry.members and _command(entry, "powershell")
    for key in ("bash", "command") if newer else ("bash",):
        if key in entry.members:
            return ("bash", "-c", _command(entry, key))
    if not powershell:
        newer_key = next((key for key in NEWER_KEYS if key in entry.members), "")
        hint = f'{newer_key!r} is for dialect = "{CURRENT}"' if newer_key and not newer else ""
        raise entry.wrong("", "needs one of bash and powershell", hint or 'write "bash": "./guard.sh"')
    return ()


def _command(entry: Table, key: str) -> str:
    command = entry.text(key)
    if not command.strip():
        raise entry.wrong(key, "is empty", "name a command, or leave the entry out")
    return command
