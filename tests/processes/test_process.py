"""Real servers and hooks, started, ended and reaped."""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hookproxy.model.errors import UserError
from hookproxy.processes import libc_waitid, process
from tests.processes.start_hook import output_of_hook, read_all, start

ROOT = Path(__file__).resolve().parents[2]


def output_of_server(*argv: str) -> bytes:
    """What a server prints that gets no input."""
    server = process.start_server(argv)
    os.close(server.to_server)
    printed = read_all(server.from_server)
    assert process.reap(server.pid) == 0
    return printed


def in_python(code: str, before: str = "", **variables: str) -> str:
    """What a fresh interpreter with no other variables prints, started by a shell after `before`."""
    command = f'{before} exec "$PYTHON" -c "$CODE"'
    env = {"PATH": os.environ["PATH"], "PYTHON": sys.executable, "CODE": code, **variables}
    done = subprocess.run(["/bin/sh", "-c", command], cwd=ROOT, env=env, stdout=subprocess.PIPE, check=True, timeout=30)
    return done.stdout.decode()


def test_a_server_reads_what_we_write_and_we_read_what_it_writes() -> None:
    server = process.start_server(["cat"])
    os.write(server.to_server, b"hello\n")
    assert os.read(server.from_server, 100) == b"hello\n"
    os.close(server.to_server)
    assert read_all(server.from_server) == b""
    assert process.reap(server.pid) == 0


def test_a_server_ends_with_its_input_though_others_were_started_later() -> None:
    first, second = process.start_server(["cat"]), process.start_server(["cat"])
    os.close(first.to_server)
    assert read_all(first.from_server) == b""
    assert process.reap(first.pid) == 0
    os.close(second.to_server)
    assert read_all(second.from_server) == b""
    assert process.reap(second.pid) == 0


def test_a_server_stays_in_our_process_group_and_session() -> None:
    fields = output_of_server("cat", "/proc/self/stat").split()
    assert (int(fields[4]), int(fields[5])) == (os.getpgrp(), os.getsid(0))


@pytest.mark.parametrize("output", [output_of_server, output_of_hook])
def test_signals_that_python_ignores_are_not_ignored_in_children(output: Callable[..., bytes]) -> None:
    status = output("/bin/grep", "SigIgn", "/proc/self/status")
    ignored = int(status.split()[1], 16)
    assert not ignored & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1)


def test_a_server_gets_our_environment_without_what_python_added() -> None:
    code = (
        "import os; from hookproxy.processes import process; "
        "server = process.start_server(['/usr/bin/env']); print(os.read(server.from_server, 100000).decode())"
    )
    names = {line.partition("=")[0] for line in in_python(code).splitlines()}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_", ""} == {"PATH", "PYTHON", "CODE"}
    given = in_python(code, LC_CTYPE="C.UTF-8")
    assert "LC_CTYPE=C.UTF-8" in given.splitlines()


def test_a_server_starts_when_our_own_standard_descriptors_are_closed(tmp_path: Path) -> None:
    code = (
        "import os; from hookproxy.processes import process; server = process.start_server(['/bin/echo', 'hello']); "
        "open(os.environ['FILE'], 'wb').write(os.read(server.from_server, 100))"
    )
    in_python(code, before="exec <&- >&-;", FILE=str(tmp_path / "printed"))
    assert (tmp_path / "printed").read_bytes() == b"hello\n"


def test_exit_statuses_are_kept_when_our_parent_ignores_its_children() -> None:
    code = (
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); from hookproxy.processes import process; "
        "print(process.reap(process.start_server(['sh', '-c', 'exit 3']).pid))"
    )
    assert in_python(code) == "3\n"


def test_a_server_that_is_a_script_without_interpreter_runs_in_the_shell(tmp_path: Path) -> None:
    script = tmp_path / "server"
    script.write_text('echo "$0 $1"\n')
    script.chmod(0o755)
    assert output_of_server(str(script), "a b") == f"{script} a b\n".encode()


def test_a_server_that_is_not_there_is_an_error_with_the_status_of_a_shell() -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    with pytest.raises(UserError, match="command not found: no-such-server") as caught:
        process.start_server(["no-such-server", "--port"])
    assert caught.value.status == 127
    assert "no-such-server --port" in caught.value.hint
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_a_server_that_cannot_be_executed_is_an_error_with_the_status_of_a_shell(tmp_path: Path) -> None:
    (tmp_path / "server").write_text("")
    with pytest.raises(UserError, match=f"not executable: {tmp_path}/server") as caught:
        process.start_server([str(tmp_path / "server")])
    assert caught.value.status == 126


def test_a_server_whose_interpreter_is_missing_is_an_error_that_says_so(tmp_path: Path) -> None:
    script = tmp_path / "server"
    script.write_text("#!/no/such/python\n")
    script.chmod(0o755)
    with pytest.raises(UserError, match="the interpreter in its first line is missing"):
        process.start_server([str(script)])


def test_starting_the_server_waits_for_no_heavy_import() -> None:
    code = "import sys; import hookproxy.processes.process; print(*sys.modules)"
    heavy = {"typing", "asyncio", "anyio", "subprocess", "dataclasses", "threading", "hookproxy.model.hooks"}
    assert not heavy & set(in_python(code).split())


def test_a_signal_reaches_the_whole_group_and_an_empty_group_is_no_error() -> None:
    pid, out = start("/bin/sh", "-c", "sleep 1000 & echo ready; wait")
    assert os.read(out, 100) == b"ready\n"
    process.signal_group(pid, signal.SIGKILL)
    assert read_all(out) == b""  # the sleep held it, too
    assert process.reap(pid) == -signal.SIGKILL
    process.signal_group(pid, signal.SIGKILL)


def missing(_pid: int) -> int:
    raise AttributeError("pidfd_open")


def forbidden(_pid: int) -> int:
    raise PermissionError(errno.EPERM, "seccomp")


@pytest.mark.parametrize("pidfd_open", [os.pidfd_open, missing, forbidden])
def test_the_exit_of_a_child_can_be_waited_for_without_reaping_it(
    pidfd_open: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pidfd_open", pidfd_open)
    pid, out = start("/bin/sh", "-c", "echo; exec sleep 1000")
    left = process.open_exit_fd(pid)
    os.read(out, 1)
    assert select.select([left], [], [], 0)[0] == []
    os.kill(pid, signal.SIGTERM)
    assert select.select([left], [], [], 5)[0] == [left]
    assert process.reap(pid) == -signal.SIGTERM
    process.close_all((left, out))


@pytest.mark.parametrize("has_ended", [process.has_ended, partial(libc_waitid.has_ended, wait=False)])
def test_whether_a_child_has_ended_is_known_without_reaping_it(has_ended: Callable[[int], bool]) -> None:
    pid, out = start("/bin/sh", "-c", "exec sleep 1000")
    assert not has_ended(pid)
    os.kill(pid, signal.SIGTERM)
    assert libc_waitid.has_ended(pid, wait=True)
    assert has_ended(pid)
    assert has_ended(pid)
    assert process.reap(pid) == -signal.SIGTERM
    with pytest.raises(ChildProcessError):
        has_ended(pid)
    os.close(out)


def test_no_descriptor_for_the_exit_of_a_child_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def pidfd_open(_pid: int) -> int:
        raise OSError(errno.EMFILE, "too many")

    monkeypatch.setattr(os, "pidfd_open", pidfd_open)
    with pytest.raises(OSError, match="too many"):
        process.open_exit_fd(os.getpid())


@pytest.mark.parametrize(
    ("word", "path", "cwd", "found"),
    [
        ("tool", "{tmp}/empty:{tmp}/bin", "", "{tmp}/bin/tool"),
        ("tool", "bin", "{tmp}", "bin/tool"),
        ("bin/tool", "", "{tmp}", "bin/tool"),
        ("{tmp}/bin/tool", "", "/", "{tmp}/bin/tool"),
        ("tool", ":/usr/bin", "{tmp}/bin", "tool"),
        ("text", "{tmp}/bin", "", None),
        ("folder", "{tmp}/bin", "", None),
        ("sh", None, "", "/bin/sh"),
        ("no-such-tool", None, "", None),
    ],
)
def test_programs_are_found_as_a_shell_finds_them(
    word: str, path: str | None, cwd: str, found: str | None, tmp_path: Path
) -> None:
    (tmp_path / "bin" / "folder").mkdir(parents=True)
    (tmp_path / "bin" / "text").write_text("")
    (tmp_path / "bin" / "tool").write_text("")
    (tmp_path / "bin" / "tool").chmod(0o755)
    here = str(tmp_path)
    searched = path and path.replace("{tmp}", here)
    program = process.find_program(word.replace("{tmp}", here), searched, cwd.replace("{tmp}", here))
    assert program == (found and found.replace("{tmp}", here))


def test_a_widened_pipe_holds_more_and_a_failure_to_widen_is_ignored() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    process.widen_pipe(reader, 262_144)
    assert os.write(writer, bytes(300_000)) == 262_144
    process.widen_pipe(writer, 2**30)  # more than anybody may have
    os.close(reader)
    os.close(writer)
    process.widen_pipe(os.open(os.devnull, os.O_RDONLY), 262_144)
