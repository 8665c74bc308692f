"""Qwen Code's settings files: the shapes of published files, recognition, and what is told about the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.dialects.dialect import Group
from hookproxy.dialects.qwen import DIALECT as QWEN
from hookproxy.hooks.familiar_tools import FamiliarTools
from hookproxy.hooks.select import HookGroups
from hookproxy.jsonrpc import raw_json
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event, EventContext
from hookproxy.model.settings import SeenNames
from tests.dialects.calls import SESSION, read, recognised

GUARD: Final = {"type": "command", "command": "./guard.sh"}


def group(matcher: str | None = None, *entries: dict[str, Any], **more: bool) -> dict[str, Any]:
    return {**({} if matcher is None else {"matcher": matcher}), "hooks": list(entries or (GUARD,)), **more}


def one(entry: dict[str, Any], event: str = "PreToolUse") -> dict[str, object]:
    return {"hooks": {event: [group("", entry)]}}


PUBLISHED: Final[dict[str, tuple[Any, int]]] = {
    # the hooks page's examples: a security check, an audit by HTTP, an adapter that asks a program to judge
    "security": (
        {
            "hooks": {
                "PreToolUse": [
                    group(
                        "^(run_shell_command|edit)$", {**GUARD, "name": "security", "timeout": 10000}, sequential=True
                    )
                ]
            }
        },
        1,
    ),
    "audit": (
        {
            "hooks": {
                "PostToolUse": [
                    group(
                        "*",
                        {"type": "http", "url": "https://audit.example/hooks", "headers": {"A": "b"}, "timeout": 10},
                    )
                ],
                "UserPromptSubmit": [group()],
            }
        },
        1,
    ),
    "judgment": (
        {
            "model": {"name": "x"},
            "hooks": {
                "PreToolUse": [group("Bash|WriteFile", {**GUARD, "description": "judges", "statusMessage": "…"})],
                "PermissionRequest": [group(None, {**GUARD, "timeout": 30})],
                "Stop": [group()],
            },
        },
        2,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_shapes_of_published_files_load_whole(name: str, tmp_path: Path) -> None:
    content, hooks = PUBLISHED[name]
    assert recognised(tmp_path / ".qwen" / "settings.json", content) == "qwen"
    found = read("qwen", content)
    assert len(found.hooks) == hooks
    assert found.notes == ()
    assert len(found.remarks) == len([event for event in content["hooks"] if event in QWEN.unavailable])


def test_an_entry_is_a_hook_of_bash_that_finds_the_project() -> None:
    (hook,) = read("qwen", one({**GUARD, "env": {"MODE": "strict"}})).hooks
    assert (hook.event, hook.cwd, hook.argv) == (Event.PRE_TOOL_USE, "/repo", ("bash", "-c", "./guard.sh"))
    assert dict(hook.env) == {
        "QWEN_PROJECT_DIR": "/repo",
        "CLAUDE_PROJECT_DIR": "/repo",
        "GEMINI_PROJECT_DIR": "/repo",
        "MODE": "strict",
    }
    assert (hook.background, hook.fails_closed, hook.sequential) == (False, False, False)


@pytest.mark.parametrize(
    ("command", "args", "argv"),
    [
        ("node", ["./guard.cjs", "$HOME", "a b"], ("node", "./guard.cjs", "$HOME", "a b")),
        ("./guards/my guard.sh", [], ("/repo/guards/my guard.sh",)),
    ],
)
def test_an_entry_with_args_is_a_program_that_no_shell_starts(
    command: str, args: list[str], argv: tuple[str, ...]
) -> None:
    entry = {**GUARD, "command": command, "args": args, "shell": "powershell", "env": {"MODE": "strict"}}
    found = read("qwen", one(entry))
    assert [(hook.argv, hook.shell, dict(hook.env)["MODE"]) for hook in found.hooks] == [(argv, "", "strict")]
    assert found.notes == ()


@pytest.mark.parametrize(
    ("condition", "command", "runs"),
    [
        ("Bash(rm *)", "rm -r x", True),
        ("Bash(rm *)", "ls", False),
        ("run_shell_command(rm *)", "rm -r x", True),
        ("run_shell_command(rm *)", "ls", False),
        ("write_file", "rm -r x", False),
    ],
)
def test_a_hook_with_a_condition_runs_for_the_calls_that_it_names(condition: str, command: str, runs: bool) -> None:
    found = read("qwen", one({**GUARD, "if": condition}))
    assert found.notes == ()
    group = Group(QWEN, "f", found.hooks, QWEN.tool_names, names=SeenNames.BOTH)
    groups = HookGroups([group], "files", (), FamiliarTools())
    arguments = raw_json.encode({"command": command})
    alias = groups.alias("run_command", arguments)
    context = EventContext(Event.PRE_TOOL_USE, SESSION, "run_command", arguments=arguments, alias=alias)
    assert any(selected.applicable(context) for selected in groups.select_for(context)) is runs


@pytest.mark.parametrize(
    ("timeout", "seconds"), [(None, 60.0), (1, 1.0), (60, 60.0), (999, 999.0), (1000, 1.0), (60000, 60.0)]
)
def test_a_timeout_of_1000_or_more_is_in_milliseconds(timeout: int | None, seconds: float) -> None:
    (hook,) = read("qwen", one(GUARD if timeout is None else {**GUARD, "timeout": timeout})).hooks
    assert hook.timeout == seconds


@pytest.mark.parametrize(("timeout", "seconds"), [({}, 600.0), ({"timeout": 30}, 30.0)])
def test_the_timeout_of_an_http_hook_is_in_seconds(timeout: dict[str, int], seconds: float) -> None:
    (hook,) = read("qwen", one({"type": "http", "url": "https://example.com/x", **timeout})).hooks
    assert (hook.timeout, hook.type, hook.url) == (seconds, "http", "https://example.com/x")


def test_a_hook_may_fail_closed_run_in_the_background_or_one_after_another() -> None:
    assert read("qwen", one({**GUARD, "failMode": "closed"})).hooks[0].fails_closed
    assert read("qwen", one({**GUARD, "async": True})).hooks[0].background
    assert read("qwen", {"hooks": {"PreToolUse": [group("", sequential=True)]}}).hooks[0].sequential


@pytest.mark.parametrize(
    ("matcher", "matching", "others"),
    [
        ("", ["anything"], []),
        (" * ", ["anything"], []),
        (".*", ["anything"], []),
        ("Bash", ["run_shell_command", "Bash"], ["bash"]),
        ("Bash | Read", ["run_shell_command", "read_file"], ["write_file"]),
        ("edit", ["edit", "notebook_edit"], ["write_file"]),
        ("^edit$", ["edit"], ["notebook_edit"]),
        ("mcp__files__", ["mcp__files__read"], ["mcp__other__read"]),
        ("[", ["["], ["read_file"]),
    ],
)
def test_a_matcher_is_a_name_a_list_or_an_expression(matcher: str, matching: list[str], others: list[str]) -> None:
    (hook,) = read("qwen", {"hooks": {"PreToolUse": [group(matcher)]}}).hooks
    assert [name for name in (*matching, *others) if hook.matches(name)] == matching


def test_a_matcher_that_is_no_expression_is_reported() -> None:
    (note,) = read("qwen", {"hooks": {"PreToolUse": [group("read(")]}}).notes
    assert "the matcher 'read(' is not a regular expression" in note


@pytest.mark.parametrize(
    ("entry", "note"),
    [
        (
            {"type": "prompt", "prompt": "x"},
            "does not run: type 'prompt' is not supported: hookproxy has no model to ask",
        ),
        ({**GUARD, "shell": "powershell"}, "is left out: shell is PowerShell"),
        ({**GUARD, "failMode": "shut"}, "is left out: failMode must be one of open, closed"),
        ({**GUARD, "args": "x"}, "is left out: args must be a list, not a string"),
        ({**GUARD, "if": "Bash(a"}, "is left out: if 'Bash(a' cannot be used"),
        ({**GUARD, "env": {"A": 1}}, "is left out: env.A must be a string"),
        ({**GUARD, "timeout": "5"}, "is left out: timeout must be a number"),
        ({**GUARD, "matcher": "x"}, "matcher is unknown and ignored"),
    ],
)
def test_what_cannot_run_is_reported(entry: dict[str, Any], note: str) -> None:
    found = read("qwen", one(entry))
    assert len(found.notes) == 1
    assert note in found.notes[0]


def test_a_condition_is_only_for_events_of_calls() -> None:
    found = read("qwen", one({**GUARD, "if": "Bash"}, "SessionStart"))
    assert found.hooks == ()
    assert "is left out: if is only for events of calls, and SessionStart has none" in found.notes[0]


def test_hooks_can_be_switched_off_and_settings_may_have_comments() -> None:
    found = read("qwen", '{"disableAllHooks": true, // for now\n "hooks": {"PreToolUse": [{"hooks": []},]},}')
    assert (found.hooks, len(found.remarks)) == ((), 1)


def test_a_file_of_its_shape_elsewhere_is_claudes(tmp_path: Path) -> None:
    assert recognised(tmp_path / "settings.json", {"hooks": {"PreToolUse": [group("Bash")]}}) == "claude"


def test_a_file_of_another_system_in_qwens_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is in a folder of qwen"):
        recognised(tmp_path / ".qwen" / "settings.json", {"hooks": {"SessionStart": ["./x.sh"]}})


@pytest.mark.parametrize(
    "matcher", ["mcp__my.files__notes.read", "mcp__my_files__notes_read", "^mcp__my_files__notes_"]
)
def test_a_matcher_may_spell_dots_in_names_either_way(matcher: str) -> None:
    (hook,) = read("qwen", {"hooks": {"PreToolUse": [group(matcher)]}}).hooks
    assert hook.matches(QWEN.mcp_tool_name("my.files", "notes.read"))
