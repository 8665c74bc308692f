"""Results of judged methods beside `tools/call`: what hooks read in them, and how comments are written into them.

Hooks get the whole result, and the texts in it as content blocks, as if a tool had returned them. What a hook gives
instead is a whole result of the method, its main member, or a text. A result that must not reach the agent becomes an
error, because no other method than `tools/call` has failed results. Law 2: nothing else of a response changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ..jsonrpc import normalize, raw_json
from ..model import content_blocks
from ..model.decision import Comments
from ..model.hooks import Outcome
from . import feedback, response_edits
from .calls import Call
from .method_forms import BY_NAME
from .response_edits import INTERNAL_ERROR, MAX_LINE_BYTES, DeliveredResponse, DeliveryNote, error_response, json_string
from .responses import Members

OF_PROTOCOL: Final = frozenset({"_meta", "resultType", "ttlMs", "cacheScope"})
"""Members of a result that hold no output."""

_OF_TEXT: Final = frozenset({"uri", "mimeType", "text", "_meta"})
"""Members of a text among the contents of a resource."""


def outcome(method: str, members: Members, other: bytes) -> Outcome:
    """Return what hooks get of a result; `other` is the result if it is not an object. Raises Unreadable."""
    whole = normalize.normalize_output(other or raw_json.encode(members))
    texts = None if other else _texts(method, members)
    if texts is None:
        return Outcome(more=whole, whole=whole, has_result=True)
    blocks = [{"type": "text", "text": text} for text in texts]
    return Outcome(content=raw_json.encode(blocks), whole=whole, has_result=True)


def _texts(method: str, members: Members) -> list[str] | None:
    """The texts of a result if it holds nothing else; None: it does."""
    content = BY_NAME[method].content
    if not content or not members.keys() <= OF_PROTOCOL | {content}:
        return None
    try:
        texts = [*_parts(method, bytes(members.get(content, b"[]")))]
    except ValueError:
        return None
    return [text for text in texts if text is not None] if None not in texts else None


def _parts(method: str, raw: bytes) -> Iterator[str | None]:
    """Each part of a result's main member, as its text; None: it is more than a text. Raises ValueError."""
    if method == "completion/complete":
        yield from (raw_json.text(bytes(value)) for value in raw_json.items(bytes(raw_json.fields(raw)["values"])))
        return
    for item in raw_json.items(raw):
        part = raw_json.fields(bytes(item))
        if method == "prompts/get":
            yield content_blocks.only_text(raw_json.fields(bytes(part["content"])))
        else:
            yield raw_json.text(bytes(part.get("text", b""))) if part.keys() <= _OF_TEXT else None


def deliver(call: Call, line: bytes, comments: Comments, pre_feedback: Sequence[str]) -> DeliveredResponse:
    """Put the comments into the response `line`, which holds a result; without comments, return the same object.

    Raises Unreadable or DuplicateKeys if output must not pass and the envelope cannot be read.
    """
    if comments.withheld or comments.hidden_by:
        text = feedback.withheld_sentence(comments.withheld, pre_feedback)
        text = text if comments.withheld else feedback.hidden_sentence(comments)
        return DeliveredResponse(error_response(call.id, INTERNAL_ERROR, _of_method(text, call.mcp_method)))
    if comments.replacement is not None:
        line = _with_replacement(call, line, comments.replacement)
    text = feedback.feedback_text(comments, pre_feedback)
    if not text:
        return DeliveredResponse(line)
    if "error" in raw_json.members(line):  # which a hook's text has become
        return response_edits.with_feedback_on_error(line, text)
    return _with_feedback(call, line, text)


def _of_method(text: str, method: str) -> str:
    """A sentence about a tool, said of a method."""
    text = text.replace("The tool was run, but", f"The server has answered this {method}, but")
    return text.replace(" Calling the tool again would run it again.", "").replace("Another call", "Another request")


def _with_replacement(call: Call, line: bytes, replacement: bytes) -> bytes:
    """Replace the whole result by a hook's, because any member of it may hold output; an error where that cannot be."""
    span = raw_json.members(line)["result"]
    result = line[slice(*span)]
    old = {name: bytes(value) for name, value in raw_json.fields(result).items()} if result[:1] == b"{" else {}
    new = _replacement(call, replacement, old)
    if new is None:
        return error_response(call.id, INTERNAL_ERROR, raw_json.text_or_json(replacement))
    kept: dict[str, bytes] = {"resultType": b'"complete"'} if "resultType" in old else {}
    if "ttlMs" in old:  # a result that hooks have changed is for nobody else, nor for later
        kept |= {"ttlMs": b"0", "cacheScope": b'"private"'}
    members = b",".join(b"%b:%b" % (json_string(name), value) for name, value in (kept | new).items())
    edited = b'{"jsonrpc":"2.0","id":%b,"result":{%b}}' % (line[slice(*raw_json.members(line)["id"])], members)
    return edited + b"\n" * line.endswith(b"\n")


def _replacement(call: Call, replacement: bytes, old: dict[str, bytes]) -> dict[str, bytes] | None:
    """The members of a result that a hook gives; None: the method has no result like that."""
    content = BY_NAME[call.mcp_method].content
    try:
        raw = raw_json.one_line(normalize.normalize(replacement, lenient=True))
    except raw_json.AMBIGUOUS:
        return _of_text(call, replacement.decode(errors="replace"))
    given = {name: bytes(value) for name, value in raw_json.fields(raw).items()} if raw[:1] == b"{" else {}
    if given.get(content, b"")[:1] in (b"[", b"{"):
        return {name: value for name, value in given.items() if name == content or name in old.keys() - OF_PROTOCOL}
    if raw[:1] == b"[" and content in ("contents", "messages", "resources") and _fits(raw, content):
        return {content: raw}
    blocks = given.get("content", raw)  # as a tool's result
    if blocks[:1] == b"[" and (read := content_blocks.read_blocks(blocks)):
        texts = [content_blocks.only_text(block) for block in read]
        if None not in texts:
            return _of_text(call, "\n".join(text or "" for text in texts))
    return _of_text(call, raw_json.text_or_json(raw))


def _fits(raw: bytes, content: str) -> bool:
    needed = {"contents": "uri", "messages": "role", "resources": "uri"}[content]
    return all(needed in item for item in content_blocks.read_blocks(raw) or ())


def _of_text(call: Call, text: str) -> dict[str, bytes] | None:
    match call.mcp_method:
        case "resources/read":
            return {"contents": b"[%b]" % _content(call, text)}
        case "prompts/get":
            return {"messages": b"[%b]" % _message(text)}
        case "completion/complete":
            return {"completion": b'{"values":[%b]}' % json_string(text)}
        case _:
            return None


def _content(call: Call, text: str) -> bytes:
    uri = raw_json.text(bytes(raw_json.fields(call.arguments).get("uri", b""))) or ""
    return b'{"uri":%b,"mimeType":"text/plain","text":%b}' % (json_string(uri), json_string(text))


def _message(text: str) -> bytes:
    return b'{"role":"user","content":{"type":"text","text":%b}}' % json_string(text)


def _with_feedback(call: Call, line: bytes, text: str) -> DeliveredResponse:
    """Append the text as one more content or message; where there is none, put it into `_meta`."""
    try:
        edited = _appended(call, line, text) if len(line) < MAX_LINE_BYTES else line
    except (KeyError, *raw_json.AMBIGUOUS):
        return DeliveredResponse(line, DeliveryNote.AMBIGUOUS)
    if edited is line or len(edited) >= MAX_LINE_BYTES:
        return DeliveredResponse(line, DeliveryNote.TOO_LONG)
    return DeliveredResponse(edited)


def _appended(call: Call, line: bytes, text: str) -> bytes:
    start, end = raw_json.members(line)["result"]
    result = line[start:end]
    content = BY_NAME[call.mcp_method].content
    listed = response_edits.member_or_empty(result, content) if content in ("contents", "messages") else b""
    if listed[:1] == b"[":
        item = _content(call, text) if content == "contents" else _message(text)
        comma = b"," if raw_json.items(listed) else b""
        edited = raw_json.with_member(result, content, listed[:-1] + comma + item + b"]")
    else:
        meta = response_edits.member_or_empty(result, "_meta") or b"{}"
        meta = raw_json.with_member(meta, response_edits.FEEDBACK_MEMBER, json_string(text))
        edited = raw_json.with_member(result, "_meta", meta)
    return raw_json.splice(line, [((start, end), edited)])


def check_names(method: str, members: Members) -> None:
    """Raise Unreadable if some readers take a member of the result for the one that hooks read."""
    content = BY_NAME[method].content
    for name in members:
        if name not in (content, "resultType") and raw_json.folded_key(name) in (content.casefold(), "resulttype"):
            raise raw_json.Unreadable("a member of its result differs only in case from a known member")
