"""`hookproxy sandbox learn` with real servers: it watches, relays, proposes, and ends with its server."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from hookproxy.cli.main import main
from hookproxy.processes import platforms
from tests.support.gateway_process import HOOKPROXY

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="the kernel's means are Linux's")]

SERVER: Final = """
import json, os, socket, subprocess, sys
if len(sys.argv) > 1:
    open(sys.argv[1] + "/given").read()
    open(sys.argv[1] + "/new/file", "w").write("x")
    subprocess.run(["cat", sys.argv[1] + "/child"], stdout=subprocess.DEVNULL)
    os.environ.get("LEARNED_TOKEN")
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = {"tools": []} if message["method"] == "tools/list" else {
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
        if message["method"] == "tools/call":
            try:
                socket.create_connection(("127.0.0.1", 9), 1)
            except OSError:
                result = {"content": []}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.fixture
def server(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "server.py").write_text(SERVER)
    data = tmp_path / "data"
    (data / "new").mkdir(parents=True)
    (data / "given").write_text("x")
    (data / "child").write_text("x")
    return sys.executable, str(tmp_path / "program" / "server.py"), str(data)


def learn(*words: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HOOKPROXY, "sandbox", "learn", *words],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **env},
    )


def has_ended(pid: int) -> bool:
    """Whether the process ends at once, or has."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 5)[0])
    finally:
        os.close(descriptor)


def sandbox(text: str) -> Mapping[str, object]:
    table: Mapping[str, object] = tomllib.loads(text)["servers"]["x"]["sandbox"]
    return table


def test_a_probe_lists_tools_and_prints_the_table_of_what_the_server_used(server: tuple[str, ...]) -> None:
    done = learn("--probe", "--name", "x", "--", *server, LEARNED_TOKEN="sekret")
    assert done.returncode == 0, done.stderr
    table = sandbox(done.stdout)
    assert (table["write"], table["network"]) == ([server[2]], "none")
    assert table["env"] == ["LEARNED_TOKEN"]
    assert "sekret" not in done.stdout + done.stderr
    assert "without a sandbox" in done.stderr


def test_an_agent_drives_the_server_and_gets_the_bytes_of_its_answers(server: tuple[str, ...], tmp_path: Path) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x"}}
    table, trace = tmp_path / "table.toml", tmp_path / "trace"
    words = "--name", "x", "--output", str(table), "--trace", str(trace), "--", *server[:2]
    done = learn(*words, stdin=f"{json.dumps(call)}\n")
    assert json.loads(done.stdout)["result"] == {"content": []}
    assert sandbox(table.read_text())["network"] == "all"
    assert "127.0.0.1:9" in table.read_text()
    assert any(json.loads(line)["what"] == "connect" for line in trace.read_text().splitlines())


def test_a_file_is_not_overwritten_and_that_is_said_before_the_server_starts(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_text("mine")
    done = learn("--output", str(there), "--", "sh", "-c", f"touch {tmp_path}/started")
    assert (done.returncode, there.read_text()) == (2, "mine")
    assert not (tmp_path / "started").exists()


def test_no_folder_is_made_for_a_file_and_that_is_said_before_the_server_starts(tmp_path: Path) -> None:
    for option in ("--output", "--trace"):
        done = learn(option, str(tmp_path / "no" / "file"), "--", "sh", "-c", f"touch {tmp_path}/started")
        assert (done.returncode, [*tmp_path.iterdir()]) == (2, [])
        assert f"hint: make it: mkdir -p {tmp_path}/no" in done.stderr


def test_a_name_is_followed_as_the_kernel_does_through_links_and_dots(tmp_path: Path) -> None:
    for name in ("a/deep", "b", "c"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("a/kept", "kept"):
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to("a/deep")
    script = 'cat "$D/link/../kept" >"$D/b/made"; mkdir "$D/c/new/"; mv "$D/b/../b/made" "$D/c/./new/"'
    done = learn("--seconds", "20", "--name", "x", "--", "sh", "-c", script, D=str(tmp_path))
    table = sandbox(done.stderr[done.stderr.index("[servers") :])
    assert f"{tmp_path}/a/kept" in str(table["read"])
    assert set(map(str, table["write"])) == {f"{tmp_path}/b", f"{tmp_path}/c"}  # type: ignore[call-overload]


def test_after_its_seconds_the_server_and_what_it_started_are_ended(tmp_path: Path) -> None:
    done = learn("--seconds", "0.5", "--", "sh", "-c", "trap '' TERM; sleep 600 & echo $! $$; wait; wait")
    assert done.returncode == 0, done.stderr
    for pid in done.stdout.split():
        assert has_ended(int(pid))


def test_a_signal_ends_the_server(tmp_path: Path) -> None:
    words = [HOOKPROXY, "sandbox", "learn", "--", "sh", "-c", "echo $$; exec sleep 600"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        server = int(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    assert has_ended(server)


def test_a_server_that_fails_is_reported_with_the_table() -> None:
    done = learn("--name", "x", "--", "sh", "-c", "exit 7")
    assert (done.returncode, "ended with status 7" in done.stderr) == (0, True)
    assert "[servers.x.sandbox]" in done.stderr


def test_a_command_that_is_missing_or_that_lists_no_tools_is_an_error() -> None:
    missing = learn("--", "no-such-server-here")
    assert (missing.returncode, "command not found: no-such-server-here" in missing.stderr) == (2, True)
    broken = learn("--probe", "--", "sh", "-c", "echo broken >&2; exit 3")
    assert (broken.returncode, "exited with status 3" in broken.stderr, broken.stdout) == (2, True, "")


def test_where_there_is_no_linux_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(platforms, "linux", True)  # it is set back to what it was
    assert main(["sandbox", "learn", "--", "true"], platforms.PORTABLE) == 2
    assert "on Linux only" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "learn must follow sandbox"),
        (("lern",), "did you mean 'learn'"),
        (("learn",), "no COMMAND follows"),
        (("learn", "--seconds", "0", "--", "true"), "0 is not a number of seconds"),
        (("learn", "--name", "a b", "--", "true"), "'a b' cannot be the name of a server"),
        (("learn", "--seconds", "x", "--", "true"), "x is not a number of seconds"),
    ],
)
def test_mistakes_in_the_command_line_say_what_is_missing(
    words: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sandbox", *words]) == 2
    assert why in capsys.readouterr().err
