"""The documents of Cascade's hooks beyond the table: calls that have not the form that a hook expects."""

from __future__ import annotations

import json

import pytest

from hookproxy.dialects.cascade import DIALECT as CASCADE
from hookproxy.dialects.cascade import RUN_COMMAND, WRITE_CODE
from hookproxy.model.hooks import Event, EventContext, HookSpec
from tests.dialects.calls import SESSION


def tool_info(event_name: str, arguments: bytes) -> object:
    spec = HookSpec("cascade", "f", Event.PRE_TOOL_USE, "guard", shell="guard", event_name=event_name)
    context = EventContext(Event.PRE_TOOL_USE, SESSION, "t", RUN_COMMAND, "call_1", arguments)
    return json.loads(CASCADE.write_input(spec, context).stdin)["tool_info"]


@pytest.mark.parametrize("arguments", [b'{"command_line":["rm","-rf"]}', b'{"script":"rm -rf"}', b"{}"])
def test_a_call_without_a_command_shows_all_of_its_arguments(arguments: bytes) -> None:
    assert tool_info("pre_run_command", arguments) == {"command_line": arguments.decode(), "cwd": "/repo"}


def test_a_call_without_a_path_shows_all_of_its_arguments() -> None:
    assert tool_info("pre_read_code", b'{"paths":["/etc/passwd"]}') == {"file_path": '{"paths":["/etc/passwd"]}'}


@pytest.mark.parametrize(
    ("arguments", "edits"),
    [
        (b'{"file_path":"a","patch":"p"}', [{"file_path": "a", "patch": "p"}]),
        (
            b'{"file_path":"a","edits":["x",{"search":"a","replace":"b"}]}',
            ["x", {"old_string": "a", "new_string": "b"}],
        ),
        (b'{"file_path":"a","edits":[]}', []),
        (
            b'{"file_path":"a","edits":[],"old_string":"x","new_string":"evil","content":"more"}',
            [{"old_string": "x", "new_string": "evil"}, {"old_string": "", "new_string": "more"}],
        ),
        (
            b'{"file_path":"a","edits":[{"oldText":"x","new_string":"good","newText":"evil","n":1}]}',
            [
                {"old_string": "x", "new_string": "good", "n": 1},
                {"old_string": "", "new_string": "evil", "n": 1},
            ],
        ),
        (b'{"file_path":"a","new_string":"b"}', [{"old_string": "", "new_string": "b"}]),
    ],
)
def test_what_is_written_is_shown_in_whatever_form_it_has(arguments: bytes, edits: object) -> None:
    assert tool_info("pre_write_code", arguments) == {"file_path": "a", "edits": edits}


def test_the_name_of_an_action_is_no_tools_name() -> None:
    assert " " in RUN_COMMAND
    assert " " in WRITE_CODE
