"""A small MCP agent over pipes, line by line, and what tests must know about other processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import anyio

from tests.support.program import HOOKPROXY as HOOKPROXY

Json = dict[str, Any]

SERVER: Final = (sys.executable, "-S", "-E", str(Path(__file__).with_name("tool_server.py")))
PATIENCE: Final = (
    30.0  # seconds until a test stops waiting for what should come at once: other tests run at the same time
)
STATELESS: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "lean-agent", "version": "1"},
}


def request(number: int | str, method: str, **params: object) -> Json:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def call(number: int | str, tool: str, **arguments: object) -> Json:
    return request(number, "tools/call", name=tool, arguments=arguments)


def stateless_call(number: int | str, tool: str, **arguments: object) -> Json:
    return request(number, "tools/call", name=tool, arguments=arguments, _meta=STATELESS)


def notification(method: str, **params: object) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def cancel(number: int | str) -> Json:
    return notification("notifications/cancelled", requestId=number)


INITIALIZE: Final = request(
    "init",
    "initialize",
    protocolVersion="2025-11-25",
    capabilities={},
    clientInfo={"name": "lean-agent", "version": "1"},
)
INITIALIZED: Final = {"jsonrpc": "2.0", "method": "notifications/initialized"}
DISCOVER: Final = request("probe", "server/discover", _meta=STATELESS)


def line_of(message: Json | bytes) -> bytes:
    return message if isinstance(message, bytes) else json.dumps(message, ensure_ascii=False).encode() + b"\n"


class Agent:
    """Starts a command and sends it messages as an agent does; its standard error is written to a file."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], folder: Path, errors: Path) -> None:
        stdin, self.to = os.pipe()
        self.source, stdout = os.pipe()
        self.errors = errors
        with errors.open("wb") as stderr:
            self.process = subprocess.Popen(
                argv, stdin=stdin, stdout=stdout, stderr=stderr, env=env, cwd=folder, start_new_session=True
            )
        for theirs in (stdin, stdout):
            os.close(theirs)
        for ours in (self.to, self.source):
            os.set_blocking(ours, False)
        self.pid = self.process.pid
        self.earlier_messages: list[Json] = []
        """Messages that came while a test waited for another one."""
        self._partial = bytearray()
        self._at_end = False

    # --- what it sends ---

    async def send(self, *messages: Json | bytes) -> None:
        with anyio.fail_after(PATIENCE):
            await self.write(b"".join(map(line_of, messages)))

    async def write(self, text: bytes) -> None:
        """Write bytes, however long that takes."""
        rest = memoryview(text)
        while rest:
            try:
                rest = rest[os.write(self.to, rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self.to)

    def write_what_fits(self, text: bytes) -> int:
        """Write as much as is taken at once."""
        try:
            return os.write(self.to, text)
        except BlockingIOError:
            return 0

    def end_input(self) -> None:
        """Close its output; it still reads."""
        if self.to >= 0:
            os.close(self.to)
            self.to = -1

    def go(self) -> None:
        """Close both pipes at once, as when it dies."""
        self.end_input()
        if self.source >= 0:
            os.close(self.source)
            self.source = -1

    async def initialize(self) -> Json:
        """Do the handshake of 2025; returns the response to `initialize`."""
        await self.send(INITIALIZE)
        answer = await self.answer("init")
        await self.send(INITIALIZED)
        return answer

    async def ask(self, message: Json) -> Json:
        """Send a request, and return its response."""
        await self.send(message)
        return await self.answer(message["id"])

    # --- what it receives ---

    async def line(self) -> bytes:
        """The next line, without its end; nothing at the end of output."""
        with anyio.fail_after(PATIENCE):
            searched = 0
            while (end := self._partial.find(b"\n", searched)) < 0:
                searched = len(self._partial)
                if not await self._read():
                    line = bytes(self._partial)
                    self._partial.clear()
                    return line
            line = bytes(self._partial[:end])
            del self._partial[: end + 1]
            return line

    async def _read(self) -> bool:
        while not self._at_end:
            try:
                piece = os.read(self.source, 1 << 20)
            except BlockingIOError:
                await anyio.wait_readable(self.source)
                continue
            self._partial += piece
            self._at_end = not piece
            return bool(piece)
        return False

    async def message(self) -> Json:
        """The next message."""
        line = await self.line()
        assert line, f"the output has ended; standard error: {self.standard_error()}"
        message: Json = json.loads(line)
        return message

    async def answer(self, number: int | str) -> Json:
        """The response to this request; messages before it are kept in `earlier_messages`."""
        return await self._first(lambda one: one.get("id") == number and "method" not in one)

    async def notified(self, method: str) -> Json:
        """The next notification or request of this method."""
        return await self._first(lambda one: one.get("method") == method)

    async def _first(self, matches: Any) -> Json:  # noqa: ANN401  # a lambda over messages
        for position, message in enumerate(self.earlier_messages):
            if matches(message):
                return self.earlier_messages.pop(position)
        while True:
            message = await self.message()
            if matches(message):
                return message
            self.earlier_messages.append(message)

    async def rest(self) -> bytes:
        """All output that is still to come, to its end."""
        with anyio.fail_after(PATIENCE):
            while await self._read():
                pass
        rest = bytes(self._partial)
        self._partial.clear()
        return rest

    def standard_error(self) -> str:
        """Standard error so far."""
        return self.errors.read_text(errors="replace")

    def reports(self) -> str:
        """The same without the line at start about hooks that let a call pass if they fail."""
        lines = self.standard_error().splitlines(keepends=True)
        return "".join(line for line in lines if " a call pass if " not in line)

    # --- its process ---

    async def ended(self, within: float = PATIENCE) -> int:
        """Wait for the exit; returns the status, or a negative signal number if it was killed."""
        if self.process.returncode is None:
            await ends(self.pid, within)
            self.process.wait(PATIENCE)
        assert self.process.returncode is not None
        return self.process.returncode

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    @property
    def peak_memory(self) -> int:
        """The largest resident size so far, in bytes."""
        return _status(Path(f"/proc/{self.pid}/status"), "VmHWM") * 1024

    @property
    def activity(self) -> tuple[int, ...]:
        """CPU time in ticks, in user and kernel mode, and how often each of its threads has started to wait."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        threads = sorted(Path(f"/proc/{self.pid}/task").iterdir())
        waits = [_status(thread / "status", "voluntary_ctxt_switches") for thread in threads]
        return int(fields[11]), int(fields[12]), *waits


async def idles(agent: Agent) -> None:
    """Wait until it is idle, and check that it stays so: for two seconds it uses no CPU and does not wake.

    Nothing may come from it meanwhile.
    """
    quiet, before = 0, agent.activity
    with anyio.fail_after(PATIENCE):  # what is left to do after the last message may take long on a busy machine
        while quiet < 2:
            with anyio.move_on_after(1):
                raise AssertionError(f"nobody has asked anything: {await agent.line()!r}")
            now = agent.activity
            quiet, before = quiet + 1 if now == before else 0, now


def _status(path: Path, name: str) -> int:
    for line in path.read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise LookupError(name)


async def ends(pid: int, within: float = PATIENCE) -> None:
    """Wait until a process has ended, ours or not."""
    try:
        exit_fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        with anyio.fail_after(within):
            await anyio.wait_readable(exit_fd)
    finally:
        os.close(exit_fd)


def marked(mark: str) -> dict[int, str]:
    """All living processes that inherited this variable, with their command lines."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                environ = Path(f"/proc/{name}/environ").read_bytes()
                if mark.encode() in environ.split(b"\0"):
                    found[int(name)] = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:  # it has ended meanwhile
                continue
    return found


class Gate:
    """Where a hook stops and waits, so that a test knows where it is: two FIFOs."""

    def __init__(self, folder: Path, name: str) -> None:
        self._here, self._go = folder / f"{name}.here", folder / f"{name}.go"
        os.mkfifo(self._here)
        os.mkfifo(self._go)
        # for reading and writing: no other side waits for us to open it, or sees an end
        self._arrivals = os.open(self._here, os.O_RDWR | os.O_NONBLOCK)
        self._pass = os.open(self._go, os.O_RDWR | os.O_NONBLOCK)
        self.script = f"echo $$ >'{self._here}'; read _ <'{self._go}'"
        """Shell commands that wait here."""
        self.report = f"echo $$ >'{self._here}'"
        """Shell commands that report that they run."""
        self.arrival = str(self._here)
        """A line written here reports an arrival."""
        self.way = str(self._go)
        """A line read from here is the permission to go on."""

    async def reached(self, within: float = PATIENCE) -> str:
        """Wait until a hook has arrived; returns what it wrote, usually its process id."""
        with anyio.fail_after(within):
            while True:
                try:
                    return os.read(self._arrivals, 4096).decode().strip()
                except BlockingIOError:
                    await anyio.wait_readable(self._arrivals)

    @property
    def visited(self) -> bool:
        """True if a hook has arrived for which no test has waited."""
        try:
            return bool(os.read(self._arrivals, 4096))
        except BlockingIOError:
            return False

    def open(self) -> None:
        """Let one of the waiting hooks go on."""
        os.write(self._pass, b"\n")

    def close(self) -> None:
        os.close(self._arrivals)
        os.close(self._pass)


class Scene:
    """What a test uses: a folder, agents, hooks and gates. It checks that nothing is left afterwards."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.mark = f"E2E_MARK={folder}"
        self.log = folder / "received"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "E2E_LOG": str(self.log),
            "E2E_MARK": str(folder),
            **{name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")},
        }
        self._agents: list[Agent] = []
        self._gates: list[Gate] = []
        self._files = 0

    def run(self, *options: str, server: Sequence[str] = SERVER, env: Mapping[str, str] | None = None) -> Agent:
        """`hookproxy run OPTIONS -- SERVER`."""
        return self.start([HOOKPROXY, "run", *options, "--", *server], env)

    def start(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> Agent:
        errors = self.folder / f"stderr{len(self._agents)}"
        agent = Agent(argv, {**self.env, **(env or {})}, self.folder, errors)
        self._agents.append(agent)
        return agent

    def complete(self, argv: Sequence[str], within: float = PATIENCE) -> subprocess.CompletedProcess[bytes]:
        """Run a command without input to its end."""
        return subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, env=self.env, cwd=self.folder, timeout=within
        )

    def hooks(self, **events: object) -> str:
        """`--hooks` with a settings file of these events: a command for all tools, or a list of groups."""
        groups = {event: [group(what)] if isinstance(what, str) else what for event, what in events.items()}
        return "--hooks=claude=" + self.file("settings.json", json.dumps({"hooks": groups}))

    def config(self, text: str) -> str:
        """`--config` with a hookproxy.toml."""
        return "--config=" + self.file("hookproxy.toml", text)

    def file(self, name: str, text: str, mode: int = 0o600) -> str:
        """A file in a folder of its own."""
        self._files += 1
        path = self.folder / f"file{self._files}" / name
        path.parent.mkdir()
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    def prints(self, answer: Json | str) -> str:
        """The command of a hook that prints this."""
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return f"cat '{self.file('answer', text)}'"

    def gate(self, name: str, folder: Path | None = None) -> Gate:
        gate = Gate(folder or self.folder, name)
        self._gates.append(gate)
        return gate

    def received(self) -> list[bytes]:
        """The lines that the server got so far."""
        return self.log.read_bytes().splitlines() if self.log.exists() else []

    def calls_received(self) -> list[Json]:
        """The tool calls among them."""
        messages = map(json.loads, self.received())
        return [message for message in messages if message.get("method") == "tools/call"]

    def running(self, word: str) -> dict[int, str]:
        """The processes that this scene began and that have this in their command lines."""
        return {pid: command for pid, command in marked(self.mark).items() if word in command}

    async def empty(self, within: float = PATIENCE, word: str = "") -> None:
        """Wait until none of the processes that this scene began is left, or none with this in its command line."""
        try:
            with anyio.fail_after(within):
                while pids := self.running(word):
                    for pid in pids:
                        await ends(pid)
        except TimeoutError:
            raise AssertionError(f"left behind: {self.running(word)}") from None

    async def close(self) -> None:
        """End every agent as an agent ends its server, and check that nothing is left."""
        try:
            for agent in self._agents:
                if agent.process.returncode is None:
                    agent.end_input()
                    if agent.source >= 0:
                        await agent.rest()
                    await agent.ended()
            await self.empty()
        finally:
            self._clear()

    def kill(self, word: str = "") -> None:
        """End what is left on purpose: all processes with this in their command lines."""
        for pid in self.running(word):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _clear(self) -> None:
        self.kill()
        for agent in self._agents:
            agent.process.wait(PATIENCE)
            agent.go()
        for gate in self._gates:
            gate.close()


def group(command: str, matcher: str = "", in_background: bool = False, **more: object) -> Json:
    """A matcher group of a settings file with one hook."""
    hook: Json = {"type": "command", "command": command, **more}
    if in_background:
        hook["async"] = True
    return {"matcher": matcher, "hooks": [hook]}


def specific(event: str, **members: object) -> Json:
    """What a hook prints as `hookSpecificOutput` for its event."""
    return {"hookSpecificOutput": {"hookEventName": event, **members}}


def text_of(answer: Json) -> str:
    """All text of a result."""
    return "\n".join(block["text"] for block in answer["result"]["content"] if block["type"] == "text")


def refused(answer: Json) -> str:
    """What the model reads about a refused call; the response must be a failed result and nothing else."""
    assert answer["result"].keys() == {"content", "isError"}
    assert answer["result"]["isError"] is True
    return text_of(answer)
