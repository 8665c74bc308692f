"""The audit log: one JSON line for each call, in one write. A required audit leaves no call unrecorded (law 3).

How it works: a call that begins gets its id, and is `in_flight` until its record is written. The record becomes
a line (`Lines`) at once, or in an idle moment where that is allowed. The line waits (`WaitingLines`) until it is in the
file (`AppendFile`), which is tried with each further line. A required audit is asked before each call (`failure`,
`write_begun`): a call that could not be recorded is not forwarded.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from time import time
from typing import TYPE_CHECKING, Final, Protocol

from msgspec.structs import replace

from ..model.counts import counted
from ..model.errors import resource_shortage
from ..model.hooks import Session
from ..model.principal import Principal
from ..model.settings import Results, Settings
from ..protocol.calls import Call
from . import os_user
from .call_record import Record, RefusedMessage, WatchedCall
from .lines import TEXT_LIMIT, Lines, Removes, verdict_word

if TYPE_CHECKING:
    from .append_file import AppendFile
    from .opened_file import FileOptions
    from .sealer import Sealer
    from .telemetry import Collector

NOT_WRITTEN: Final = "the audit log cannot be written"
"""The beginning of the sentence that is reported then."""

_MOST_WAITING: Final = 1024 * 1024  # bytes of lines that wait to be written
_RUN_DIGITS: Final = 6  # hexadecimal digits of the ids of a run's calls: two of a hundred runs have the same in 1/3000
_MOST_DEFERRED: Final = 64  # records that wait for an idle moment: writing them takes 2 ms
DEFERRED_SECONDS: Final = 0.02
"""A record that need not be written at once is written after this time: by then the call has been forwarded."""


class AuditCounter(Protocol):
    """Counts the lines of one or several audits."""

    def written(self, path: str, lines: int) -> None:
        """So many are in the file."""

    def failed(self, path: str, problem: str) -> None:
        """A line, or a call that must have one, could not be written now."""

    def lost(self, lines: int) -> None:
        """So many will never be in the file."""


class _CountsNothing:
    def written(self, path: str, lines: int) -> None: ...
    def failed(self, path: str, problem: str) -> None: ...
    def lost(self, lines: int) -> None: ...


class Audit:
    """The audit file, opened when the first line is to be written. Without a configured file nothing happens."""

    def __init__(
        self,
        settings: Settings,
        principal: Principal | None = None,
        policy: str = "",
        counter: AuditCounter | None = None,
        instance: str = "",
    ) -> None:
        """`principal` has opened the session at a gateway of this name (`instance`), whose policy has this version.

        A `counter` also reports that lines cannot be written: nobody else need do it.
        """
        self.path = os_user.audit_path(settings.audit_file)
        self.needs_results = settings.otel or (bool(self.path) and settings.audit_results is not Results.NONE)
        """Results of calls are recorded somewhere."""
        self.required = settings.audit_required
        self.reports_failures = counter is not None
        """It is reported elsewhere that lines cannot be written."""
        self._counter = counter or _CountsNothing()
        self._begins = settings.audit_required or settings.audit_begun
        self._settings = settings
        self._run = os.urandom(_RUN_DIGITS).hex()[:_RUN_DIGITS]
        self._numbers = count(1)
        self.schedule: Callable[[], None] | None = None
        """Calls `flush` soon. If it is set, records of the default file are not written at once."""
        self._may_defer = settings.audit_default and not settings.audit_required
        self._deferred: list[Record] = []
        self._is_scheduled = False
        self._lines = Lines(settings, principal, policy)
        self.hidden: Removes | None = None
        """As `Lines.hidden`."""
        self._waiting = WaitingLines(self._lines.of_note, self._counter)
        self._collector = _collector(settings, instance) if settings.otel else None
        self._principal = principal
        self._file: AppendFile | None = None  # its module is imported with the first line
        self._sealer: Sealer | None = None  # so is that of this
        self._report_problem: Callable[[str], None] | None = None
        self.in_flight: dict[str, tuple[Record, Call, float]] = {}
        """The calls that have not ended, by their ids, with the time at which they came, in seconds since 1970."""
        self.on_ended: Callable[[Record], None] | None = None
        """Called with each call that has ended."""
        self.find_watched: Callable[[Record, Call], WatchedCall | None] | None = None
        """Returns the same call as a policy judges it that is only watched; None: there is no such policy."""
        self._awaiting: dict[int, Record] = {}  # records that wait for what is watched, by their `id()`

    def hide(self, secrets: Removes) -> None:
        """Remove these from all lines, before anything else is removed."""
        self._lines.hidden = self.hidden = secrets

    def report_to(self, report: Callable[[str], None]) -> None:
        """Report problems of telemetry and of signatures there, from any thread."""
        self._report_problem = report
        if self._collector is not None:
            from . import telemetry

            telemetry.report_to(report)

    def failure(self) -> str:
        """Why no line can be written now; empty if one can, as far as that can be known."""
        if not self.path:
            return "no audit file is configured" if self.required else ""
        try:
            file = self._open()
            if self._waiting:
                self._waiting.write_to(file, self._note_written)
            else:
                file.ready()
        except (OSError, ImportError) as error:
            return self._failed(error)
        return ""

    def _failed(self, error: OSError | ImportError) -> str:
        """Count a failure. Returns why it is one. Raises an ImportError again that is not for want of resources."""
        if isinstance(error, OSError):
            problem = f"{error.filename or self.path}: {error.strerror}"
        elif shortage := resource_shortage(error):
            problem = f"{self.path}: {shortage}"
        else:
            raise error
        self._counter.failed(self.path, problem)
        return problem

    def _open(self) -> AppendFile:
        if self._file is None:
            self._file = _append_file(self._settings, self.path)
        if self._sealer is None and self._settings.audit_sign_key:
            from . import sealer

            self._sealer = sealer.acquire(self.path, file_options(self._settings, self.path), self._settings)
            if self._report_problem is not None:
                self._sealer.report = self._report_problem
        return self._file

    def begin(self, record: Record, call: Call) -> tuple[tuple[str, str], ...]:
        """Give a call its id, and begin its span. Returns the variables that carry its trace context to hooks."""
        record.call = self.new_id()
        self.in_flight[record.call] = record, call, time()
        if self.find_watched is not None:
            record.watched = self.find_watched(record, call)
        if self._collector is None:
            return ()
        from .telemetry import caller_attributes

        shown = () if self.hidden is None else (self.hidden.text,)
        record.span = span = self._collector.begin(record, call, caller_attributes(self._principal), *shown)
        return span.env

    def hooks_of(self, record: Record) -> bytes:
        """The hooks that have run for a call, as its line shows them: a JSON array."""
        return self._lines.hooks_of(record)

    def hand_over(self, record: Record) -> None:
        """Somebody else records how a call ends that was begun here."""
        self.in_flight.pop(record.call, None)
        record.span = None

    def take_over(self, record: Record, call: str) -> None:
        """Record how a call ends that was begun elsewhere, under this id; a line that it has begun is written."""
        self.in_flight[call] = self.in_flight.pop(record.call)
        record.call, record.begun = call, True

    def new_id(self) -> str:
        """The id of a further call."""
        return f"{self._run}-{next(self._numbers)}"

    def write_begun(self, record: Record) -> str:
        """Append a line before the call is forwarded, if the settings want it.

        Returns why it could not be written if records are required. Then nothing of it is kept: the call is refused.
        """
        if not (self._begins and self.path) or record.begun:
            return ""
        try:
            file = self._open()
            self._waiting.write_to(file, self._note_written)
            line = self._lines.of_call(replace(record, result="begun"))
            file.append(line, leave_space=self.required)
        except (OSError, ImportError) as error:
            problem = self._failed(error)
            return problem if self.required else ""
        self._note_written(1, len(line))
        record.begun = True
        return ""

    def _note_written(self, count: int, size: int) -> None:
        self._counter.written(self.path, count)
        if self._sealer is not None:
            self._sealer.note_lines(count, size)

    def write(self, record: Record) -> str:
        """Append the record's line. Returns why it could not be written, or nothing; then it is tried again later."""
        if record.span is not None:
            record.span.end(record)
            record.span = None
        record.at = time()
        self.in_flight.pop(record.call, None)
        if self.on_ended is not None:
            self.on_ended(record)
        watched = record.watched
        if watched is not None and watched.on_decided is not None:
            watched.on_decided(record.result)
        if not self.path:
            return ""
        if watched is not None and not (watched.ended or self.required):  # of a required line, the call has waited
            self._awaiting[id(record)] = record
            watched.on_end = lambda: self._note_watched(record)
            return ""
        return self._keep(record)

    def _note_watched(self, record: Record) -> None:
        """What is watched of a call has ended, later than the call."""
        if self._awaiting.pop(id(record), None) is not None:
            self._keep(record)

    def _keep(self, record: Record) -> str:
        self._deferred.append(record)
        if self.schedule is not None and self._may_defer and len(record.arguments) <= TEXT_LIMIT:
            if not self._is_scheduled:
                self._is_scheduled = True
                self.schedule()
            if len(self._deferred) < _MOST_DEFERRED:
                return ""
        return self.flush()

    def flush(self) -> str:
        """Append the lines of the records that wait for an idle moment. Otherwise as `write`."""
        self._is_scheduled = False
        return self._append(self._keep_deferred)

    def _append(self, keep: Callable[[], None]) -> str:
        """Append the lines that `keep` makes, and those that wait. Otherwise as `write`."""
        try:
            keep()
        except (OSError, ImportError) as error:
            lost = max(0, len(self._deferred) - _MOST_DEFERRED)
            del self._deferred[:lost]
            self._waiting.lose(lost)
            return self._failed(error)
        return self.failure()

    def _keep_deferred(self) -> None:
        """Make the lines of records that wait. Raises OSError, ImportError if that cannot be done now: they wait on."""
        while self._deferred:
            self._waiting.keep(self._lines.of_call(self._deferred[0]))
            del self._deferred[0]

    def note(self, session: Session | None, text: str, by: str = "") -> str:
        """Append a line about something that belongs to no call; `by` is the id of who has done it.

        Returns why it could not be written, or nothing.
        """
        return self._append_now(lambda: self._lines.of_note(text, session, by))

    def note_refusal(self, session: Session, refusal: RefusedMessage) -> str:
        """Append a line about a message that was refused before it was a call. Otherwise as `note`."""
        return self._append_now(lambda: self._lines.of_refusal(session, refusal))

    def _append_now(self, line: Callable[[], bytes]) -> str:
        def keep() -> None:
            self._keep_deferred()
            self._waiting.keep(line())

        return self._append(keep) if self.path else ""

    def close(self) -> str:
        """Write the waiting lines, and close the file. A line that cannot be written now is lost: returns why."""
        problem = ""
        self._deferred += self._awaiting.values()
        self._awaiting.clear()
        if self._deferred or self._waiting:
            problem = self.flush()
            self._counter.lost(self._waiting.count + len(self._deferred))
        if self._file is not None:
            self._file.close()
        if self._sealer is not None:
            from . import sealer

            sealer.release(self._sealer)
            self._sealer = None
        if self._collector is not None:
            from . import telemetry

            telemetry.release(self._collector)
            self._collector = None
        return problem


class WaitingLines:
    """Lines that are not in the file yet, in their order: a full disk fills no memory.

    What comes when too many wait is lost; how many that were is a line of its own.
    """

    def __init__(self, note: Callable[[str], bytes], counter: AuditCounter) -> None:
        """`note` makes a line about the audit itself."""
        self._note = note
        self._counter = counter
        self._lines: list[bytes] = []
        self._size = 0  # bytes in `_lines`
        self._lost = 0
        self._rotation_failed = False  # a note about it is among the lines, or in the file

    def __bool__(self) -> bool:
        return bool(self._lines)

    @property
    def count(self) -> int:
        """How many lines wait."""
        return len(self._lines)

    def keep(self, line: bytes) -> None:
        """Keep the line until it is written."""
        if self._size + len(line) > _MOST_WAITING and self._lines:
            self.lose(1)
        else:
            self._lines.append(line)
            self._size += len(line)

    def lose(self, count: int) -> None:
        """So many lines will never be written."""
        self._lost += count
        self._counter.lost(count)

    def write_to(self, file: AppendFile, note_written: Callable[[int, int], None]) -> None:
        """Write all lines, none in two writes, so that lines of several writers do not mix. Raises OSError.

        `note_written` is told the number of lines that were written, and of their bytes.
        """
        while self._lines:
            written = file.append_some(self._lines)
            size = sum(map(len, self._lines[:written]))
            note_written(written, size)
            self._size -= size
            del self._lines[:written]
            if not self._lines and (self._lost or file.rotation_error or self._rotation_failed):
                self._add_notes(file)

    def _add_notes(self, file: AppendFile) -> None:
        """Notes about the audit itself, each once: lost lines, and a file that cannot be rotated."""
        texts = [f"{counted(self._lost, 'line')} lost"] if self._lost else []
        if file.rotation_error and not self._rotation_failed:
            texts.append(f"the file is over its limit: {file.rotation_error}")
        self._lost, self._rotation_failed, file.rotation_error = 0, bool(file.rotation_error), ""
        self._lines = [self._note(text) for text in texts]
        self._size = sum(map(len, self._lines))


def _append_file(settings: Settings, path: str) -> AppendFile:
    from .append_file import AppendFile

    return AppendFile(path, file_options(settings, path))


def file_options(settings: Settings, path: str) -> FileOptions:
    """How the audit file at this path is written."""
    from .opened_file import FileOptions

    return FileOptions(
        chain=settings.audit_chain or bool(settings.audit_sign_key),
        key_file=settings.audit_chain_key_file,
        shared=settings.audit_shared,
        # nobody named the default file: a link in its place would choose where the lines go, also root's
        private=(settings.audit_default or path != settings.audit_file) and not settings.audit_shared,
        limit=settings.audit_max_file_bytes,
        keep=settings.audit_keep_files,
    )


def _collector(settings: Settings, instance: str) -> Collector:
    from .telemetry import acquire

    return acquire(settings.otel_endpoint, os_user.writer(), lambda run: verdict_word(run.verdict), instance)
