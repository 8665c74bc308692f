"""Which packs a configuration uses, and whose signatures count."""

from __future__ import annotations

from msgspec import Struct


class NamedPacks(Struct, frozen=True):
    """The table `[packs]`."""

    place: str
    """`FILE: packs`, for people."""
    use: tuple[str, ...] = ()
    """The names of the packs, in the order in which they count."""
    keys: tuple[str, ...] | None = None
    """The lines of the public keys, one of which must have signed a pack; None: nobody has said whose."""
