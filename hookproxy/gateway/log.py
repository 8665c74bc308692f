"""The gateway's log on standard error: a line for people, or a JSON object for collectors, for each report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime

from ..jsonrpc import raw_json
from ..model.errors import printable
from ..transports.pipe import open_shared_writer
from .log_codes import kind_of

_STANDARD_ERROR = 2


class GatewayLog:
    """Reports lines. Where nobody can read them, the gateway goes on."""

    def __init__(self, *, as_json: bool, descriptor: int = _STANDARD_ERROR, instance: str = "") -> None:
        """`instance` is the gateway's name, which each object has."""
        self._as_json = as_json
        self._instance = {"instance": instance} if instance else {}
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
            kind = kind_of(text)
            user = fields.get("user") or kind.user
            members = {"time": time, "level": kind.level, "code": kind.code, **self._instance, **fields, "user": user}
            line = raw_json.encode(_clean({**members, "message": text}))
        else:
            who = ", ".join(fields.values()) + ": " if fields else ""
            lines = (printable(f"hookproxy: {who}{line}") for line in text.split("\n"))
            line = "\n".join(lines).encode(errors="replace")
        with suppress(OSError):
            self._send(line + b"\n")


def _clean(members: Mapping[str, str]) -> dict[str, str]:
    """The members as valid UTF-8: names of users and files may be something else."""
    return {name: text.encode(errors="replace").decode() for name, text in members.items()}
