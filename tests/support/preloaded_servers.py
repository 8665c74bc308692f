"""Servers of the `mcp` package that start at once: a process that has imported the package already forks each of them.

`preloaded_program` has hookproxy itself forked in the same way.

To import it takes a second of processor time, and many tests start such a server several times. What a test starts is
this file, with the server's own arguments behind it. It hands its standard input, output and error to a process that is
forked, and ends as the server ends; if it is ended, the server is killed. Where nothing forks, it becomes the server.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

FORKS = "preloaded_servers.py --fork"
"""It is in the command line of the process that forks, which stays as long as pytest does."""


def preloaded(*argv: str) -> tuple[str, ...]:
    """The command of a server that Python runs with these arguments: a file or `-m` and a module, and more words."""
    return (sys.executable, "-S", "-E", __file__, _address(), *argv)


@contextmanager
def preloading() -> Iterator[None]:
    """Have a process that forks servers. Only Linux has sockets without a file."""
    import subprocess

    if sys.platform != "linux":
        yield
        return
    command = [sys.executable, __file__, "--fork", _address()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0


def _address() -> str:
    """The name of the socket of this process of pytest, in Linux's abstract namespace."""
    return f"hookproxy-tests-{os.getpid()}"


def _have_server(address: str, argv: list[str]) -> None:
    """Have the server forked, and end as it does."""
    import json
    import signal
    import socket

    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(f"\0{address}")
    except OSError:
        os.execv(sys.executable, [sys.executable, *argv])
    head = json.dumps({"argv": argv, "env": dict(os.environ), "cwd": os.getcwd()}).encode()
    socket.send_fds(connection, [b"%9d" % len(head)], [0, 1, 2])
    connection.sendall(head)
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)  # else who reads the server's output would wait for our end
    status = os.waitstatus_to_exitcode(int(connection.recv(16) or signal.SIGKILL))
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _import(package: str) -> None:
    """Import what the programs to be forked need: servers of `mcp`, or hookproxy with all its modules."""
    import importlib
    import pkgutil

    if package == "mcp":
        import uvicorn  # noqa: F401

        return
    found = importlib.import_module(package)
    for module in pkgutil.walk_packages(found.__path__, f"{package}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def _fork_servers(address: str, package: str = "mcp") -> None:
    """Fork a process for each connection, until standard input ends."""
    import gc
    import select
    import signal
    import socket

    _import(package)
    gc.freeze()  # a fork that collects would copy all pages
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"\0{address}")
    listener.listen(64)
    os.write(1, b"ready\n")
    while listener.fileno() in select.select([0, listener.fileno()], [], [])[0]:
        connection, _ = listener.accept()
        with connection:
            if not os.fork():
                listener.close()
                _keep_server(connection)


def _keep_server(connection: socket.socket) -> None:
    """Fork the server; send its status, or kill it when whoever asked for it has ended."""
    import select
    import signal
    import socket

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, descriptors, _, _ = socket.recv_fds(connection, 9, 3)
    if len(descriptors) < 3:
        os._exit(0)
    head = connection.recv(int(size), socket.MSG_WAITALL)
    pid = os.fork()
    if not pid:
        connection.close()
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        _be_server(head)
    for descriptor in (0, 1, *descriptors):
        os.close(descriptor)
    exits = os.pidfd_open(pid)
    if exits not in select.select([exits, connection.fileno()], [], [])[0]:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    try:
        connection.sendall(b"%d" % status)
    finally:
        os._exit(0)


def _be_server(head: bytes) -> None:
    """Run the server as Python would."""
    import json
    import random
    import runpy
    import traceback

    given = json.loads(head)
    os.chdir(given["cwd"])
    os.environ.clear()
    os.environ.update(given["env"])
    random.seed()
    status = 1
    try:
        if given["argv"][0] == "-m":
            sys.argv = given["argv"][1:]
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv = given["argv"]
            runpy.run_path(sys.argv[0], run_name="__main__")
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


if __name__ == "__main__":
    if sys.argv[1] == "--fork":
        _fork_servers(*sys.argv[2:])
    else:
        _have_server(sys.argv[1], sys.argv[2:])
