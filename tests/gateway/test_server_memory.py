"""Which server ends where too much memory is used."""

from __future__ import annotations

import pytest

from hookproxy.gateway import server_memory
from hookproxy.gateway.capacity import Capacity
from hookproxy.gateway.server_memory import ServerMemory
from hookproxy.model.principal import Principal
from hookproxy.policy.bounds import Bound
from hookproxy.processes.process import Server
from hookproxy.processes.process_tree import Started, Tree
from hookproxy.sandbox.table import PROCESSES_AROUND, Sandbox
from hookproxy.session.server_end import ServerProcess

pytestmark = pytest.mark.anyio

ALICE, BOB = (Principal(f"token:{name}", name) for name in ("alice", "bob"))
MB = 1 << 20
EACH = Bound("gateway.per_user", memory=100 * MB)
ALL = Bound("gateway.total", memory=200 * MB, together=True)


class Machine:
    """Servers whose sizes the test says, in MB, by the numbers of their processes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *bounds: Bound) -> None:
        self.reports: list[str] = []
        self.memory = ServerMemory(self.reports.append)
        self.capacity = Capacity(bounds, self.memory.expected)
        self.resident: dict[int, float] = {}
        self.proportional: dict[int, float] = {}
        self.threads: dict[int, int] = {}
        self.killed: list[int] = []
        self.now = 1000.0
        self.processes: dict[int, ServerProcess] = {}
        monkeypatch.setattr(server_memory, "find_trees", self._find_trees)
        monkeypatch.setattr(server_memory, "proportional_size", self._proportional_size)
        monkeypatch.setattr(server_memory, "end_processes", self._end)
        monkeypatch.setattr(server_memory, "monotonic", lambda: self.now)
        monkeypatch.setattr(ServerProcess, "signal", lambda _self, _number: None)

    def start(
        self,
        number: int,
        principal: Principal | None,
        name: str = "s",
        size: float = 0,
        watched: Sandbox | None = None,
    ) -> None:
        process = ServerProcess(Server(number, -1, -1), leads_group=True, watched=watched)
        self.processes[number] = process
        self.memory.add(process, name, principal)
        self.resident[number] = size

    async def measure(self, after: float = 1.0) -> list[int]:
        """The processes that this measurement has ended."""
        self.now += after
        self.killed = []
        await self.memory.measure(self.capacity)
        return self.killed

    def _find_trees(self, known: dict[int, Started]) -> dict[int, Tree]:
        return {pid: Tree({pid: 1}, int(self.resident[pid] * MB), self.threads.get(pid, 1)) for pid in known}

    def _proportional_size(self, tree: Tree) -> int:
        [pid] = tree.processes
        return int(self.proportional.get(pid, self.resident[pid]) * MB)

    def _end(self, processes: Started) -> None:
        self.killed += processes
        for pid in processes:
            self.resident[pid] = 0


async def test_the_server_that_has_grown_most_ends_and_not_the_largest_one(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, EACH)
    machine.start(1, ALICE, size=60)
    machine.start(2, ALICE, size=10)
    machine.start(3, BOB, size=95)
    assert await machine.measure() == []
    machine.resident |= {1: 61, 2: 50}
    assert await machine.measure() == [2]
    assert machine.reports == [
        "a process of the server s of alice is ended: 111 MiB of memory are used, and 100 MiB may be "
        "(gateway.per_user); it has grown most, and uses 50 MiB"
    ]
    assert machine.processes[2].how_it_ended(-9).startswith("The gateway has ended the MCP server: 111 MiB of memory")
    assert machine.processes[1].how_it_ended(0) == "The MCP server has ended (exited with status 0)"
    assert machine.memory.ended == {"s": 1}


async def test_a_server_without_a_cgroup_is_held_to_its_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, EACH)
    sandbox = Sandbox(memory=50 * MB, processes=10)
    for number in (1, 2, 3):
        machine.start(number, ALICE, size=1, watched=sandbox)
    machine.start(4, BOB, size=90)  # its cgroup holds it
    machine.threads = {1: 10 + PROCESSES_AROUND, 4: 1000}
    assert await machine.measure() == []
    machine.threads[1] += 1
    assert await machine.measure() == [1]
    machine.threads.clear()
    machine.resident |= {2: 60, 3: 60}
    machine.proportional |= {2: 40, 3: 51}
    assert await machine.measure() == [3]
    assert [report.partition("ended: ")[2] for report in machine.reports] == [
        "it has 15 processes and threads, and may have 10 (sandbox.processes)",
        "it uses 51 MiB of memory, and may use 50 MiB (sandbox.memory)",
    ]
    assert machine.processes[3].how_it_ended(-9).endswith("may use 50 MiB (sandbox.memory)")


async def test_as_many_end_as_must(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, EACH)
    for number in range(5):
        machine.start(number, ALICE, size=30)
    assert len(await machine.measure()) == 2


async def test_what_is_shared_counts_in_proportion_before_anything_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, EACH)
    for number in range(8):
        machine.start(number, ALICE, size=50)
        machine.proportional[number] = 12
    assert await machine.measure() == []
    machine.proportional[3] = 30
    assert await machine.measure() == [3]


async def test_of_all_users_together_the_one_who_uses_most_loses_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, ALL)
    machine.start(1, ALICE, size=80)
    machine.start(2, ALICE, size=80)
    machine.start(3, BOB, size=10)
    assert await machine.measure() == []
    machine.resident[3] = 60  # which has grown most, but bob has less than alice
    machine.resident[2] = 90
    assert await machine.measure() == [2]


async def test_a_server_of_all_users_counts_for_the_total_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, EACH, ALL)
    machine.start(1, None, size=150)
    assert await machine.measure() == []
    machine.resident[1] = 250
    assert await machine.measure() == [1]
    assert "a process of the server s is ended" in machine.reports[0]


async def test_a_new_server_is_expected_to_grow_to_what_others_of_its_user_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch, EACH)
    assert machine.memory.expected(ALICE, "s") == 32 * MB
    machine.start(1, ALICE, size=45)
    machine.start(2, BOB, size=90)
    await machine.measure(after=10)
    assert machine.memory.expected(ALICE, "s") == 45 * MB
    assert machine.memory.expected(BOB, "s") == 90 * MB
    assert machine.memory.expected(Principal("uid:1", "carol"), "s") == 45 * MB, "bob cannot make it look large"
    machine.start(3, ALICE, size=2)
    await machine.measure()
    assert machine.capacity._memory[EACH, ALICE.id] == 90 * MB
    await machine.measure(after=10)
    assert machine.capacity._memory[EACH, ALICE.id] == 47 * MB


async def test_a_server_that_has_ended_uses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, EACH)
    machine.start(1, ALICE, size=50)
    await machine.measure()
    assert machine.memory.sizes() == {"s": 50 * MB}
    machine.processes[1]._status = 0
    await machine.measure()
    assert machine.memory.sizes() == {}
