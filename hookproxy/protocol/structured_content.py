"""A result's structuredContent: whether text repeats it, and what may stand in it after hooks have changed the text.

Agents that know a tool's outputSchema reject a success whose structuredContent does not fit, and some show the model
nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from ..jsonrpc import raw_json, schema
from ..model.content_blocks import only_text
from .responses import Members

_WRAPPERS: Final = frozenset({"result", "content"})
"""The only member of a structuredContent that servers make around a text: FastMCP's is `result`."""


def is_repeated(texts: Sequence[str], structured: bytes) -> bool:
    """True if the content's texts say the same as structuredContent, or as its only member: then text is enough.

    `structured` has no duplicate keys. A list may be repeated by one text for each item, as FastMCP does.
    """
    value = raw_json.decoded(structured)
    inner = next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value
    if any(_says(text, said) for text in texts for said in (value, inner)):
        return True
    return isinstance(inner, list) and len(inner) == len(texts) and all(map(_says, texts, inner))


def block_texts(blocks: Sequence[Members] | None) -> list[str]:
    """Return the text of each content block that is only text; none if the content is ambiguous."""
    return [text for members in blocks or () if (text := only_text(members)) is not None]


def values_of_blocks(content: bytes, blocks: Sequence[Members] | None) -> Iterator[msgspec.Raw | bytes]:
    """Yield the members of all content blocks except strings, which are most of a result; else the whole content."""
    if blocks is None or not all(blocks):
        yield content
        return
    for members in blocks:
        yield from (raw for raw in members.values() if bytes(memoryview(raw)[:1]) != b'"')


def _says(text: str, value: object) -> bool:
    """True if the text is this value: as it is, or spelled as JSON with any blanks and order of members."""
    if isinstance(value, str):
        return text == value
    said = _decoded(text)
    return said is not None and msgspec.json.encode(said, order="sorted") == msgspec.json.encode(value, order="sorted")


def _decoded(text: str) -> object:
    return raw_json.decoded(text.encode(errors="replace"))


def for_replacement(text: str, old: Mapping[str, bytes], output_schema: bytes) -> bytes | None:
    """Return the structuredContent for a hook's text in place of the `old` members; None: nothing certainly fits."""
    given = _decoded(text)
    was = raw_json.decoded(old.get("structuredContent", b""))
    candidates = [given] if isinstance(given, dict) else []
    if isinstance(was, dict) and len(was) == 1 and was.keys() <= _WRAPPERS:
        (name,) = was
        candidates += [{name: text}, {name: given}]
        if not output_schema and isinstance(was[name], str):
            return raw_json.encode({name: text})
    known = frozenset(strings(was))
    fitting = (given for given in candidates if output_schema and schema.fits(output_schema, given, known))
    return next(map(raw_json.encode, fitting), None)


def fits_schema(structured: bytes, old: bytes, output_schema: bytes) -> bool:
    """True if structuredContent certainly fits the schema; texts of the `old` one fit wherever they are."""
    known = frozenset(strings(raw_json.decoded(old)))
    return schema.fits(output_schema, raw_json.decoded(structured), known)


def with_comment(structured: bytes, texts: Sequence[str], comment: str, output_schema: bytes) -> bytes | None:
    """Return structuredContent with a comment after the one of `texts` that it wraps; None: that may not fit."""
    value = raw_json.decoded(structured)
    if not (isinstance(value, dict) and len(value) == 1 and value.keys() <= _WRAPPERS and output_schema):
        return None
    ((name, text),) = value.items()
    if not isinstance(text, str) or text not in texts:
        return None
    commented = {name: f"{text}\n\n{comment}" if text else comment}
    return raw_json.encode(commented) if schema.fits(output_schema, commented) else None


def strings(value: object) -> Iterator[str]:
    """All texts in a value, without the names of members."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)
