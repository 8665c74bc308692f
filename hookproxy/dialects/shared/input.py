"""What all dialects' documents have in common: text that is UTF-8, and one line of JSON. On the path of each hook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ...jsonrpc import normalize, raw_json
from ...model.hooks import Outcome

_ENCODER: Final = msgspec.json.Encoder()


def utf8(text: str) -> str:
    """Text that came from the operating system or out of JSON, with `?` for what UTF-8 cannot spell."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def json_line(document: Mapping[str, object]) -> bytearray:
    """The document as one line with its end; `msgspec.Raw` in it goes in as it is. All text in it must be UTF-8."""
    written = bytearray()
    _ENCODER.encode_into(document, written)  # not through bytes: a result may be large, and is copied once
    written += b"\n"
    return written


def result_text(outcome: Outcome) -> str:
    """All that the model could read in a result, as text; the failure in words where there was no result.

    Text blocks as they are, other blocks as their own text or as JSON, a line end between each two; structuredContent
    as JSON after them, unless a text block says the same.
    """
    if not outcome.has_result:
        return outcome.error
    parts = block_texts(outcome.content)
    if outcome.structured:
        structured = _legible(outcome.structured)
        if not _says(parts, structured):
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
        said = raw_json.text(bytes(raw_json.fields(raw).get("text", b"")))
    except (raw_json.Unreadable, raw_json.DuplicateKeys):
        said = None
    return raw.decode(errors="replace") if said is None else said


def _legible(raw: bytes) -> bytes:
    try:
        return normalize.normalize_output(raw)
    except (raw_json.Unreadable, raw_json.DuplicateKeys):
        return raw


def _says(parts: list[str], structured: bytes) -> bool:
    wanted = b"".join(structured.split())
    return any(b"".join(part.encode(errors="replace").split()) == wanted for part in parts)
