"""The tools of tools/list results, and which tools are judged.

A part of a result that cannot be read stays unknown, and hides nothing (law 1).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ..jsonrpc import normalize, raw_json
from ..model.hooks import Tool
from ..model.newest_entries import NewestEntries

if TYPE_CHECKING:
    from .responses import Members

_ANNOTATIONS_LIMIT: Final = 16 * 1024  # bytes: a hundred times the usual size; each hook gets it

_MOST_BYTES: Final = 32 * 1024 * 1024  # of the tools of one session: several times what a thousand large ones take
_PROPERTY_BYTES: Final = 300  # of memory for the name of an argument, in two tables
_MAX_CHECKED: Final = 1000  # listed tools, as many as servers have: each takes tens of microseconds
_MAX_NAMES: Final = 4096  # remembered names of tools: more than any server has
_LONGEST_NAME: Final = 1024  # characters of a remembered name: MCP's have at most 128


class ListedTools(NewestEntries[Tool]):
    """The tools that were listed, by their names; of too many, the newest. The others are unknown."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        super().__init__(most_bytes)

    def note(self, tools: Iterable[Tool]) -> None:
        """Note the tools on a page of tools/list."""
        for tool in tools:
            texts = len(tool.input_schema) + len(tool.output_schema) + len(tool.annotations)
            self.keep(tool.name, tool, texts + len(tool.properties) * _PROPERTY_BYTES)


class JudgedTools(dict[str, bool]):
    """Whether each tool is judged, by its name, as far as calls have asked: the fast path reads nothing else.

    `judged` says so of a tool; None: none is. What must hold: `may_judge` is False only if no listed tool is judged,
    and no call has been.
    """

    def __init__(self, judged: Callable[[str], bool] | None, listed: ListedTools) -> None:
        super().__init__()
        self._judged = judged
        self._listed = listed
        self._judged_tool: str | None = None  # one of the listed tools; None: no checked one is judged
        self._has_judged_call = False
        self.may_judge = judged is not None
        self.special: frozenset[str] = frozenset()
        """Names by which the agent does not call the tool of this name: their calls are never on the fast path."""
        self.are_listed = True
        """False: lists are not read, because no hook, no rule and no audit concerns calls."""

    def find_out(self, name: str) -> bool:
        """Return whether a tool is judged, and remember it: but the agent chooses names, so not too many or long."""
        judged = self._judged is not None and self._judged(name)
        if len(name) <= _LONGEST_NAME and name not in self.special:
            if len(self) >= _MAX_NAMES:
                self.clear()
            self[name] = judged
        return judged

    def note_judged_call(self) -> None:
        """A call is judged."""
        self._has_judged_call = self.may_judge = True

    def forget_all(self) -> None:
        """Decide anew which tools are judged."""
        self._judged_tool = None
        self.forget(list(self._listed))

    def forget(self, tools: Sequence[str]) -> None:
        """Decide anew which tools are judged: more is known of these."""
        self.clear()
        if self._judged is None:
            return
        if self._judged_tool in tools:
            self._judged_tool, tools = None, list(self._listed)
        unchecked = len(self._listed) > _MAX_CHECKED
        if self._judged_tool is None and not unchecked:
            self._judged_tool = next(filter(self._judged, tools), None)
        self.may_judge = self._has_judged_call or self._judged_tool is not None or unchecked or not self.are_listed


def listed_tools(line: bytes) -> list[Tool]:
    """Return the tools in a tools/list response. Tools that cannot be read are left out, and so stay unknown."""
    tools: list[Tool] = []
    with contextlib.suppress(ValueError, KeyError):
        for item in raw_json.all_items(bytes(raw_json.fields(bytes(raw_json.fields(line)["result"]))["tools"])):
            with contextlib.suppress(ValueError):
                tools.append(_tool(raw_json.fields(item)))
    return tools


def next_cursor(line: bytes) -> str | None:
    """Return the cursor of the next page in a tools/list response; empty: this is the last page; None: no list."""
    with contextlib.suppress(ValueError, KeyError):
        result = raw_json.fields(bytes(raw_json.fields(line)["result"]))
        raw_json.all_items(bytes(result["tools"]))
        return raw_json.text(bytes(result.get("nextCursor", b""))) or ""
    return None


def cursor_of(members: Members) -> bytes:
    """Return the cursor, as spelled, of a request for a further page of a list; empty: it has none."""
    with contextlib.suppress(ValueError):
        return bytes(raw_json.fields(members.get("params", b"{}")).get("cursor", b""))
    return b""


def server_name(line: bytes) -> str:
    """Return the server's name in a response of the stateless era; empty: it has none."""
    with contextlib.suppress(ValueError, KeyError):
        result = raw_json.fields(bytes(raw_json.fields(line)["result"]))
        from . import calls  # which `check` does not need otherwise: it takes 8 ms

        return calls.texts_of(raw_json.fields(result["_meta"]).get(calls.SERVER_INFO_KEY), "name")
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
