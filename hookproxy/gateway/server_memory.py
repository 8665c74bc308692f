"""Measures how much memory the processes of servers use, and ends the server that has grown where it is too much.

A server is measured with all that it has started (`processes/process_tree`). First what is resident is added up, which
is cheap and never too little; only where that is more than a bound allows, what is shared is counted in proportion.
Where a bound is exceeded, the one that ends is, of the servers of the user who has the most there, the one that has
grown most since the bound was kept. Servers that no cgroup holds to the limits of their sandboxes are held to them
here, too. Between two measurements, nothing here holds a server: its cgroup does, or limits of each process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
from msgspec import Struct

from ..model.sizes import shown_size
from ..processes.process_tree import Tree, end_processes, find_trees, proportional_size
from ..sandbox.table import PROCESSES_AROUND

if TYPE_CHECKING:
    from ..model.principal import Principal
    from ..policy.bounds import Bound
    from ..session.server_end import ServerProcess
    from .capacity import Capacity, Claim

_SECONDS: Final = 1.0
"""Between two measurements: a server that allocates as fast as it can gets some gigabytes in a second."""

_SHARE_OF_TIME: Final = 20
"""A measurement that takes longer makes the pause longer: it takes a twentieth of one processor at most."""

_GROWS_SECONDS: Final = 5.0
"""How long a server may take to grow to its usual size: until then it counts as if it had that already."""


_UNKNOWN: Final = 32 * 1024 * 1024
"""Bytes that a server is expected to use of which none was measured yet: in Python 20 to 60 MB, in Node 70."""


class MeasuredServer(Struct, eq=False):
    """A server process that was started here."""

    process: ServerProcess
    name: str
    principal: Principal | None
    """Whose it is; None: everybody's."""
    started: float
    tree: Tree = Tree({}, 0)
    size: int = 0
    """Bytes that it uses, when it was measured last."""
    size_within: int = 0
    """Bytes that it used when no bound was exceeded."""

    @property
    def owner(self) -> str:
        """The id of its user; empty: it is everybody's."""
        return self.principal.id if self.principal is not None else ""


class ServerMemory:
    """All server processes of the gateway, and what they use."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._servers: set[MeasuredServer] = set()
        self._usual: dict[str, dict[str, int]] = {}  # bytes that a process uses after its start: by server and user
        self._has_servers = anyio.Event()
        self.ended: dict[str, int] = {}
        """How many were ended because of their memory, by server."""

    def add(self, process: ServerProcess, name: str, principal: Principal | None) -> None:
        """Measure this process of a server until it ends; None: it is everybody's."""
        self._servers.add(MeasuredServer(process, name, principal, monotonic()))
        self._has_servers.set()

    def expected(self, principal: Principal | None, name: str) -> int:
        """How much memory another process of this server is likely to use.

        What this user's processes use says it best, and else the smallest of what other users' do: nobody makes a
        server look large for others.
        """
        usual = self._usual.get(name, {})
        own = usual.get(principal.id if principal is not None else "")
        return own if own is not None else min(usual.values(), default=_UNKNOWN)

    def sizes(self) -> Mapping[str, int]:
        """Bytes that each server uses, by its name."""
        sizes: dict[str, int] = {}
        for server in self._servers:
            sizes[server.name] = sizes.get(server.name, 0) + server.size
        return sizes

    async def watch(self, capacity: Capacity) -> None:
        """Measure again and again. Runs until it is cancelled."""
        while True:
            await self._has_servers.wait()
            begun = monotonic()
            await self.measure(capacity)
            await anyio.sleep(max(_SECONDS, _SHARE_OF_TIME * (monotonic() - begun)))

    async def measure(self, capacity: Capacity) -> None:
        """Measure all servers, and end those that use too much."""
        self._forget_ended()
        claims = capacity.begin_measurement()
        known = {pid: server.tree.processes for server in self._servers if (pid := server.process.pid) is not None}
        trees = await anyio.to_thread.run_sync(find_trees, known) if known else {}
        for server in self._servers:
            if (tree := trees.get(server.process.pid or 0)) is not None:
                server.tree, server.size = tree, tree.resident
        self._note(capacity, claims)
        if capacity.over_memory():
            await self._measure_in_proportion([server for server in self._servers if server.tree.processes])
            self._note(capacity, ())
        await self._check_sandboxes()
        self._note_usual_sizes()
        for bound, whose in capacity.over_memory():
            self._end_some(bound, whose)
        for server in self._servers:
            server.size_within = server.size

    async def _check_sandboxes(self) -> None:
        """End servers that use more than their sandbox says, where no cgroup holds them to it."""
        for server in self._servers:
            if (sandbox := server.process.watched) is None or not server.tree.processes:
                continue
            if server.tree.threads > sandbox.processes + PROCESSES_AROUND:
                many = f"it has {server.tree.threads} processes and threads"
                self._end(server, f"{many}, and may have {sandbox.processes} (sandbox.processes)")
            elif server.tree.resident > sandbox.memory:
                await self._measure_in_proportion([server])
                if server.size > sandbox.memory:
                    used = f"it uses {shown_size(server.size)} of memory"
                    self._end(server, f"{used}, and may use {shown_size(sandbox.memory)} (sandbox.memory)")

    async def _measure_in_proportion(self, servers: Sequence[MeasuredServer]) -> None:
        sizes = await anyio.to_thread.run_sync(lambda: [proportional_size(server.tree) for server in servers])
        for server, size in zip(servers, sizes, strict=True):
            server.size = size

    def _note(self, capacity: Capacity, claims: Iterable[Claim]) -> None:
        sizes = [(server.principal, server.name, self._counted_size(server)) for server in self._servers]
        capacity.note_memory(sizes, claims)

    def _counted_size(self, server: MeasuredServer) -> int:
        is_new = monotonic() - server.started < _GROWS_SECONDS
        return max(server.size, self.expected(server.principal, server.name)) if is_new else server.size

    def _note_usual_sizes(self) -> None:
        found: dict[tuple[str, str], list[int]] = {}
        for server in self._servers:
            if server.size and monotonic() - server.started >= _GROWS_SECONDS:
                found.setdefault((server.name, server.owner), []).append(server.size)
        for (name, owner), sizes in found.items():
            self._usual.setdefault(name, {})[owner] = sorted(sizes)[len(sizes) // 2]

    def _end_some(self, bound: Bound, whose: str) -> None:
        """End servers until the bound is kept."""
        most = bound.memory or 0
        there = [
            server
            for server in self._servers
            if bound.is_about(server.principal, server.name) and (bound.together or server.owner == whose)
        ]
        used = sum(server.size for server in there)
        why = f"{shown_size(used)} of memory are used, and {shown_size(most)} may be ({bound.name})"
        while there and used > most:
            of_owners = Counter[tuple[str, str]]()
            for server in there:
                of_owners[_owner_of(server)] += server.size
            heaviest = max(of_owners, key=of_owners.__getitem__)
            grown = max(
                (server for server in there if _owner_of(server) == heaviest),
                key=lambda server: (server.size - server.size_within, server.size),
            )
            there.remove(grown)
            used -= grown.size
            self._end(grown, why, f"it has grown most, and uses {shown_size(grown.size)}")

    def _end(self, server: MeasuredServer, why: str, and_why: str = "") -> None:
        of_user = f" of {server.principal.name}" if server.principal is not None else ""
        self._report(
            f"a process of the server {server.name}{of_user} is ended: {'; '.join(filter(None, (why, and_why)))}"
        )
        server.process.end_because(", and ".join(filter(None, (why, and_why))))
        end_processes(server.tree.processes)
        server.size = 0
        self.ended[server.name] = self.ended.get(server.name, 0) + 1

    def _forget_ended(self) -> None:
        self._servers = {server for server in self._servers if server.process.pid is not None}
        if not self._servers:
            self._has_servers = anyio.Event()


def _owner_of(server: MeasuredServer) -> tuple[str, str]:
    """Who has the server; each one that is everybody's stands for itself."""
    return server.owner, "" if server.owner else server.name
