"""Signed checkpoints: lines of an audit that say which lines were before them, and that only the key's owner can make.

A *checkpoint* is about the lines after the checkpoint before it, that one included: so each line belongs to exactly one
of them. It has their number, the hash of the last one (`head`), and the root of their Merkle tree. Its signature is of
its canonical JSON. The newest one is also kept outside of the audit (`SIGNED`, a store, a collector): who cuts the end
of the audit must change it there, too.

Its `number` counts the checkpoints of one `log`. The first one opens the log: it is about the lines that are there
then, as far back as `append_file` reads, and about all earlier ones through the hash chain.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

import msgspec
from msgspec import Struct

from ..jsonrpc.canonical import canonical

SIGNED: Final = ".signed"
"""The suffix of the copy of the newest checkpoint, beside the audit file."""

FORMAT: Final = "hookproxy audit checkpoint 1"
"""It is signed, too: so a signature is never one of something else."""

_MARK: Final = b'"checkpoint"'
LONGEST: Final = 16_384
"""Bytes of the longest line with a checkpoint: a path has at most 4,096, and JSON may double them."""


class Lost(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a checkpoint has not found in the audit when it was made: the audit had been cut or replaced."""

    number: int
    """Of the checkpoint that was not found; 0: nobody knows, because no copy of the last one was there."""
    total: int = 0
    head: str = ""


class Checkpoint(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is signed. Its members are those of the JSON."""

    format: str
    log: str
    """The id of the log, which its first checkpoint has chosen."""
    number: int
    lines: int
    """The number of lines that it is about."""
    total: int
    """The lines of all checkpoints so far."""
    head: str
    """The hash of the last of them, as the chain has it."""
    root: str
    """Of the Merkle tree of the lines."""
    time: str
    host: str
    path: str
    """The audit file, where it was written."""
    run: str
    """The id of the process that has made it."""
    key: str
    """The name of the key, as `ssh-keygen -l` shows it."""
    instance: str = ""
    """The name of the gateway that has made it; empty: it has none."""
    closed: bool = False
    """The process has ended in order: it writes nothing after this."""
    lost: Lost | None = None

    @property
    def writer(self) -> str:
        """Who has made it, as a store knows it: a gateway by its name, everybody else by the machine."""
        return self.instance or self.host

    @property
    def signed_text(self) -> bytes:
        """What the signature is of."""
        return canonical(msgspec.to_builtins(self))


class Signed(Struct, frozen=True):
    """A checkpoint with its signature."""

    checkpoint: Checkpoint
    signature: str
    """In base64."""

    @property
    def signature_bytes(self) -> bytes:
        """The signature; nothing if it is not base64."""
        try:
            return base64.b64decode(self.signature, validate=True)
        except (binascii.Error, ValueError):
            return b""

    @property
    def text(self) -> bytes:
        """As it is kept outside of the audit: one line."""
        return canonical({"checkpoint": msgspec.to_builtins(self.checkpoint), "signature": self.signature}) + b"\n"

    def follows(self, other: Signed) -> bool:
        """It is a later one of the same log."""
        return self.checkpoint.log == other.checkpoint.log and self.checkpoint.number > other.checkpoint.number


_DECODER: Final = msgspec.json.Decoder(Signed)


def read(line: bytes) -> Signed | None:
    """The checkpoint in a line of an audit, or of a copy; None: it is another line."""
    if _MARK not in line or len(line) > LONGEST:
        return None
    try:
        signed = _DECODER.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return signed if signed.checkpoint.format == FORMAT else None
