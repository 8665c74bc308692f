"""Lengths of time as configurations and messages have them: "90s", "10m", "2h", "1d"."""

from __future__ import annotations

from typing import Final

from .counts import counted

DURATION: Final = r"^[1-9][0-9]{0,6} ?[smhd]\Z"
"""How a configuration says it: a whole number with its unit."""

_UNITS: Final = {"d": (86_400, "day"), "h": (3600, "hour"), "m": (60, "minute"), "s": (1, "second")}
"""The seconds and the name of each unit, the longest first."""


def seconds_of(text: str) -> float:
    """The seconds of a text that matches DURATION."""
    return float(int(text[:-1]) * _UNITS[text[-1]][0])


def shown_duration(seconds: float) -> str:
    """A length of time for people, in the longest unit of which it has a whole number: `10 minutes`."""
    length, name = next((unit for unit in _UNITS.values() if seconds and seconds % unit[0] == 0), _UNITS["s"])
    return counted(seconds / length, name)
