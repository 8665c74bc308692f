"""What systemd is told of the gateway, over a real socket as systemd's."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookproxy.gateway.service_manager import ServiceManager, take_address


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    """The value of NOTIFY_SOCKET, and the socket that it names."""
    if request.param == "abstract" and os.uname().sysname != "Linux":
        pytest.skip("only Linux has abstract sockets")
    address = f"{tmp_path}/notify" if request.param == "path" else f"@hookproxy-{uuid.uuid4().hex}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(address.replace("@", "\0", 1) if address.startswith("@") else address)
        listener.settimeout(30)
        yield address, listener


def test_each_state_is_one_datagram(manager: tuple[str, socket.socket]) -> None:
    address, listener = manager
    reports: list[str] = []
    service = ServiceManager(address, reports.append)
    service.ready("serves a, b")
    assert listener.recv(4096) == b"READY=1\nSTATUS=serves a, b"
    service.reloading()
    state, _, microseconds = listener.recv(4096).decode().partition("\nMONOTONIC_USEC=")
    assert (state, microseconds.isdecimal()) == ("RELOADING=1", True)
    service.ready("two\nlines")
    assert listener.recv(4096) == b"READY=1\nSTATUS=two lines"
    service.stopping()
    assert listener.recv(4096) == b"STOPPING=1"
    assert reports == []


def test_without_systemd_nobody_is_told() -> None:
    reports: list[str] = []
    service = ServiceManager("", reports.append)
    service.ready("x")
    service.reloading()
    service.stopping()
    assert reports == []


@pytest.mark.parametrize("address", ["/no/such/socket", "@" + "x" * 200, "vsock:2:1", "relative"])
def test_systemd_that_cannot_be_told_is_reported_and_nothing_fails(address: str) -> None:
    reports: list[str] = []
    ServiceManager(address, reports.append).ready("x")
    assert len(reports) == 1
    assert reports[0].startswith(f"systemd cannot be told READY=1 at {address}: ")


def test_systemd_that_does_not_read_holds_up_nothing_for_long(tmp_path: Path) -> None:
    reports: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(f"{tmp_path}/notify")
        service = ServiceManager(f"{tmp_path}/notify", reports.append, wait_seconds=0.001)
        while not reports:
            service.stopping()
    assert "STOPPING=1" in reports[0]


def test_children_do_not_get_the_address() -> None:
    environ = {"NOTIFY_SOCKET": "/run/systemd/notify", "PATH": "/bin"}
    assert take_address(environ) == "/run/systemd/notify"
    assert environ == {"PATH": "/bin"}
    assert take_address(environ) == ""
