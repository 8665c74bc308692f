"""Which sandbox is chosen, by what the machine says when it is tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from hookproxy.model.errors import UserError
from hookproxy.processes import platforms
from hookproxy.processes.short_command import Output
from hookproxy.sandbox import available
from hookproxy.sandbox.available import Landlock, find_sandbox
from hookproxy.sandbox.bubblewrap import Tools

USAGE = b"    --bind-fd FD DEST\n"


class Machine:
    """What is installed, and how each try ends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.programs = {"bwrap": "/usr/bin/bwrap", "env": "/usr/bin/env"}
        self.abi = 6
        self.landlock_status = 0
        self.usage = USAGE
        self.refuses: Callable[[Sequence[str]], bool] = lambda _command: False
        monkeypatch.setattr(platforms, "linux", True)
        monkeypatch.setattr(available, "find_program", lambda name, _path: self.programs.get(name))
        monkeypatch.setattr(available, "output_of", self._output_of)
        monkeypatch.setattr(available, "landlock_abi", lambda: self.abi)
        monkeypatch.setattr(available, "status_of", lambda *_: self.landlock_status)

    def _output_of(self, command: Sequence[str], *_: object) -> Output:
        if "--help" in command:
            return Output(0, self.usage, b"")
        if self.refuses(command):
            return Output(1, b"", b"a warning\nbwrap: No permissions to create a new namespace\n")
        return Output(0, b"", b"")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def is_bubblewrap(command: Sequence[str]) -> bool:
    return "/usr/bin/bwrap" in command


def test_bubblewrap_is_preferred(machine: Machine) -> None:
    found = find_sandbox("auto")
    assert isinstance(found, Tools)
    assert (found.takes_descriptors, found.mounts_proc, found.env) == (True, True, "/usr/bin/env")


def test_an_old_bubblewrap_gets_no_descriptors(machine: Machine) -> None:
    machine.usage = b"    --bind SRC DEST\n"
    found = find_sandbox("bubblewrap")
    assert isinstance(found, Tools)
    assert not found.takes_descriptors


def test_without_a_proc_of_its_own_it_is_tried_again(machine: Machine) -> None:
    machine.refuses = lambda command: "--proc" in command
    found = find_sandbox("auto")
    assert isinstance(found, Tools)
    assert not found.mounts_proc


def test_an_env_that_knows_no_signals_is_not_used(machine: Machine) -> None:
    machine.refuses = lambda command: command[0] == "/usr/bin/env"
    found = find_sandbox("auto")
    assert isinstance(found, Tools)
    assert found.env == ""


@pytest.mark.parametrize("installed", [True, False])
def test_where_bubblewrap_does_not_work_it_is_landlock(machine: Machine, installed: bool) -> None:
    machine.refuses = is_bubblewrap
    if not installed:
        del machine.programs["bwrap"]
    found = find_sandbox("auto")
    assert isinstance(found, Landlock)
    assert found.filters[True] != found.filters[False]


def test_what_is_named_is_not_replaced_by_the_other(machine: Machine) -> None:
    machine.refuses = is_bubblewrap
    with pytest.raises(UserError, match="No permissions to create a new namespace"):
        find_sandbox("bubblewrap")
    assert isinstance(find_sandbox("landlock"), Landlock)
    machine.abi = 0
    with pytest.raises(UserError, match="this kernel has no Landlock"):
        find_sandbox("landlock")


@pytest.mark.parametrize(
    ("abi", "status", "why"),
    [
        (5, 0, r"Landlock of this kernel is too old \(ABI 5\)"),
        (0, 0, "this kernel has no Landlock"),
        (6, 126, "a program ends with 126"),
    ],
)
def test_where_neither_works_both_reasons_are_told(machine: Machine, abi: int, status: int, why: str) -> None:
    machine.refuses, machine.abi, machine.landlock_status = is_bubblewrap, abi, status
    with pytest.raises(UserError, match=f"bubblewrap cannot be used here: .*, and .*{why}"):
        find_sandbox("auto")


def test_another_system_than_linux_has_none(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platforms, "linux", False)
    for wanted in ("auto", "bubblewrap", "landlock"):
        with pytest.raises(UserError, match="this system has none"):
            find_sandbox(wanted)
