"""A person's account with a guard, for tests with real processes."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from hookproxy.guard import client
from tests.support.program import HOOKPROXY

CLIENT: Final = client.__file__


class Desk:
    """A person's account: a home folder, a configuration, and a guard that starts when it is needed."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.socket = home / ".local" / "state" / "hookproxy" / "guard" / "guard.sock"
        self.socket.parent.mkdir(mode=0o700, parents=True)
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONDONTWRITEBYTECODE": ""}
        self.pids: list[int] = []

    def configure(self, text: str) -> None:
        folder = self.home / ".config" / "hookproxy"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "hookproxy.toml").write_text(text, "utf-8")

    def event(self, agent: str, document: bytes, *closed: str) -> subprocess.CompletedProcess[bytes]:
        words = [sys.executable, "-I", "-S", "-E", CLIENT, agent, str(self.socket), HOOKPROXY, *closed]
        return subprocess.run(words, input=document, capture_output=True, env=self.environ, timeout=60, check=False)

    def tool(self, name: str, tool: str, arguments: dict[str, Any], **members: object) -> tuple[str, str]:
        """The permission and the reason that Claude Code reads."""
        document = {"session_id": "s", "cwd": "/", "hook_event_name": name, "tool_name": tool, "tool_use_id": "t1"}
        done = self.event("claude", json.dumps({**document, "tool_input": arguments, **members}).encode())
        assert done.returncode == 0, done.stderr
        output = json.loads(done.stdout)["hookSpecificOutput"] if done.stdout else {}
        return output.get("permissionDecision", ""), output.get("permissionDecisionReason", "")

    def records(self) -> list[dict[str, Any]]:
        file = self.home / ".local" / "state" / "hookproxy" / "audit.jsonl"
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []

    def guards(self) -> list[int]:
        """The guards that run with this socket, by their command lines."""
        found = []
        for folder in Path("/proc").iterdir():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"guard" in words and os.fsencode(self.socket) in words:
                found.append(int(folder.name))
        return found

    def end(self, number: int = signal.SIGTERM) -> None:
        for pid in self.guards():
            descriptor = os.pidfd_open(pid)
            signal.pidfd_send_signal(descriptor, number)
            select.select([descriptor], [], [], 30)
            os.close(descriptor)
