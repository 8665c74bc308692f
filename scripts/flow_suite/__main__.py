"""Replays AgentDojo's tasks and injections behind `hookproxy run`, with the policies beside it and without a model.

Each user task runs by its ground truth alone, and with each injection: the attack's own calls come at once after what
it wrote was read, and, in another run, after the task. A scripted person says no to what is asked about the attack's
calls, and yes to what is asked about the task's own. AgentDojo's own checks say what became of it. Exit status: 1 if a
goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import report
import suites
from agent import HOOKPROXY
from episodes import Outcome, Way, play, play_bare
from suite_server import Preloaded

HERE = Path(__file__).resolve().parent
POLICIES = HERE / "policies"
ORDERS = ("read", "end")
AT_A_TIME = 2
"""Episodes: as many as this project's machines have cores."""

Job = tuple[str, str, str | None, str]


def main() -> int:
    """Play what the command line says, and print a table."""
    parser = argparse.ArgumentParser("scripts/flow_benchmark", description=__doc__)
    parser.add_argument("--suite", action="append", choices=suites.NAMES, help="only this suite; may be repeated")
    parser.add_argument("--action", choices=("ask", "deny"), default="ask", help="of all sinks (default: ask)")
    parser.add_argument("--by-session", action="store_true", help="all sinks by session, whatever their arguments are")
    parser.add_argument("--disguised", action="store_true", help="attackers spell addresses out, as in example dot com")
    parser.add_argument("--without-attacks", action="store_true", help="only the user tasks")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth pair of task and attack")
    parser.add_argument(
        "--policies", type=Path, default=POLICIES, metavar="FOLDER", help="default: policies beside this script"
    )
    parser.add_argument("--hookproxy", type=Path, default=HOOKPROXY, metavar="PROGRAM", help="another installation")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what became of each episode")
    options = parser.parse_args()
    names = options.suite or suites.NAMES
    with tempfile.TemporaryDirectory(prefix="flow-") as temporary:
        folder = Path(temporary)
        preloaded = Preloaded(str(folder / "socket"))
        try:
            outcomes = asyncio.run(_play_all(list(_jobs(options, names)), options, folder))
        finally:
            preloaded.end()
    if options.json:
        options.json.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))
    text, missed = report.table(outcomes, options.action)
    print(text)
    return 1 if missed else 0


def _jobs(options: argparse.Namespace, names: list[str]) -> Iterator[Job]:
    for name in names:
        for user_task in suites.suite(name).user_tasks:
            yield name, user_task, None, ""
    if options.without_attacks:
        return
    pairs = [
        (name, user_task, injection_task)
        for name in names
        for user_task in suites.suite(name).user_tasks
        for injection_task in suites.suite(name).injection_tasks
        if (name, injection_task) not in suites.WITHOUT_CALLS
    ]
    for pair in pairs[:: options.every]:
        for order in ORDERS:
            yield *pair, order


async def _play_all(jobs: list[Job], options: argparse.Namespace, folder: Path) -> list[Outcome]:
    """Play all, a few at a time; what an attack does without hookproxy is noted beside."""
    server = [sys.executable, "-I", "-S", HERE / "suite_server.py", "--started-at", folder / "socket"]
    ways = {
        name: Way(options.hookproxy, _config(options, name, folder), server, options.disguised) for name in suites.NAMES
    }
    waiting, outcomes = list(enumerate(jobs)), {}
    started = time.monotonic()

    async def work() -> None:
        while waiting:
            number, (name, user_task, injection_task, order) = waiting.pop(0)
            outcome = await play(ways[name], name, user_task, injection_task, order)
            if injection_task:
                outcome.breaks_alone = play_bare(name, user_task, injection_task, order)
            outcomes[number] = outcome
            if len(outcomes) % 100 == 0:
                seconds = time.monotonic() - started
                print(f"{len(outcomes)} of {len(jobs)} episodes, {seconds:.0f} s", file=sys.stderr)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_A_TIME):
            group.create_task(work())
    return [outcomes[number] for number in sorted(outcomes)]


def _config(options: argparse.Namespace, name: str, folder: Path) -> Path:
    """A copy of the suite's policy, in which every sink has the action, and looks at what the command line says."""
    text = (options.policies / f"{name}.toml").read_text()
    assert "\naction" not in text, "policies leave it to us"
    if options.by_session:
        text = re.sub(r"^(?:by|arguments) = .*\n", "", text, flags=re.MULTILINE)
    if options.action != "ask":
        text = re.sub(r"^\[\[flow\.sinks\]\]\n", f'\\g<0>action = "{options.action}"\n', text, flags=re.MULTILINE)
    config = folder / f"{name}.toml"
    config.write_text(text)
    return config


sys.exit(main())
