"""Who gets room for a session, who waits for it, and who is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio
import pytest

from hookproxy.gateway.capacity import Capacity, Claim, Full, Starts
from hookproxy.model.principal import Principal
from hookproxy.policy.bounds import Bound

pytestmark = pytest.mark.anyio

ALICE, BOB, CAROL = (Principal(f"token:{name}", name, groups) for name, groups in
                     (("alice", ("leads",)), ("bob", ("leads", "devs")), ("carol", ())))  # fmt: skip
MB = 1 << 20
EACH = Bound("gateway.per_user", sessions=2, memory=100 * MB)
ALL = Bound("gateway.total", sessions=4, memory=300 * MB, together=True)


def used(capacity: Capacity, principal: Principal, server: str = "s") -> Claim:
    claim = capacity.claim(principal, server)
    claim.is_used = True
    return claim


def refused(capacity: Capacity, principal: Principal, server: str = "s") -> str:
    with pytest.raises(Full) as caught:
        capacity.claim(principal, server)
    return str(caught.value)


def test_each_user_has_a_bound_and_all_together_have_one() -> None:
    capacity = Capacity([EACH, ALL])
    claims = [used(capacity, user) for user in (ALICE, ALICE, BOB)]
    assert refused(capacity, ALICE) == "alice has 2 sessions, and may not have more (gateway.per_user)"
    claims.append(used(capacity, BOB))
    assert refused(capacity, CAROL) == "all users together have 4 sessions, and may not have more (gateway.total)"
    capacity.release(claims[0])
    capacity.release(claims[0])
    used(capacity, CAROL)
    assert "all users" in refused(capacity, ALICE)


@pytest.mark.parametrize(
    ("bound", "takers", "refused_ones", "free_ones", "words"),
    [
        (Bound("limits[0]", 1, users=("@leads",)), [ALICE], [ALICE], [BOB, CAROL], "alice has 1 session"),
        (Bound("limits[0]", 1, users=("@leads",), together=True), [ALICE], [ALICE, BOB], [CAROL], "@leads together"),
        (Bound("limits[0]", 1, users=("carol", "@devs"), together=True), [BOB], [CAROL], [ALICE], "carol and @devs"),
        (Bound("limits[0]", 1, servers=frozenset({"s", "t"})), [ALICE], [ALICE], [BOB], "alice has 1 session"),
        (Bound("limits[0]", 1, servers=frozenset({"s"}), together=True), [ALICE], [BOB], [], "the server s together"),
        (Bound("limits[0]", 1, servers=frozenset({"t"})), [ALICE], [], [ALICE, BOB], ""),
    ],
)  # fmt: skip
def test_a_bound_is_about_its_users_and_servers(
    bound: Bound,
    takers: Sequence[Principal],
    refused_ones: Sequence[Principal],
    free_ones: Sequence[Principal],
    words: str,
) -> None:
    capacity = Capacity([bound])
    for user in takers:
        used(capacity, user)
    for user in refused_ones:
        refused(capacity, user)
    if words:
        assert words in refused(capacity, refused_ones[0])
    for user in free_ones:
        used(capacity, user)


def test_a_user_whose_groups_nobody_knows_now_has_the_bounds_of_all_groups() -> None:
    capacity = Capacity([Bound("limits[0]", 1, users=("@trainees",))])
    doubtful = Principal("uid:7", "dan", (), in_doubt=True)
    used(capacity, doubtful)
    assert "dan has 1 session" in refused(capacity, doubtful)


def test_other_groups_count_at_once_for_what_is_open() -> None:
    capacity = Capacity([Bound("limits[0]", 1, users=("@devs",), together=True)])
    used(capacity, ALICE)
    used(capacity, BOB)
    changed = Principal(ALICE.id, "alice", ("devs",))
    capacity.change_user(changed)
    assert "@devs together have" in refused(capacity, changed)


def test_what_is_measured_counts_and_what_is_not_measured_yet_is_expected() -> None:
    capacity = Capacity([EACH], lambda _user, server: 40 * MB if server == "s" else None)
    claims = [used(capacity, ALICE), used(capacity, ALICE)]
    capacity.release(claims.pop())
    capacity.note_memory([(ALICE, "s", 70 * MB)], capacity.begin_measurement())
    assert refused(capacity, ALICE) == (
        "alice has servers that use 70 MiB of memory, and may use 100 MiB (gateway.per_user)"
    )
    capacity.release(used(capacity, ALICE, "at an address"))
    capacity.note_memory([(ALICE, "s", 50 * MB)], ())
    capacity.release(used(capacity, ALICE))
    capacity.note_memory([(BOB, "s", 500 * MB), (None, "s", 900 * MB)], ())
    used(capacity, ALICE)
    assert capacity.over_memory() == [(EACH, BOB.id)]


def test_a_user_who_uses_nothing_may_start_a_server_of_any_size() -> None:
    capacity = Capacity([EACH], lambda _user, _server: 900 * MB)
    used(capacity, ALICE)
    assert "900 MiB of memory" in refused(capacity, ALICE)


async def test_who_waits_gets_the_room_of_one_that_ends_and_others_do_not_come_before() -> None:
    capacity = Capacity([EACH])
    first, _ = used(capacity, ALICE), used(capacity, ALICE)
    got: list[Claim] = []

    async def wait() -> None:
        got.append(await capacity.wait(ALICE, "s", 30))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            assert capacity.waiting == 1
            capacity.release(first)
            refused(capacity, ALICE)
    assert len(got) == 1
    assert capacity.waiting == 0


async def test_whose_user_has_the_fewest_sessions_is_next() -> None:
    capacity = Capacity([Bound("gateway.total", 3, together=True)])
    claims = [used(capacity, ALICE), used(capacity, ALICE), used(capacity, BOB)]
    order: list[str] = []

    async def wait(user: Principal) -> None:
        await capacity.wait(user, "s", 30)
        order.append(user.name)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for user in (ALICE, ALICE, BOB, CAROL):
                tasks.start_soon(wait, user)
                await anyio.wait_all_tasks_blocked()
            for claim in claims:
                capacity.release(claim)
                await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert order == ["carol", "alice", "bob"]


async def test_after_the_deadline_nobody_waits_and_no_room_is_lost() -> None:
    capacity = Capacity([EACH])
    claims = [used(capacity, ALICE), used(capacity, ALICE)]
    with pytest.raises(Full, match=r"it has waited 0\.01 s for room"):
        await capacity.wait(ALICE, "s", 0.01)
    with pytest.raises(Full, match=r"\(gateway\.per_user\)$"):
        await capacity.wait(ALICE, "s", 0)

    async def wait() -> None:
        capacity.release(await capacity.wait(ALICE, "s", 30))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        capacity.release(claims[0])  # it has room now, and does not know it yet
        tasks.cancel_scope.cancel()
    assert capacity.waiting == 0
    used(capacity, ALICE)


async def test_so_many_of_one_user_and_of_all_may_wait() -> None:
    capacity = Capacity([EACH])
    users = [Principal(f"uid:{number}", str(number)) for number in range(10)]
    for user in users:
        used(capacity, user)
        used(capacity, user)
    refusals: list[str] = []

    async def wait(user: Principal) -> None:
        try:
            await capacity.wait(user, "s", 30)
        except Full:
            refusals.append(user.name)

    async with anyio.create_task_group() as tasks:
        for user in users:
            for _ in range(40):
                tasks.start_soon(wait, user)
        await anyio.wait_all_tasks_blocked()
        assert capacity.waiting == 256
        assert refusals.count("0") == 8
        tasks.cancel_scope.cancel()


async def test_bounds_that_a_reload_changes_hold_for_further_sessions_and_for_those_that_wait() -> None:
    capacity = Capacity([EACH])
    claims = [used(capacity, ALICE), used(capacity, ALICE)]
    got: list[Claim] = []

    async def wait() -> None:
        got.append(await capacity.wait(ALICE, "s", 30))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            capacity.change([Bound("gateway.per_user", sessions=3)])
    assert len(got) == 1
    capacity.change([Bound("gateway.per_user", sessions=1)])
    capacity.release(claims[0])
    assert "alice has 1 session" in refused(capacity, ALICE)


# --- servers that start ---


async def test_a_few_servers_of_a_user_start_at_a_time_and_the_others_one_after_another() -> None:
    starts = Starts(at_once=2, seconds=1000.0)
    started: list[int] = []
    ends: dict[int, Callable[[], None]] = {}

    async def start(number: int) -> None:
        ends[number] = await starts.turn(ALICE.id)
        started.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(start, number)
        await anyio.wait_all_tasks_blocked()
        assert started == [0, 1]
        (await starts.turn(BOB.id))()  # nobody else waits for that
        ends[0]()
        ends[0]()  # it is over once
        await anyio.wait_all_tasks_blocked()
        assert started == [0, 1, 2]
        ends[1]()
        ends[2]()
        await anyio.wait_all_tasks_blocked()
        assert started == [0, 1, 2, 3, 4]
        for end in ends.values():
            end()


async def test_a_server_that_says_nothing_holds_up_the_next_one_for_some_seconds_only() -> None:
    starts = Starts(at_once=1, seconds=0.01)
    await starts.turn(ALICE.id)
    with anyio.fail_after(30):
        (await starts.turn(ALICE.id))()


async def test_who_has_gone_while_waiting_for_a_start_takes_no_turn() -> None:
    starts = Starts(at_once=1, seconds=1000.0)
    end = await starts.turn(ALICE.id)
    with anyio.move_on_after(0):
        await starts.turn(ALICE.id)
    end()
    with anyio.fail_after(30):
        (await starts.turn(ALICE.id))()
