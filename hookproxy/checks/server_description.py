"""Asks a server for all that it says of itself: for `hookproxy lock`.

It sees what an agent sees that can do everything: all capabilities of a client are declared, and each list is read to
its end. What cannot be pinned is reported, and left out: a proxy withholds it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

import anyio
from msgspec import Struct

from ..jsonrpc.raw_json import AMBIGUOUS
from ..lock import description
from ..lock.changes import shortened
from ..lock.description import Description, Entry, Kind
from ..model.errors import UserError, printable
from ..protocol.calls import SERVER_INFO_KEY
from ..transports.channel import Channel
from .asked_process import MOST_BYTES, AskedProcess, ServerFailed, Starter, answer_of
from .conversation import METHOD_NOT_FOUND, Beginning, Conversation, ErrorResponse, Peer, members_of

DESCRIBE_SECONDS: Final = 30.0
"""How long a server may take to start and to list everything: `npx` may have to download it first."""

_MOST_ENTRIES: Final = 10_000  # of one server: a hundred times what models can be shown
_MOST_READINGS: Final = 3  # of all lists, of a server that says again and again that they have changed
_MOST_NOTES: Final = 10  # of one server: a person reads no more
_CAPABILITIES: Final[Mapping[str, object]] = {
    "roots": {"listChanged": True},
    "sampling": {},
    "elicitation": {"form": {}, "url": {}},
}


class Described(Struct, frozen=True):
    """What a server says of itself, and what could not be pinned: a sentence on each, printable."""

    description: Description
    notes: tuple[str, ...] = ()
    """Of what was said twice in the same words."""
    withheld: tuple[str, ...] = ()
    """Of what a proxy withholds, because it cannot be pinned."""


async def describe(peer: Peer, seconds: float = DESCRIBE_SECONDS) -> Described:
    """Ask the server for everything. Raises ServerFailed, with what it did after `the server`."""
    try:
        with anyio.fail_after(seconds):
            return await _describe(Conversation(peer, _CAPABILITIES))
    except TimeoutError:
        raise ServerFailed(f"has not said what it offers within {seconds:g} seconds") from None
    except ErrorResponse as error:
        raise ServerFailed(f"answered with an error: {error}") from None
    except ValueError as error:
        raise ServerFailed(f"cannot be understood: {error}") from None


async def describe_process(
    command: Sequence[str],
    environ: Mapping[str, str],
    cwd: str = "",
    seconds: float = DESCRIBE_SECONDS,
    starter: Starter | None = None,
) -> Described:
    """Start a server in this folder, ask it for everything, and end it, also on cancel. Raises UserError.

    With a `starter` it is started by that.
    """
    server = AskedProcess(command, environ, cwd, starter)
    return await answer_of(server, partial(describe, server, seconds), "said what it offers")


async def describe_channel(
    channel: Channel, end: Callable[[], Awaitable[None]], hint: Callable[[], str], seconds: float = DESCRIBE_SECONDS
) -> Described:
    """Ask the server behind a channel for everything, and end it by `end`. Raises UserError with the `hint`."""
    try:
        return await describe(ChannelPeer(channel), seconds)
    except ServerFailed as error:
        raise UserError(printable(f"the server {error}"), printable(hint())) from None
    finally:
        with anyio.CancelScope(shield=True):
            await end()
        channel.close()


async def _describe(conversation: Conversation) -> Described:
    beginning = await conversation.begin(discover=True)
    for _ in range(_MOST_READINGS):  # some servers have more to list once they know our roots
        reader = _Reader()
        conversation.has_changed = False
        for kind in Kind:
            await reader.read(conversation, beginning, kind)
        await _wait_for_all(conversation, beginning)
        if not conversation.has_changed:
            break
    server_info = _server_info(beginning.result)
    if server_info is None and "serverInfo" not in beginning.result:
        server_info = reader.server_info
    identity = description.identity(beginning.result, server_info)
    return Described(Description(identity, reader.entries), tuple(reader.notes), tuple(reader.withheld))


async def _wait_for_all(conversation: Conversation, beginning: Beginning) -> None:
    """Wait for what the server has said so far: a response comes after it."""
    if not beginning.is_stateless:
        with contextlib.suppress(ErrorResponse):
            await conversation.request("ping", {})


def _server_info(result: Mapping[str, object]) -> bytes | None:
    raw = members_of(result.get("_meta")).get(SERVER_INFO_KEY)  # type: ignore[arg-type]
    return None if raw is None else bytes(raw)


class _Reader:
    """Reads the lists of one server."""

    def __init__(self) -> None:
        self.entries: dict[tuple[Kind, str], Entry] = {}
        self.notes: list[str] = []
        self.withheld: list[str] = []
        self.server_info: bytes | None = None

    async def read(self, conversation: Conversation, beginning: Beginning, kind: Kind) -> None:
        """Read one list. A server need not know a list that it does not declare."""
        declares = _CAPABILITY[kind] in beginning.capabilities or (beginning.is_stateless and not beginning.result)
        if not declares and kind is not Kind.TOOL:
            return
        try:
            async for result, entries in conversation.pages(beginning, kind.list_method, kind.list_member):
                self.server_info = self.server_info or _server_info(result)
                for raw in entries:
                    self._add(kind, raw)
        except ErrorResponse as error:
            if declares and not (kind is not Kind.TOOL and error.code == METHOD_NOT_FOUND):
                raise ServerFailed(f"answered {kind.list_method} with an error: {error}") from None

    def _add(self, kind: Kind, raw: bytes) -> None:
        if len(self.entries) >= _MOST_ENTRIES:
            raise ServerFailed(f"lists more than {_MOST_ENTRIES} tools, prompts and templates")
        try:
            entry = description.entry(kind, raw)
        except AMBIGUOUS as error:
            _note(self.withheld, f"a {kind.value} cannot be pinned: it {_without_it(str(error))}")
            return
        if (first := self.entries.get((kind, entry.name))) is not None:
            notes = self.notes if first.text == entry.text else self.withheld
            _note(
                notes, f"the {kind.value} {printable(shortened(entry.name))} is listed twice: only the first is pinned"
            )
            return
        self.entries[kind, entry.name] = entry


def _note(notes: list[str], text: str) -> None:
    if len(notes) < _MOST_NOTES:
        notes.append(printable(text))


def _without_it(problem: str) -> str:
    """The problem as the rest of a sentence about it."""
    return problem if problem.startswith(("is ", "has ")) else f"cannot be read: {problem}"


_CAPABILITY: Final = {Kind.TOOL: "tools", Kind.PROMPT: "prompts", Kind.TEMPLATE: "resources"}


class ChannelPeer:
    """A server behind a channel: at an address, or started by others."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._buffer = bytearray()
        self._searched = 0
        self._ended = False
        self._changed = anyio.Event()
        channel.start(self._take, self._end, lambda _full: None, lambda: None)

    def _take(self, piece: bytes) -> None:
        self._buffer += piece
        if len(self._buffer) > MOST_BYTES:
            self._channel.pause()
        self._changed.set()

    def _end(self) -> None:
        self._ended = True
        self._changed.set()

    async def next_line(self) -> bytes:
        """As in Peer."""
        while (end := self._buffer.find(b"\n", self._searched)) < 0:
            self._searched = len(self._buffer)
            if self._searched > MOST_BYTES:
                raise ServerFailed(f"sent more than {MOST_BYTES} bytes in one message")
            if self._ended:
                raise ServerFailed("has ended the session before it had said what it offers")
            self._changed = anyio.Event()
            await self._changed.wait()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        return line

    async def write(self, line: bytes) -> None:
        """As in Peer."""
        self._channel.write(line)
        await self._channel.flushed()
