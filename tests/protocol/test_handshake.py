"""How a session begins, and which agent it belongs to."""

from hookproxy.jsonrpc import raw_json
from hookproxy.protocol.handshake import Handshake
from hookproxy.protocol.responses import Members

INFO = '"clientInfo":{"name":"Lean","version":"1.2"}'
META = '{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"L"}}'


def members(text: str) -> Members:
    return raw_json.fields(text.encode())


def note_initialize(handshake: Handshake) -> None:
    handshake.note_request(members('{"params":{' + INFO + "}}"), b'"initialize"', initializes=True)


def note_request(handshake: Handshake, meta: str) -> None:
    handshake.note_request(members('{"params":{"_meta":' + meta + "}}"), b'"ping"', initializes=False)


def test_initialize_opens_a_session_of_the_handshake_era() -> None:
    handshake = Handshake()
    assert (handshake.opened, handshake.uses_initialize, handshake.agent_name) == (False, False, "")
    note_initialize(handshake)
    assert (handshake.opened, handshake.uses_initialize, handshake.agent_name) == (True, True, "Lean 1.2")


def test_only_a_request_with_a_version_opens_a_stateless_session() -> None:
    handshake = Handshake()
    note_request(handshake, "{}")
    assert not handshake.opened
    note_request(handshake, META)
    assert (handshake.opened, handshake.uses_initialize, handshake.agent_name) == (True, False, "L")


def test_a_call_opens_a_session_even_without_a_handshake() -> None:
    handshake = Handshake()
    handshake.note_call(members("{}"))
    assert (handshake.opened, handshake.uses_initialize, handshake.agent_name) == (True, False, "")


def test_a_second_handshake_changes_nothing() -> None:
    handshake = Handshake()
    note_initialize(handshake)
    note_request(handshake, META)
    handshake.note_call(members(META))
    assert (handshake.uses_initialize, handshake.agent_name) == (True, "Lean 1.2")
