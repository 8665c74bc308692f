"""What an agent's request must satisfy: a table of requests that are refused, each with its status and error code."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import inbound

from hookproxy.protocol.fast_scan import ReadCall
from hookproxy.transports.http import agent_requests, mirror_headers
from hookproxy.transports.http.agent_requests import Accepted, Era, Head, Kind, Parameters, Rejected, Rules
from hookproxy.transports.http.mirror_headers import ParameterHeaders

RULES: Final = Rules(
    frozenset({"echo", "files"}),
    agent_requests.allowed_hosts(8765, "https://mcp.example.com"),
    agent_requests.allowed_origins(8765, "https://mcp.example.com"),
)
VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
META: Final = {VERSION_KEY: "2026-07-28"}
PARAMETERS: Final[ParameterHeaders] = {("region",): "Region", ("place", "zone"): "Zone", ("count",): "Count"}

HANDSHAKE: Final = {
    "host": "127.0.0.1:8765",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25",
    "mcp-session-id": "s-1",
}
STATELESS: Final = {
    "host": "127.0.0.1:8765",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "say",
}
Change = Mapping[str, str | None]


def call(arguments: object = None, name: object = "say", **params: object) -> bytes:
    """A tool call of the handshake era."""
    return message("tools/call", {"name": name, "arguments": arguments or {}, **params})


def stateless_call(arguments: object = None, name: object = "say") -> bytes:
    return call(arguments, name, _meta=META)


def message(method: str, params: object = None, id: object = 7) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}).encode()


def lookup(server: str, tool: str) -> ParameterHeaders | None:
    return PARAMETERS if (server, tool) == ("echo", "say") else None


def check(
    body: bytes,
    headers: Mapping[str, str],
    changes: Change | None = None,
    *,
    method: str = "POST",
    target: str = "/mcp/echo",
    more: tuple[tuple[str, str], ...] = (),
) -> Accepted | Rejected:
    """Check a request with some headers changed, or left out if the change is None, and `more` added.

    Whatever is refused is never taken for a call that can take the fast path.
    """
    changed = {**headers, **(changes or {})}
    pairs = [(name, value) for name, value in changed.items() if value is not None] + list(more)
    raw = [(name.encode(), value.encode("latin-1")) for name, value in pairs]
    for written in {body, compact(body)}:
        for known in (lookup, lambda _server, _tool: None):
            head, found = check_both(method.encode(), target.encode("latin-1"), raw, written, known)
            assert_fast_path_agrees(head, found, known, written)
    return check_both(method.encode(), target.encode("latin-1"), raw, body, lookup)[1]


def check_both(
    method: bytes, target: bytes, headers: Sequence[tuple[bytes, bytes]], body: bytes, known: Parameters
) -> tuple[Head | Rejected, Accepted | Rejected]:
    """What the head says, and what head and body say together."""
    head = agent_requests.check_head(method, target, headers, body, RULES)
    return head, head if isinstance(head, Rejected) else agent_requests.check_body(method, head, body, known)


def compact(body: bytes) -> bytes:
    """The same message as most agents write it; itself if it cannot be read."""
    try:
        return json.dumps(json.loads(body), separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return body


def assert_fast_path_agrees(head: Head | Rejected, found: Accepted | Rejected, known: Parameters, body: bytes) -> None:
    """What takes the fast path is what would be accepted, and says the same."""
    read = None if isinstance(head, Rejected) else agent_requests.check_call(head, body, known)
    if read is None:
        return
    assert isinstance(found, Accepted), (found, read)
    assert not isinstance(head, Rejected)
    said = (found.kind, found.method, found.id, found.line)
    assert said == (Kind.MESSAGE, "tools/call", read.id, read.line)
    stateless = found.era is Era.STATELESS
    assert (read.version, found.session) == ((found.version, "") if stateless else ("", head.session))


def accepted(result: Accepted | Rejected) -> Accepted:
    assert isinstance(result, Accepted), result
    return result


def rejected(result: Accepted | Rejected, status: int, code: int | None = None, id: object = None) -> str:
    """The message of the refusal, after a look at its other parts."""
    assert isinstance(result, Rejected), result
    error = json.loads(result.body)
    assert (result.status, error["id"]) == (status, id)
    assert code is None or error["error"]["code"] == code
    assert dict(result.headers)[b"Content-Type"] == b"application/json"
    text: str = error["error"]["message"]
    return text


# --- what is accepted ---


def test_a_call_of_the_handshake_era_is_accepted_with_all_that_others_need() -> None:
    found = accepted(check(call(), HANDSHAKE, {"authorization": "Bearer abc.def"}))
    assert found == Accepted(
        Kind.MESSAGE, "echo", Era.HANDSHAKE, "2025-11-25", call(), "tools/call", b"7", "s-1", b"", "abc.def"
    )


def test_a_call_of_the_stateless_era_has_no_session() -> None:
    found = accepted(check(stateless_call(), STATELESS, {"mcp-session-id": "s-1", "last-event-id": "9"}))
    assert found == Accepted(Kind.MESSAGE, "echo", Era.STATELESS, "2026-07-28", stateless_call(), "tools/call", b"7")


def test_a_get_opens_or_resumes_a_stream_and_a_delete_ends_a_session() -> None:
    found = accepted(check(b"", HANDSHAKE, {"last-event-id": "e-9"}, method="GET"))
    assert (found.kind, found.session, found.last_event) == (Kind.STREAM, "s-1", b"e-9")
    assert accepted(check(b"", HANDSHAKE, method="DELETE")).kind is Kind.END


@pytest.mark.parametrize("version", [None, "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_the_first_message_may_come_without_a_version_and_a_session(version: str | None) -> None:
    body = message("initialize", {"protocolVersion": "2099-01-01"})
    found = accepted(check(body, HANDSHAKE, {"mcp-protocol-version": version, "mcp-session-id": None}))
    assert (found.era, found.version, found.session) == (Era.HANDSHAKE, version or "", "")


def test_a_notification_and_a_response_have_no_request() -> None:
    notification = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    found = accepted(check(notification, HANDSHAKE))
    assert (found.method, found.id) == ("notifications/initialized", b"")
    found = accepted(check(b'{"jsonrpc":"2.0","id":"a","result":{}}', HANDSHAKE))
    assert (found.method, found.id) == ("", b'"a"')


def test_a_notification_of_the_stateless_era_needs_no_metadata() -> None:
    body = b'{"jsonrpc":"2.0","method":"notifications/x"}'
    found = accepted(check(body, STATELESS, {"mcp-method": None, "mcp-name": None}))
    assert (found.era, found.id) == (Era.STATELESS, b"")


@pytest.mark.parametrize(
    "body",
    [
        b' {"jsonrpc": "2.0",\r\n "id": 7,\n "method": "tools/list"}\r\n',
        b'\n\n{"jsonrpc":"2.0","id":7,"method":"tools/list"}\n',
    ],
)
def test_a_message_on_several_lines_becomes_one_that_means_the_same(body: bytes) -> None:
    line = accepted(check(body, HANDSHAKE)).line
    assert not {10, 13} & set(line)
    assert json.loads(line) == json.loads(body)


@given(st.text(), st.sampled_from(["", " ", "\t"]))
def test_a_message_on_one_line_is_the_same_bytes(text: str, blank: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"a": text}}, ensure_ascii=False).encode()
    assert accepted(check(body, HANDSHAKE)).line == body
    assert accepted(check(blank.encode() + body + b"\n", HANDSHAKE)).line == body


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "Application/JSON;charset=UTF-8", 'application/json; charset="utf-8"']
)
def test_content_types_that_say_the_same(kind: str) -> None:
    accepted(check(call(), HANDSHAKE, {"content-type": kind}))


@pytest.mark.parametrize(
    "accept",
    ["*/*", "text/event-stream, application/json", "application/*;q=0.5, text/event-stream", "*/*;q=0.1, text/html"],
)
def test_lists_of_types_that_allow_both(accept: str) -> None:
    accepted(check(call(), HANDSHAKE, {"accept": accept}))


@pytest.mark.parametrize(
    "host", ["localhost:8765", "LOCALHOST:8765", "[::1]:8765", "mcp.example.com", "mcp.example.com:443"]
)
def test_hosts_of_the_gateway(host: str) -> None:
    accepted(check(call(), HANDSHAKE, {"host": host}))


@pytest.mark.parametrize("origin", ["http://localhost:8765", "http://[::1]:8765", "https://mcp.example.com"])
def test_origins_of_the_gateway(origin: str) -> None:
    accepted(check(call(), HANDSHAKE, {"origin": origin}))


def test_a_port_that_is_the_scheme_s_own_may_be_left_out() -> None:
    assert b"localhost" in agent_requests.allowed_hosts(443, tls=True)
    assert b"localhost" not in agent_requests.allowed_hosts(443)
    assert agent_requests.allowed_origins(80) >= {b"http://localhost", b"http://localhost:80"}


@pytest.mark.parametrize("url", ["mcp.example.com", "ftp://a", "https://", "https://a:x"])
def test_a_public_url_that_is_none_is_an_error(url: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        agent_requests.allowed_hosts(1, url)


@pytest.mark.parametrize("value", ["Basic YQ==", "Bearer", "bearer ", "Bearer a b", "Bearer \u00e9", ""])
def test_other_credentials_are_no_token(value: str) -> None:
    assert accepted(check(call(), HANDSHAKE, {"authorization": value})).token == ""


# --- where a request goes ---


@pytest.mark.parametrize(
    "target",
    [
        "/mcp/other", "/mcp/", "/mcp", "/", "/mcp/echo/", "//mcp/echo", "/mcp//echo", "/mcp/./echo", "/mcp/x/../echo",
        "/mcp/%65cho", "/mcp/echo%00", "/mcp/echo?x=1", "/mcp/echo?", "/mcp/echo#x", "/mcp/echo;x", "/MCP/echo",
        "/mcp/Echo", "/mcp/..%2fecho", "/mcp/\xe9cho", "/mcp/echo\\", "http://127.0.0.1:8765/mcp/echo",
    ],
)  # fmt: skip
def test_only_the_exact_path_is_a_server(target: str) -> None:
    rejected(check(call(), HANDSHAKE, target=target), 404)


@pytest.mark.parametrize(
    ("method", "version", "allowed"),
    [
        ("PUT", "2025-11-25", b"GET, POST, DELETE"),
        ("OPTIONS", None, b"GET, POST, DELETE"),
        ("HEAD", "2025-06-18", b"GET, POST, DELETE"),
        ("GET", "2026-07-28", b"POST"),
        ("DELETE", "2026-07-28", b"POST"),
        ("PATCH", "2026-07-28", b"POST"),
    ],
)
def test_other_methods_are_told_which_are_allowed(method: str, version: str | None, allowed: bytes) -> None:
    result = check(b"", HANDSHAKE, {"mcp-protocol-version": version}, method=method)
    rejected(result, 405)
    assert isinstance(result, Rejected)
    assert dict(result.headers)[b"Allow"] == allowed


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:80", "localhost:8765.evil.example", "", None])
def test_another_host_is_refused_because_a_page_may_have_given_its_name_our_address(host: str | None) -> None:
    rejected(check(call(), HANDSHAKE, {"host": host}), 421)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "", "http://localhost", "http://127.0.0.1:8765.x"])
def test_another_origin_is_refused(origin: str) -> None:
    rejected(check(call(), HANDSHAKE, {"origin": origin}), 403)


@pytest.mark.parametrize(
    ("change", "method", "status"),
    [
        ({"content-type": "text/plain"}, "POST", 415),
        ({"content-type": "application/json; charset=utf-16"}, "POST", 415),
        ({"content-type": "application/json; boundary=x"}, "POST", 415),
        ({"content-type": "application/json-rpc"}, "POST", 415),
        ({"content-type": None}, "POST", 415),
        ({"accept": None}, "POST", 406),
        ({"accept": "application/json"}, "POST", 406),
        ({"accept": "application/json, text/event-stream;q=0"}, "POST", 406),
        ({"accept": "*/*, application/json;q=0.0"}, "POST", 406),
        ({"accept": "application/json"}, "GET", 406),
        ({"mcp-session-id": "a b"}, "POST", 404),
        ({"mcp-session-id": ""}, "POST", 404),
        ({"mcp-session-id": "a" * 513}, "POST", 404),
        ({"mcp-protocol-version": "1.0"}, "POST", 400),
        ({"mcp-protocol-version": ""}, "POST", 400),
        ({"mcp-protocol-version": "2099-01-01"}, "POST", 400),
        ({"mcp-protocol-version": "2099-01-01"}, "GET", 400),
        ({"mcp-protocol-version": "\xb2025"}, "DELETE", 400),
    ],
)
def test_heads_that_are_refused(change: Change, method: str, status: int) -> None:
    body = call() if method == "POST" else b""
    result = check(body, HANDSHAKE, change, method=method)
    rejected(result, status, id=7 if method == "POST" and "mcp-protocol-version" in change else None)


@pytest.mark.parametrize(
    "name", ["host", "origin", "content-type", "authorization", "mcp-session-id", "mcp-protocol-version", "mcp-name"]
)
def test_a_header_that_readers_could_choose_from_is_refused(name: str) -> None:
    changes = {name: HANDSHAKE.get(name, "http://localhost:8765")}
    result = check(call(), HANDSHAKE, changes, more=((name, changes[name]),))
    rejected(result, 400, id=7 if name.startswith("mcp-") else None)


def test_headers_that_may_be_repeated_are_one_list() -> None:
    accepted(check(call(), HANDSHAKE, {"accept": "application/json"}, more=(("accept", "text/event-stream"),)))


def short(
    body: bytes, changes: Change | None = None, method: str = "POST", headers: Mapping[str, str] = HANDSHAKE
) -> object:
    """The call that takes the fast path, or None."""
    changed = {**headers, **(changes or {})}
    raw = [(name.encode(), value.encode()) for name, value in changed.items() if value is not None]
    head = agent_requests.check_head(method.encode(), b"/mcp/echo", raw, body, RULES)
    assert not isinstance(head, Rejected), head
    return agent_requests.check_call(head, body, lookup)


def test_only_a_call_in_a_session_whose_head_repeats_nothing_of_the_body_takes_the_fast_path() -> None:
    one = call(name="other").replace(b", ", b",").replace(b": ", b":")
    read = short(one)
    assert isinstance(read, ReadCall)
    assert (read.id, read.name, bytes(read.arguments), read.line) == (b"7", "other", b"{}", one)
    assert short(one, {"mcp-protocol-version": None}) is not None
    for change in (
        {"mcp-session-id": None},
        {"mcp-session-id": "\x7f"},
        {"mcp-protocol-version": "2026-07-28"},
        {"mcp-protocol-version": "2099-01-01"},
        {"mcp-name": "other"},
        {"mcp-method": "tools/call"},
        {"mcp-param-region": "eu"},
    ):
        assert short(one, change) is None, change
    assert short(one, method="PUT") is None
    assert short(one.replace(b"other", b"say")) is None, "its arguments may be repeated in headers"
    assert short(one.replace(b"{}", b"[" * 128 + b"]" * 128)) is None
    assert short(one.replace(b"{}", b'{"a":"%b"}' % (b"x" * 65_536))) is None
    for meta, goes in (
        ('{"progressToken":1}', True),
        ('{"a":1,"a":2}', False),
        ("7", False),
        (f'{{"{VERSION_KEY}":1}}', False),
    ):
        with_meta = one.replace(b"{}", b'{},"_meta":%b' % meta.encode())
        assert (short(with_meta) is not None) is goes, meta
        check(with_meta, HANDSHAKE)
        check(with_meta.replace(b"Version", b"\\u0056ersion"), HANDSHAKE)


def test_only_a_stateless_call_whose_head_certainly_says_the_same_takes_the_fast_path() -> None:
    headers = {**STATELESS, "mcp-name": "other"}
    one = compact(stateless_call(name="other"))
    read = short(one, headers=headers)
    assert isinstance(read, ReadCall)
    assert (read.id, read.name, read.version, read.line) == (b"7", "other", "2026-07-28", one)
    for change in (
        {"mcp-name": "another"},
        {"mcp-name": None},
        {"mcp-name": "=?base64?b3RoZXI=?="},
        {"mcp-name": ""},
        {"mcp-method": "tools/list"},
        {"mcp-method": "Tools/call"},
        {"mcp-method": None},
        {"mcp-param-region": "eu"},
        {"mcp-protocol-version": "2025-11-25"},
        {"mcp-protocol-version": None},
    ):
        assert short(one, change, headers=headers) is None, change
        check(one, headers, change)
    assert short(one, {"mcp-session-id": "any"}, headers=headers) is not None
    assert short(one, method="PUT", headers=headers) is None
    assert short(compact(call(name="other")), headers=headers) is None
    assert short(compact(stateless_call()), headers=STATELESS) is None, "its arguments may be repeated in headers"
    for members, goes in (
        ({"io.modelcontextprotocol/clientInfo": {"name": "x"}}, True),
        ({"progressToken": 1}, False),
        ({"ProgressToken": 1}, False),
        ({"progressToken\0": 1}, False),
        ({VERSION_KEY.upper(): "2026-07-28"}, False),
        ({VERSION_KEY: "2026-07-29"}, False),
        ({VERSION_KEY: 1}, False),
        ({"io.modelcontextprotocol/subscriptionId": 1}, False),
        ({"io.modelcontextprotocol/related-task": {"taskId": "1"}}, False),
        ({"a": "x" * 5000}, True),
    ):
        line = compact(call(name="other", _meta={**META, **members}))
        assert (short(line, headers=headers) is not None) is goes, members
        check(line, headers)
    twice = one.replace(b'{"io.', b'{"a":1,"a":2,"io.')
    assert short(twice, headers=headers) is None


# --- the body ---

BAD_BODIES: Final = {
    "empty": (b"", -32700),
    "blank": (b" \r\n", -32700),
    "no JSON": (b"{", -32700),
    "two values": (call() + call(), -32700),
    "BOM": (b"\xef\xbb\xbf" + call(), -32700),
    "UTF-16": (call().decode().encode("utf-16"), -32700),
    "UTF-16 without a BOM": (call().decode().encode("utf-16-le"), -32700),
    "UTF-32": (call().decode().encode("utf-32"), -32700),
    "not UTF-8": (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":"\xff"}}', -32700),
    "a surrogate in UTF-8": (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":"\xed\xa0\x80"}}', -32700),
    "a line end in a text": (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":"x\ny"}}', -32700),
    "a carriage return in a text": (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":"x\ry"}}', -32700),
    "a text": (b'"tools/call"', -32700),
    "NaN": (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":NaN}}', -32700),
    "a comment": (b'{"jsonrpc":"2.0","id":7,/**/"method":"m"}', -32700),
    "a batch": (b"[" + call() + b"]", -32600),
    "an empty batch": (b"[]", -32600),
    "id null": (message("tools/list", id=None), -32600),
    "an id with a fraction": (message("tools/list", id=1.5), -32600),
    "an id that is an object": (message("tools/list", id={}), -32600),
    "twin ids": (b'{"jsonrpc":"2.0","id":7,"id":8,"method":"m"}', -32600),
    "twin methods": (b'{"jsonrpc":"2.0","id":7,"method":"a","method":"b"}', -32600),
    "twin methods, one escaped": (b'{"jsonrpc":"2.0","id":7,"method":"a","meth\\u006fd":"b"}', -32600),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_BODIES)
def test_bodies_that_are_no_message(case: str) -> None:
    body, code = BAD_BODIES[case]
    rejected(check(body, HANDSHAKE), 400, code)


SMUGGLED: Final = b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"other","arguments":{}}}'
COMPACT: Final = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","arguments":{"a":[%b]}%b}}'


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("where", ["arguments", "_meta"])
def test_a_line_end_between_tokens_makes_no_second_line(end: bytes, where: str) -> None:
    """Servers on pipes read lines: what stands between two line ends would be a message that nobody has judged."""
    second = end + SMUGGLED + end
    body = COMPACT % ((second, b"") if where == "arguments" else (b"", b',"_meta":{"a":[%b]}' % second))
    line = accepted(check(body, HANDSHAKE)).line
    assert b"\n" not in line
    assert b"\r" not in line
    assert json.loads(line) == json.loads(body)


BAD_MESSAGES: Final = {
    "no version of JSON-RPC": b'{"id":7,"method":"m"}',
    "another version": b'{"jsonrpc":"1.0","id":7,"method":"m"}',
    "neither method nor result": b'{"jsonrpc":"2.0","id":7}',
    "method and result": b'{"jsonrpc":"2.0","id":7,"method":"m","result":{}}',
    "result and error": b'{"jsonrpc":"2.0","id":7,"result":{},"error":{}}',
    "a method that is no text": b'{"jsonrpc":"2.0","id":7,"method":1}',
    "an empty method": b'{"jsonrpc":"2.0","id":7,"method":""}',
    "a method in another case": b'{"jsonrpc":"2.0","id":7,"method":"m","Method":"n"}',
    "NUL in the method": b'{"jsonrpc":"2.0","id":7,"method":"m\\u0000n"}',
    "twin names": b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","name":"say"}}',
    "a name in another case": b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","NAME":"say"}}',
    "twin versions": b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"_meta":{"%b":"a","%b":"b"}}}'
    % (VERSION_KEY.encode(), VERSION_KEY.encode()),
    "a version that is no text": message("m", {"_meta": {VERSION_KEY: 20260728}}),
    "too deep": message("m", {"a": json.loads("[" * 127 + "]" * 127)}),
}


@pytest.mark.parametrize("case", BAD_MESSAGES)
def test_messages_that_readers_could_read_differently_are_refused_with_their_id(case: str) -> None:
    rejected(check(BAD_MESSAGES[case], HANDSHAKE), 400, -32600, id=None if case == "too deep" else 7)


def test_a_message_may_be_as_deep_as_the_rules_say() -> None:
    accepted(check(message("m", {"a": json.loads("[" * 126 + "]" * 126)}), HANDSHAKE))


def test_a_batch_is_refused_in_words_of_its_version() -> None:
    batch = b"[" + call() + b"]"
    assert "2025-03-26" in rejected(check(batch, HANDSHAKE, {"mcp-protocol-version": "2025-03-26"}), 400)
    assert "2025-03-26" in rejected(check(batch, HANDSHAKE, {"mcp-protocol-version": None}), 400)
    assert "2025-11-25 has no batches" in rejected(check(batch, HANDSHAKE), 400)


def test_nothing_of_the_request_is_in_the_refusal() -> None:
    for target in ("/mcp/<script>", "/mcp/echo"):
        result = check(b"<script>", HANDSHAKE, {"host": "<script>"}, target=target)
        assert isinstance(result, Rejected)
        assert b"<script>" not in result.body
        assert "<script>" not in result.reason


# --- headers that repeat the body ---

MISMATCHES: Final[dict[str, tuple[bytes, Change]]] = {
    "the header names another method": (stateless_call(), {"mcp-method": "tools/list"}),
    "the method in another case": (stateless_call(), {"mcp-method": "Tools/Call"}),
    "no method": (stateless_call(), {"mcp-method": None}),
    "the header names another tool": (stateless_call(), {"mcp-name": "other"}),
    "no name": (stateless_call(), {"mcp-name": None}),
    "an empty name": (stateless_call(), {"mcp-name": ""}),
    "a name that the body has not": (stateless_call(name=None), {}),
    "base64 that is none": (stateless_call(), {"mcp-name": "=?base64?!!?="}),
    "base64 without padding": (stateless_call(name="say1"), {"mcp-name": "=?base64?c2F5MQ?="}),
    "another spelling of the same base64": (stateless_call(name="say1"), {"mcp-name": "=?base64?c2F5MR==?="}),
    "base64 with a blank": (stateless_call(name="say1"), {"mcp-name": "=?base64?c2F5 MQ==?="}),
    "base64 of what is not UTF-8": (stateless_call(), {"mcp-name": "=?base64?/w==?="}),
    "the sentinel as a name": (stateless_call(name="=?base64?c2F5?="), {"mcp-name": "=?base64?c2F5?="}),
    "a name that is no ASCII": (stateless_call(name="\xe9"), {"mcp-name": "\xe9"}),
    "no version in the header": (stateless_call(), {"mcp-protocol-version": None}),
    "another version in the header": (stateless_call(), {"mcp-protocol-version": "2025-11-25"}),
    "an unknown version in the header": (stateless_call(), {"mcp-protocol-version": "2099-01-01"}),
    "a version of the handshake era in the body": (call(_meta={VERSION_KEY: "2025-11-25"}), {}),
    "another argument": (stateless_call({"region": "eu"}), {"mcp-param-region": "us"}),
    "an argument in another case": (stateless_call({"region": "eu"}), {"mcp-param-region": "EU"}),
    "no header for an argument": (stateless_call({"region": "eu"}), {}),
    "a header for an absent argument": (stateless_call(), {"mcp-param-region": "eu"}),
    "a header for null": (stateless_call({"region": None}), {"mcp-param-region": "null"}),
    "a header for an object": (stateless_call({"region": {}}), {"mcp-param-region": "{}"}),
    "another nested argument": (stateless_call({"place": {"zone": "a"}}), {"mcp-param-zone": "b"}),
    "another number": (stateless_call({"count": 42}), {"mcp-param-count": "42.5"}),
    "a number in another spelling": (stateless_call({"count": 100}), {"mcp-param-count": "1e2"}),
    "a text that is no number": (stateless_call({"region": "42"}), {"mcp-param-region": "42.0"}),
    "a number that is a truth value": (stateless_call({"count": True}), {"mcp-param-count": "1"}),
}


@pytest.mark.parametrize("case", MISMATCHES)
def test_what_the_head_and_the_body_say_differently_is_refused(case: str) -> None:
    body, change = MISMATCHES[case]
    rejected(check(body, STATELESS, change), 400, -32020, id=7)


def test_a_handshake_in_the_version_that_has_none_is_refused() -> None:
    body = stateless_call().replace(b"tools/call", b"initialize")
    rejected(check(body, STATELESS, {"mcp-method": "initialize", "mcp-name": None}), 404, -32601, id=7)


def test_a_body_without_the_version_that_the_head_names_lacks_a_parameter() -> None:
    rejected(check(call(), STATELESS, {}), 400, -32602, id=7)


@pytest.mark.parametrize("name", ["mcp-method", "mcp-name", "mcp-protocol-version", "mcp-param-region", "mcp-param-x"])
def test_a_twin_of_a_header_that_repeats_the_body_is_refused(name: str) -> None:
    change = {name: STATELESS.get(name, "eu")}
    result = check(
        stateless_call({"region": "eu"}), {**STATELESS, "mcp-param-region": "eu"}, change, more=tuple(change.items())
    )
    rejected(result, 400, -32020, id=7)


def test_twin_arguments_are_refused_where_a_header_repeats_one() -> None:
    body = stateless_call({"region": "eu"}).replace(b'"region"', b'"region": "us", "region"')
    rejected(check(body, STATELESS, {"mcp-param-region": "eu"}), 400, -32600, id=7)


@pytest.mark.parametrize(
    ("header", "method", "params"),
    [
        ("say", "tools/call", {"name": "say"}),
        ("=?base64?w6k=?=", "tools/call", {"name": "\xe9"}),
        ("=?base64?c2F5?=", "prompts/get", {"name": "say"}),
        ("file:///a b", "resources/read", {"uri": "file:///a b"}),
        ("t-1", "tasks/get", {"taskId": "t-1"}),
        (None, "tools/list", {}),
        ("whatever", "tools/list", {}),
    ],
)
def test_names_that_agree(header: str | None, method: str, params: dict[str, object]) -> None:
    accepted(check(message(method, {**params, "_meta": META}), STATELESS, {"mcp-method": method, "mcp-name": header}))


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "eu"}, {"mcp-param-region": "eu"}),
        ({"region": "\xe9"}, {"mcp-param-region": "=?base64?w6k=?="}),
        ({"region": ""}, {"mcp-param-region": ""}),
        ({"place": {"zone": "a"}}, {"mcp-param-zone": "a"}),
        ({"count": 42}, {"mcp-param-count": "42"}),
        ({"count": 42}, {"mcp-param-count": "42.0"}),
        ({"count": 42.0}, {"mcp-param-count": "42"}),
        ({"count": -7}, {"mcp-param-count": "-7"}),
        ({"count": 2**60}, {"mcp-param-count": str(2**60)}),
        ({"count": 2**60}, {}),
        ({"count": True}, {"mcp-param-count": "true"}),
        ({"region": None}, {}),
        ({"place": 7}, {}),
        ({"region": {}}, {}),
    ],
)
def test_arguments_that_agree(arguments: dict[str, object], headers: Change) -> None:
    accepted(check(stateless_call(arguments), STATELESS, headers))


def test_headers_of_arguments_that_nobody_here_knows_count_for_nothing() -> None:
    with_other = accepted(check(stateless_call(), STATELESS, {"mcp-param-tenant": "x"}))
    assert with_other == accepted(check(stateless_call(), STATELESS))
    accepted(check(stateless_call(name="other"), STATELESS, {"mcp-name": "other", "mcp-param-region": "x"}))


def test_in_the_handshake_era_such_headers_may_be_absent_and_must_not_disagree() -> None:
    accepted(check(call({"region": "eu"}), HANDSHAKE))
    accepted(check(call({"region": "eu"}), HANDSHAKE, {"mcp-method": "tools/call", "mcp-param-region": "eu"}))
    for change in ({"mcp-method": "tools/list"}, {"mcp-name": "other"}, {"mcp-param-region": "us"}):
        rejected(check(call({"region": "eu"}), HANDSHAKE, change), 400, -32020, id=7)


def test_a_version_that_is_not_known_is_refused_with_those_that_are() -> None:
    body = call(_meta={VERSION_KEY: "2099-01-01"})
    result = check(body, STATELESS, {"mcp-protocol-version": "2099-01-01"})
    rejected(result, 400, -32022, id=7)
    assert isinstance(result, Rejected)
    assert json.loads(result.body)["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2099-01-01"}


def test_in_the_stateless_era_an_agent_sends_no_responses() -> None:
    rejected(check(b'{"jsonrpc":"2.0","id":7,"result":{}}', STATELESS, {"mcp-method": None}), 400, -32600, id=7)


ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "region": st.text(st.characters(exclude_categories=["Cs"])) | st.none(),
        "count": st.integers(-(2**53) + 1, 2**53 - 1) | st.booleans(),
        "place": st.fixed_dictionaries({}, optional={"zone": st.text(st.characters(exclude_categories=["Cs"]))}),
    },
)


@given(ARGUMENTS, st.text(st.characters(exclude_categories=["Cs"])).filter(lambda name: "\0" not in name))
def test_what_the_sdk_writes_is_accepted(arguments: dict[str, object], tool: str) -> None:
    headers = inbound.mcp_param_headers(PARAMETERS, arguments)
    changes = {
        "mcp-name": inbound.encode_header_value(tool),
        **{name.lower(): value for name, value in headers.items()},
    }
    accepted(check(stateless_call(arguments, tool), STATELESS, changes))


@given(st.binary(max_size=12) | st.builds(lambda raw: b"=?base64?" + base64.b64encode(raw) + b"?=", st.binary()))
def test_a_value_is_decoded_as_the_sdk_decodes_it_or_not_at_all(value: bytes) -> None:
    found = mirror_headers.decode_value(value)
    assert found is None or found == inbound.decode_header_value(value.decode("latin-1"))
    if found is None and value.isascii() and not {*range(32), 127} & set(value):
        assert inbound.decode_header_value(value.decode()) is None


@given(
    st.binary(max_size=40) | st.sampled_from([call(), stateless_call()]),
    st.lists(
        st.tuples(st.sampled_from([*STATELESS, "origin", "mcp-param-region", "x"]), st.binary(max_size=20)), max_size=6
    ),
    st.binary(max_size=20) | st.just(b"/mcp/echo"),
    st.sampled_from([b"GET", b"POST", b"DELETE", b""]),
)
def test_nothing_raises(body: bytes, pairs: list[tuple[str, bytes]], target: bytes, method: bytes) -> None:
    headers = [(name.encode(), value) for name, value in pairs]
    usual = [(name.encode(), value.encode()) for name, value in STATELESS.items() if name not in dict(pairs)]
    check_both(method, target, [*usual, *headers], body, lookup)
