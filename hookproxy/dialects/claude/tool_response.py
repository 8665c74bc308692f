"""`tool_response` in the shape that Claude Code gives it for its own tools, and the way back from it.

Hooks that know a tool under a name of Claude Code's (`Bash`, `Read`, …) read `tool_response.stdout` or
`tool_response.file.content`. The members are those of the tools' outputs in the Agent SDK's reference
(code.claude.com/docs/en/agent-sdk/typescript, "Tool output types") and of recorded hook inputs; `success` is that of
the example in the hooks reference. A member is there only if the call or its result says its value: nothing is guessed.
`output` is an addition: the text of a result that has no place in the shape, so that no text is kept from hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from ...jsonrpc import normalize, raw_json
from ...model.content_blocks import read_blocks
from ...model.hooks import EventContext, Outcome
from ...model.late_pattern import late_pattern
from ..shared import input as shared_input

_Members = dict[str, object]
_Values = Mapping[str, msgspec.Raw]

_NO_OUTCOME: Final = Outcome()
_EXIT_CODES: Final = ("exit_code", "exitCode", "returncode", "return_code", "returnCode", "code")
"""Names under which servers give the exit code of a command."""
_IMAGE: Final = frozenset({"type", "data", "mimeType", "annotations"})
"""The members of an image block that hold no text. `annotations` says for whom the image is."""
_INTEGER: Final = late_pattern(rb"-?[0-9]{1,10}")
_PATH: Final = late_pattern(r"\S*[/\\.]\S*")
"""A line of a list of files. A sentence such as `No files found` is none."""


def familiar_response(context: EventContext) -> _Members | None:
    """The result of a call in the shape of the tool of Claude Code's under whose name the hook knows it.

    None: the hook knows the tool under a name of the server's, or Claude Code documents no shape for the tool.
    """
    shape = _SHAPES.get(context.tool_name) if _is_familiar(context) else None
    return None if shape is None else shape(_members(context.arguments), context.outcome or _NO_OUTCOME)


def real_output(context: EventContext, replacement: bytes) -> bytes:
    """A hook's replacement of a result, in the form of an MCP result: the inverse of `familiar_response`.

    Content blocks, texts, and objects without the members of the tool's shape are returned as they are.
    """
    shape = _TEXTS.get(context.tool_name) if _is_familiar(context) else None
    if shape is None or replacement[:1] != b"{":
        return replacement
    members = _members(_normalised(replacement))
    if _text(members, "type") == "image" and (block := _image_block(_members(members.get("file", b"")))):
        return block
    text = shape(members)
    if text is None:
        return replacement
    structured = _structured(context.outcome or _NO_OUTCOME, members, text)
    if not structured:
        return raw_json.encode(text)
    return raw_json.encode({"content": [{"type": "text", "text": text}], "structuredContent": msgspec.Raw(structured)})


def _is_familiar(context: EventContext) -> bool:
    return context.alias is not None and context.alias.name == context.tool_name != context.tool


# --- from the result to the shape ---


def _bash(_arguments: _Values, outcome: Outcome) -> _Members:
    parts = _command_output(outcome)
    stdout, stderr = _text(parts, "stdout"), _text(parts, "stderr")
    if stdout is None and stderr is None:
        return {"stdout": _whole_text(outcome), "stderr": "", "interrupted": False, "isImage": False}
    response: _Members = {"stdout": stdout or "", "stderr": stderr or "", "interrupted": False, "isImage": False}
    code = _exit_code(parts)
    if code is not None:
        response["exit_code"] = code
    return response | _rest(outcome, parts, stdout or "", stderr or "")


def _write(arguments: _Values, outcome: Outcome) -> _Members:
    return _file_members(arguments, {"filePath": "file_path", "content": "content"}) | _written(outcome)


def _edit(arguments: _Values, outcome: Outcome) -> _Members:
    names = {
        "filePath": "file_path",
        "oldString": "old_string",
        "newString": "new_string",
        "replaceAll": "replace_all",
    }
    return _file_members(arguments, names) | _written(outcome)


def _multi_edit(arguments: _Values, outcome: Outcome) -> _Members:
    return _file_members(arguments, {"filePath": "file_path", "edits": "edits"}) | _written(outcome)


def _written(outcome: Outcome) -> _Members:
    return {"success": True, "output": _whole_text(outcome)}


def _read(arguments: _Values, outcome: Outcome) -> _Members:
    path = _file_members(arguments, {"filePath": "file_path"})
    image = _only_image(outcome)
    if image is not None:
        return {"type": "image", "file": path | image}
    content = _whole_text(outcome)
    lines = content.count("\n") + (not content.endswith("\n") and content != "")
    whole = {"startLine": 1, "totalLines": lines} if arguments.keys() == {"file_path"} else {}
    return {"type": "text", "file": path | {"content": content, "numLines": lines} | whole}


def _web_fetch(arguments: _Values, outcome: Outcome) -> _Members:
    fetched: _Members = {"result": _whole_text(outcome), "durationMs": outcome.duration_ms}
    return fetched | _file_members(arguments, {"url": "url"})


def _grep(arguments: _Values, outcome: Outcome) -> _Members:
    content = _whole_text(outcome)
    response: _Members = {"content": content, "numLines": len(content.splitlines())}
    return _file_members(arguments, {"mode": "output_mode"}) | response


def _glob(_arguments: _Values, outcome: Outcome) -> _Members:
    text = _whole_text(outcome)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or not all(map(_PATH.fullmatch, lines)):
        return {"durationMs": outcome.duration_ms, "output": text}
    return {"filenames": lines, "durationMs": outcome.duration_ms, "numFiles": len(lines)}


_SHAPES: Final[dict[str, Callable[[_Values, Outcome], _Members]]] = {
    "Bash": _bash,
    "Write": _write,
    "Edit": _edit,
    "MultiEdit": _multi_edit,
    "Read": _read,
    "WebFetch": _web_fetch,
    "Grep": _grep,
    "Glob": _glob,
}
"""The tools with a known shape. No document describes that of `LS`, so its hooks get the content blocks."""


def _file_members(arguments: _Values, names: Mapping[str, str]) -> _Members:
    """The members of a shape that repeat arguments; an argument that the call does not have is left out."""
    return {name: arguments[argument] for name, argument in names.items() if argument in arguments}


def _command_output(outcome: Outcome) -> _Values:
    """The outputs of a command as the server gives them apart: in structuredContent, or in a text that is JSON."""
    for raw in (outcome.structured, *(text.encode(errors="replace") for text in _texts(outcome)[:1])):
        parts = _members(_normalised(raw)) if raw[:1] == b"{" else {}
        if "stdout" in parts or "stderr" in parts:
            return parts
    return {}


def _exit_code(parts: _Values) -> int | None:
    for name in _EXIT_CODES:
        if name in parts and _INTEGER.fullmatch(bytes(parts[name])):
            return int(bytes(parts[name]))
    return None


def _rest(outcome: Outcome, parts: _Values, stdout: str, stderr: str) -> _Members:
    """The result's texts that do not only repeat the outputs: a hook that looks for secrets must find them there."""
    placed = {name for name in ("stdout", "stderr") if _text(parts, name) is not None}
    known = {"", stdout.strip(), stderr.strip(), f"{stdout}{stderr}".strip(), f"{stdout}\n{stderr}".strip()}
    apart = {name: bytes(value) for name, value in parts.items()}
    rest = [text for text in _texts(outcome) if text.strip() not in known and not _is_object(text, apart)]
    said = [raw for name, raw in apart.items() if name not in placed and not _is_scalar(raw)]
    rest += [raw.decode(errors="replace") for raw in said]
    structured = _normalised(outcome.structured) if outcome.structured else b""
    if outcome.structured and _members(structured) != parts:
        rest.append((structured or outcome.structured).decode(errors="replace"))
    return {"output": "\n".join(rest)} if rest else {}


def _is_object(text: str, members: Mapping[str, bytes]) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    return {
        name: bytes(value) for name, value in _members(_normalised(text.encode(errors="replace"))).items()
    } == members


def _is_scalar(raw: bytes) -> bool:
    """Whether this is a number, true, false or null, which hold no text."""
    return raw[:1] not in (b'"', b"[", b"{")


def _whole_text(outcome: Outcome) -> str:
    """All that the model could read in the result. structuredContent is left out if it only repeats the text."""
    texts = _texts(outcome)
    values = list(_members(outcome.structured).values())
    if texts and len(values) == 1 and raw_json.text(bytes(values[0])) == "\n".join(texts):
        return "\n".join(texts)  # `{"result": text}`, as FastMCP writes it
    if not texts and len(values) == 1 and (only := raw_json.text(bytes(values[0]))) is not None:
        return only
    return shared_input.result_text(outcome)


def _texts(outcome: Outcome) -> list[str]:
    return shared_input.block_texts(outcome.content)


def _only_image(outcome: Outcome) -> _Members | None:
    """The members of `file` for a result that is one image."""
    blocks = read_blocks(outcome.content)
    if (
        blocks is None
        or len(blocks) != 1
        or outcome.structured
        or _text(blocks[0], "type") != "image"
        or blocks[0].keys() - _IMAGE
    ):
        return None
    return _file_members(blocks[0], {"base64": "data", "type": "mimeType"})


# --- from the shape to text ---


def _bash_text(members: _Values) -> str | None:
    stdout, stderr = _text(members, "stdout"), _text(members, "stderr")
    if stdout is None and stderr is None:
        return None
    texts = [text for text in (stdout, stderr, _text(members, "output")) if text]
    return "".join(text if text.endswith("\n") else f"{text}\n" for text in texts[:-1]) + "".join(texts[-1:])


def _read_text(members: _Values) -> str | None:
    return _text(_members(members.get("file", b"")), "content")


def _glob_text(members: _Values) -> str | None:
    try:
        names = [raw_json.text(bytes(name)) for name in raw_json.items(members.get("filenames", b""))]
    except raw_json.Unreadable:
        return _text(members, "output")
    return None if None in names else "\n".join(name for name in names if name is not None)


def _output_text(members: _Values) -> str | None:
    return _text(members, "output")


def _grep_text(members: _Values) -> str | None:
    content = _text(members, "content")
    return _glob_text(members) if content is None else content


_TEXTS: Final[dict[str, Callable[[_Values], str | None]]] = {
    "Bash": _bash_text,
    "Write": _output_text,
    "Edit": _output_text,
    "MultiEdit": _output_text,
    "Read": _read_text,
    "WebFetch": lambda members: _text(members, "result"),
    "Grep": _grep_text,
    "Glob": _glob_text,
}


def _image_block(file: _Values) -> bytes:
    """The content of a result that is one image; empty if these members are not those of an image."""
    data, mime_type = _text(file, "base64"), _text(file, "type")
    if data is None or mime_type is None:
        return b""
    return raw_json.encode([{"type": "image", "data": data, "mimeType": mime_type}])


def _structured(outcome: Outcome, replaced: _Values, text: str) -> bytes:
    """The result's structuredContent with what a hook has replaced; empty if it has other texts.

    Agents that know the tool's outputSchema need it. Any other text in it could hold what the hook has removed.
    """
    old = _members(_normalised(outcome.structured)) if outcome.structured else {}
    if len(old) == 1 and _text(old, name := next(iter(old))) == "\n".join(_texts(outcome)):
        return raw_json.encode({name: text})  # `{"result": text}`, as FastMCP writes it
    outputs = ("stdout", "stderr")
    if "stdout" not in old or not all(_is_scalar(bytes(raw)) for name, raw in old.items() if name not in outputs):
        return b""
    texts = {name: msgspec.Raw(raw_json.encode(_text(replaced, name) or "")) for name in outputs}
    return raw_json.encode({name: texts.get(name, raw) for name, raw in old.items()})


# --- JSON ---


def _members(raw: bytes | msgspec.Raw) -> dict[str, msgspec.Raw]:
    """The members of an object; none if it is ambiguous or no object."""
    try:
        return raw_json.fields(raw)
    except (raw_json.Unreadable, raw_json.DuplicateKeys):
        return {}


def _normalised(raw: bytes) -> bytes:
    try:
        return normalize.normalize_output(raw)
    except (raw_json.Unreadable, raw_json.DuplicateKeys):
        return b""


def _text(members: _Values, name: str) -> str | None:
    """The text of a member; None if it is absent, or no text."""
    return raw_json.text(bytes(members[name])) if name in members else None
