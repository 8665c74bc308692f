"""Writes the input of Kiro's hooks: a document, in IDE 0.x also in a variable; Kiro's own tools have its arguments."""

from __future__ import annotations

from typing import Final

import msgspec

from ...jsonrpc import raw_json
from ...model.hooks import Document, Event, EventContext, HookSpec
from ...processes.environment import VARIABLE_LIMIT
from ..shared import input as shared_input
from ..shared.events import AFTER_CALL
from .hook_file import IDE_0, VERSION_1, is_of_agent_file
from .matchers import BUILT_IN, CREATE, EDIT, READ, SHELL

_TOOL_EVENTS: Final = (Event.PRE_TOOL_USE, *AFTER_CALL)

_IDE_NAMES: Final = {"file_path": "path", "content": "text", "old_string": "oldStr", "new_string": "newStr"}
_CLI_NAMES: Final = {"file_path": "path", "content": "file_text", "old_string": "old_str", "new_string": "new_str"}
"""Kiro's name of each argument by Claude Code's, in the IDE and in the CLI."""

_VARIABLE: Final = "USER_PROMPT"
"""The variable in which IDE 0.x gives a hook its document. Its standard input stays open there, and has nothing."""


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document, and in IDE 0.x the variable with the same document."""
    if IDE_0 in spec.traits:
        document = bytes(shared_input.json_line(_ide_0(spec, context)))
        value = document.decode(errors="replace").rstrip("\n")
        cut = len(document) + len(_VARIABLE) + len("=") > VARIABLE_LIMIT
        return Document(stdin=document, env={_VARIABLE: value}, cut=cut)
    members: dict[str, object] = {"hook_event_name": spec.event_name, "cwd": shared_input.utf8(context.session.cwd)}
    if VERSION_1 in spec.traits:
        members = {"session_id": shared_input.utf8(context.session.id), **members}
    if context.event in _TOOL_EVENTS:
        members["tool_name"] = shared_input.utf8(context.tool_name)
        members["tool_input"] = _tool_input(spec, context)
    if context.event in AFTER_CALL:
        members["tool_response"] = _response(spec, context)
    return Document(stdin=shared_input.json_line(members), env={})


def _ide_0(spec: HookSpec, context: EventContext) -> dict[str, object]:
    members = {"toolName": shared_input.utf8(context.tool_name), "toolArgs": _tool_input(spec, context)}
    if context.event not in AFTER_CALL:
        return members
    return members | {"toolResult": _text(context), "toolSuccess": context.event is Event.POST_TOOL_USE}


def _text(context: EventContext) -> str:
    return shared_input.utf8_result(context)


def _response(spec: HookSpec, context: EventContext) -> object:
    """The result: text in version 1, where nothing says whether it is an error; lists of texts in agent files."""
    if VERSION_1 in spec.traits:
        return _text(context)
    failed = context.event is Event.POST_TOOL_USE_FAILURE
    return {"success": not failed, "error" if failed else "result": [_text(context)]}


def _tool_input(spec: HookSpec, context: EventContext) -> object:
    """The arguments as they are, or in the form of the tool of Kiro's own under whose name the hook sees the call."""
    name = context.tool_name
    if context.alias is None or name not in BUILT_IN:
        return msgspec.Raw(context.arguments)
    of_cli = is_of_agent_file(spec)
    names = _CLI_NAMES if of_cli else _IDE_NAMES
    members: dict[str, object] = {key: msgspec.Raw(value) for key, value in raw_json.fields(context.arguments).items()}
    if name in SHELL:
        return members if of_cli else {"cwd": shared_input.utf8(context.session.server_folder), **members}
    added: dict[str, object] = {}
    if of_cli and name in (*CREATE, *EDIT):
        added = {"command": "create" if "content" in members else "str_replace"}
    if of_cli and name in READ:
        added = {"mode": "Line" if "file_path" in members else "Search"}
        return {"operations": [shared_input.renamed(members, names, added)]}
    return shared_input.renamed(members, names, added)
