"""Read the response to a call: whether it is final, and what PostToolUse and PostToolUseFailure hooks get."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..jsonrpc import nesting, normalize, raw_json
from ..model import content_blocks
from ..model.hooks import Outcome
from ..policy.methods import TOOLS_CALL
from . import elicitations, structured_content
from .actions import ElicitationSeen
from .calls import Call
from .responses import Members

_READ: Final = frozenset({"resultType", "content", "structuredContent", "isError", "task", "taskId"})
_OUTPUT: Final = frozenset({"content", "structuredContent", "contents", "messages", "completion", "resources"})
"""Members that an agent may show, whatever else the result says."""
_FOLDED: Final = frozenset(map(str.casefold, _READ))

NO_OUTCOME: Final = Outcome()
"""The outcome of a call that has none yet."""


class ParsedResponse(Struct, frozen=True):
    """The content of the response to a call."""

    final: bool
    """False: the call continues in further requests, and no hook runs yet."""
    failed: bool = False
    outcome: Outcome = NO_OUTCOME
    needs_input: bool = False
    """It is not final because the server requests input, and another round follows."""
    elicitations: tuple[ElicitationSeen, ...] = ()
    """The elicitations in a response that is not final."""


def read(call: Call, max_depth: int = 0, *, observed: bool = True) -> ParsedResponse:
    """Read a call's response. Raises Unreadable, DuplicateKeys: the agent might read it differently than hooks do.

    With `max_depth`, hooks judge the response, and it must not be deeper. Unless it is `observed`, no hook gets the
    outcome, and only the members of the result are read, not their values.
    """
    if call.response is None:
        raise raw_json.Unreadable("two readers may read it differently")
    if call.response.error is not None:
        _check_depth(call.response.error, max_depth)
        return ParsedResponse(True, True, Outcome(error=error_text(call.response.error)) if observed else NO_OUTCOME)
    members = call.response.result or {}
    if call.mcp_method != TOOLS_CALL:
        return _read_of_method(call, members, max_depth, observed=observed)
    if any(key not in _READ and raw_json.folded_key(key) in _FOLDED for key in members):
        raise raw_json.Unreadable("a member of its result differs only in case from a known member")
    if (call.stateless or call.task) and (unfinished := _unfinished(call, members)):
        return unfinished
    failed = "isError" in members and bytes(members["isError"]) == b"true"
    if not observed:
        return ParsedResponse(True, failed, Outcome(has_result=True))
    outcome = _outcome_for_hooks(members, bytes(call.response.other), max_depth)
    if failed:
        outcome = replace(outcome, error=_failure_text(outcome) or "The tool reported an error without a message.")
    return ParsedResponse(True, failed, outcome)


def _read_of_method(call: Call, members: Members, max_depth: int, *, observed: bool) -> ParsedResponse:
    """As `read`, for a result of another method."""
    from . import method_results  # most sessions have no such results

    method_results.check_names(call.mcp_method, members)
    if call.stateless and (unfinished := _unfinished(call, members)):
        return unfinished
    if not observed:
        return ParsedResponse(True, outcome=Outcome(has_result=True))
    other = bytes(call.response.other) if call.response is not None else b""
    outcome = method_results.outcome(call.mcp_method, members, other)
    _check_depth(outcome.whole, max_depth)
    return ParsedResponse(True, outcome=outcome)


def _outcome_for_hooks(members: Members, other: bytes, max_depth: int) -> Outcome:
    """Return what hooks get of a result; `other` is the result if it is not an object."""
    content, blocks = normalize.normalize_blocks(bytes(members["content"])) if "content" in members else (b"[]", ())
    if blocks is None and (max_depth or "structuredContent" in members):
        blocks = content_blocks.read_blocks(content)
    outcome = _outcome(members, content, blocks, other)
    if max_depth:
        _check_depth_for_hooks(outcome, blocks, max_depth)
    return outcome


def _unfinished(call: Call, members: Members) -> ParsedResponse | None:
    """Return the content of a response after which the call goes on; None: the response is final."""
    result_type = raw_json.text(members["resultType"]) if "resultType" in members else "complete"
    waits = result_type == "input_required" or (result_type == "task" and "taskId" in members)
    handle = (call.stateless and waits) or (call.task and "task" in members)
    if not handle or not members.keys().isdisjoint(_OUTPUT):  # an agent may show these
        return None
    needs_input = result_type == "input_required"
    return ParsedResponse(False, needs_input=needs_input, elicitations=tuple(elicitations.in_result(members)))


def _check_depth_for_hooks(outcome: Outcome, blocks: Sequence[Members] | None, max_depth: int) -> None:
    """Raise Unreadable if something that hooks get of a result is nested too deep."""
    if outcome.whole or outcome.more:
        _check_depth(outcome.whole or outcome.more, max_depth)
        return
    if outcome.structured and not outcome.repeats_structured:
        _check_depth(outcome.structured, max_depth)
    for value in structured_content.values_of_blocks(outcome.content, blocks):
        _check_depth(value, max_depth - 2)


def _check_depth(raw: bytes | msgspec.Raw, max_depth: int) -> None:
    if max_depth and nesting.is_deeper(bytes(raw), max_depth):
        raise raw_json.Unreadable(f"it is nested deeper than {max_depth} levels (max_depth)")


def _outcome(members: Members, content: bytes, blocks: Sequence[Members] | None, other: bytes) -> Outcome:
    """Return what hooks get of a result: its content blocks, and all that the agent gets besides."""
    structured = bytes(members["structuredContent"]) if "structuredContent" in members else b""
    texts = structured_content.block_texts(blocks) if structured else []
    repeated = any(text.encode(errors="replace") == structured for text in texts)  # as most servers do
    if structured and not repeated:
        structured = normalize.normalize_output(structured)
        repeated = structured_content.is_repeated(texts, structured)
    unknown = {name: raw for name, raw in members.items() if _is_unknown(name, raw)}
    more = normalize.normalize_output(other or raw_json.encode(unknown)) if other or unknown else b""
    whole = b""
    if more or (structured and not repeated):
        whole = more if other else normalize.normalize_output(raw_json.encode(members))
    return Outcome(
        content=content, structured=structured, repeats_structured=repeated, more=more, whole=whole, has_result=True
    )


def _is_unknown(name: str, raw: msgspec.Raw) -> bool:
    """True for a member that a tool's result does not have in MCP, or whose value it cannot have there."""
    if name == "isError":
        return bytes(raw) not in (b"true", b"false")
    if name == "resultType":
        return bytes(raw) != b'"complete"'
    return name not in ("content", "structuredContent", "_meta")


def _failure_text(outcome: Outcome) -> str:
    """Return all that the model could read in a failed result: texts as they are, everything else as JSON."""
    parts = [joined_text(outcome.content)]
    with contextlib.suppress(raw_json.Unreadable):
        for block in map(bytes, raw_json.items(outcome.content)):
            members = content_blocks.read_blocks(b"[%b]" % block)
            if not structured_content.block_texts(members):
                parts.append(block.decode(errors="replace"))
    structured = b"" if outcome.repeats_structured else outcome.structured
    parts += [raw.decode(errors="replace") for raw in (structured, outcome.more)]
    return "\n".join(filter(None, parts))


def error_text(error: msgspec.Raw) -> str:
    """Return an error as Claude Code gives it to hooks; other members follow as JSON. Raises ValueError."""
    raw = bytes(error)
    if not raw.startswith(b"{"):
        return f"MCP error: {normalize.normalize_output(raw).decode(errors='replace')}" if raw else "MCP error"
    members = raw_json.fields(raw)
    message = raw_json.text(bytes(members.get("message", b"")))
    known = ("code",) if message is None else ("code", "message")
    more = {name: value for name, value in members.items() if name not in known}
    text = f"MCP error {bytes(members.get('code', b'')).decode(errors='replace')}: {message or ''}"
    return f"{text}\n{normalize.normalize_output(raw_json.encode(more)).decode(errors='replace')}" if more else text


def joined_text(content: bytes) -> str:
    """Return the texts of all content blocks, joined by line ends."""
    try:
        texts = [raw_json.text(raw_json.fields(block).get("text", b"")) for block in raw_json.items(content)]
    except raw_json.Unreadable:
        return ""
    return "\n".join(filter(None, texts))
