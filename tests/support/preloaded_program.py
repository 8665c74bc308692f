"""hookproxy as a process that starts at once, for tests of what its verbs print and write.

To import what a verb needs takes two tenths of a second of processor time, and tests of verbs run a thousand of them.
Here a process that has imported all of hookproxy forks each run: arguments, environment, folder, descriptors and exit
status are those of a process of its own. What imports cost, what is imported late, a terminal and signals are tested
with the program itself.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from fcntl import F_SETPIPE_SZ, fcntl
from pathlib import Path
from typing import IO, Final

from tests.support import preloaded_servers, program

_PATIENCE: Final = 60.0  # seconds that a run may take, on a busy machine too
_forks: list[subprocess.Popen[bytes]] = []


def run(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    *,
    document: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run hookproxy with these arguments, in this folder."""
    argv = [program.HOOKPROXY, *arguments]
    env = dict(os.environ if environment is None else environment)
    if sys.platform != "linux" or _changes_python(env):
        return subprocess.run(
            argv,
            cwd=folder,
            env=env,
            input=document,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=_PATIENCE,
        )
    with _pipe(document) as stdin, _file() as stdout, _file() as stderr, socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_PATIENCE)
        connection.connect(f"\0{_address()}")
        head = json.dumps({"argv": argv, "env": env, "cwd": str(folder)}).encode()
        socket.send_fds(connection, [b"%9d" % len(head)], [file.fileno() for file in (stdin, stdout, stderr)])
        connection.sendall(head)
        status = os.waitstatus_to_exitcode(int(connection.recv(16)))
        return subprocess.CompletedProcess(argv, status, _text(stdout), _text(stderr))


def _changes_python(env: Mapping[str, str]) -> bool:
    """Whether Python reads these variables when it starts, and would be another than the process that forks."""
    return any(
        env.get(name) != os.environ.get(name)
        for name in {*env, *os.environ}
        if name.startswith(("PYTHON", "LANG", "LC_"))
    )


def _pipe(content: str) -> IO[bytes]:
    """The end of a pipe from which this can be read, and no more."""
    reading, writing = os.pipe()
    raw = content.encode(errors="surrogateescape")
    assert fcntl(writing, F_SETPIPE_SZ, len(raw) + 4096) >= len(raw), "more than a pipe holds"
    os.write(writing, raw)
    os.close(writing)
    return open(reading, "rb")


def _file() -> IO[bytes]:
    return open(os.memfd_create("output"), "w+b")


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="surrogateescape")


def _address() -> str:
    """The socket of the process that forks, which is started for the first run."""
    address = f"hookproxy-tests-program-{os.getpid()}"
    if not _forks:
        command = [sys.executable, preloaded_servers.__file__, "--fork", address, "hookproxy"]
        env = {name: value for name, value in os.environ.items() if not name.startswith(("HOOK", "XDG_"))}
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd="/")
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        _forks.append(process)
        atexit.register(_end)
    return address


def _end() -> None:
    with _forks.pop() as process:
        assert process.stdin is not None
        process.stdin.close()
