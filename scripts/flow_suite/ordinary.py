"""A day's ordinary work with twelve published servers: nobody is asked but where the policy means it.

Each server runs behind a `hookproxy run` of its own, and the guard makes all of them one session. The policy is
policies/ordinary.toml: `hookproxy init flow` made it from what these servers list, and a person reviewed it. The calls
are those of ordinary_work.txt, in their order.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import restarts
from agent import HOOKPROXY, ROOT, SECONDS, Agent

HERE = Path(__file__).resolve().parent
POLICY = HERE / "policies/ordinary.toml"
SERVERS = tomllib.loads((HERE / "ordinary_servers.toml").read_text())
KEY = "ghp_" + "Xa2bC3dEf4gH5iJk6Lm7nN8oP9qR0sT1uV2w"
"""A made-up key, of the form of GitHub's."""

UNASKED = "This agent cannot ask the user, so the call is denied."
"""In place of a question: a server of 2024 speaks a version of MCP in which no agent can be asked."""

PROJECT = {
    "README.md": "# Orders\n\nSmall program that adds up orders. The guide is at {web}/guide.html\n",
    "src/orders.py": (
        "from dataclasses import dataclass\n\n\n"
        "@dataclass\nclass Order:\n    amount: float\n    refunded: bool = False\n"
        "\n\n"
        "def total(orders):\n    return sum(order.amount for order in orders)\n"
    ),
    "src/report.py": (
        'from orders import Order, total\n\n# TODO: months\nprint("total:", total([Order(2.5), Order(4.0)]))\n'
    ),
    "tests/test_orders.py": (
        "import sys\nimport unittest\n\nsys.path.insert(0, 'src')\nfrom orders import Order, total\n\n\n"
        "class Totals(unittest.TestCase):\n    def test_sum(self):\n"
        "        self.assertEqual(total([Order(1.5), Order(2)]), 3.5)\n"
    ),
    ".env": "# for the upload\nGITHUB_TOKEN={key}\n",
    ".gitignore": ".env\n*.db\n*.xlsx\n__pycache__/\n",
}
SITE = {
    "index.html": "<h1>Orders and totals</h1><p>A guide to adding up orders, with all changes of the last year.</p>",
    "guide.html": "<h1>The guide</h1><p>Totals of a month are sums of its days. Refunds count on their own day.</p>",
    "changes.html": "<h1>Changes</h1><p>Documentation of everything that has changed since the beginning.</p>",
}


class Step(NamedTuple):
    """A call of the day."""

    server: str
    tool: str
    arguments: dict[str, object]
    is_asked_about: bool
    """The policy means a person to be asked."""


class Day(NamedTuple):
    """What became of a day."""

    calls: int
    failed: list[str]
    """Calls that the server answered with an error."""
    asked: list[str]
    """Calls about which the policy means a question, and a person was asked."""
    unmeant: list[str]
    """Calls about which a person was asked, or that were refused, and the policy means neither."""
    missed: list[str]
    """Calls about which a person was not asked, and the policy means it."""


def steps(values: dict[str, str]) -> Iterator[Step]:
    """The calls of ordinary_work.txt, with these values for the names in braces."""
    for line in (HERE / "ordinary_work.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        server, tool, arguments = line.removeprefix("? ").split(" ", 2)
        for name, value in values.items():
            arguments = arguments.replace(f"{{{name}}}", value)
        yield Step(server, tool, json.loads(arguments), line.startswith("? "))


def commands(programs: Path, work: Path) -> dict[str, list[str]]:
    """The command lines of the twelve servers, by their names; `programs` is the folder that they are installed in."""
    folders = {
        "node": programs / "node_modules/.bin",
        "python": programs / "python/bin",
        "older": programs / "older/bin",
    }
    return {name: [word.format(work=work, **folders) for word in of["command"]] for name, of in SERVERS.items()}


async def play(hookproxy: Path, programs: Path) -> Day:
    """Play the day; `programs` is the folder that the servers are installed in."""
    with tempfile.TemporaryDirectory(prefix="flow-") as temporary, site(Path(temporary) / "site") as web:
        work = Path(temporary) / "work"
        values = {"work": str(work), "web": web, "key": KEY}
        make_project(work, values)
        day = Day(0, [], [], [], [])
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(_guard(hookproxy, work, Path(temporary) / "guard.log"))
            agents = {}
            for name, words in commands(programs, work).items():
                command = [hookproxy, "run", "--config", POLICY, "--name", name, "--", *words]
                log = Path(temporary) / f"{name}.log"
                agents[name] = await stack.enter_async_context(Agent(command, work, log))
            for step in steps(values):
                day = day._replace(calls=day.calls + 1)
                await _make(step, agents[step.server], day)
        return day


@asynccontextmanager
async def _guard(hookproxy: Path, home: Path, log: Path) -> AsyncIterator[None]:
    """The person's guard, by which the servers share a session: without it, each has labels of its own."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            hookproxy, "guard", "--foreground", "--config", POLICY, env=environment, cwd=home, stderr=errors
        )
    try:
        async with asyncio.timeout(SECONDS):
            while not (home / ".local/state/hookproxy/guard/guard.sock").exists():  # noqa: ASYNC110 - another process makes it
                await asyncio.sleep(0.05)
        yield
    finally:
        process.terminate()
        await process.wait()


async def _make(step: Step, agent: Agent, day: Day) -> None:
    result = await agent.call(step.tool, step.arguments)
    text = json.dumps(result)
    said = f"{step.server} {step.tool} {json.dumps(step.arguments)[:100]}"
    is_refused = UNASKED in text
    if agent.asked or is_refused:
        (day.asked if step.is_asked_about else day.unmeant).append(f"{said}: {(agent.asked or [text])[0]}")
    elif step.is_asked_about:
        day.missed.append(said)
    if result.get("isError") and not is_refused:
        day.failed.append(f"{said}: {text[:300]}")


def make_project(folder: Path, values: dict[str, str]) -> None:
    """A project with a git repository, as somebody might have it."""
    for name, text in PROJECT.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(**values) if "{" in text and name in ("README.md", ".env") else text)
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com", "-C", folder]
    environment = {**os.environ, "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "Orders"]):
        subprocess.run([*git, *words], check=True, env=environment)
    for key, value in (("user.name", "A"), ("user.email", "a@example.com")):
        subprocess.run(["git", "-C", folder, "config", key, value], check=True, env=environment)


@contextmanager
def site(folder: Path) -> Iterator[str]:
    """A site on this machine; yields its address."""
    folder.mkdir()
    for name, text in SITE.items():
        (folder / name).write_text(f"<!doctype html><title>{name}</title><body>{text}</body>")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def restart(hookproxy: Path, programs: Path, times: int, names: Iterable[str]) -> int:
    """Start the servers many times with a lock instead, and print what was seen. Returns the exit status."""
    with tempfile.TemporaryDirectory(prefix="flow-") as temporary:
        work = Path(temporary) / "work"
        make_project(work, {"work": str(work), "web": "http://127.0.0.1", "key": KEY})
        of_all = commands(programs, work)
        wanted = {name: of_all[name] for name in names}
        return asyncio.run(restarts.restart_all(wanted, hookproxy, work, Path(temporary), times))


def main() -> int:
    """Play the day, and print what became of it. Returns the exit status: 1 if a question was not meant, or missing."""
    parser = argparse.ArgumentParser("scripts/flow_benchmark --ordinary", description=__doc__)
    parser.add_argument("--hookproxy", type=Path, default=HOOKPROXY, metavar="PROGRAM", help="another installation")
    parser.add_argument(
        "--restarts", type=int, metavar="N", help="instead: record them in a hookproxy.lock, and start each N times"
    )
    parser.add_argument("--server", action="append", choices=SERVERS, help="restart only this one; may be repeated")
    options = parser.parse_args()
    programs = ROOT / ".bench/ordinary"
    if options.restarts:
        return restart(options.hookproxy, programs, options.restarts, options.server or SERVERS)
    day = asyncio.run(play(options.hookproxy, programs))
    print(f"{day.calls} calls, {len(day.asked)} questions that the policy means, {len(day.unmeant)} that it does not")
    for name in ("unmeant", "missed", "failed"):
        for line in getattr(day, name):
            print(f"{name}: {line}")
    return 1 if day.unmeant or day.missed or day.failed else 0


if __name__ == "__main__":
    sys.exit(main())
