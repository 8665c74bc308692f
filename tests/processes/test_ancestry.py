"""The ancestors of a process, and by which words it was started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hookproxy.processes import ancestry

SLEEP = ("sleep", "1000")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: only Linux says which process is whose")


@contextmanager
def started(*words: str) -> Iterator[int]:
    """A process that is there, and has its words already: the system sets them a moment after it has begun."""
    with subprocess.Popen(words) as child:
        try:
            while ancestry.command_line(child.pid) != b" ".join(map(str.encode, words[-2:])):
                os.sched_yield()
            yield child.pid
        finally:
            child.kill()


def test_the_parent_of_a_child_is_this_process() -> None:
    with started(*SLEEP) as pid:
        itself, parent, *_ = ancestry.ancestors(pid)
        assert (itself.pid, parent.pid) == (pid, os.getpid())
        assert parent == next(ancestry.ancestors(os.getpid())), "the same whenever it is looked at"


def test_a_process_that_has_ended_has_none() -> None:
    with subprocess.Popen(["true"]) as child:
        child.wait()
    assert list(ancestry.ancestors(child.pid)) == []
    assert ancestry.command_line(child.pid) == b""


def test_a_parent_that_is_younger_is_another_process_with_the_same_id(monkeypatch: pytest.MonkeyPatch) -> None:
    line = {7: (ancestry.Process(7, 100), 6), 6: (ancestry.Process(6, 101), 1)}
    monkeypatch.setattr(ancestry, "_process_and_parent", line.get)
    assert list(ancestry.ancestors(7)) == [ancestry.Process(7, 100)]


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root can start a process of another account")
def test_processes_of_other_accounts_are_not_among_them() -> None:
    with started("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *SLEEP) as pid:
        assert list(ancestry.ancestors(pid)) == []
