"""Roots of agents: whatever an agent says, in whatever spelling, a server gets those that are listed, or none."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from msgspec import Raw

from hookproxy.protocol import fast_scan
from hookproxy.protocol.actions import PASS, Dropped, Edited, ElicitationAnswered, Refused, Send, SendBack, StartCall
from hookproxy.protocol.elicitations import Elicitations
from hookproxy.protocol.roots import Roots
from hookproxy.protocol.router import Router

GIVEN: Final = [{"uri": "file:///srv/projects", "name": "projects"}]
EVIL: Final = '{"roots":[{"uri":"file:///etc/hookproxy"}]}'
MODERN: Final = '"io.modelcontextprotocol/protocolVersion":"2026-07-28"'
CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"


def none() -> Roots:
    return Roots([])


def listed() -> Roots:
    return Roots([("file:///srv/projects", "projects")])


def router_of(roots: Roots | None, *, judged: bool = False) -> Router:
    router = Router(lambda _tool: judged)
    router.roots = roots
    return router


def sent(router: Router, line: str) -> bytes:
    """The line that the server gets; empty: none."""
    raw = line.encode() + b"\n"
    action = router.from_agent(raw)
    if isinstance(action, Edited):
        raw, action = action.line, action.action
    match action:
        case StartCall(call):
            return call.line
        case Send(edited):
            return edited
        case Refused() | Dropped():
            return b""
        case _:
            assert action is PASS or isinstance(action, ElicitationAnswered), action
            return raw


def read(line: bytes) -> Any:  # noqa: ANN401  # any JSON
    return json.loads(line)


def initialize(capabilities: str) -> str:
    params = f'{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"clientInfo":{{"name":"c"}}}}'
    return f'{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}'


@pytest.mark.parametrize(
    "said",
    [
        '{"roots":{"listChanged":true},"sampling":{}}',
        '{"sampling":{},"r\\u006fots":{}}',
        '{"sampling":{}, "roots" : {} }',
        '{"sampling":{}}',
    ],
)
def test_the_capability_is_announced_if_something_is_listed_and_only_then(said: str) -> None:
    assert read(sent(router_of(none()), initialize(said)))["params"]["capabilities"] == {"sampling": {}}
    assert read(sent(router_of(listed()), initialize(said)))["params"]["capabilities"] == {"sampling": {}, "roots": {}}
    assert sent(router_of(None), initialize(said)).decode() == initialize(said) + "\n"


@pytest.mark.parametrize(
    "line",
    [
        initialize('{"Roots":{}}'),
        initialize('{"roots\\u0000":{}}'),
        initialize('{"root\u017f":{}}'),
        initialize('{"roots":{},"roots":{}}'),
        initialize("{}").replace('"capabilities"', '"Capabilities"').replace("{}", '{"roots":{}}'),
        initialize('{"x":1},"_Meta":{"roots":1}'),
        f'{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"_meta":{{"{CAPABILITIES.upper()}":{{"roots":{{}}}}}}}}}}',
        f'{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"_meta":{{"{CAPABILITIES}":{{"rootS":{{}}}}}}}}}}',
        f'{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"inputresponses":{{"a":{EVIL}}}}}}}',
        f'{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"inputResponses":{{"a":{EVIL},"a":1}}}}}}',
        f'{{"jsonrpc":"2.0","id":1,"result":{EVIL[:-1]},"roots":[]}}}}',
        f'{{"jsonrpc":"2.0","id":1,"Result":{EVIL}}}',
        f'{{"jsonrpc":"2.0","id":1,"method":"x","result":{EVIL}}}',
        f'{{"jsonrpc":"2.0","id":1,"method":null,"result":{EVIL}}}',
        initialize('{"roots":{}}').replace('"id":1', '"id":1,"result":{}'),
        f'[{{"jsonrpc":"2.0","id":1,"result":{EVIL}}}]',
        '{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}',
        '{"jsonrpc":"2.0","method":"notifications\\/r\\u006fots\\/list_changed","params":{}}',
    ],
)
@pytest.mark.parametrize("roots", [none, listed])
def test_what_some_reader_takes_for_roots_does_not_pass(roots: Callable[[], Roots], line: str) -> None:
    assert sent(router_of(roots()), line) == b""


@pytest.mark.parametrize("result", [EVIL, '{"x":1,"R\\u006fots":[]}', '{ "roots" : null }', '{"ROOTS":[]}'])
def test_an_answer_with_roots_becomes_the_one_that_is_listed(result: str) -> None:
    line = f'{{"jsonrpc":"2.0","id":"s1","result":{result}}}'
    assert read(sent(router_of(listed()), line)) == {"jsonrpc": "2.0", "id": "s1", "result": {"roots": GIVEN}}
    refused = read(sent(router_of(none()), line))
    assert (refused["id"], refused["error"]["code"]) == ("s1", -32601)
    assert sent(router_of(None), line).decode() == line + "\n"


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"roots":[1]}}}',
        '{"jsonrpc":"2.0","id":1,"result":"roots"}',
        '{"jsonrpc":"2.0","id":1,"result":{"a":"é"}}',
        '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no roots"}}',
        '{"jsonrpc":"2.0","id":1,"method":"roots/x","params":["roots"]}',
        '{"jsonrpc":"2.0","id":1,"method":"roots/x"}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"roots","arguments":{"roots":"\\u0041"}}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"\\u0041"}}}',
        f'{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"_meta":{{"{CAPABILITIES}":{{"x":{{}}}},"a":"roots"}}}}}}',
        '{"jsonrpc":"2.0","id":1,"method":"x","params":{"inputResponses":{"a":{"action":"accept"},"roots":5}}}',
        '{"jsonrpc":"2.0","id":1,"method":"x","params":{"inputResponses":"roots","_meta":5}}',
    ],
)
@pytest.mark.parametrize("judged", [False, True])
def test_what_says_nothing_of_roots_passes_as_it_came(line: str, judged: bool) -> None:
    for roots in (none(), listed()):
        assert sent(router_of(roots, judged=judged), line).decode() == line + "\n"


@pytest.mark.parametrize("judged", [False, True])
def test_requests_that_stand_alone_announce_roots_only_if_some_are_listed(judged: bool) -> None:
    meta = f'{{{MODERN},"{CAPABILITIES}":{{"roots":{{"listChanged":true}},"sampling":{{}}}}}}'
    line = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{{}},"_meta":{meta}}}}}'
    expected: list[tuple[Roots, dict[str, object]]]
    expected = [(none(), {"sampling": {}}), (listed(), {"roots": {}, "sampling": {}})]
    for roots, announced in expected:
        assert read(sent(router_of(roots, judged=judged), line))["params"]["_meta"][CAPABILITIES] == announced
        without = line.replace('"roots":{"listChanged":true},', "")
        assert sent(router_of(roots, judged=judged), without).decode() == without + "\n"
        escaped = line.replace('"roots"', '"r\\u006fots"')
        assert read(sent(router_of(roots, judged=judged), escaped))["params"]["_meta"][CAPABILITIES] == announced


@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "tasks/update"])
@pytest.mark.parametrize("answer", [EVIL, '{"r\\u006fots":[]}', '{"action":"accept","ROOTS":[]}'])
def test_in_the_next_round_of_a_request_the_answer_is_the_one_that_is_listed(method: str, answer: str) -> None:
    inputs = f'{{"a":{answer},"b":{{"action":"accept","content":{{"roots":1}}}}}}'
    params = f'{{"name":"t","inputResponses":{inputs},"_meta":{{{MODERN}}}}}'
    line = f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}'
    for roots, given in ((none(), []), (listed(), GIVEN)):
        for judged in (False, True):
            got = read(sent(router_of(roots, judged=judged), line))["params"]["inputResponses"]
            assert got == {"a": {"roots": given}, "b": {"action": "accept", "content": {"roots": 1}}}


def test_an_answer_to_an_elicitation_carries_no_roots_to_the_server() -> None:
    router = Router(lambda _tool: False, Elicitations(True))
    router.roots = listed()
    router.from_server(b'{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"?"}}\n')
    line = b'{"jsonrpc":"2.0","id":"e","result":{"action":"accept","content":{},"roots":[{"uri":"file:///etc"}]}}\n'
    action = router.from_agent(line)
    assert b"etc" not in (action.line if isinstance(action, Edited | Send) else line)


def test_the_server_that_asks_for_roots_is_answered_at_once_and_the_agent_is_not_asked() -> None:
    for spelled in ("roots/list", "r\\u006fots\\/list"):
        asked = f'{{"jsonrpc":"2.0","id":"s1","method":"{spelled}"}}\n'.encode()
        action = router_of(listed()).from_server(asked)
        assert isinstance(action, SendBack)
        assert read(action.line) == {"jsonrpc": "2.0", "id": "s1", "result": {"roots": GIVEN}}
        action = router_of(none()).from_server(asked)
        assert isinstance(action, SendBack)
        assert read(action.line)["error"]["code"] == -32601
        assert router_of(None).from_server(asked) is PASS
    assert router_of(listed()).from_server(b'{"jsonrpc":"2.0","method":"roots/list"}\n') is PASS
    assert listed().is_request(b"roots") == listed().is_request(b'{"roots":1,"roots":2}') == b""
    for other in (
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":"roots"}\n',
        b'{"jsonrpc":"2.0","method":"ping"}\n',
    ):
        assert router_of(listed()).from_server(other) is PASS


def test_a_refusal_says_what_is_wrong() -> None:
    for line, why in (
        (f'{{"jsonrpc":"2.0","id":1,"method":"x","result":{EVIL}}}', "some readers take it for a request"),
        (initialize('{"Roots":{}}'), "its member 'Roots' is taken for 'roots' by some readers"),
    ):
        refused = router_of(none()).from_agent(line.encode() + b"\n")
        assert isinstance(refused, Refused)
        assert why in refused.why
        assert refused.id == b"1"


# --- the fast path ---


def test_blocks_and_single_calls_that_may_name_roots_are_read_closely() -> None:
    router = router_of(none())
    router.from_agent(initialize("{}").encode() + b"\n")
    assert router.judged_tools.find_out("t") is False
    plain = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t","arguments":{"a":"x"}}}\n'
    hostile = plain.replace(b"}}}", b'},"_meta":{"%b":{"roots":{}}}}}' % CAPABILITIES.encode())
    escaped = hostile.replace(b"roots", b"\\u0072oots")
    assert router.scan_call(plain % 2)
    assert router.scan_from_agent(plain % 3 + plain % 4)
    for line in (hostile, escaped):
        assert not router.scan_call(line % 5)
        assert not router.scan_from_agent(plain % 6 + line % 7)


def test_a_call_that_was_read_already_loses_what_it_says_of_roots() -> None:
    capabilities = f'"{CAPABILITIES}":{{"roots":{{}}}}'.encode()
    meta = b"{%b,%b}" % (MODERN.encode(), capabilities)
    line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{},"_meta":%b}}' % meta
    call = fast_scan.read_call(line, "2026-07-28")
    assert call is not None
    edited = none().in_call(call)
    assert edited is not None
    assert edited.line == line.replace(b'"roots":{}', b"")
    assert bytes(edited.meta) in edited.line
    assert (edited.id, edited.name, edited.version) == (call.id, "t", "2026-07-28")
    assert bytes(edited.arguments) == b"{}"
    lists = listed()
    assert lists.in_call(call) is call
    assert lists.in_call(call) is call
    without = fast_scan.read_call(line.replace(b'"roots":{}', b'"x":"\\u0041"'), "2026-07-28")
    assert without is not None
    assert lists.in_call(without) is without, "an agent without roots gets none"
    assert none().in_call(edited) is edited
    bare = fast_scan.ReadCall(b"1", "t", Raw(b"{}"), Raw(b""), b"{}")
    assert none().in_call(bare) is bare
    twice = line.replace(b'"arguments":{}', b'"arguments":{"a":%b}' % meta)
    in_arguments = fast_scan.read_call(twice, "2026-07-28")
    assert in_arguments is not None
    assert none().in_call(in_arguments) is None
    unclear = fast_scan.ReadCall(b"1", "t", Raw(b"{}"), Raw(b'{"roots":1,"roots":2}'), b"{}")
    assert none().in_call(unclear) is None


def test_a_long_meta_is_read_like_a_short_one() -> None:
    long = "x" * 2000
    meta = f'{{"a":"{long}","{CAPABILITIES}":{{"roots":{{}}}}}}'
    line = f'{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"_meta":{meta}}}}}'
    assert read(sent(router_of(none()), line))["params"]["_meta"] == {"a": long, CAPABILITIES: {}}
