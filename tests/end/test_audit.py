"""Sixteen real proxies on one audit file, killed while they work: all their records are there, in one chain."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE
from typing import Final

from hookproxy.audit.hash_chain import is_whole
from tests.support.program import HOOKPROXY

PROXIES: Final = 16
CALLS: Final = 30
SERVER: Final = Path(__file__).parents[1] / "docs" / "tiny_server.py"
MAX_FILE_BYTES: Final = 65536
CONFIG: Final = f"""
[audit]
file = "audit.jsonl"
calls = "all"
required = true
chain = true
shared = true
max_file_bytes = {MAX_FILE_BYTES}
redact_keys = ["password"]
"""


def test_sixteen_proxies_that_are_killed_keep_one_chain(tmp_path: Path) -> None:
    (tmp_path / "hookproxy.toml").write_text(CONFIG)
    hookproxy = [HOOKPROXY]
    command = [*hookproxy, "run", "--config", str(tmp_path / "hookproxy.toml"), "--", sys.executable, str(SERVER)]
    proxies = [
        subprocess.Popen(command, bufsize=0, cwd=tmp_path, stdin=PIPE, stdout=PIPE, stderr=PIPE) for _ in range(PROXIES)
    ]
    answered: list[set[tuple[int, int]]] = [set() for _ in proxies]
    try:
        for number, one in enumerate(proxies):
            assert one.stdin is not None
            one.stdin.write(b"".join(call(number, each) for each in range(CALLS)))
            one.stdin.flush()
        for number, one in enumerate(proxies):
            assert one.stdout is not None
            for _ in range(1 + number):
                note_answer(answered[number], number, one.stdout.readline())
            one.kill()  # some have done all their calls by now, others few
    finally:
        for one in proxies:
            one.kill()
    told = list[bytes]()
    for number, one in enumerate(proxies):
        output, errors = one.communicate()
        told.append(errors)
        for line in output.splitlines(keepends=True):
            if line.endswith(b"\n"):
                note_answer(answered[number], number, line)
    files = [each for each in tmp_path.glob("audit.jsonl*") if each.suffix != ".lock"]
    lines = [line for each in files for line in each.read_bytes().split(b"\n") if line]
    found = [json.loads(line) for line in lines if is_whole(line)]
    recorded = [(one["arguments"]["proxy"], one["id"]) for one in found if one.get("result", "begun") != "begun"]
    started = [(one["arguments"]["proxy"], one["id"]) for one in found if one.get("result") == "begun"]
    assert len(recorded) == len(set(recorded)), "each once"
    assert len(started) == len(set(started)), "each once"
    assert set(recorded) <= set(started)
    assert set().union(*answered) <= set(started), "no answer without a line"
    # A record waits while the lock cannot be had for a second, because the machine is busy; that is said.
    silent = [number for number, errors in enumerate(told) if b"the audit log cannot be written" not in errors]
    assert set().union(*(answered[number] for number in silent)) <= set(recorded), "no answer without its record"
    assert {one["arguments"]["password"] for one in found if "tool" in one} == {"[redacted]"}
    checked = subprocess.run(
        [*hookproxy, "audit", "verify", str(tmp_path / "audit.jsonl")], capture_output=True, encoding="utf-8"
    )
    assert checked.returncode == 0, checked.stdout
    assert all(each.stat().st_size <= MAX_FILE_BYTES for each in files)  # usually there are more than two
    assert checked.stdout.count("chained lines are unchanged") == len(files)


def note_answer(answered: set[tuple[int, int]], proxy: int, line: bytes) -> None:
    """Note a call that was answered by the server.

    A proxy that does not get the lock of the file within a second, because the machine is busy, says that instead: such
    a call needs no line.
    """
    message = json.loads(line)
    if b"the configuration requires an audit log and it cannot be written" not in line:
        answered.add((proxy, message["id"]))


def call(proxy: int, number: int) -> bytes:
    arguments = {"proxy": proxy, "text": "x" * 300, "password": "hunter2"}
    params = {"name": "echo", "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode() + b"\n"


REQUIRED: Final = """
[audit]
file = "audit.jsonl"
calls = "all"
required = true
"""


def required_run(folder: Path, limit: int = resource.RLIM_INFINITY) -> subprocess.Popen[bytes]:
    """A proxy with a required audit in front of a server that writes what it gets to the file `got`."""
    (folder / "hookproxy.toml").write_text(REQUIRED)
    command = [HOOKPROXY, "run", "--config", "hookproxy.toml", "--", "tee", "got"]
    return subprocess.Popen(
        command,
        cwd=folder,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )


def forwarded(folder: Path) -> list[int]:
    return [json.loads(line)["id"] for line in (folder / "got").read_bytes().splitlines()]


def begun(folder: Path) -> list[int]:
    """The calls with a line that they have begun; pieces of lines are left out."""
    lines = (folder / "audit.jsonl").read_bytes().split(b"\n")
    records = [json.loads(line) for line in lines if is_whole(line)]
    return [one["id"] for one in records if one["result"] == "begun"]


def test_no_call_runs_whose_line_a_limit_on_files_keeps_from_the_disk(tmp_path: Path) -> None:
    whole_calls = b"".join(call(0, number) for number in range(300))
    one = required_run(tmp_path, limit=1024 * 1024 + 20_000)
    output, errors = one.communicate(whole_calls, timeout=60)
    ran, refused = forwarded(tmp_path), output.count(b"requires an audit log and it cannot be written")
    assert 0 < len(ran) < 300
    assert len(ran) + refused == 300
    assert set(ran) <= set(begun(tmp_path))
    assert b"the limit of ulimit -f" in errors


def test_after_a_kill_no_call_that_ran_is_missing(tmp_path: Path) -> None:
    one = required_run(tmp_path)
    assert one.stdin is not None
    assert one.stdout is not None
    one.stdin.write(b"".join(call(0, number) for number in range(200)))
    one.stdin.flush()
    for _ in range(20):
        one.stdout.readline()
    one.kill()
    one.communicate()
    assert len(forwarded(tmp_path)) >= 20
    assert set(forwarded(tmp_path)) <= set(begun(tmp_path))
    shown = subprocess.run([HOOKPROXY, "audit", "audit.jsonl"], cwd=tmp_path, capture_output=True, encoding="utf-8")
    assert shown.stdout.count("  begun  ") >= 20
