"""The Merkle tree over the lines of an audit, as RFC 6962 defines it (section 2.1): SHA-256, leaves and nodes apart.

A leaf is the hash of a zero byte and the line, as it is in the file and without its line feed; a node is the hash of a
one byte and its two children. So no node can be taken for a line. With a line's path, a root proves that the line is in
the tree at this place, and nobody needs the other lines for that. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256


def leaf(line: bytes) -> bytes:
    """The hash of a line."""
    return sha256(b"\0" + line).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """The hash of the whole tree; that of an empty one is the hash of nothing."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = _split(len(leaves))
    return _node(root(leaves[:split]), root(leaves[split:]))


def path(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The hashes beside the way from the leaf at this index to the root, the lowest first."""
    if len(leaves) <= 1:
        return []
    split = _split(len(leaves))
    if index < split:
        return [*path(leaves[:split], index), root(leaves[split:])]
    return [*path(leaves[split:], index - split), root(leaves[:split])]


def _split(size: int) -> int:
    """The largest power of two that is smaller than the size."""
    return 1 << (size - 1).bit_length() - 1
