"""Where hook files are found: in the folder of a plugin, of a project, and of the user with the installed plugins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hookproxy.config.load import Loaded, load, make_data_folders
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import HookSpec

GUARD = "python3 ${CLAUDE_PLUGIN_ROOT}/hooks/pretooluse.py"


def events(command: str = GUARD) -> dict[str, object]:
    return {"PreToolUse": [{"hooks": [{"type": "command", "command": command, "timeout": 10}]}]}


def write(path: Path, document: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def loaded(cwd: Path, home: Path, *hooks: str, **environ: str) -> Loaded:
    return load(None, hooks, None, {"HOME": str(home), **environ}, str(cwd))


def specs(found: Loaded) -> list[HookSpec]:
    return [spec for group in found.groups for spec in group.hooks]


def shells(found: Loaded) -> list[str]:
    return [spec.shell for spec in specs(found)]


# --- a plugin ---


@pytest.fixture
def hookify(tmp_path: Path) -> Path:
    """A plugin of the shape of hookify: a manifest, and hooks/hooks.json with scripts of its own."""
    root = tmp_path / "plugins" / "hookify"
    write(root / ".claude-plugin/plugin.json", {"name": "hookify", "version": "0.1.0", "author": {"name": "x"}})
    write(root / "hooks/hooks.json", {"description": "rules", "hooks": events()})
    return root


@pytest.mark.parametrize("named", ["claude={root}", "{root}", "claude={root}/", "claude={root}/hooks/hooks.json"])
def test_a_plugins_hooks_run_in_the_working_directory_and_find_their_plugin(
    cwd: Path, home: Path, hookify: Path, named: str
) -> None:
    found = loaded(cwd, home, named.format(root=hookify))
    (spec,) = specs(found)
    assert (spec.cwd, spec.shell, spec.label) == (str(cwd), GUARD, "pretooluse.py")
    assert dict(spec.env) == {
        "CLAUDE_PROJECT_DIR": str(cwd),
        "CLAUDE_PLUGIN_ROOT": str(hookify),
        "CLAUDE_PLUGIN_DATA": f"{home}/.claude/plugins/data/hookify-inline",
    }
    assert found.notes == ()


def test_the_data_folder_of_a_plugin_is_created(cwd: Path, home: Path, hookify: Path) -> None:
    found = loaded(cwd, home, f"claude={hookify}")
    assert make_data_folders(found) == []
    assert (home / ".claude/plugins/data/hookify-inline").is_dir()
    assert make_data_folders(found) == []


def test_a_data_folder_that_cannot_be_created_gets_a_note(cwd: Path, home: Path, hookify: Path) -> None:
    (home / ".claude").write_text("a file")
    (note,) = make_data_folders(loaded(cwd, home, f"claude={hookify}"))
    assert note.startswith(f"{home}/.claude/plugins/data/hookify-inline: cannot be created, so hooks of its plugin may")


def test_two_arguments_may_be_the_plugins_own_scripts(cwd: Path, home: Path, tmp_path: Path) -> None:
    """The shape of security-guidance: a launcher of the plugin starts a script of the plugin, for some tools only."""
    command = 'bash "${CLAUDE_PLUGIN_ROOT}/hooks/sg.sh" "${CLAUDE_PLUGIN_ROOT}/hooks/review.py"'
    hook = {"type": "command", "command": command}
    waking = {**hook, "if": "Bash(git push:*)", "asyncRewake": True, "rewakeMessage": "x", "rewakeSummary": "y"}
    groups = [{"hooks": [hook], "matcher": "Edit|Write"}, {"hooks": [waking], "matcher": "Bash"}]
    root = tmp_path / "security-guidance"
    write(root / "hooks/hooks.json", {"hooks": {"PostToolUse": groups, "Stop": [{"hooks": [hook]}]}})
    found = loaded(cwd, home, f"claude={root}")
    assert [(spec.label, spec.matcher, spec.background) for spec in specs(found)] == [
        ("sg.sh", "Edit|Write", False),
        ("sg.sh", "Bash", True),
    ]
    assert [note.partition(": `")[2] for note in found.notes] == [
        "asyncRewake` cannot wake the agent behind MCP: the hook only runs in the background"
    ]


def test_placeholders_are_replaced_in_commands_without_a_shell(cwd: Path, home: Path, hookify: Path) -> None:
    entry = {"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/run", "args": ["${CLAUDE_PLUGIN_DATA}/state", "$X"]}
    write(hookify / "hooks/hooks.json", {"hooks": {"PreToolUse": [{"hooks": [entry]}]}})
    (spec,) = specs(loaded(cwd, home, f"claude={hookify}"))
    assert spec.argv == (f"{hookify}/run", f"{home}/.claude/plugins/data/hookify-inline/state", "$X")


def test_a_relative_command_of_a_plugin_is_in_the_project(cwd: Path, home: Path, hookify: Path) -> None:
    direct = {"type": "command", "command": "./guard.sh", "args": []}
    write(hookify / "hooks/hooks.json", {"hooks": {"PreToolUse": [{"hooks": [direct]}]}})
    (spec,) = specs(loaded(cwd, home, f"claude={hookify}"))
    assert (spec.argv, spec.cwd) == ((f"{cwd}/guard.sh",), str(cwd))


@pytest.mark.parametrize(
    ("hooks", "commands"),
    [
        ("./config/more.json", ["default", "more"]),
        ("./hooks/hooks.json", ["default"]),
        (["./config/more.json", "./hooks/hooks.json"], ["default", "more"]),
        (events("inline"), ["default", "inline"]),
        ([events("inline"), "./config/more.json", events("second")], ["default", "inline", "second", "more"]),
    ],
)
def test_a_manifest_may_name_or_contain_more_hooks(
    cwd: Path, home: Path, hookify: Path, hooks: object, commands: list[str]
) -> None:
    write(hookify / "hooks/hooks.json", {"hooks": events("default")})
    write(hookify / "config/more.json", {"hooks": events("more")})
    write(hookify / ".claude-plugin/plugin.json", {"name": "own-name", "hooks": hooks})
    found = loaded(cwd, home, f"claude={hookify}")
    assert shells(found) == commands
    assert found.notes == ()
    assert {dict(spec.env)["CLAUDE_PLUGIN_ROOT"] for spec in specs(found)} == {str(hookify)}
    assert {dict(spec.env)["CLAUDE_PLUGIN_DATA"][-15:] for spec in specs(found)} == {"own-name-inline"}


@pytest.mark.parametrize(
    ("hooks", "why"),
    [
        ("./gone.json", "there is no such file"),
        ("./plugins/*/hooks", "there is no such file"),
        ("../../outside.json", "it is outside of the plugin"),
        ("/etc/passwd", "it is outside of the plugin"),
    ],
)
def test_a_hook_file_that_a_manifest_cannot_name_gets_a_note(
    cwd: Path, home: Path, hookify: Path, hooks: str, why: str
) -> None:
    manifest = write(hookify / ".claude-plugin/plugin.json", {"name": "hookify", "hooks": hooks})
    found = loaded(cwd, home, f"claude={hookify}")
    assert shells(found) == [GUARD]
    assert found.notes == (f"{manifest}: hooks {hooks!r} is left out: {why}",)


def test_a_plugin_without_hooks_gets_a_remark(cwd: Path, home: Path, tmp_path: Path) -> None:
    write(tmp_path / "skills/.claude-plugin/plugin.json", {"name": "skills"})
    found = loaded(cwd, home, f"claude={tmp_path}/skills")
    assert (found.groups, found.notes) == ((), ())
    assert found.remarks == (f"{tmp_path}/skills: contains no hooks",)


def test_a_plugin_that_is_named_and_cannot_be_read_is_an_error(cwd: Path, home: Path, hookify: Path) -> None:
    (hookify / "hooks/hooks.json").write_text("{")
    with pytest.raises(ConfigError, match="not JSON"):
        loaded(cwd, home, f"claude={hookify}")
    write(hookify / "hooks/hooks.json", {"hooks": events()})
    (hookify / ".claude-plugin/plugin.json").write_text("[]")
    with pytest.raises(ConfigError, match="must contain one JSON object"):
        loaded(cwd, home, f"claude={hookify}")


def test_the_settings_of_a_project_that_is_a_plugin_are_its_own(cwd: Path, home: Path) -> None:
    write(cwd / ".claude-plugin/plugin.json", {"name": "work"})
    write(cwd / ".claude/settings.json", {"hooks": events("true")})
    (spec,) = specs(loaded(cwd, home, "claude=.claude/settings.json"))
    assert dict(spec.env) == {"CLAUDE_PROJECT_DIR": str(cwd)}


# --- a project ---


def test_the_folder_of_a_project_is_both_of_its_settings_files(cwd: Path, home: Path) -> None:
    project = cwd / "sub"
    write(project / ".claude/settings.json", {"hooks": events("shared")})
    write(project / ".claude/settings.local.json", {"hooks": events("local")})
    write(project / ".claude/launch.json", {"version": "0.0.1"})
    found = loaded(cwd, home, "claude=sub/.claude")
    assert shells(found) == ["shared", "local"]
    assert {spec.cwd for spec in specs(found)} == {str(project)}


# --- the user's folder ---


@pytest.fixture
def user(home: Path) -> Path:
    """`~/.claude` with four installed plugins, of which two are switched on."""
    folder = home / ".claude"
    installed: dict[str, object] = {}
    for name in ("on", "off", "unset", "also"):
        root = folder / "plugins/cache/market" / name / "1.0"
        write(root / ".claude-plugin/plugin.json", {"name": name})
        write(root / "hooks/hooks.json", {"hooks": events(name)})
        installed[f"{name}@market"] = [{"scope": "user", "installPath": str(root), "version": "1.0"}]
    write(folder / "plugins/installed_plugins.json", {"version": 2, "plugins": installed})
    write(
        folder / "settings.json",
        {"hooks": events("settings"), "enabledPlugins": {"on@market": True, "off@market": True, "also@market": True}},
    )
    write(folder / "settings.local.json", {"hooks": events("local"), "enabledPlugins": {"off@market": False}})
    return folder


@pytest.mark.parametrize("named", ["claude=~/.claude", "claude={user}", "~/.claude"])
def test_the_users_folder_is_the_settings_and_the_plugins_that_are_switched_on(
    cwd: Path, home: Path, user: Path, named: str
) -> None:
    found = loaded(cwd, home, named.format(user=user))
    assert shells(found) == ["settings", "local", "on", "also"]
    assert found.notes == ()
    assert {spec.cwd for spec in specs(found)} == {str(cwd)}
    data = {spec.shell: dict(spec.env).get("CLAUDE_PLUGIN_DATA") for spec in specs(found)}
    assert data["on"] == f"{user}/plugins/data/on-market"
    assert data["settings"] is None


def test_another_configuration_folder_is_the_users_folder(cwd: Path, home: Path, user: Path) -> None:
    other = user.rename(home / "elsewhere")
    path = other / "plugins/installed_plugins.json"
    path.write_text(path.read_text().replace(str(user), str(other)))
    assert shells(loaded(cwd, home, f"claude={other}", CLAUDE_CONFIG_DIR=str(other))) == [
        "settings", "local", "on", "also",
    ]  # fmt: skip


def test_the_settings_file_alone_has_no_plugins(cwd: Path, home: Path, user: Path) -> None:
    assert shells(loaded(cwd, home, f"claude={user}/settings.json")) == ["settings"]


@pytest.mark.parametrize("file", ["settings.json", "settings.local.json"])
def test_disabled_hooks_of_the_user_are_those_of_plugins_too(cwd: Path, home: Path, user: Path, file: str) -> None:
    write(user / file, {**json.loads((user / file).read_text()), "disableAllHooks": True})
    found = loaded(cwd, home, "claude=~/.claude")
    assert (found.groups, found.notes) == ((), ())
    assert found.remarks == (f"{user}/{file}: disableAllHooks is true, so no hooks of {user} and of plugins run",)


def test_a_plugin_that_is_switched_on_and_not_installed_gets_a_note(cwd: Path, home: Path, user: Path) -> None:
    write(user / "settings.json", {"enabledPlugins": {"gone@market": True, "on@market": True}})
    (user / "plugins/cache/market/on").rename(user / "moved")
    found = loaded(cwd, home, "claude=~/.claude")
    place = f"{user}/settings.json: enabledPlugins switches on"
    assert found.notes == (
        f"{place} 'gone@market', whose hooks do not run: it is not installed",
        f"{place} 'on@market', whose hooks do not run: there is no folder {user}/plugins/cache/market/on/1.0",
    )


@pytest.mark.parametrize("file", ["hooks/hooks.json", ".claude-plugin/plugin.json"])
def test_an_installed_plugin_that_cannot_be_read_does_not_stop_the_others(
    cwd: Path, home: Path, user: Path, file: str
) -> None:
    path = user / "plugins/cache/market/on/1.0" / file
    path.write_text("{")
    found = loaded(cwd, home, "claude=~/.claude")
    assert shells(found) == ["settings", "local", "also"]
    (note,) = found.notes
    assert note.startswith(f"{path}:1: not JSON")
    assert "do not run" in note


def test_a_plugin_of_this_project_is_preferred_and_one_of_another_project_is_not_used(
    cwd: Path, home: Path, user: Path
) -> None:
    path = user / "plugins/installed_plugins.json"
    roots = {name: str(user / f"plugins/cache/market/{name}/1.0") for name in ("on", "also", "unset")}
    here, elsewhere = {"scope": "project", "projectPath": str(cwd)}, {"scope": "project", "projectPath": "/elsewhere"}
    entries = {
        "on@market": [{"scope": "user", "installPath": roots["on"]}, {**here, "installPath": roots["unset"]}],
        "also@market": [{**elsewhere, "installPath": roots["also"]}],
    }
    write(path, {"version": 2, "plugins": entries})
    found = loaded(cwd, home, "claude=~/.claude")
    assert shells(found) == ["settings", "local", "unset"]
    assert "'also@market', whose hooks do not run: it is not installed" in found.notes[-1]


def test_the_older_list_of_plugins_is_read(cwd: Path, home: Path, user: Path) -> None:
    root = str(user / "plugins/cache/market/on/1.0")
    write(user / "plugins/installed_plugins.json", {"version": 1, "plugins": {"on@market": {"installPath": root}}})
    write(user / "settings.json", {"enabledPlugins": {"on@market": True}})
    assert shells(loaded(cwd, home, "claude=~/.claude")) == ["local", "on"]


def test_a_users_folder_without_plugins_is_its_settings(cwd: Path, home: Path) -> None:
    write(home / ".claude/settings.json", {"hooks": events("true"), "model": "x"})
    found = loaded(cwd, home, "claude=~/.claude")
    assert (shells(found), found.notes, found.remarks) == (["true"], (), ())
