"""A port at which nothing listens, for a program that reads its number from a file or a command line."""

from __future__ import annotations

import socket
from contextlib import suppress
from random import SystemRandom
from typing import Final

_PORTS: Final = range(10_000, 32_768)  # Linux and macOS give higher ones to connections, which begin all the time


def free_port() -> int:
    """A port of loopback that stays free until the program listens: only who names it can take it."""
    while True:
        port = SystemRandom().choice(_PORTS)
        with socket.socket() as free, suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port
