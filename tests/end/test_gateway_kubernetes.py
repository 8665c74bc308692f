"""Three gateways behind the HAProxy of `deploy/kubernetes`, which finds them by the names of their pods in DNS."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from tests.support.cluster import HAPROXY, PODS, Cluster, restarted_under_load, wait_until
from tests.support.dns_server import DnsServer, answering
from tests.support.free_ports import free_port
from tests.support.store_process import PROGRAM

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not (HAPROXY and PROGRAM), reason="haproxy, and valkey-server or redis-server are needed"),
]


@dataclass
class Pods:
    cluster: Cluster
    dns: DnsServer
    probes: int

    def ready(self) -> int:
        """The status of the balancer's own /readyz."""
        connection = http.client.HTTPConnection("127.0.0.1", self.probes, timeout=30)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status
        finally:
            connection.close()

    def sessions(self) -> dict[str, str]:
        """The id of a session at each gateway that the balancer reaches, by the gateway's name."""
        found = (self.cluster.open_session() for _ in range(9))
        return {session.partition(".")[0]: session for session in found}

    def add_all(self) -> None:
        """Let all names exist, and wait until each gateway is reached."""
        self.dns.names |= {self.cluster.domain_of(gateway) for gateway in self.cluster.gateways}
        wait_until(lambda: len(self.sessions()) == len(PODS), lambda: "not all gateways are reached")


@pytest.fixture(scope="module")
def pods(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pods]:
    cluster = Cluster(tmp_path_factory.mktemp("pods"), "", names=PODS)
    probes = free_port()
    try:
        with answering() as dns:
            dns.names |= {cluster.domain_of(gateway) for gateway in cluster.gateways[:2]}
            cluster.start_gateways()
            cluster.start_balancer(cluster.haproxy_of_kubernetes(dns.port, probes))
            yield Pods(cluster, dns, probes)
    finally:
        cluster.close()


def test_a_gateway_that_is_added_is_found_by_its_name(pods: Pods) -> None:
    wait_until(lambda: len(pods.sessions()) == 2, lambda: "the first two are not reached")
    pods.add_all()


def test_sessions_stay_at_the_gateway_whose_name_they_begin_with(pods: Pods) -> None:
    pods.add_all()
    sessions = list(pods.sessions().values())
    assert len(sessions) == len(PODS)
    with ThreadPoolExecutor(12) as pool:
        calls = pool.map(lambda number: pods.cluster.call_in(sessions[number % 3], "call", number), range(200))
        assert sum(one.ran for one in calls) == 200


@pytest.mark.parametrize("session", ["hookproxy-7.x", "hookproxy-99.x", "probes.x", "%[rand].x", ".", "x", "../x"])
def test_a_session_of_no_gateway_is_unknown(pods: Pods, session: str) -> None:
    assert pods.cluster.call_in(session, "call").status == 404


def test_calls_that_stand_alone_survive_a_restart_of_each_gateway(pods: Pods) -> None:
    pods.add_all()
    responses = restarted_under_load(pods.cluster, "restarted")
    assert all(one.ran for one in responses), [one for one in responses if not one.ran][:5]
    assert pods.cluster.executed("restarted") == len(responses)


def test_the_balancer_is_ready_while_it_reaches_a_gateway(pods: Pods) -> None:
    assert pods.ready() == 200
    for gateway in pods.cluster.gateways:
        gateway.kill()
    try:
        wait_until(lambda: pods.ready() == 503, lambda: "it says that it is ready")
    finally:
        for gateway in pods.cluster.gateways:
            gateway.start()
            gateway.ready()
    wait_until(lambda: pods.ready() == 200, lambda: "it says that it is not ready")
