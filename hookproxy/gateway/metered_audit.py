"""An audit that also counts each call for the gateway's metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..audit.call_record import Record
from ..audit.log import Audit

if TYPE_CHECKING:
    from ..model.principal import Principal
    from ..model.settings import Settings
    from .metrics import Metrics

_MILLISECONDS = 0.001


class MeteredAudit(Audit):
    """An audit of one session."""

    def __init__(self, settings: Settings, principal: Principal, policy: str, metrics: Metrics) -> None:
        super().__init__(settings, principal, policy)
        self._metrics = metrics
        self.needs_results = True  # else nobody would know how a call ended, and how long it took

    def write(self, record: Record) -> str:
        """Count the call, and write its line."""
        hook_ms = sum(run.result.ms for run in record.hook_runs)
        seconds, hook_seconds = record.ms * _MILLISECONDS, min(hook_ms, record.ms) * _MILLISECONDS
        self._metrics.note_call(record.server, record.tool, record.decision, record.result, seconds, hook_seconds)
        return super().write(record)
