"""A gateway as a process of its own, for tests that connect to it as agents do."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tests.support.program import HOOKPROXY as HOOKPROXY

_PATIENCE: Final = 30.0  # seconds: other tests run at the same time
_PAUSE: Final = 0.01


class GatewayProcess:
    """`hookproxy serve` with a configuration in a folder, and what it has written to its log."""

    def __init__(
        self,
        folder: Path,
        config: str,
        before: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        at: Path | None = None,
    ) -> None:
        """`before` are words in front of the command, such as those that change the account; `at` is the socket."""
        self.folder = folder
        self.path = folder / "gateway.toml"
        self.socket = at or folder / "mcp.sock"
        self.log_path = folder / "gateway.log"
        self.write(config)
        environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", "E2E_MARK": str(folder)}
        environ |= {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [*before, HOOKPROXY, "serve", "--config", str(self.path)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environ | dict(env or {}),
                cwd=folder,
                start_new_session=True,
            )
        self.pid = self.process.pid
        try:
            self.logged("serves ")
        except BaseException:
            self.kill()
            raise

    def write(self, config: str) -> None:
        """Replace gateway.toml. It gets the socket's address in front."""
        text = f'[gateway]\nlisten = ["unix:{self.socket}"]\n{config}'
        fresh = self.path.with_name("gateway.new")
        fresh.write_text(text)
        fresh.chmod(0o644)
        fresh.replace(self.path)

    def server_pid(self, inside: int) -> int:
        """The process that is called so in its own process namespace: the newest below the gateway."""
        below, found = {self.pid}, 0
        for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
            with suppress(OSError):  # it has ended meanwhile
                status = Path(f"/proc/{pid}/status").read_text()
                fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
                if int(fields["PPid"]) in below:
                    below.add(pid)
                    found = pid if int(fields["NSpid"].split()[-1]) == inside else found
        assert found, f"no process of the gateway is called {inside}"
        return found

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def logged(self, text: str, after: int = 0) -> str:
        """Wait until the log has this text, from a position on; returns the log."""
        end = time.monotonic() + _PATIENCE
        while text not in (log := self.log)[after:]:
            assert self.process.poll() is None, f"the gateway has ended: {log}"
            assert time.monotonic() < end, f"not in the log: {text!r}: {log}"
            time.sleep(_PAUSE)
        return log

    def reload(self, config: str, expect: str = "is in force") -> str:
        """Replace the configuration, send SIGHUP, and wait for what the log says."""
        self.write(config)
        before = len(self.log)
        self.process.send_signal(signal.SIGHUP)
        return self.logged(expect, before)[before:]

    def open(self, preamble: bytes) -> socket.socket:
        """A connection on which this was sent."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_PATIENCE)
        connection.connect(str(self.socket))
        connection.sendall(preamble)
        return connection

    @property
    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    @property
    def settled_descriptors(self) -> int:
        """How many it has open, once that number stays the same: what earlier sessions had is closed."""
        end = time.monotonic() + _PATIENCE
        number, same = self.descriptors, 0
        while same < 10:
            assert time.monotonic() < end, "the number changes all the time"
            time.sleep(_PAUSE)
            same = same + 1 if self.descriptors == number else 0
            number = self.descriptors
        return number

    @property
    def cpu_ticks(self) -> int:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def settles_at(self, descriptors: int) -> None:
        """Wait until the gateway has no more descriptors open than these."""
        end = time.monotonic() + _PATIENCE
        while self.descriptors > descriptors:
            assert time.monotonic() < end, [
                os.readlink(one) for one in Path(f"/proc/{self.pid}/fd").iterdir() if one.is_symlink()
            ]
            time.sleep(_PAUSE)

    def audit(self, name: str = "audit.jsonl") -> list[dict[str, Any]]:
        """The records of an audit file beside gateway.toml, but for those that a call has begun."""
        path = self.folder / name
        records = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [record for record in records if record.get("result") != "begun"]

    def end(self) -> int:
        """SIGTERM; returns the status."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(_PATIENCE)

    def kill(self) -> None:
        """kill -9."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(_PATIENCE)
