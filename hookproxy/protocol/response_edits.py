"""Byte-preserving edits of responses on their way to the agent, and responses of hookproxy's own.

Law 2: an edited response differs only in the members named here. Output that a hook has replaced or withheld does not
remain in another member of the same response. `feedback` has the texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final

from msgspec import Struct

from ..jsonrpc import normalize, raw_json
from ..model import content_blocks
from ..model.hooks import Tool
from ..model.late_pattern import late_pattern
from ..model.settings import Delivery
from . import structured_content

MAX_LINE_BYTES: Final = 10 * 1024 * 1024
"""Bytes of a line at which the TypeScript SDK's reader closes the connection."""

FEEDBACK_MEMBER: Final = "hook_feedback"
"""The member for feedback in structuredContent, and in the `data` of an error."""

INTERNAL_ERROR: Final = -32603  # JSON-RPC's code for an internal error

_REQUIRED_MEMBERS: Final = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource": ("resource",),
    "resource_link": ("uri", "name"),
}
"""The required members of each type of content block: agents reject a whole result if a block lacks one."""

_RESTRICTING_KEYWORDS: Final = frozenset(
    {
        *("allOf", "anyOf", "oneOf", "not", "if", "const", "enum", "$ref", "$dynamicRef", "$recursiveRef"),
        *("dependentSchemas", "dependencies", "propertyNames", "patternProperties", "maxProperties"),
    }
)
"""Keywords at the top of a schema that may reject one more member."""

_CODE: Final = late_pattern(rb"-?[0-9]{1,10}")
"""An error code of 32 bits: more digits could contain output."""

RESULT_MEMBERS: Final = frozenset({"content", "structuredContent", "isError", "_meta"})
"""The members of a result that a hook may give."""

_EMPTY: Final = late_pattern(rb"\[[ \t\r\n]*\]")

Edit = tuple[raw_json.Span, bytes]
"""A span of a message, and the bytes that replace it."""


class DeliveryNote(Enum):
    """What people should know about the delivery of feedback."""

    TOO_LONG = "feedback left out: with it, the message would reach 10 MiB, at which some agents close the connection"
    NO_PLACE = "feedback left out: the response has no place for it"
    AMBIGUOUS = "feedback left out: the response can be read in more than one way"
    REPLACEMENT_IS_ERROR = (
        "replaced output makes this tool's successes errors: its outputSchema requires structuredContent, and the "
        "hook's output does not fit it; let the hook print an object that fits"
    )
    MAY_BE_INVISIBLE = "feedback may be invisible: some agents show only structuredContent, whose schema forbids it"


class DeliveredResponse(Struct, frozen=True):
    """A response as it goes to the agent."""

    line: bytes
    note: DeliveryNote | None = None


def json_string(text: str) -> bytes:
    """Return the text as a JSON string on one line; halves of surrogate pairs, which no agent can read, become `?`."""
    return raw_json.one_line(raw_json.encode(text.encode(errors="replace").decode()))


def string_with_more(raw: bytes, text: str) -> bytes:
    """Append text to a JSON string, whose own text keeps its spelling."""
    return raw[:-1] + json_string(text)[1:]


def member_or_empty(raw: bytes, name: str) -> bytes:
    """Return a member of an object; empty if there is none, or if `raw` is ambiguous or not an object."""
    try:
        spans = raw_json.members(raw)
    except raw_json.AMBIGUOUS:
        return b""
    return raw[slice(*spans[name])] if name in spans else b""


def error_response(raw_id: bytes, code: int, text: str, data: bytes = b"") -> bytes:
    """Return the line of a JSON-RPC error, with `data` as JSON unless it is empty."""
    more = b',"data":%b' % data if data else b""
    return b'{"jsonrpc":"2.0","id":%b,"error":{"code":%d,"message":%b%b}}\n' % (raw_id, code, json_string(text), more)


def failed_result(raw_id: bytes, text: str, stateless: bool) -> bytes:
    """Return the line of a result with `isError`. Agents of the stateless era require a resultType."""
    kind = b'"resultType":"complete",' if stateless else b""
    result = b'{%b"content":[%b],"isError":true}' % (kind, _block(text))
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (raw_id, result)


def with_result_withheld(line: bytes, text: str) -> bytes:
    """Replace a whole result, with its unknown members, by the text. Raises Unreadable, DuplicateKeys."""
    spans = raw_json.members(line)
    result = line[slice(*spans["result"])]
    return failed_result(line[slice(*spans["id"])], text, stateless=b'"resultType"' in result)


def with_error_withheld(line: bytes, text: str) -> bytes:
    """Replace an error by the text; only its code remains. Raises Unreadable, DuplicateKeys."""
    spans = raw_json.members(line)
    code = member_or_empty(line[slice(*spans["error"])], "code")
    return error_response(line[slice(*spans["id"])], int(code) if _CODE.fullmatch(code) else INTERNAL_ERROR, text)


def with_replacement(line: bytes, replacement: bytes, delivery: Delivery, tool: Tool | None) -> DeliveredResponse:
    """Replace the tool's whole result by a hook's output, because any member of the result may hold tool output.

    Where it needs structuredContent, because agents know an outputSchema, and none can be made of it, the result is
    marked as failed. Raises Unreadable, DuplicateKeys.
    """
    spans = raw_json.members(line)
    span = spans["result"]
    old = _members(line[slice(*span)])
    new = _replacement_members(replacement, old)
    note = None
    expected = bool(tool.output_schema) if tool else "structuredContent" in old
    if "isError" in old:
        new.setdefault("isError", old["isError"])
    failed = new.get("isError") == b"true"
    if "structuredContent" not in new and expected and delivery is not Delivery.STRIP_OUTPUT_SCHEMA and not failed:
        text = "\n".join(structured_content.block_texts(content_blocks.read_blocks(new.get("content", b"[]"))))
        structured = structured_content.for_replacement(text, old, tool.output_schema if tool else b"")
        if structured is None:
            new["isError"], note = b"true", DeliveryNote.REPLACEMENT_IS_ERROR
        else:
            new["structuredContent"] = raw_json.one_line(structured)
    if old.get("resultType") or not old:
        new = {"resultType": b'"complete"', **new}
    result = b",".join(b"%b:%b" % (json_string(name), value) for name, value in new.items())
    return DeliveredResponse(_with_result(line, spans, b"{%b}" % result), note)


def _with_result(line: bytes, spans: Mapping[str, raw_json.Span], result: bytes) -> bytes:
    """Return the response with another result. A member that no response has may repeat output: it does not remain."""
    for name in spans.keys() - {"jsonrpc", "id", "result"}:
        line = raw_json.without_member(line, name)
    if "jsonrpc" in spans:
        line = raw_json.with_member(line, "jsonrpc", b'"2.0"')
    return raw_json.with_member(line, "result", result)


def _members(result: bytes) -> dict[str, bytes]:
    try:
        return {name: bytes(value) for name, value in raw_json.fields(result).items()}
    except raw_json.AMBIGUOUS:
        return {}


def marked_as_failed(line: bytes) -> bytes:
    """Mark the response as that of a failed call. Raises Unreadable, DuplicateKeys."""
    span = raw_json.members(line)["result"]
    result = line[slice(*span)]
    if not result.startswith(b"{"):
        return with_result_withheld(line, result.decode(errors="replace"))
    return raw_json.splice(line, [(span, raw_json.with_member(result, "isError", b"true"))])


def _replacement_members(replacement: bytes, old: dict[str, bytes]) -> dict[str, bytes]:
    """Return the members of a hook's replacement: those of a whole result, or else its `content`."""
    try:
        raw = raw_json.one_line(normalize.normalize(replacement, lenient=True))  # hooks may print it over many lines
    except raw_json.AMBIGUOUS:
        return {"content": b"[%b]" % _block(replacement.decode(errors="replace"))}
    if _is_content(raw):
        return {"content": raw}
    given = _members(raw) if raw.startswith(b"{") else {}
    whole = _is_content(given["content"]) if "content" in given else "content" not in old and given.keys() <= old.keys()
    if given and whole:
        members = {name: value for name, value in given.items() if name in old or name in RESULT_MEMBERS}
        if "structuredContent" in members:
            members.setdefault("content", b"[%b]" % _block(members["structuredContent"].decode()))
        return members
    return {"content": b"[%b]" % _block(raw_json.text_or_json(raw))}


def _is_content(raw: bytes) -> bool:
    """True for an array of content blocks that agents accept."""
    return raw.startswith(b"[") and all(_is_block(bytes(item)) for item in raw_json.items(raw))


def _is_block(raw: bytes) -> bool:
    required = _REQUIRED_MEMBERS.get(raw_json.text(member_or_empty(raw, "type")) or "", ("no such type",))
    return all(member_or_empty(raw, name) for name in required)


def with_feedback(line: bytes, text: str, delivery: Delivery, tool: Tool | None) -> DeliveredResponse:
    """Append the text to the result, and put it wherever else the model may look (design section 6)."""
    return _if_possible(line, lambda: _with_feedback(line, text, delivery, tool))


def with_feedback_on_error(line: bytes, text: str) -> DeliveredResponse:
    """Append the text to the error's message, and put it into its data."""
    return _if_possible(line, lambda: _with_feedback_on_error(line, text))


def _if_possible(line: bytes, edit: Callable[[], DeliveredResponse]) -> DeliveredResponse:
    """Return the edited line, or `line` itself if the edit would be too long or the line is ambiguous."""
    try:
        edited = edit() if len(line) < MAX_LINE_BYTES else None
    except raw_json.AMBIGUOUS:
        return DeliveredResponse(line, DeliveryNote.AMBIGUOUS)
    return edited if edited and len(edited.line) < MAX_LINE_BYTES else DeliveredResponse(line, DeliveryNote.TOO_LONG)


def _with_feedback(line: bytes, text: str, delivery: Delivery, tool: Tool | None) -> DeliveredResponse:
    """Read each level once and join once: a result may be large, so nothing in it is decoded."""
    start, end = raw_json.members(line)["result"]
    result = line[start:end]
    spans = raw_json.members(result) if result.startswith(b"{") else {}
    opening, closing = spans.get("content", (end, end))
    if not result.startswith(b"[", opening):
        return DeliveredResponse(line, DeliveryNote.NO_PLACE)
    edits, blocks, note = _structured_edits(result, spans, text, delivery, tool)
    comma = b"" if _EMPTY.fullmatch(result, opening, closing) else b","
    edits.append(((closing - 1, closing - 1), comma + b",".join((*blocks, _block(text)))))
    return DeliveredResponse(raw_json.splice(line, _shifted(sorted(edits), start)), note)


def _structured_edits(
    result: bytes, spans: dict[str, raw_json.Span], text: str, delivery: Delivery, tool: Tool | None
) -> tuple[list[Edit], list[bytes], DeliveryNote | None]:
    """Return what feedback does to structuredContent: edits, blocks with the content that they drop, and a note."""
    if "structuredContent" not in spans or delivery is Delivery.TEXT:
        return [], [], None
    start, end = spans["structuredContent"]
    structured = result[start:end]
    texts = structured_content.block_texts(content_blocks.read_blocks(result[slice(*spans["content"])]))
    failed = "isError" in spans and result[slice(*spans["isError"])] == b"true"
    if failed or delivery is Delivery.STRIP_OUTPUT_SCHEMA:
        repeated = structured_content.is_repeated(texts, structured)
        blocks = [] if repeated else [_block(structured.decode(errors="replace"))]
        return [raw_json.removal(result, spans, "structuredContent")], blocks, None
    edit = None if tool is None else _structured_edit(structured, texts, text, tool.output_schema)
    return ([], [], DeliveryNote.MAY_BE_INVISIBLE) if edit is None else (_shifted([edit], start), [], None)


def _structured_edit(structured: bytes, texts: Sequence[str], comment: str, output_schema: bytes) -> Edit | None:
    """Return the edit that puts a comment into structuredContent; None: its schema may allow no way to do that."""
    edit = _feedback_member(structured, comment)
    if edit is None or not output_schema or open_schema(output_schema):
        return edit
    if structured_content.fits_schema(raw_json.splice(structured, [edit]), structured, output_schema):
        return edit
    commented = structured_content.with_comment(structured, texts, comment, output_schema)
    return None if commented is None else ((0, len(structured)), raw_json.one_line(commented))


def open_schema(output_schema: bytes) -> bool:
    """True if this schema certainly allows the member `hook_feedback` in structuredContent."""
    try:
        schema = raw_json.fields(output_schema)
        named = raw_json.fields(bytes(schema.get("properties", b"{}")))
    except raw_json.AMBIGUOUS:
        return False
    others = [bytes(schema.get(key, b"true")) for key in ("additionalProperties", "unevaluatedProperties")]
    return others == [b"true", b"true"] and FEEDBACK_MEMBER not in named and _RESTRICTING_KEYWORDS.isdisjoint(schema)


def _with_feedback_on_error(line: bytes, text: str) -> DeliveredResponse:
    start, end = raw_json.members(line)["error"]
    failed = line[start:end]
    spans = raw_json.members(failed)
    message = member_or_empty(failed, "message")
    old_text = raw_json.text(message)
    edits: list[Edit] = []
    if old_text is not None:
        separator = " " if old_text.endswith((".", "!", "?")) else ". "
        edits.append((spans["message"], string_with_more(message, separator + text if old_text else text)))
    if "data" not in spans:
        edits.append(
            raw_json.insertion(failed, spans, "data", b'{"%b":%b}' % (FEEDBACK_MEMBER.encode(), json_string(text)))
        )
    elif edit := _feedback_member(failed[slice(*spans["data"])], text):
        edits += _shifted([edit], spans["data"][0])
    return DeliveredResponse(
        raw_json.splice(line, _shifted(sorted(edits), start)), None if edits else DeliveryNote.NO_PLACE
    )


def _feedback_member(raw: bytes, text: str) -> Edit | None:
    """Return the edit that puts the text into an object; None: `raw` is not one, is ambiguous, or has the member."""
    try:
        spans = raw_json.members(raw)
    except raw_json.AMBIGUOUS:
        return None
    return None if FEEDBACK_MEMBER in spans else raw_json.insertion(raw, spans, FEEDBACK_MEMBER, json_string(text))


def _shifted(edits: Sequence[Edit], by: int) -> list[Edit]:
    return [((start + by, end + by), new) for (start, end), new in edits]


def _block(text: str) -> bytes:
    return b'{"type":"text","text":%b}' % json_string(text)
