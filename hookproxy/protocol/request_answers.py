"""The agent's answers to requests of the server that are judged: what hooks get of them, and their replacements."""

from __future__ import annotations

from typing import Final

from ..jsonrpc import nesting, normalize, raw_json
from ..model.decision import Comments
from ..model.hooks import Outcome
from . import tool_results
from .responses import Members
from .server_requests import ROOTS, SAMPLING, on_one_line

_ACTIONS: Final = ("accept", "decline", "cancel")


def outcome_of(members: Members, max_depth: int) -> Outcome:
    """What hooks get of the agent's answer. Raises Unreadable, DuplicateKeys: the server might read it differently."""
    if ("result" in members) == ("error" in members):
        raise raw_json.Unreadable("it has not either a result or an error")
    raw = bytes(members.get("result", members.get("error", b"")))
    if nesting.is_deeper(raw, max_depth):
        raise raw_json.Unreadable(f"it is nested deeper than {max_depth} levels (max_depth)")
    if "error" in members:
        return Outcome(error=tool_results.error_text(members["error"]))
    return outcome_of_result(raw)


def outcome_of_result(result: bytes) -> Outcome:
    """As `outcome_of` for a result alone."""
    whole = normalize.normalize(result)
    if whole[:1] == b"{":
        raw_json.fields(whole)
    return Outcome(has_result=True, more=whole, whole=whole)


def after_comments(method: str, comments: Comments, result: bytes, withheld: bytes) -> bytes:
    """The result after post hooks: itself, their replacement, or `withheld`. Raises ValueError as `replaced`."""
    if comments.withheld or comments.hidden_by or comments.failed:
        return withheld
    return result if comments.replacement is None else replaced(method, comments.replacement, result)


def replaced(method: str, replacement: bytes, result: bytes) -> bytes:
    """The result that a hook wants in place of the agent's. Raises ValueError if it is not one of this method."""
    new = normalize.normalize(replacement, lenient=True)
    text = raw_json.text(new)
    if method == SAMPLING and text is not None:
        content = b'{"type":"text","text":%b}' % raw_json.encode(text)
        return raw_json.with_member(result, "content", content)
    members = raw_json.fields(new) if new[:1] == b"{" else {}
    if method == SAMPLING:
        fits = {"role", "content", "model"} <= members.keys()
    elif method == ROOTS:
        fits = bytes(members.get("roots", b""))[:1] == b"["
    else:
        fits = raw_json.text(bytes(members.get("action", b""))) in _ACTIONS
    if not fits:
        raise ValueError(f"what it gives is not a result of {method}")
    return on_one_line(new)
