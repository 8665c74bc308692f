"""Starts processes as hookproxy starts hooks."""

from __future__ import annotations

import os

from hookproxy.processes import environment, process, spawn


def read_all(fd: int) -> bytes:
    with open(fd, "rb") as stream:
        return stream.read()


def start(*argv: str, cwd: str = "", env: dict[str, str] | None = None) -> tuple[int, int]:
    """Start a hook with empty input; returns its process id, and a descriptor with its output."""
    out, stdout = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    try:
        entries = environment.entries(os.environ if env is None else env)
        pid = spawn.start_hook(os.fsencode(argv[0]), argv, entries, cwd, (null, stdout, null))
    except BaseException:
        os.close(out)
        raise
    finally:
        process.close_all((null, stdout))
    return pid, out


def output_of_hook(*argv: str, cwd: str = "") -> bytes:
    pid, out = start(*argv, cwd=cwd)
    printed = read_all(out)
    assert process.reap(pid) == 0
    return printed
