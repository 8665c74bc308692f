"""Charts of a period: calls over time, the time of hooks, the tools that are refused most, and what hooks cost.

Here is what must be computed; the template draws it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, field

from ..audit.view.statistics import PARTS, OverTime, Part
from . import words
from .html import render

_WIDTH: Final = 720  # of the drawing, in its own units: it is scaled to the page
_HEIGHT: Final = 140
_LEFT: Final = 52  # for the numbers of the axis
_STEP: Final = (_WIDTH - _LEFT) / PARTS  # the width of a part of the period
_TOP: Final = _HEIGHT - 10  # the height of the highest value
_MOST_ROWS: Final = 12  # tools or hooks that are listed
_NICE: Final = (1, 2, 2.5, 5)


class Bar(Struct, frozen=True):
    """A piece of a bar."""

    key: str
    x: str
    y: str
    width: str
    height: str


class Chart(Struct):
    """A drawing over the parts of the period, and the same as a table."""

    name: str
    title: str
    """For those who do not see the drawing."""
    legend: Sequence[tuple[str, str]]
    marks: list[tuple[str, str]]
    """Of the axis: the height and the number."""
    heads: tuple[str, ...]
    caption: str
    rows: list[tuple[str, Sequence[int | str]]]
    bars: list[Bar] = field(default_factory=list)
    lines: list[tuple[str, list[tuple[str, str]]]] = field(default_factory=list)
    """Each line that has no gap: its colour, and its points."""


def charts(sums: OverTime) -> str:
    """All charts of a period, as a part of the page."""
    tools, hooks = sums.sums.tools.items(), sums.sums.hooks.items()
    return render(
        "charts.html",
        totals=sums.sums.all,
        calls=_calls(sums),
        hook_times=_hook_times(sums),
        refused=sorted((tool for tool in tools if tool[1].refused), key=lambda tool: -tool[1].refused),
        hooks=sorted(hooks, key=lambda hook: -hook[1].ms),
        watched=sums.sums.watched,
        changed=sums.sums.changed,
        would_be=sorted(sums.sums.would_be.items(), key=lambda item: (-item[1].calls, item[0])),
        times=[
            (place, f"{_LEFT + number * _STEP:.1f}", _time(sums, number))
            for number, place in ((0, "start"), (PARTS // 2, "middle"), (PARTS, "end"))
        ],
        left=_LEFT,
        width=_WIDTH,
        height=_HEIGHT,
        most_rows=_MOST_ROWS,
    )


def _calls(sums: OverTime) -> Chart:
    most = _nice(max(part.calls for part in sums.parts))
    busiest = max(range(PARTS), key=lambda number: sums.parts[number].calls)
    totals = sums.sums.all
    return Chart(
        "Calls",
        f"Calls over time: {words.number(totals.calls, 'call')}, {totals.refused} refused; "
        f"most around {_time(sums, busiest)}",
        (("ok", "forwarded"), ("failed", "failed"), ("refused", "refused")),
        _marks(most, ""),
        ("From", "Calls", "Refused", "Failed"),
        "Calls over time",
        _rows(sums, lambda part: (part.calls, part.refused, part.failed) if part.calls else ()),
        bars=[bar for number, part in enumerate(sums.parts) for bar in _stack(number, part, most)],
    )


def _hook_times(sums: OverTime) -> Chart | None:
    """None: no hook ran."""
    shares = {
        "slow": [part.quantile(0.95) for part in sums.parts],
        "middle": [part.quantile(0.5) for part in sums.parts],
    }
    slowest = max(shares["slow"])
    if not slowest:
        return None
    most = _nice(slowest)
    return Chart(
        "Time of hooks",
        f"Time of hooks over time: 95 of 100 hooks took at most {words.duration(slowest)}",
        (("middle", "half of the hooks"), ("slow", "95 of 100 hooks took at most")),
        _marks(most, " ms"),
        ("From", "Half", "95 of 100", "Longest"),
        "Time of hooks over time",
        _rows(
            sums,
            lambda part: (
                [words.duration(ms) for ms in (part.quantile(0.5), part.quantile(0.95), part.hooks.longest)]
                if part.hooks.runs
                else ()
            ),
        ),
        lines=[(key, points) for key, values in shares.items() for points in _lines(values, most)],
    )


def _rows(sums: OverTime, cells: Callable[[Part], Sequence[int | str]]) -> list[tuple[str, Sequence[int | str]]]:
    rows = [(_time(sums, number), cells(part)) for number, part in enumerate(sums.parts)]
    return [(time, row) for time, row in rows if row]


def _stack(number: int, part: Part, most: float) -> list[Bar]:
    """A bar of several colours; each that is not zero is seen."""
    counts = {"refused": part.refused, "failed": part.failed, "ok": part.calls - part.refused - part.failed}
    bottom, bars = float(_HEIGHT), list[Bar]()
    for key, count in counts.items():
        if count:
            height = max(count / most * _TOP, 1.5)
            bottom -= height
            x = f"{_LEFT + number * _STEP + 1:.1f}"
            bars.append(Bar(key, x, f"{bottom:.1f}", f"{_STEP - 2:.1f}", f"{height:.1f}"))
    return bars


def _lines(values: Sequence[float], most: float) -> list[list[tuple[str, str]]]:
    """Lines through the parts that have a value."""
    lines: list[list[tuple[str, str]]] = [[]]
    for number, value in enumerate(values):
        if value:
            lines[-1].append((f"{_LEFT + (number + 0.5) * _STEP:.1f}", f"{_HEIGHT - value / most * _TOP:.1f}"))
        elif lines[-1]:
            lines.append([])
    return [line for line in lines if line]


def _marks(most: float, unit: str) -> list[tuple[str, str]]:
    marks = []
    for share in (0.0, 0.5, 1.0):
        value = most * share
        shown = f"{value:g}" if value < 10_000 else f"{value / 1000:g}k"
        marks.append((f"{_HEIGHT - share * _TOP:.1f}", f"{shown}{unit if share == 1 else ''}"))
    return marks


def _time(sums: OverTime, number: int) -> str:
    at = sums.start_of(number).astimezone()
    days = (sums.until - sums.since).total_seconds() / 86_400
    return f"{at:%H:%M}" if days <= 1 else f"{at:%d %b %H:%M}" if days <= 14 else f"{at:%d %b %Y}"


def _nice(value: float) -> float:
    """The least of 1, 2, 2.5, 5, 10, … that is not below the value."""
    power = 1.0
    while power * 10 < value:
        power *= 10
    return next((power * step for step in _NICE if power * step >= value), power * 10)
