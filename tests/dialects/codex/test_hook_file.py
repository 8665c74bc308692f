"""Codex's hooks.json and config.toml: the shapes of published files, recognition, and what is told about the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.config.hook_files import parse_option, read_use
from hookproxy.dialects.codex import DIALECT as CODEX
from hookproxy.dialects.dialect import HookFile
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event
from hookproxy.trust.sources import FileContext
from tests.dialects.calls import inputs, read, recognised

GUARD: Final = {"type": "command", "command": "python3 guard.py"}


def group(matcher: str | None = None, *entries: dict[str, Any]) -> dict[str, Any]:
    return {**({} if matcher is None else {"matcher": matcher}), "hooks": list(entries or (GUARD,))}


PUBLISHED: Final[dict[str, tuple[Any, int]]] = {
    # a planner's file: permissions, texts for the status line, another command for Windows
    "planner": (
        {
            "hooks": {
                "SessionStart": [group("startup|resume", {**GUARD, "timeout": 10, "statusMessage": "Loading"})],
                "UserPromptSubmit": [group(None)],
                "PreToolUse": [group("Bash|apply_patch", {**GUARD, "commandWindows": "py guard.py"})],
                "PermissionRequest": [group("Bash")],
                "PostToolUse": [group("apply_patch")],
                "Stop": [group(None)],
            }
        },
        4,
    ),
    # a framework's file: one guard for each of several tools
    "framework": ({"hooks": {"PreToolUse": [group("^Bash$"), group("Edit|Write")], "Stop": [group()]}}, 2),
    # the positive case of the published JSON schema
    "schema": (
        {
            "description": "Guards",
            "hooks": {
                "PreToolUse": [group("^mcp__.*", {**GUARD, "async": False, "additionalContextLimit": 2500})],
                "PostToolUse": [
                    group("", {"type": "mcp_tool", "server": "s", "tool": "t", "input": {"a": "${tool_name}"}})
                ],
                "SessionEnd": [group(None, {**GUARD, "timeout": 2})],
            },
        },
        3,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_shapes_of_published_files_load_whole(name: str, tmp_path: Path) -> None:
    content, hooks = PUBLISHED[name]
    assert recognised(tmp_path / ".codex" / "hooks.json", content) == "codex"
    found = read("codex", content)
    assert len(found.hooks) == hooks
    assert found.notes == ()
    assert len(found.remarks) == len(set(content["hooks"]) - set(CODEX.events))


@pytest.mark.parametrize("key", ["version", "$schema", "hook"])
def test_another_key_at_the_root_is_an_error_because_codex_refuses_the_file(key: str) -> None:
    with pytest.raises(ConfigError, match=f"{key.replace('$', '.')} is not allowed here, and Codex refuses") as caught:
        read("codex", {key: 1, "hooks": {"PreToolUse": [group()]}})
    assert caught.value.hint == f"remove {key!r}"


def test_a_handler_without_a_type_is_left_out_and_reported() -> None:
    found = read("codex", {"hooks": {"PreToolUse": [group("", {"command": "x"}, GUARD)]}})
    assert len(found.hooks) == 1
    assert "hooks.PreToolUse[0].hooks[0] is left out: type is missing" in found.notes[0]


TOML: Final = """
model = "gpt-5.2-codex"
[mcp_servers.files]
command = "npx"
[[hooks.PreToolUse]]
matcher = "mcp__files__.*"
[[hooks.PreToolUse.hooks]]
type = "command"
command = "python3 guard.py"
timeout = 30
[hooks.state."/repo/hooks.json:0"]
trusted_hash = "sha256:1"
"""


def test_the_tables_of_a_config_toml_are_hooks(tmp_path: Path) -> None:
    assert recognised(tmp_path / ".codex" / "config.toml", TOML) == "codex"
    found = read("codex", TOML, "/repo/.codex/config.toml")
    (hook,) = found.hooks
    assert (hook.event, hook.timeout, hook.source) == (
        Event.PRE_TOOL_USE,
        30,
        "/repo/.codex/config.toml: hooks.PreToolUse[0].hooks[0]",
    )
    assert (found.notes, found.remarks) == ((), ())


def test_hooks_can_be_switched_off() -> None:
    found = read("codex", f"{TOML}[features]\nhooks = false\n", "/repo/.codex/config.toml")
    assert found.hooks == ()
    assert found.remarks == ("/repo/.codex/config.toml: [features] hooks is false, so none of its hooks run",)


def test_a_folder_of_codex_is_its_two_hook_files_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / ".codex"
    folder.mkdir()
    (folder / "hooks.json").write_text('{"hooks": {}}')
    (folder / "config.toml").write_text(TOML)
    (folder / "auth.json").write_text("not to be read")
    loaded = list(read_use(parse_option(f"codex={folder}", str(tmp_path)), FileContext({}, str(tmp_path))))
    assert sum(len(one.group.hooks) for one in loaded) == 1
    assert {one.group.source for one in loaded} == {str(folder), f"{folder}/hooks.json", f"{folder}/config.toml"}


def test_the_same_file_elsewhere_is_claudes_and_people_are_told(tmp_path: Path) -> None:
    content = PUBLISHED["framework"][0]
    path = tmp_path / "hooks.json"
    assert recognised(path, content) == "claude"
    (loaded,) = read_use(parse_option(str(path), str(tmp_path)), FileContext({}, str(tmp_path)))
    (remark,) = [remark for remark in loaded.remarks if "read as a hook file of claude" in remark]
    assert "codex" in remark.partition("if it is one of")[2]


def test_a_file_of_another_system_in_codexs_folder_is_an_error_that_names_both(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has the format of lime, but is in a folder of codex"):
        recognised(tmp_path / ".codex" / "hooks.json", {"hooks": {"SessionStart": ["./x.sh"]}})


# --- entries ---


def test_an_entry_is_a_hook_of_bash_whatever_shell_the_environment_names() -> None:
    text = '{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"x y"}]}]}}'
    file = HookFile("/repo/.codex/hooks.json", text, "/repo", environ={"SHELL": "/bin/true"})
    (hook,) = CODEX.read_hook_file(file).hooks
    assert (hook.argv, hook.shell, hook.cwd, hook.timeout) == (("bash", "-c", "x y"), "", "/repo", 600.0)
    assert not hook.background


@pytest.mark.parametrize(("timeout", "seconds"), [(None, 1.0), (2, 2.0), (30, 3.0)])
def test_hooks_at_the_end_have_three_seconds_at_most(timeout: int | None, seconds: float) -> None:
    entry = GUARD if timeout is None else {**GUARD, "timeout": timeout}
    (hook,) = read("codex", {"hooks": {"SessionEnd": [group(None, entry)]}}).hooks
    assert hook.timeout == seconds


@pytest.mark.parametrize("event", ["PreToolUse", "SessionEnd"])
def test_a_timeout_of_0_is_one_second_as_in_codex(event: str) -> None:
    found = read("codex", {"hooks": {event: [group(None, {**GUARD, "timeout": 0})]}})
    assert ([hook.timeout for hook in found.hooks], found.notes) == ([1.0], ())


@pytest.mark.parametrize("timeout", [-1, False, "0"])
def test_a_timeout_that_codex_cannot_read_leaves_its_entry_out(timeout: object) -> None:
    found = read("codex", {"hooks": {"PreToolUse": [group(None, {**GUARD, "timeout": timeout})]}})
    assert found.hooks == ()
    assert "timeout must be" in found.notes[0]


def test_an_async_hook_runs_in_the_background() -> None:
    (hook,) = read("codex", {"hooks": {"PreToolUse": [group("", {**GUARD, "async": True})]}}).hooks
    assert hook.background


@pytest.mark.parametrize(
    ("entry", "note"),
    [
        ({"type": "prompt", "prompt": "x"}, "is left out: type 'prompt' is not supported: Codex skips it, too"),
        ({"type": "command", "commandWindows": "x"}, "does not run: it is for Windows only"),
        ({**GUARD, "commandWindows": "x", "command_windows": "y"}, "is left out: command_windows is the same as"),
        ({"type": "command", "command": " "}, "is left out: command is empty"),
        ({"type": "mcp_tool", "server": "s"}, "is left out: tool is missing"),
    ],
)
def test_an_entry_that_cannot_run_is_left_out_and_the_others_run(entry: dict[str, Any], note: str) -> None:
    found = read("codex", {"hooks": {"PreToolUse": [group("", entry, GUARD)]}})
    assert len(found.hooks) == 1
    assert len(found.notes) == 1
    assert note in found.notes[0]


# --- matchers ---


@pytest.mark.parametrize(
    ("matcher", "matching", "others"),
    [
        ("", ["anything"], []),
        ("*", ["anything"], []),
        ("mcp__files__read", ["mcp__files__read"], ["mcp__files__read_all"]),
        ("Bash|shell", ["Bash", "shell"], ["Bashful", "BASH"]),
        ("mcp__my-server__", ["mcp__my-server__read", "mcp__my_server__read"], ["mcp__myserver__read"]),
        ("mcp__my-x[a-c]_", ["mcp__my_xb_"], ["mcp__my_x-_"]),
        ("^mcp__.*__read$", ["mcp__files__read"], ["mcp__files__read_all"]),
        (r"\Aap{2}ly", ["apply_patch"], ["xapply"]),
        ("Edit", ["Edit", "apply_patch"], ["MultiEdit"]),
        ("^(Write|Edit)$", ["apply_patch", "Write"], ["apply_patches"]),
        ("mcp__memory", [], ["mcp__memory__read"]),
    ],
)
def test_a_matcher_is_a_list_of_names_or_an_expression(matcher: str, matching: list[str], others: list[str]) -> None:
    (hook,) = read("codex", {"hooks": {"PreToolUse": [group(matcher)]}}).hooks
    assert [name for name in (*matching, *others) if hook.matches(name)] == matching


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("files", "read", "mcp__files__read"),
        ("my-server", "get-file.v2", "mcp__my_server__get_file_v2"),
        ("mcp__files", "read", "mcp__files__read"),
        ("files_", "_read", "mcp__files__read"),
    ],
)
def test_names_of_servers_tools_are_composed_as_codex_does(server: str, tool: str, name: str) -> None:
    assert CODEX.mcp_tool_name(server, tool) == name


@pytest.mark.parametrize("matcher", ["mcp__files__delete_all", "^mcp__files__delete-all$"])
def test_a_hook_for_a_tool_whose_name_has_a_hyphen_runs_under_codexs_name_of_it(matcher: str) -> None:
    (seen,) = inputs(read("codex", {"hooks": {"PreToolUse": [group(matcher)]}}), "delete-all")
    assert seen.tool_name == "mcp__files__delete_all"


def test_a_matcher_that_rust_cannot_read_leaves_its_group_out() -> None:
    found = read("codex", {"hooks": {"PreToolUse": [group("(?!mcp)"), group("Bash")]}})
    assert len(found.hooks) == 1
    assert "'(?!mcp)' cannot be used" in found.notes[0]


@pytest.mark.parametrize("matcher", [r"\p{Lu}ash", "(?x) mcp__ .*", "mcp__(?i)FILES"])
def test_a_matcher_that_only_rust_can_read_matches_every_tool(matcher: str) -> None:
    found = read("codex", {"hooks": {"PreToolUse": [group(matcher)]}})
    assert found.hooks[0].matches("mcp__files__read")
    assert "cannot be read here, so the hook runs for every tool" in found.notes[0]


@pytest.mark.parametrize(
    ("event", "matcher", "note"),
    [
        ("PreToolUse", "mcp__memory", "never matches mcp__memory's tools: write mcp__memory__.*"),
        ("SessionStart", "resume|clear", "never matches: behind MCP, the only source is startup"),
    ],
)
def test_a_matcher_that_never_matches_is_reported(event: str, matcher: str, note: str) -> None:
    found = read("codex", {"hooks": {event: [group(matcher)]}})
    assert [one.endswith(note) for one in found.notes] == [True]


# --- plugins ---


def test_a_plugins_hooks_find_its_files(tmp_path: Path) -> None:
    (tmp_path / ".codex-plugin").mkdir()
    (tmp_path / ".codex-plugin" / "plugin.json").write_text("{}")
    (tmp_path / "hooks").mkdir()
    path = tmp_path / "hooks" / "hooks.json"
    path.write_text('{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "$PLUGIN_ROOT/x"}]}]}}')
    (loaded,) = read_use(parse_option(f"codex={path}", str(tmp_path)), FileContext({}, str(tmp_path)))
    (hook,) = loaded.group.hooks
    assert dict(hook.env) == {"PLUGIN_ROOT": str(tmp_path), "CLAUDE_PLUGIN_ROOT": str(tmp_path)}


def test_a_command_that_needs_the_folder_of_a_plugins_data_is_told_that_there_is_none() -> None:
    found = read("codex", {"hooks": {"PreToolUse": [group("", {**GUARD, "command": "${PLUGIN_DATA}/guard"}, GUARD)]}})
    (note,) = found.notes
    assert "hooks[0]: PLUGIN_DATA is not set" in note


def test_a_manifest_may_have_the_hooks_or_name_their_file() -> None:
    path = "/p/.codex-plugin/plugin.json"
    assert len(read("codex", {"name": "p", "hooks": {"PreToolUse": [group()]}}, path).hooks) == 1
    assert read("codex", {"name": "p", "hooks": "./hooks.json"}, path).notes == (
        f"{path}: hooks names other files, which are not read: name them, too",
    )


def test_agents_that_are_codex_are_warned_about() -> None:
    assert DIALECTS["codex"].agents == ("codex-mcp-client",)


@pytest.mark.parametrize("event", ["StopFailure", "PreModelRequest", "PostModelResponse", "UserInstructions"])
def test_events_that_only_codex_sees_cannot_fire(event: str) -> None:
    found = read("codex", {"hooks": {event: [group()], "PreToolUse": [group()]}})
    assert [hook.event for hook in found.hooks] == [Event.PRE_TOOL_USE]
    assert f"hooks.{event} cannot fire behind MCP" in found.remarks[0]
