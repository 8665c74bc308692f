"""Amounts of memory as configurations and messages have them: "512MiB", "2GiB"."""

from __future__ import annotations

import re
from typing import Final

SIZE: Final = r"^[1-9][0-9]{0,14} ?([kKMGT]B|[KMGT]iB|B)?\Z"
"""How a configuration says it: a whole number with its unit; without one it is bytes."""

_UNITS: Final = {"B": 1, **{f"{letter}iB": 1024**n for n, letter in enumerate("KMGT", 1)}}
_OTHER_UNITS: Final = {f"{letter}B": 1000**n for n, letter in enumerate("KMGT", 1)} | {"kB": 1000, "": 1}


def size_in_bytes(text: str) -> int:
    """The number of bytes of a text that matches SIZE."""
    number, unit = re.split(r"(?<=\d) ?(?=[A-Za-z]|\Z)", text, maxsplit=1)
    factor: int = (_UNITS | _OTHER_UNITS)[unit]
    return int(number) * factor


def shown_size(size: int) -> str:
    """A number of bytes for people, in three digits."""
    unit = max((unit for unit, factor in _UNITS.items() if factor <= size), key=_UNITS.__getitem__, default="B")
    return f"{float(f'{size / _UNITS[unit]:.3g}'):g} {unit}"
