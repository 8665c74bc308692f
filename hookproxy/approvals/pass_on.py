"""Passes an answer on to the run in which its approval waits: several runs have one port for the webhook's answers.

The run is found as consoles find it, and decides by the token whether the answer counts (law 1).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import anyio

from ..live import messages, registry
from ..live.messages import Answer, AnswerTaken
from ..model.errors import UserError
from ..transports import unix_socket

if TYPE_CHECKING:
    import socket

_SECONDS: Final = 5.0  # as long as a console waits: a run takes an answer within a tick
_READ_SIZE: Final = 262_144
_LONGEST_LINE: Final = 16 * 1024 * 1024  # bytes of what it writes before: its response is short


async def pass_on(folder: str, answer: Answer) -> AnswerTaken | None:
    """How the run confirms an answer to its approval; None: there is no such run, or it does not respond."""
    run = answer.approval.rpartition("-")[0]
    try:
        if not folder or run not in registry.names(folder) or (connection := registry.connect(folder, run)) is None:
            return None
        with connection, anyio.move_on_after(_SECONDS):
            if unix_socket.uid_of_peer(connection) not in (0, os.geteuid()):
                return None
            return await _ask(connection, answer)
    except (OSError, UserError, messages.Unreadable):
        pass
    return None


async def _ask(connection: socket.socket, answer: Answer) -> AnswerTaken | None:
    rest = memoryview(messages.encode(answer))
    while rest:
        try:
            rest = rest[connection.send(rest) :]
        except BlockingIOError:
            await anyio.wait_writable(connection)
    begun = bytearray()
    while len(begun) <= _LONGEST_LINE:
        await anyio.wait_readable(connection)
        try:
            piece = connection.recv(_READ_SIZE)
        except BlockingIOError:
            continue
        if not piece:
            return None
        begun += piece
        *lines, last = bytes(begun).split(b"\n")
        begun = bytearray(last)
        for line in lines:
            message = messages.from_run(line)
            if isinstance(message, AnswerTaken) and message.approval == answer.approval:
                return message
    return None
