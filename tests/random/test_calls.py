"""Random calls with additional, missing and duplicate members: what is read is what every reader reads."""

from __future__ import annotations

from typing import Final

from hypothesis import given

from hookproxy.jsonrpc import raw_json
from hookproxy.jsonrpc.raw_json import DuplicateKeys, Unreadable
from hookproxy.protocol import calls
from tests.random.documents import envelopes
from tests.support.call_spellings import calls_seen
from tests.support.examples import examples

CALL_MEMBERS: Final = (
    '"jsonrpc":"2.0"',
    '"id":7',
    '"id":7.0',
    '"method":"tools/call"',
    '"method":"tools/call"',
    '"method":"ping"',
    '"\\u006dethod":"tools/call"',
    '"Method":"tools/call"',
    '"params":{"name":"danger"}',
    '"params":{"name":"danger","arguments":{"a":1}}',
    '"params":{"name":"safe","name":"danger"}',
    '"params":{"name":"safe"}',
    '"params":["danger"]',
    '"Params":{"name":"danger"}',
    '"x": {"z": 0, "id": 1, "method": "ping", "params": 1}',
    '"x":1',
    '"result":{}',
)


@examples(150)
@given(envelopes(CALL_MEMBERS))
def test_a_call_that_any_reader_recognises_is_a_call_or_unreadable(line: bytes) -> None:
    if not calls_seen(line):
        return
    try:
        members = raw_json.fields(line)
        calls.check_spelling(members)
        assert calls.method(members) == calls.METHOD
        assert calls.read(members).tool == "danger"
    except (Unreadable, DuplicateKeys):
        return
