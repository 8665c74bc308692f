"""Several clients of one server process: each gets what is its own, exactly as it would alone, and nothing else."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from hookproxy.protocol import fast_scan, multiplex, shared_client_side, shared_server_side, shared_tables
from hookproxy.protocol.fast_scan import ReadCall, read_call
from hookproxy.protocol.multiplex import SERVER, Multiplexer, Send
from hookproxy.protocol.roots import Roots
from hookproxy.protocol.shared_tables import (
    Elicitations,
    InFlight,
    LogLevels,
    People,
    ServerRequests,
    SharedTasks,
    Subscriptions,
)

VERSION: Final = "2025-11-25"
META: Final = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
RELATED: Final = "io.modelcontextprotocol/related-task"


class Shared:
    """A multiplexer, and short words for what is sent through it."""

    def __init__(self, one_owner: bool = True) -> None:
        self.reports: list[str] = []
        self.dropped = 0
        self.mux = Multiplexer(one_owner, self.reports.append, self._note_dropped)

    def _note_dropped(self) -> None:
        self.dropped += 1

    def client(self, capabilities: str = "{}") -> int:
        """A client with the handshake."""
        client = self.mux.attach()
        sends = self.initialize(client, capabilities)
        if sends and sends[0].to == SERVER:
            self.server(f'{{"jsonrpc":"2.0","id":{number(sends[0])},"result":{{"protocolVersion":"{VERSION}"}}}}')
        self.say(client, '{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return client

    def initialize(
        self, client: int, capabilities: str = "{}", version: str = VERSION, raw_id: str = '"init"'
    ) -> list[Send]:
        params = f'{{"protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{{"name":"c"}}}}'
        return self.say(client, f'{{"jsonrpc":"2.0","id":{raw_id},"method":"initialize","params":{params}}}')

    def say(self, client: int, line: str) -> list[Send]:
        return self.mux.from_client(client, line.encode() + b"\n")

    def server(self, line: str) -> list[Send]:
        return self.mux.from_server(line.encode() + b"\n")

    def request(self, client: int, method: str = "tools/call", raw_id: str = "1", params: str = '{"name":"t"}') -> int:
        """Send a request that goes to the server; return its number there."""
        sends = self.say(client, f'{{"jsonrpc":"2.0","id":{raw_id},"method":"{method}","params":{params}}}')
        assert [send.to for send in sends] == [SERVER], sends
        return number(sends[0])

    def answer(self, number: int, result: str = "{}") -> list[Send]:
        return self.server(f'{{"jsonrpc":"2.0","id":{number},"result":{result}}}')

    def notify(self, method: str, params: str = "{}") -> list[Send]:
        return self.server(f'{{"jsonrpc":"2.0","method":"notifications/{method}","params":{params}}}')

    def ask(self, method: str, params: str = "{}", raw_id: str = '"s1"') -> list[Send]:
        """A request of the server."""
        return self.server(f'{{"jsonrpc":"2.0","id":{raw_id},"method":"{method}","params":{params}}}')


def number(send: Send) -> int:
    found = json.loads(send.line)["id"]
    assert isinstance(found, int)
    return found


def receivers(sends: list[Send]) -> list[int]:
    return [send.to for send in sends]


def code(send: Send) -> int:
    found = json.loads(send.line)["error"]["code"]
    assert isinstance(found, int)
    return found


@pytest.fixture
def shared() -> Shared:
    return Shared()


@pytest.fixture
def strangers() -> Shared:
    return Shared(one_owner=False)


# --- ids ---


@pytest.mark.parametrize(
    "raw_id", ["1", '"1"', "1.0", "1e0", "-5", "123456789012345678901234567890", '"\\u0069d"', '""']
)
def test_an_id_comes_back_exactly_as_the_client_spelled_it(shared: Shared, raw_id: str) -> None:
    client = shared.client()
    line = f'{{"jsonrpc" : "2.0" ,"id":{raw_id},"method":"tools/list" , "params":{{ "x" : 1.50 }} }}'
    (sent,) = shared.say(client, line)
    assert sent.line.decode() == line.replace(f'"id":{raw_id}', f'"id":{number(sent)}') + "\n"
    reply = f'{{"result":{{ "é": 1E5 }}, "id" : {number(sent)},"jsonrpc":"2.0"}}'
    expected = f'{{"result":{{ "é": 1E5 }}, "id" : {raw_id},"jsonrpc":"2.0"}}\n'
    assert shared.server(reply) == [Send(client, expected.encode())]


def test_clients_with_the_same_id_get_their_own_responses(shared: Shared) -> None:
    one, two = shared.client(), shared.client()
    first, second = shared.request(one), shared.request(two)
    assert first != second
    assert shared.answer(second, '"two"') == [Send(two, b'{"jsonrpc":"2.0","id":1,"result":"two"}\n')]
    assert shared.answer(first, '"one"') == [Send(one, b'{"jsonrpc":"2.0","id":1,"result":"one"}\n')]


def test_an_id_that_looks_like_ours_is_the_clients_own(shared: Shared) -> None:
    one, two = shared.client(), shared.client()
    first = shared.request(one)
    second = shared.request(two, raw_id=str(first))
    assert receivers(shared.answer(first)) == [one]
    assert receivers(shared.answer(second)) == [two]


@pytest.mark.parametrize("raw_id", ["null", "true", "[1]", '{"a":1}', '"' + "x" * 2000 + '"'])
def test_what_is_no_id_is_refused(shared: Shared, raw_id: str) -> None:
    client = shared.client()
    (refused,) = shared.say(client, f'{{"jsonrpc":"2.0","id":{raw_id},"method":"tools/list"}}')
    assert (refused.to, code(refused)) == (client, -32600)
    assert json.loads(refused.line)["id"] is None


@pytest.mark.parametrize("again", ["1", '"1"', "1.0"])
def test_an_id_in_flight_is_refused(shared: Shared, again: str) -> None:
    client = shared.client()
    shared.request(client)
    assert receivers(shared.say(client, f'{{"jsonrpc":"2.0","id":{again},"method":"tools/list"}}')) == [client]


def test_an_id_is_free_again_after_its_response(shared: Shared) -> None:
    client = shared.client()
    shared.answer(shared.request(client))
    shared.request(client)


def test_a_response_that_nobody_asked_for_is_dropped_and_reported_once(shared: Shared) -> None:
    shared.client()
    assert [shared.answer(7777), shared.answer(7777), shared.answer(0)] == [[], [], []]
    assert len(shared.reports) == 1


def test_a_second_response_is_dropped(shared: Shared) -> None:
    one, two = shared.client(), shared.client()
    first = shared.request(one)
    shared.answer(first)
    shared.request(two)
    assert shared.answer(first) == []


def test_too_many_requests_in_flight_are_refused(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_client_side, "MAX_IN_FLIGHT", 2)
    client = shared.client()
    shared.request(client, raw_id="1")
    shared.request(client, raw_id="2")
    (refused,) = shared.say(client, '{"jsonrpc":"2.0","id":3,"method":"tools/list"}')
    assert "in flight" in refused.line.decode()


# --- what cannot be read exactly ---


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}',
        '{"jsonrpc":"2.0","id":1,"\\u0069d":2,"method":"tools/list"}',
        '{"jsonrpc":"2.0","id":1,"ID":2,"method":"tools/list"}',
        '{"jsonrpc":"2.0","id":1,"id\\u0000x":2,"method":"tools/list"}',
        '{"jsonrpc":"2.0","method":"ping","Id":2}',
        '{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}',
        '{"jsonrpc":"2.0","id":1,"method":"ping","error":{}}',
        '{"jsonrpc":"2.0","id":1,"Method":"ping","result":{}}',
        '{"jsonrpc":"2.0","id":1}',
        '{"jsonrpc":"2.0","id":1,"method":"ping\\u0000x"}',
        '{"jsonrpc":"2.0","id":1,"method":5}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[1]}',
        '{"jsonrpc":"2.0","id":1,"method":"t","params":{"_meta":{"progressToken":1},"_Meta":{"progressToken":2}}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":1,"progresstoken":2}}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":1,"progressToken":2}}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":[2]}}}',
        '{"jsonrpc":"2.0","id":1,"method":"t","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}',
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"requestID":2}}',
        '{"jsonrpc":"2.0","method":"notifications/x","params":{"_meta":{"progressToken":1}}}',
        '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t"}}',
        '{"jsonrpc":"2.0","method":"resources/unsubscribe","params":{"uri":"a"}}',
        '[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
        "not JSON",
        '{"jsonrpc":"2.0","id":1,"method":"ping"',
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":' + "[" * 100_000 + "]" * 100_000 + "}",
        '\ufeff{"jsonrpc":"2.0","id":1,"method":"ping"}',
    ],
)
def test_what_two_readers_could_take_differently_is_refused(shared: Shared, line: str) -> None:
    client = shared.client()
    (refused,) = shared.say(client, line)
    assert refused.to == client
    assert code(refused) in (-32600, -32700)


def test_text_that_is_not_utf8_is_refused(shared: Shared) -> None:
    client = shared.client()
    assert receivers(shared.mux.from_client(client, b'{"jsonrpc":"2.0","id":1,"method":"a\xff"}\n')) == [client]


def test_no_message_hides_behind_a_byte_at_which_some_readers_end_a_line(shared: Shared) -> None:
    client = shared.client()
    hidden = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    line = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":\r' + hidden + b"\r}}\n"
    (sent,) = shared.mux.from_client(client, line)
    assert b"\r" not in sent.line


def test_two_lines_at_once_are_a_fault_of_the_caller(shared: Shared) -> None:
    client = shared.client()
    with pytest.raises(AssertionError):
        shared.mux.from_client(client, b'{"jsonrpc":"2.0","id":1,\n"method":"ping"}\n')


def test_an_empty_line_is_nothing(shared: Shared) -> None:
    client = shared.client()
    assert shared.say(client, "") == shared.say(client, " \r") == shared.server("") == []


# --- progress ---


@pytest.mark.parametrize("token", ["1", '"1"', '"a\\u0062"', "12345678901234567890"])
def test_progress_goes_to_the_owner_of_the_token_as_it_spelled_it(shared: Shared, token: str) -> None:
    one, two = shared.client(), shared.client()
    params = f'{{"name":"t","_meta":{{"a":1,"progressToken":{token}}}}}'
    numbers = {client: shared.request(client, params=params) for client in (one, two)}
    for client, mine in numbers.items():
        (progress,) = shared.notify("progress", f'{{"progressToken":{mine},"progress":1}}')
        assert progress.to == client
        assert f'"progressToken":{token},' in progress.line.decode()


def test_a_token_that_stands_twice_in_the_line_is_replaced_at_its_place(shared: Shared) -> None:
    client = shared.client()
    meta = '"_meta":{"progressToken":7}'
    line = f'{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"t","arguments":{{{meta}}},{meta}}}}}'
    (sent,) = shared.say(client, line)
    expected = line.replace('"id":7', f'"id":{number(sent)}')
    assert sent.line.decode() == expected[: -len("7}}}")] + f"{number(sent)}}}}}}}\n"


def test_a_client_cannot_ask_for_progress_of_another(shared: Shared) -> None:
    one, two = shared.client(), shared.client()
    mine = shared.request(one, params='{"name":"t","_meta":{"progressToken":1}}')
    (sent,) = shared.say(
        two,
        f'{{"jsonrpc":"2.0","id":1,"method":"t","params":{{"_meta":{{"progressToken":{mine}}}}}}}',
    )
    assert json.loads(sent.line)["params"]["_meta"]["progressToken"] == number(sent) != mine


def test_progress_of_nothing_in_flight_is_dropped(shared: Shared) -> None:
    client = shared.client()
    without_token = shared.request(client)
    assert shared.notify("progress", f'{{"progressToken":{without_token},"progress":1}}') == []
    with_token = shared.request(client, raw_id="2", params='{"name":"t","_meta":{"progressToken":1}}')
    shared.answer(with_token)
    assert shared.notify("progress", f'{{"progressToken":{with_token},"progress":1}}') == []
    assert len(shared.reports) == 1


# --- cancellation ---


def test_a_cancellation_names_the_request_as_the_server_knows_it(shared: Shared) -> None:
    one, two = shared.client(), shared.client()
    shared.request(one)
    mine = shared.request(two)
    line = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"1", "requestId": "1"}}'
    (sent,) = shared.say(two, line)
    assert sent == Send(SERVER, line.replace('"requestId": "1"', f'"requestId": {mine}').encode() + b"\n")


def test_no_client_can_cancel_the_request_of_another(shared: Shared) -> None:
    one, two = shared.client(), shared.client()
    mine = shared.request(one, raw_id="5")
    for name in ("5", str(mine), f'"{mine}"'):
        line = f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{name}}}}}'
        assert shared.say(two, line) == []
    assert receivers(shared.answer(mine)) == [one]


def test_the_late_response_to_a_cancelled_request_still_finds_its_client(shared: Shared) -> None:
    client = shared.client()
    mine = shared.request(client)
    shared.say(client, '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')
    again = shared.request(client)
    assert receivers(shared.answer(mine)) == [client]
    assert receivers(shared.answer(again)) == [client]


def test_cancelled_requests_do_not_fill_memory(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_tables, "MAX_CANCELLED", 3)
    client = shared.client()
    numbers = []
    for _ in range(5):
        numbers.append(shared.request(client))
        shared.say(client, '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')
    assert [len(shared.answer(one)) for one in numbers] == [0, 0, 1, 1, 1]


def test_requests_of_ours_that_the_server_never_answers_do_not_fill_memory(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_tables, "MAX_OWN", 3)
    shared.client()
    left: list[Send] = []
    for number_ in range(5):
        one = shared.client()
        shared.answer(shared.request(one, "resources/subscribe", params=f'{{"uri":"a{number_}"}}'))
        left += shared.mux.detach(one)
    assert len(left) == 5
    assert len(shared.mux._shared.in_flight.own) == 3
    assert not shared.mux._shared.in_flight.requests
    for send in left:
        assert shared.answer(number(send)) == []
    assert not shared.mux._shared.in_flight.own


def test_requests_of_the_server_that_a_client_never_answers_do_not_fill_memory(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_server_side, "MAX_ASKED", 3)
    one, two = shared.client('{"roots":{}}'), shared.client('{"roots":{}}')
    shared.request(one)
    for raw_id in (1, 2, 3):
        assert receivers(shared.ask("roots/list", raw_id=str(raw_id))) == [one]
    (refused,) = shared.ask("roots/list", raw_id="4")
    assert (refused.to, code(refused)) == (SERVER, -32603)
    shared.request(two)
    assert receivers(shared.ask("roots/list", raw_id="5")) == [two], "another client answers"
    shared.notify("cancelled", '{"requestId":1}')
    assert receivers(shared.say(one, '{"jsonrpc":"2.0","id":2,"result":{"roots":[]}}')) == [SERVER]
    assert len(shared.mux._shared.asked.by_key) == 2
    shared.mux.detach(one)
    assert len(shared.mux._shared.asked.by_key) == 1


def test_a_request_of_the_server_with_a_long_id_or_token_is_not_kept(shared: Shared) -> None:
    client = shared.client('{"roots":{}}')
    long = '"' + "x" * 1025 + '"'
    shared.request(client)
    for raw_id, params in ((long, "{}"), ("1", f'{{"_meta":{{"progressToken":{long}}}}}')):
        (refused,) = shared.ask("roots/list", params, raw_id)
        assert (refused.to, code(refused)) == (SERVER, -32603)
    assert not shared.mux._shared.asked.by_key


def test_long_ids_of_elicitations_do_not_fill_memory(strangers: Shared) -> None:
    client = strangers.client()
    strangers.answer(strangers.request(client), f'{{"elicitationId":"{"x" * 5000}","a":{{"elicitationId":"E"}}}}')
    assert list(strangers.mux._shared.elicitations.clients) == ["E"]


# --- the handshake ---


def test_later_clients_get_the_recorded_result_under_their_own_id(shared: Shared) -> None:
    shared.client()
    two = shared.mux.attach()
    (sent,) = shared.initialize(two, raw_id='"\\u0061"')
    assert sent == Send(
        two, f'{{"jsonrpc":"2.0","id":"\\u0061","result":{{"protocolVersion":"{VERSION}"}}}}\n'.encode()
    )
    assert shared.say(two, '{"jsonrpc":"2.0","method":"notifications/initialized"}') == []


def test_clients_that_come_while_the_server_initializes_wait_for_its_result(shared: Shared) -> None:
    one, two, three = (shared.mux.attach() for _ in range(3))
    (sent,) = shared.initialize(one)
    assert shared.initialize(two) == shared.initialize(three) == []
    assert shared.mux.detach(three) == []
    assert receivers(shared.answer(number(sent), f'{{"protocolVersion":"{VERSION}"}}')) == [one, two]


def test_after_an_error_the_next_client_that_waits_initializes(shared: Shared) -> None:
    one, two = shared.mux.attach(), shared.mux.attach()
    (sent,) = shared.initialize(one)
    shared.initialize(two)
    sends = shared.server(f'{{"jsonrpc":"2.0","id":{number(sent)},"error":{{"code":-32602,"message":"no"}}}}')
    assert receivers(sends) == [one, SERVER]
    assert receivers(shared.answer(number(sends[1]), f'{{"protocolVersion":"{VERSION}"}}')) == [two]
    assert receivers(shared.initialize(one)) == [one]


def test_the_id_of_an_initialize_that_waits_is_taken(shared: Shared) -> None:
    one, two = shared.mux.attach(), shared.mux.attach()
    (sent,) = shared.initialize(one)
    shared.initialize(two, raw_id="9")
    for raw_id in ("9", "9.0"):
        (refused,) = shared.say(two, f'{{"jsonrpc":"2.0","id":{raw_id},"method":"ping"}}')
        assert refused.to == two
        assert b"in flight" in refused.line
    first = shared.server(f'{{"jsonrpc":"2.0","id":{number(sent)},"error":{{"code":-32602,"message":"no"}}}}')
    shared.mux.detach(two)
    assert shared.answer(number(first[1])) == []
    assert shared.ask("ping") != []


def test_if_the_first_client_leaves_while_it_initializes_the_others_still_get_the_result(shared: Shared) -> None:
    one, two = shared.mux.attach(), shared.mux.attach()
    (sent,) = shared.initialize(one)
    shared.initialize(two)
    shared.say(two, '{"jsonrpc":"2.0","method":"notifications/initialized"}')
    assert shared.mux.detach(one) == []
    sends = shared.answer(number(sent), f'{{"protocolVersion":"{VERSION}"}}')
    assert receivers(sends) == [two, SERVER]
    assert b"notifications/initialized" in sends[1].line


@pytest.mark.parametrize("version", ["2024-11-05", "", "x"])
def test_another_protocol_version_is_an_error_that_says_so(shared: Shared, version: str) -> None:
    shared.client()
    two = shared.mux.attach()
    (refused,) = shared.initialize(two, version=version)
    assert (refused.to, code(refused)) == (two, -32602)
    assert json.loads(refused.line)["error"]["data"] == {"supported": [VERSION], "requested": version}


def test_the_version_that_was_asked_for_and_the_one_agreed_on_are_the_same_handshake(shared: Shared) -> None:
    one, two, three = (shared.mux.attach() for _ in range(3))
    (sent,) = shared.initialize(one, version="2099-01-01")
    shared.answer(number(sent), f'{{"protocolVersion":"{VERSION}"}}')
    for client, version in ((two, "2099-01-01"), (three, VERSION)):
        (reply,) = shared.initialize(client, version=version)
        assert json.loads(reply.line)["result"] == {"protocolVersion": VERSION}


def test_the_server_gets_initialized_once(shared: Shared) -> None:
    one, two = shared.mux.attach(), shared.mux.attach()
    (sent,) = shared.initialize(one)
    shared.answer(number(sent), f'{{"protocolVersion":"{VERSION}"}}')
    shared.initialize(two)
    line = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
    assert receivers(shared.say(two, line)) == [SERVER]
    assert shared.say(one, line) == shared.say(two, line) == []


def test_a_client_without_the_handshake_that_others_have_must_begin_with_it(shared: Shared) -> None:
    shared.client()
    two = shared.mux.attach()
    (refused,) = shared.say(two, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
    assert (refused.to, code(refused)) == (two, -32600)
    assert receivers(shared.say(two, '{"jsonrpc":"2.0","id":1,"method":"ping"}')) == [SERVER]


def test_initialize_comes_once(shared: Shared) -> None:
    client = shared.client()
    assert [code(send) for send in shared.initialize(client)] == [-32600]


def test_a_client_may_probe_the_stateless_era_and_then_initialize(shared: Shared) -> None:
    client = shared.mux.attach()
    mine = shared.request(client, "server/discover", params=f"{{{META}}}")
    shared.server(f'{{"jsonrpc":"2.0","id":{mine},"error":{{"code":-32601,"message":"no"}}}}')
    assert receivers(shared.initialize(client)) == [SERVER]


# --- requests of the server ---


def test_a_request_of_the_server_goes_to_the_client_with_the_newest_request(shared: Shared) -> None:
    one, two = (shared.client('{"sampling":{}}') for _ in range(2))
    shared.request(two)
    shared.request(one)
    shared.request(two, "subscriptions/listen", "9")
    (asked,) = shared.ask("sampling/createMessage")
    assert asked == Send(one, b'{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{}}\n')


def test_only_the_client_that_was_asked_may_answer_and_only_once(shared: Shared) -> None:
    one, two = (shared.client('{"roots":{}}') for _ in range(2))
    shared.request(one)
    shared.ask("roots/list")
    answer = '{"jsonrpc":"2.0","id":"s1", "result":{"roots":[]}}'
    assert shared.say(two, answer) == []
    assert shared.say(one, answer) == [Send(SERVER, answer.encode() + b"\n")]
    assert shared.say(one, answer) == []
    assert len(shared.reports) == 1


def test_the_only_client_gets_requests_of_the_server_without_a_call(shared: Shared) -> None:
    client = shared.client()
    assert receivers(shared.ask("ping")) == [client]


def test_a_request_of_the_server_that_nobody_can_answer_gets_an_error_at_once(shared: Shared) -> None:
    assert [(send.to, code(send)) for send in shared.ask("ping")] == [(SERVER, -32603)]
    shared.client()
    shared.client()
    assert [(send.to, code(send)) for send in shared.ask("ping")] == [(SERVER, -32603)]


@pytest.mark.parametrize(
    ("capabilities", "method", "params", "announced"),
    [
        ('{"sampling":{}}', "sampling/createMessage", "{}", True),
        ("{}", "sampling/createMessage", "{}", False),
        ('{"roots":{}}', "roots/list", "{}", True),
        ("{}", "roots/list", "{}", False),
        ('{"elicitation":{}}', "elicitation/create", "{}", True),
        ('{"elicitation":{"url":{}}}', "elicitation/create", "{}", False),
        ('{"elicitation":{"url":{}}}', "elicitation/create", '{"mode":"url"}', True),
        ('{"elicitation":{"form":{}}}', "elicitation/create", '{"mode":"url"}', False),
        ("{}", "elicitation/create", "{}", False),
        ("{}", "ping", "{}", True),
        ("{}", "vendor/thing", "{}", False),
        ('{"sampling":{},"tasks":{}}', "sampling/createMessage", '{"task":{}}', False),
        ('{"tasks":{}}', "tasks/get", '{"taskId":"x"}', False),
    ],
)
def test_a_client_gets_no_request_that_it_did_not_announce(
    shared: Shared, capabilities: str, method: str, params: str, announced: bool
) -> None:
    shared.client('{"sampling":{},"roots":{},"elicitation":{"form":{},"url":{}}}')
    two = shared.client(capabilities)
    shared.request(two)
    (sent,) = shared.ask(method, params)
    assert (sent.to == two) is announced
    if not announced:
        assert (sent.to, code(sent)) == (SERVER, -32601)


def test_an_unknown_request_goes_to_a_client_with_the_capabilities_that_the_server_knows(shared: Shared) -> None:
    shared.client('{"experimental":{"x":{}}}')
    two = shared.client('{"experimental":{"x":{}}}')
    shared.request(two)
    assert receivers(shared.ask("vendor/thing")) == [two]


def test_the_server_may_withdraw_its_request(shared: Shared) -> None:
    one, two = shared.client(), shared.client()
    mine = shared.request(one)  # the server's request may have the same number: it is another direction
    shared.request(two)
    assert receivers(shared.ask("ping", raw_id=str(mine))) == [two]
    assert receivers(shared.notify("cancelled", f'{{"requestId":{mine}}}')) == [two]
    assert shared.notify("cancelled", f'{{"requestId":{mine}}}') == []
    assert receivers(shared.answer(mine)) == [one]


def test_progress_of_a_client_is_for_its_own_request_only(shared: Shared) -> None:
    one, two = (shared.client('{"sampling":{}}') for _ in range(2))
    shared.request(one)
    shared.ask("sampling/createMessage", '{"_meta":{"progressToken":7}}')
    line = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}'
    assert shared.say(two, line) == []
    assert shared.say(one, line) == [Send(SERVER, line.encode() + b"\n")]
    shared.say(one, '{"jsonrpc":"2.0","id":"s1","result":{}}')
    assert shared.say(one, line) == []


def test_a_request_of_the_server_with_an_id_in_use_gets_an_error(shared: Shared) -> None:
    client = shared.client()
    shared.ask("ping")
    assert [(send.to, code(send)) for send in shared.ask("ping")] == [(SERVER, -32603)]
    assert receivers(shared.say(client, '{"jsonrpc":"2.0","id":"s1","result":{}}')) == [SERVER]


# --- several principals ---


def test_strangers_get_nothing_that_names_no_request_whoever_works(strangers: Shared) -> None:
    one, two = (strangers.client('{"sampling":{},"elicitation":{}}') for _ in range(2))
    strangers.answer(strangers.request(one))
    strangers.request(two)  # the only request in flight
    assert strangers.notify("message", '{"level":"info","data":"secret of one"}') == []
    assert strangers.notify("vendor", '{"data":"secret of one"}') == []
    for number_, method in enumerate(("sampling/createMessage", "elicitation/create", "roots/list", "vendor/x")):
        (refused,) = strangers.ask(method, raw_id=str(number_))
        assert (refused.to, code(refused), json.loads(refused.line)["id"]) == (SERVER, -32603, number_)
    assert strangers.dropped == len(strangers.reports) == 6


def test_what_strangers_do_not_get_is_counted_each_time_and_reported_once(strangers: Shared) -> None:
    one = strangers.client()
    strangers.client()
    mine = strangers.request(one, params='{"name":"t","_meta":{"progressToken":1}}')
    strangers.answer(mine)
    for _ in range(2):
        strangers.notify("message")
        strangers.ask("elicitation/create")
        strangers.answer(mine)
        strangers.notify("progress", f'{{"progressToken":{mine},"progress":1}}')
        strangers.notify("tasks/status", '{"taskId":"nobody"}')
    assert strangers.dropped == 10
    assert len(strangers.reports) == 5


def test_a_ping_of_a_server_that_strangers_share_is_answered_for_them(strangers: Shared) -> None:
    strangers.client()
    strangers.client()
    assert strangers.ask("ping") == [Send(SERVER, b'{"jsonrpc":"2.0","id":"s1","result":{}}\n')]
    assert not strangers.dropped


def test_as_long_as_one_person_has_used_a_server_its_messages_are_for_this_person(strangers: Shared) -> None:
    first, second = (strangers.mux.attach("uid:1") for _ in range(2))
    for client in (first, second):
        strangers.request(client, "tools/list", params=f"{{{META}}}")
    assert receivers(strangers.notify("message", '{"level":"info"}')) == [second]
    strangers.mux.detach(first)
    strangers.mux.detach(second)
    third = strangers.mux.attach("uid:1")
    strangers.request(third, "tools/list", params=f"{{{META}}}")
    assert receivers(strangers.notify("message", '{"level":"info"}')) == [third]
    strangers.mux.detach(strangers.mux.attach("uid:2"))
    assert strangers.notify("message", '{"level":"info"}') == []
    assert strangers.dropped == 1


def test_a_stranger_on_the_fast_path_counts_as_one(strangers: Shared) -> None:
    one = strangers.mux.attach("uid:1")
    strangers.request(one, "tools/list", params=f"{{{META}}}")
    line = f'{{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{{"name":"t",{META}}}}}'.encode()
    call = fast_scan.read_call(line, "2026-07-28")
    assert call is not None
    passed = strangers.mux.pass_call("uid:2", call)
    assert passed is not None
    response = b'{"jsonrpc":"2.0","id":%b,"result":{}}' % passed[1].id
    assert strangers.mux.pass_response(passed[1].id, response) is not None
    assert strangers.notify("message", '{"data":"secret of two"}') == []


def test_a_changed_list_or_resource_brings_strangers_nothing_else(strangers: Shared) -> None:
    one, two = strangers.client(), strangers.client()
    for client in (one, two):
        strangers.answer(strangers.request(client, "resources/subscribe", params='{"uri":"a"}'))
    bare = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
    assert strangers.notify("tools/list_changed", '{"_meta":{"data":"secret of one"}}') == [
        Send(one, bare),
        Send(two, bare),
    ]
    about = b'{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a"}}\n'
    assert strangers.notify("resources/updated", '{"title":"secret of one","uri":"a"}') == [
        Send(one, about),
        Send(two, about),
    ]


def test_a_changed_list_comes_to_one_person_as_the_server_wrote_it(shared: Shared) -> None:
    client = shared.client()
    line = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"x":1}}'
    assert shared.server(line) == [Send(client, line.encode() + b"\n")]


def test_the_roots_that_are_listed_are_given_to_the_server_whoever_uses_it() -> None:
    roots = Roots([("file:///srv", "srv")])
    mux = Multiplexer(False, lambda _sentence: None, roots=roots)
    for _ in range(2):
        mux.attach()
        (sent,) = mux.from_server(b'{"jsonrpc":"2.0","id":7,"method":"roots/list"}\n')
        assert sent == Send(SERVER, roots.response(b"7"))


def test_the_next_stranger_gets_no_afterthought_of_one_that_has_left(strangers: Shared) -> None:
    one = strangers.client()
    assert receivers(strangers.notify("message", '{"data":"of one"}')) == [one]
    strangers.mux.detach(one)
    strangers.client()
    assert strangers.notify("message", '{"data":"secret of one"}') == []
    assert receivers(strangers.ask("sampling/createMessage")) == [SERVER]


def test_changed_lists_go_to_all_strangers(strangers: Shared) -> None:
    clients = [strangers.client() for _ in range(3)]
    for kind in ("tools", "prompts", "resources"):
        assert receivers(strangers.notify(f"{kind}/list_changed")) == clients


def test_sessions_of_one_user_all_get_log_messages(shared: Shared) -> None:
    clients = [shared.client() for _ in range(3)]
    shared.request(clients[0])
    assert receivers(shared.notify("message", '{"level":"info"}')) == clients
    assert receivers(shared.notify("vendor")) == clients[:1]
    shared.mux.attach()  # it has no handshake yet
    assert receivers(shared.notify("message", '{"level":"info"}')) == clients


# --- subscriptions and log levels ---


def test_updates_of_a_resource_go_to_its_subscribers(shared: Shared) -> None:
    one, two, three = (shared.client() for _ in range(3))
    for client, uri in ((one, "file:///a"), (two, "file:///a/b"), (three, "file:///ab")):
        shared.answer(shared.request(client, "resources/subscribe", params=f'{{"uri":"{uri}"}}'))
    assert receivers(shared.notify("resources/updated", '{"uri":"file:///a/b"}')) == [one, two]
    assert receivers(shared.notify("resources/updated", '{"uri":"file:///ab"}')) == [three]
    assert shared.notify("resources/updated", '{"uri":"file:///c"}') == []


def test_a_stranger_that_subscribes_to_a_folder_does_not_see_what_others_name_in_it(strangers: Shared) -> None:
    one, two = strangers.client(), strangers.client()
    for client, uri in ((one, "note:///diary"), (two, "note:///")):
        strangers.answer(strangers.request(client, "resources/subscribe", params=f'{{"uri":"{uri}"}}'))
    assert receivers(strangers.notify("resources/updated", '{"uri":"note:///diary"}')) == [one]
    assert receivers(strangers.notify("resources/updated", '{"uri":"note:///x"}')) == [two]


@pytest.mark.parametrize("uris", [["a", "b", "c"], ["x" * 5000]])
def test_subscriptions_of_a_client_have_a_limit(
    shared: Shared, monkeypatch: pytest.MonkeyPatch, uris: list[str]
) -> None:
    monkeypatch.setattr(shared_client_side, "MAX_SUBSCRIPTIONS", 2)
    client = shared.client()
    for raw_id, uri in enumerate(uris):
        sends = shared.say(
            client, f'{{"jsonrpc":"2.0","id":{raw_id},"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}'
        )
    assert [(send.to, code(send)) for send in sends] == [(client, -32600)]


def test_a_failed_subscription_is_none(shared: Shared) -> None:
    client = shared.client()
    mine = shared.request(client, "resources/subscribe", params='{"uri":"a"}')
    shared.server(f'{{"jsonrpc":"2.0","id":{mine},"error":{{"code":-32002,"message":"no"}}}}')
    assert shared.notify("resources/updated", '{"uri":"a"}') == []


def test_the_last_subscriber_ends_the_subscription_at_the_server(shared: Shared) -> None:
    one, two = shared.client(), shared.client()
    for client in (one, two):
        shared.answer(shared.request(client, "resources/subscribe", params='{"uri":"a"}'))
    line = '{"jsonrpc":"2.0","id":3,"method":"resources/unsubscribe","params":{"uri":"a"}}'
    assert shared.say(one, line) == [Send(one, b'{"jsonrpc":"2.0","id":3,"result":{}}\n')]
    assert receivers(shared.say(one, line)) == [one], "it is the subscription of another"
    assert receivers(shared.say(two, line)) == [SERVER]


def test_who_leaves_unsubscribes_and_the_response_goes_to_nobody(shared: Shared) -> None:
    one, two = shared.client(), shared.client()
    for client, uri in ((one, "a"), (two, "a"), (one, "b")):
        shared.answer(shared.request(client, "resources/subscribe", params=f'{{"uri":"{uri}"}}'))
    (left,) = shared.mux.detach(one)
    assert json.loads(left.line)["params"] == {"uri": "b"}
    assert shared.answer(number(left)) == []
    assert not shared.reports


def test_the_most_verbose_log_level_goes_to_the_server_and_each_gets_its_own(shared: Shared) -> None:
    one, two, three = (shared.client() for _ in range(3))

    def set_level(client: int, level: str) -> Any:  # noqa: ANN401  # any JSON
        (sent,) = shared.say(
            client, f'{{"jsonrpc":"2.0","id":8,"method":"logging/setLevel","params":{{"level":"{level}"}}}}'
        )
        shared.answer(number(sent))
        return json.loads(sent.line)["params"]["level"]

    assert set_level(one, "error") == "info", "the others have not said"
    assert set_level(two, "debug") == "debug"
    assert set_level(one, "critical") == "debug"
    assert receivers(shared.notify("message", '{"level":"debug"}')) == [two]
    assert receivers(shared.notify("message", '{"level":"info"}')) == [two, three]
    assert receivers(shared.notify("message", '{"level":"alert"}')) == [one, two, three]
    (relaxed,) = shared.mux.detach(two)
    assert json.loads(relaxed.line)["params"] == {"level": "info"}


def test_a_level_that_is_unknown_here_is_the_servers_business(shared: Shared) -> None:
    client = shared.client()
    line = '{"jsonrpc":"2.0","id":8,"method":"logging/setLevel","params":{"level":"loud"}}'
    (sent,) = shared.say(client, line)
    assert json.loads(sent.line)["params"] == {"level": "loud"}


# --- the stateless era ---


def test_the_id_of_a_listening_request_is_renamed_in_its_notifications_and_its_result(shared: Shared) -> None:
    one, two = shared.mux.attach(), shared.mux.attach()
    numbers = {
        client: shared.request(client, "subscriptions/listen", raw_id, f'{{{META},"notifications":{{}}}}')
        for client, raw_id in ((one, '"1"'), (two, "1"))
    }
    for client, raw_id in ((one, '"1"'), (two, "1")):
        meta = f'"_meta":{{"{SUBSCRIPTION}":{numbers[client]}}}'
        (changed,) = shared.notify("tools/list_changed", f"{{{meta}}}")
        assert changed.to == client
        assert f'"{SUBSCRIPTION}":{raw_id}}}' in changed.line.decode()
        (ended,) = shared.answer(numbers[client], f'{{"resultType":"complete",{meta}}}')
        assert ended.to == client
        assert ended.line.decode().count(f":{raw_id}") == 2
    assert shared.notify("tools/list_changed", f"{{{meta}}}") == []


def test_a_listening_request_does_not_keep_a_session_waiting(shared: Shared) -> None:
    client = shared.mux.attach()
    mine = shared.request(client, "subscriptions/listen", params=f"{{{META}}}")
    assert not shared.mux.awaits_response(client)
    shared.request(client, "tools/list", "2", params=f"{{{META}}}")
    assert shared.mux.awaits_response(client)
    (ended,) = shared.notify("cancelled", f'{{"requestId":{mine}}}')
    assert json.loads(ended.line)["params"]["requestId"] == 1


@pytest.mark.parametrize(
    ("creating", "handle"),
    [
        ('{"name":"t","task":{}}', '{"task":{"taskId":"T"}}'),
        (f'{{"name":"t",{META}}}', '{"resultType":"task","taskId":"T"}'),
    ],
)
def test_a_task_is_that_of_the_client_that_created_it(strangers: Shared, creating: str, handle: str) -> None:
    one, two = strangers.client(), strangers.client()
    strangers.answer(strangers.request(one, params=creating), handle)
    for method in ("tasks/get", "tasks/cancel", "tasks/result", "tasks/update", "vendor/about"):
        foreign = strangers.say(two, f'{{"jsonrpc":"2.0","id":4,"method":"{method}","params":{{"taskId":"T"}}}}')
        unknown = strangers.say(two, f'{{"jsonrpc":"2.0","id":4,"method":"{method}","params":{{"taskId":"none"}}}}')
        assert [send.line for send in foreign] == [send.line for send in unknown]
        assert all(send.refused for send in (*foreign, *unknown)), "each refusal gets its audit line"
        assert [(send.to, code(send)) for send in foreign] == [(two, -32602)]
        strangers.request(one, method, f'"{method}"', '{"taskId":"T"}')
    assert receivers(strangers.notify("tasks/status", '{"taskId":"T"}')) == [one]
    assert receivers(strangers.notify("tasks", '{"taskId":"T"}')) == [one]
    related = f'{{"_meta":{{"{RELATED}":{{"taskId":"T"}}}}}}'
    assert receivers(strangers.notify("message", related)) == [one]
    strangers.request(two, raw_id="77")
    assert receivers(strangers.ask("ping", related)) == [one]
    about = f'{{"jsonrpc":"2.0","id":5,"method":"t","params":{related}}}'
    assert [code(send) for send in strangers.say(two, about)] == [-32602]


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/list", "vendor/about", "subscriptions/listen"])
def test_what_one_person_asks_of_a_task_that_is_nobodys_goes_to_the_server(shared: Shared, method: str) -> None:
    client = shared.client()
    line = (
        f'{{"jsonrpc":"2.0","id":4,"method":"{method}","params":{{"taskId":"T","notifications":{{"taskIds":["T"]}}}}}}'
    )
    (sent,) = shared.say(client, line)
    assert sent == Send(SERVER, line.replace('"id":4', f'"id":{number(sent)}').encode() + b"\n")


def test_a_removed_method_reaches_the_server_unless_it_names_the_task_of_another(
    strangers: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = strangers.client(), strangers.client()
    strangers.answer(strangers.request(one, params=f'{{"name":"t",{META}}}'), '{"resultType":"task","taskId":"T"}')

    def ask(task_id: str) -> Send:
        params = f'{{"taskId":"{task_id}",{META}}}'
        (sent,) = strangers.say(two, f'{{"jsonrpc":"2.0","id":4,"method":"tasks/result","params":{params}}}')
        strangers.answer(number(sent) if sent.to == SERVER else 0)
        return sent

    assert ask("unknown").to == SERVER
    assert json.loads(ask("T").line)["error"] == {"code": -32601, "message": "Method not found"}
    assert ask("T").refused is not None
    monkeypatch.setattr(shared_tables, "MAX_TASKS", 1)
    strangers.answer(strangers.request(one, params=f'{{"name":"t",{META}}}'), '{"resultType":"task","taskId":"U"}')
    assert (ask("T").to, code(ask("T"))) == (two, -32601), "it is forgotten, and may be anybody's"
    assert code(ask("unknown")) == -32601


@pytest.mark.parametrize(
    "params",
    [
        "{}",
        '{"taskId":5}',
        '{"taskId":"mine","TaskId":"T"}',
        f'{{"taskId":"mine","_meta":{{"{RELATED}":{{"taskId":"mine","taskID":"T"}}}}}}',
        f'{{"taskId":"mine","_meta":{{"{RELATED}":"T"}}}}',
        f'{{"taskId":"mine","_meta":{{"{RELATED}":{{"taskId":"mine","taskId":"T"}}}}}}',
    ],
)
def test_no_spelling_names_the_task_of_another(strangers: Shared, params: str) -> None:
    one, two = strangers.client(), strangers.client()
    strangers.answer(strangers.request(one, params='{"task":{}}'), '{"task":{"taskId":"T"}}')
    strangers.answer(strangers.request(two, params='{"task":{}}'), '{"task":{"taskId":"mine"}}')
    assert receivers(strangers.say(two, f'{{"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{params}}}')) == [two]


def test_a_compact_call_cannot_name_the_task_of_another_either(shared: Shared) -> None:
    one, two = shared.client(), shared.client()
    shared.answer(shared.request(one, params='{"task":{}}'), '{"task":{"taskId":"T"}}')
    params = f'{{"name":"t","_meta":{{"{RELATED}":{{"taskId":"T"}}}}}}'
    assert receivers(shared.say(two, f'{{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{params}}}')) == [two]


def test_nobody_may_use_a_task_whose_id_two_clients_got(shared: Shared) -> None:
    one, two = shared.client(), shared.client()
    for client in (one, two):
        shared.answer(shared.request(client, params='{"task":{}}'), '{"task":{"taskId":"T"}}')
    for client in (one, two):
        assert receivers(
            shared.say(client, '{"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"T"}}')
        ) == [client]
    assert shared.notify("tasks/status", '{"taskId":"T"}') == []


def test_a_result_that_only_looks_like_a_handle_claims_no_task(shared: Shared) -> None:
    one, two = shared.client(), shared.client()
    for result in ('{"taskId":"T"}', '{"task":{"taskId":"T"}}', '{"resultType":"complete","taskId":"T"}'):
        shared.answer(shared.request(one), result)
    shared.answer(shared.request(two, params='{"task":{}}'), '{"task":{"taskId":"T"}}')
    shared.request(two, "tasks/get", params='{"taskId":"T"}')


def test_who_leaves_cancels_its_tasks(strangers: Shared) -> None:
    one, two = strangers.client(), strangers.client()
    strangers.answer(strangers.request(one, params='{"task":{}}'), '{"task":{"taskId":"T"}}')
    (cancelled,) = strangers.mux.detach(one)
    assert json.loads(cancelled.line)["params"] == {"taskId": "T"}
    assert strangers.answer(number(cancelled), '{"taskId":"T","status":"cancelled"}') == []
    assert receivers(strangers.say(two, '{"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"T"}}')) == [
        two
    ]


def test_clients_of_one_owner_have_their_tasks_together_and_these_outlive_them(strangers: Shared) -> None:
    def attach(owner: str, number: int) -> int:
        client = strangers.mux.attach(owner)
        strangers.request(client, "tools/list", str(number), f"{{{META}}}")
        return client

    handle = '{"resultType":"task","taskId":"T"}'
    first, listening, other = attach("uid:1", 21), attach("uid:1", 22), attach("uid:2", 23)
    mine = strangers.request(first, params=f'{{{META[:-1]},"progressToken":"p"}}}}')
    listener = strangers.request(listening, "subscriptions/listen", "9", f"{{{META}}}")
    strangers.answer(mine, handle)
    assert receivers(strangers.notify("progress", f'{{"progressToken":{mine},"progress":1}}')) == [first]
    about = '{"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"T"}}'
    assert b"tasks" not in b"".join(send.line for send in strangers.mux.detach(first))
    assert receivers(strangers.say(listening, about)) == [SERVER]
    assert [code(send) for send in strangers.say(other, about)] == [-32602]
    told = f'{{"taskId":"T","_meta":{{"{SUBSCRIPTION}":{listener}}}}}'
    assert receivers(strangers.notify("tasks", told)) == [listening]
    assert strangers.notify("tasks", '{"taskId":"T"}') == []
    assert strangers.notify("progress", f'{{"progressToken":{mine},"progress":1}}') == []
    strangers.mux.detach(listening)
    assert receivers(strangers.say(attach("uid:1", 25), about)) == [SERVER]
    assert [code(send) for send in strangers.say(attach("", 26), about)] == [-32602]
    strangers.mux.detach(other)
    assert list(strangers.mux._shared.tasks.named) == ["uid:1"]


def test_the_oldest_task_of_a_client_is_forgotten_beyond_the_limit(
    strangers: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_tables, "MAX_TASKS", 2)
    strangers.client()
    client = strangers.client()
    for name in "abc":
        strangers.answer(strangers.request(client, params='{"task":{}}'), f'{{"task":{{"taskId":"{name}"}}}}')
    assert [
        strangers.say(client, f'{{"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{{"taskId":"{name}"}}}}')[0].to
        for name in "ab"
    ] == [client, SERVER]


def test_tasks_are_not_listed(strangers: Shared) -> None:
    client = strangers.client()
    strangers.client()
    assert [code(send) for send in strangers.say(client, '{"jsonrpc":"2.0","id":4,"method":"tasks/list"}')] == [-32601]


def test_progress_of_a_task_goes_on_after_its_handle(shared: Shared) -> None:
    client = shared.client()
    mine = shared.request(client, params='{"task":{},"_meta":{"progressToken":"p"}}')
    shared.answer(mine, '{"task":{"taskId":"T"}}')
    (progress,) = shared.notify("progress", f'{{"progressToken":{mine},"progress":1}}')
    assert json.loads(progress.line)["params"]["progressToken"] == "p"


@pytest.mark.parametrize(
    "filters",
    [
        '{"taskIds":["T"]}',
        '{"TaskIds":["T"]}',
        '{"taskIds":"T"}',
        '{"taskIds":["mine"],"taskIds":["T"]}',
        '{"taskIds":[5]}',
    ],
)
def test_nobody_listens_to_the_task_of_another(shared: Shared, filters: str) -> None:
    one, two = shared.client(), shared.client()
    shared.answer(shared.request(one, params='{"task":{}}'), '{"task":{"taskId":"T"}}')
    shared.answer(shared.request(two, params='{"task":{}}'), '{"task":{"taskId":"mine"}}')
    line = f'{{"jsonrpc":"2.0","id":4,"method":"subscriptions/listen","params":{{{META},"notifications":{filters}}}}}'
    assert receivers(shared.say(two, line)) == [two]
    mine = shared.request(two, "subscriptions/listen", "5", f'{{{META},"notifications":{{"taskIds":["mine"]}}}}')
    assert shared.notify("tasks", f'{{"taskId":"T","_meta":{{"{SUBSCRIPTION}":{mine}}}}}') == []
    assert receivers(shared.notify("tasks", f'{{"taskId":"mine","_meta":{{"{SUBSCRIPTION}":{mine}}}}}')) == [two]


def test_the_end_of_an_elicitation_on_a_page_goes_to_who_had_it(strangers: Shared) -> None:
    one = strangers.client('{"elicitation":{"url":{}}}')
    strangers.request(one)
    strangers.ask("elicitation/create", '{"mode":"url","elicitationId":"E"}')
    two = strangers.client()
    strangers.request(two)
    assert receivers(strangers.notify("elicitation/complete", '{"elicitationId":"E"}')) == [one]
    assert strangers.notify("elicitation/complete", '{"elicitationId":"F"}') == []


# --- the end of a client, and lines of the server that cannot be delivered ---


def test_who_leaves_cancels_its_requests_and_answers_those_of_the_server(shared: Shared) -> None:
    one, two = shared.client(), shared.client()
    mine = shared.request(one, raw_id="1")
    listening = shared.request(one, "subscriptions/listen", "2")
    other = shared.request(two)
    shared.mux.from_client(two, b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n')
    shared.ask("ping")
    sends = shared.mux.detach(one)
    assert receivers(sends) == [SERVER] * 3
    messages = [json.loads(send.line) for send in sends]
    assert [message["params"]["requestId"] for message in messages[:2]] == [mine, listening]
    assert messages[2]["id"] == "s1"
    assert "error" in messages[2]
    assert shared.answer(mine) == []
    assert receivers(shared.answer(other)) == [two]
    assert shared.mux.detach(one) == shared.say(one, '{"jsonrpc":"2.0","id":1,"method":"ping"}') == []
    assert not shared.reports


def test_nothing_of_a_client_is_kept_when_it_has_left(shared: Shared) -> None:
    one = shared.client('{"elicitation":{}}')
    for _ in range(100):
        two = shared.client()
        shared.answer(shared.request(two, "resources/subscribe", params='{"uri":"a"}'))
        shared.answer(shared.request(two, params='{"task":{},"_meta":{"progressToken":1}}'), '{"task":{"taskId":"T"}}')
        mine = shared.request(two)
        sends = shared.mux.detach(two)
        shared.answer(mine)
        for send in sends:
            if b'"id"' in send.line:
                shared.answer(number(send))
    known = shared.mux._shared
    assert list(known.clients) == [one]
    assert known.in_flight == InFlight(known.in_flight.last_number, by_client={one: {}})
    empty = (ServerRequests(), Subscriptions(), SharedTasks(has_forgotten=True), LogLevels(), Elicitations())
    assert (known.asked, known.subscriptions, known.tasks, known.levels, known.elicitations) == empty
    assert not shared.mux._passed
    assert not shared.reports


def test_a_line_over_the_limit_ends_the_call_that_it_answers(shared: Shared) -> None:
    one, two = shared.client(), shared.client()
    lost, kept = shared.request(one), shared.request(two)
    (error,) = shared.mux.lost_from_server(b"%d" % lost, 9_000, 100)
    assert (error.to, json.loads(error.line)["id"]) == (one, 1)
    assert "9000" in error.line.decode()
    assert receivers(shared.answer(kept)) == [two]
    assert shared.mux.lost_from_server(b"null", 9_000, 100) == []


@pytest.mark.parametrize(
    "reply",
    [
        '{{"jsonrpc":"2.0","id":{n},"result":{{}},"id":1}}',
        '{{"jsonrpc":"2.0","id":{n},"result":{{}},"ID":1}}',
        '{{"jsonrpc":"2.0","id":{n},"result":{{}},"method":"x"}}',
    ],
)
def test_a_response_that_clients_could_read_differently_becomes_an_error(shared: Shared, reply: str) -> None:
    one = shared.client()
    shared.client()
    (error,) = shared.server(reply.format(n=shared.request(one)))
    assert (error.to, code(error), json.loads(error.line)["id"]) == (one, -32603, 1)


def test_a_batch_of_the_server_is_taken_apart(shared: Shared) -> None:
    one, two = shared.client(), shared.client()
    first, second = shared.request(one), shared.request(two)
    batch = ",".join(f'{{"jsonrpc":"2.0","id":{one},"result":{{}}}}' for one in (second, first))
    assert receivers(shared.server(f"[{batch}]")) == [two, one]


def test_what_is_no_message_reaches_no_client(shared: Shared) -> None:
    shared.client()
    assert shared.server("Listening on stdio") == shared.server('{"broken":') == shared.server("[1,") == []
    assert shared.reports


def test_reports_are_bounded(shared: Shared) -> None:
    for attempt in range(300):
        shared.notify(f"vendor{attempt}")
    assert len(shared.reports) == multiplex.MAX_REPORTS


# --- the fast path ---


def lone_call(raw_id: int = 7, version: str = "2026-07-28") -> ReadCall:
    """A call of a client that sends nothing else."""
    params = f'{{"name":"t","arguments":{{"a":1}},{META}}}'
    line = f'{{"jsonrpc":"2.0","id":{raw_id},"method":"tools/call","params":{params}}}'
    call = read_call(line.encode(), version)
    assert call is not None
    return call


def passed(shared: Shared, owner: str = "ann", raw_id: int = 7) -> tuple[int, ReadCall]:
    sent = shared.mux.pass_call(owner, lone_call(raw_id))
    assert sent is not None
    return sent


def result(raw_id: bytes, more: str = "") -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":{"content":[]%b}}' % (raw_id, more.encode())


def test_a_call_on_the_fast_path_is_renumbered_and_its_response_has_its_own_id(shared: Shared) -> None:
    earlier = shared.client()
    sent = shared.request(earlier)
    own = lone_call()
    client, call = passed(shared)
    assert (client, int(call.id)) == (earlier + 1, sent + 1)
    assert call == ReadCall(
        call.id, own.name, own.arguments, own.meta, own.line.replace(b'"id":7', b'"id":%b' % call.id), own.version
    )
    other, second = passed(shared, raw_id=8)
    assert (other, int(second.id)) == (client + 1, sent + 2)
    assert shared.mux.pass_response(second.id, result(second.id)) == (other, result(b"8"))
    assert shared.mux.pass_response(call.id, result(call.id)) == (client, result(b"7"))
    assert shared.mux.pass_response(call.id, result(call.id)) is None, "it is over"
    assert shared.request(earlier, raw_id="2") == sent + 3
    assert shared.mux.attach() == other + 1


def test_a_call_of_a_session_does_not_take_the_fast_path(shared: Shared) -> None:
    first = shared.mux.attach()
    assert shared.mux.pass_call("ann", lone_call(version="")) is None
    assert shared.mux.attach() == first + 1, "nothing was done"


@pytest.mark.parametrize("more", [',"_meta":{"taskId":"x"}', ',"elicitationId":"x"'])
def test_a_response_that_names_what_belongs_to_clients_is_read_as_all_others(shared: Shared, more: str) -> None:
    client, call = passed(shared)
    line = result(call.id, more)
    assert shared.mux.pass_response(call.id, line) is None
    assert shared.mux.from_server(line + b"\n") == [Send(client, result(b"7", more) + b"\n")]


def test_an_error_is_read_as_all_other_responses(shared: Shared) -> None:
    client, call = passed(shared)
    error = b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32603,"message":"no"}}'
    assert shared.mux.pass_response(call.id, error % call.id) is None
    assert shared.mux.from_server(error % call.id + b"\n") == [Send(client, error % b"7" + b"\n")]


def test_a_response_to_another_call_ends_none_on_the_fast_path(shared: Shared) -> None:
    client, call = passed(shared)
    assert shared.mux.pass_response(b"99", result(b"99")) is None
    assert shared.mux.pass_response(call.id, result(b"99")) is None
    assert shared.mux.pass_response(call.id, result(call.id)) == (client, result(b"7"))


def test_a_call_that_is_taken_back_leaves_no_client(shared: Shared) -> None:
    client, call = passed(shared)
    shared.mux.take_back(call.id)
    assert shared.mux.pass_response(call.id, result(call.id)) is None
    assert not shared.mux.awaits_response(client)


def test_a_client_on_the_fast_path_is_like_all_others_once_something_else_happens(shared: Shared) -> None:
    client, call = passed(shared)
    assert shared.mux.awaits_response(client)
    (cancelled,) = shared.mux.detach(client)
    assert json.loads(cancelled.line)["params"]["requestId"] == int(call.id)
    another, call = passed(shared)
    assert shared.notify("progress", f'{{"progressToken":{int(call.id)},"progress":1}}') == [], "it asked for none"
    task = '{"resultType":"task","taskId":"job","status":"working"}'
    (created,) = shared.answer(int(call.id), task)
    assert (created.to, json.loads(created.line)["id"]) == (another, 7)
    poll = f'{{"taskId":"job",{META}}}'
    others = shared.mux.attach("bob")
    (refused,) = shared.say(others, f'{{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{poll}}}')
    assert refused.to == others
    of_ann = shared.mux.attach("ann")
    assert shared.request(of_ann, "tasks/get", params=poll)


def test_the_limit_of_a_response_is_told(shared: Shared) -> None:
    client = shared.client()
    sent = shared.request(client)
    (error,) = shared.mux.lost_from_server(b"%d" % sent, 5_000_000, 4_000_000)
    assert error.to == client
    assert "4,000,000" in json.loads(error.line)["error"]["message"].replace("4000000", "4,000,000")


def test_a_sentence_is_reported_once(shared: Shared) -> None:
    for _ in range(2):
        shared.answer(999)
    assert len(shared.reports) == 1
    assert "999" in shared.reports[0] or "response" in shared.reports[0]


@pytest.mark.parametrize(
    ("names", "are_several"),
    [
        ([], False),
        (["a"], False),
        ([""], False),
        (["a", "a"], False),
        (["a", "b"], True),
        (["", ""], True),
        (["a", ""], True),
        (["", "a"], True),
        (["a", "b", "a"], True),
    ],
)
def test_who_is_unknown_is_somebody_else(names: list[str], are_several: bool) -> None:
    people = People()
    for name in names:
        people.note(name)
    assert people.are_several is are_several


def test_who_comes_later_does_not_make_one_person_of_several() -> None:
    strangers = Shared(one_owner=False)
    one, two = strangers.client(), strangers.client()
    strangers.mux.detach(one)
    strangers.mux.detach(two)
    strangers.client()
    assert strangers.notify("message") == []


def test_messages_reach_their_client_as_the_server_wrote_them(strangers: Shared) -> None:
    one = strangers.client('{"elicitation":{"url":{}}}')
    strangers.answer(strangers.request(one, params='{"task":{}}'), '{"task":{"taskId":"T"}}')
    strangers.ask("elicitation/create", '{"mode":"url","elicitationId":"E"}')
    for line in (
        '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error", "data":1}}',
        '{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"T", "status":"working"}}',
        '{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"E"}}',
        '{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"nobodys"}}',
    ):
        assert strangers.server(line) == [Send(one, line.encode() + b"\n")]


def test_a_client_that_is_alone_hears_of_the_server_before_its_handshake(shared: Shared) -> None:
    one = shared.mux.attach()
    assert receivers(shared.notify("vendor")) == [one]
    shared.mux.attach()
    assert shared.notify("vendor") == []


def test_each_report_says_what_was_dropped(strangers: Shared) -> None:
    one, two = strangers.client(), strangers.client()
    strangers.answer(strangers.request(one, params='{"task":{}}'), '{"task":{"taskId":"T"}}')
    listener = strangers.request(two, "subscriptions/listen", "9", f"{{{META}}}")
    strangers.notify("message")
    strangers.ask("vendor/x")
    strangers.answer(7777)
    strangers.notify("progress", '{"progressToken":7777}')
    strangers.notify("tasks", f'{{"taskId":"T","_meta":{{"{SUBSCRIPTION}":{listener}}}}}')
    strangers.notify("tasks", '{"taskId":"other"}')
    assert strangers.reports == [
        "the message 'notifications/message' of the server is dropped, because it names no client",
        "the request 'vendor/x' of the server got an error, because it names no client",
        "the server responded to a request that nobody has sent, and the response is dropped",
        "the server reported progress of a request that is not in flight",
        "the server sent the status of a task to the subscription of another client",
        "the server sent the status of a task that no client has",
    ]
