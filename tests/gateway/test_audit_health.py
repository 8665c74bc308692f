"""An audit that cannot be written: what the metrics, the readiness and the log of a gateway say of it."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import cast

import pytest

from hookproxy.audit.call_record import Record
from hookproxy.config.gateway import GatewayServer, load_gateway
from hookproxy.gateway import probes
from hookproxy.gateway.audit_health import QUIET_SECONDS, REPORT_SECONDS, AuditHealth
from hookproxy.gateway.gateway import Gateway
from hookproxy.gateway.log import GatewayLog
from hookproxy.gateway.metrics import Metrics
from hookproxy.gateway.servers import Servers
from hookproxy.gateway.session import MeteredAudit
from hookproxy.model.principal import Principal
from hookproxy.model.settings import Settings
from hookproxy.protocol.calls import Call
from hookproxy.transports.http.request_reader import Peer, Request
from hookproxy.transports.http.responder import Headers, Responder

ALICE = Principal("uid:1000", "alice")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Rig:
    """The audits of two sessions of a gateway with one file, whose folder can be taken away."""

    def __init__(self, folder: Path, *, required: bool = True) -> None:
        self.file = folder / "logs" / "audit.jsonl"
        self.settings = Settings(audit_file=str(self.file), audit_required=required)
        self.metrics, self.clock, self.log = Metrics(), Clock(), list[str]()
        self.health = AuditHealth(self.log.append, self.metrics, self.clock)
        self.audits = [MeteredAudit(self.settings, ALICE, "p", self.metrics, self.health) for _ in range(2)]

    def block(self) -> None:
        for audit in self.audits:
            audit.close()
        if self.file.exists():
            self.file.unlink()
        self.file.mkdir(parents=True)

    def unblock(self) -> None:
        self.file.rmdir()

    def write(self, cause: str = "") -> str:
        record = Record("s", "files", "read", b"1", b"{}", cause=cause)
        problem = ""
        for audit in self.audits:
            problem = audit.write(record) or problem
        return problem


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def test_lines_are_counted_as_written_or_failed(rig: Rig) -> None:
    assert not rig.write()
    assert (rig.metrics.audit_written, rig.metrics.audit_failed, rig.metrics.audit_up) == (2, 0, True)
    rig.block()
    assert rig.write()
    assert (rig.metrics.audit_written, rig.metrics.audit_failed, rig.metrics.audit_up) == (2, 2, False)
    rig.unblock()
    assert not rig.write()  # with those that have waited
    assert (rig.metrics.audit_written, rig.metrics.audit_failed, rig.metrics.audit_up) == (6, 2, True)
    text = rig.metrics.text(Counter(), "p", draining=False)
    assert "\nhookproxy_audit_written_total 6\n" in text
    assert "\nhookproxy_audit_failed_total 2\n" in text
    assert "\nhookproxy_audit_up 1\n" in text


def test_lines_that_wait_at_the_end_of_a_session_are_lost(rig: Rig) -> None:
    rig.block()
    rig.write()
    for audit in rig.audits:
        audit.close()
    assert rig.metrics.audit_lost == 2


def test_a_failing_audit_is_one_line_a_minute_with_the_count_of_all_sessions(rig: Rig) -> None:
    rig.block()
    for _ in range(50):
        rig.write("audit")
        rig.clock.now += 1
    assert len(rig.log) == 1
    assert rig.log[0] == f"the audit log cannot be written: {rig.file}: Is a directory"
    rig.clock.now += REPORT_SECONDS
    rig.write("audit")
    assert len(rig.log) == 2
    assert rig.log[1].endswith("; 100 failures, and 100 calls refused since the last line about it")
    assert rig.metrics.audit_refused == 102


def test_an_audit_that_can_be_written_now_and_then_is_one_line_a_minute(rig: Rig) -> None:
    for _ in range(59):
        rig.block()
        rig.write()
        rig.unblock()
        rig.write()
        rig.health.look()
        rig.clock.now += 1
    assert len(rig.log) == 1
    assert rig.metrics.audit_up
    rig.clock.now += REPORT_SECONDS
    rig.health.look()
    assert "is written again; 117 failures" in rig.log[1]
    rig.block()
    rig.write()
    assert len(rig.log) == 3


def test_an_audit_that_has_failed_must_take_a_line_before_calls_come_again(rig: Rig) -> None:
    class Server:
        loaded = rig  # it has settings

    rig.health.watch([cast("GatewayServer", Server)])
    assert rig.health.problem() == ""
    rig.health.failed(str(rig.file), f"{rig.file}: No space left on device")  # a probe would find some space
    rig.block()
    rig.clock.now += 2
    assert "Is a directory" in rig.health.problem()
    rig.clock.now += 2
    assert "Is a directory" in rig.health.problem()
    rig.unblock()
    rig.clock.now += 2
    assert rig.health.problem() == ""
    assert "lines could not be written" in rig.file.read_text()
    assert rig.file.read_text().count("\n") == 1
    assert rig.metrics.audit_up
    rig.health.watch(())


def test_that_it_is_written_again_is_told_once(rig: Rig) -> None:
    rig.block()
    rig.write()
    rig.health.look()
    rig.unblock()
    rig.write()
    rig.health.look()
    assert len(rig.log) == 1
    rig.clock.now += QUIET_SECONDS
    rig.health.look()
    rig.health.look()
    assert rig.log[1:] == ["the audit log is written again; 1 failure since the last line about it"]


def test_a_session_of_a_gateway_does_not_report_it_too(rig: Rig) -> None:
    assert all(audit.reports_failures for audit in rig.audits)


class Answer:
    """A responder that notes what it is given."""

    status, body = 0, b""

    def respond(self, status: int, headers: Headers, body: bytes) -> None:
        self.status, self.body = status, body


def readiness(gateway: Gateway) -> int:
    answer = Answer()
    probes.respond(gateway, Request(b"GET", b"/readyz", [], b"", Peer("127.0.0.1")), cast("Responder", answer))
    return answer.status


@pytest.mark.parametrize("required", [True, False])
def test_readyz_turns_where_calls_are_refused_because_nothing_can_be_recorded(tmp_path: Path, required: bool) -> None:
    file = tmp_path / "logs" / "audit.jsonl"
    text = f'[audit]\nfile = "{file}"\nrequired = {str(required).lower()}\n[servers.s]\ncommand = ["cat"]\n'
    (tmp_path / "gateway.toml").write_text(text)
    gateway = Gateway(load_gateway("gateway.toml", {}, str(tmp_path)), cast("Servers", None), GatewayLog(as_json=False))
    clock = Clock()
    gateway.health._now = clock
    assert readiness(gateway) == 200
    for name in os.listdir(file.parent) if file.parent.exists() else ():
        (file.parent / name).unlink()
    file.mkdir(parents=True)
    clock.now += 2
    assert readiness(gateway) == (503 if required else 200)
    file.rmdir()
    assert readiness(gateway) == (503 if required else 200)  # looked at once a second
    clock.now += 2
    assert readiness(gateway) == 200


def call() -> Call:
    return cast("Call", None)  # no span is made of it


@pytest.mark.parametrize(
    ("audit", "begins"),
    [
        ("", True),
        ("begun = true", True),
        ("begun = false", False),
        ("begun = false\nrequired = true", True),
    ],
)
def test_a_gateway_writes_that_a_call_has_begun_unless_it_is_switched_off(
    tmp_path: Path, audit: str, begins: bool
) -> None:
    (tmp_path / "gateway.toml").write_text(
        f'[audit]\nfile = "{tmp_path}/audit.jsonl"\n{audit}\n[servers.s]\ncommand = ["cat"]\n'
    )
    server = load_gateway("gateway.toml", {}, str(tmp_path)).servers["s"]
    metrics = Metrics()
    health = AuditHealth(lambda _text: None, metrics)
    written = MeteredAudit(server.settings_for(ALICE), ALICE, "p", metrics, health)
    record = Record("s", "s", "read", b"1", b"{}")
    written.begin(record, call())
    assert not written.write_begun(record)
    assert (tmp_path / "audit.jsonl").exists() is begins
    assert metrics.audit_written == begins


def test_a_call_goes_on_if_only_its_beginning_cannot_be_recorded_and_need_not_be(tmp_path: Path) -> None:
    rig = Rig(tmp_path, required=False)
    settings = Settings(audit_file=str(rig.file), audit_begun=True)
    audit = MeteredAudit(settings, ALICE, "p", rig.metrics, rig.health)
    rig.block()
    assert not audit.write_begun(Record("s", "s", "read", b"1", b"{}"))
    assert rig.metrics.audit_failed == 1
