"""Cascade's hooks.json: the shapes of published files, recognition, and what is told about the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.dialects.cascade import DIALECT, RUN_COMMAND
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event
from tests.dialects.calls import inputs, read, recognised

GUARD: Final = {"command": "python3 guard.py"}

SHOWN: Final = {"command": "./guard.sh", "show_output": True}
PUBLISHED: Final[dict[str, tuple[Any, int]]] = {
    # the shape of a repository that checks commands only, the page's logging and read-guard examples, and a worktree's
    "command guard": ({"hooks": {"pre_run_command": [SHOWN]}}, 1),
    "logging": (
        {
            "hooks": {
                **{
                    name: [SHOWN]
                    for name in ("post_read_code", "post_write_code", "post_run_command", "post_mcp_tool_use")
                },
                "post_cascade_response": [{"command": "./guard.sh"}],
            }
        },
        4,
    ),
    "read guard": ({"hooks": {"pre_read_code": [SHOWN]}}, 1),
    "worktree": ({"hooks": {"post_setup_worktree": [SHOWN], "pre_mcp_tool_use": [GUARD]}}, 1),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_shapes_of_published_files_load_whole(name: str, tmp_path: Path) -> None:
    content, hooks = PUBLISHED[name]
    assert recognised(tmp_path / ".windsurf" / "hooks.json", content) == "cascade"
    found = read("cascade", content)
    assert len(found.hooks) == hooks
    assert found.notes == ()
    assert len(found.remarks) == len(set(content["hooks"]) - set(DIALECT.events))


def test_an_entry_is_a_hook() -> None:
    (hook,) = read("cascade", {"hooks": {"pre_run_command": [{**GUARD, "working_directory": "tools"}]}}).hooks
    assert (hook.event, hook.event_name, hook.label) == (Event.PRE_TOOL_USE, "pre_run_command", "guard.py")
    assert hook.argv == ("bash", "-c", "python3 guard.py")
    assert (hook.cwd, hook.timeout, hook.matcher) == ("/repo/tools", 60.0, RUN_COMMAND)


@pytest.mark.parametrize(
    ("folder", "cwd"), [("", "/repo"), ("/srv", "/srv"), ("~", "/repo/~")], ids=["none", "absolute", "no home"]
)
def test_the_folder_is_the_workspaces_unless_the_entry_has_one(folder: str, cwd: str) -> None:
    entry = {**GUARD, "working_directory": folder} if folder else GUARD
    assert read("cascade", {"hooks": {"pre_read_code": [entry]}}).hooks[0].cwd == cwd


@pytest.mark.parametrize(
    ("entry", "note"),
    [
        ({"powershell": "guard.ps1"}, "does not run: it is for PowerShell only, which is not supported"),
        ({}, "is left out: command is missing"),
        ({"command": " "}, "is left out: command is empty"),
        ({"command": 1}, "is left out: command must be a string, not a number"),
        ({"command": "x", "show_output": "yes"}, "is left out: show_output must be true or false"),
        ("x", "is left out: must be an object, not a string"),
    ],
)
def test_an_entry_that_cannot_run_is_left_out_and_the_others_run(entry: object, note: str) -> None:
    found = read("cascade", {"hooks": {"pre_run_command": [entry, GUARD]}})
    assert len(found.hooks) == 1
    assert len(found.notes) == 1
    assert f"/repo/hooks.json: hooks.pre_run_command[0] {note}" in found.notes[0]


def test_a_key_without_a_meaning_is_reported() -> None:
    found = read("cascade", {"hooks": {"pre_run_command": [{**GUARD, "timout": 3, "matcher": "x"}]}})
    assert [note.rpartition("[0].")[2] for note in found.notes] == [
        "timout is unknown and ignored",
        "matcher is unknown and ignored",
    ]
    assert len(found.hooks) == 1


def test_a_misspelt_event_is_reported() -> None:
    (note,) = read("cascade", {"hooks": {"pre_run_comand": [GUARD]}}).notes
    assert "is not an event, so its hooks never run: did you mean 'pre_run_command'?" in note


@pytest.mark.parametrize("content", ["[]", '{"hooks":[]}', "{", ""])
def test_a_file_that_cannot_be_read_is_an_error(content: str) -> None:
    with pytest.raises(ConfigError):
        read("cascade", content)


def test_a_file_of_another_system_is_not_cascades(tmp_path: Path) -> None:
    lime = {"hooks": {"PreToolUse": ["./x.sh"]}}
    with pytest.raises(ConfigError, match="is in a folder of cascade"):
        recognised(tmp_path / ".windsurf" / "hooks.json", lime)


def test_cascades_file_is_recognised_in_any_folder(tmp_path: Path) -> None:
    assert recognised(tmp_path / "hooks.json", {"hooks": {"pre_mcp_tool_use": [GUARD]}}) == "cascade"


def test_a_tool_that_is_only_called_like_the_action_does_not_run_its_hooks() -> None:
    hooks = read("cascade", {"hooks": {"pre_write_code": [GUARD]}})
    assert inputs(hooks, "write_code", {"topic": "sorting"}) == []
