"""Keeps a gateway's signed policy current: asks its source, and has the gateway reload when another one is in force.

A policy that cannot be fetched, verified or used changes nothing, and is reported once for each reason. What another
process does with the same folder (`hookproxy policy rollback`, another gateway) is noticed within seconds.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
from msgspec.structs import replace

from ..audit.log import NOT_WRITTEN, Audit
from ..bundles.store import STATE, Store
from ..bundles.update import refresh
from ..checks import signed_policy
from ..model.errors import UserError, describe_error
from ..model.hooks import Session
from ..processes import service
from .hooks_account import environment_account
from .metrics import PolicyUpdateCounts
from .secrets import secrets_redacted

if TYPE_CHECKING:
    from ..config.gateway import GatewayConfig
    from ..model.policy_source import PolicySource
    from .gateway import Gateway
    from .log import GatewayLog

_LOOK_SECONDS: Final = 2.0
"""Between looks at what another process has done: an administrator who goes back to an older policy waits so long."""

_SPREAD: Final = 0.1
"""A part of the time between two questions that is random: many gateways must not ask at the same moment."""


class PolicyUpdates:
    """The signed policy of one gateway."""

    def __init__(
        self,
        gateway: Gateway,
        load: Callable[[str], GatewayConfig],
        report: GatewayLog,
        reload: Callable[[], Awaitable[object]],
    ) -> None:
        self._gateway = gateway
        self._load = load
        self._report = report
        self._reload = reload
        self._reported = ""
        self._counts = gateway.metrics.policy_updates = PolicyUpdateCounts()
        self._seen: object = None
        self._asked = anyio.Event()

    async def keep_current(self) -> None:
        """Ask the source again and again, at once if nothing is in force. Returns when there is none any more."""
        self._note("policy in force at the start")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_asking)
            while (policy := self._gateway.config.source) is not None:
                await self._follow()  # whatever the source does: it may take minutes to say nothing
                with anyio.move_on_after(min(_LOOK_SECONDS, policy.refresh_seconds)):
                    await self._asked.wait()
                self._asked = anyio.Event()
            tasks.cancel_scope.cancel()
        self._gateway.metrics.policy_updates = None

    async def _keep_asking(self) -> None:
        next_question = 0.0 if self._gateway.config.bundle is None else self._later()
        while (policy := self._gateway.config.source) is not None:
            if time.monotonic() >= next_question:
                await self._ask(policy)
                self._asked.set()
                next_question = self._later()
            await anyio.sleep(min(_LOOK_SECONDS, policy.refresh_seconds))

    def _later(self) -> float:
        policy = self._gateway.config.source
        seconds = policy.refresh_seconds if policy is not None else 0.0
        return time.monotonic() + seconds * random.uniform(1 - _SPREAD, 1 + _SPREAD)

    async def _ask(self, policy: PolicySource) -> None:
        try:
            await refresh(policy, self._try, os.environ)
        except UserError as problem:
            why = f"{problem.message} ({problem.hint})"
        except Exception as defect:  # the gateway must not end because of a policy
            why = describe_error(defect)
        else:
            why, self._counts.checked = "", time.time()
        if why:
            self._counts.failures += 1
            if why != self._reported:
                self._report(f"policy: {why}")
        self._reported = why

    def _try(self, folder: str) -> None:
        """Raise UserError if the gateway could not use the policy in this folder."""
        config = self._load(folder)
        environ = service.environment(environment_account(), {})
        for server in config.servers.values():
            signed_policy.check(server.loaded, folder, environ)

    async def _follow(self) -> None:
        """Reload if another policy is in force, or the one in force has just expired."""
        config = self._gateway.config
        has_expired = config.bundle is not None and not config.closed and time.time() >= config.bundle.expires
        signature = self._signature()
        if signature == self._seen and not (has_expired and self._closes_on_expiry()):
            return
        self._seen = signature
        before = config.bundle
        state = await anyio.to_thread.run_sync(self._state_digest)
        if before is not None and state == before.digest and not has_expired:
            return  # only what is known of the source has changed
        if before is None and not state:
            return
        await self._reload()
        if has_expired and self._gateway.config.bundle == before and not self._gateway.config.closed:
            why = f"the policy, {before.shown if before else ''}, has expired, and the configuration cannot be read"
            self._gateway.change_policy(replace(self._gateway.config, closed=why))
        if self._gateway.config.bundle != before or self._gateway.config.closed != config.closed:
            self._note("policy changed")

    def _closes_on_expiry(self) -> bool:
        policy = self._gateway.config.source
        return policy is not None and policy.on_expired == "deny"

    def _signature(self) -> object:
        policy = self._gateway.config.source
        if policy is None:
            return None
        try:
            state = os.stat(os.path.join(policy.folder, STATE))
        except OSError:
            return None
        return state.st_ino, state.st_mtime_ns, state.st_size

    def _state_digest(self) -> str:
        policy = self._gateway.config.source
        try:
            current = None if policy is None else Store(policy.folder).state().current
        except UserError:
            return "unreadable"
        return "" if current is None else current.digest

    # --- the audit ---

    def _note(self, what: str) -> None:
        """Write into each audit file which policy is in force, and who has gone back to an older one."""
        text = f"{what}: {self._described()}"
        self._report(text)
        config = self._gateway.config
        for server_name in _one_for_each_file(config):
            server = config.servers[server_name]
            audit = Audit(secrets_redacted(server, server.loaded.settings), None, config.version)
            session = Session("", server.name, server.cwd, server.cwd)
            if problem := audit.note(session, text) or audit.close():
                self._report(f"{NOT_WRITTEN}: {problem}")

    def _described(self) -> str:
        config = self._gateway.config
        if config.closed:
            return f"nothing may pass: {config.closed}"
        if config.bundle is None or config.source is None:
            return "none, only the local configuration"
        try:
            pinned = Store(config.source.folder).state().pinned
        except UserError:
            pinned = None
        back = (
            ""
            if pinned is None
            else f", to which {pinned.by} went back; it stays until a newer one than {pinned.until}"
        )
        return f"{config.bundle.shown}, {config.bundle.digest}{back}"


def _one_for_each_file(config: GatewayConfig) -> Iterator[str]:
    files = set()
    for name, server in config.servers.items():
        file = server.loaded.settings.audit_file
        if file and file not in files:
            files.add(file)
            yield name
