"""Sends the audit to an OpenTelemetry collector, and goes on where it was left: no call waits for it.

Source: OTLP 1.10 over HTTP: which responses mean "try again", and which mean "never".
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterable
from time import time
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
import msgspec

from .. import __version__
from ..audit import os_user
from ..audit.export import AuditReader, Batch, logs_request
from ..jsonrpc.known_secrets import known_secrets
from ..model.errors import UserError, printable
from .secrets import read_secrets

if TYPE_CHECKING:
    import httpx2

    from ..config.gateway import GatewayConfig
    from .metrics import Metrics

_LOOK_SECONDS: Final = 1.0
"""How often it is looked for new lines: two system calls each time."""

_SECONDS: Final = 10.0  # that a request may take with its response, as in OpenTelemetry's own SDKs
_LONGEST_PAUSE: Final = 30.0  # seconds between two tries: a collector that is back gets the audit soon
_REFUSED: Final = (400, 413, 422)
"""The collector will never take these lines. Everything else may be repaired: another token, another address."""


class _NotSent(Exception):
    """Why lines were not taken, in a few words."""

    def __init__(self, why: str, *, for_good: bool = False) -> None:
        super().__init__(why)
        self.for_good = for_good


class AuditExport:
    """All audit files of a gateway, and the collector."""

    def __init__(self, config: GatewayConfig, report: Callable[[str], None], metrics: Metrics) -> None:
        """Raises UserError for a token or certificates that cannot be read, and if there is nothing to send."""
        table = config.gateway.audit_export
        assert table is not None, "only for a configuration that has it"
        self._table = table
        self._report = report
        self._metrics = metrics
        self._headers = {"Content-Type": "application/json", "User-Agent": f"hookproxy/{__version__}"}
        if table.token is not None:
            token = read_secrets({"gateway.audit_export.token": table.token})["gateway.audit_export.token"]
            self._headers["Authorization"] = f"Bearer {token}"
            secrets = known_secrets([token])  # a collector may repeat it in an error
            self._report = lambda text: report(secrets.removed_from(text))
        self._tls = _tls(os.path.join(os.path.dirname(config.path), table.ca) if table.ca else "")
        self._resource = {
            "service.name": "hookproxy",
            "service.version": __version__,
            "service.instance.id": config.gateway.instance,
            "host.name": os.uname().nodename,
        }
        self._readers = tuple(map(_reader, _audit_files(config)))  # before the first call writes a line
        if not self._readers:
            raise UserError("gateway.audit_export: there is no audit file to send", "set [audit] file")
        metrics.audit_unsent = self._unsent

    async def send_audit(self) -> None:
        """Send what is new. Runs until it is cancelled; what was not sent then is sent after the next start."""
        import httpx2

        async with (
            httpx2.AsyncClient(verify=self._tls, timeout=_SECONDS, follow_redirects=False) as client,
            anyio.create_task_group() as tasks,
        ):
            for reader in self._readers:
                tasks.start_soon(self._send_file, client, reader)

    async def _send_file(self, client: httpx2.AsyncClient, reader: AuditReader) -> None:
        pause, failure = _LOOK_SECONDS, ""
        while True:
            try:
                while await self._send_next(client, reader):
                    pause = _LOOK_SECONDS
                    if failure:
                        self._report(f"the audit is sent to {self._table.url} again")
                        failure = ""
            except (_NotSent, OSError) as problem:
                why = f"{problem.filename}: {problem.strerror}" if isinstance(problem, OSError) else str(problem)
                if not failure:
                    what = f"the audit {reader.path} cannot be sent to {self._table.url} now"
                    self._report(f"{what}: {why}; it is tried again")
                failure, pause = why, min(pause * 2, _LONGEST_PAUSE)
            await anyio.sleep(pause)

    async def _send_next(self, client: httpx2.AsyncClient, reader: AuditReader) -> bool:
        """Send the next lines. Returns whether there were any. Raises OSError, _NotSent."""
        path, removed = reader.path, reader.removed
        batch = await anyio.to_thread.run_sync(reader.read)
        if reader.removed > removed:
            self._report(f"{path}: a rotated file was removed before all of it was sent (audit.keep_files)")
        if batch is None:
            return False
        if not await self._is_taken(client, batch, path):
            for _ in batch.lines:  # one of them is to blame
                alone = await anyio.to_thread.run_sync(reader.read, 1)
                if alone is not None:
                    await self._is_taken(client, alone, path)
                    reader.note(alone.after)
            return True
        reader.note(batch.after)
        return True

    async def _is_taken(self, client: httpx2.AsyncClient, batch: Batch, path: str) -> bool:
        """Send lines. False: the collector will never take them together. Raises _NotSent.

        A line that it will not take alone either is reported, and stays in the file.
        """
        try:
            refused_lines = await self._post(client, batch)
        except _NotSent as refused:
            if not refused.for_good:
                raise
            if len(batch.lines) > 1:
                return False
            self._report(f"{path}: the collector has refused a line of {len(batch.lines[0])} bytes: {refused}")
        else:
            self._metrics.audit_sent += max(0, len(batch.lines) - refused_lines)
        return True

    async def _post(self, client: httpx2.AsyncClient, batch: Batch) -> int:
        """Send lines to the collector. Returns how many of them it has not kept. Raises _NotSent."""
        import httpx2

        body = await anyio.to_thread.run_sync(logs_request, batch.lines, self._resource, time())
        try:
            with anyio.fail_after(_SECONDS):  # the client's own limit begins anew with each byte of a response
                response = await client.post(self._table.url, content=body, headers=self._headers)
        except TimeoutError:
            raise _NotSent(f"it does not respond within {_SECONDS:g} s") from None
        except httpx2.HTTPError as error:
            raise _NotSent(printable(str(error)) or type(error).__name__) from None
        if response.status_code in _REFUSED:
            raise _NotSent(f"it responds with {response.status_code}", for_good=True)
        if not response.is_success:
            raise _NotSent(f"it responds with {response.status_code}")
        refused, why = _rejected(response.content)
        if refused:
            self._report(f"the collector has refused {refused} lines of the audit: {why}")
        return refused

    def _unsent(self) -> int:
        return sum(reader.unsent_bytes for reader in self._readers)


class _PartialSuccess(msgspec.Struct, rename="camel"):
    rejected_log_records: int = 0
    """A string in the JSON of OTLP, a number of some collectors."""
    error_message: str = ""


class _LogsResponse(msgspec.Struct, rename="camel"):
    partial_success: _PartialSuccess | None = None


def _rejected(body: bytes) -> tuple[int, str]:
    """How many lines a collector has not kept, and what it says of them."""
    try:
        partial = msgspec.json.decode(body, type=_LogsResponse, strict=False).partial_success
    except msgspec.MsgspecError:
        return 0, ""  # a response without a body, or in another encoding
    return (partial.rejected_log_records, printable(partial.error_message)) if partial is not None else (0, "")


def _audit_files(config: GatewayConfig) -> Iterable[str]:
    """The files of all servers, each once."""
    files = (os_user.audit_path(server.loaded.settings.audit_file) for server in config.servers.values())
    return dict.fromkeys(path for path in files if path)


def _reader(path: str) -> AuditReader:
    """Raises UserError."""
    try:
        return AuditReader(path)
    except OSError as error:
        problem = f"gateway.audit_export: {error.filename or path}: {error.strerror}"
        raise UserError(problem, "the gateway's account must be able to write there") from None


def _tls(ca: str) -> ssl.SSLContext:
    """Raises UserError."""
    try:
        return ssl.create_default_context(cafile=ca or None)
    except (OSError, ssl.SSLError) as error:
        why = error.strerror or str(error)
        raise UserError(f"gateway.audit_export.ca: {ca} cannot be used: {why}", "name a file with PEM") from None
