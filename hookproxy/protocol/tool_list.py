"""Read the tools of a tools/list result. A part that cannot be read stays unknown, and hides nothing (law 1)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Final

from ..jsonrpc import normalize, raw_json
from ..model.hooks import Tool
from ..model.newest_entries import NewestEntries
from . import calls
from .responses import Members

_ANNOTATIONS_LIMIT: Final = 16 * 1024  # bytes: a hundred times the usual size; each hook gets it

_MOST_BYTES: Final = 32 * 1024 * 1024  # of the tools of one session: several times what a thousand large ones take
_PROPERTY_BYTES: Final = 300  # of memory for the name of an argument, in two tables


class ListedTools(NewestEntries[Tool]):
    """The tools that were listed, by their names; of too many, the newest. The others are unknown."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        super().__init__(most_bytes)

    def note(self, tools: Iterable[Tool]) -> None:
        """Note the tools on a page of tools/list."""
        for tool in tools:
            texts = len(tool.input_schema) + len(tool.output_schema) + len(tool.annotations)
            self.keep(tool.name, tool, texts + len(tool.properties) * _PROPERTY_BYTES)


def listed_tools(line: bytes) -> list[Tool]:
    """Return the tools in a tools/list response. Tools that cannot be read are left out, and so stay unknown."""
    tools: list[Tool] = []
    with contextlib.suppress(ValueError, KeyError):
        for item in raw_json.all_items(bytes(raw_json.fields(bytes(raw_json.fields(line)["result"]))["tools"])):
            with contextlib.suppress(ValueError):
                tools.append(_tool(raw_json.fields(item)))
    return tools


def next_cursor(line: bytes) -> str | None:
    """Return the cursor of the next page in a tools/list response; empty: this is the last page.

    None: the line holds no list of tools.
    """
    with contextlib.suppress(ValueError, KeyError):
        result = raw_json.fields(bytes(raw_json.fields(line)["result"]))
        raw_json.all_items(bytes(result["tools"]))
        return raw_json.text(bytes(result.get("nextCursor", b""))) or ""
    return None


def server_name(line: bytes) -> str:
    """Return the server's name in a response of the stateless era; empty: it has none."""
    with contextlib.suppress(ValueError, KeyError):
        result = raw_json.fields(bytes(raw_json.fields(line)["result"]))
        return calls.server_name(raw_json.fields(bytes(result["_meta"])).get(calls.SERVER_INFO_KEY))
    return ""


def _tool(members: Members) -> Tool:
    name = raw_json.text(bytes(members.get("name", b"")))
    if name is None:
        raise raw_json.Unreadable("a tool without a name")
    input_schema = bytes(members.get("inputSchema", b""))
    schema = raw_json.fields(input_schema) if input_schema[:1] == b"{" else {}
    names = frozenset(raw_json.fields(bytes(schema["properties"]))) if "properties" in schema else frozenset[str]()
    return Tool(
        name=name,
        input_schema=input_schema,
        output_schema=bytes(members.get("outputSchema", b"")),
        annotations=_annotations(bytes(members.get("annotations", b""))),
        properties=names,
        by_loose_key={raw_json.loose_key(name): name for name in names},
    )


def _annotations(raw: bytes) -> bytes:
    """Return normalised annotations; empty if a hook might fail on them, because the server chooses them."""
    with contextlib.suppress(ValueError):
        if raw[:1] == b"{" and len(raw) <= _ANNOTATIONS_LIMIT:
            return normalize.normalize(raw, lenient=True)
    return b""
