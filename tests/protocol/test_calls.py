"""Read a tool call so that no server can read it differently than its hooks do."""

from __future__ import annotations

from typing import Final

import pytest

from hookproxy.jsonrpc import raw_json
from hookproxy.jsonrpc.raw_json import DuplicateKeys, Unreadable
from hookproxy.model.aliases import Alias
from hookproxy.model.hooks import Tool
from hookproxy.protocol import calls
from hookproxy.protocol.calls import Call, Phase
from hookproxy.protocol.tool_list import listed_tools

LINE: Final = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"danger","arguments":{"a":1}}}\n'


def judged(line: bytes, listed: Tool | None = None) -> Call:
    return calls.judged_call(calls.read(raw_json.fields(line)), line, listed)


def test_a_call_is_read_as_its_hooks_see_it() -> None:
    line = LINE.replace(b'{"a":1}', b'{ "a" : "rm\\u0020-rf", "n":1.0}')
    call = judged(line)
    assert (call.key, call.id, call.tool, call.line) == (b"7", b"7", "danger", line)
    assert call.arguments == b'{"a":"rm -rf","n":1.0}'
    assert (call.phase, call.stateless, call.task, call.meta) == (Phase.HELD, False, False, {})


@pytest.mark.parametrize("arguments", [b"null", b"{}"])
def test_no_arguments_are_an_empty_object_to_hooks(arguments: bytes) -> None:
    assert judged(LINE.replace(b'{"a":1}', arguments)).arguments == b"{}"
    assert judged(LINE.replace(b',"arguments":{"a":1}', b"")).arguments == b"{}"


@pytest.mark.parametrize("arguments", [b'"x"', b"[1]", b"7", b"true"])
def test_arguments_that_are_not_an_object_cannot_be_judged(arguments: bytes) -> None:
    with pytest.raises(Unreadable, match="arguments are not an object"):
        judged(LINE.replace(b'{"a":1}', arguments))


def test_a_call_can_request_a_task_only_in_the_handshake_era() -> None:
    assert judged(LINE.replace(b'"name"', b'"task":{},"name"')).task
    stateless = b'"task":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name"'
    call = judged(LINE.replace(b'"name"', stateless))
    assert (call.stateless, call.task) == (True, False)


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        (b"7", b"7"),
        (b'"7"', b"7"),
        (b'"\\u0037"', b"7"),
        (b"-7", b"-7"),
        (b'"a b"', b"a b"),
        (b'"\\u00e9"', "é".encode()),
        (b'"\xc3\xa9"', "é".encode()),
        (b'""', b""),
    ],
)
def test_spellings_of_one_id_have_one_key(raw: bytes, key: bytes) -> None:
    assert calls.id_key(raw) == key


def test_an_id_that_cannot_be_decoded_has_a_key_of_its_own() -> None:
    assert calls.id_key(b'"\\ud800"') != calls.id_key(b'"\\ud801"')


@pytest.mark.parametrize("raw", [b"null", b"1.0", b"1e3", b"true", b"[]", b"{}"])
def test_only_strings_and_integers_are_ids_of_calls(raw: bytes) -> None:
    members = raw_json.fields(LINE.replace(b":7", b":" + raw))
    assert calls.response_id(members) == b"null"
    with pytest.raises(Unreadable, match="id"):
        calls.read(members)
    assert calls.response_id({}) == b"null"


@pytest.mark.parametrize("spelled", [b'"tools/call"', b'"tools\\/call"', b'"\\u0074ools/call"', b'"tools\\u002Fcall"'])
def test_a_method_is_recognised_in_any_spelling(spelled: bytes) -> None:
    assert calls.method(raw_json.fields(b'{"method":%b}' % spelled)) == calls.METHOD


def test_other_methods_are_not_taken_for_a_call() -> None:
    for spelled in (b'"tools/calls"', b'"Tools/call"', b"null", b'["tools\\/call"]', b'"\\ud800"'):
        assert calls.method(raw_json.fields(b'{"method":%b}' % spelled)) != calls.METHOD
    assert calls.method({}) == b""


@pytest.mark.parametrize(
    "key",
    ["Method", "ID", "PARAMS", "param\u017f", "Name", "argumentS", "tas\u212a", "_META", "RequestState", "rE\u017fult"],
)
def test_keys_that_readers_who_ignore_case_take_for_others_are_unreadable(key: str) -> None:
    members = raw_json.fields(raw_json.encode({"jsonrpc": "2.0", key: 1}))
    with pytest.raises(Unreadable, match="ignore case"):
        calls.check_spelling(members)


def test_other_keys_are_accepted() -> None:
    calls.check_spelling(raw_json.fields(b'{"jsonrpc":"2.0","id":1,"x":1,"methods":2,"name":3,"Trace":4,"":5}'))


def test_names_that_differ_only_in_case_cannot_be_judged() -> None:
    with pytest.raises(Unreadable, match="'path' and 'Path' for the same"):
        judged(LINE.replace(b'"a":1', b'"path":1,"Path":2'))


def test_a_name_must_be_spelled_as_the_tool_lists_it() -> None:
    schema = b'{"properties":{"path":{},"n":{}}}'
    (listed,) = listed_tools(b'{"result":{"tools":[{"name":"danger","inputSchema":%b}]}}' % schema)
    assert judged(LINE.replace(b'"a":1', b'"path":1,"other":2'), listed).arguments == b'{"path":1,"other":2}'
    with pytest.raises(Unreadable, match="'PATH' is spelled 'path'"):
        judged(LINE.replace(b'"a":1', b'"PATH":1'), listed)
    assert judged(LINE.replace(b'"a":1', b'"N":1'), None).arguments == b'{"N":1}'


@pytest.mark.parametrize(
    ("info", "name"),
    [
        (b'{"name":"Lean","version":"1"}', "Lean 1"),
        (b'{"name":"Lean"}', "Lean"),
        (b'{"version":7,"name":"Lean"}', "Lean"),
        (b"{}", ""),
        (b"7", ""),
        (b'{"name":"a","name":"b"}', ""),
    ],
)
def test_an_agent_has_a_name_and_a_version(info: bytes, name: str) -> None:
    assert calls.texts_of(raw_json.fields(b'{"x":%b}' % info)["x"], "name", "version") == name
    assert calls.texts_of(None, "name") == ""


@pytest.mark.parametrize("meta", [b'{"a":1,"a":2}', b"7", b'"x"'])
def test_a_call_with_unreadable_meta_cannot_be_judged(meta: bytes) -> None:
    with pytest.raises((Unreadable, DuplicateKeys)):
        judged(LINE.replace(b'"name"', b'"_meta":%b,"name"' % meta))


def test_arguments_that_are_the_same_for_hooks_under_an_alias_cannot_be_judged() -> None:
    alias = Alias("danger", "Bash", {"command": "a"})

    def find_alias(tool: str, arguments: bytes) -> Alias:
        assert tool == "danger"
        alias.for_call(arguments)
        return alias

    request = calls.read(raw_json.fields(LINE.replace(b'{"a":1}', b'{"a":1,"command":2}')))
    with pytest.raises(Unreadable, match="'a' and 'command' are the same argument for its hooks"):
        calls.judged_call(request, LINE, None, find_alias)
    call = calls.judged_call(calls.read(raw_json.fields(LINE)), LINE, None, find_alias)
    assert (call.arguments, call.alias) == (b'{"a":1}', alias)


@pytest.mark.parametrize("form", [b"%b\n", b"[%b]\n", b" [ %b ] \n"])
def test_the_server_gets_a_cancellation_with_the_id_that_it_knows(form: bytes) -> None:
    call = judged(LINE)
    message = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"x"}}'
    assert calls.cancellation(form % message, call) == form % message
    call.sent_id = b'"new"'
    sent = calls.cancellation(form % message, call)
    assert sent.replace(b" ", b"") == (form % message.replace(b":7", b':"new"')).replace(b" ", b"")
    assert sent.count(b"\n") == 1


def nested(depth: int) -> bytes:
    return b'{"command":"x","y":%b}' % (b"[" * (depth - 1) + b"]" * (depth - 1))


@pytest.mark.parametrize("form", [b"%b", b' { "z" : %b } '])
def test_arguments_that_are_nested_too_deep_for_some_hooks_are_refused(form: bytes) -> None:
    room = 64 if form == b"%b" else 63
    judged(LINE.replace(b'{"a":1}', form % nested(room)))
    with pytest.raises(Unreadable, match=r"deeper than 64 levels \(max_depth\)"):
        judged(LINE.replace(b'{"a":1}', form % nested(room + 1)))
    request = calls.read(raw_json.fields(LINE.replace(b'{"a":1}', nested(6))))
    with pytest.raises(Unreadable, match="deeper than 5"):
        calls.judged_call(request, LINE, None, max_depth=5)
