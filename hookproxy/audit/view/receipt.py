"""The receipt of one call: its lines, and for each of them the proof that it is in the audit that was signed.

Who has a receipt and the public key needs nothing else: `docs/verify_receipt.py` verifies it. The text of a line is
what is proven; `record` repeats it for readers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from ...model.counts import counted
from ...model.errors import UserError
from .. import merkle
from .verify_signed import Segment, SegmentReader, all_lines

FORMAT: Final = "hookproxy audit receipt 1"


class Proven(msgspec.Struct, frozen=True):
    """A line, and the hashes that lead from it to the root that was signed."""

    record: msgspec.Raw
    line: str
    index: int
    path: list[str]
    checkpoint: dict[str, object]
    signature: str


class Receipt(msgspec.Struct, frozen=True):
    """The members of the JSON."""

    format: str
    call: str
    records: Sequence[Proven]


def make(paths: Sequence[str], call: str, is_of_call: Callable[[bytes], bool]) -> Receipt:
    """The receipt of a call whose lines in these files `is_of_call` knows. Raises UserError if not all are signed."""
    reader = SegmentReader()
    waiting: list[tuple[int, bytes]] = []  # lines of the call without a checkpoint yet, with their places in the rest
    proven: list[Proven] = []
    for line, place in all_lines(paths):
        if (segment := reader.add(line, place)) is not None:
            proven += [_proof(segment, index, text) for index, text in waiting]
            waiting = []
        elif is_of_call(line):
            waiting.append((len(reader.rest) - 1, line))
    if waiting:
        are = "is" if len(waiting) == 1 else "are"
        problem = f"{counted(len(waiting), 'line')} of the call {call} {are} not signed yet"
        hint = "a checkpoint follows within audit.checkpoint_seconds, if audit.sign_key is set"
        raise UserError(problem, hint)
    return Receipt(FORMAT, call, proven)


def _proof(segment: Segment, index: int, line: bytes) -> Proven:
    """The proof of the line at this place among the segment's leaves. Raises UserError."""
    checkpoint, leaves = segment.signed.checkpoint, segment.leaves
    skipped = len(leaves) - checkpoint.lines  # before the first checkpoint, older lines may be without a proof
    if not (0 <= skipped <= index and merkle.root(leaves[skipped:]).hex() == checkpoint.root):
        where = f"{segment.place[0]}:{segment.place[1]}"
        problem = f"{where}: the lines before the checkpoint are not those that were signed, or not all are there"
        raise UserError(problem, "hookproxy audit verify finds what has changed")
    hashes = merkle.path(leaves[skipped:], index - skipped)
    return Proven(
        msgspec.Raw(line),
        line.decode(),
        index - skipped,
        [one.hex() for one in hashes],
        msgspec.to_builtins(checkpoint),
        segment.signed.signature,
    )
