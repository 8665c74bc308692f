"""Arguments under the names that hooks know, and back: each value once, as spelled, and never ambiguous."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hookproxy.jsonrpc.raw_json import DuplicateKeys, Unreadable
from hookproxy.model import aliases
from hookproxy.model.aliases import Alias, ToolSpelling, spelled

BASH = Alias("execute_command", "Bash", {"command": "cmd"})
CHAIN = Alias("odd", "Odd", {"a": "b", "b": "c"})
SWAP = Alias("swap", "", {"a": "b", "b": "a"})


@pytest.mark.parametrize(
    ("alias", "server", "hooks"),
    [
        (BASH, b'{"cmd":"ls"}', b'{"command":"ls"}'),
        (BASH, b'{"n":1.50,"cmd":"l\\u0000s","e":1e400,"o":{"cmd":1}}', None),
        (BASH, b'{"x":1}', b'{"x":1}'),
        (BASH, b"{}", b"{}"),
        (BASH, b'{"cmd":["a","b"]}', b'{"command":["a","b"]}'),
        (CHAIN, b'{"b":1,"c":2}', b'{"a":1,"b":2}'),
        (SWAP, b'{"a":1,"b":2}', b'{"b":1,"a":2}'),
        (Alias("x", "", {'say "hi"': "ümläut"}), '{"ümläut":1}'.encode(), b'{"say \\"hi\\"":1}'),
    ],
)
def test_only_names_change(alias: Alias, server: bytes, hooks: bytes | None) -> None:
    held = alias.for_call(server)
    renamed = held.for_hooks(server)
    assert renamed == (hooks or server.replace(b'"cmd":"', b'"command":"', 1))
    assert held.for_server(renamed) == server


EDITS = Alias("edit_file", "MultiEdit", {"file_path": "path"}, edits="edits")


@pytest.mark.parametrize(
    ("server", "hooks"),
    [
        (
            b'{"path":"a","edits":[{"oldText":"x","newText":"\\u00e4"},{"oldText":"y","newText":""}]}',
            b'{"file_path":"a","edits":[{"old_string":"x","new_string":"\\u00e4"},{"old_string":"y","new_string":""}]}',
        ),
        (b'{"edits":[{"OldText":1,"new_code":2,"n":3.0}]}', b'{"edits":[{"old_string":1,"new_string":2,"n":3.0}]}'),
        (b'{"edits":[{"old_string":"x","newStr":"y"}]}', b'{"edits":[{"old_string":"x","new_string":"y"}]}'),
        (b'{"edits":[{"oldText":"x"},"y",[{"oldText":1}]]}', b'{"edits":[{"old_string":"x"},"y",[{"oldText":1}]]}'),
        (b'{"edits":[{"old_string":"x","new_string":"y"}],"dryRun":true}', None),
        (b'{"edits":[]}', None),
        (b'{"edits":"[{}]"}', None),
        (b'{"edits":{"oldText":"x"}}', None),
    ],
)
def test_the_texts_of_a_list_of_edits_have_claude_codes_names(server: bytes, hooks: bytes | None) -> None:
    held = EDITS.for_call(server)
    renamed = held.for_hooks(server)
    assert renamed == (hooks or server)
    assert held.for_server(renamed) == server


def test_a_list_of_edits_may_have_another_name() -> None:
    alias = Alias("patch", "MultiEdit", {"edits": "patches"}, edits="patches")
    server, hooks = b'{"patches":[{"oldText":"x"}]}', b'{"edits":[{"old_string":"x"}]}'
    assert alias.for_call(server).for_hooks(server) == hooks
    assert alias.for_call(server).for_server(hooks) == server


def test_a_hook_may_add_edits() -> None:
    held = EDITS.for_call(b'{"path":"a","edits":[{"oldText":"x","newText":"y"}]}')
    rewritten = b'{"file_path":"a","edits":[{"old_string":"x","new_string":"y"},{"old_string":"v","new_string":"w"}]}'
    expected = b'{"path":"a","edits":[{"oldText":"x","newText":"y"},{"oldText":"v","newText":"w"}]}'
    assert held.for_server(rewritten) == expected


@pytest.mark.parametrize(
    "edits",
    [
        b'[{"oldText":"x","old_string":"y"}]',
        b'[{"oldText":"x","old_text":"y"}]',
        b'[{"oldText":"x","OLDTEXT":"y"}]',
        b'[{"oldText":"x","oldText\\u0000z":"y"}]',
        b'[{"oldText":"x"},{"old_string":"y"}]',
        b'[{"newText":"x"},{"newText":"y","new_str":"z"}]',
    ],
)
def test_an_edit_with_a_text_under_two_names_is_ambiguous(edits: bytes) -> None:
    with pytest.raises(Unreadable, match="the same text for its hooks"):
        EDITS.for_call(b'{"edits":%b}' % edits)


def test_a_rewrite_with_a_text_under_two_names_is_ambiguous() -> None:
    held = EDITS.for_call(b'{"edits":[{"oldText":"x"}]}')
    with pytest.raises(DuplicateKeys):
        held.for_server(b'{"edits":[{"old_string":"x","oldText":"y"}]}')


def test_arguments_without_an_alias_are_the_same_object() -> None:
    plain = b'{ "x" : 1 }'
    assert BASH.for_call(plain) is BASH
    assert BASH.for_hooks(plain) is plain
    assert BASH.for_server(plain) is plain
    assert aliases.for_hooks(None, plain) is plain
    assert aliases.for_server(None, plain) is plain


def test_a_rewrite_may_be_spelled_over_many_lines() -> None:
    assert BASH.for_server(b'{\n  "x": 1.0,\n  "command": "a\\/b"\n}\n') == b'{"x":1.0,"cmd":"a\\/b"}'


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (b'{"cmd":"rm","command":"ls"}', "'cmd' and 'command' are the same argument for its hooks"),
        (b'{"command":"ls","cmd":"rm"}', "'cmd' and 'command' are the same argument for its hooks"),
        (b'{"\\u0063md":"rm","command":"ls"}', "'cmd' and 'command' are the same argument for its hooks"),
        (b'{"Cmd":"rm"}', "'Cmd' may be taken for 'cmd'"),
        (b'{"cmd":"rm","COMMAND":"ls"}', "'COMMAND' may be taken for 'command'"),
        (b'{"cmd\\u0000":"rm"}', "may be taken for 'cmd'"),
        (b'{"\xc5\xbfource":"rm"}', None),  # a long s, which is an s to those who fold, but of no name here
    ],
)
def test_two_arguments_of_the_server_that_are_one_for_hooks_are_an_error(arguments: bytes, why: str | None) -> None:
    if why is None:
        assert BASH.for_call(arguments) is BASH
        return
    with pytest.raises(Unreadable, match=why):
        BASH.for_call(arguments)


def test_duplicate_keys_are_an_error() -> None:
    with pytest.raises(DuplicateKeys):
        BASH.for_call(b'{"cmd":1,"cmd":2}')
    with pytest.raises(DuplicateKeys):
        BASH.for_server(b'{"command":1,"command":2}')


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (b'{"cmd":"rm"}', "'cmd' is the tool's own name for 'command'"),
        (b'{"command":"ls","cmd":"rm"}', "'cmd' is the tool's own name for 'command'"),
        (b'{"command":"ls","CMD":"rm"}', "'CMD' may be taken for 'cmd'"),
        (b'{"Command":"ls"}', "'Command' may be taken for 'command'"),
        (b"[]", "not a JSON object"),
    ],
)
def test_a_rewrite_that_cannot_be_translated_is_an_error(arguments: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        BASH.for_server(arguments)


def test_an_argument_that_the_agent_gives_by_the_hooks_own_name_keeps_it() -> None:
    """A server may take both names, or be another one with such a tool: what was sent so is forwarded so."""
    held = BASH.for_call(b'{"command":"ls","x":1}')
    assert held.for_hooks(b'{"command":"ls","x":1}') == b'{"command":"ls","x":1}'
    assert held.for_server(b'{"command":"ls -l","x":2}') == b'{"command":"ls -l","x":2}'
    with pytest.raises(Unreadable, match="own name"):
        held.for_server(b'{"command":"ls","cmd":"rm"}')
    with pytest.raises(Unreadable, match="own name"):
        held.for_server(b'{"cmd":"rm"}')


SPELLINGS = {
    "Bash": (ToolSpelling("shell"), ToolSpelling("run_command", {"command": "script"})),
    "Read": (ToolSpelling("read_file", {"file_path": "path"}),),
}


def test_an_alias_is_spelled_as_another_system_spells_it() -> None:
    read = Alias("cat", "Read", {"file_path": "file"}, automatic=True)
    bash = Alias("cat", "Bash", {"command": "cmd"}, alternatives=(read,), automatic=True)
    found = spelled(bash, SPELLINGS)
    assert found.names == ("shell", "run_command", "read_file")
    assert [dict(found.named(name).arguments) for name in found.names] == [
        {"command": "cmd"},
        {"script": "cmd"},
        {"path": "file"},
    ]
    assert found.named("run_command").for_hooks(b'{"cmd":"ls"}') == b'{"script":"ls"}'
    assert found.named("run_command").for_server(b'{"script":"ls -l"}') == b'{"cmd":"ls -l"}'


def test_an_argument_that_has_claudes_name_on_the_server_is_spelled_too() -> None:
    found = spelled(Alias("cat", "Read", automatic=True), SPELLINGS)
    assert found.for_hooks(b'{"file_path":"a","n":1}') == b'{"path":"a","n":1}'
    same = spelled(Alias("cat", "Read", {"file_path": "path"}, automatic=True), SPELLINGS)
    assert same.for_hooks(b'{"path":"a"}') == b'{"path":"a"}'


def test_a_configured_name_stays_beside_the_spelled_ones() -> None:
    assert spelled(Alias("run", "Bash"), SPELLINGS).names == ("shell", "run_command", "Bash")
    assert spelled(Alias("run", "Odd", automatic=True), SPELLINGS).names == ("Odd",)


def test_arguments_that_are_ambiguous_in_any_spelling_are_found() -> None:
    bash = Alias("run", "Bash", {"command": "cmd"}, automatic=True)
    bash.check(b'{"cmd":"ls","script":"rm"}')
    with pytest.raises(Unreadable, match="'cmd' and 'script' are the same argument"):
        replace(bash, spellings=(spelled(bash, SPELLINGS),)).check(b'{"cmd":"ls","script":"rm"}')
