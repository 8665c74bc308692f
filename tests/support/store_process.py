"""A Valkey or Redis server of Debian as a process of its own."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Final

PROGRAM: Final = shutil.which("valkey-server") or shutil.which("redis-server")
_PATIENCE: Final = 30.0  # seconds: other tests run at the same time
_PAUSE: Final = 0.01


class StoreProcess:
    """A server at a Unix socket in a folder, which keeps nothing on disk."""

    def __init__(self, folder: Path, *options: str) -> None:
        assert PROGRAM is not None, "install valkey-server or redis-server"
        self.path = folder / "store.sock"
        self.url = f"unix://{self.path}"
        self._options = options
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it, empty, and wait until it answers."""
        assert PROGRAM is not None
        command = [PROGRAM, "--port", "0", "--unixsocket", str(self.path), "--save", "", "--appendonly", "no"]
        with (self._folder / "store.log").open("ab") as log:
            self._process = subprocess.Popen([*command, *self._options], stdout=log, stderr=log, cwd=self._folder)
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                with socket.socket(socket.AF_UNIX) as connection:
                    connection.connect(str(self.path))
                    return
            except OSError:
                assert self._process.poll() is None, (self._folder / "store.log").read_text()
                assert time.monotonic() < end
                time.sleep(_PAUSE)

    def ask(self, *words: str) -> bytes:
        """The answer to a command, as it comes on the wire; it must be short."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_PATIENCE)
            connection.connect(str(self.path))
            parts = b"".join(b"$%d\r\n%b\r\n" % (len(word.encode()), word.encode()) for word in words)
            connection.sendall(b"*%d\r\n%b" % (len(words), parts))
            return connection.recv(65536)

    def pause(self) -> None:
        """SIGSTOP: it accepts connections, as the kernel does that, and answers nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(_PATIENCE)
        self.path.unlink(missing_ok=True)
