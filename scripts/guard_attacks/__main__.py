"""Kills the guard while it judges, and looks for what it lost or let pass.

In 50 places: a guard that waits is traced by strace, which kills it with SIGKILL at one of the system calls that it
makes for an event, every third of them. Without strace, or without the right to trace, it is killed at 50 times while
an event is on its way. What must hold afterwards:

- a call that the client let go on is in the audit, as begun, and one that the guard refused is there as refused;
- a call that a rule denies never goes on, whether another guard can be started or not;
- every line of the audit is whole.

In every order: 20 guards judge events whose hooks hang, and guards, clients and hooks are ended in random order by
SIGKILL, SIGTERM or SIGHUP. Afterwards no process of them is left, and the next event is judged.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hookproxy.dialects.agent_side import agent_side
from hookproxy.guard import entries

PLACES = 50
STEP = 3
"""System calls between two places: an event takes about 140."""
GUARDS = 20
SOON = 20.0
"""Seconds within which processes must have gone, on a busy machine."""

_CONFIG = '[permissions]\ndeny = ["Bash(rm *)"]\n[audit]\ncalls = "all"\n'
_HANGS = '[[hooks.PreToolUse]]\nmatcher = "Bash"\ncommand = "sleep 1000"\ntimeout = 900\n'
_PROGRAM = str(Path(sys.executable).parent / "hookproxy")


class Account:
    """A home folder with a configuration, and the guard of it."""

    def __init__(self, home: Path, config: str) -> None:
        self.home = home
        self.socket = home / "state" / "guard.sock"
        self.socket.parent.mkdir(parents=True, mode=0o700)
        self.config = home / ".config" / "hookproxy" / "hookproxy.toml"
        self.config.parent.mkdir(parents=True)
        self.config.write_text(config)
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(home), "MARK": str(home)}

    def words(self, program: str = _PROGRAM) -> list[str]:
        """The words of the client, as the entry of Claude Code that fails closed has them."""
        side = agent_side("claude")
        assert side is not None
        return shlex.split(entries.command(side, str(self.socket), program, fails_closed=True))

    def start_guard(self) -> subprocess.Popen[bytes]:
        """A guard that listens."""
        words = [_PROGRAM, "guard", "--socket", str(self.socket)]
        guard = subprocess.Popen(
            words, env=self.environ, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        until = time.monotonic() + SOON
        while not self._listens():
            if guard.poll() is not None or time.monotonic() > until:
                raise SystemExit("the guard does not start")
            time.sleep(0.01)
        return guard

    def _listens(self) -> bool:
        from hookproxy.guard import client

        connection = client.connected(str(self.socket), time.monotonic() + SOON)
        if connection is not None:
            connection.close()
        return connection is not None

    def records(self) -> list[dict[str, object]]:
        """What the audit has. Raises ValueError for a line that is not whole."""
        file = self.home / ".local" / "state" / "hookproxy" / "audit.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def processes(self) -> list[int]:
        """All processes that were started for this account: they have its mark."""
        mark = f"MARK={self.home}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:
                continue
        return found

    def end(self) -> None:
        """End all of them."""
        for pid in self.processes():
            _kill(pid, signal.SIGKILL)


def document(number: int, command: str) -> bytes:
    """Claude Code's document before this command, whose id has this number."""
    members = {"session_id": "s", "cwd": "/", "hook_event_name": "PreToolUse", "tool_name": "Bash"}
    return json.dumps({**members, "tool_use_id": f"t{number}", "tool_input": {"command": command}}).encode()


def _kill(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


@contextmanager
def killed_in_place(guard: int, number: int, tracer: str | None, seconds: float) -> Iterator[None]:
    """What happens within, which takes so long, is cut off by the end of the guard, in place `number`."""
    if tracer is None:
        # most of an event is the start of its client
        timer = threading.Timer(seconds * (0.5 + number / PLACES), _kill, (guard, signal.SIGKILL))
        timer.start()
        yield
        timer.join()
        return
    words = [
        tracer,
        "-qq",
        "-f",
        "-p",
        str(guard),
        "-o",
        "/dev/null",
        "-e",
        f"inject=all:signal=KILL:when={number * STEP}",
    ]
    tracing = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + SOON
    while "TracerPid:\t0\n" in (status := Path(f"/proc/{guard}/status").read_text()):
        if "State:\tZ" in status:  # the first place is where it waits
            break
        if tracing.poll() is not None or time.monotonic() > until:
            raise SystemExit("strace cannot trace: --without-strace")
        time.sleep(0.005)
    yield
    _kill(guard, signal.SIGKILL)
    tracing.wait()


def wrong(account: Account, number: int, command: str, done: subprocess.CompletedProcess[bytes]) -> str:
    """What must not have happened; empty: it has not."""
    output = json.loads(done.stdout)["hookSpecificOutput"] if done.stdout else {}
    refused = done.returncode == 2 or output.get("permissionDecision") == "deny"
    try:
        own = [record for record in account.records() if record["id"] == f"t{number}"]
    except ValueError:
        return "a line of the audit is not whole"
    if command.startswith("rm") and not refused:
        return f"a denied call went on: {done}"
    if not refused and not any(record["result"] == "begun" for record in own):
        return f"a call went on that is not recorded: {done}"
    if output and not any(record["result"] == "refused" for record in own):
        return f"the guard refused a call, and has not recorded it: {done}"
    return ""


def kill_in_places(folder: Path, tracer: str | None, program: str, name: str) -> list[str]:
    """Kill a guard in each place. `program` is what its client starts then. Returns what was wrong."""
    account = Account(folder, _CONFIG)
    problems, went_on, refused, cut_off = [], 0, 0, 0
    try:
        seconds = _seconds_of_event(account)
        for place in range(1, PLACES + 1):
            for command in ("ls", "rm x"):
                number = place * 2 + (command == "ls")
                guard = account.start_guard()
                with killed_in_place(guard.pid, place, tracer, seconds):
                    done = subprocess.run(
                        account.words(program),
                        input=document(number, command),
                        capture_output=True,
                        env=account.environ,
                        timeout=60,
                        check=False,
                    )
                cut_off += b"did not judge" in done.stderr
                went_on += not done.stdout and done.returncode == 0
                refused += bool(done.stdout)
                if problem := wrong(account, number, command, done):
                    problems.append(f"place {place}, {command}: {problem}")
                guard.kill()
                guard.wait()
                account.end()
    finally:
        account.end()
    print(f"{name}: {PLACES} places: {went_on} calls went on, {refused} were refused by a guard, {cut_off} without one")
    return problems


def _seconds_of_event(account: Account) -> float:
    """How long an event takes by the client, with a guard that runs already."""
    guard = account.start_guard()
    taken = []
    for number in range(-10, 0):
        begun = time.monotonic()
        subprocess.run(
            account.words(), input=document(number, "ls"), capture_output=True, env=account.environ, check=False
        )
        taken.append(time.monotonic() - begun)
    guard.kill()
    guard.wait()
    return statistics.median(taken)


def kill_in_every_order(folder: Path, rounds: int) -> list[str]:
    """End guards, clients and hooks of many accounts in random order. Returns what was wrong."""
    problems = []
    for turn in range(rounds):
        accounts = [Account(folder / f"{turn}-{number}", _CONFIG + _HANGS) for number in range(GUARDS)]
        problems += [f"round {turn + 1}: {problem}" for problem in _end_all(accounts)]
    print(f"in every order: {rounds} rounds with {GUARDS} guards, their clients and their hooks")
    return problems


def _end_all(accounts: list[Account]) -> Iterator[str]:
    clients = [_waiting_client(account) for account in accounts]
    if not _wait(lambda: all(map(_hooks, accounts)), 6 * SOON):
        yield "some hooks have not started"
    targets = [pid for account in accounts for pid in account.processes()]
    random.shuffle(targets)
    for pid in targets:
        _kill(pid, random.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)))
    for client in clients:
        client.kill()
        client.wait()
    if not _wait(lambda: not any(map(_left, accounts)), SOON):
        yield f"left: {[line for account in accounts for line in _left(account)]}"
    for account in accounts:
        account.config.write_text(_CONFIG)
        done = subprocess.run(
            account.words(), input=document(2, "rm x"), capture_output=True, env=account.environ, check=False
        )
        if problem := wrong(account, 2, "rm x", done):
            yield problem
        account.end()


def _waiting_client(account: Account) -> subprocess.Popen[bytes]:
    null = subprocess.DEVNULL
    client = subprocess.Popen(account.words(), stdin=subprocess.PIPE, stdout=null, stderr=null, env=account.environ)
    assert client.stdin is not None
    client.stdin.write(document(1, "ls"))
    client.stdin.close()
    return client


def _wait(is_so: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def _left(account: Account) -> list[str]:
    """What runs that is not a guard that a client has started meanwhile, and that waits for further events."""
    lines = [_line(pid) for pid in account.processes()]
    return [line for line in lines if line and " guard " not in line and "each()" not in line]


def _line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _hooks(account: Account) -> int:
    return sum(_line(pid).startswith("sleep ") for pid in account.processes())


def main() -> int:
    """1 if something was lost, let pass or left."""
    parser = argparse.ArgumentParser(prog="scripts/attack_guard", description=__doc__.splitlines()[0])
    parser.add_argument("--without-strace", action="store_true", help="kill it after times instead of at system calls")
    parser.add_argument("--rounds", type=int, default=3, help="of guards that die in every order (default: 3)")
    options = parser.parse_args()
    tracer = None if options.without_strace else shutil.which("strace")
    how = "system calls" if tracer else "times"
    with tempfile.TemporaryDirectory(prefix="attack-") as name:
        folder = Path(name)
        problems = kill_in_places(folder / "a", tracer, _PROGRAM, f"killed at {how}, and another guard starts")
        problems += kill_in_places(folder / "b", tracer, "/bin/false", f"killed at {how}, and no other can start")
        problems += kill_in_every_order(folder / "c", options.rounds)
    for problem in problems:
        print(f"WRONG: {problem}")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
