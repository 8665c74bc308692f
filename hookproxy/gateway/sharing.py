"""What a server that everybody shares would say in vain: it is asked for its capabilities before anybody uses it.

Once several people use one process, what it says reaches only the session to which it certainly belongs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import anyio

from ..jsonrpc import raw_json
from ..transports.http.agent_requests import HANDSHAKE_VERSIONS

if TYPE_CHECKING:
    from ..transports.channel import Channel

_SECONDS: Final = 30.0  # servers that are downloaded first take so long; nobody waits for this
_MOST_BYTES: Final = 1024 * 1024  # of its response: instructions have a few thousand

_TOUCHED: Final = {"logging": "its log messages reach nobody", "tasks": "nobody can list its tasks"}
"""What happens to what a server announces, by the capability."""

_ID: Final = b'"hookproxy"'


async def untold(channel: Channel) -> str:
    """Return what becomes of what the server announces, in a few words; empty: nothing, or it does not answer."""
    result = b""
    buffer = bytearray()
    done = anyio.Event()

    def take(piece: bytes) -> None:
        nonlocal result
        buffer.extend(piece)
        *lines, rest = bytes(buffer).split(b"\n")
        buffer[:] = rest
        result = next(filter(None, map(_result, lines)), b"")
        if result or len(buffer) > _MOST_BYTES:
            channel.pause()
            done.set()

    channel.start(take, done.set, lambda _full: None, lambda: None)
    params = {
        "protocolVersion": HANDSHAKE_VERSIONS[-1],
        "capabilities": {"elicitation": {}, "sampling": {}},
        "clientInfo": {"name": "hookproxy", "version": "1"},
    }
    channel.write(b'{"jsonrpc":"2.0","id":%b,"method":"initialize","params":%b}\n' % (_ID, raw_json.encode(params)))
    with anyio.move_on_after(_SECONDS):
        await done.wait()
    announced = _capabilities(result)
    said = [text for name, text in _TOUCHED.items() if name in announced]
    return " and ".join(said)


def _result(line: bytes) -> bytes:
    """The result in the response to our request; empty: the line is something else."""
    try:
        members = raw_json.fields(line)
    except ValueError:
        return b""
    return bytes(members.get("result", b"{}")) if bytes(members.get("id", b"")) == _ID else b""


def _capabilities(result: bytes) -> Mapping[str, object]:
    try:
        return raw_json.fields(raw_json.fields(result).get("capabilities", b"{}"))
    except ValueError:
        return {}
