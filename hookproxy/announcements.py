"""What a server announces of itself, as the agent is to read it: its instructions, its list of tools.

Law 2: an announcement that nothing is added to or taken from is the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import wire
from .answers import UNCLEAR, Edit, continued, peek, string


def with_instructions(line: bytes, texts: Sequence[str]) -> bytes:
    """An initialize answer with the texts at the end of its instructions; `line` itself if that cannot be."""
    text = "\n\n".join(text for text in texts if text)

    def instructed(result: bytes) -> bytes:
        given = peek(result, "instructions")
        said = wire.text(given or b'""')
        if not text or said is None:
            return result
        longer = continued(given, "\n\n" + text) if said else string(text)
        return wire.with_member(result, "instructions", longer)

    return _with_result(line, instructed)


def without_output_schemas(line: bytes, hooked: Callable[[str], bool]) -> bytes:
    """A tools/list answer without the outputSchema of hooked tools, and no more to be cached for everyone."""

    def stripped(result: bytes) -> bytes:
        tools = peek(result, "tools")
        edits: list[Edit] = []
        at = 0
        for item in map(bytes, wire.items(tools)):
            at = tools.index(item, at)
            name = wire.text(peek(item, "name"))
            if name is not None and hooked(name):
                edits.append(((at, at + len(item)), wire.without_member(item, "outputSchema")))
            at += len(item)
        shorter = wire.splice(tools, edits)
        edited = wire.with_member(result, "tools", shorter)
        changed = shorter != tools and peek(result, "cacheScope")
        return wire.with_member(edited, "cacheScope", b'"private"') if changed else edited

    return _with_result(line, stripped)


def _with_result(line: bytes, edit: Callable[[bytes], bytes]) -> bytes:
    """The line with its result edited; `line` itself if nothing changes, or it is unclear what would."""
    try:
        span = wire.members(line).get("result", (0, 0))
        result = line[slice(*span)]
        edited = edit(result)
    except UNCLEAR:
        return line
    return line if edited == result else wire.splice(line, [(span, edited)])
