"""Three gateways behind a real balancer, with a real store: what they share, and what happens when one of them ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.cluster import HAPROXY, NGINX, Cluster, Gateway, Load, Response, restarted_under_load, wait_until
from tests.support.store_process import PROGRAM, StoreProcess

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not (HAPROXY and NGINX and PROGRAM), reason="haproxy, nginx, and valkey-server or redis-server are needed"
    ),
]

ONCE: Final = {"hookproxy.ask": {"action": "accept", "content": {"decision": "allow once"}}}
TOOL_FOR_SESSION: Final = {
    "hookproxy.ask": {"action": "accept", "content": {"decision": "allow this tool for this session"}}
}
CONFIG: Final = """
[permissions]
ask = ["write", "write_more", "publish"]
[[limits]]
tool = "metered"
calls = 100
per = "minute"
[[limits]]
tool = "metered_away"
calls = 100
per = "day"
[[limits]]
tool = "metered_too"
calls = 100
per = "minute"
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    yield from running(tmp_path_factory.mktemp("cluster"), "haproxy")


@pytest.fixture(scope="module")
def behind_nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    yield from running(tmp_path_factory.mktemp("nginx"), "nginx")


def running(folder: Path, balancer: str) -> Iterator[Cluster]:
    cluster = Cluster(folder, CONFIG)
    try:
        cluster.start(balancer)
        yield cluster
    finally:
        cluster.close()


def many(count: int, call: Any, *, at_once: int = 12) -> list[Response]:  # noqa: ANN401  # any of several calls
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(lambda _: call(), range(count)))


def store_is(gateway: Gateway, up: int) -> None:
    """Wait until the gateway's metrics say whether the store can be reached."""
    wait_until(lambda: f"hookproxy_store_up {up}\n" in gateway.probe("/metrics"), lambda: gateway.log)


@pytest.mark.parametrize("name", ["cluster", "behind_nginx"])
def test_calls_that_stand_alone_go_to_any_gateway(name: str, request: pytest.FixtureRequest) -> None:
    cluster: Cluster = request.getfixturevalue(name)
    responses = many(200, lambda: cluster.call("echo_free"))
    assert all(one.ran for one in responses), [one for one in responses if not one.ran][:3]
    assert cluster.executed("echo_free") == 200
    for gateway in cluster.gateways:
        assert "free" not in gateway.log
        assert 'hookproxy_sessions{server="tools"} 0' not in gateway.probe("/metrics"), f"{gateway.name} got none"


@pytest.mark.parametrize("name", ["cluster", "behind_nginx"])
def test_sessions_stay_where_they_were_opened(name: str, request: pytest.FixtureRequest) -> None:
    cluster: Cluster = request.getfixturevalue(name)
    sessions = [cluster.open_session() for _ in range(20)]
    assert len({session.partition(".")[0] for session in sessions}) == 3, "all gateways have some"
    with ThreadPoolExecutor(12) as pool:
        responses = list(pool.map(lambda number: cluster.call_in(sessions[number % 20], "call", number), range(400)))
    assert sum(one.ran for one in responses) == 400


def test_a_limit_lets_exactly_100_through_in_all(cluster: Cluster) -> None:
    responses = many(300, lambda: cluster.call("metered"))
    assert sum(one.ran for one in responses) == 100
    assert cluster.executed("metered") == 100
    refused = next(one for one in responses if not one.ran)
    assert "no more than 100 calls of metered per minute. The tool was not run. Try again in" in refused.text
    assert "no more than 100 calls of metered" in cluster.call_in(cluster.open_session(), "metered").text
    assert cluster.call("metered", user="bob").ran, "each user has an own count"


def test_an_approval_is_continued_by_another_gateway_and_counts_once(cluster: Cluster) -> None:
    replayed = 0
    for number in range(10):
        asked = cluster.call("write", port=cluster.gateways[number % 3].port)
        assert asked.asked, asked
        more: dict[str, Any] = {"requestState": asked.asked, "inputResponses": ONCE}
        answers = [cluster.call("write", port=gateway.port, **more) for gateway in cluster.gateways * 4]
        assert sum(one.ran for one in answers) == 1, answers
        assert all(one.asked for one in answers if not one.ran), "a replay is a new call: the person is asked"
        replayed += len(answers) - 1
    assert replayed == 110
    assert cluster.executed("write") == 10


def test_of_many_replays_at_once_one_runs(cluster: Cluster) -> None:
    asked = cluster.call("write_more")
    more: dict[str, Any] = {"requestState": asked.asked, "inputResponses": ONCE}
    responses = many(60, lambda: cluster.call("write_more", **more))
    assert sum(one.ran for one in responses) == cluster.executed("write_more") == 1


def test_nobody_uses_the_approval_of_another_user(cluster: Cluster) -> None:
    asked = cluster.call("write")
    more: dict[str, Any] = {"requestState": asked.asked, "inputResponses": ONCE}
    for gateway in cluster.gateways:
        assert cluster.call("write", user="bob", port=gateway.port, **more).asked
    assert cluster.call("write", **more).ran, "the owner still can"


def test_what_is_allowed_for_the_session_is_allowed_at_every_gateway(cluster: Cluster) -> None:
    first, *others = cluster.gateways
    asked = cluster.call("publish", port=first.port)
    assert cluster.call("publish", port=others[0].port, requestState=asked.asked, inputResponses=TOOL_FOR_SESSION).ran
    for gateway in cluster.gateways:
        assert cluster.call("publish", port=gateway.port).ran
        assert cluster.call("publish", user="bob", port=gateway.port).asked, "for alice alone"
        assert cluster.call("write", port=gateway.port).asked, "for this tool alone"


# --- when something ends ---


@pytest.mark.parametrize("name", ["cluster", "behind_nginx"])
def test_restarts_under_load_lose_no_call_that_stands_alone(name: str, request: pytest.FixtureRequest) -> None:
    cluster: Cluster = request.getfixturevalue(name)
    tool = f"restarted_{name}"
    responses = restarted_under_load(cluster, tool)
    assert all(one.ran for one in responses), [one for one in responses if not one.ran][:5]
    assert cluster.executed(tool) == len(responses)


@pytest.mark.parametrize("name", ["cluster", "behind_nginx"])
def test_a_gateway_that_is_back_keeps_its_new_sessions_at_once(name: str, request: pytest.FixtureRequest) -> None:
    cluster: Cluster = request.getfixturevalue(name)
    gateway = cluster.gateways[0]
    lost = session_at(cluster, gateway)
    gateway.kill()
    assert cluster.call_in(lost, "back").status == 404, "the balancer learns that the gateway is away"
    gateway.start()
    gateway.ready()
    session = session_at(cluster, gateway)
    responses = [cluster.call_in(session, "back", number) for number in range(1, 6)]
    assert all(one.ran for one in responses), responses


def session_at(cluster: Cluster, gateway: Gateway) -> str:
    """The id of a session that the balancer opened at this gateway."""
    opened: list[str] = []

    def opens_there() -> bool:
        opened.append(cluster.open_session())
        return opened[-1].startswith(f"{gateway.name}.")

    wait_until(opens_there, lambda: f"{gateway.name} is not chosen: {opened[-3:]}")
    return opened[-1]


def test_while_balancers_find_out_a_gateway_that_ends_goes_on(cluster: Cluster) -> None:
    gateway = cluster.gateways[2]
    assert gateway.end() == 0
    gateway.write(f"drain_delay_seconds = 3\n{cluster.config}")
    gateway.start()
    gateway.ready()
    try:
        gateway.terminate()
        wait_until(lambda: gateway.probe("/readyz") == "ending\n", lambda: gateway.log)
        assert "hookproxy_draining 1" in gateway.probe("/metrics")
        assert cluster.call("delayed", port=gateway.port).ran, "on a new connection"
        assert gateway.end() == 0
        assert cluster.call("delayed", port=gateway.port).status == 0
        assert cluster.call("delayed").ran
    finally:
        gateway.kill()
        gateway.write(cluster.config)
        gateway.start()
        gateway.ready()


def test_a_limit_holds_when_gateways_are_killed_and_restarted(cluster: Cluster) -> None:
    ran = lost = 0
    for gateway in cluster.gateways:
        load = Load(lambda: cluster.call("metered_too"), threads=4)
        load.reaches(8)
        gateway.kill()
        load.reaches(8)
        responses = load.stop()
        ran += sum(one.ran for one in responses)
        lost += sum(one.status != 200 for one in responses)
        gateway.start()
        gateway.ready()
    ran += sum(one.ran for one in many(150, lambda: cluster.call("metered_too")))
    executed = cluster.executed("metered_too")
    assert lost <= 4 * len(cluster.gateways), "only calls in flight at the killed gateway"
    assert ran <= executed <= 100
    assert executed >= 100 - lost, "a call is only missing if it was lost between counting and running"
    assert cluster.call("metered_too").status == 200
    assert cluster.executed("metered_too") == executed


def test_sessions_of_a_killed_gateway_are_gone_and_others_stay(cluster: Cluster) -> None:
    sessions: dict[str, str] = {}
    while len(sessions) < 3:
        session = cluster.open_session()
        sessions.setdefault(session.partition(".")[0], session)
    first = cluster.gateways[0]
    first.kill()
    try:
        for gateway in cluster.gateways[1:]:
            assert cluster.call_in(sessions[gateway.name], "after_kill").ran
        wait_until(lambda: cluster.call_in(sessions[first.name], "after_kill").status == 404, lambda: "no 404")
        assert cluster.call_in(cluster.open_session(), "after_kill").ran, "the agent initialises anew"
    finally:
        first.start()
        first.ready()


AWAY: Final[dict[str, tuple[Callable[[StoreProcess], object], Callable[[StoreProcess], object]]]] = {
    "paused": (StoreProcess.pause, StoreProcess.resume),
    "a replica": (lambda one: one.ask("REPLICAOF", "127.0.0.1", "1"), lambda one: one.ask("REPLICAOF", "NO", "ONE")),
    "full": (
        lambda one: one.ask("CONFIG", "SET", "maxmemory", "1"),
        lambda one: one.ask("CONFIG", "SET", "maxmemory", "0"),
    ),
    "killed": (StoreProcess.kill, StoreProcess.start),
}


@pytest.mark.parametrize("state", AWAY)
def test_without_its_store_limits_and_approvals_fail_closed_and_the_rest_goes_on(cluster: Cluster, state: str) -> None:
    leave, come_back = AWAY[state]
    asked = cluster.call("write")
    more: dict[str, Any] = {"requestState": asked.asked, "inputResponses": ONCE}
    metered, reported = cluster.executed("metered_away"), [len(gateway.log) for gateway in cluster.gateways]
    leave(cluster.store)
    try:
        for gateway, length in zip(cluster.gateways, reported, strict=True):
            store_is(gateway, 0)
            for refused in (
                cluster.call("metered_away", user="bob", port=gateway.port),
                cluster.call("write", port=gateway.port, **more),
                cluster.call("write", port=gateway.port),
            ):
                assert "is kept in a store that several gateways share, which cannot be reached now" in refused.text
            assert cluster.call("unmetered", port=gateway.port).ran
            assert gateway.log[length:].count("cannot be reached") <= 1 <= gateway.log.count("cannot be reached")
        assert cluster.call_in(cluster.open_session(), "unmetered").ran
        assert cluster.executed("metered_away") == metered
    finally:
        come_back(cluster.store)
    for gateway in cluster.gateways:
        store_is(gateway, 1)
        assert cluster.call("metered_away", user="bob", port=gateway.port).ran
    again = cluster.call("write", **more)
    # one that has lost its memory: it may have been used before
    assert again.asked if state == "killed" else again.ran, again.text
