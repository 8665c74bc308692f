"""The documents of Kiro's hooks beyond the table: an argument of the agent never hides another from a hook."""

from __future__ import annotations

import json

import pytest

from hookproxy.dialects.kiro import DIALECT as KIRO
from hookproxy.dialects.kiro.hook_file import IDE_0, VERSION_1
from hookproxy.model.aliases import Alias
from hookproxy.model.hooks import Event, EventContext, HookSpec
from tests.dialects.calls import SESSION


def tool_input(tool_name: str, arguments: bytes, *traits: str) -> object:
    spec = HookSpec("kiro", "f", Event.PRE_TOOL_USE, "g", shell="g", event_name="preToolUse", traits=frozenset(traits))
    alias = Alias("t", tool_name)
    context = EventContext(Event.PRE_TOOL_USE, SESSION, "t", tool_name, "c", arguments, alias)
    return json.loads(KIRO.write_input(spec, context).stdin)["tool_input"]


@pytest.mark.parametrize("order", [b'"content":"evil","text":"good"', b'"text":"good","content":"evil"'])
def test_an_argument_with_kiros_name_does_not_hide_the_content_of_a_file(order: bytes) -> None:
    found = tool_input("fs_write", b'{"file_path":"a",%b}' % order, VERSION_1)
    assert found == {"path": "a", "text": "evil", "text_": "good"}


def test_an_argument_called_command_does_not_hide_that_a_file_is_written() -> None:
    found = tool_input("fs_write", b'{"command":"view","file_path":"a","content":"x","path":"b"}')
    assert found == {"command": "create", "command_": "view", "path": "a", "path_": "b", "file_text": "x"}


def test_an_argument_called_mode_does_not_hide_that_a_file_is_read() -> None:
    assert tool_input("fs_read", b'{"file_path":"a","mode":"x"}') == {
        "operations": [{"mode": "Line", "path": "a", "mode_": "x"}]
    }


def test_a_document_that_does_not_fit_into_the_variable_is_whole_on_standard_input() -> None:
    spec = HookSpec("kiro", "f", Event.PRE_TOOL_USE, "g", shell="g", event_name="p", traits=frozenset((IDE_0,)))
    context = EventContext(Event.PRE_TOOL_USE, SESSION, "t", "@files/t", "c", b'{"a":"%b"}' % (b"x" * 200_000))
    document = KIRO.write_input(spec, context)
    assert document.cut
    assert json.loads(document.stdin)["toolArgs"]["a"] == "x" * 200_000
