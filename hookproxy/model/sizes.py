"""Amounts of memory as configurations and messages have them: "512MiB", "2GiB"."""

from __future__ import annotations

import re
from typing import Final

SIZE: Final = r"^[1-9][0-9]{0,11} ?(?:[KMGT]iB|[kMGT]B|B)\Z"
"""How a configuration says it: a whole number with its unit."""

_UNITS: Final = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_UNITS_OF_TEN: Final = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def size_in_bytes(text: str) -> int:
    """The number of bytes of a text that matches SIZE."""
    number, unit = re.split(r"(?<=\d) ?(?=[A-Za-z])", text, maxsplit=1)
    return int(number) * (_UNITS | _UNITS_OF_TEN)[unit]


def shown_size(size: int) -> str:
    """A number of bytes for people, in three digits."""
    unit = max((unit for unit, factor in _UNITS.items() if factor <= size), key=_UNITS.__getitem__, default="B")
    return f"{float(f'{size / _UNITS[unit]:.3g}'):g} {unit}"
