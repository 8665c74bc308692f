"""Blocks of lines that pass on the fast path, and blocks that are left to the full reading."""

from __future__ import annotations

import json
from typing import Final

import pytest

from hookproxy.protocol import fast_scan
from hookproxy.protocol.actions import PASS
from hookproxy.protocol.inflight import RequestKind
from hookproxy.protocol.router import Router

INITIALIZE: Final = b'{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"capabilities":{}}}\n'


def call(number: int | str, name: str = "safe", more: str = ',"arguments":{}') -> str:
    return f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"{name}"{more}}}}}'


CALL: Final = call(1)
EVIL: Final = call(66, "danger")


def router() -> Router:
    """One that has begun, and knows that `safe` concerns no hook and `danger` does."""
    one = Router(lambda tool: tool == "danger")
    assert one.from_agent(INITIALIZE) is PASS
    assert one.from_agent(call(900).encode() + b"\n") is PASS
    one.from_agent(call(901, "danger").encode() + b"\n")
    one.calls.clear()
    one.requests.clear()
    return one


PASSING: Final = {
    "one": CALL,
    "several": "\n".join(map(call, range(1, 40))),
    "without arguments": call(1, more=""),
    "with _meta": call(1, more=',"arguments":{"a":[1, 2]},"_meta":{"progressToken":1}'),
    "with _meta first": call(1, more=',"_meta":{"progressToken":1},"arguments":{}'),
    "another order": '{"id":1,"jsonrpc":"2.0","params":{"arguments":{},"name":"safe"},"method":"tools/call"}',
    "blanks inside the arguments": call(1, more=',"arguments":{ "a" : "\\u0041" }'),
}


@pytest.mark.parametrize("block", PASSING.values(), ids=PASSING)
def test_calls_as_agents_write_them_pass_on_the_fast_path(block: str) -> None:
    one = router()
    assert one.scan_from_agent(block.encode() + b"\n")
    assert set(one.requests.values()) == {RequestKind.OTHER}
    assert len(one.requests) == block.count("\n") + 1


def moved(inside: str) -> str:
    return call(1, more=f',"arguments":{inside}')


LEFT: Final = {
    "a judged tool": EVIL,
    "a tool never seen": call(1, "unknown"),
    "a judged tool among others": f"{CALL}\n{EVIL}\n{call(3)}",
    "a name with an escape": call(1, "s\\u0061fe"),
    "another method": '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"name":"safe"}}',
    "a string as id": call('"1"'),
    "a negative id": call("-1"),
    "a fraction as id": call("1.0"),
    "no id": CALL.replace('"id":1,', ""),
    "null as id": call("null"),
    "an unknown member": CALL[:-1] + ',"x":1}',
    "an unknown parameter": call(1, more=',"task":{}'),
    "blanks": CALL.replace(",", ", "),
    "a blank at the end": CALL + " ",
    "a carriage return": CALL + "\r",
    "a blank line": f"{CALL}\n\n{call(2)}",
    "outside ASCII": moved('{"a":"é"}'),
    "a line separator": moved('{"a":"\u2028"}'),
    "the same id twice": f"{CALL}\n{CALL}",
    "two on a line": CALL + call(2),
    "two on a line and two line ends": f"{CALL}{call(2)}\n{{}}",
    "over two lines": CALL.replace('"params":', '"params":\n'),
    "over two lines, and two on one": CALL.replace('"params":', '"params":\n') + call(2),
    "a judged call in the arguments, on a line of its own": moved(f"[\n{EVIL}\n]"),
    "the same between braces": moved(f'{{"a":{{}}\n,"b":[{{}}\n{EVIL}\n]}}'),
    "the same, counted right": moved(f"[\n{EVIL}\n]") + call(2) + call(3),
    "a raw line end in a string": moved('{"a":"}\n{"}'),
    "a raw line end in a string, with a call": moved('{"a":"}\n' + EVIL.replace('"', '\\"') + '\n{"}'),
    "duplicate method": CALL[:-1] + ',"method":"tools/call"}',
    "duplicate name": call(1, more=',"name":"safe"'),
    "duplicate name, the judged one first": CALL.replace('"name"', '"name":"danger","name"'),
    "duplicate arguments": moved('{},"arguments":{}'),
    "duplicate params": CALL[:-1] + ',"params":{"name":"safe"}}',
    "duplicate params, the judged one first": CALL.replace('"params"', '"params":{"name":"danger"},"params"'),
    "duplicate id": CALL.replace('"id":1', '"id":1,"id":1'),
    "an escaped key": CALL.replace('"method"', '"\\u006dethod"'),
    "an escaped method": CALL.replace("tools/call", "tools\\/call"),
    "a method in capitals": CALL[:-1] + ',"Method":"tools/call"}',
    "a batch": f"[{CALL}]",
    "no JSON": CALL[:-1],
    "much too deep": moved("[" * 1_000_000 + "]" * 1_000_000),
    "jsonrpc 1.0": CALL.replace("2.0", "1.0"),
    "NUL after the name": call(1, "safe\\u0000"),
    "a carriage return in the arguments": moved(f"[\r{EVIL}\r]"),
    "a carriage return in _meta": call(1, more=f',"_meta":{{"a":\r{EVIL}\r}}'),
}


@pytest.mark.parametrize("block", LEFT.values(), ids=LEFT)
def test_a_line_that_is_not_certain_is_left_to_the_full_reading(block: str) -> None:
    one = router()
    assert not one.scan_from_agent(block.encode() + b"\n")
    assert one.requests == {}
    assert one.calls == {}


@pytest.mark.parametrize("block", [*PASSING.values(), *LEFT.values()], ids=[*PASSING, *LEFT])
def test_a_call_that_was_read_already_passes_only_if_its_line_passes(block: str) -> None:
    one, other, line = router(), router(), block.encode()
    read = fast_scan.read_call(line)
    has_passed = read is not None and one.pass_call(read.name, read.id)
    assert has_passed == (line.count(b"\n") == 0 and other.scan_from_agent(line + b"\n"))
    if read is not None and has_passed:
        assert one.requests == other.requests == {read.id: RequestKind.OTHER}
        assert not one.pass_call(read.name, read.id), "its id is in flight"
        assert one.pass_response(read.id)
        assert not one.pass_response(read.id), "it was answered"
    assert (one.requests, one.calls) == ({}, {})


@pytest.mark.parametrize("hidden", [b"\xc1\xb4ools/call", b"tools/call\xff"])
def test_text_that_is_not_utf_8_is_left_to_the_full_reading(hidden: bytes) -> None:
    line = CALL.encode().replace(b"tools/call", hidden) + b"\n"
    assert not router().scan_from_agent(line)
    assert not router().scan_from_agent(line + line)
    assert not router().scan_from_server(line)


def test_an_id_in_flight_is_left_to_the_full_reading() -> None:
    one = router()
    assert one.scan_from_agent(CALL.encode() + b"\n")
    assert not one.scan_from_agent(CALL.encode() + b"\n")
    assert not one.scan_from_agent(f"{call(2)}\n{CALL}\n".encode())
    assert set(one.requests) == {b"1"}
    one.from_agent(call('"7"', "danger").encode() + b"\n")
    assert not one.scan_from_agent(call(7).encode() + b"\n")
    assert not one.scan_from_agent(f"{call(8)}\n{call(7)}\n".encode())


def test_nothing_passes_on_the_fast_path_before_the_session_has_begun() -> None:
    one = Router(lambda tool: tool == "danger")
    one.from_agent(b'{"jsonrpc":"2.0","id":0,"method":"ping"}\n')
    one.judged_tools["safe"] = False
    assert not one.scan_from_agent(call(1).encode() + b"\n")
    one.from_agent(call(1).encode() + b"\n")
    assert one.handshake.opened, "any call opens the session"
    assert one.scan_from_agent(call(2).encode() + b"\n")


def test_a_block_without_its_last_line_end_is_left_to_the_full_reading() -> None:
    assert not router().scan_from_agent(CALL.encode())
    assert not router().scan_from_agent(f"{CALL}\n{call(2)}".encode())
    assert fast_scan.heads(b'{"id":1,"result":{}}') is None


FROM_SERVER_LEFT: Final = {
    "an answer nobody asked for": b'{"jsonrpc":"2.0","id":5,"result":{}}\n',
    "an answer to initialize": b'{"jsonrpc":"2.0","id":"i","result":{}}\n',
    "no JSON": b"listening\n",
    "a batch": b'[{"jsonrpc":"2.0","id":1,"result":{}}]\n',
    "no JSON among messages": b'{"jsonrpc":"2.0","method":"x"}\nlistening\n',
    "an answer on a line of its own inside another message": (
        b'{"a":[\n{"jsonrpc":"2.0","id":5,"result":{}}\n]}{"x":1}{"y":2}\n'
    ),
    "an answer nobody asked for with a method": b'{"jsonrpc":"2.0","id":5,"result":{},"method":"x"}\n',
}


@pytest.mark.parametrize("block", FROM_SERVER_LEFT.values(), ids=FROM_SERVER_LEFT)
def test_an_unexpected_message_of_the_server_is_left_to_the_full_reading(block: bytes) -> None:
    one = router()
    one.requests.update({b"1": RequestKind.OTHER, b"i": RequestKind.INITIALIZE})
    assert not one.scan_from_server(block)
    assert one.scan_response(block) == b""
    assert one.requests == {b"1": RequestKind.OTHER, b"i": RequestKind.INITIALIZE}


def test_responses_and_notifications_pass_on_the_fast_path_and_responses_are_noted() -> None:
    one = router()
    one.requests.update({b"1": RequestKind.OTHER, b"2": RequestKind.OTHER, b"3": RequestKind.OTHER})
    block = b'{"jsonrpc":"2.0","id":1,"result":{}}\n{"method":"n"}\n{"id":"2","error":{}}\n'
    assert one.scan_from_server(block)
    assert one.requests == {b"3": RequestKind.OTHER}


ONE_RESPONSE: Final = b'{"jsonrpc":"2.0","id":1,"result":{}}\n'


@pytest.mark.parametrize(
    "block", [ONE_RESPONSE * 2, b"", ONE_RESPONSE.replace(b"1,", b'"1",'), ONE_RESPONSE.replace(b"1,", b"-1,")]
)
def test_only_one_response_with_a_plain_id_is_read_once_for_all(block: bytes) -> None:
    one = router()
    one.requests.update({b"1": RequestKind.OTHER})
    assert one.scan_response(block) == b""
    assert one.scan_response(ONE_RESPONSE) == b"1"
    assert one.requests == {}


def test_no_response_passes_on_the_fast_path_while_a_judged_call_is_in_flight() -> None:
    one = router()
    one.requests.update({b"1": RequestKind.OTHER})
    one.from_agent(EVIL.encode() + b"\n")
    assert not one.pass_response(b"1")
    assert one.scan_response(ONE_RESPONSE) == b""
    assert not one.scan_from_server(b'{"jsonrpc":"2.0","method":"x"}\n')


# --- ids that are replaced ---


@pytest.mark.parametrize("block", [*PASSING.values(), *LEFT.values()], ids=[*PASSING, *LEFT])
def test_another_id_changes_nothing_else(block: str) -> None:
    read = fast_scan.read_call(block.encode())
    line = None if read is None else fast_scan.with_id(read.line, read.id, b"77")
    if line is not None and read is not None:
        assert json.loads(line) == {**json.loads(block), "id": 77}
        assert fast_scan.with_id(line, b"77", read.id) == block.encode()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('{"jsonrpc":"2.0","id":5,"result":{}}', '{"jsonrpc":"2.0","id":"a","result":{}}'),
        ('{"result":{"id":5},"jsonrpc":"2.0","id":5}', '{"result":{"id":5},"jsonrpc":"2.0","id":"a"}'),
        ('{"id":5,"jsonrpc":"2.0","result":{"id":5}}', None),
        ('{"jsonrpc":"2.0","result":{"a":{"id":5}},"id":5}', '{"jsonrpc":"2.0","result":{"a":{"id":5}},"id":"a"}'),
    ],
)
def test_an_id_is_replaced_where_sdks_write_it(line: str, found: str | None) -> None:
    assert fast_scan.is_result(line.encode(), b"5")
    assert fast_scan.with_id(line.encode(), b"5", b'"a"') == (found.encode() if found else None)


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc":"2.0","id":6,"result":{}}',
        '{"jsonrpc":"2.0","id":5,"id":5,"result":{}}',
        '{"jsonrpc":"2.0","id":6,"result":{},"id":5}',
        '{"jsonrpc":"2.0","id":5,"result":{},"result":{}}',
        '{"jsonrpc":"2.0","id":5,"result":{},"method":"x"}',
        '{"jsonrpc":"2.0","id":5,"result":{},"error":{}}',
        '{"jsonrpc":"2.0","id":5,"error":{}}',
        '{"jsonrpc":"2.0","id":5,"result":{} }',
        '{"jsonrpc":"2.0","\\u0069d":5,"result":{}}',
        '{"jsonrpc":"2.0","id":5.0,"result":{}}',
        '[{"jsonrpc":"2.0","id":5,"result":{}}]',
        '{"id":5,"result":{}}',
        "",
    ],
)
def test_what_may_be_more_or_less_than_one_result_is_left_to_the_full_reading(line: str) -> None:
    assert not fast_scan.is_result(line.encode(), b"5")
