"""What the hooks of a hook file get for one call, by the way of a real call: read, select, write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hookproxy.config.hook_files import parse_option, read_use
from hookproxy.dialects.dialect import Group, HookFile, HookList
from hookproxy.dialects.registry import DIALECTS
from hookproxy.hooks.familiar_tools import FamiliarTools
from hookproxy.hooks.select import HookGroups
from hookproxy.jsonrpc import normalize
from hookproxy.model.hooks import Event, EventContext, HookSpec, Outcome, Session
from hookproxy.model.settings import SeenNames
from hookproxy.trust.sources import FileContext

SESSION = Session(id="s1", server="files", cwd="/repo", project_dir="/repo")
AT = 1767225600.0
"""2026-01-01."""


class HookInput(NamedTuple):
    """What one hook gets."""

    spec: HookSpec
    tool_name: str
    document: Any
    env: Mapping[str, str]


def read(dialect: str, content: object, path: str = "") -> HookList:
    """The hooks of a file; `content` is its text, or its JSON value."""
    path = path or f"/repo/hooks{DIALECTS[dialect].suffixes[0]}"
    text = content if isinstance(content, str) else json.dumps(content)
    return DIALECTS[dialect].read_hook_file(HookFile(path, text, "/repo", cwd="/repo"))


def program(path: Path, text: str = "#!/bin/sh\n", mode: int = 0o700) -> HookList:
    """The hooks of a file that is itself the program, in Cline's way."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return DIALECTS["cline"].read_hook_file(HookFile(str(path), "", "/repo", cwd="/repo"))


def recognised(path: Path, content: object) -> str:
    """The name of the dialect that a file without a named dialect is read as. Raises ConfigError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    context = FileContext({"HOME": "/nowhere"}, str(path.parent))
    (loaded,) = read_use(parse_option(str(path), str(path.parent)), context)
    return loaded.group.dialect.name


def inputs(
    hooks: HookList,
    tool: str,
    arguments: object = None,
    event: Event = Event.PRE_TOOL_USE,
    outcome: Outcome | None = None,
    trigger: str = "",
) -> list[HookInput]:
    """What each hook that runs gets for a call of this tool, in the order of the file."""
    if not hooks.hooks:
        return []
    dialect = DIALECTS[hooks.hooks[0].dialect]
    group = Group(dialect, "f", hooks.hooks, dialect.tool_names, names=SeenNames.BOTH)
    groups = HookGroups([group], SESSION.server, (), FamiliarTools())
    raw = normalize.normalize(json.dumps(arguments or {}).encode())
    alias = groups.alias(tool, raw) if tool else None
    context = EventContext(
        event, SESSION, tool, tool, "call_1", raw, alias, outcome=outcome, trigger=trigger, request_id="7", at=AT
    )
    found = []
    for selected in groups.select_for(context):
        for one in selected.hooks:
            document = dialect.write_input(one.spec, one.context(context))
            found.append(HookInput(one.spec, one.tool_name, json.loads(document.stdin), document.env))
    return found


def text_outcome(text: str, *, failed: bool = False) -> Outcome:
    """A result with one text block."""
    content = json.dumps([{"type": "text", "text": text}]).encode()
    return Outcome(content, True, error=text if failed else "", duration_ms=3)
