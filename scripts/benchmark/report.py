"""From samples to figures, ratios, budgets and tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles

from contestants import (
    BRIDGES,
    COLD_JQ,
    COLD_PYTHON,
    CONFIGURED,
    DIRECT,
    FASTMCP,
    FLOOR,
    FLOWING,
    HIDING,
    HTTP,
    KEYED,
    MCP_REMOTE,
    PLAIN,
    POST_HOOK,
    PRE_HOOK,
    PYTHON,
    REMOTE_FLOOR,
    REMOTE_HOOKS,
    SIGNED,
    SPAWN,
    UNMATCHED,
    WARM_JQ,
    WARM_PYTHON,
    WITH_SCRIPTS,
    WITHOUT_SPAWN,
    WORKER,
)
from measures import Block, Samples

RELAYS = [DIRECT, FLOOR, PLAIN, UNMATCHED, FASTMCP]
HOOKED = [SPAWN, FLOOR, UNMATCHED, PRE_HOOK, POST_HOOK]
RULED = [UNMATCHED, CONFIGURED, KEYED, SIGNED]
SECRETS = [UNMATCHED, HIDING]
FLOWS = [UNMATCHED, FLOWING]
REMOTES = list(BRIDGES)
RUNNERS = [UNMATCHED, *WITHOUT_SPAWN, *WITH_SCRIPTS]
TIMES = "\N{MULTIPLICATION SIGN}"
US, MS, K = 1e-3, 1e-6, 1e-3
"""From nanoseconds to µs and ms; from messages to thousands of messages."""

Statistic = Callable[[list[float]], float]
Of = Callable[[str], float]
"""A contestant's figure within one block."""


def p99(figures: list[float]) -> float:
    """The 99th of 100 parts."""
    return quantiles(figures, n=100)[98] if len(figures) > 1 else figures[0]


def nth(index: int) -> Statistic:
    """For measures that give several figures at once."""
    return lambda figures: figures[index]


@dataclass(frozen=True)
class Figure:
    """A line of a table of figures: a statistic of a measure, for each contestant."""

    title: str
    measure: str
    scale: float
    statistic: Statistic = median
    form: str = ".0f"


@dataclass(frozen=True)
class Budget:
    """A limit on a number made from several contestants' figures of the same block; None judges nothing."""

    title: str
    measure: str
    number: Callable[[Of], float]
    limit: float | None
    unit: str = TIMES
    least: bool = False
    """The number must not be below the limit, instead of not above it."""
    placement: str | None = None
    """The only placement that it holds for."""
    statistic: Statistic = median
    by_round: bool = False
    """Pool a round's blocks first: a 99th percentile needs many calls."""


FIGURES = [
    Figure("a small call, p50 µs", "latency", US, form=".1f"),
    Figure("a small call, p99 µs", "latency", US, p99),
    Figure("64 calls in flight, thousand calls/s", "flight", K, form=".1f"),
    Figure("20,000 notifications, thousand/s", "notifications", K, form=".1f"),
    Figure("20,000 notifications in few writes, thousand/s", "burst", K, form=".1f"),
    Figure("a 10 MB result, ms", "result", MS, form=".1f"),
    Figure("start to initialize, server boots in 300 ms, ms", "start-300", MS),
    Figure("start to initialize, server boots at once, ms", "start-0", MS),
    Figure("resident memory, idle, MB", "memory", 1, nth(0), ".1f"),
    Figure("resident memory after a 10 MB result, MB", "memory", 1, nth(1), ".1f"),
    Figure("resident memory, peak of that, MB", "memory", 1, nth(2), ".1f"),
]
HOOK_FIGURES = [
    Figure("one call, p50 µs", "hook", US),
    Figure("8 calls in flight, calls/s", "hooks", 1),
    Figure("a 10 MB many-token result, ms", "hooked-result", MS, form=".1f"),
]

RULE_FIGURES = [
    Figure("a small call, p50 µs", "rules", US, form=".1f"),
    Figure("a 10 MB result, ms", "rules-result", MS, form=".1f"),
    Figure("start to initialize, server boots in 300 ms, ms", "start-300", MS),
    Figure("start to initialize, server boots at once, ms", "start-0", MS),
    Figure("resident memory, idle, MB", "memory", 1, nth(0), ".1f"),
]

SECRET_FIGURES = [
    Figure("a small call, p50 µs", "secrets", US, form=".1f"),
    Figure("a 100 kB text there and back, p50 ms", "secrets-text", MS, form=".2f"),
    Figure("a 10 MB result, ms", "secrets-result", MS, form=".1f"),
]

FLOW_FIGURES = [Figure("a small call, p50 µs", "flow", US, form=".1f")]

REMOTE_FIGURES = [
    Figure("a small call, p50 µs", "remote", US),
    Figure("64 calls in flight, thousand calls/s", "remote-flight", K, form=".1f"),
    Figure("a 10 MB result as an event, ms", "remote-result", MS, form=".1f"),
    Figure("start to initialize, ms", "remote-start", MS),
    Figure("start to initialize over HTTPS, ms", "remote-start-https", MS),
    Figure("resident memory, idle, MB", "remote-memory", 1, nth(0), ".1f"),
]

RUNNER_FIGURES = [
    Figure("one call, p50 µs", "runners", US),
    Figure("one call after a pause, p50 µs", "scripts", US),
]


def beyond_unhooked(name: str) -> Callable[[Of], float]:
    """Milliseconds that the contestant's hook adds to a call."""
    return lambda of: (of(name) - of(UNMATCHED)) * MS


def beyond_keyed(of: Of) -> float:
    """Milliseconds that signatures add to a keyed audit of which nothing may be lost."""
    return (of(SIGNED) - of(KEYED)) * MS


def beyond_unconfigured(of: Of) -> float:
    """Milliseconds that rules and an audit add."""
    return (of(CONFIGURED) - of(UNMATCHED)) * MS


def beyond_visible(of: Of) -> float:
    """Milliseconds that hiding secrets adds."""
    return (of(HIDING) - of(UNMATCHED)) * MS


def beyond_unlabelled(of: Of) -> float:
    """Milliseconds that sources and sinks of data add."""
    return (of(FLOWING) - of(UNMATCHED)) * MS


def added(of: Of, name: str) -> float:
    """What the contestant adds to a direct call."""
    return of(name) - of(DIRECT)


def times_floor(of: Of) -> float:
    """The added latency in units of the floor's."""
    return added(of, UNMATCHED) / added(of, FLOOR)


def times_fastmcp(name: str) -> Callable[[Of], float]:
    """How often the contestant's added latency goes into fastmcp's."""
    return lambda of: added(of, FASTMCP) / added(of, name)


def over(name: str) -> Callable[[Of], float]:
    """The bridge with hooks that match nothing, in units of another one's."""
    return lambda of: of(REMOTE_HOOKS) / of(name)


BUDGETS = [
    Budget("small call: added p50 over the floor's", "latency", times_floor, 1.6, placement="pinned"),
    Budget("small call: added p50 over the floor's", "latency", times_floor, 1.3, placement="spread"),
    Budget(
        "small call: fastmcp's added p50 over ours",
        "latency",
        times_fastmcp(UNMATCHED),
        25,
        least=True,
        placement="pinned",
    ),
    Budget(
        "small call: fastmcp's added p50 over ours",
        "latency",
        times_fastmcp(UNMATCHED),
        None,
        placement="spread",
    ),
    Budget("small call: fastmcp's added p50 over the floor's", "latency", times_fastmcp(FLOOR), None),
    Budget(
        "small call: p99 over the floor's",
        "latency",
        lambda of: of(UNMATCHED) / of(FLOOR),
        1.5,
        placement="spread",
        statistic=p99,
        by_round=True,
    ),
    Budget(
        "64 in flight: calls/s over the floor's",
        "flight",
        lambda of: of(UNMATCHED) / of(FLOOR),
        0.6,
        least=True,
    ),
    Budget(
        "20,000 notifications: rate over the floor's",
        "notifications",
        lambda of: of(UNMATCHED) / of(FLOOR),
        0.8,
        least=True,
    ),
    Budget("10 MB result: time over the floor's", "result", lambda of: of(UNMATCHED) / of(FLOOR), 1.2),
    Budget(
        "10 MB many-token result, hook after: beyond the hook's own time",
        "hooked-result",
        lambda of: (of(POST_HOOK) - of(SPAWN)) * MS,
        60,
        "ms",
    ),
    Budget(
        "start, server boots in 300 ms: beyond direct",
        "start-300",
        lambda of: added(of, UNMATCHED) * MS,
        25,
        "ms",
    ),
    Budget(
        "start, server boots at once: beyond direct",
        "start-0",
        lambda of: added(of, UNMATCHED) * MS,
        140,
        "ms",
    ),
    Budget("resident memory, idle", "memory", lambda of: of(UNMATCHED), 32, "MB", statistic=nth(0)),
    Budget("resident memory after a 10 MB result", "memory", lambda of: of(UNMATCHED), 45, "MB", statistic=nth(1)),
    Budget("small call with rules and a full audit: beyond without", "rules", beyond_unconfigured, 0.075, "ms"),
    Budget("small call with a signed audit: beyond a keyed one", "rules", beyond_keyed, 0.05, "ms"),
    Budget("10 MB result with rules and a full audit: beyond without", "rules-result", beyond_unconfigured, 37.5, "ms"),
    Budget("small call with hidden secrets: beyond", "secrets", beyond_visible, 0.1, "ms"),
    Budget("100 kB text with hidden secrets: beyond", "secrets-text", beyond_visible, 1, "ms", placement="pinned"),
    Budget("small call with sources and sinks: beyond", "flow", beyond_unlabelled, 0.3, "ms", placement="pinned"),
    Budget(
        "start with a hookproxy.toml, server boots in 300 ms: beyond without",
        "start-300",
        beyond_unconfigured,
        25,
        "ms",
    ),
    Budget(
        "start with a hookproxy.toml, server boots at once: beyond without",
        "start-0",
        beyond_unconfigured,
        25,
        "ms",
    ),
    Budget(
        "resident memory with a hookproxy.toml, idle",
        "memory",
        lambda of: of(CONFIGURED),
        30,
        "MB",
        statistic=nth(0),
    ),
    Budget("one hooked call over spawn + wait", "hook", lambda of: of(PRE_HOOK) / of(SPAWN), 1.3),
    Budget(
        "one hooked call less an unhooked one, over spawn + wait",
        "hook",
        lambda of: (of(PRE_HOOK) - of(UNMATCHED)) / of(SPAWN),
        None,
    ),
    Budget(
        "8 hooked calls in flight: calls/s over spawn + wait",
        "hooks",
        lambda of: of(PRE_HOOK) / of(SPAWN),
        0.85,
        least=True,
    ),
    Budget("a server at an address, small call: p50 over mcp-remote's", "remote", over(MCP_REMOTE), 0.2),
    Budget("a server at an address, small call: p50 over the bridge floor's", "remote", over(REMOTE_FLOOR), 1.5),
    Budget(
        "a server at an address, 64 in flight: calls/s over mcp-remote's",
        "remote-flight",
        over(MCP_REMOTE),
        8,
        least=True,
    ),
    Budget("a server at an address, 10 MB result: time over mcp-remote's", "remote-result", over(MCP_REMOTE), 0.2),
    Budget("a server at an address: start", "remote-start", lambda of: of(REMOTE_HOOKS) * MS, 200, "ms"),
    Budget("a server at an https address: start", "remote-start-https", lambda of: of(REMOTE_HOOKS) * MS, 250, "ms"),
    Budget(
        "a server at an address: resident memory, idle",
        "remote-memory",
        lambda of: of(REMOTE_HOOKS),
        40,
        "MB",
        statistic=nth(0),
    ),
    Budget("a Python function: beyond an unhooked call", "runners", beyond_unhooked(PYTHON), 0.1, "ms"),
    Budget("a worker: beyond an unhooked call", "runners", beyond_unhooked(WORKER), 0.15, "ms"),
    Budget("a web service: beyond an unhooked call", "runners", beyond_unhooked(HTTP), 0.6, "ms"),
    Budget("a Python script: warm over cold", "scripts", lambda of: of(WARM_PYTHON) / of(COLD_PYTHON), 0.35),
    Budget("bash and jq: warm over cold", "scripts", lambda of: of(WARM_JQ) / of(COLD_JQ), 0.15),
]


@dataclass(frozen=True)
class Result:
    """A budget with what was measured for it, in one placement."""

    budget: Budget
    placement: str
    middle: float
    low: float
    high: float
    """Median and quartiles over the blocks."""

    @property
    def kept(self) -> bool:
        """Within the limit, if there is one."""
        if self.budget.limit is None:
            return True
        return self.middle >= self.budget.limit if self.budget.least else self.middle <= self.budget.limit


def pooled(blocks: dict[Block, list[float]]) -> dict[Block, list[float]]:
    """The blocks of each round as one."""
    rounds: dict[Block, list[float]] = {}
    for (number, _), figures in blocks.items():
        rounds.setdefault((number, 0), []).extend(figures)
    return rounds


def judge(samples: Samples) -> list[Result]:
    """Every budget in every placement where all of its contestants were measured."""
    results = []
    for budget in BUDGETS:
        for (measure, placement), by_contestant in samples.figures.items():
            if measure == budget.measure and budget.placement in (None, placement):
                results.append(evaluate(budget, placement, by_contestant))
    return [result for result in results if result]


def evaluate(budget: Budget, placement: str, by_contestant: dict[str, dict[Block, list[float]]]) -> Result | None:
    """The budget's number for each block, then their median; None where a contestant is missing."""
    if budget.by_round:
        by_contestant = {name: pooled(blocks) for name, blocks in by_contestant.items()}
    numbers = []
    for block in {block for blocks in by_contestant.values() for block in blocks}:
        here = {name: budget.statistic(blocks[block]) for name, blocks in by_contestant.items() if block in blocks}
        try:
            numbers.append(budget.number(here.__getitem__))
        except (KeyError, ZeroDivisionError):
            continue  # a slow contestant rests in most blocks; one that cannot start is in none
    if not numbers:
        return None
    low, _, high = quantiles(numbers, n=4) if len(numbers) > 1 else numbers * 3
    return Result(budget, placement, median(numbers), low, high)


def figure_rows(samples: Samples, figures: list[Figure], columns: list[str]) -> list[list[str]]:
    """One row for each figure and placement: the median over blocks, or over rounds for a 99th percentile."""
    rows = []
    for figure in figures:
        for (measure, placement), by_contestant in samples.figures.items():
            if measure != figure.measure:
                continue
            row = [figure.title, placement]
            for name in columns:
                blocks = by_contestant.get(name, {})
                parts = pooled(blocks) if figure.statistic is p99 else blocks
                numbers = [figure.statistic(part) for part in parts.values()]
                row.append(format(median(numbers) * figure.scale, figure.form) if numbers else "-")
            rows.append(row)
    return rows


def budget_rows(results: list[Result], paint: Callable[[str, bool], str]) -> list[list[str]]:
    """One row for each result, with a word for kept or missed."""
    rows = []
    for result in results:
        budget = result.budget
        digits = 2 if budget.unit == TIMES and result.middle < 10 else 3 if (budget.limit or 1) < 0.1 else 1
        number, low, high = (f"{n:.{digits}f}" for n in (result.middle, result.low, result.high))
        sign = "≥" if budget.least else "≤"
        limit, mark = "", ""
        if budget.limit is not None:
            limit = f"{sign} {budget.limit:g} {budget.unit}"
            mark = paint("ok" if result.kept else "MISS", result.kept)
        rows.append([budget.title, result.placement, f"{number} {budget.unit}", f"{low} - {high}", limit, mark])
    return rows


def table(head: list[str], rows: list[list[str]], markdown: bool) -> str:
    """A table: two columns of words, then numbers; columns without any are left out."""
    used = [n for n in range(len(head)) if any(row[n] != "-" for row in rows)]
    lines = [[row[n] for n in used] for row in [head, *rows]]
    widths = [max(len(line[n]) for line in lines) for n in range(len(used))]
    edge, gap = ("| ", " | ") if markdown else ("", "  ")

    def line(cells: list[str]) -> str:
        padded = [
            cell.ljust(w) if n < 2 else cell.rjust(w) for n, (cell, w) in enumerate(zip(cells, widths, strict=True))
        ]
        return edge + gap.join(padded) + edge[::-1]

    rule = [("-" * w if n < 2 else "-" * (w - 1) + ":") if markdown else "-" * w for n, w in enumerate(widths)]
    return "\n".join([line(lines[0]), line(rule), *map(line, lines[1:])])
