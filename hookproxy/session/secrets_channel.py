"""The server's side of a session in which secrets are hidden: nothing of ours reads a message before it is masked.

    server ─▶ whole lines ─▶ masked ─▶ the session: router, hooks, records, the agent
    server ◀─ values in the place of placeholders, where a tool may have them ◀─ the session, which has judged the call

It is a channel around the server's own one. A message without secrets is the server's, byte for byte (law 2). While a
placeholder is looked up at other runs, what follows it waits, so that the order stays (`_held`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from ..jsonrpc import raw_json
from ..model.newest_entries import NewestEntries
from ..protocol import calls, fast_scan, feedback, response_edits
from ..protocol.secret_restores import BEGINNING, restored
from ..transports.lines import Lines, split_lines
from .change_event import ChangeEvent
from .relay import replacement

if TYPE_CHECKING:
    from ..transports.channel import Channel, OnBytes, OnEnd, OnFull
    from .hidden_secrets import HiddenSecrets

_CALLS_BYTES: Final = 4 * 1024 * 1024
"""Of memory for the calls whose tool is known: some thousands. Others are masked as if their tool were not listed."""


class _Params(msgspec.Struct, gc=False, frozen=True):
    name: str = ""


class _Call(msgspec.Struct, gc=False):
    """What tells a call's tool."""

    method: str = ""
    id: msgspec.Raw = msgspec.Raw(b"")
    params: _Params = _Params()


_CALL: Final = msgspec.json.Decoder(_Call)


class SecretsChannel:
    """As Channel."""

    def __init__(
        self,
        server: Channel,
        secrets: HiddenSecrets,
        limit: int,
        output_schema: Callable[[str], bytes],
        spawn: Callable[..., None],
    ) -> None:
        """`limit` is that of a message, in bytes. `output_schema` gives a listed tool's; empty: it has none.

        `spawn` runs a coroutine until the session ends.
        """
        self._server = server
        self._secrets = secrets
        self._limit = limit
        self._output_schema = output_schema
        self._spawn = spawn
        self._lines = Lines(limit, fast_scan.response_id)
        self._tools: NewestEntries[str] = NewestEntries(_CALLS_BYTES)  # of calls, by the keys of their ids
        self._substitutes = False
        self._held: list[bytes] | None = None  # what waits for a look-up; None: nothing does
        self._early: list[bytes] | None = None if secrets.is_ready else []  # what came before there was a key
        self._changes = ChangeEvent()
        self._has_ended = self._output_ends = False
        self._deliver: OnBytes
        self._on_end: OnEnd

    def start(self, on_bytes: OnBytes, on_end: OnEnd, on_full: OnFull, on_gone: OnEnd) -> None:
        """As in Channel. Where the session's key is with other runs, nothing is delivered before it is there."""
        self._deliver, self._on_end = on_bytes, on_end
        if self._early is not None:
            self._spawn(self._prepare)
        self._server.start(self._take, self._end, on_full, on_gone)

    async def _prepare(self) -> None:
        await self._secrets.prepare()
        early, self._early = self._early or [], None
        for piece in early:
            self._take(piece)
        if self._has_ended:
            self._end()

    # --- from the server ---

    def _take(self, piece: bytes) -> None:
        if self._early is not None:
            self._early.append(piece)
            return
        block = self._lines.feed(piece)
        if self._lines.lost:
            self._deliver_substitutes()
        if block:
            lines = split_lines(block)
            masked = list(map(self._masked, lines))
            self._deliver(masked[0] if len(masked) == 1 else b"".join(masked))
            if self._secrets.has_unpublished:
                self._spawn(self._secrets.publish)

    def _deliver_substitutes(self) -> None:
        """Errors in the place of messages that were too long."""
        lost = [replacement(line, self._limit) for line in self._lines.lost]
        self._lines.lost.clear()
        self._substitutes = True
        self._deliver(b"".join(lost))
        self._substitutes = False

    def _end(self) -> None:
        self._has_ended = True
        if self._early is not None:
            return
        rest = self._lines.take()
        if self._lines.lost:
            self._deliver_substitutes()
        if rest:
            self._deliver(self._masked(rest))
        self._on_end()

    def _masked(self, line: bytes) -> bytes:
        secrets, tool = self._secrets, ""
        if secrets.has_off and (tool := self._tool_of(line)) and secrets.is_off(tool):
            return line
        if line.lstrip()[:1] not in (b"{", b"["):
            return secrets.masks.raw_text(line)
        masked = secrets.masks.message(line)
        if masked is line:
            return line
        tool = tool or self._tool_of(line)
        schema = self._output_schema(tool) if tool else b""
        return _fitting(line, masked, schema) if schema else masked

    def _tool_of(self, line: bytes) -> str:
        """The tool to whose call this is a response; empty: it is another message, or the call is not known."""
        head = fast_scan.head(line)
        if head is None or head.method or not head.id:
            return ""
        return self._tools.get(_name_of(head.id), "")

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
        call = _call_in(line)
        return call is not None and self._secrets.restores_for(call.params.name)

    def _for_server(self, line: bytes) -> bytes:
        """The line as the server gets it."""
        call = _call_in(line)
        if call is not None and call.id:
            self._tools.keep(_name_of(call.id), call.params.name, len(call.params.name))
        if BEGINNING not in line:
            return line
        try:
            return self._with_values(line)
        except raw_json.AMBIGUOUS:
            return line  # nobody can say for certain what it is: its placeholders stay

    def _with_values(self, line: bytes) -> bytes:
        members = raw_json.fields(line)
        if "params" not in members or not calls.method(members):
            return line
        calls.check_spelling(members)
        start, end = raw_json.members(line)["params"]
        raw = params = line[start:end]
        for name, text in _handles(params):
            if (own := self._secrets.masks.handles.get(text)) is not None:
                params = raw_json.with_member(params, name, own)
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
        self._server.pause()

    def resume(self) -> None:
        """As in Channel."""
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
        """As in Channel."""
        self._server.drain()

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


def _call_in(line: bytes) -> _Call | None:
    """The call in a line; None: it has none."""
    try:
        call = _CALL.decode(line)
    except raw_json.DECODE_ERRORS:
        return None
    return call if call.method == "tools/call" else None


def _handles(params: bytes) -> list[tuple[str, str]]:
    """The members of a request's params that are texts, outside of arguments, each with its text."""
    members = raw_json.fields(params) if params[:1] == b"{" else {}
    return [
        (name, text)
        for name, raw in members.items()
        if name not in ("arguments", "_meta") and BEGINNING in bytes(raw) and (text := raw_json.text(raw)) is not None
    ]


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
        inner = raw_json.members(result)["structuredContent"]
        after = result[slice(*inner)]
        if after == before:
            return masked
        fits = secret_schemas.fitting(before, after, schema)
        if fits is None:
            return response_edits.with_result_withheld(masked, feedback.SECRETS_WITHHELD)
        return raw_json.splice(masked, [((start + inner[0], start + inner[1]), fits)])
    except raw_json.AMBIGUOUS:
        return masked  # two readers may read it differently: the session decides about that
