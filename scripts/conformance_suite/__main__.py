"""Compares the conformance of the SDK's reference server with its conformance through the gateway, check by check.

The suite sends no token, so a relay in front of the gateway adds one to each request and changes nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from compare import ERAS, Checks, differences, read_checks, summary

ROOT = Path(__file__).resolve().parents[2]
PYTHON, HOOKPROXY = ROOT / ".venv/bin/python", ROOT / ".venv/bin/hookproxy"
WAYS = {
    "url": "serve in front of its address",
    "command": "serve, a process for each session",
    "shared": "serve, one process for all",
}
START_SECONDS = 30
"""The reference server imports for two seconds on a quiet machine."""
SUITE_SECONDS = 300
"""One run takes about 20 seconds; its scenarios have 30 seconds each."""
MAX_HEAD = 65536

_GATEWAY = """\
[gateway]
listen = ["http://127.0.0.1:{port}"]
tokens = "tokens"
public_url = "http://127.0.0.1:{relay}"
per_user = {{ sessions = 1000, memory = "1TiB" }}  # the suite leaves its sessions open
total = {{ sessions = 1024, memory = "1TiB" }}
[servers.url]
url = "{url}"
allow_http = true
[servers.command]
command = {command}
max_sessions = 1000
[servers.shared]
command = {command}
share = "all"
max_sessions = 1000
"""
_ON_PIPES = "import sys; sys.path.insert(0, {!r}); from mcp_everything_server.server import mcp; mcp.run('stdio')"


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def started(argv: list[str | Path], port: int, log: Path) -> Iterator[None]:
    """Run a program that listens at a port until the block ends."""
    with log.open("wb") as file:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True)
    try:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"error: {Path(argv[0]).name} does not listen\n{log.read_text(errors='replace')}")
                time.sleep(0.05)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Relay:
    """Adds the token to the head of each request. Each connection has one request, so heads are easily found."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._added = f"\r\nAuthorization: Bearer {token}\r\nConnection: close".encode()

    async def on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay one connection until either side ends it."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head[:-4].split(b"\r\n")
            kept = b"\r\n".join(one for one in lines if not one.lower().startswith(b"connection:"))
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._port)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            writer.transport.abort()
            return
        up_writer.write(kept + self._added + b"\r\n\r\n")
        copies = [asyncio.create_task(_copy(reader, up_writer)), asyncio.create_task(_copy(up_reader, writer))]
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
        for one in copies:
            one.cancel()
        await asyncio.gather(*copies, return_exceptions=True)
        for each in (writer, up_writer):
            each.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        return  # the other side learns of it when its connection is closed


async def run_suite(suite: Path, url: str, era: str, results: Path) -> Checks:
    """Run all scenarios of an era against an address."""
    command = ["server", "--url", url, "--suite", "all", "--spec-version", era, "--output-dir", str(results)]
    process = await asyncio.create_subprocess_exec(
        suite / "node_modules/.bin/node",
        suite / "node_modules/@modelcontextprotocol/conformance/dist/index.js",
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(SUITE_SECONDS):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    found = read_checks(results)
    if not found:
        sys.exit(f"error: the suite has checked nothing at {url}\n{output.decode(errors='replace')[-2000:]}")
    return found


async def compare(suite: Path, urls: dict[str, str], relay: Relay, port: int, results: Path) -> int:
    """Run the suite in both eras; print where serve differs. Returns how often it does worse."""
    server = await asyncio.start_server(relay.on_connection, "127.0.0.1", port, limit=MAX_HEAD)
    count = 0
    async with server:
        for era in ERAS:
            checks = {}
            for way, url in urls.items():  # one after another: scenarios wait for events within fixed times
                checks[way] = await run_suite(suite, url, era, results / era / way)
                print(f"{era}  {WAYS.get(way, 'the reference server itself'):<34} {summary(checks[way])}", flush=True)
            for way in WAYS:
                for line, is_known in differences(era, checks["direct"], checks[way]):
                    count += not is_known
                    print(f"    {way}: {line}")
    return count


def main() -> int:
    """Start the reference server and the gateway, and compare."""
    parser = argparse.ArgumentParser(prog="scripts/conformance", description=__doc__)
    parser.add_argument("suite", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("reference", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--way", choices=WAYS, action="append", help="compare this way only (default: all)")
    options = parser.parse_args()
    for way in [one for one in WAYS if options.way and one not in options.way]:
        del WAYS[way]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as processes:
        here, port, relay_port, server_port = Path(folder), free_port(), free_port(), free_port()
        url = f"http://127.0.0.1:{server_port}/mcp"
        os.environ["PYTHONPATH"] = str(options.reference.resolve())  # of the reference server alone
        reference: list[str | Path] = [
            PYTHON,
            "-m",
            "mcp_everything_server",
            "--port",
            str(server_port),
            "--log-level",
            "ERROR",
        ]
        processes.enter_context(started(reference, server_port, here / "server.log"))
        del os.environ["PYTHONPATH"]
        command = json.dumps([str(PYTHON), "-c", _ON_PIPES.format(str(options.reference.resolve()))])
        config = _GATEWAY.format(port=port, relay=relay_port, url=url, command=command)
        (here / "gateway.toml").write_text(config)
        new_token: list[str | Path] = [HOOKPROXY, "token", "new", "suite", "--file", here / "tokens"]
        token = subprocess.run(new_token, check=True, capture_output=True, text=True).stdout.strip()
        serve: list[str | Path] = [HOOKPROXY, "serve", "--config", here / "gateway.toml"]
        processes.enter_context(started(serve, port, here / "gateway.log"))
        urls = {"direct": url} | {way: f"http://127.0.0.1:{relay_port}/mcp/{way}" for way in WAYS}
        count = asyncio.run(compare(options.suite.resolve(), urls, Relay(port, token), relay_port, here))
    print("serve does as well as the server itself" if not count else f"serve does worse in {count} checks")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
