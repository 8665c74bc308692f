"""Helpers for the input documents of all dialects: UTF-8 text, and one line of JSON. They run for each hook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ...jsonrpc import normalize, raw_json
from ...model.hooks import Outcome
from ...processes.environment import VARIABLE_LIMIT

_ENCODER: Final = msgspec.json.Encoder()


def utf8(text: str) -> str:
    """Text of the operating system or of JSON, with `?` for each character that UTF-8 cannot encode."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def json_line(document: Mapping[str, object]) -> bytearray:
    """The document as one line, line end included. `msgspec.Raw` is copied as it is. All text must be valid UTF-8."""
    written = bytearray()
    _ENCODER.encode_into(document, written)  # not as bytes first: a result may be large, and is copied only once
    written += b"\n"
    return written


TOOL_INPUT: Final = "HOOK_TOOL_INPUT"
"""The variable with the arguments of a call, for dialects that have it."""

_GUARDED: Final[tuple[str, ...]] = ("command", "file_path", "path", "url", "query")
"""The arguments that guards look at. If the variable cannot hold all arguments, it begins with these."""


def tool_input_variable(arguments: bytes) -> tuple[str, bool]:
    """The value of TOOL_INPUT, and whether it is too long for a variable: then `environment.fit` cuts its end off."""
    text = arguments.decode(errors="replace")
    if len(arguments) + len(TOOL_INPUT) + len("=\0") <= VARIABLE_LIMIT:
        return text, False
    try:
        members = raw_json.fields(arguments)
    except (raw_json.Unreadable, raw_json.DuplicateKeys):
        return text, True
    names = [name for name in _GUARDED if name in members]
    names += [name for name in members if name not in _GUARDED]
    ordered = b",".join(b"%b:%b" % (raw_json.encode(name), bytes(members[name])) for name in names)
    return (b"{%b}" % ordered).decode(errors="replace"), True


def result_text(outcome: Outcome) -> str:
    """All that the model could read in a result, as text. If there was no result, the error message.

    Text blocks are copied as they are, other blocks as their own text or as JSON, separated by line ends.
    structuredContent follows as JSON, unless a text block contains the same.
    """
    if not outcome.has_result:
        return outcome.error
    parts = block_texts(outcome.content)
    if outcome.structured:
        structured = _normalised(outcome.structured)
        if not _contains(parts, structured):
            parts.append(structured.decode(errors="replace"))
    return "\n".join(parts)


def block_texts(content: bytes) -> list[str]:
    """Each content block of a JSON array as text."""
    try:
        return [_block(bytes(block)) for block in raw_json.items(content)]
    except raw_json.Unreadable:
        return [content.decode(errors="replace")]


def _block(raw: bytes) -> str:
    try:
        text = raw_json.text(bytes(raw_json.fields(raw).get("text", b"")))
    except (raw_json.Unreadable, raw_json.DuplicateKeys):
        text = None
    return raw.decode(errors="replace") if text is None else text


def _normalised(raw: bytes) -> bytes:
    try:
        return normalize.normalize_output(raw)
    except (raw_json.Unreadable, raw_json.DuplicateKeys):
        return raw


def _contains(parts: list[str], structured: bytes) -> bool:
    compact = b"".join(structured.split())
    return any(b"".join(part.encode(errors="replace").split()) == compact for part in parts)
