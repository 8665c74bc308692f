"""What passes on the fast path also passes the full reading, with the same notes: random and hostile blocks."""

from __future__ import annotations

from typing import Final

import msgspec
from hypothesis import assume, example, given
from hypothesis import strategies as st
from msgspec.structs import asdict

from hookproxy.protocol import fast_scan
from hookproxy.protocol.actions import PASS, StartCall
from hookproxy.protocol.elicitations import Elicitations
from hookproxy.protocol.inflight import RequestKind
from hookproxy.protocol.router import Router
from tests.random.documents import documents
from tests.support.call_spellings import SPELLINGS, calls_seen

TOOLS: Final = ("safe", "safe", "safe", "other", "danger")
ESCAPES: Final = [
    *(f"\\{letter}" for letter in '"\\/bfnrt'),
    *(f"\\u{code:04x}" for code in (*range(33), 0x22, 0x2F, 0x5C, 0x7F, 0x80, 0xE9, 0x2028, 0xFEFF, 0xFFFF)),
    "\\ud83d\\ude00",
    "\\ud83d",
    "\x00",
    "\t",
]
EVIL: Final = '{"jsonrpc":"2.0","id":66,"method":"tools/call","params":{"name":"danger","arguments":{}}}'


def call(number: object, name: str, arguments: str, meta: str = "") -> str:
    more = (f',"arguments":{arguments}' if arguments else "") + (f',"_meta":{meta}' if meta else "")
    return f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"{name}"{more}}}}}'


@st.composite
def arguments(draw: st.DrawFn) -> str:
    hostile = (
        "{}",
        "",
        f"[\n{EVIL}\n]",
        f"{EVIL}\n",
        '{"a":{}\n}',
        f"[{{}}\n{EVIL}\n{{}}]",
        '{"a":"}\\n{"}',
        '{"a":1,"a":2}',
        f'{{"a":"\n{EVIL}"}}',
        f"[\r{EVIL}\r]",
        f'["\u2028",{EVIL}]',
        "{},\n",
        '{},"name":"danger"',
        '{},"\\u006eame":"danger"',
    )
    if draw(st.booleans()):
        return draw(st.sampled_from(hostile))
    return draw(documents()).decode().strip()


IDS: Final = (1, 2, 3, 40, '"1"', '"x"', "007", "1.0", "-1", "null", "[\n1]")
METAS: Final = ("", "", "", "{}", '{"progressToken":1}', '{"a":1,"a":2}', "7", "null", f"[\n{EVIL}\n]")


@st.composite
def lines(draw: st.DrawFn) -> str:
    """A call as agents write it, or nearly."""
    number, meta = draw(st.sampled_from(IDS)), draw(st.sampled_from(METAS))
    line = call(number, draw(st.sampled_from(TOOLS)), draw(arguments()), meta)
    if draw(st.integers(0, 2)):
        return line
    return draw(damaged(line))


@st.composite
def damaged(draw: st.DrawFn, line: str) -> str:
    """The same with something put in or taken out."""
    at = draw(st.integers(0, len(line)))
    put = draw(st.sampled_from(("\n", "", " ", "\r", "\u2028", "{}", "}\n{", '"', '"a":1,', EVIL, f"\n{EVIL}\n")))
    return line[:at] + put + line[at + draw(st.integers(0, 2)) :]


@st.composite
def blocks(draw: st.DrawFn) -> bytes:
    pieces = draw(st.lists(lines(), min_size=1, max_size=4))
    between = draw(st.sampled_from(("\n", "\n", "\n", "", "\n\n", "\r\n", "}\n{")))
    return (between.join(pieces) + "\n").encode()


def primed(elicitations: Elicitations | None = None) -> Router:
    router = Router(lambda tool: tool == "danger", elicitations=elicitations)
    router.from_agent(b'{"jsonrpc":"2.0","id":"i","method":"initialize","params":{}}\n')
    for number, tool in enumerate(("safe", "other", "danger")):
        router.from_agent(call(900 + number, tool, "{}").encode() + b"\n")
    router.calls.clear()
    router.requests.clear()
    router.requests[b"40"] = RequestKind.OTHER
    return router


def check(block: bytes) -> None:
    glancing, reading = primed(), primed()
    before = dict(glancing.requests)
    if not glancing.scan_from_agent(block):
        assert glancing.requests == before
        return
    assert calls_seen(block) == []
    for line in block.split(b"\n")[:-1]:
        assert reading.read_from_agent(line + b"\n") is PASS
    assert glancing.requests == reading.requests
    assert glancing.calls == reading.calls == {}
    assert glancing.handshake.opened == reading.handshake.opened


@given(blocks())
@example((call(1, "safe", f"[\n{EVIL}\n]") + "\n").encode())
@example((call(1, "safe", f"[{{}}\n{EVIL}\n{{}}]") + call(2, "safe", "{}") + "\n").encode())
@example((call(1, "safe", "{}", '{"a":1,"a":2}') + "\n").encode())
def test_every_line_that_passes_the_fast_path_passes_the_full_reading(block: bytes) -> None:
    check(block)


@given(blocks())
@example((call(1, "danger", '{"a":[{"b":1}]}', '{"progressToken":1}') + "\n").encode())
@example((call(1, "danger", '{"a":1,"a":2}') + "\n").encode())
@example((call(1, "danger", '{"a":{"b":1,"b":2}}', '{"a":1,"a":2}') + "\n").encode())
@example((call(900, "danger", "{}") + "\n").encode())
def test_the_fast_path_reads_a_usual_call_like_the_full_reading(block: bytes) -> None:
    at_once, closely = primed(), primed()
    for line in block.split(b"\n")[:-1]:
        one, other = at_once.from_agent(line + b"\n"), closely.read_from_agent(line + b"\n")
        assert type(one) is type(other)
        if isinstance(one, StartCall) and isinstance(other, StartCall):
            assert asdict(one.call) == asdict(other.call)
        else:
            assert one == other
    assert at_once.requests == closely.requests
    assert at_once.calls.keys() == closely.calls.keys()


@given(st.lists(st.builds(call, st.integers(1, 39), st.sampled_from(("safe", "other")), arguments()), min_size=1))
def test_blocks_of_unjudged_calls_pass_the_full_reading_wherever_they_pass(calls: list[str]) -> None:
    check("".join(f"{one}\n" for one in calls).encode())


@given(st.lists(st.sampled_from([*map(chr, range(32, 128)), *ESCAPES]), max_size=12).map("".join), documents())
def test_a_message_that_is_written_again_is_never_longer(name: str, arguments: bytes) -> None:
    """What the proof in lengths rests on: nothing can hide in room that is gained elsewhere."""
    params = b'{"name":"%b","arguments":%b}' % (name.encode(), arguments.strip())
    try:
        read = msgspec.json.decode(params, type=fast_scan.CompactParams)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    assert len(msgspec.json.encode(read)) <= len(params)


def test_no_denied_call_in_any_spelling_passes_on_the_fast_path() -> None:
    safe = call(1, "safe", "{}").encode() + b"\n"
    for spelling in SPELLINGS:
        for block in (spelling.text, safe + spelling.text, spelling.text + safe, spelling.text[:-1] + safe):
            assert not primed().scan_from_agent(block), spelling.title


FROM_SERVER: Final = (
    '{"jsonrpc":"2.0","id":40,"result":{}}',
    '{"jsonrpc":"2.0","id":"41","error":{"code":1,"message":""}}',
    '{"jsonrpc":"2.0","id":5,"result":{}}',
    '{"jsonrpc":"2.0","method":"notifications/x"}',
    '{"jsonrpc":"2.0","id":40,"method":"ping"}',
    '{"jsonrpc":"2.0","id":5,"method":"ping","result":{}}',
    '{"x":[\n{"jsonrpc":"2.0","id":5,"result":{}}\n]}{}{}',
    '{"id":40,"id":5,"result":{}}',
    '{"\\u0069d":5,"result":{}}',
    "{}",
    "[]",
    "no JSON",
    "",
)
ASKING: Final = (
    '{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}',
    '{"jsonrpc":"2.0","method":"sampling/createMessage","id":7}',
    '{"jsonrpc":"2.0","method":"notifications/x","Method":"elicitation/create","ID":7}',
    '{"jsonrpc":"2.0","method":"notifications/x","method":"s\\u0061mpling/createMessage","id":7}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}',
    '{"jsonrpc":"2.0","method":"notifications/x","result":{}}',
    '{"jsonrpc":"2.0","method":"notifications/elicitation/complete"}',
)


def judging() -> Elicitations:
    elicitations = Elicitations()
    elicitations.judge(frozenset({"sampling/createMessage", "elicitation/create"}))
    return elicitations


@given(st.lists(st.sampled_from(FROM_SERVER), min_size=1, max_size=4), st.data())
def test_lines_from_the_server_that_pass_the_fast_path_pass_the_full_reading(
    lines_sent: list[str], data: st.DataObject
) -> None:
    assume(len({line for line in lines_sent if '"id":40' in line}) == sum('"id":40' in line for line in lines_sent))
    assume(lines_sent.count(FROM_SERVER[1]) < 2)
    text = "\n".join(lines_sent)
    if data.draw(st.booleans()):
        text = data.draw(damaged(text))
    block = text.encode() + b"\n"
    glancing, reading = primed(), primed()
    for router in (glancing, reading):
        router.requests[b"41"] = RequestKind.OTHER
    if glancing.scan_from_server(block):
        for line in block.split(b"\n")[:-1]:
            assert reading.from_server(line + b"\n") is PASS
        assert glancing.requests == reading.requests


@given(st.lists(st.sampled_from([*FROM_SERVER, *ASKING]), min_size=1, max_size=3), st.data())
def test_what_passes_while_requests_of_the_server_are_judged_asks_nothing(sent: list[str], data: st.DataObject) -> None:
    text = "\n".join(sent)
    if data.draw(st.booleans()):
        text = data.draw(damaged(text))
    block = text.encode() + b"\n"
    if primed(judging()).scan_from_server(block):
        reading = primed(judging())
        for line in block.split(b"\n")[:-1]:
            assert reading.from_server(line + b"\n") is PASS
        assert reading.requests == primed().requests


def test_notifications_pass_at_once_while_requests_of_the_server_are_judged() -> None:
    notification = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}\n'
    assert primed(judging()).scan_from_server(notification * 3)
    for line in ASKING:
        assert not primed(judging()).scan_from_server(line.encode() + b"\n")
        assert not primed(judging()).scan_from_server(notification + line.encode() + b"\n")
