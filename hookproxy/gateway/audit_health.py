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

QUIET_SECONDS: Final = 5.0
"""Without a failure, after which the audit counts as written again in the log."""

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
        self._failing: dict[str, str] = {}  # audit files that could not be written the last time, and why
        self._noted: set[str] = set()  # those of them about which a line waits to be written
        self._reported: dict[str, float] = {}  # when it was reported that a file cannot be written
        self._failed = 0.0  # when it was the last time so
        self._is_known = False  # the last report says that the audit cannot be written
        self._failures = 0  # since the last line in the log
        self._refused = 0  # `metrics.audit_refused` at that time
        self._required: dict[str, Audit] = {}
        self._kept: list[Audit] = []  # whose collector of telemetry stays, whichever sessions come and go
        self._looked = -_LOOK_SECONDS
        self._problem = ""

    def written(self, path: str, lines: int) -> None:
        """Count lines that are in their file."""
        self._metrics.audit_written += lines
        if path in self._failing:
            del self._failing[path]
            self._noted.discard(path)
            self._metrics.audit_up = not self._failing

    def failed(self, path: str, problem: str) -> None:
        """Count a line, or a call, that could not be written now, and report it once a minute."""
        self._metrics.audit_failed += 1
        self._failures += 1
        self._metrics.audit_up = False
        is_new, now = path not in self._failing, self._now()
        self._failing[path], self._failed = problem, now
        if now - self._reported.get(path, -REPORT_SECONDS) >= REPORT_SECONDS:
            self._reported[path], self._is_known = now, True
            since = self._since()
            self._report(f"{NOT_WRITTEN}: {problem}" + ("" if is_new else since))

    def look(self) -> None:
        """Report that all can be written again, if that is so for some seconds: it may be so now and then."""
        if self._is_known and not self._failing and self._now() - self._failed >= QUIET_SECONDS:
            self._is_known = False
            self._report(f"the audit log is written again{self._since()}")

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
            self._problem = next(filter(None, map(self._problem_of, self._required.values())), "")
        return self._problem

    def _problem_of(self, audit: Audit) -> str:
        """Why this audit cannot be written. One that has failed must take a line before it is believed again."""
        if audit.path in self._failing and audit.path not in self._noted:
            self._noted.add(audit.path)
            return audit.note(None, f"lines could not be written: {self._failing[audit.path]}")
        return audit.failure()
