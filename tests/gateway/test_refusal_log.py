"""The log of refusals has one line for each address and reason in ten seconds."""

from __future__ import annotations

from hookproxy.gateway import refusal_log
from hookproxy.gateway.refusal_log import RefusalLog


class Log:
    """A log and its clock."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.now = 0.0
        self.refusals = RefusalLog(self.lines.append, lambda: self.now)


def test_the_first_is_reported_and_the_others_are_counted() -> None:
    log = Log()
    for number in range(1000):
        log.refusals.note("192.0.2.1", "no token", f"192.0.2.1: refused: token {number} is not known")
    assert log.lines == ["192.0.2.1: refused: token 0 is not known"]
    log.now = 9.0
    log.refusals.report_counts()
    assert len(log.lines) == 1
    log.now = 10.0
    log.refusals.report_counts()
    assert log.lines[1:] == ["192.0.2.1: refused: token 0 is not known (999 more times in 10 seconds)"]
    log.refusals.note("192.0.2.1", "no token")
    assert log.lines[2:] == ["a request from 192.0.2.1 was refused: no token"]


def test_another_address_or_reason_has_its_own_line() -> None:
    log = Log()
    for who, why in (("a", "x"), ("b", "x"), ("a", "y")):
        log.refusals.note(who, why)
    assert len(log.lines) == 3
    log.now = 20.0
    log.refusals.report_counts()
    assert len(log.lines) == 3
    assert not log.refusals._seen


def test_a_flood_from_many_networks_takes_neither_lines_nor_memory() -> None:
    log = Log()
    for number in range(3 * refusal_log._MOST):
        log.refusals.note(f"network {number}", "x")
    assert len(log.lines) == len(log.refusals._seen) == refusal_log._MOST + 1
    log.now = 10.0
    log.refusals.report_counts()
    assert log.lines[-1].endswith("(1999 more times in 10 seconds)")
