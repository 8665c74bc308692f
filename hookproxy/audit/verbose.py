"""Reports each decision in one line on standard error, in addition to the audit file: `hookproxy run --verbose`."""

from __future__ import annotations

from collections.abc import Callable

from ..model.counts import counted
from ..model.errors import printable
from ..model.settings import Arguments, Settings
from .call_record import Record
from .log import Audit


class VerboseAudit(Audit):
    """An audit that also reports each record."""

    def __init__(self, settings: Settings, report: Callable[[str], None]) -> None:
        super().__init__(settings)
        self._report = report
        self._kept = settings.audit_arguments
        self.needs_results = True  # a response is read: the line says how the call ended

    def write(self, record: Record) -> str:
        """Report the record and append its line; returns why that was not possible, or nothing."""
        self._report(self._line(record))
        return super().write(record)

    def _line(self, record: Record) -> str:
        """The decision, without the secrets that the audit would mask: hooks often quote arguments."""
        line = decision_line(record)
        if self.hidden is not None:
            line = self.hidden.text(line)
        if self._kept is Arguments.FULL:
            return line
        from ..secrets.mask import Masking
        from .kept_arguments import kept

        masking = Masking()
        kept(record.arguments, masking)  # what is masked there is removed from the line
        return masking.text(line)


def _would_be(record: Record) -> str:
    """What a policy would have changed that is only watched, as far as it is known by now."""
    if record.watched is None or not record.watched.ended or record.watched.record is None:
        return ""
    from .records import sentence
    from .would_be import would_be

    own = record.watched.record
    return sentence(would_be(record, record.watched), own.by, own.reason)


def decision_line(record: Record) -> str:
    """A decision on one line: `deny delete_file: guard.sh: no deletes`, or `allow write_file (rewritten by fmt)`."""
    decision = record.decision or record.result
    if record.result == "refused":
        return printable(": ".join(part for part in (f"{decision} {record.tool}", record.by, record.reason) if part))
    rewriters = dict.fromkeys(run.spec.label for run in record.hook_runs if run.verdict.arguments is not None)
    details = [
        f"rewritten by {', '.join(rewriters)}" if record.final else "",
        f"result {record.result}" if record.result not in ("ok", decision) else "",
        "result changed" if record.result_changed else "",
        f"repeated {counted(record.repeats, 'time')}" if record.repeats else "",
        _would_be(record),
    ]
    shown = ", ".join(detail for detail in details if detail)
    return printable(f"{decision} {record.tool}" + (f" ({shown})" if shown else ""))
