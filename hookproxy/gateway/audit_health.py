"""Whether a gateway can write its audit: counts for the metrics, one line a minute in the log, and the readiness.

The audits of all sessions report here, and none of them reports by itself: a full disk must not fill the log, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic
from typing import TYPE_CHECKING, Final

from ..audit.log import NOT_WRITTEN, Audit
from ..model.counts import counted
from ..model.settings import Settings
from .metrics import Metrics

if TYPE_CHECKING:
    from ..config.gateway import GatewayServer

REPORT_SECONDS: Final = 60.0
"""Between two lines in the log about an audit that cannot be written."""

_LOOK_SECONDS: Final = 1.0
"""How long an answer about the readiness holds: several balancers may ask at a time, and each look costs a lock."""


class AuditHealth:
    """As `AuditCounter`, for all audits of a gateway."""

    def __init__(
        self, report: Callable[[str], None], metrics: Metrics, now: Callable[[], float] = monotonic, instance: str = ""
    ) -> None:
        self.instance = instance
        """The gateway's name, which its spans and metrics have."""
        self._report = report
        self._metrics = metrics
        self._now = now
        self._failing: dict[str, float] = {}  # audit files that could not be written the last time, and when reported
        self._failures = 0  # since the last line in the log
        self._refused = 0  # `metrics.audit_refused` at that time
        self._required: dict[str, Audit] = {}
        self._kept: list[Audit] = []  # whose collector of telemetry stays, whichever sessions come and go
        self._looked = -_LOOK_SECONDS
        self._problem = ""

    def written(self, lines: int) -> None:
        """Count lines that are in their file."""
        self._metrics.audit_written += lines
        if self._failing:
            self._note_recovered()

    def failed(self, path: str, problem: str) -> None:
        """Count a line, or a call, that could not be written now, and report it once a minute."""
        self._metrics.audit_failed += 1
        self._failures += 1
        self._metrics.audit_up = False
        now = self._now()
        reported = self._failing.get(path)
        if reported is not None and now - reported < REPORT_SECONDS:
            return
        self._failing[path] = now
        since = self._since()
        self._report(f"{NOT_WRITTEN}: {problem}" + (since if reported is not None else ""))

    def lost(self, lines: int) -> None:
        """Count lines that will never be in their file."""
        self._metrics.audit_lost += lines

    def _since(self) -> str:
        """How often it has failed since the last line about it, and forgets that."""
        failures, refused = self._failures, self._metrics.audit_refused - self._refused
        self._failures, self._refused = 0, self._metrics.audit_refused
        if not (failures or refused):
            return ""
        calls = f", and {counted(refused, 'call')} refused" if refused else ""
        return f"; {counted(failures, 'failure')}{calls} since the last line about it"

    def _note_recovered(self) -> None:
        since = self._since()
        self._failing.clear()
        self._metrics.audit_up = True
        self._report(f"the audit log is written again{since}")

    # --- readiness ---

    def watch(self, servers: Iterable[GatewayServer]) -> None:
        """From now on, `problem` looks at the audits that these servers must write."""
        for audit in self._required.values():
            audit.close()
        for kept in self._kept:
            kept.close()
        settings = [server.loaded.settings for server in servers]
        self._required = {audit.path: audit for audit in map(self._audit, settings) if audit.required}
        self._kept = [self._audit(one) for one in settings if one.otel]
        self._looked = -_LOOK_SECONDS

    def _audit(self, settings: Settings) -> Audit:
        return Audit(settings, counter=self, instance=self.instance)

    def problem(self) -> str:
        """Why calls are refused now, because an audit that must be written cannot be; empty: none is refused so."""
        now = self._now()
        if now - self._looked >= _LOOK_SECONDS:
            self._looked = now
            self._problem = next(filter(None, (audit.failure() for audit in self._required.values())), "")
        return self._problem
