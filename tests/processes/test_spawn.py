"""Hooks, started in each way that spawn has."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import pytest

from hookproxy.processes import environment, platforms, process, spawn
from tests.processes.start_hook import output_of_hook, read_all, start

LIMIT = environment.VARIABLE_LIMIT


@pytest.fixture(params=["fork_exec", "Popen", "posix_spawn"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start hooks as this Python does, as an unknown version would, and on the portable way."""
    if request.param == "Popen":
        monkeypatch.setattr(spawn, "_start", spawn._start_with_popen)
    if request.param == "posix_spawn":
        monkeypatch.setattr(spawn, "_start", spawn._start_with_posix_spawn)


@pytest.mark.parametrize("cwd", ["", "/"])
def test_a_hook_has_a_session_of_its_own_and_no_terminal(cwd: str) -> None:
    pid, out = start("/bin/cat", "/proc/self/stat", cwd=cwd)
    fields = read_all(out).split()
    assert process.reap(pid) == 0
    assert [int(field) for field in fields[4:7]] == [pid, pid, 0]


def test_a_hook_starts_in_its_folder(tmp_path: Path) -> None:
    assert output_of_hook("/bin/pwd", "-P", cwd=str(tmp_path)) == f"{tmp_path.resolve()}\n".encode()
    assert output_of_hook("/bin/pwd", "-P") == f"{Path.cwd().resolve()}\n".encode()


@pytest.mark.parametrize("cwd", ["", "/"])
def test_a_hook_that_is_a_script_without_interpreter_runs_in_the_shell(tmp_path: Path, cwd: str) -> None:
    script = tmp_path / "hook"
    script.write_text('echo "$1"\n')
    script.chmod(0o755)
    assert output_of_hook(str(script), "a b", cwd=cwd) == b"a b\n"


@pytest.mark.parametrize("cwd", ["", "/"])
@pytest.mark.parametrize("argv", [("/bin/echo", "a\0b"), ("/bin/\0echo",)])
def test_a_nul_in_a_command_is_a_value_error(argv: tuple[str, ...], cwd: str) -> None:
    with pytest.raises(ValueError, match="null"):
        start(*argv, cwd=cwd)


def test_too_long_an_argument_list_is_an_error_with_a_reason() -> None:
    with pytest.raises(OSError, match="Argument list too long") as caught:
        start("/bin/echo", "x" * 300_000)
    assert caught.value.errno == errno.E2BIG
    assert "longer than the system allows" in process.why_not_started(caught.value, "/bin/echo")


def test_a_child_that_was_reaped_elsewhere_does_not_look_successful() -> None:
    pid, out = start("/bin/true")
    os.close(out)
    os.waitpid(pid, 0)
    assert process.reap(pid) == -signal.SIGKILL


def test_a_variable_over_the_limit_is_cut_so_that_a_process_can_start_with_it() -> None:
    env = environment.fit({"HOOK_TOOL_INPUT": "x" * 300_000, "OTHER": "whole"})
    assert env["HOOK_TRUNCATED"] == "1"
    assert env["OTHER"] == "whole"
    pid, out = start("/bin/sh", "-c", "echo ${#HOOK_TOOL_INPUT} $HOOK_TRUNCATED", env=dict(env))
    assert read_all(out) == f"{LIMIT - len('HOOK_TOOL_INPUT') - 2} 1\n".encode()
    assert process.reap(pid) == 0


def test_a_failed_start_leaves_no_child_and_no_error_text_for_the_next_one() -> None:
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    assert output_of_hook("/bin/true") == b""  # the guardian has started with the first hook
    before = children.read_text()
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            start("/no/such/program")
        with pytest.raises(FileNotFoundError):
            start("/bin/true", cwd="/no/such/folder")
    assert children.read_text() == before
    assert output_of_hook("/bin/echo", "ok") == b"ok\n"


def test_a_hook_gets_no_descriptor_that_we_have_opened() -> None:
    ours = os.pipe()
    output_of_hook("/bin/true")  # opens what spawn keeps open
    given = {os.readlink(f"/proc/self/fd/{fd}").encode() for fd in (*ours, *spawn._error_file)}
    printed = output_of_hook("/bin/sh", "-c", "ls -l /proc/$$/fd")
    for fd in ours:
        os.close(fd)
    assert printed.count(b"pipe:") >= 1, "its own output is one"
    assert not [pipe for pipe in given if pipe in printed]


def test_a_hook_gets_default_handlers_for_signals_that_python_ignores_or_handles() -> None:
    ours = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        printed = output_of_hook("/bin/cat", "/proc/self/status")
    finally:
        signal.signal(signal.SIGUSR1, ours)
    sets = dict(line.split(b":\t") for line in printed.splitlines())
    standard = (1 << 31) - 1  # posix_spawn of glibc ignores the two after them, which are its own
    assert [int(sets[name], 16) & standard for name in (b"SigBlk", b"SigIgn", b"SigCgt")] == [0, 0, 0]


@pytest.mark.slow
def test_hooks_start_with_popen_when_a_child_cannot_report_errors_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in a sandbox that refuses vfork, where Python falls back to fork."""
    monkeypatch.setattr(spawn, "_start", spawn._start_first)
    monkeypatch.setattr(spawn, "_FORK_OPTIONS", (*spawn._FORK_OPTIONS[:-1], False))
    with pytest.raises(FileNotFoundError):
        start("/no/such/program")
    assert spawn._start is spawn._start_with_popen
    assert output_of_hook("/bin/echo", "ok") == b"ok\n"


@pytest.mark.parametrize("known", [True, False])
def test_an_unknown_python_version_starts_hooks_with_popen(monkeypatch: pytest.MonkeyPatch, known: bool) -> None:
    monkeypatch.setattr(spawn, "_start", spawn._start_first)
    monkeypatch.setattr(spawn, "_KNOWN_PYTHON", known)
    assert output_of_hook("/bin/echo", "ok") == b"ok\n"
    assert spawn._start is (spawn._start_with_fork_exec if known else spawn._start_with_popen)


def test_the_portable_way_starts_hooks_with_posix_spawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawn, "_start", spawn._start_first)
    monkeypatch.setattr(platforms, "linux", False)
    assert output_of_hook("/bin/echo", "ok") == b"ok\n"
    assert spawn._start is spawn._start_with_posix_spawn


def test_a_python_whose_posix_spawn_makes_no_session_starts_hooks_with_popen(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_session(*_arguments: object, **_options: object) -> int:
        raise NotImplementedError("setsid")

    monkeypatch.setattr(spawn, "_start", spawn._start_with_posix_spawn)
    monkeypatch.setattr(os, "posix_spawn", without_session)
    pid, out = start("/bin/cat", "/proc/self/stat")
    assert read_all(out).split()[5] == b"%d" % pid
    assert process.reap(pid) == 0
