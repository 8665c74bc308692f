"""Signs the end of an audit from time to time, in a thread: no call waits for a signature.

One `Sealer` of each file and key serves all audits of the process (`shared`). Its states:

    ASLEEP ──first line──▶ WAITING ──enough lines, or enough time──▶ ASLEEP      (a checkpoint is written in between)
       └────────────────────┴──close──▶ ended                                    (with a last checkpoint, `closed`)

The checkpoint itself is a line like any other: it takes the file's lock, so other processes may write and sign too. It
is on the disk before its copy is: a crash of the machine never looks like a cut. What the copies say is compared with
the audit before the first checkpoint of a process, and its own last one before each later one: an audit that was cut
meanwhile is not signed as if it were whole, the new checkpoint says what is `lost`.

A checkpoint that cannot be written is reported, and tried again.
"""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from threading import Condition, Thread
from time import monotonic
from typing import Final

import msgspec
from msgspec import Struct

from ..files.open_flags import READ_FILE
from ..files.replace import replace_file
from ..jsonrpc import raw_json
from ..model.counts import counted
from ..model.settings import Settings
from . import checkpoints, merkle, os_user
from .append_file import AppendFile, Segment
from .checkpoints import FORMAT, SIGNED, Checkpoint, Lost, Signed
from .hash_chain import line_hash
from .lines import VERSION
from .opened_file import PRIVATE_MODE, SHARED_MODE, FileOptions
from .signing_keys import Signer, read_signer, verifies

RETRY_SECONDS: Final = 5.0
"""After a checkpoint could not be written: the disk is full, or somebody holds the lock."""

_END_SECONDS: Final = 1.5
"""That the last checkpoint may take at the end of a run: agents kill a server that takes longer than two to exit."""

_FIRST_BYTES: Final = 4 * 1024 * 1024
"""Of lines that the first checkpoint of a log is about: reading them takes 10 ms, in which no call can write its line.
Earlier lines are covered through the hash chain alone."""

_MOST_UNSIGNED: Final = 1024 * 1024
"""Bytes of lines after which they are signed, even if they are few: to read them again takes 3 ms."""

_LOG_BYTES: Final = 16  # of a log's id: nobody has the same by chance
_RUN_BYTES: Final = 8  # of the id of a process

Report = Callable[[str], None]


class Sealer:
    """Writes the checkpoints of one audit file."""

    def __init__(self, path: str, options: FileOptions, settings: Settings) -> None:
        self.path = path
        self.newest: Signed | None = None
        """The last checkpoint of this process."""
        self.instance = ""
        """The name of this gateway, for its checkpoints; empty: none."""
        self.report: Report = lambda _text: None
        """Reports problems, from another thread."""
        self._settings = settings
        self._shared, self._keeps = options.shared, options.keep
        self._signer: Signer | None = None  # read in the thread, with the first line
        self._file = AppendFile(path, options)
        self._run = os.urandom(_RUN_BYTES).hex()
        self._copies: list[Signed] = []  # elsewhere, of earlier processes
        self._compare: list[Signed] = []  # they, and the one beside the audit
        self._there: list[Signed] = []  # the last ones of the audit
        self._made: Signed | None = None  # the one that is being written
        self._compared = -1  # how many of the copies elsewhere were compared
        self._reading = 0  # as many are being compared
        self._moved: Checkpoint | None = None  # the last one of an audit that was moved away, with its copy
        self._changed = Condition()
        self._unsigned = 0  # lines
        self._unsigned_bytes = 0
        self._begin = False
        self._since = 0.0
        self._closing = False
        self._problem = ""
        self._thread: Thread | None = None

    def expect(self, copy: bytes) -> None:
        """A copy of a checkpoint, which must be in the audit: a store has it. It is compared before the next one."""
        if (signed := checkpoints.read(copy.rstrip(b"\n"))) is not None:
            self._copies.append(signed)

    def begin(self) -> None:
        """Sign what an earlier process has left unsigned, and look whether the audit is as it has left it."""
        with self._changed:
            self._begin = True
            self._changed.notify()
            self._start()

    def note_lines(self, count: int, size: int) -> None:
        """This process has written so many lines of so many bytes together: they are to be signed."""
        with self._changed:
            is_first = not self._unsigned
            self._unsigned += count
            self._unsigned_bytes += size
            if is_first:
                self._since = monotonic()
            if is_first or self._is_enough:
                self._changed.notify()
            self._start()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._work, name="audit checkpoints", daemon=True)
            self._thread.start()

    @property
    def _is_enough(self) -> bool:
        return self._unsigned >= self._settings.audit_checkpoint_lines or self._unsigned_bytes >= _MOST_UNSIGNED

    @property
    def unsigned_lines(self) -> int:
        """Lines of this process that wait for a checkpoint."""
        return self._unsigned

    def close(self) -> None:
        """Sign what is left, and end."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)
        self._file.close()

    # --- the thread ---

    def _work(self) -> None:
        """Sign until it is closed."""
        while True:
            with self._changed:
                while not self._closing and (seconds := self._seconds_to_wait()) != 0:
                    self._changed.wait(seconds)
                closing, count, size = self._closing, self._unsigned, self._unsigned_bytes
            problem = self.seal(closed=closing)
            with self._changed:
                self._since = monotonic()
                if not problem:
                    self._begin = False
                    self._unsigned -= count
                    self._unsigned_bytes -= size
            if problem and problem != self._problem:
                self.report(f"the audit cannot be signed: {problem}; its lines are written all the same")
            self._problem = problem
            if closing:
                return

    def _seconds_to_wait(self) -> float | None:
        """How long nothing need be signed; None: until there are lines."""
        if not (self._unsigned or self._begin):
            return None
        if self._problem:
            return max(self._since + RETRY_SECONDS - monotonic(), 0.0)
        if self._is_enough or self._begin:
            return 0.0
        return max(self._since + self._settings.audit_checkpoint_seconds - monotonic(), 0.0)

    def seal(self, *, closed: bool = False) -> str:
        """Write a checkpoint if there are lines to be signed. Returns why it could not be written, or nothing."""
        try:
            signer = self._signer = self._signer or read_signer(self._settings.audit_sign_key)
            if not self._has_compared:
                self._read_copies()
            elif self.newest is not None:  # what other processes have written since can be long: without the lock
                self._there = list(self._back_to(self.newest))
            self._made = None
            written = self._file.append_after(
                _is_checkpoint, lambda segment: self._line_of(segment, signer, closed=closed), self._most_bytes()
            )
            if written:  # what could not be written is not a checkpoint, and the next one compares again
                self.newest = self._made
                if not self._has_compared:
                    self._compared = self._reading
            if self.newest is not None:
                self._file.sync()
                self._keep_copy(self.newest)
        except OSError as error:
            return f"{error.filename or self.path}: {error.strerror}"
        except Exception as defect:  # a thread that ends would sign nothing any more
            return f"{type(defect).__name__}: {defect}"
        return ""

    def _most_bytes(self) -> int:
        """How far to look for the last checkpoint: to the beginning, if there must be one."""
        known = self.newest is not None or self._copies or os.path.lexists(self.path + SIGNED)
        return sys.maxsize if known else _FIRST_BYTES

    def _line_of(self, segment: Segment, signer: Signer, *, closed: bool) -> bytes:
        """The line of the checkpoint for these lines; nothing if there is nothing to be signed."""
        before = checkpoints.read(segment.lines[0]) if segment.begins else None
        lost = self._lost_meanwhile(before) if self._has_compared else self._lost(before)
        is_closed = before is not None and before.checkpoint.closed and before.checkpoint.run == self._run
        is_new = len(segment.lines) > 1 or before is None or (closed and not is_closed)
        if not is_new and lost is None:
            return b""
        checkpoint = Checkpoint(
            FORMAT,
            os.urandom(_LOG_BYTES).hex() if before is None else before.checkpoint.log,
            1 if before is None else before.checkpoint.number + 1,
            len(segment.lines),
            len(segment.lines) + (0 if before is None else before.checkpoint.total),
            line_hash(segment.lines[-1]) if segment.lines else "",
            merkle.root([merkle.leaf(line) for line in segment.lines]).hex(),
            datetime.now(UTC).isoformat(timespec="milliseconds"),
            os.uname().nodename,
            self.path.encode(errors="replace").decode(),
            self._run,
            signer.name,
            self.instance,
            closed,
            lost,
        )
        signed = Signed(checkpoint, base64.b64encode(signer.sign(checkpoint.signed_text)).decode())
        self._made = signed
        note = f"signed checkpoint {checkpoint.number}: {counted(checkpoint.lines, 'line')}"
        if lost is not None:
            note = f"the audit was cut or replaced before this line; {note}"
            self.report(f"{self.path}: {_loss(lost)}")
        elif (moved := self._moved) is not None:
            lines = counted(moved.total, "line")
            note = (
                f"the audit before was moved away, with checkpoint {moved.number} after {lines}, {moved.head}; {note}"
            )
            self._moved = None
        members = {
            "v": VERSION,
            "time": checkpoint.time,
            "note": note,
            "checkpoint": msgspec.to_builtins(checkpoint),
            "signature": signed.signature,
            **os_user.writer(),
        }
        return raw_json.encode(members) + b"\n"

    # --- the copies ---

    @property
    def _has_compared(self) -> bool:
        """All copies that are known of elsewhere were compared with the audit."""
        return self._compared == len(self._copies)

    def _read_copies(self) -> None:
        """Read the copy beside the audit, and the checkpoints of the audit as far back as the copies go."""
        copies = list(self._copies)
        self._reading = len(copies)
        with suppress(FileNotFoundError):
            copies += _read_copy(self.path + SIGNED)
        self._compare, self._there = copies, []
        first = min((copy.checkpoint.number for copy in copies), default=sys.maxsize)
        for line in self._file.lines_back() if copies else ():
            if (signed := checkpoints.read(line)) is not None:
                self._there.append(signed)
                if signed.checkpoint.number <= first:
                    return

    def _lost(self, last: Signed | None) -> Lost | None:
        """What the copies have and the audit has not; `last` is its last checkpoint."""
        if last is not None and not self._compare:
            return Lost(0)
        gone = [copy for copy in self._compare if not (copy in self._there or self._is_too_old(copy))]
        ours = [copy.checkpoint for copy in gone if self._is_ours(copy)]
        if foreign := [copy for copy in gone if not self._is_ours(copy)]:
            self.report(f"{self.path}: a copy of its last signed checkpoint was not signed by {self._signer_name}")
        if ours:
            latest = max(ours, key=lambda checkpoint: checkpoint.number)
            return Lost(latest.number, latest.total, latest.head)
        # whoever can write to a store must not be able to say that something is lost
        return Lost(0) if any(copy not in self._copies for copy in foreign) else None

    def _lost_meanwhile(self, last: Signed | None) -> Lost | None:
        """The last checkpoint of this process, if it is not in the audit any more; `last` is the one that is there."""
        own = self.newest
        if own is None or last == own:
            return None
        checkpoint = own.checkpoint
        is_gone = last is None and not os.path.lexists(self.path + SIGNED)
        if is_gone and not self._file.was_removed:  # both were moved away: a new log begins
            self.report(f"{self.path} and its copy are not there any more: a new log of checkpoints begins")
            self._moved = checkpoint
            return None
        there = self._there if last in self._there else list(self._back_to(own))
        if own in there:
            return None
        if self._keeps > 0 and there and there[-1].follows(own):  # its file was removed as too old
            return None
        return Lost(checkpoint.number, checkpoint.total, checkpoint.head)

    def _back_to(self, own: Signed) -> Iterator[Signed]:
        """The checkpoints of the audit from the last one back to this one, or to the first that is not later."""
        for line in self._file.lines_back():
            if (signed := checkpoints.read(line)) is not None:
                yield signed
                if not signed.follows(own):
                    return

    def _is_ours(self, copy: Signed) -> bool:
        """We have signed it."""
        signer = self._signer
        return signer is not None and verifies(signer.public, copy.signature_bytes, copy.checkpoint.signed_text)

    @property
    def _signer_name(self) -> str:
        return self._signer.name if self._signer is not None else ""

    def _is_too_old(self, copy: Signed) -> bool:
        """Its file was removed by `keep_files`, while the copy could not be replaced."""
        return self._keeps > 0 and bool(self._there) and self._there[-1].follows(copy)

    def _keep_copy(self, signed: Signed) -> None:
        """Replace the copy beside the audit, unless another process has put a newer one there. Raises OSError."""
        copies: Iterable[Signed] = ()
        with suppress(FileNotFoundError):
            copies = _read_copy(self.path + SIGNED)
        if not any(copy == signed or (copy.follows(signed) and self._is_ours(copy)) for copy in copies):
            replace_file(self.path + SIGNED, signed.text, mode=SHARED_MODE if self._shared else PRIVATE_MODE)


def _loss(lost: Lost) -> str:
    if not lost.number:
        return f"its copy of the last signed checkpoint ({SIGNED}) is missing: the end of the audit may have been cut"
    names = f"checkpoint {lost.number}, which was signed after {counted(lost.total, 'line')}"
    return f"{names}, is not in it: it was cut or replaced"


def _is_checkpoint(line: bytes) -> bool:
    return checkpoints.read(line) is not None


def _read_copy(path: str) -> Sequence[Signed]:
    """The checkpoint in a file; nothing if it has none. Raises OSError."""
    fd = os.open(path, READ_FILE)
    try:
        signed = checkpoints.read(os.read(fd, checkpoints.LONGEST).rstrip(b"\n"))
    finally:
        os.close(fd)
    return () if signed is None else (signed,)


# --- one for each file and key ---


class _Use(Struct):
    sealer: Sealer
    users: int = 0


_SHARED: Final[dict[tuple[str, str], _Use]] = {}


def acquire(path: str, options: FileOptions, settings: Settings) -> Sealer:
    """The sealer of this file in this process. Whoever gets it gives it back by `release`."""
    use = _SHARED.setdefault((path, settings.audit_sign_key), _Use(Sealer(path, options, settings)))
    use.users += 1
    return use.sealer


def release(sealer: Sealer) -> None:
    """It is not used any more. After the last use, it signs what is left and ends."""
    for key, use in list(_SHARED.items()):
        if use.sealer is sealer:
            use.users -= 1
            if not use.users:
                del _SHARED[key]
                sealer.close()
