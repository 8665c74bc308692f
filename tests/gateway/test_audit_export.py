"""What the gateway makes of a collector's responses; real connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from hookproxy.config.gateway import load_gateway
from hookproxy.gateway import audit_export
from hookproxy.gateway.audit_export import AuditExport
from hookproxy.gateway.metrics import Metrics

pytestmark = pytest.mark.anyio

Answer = Callable[[asyncio.StreamWriter, int], Awaitable[None]]
"""Answers the request with this number."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def exported(folder: Path, answer: Answer) -> AsyncIterator[tuple[list[str], Path, Metrics]]:
    """What is reported while the lines of an audit file are sent to a collector that answers so."""
    requests = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
        requests += 1
        try:
            await answer(writer, requests)
        except OSError:  # it has given up
            return
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/logs"
    (folder / "gateway.toml").write_text(
        f'[gateway.audit_export]\nurl = "{url}"\n[audit]\nfile = "audit.jsonl"\n[servers.a]\ncommand = ["cat"]\n'
    )
    reports: list[str] = []
    metrics = Metrics()
    export = AuditExport(load_gateway("gateway.toml", {}, str(folder)), reports.append, metrics)
    try:
        async with anyio.create_task_group() as tasks:
            with anyio.fail_after(30):
                tasks.start_soon(export.send_audit)
                yield reports, folder / "audit.jsonl", metrics
                tasks.cancel_scope.cancel()
    finally:
        server.close()


async def until(happens: Callable[[], bool]) -> None:
    while not happens():  # noqa: ASYNC110  # what another program has done is no event here
        await anyio.sleep(0.01)


async def test_a_response_that_never_ends_counts_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_export, "_SECONDS", 2)
    monkeypatch.setattr(audit_export, "_LOOK_SECONDS", 0.01)

    async def answer(writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nConnection: close\r\n\r\n")
        if number > 1:
            writer.write(b"{}" + b" " * 99_998)
        while number == 1:
            writer.write(b" ")
            await writer.drain()
            await anyio.sleep(0.02)

    async with exported(tmp_path, answer) as (reports, audit, metrics):
        audit.write_bytes(b'{"call":"1"}\n')
        await until(lambda: metrics.audit_sent == 1)
        assert "it does not respond within 2 s; it is tried again" in reports[0]
        assert reports[1].endswith("again")
        assert len(reports) == 2


async def test_lines_that_a_collector_has_not_kept_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_export, "_LOOK_SECONDS", 0.01)

    async def answer(writer: asyncio.StreamWriter, number: int) -> None:
        body = b'{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"too \\u001b old"}}'
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(body), body))

    async with exported(tmp_path, answer) as (reports, audit, metrics):
        audit.write_bytes(b'{"call":"1"}\n{"call":"2"}\n{"call":"3"}\n')
        await until(lambda: bool(reports))
        await until(lambda: metrics.audit_sent == 1)
        assert reports == ["the collector has refused 2 lines of the audit: too \\x1b old"]
