"""Published servers behind `hookproxy serve`, each driven from the inside to reach what is not theirs.

Each server is tried twice: by its own tools, and by a probe program that runs in the same sandbox layout, whose tries
are those of tests/end/sandbox_tries. As root the gateway and five users have accounts of their own, which are made for
it and removed again. It prints a table of servers, tries and successes; its status is 1 if anything was reached.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from tries import CONNECTED, tries

from tests.end.sandbox_tries import COMMANDS, HARMLESS, TRIES

ACCOUNTS: Final = tuple(f"hp-attack-{os.getpid()}-{number}" for number in range(6))
SECONDS: Final = 20.0  # of one call: a server that waits for a network that is not there takes ten
START_SECONDS: Final = 90.0  # until a server answers on a loaded machine
CREATE: Final = 0o1600  # IPC_CREAT, for the owner
SHM_KEY, QUEUE_KEY = 0x5219_1001, 0x5219_1002
SECRET: Final = f"sekret-{secrets.token_hex(8)}"
PROBE: Final = Path(__file__).parents[2] / "tests" / "end" / "sandbox_probe.py"


class Result(Struct):
    """What came of the tries at one server."""

    server: str
    account: str
    own: int = 0
    probe: int = 0
    refused: str = ""
    """Why the server could not be driven."""
    reached: list[str] = []


class Session:
    """A user's session at a server of the gateway."""

    def __init__(self, address: str, server: str, uid: int) -> None:
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.settimeout(START_SECONDS)
        with acting_as(uid):
            self.connection.connect(address)
        self.connection.sendall(f"hookproxy 1\nserver {server}\n\n".encode())
        self.file = self.connection.makefile("rb")
        if not (line := self.file.readline()).startswith(b"ok"):
            raise OSError(f"the session is refused: {line!r} {self.file.readline()!r}")
        self.number = 0
        client = {"name": "attack", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self.send({"method": "notifications/initialized"})
        self.connection.settimeout(SECONDS)

    def send(self, message: Mapping[str, object]) -> None:
        """Send a message that waits for nothing."""
        self.connection.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def ask(self, method: str, params: object) -> str:
        """The response, as the text of its JSON."""
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while line := self.file.readline():
            message = json.loads(line)
            if "method" in message:
                if "id" in message:
                    self.send({"id": message["id"], "error": {"code": -32601, "message": "not here"}})
            elif message.get("id") == self.number:
                return json.dumps(message, ensure_ascii=False)
        raise OSError("the session has ended")

    def call(self, tool: str, arguments: object) -> str:
        """The response to a call."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def probe(self, tool: str, text: str) -> str:
        """What the probe says."""
        answer = json.loads(self.call(tool, {"text": text}))
        return str(answer["result"]["content"][0]["text"]) if "result" in answer else f"refused: {answer}"

    def close(self) -> None:
        """End the session."""
        self.file.close()
        self.connection.close()


@contextmanager
def acting_as(uid: int) -> Iterator[None]:
    """The kernel tells the gateway who connects: the effective account."""
    before = os.geteuid()
    if uid != before:
        os.seteuid(uid)
    try:
        yield
    finally:
        if uid != before:
            os.seteuid(before)


class Box:
    """A gateway with what an attacker wants."""

    def __init__(
        self, bench: Path, servers: Mapping[str, Any], uids: list[int], sandbox: str, stack: ExitStack
    ) -> None:
        self.servers, self.uids = servers, uids
        self.is_control = sandbox == "off"
        self.verbose = False
        self.folder = Path(tempfile.mkdtemp(prefix="run-", dir=bench))
        stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.socket = self.folder / "open" / "mcp.sock"
        self.state = self.folder / "state" / "hookproxy"
        for folder in (self.socket.parent, self.state, self.folder / "work", self.folder / "home"):
            folder.mkdir(parents=True)
        for name in ("tokens", "seal", "credential"):
            (self.folder / name).write_text(f"{SECRET} {name} {os.urandom(32).hex()}\n")
            (self.folder / name).chmod(0o600)
        (self.folder / "hook").write_text(f"#!/bin/sh\n# {SECRET}\n")
        (self.folder / "hook").chmod(0o755)
        self.work = {name: self.folder / "work" / name for name in servers}
        for work in self.work.values():
            work.mkdir()
            subprocess.run(["git", "init", "-q", work], check=True)
            (work / "link").symlink_to("/")
            command = f"cat {self.folder}/tokens {self.folder}/seal >{work}/out; false"  # as another server could write
            subprocess.run(["git", "-C", work, "config", "core.fsmonitor", command], check=True)
        self._put_probes(bench, stack)
        for name in servers:  # what other users have there
            for other in (name, f"{name}-probe"):
                (self.state / "servers" / other / "uid-4711-bob").mkdir(parents=True)
                (self.state / "servers" / other / "uid-4711-bob" / "private").write_text(SECRET)
        self.config = self.folder / "gateway.toml"
        self.config.write_text(self._configuration(sandbox))
        self._give_to(uids[0])
        for path in (self.folder, self.socket.parent):
            path.chmod(0o755)  # agents must reach the socket; the files themselves are protected
        self.process = self._start(bench, stack)
        self.known = self._known(stack)

    def _put_probes(self, bench: Path, stack: ExitStack) -> None:
        self.probes: dict[str, Path] = {}
        for name, server in self.servers.items():
            beside = Path(self._text(server["beside"], bench, name))
            self.probes[name] = beside / f"hp_attack_{name.replace('-', '_')}.py"
            shutil.copy(PROBE, self.probes[name])
            with suppress(OSError):
                os.setxattr(self.probes[name], "user.kept", b"1")
            stack.callback(self.probes[name].unlink, missing_ok=True)

    def _text(self, text: str, bench: Path, server: str) -> str:
        modules = bench / "node_modules"
        names = {"modules": modules, "node": modules / ".bin"}
        names |= {name: bench / name / "bin" for name in ("python", "older")}
        for name, path in {**names, "work": self.work[server]}.items():
            text = text.replace(f"{{{name}}}", str(path))
        return text

    def _configuration(self, sandbox: str) -> str:
        bench = self.folder.parent
        lines = [
            f"# {SECRET}",
            f'[gateway]\nlisten = ["unix:{self.socket}"]\nsocket_mode = "0666"',
            f'sandbox = "{"auto" if self.is_control else sandbox}"\nseal_keys = ["seal"]\ntokens = "tokens"',
            '[audit]\ncalls = "all"',
            f'[[hooks.PreToolUse]]\ncommand = "{self.folder}/hook"\nmatcher = "nothing"',
        ]
        for name, server in self.servers.items():
            words = [self._text(word, bench, name) for word in server["command"]]
            probe = ["/usr/bin/python3", "-S", "-E", str(self.probes[name])]
            env = "".join(f"{key} = {json.dumps(value)}\n" for key, value in server.get("env", {}).items())
            shown = f"sandbox.write = [{json.dumps(str(self.work[name]))}]"
            table = 'sandbox = "off"' if self.is_control else shown
            for entry, command in ((name, words), (f"{name}-probe", probe)):
                lines.append(f"[servers.{entry}]\ncommand = {json.dumps(command)}\n{table}")
                lines.append(f"[servers.{entry}.env]\n{env}")
        lines.append('[servers.locked]\ncommand = ["cat"]\ncredentials = { T = "file:credential" }')
        return "\n".join(lines) + "\n"

    def _give_to(self, uid: int) -> None:
        if uid == os.geteuid():
            return
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, uid, uid, follow_symlinks=False)

    def _start(self, bench: Path, stack: ExitStack) -> subprocess.Popen[bytes]:
        program = bench / "gateway" / "bin" / "hookproxy"
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.folder / "home"), "LANG": "C.UTF-8"}
        env |= {"XDG_STATE_HOME": str(self.folder / "state"), "E2E_MARK": SECRET}
        account = self.uids[0] if self.uids[0] != os.geteuid() else None
        self.log = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hp-attack-")), "log")
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                [program, "serve", "--config", self.config],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=env,
                cwd=self.folder,
                start_new_session=True,
                user=account,
                group=account,
                extra_groups=None if account is None else [],
            )
        stack.callback(self._end, process)
        end = time.monotonic() + START_SECONDS
        while "serves " not in (text := self.log.read_text(errors="replace")):
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"the gateway does not start: {text}")
            time.sleep(0.05)
        return process

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _known(self, stack: ExitStack) -> dict[str, Any]:
        """What the attacker knows of it."""
        abstract = f"\0hp-attack-{os.getpid()}"
        listening = stack.enter_context(socket.socket(socket.AF_UNIX))
        listening.bind(abstract)
        listening.listen()
        datagrams = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        datagrams.bind(str(self.folder / "datagrams"))
        os.chmod(self.folder / "datagrams", 0o666)
        marker = stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp", prefix="hp-attack-"))
        libc = ctypes.CDLL(None)
        with acting_as(self.uids[0]):
            shm, queue = libc.shmget(SHM_KEY, 16, CREATE), libc.msgget(QUEUE_KEY, CREATE)
            libc.msgsnd(queue, struct.pack("l8s", 1, b"for-them"), 8, 0)
            semaphore = libc.semget(QUEUE_KEY, 1, CREATE)
        stack.callback(libc.semctl, semaphore, 0, 0, 0)
        stack.callback(libc.shmctl, shm, 0, None)
        stack.callback(libc.msgctl, queue, 0, None)
        maps = Path(f"/proc/{self.process.pid}/maps").read_text()
        return {
            **{name: str(self.folder / name) for name in ("tokens", "seal", "credential", "hook")},
            **{"config": str(self.config), "audit": str(self.state / "audit.jsonl"), "folder": str(self.folder)},
            **{"state": str(self.state), "runs": str(self.state / "runs"), "home": str(self.folder / "home")},
            "site": str(next((self.folder.parent / "gateway" / "lib").glob("python3*/site-packages"))),
            "socket": str(self.socket),
            "pid": self.process.pid,
            "address": int(maps.partition("-")[0], 16),
            "abstract": abstract,
            "datagrams": str(self.folder / "datagrams"),
            "marker": os.path.basename(marker),
            **{"shm": shm, "shm_key": SHM_KEY, "shm_name": "nothing", "queue": queue, "queue_key": QUEUE_KEY},
            "semaphore": semaphore,
        }

    def seen(self) -> dict[str, object]:
        """What no try may change."""
        files = {name: Path(self.known[name]) for name in ("config", "tokens", "seal", "credential", "hook")}
        state: dict[str, object] = {}
        for name, path in files.items():
            with suppress(OSError):
                found = path.stat()
                state[name] = (path.read_bytes(), found.st_mode, found.st_uid, found.st_mtime)
        audit = Path(self.known["audit"])
        state["audit"] = audit.exists() and audit.stat().st_ino
        state["names"] = sorted({path.name for path in self.folder.iterdir()} | {p.name for p in self.state.iterdir()})
        state["private"] = sorted(p.read_text() for p in self.state.glob("servers/*/uid-4711-bob/private"))
        walk = os.walk(self.state / "servers")  # unlike a glob it goes on where a folder is removed meanwhile
        state["planted"] = [folder for folder, folders, files in walk if "planted" in (*folders, *files)]
        state["alive"] = self.process.poll() is None
        return state


def attack(box: Box, name: str, uid: int, victim: int) -> Result:
    """All tries at one server, as this user; the victim has a session there, too."""
    result = Result(name, pwd.getpwuid(uid).pw_name)
    with suppress(OSError):
        session = Session(str(box.socket), f"{name}-probe", victim)
        session.probe("shell", f"echo {SECRET} >~/private; cat ~/private")
        session.close()
    before = box.seen()
    folders = box.state / "servers"
    others = {key: str(folders / key / "uid-4711-bob") for key in (name, f"{name}-probe")}
    try:
        _by_own_tools(box, name, uid, result, others[name], before)
    except (OSError, ValueError) as error:
        result.refused = str(error)[:100] or type(error).__name__
    try:
        _by_probe(box, name, uid, result, others[f"{name}-probe"], before)
    except (OSError, ValueError) as error:
        result.reached.append(f"the probe could not be driven: {error}")
    return result


def _by_own_tools(box: Box, name: str, uid: int, result: Result, other: str, before: Mapping[str, object]) -> None:
    known = {key: str(value) for key, value in box.known.items()}
    private = next((str(path) for path in (box.state / "servers" / f"{name}-probe").glob("uid-*/private")), other)
    known |= {"work": str(box.work[name]), "private": private, "other": f"{other}/private", "others": other}
    session = Session(str(box.socket), name, uid)
    for what, tool, arguments in tries(box.servers[name], known):
        if box.is_control and not what.startswith(("read ", "list ", "fetch ", "run cat ", "run ls ")):
            continue
        result.own += 1
        try:
            answer = session.call(tool, arguments)
        except OSError:  # it waits, or has ended: what it wrote counts all the same
            answer = ""
            session.close()
            session = Session(str(box.socket), name, uid)
        if box.verbose:
            sys.stderr.write(f"{name}: {tool}: {what}: {answer[:200]}\n")
        if SECRET in answer or CONNECTED in answer or _lists(answer, what):
            result.reached.append(f"{tool}: {what}: {answer[:300]}")
        if box.seen() != before:
            result.reached.append(f"{tool}: {what}: changed something")
            before = box.seen()
    session.close()
    result.reached += [f"copied to {path}" for path in _copies(box, name)]


def _copies(box: Box, name: str) -> Iterator[Path]:
    """Files with the secret where the server writes; what was put there for another user is not one."""
    for top in (box.work[name], box.state / "servers" / name):
        for folder, _, names in os.walk(top):  # what is removed meanwhile is left out
            for path in (Path(folder, file) for file in names if file != "config"):
                with suppress(OSError):
                    own = not path.is_symlink() and path.parent.name != "uid-4711-bob"
                    if own and SECRET.encode() in path.read_bytes():
                        yield path


def _lists(answer: str, what: str) -> bool:
    """Whether the names of the gateway's files are in the answer, and not only in what it repeats."""
    return "gateway.toml" in answer and "gateway.toml" not in what and "audit.jsonl" not in what


def _by_probe(box: Box, name: str, uid: int, result: Result, other: str, before: Mapping[str, object]) -> None:
    known = {**box.known, "other": other, "program": str(box.probes[name])}
    session = Session(str(box.socket), f"{name}-probe", uid)
    for what, code in TRIES.items():
        if box.is_control and what not in HARMLESS:
            continue
        result.probe += 1
        answer = session.probe("python", f"C = {known!r}\n{code}")
        if not answer.startswith("refused: ") and json.loads(answer):
            result.reached.append(f"probe: {what}: {answer[:200]}")
    for what, command in COMMANDS.items():
        if box.is_control:
            break
        result.probe += 1
        if SECRET in session.probe("shell", command.format(**known)):
            result.reached.append(f"probe: {what}")
    session.close()
    if box.seen() != before:
        result.reached.append("probe: something was changed")


@contextmanager
def accounts() -> Iterator[list[int]]:
    """The accounts of the gateway and five users; without root it is ours for all."""
    if os.geteuid() != 0:
        yield [os.getuid()] * len(ACCOUNTS)
        return
    try:
        for name in ACCOUNTS:
            subprocess.run(["useradd", "--no-create-home", "--shell", "/usr/sbin/nologin", name], check=True)
        yield [pwd.getpwnam(name).pw_uid for name in ACCOUNTS]
    finally:
        for name in ACCOUNTS:
            subprocess.run(["userdel", name], check=False, stderr=subprocess.DEVNULL)


def main() -> int:
    """Attack all servers. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="scripts/attack_sandbox", description=__doc__)
    parser.add_argument("bench", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("servers", metavar="SERVER", nargs="*", help="only these (default: all)")
    parser.add_argument(
        "--sandbox",
        choices=("bubblewrap", "landlock", "off"),
        default="bubblewrap",
        help="what confines them; off: only tries that change nothing, to see that they reach something then",
    )
    parser.add_argument("--verbose", action="store_true", help="print what each tool answers")
    options = parser.parse_intermixed_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that accounts are removed
    servers = tomllib.loads(Path(__file__).with_name("servers.toml").read_text())
    if unknown := set(options.servers) - set(servers):
        parser.error(f"there is no {', '.join(sorted(unknown))}: {', '.join(servers)}")
    if options.servers:
        servers = {name: servers[name] for name in options.servers}
    results = []
    with accounts() as uids, ExitStack() as stack:
        box = Box(options.bench.resolve(), servers, uids, options.sandbox, stack)
        box.verbose = options.verbose
        for number, name in enumerate(servers):
            attacker, victim = uids[1 + number % 5], uids[1 + (number + 1) % 5]
            results.append(attack(box, name, attacker, victim))
            sys.stderr.write(
                f"{name}: {results[-1].own + results[-1].probe} tries, {len(results[-1].reached)} reached\n"
            )
    print(f"| server | by its own tools | by a probe beside it | reached ({options.sandbox}) |\n|---|---|---|---|")
    for result in results:
        own = result.refused or str(result.own)
        print(f"| {result.server} | {own} | {result.probe} | {len(result.reached)} |")
    for result in results:
        for line in result.reached:
            print(f"{result.server} as {result.account}: {line}")
    return 1 if any(result.reached for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
