"""Measures hookproxy side by side with no proxy, the least that a Python relay can cost, and fastmcp's proxy.

Run it through scripts/bench, which prepares the environments.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from agent import Placement
from attacks import report_attacks
from console import measure_console
from contestants import DIRECT, OWN_ENVIRONMENT, PRE_HOOK, SPAWN, all_contestants, echo_server, try_out
from gateway import measure_gateway
from guard import measure_guard
from measures import Bench, Samples, hooked, remote, unhooked
from portable import measure_portable
from report import (
    FIGURES,
    FLOW_FIGURES,
    FLOWS,
    HOOK_FIGURES,
    HOOKED,
    RELAYS,
    REMOTE_FIGURES,
    REMOTES,
    RULE_FIGURES,
    RULED,
    RUNNER_FIGURES,
    RUNNERS,
    SECRET_FIGURES,
    SECRETS,
    Result,
    budget_rows,
    figure_rows,
    judge,
    table,
)

NOTES = """\
pinned: everything runs on one CPU; this measures the path length best. spread: the proxy and its hooks run on
one CPU, agent and server on another. There a call waits for four wake-ups across CPUs whatever the relay does,
so no proxy can beat fastmcp by more than the floor does. Each ratio is taken within one block, in which the
contestants run in shuffled order; the tables show the median over all blocks and the quartiles.
unmatched: hooks are configured, and none matches; budgets without a running hook apply to this one. /bin/true:
that program runs before each call. reader: a program that reads its input to the end runs after each call.
--url: the server is reached at an address; the bridge floor is asyncio and httptools without JSON, sessions and
errors. rules + audit: a hookproxy.toml has permission rules about the tool, and every call is recorded in full.
[secrets]: what looks like a secret is hidden, in messages that have none.
[flow]: the tool is a source and a sink of data, and each result is looked through for secrets.
keyed and signed audit: the same with required records and a keyed chain, and with signed checkpoints too.
spawn + wait: a small Python process calls os.posix_spawn and waits, for the same program, one after another.
For the 10 MB result it also sends the reader as many bytes as hookproxy sent it: only this time is
subtracted, and the time of the result itself in the pipes is not."""


def placements() -> list[Placement]:
    """Pinned and spread if there are two CPUs and the system lets us choose; otherwise unplaced."""
    if not hasattr(os, "sched_setaffinity"):
        return [Placement("free", None, None)]
    cpus = sorted(os.sched_getaffinity(0))
    pinned = Placement("pinned", cpus[0], cpus[0])
    return [pinned, Placement("spread", cpus[0], cpus[1])] if len(cpus) > 1 else [pinned]


def version_of(package: str, python: Path) -> str:
    """The version of a package in another environment, or a dash."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    except OSError:
        return "-"
    return done.stdout.strip() or "-"


def machine() -> str:
    """One line: what the figures were taken on and with."""
    cpu = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        cpu = found[1] if found else cpu
    try:
        ours = version("hookproxy")
    except PackageNotFoundError:
        ours = "-"
    server = "C" if len(echo_server()) == 1 else "Python"
    return (
        f"{os.cpu_count()} CPUs {cpu}, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, hookproxy {ours}, "
        f"fastmcp {version_of('fastmcp', OWN_ENVIRONMENT / 'bin' / 'python')}, "
        f"echo server in {server}, {time.strftime('%Y-%m-%d')}"
    )


def arguments() -> argparse.Namespace:
    """The command line."""
    names = sorted({measure.name for measure in unhooked() + hooked(Path()) + remote()} | {"start"})
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="about one minute; ratios are rough")
    parser.add_argument("--rounds", type=int, help="default: 5, or 2 with --quick")
    parser.add_argument("--gateway", action="store_true", help="only the gateway, beside nginx and other bridges")
    parser.add_argument("--console", action="store_true", help="only what a console costs the calls that it shows")
    parser.add_argument("--guard", action="store_true", help="only the guard of agents' own tools, and its client")
    parser.add_argument("--portable", action="store_true", help="only the portable way, beside Linux's own")
    parser.add_argument("--only", action="append", choices=names, default=[], help="only this; may be repeated")
    parser.add_argument("--markdown", action="store_true", help="print tables as Markdown")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write figures and ratios to a file")
    return parser.parse_args()


def check_hooks_ran(samples: Samples) -> None:
    """A call that is faster than starting its hook was not judged by it."""
    for (measure, placement), figures in samples.figures.items():
        if measure == "hook" and SPAWN in figures and PRE_HOOK in figures:
            fastest = min(min(part) for part in figures[PRE_HOOK].values())
            if fastest < min(min(part) for part in figures[SPAWN].values()) / 2:
                samples.faults.append(f"{PRE_HOOK}: {placement}: the hook did not run")


def paint(word: str, good: bool) -> str:
    """The word in green or red, where that is wanted: it says the same without."""
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return word
    return f"\033[{32 if good else 31}m{word}\033[0m"


def show(samples: Samples, results: list[Result], about: str, markdown: bool) -> None:
    """Print everything."""
    plain = (lambda word, _good: word) if markdown else paint
    parts = [
        (["no hook at work", "where", *RELAYS], figure_rows(samples, FIGURES, RELAYS)),
        (["a hook at work", "where", *HOOKED], figure_rows(samples, HOOK_FIGURES, HOOKED)),
        (["rules and an audit", "where", *RULED], figure_rows(samples, RULE_FIGURES, RULED)),
        (["hidden secrets", "where", *SECRETS], figure_rows(samples, SECRET_FIGURES, SECRETS)),
        (["where data may go", "where", *FLOWS], figure_rows(samples, FLOW_FIGURES, FLOWS)),
        (["a server at an address", "where", *REMOTES], figure_rows(samples, REMOTE_FIGURES, REMOTES)),
        (["other hooks", "where", *RUNNERS], figure_rows(samples, RUNNER_FIGURES, RUNNERS)),
        (["budget", "where", "measured", "quartiles", "limit", ""], budget_rows(results, plain)),
    ]
    for head, rows in parts:
        if rows:
            print(table(head, rows, markdown), end="\n\n")
    print(NOTES, about, sep="\n\n")
    for sign, notes in (("WRONG", samples.faults), ("note", samples.remarks)):
        for note in notes:
            print(f"{sign}: {note}")


def write_json(samples: Samples, results: list[Result], about: str, file: Path) -> None:
    """Everything measured, block by block in its raw unit (ns, per second, MB), and the ratios."""
    budgets = [
        {
            "budget": result.budget.title,
            "placement": result.placement,
            "measured": result.middle,
            "quartiles": [result.low, result.high],
            "limit": result.budget.limit,
            "unit": result.budget.unit,
            "kept": result.kept,
        }
        for result in results
    ]
    figures = [
        {"measure": measure, "placement": placement, "contestant": name, "round": block[0], "block": block[1]}
        | {"figures": numbers}
        for (measure, placement), by_contestant in samples.figures.items()
        for name, blocks in by_contestant.items()
        for block, numbers in blocks.items()
    ]
    document = {"about": about, "budgets": budgets, "faults": samples.faults, "figures": figures}
    file.write_text(json.dumps(document, indent=1) + "\n")


def main() -> int:
    """1 where one of ours was wrong or could not be started; a missed budget fails nothing."""
    options = arguments()
    options.json = options.json and options.json.resolve()
    rounds = options.rounds or (2 if options.quick else 5)
    about = machine()
    gc.disable()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name).resolve()
        os.chdir(folder)
        everywhere = placements()
        if options.gateway:
            worst = max(measure_gateway(one, folder / one.name, options.markdown) for one in everywhere)
            return max(worst, report_attacks(everywhere[-1], folder, options.markdown))
        if options.console:
            return max(measure_console(one, folder / one.name, options.markdown) for one in everywhere)
        if options.guard:
            return measure_guard(folder / "guard", options.markdown)
        if options.portable:
            return max(measure_portable(one, folder / one.name, rounds, options.markdown) for one in everywhere)
        contestants = all_contestants(folder)
        reasons = {who: try_out(one, everywhere[0], folder) for who, one in contestants.items()}
        able = {who: one for who, one in contestants.items() if reasons[who] is None}
        layer = Bench(able, folder, set(options.only), options.quick)
        for who, reason in reasons.items():
            if reason is not None:
                layer.samples.blame(contestants[who], "cannot start", reason)
        samples = layer.run(everywhere, rounds) if DIRECT in able else layer.samples
        os.chdir("/")
    check_hooks_ran(samples)
    results = judge(samples)
    show(samples, results, about, options.markdown)
    if options.json:
        write_json(samples, results, about, options.json)
    return 1 if samples.faults else 0


if __name__ == "__main__":
    sys.exit(main())
