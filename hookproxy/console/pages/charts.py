"""Charts as SVG: calls over time, the time of hooks, and the tools that are refused most. Each has its table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ...audit.view.over_time import PARTS, OverTime
from ...audit.view.statistics import HookTotals, ToolTotals
from ..html import Html, cut, el, join, table
from . import words

if TYPE_CHECKING:
    from datetime import datetime


_WIDTH: Final = 720  # of the drawing, in its own units: it is scaled to the page
_HEIGHT: Final = 140
_LEFT: Final = 52  # for the numbers of the axis
_BOTTOM: Final = 24  # for the times
_ROWS: Final = 12  # tools or hooks that are listed
_NICE: Final = (1, 2, 2.5, 5)


def charts(sums: OverTime) -> Html:
    """All charts of a period."""
    totals = sums.sums.all
    if not totals.calls:
        return el("p", "No calls in this period.", class_="empty")
    numbers = el(
        "ul",
        _figure_of(totals.calls, "calls"),
        _figure_of(totals.refused, "refused"),
        _figure_of(totals.rewritten, "rewritten"),
        _figure_of(totals.failed, "failed"),
        class_="figures",
    )
    return join([numbers, el("div", _calls(sums), _hook_times(sums), _refused(sums), _costs(sums), class_="charts")])


def _figure_of(count: int, name: str) -> Html:
    return el("li", el("b", f"{count:,}"), f" {name}")


def _calls(sums: OverTime) -> Html:
    most = _nice(max(part.calls for part in sums.parts))
    bars: list[Html] = []
    for number, part in enumerate(sums.parts):
        rest = part.calls - part.refused - part.failed
        bars += _stack(number, most, (("bar-refused", part.refused), ("bar-failed", part.failed), ("bar-ok", rest)))
    busiest = max(range(PARTS), key=lambda number: sums.parts[number].calls)
    title = (
        f"Calls over time: {words.number(sums.sums.all.calls, 'call')}, {sums.sums.all.refused} refused; "
        f"most around {_time(sums, busiest)}"
    )
    drawing = _svg(title, join([*_axis(most, ""), *bars, *_times(sums)]))
    legend = _legend((("key-ok", "forwarded"), ("key-failed", "failed"), ("key-refused", "refused")))
    rows = [
        _row(_time(sums, number), part.calls, part.refused, part.failed)
        for number, part in enumerate(sums.parts)
        if part.calls
    ]
    return _figure("Calls", legend, drawing, _as_table(("From", "Calls", "Refused", "Failed"), rows, "Calls over time"))


def _hook_times(sums: OverTime) -> Html:
    middle = [part.quantile(0.5) for part in sums.parts]
    slow = [part.quantile(0.95) for part in sums.parts]
    if not any(slow):
        return _figure("Time of hooks", "", el("p", "No hook ran in this period.", class_="quiet"))
    most = _nice(max(slow))
    title = f"Time of hooks over time: 95 of 100 hooks took at most {words.duration(max(slow))}"
    lines = [*_line(slow, most, "line-slow"), *_line(middle, most, "line-middle")]
    drawing = _svg(title, join([*_axis(most, " ms"), *lines, *_times(sums)]))
    legend = _legend((("key-middle", "half of the hooks"), ("key-slow", "95 of 100 hooks took at most")))
    rows = [
        _row(
            _time(sums, number),
            *(words.duration(part.quantile(share)) for share in (0.5, 0.95)),
            words.duration(part.longest),
        )
        for number, part in enumerate(sums.parts)
        if part.hook_runs
    ]
    shown = _as_table(("From", "Half", "95 of 100", "Longest"), rows, "Time of hooks over time")
    return _figure("Time of hooks", legend, drawing, shown)


def _refused(sums: OverTime) -> Html:
    refused = sorted(
        ((name, totals) for name, totals in sums.sums.tools.items() if totals.refused), key=lambda one: -one[1].refused
    )
    if not refused:
        return _figure("Tools refused most", "", el("p", "Nothing was refused in this period.", class_="quiet"))
    most = refused[0][1].refused
    rows = [_bar_row(name, totals, most) for name, totals in refused[:_ROWS]]
    return _figure(
        "Tools refused most", "", table(("Tool", "Refused", "Of", "Share"), rows, _more(len(refused), "tool"))
    )


def _bar_row(name: str, totals: ToolTotals, most: int) -> Html:
    bar = _bar(totals.refused / most, "bar-refused")
    return el(
        "tr",
        el("th", cut(name, 80), scope="row"),
        _number(totals.refused),
        _number(totals.calls),
        el("td", bar, class_="wide"),
    )


def _costs(sums: OverTime) -> Html:
    hooks = sorted(sums.sums.hooks.items(), key=lambda one: -one[1].ms)
    if not hooks:
        return Html("")
    most = max(hooks[0][1].ms, 0.001)
    rows = [_cost(name, totals, most) for name, totals in hooks[:_ROWS]]
    heads = ("Hook", "Runs", "Each", "Longest", "Together", "Share")
    return _figure("What hooks cost", "", table(heads, rows, _more(len(hooks), "hook")))


def _cost(name: str, totals: HookTotals, most: float) -> Html:
    times = (totals.ms / totals.runs, totals.longest, totals.ms)
    return el(
        "tr",
        el("th", cut(name, 120), scope="row"),
        _number(totals.runs),
        *(el("td", words.duration(ms), class_="number") for ms in times),
        el("td", _bar(totals.ms / most, "bar-ok"), class_="wide"),
    )


def _more(count: int, word: str) -> str:
    return f"The first {_ROWS} of {words.number(count, word)}" if count > _ROWS else words.number(count, word)


# --- drawing ---


def _svg(title: str, content: Html) -> Html:
    return el("svg", content, viewBox=f"0 0 {_WIDTH} {_HEIGHT + _BOTTOM}", role="img", aria_label=title)


def _stack(number: int, most: float, parts: Sequence[tuple[str, int]]) -> list[Html]:
    """A bar of several colours; each that is not zero is seen."""
    step = (_WIDTH - _LEFT) / PARTS
    bottom, bars = float(_HEIGHT), list[Html]()
    for name, count in parts:
        if count:
            height = max(count / most * (_HEIGHT - 10), 1.5)
            bottom -= height
            at = f"{_LEFT + number * step + 1:.1f}"
            bars.append(
                el("rect", class_=name, x=at, y=f"{bottom:.1f}", width=f"{step - 2:.1f}", height=f"{height:.1f}")
            )
    return bars


def _line(values: Sequence[float], most: float, name: str) -> list[Html]:
    """A line through the parts that have a value, with a dot where its neighbours have none."""
    step = (_WIDTH - _LEFT) / PARTS
    points = [
        (_LEFT + (number + 0.5) * step, _HEIGHT - value / most * (_HEIGHT - 10)) if value else None
        for number, value in enumerate(values)
    ]
    drawn: list[Html] = []
    run: list[tuple[float, float]] = []
    for point in [*points, None]:
        if point is not None:
            run.append(point)
            continue
        if len(run) == 1:
            drawn.append(el("circle", class_=name, cx=f"{run[0][0]:.1f}", cy=f"{run[0][1]:.1f}", r="2"))
        elif run:
            drawn.append(el("polyline", class_=name, points=" ".join(f"{x:.1f},{y:.1f}" for x, y in run)))
        run = []
    return drawn


def _axis(most: float, unit: str) -> list[Html]:
    marks: list[Html] = []
    for share in (0.0, 0.5, 1.0):
        y = f"{_HEIGHT - share * (_HEIGHT - 10):.1f}"
        marks.append(el("line", class_="grid", x1=_LEFT, x2=_WIDTH, y1=y, y2=y))
        value = most * share
        shown = f"{value:g}" if value < 10_000 else f"{value / 1000:g}k"
        marks.append(el("text", f"{shown}{unit if share == 1 else ''}", class_="end", x=_LEFT - 4, y=y, dy="4"))
    return marks


def _times(sums: OverTime) -> list[Html]:
    places = ((0, "start"), (PARTS // 2, "middle"), (PARTS, "end"))
    step = (_WIDTH - _LEFT) / PARTS
    return [
        el("text", _time(sums, number), class_=place, x=f"{_LEFT + number * step:.1f}", y=_HEIGHT + 18)
        for number, place in places
    ]


def _time(sums: OverTime, number: int) -> str:
    at: datetime = sums.start_of(number).astimezone()
    days = (sums.until - sums.since).total_seconds() / 86_400
    return f"{at:%H:%M}" if days <= 1 else f"{at:%d %b %H:%M}" if days <= 14 else f"{at:%d %b %Y}"


def _bar(share: float, name: str) -> Html:
    width = max(share * 100, 1)
    bar = el("rect", class_=name, width=f"{width:.1f}", height="8", rx="2")
    return el("svg", bar, viewBox="0 0 100 8", preserveAspectRatio="none", class_="share", aria_hidden="true")


def _nice(value: float) -> float:
    """The least of 1, 2, 5, 10, … that is not below the value."""
    power = 1.0
    while power * 10 < value:
        power *= 10
    return next((power * step for step in _NICE if power * step >= value), power * 10)


def _legend(keys: Sequence[tuple[str, str]]) -> Html:
    return el(
        "ul", *(el("li", el("span", "", class_=f"key {name}"), name_of) for name, name_of in keys), class_="legend"
    )


def _figure(title: str, legend: Html | str, *content: Html) -> Html:
    return el("section", el("h2", title), legend, *content, class_="chart")


def _as_table(heads: Sequence[str], rows: Sequence[Html], caption: str) -> Html:
    return el("details", el("summary", "As a table"), table(heads, rows, caption))


def _row(first: str, *values: int | str) -> Html:
    return el("tr", el("th", first, scope="row"), *(_number(value) for value in values))


def _number(value: int | str) -> Html:
    return el("td", f"{value:,}" if isinstance(value, int) else value, class_="number")
