"""Looks whether the files that decide are still as they were when the policy was read.

A script that somebody has changed runs in its new version at once, while the audit goes on to name the policy that was
read: this is reported and counted, until a reload.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from ..config.policy_digest import PolicyParts, changed_since

if TYPE_CHECKING:
    from .gateway import Gateway
    from .log import GatewayLog

_LOOK_SECONDS: Final = 5.0
"""How often it is looked: one system call for each file, and a policy has some ten."""


class PolicyWatch:
    """What was found changed under the policy in force."""

    def __init__(self, gateway: Gateway, report: GatewayLog) -> None:
        self._gateway = gateway
        self._report = report
        self._parts: PolicyParts = {}
        self._reported: set[str] = set()

    async def watch(self) -> None:
        """Look again and again. Runs until it is cancelled."""
        while True:
            await anyio.sleep(_LOOK_SECONDS)
            await self.look()
            self._gateway.health.look()

    async def look(self) -> None:
        """Report each file that has changed under the policy in force, once."""
        parts = self._gateway.config.parts
        if parts is not self._parts:
            self._parts, self._reported = parts, set()
        changed = await anyio.to_thread.run_sync(changed_since, parts)
        self._gateway.metrics.policy_changed = len(changed)
        for path in (path for path in changed if path not in self._reported):
            version = self._gateway.config.version[:12]
            self._report(f"{path} has changed since policy {version} was read: hookproxy reload puts it into force")
        self._reported = set(changed)
