"""Signed checkpoints of a gateway's audit: they begin with the gateway, and the newest one is also kept in the store.

Who cuts the end of the audit and of the copy beside it, and whatever stops a session, meets the copy in the store: it
is compared before the first checkpoint of a process, and by `hookproxy audit verify --store`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from ..audit import os_user, sealer
from ..audit.log import file_options
from ..config.gateway_models import GatewayTable, StoreTable
from ..model.errors import UserError
from ..policy.shared_state import StoreUnavailable
from .metrics import Metrics
from .store import Store

if TYPE_CHECKING:
    from ..audit.sealer import Sealer
    from ..config.gateway import GatewayConfig
    from ..model.settings import Settings
    from .gateway import Gateway
    from .log import GatewayLog

_LOOK_SECONDS: Final = 1.0
"""How often it is looked for a new checkpoint: no system call unless there is one."""


class AuditSigning:
    """The sealers of all audit files that are signed."""

    def __init__(self, gateway: Gateway, report: GatewayLog) -> None:
        self._gateway = gateway
        self._report = report
        self._sealers: dict[tuple[str, str], Sealer] = {}
        self._stored: dict[str, bytes] = {}  # by path: what the store has
        self._not_compared = set[str]()  # paths whose copies the store has not shown yet
        self._config: GatewayConfig | None = None

    async def begin(self) -> None:
        """Look whether the audits are as they were left, and sign what was left unsigned."""
        config = self._config = self._gateway.config
        wanted = dict(_signed_audits(config))
        for key in [key for key in self._sealers if key not in wanted]:
            await anyio.to_thread.run_sync(sealer.release, self._sealers.pop(key))
        for key, settings in wanted.items():
            if key not in self._sealers:
                path = key[0]
                found = self._sealers[key] = sealer.acquire(path, file_options(settings, path), settings)
                found.report = self._report  # it writes at once, from any thread
                found.instance = _own_name(config.gateway)
                await self._compare(path, found)
                found.begin()
        self._gateway.metrics.audit_unsigned = self._unsigned if self._sealers else None

    def _unsigned(self) -> int:
        return sum(one.unsigned_lines for one in self._sealers.values())

    async def keep_copies(self) -> None:
        """Put each new checkpoint into the store, and follow the configuration. Runs until it is cancelled."""
        while True:
            await anyio.sleep(_LOOK_SECONDS)
            if self._gateway.config is not self._config:
                await self.begin()
            for (path, _), one in list(self._sealers.items()):
                if path in self._not_compared:
                    await self._compare(path, one)
                    if path not in self._not_compared:
                        one.begin()
            await self._store_copies()

    async def sign_now(self) -> None:
        """Sign what was written so far: nothing more will come."""
        for one in self._sealers.values():
            await anyio.to_thread.run_sync(one.seal)
        await self._store_copies()

    def close(self) -> None:
        """Sign what is left, as the last of this process. After the last session."""
        for one in self._sealers.values():
            sealer.release(one)
        self._sealers.clear()

    # --- the store ---

    async def _compare(self, path: str, sealer: Sealer) -> None:
        """Have the copy in the store compared with the audit, as soon as the store has it."""
        store = self._gateway.store
        if store is None:
            return
        try:
            copy = await store.ask("GET", _copy_key(store, writer_of(self._gateway.config.gateway), path))
        except StoreUnavailable as problem:
            if path not in self._not_compared:
                why = f"is compared with the last checkpoint in the store when the store answers: {problem}"
                self._report(f"the audit {path} {why}")
            self._not_compared.add(path)
            return
        self._not_compared.discard(path)
        if isinstance(copy, bytes):
            sealer.expect(copy)

    async def _store_copies(self) -> None:
        store = self._gateway.store
        if store is None:
            return
        for (path, _), one in self._sealers.items():
            newest = one.newest
            if path in self._not_compared:
                continue  # else what was there would be lost
            if newest is not None and self._stored.get(path) != newest.text:
                try:
                    await store.ask("SET", _copy_key(store, newest.checkpoint.writer, path), newest.text)
                except StoreUnavailable:
                    return  # it is reported where the store is looked after, and tried again
                self._stored[path] = newest.text


def _signed_audits(config: GatewayConfig) -> Iterator[tuple[tuple[str, str], Settings]]:
    """The audits with signatures, each once: path and key, and settings that name them."""
    for server in config.servers.values():
        settings = server.loaded.settings
        path = os_user.audit_path(settings.audit_file)
        if path and settings.audit_sign_key:
            yield (path, settings.audit_sign_key), settings


def _own_name(table: GatewayTable) -> str:
    """The gateway's name; empty: it has got none, and several machines may have that."""
    return "" if table.instance == GatewayTable().instance else table.instance


def writer_of(table: GatewayTable) -> str:
    """As `Checkpoint.writer`."""
    return _own_name(table) or os.uname().nodename


def _copy_key(store: Store, writer: str, path: str) -> str:
    """The key of the newest checkpoint of an audit."""
    return store.key("audit", writer, path)


async def copy_from_store(table: StoreTable, folder: str, writer: str, path: str) -> bytes | None:
    """The newest checkpoint of an audit that the store has; None: it has none. Raises UserError."""
    store = Store(table, folder, lambda _text: None, Metrics())
    try:
        copy = await store.ask_once("GET", _copy_key(store, writer, path))
    except StoreUnavailable as problem:
        hint = "it must answer, or leave --store out"
        raise UserError(f"the store at {table.url} cannot be asked: {problem}", hint) from None
    return copy if isinstance(copy, bytes) else None
