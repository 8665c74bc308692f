"""How a session begins, and whose it is."""

from hookproxy.jsonrpc import raw_json
from hookproxy.protocol.handshake import Greeting
from hookproxy.protocol.responses import Members

INFO = '"clientInfo":{"name":"Lean","version":"1.2"}'
META = '{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"L"}}'


def members(text: str) -> Members:
    return raw_json.fields(text.encode())


def test_initialize_opens_a_session_of_the_handshake_era() -> None:
    greeting = Greeting()
    assert (greeting.opened, greeting.uses_initialize, greeting.agent) == (False, False, "")
    greeting.initialize(members("{" + INFO + "}"))
    assert (greeting.opened, greeting.uses_initialize, greeting.agent) == (True, True, "Lean 1.2")


def test_a_request_that_names_its_version_opens_a_stateless_one_and_no_other_does() -> None:
    greeting = Greeting()
    greeting.request(members("{}"))
    assert not greeting.opened
    greeting.request(members(META))
    assert (greeting.opened, greeting.uses_initialize, greeting.agent) == (True, False, "L")


def test_a_call_opens_a_session_although_nobody_greeted() -> None:
    greeting = Greeting()
    greeting.call(members("{}"))
    assert (greeting.opened, greeting.uses_initialize, greeting.agent) == (True, False, "")


def test_who_came_first_stays() -> None:
    greeting = Greeting()
    greeting.initialize(members("{" + INFO + "}"))
    greeting.request(members(META))
    greeting.call(members(META))
    assert (greeting.uses_initialize, greeting.agent) == (True, "Lean 1.2")
