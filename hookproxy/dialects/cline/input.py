"""Writes the input of Cline's hooks: one document with the members of the extension and of the CLI."""

from __future__ import annotations

from typing import Final

import msgspec

from ...jsonrpc import raw_json
from ...model.hooks import Document, Event, EventContext, HookSpec, Outcome
from ..shared import input as shared_input
from ..shared.events import AFTER_CALL
from .hook_file import EDIT

_VERSION: Final = "4.1.13"
"""The version whose documents these are. Hooks of several systems recognise Cline by this member."""

_DIFF: Final = "------- SEARCH\n{}\n=======\n{}\n+++++++ REPLACE\n"
"""An edit as `replace_in_file` has it in its `diff`."""


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document on standard input. There are no variables."""
    session = shared_input.utf8(context.session.id)
    members: dict[str, object] = {
        "clineVersion": _VERSION,
        "hookName": spec.event_name,
        "timestamp": str(round(context.at * 1000)),
        "taskId": session,
        "sessionContext": {"rootSessionId": session},
        "workspaceRoots": [shared_input.utf8(context.session.project_dir)],
        "userId": "unknown",
        "model": {"provider": "unknown", "slug": "unknown"},
        "agent_id": session,
        "parent_agent_id": None,
    }
    return Document(stdin=shared_input.json_line(members | _details(spec, context)), env={})


def real_arguments(_spec: HookSpec, context: EventContext, arguments: bytes) -> bytes:
    """A hook's `overrideInput` under the names of the context.

    Values that are only the text of the call's own values, as `parameters` has them, become those values again.
    Raises ValueError for a `diff` that is not one edit.
    """
    seen, given = raw_json.fields(arguments), raw_json.fields(context.arguments)
    changed = {name: bytes(value) for name, value in seen.items()}
    if _shows_diff(context) and "diff" in changed:
        changed |= _texts_of(raw_json.text(changed.pop("diff")))
        if "diff_" in changed and "diff" in given:
            changed["diff"] = changed.pop("diff_")
    for name, value in changed.items():
        own = bytes(given.get(name, b""))
        if own and value[:1] == b'"' and own[:1] != b'"' and raw_json.text(value) == own.decode(errors="replace"):
            changed[name] = own
    return b"{%b}" % b",".join(b"%b:%b" % (raw_json.encode(name), value) for name, value in changed.items())


def _details(spec: HookSpec, context: EventContext) -> dict[str, object]:
    """The members of one event: `preToolUse` and the like for the extension, `tool_call` and the like for the CLI."""
    if context.event is Event.PRE_TOOL_USE or context.event in AFTER_CALL:
        return _call(context)
    task = {"taskId": shared_input.utf8(context.session.id), "ulid": "", "initialTask": ""}
    match spec.event_name:
        case "TaskStart":
            return {"taskStart": {"taskMetadata": task}}
        case "TaskCancel":
            return {"taskCancel": {"taskMetadata": {**task, "completionStatus": "cancelled"}}}
        case "TaskComplete":
            return {"taskComplete": {"taskMetadata": {**task, "result": ""}}}
        case _:
            return {"reason": shared_input.utf8(context.trigger)}


def _call(context: EventContext) -> dict[str, object]:
    name = shared_input.utf8(context.tool_name)
    values = _values(context)
    arguments = {key: msgspec.Raw(value) for key, value in values.items()}
    seen = {"toolName": name, "parameters": {key: raw_json.text_or_json(value) for key, value in values.items()}}
    call = {"id": shared_input.utf8(context.tool_use_id), "name": name, "input": arguments}
    if context.event is Event.PRE_TOOL_USE:
        return {"preToolUse": seen, "tool_call": call}
    outcome = context.outcome or Outcome()
    text, failed = shared_input.utf8(shared_input.result_text(outcome)), context.event is Event.POST_TOOL_USE_FAILURE
    result = {
        **call,
        "output": text,
        **({"error": text} if failed else {}),
        "durationMs": outcome.duration_ms,
        "startedAt": shared_input.iso_8601(context.at - outcome.duration_ms / 1000),
        "endedAt": shared_input.iso_8601(context.at),
    }
    after = {**seen, "result": text, "success": not failed, "executionTimeMs": outcome.duration_ms}
    return {"postToolUse": after, "tool_result": result}


def _values(context: EventContext) -> dict[str, bytes]:
    """The arguments; the two texts of an edit as a `diff`, if the hook sees the call as `replace_in_file`."""
    values = {name: bytes(value) for name, value in raw_json.fields(context.arguments).items()}
    if _shows_diff(context):
        old, new = (raw_json.text(values.get(name, b'""')) for name in ("old_string", "new_string"))
        if old is not None and new is not None:
            del values["old_string"], values["new_string"]
            values = shared_input.renamed(values, {}, {"diff": raw_json.encode(_DIFF.format(old, new))})
    return values


def _shows_diff(context: EventContext) -> bool:
    if context.alias is None or context.tool_name != EDIT:
        return False
    return {"old_string", "new_string"} <= raw_json.fields(context.arguments).keys()


def _texts_of(diff: str | None) -> dict[str, bytes]:
    """The two texts of a diff with one edit. Raises ValueError."""
    begin, middle, end = _DIFF.split("{}")
    parts = (diff or "").removeprefix(begin).removesuffix(end).split(middle)
    if diff is None or not diff.startswith(begin) or not diff.endswith(end) or len(parts) != 2:
        raise ValueError("its diff is not one SEARCH/REPLACE block")
    return {"old_string": raw_json.encode(parts[0]), "new_string": raw_json.encode(parts[1])}
