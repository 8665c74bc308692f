"""What a console costs the calls that it shows, and how long its pages take: scripts/bench --console.

The same run is measured without a console, and with one that reads all it gets. Its pages are read from a console with
an audit of 100,000 lines, without a browser: what a browser adds does not grow with the audit.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from agent import Fault, Placement, Session, move_to, time_limit
from contestants import configured, start
from gateway import cpu_seconds
from report import table

WITHOUT, WITH = "no console", "a console"
BLOCKS = 8
CALLS = 4000
"""In one block with 64 in flight: more than a second of calls."""

LINES = 100_000
PAINT_LIMIT = 1.0
"""Seconds for the first page of a long history."""

_READER = """
import sys
from hookproxy.live import registry
[name] = registry.names(sys.argv[1])
console = registry.connect(sys.argv[1], name)
console.setblocking(True)
print("reads", flush=True)
while console.recv(1 << 20):
    pass
"""


@contextmanager
def reading(folder: Path, placement: Placement) -> Iterator[None]:
    """A console that reads what the only run in this folder says."""
    move_to(placement.agent)
    reader = subprocess.Popen([sys.executable, "-c", _READER, str(folder)], stdout=subprocess.PIPE)
    assert reader.stdout is not None
    try:
        if not reader.stdout.readline():
            raise Fault("the console finds no run")
        yield
    finally:
        reader.kill()
        reader.wait()
        reader.stdout.close()


def block(peer: Session) -> dict[str, float]:
    """The measures of one block."""
    before = cpu_seconds(peer.pid)
    calls = peer.rate(CALLS, 64)[0]
    cpu = (cpu_seconds(peer.pid) - before) / CALLS
    return {
        "a call, p50 µs": median(peer.latencies(200, 10)) / 1e3,
        "64 in flight, thousand calls/s": calls / 1e3,
        "64 in flight, µs of CPU a call": cpu * 1e6,
    }


def measure_feed(placement: Placement, folder: Path) -> dict[str, dict[str, list[float]]]:
    """Each measure of a run that records all calls, without a console and with one."""
    os.environ["XDG_RUNTIME_DIR"] = str(folder)
    figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with time_limit():
        peer = start(configured(folder), placement, folder)
    assert isinstance(peer, Session)
    try:
        block(peer)
        for _ in range(BLOCKS):
            for way in random.sample((WITHOUT, WITH), 2):
                with time_limit():
                    if way == WITH:
                        with reading(folder / "hookproxy", placement):
                            taken = block(peer)
                    else:
                        taken = block(peer)
                for measure, figure in taken.items():
                    figures[measure][way].append(figure)
    finally:
        peer.stop()
    return figures


def write_audit(path: Path) -> None:
    """An audit of the last days."""
    now = datetime.now(UTC)
    with path.open("w") as file:
        for number in range(LINES):
            at = now - timedelta(seconds=2 * (LINES - number))
            record = {
                "v": 1, "time": at.isoformat(timespec="milliseconds"), "call": f"run-{number}", "session": "s",
                "server": ("files", "git")[number % 2], "tool": ("read_file", "write_file", "log")[number % 3],
                "id": number, "arguments": {"path": f"/home/anna/file-{number}"}, "hooks": [], "changed": [],
                "decision": "deny" if number % 9 == 0 else "allow", "reason": "", "by": "",
                "result": "refused" if number % 9 == 0 else "ok", "ms": 30.5, "hook_ms": 12.0, "agent": "bench 1",
            }  # fmt: skip
            file.write(json.dumps(record, separators=(",", ":")) + "\n")


def measure_history(placement: Placement, folder: Path) -> list[float]:
    """Seconds until the first page of the history has come, for a console that has just started."""
    write_audit(folder / "audit.jsonl")
    move_to(placement.proxy)
    command = [str(Path(sys.executable).parent / "hookproxy"), "console", "--audit", str(folder / "audit.jsonl")]
    console = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder)
    move_to(placement.agent)
    assert console.stdout is not None
    try:
        found = re.search(r"http://([^/\s]+)(/\S*)", console.stdout.read(1) + console.stdout.readline())
        while found is None:
            found = re.search(r"http://([^/\s]+)(/\S*)", console.stdout.readline())
        agent = http.client.HTTPConnection(found[1])
        agent.request("GET", found[2])
        response = agent.getresponse()
        response.read()
        cookie, path, *_ = str(response.getheader("set-cookie")).split("; ")
        taken = []
        for _ in range(BLOCKS):
            begun = time.perf_counter()
            agent.request("GET", f"{path.removeprefix('Path=')}history", headers={"Cookie": cookie})
            page = agent.getresponse()
            text = page.read()
            taken.append(time.perf_counter() - begun)
            if page.status != http.client.OK or b"read_file" not in text:
                raise Fault(f"the history cannot be read: {page.status}")
        return taken
    finally:
        console.terminate()
        console.wait()
        console.stdout.close()


def measure_console(placement: Placement, folder: Path, markdown: bool) -> int:
    """Print what a console costs, and how long its history takes. Returns 1 if it is wrong or too slow."""
    folder.mkdir(mode=0o700)
    try:
        figures = measure_feed(placement, folder)
        pages = measure_history(placement, folder)
    except Fault as fault:
        print(f"WRONG: {fault}")
        return 1
    rows = [[measure, f"{median(by[WITHOUT]):.1f}", f"{median(by[WITH]):.1f}"] for measure, by in figures.items()]
    print(table([f"a run that records all calls, {placement.name}", WITHOUT, WITH], rows, markdown), end="\n\n")
    first, later = pages[0], median(pages[1:])
    print(f"the first page of {LINES:,} recorded calls: {first * 1e3:.0f} ms, again: {later * 1e3:.0f} ms\n")
    return int(first > PAINT_LIMIT)
