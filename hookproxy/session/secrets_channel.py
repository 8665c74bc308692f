"""The server's side of a session in which secrets are hidden: nothing of ours reads a message before it is masked.

    server ─▶ whole lines ─▶ masked ─▶ the session: router, hooks, records, the agent
    server ◀─ values in the place of placeholders, where a tool may have them ◀─ the session, which has judged the call

It is a channel around the server's own one. A message without secrets is the server's, byte for byte (law 2). The order
stays: while a placeholder is looked up at other runs, what follows it waits (`_held`); and so does what the server says
(`_waiting`) before the session's key is there, while new placeholders are reported to other runs, and while a long
message is searched in a thread: a megabyte of nothing but secrets takes more than a second, in which the agent's
messages, and other sessions of a gateway, go on.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
import msgspec

from ..jsonrpc import raw_json
from ..model.newest_entries import NewestEntries
from ..protocol import calls, fast_scan, feedback, response_edits
from ..protocol.inflight import GUARDED_KINDS, SESSION_DATA
from ..protocol.secret_restores import BEGINNING, restored
from ..transports.lines import Lines, split_lines
from .change_event import ChangeEvent
from .relay import replacement

if TYPE_CHECKING:
    from ..protocol.secret_masks import Hidden
    from ..transports.channel import Channel, OnBytes, OnEnd, OnFull
    from .hidden_secrets import HiddenSecrets

_LONG_BYTES: Final = 256 * 1024
"""Of a message that a thread searches in any case: a shorter one without secrets takes a millisecond."""
_AT_ONCE_BYTES: Final = 128 * 1024
"""Of messages that may have secrets, and are searched at once, one after another: at the worst, 0.2 seconds. A
thread searches the next one."""
_CALLS_BYTES: Final = 4 * 1024 * 1024
"""Of memory for the calls whose tool is known: some thousands. Others are masked as if their tool were not listed."""


_MOST_LISTS: Final = 1000
"""Requests for lists that may be in flight. A list beyond them is masked before it is compared, and so withheld."""


class _Params(msgspec.Struct, gc=False, frozen=True):
    name: str = ""


class _Request(msgspec.Struct, gc=False):
    """What tells one request from another."""

    method: str = ""
    id: msgspec.Raw = msgspec.Raw(b"")


class _Call(_Request, gc=False):
    """The same, and what tells a call's tool; other requests have no name, or another thing's."""

    params: _Params = _Params()


_REQUEST: Final = msgspec.json.Decoder(_Request)
_CALL: Final = msgspec.json.Decoder(_Call)
_TOOLS_CALL: Final = "tools/call"


class SessionSide(msgspec.Struct, frozen=True):
    """What the channel needs of its session."""

    spawn: Callable[..., None]
    """Runs a coroutine until the session ends."""
    output_schema: Callable[[str], bytes] = lambda _tool: b""
    """A listed tool's; empty: it has none."""
    compares_lists: Callable[[], bool] = lambda: False
    """Lists are compared with a lock: the session gets them as they are, and masks them itself, because placeholders
    are others in each session."""


class SecretsChannel:
    """As Channel."""

    def __init__(self, server: Channel, secrets: HiddenSecrets, limit: int, session: SessionSide) -> None:
        """`limit` is that of a message, in bytes."""
        self._server = server
        self._secrets = secrets
        self._limit = limit
        self._output_schema, self._spawn = session.output_schema, session.spawn
        self._compares_lists = session.compares_lists
        self._lines = Lines(limit, fast_scan.response_id)
        self._tools: NewestEntries[str] = NewestEntries(_CALLS_BYTES)  # of calls, by the keys of their ids
        self._lists: set[str] = set()  # the ids of requests whose responses the session masks
        self._substitutes = False
        self._held: list[bytes] | None = None  # what waits for a look-up; None: nothing does
        self._waiting: list[bytes] | None = (
            None if secrets.is_ready else []
        )  # pieces of the server; None: nothing waits
        self._masked_first = b""  # a masked line before all of them
        self._lines_left: list[bytes] = []  # whole lines between both
        self._searching: Future[Sequence[Hidden]] | None = None  # of the first of them, in a thread
        self._drained = False  # nothing may be waited for any more
        self._is_paused = self._pauses = False  # by the session; for a long message
        self._changes = ChangeEvent()
        self._has_ended = self._output_ends = False
        self._deliver: OnBytes
        self._on_end: OnEnd

    def start(self, on_bytes: OnBytes, on_end: OnEnd, on_full: OnFull, on_gone: OnEnd) -> None:
        """As in Channel. Where the session's key is with other runs, nothing is delivered before it is there."""
        self._deliver, self._on_end = on_bytes, on_end
        if self._waiting is not None:
            self._spawn(self._prepare)
        self._server.start(self._take, self._end, on_full, on_gone)

    async def _prepare(self) -> None:
        await self._secrets.prepare()
        self._go_on()

    # --- from the server ---

    def _take(self, piece: bytes) -> None:
        if self._waiting is not None:
            self._waiting.append(piece)
            return
        block = self._lines.feed(piece)
        if self._lines.lost:
            self._deliver_substitutes()
        if block:
            self._take_lines(split_lines(block))

    def _take_lines(self, lines: list[bytes]) -> None:
        """Deliver lines masked, up to a long one, which a thread searches first."""
        masked: list[bytes] = []
        at_once = _AT_ONCE_BYTES
        for number, line in enumerate(lines):
            is_over = len(line) > at_once and not self._drained
            at_once -= len(line)
            if is_over and (len(line) > _LONG_BYTES or self._secrets.may_hide(line)):
                self._wait_with(lines[number:], self._search_first, line)
                break
            masked.append(self._masked(line))
            if self._secrets.has_news and not self._drained:
                self._masked_first = masked.pop()
                self._wait_with(lines[number + 1 :], self._report_to_others, self._masked_first)
                break
        if masked:
            self._deliver(masked[0] if len(masked) == 1 else b"".join(masked))

    def _wait_with(
        self, lines: list[bytes], function: Callable[[bytes], Coroutine[object, object, None]], line: bytes
    ) -> None:
        """Deliver nothing more, these lines first of all, until the function has done something with a line."""
        self._waiting, self._lines_left = [], lines
        self._pause(True)
        self._spawn(function, line)

    async def _report_to_others(self, masked: bytes) -> None:
        """Let other runs know what this message has hidden, before the agent can ask them for it; and go on."""
        await self._secrets.publish()
        if self._masked_first is masked:  # else it could not wait (`drain`)
            self._go_on()

    async def _search_first(self, line: bytes) -> None:
        """Search the first line that waits in a thread, deliver it masked, and go on."""
        search = Future[Sequence["Hidden"]]()

        def search_line() -> None:
            self._searching = search  # it has begun: `drain` may wait for it
            try:
                search.set_result(self._secrets.masks.search(line))
            except BaseException as error:
                search.set_exception(error)

        await anyio.to_thread.run_sync(search_line, abandon_on_cancel=True)
        self._searching, hidden = None, search.result()
        if self._lines_left and self._lines_left[0] is line:  # else it could not wait (`drain`)
            self._masked_first = self._masked(self._lines_left.pop(0), hidden)
            await self._report_to_others(self._masked_first)

    def _go_on(self) -> None:
        """Nothing is waited for any more: deliver what has come meanwhile."""
        masked, self._masked_first = self._masked_first, b""
        if masked:
            self._deliver(masked)
        pieces, self._waiting = self._waiting or [], None
        lines, self._lines_left = self._lines_left, []
        self._pause(False)
        if lines:
            self._take_lines(lines)
        for piece in pieces:
            self._take(piece)
        if self._has_ended:
            self._end()

    def _pause(self, pauses: bool) -> None:
        self._pauses = pauses
        (self._server.pause if pauses or self._is_paused else self._server.resume)()

    def _deliver_substitutes(self) -> None:
        """Errors in the place of messages that were too long."""
        lost = [replacement(line, self._limit) for line in self._lines.lost]
        self._lines.lost.clear()
        self._substitutes = True
        self._deliver(b"".join(lost))
        self._substitutes = False

    def _end(self) -> None:
        self._has_ended = True
        if self._waiting is not None:
            return
        rest = self._lines.take()
        if self._lines.lost:
            self._deliver_substitutes()
        if rest:
            self._deliver(self._masked(rest))
        self._on_end()

    def _masked(self, line: bytes, hidden: Sequence[Hidden] | None = None) -> bytes:
        """The line as the session gets it; `hidden` is what was found in it already."""
        secrets, tool = self._secrets, ""
        if secrets.has_off and (tool := self._tool_of(line)) and secrets.is_off(tool):
            return line
        if self._lists and self._is_list(line):
            return line
        if line.lstrip()[:1] not in (b"{", b"["):
            return secrets.masks.raw_text(line)
        masked = secrets.masks.message(line, hidden)
        if masked is line:
            return line
        tool = tool or self._tool_of(line)
        schema = self._output_schema(tool) if tool else b""
        return _fitting(line, masked, schema) if schema else masked

    def _tool_of(self, line: bytes) -> str:
        """The tool to whose call this is a response; empty: it is another message, or the call is not known."""
        return self._tools.get(_response_name(line), "")

    def _is_list(self, line: bytes) -> bool:
        """It is the response to a request for what the server has, and the first one: the session masks it later."""
        name = _response_name(line)
        if name not in self._lists:
            return False
        self._lists.remove(name)
        return self._compares_lists()

    # --- to the server ---

    def write(self, piece: bytes) -> None:
        """As in Channel; `piece` has whole lines, which the session has judged."""
        if self._held is not None:
            self._held.append(piece)
            return
        lines = split_lines(piece) if piece.endswith(b"\n") else [piece]
        for number, line in enumerate(lines):
            unknown = self._secrets.unknown_in(line) if BEGINNING in line and self._restores(line) else ()
            if unknown:
                self._held = [b"".join(lines[number:])]
                self._spawn(self._look_up, unknown, line)
                return
            self._server.write(self._for_server(line))

    async def _look_up(self, placeholders: list[str], line: bytes) -> None:
        """Look up what a line has, and go on; what nobody knows stays a text."""
        try:
            await self._secrets.look_up(placeholders)
        finally:
            held, self._held = self._held or [], None
            self._changes.notify()
            self._server.write(self._for_server(line))
            first = held[0][len(line) :] if held else b""
            for piece in (first, *held[1:]):
                if piece:
                    self.write(piece)
            if self._output_ends and self._held is None:
                self._server.end_output()

    def _restores(self, line: bytes) -> bool:
        request = _read(line)
        return request is not None and request.method == _TOOLS_CALL and self._secrets.restores_for(request.params.name)

    def _for_server(self, line: bytes) -> bytes:
        """The line as the server gets it."""
        self._note_request(line)
        if BEGINNING not in line:
            return line
        try:
            return self._with_values(line)
        except raw_json.AMBIGUOUS:
            return line  # nobody can say for certain what it is: its placeholders stay

    def _note_request(self, line: bytes) -> None:
        """Note what the response to this request will be. An id may be used again: what it was before is forgotten."""
        request = _read(line)
        if request is None:  # nobody knows which ids it has
            self._tools = NewestEntries(_CALLS_BYTES)
            self._lists.clear()
        elif request.method and request.id:
            name = _name_of(request.id)
            self._tools.forget(name)
            self._lists.discard(name)
            if request.method == _TOOLS_CALL and (tool := request.params.name):
                self._tools.keep(name, tool, len(tool))
            elif self._compares_lists() and _asks_for_list(request.method) and len(self._lists) < _MOST_LISTS:
                self._lists.add(name)

    def _with_values(self, line: bytes) -> bytes:
        members = raw_json.fields(line)
        if "params" not in members or not calls.method(members):
            return line
        calls.check_spelling(members)
        start, end = raw_json.members(line)["params"]
        raw = params = line[start:end]
        params = _with_handles(params, self._secrets.masks.handles)
        if calls.method(members) == calls.METHOD:
            fields = raw_json.fields(params)
            calls.check_param_keys(fields)
            tool = raw_json.text(fields.get("name", b"")) or ""
            if "arguments" in fields and self._secrets.restores_for(tool):
                arguments = restored(bytes(fields["arguments"]), self._secrets.values_for(tool))
                params = raw_json.with_member(params, "arguments", arguments)
        return line if params == raw else raw_json.splice(line, [((start, end), params)])

    # --- as the server's own channel ---

    def pause(self) -> None:
        """As in Channel."""
        self._is_paused = True
        self._server.pause()

    def resume(self) -> None:
        """As in Channel."""
        self._is_paused = False
        if not self._pauses:
            self._server.resume()

    @property
    def gone(self) -> bool:
        """As in Channel."""
        return self._server.gone

    @property
    def reads_lines(self) -> bool:
        """As in Channel."""
        return self._server.reads_lines

    @property
    def is_substitute(self) -> bool:
        """As in Channel."""
        return self._substitutes or self._server.is_substitute

    @property
    def queued(self) -> int:
        """As in Channel."""
        return self._server.queued + sum(map(len, self._held or ()))

    def drain(self) -> None:
        """As in Channel. What waits is delivered now: nothing is waited for any more."""
        self._server.drain()
        self._drained = True
        search, self._searching = self._searching, None
        if search is not None and self._lines_left:  # what a thread searches is not searched twice
            self._masked_first = self._masked(self._lines_left.pop(0), search.result())
        if self._waiting is not None:
            self._go_on()

    async def flushed(self) -> None:
        """As in Channel."""
        await self._changes.until(lambda: self._held is None)
        await self._server.flushed()

    def end_output(self) -> None:
        """As in Channel; what waits for a look-up is written before."""
        self._output_ends = True
        if self._held is None:
            self._server.end_output()

    def close(self) -> None:
        """As in Channel."""
        self._server.close()


def _name_of(raw_id: msgspec.Raw) -> str:
    """The name of an id in a table: the same for all its spellings."""
    return calls.id_key(bytes(raw_id)).decode("latin-1")


def _response_name(line: bytes) -> str:
    """As `_name_of` for the id of a response; empty: it is another message."""
    head = fast_scan.head(line)
    return "" if head is None or head.method or not head.id else _name_of(head.id)


def _asks_for_list(method: str) -> bool:
    return GUARDED_KINDS.get(raw_json.encode(method)) in SESSION_DATA


def _read(line: bytes) -> _Call | None:
    """The request in a line; None: it cannot be read. What has no method is another message."""
    with suppress(*raw_json.DECODE_ERRORS):
        return _CALL.decode(line)
    with suppress(*raw_json.DECODE_ERRORS):  # the name is not a text
        request = _REQUEST.decode(line)
        return _Call(request.method, request.id)
    return None


_WITH_HANDLES: Final = ("ref", "notifications", "resourceSubscriptions")
"""Members of params in which a request names resources, too."""


def _with_handles(raw: bytes, handles: Mapping[str, bytes]) -> bytes:
    """The params with the server's own spelling of each text that is one of its masked handles, but in arguments."""
    if raw[:1] == b"[":
        for item in map(bytes, raw_json.items(raw)):
            if (own := handles.get(raw_json.text(item) or "")) is not None:
                raw = raw.replace(item, own)
        return raw
    for name, value in raw_json.fields(raw).items() if raw[:1] == b"{" and BEGINNING in raw else ():
        if name in ("arguments", "_meta") or BEGINNING not in bytes(value):
            continue
        own = _with_handles(bytes(value), handles) if name in _WITH_HANDLES else handles.get(raw_json.text(value) or "")
        if own is not None and own != bytes(value):
            raw = raw_json.with_member(raw, name, own)
    return raw


def _fitting(line: bytes, masked: bytes, schema: bytes) -> bytes:
    """The masked response to a call of a tool whose structured output has a schema: as it fits, or withheld."""
    from ..protocol import secret_schemas  # only where such output has secrets

    try:
        before = response_edits.member_or_empty(response_edits.member_or_empty(line, "result"), "structuredContent")
        spans = raw_json.members(masked)
        if "result" not in spans or not before:
            return masked
        start, end = spans["result"]
        result = masked[start:end]
        inner = raw_json.members(result).get("structuredContent", (0, 0))
        after = result[slice(*inner)]
        if after in (before, b""):
            return masked
        fits = secret_schemas.fitting(before, after, schema)
        if fits is None:
            return response_edits.with_result_withheld(masked, feedback.SECRETS_WITHHELD)
        return raw_json.splice(masked, [((start + inner[0], start + inner[1]), fits)])
    except raw_json.AMBIGUOUS:
        return masked  # two readers may read it differently: the session decides about that
