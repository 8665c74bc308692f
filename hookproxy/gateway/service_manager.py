"""Tells systemd that the gateway listens, reloads or ends, if systemd has started it with `Type=notify`.

Law: what systemd does not hear is reported; it stops nothing. The protocol is that of sd_notify(3).
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, MutableMapping
from typing import Final

_VARIABLE: Final = "NOTIFY_SOCKET"

_WAIT_SECONDS: Final = 1.0
"""How long systemd may be too busy to take a message. Agents wait meanwhile, but there is nothing else to try."""


def take_address(environ: MutableMapping[str, str]) -> str:
    """Where systemd listens; empty: nowhere. The variable is removed: children must not speak for the gateway."""
    return environ.pop(_VARIABLE, "")


class ServiceManager:
    """systemd, or whoever has started the gateway and wants to know its state."""

    def __init__(self, address: str, report: Callable[[str], None], wait_seconds: float = _WAIT_SECONDS) -> None:
        """`address` is that of `take_address`; with an empty one, nobody is told anything."""
        self._address = address
        self._report = report
        self._wait_seconds = wait_seconds

    def ready(self, status: str) -> None:
        """It takes sessions, for the first time or again after a reload. `status` is for `systemctl status`."""
        self._send("READY=1", f"STATUS={status.replace(chr(10), ' ')}")

    def reloading(self) -> None:
        """It reads its configuration again; `ready` follows."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """It ends as soon as calls in flight have ended."""
        self._send("STOPPING=1")

    def _send(self, state: str, *more: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            if not address.startswith(("/", "\0")):
                raise OSError("only paths and abstract sockets are known")
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(self._wait_seconds)
                sender.connect(address)
                sender.send("\n".join((state, *more)).encode(errors="replace"))
        except OSError as error:
            self._report(f"systemd cannot be told {state} at {self._address}: {error.strerror or error}")
