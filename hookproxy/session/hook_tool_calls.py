"""Tool calls of our own, which run the hooks that are tools of the server; the agent sees nothing of them.

Law 1: the server's responses to them, on time or late, end here, and decide what such a hook may decide. No hook runs
on these calls.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

import anyio
from msgspec import Raw, Struct, field

from ..jsonrpc import raw_json
from ..jsonrpc.known_secrets import KnownSecrets
from ..processes.process import output_limit
from ..protocol import calls, tool_results
from ..protocol.actions import HookToolCallAnswered
from ..protocol.responses import Members, Response
from ..protocol.router import Router
from ..runners.runner import HookFailed, OutputTooLong

CURRENT_META: Final[ContextVar[Members | None]] = ContextVar("at_hand", default=None)
"""`params._meta` of the call whose hooks run in this task; that of another call in flight may differ."""

_MAX_ERROR_CHARACTERS: Final = 200  # of an error that are shown: enough to recognise it


class _HookToolCall(Struct, eq=False):
    ended: anyio.Event = field(default_factory=anyio.Event)
    response: HookToolCallAnswered | None = None
    """None after it has ended: no response will come."""


class HookToolCalls:
    """Our tool calls in flight, to the server that hooks know as `server`."""

    def __init__(
        self, server: str, router: Router, to_server: Callable[[bytes], None], secrets: Callable[[], KnownSecrets]
    ) -> None:
        """`secrets` returns what must not be in our texts about the server's errors."""
        self._secrets = secrets
        self._server = server
        self._router = router
        self._to_server = to_server
        self._pending: dict[bytes, _HookToolCall] = {}
        self._closed = False
        self.withholds: Callable[[str], bool] = lambda _tool: False
        """Whether a tool is not as it is pinned: nobody calls it then."""

    async def call(self, server: str, tool: str, arguments: bytes) -> bytes:
        """As `CallTool`. A response that is not final, such as a task, is a failure: nothing continues it."""
        meta = self._router.handshake.meta_for_own_request(CURRENT_META.get())
        if server != self._server:
            raise HookFailed(f"cannot be called: the server of this session is {self._server!r}, not {server!r}")
        if meta is None or self._closed:
            state = "no longer connected" if self._closed else "not connected yet"
            raise HookFailed(f"cannot be called: the server is {state}")
        if self.withholds(tool):
            raise HookFailed("cannot be called: it is not as it is recorded in hookproxy.lock")
        raw_id, tool_call = calls.new_id(), _HookToolCall()
        key = calls.id_key(raw_id)
        self._pending[key] = tool_call
        self._router.requests.hook_tool_calls.add(key)
        self._to_server(_request(raw_id, tool, arguments, meta))
        try:
            await tool_call.ended.wait()
        except anyio.get_cancelled_exc_class():
            if not tool_call.ended.is_set():
                self._router.requests.settle_hook_tool_call(key)
                self._to_server(_cancellation(raw_id))
            raise
        finally:
            del self._pending[key]
        if tool_call.response is None:
            raise HookFailed("was called, and the server exited before it answered")
        return _text(tool_call.response.response, output_limit(len(arguments)), self._secrets())

    def resolve(self, response: HookToolCallAnswered) -> None:
        """Take the server's response to one of our calls."""
        tool_call = self._pending[response.key]
        tool_call.response = response
        tool_call.ended.set()

    def close(self) -> None:
        """Make no further calls: the server's input ends."""
        self._closed = True

    def handle_server_exit(self) -> None:
        """End all calls in flight: no response will come."""
        self.close()
        for key, tool_call in self._pending.items():
            self._router.requests.settle_hook_tool_call(key)  # a process that the server left behind may still respond
            tool_call.ended.set()


def _request(raw_id: bytes, tool: str, arguments: bytes, meta: Members) -> bytes:
    params = {"name": tool, "arguments": Raw(arguments), **({"_meta": meta} if meta else {})}
    request = b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}\n' % (raw_id, calls.METHOD, raw_json.encode(params))
    return raw_json.one_line(request)


def _cancellation(raw_id: bytes) -> bytes:
    params = b'{"requestId":%b,"reason":"The result is no longer needed."}' % raw_id
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}\n' % (calls.CANCELLED, params)


def _text(response: Response | None, limit: int, secrets: KnownSecrets) -> bytes:
    """The text of a tool's result, at most `limit` bytes. Raises HookFailed if the response is not a usable result."""
    if response is None:
        raise HookFailed("gave a response that can be read in different ways")
    if response.error is not None:
        raise HookFailed(f"could not be called: {_first_line(tool_results.error_text(response.error), secrets)}")
    result = response.result or {}
    result_type = raw_json.text(bytes(result["resultType"])) if "resultType" in result else "complete"
    if result_type != "complete" or ("task" in result and "content" not in result):
        raise HookFailed(f"answered with {result_type if result_type != 'complete' else 'task'!r} instead of a result")
    text = tool_results.joined_text(bytes(result.get("content", b"[]")))
    if bytes(result.get("isError", b"false")) != b"false":
        raise HookFailed(
            f"reported an error: {_first_line(text, secrets)}" if text else "reported an error without a text"
        )
    output = text.encode(errors="replace")
    if len(output) > limit:
        raise OutputTooLong(f"answered with more than {limit} bytes")
    return output


def _first_line(text: str, secrets: KnownSecrets) -> str:
    line = text.strip().partition("\n")[0]
    shown = secrets.shortened(line, _MAX_ERROR_CHARACTERS)
    return f"{shown}…" if len(line) > _MAX_ERROR_CHARACTERS else shown
