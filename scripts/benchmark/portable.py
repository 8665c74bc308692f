"""Measures the portable way, as on a Mac, beside Linux's own: `scripts/bench --portable`."""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

from agent import Fault, Placement, Session, move_to, time_limit
from contestants import Contestant, bin_true, hookproxy, own, start
from report import table

LIMIT = 2.0
"""How many times as long a call may take on the portable way."""

LAUNCHER = """#!{python}
import sys
from hookproxy.cli.main import main
from hookproxy.processes.platforms import PORTABLE
sys.exit(main(platform=PORTABLE))
"""

Figures = dict[str, list[tuple[float, float]]]

Take = Callable[[Session], float]
"""One block of a measure: seconds for one call."""

PLAIN, HOOKED, ELSEWHERE, FUNCTION = "no hook", "/bin/true", "/bin/true in a folder of its own", "a Python function"
MEASURES: list[tuple[str, str, int, Take]] = [
    ("a small call", PLAIN, 12, lambda peer: median(peer.latencies(200, 10)) / 1e9),
    ("one of 64 calls in flight", PLAIN, 8, lambda peer: 1 / peer.rate(4000, 64)[0]),
    ("a 10 MB result", PLAIN, 6, lambda peer: peer.long_result(b"big")[0] / 1e9),
    ("a call with a hook", HOOKED, 12, lambda peer: median(peer.latencies(25)) / 1e9),
    ("one of 8 such calls in flight", HOOKED, 8, lambda peer: 1 / peer.rate(120, 8)[0]),
    (
        "a call with a hook that runs in a folder of its own",
        ELSEWHERE,
        8,
        lambda peer: median(peer.latencies(25)) / 1e9,
    ),
    ("a call with a Python function", FUNCTION, 8, lambda peer: median(peer.latencies(100, 5)) / 1e9),
]
"""What is measured, with which hooks, in how many blocks of a round, and how."""


def both_ways(contestant: Contestant, program: str) -> tuple[Contestant, Contestant]:
    """The contestant, and the same whose hookproxy is `program`."""

    def portable(server: list[str]) -> list[str]:
        words = contestant.argv(server)
        at = next(at for at, word in enumerate(words) if word.endswith("/hookproxy"))
        return [*words[:at], program, *words[at + 1 :]]

    return contestant, replace(contestant, name=f"{contestant.name} portable", argv=portable)


def in_folder(folder: Path, name: str) -> Path:
    """A folder of this name in the folder."""
    (folder / name).mkdir(parents=True)
    return folder / name


def listed(folder: Path) -> dict[str, tuple[Contestant, Contestant]]:
    """Each configuration on both ways; its files, and the program of the portable way, are written into the folder."""
    launcher = in_folder(folder, "program") / "hookproxy"
    launcher.write_text(LAUNCHER.format(python=sys.executable))
    launcher.chmod(0o755)
    contestants = {
        PLAIN: hookproxy("plain", folder, {}),
        HOOKED: hookproxy("hooked", folder, {"PreToolUse": (".*", bin_true())}),
        ELSEWHERE: own("elsewhere", in_folder(folder, "elsewhere"), f'argv = ["{bin_true()}"]'),
        FUNCTION: own("function", in_folder(folder, "function"), 'type = "python"', 'call = "function:check"'),
    }
    return {name: both_ways(one, str(launcher)) for name, one in contestants.items()}


def take_round(ways: dict[str, tuple[Contestant, Contestant]], placement: Placement, folder: Path) -> Figures:
    """Seconds for one call, by measure: pairs on both ways, each taken one right after the other."""
    figures: Figures = defaultdict(list)
    with time_limit():
        peers = {name: [start(one, placement, folder) for one in both] for name, both in ways.items()}
    for title, name, blocks, take in MEASURES:
        for block in range(-1, blocks):
            taken = [0.0, 0.0]
            for way in random.sample((0, 1), 2):
                with time_limit():
                    taken[way] = take(peers[name][way])
            if block >= 0:  # the first one only warms up
                figures[title].append((taken[0], taken[1]))
    for both in peers.values():
        for peer in both:
            peer.stop()
    return figures


def measure_portable(placement: Placement, folder: Path, rounds: int, markdown: bool) -> int:
    """Print how long calls take on both ways. Returns 1 if one was wrong or took LIMIT times as long."""
    ways = listed(folder)
    figures: Figures = defaultdict(list)
    move_to(placement.agent)
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}, {placement.name}", file=sys.stderr, flush=True)
        try:
            for title, pairs in take_round(ways, placement, folder).items():
                figures[title] += pairs
        except Fault as fault:
            print(f"WRONG: {fault}")
            return 1
    ratios = {title: median(portable / linux for linux, portable in pairs) for title, pairs in figures.items()}
    rows = [
        [title, *(f"{median(pair[way] for pair in pairs) * 1e6:.0f}" for way in (0, 1)), f"{ratios[title]:.2f}"]
        for title, pairs in figures.items()
    ]
    print(table([placement.name, "Linux µs", "portable µs", "ratio"], rows, markdown), end="\n\n")
    slow = [title for title, ratio in ratios.items() if ratio > LIMIT]
    print(f"more than {LIMIT:g} times as long: {', '.join(slow) or 'nothing'}")
    return int(bool(slow))
