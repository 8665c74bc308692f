"""The gateway's log on standard error: a line for people, or a JSON object for collectors, for each report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime

from ..jsonrpc import raw_json
from ..model.errors import printable
from ..transports.pipe import open_shared_writer

_STANDARD_ERROR = 2


class GatewayLog:
    """Reports lines. Where nobody can read them, the gateway goes on."""

    def __init__(self, *, as_json: bool, descriptor: int = _STANDARD_ERROR) -> None:
        self._as_json = as_json
        self._send = open_shared_writer(descriptor)  # it never waits for whoever reads

    def __call__(self, text: str) -> None:
        """Report something about the gateway as a whole."""
        self._write(text, {})

    def about(self, server: str, user: str, session: str) -> Callable[[str], None]:
        """A function that reports something about one session."""
        fields = {"server": server, "user": user, "session": session}
        return lambda text: self._write(text, fields)

    def _write(self, text: str, fields: Mapping[str, str]) -> None:
        if self._as_json:
            time = datetime.now(UTC).isoformat(timespec="milliseconds")
            line = raw_json.encode({"time": time, **fields, "message": text.encode(errors="replace").decode()})
        else:
            who = ", ".join(fields.values()) + ": " if fields else ""
            lines = (printable(f"hookproxy: {who}{line}") for line in text.split("\n"))
            line = "\n".join(lines).encode(errors="replace")
        with suppress(OSError):
            self._send(line + b"\n")
