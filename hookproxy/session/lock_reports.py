"""What is reported of differences from `hookproxy.lock` in one session: each line once, and all of them to the audit.

A server may differ for ever. So people get a bounded number of lines, and whoever owns this learns when there were so
many that not all can be remembered (`on_too_many`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..model.errors import printable

_MOST_SHOWN: Final = 200  # lines on standard error in one session: a person reads no more, and the audit has all
_MOST_KNOWN: Final = 10_000  # lines: a server that changes for ever must not fill memory or the audit


class LockReports:
    """The lines about one server. `report` reports one to people; `record` writes one to the audit."""

    def __init__(self, server: str, report: Callable[[str], None], record: Callable[[str], None]) -> None:
        self._server = server
        self._report = report
        self._record = record
        self._known: dict[str, None] = {}
        self._shown = 0
        self.on_too_many: Callable[[], None] = lambda: None
        """Called when so much has been reported that it is forgotten, and may be reported again."""

    def record(self, text: str) -> None:
        """Write a sentence to the audit."""
        self._record(f"hookproxy.lock: {self._server}: {text}")

    def note(self, text: str, *, only_audit: bool = False) -> None:
        """Report a line about the server, unless people need not know it at once, and write it to the audit; once."""
        line = printable(f"{self._server}: {text}")
        if self.report(line, only_audit=only_audit):
            self._record(f"hookproxy.lock: {line}")

    def report(self, line: str, *, only_audit: bool = False) -> bool:
        """Report a line, unless it was reported before. False: it was. With `only_audit`, people do not get it."""
        if line in self._known:
            return False
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
            self.on_too_many()
        self._known[line] = None
        if only_audit:
            return True
        self._shown += 1
        if self._shown <= _MOST_SHOWN:
            self._report(line)
        elif self._shown == _MOST_SHOWN + 1:
            self._report(f"{self._server}: what else differs from hookproxy.lock is in the audit only")
        return True

    def report_always(self, text: str) -> None:
        """Report a line about the server and write it to the audit, whatever was reported before."""
        self._report(f"{self._server}: {text}")
        self.record(text)
