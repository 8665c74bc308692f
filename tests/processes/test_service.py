"""Servers of the gateway: their environment, their account, and what is left when one cannot be started."""

from __future__ import annotations

import os
import pwd
import resource
from contextlib import suppress
from pathlib import Path

import pytest

from hookproxy.model.errors import UserError
from hookproxy.processes import process, service
from hookproxy.processes.service import Account


def finish(server: process.Server) -> str:
    os.close(server.to_server)
    with open(server.from_server, "rb") as output:
        text = output.read().decode()
    assert process.reap(server.pid) == 0
    return text


def start(*argv: str, cwd: str = "/", values: dict[str, str] | None = None) -> process.Server:
    account = service.own_account()
    return service.start(argv, service.environment(account, values or {}), cwd, account, 2)


def test_a_server_gets_nothing_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "of the gateway")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/evil")
    lines = finish(start("/usr/bin/env", values={"A": "1"})).splitlines()
    account = pwd.getpwuid(os.geteuid())
    assert sorted(lines) == sorted(
        [
            "A=1",
            f"HOME={account.pw_dir}",
            "LANG=C.UTF-8",
            f"LOGNAME={account.pw_name}",
            f"PATH={service.PATH}",
            f"USER={account.pw_name}",
        ]
    )


def test_values_of_the_configuration_come_before_ours() -> None:
    account = Account("a", 1, 1, (), "/home/a")
    assert service.environment(account, {"PATH": "/x", "HOME": "/y"})["PATH"] == "/x"


def test_a_server_leads_a_session_and_has_only_its_three_descriptors(tmp_path: Path) -> None:
    code = "ps -o sid= -p $$ | tr -d ' '; echo $$; cd /proc/self/fd; echo *; pwd -P >/dev/null"
    session, own, descriptors = finish(start("/bin/sh", "-c", code, cwd=str(tmp_path))).splitlines()
    assert session == own
    assert set(descriptors.split()) <= {"0", "1", "2", "3"}  # the last one is the shell's own, of the folder


def test_a_command_is_found_from_the_folder_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "server").write_text("#!/bin/sh\npwd\n")
    (tmp_path / "server").chmod(0o755)
    assert finish(start("./server", cwd=str(tmp_path))) == f"{tmp_path}\n"


@pytest.mark.parametrize(
    ("argv", "cwd", "said"),
    [
        (("no-such-program",), "/", "command not found: no-such-program"),
        (("/bin/true", "\0"), "/", "null"),
        (("/bin/true",), "/no/such/folder", "no such folder: /no/such/folder"),
    ],
)
def test_what_cannot_be_started_leaves_no_descriptor(argv: tuple[str, ...], cwd: str, said: str) -> None:
    finish(start("/bin/true"))  # the guardian has its own
    before = os.listdir("/proc/self/fd")
    with pytest.raises(UserError, match=said):
        start(*argv, cwd=cwd)
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("spare", range(6))
def test_a_lack_of_descriptors_leaves_none(spare: int) -> None:
    finish(start("/bin/true"))  # the guardian has its own
    before = os.listdir("/proc/self/fd")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, before)) + 20, hard))
    taken: list[int] = []
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        process.close_all(taken[:spare])
        with pytest.raises((UserError, OSError), match=r"[Tt]oo many open files"):
            start("/bin/true")
    finally:
        process.close_all(taken[spare:])
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert os.listdir("/proc/self/fd") == before


def test_an_account_that_is_not_there_is_named() -> None:
    with pytest.raises(UserError, match="there is no account no-such-account"):
        service.account_named("no-such-account")
    assert service.account_named(pwd.getpwuid(0).pw_name).uid == 0
