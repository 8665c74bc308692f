"""Edits of the lists in which a server says what it has: items go, or are changed, and all other bytes stay (law 2).

A list that some reader could read otherwise is not edited: Unreadable or DuplicateKeys. What follows is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable

from ..jsonrpc import raw_json
from . import response_edits

EditItem = Callable[[bytes], bytes | None]
"""Returns the item as it goes to the agent: the same object if nothing changes; None: it is left out."""


def edited(line: bytes, member: str, edit: EditItem) -> bytes:
    """The response with the items of the list `member` of its result as `edit` has them; `line` itself if all stay.

    A changed list must not be cached for others. A response without a result has no list. Raises Unreadable,
    DuplicateKeys.
    """
    span = raw_json.members(line).get("result", (0, 0))
    result = line[slice(*span)]
    spans = raw_json.members(result) if result else {}
    check_lookalikes(spans, member)
    if member not in spans:
        return line
    items = result[slice(*spans[member])]
    new = edited_items(items, edit)
    if new is items:
        return line
    result = raw_json.with_member(result, member, new)
    if response_edits.member_or_empty(result, "cacheScope"):
        result = raw_json.with_member(result, "cacheScope", b'"private"')
    return raw_json.splice(line, [(span, result)])


def items_of(line: bytes, member: str) -> tuple[list[bytes] | None, bytes]:
    """The items of the list `member` of a response (None: it has none), and its `nextCursor` as spelled (empty: none).

    Raises Unreadable, DuplicateKeys.
    """
    span = raw_json.members(line).get("result")
    if span is None:
        return None, b""
    result = line[slice(*span)]
    spans = raw_json.members(result)
    check_lookalikes(spans, member)
    if member not in spans:
        return None, b""
    cursor = result[slice(*spans.get("nextCursor", (0, 0)))]
    return raw_json.all_items(result[slice(*spans[member])]), b"" if cursor in (b"null", b'""') else cursor


def edited_items(items: bytes, edit: EditItem) -> bytes:
    """The array with the items as `edit` has them, without the commas of those that go; `items` itself if all stay.

    Raises Unreadable.
    """
    edits: list[response_edits.Edit] = []
    at = 0
    before: raw_json.Span | None = None  # the last item that stays, or that was removed with all items before it
    gone = True  # True while all items so far are removed
    for item in raw_json.all_items(items):
        start = items.index(item, at)
        span = start, at = start, start + len(item)
        new = edit(item)
        if new is None:
            edits.append(((before[1] if before else span[0], span[1]), b""))
            before = span
            continue
        if gone and before:
            edits.append(((before[1], span[0]), b""))  # the comma before it separates nothing any more
        gone = False
        if new is not item:
            edits.append((span, new))
        before = span
    return raw_json.splice(items, edits) if edits else items


def name_of(item: bytes) -> str | None:
    """The name of an item of a list; None if it cannot be read, or not in one way only."""
    return raw_json.text(response_edits.member_or_empty(item, "name"))


def check_lookalikes(members: dict[str, raw_json.Span], *meant: str) -> None:
    """Raise Unreadable for a member that readers which ignore case take for one of these."""
    for key in members:
        folded = raw_json.folded_key(key)
        if key not in meant and folded in map(raw_json.folded_key, meant):
            raise raw_json.Unreadable(f"its member {key!r} is taken for {folded!r} by some readers")
