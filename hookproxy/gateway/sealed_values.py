"""Values in the store that only gateways with the same seal keys can read and make, each for one purpose and name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from ..protocol.request_state import SealKey

_T = TypeVar("_T")


class SealedValues(Struct, frozen=True):
    """Seals and opens values."""

    keys: Callable[[], Sequence[SealKey]]
    """The seal keys: the first one seals, all of them open."""

    def seal(self, value: object, kind: str, name: str) -> bytes:
        """The value, sealed for this."""
        return self.keys()[0].seal(msgspec.json.encode(value), f"{kind} {name}".encode())

    def open(self, sealed: object, type_: type[_T], kind: str, name: str) -> _T | None:
        """What was sealed for this; None if there is nothing, or if it was not sealed with one of our keys."""
        if not isinstance(sealed, bytes):
            return None
        for key in self.keys():
            if (text := key.open(sealed, f"{kind} {name}".encode())) is not None:
                try:
                    return msgspec.json.decode(text, type=type_)
                except (msgspec.MsgspecError, RecursionError):  # of another version of hookproxy
                    return None
        return None
