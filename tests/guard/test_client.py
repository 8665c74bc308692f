"""What the client does by itself: it knows how to refuse, and whether the administrator has a policy."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from time import monotonic

import pytest

from hookproxy.config import load
from hookproxy.guard import client


def test_it_looks_for_the_administrators_policy_where_that_is() -> None:
    names = ("managed.toml", "managed.d")
    assert tuple(os.path.join(load.MANAGED_FOLDER, name) for name in names) == client.MANAGED


def test_an_administrators_policy_that_may_be_there_counts_as_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tmp_path / "managed.toml"
    monkeypatch.setattr(client, "MANAGED", ("/nothing", str(policy)))
    assert not client.is_managed()
    policy.symlink_to(tmp_path / "nothing")
    assert client.is_managed()
    monkeypatch.setattr(client, "MANAGED", (str(policy / "managed.toml"),))
    assert not client.is_managed()
    monkeypatch.setattr(client, "MANAGED", (f"/{'x' * 5000}",))
    assert client.is_managed(), "nobody can say"


@pytest.mark.parametrize(
    ("managed", "refusal", "status"),
    [
        (False, [], 1),
        (True, [], 2),
        (False, ["open", "0", "{}"], 1),
        (True, ["open", "0", "{}"], 0),
        (False, ["0", "{}"], 0),
        (False, ["2", ""], 2),
    ],
)
def test_under_an_administrators_policy_every_failure_refuses_the_call(
    managed: bool,
    refusal: list[str],
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    policy = tmp_path / "managed.toml"
    if managed:
        policy.touch()
    monkeypatch.setattr(client, "MANAGED", ("/nothing", str(policy)))
    monkeypatch.setattr(client, "read_all", lambda _descriptor: b"{}")
    words = ["client.py", "claude", str(tmp_path / "guard.sock"), "/no/program", "HOME=/x", "SECONDS=5", *refusal]
    assert client.main(words) == status
    output, text = capfdbinary.readouterr()
    assert output == (b"{}" if status == 0 else b"")
    assert b"the guard did not judge this: " in text


def test_an_entry_whose_hookproxy_is_gone_says_what_to_do(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "read_all", lambda _descriptor: b"{}")
    assert client.main(["client.py", "claude", str(tmp_path / "guard.sock"), "/no/program", "2", ""]) == 2
    assert capfdbinary.readouterr().err == (
        b"hookproxy: the guard did not judge this: /no/program cannot be started: No such file or directory; "
        b"install hookproxy again, or delete its entries from the hook file of this agent\n"
    )


def test_a_guard_that_does_not_answer_is_not_waited_for_longer_than_the_entry_says(tmp_path: Path) -> None:
    path = str(tmp_path / "guard.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        guard = client.connected(path, monotonic() + 10)
        assert guard
        with pytest.raises(TimeoutError, match="in time"):
            client.exchange(guard, b"request", monotonic() + 0.01)


def test_a_guard_that_accepts_nobody_is_not_waited_for_longer_either(tmp_path: Path) -> None:
    path = str(tmp_path / "guard.sock")
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as other:
        listener.bind(path)
        listener.listen(0)
        other.connect(path)
        with pytest.raises(TimeoutError, match="in time"):
            client.connected(path, monotonic() + 0.01)


def test_a_guard_that_does_not_start_is_not_waited_for_longer_either(tmp_path: Path) -> None:
    program = tmp_path / "hookproxy"
    program.write_text(f"#!/bin/sh\necho $$ >{tmp_path}/pid.new; mv {tmp_path}/pid.new {tmp_path}/pid; exec sleep 20\n")
    program.chmod(0o755)
    begun = monotonic()
    with pytest.raises(TimeoutError):
        client.connect(str(tmp_path / "guard.sock"), str(program), [], begun + 0.5)
    assert monotonic() < begun + 5
    started = int((tmp_path / "pid").read_text())
    os.kill(started, signal.SIGKILL)
    os.waitpid(started, 0)


def test_the_guard_does_not_have_what_its_agent_has_open(tmp_path: Path) -> None:
    program, listed = tmp_path / "hookproxy", tmp_path / "listed"
    program.write_text(f"#!/bin/sh\nreadlink /proc/$$/fd/* >{listed}.new\nmv {listed}.new {listed}\n")
    program.chmod(0o755)
    with (tmp_path / "lock").open("w") as lock, (tmp_path / "other").open("w") as other:
        for file in (lock, other):
            os.set_inheritable(file.fileno(), True)
        os.waitpid(client.start(str(tmp_path / "guard.sock"), str(program), []), 0)
    assert "/dev/null" in listed.read_text()
    assert str(tmp_path / "lock") not in listed.read_text()
    assert str(tmp_path / "other") not in listed.read_text()
