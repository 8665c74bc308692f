"""Droid's hook files: the shapes of published files, recognition, and what is told about the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.config.hook_files import parse_option, read_use
from hookproxy.dialects.dialect import HookFile
from hookproxy.dialects.droid import DIALECT as DROID
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event
from hookproxy.trust.sources import FileContext
from tests.dialects.calls import read, recognised

GUARD: Final = {"type": "command", "command": "./guard.sh"}


def group(matcher: str | None = None, *entries: dict[str, Any]) -> dict[str, Any]:
    return {**({} if matcher is None else {"matcher": matcher}), "hooks": list(entries or (GUARD,))}


LOGGED: Final = {"PreToolUse": [group("Execute")], "PostToolUse": [group("*")], "SessionStart": [group()]}
PUBLISHED: Final[dict[str, tuple[str, Any, int]]] = {
    # the guides on formatting, on logging, on notifications, and on git, each with the form of file that it shows
    "formatting": (
        "settings.json",
        {"model": "x", "hooks": {"PostToolUse": [group("Write|Edit", {**GUARD, "timeout": 30})]}},
        1,
    ),
    "logging": ("hooks.json", {**LOGGED, "UserPromptSubmit": [group()], "Stop": [group()]}, 3),
    "notifications": ("settings.json", {"hooks": {"Notification": [group("")], "SubagentStop": [group()]}}, 1),
    "git": ("hooks.json", {"hooks": {"PreToolUse": [group("Execute", GUARD, {**GUARD, "command": "./b.sh"})]}}, 2),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_shapes_of_published_files_load_whole(name: str, tmp_path: Path) -> None:
    file, content, hooks = PUBLISHED[name]
    assert recognised(tmp_path / ".factory" / file, content) == "droid"
    found = read("droid", content)
    assert len(found.hooks) == hooks
    assert found.notes == ()
    assert len(found.remarks) == len([one for one in content.get("hooks", content) if one in DROID.unavailable])


def test_an_entry_is_a_hook_of_bash_that_finds_the_project() -> None:
    (hook,) = read("droid", {"PreToolUse": [group("Execute")]}).hooks
    assert (hook.event, hook.timeout, hook.cwd) == (Event.PRE_TOOL_USE, 60.0, "/repo")
    assert hook.argv == ("bash", "-c", "./guard.sh")
    assert dict(hook.env) == {"FACTORY_PROJECT_DIR": "/repo", "DROID_PROJECT_DIR": "/repo"}


@pytest.mark.parametrize(
    ("matcher", "matching", "others"),
    [
        ("", ["anything"], []),
        ("*", ["anything"], []),
        ("Write", ["Write"], ["Writer", "write"]),
        ("Edit|Write", ["Edit", "Write"], ["Execute"]),
        ("Notebook.*", ["NotebookEdit"], ["Edit"]),
        ("mcp__files__.*", ["mcp__files__read"], ["mcp__other__read"]),
        ("mcp__files|mcp__git", ["mcp__files__read"], ["mcp__other__read"]),
    ],
)
def test_a_matcher_is_a_name_or_an_expression(matcher: str, matching: list[str], others: list[str]) -> None:
    (hook,) = read("droid", {"PreToolUse": [group(matcher)]}).hooks
    assert [name for name in (*matching, *others) if hook.matches(name)] == matching


def test_a_server_as_matcher_is_reported() -> None:
    (note,) = read("droid", {"PreToolUse": [group("mcp__files")]}).notes
    assert note.endswith("the matcher 'mcp__files' never matches mcp__files's tools: write mcp__files__.*")


@pytest.mark.parametrize(
    ("entry", "note"),
    [
        ({"type": "prompt", "prompt": "x"}, "is left out: type 'prompt' cannot run behind MCP"),
        ({"type": "command"}, "is left out: command is missing"),
        ({**GUARD, "timeout": 0}, "is left out: timeout must be more than 0 seconds"),
        ({**GUARD, "async": True}, "async is unknown and ignored"),
    ],
)
def test_what_cannot_run_is_reported(entry: dict[str, Any], note: str) -> None:
    found = read("droid", {"PreToolUse": [group("", entry)]})
    assert len(found.notes) == 1
    assert note in found.notes[0]


def test_hooks_can_be_switched_off() -> None:
    found = read("droid", {"hooksDisabled": True, "hooks": {"PreToolUse": [group()]}})
    assert (found.hooks, len(found.remarks)) == ((), 1)


def test_settings_without_hooks_are_reported() -> None:
    assert read("droid", {"model": "x"}, "/r/.factory/settings.json").remarks == (
        "/r/.factory/settings.json: contains no hooks",
    )


def loaded(folder: Path) -> set[str]:
    use = parse_option(f"droid={folder / '.factory'}", str(folder))
    return {one.group.source for one in read_use(use, FileContext({}, str(folder))) if one.group.source[-5:] == ".json"}


def test_in_a_folder_a_hooks_file_masks_the_settings(tmp_path: Path) -> None:
    folder = tmp_path / ".factory"
    folder.mkdir()
    (folder / "settings.json").write_text("{}")
    assert loaded(tmp_path) == {f"{folder}/settings.json"}
    (folder / "hooks.json").write_text("{}")
    (folder / "settings.local.json").write_text("{}")
    assert loaded(tmp_path) == {f"{folder}/hooks.json", f"{folder}/settings.local.json"}


def test_a_file_of_its_shape_elsewhere_is_claudes(tmp_path: Path) -> None:
    assert recognised(tmp_path / "hooks.json", {"hooks": {"PreToolUse": [group("Execute")]}}) == "claude"


def test_a_file_of_another_system_in_droids_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is in a folder of droid"):
        recognised(tmp_path / ".factory" / "hooks.json", {"hooks": {"SessionStart": ["./x.sh"]}})


@pytest.mark.parametrize(
    ("path", "root"),
    [("/p/audit/hooks/hooks.json", "/p/audit"), ("/repo/.factory/hooks/hooks.json", ""), ("/p/hooks.json", "")],
)
def test_a_plugins_hooks_find_its_folder(path: str, root: str) -> None:
    plugin = DROID.find_plugin(path, FileContext({}, "/repo"))
    assert (plugin.root if plugin else "") == root
    text = '{"PreToolUse":[{"hooks":[{"type":"command","command":"${DROID_PLUGIN_ROOT}/guard.sh"}]}]}'
    (hook,) = DROID.read_hook_file(HookFile(path, text, "/repo", plugin=plugin)).hooks
    assert dict(hook.env).get("DROID_PLUGIN_ROOT", "") == root


def test_a_group_with_a_condition_on_the_command_runs_for_every_command_and_says_so() -> None:
    found = read("droid", {"PreToolUse": [{**group("Execute"), "commandRegex": "^git "}]})
    assert len(found.hooks) == 1
    assert found.notes == (
        "/repo/hooks.json: PreToolUse[0].commandRegex is unknown and ignored: the hooks of the group run for every "
        "command of its tools",
    )


@pytest.mark.parametrize("shape", [lambda events: events, lambda events: {"hooks": events}])
def test_switches_beside_the_events_are_no_events(shape: Callable[[object], object], tmp_path: Path) -> None:
    switches = {"showHookOutput": True, "hooksDisabled": False}
    content = shape({"PreToolUse": [group("Execute")], **switches})
    assert recognised(tmp_path / ".factory/hooks.json", content) == "droid"
    found = read("droid", content)
    assert (len(found.hooks), found.notes, found.remarks) == (1, (), ())
    off = read("droid", shape({"PreToolUse": [group("Execute")], "hooksDisabled": True}))
    assert (off.hooks, len(off.remarks)) == ((), 1)
