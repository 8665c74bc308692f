"""Starts a server, asks it for its tools as an agent would, and ends it: for `check`, before any agent uses it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import anyio
from msgspec import Struct

from ..jsonrpc import raw_json
from ..lock import description, hidden_text
from ..lock.description import Kind
from ..model.hooks import Tool
from ..protocol import tool_list
from ..protocol.calls import SERVER_INFO_KEY
from .asked_process import AskedProcess, ServerFailed, answer_of
from .conversation import Beginning, Conversation, ErrorResponse, members_of, name_of

LIST_SECONDS: Final = 30.0
"""How long a server may take to start and to list its tools: `npx` may have to download it first."""

_MOST_HIDDEN: Final = 20  # lines: a person reads no more
_SLOW_SECONDS: Final = 1.0  # until a person wonders whether anything happens


class ServerTools(Struct, frozen=True):
    """A server's tools."""

    tools: tuple[Tool, ...]
    """In the order of its list."""
    server_info: str = ""
    """The server's name as it gives it; empty: it gives none."""
    noise: int = 0
    """How many lines on its standard output were not JSON."""
    hidden: tuple[str, ...] = ()
    """What its texts hide, a line for each."""


async def list_tools(
    command: Sequence[str],
    environ: Mapping[str, str],
    seconds: float = LIST_SECONDS,
    on_slow: Callable[[float], None] = lambda _seconds: None,
) -> ServerTools:
    """Start the server in our folder and with this environment, ask it for its tools, and end it.

    `seconds` is the time that it may take; `on_slow` is called after a second, with the seconds that are left. Raises
    UserError if it cannot be started or does not list its tools in that time. On cancel it is ended, too.
    """
    server = AskedProcess(command, environ)
    slow = partial(_after_a_while, on_slow, seconds)
    return await answer_of(server, partial(_list_in_time, server, seconds), "listed its tools", slow)


async def _list_in_time(server: AskedProcess, seconds: float) -> ServerTools:
    try:
        with anyio.fail_after(seconds):
            return await _list(Conversation(server))
    except TimeoutError:
        raise ServerFailed(f"has not listed its tools within {seconds:g} seconds") from None
    except ValueError as error:
        raise ServerFailed(str(error)) from None


async def _after_a_while(on_slow: Callable[[float], None], seconds: float) -> None:
    if seconds > _SLOW_SECONDS:
        await anyio.sleep(_SLOW_SECONDS)
        on_slow(seconds - _SLOW_SECONDS)


async def _list(conversation: Conversation) -> ServerTools:
    """Begin the session in the way that the server knows, and read all pages of its list."""
    beginning = await conversation.begin()
    server_info = name_of(beginning.result.get("serverInfo"))
    tools: dict[str, Tool] = {}
    hidden = _Hidden(beginning)
    try:
        async for result, entries in conversation.pages(beginning, "tools/list", "tools"):
            server_info = server_info or name_of(members_of(result.get("_meta")).get(SERVER_INFO_KEY))
            page = raw_json.encode({"result": result})
            hidden.look_at(entries)
            tools.update((tool.name, tool) for tool in tool_list.listed_tools(page))
    except ErrorResponse as error:
        if not beginning.is_stateless and "tools" not in beginning.capabilities:
            return ServerTools((), server_info, conversation.noise)
        raise ServerFailed(f"answered tools/list with an error: {error}") from None
    return ServerTools(tuple(tools.values()), server_info, conversation.noise, hidden.lines)


class _Hidden:
    """What the texts of a server hide."""

    def __init__(self, beginning: Beginning) -> None:
        instructions = raw_json.text(beginning.result.get("instructions", b"")) or ""
        self.lines = tuple(found.line() for found in hidden_text.in_instructions(instructions))

    def look_at(self, tools: Sequence[bytes]) -> None:
        """Look at a page of tools. One that cannot be read in one way only has no text."""
        for raw in tools:
            if len(self.lines) < _MOST_HIDDEN:
                with contextlib.suppress(*raw_json.AMBIGUOUS):
                    found = hidden_text.in_entry(description.entry(Kind.TOOL, raw))
                    self.lines += tuple(one.line() for one in found)
