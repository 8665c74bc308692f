"""The phases of a remote session, what is held in each of them, and the tables of what is in flight."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hookproxy.jsonrpc.known_secrets import NO_SECRETS
from hookproxy.protocol.calls import Progress
from hookproxy.transports.http import messages
from hookproxy.transports.http.exchange import Exchange, Kind
from hookproxy.transports.http.handshake import Handshake, Phase
from hookproxy.transports.http.in_flight import InFlight

INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}'
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
OPENED = b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}'


class Session:
    """A handshake over a wire that notes what is sent."""

    secrets = NO_SECRETS

    def __init__(self) -> None:
        self.sent: list[Exchange] = []
        self.failures: list[bytes] = []
        self.reports: list[str] = []
        self.in_flight = InFlight(self)
        self.handshake = Handshake(self, self.in_flight)
        self.in_flight.on_over = self.handshake.settled

    def send(self, exchange: Exchange) -> None:
        self.sent.append(exchange)

    def close_exchange(self, exchange: Exchange) -> None: ...

    def deliver(self, lines: bytes) -> None: ...

    def deliver_response(self, raw_id: bytes, line: bytes) -> None: ...

    def open_passage(self, raw_id: bytes) -> None: ...

    def deliver_failure(self, line: bytes) -> None:
        self.failures.append(line)

    def report(self, text: str) -> None:
        self.reports.append(text)

    def after(self, _seconds: float, callback: Callable[[], None]) -> None: ...

    def authorize(self, exchange: Exchange, challenge: str) -> None: ...

    def same_origin_target(self, _base: bytes, _location: str) -> bytes | None:
        return None

    def finished(self) -> None: ...

    def request(self, body: bytes) -> Exchange:
        exchange = Exchange(Kind.REQUEST, messages.read(body))
        self.in_flight.add(exchange)
        self.handshake.submit_request(exchange)
        return exchange

    def message(self, body: bytes) -> Exchange:
        exchange = Exchange(Kind.MESSAGE, messages.read(body))
        self.in_flight.add(exchange)
        self.handshake.submit_message(exchange)
        return exchange

    def open(self) -> None:
        initialize = self.request(INITIALIZE)
        self.handshake.name(b"s1", "2025-11-25")
        self.handshake.settled(initialize)
        initialized = self.message(INITIALIZED)
        self.handshake.notified(initialized)
        self.handshake.settled(initialized)
        self.in_flight.done(initialized)


def call(number: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x"}}' % number


def test_requests_wait_while_the_session_is_being_opened_and_go_out_in_their_order() -> None:
    session = Session()
    initialize = session.request(INITIALIZE)
    waiting = [session.request(call(1)), session.request(call(2))]
    assert (session.handshake.phase, session.sent) == (Phase.INITIALIZING, [initialize])
    session.handshake.settled(initialize)
    assert (session.handshake.phase, session.sent) == (Phase.OPEN, [initialize, *waiting])


def test_requests_wait_until_initialized_has_arrived() -> None:
    session = Session()
    session.handshake.settled(session.request(INITIALIZE))
    initialized = session.message(INITIALIZED)
    request = session.request(call(1))
    assert session.handshake.phase is Phase.CONFIRMING
    assert request not in session.sent
    session.handshake.settled(initialized)
    assert session.sent[-1] is request


def test_a_response_of_the_agent_waits_for_nothing() -> None:
    session = Session()
    session.request(INITIALIZE)
    response = session.message(b'{"jsonrpc":"2.0","id":5,"result":{}}')
    assert session.sent[-1] is response


def test_a_lost_session_is_opened_again_and_confirmed_before_the_refused_request_is_sent_again() -> None:
    session = Session()
    session.open()
    refused = session.request(call(1))
    refused.sent_session = b"s1"
    session.handshake.lost(refused)
    reopen = session.sent[-1]
    assert (session.handshake.phase, reopen.kind, reopen.body) == (Phase.REOPENING, Kind.REOPEN, INITIALIZE)
    session.handshake.reopened(reopen, OPENED)
    confirmed = session.sent[-1]
    assert (session.handshake.phase, confirmed.body) == (Phase.CONFIRMING, INITIALIZED)
    session.handshake.settled(confirmed)
    assert (session.handshake.phase, session.sent[-1]) == (Phase.OPEN, refused)
    assert session.reports == ["the server has lost the session: a new one is opened"]


def test_a_session_of_another_version_is_not_used_and_what_waits_for_it_fails() -> None:
    session = Session()
    session.open()
    refused = session.request(call(1))
    refused.sent_session = b"s1"
    session.handshake.lost(refused)
    session.handshake.reopened(session.sent[-1], OPENED.replace(b"2025-11-25", b"2025-06-18"))
    assert session.handshake.phase is Phase.OPEN
    assert b"another protocol version" in session.failures[0]
    assert refused.is_done


def test_a_step_that_no_phase_has_is_a_fault() -> None:
    session = Session()
    session.request(INITIALIZE)
    assert session.handshake.initialize is not None
    with pytest.raises(KeyError):
        session.handshake.begin_again(session.handshake.initialize)


def test_a_request_is_settled_once_wherever_its_response_comes() -> None:
    session = Session()
    request, other = session.request(call(1)), session.request(call(2))
    assert session.in_flight.owner(other, b"1") is request
    assert session.in_flight.settle(request, b"1") == b"1"
    assert session.in_flight.owner(other, b"1") is None
    session.in_flight.fail(request, "it is over", Progress.NO_RESPONSE)
    assert session.failures == []


def test_a_failed_exchange_answers_each_of_its_requests() -> None:
    session = Session()
    session.in_flight.fail(session.request(call(1)), "it is over", Progress.NO_RESPONSE)
    assert len(session.failures) == 1
    assert session.in_flight.awaiting(b"1") is None
    assert session.in_flight.exchanges == set()
