"""Tool calls of our own: a hook that is a tool of the server behind us is run by one, and the agent sees nothing of it.

Law 1: what the server answers, on time or late, ends here; of a judged call it decides what its hook may decide. No
hook is asked about an errand.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

import anyio
from msgspec import Struct, field

from ..jsonrpc import raw_json
from ..processes.process import OUTPUT_LIMIT
from ..protocol import calls, tool_results
from ..protocol.actions import HookToolCallAnswered
from ..protocol.responses import Members, Response
from ..protocol.router import Router
from ..runners.runner import HookFailed

AT_HAND: Final[ContextVar[Members | None]] = ContextVar("at_hand", default=None)
"""`params._meta` of the call whose hooks run in this task: another call's, which comes meanwhile, may say anything."""

_FIRST_WORDS: Final = 200  # characters of an error: enough to know it by


class _HookToolCall(Struct, eq=False):
    """A call that the server has not answered."""

    over: anyio.Event = field(default_factory=anyio.Event)
    answer: HookToolCallAnswered | None = None
    """None when it is over: no answer will come."""


class HookToolCalls:
    """The tool calls of ours in flight, to the server that is known as `server`."""

    def __init__(self, server: str, router: Router, to_server: Callable[[bytes], None]) -> None:
        self._server = server
        self._board = router
        self._to_server = to_server
        self._open: dict[bytes, _HookToolCall] = {}
        self._closed = False

    async def call(self, server: str, tool: str, arguments: bytes) -> bytes:
        """As `CallTool`. An answer that is not the tool's last word counts as none: nobody here goes on with it."""
        meta = self._board.handshake.own_meta(AT_HAND.get())
        if server != self._server:
            raise HookFailed(f"cannot be asked: the only server in reach is {self._server!r}, not {server!r}")
        if meta is None or self._closed:
            raise HookFailed(f"cannot be asked: the server is not connected {'any more' if self._closed else 'yet'}")
        raw_id, tool_call = calls.fresh_id(), _HookToolCall()
        key = calls.id_key(raw_id)
        self._open[key] = tool_call
        self._board.requests.hook_tool_calls.add(key)
        self._to_server(_request(raw_id, tool, arguments, meta))
        try:
            await tool_call.over.wait()
        except anyio.get_cancelled_exc_class():
            if not tool_call.over.is_set():
                self._board.requests.give_up(key)
                self._to_server(_cancellation(raw_id))
            raise
        finally:
            del self._open[key]
        if tool_call.answer is None:
            raise HookFailed("was asked, and the server ended before it answered")
        return _text(tool_call.answer.response)

    def answered(self, answer: HookToolCallAnswered) -> None:
        """The server's answer to one that is in flight."""
        tool_call = self._open[answer.key]
        tool_call.answer = answer
        tool_call.over.set()

    def close(self) -> None:
        """The server gets no further call: its input ends."""
        self._closed = True

    def lose(self) -> None:
        """The server is gone: nothing more is answered."""
        self.close()
        for key, tool_call in self._open.items():
            self._board.requests.give_up(key)  # a process that it left behind may answer yet
            tool_call.over.set()


def _request(raw_id: bytes, tool: str, arguments: bytes, meta: Members) -> bytes:
    params = {b"name": raw_json.encode(tool), b"arguments": arguments}
    if meta:
        params[b"_meta"] = b"{%b}" % b",".join(b"%b:%b" % (raw_json.encode(key), bytes(meta[key])) for key in meta)
    written = b",".join(b'"%b":%b' % param for param in params.items())
    return raw_json.one_line(b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":{%b}}\n' % (raw_id, calls.METHOD, written))


def _cancellation(raw_id: bytes) -> bytes:
    params = b'{"requestId":%b,"reason":"Nobody waits for it any more."}' % raw_id
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}\n' % (calls.CANCELLED, params)


def _text(said: Response | None) -> bytes:
    """The text of a tool's answer. Raises HookFailed where it has none that counts."""
    if said is None:
        raise HookFailed("answered in a way that readers take differently")
    if said.error is not None:
        raise HookFailed(f"could not be asked: {_first_words(tool_results.error_text(said.error))}")
    result = said.result or {}
    kind = raw_json.text(bytes(result["resultType"])) if "resultType" in result else "complete"
    if kind != "complete" or ("task" in result and "content" not in result):
        raise HookFailed(f"answered with {kind if kind != 'complete' else 'task'!r} instead of a result")
    text = tool_results.joined_text(bytes(result.get("content", b"[]")))
    if bytes(result.get("isError", b"false")) != b"false":
        raise HookFailed(f"reported an error: {_first_words(text)}" if text else "reported an error without a text")
    said_last = text.encode(errors="replace")
    if len(said_last) > OUTPUT_LIMIT:
        raise HookFailed(f"answered with more than {OUTPUT_LIMIT} bytes")
    return said_last


def _first_words(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= _FIRST_WORDS else f"{line[:_FIRST_WORDS]}…"
