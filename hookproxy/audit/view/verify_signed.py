"""Verifies the signed checkpoints of an audit, and finds a cut end: what was signed later must be there.

A copy of the newest checkpoint (beside the file, from a store, from a collector) shows where the audit must at least
reach. Who can change the file and all copies that are given here can cut the end back to an earlier checkpoint, and
nobody sees it: keep one where the audit's machine cannot change it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from ...model.counts import counted
from .. import merkle
from ..checkpoints import SIGNED, Checkpoint, Signed, read
from ..hash_chain import is_whole, line_hash
from ..records import lines, open_older, parse_time, user_errors
from ..signing_keys import verifies
from .from_end import newest_first

_MOST_PROBLEMS: Final = 10  # that are shown: one change is often several
_OTHER: Final = "it was replaced, or it is another one"
_Place = tuple[str, int]


class Copy(msgspec.Struct, frozen=True):
    """A checkpoint that was kept outside of the audit."""

    where: str
    """For people."""
    text: bytes


class SignedCheck(msgspec.Struct):
    """The result. Its member names are those of `audit verify --json`."""

    checkpoints: int = 0
    signed: int = 0
    """Lines that a checkpoint covers."""
    unsigned: int = 0
    """Lines after the last one."""
    number: int = 0
    """Of the last checkpoint."""
    time: str = ""
    host: str = ""
    """Where the last one was written, and in `path` as what: it may be another audit with the same key."""
    path: str = ""
    closed: bool = False
    """The last writer has ended in order, and nothing is after its last checkpoint."""
    killed: int = 0
    """Writers before the last one that have made no last checkpoint: they were killed, or still run beside it."""
    clock_back: int = 0
    """Checkpoints with an earlier time than the one before."""
    keys: tuple[str, ...] = ()
    """The names of the keys that have signed."""
    verified: bool = False
    """Public keys were given: the signatures were verified."""
    problems: list[str] = []


class Segment(msgspec.Struct, frozen=True):
    """A checkpoint and the lines that it is about, as far as they are there."""

    signed: Signed
    place: _Place
    line: bytes
    leaves: Sequence[bytes]
    """Of all lines from the checkpoint before it on, that one included; of all lines if there is none."""
    head: str
    """The hash of the last one; empty if there is none."""


class SegmentReader:
    """Puts the lines of an audit together to segments."""

    def __init__(self) -> None:
        self.rest: list[bytes] = []
        """The leaves after the last checkpoint, that one included."""
        self._last = b""

    def add(self, line: bytes, place: _Place) -> Segment | None:
        """The segment that ends with this line, which is whole; None if it is not a checkpoint."""
        signed = read(line)
        segment = None
        if signed is not None:
            head = line_hash(self._last) if self.rest else ""
            segment = Segment(signed, place, line, self.rest, head)
            self.rest = []
        self.rest.append(merkle.leaf(line))
        self._last = line
        return segment


def all_lines(paths: Sequence[str]) -> Iterator[tuple[bytes, _Place]]:
    """The whole lines of files, in their order, with their places. Raises UserError."""
    for path in paths:
        with open_older(path) as file, user_errors(path):
            for line in lines(file):
                if not line.too_long and is_whole(line.raw):
                    yield line.raw, (path, line.number)


def last_checkpoint(path: str) -> Checkpoint | None:
    """The last checkpoint of an audit, whoever has signed it; None: it has none. Raises UserError."""
    for raw in (raw for _, raw in newest_first(path)):
        if (signed := read(raw)) is not None:
            return signed.checkpoint
    return None


def check_signed(
    paths: Sequence[str], keys: Mapping[str, bytes], copies: Sequence[Copy], *, has_earlier: bool, end_is_known: bool
) -> SignedCheck:
    """Check the checkpoints in these files, the oldest first, and the copies.

    `keys` are public keys by their names; none: signatures are not verified. `has_earlier`: the first file continues
    one that is not there. `end_is_known`: something else shows that nothing was cut. Raises UserError.
    """
    check = _Check(keys, has_earlier)
    reader = SegmentReader()
    for line, place in all_lines(paths):
        if (segment := reader.add(line, place)) is not None:
            check.add(segment)
    result = check.result
    result.unsigned = max(len(reader.rest) - bool(check.seen), 0)
    result.closed = result.closed and not result.unsigned
    for copy in copies:
        check.compare(copy, paths[-1])
    if not (copies or end_is_known) and result.checkpoints:
        missing = f"{paths[-1]}{SIGNED} is missing: lines may have been removed from the end"
        result.problems.append(f"{missing}; --checkpoint names another copy of the last checkpoint")
    if keys and not result.checkpoints and not result.problems:
        result.problems.append(f"{paths[-1]}: has no signed checkpoint: it was not signed, or they were removed")
    more = len(result.problems) - _MOST_PROBLEMS
    if more > 0:
        result.problems[_MOST_PROBLEMS:] = [f"and {counted(more, 'further problem')}"]
    return result


class _Check:
    """The check of the checkpoints in their order."""

    def __init__(self, keys: Mapping[str, bytes], has_earlier: bool) -> None:
        self.result = SignedCheck(verified=bool(keys), problems=[])
        self.seen: dict[tuple[str, int], Signed] = {}
        self._keys = keys
        self._has_earlier = has_earlier
        self._before: Checkpoint | None = None
        self._closed: dict[str, bool] = {}  # each writer, and whether its last checkpoint was its last one in order

    def add(self, segment: Segment) -> None:
        """Check the next checkpoint and its lines."""
        result, checkpoint = self.result, segment.signed.checkpoint
        for problem in (*self._signature_problems(segment.signed), *self._problems(segment)):
            result.problems.append(f"{segment.place[0]}:{segment.place[1]}: checkpoint {checkpoint.number}: {problem}")
        before = self._before
        if before is not None:
            times = parse_time(before.time), parse_time(checkpoint.time)
            result.clock_back += times[0] is not None and times[1] is not None and times[1] < times[0]
        result.checkpoints += 1
        result.signed += min(checkpoint.lines, len(segment.leaves))
        result.number, result.time, result.closed = checkpoint.number, checkpoint.time, checkpoint.closed
        result.host, result.path = checkpoint.host, checkpoint.path
        result.keys = tuple(dict.fromkeys((*result.keys, checkpoint.key)))
        self._closed[checkpoint.run] = checkpoint.closed
        others = (closed for run, closed in self._closed.items() if run != checkpoint.run)
        result.killed = sum(not closed for closed in others)
        self.seen[checkpoint.log, checkpoint.number] = segment.signed
        self._before = checkpoint

    def _signature_problems(self, signed: Signed) -> Iterator[str]:
        if not self._keys:
            return
        name = signed.checkpoint.key
        if name not in self._keys:
            yield f"it names another key than the given one: {name[:100]}"
        elif not verifies(self._keys[name], signed.signature_bytes, signed.checkpoint.signed_text):
            yield "its signature does not fit: it was changed"

    def _problems(self, segment: Segment) -> Iterator[str]:
        """Why the lines before a checkpoint are not those that were signed."""
        checkpoint, before, leaves = segment.signed.checkpoint, self._before, segment.leaves
        if checkpoint.lost is not None:
            yield "when it was made, the audit had been cut or replaced" + _lost(checkpoint)
        if before is None and checkpoint.number == 1:
            leaves = leaves[-checkpoint.lines :] if checkpoint.lines else ()  # it begins the log: older lines are not
        elif before is None and len(leaves) < checkpoint.lines and self._has_earlier:
            yield from _rest_problems(segment)
            return
        elif before is None or (before.log, before.number + 1) != (checkpoint.log, checkpoint.number):
            yield "it is not the next one after the checkpoint before it: lines between them were removed or replaced"
            return
        if len(leaves) != checkpoint.lines:
            yield f"it was signed after {counted(checkpoint.lines, 'line')}, and {len(leaves)} are there before it"
        elif merkle.root(leaves).hex() != checkpoint.root or segment.head != checkpoint.head:
            yield f"the {counted(checkpoint.lines, 'line')} before it are not those that were signed"
        elif before is not None and checkpoint.total != before.total + checkpoint.lines:
            yield "its number of all lines does not fit the checkpoint before it"

    def compare(self, copy: Copy, path: str) -> None:
        """Look for a copy in the audit, whose last file is at `path`."""
        problems = self.result.problems
        signed = read(copy.text.rstrip(b"\n"))
        if signed is None:
            problems.append(f"{copy.where}: is not a checkpoint")
            return
        if found := list(self._signature_problems(signed)):
            problems.append(f"{copy.where}: {found[0]}")
            return
        checkpoint, last = signed.checkpoint, self._before
        if self.seen.get((checkpoint.log, checkpoint.number)) == signed:
            return
        if last is None or (checkpoint.log == last.log and checkpoint.number > last.number):
            there = "none is there" if last is None else f"the last one there is {last.number}, after {last.total}"
            named = f"{copy.where} names checkpoint {checkpoint.number}, after {counted(checkpoint.total, 'line')}"
            problems.append(f"{path}: after its end, lines are missing: {named}, and {there}")
        elif not self._is_older(checkpoint):
            problems.append(f"{copy.where}: checkpoint {checkpoint.number} is not in the audit: {_OTHER}")

    def _is_older(self, checkpoint: Checkpoint) -> bool:
        """It belongs to files that were removed as too old."""
        first = min((number for log, number in self.seen if log == checkpoint.log), default=0)
        return self._has_earlier and checkpoint.number < first


def _rest_problems(segment: Segment) -> Iterator[str]:
    """Why the lines before a checkpoint are not the last ones of those that were signed: older ones were removed.

    All of them hang on the last one, by the chain.
    """
    if segment.leaves and segment.head != segment.signed.checkpoint.head:
        yield f"the {counted(len(segment.leaves), 'line')} before it are not those that were signed"


def _lost(checkpoint: Checkpoint) -> str:
    lost = checkpoint.lost
    if lost is None or not lost.number:
        return ", or its copy of the checkpoint before had been removed"
    return f": checkpoint {lost.number}, after {counted(lost.total, 'line')}, was not in it"
