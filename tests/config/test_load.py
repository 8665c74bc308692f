"""Which files are loaded, from where and in which order, and the errors about unusable files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from hookproxy.config.load import DEFAULT_AUDIT, Loaded, load
from hookproxy.dialects.dialect import Group
from hookproxy.model.errors import ConfigError, UserError
from hookproxy.model.hooks import Event
from hookproxy.model.settings import Arguments, ConsoleUse, Delivery, OnAsk, OnFailure, Results, Settings, ToolNames

DEFAULTS = Settings(
    audit_file="/state/hookproxy/audit.jsonl",
    audit_default=True,
    **DEFAULT_AUDIT,  # type: ignore[arg-type]  # settings by name
)


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def settings_json(*commands: str) -> str:
    """A hook file as Claude Code has it, with one PreToolUse hook for each command."""
    hooks = [{"type": "command", "command": command} for command in commands]
    return json.dumps({"hooks": {"PreToolUse": [{"matcher": "*", "hooks": hooks}]}})


def loaded(
    cwd: Path,
    *,
    config: str | None = None,
    hooks: Sequence[str] = (),
    audit: str | None = None,
    **environ: str,
) -> Loaded:
    return load(config, hooks, audit, {**os.environ, "XDG_STATE_HOME": "/state", **environ}, str(cwd))


def commands(groups: Sequence[Group]) -> list[str]:
    return [hook.label for group in groups for hook in group.hooks]


def project_dir(group: Group) -> str:
    """The project folder in the environment of the group's hooks."""
    return dict(group.hooks[0].env)["CLAUDE_PROJECT_DIR"]


def refusal(cwd: Path, text: str | bytes) -> ConfigError:
    """The error about a hookproxy.toml with this text."""
    write(cwd / "hookproxy.toml", text)
    with pytest.raises(ConfigError) as caught:
        loaded(cwd, config="hookproxy.toml")
    return caught.value


# --- which files ---


def test_without_anything_named_nothing_is_loaded(cwd: Path) -> None:
    write(cwd / "hookproxy.toml", "nonsense")
    write(cwd / ".claude" / "settings.json", settings_json("guard"))
    assert loaded(cwd) == Loaded(DEFAULTS, (), ())


def test_the_users_own_file_is_loaded_if_no_file_is_named(cwd: Path, home: Path) -> None:
    write(home / ".config/hookproxy/hookproxy.toml", 'on_ask = "deny"')
    assert loaded(cwd).settings.on_ask is OnAsk.DENY
    assert loaded(cwd, XDG_CONFIG_HOME="").settings.on_ask is OnAsk.DENY
    assert loaded(cwd, XDG_CONFIG_HOME="relative").settings.on_ask is OnAsk.DENY
    assert loaded(cwd, XDG_CONFIG_HOME=str(cwd)).settings == DEFAULTS


def test_a_named_file_replaces_the_users_own_file(cwd: Path, home: Path) -> None:
    write(home / ".config/hookproxy/hookproxy.toml", "nonsense")
    write(cwd / "other.toml", "")
    assert loaded(cwd, config="other.toml").settings == DEFAULTS


def test_a_users_own_file_that_cannot_be_read_stops_start_up(cwd: Path, home: Path) -> None:
    folder = home / ".config" / "hookproxy"
    folder.mkdir(parents=True)
    (folder / "hookproxy.toml").symlink_to("gone.toml")
    with pytest.raises(ConfigError, match="there is no such file"):
        loaded(cwd)


def test_every_setting_is_read(cwd: Path) -> None:
    text = """
        on_failure = "deny"
        on_ask = "allow"
        feedback = "text"
        max_message_bytes = 4096
        max_depth = 32
        strict = true
        [audit]
        file = "log/audit.jsonl"
        required = true
        arguments = "digest"
        calls = "all"
        [permissions]
        allow = ["read_*"]
        ask = ["write_*", "Bash(git push:*)"]
        deny = ["delete_*"]
        hide_denied = false
    """
    write(cwd / "sub" / "hookproxy.toml", text)
    assert loaded(cwd, config="sub/hookproxy.toml").settings == Settings(
        on_failure=OnFailure.DENY,
        on_ask=OnAsk.ALLOW,
        feedback=Delivery.TEXT,
        max_message_bytes=4096,
        max_depth=32,
        strict=True,
        audit_file=str(cwd / "sub" / "log" / "audit.jsonl"),
        audit_required=True,
        audit_arguments=Arguments.DIGEST,
        audit_all_calls=True,
        allow=("read_*",),
        ask=("write_*", "Bash(git push:*)"),
        deny=("delete_*",),
        rule_places={
            f"{kind} {rule}": f"{cwd}/sub/hookproxy.toml:{line}: permissions.{key}"
            for line, kind, key, rule in (
                (16, "deny", "deny[0]", "delete_*"),
                (15, "ask", "ask[0]", "write_*"),
                (15, "ask", "ask[1]", "Bash(git push:*)"),
                (14, "allow", "allow[0]", "read_*"),
            )
        },
        hide_denied=False,
    )


def test_groups_are_ordered_use_tables_then_own_hooks_then_command_line(cwd: Path) -> None:
    for name in ("one", "two", "three", "four"):
        write(cwd / f"{name}.json", settings_json(f"./{name}.sh"))
    text = """
        [[hooks.PreToolUse]]
        command = "./own.sh"
        [[use]]
        file = "one.json"
        dialect = "claude"
        [[use]]
        file = "two.json"
    """
    write(cwd / "hookproxy.toml", text)
    found = loaded(cwd, config="hookproxy.toml", hooks=["three.json", "claude=four.json"])
    assert commands(found.groups) == ["one.sh", "two.sh", "own.sh", "three.sh", "four.sh"]


# --- [[use]] and --hooks ---


def test_a_use_table_sets_tool_names_and_on_failure(cwd: Path) -> None:
    write(cwd / "a.json", settings_json("guard"))
    write(cwd / "hookproxy.toml", '[[use]]\nfile = "a.json"\ntool_names = "bare"\non_trouble = "deny"\n')
    (group,) = loaded(cwd, config="hookproxy.toml").groups
    assert (group.tool_names, group.on_failure) == (ToolNames.BARE, OnFailure.DENY)


def test_hooks_see_values_of_secrets_only_where_their_table_says_so(cwd: Path) -> None:
    write(cwd / "settings.json", settings_json("guard"))
    text = '[[use]]\nfile = "settings.json"\n{}\n[[hooks.PreToolUse]]\ncommand = "own"\n{}\n'
    for line, sees in (('secrets = "values"', True), ('secrets = "placeholders"', False), ("", False)):
        write(cwd / "hookproxy.toml", text.format(line, line))
        groups = loaded(cwd, config="hookproxy.toml").groups
        assert [spec.sees_values for group in groups for spec in group.hooks] == [sees, sees]
    assert "secrets" in refusal(cwd, text.format("", 'secrets = "some"')).message


def test_without_a_use_table_a_group_has_the_defaults_of_its_dialect(cwd: Path) -> None:
    write(cwd / "a.json", settings_json("guard"))
    (group,) = loaded(cwd, hooks=["a.json"]).groups
    assert (group.dialect.name, group.source, group.match_all_names) == ("claude", str(cwd / "a.json"), False)
    assert (group.tool_names, group.on_failure) == (ToolNames.MCP, None)


def test_relative_paths_start_from_the_folder_of_their_file(cwd: Path) -> None:
    write(cwd / "conf" / "hooks" / "a.json", settings_json("guard"))
    write(cwd / "conf" / "hookproxy.toml", '[[use]]\nfile = "hooks/a.json"')
    (group,) = loaded(cwd, config="conf/hookproxy.toml").groups
    assert group.source == str(cwd / "conf" / "hooks" / "a.json")


def test_a_tilde_is_the_home_folder(cwd: Path, home: Path) -> None:
    write(home / "hooks" / "a.json", settings_json("guard"))
    write(cwd / "hookproxy.toml", '[[use]]\nfile = "~/hooks/*.json"\n[audit]\nfile = "~/audit.jsonl"')
    found = loaded(cwd, config="hookproxy.toml", hooks=["claude=~/hooks/a.json"])
    assert [group.source for group in found.groups] == [str(home / "hooks" / "a.json")] * 2
    assert found.settings.audit_file == str(home / "audit.jsonl")


@pytest.mark.parametrize("named", ["hooks", "hooks/", "claude=hooks", "hooks/*.json", "h*/[ab].json", "**/*.json"])
def test_a_folder_or_a_pattern_means_its_files_sorted_by_name(cwd: Path, named: str) -> None:
    for name in ("b", "a"):
        write(cwd / "hooks" / f"{name}.json", settings_json(f"./{name}.sh"))
    write(cwd / "hooks" / "readme.md", "not a hook file")
    assert commands(loaded(cwd, hooks=[named]).groups) == ["a.sh", "b.sh"]


def test_a_file_named_like_a_pattern_is_that_file(cwd: Path) -> None:
    write(cwd / "[a].json", settings_json("./this.sh"))
    write(cwd / "a.json", settings_json("./other.sh"))
    assert commands(loaded(cwd, hooks=["[a].json"]).groups) == ["this.sh"]


def test_an_equals_sign_may_be_part_of_the_file_name(cwd: Path) -> None:
    write(cwd / "x=y.json", settings_json("./this.sh"))
    assert commands(loaded(cwd, hooks=["x=y.json"]).groups) == ["this.sh"]
    assert commands(loaded(cwd, hooks=["claude=x=y.json"]).groups) == ["this.sh"]


def test_a_file_without_hooks_gets_a_remark_and_makes_no_group(cwd: Path) -> None:
    path = write(cwd / "a.json", '{"permissions": {}}')
    found = loaded(cwd, hooks=["claude=a.json"])
    assert found.groups == ()
    assert found.notes == ()
    assert found.remarks == (f"{path}: contains no hooks",)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (".codex/config.toml", "# nothing yet\n"),
        (".vibe/hooks.toml", ""),
        (".claude/settings.json", "{}"),
        (".claude/settings.json", '{"model": "opus"}'),
        (".cursor/hooks.json", "{}"),
        (".gemini/settings.json", '{"theme": "dark"}'),
    ],
)
def test_a_file_without_hooks_in_an_agents_folder_is_that_agents(cwd: Path, place: str, text: str) -> None:
    """It is not taken for hookproxy's own configuration, or for nobody's."""
    path = write(cwd / place, text)
    found = loaded(cwd, hooks=[place])
    assert found.groups == ()
    assert [remark for remark in found.remarks if remark.startswith(f"{path}: ")] != []


@pytest.mark.parametrize("text", ['{"hook": {}}', '{"Hooks": {}}', '{"hoooks": {}}'])
def test_a_misspelt_table_of_hooks_is_named_also_if_it_is_empty(cwd: Path, text: str) -> None:
    write(cwd / ".claude/settings.json", text)
    with pytest.raises(ConfigError) as raised:
        loaded(cwd, hooks=[".claude/settings.json"])
    assert 'write "hooks" for' in raised.value.hint


def test_an_allow_list_that_refuses_nothing_is_a_remark_of_the_configuration(cwd: Path) -> None:
    """So check, try and the start say it."""
    write(cwd / "hookproxy.toml", '[permissions]\nallow = ["read_*"]\n')
    (remark,) = loaded(cwd, config="hookproxy.toml").remarks
    assert "allow refuses nothing: other tools are allowed, too" in remark


def test_a_file_that_begins_with_a_byte_order_mark_is_read(cwd: Path) -> None:
    write(cwd / "a.json", b"\xef\xbb\xbf" + settings_json("./guard.sh").encode())
    write(cwd / "hookproxy.toml", b'\xef\xbb\xbfon_ask = "deny"\r\n')
    found = loaded(cwd, config="hookproxy.toml", hooks=["a.json"])
    assert (commands(found.groups), found.settings.on_ask) == (["guard.sh"], OnAsk.DENY)


@pytest.mark.parametrize(
    ("item", "message", "hint"),
    [
        ("claude=gone.json", "/gone.json: there is no such file", "--hooks claude=gone.json names it"),
        ("gone", "/gone: there is no such file", "--hooks gone names it"),
        ("some/x=y.json", "/some/x=y.json: there is no such file", "names it"),
        ("empty", "{cwd}/empty contains no .json file", "name a folder"),
        ("claude=*.jsn", "no file matches {cwd}/*.jsn", "name a hook file"),
        ("claude=", "no file is named", "DIALECT=FILE"),
        ("", "no file is named", "DIALECT=FILE"),
        ("claud=a.json", "there is no dialect 'claud'", "did you mean 'claude'?"),
        ("xyz=a.json", "there is no dialect 'xyz'", "claude, claw, claw@current, "),
        (
            "unknown.json",
            "cannot tell which system this hook file is for",
            "name its dialect: --hooks claude={cwd}/unknown.json",
        ),
        ("list.json", "must contain one JSON object", ""),
        ("broken.json", "not JSON", ""),
        ("latin.json", "/latin.json:2: is not UTF-8", "save it as UTF-8"),
        ("a\0b", "a NUL character", "names it"),
    ],
)
def test_an_unusable_value_of_the_hooks_option_is_an_error(cwd: Path, item: str, message: str, hint: str) -> None:
    (cwd / "empty").mkdir()
    write(cwd / "unknown.json", '{"theme": "dark"}')
    write(cwd / "list.json", "[]")
    write(cwd / "broken.json", "{")
    write(cwd / "latin.json", b'{\n"\xe9": 1}')
    with pytest.raises(UserError) as caught:
        loaded(cwd, hooks=[item])
    assert message.format(cwd=cwd) in caught.value.message
    assert hint.format(cwd=cwd) in caught.value.hint
    assert caught.value.status == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_an_error(cwd: Path) -> None:
    write(cwd / "a.json", settings_json("guard")).chmod(0)
    with pytest.raises(ConfigError, match="cannot be read: Permission denied"):
        loaded(cwd, hooks=["a.json"])


# --- where a hook file's project is ---


def test_the_environment_determines_the_project_of_a_hook_file(cwd: Path) -> None:
    write(cwd / ".claude" / "settings.json", settings_json("guard"))
    (group,) = loaded(cwd, hooks=[".claude/settings.json"], CLAUDE_PROJECT_DIR="/some/project").groups
    assert project_dir(group) == "/some/project"


@pytest.mark.parametrize("environ", [{}, {"CLAUDE_PROJECT_DIR": ""}])
def test_the_project_of_a_projects_settings_is_that_project(cwd: Path, environ: dict[str, str]) -> None:
    write(cwd / "there" / ".claude" / "settings.json", settings_json("guard"))
    (group,) = loaded(cwd, hooks=["there/.claude/settings.json"], **environ).groups
    assert project_dir(group) == str(cwd / "there")


def test_the_project_of_the_users_own_settings_is_the_working_directory(cwd: Path, home: Path) -> None:
    write(home / ".claude" / "settings.json", settings_json("guard"))
    (group,) = loaded(cwd, hooks=["~/.claude/settings.json"]).groups
    assert project_dir(group) == str(cwd)


def test_the_project_of_any_other_file_is_the_folder_in_which_hookproxy_was_started(cwd: Path) -> None:
    write(cwd / "there" / "hooks.json", settings_json("guard"))
    (group,) = loaded(cwd, hooks=["there/hooks.json"]).groups
    assert project_dir(group) == str(cwd)


def test_a_use_table_names_the_project_of_its_file(cwd: Path) -> None:
    write(cwd / "conf" / ".claude" / "settings.json", settings_json("./a.sh"))
    (cwd / "other").mkdir()
    text = '[[use]]\nfile = ".claude/settings.json"\nproject = "../other"\n'
    write(cwd / "conf" / "hookproxy.toml", text)
    (group,) = loaded(cwd, config="conf/hookproxy.toml", CLAUDE_PROJECT_DIR="/elsewhere").groups
    assert (project_dir(group), group.hooks[0].cwd) == (str(cwd / "other"), str(cwd / "other"))
    write(cwd / "conf" / "hookproxy.toml", text.replace("other", "gone"))
    with pytest.raises(ConfigError) as caught:
        loaded(cwd, config="conf/hookproxy.toml")
    assert caught.value.message.endswith(f"use[0].project: there is no folder {cwd}/gone")


def test_the_project_of_the_command_line_is_that_of_all_hook_files(cwd: Path) -> None:
    write(cwd / ".claude" / "settings.json", settings_json("a"))
    write(cwd / "hookproxy.toml", '[[use]]\nfile = ".claude/settings.json"\nproject = "."\n')
    (cwd / "other").mkdir()
    found = load("hookproxy.toml", [".claude/settings.json"], None, os.environ, str(cwd), "other")
    assert [project_dir(group) for group in found.groups] == [str(cwd / "other")] * 2
    assert found.project == str(cwd / "other")


@pytest.mark.parametrize("project", ["gone", "hooks.json"])
def test_a_project_that_is_no_folder_is_an_error(cwd: Path, project: str) -> None:
    write(cwd / "hooks.json", settings_json("a"))
    with pytest.raises(UserError, match=f"--project {project}: there is no folder {cwd}/{project}"):
        load(None, ["hooks.json"], None, os.environ, str(cwd), project)


# --- our own hooks ---


def test_own_hooks_are_one_group_with_bare_names(cwd: Path) -> None:
    text = """
        [[hooks.PostToolUse]]
        argv = ["python3", "lint.py"]
        [[hooks.PreToolUse]]
        name = "paths"
        matcher = "write_file|edit_.*"
        command = "./guards/paths.py"
        timeout = 5
        on_failure = "allow"
    """
    path = write(cwd / "conf" / "hookproxy.toml", text)
    (group,) = loaded(cwd, config="conf/hookproxy.toml").groups
    assert (group.source, group.tool_names, group.match_all_names) == (str(path), ToolNames.BARE, True)
    pre, post = group.hooks
    assert (pre.event, pre.label, pre.timeout, pre.on_failure) == (
        Event.PRE_TOOL_USE,
        "paths",
        5,
        OnFailure.ALLOW,
    )
    assert (pre.matches("write_file"), pre.matches("read_file")) == (True, False)
    assert (post.event, post.argv) == (Event.POST_TOOL_USE, ("python3", "lint.py"))


# --- the audit ---


def test_the_audit_option_takes_precedence_and_starts_from_the_working_directory(cwd: Path) -> None:
    write(cwd / "conf" / "hookproxy.toml", '[audit]\nfile = "a.jsonl"\nrequired = true')
    found = loaded(cwd, config="conf/hookproxy.toml", audit="b.jsonl")
    assert (found.settings.audit_file, found.settings.audit_required) == (str(cwd / "b.jsonl"), True)


def test_the_audit_of_each_account_may_be_in_a_folder_that_does_not_exist_yet(cwd: Path) -> None:
    write(cwd / "hookproxy.toml", '[audit]\nfile = "logs/"')
    assert loaded(cwd, config="hookproxy.toml").settings.audit_file == str(cwd / "logs") + "/"
    assert loaded(cwd, audit="{user}/a.jsonl").settings.audit_file == str(cwd / "{user}" / "a.jsonl")


def test_a_required_audit_must_not_be_switched_off(cwd: Path) -> None:
    error = refusal(cwd, "[audit]\nrequired = true\nenabled = false\n")
    assert "audit.required is true, but audit.enabled is false" in error.message
    settings = loaded(cwd, config="hookproxy.toml", audit="b.jsonl").settings
    assert settings.audit_required
    assert settings.audit_file == str(cwd / "b.jsonl")


def test_without_a_file_the_audit_is_kept_in_the_state_folder(cwd: Path, home: Path) -> None:
    write(cwd / "hookproxy.toml", "[audit]\nchain = true\n")
    settings = loaded(cwd, config="hookproxy.toml").settings
    assert settings == replace(DEFAULTS, audit_chain=True)
    for folder in ("", "relative"):
        settings = loaded(cwd, XDG_STATE_HOME=folder).settings
        assert settings.audit_file == f"{home}/.local/state/hookproxy/audit.jsonl"


def test_keys_of_the_audit_override_how_the_file_in_the_state_folder_is_kept(cwd: Path) -> None:
    write(cwd / "hookproxy.toml", '[audit]\narguments = "full"\nresults = "full"\nkeep_files = 9\n')
    settings = loaded(cwd, config="hookproxy.toml").settings
    assert settings == replace(DEFAULTS, audit_arguments=Arguments.FULL, audit_results=Results.FULL, audit_keep_files=9)


def test_a_keyed_chain_needs_a_key_that_nobody_else_can_read(cwd: Path) -> None:
    assert "no key is named" in refusal(cwd, '[audit]\nchain = "keyed"\n').message
    assert "the chain has no key" in refusal(cwd, '[audit]\nchain = true\nchain_key_file = "key"\n').message
    text = '[audit]\nchain = "keyed"\nchain_key_file = "key"\n'
    assert "No such file" in refusal(cwd, text).message
    key = write(cwd / "key", b"k" * 32)
    key.chmod(0o644)
    assert "may be read by other accounts" in refusal(cwd, text).message
    key.chmod(0o600)
    settings = loaded(cwd, config="hookproxy.toml").settings
    assert (settings.audit_chain, settings.audit_chain_key_file) == (True, str(key))


def test_an_audit_that_is_switched_off_has_no_file(cwd: Path) -> None:
    write(cwd / "hookproxy.toml", '[audit]\nenabled = false\nfile = "a"\n')
    assert not loaded(cwd, config="hookproxy.toml").settings.audit_file
    assert loaded(cwd, config="hookproxy.toml", audit="b").settings.audit_file == str(cwd / "b")


def test_without_a_home_folder_a_remark_says_that_no_audit_is_kept(cwd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    found = load(None, (), None, {}, str(cwd))
    assert not found.settings.audit_file
    assert found.remarks == (
        "no audit log is kept, because there is no home folder: set HOME or XDG_STATE_HOME, or audit.file",
    )


# --- hookproxy.toml that cannot be used ---


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ('on_falure = "deny"', 1, "on_falure: unknown key", "did you mean 'on_failure'?"),
        ("\n[permission]\ndeny = []", 2, "permission: unknown key", "did you mean 'permissions'?"),
        ("[permissions]\nask = []\ndenny = []", 3, "permissions.denny: unknown key", "did you mean 'deny'?"),
        ('[permissions]\ndeny = "x"', 2, "permissions.deny: should be a list", ""),
        ('[permissions]\ndeny = ["a", ""]', 2, "permissions.deny[1]: ", ""),
        ('[permissions]\nhide_denied = "no"', 2, "permissions.hide_denied: should be a boolean", ""),
        ("[tool.x]\nas = 'Bash'", 1, "tool: unknown key", "did you mean 'tools'?"),
        ("[tools.x]\nas = 'Bash'\nargs = {}", 3, "tools.x.args: unknown key", "expected one of: as, arguments"),
        ("[tools.arguments]\nas = ''", 2, "tools.arguments.as: ", ""),
        ("[tools.x]\nas = 'Bash(rm)'", 2, "tools.x.as: ", ""),
        ("[tools.x.arguments]\ncommand = 1", 2, "tools.x.arguments.command: should be a string", ""),
        ("[tools.x.arguments]\ncommand = ''", 2, "tools.x.arguments.command: ", ""),
        ("[[limits]]\ntool = 'x'\nper = 'minute'", 1, "limits[0]: limits nothing", ""),
        ("[[limits]]\ntool = 'x'\nper = 'week'\ncalls = 1", 3, "limits[0].per: ", ""),
        ("[[limits]]\ntool = 'x'\nper = 'day'\ncalls = 0", 4, "limits[0].calls: ", ""),
        ("[[limits]]\ntool = 'x'\nper = 'day'\ncalls = true", 4, "limits[0].calls: ", ""),
        ("[limits]\ntool = 'x'", 1, "limits: must be an array of tables", "write [[limits]]"),
        ("preset = 7", 1, "preset: should be a list", ""),
        (
            '[[use]]\nfile = "a"\n[[use]]\nfile = "b"\ndialct = "c"',
            5,
            "use[1].dialct: unknown key",
            "'dialect'",
        ),
        ('[[use]]\ndialect = "claude"', 1, "use[0].file is missing", ""),
        ('use = [{file = "a", x = 1}]', 1, "use[0].x: unknown key", "expected one of: file, dialect"),
        ('[use]\nfile = "a"', 1, "use: must be an array of tables", "write [[use]]"),
        ('[hooks]\nPreToolUse = ["x"]', 2, "hooks.PreToolUse[0]: a hook is a table", "write [[hooks.PreToolUse]]"),
        (
            '[hooks.composition]\nprofile = "parallel/strict"',
            2,
            "hooks.composition.profile: should be",
            "did you mean 'parallel/strictest'?",
        ),
        (
            '[[hooks.PreTolUse]]\ncommand = "x"',
            1,
            "hooks.PreTolUse: unknown event",
            "did you mean 'PreToolUse'?",
        ),
        ('[[hooks.Stop]]\ncommand = "x"', 1, "hooks.Stop: unknown event", "expected one of: PreToolUse, "),
        ('[[hooks.PreToolUse]]\ncomand = "x"', 2, "hooks.PreToolUse[0].comand: unknown key", "'command'"),
        (
            '[hooks.PreToolUse]\ncommand = "x"',
            1,
            "must be an array of tables",
            "write [[hooks.PreToolUse]]",
        ),
        ('[[hooks.PreToolUse]]\ncommand = "x"\ntimeout = "5"', 3, "timeout: should be a number", ""),
        ('[[hooks.PreToolUse]]\ncommand = "x"\nasync = 1', 3, "[0].async: should be a boolean", ""),
        ("on_ask = 'maybe'", 1, "on_ask: should be 'elicit', 'console', 'deny' or 'allow'", ""),
        ("feedback = true", 1, "feedback: should be 'auto', 'text' or 'strip-output-schema'", ""),
        ('max_message_bytes = "64 MiB"', 1, "max_message_bytes: should be an integer", ""),
        ("max_message_bytes = 1023", 1, "max_message_bytes: should be greater than or equal to 1024", ""),
        ("max_depth = 3", 1, "max_depth: should be greater than or equal to 4", ""),
        ("max_depth = 251", 1, "max_depth: should be less than or equal to 250", ""),
        ("max_message_bytes = true", 1, "max_message_bytes: should be an integer", ""),
        ('[audit]\nfile = "a"\narguments = "none"', 3, "audit.arguments: should be 'digest', 'masked' or 'full'", ""),
        ('[audit]\nfile = ""', 2, "audit.file: ", ""),
        ('audit.required = "yes"', 1, "audit.required: should be a boolean", ""),
        ('on_ask = "deny"\non_ask = deny', 2, "not TOML: invalid value", "put strings in quotes"),
        ('on_ask = "deny"\n\non_ask = "deny"', 3, "not TOML: cannot overwrite a value", ""),
        ("[audit]\nfile = '''", 2, "not TOML: ", ""),
        (b'on_ask = "deny"\n# \xff', 2, "is not UTF-8", "save it as UTF-8"),
    ],
)
def test_an_error_in_the_file_is_reported_with_line_and_key(
    cwd: Path, text: str | bytes, line: int, message: str, hint: str
) -> None:
    error = refusal(cwd, text)
    assert error.message.startswith(f"{cwd}/hookproxy.toml:{line}: ")
    assert message in error.message
    assert "\n" not in error.message
    assert hint in error.hint


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "needs exactly one of command and argv"),
        ('command = "x"\nargv = ["x"]', "needs exactly one of command and argv"),
        ('command = "x"\ntimeout = 0', "timeout must be more than 0 seconds"),
        ('command = "x"\ntimeout = 60000', "timeout looks like milliseconds"),
        ('command = "x"\nmatcher = "(x"', "matcher"),
    ],
)
def test_an_invalid_own_hook_is_reported_with_its_place(cwd: Path, table: str, message: str) -> None:
    error = refusal(cwd, f"[[hooks.PreToolUse]]\n{table}")
    assert error.message.startswith(f"{cwd}/hookproxy.toml: hooks.PreToolUse[0]: {message}")


@pytest.mark.parametrize("kind", ["allow", "ask", "deny"])
@pytest.mark.parametrize(
    ("rule", "message", "hint"),
    [
        ("Bash(", "'Bash(' is not a permission rule: write Tool or Tool(specifier)", "remove the parenthesis: 'Bash'"),
        (
            "Bash(a) && Edit(b)",
            "'Bash(a) && Edit(b)' is not a permission rule but several: write each rule separately",
            "write each rule separately: 'Bash(a)', 'Edit(b)'",
        ),
        (
            "edit|write",
            "'edit|write' is not a permission rule: '|' has no meaning in a tool's name; the wildcards are * and ?",
            "write a rule for each: 'edit', 'write'",
        ),
        (
            "a)b",
            "'a)b' is not a permission rule: write Tool or Tool(specifier)",
            "write Tool or Tool(specifier), such as delete_* or Bash(git push:*)",
        ),
    ],
)
def test_an_invalid_permission_rule_is_reported_with_its_place(
    cwd: Path, kind: str, rule: str, message: str, hint: str
) -> None:
    error = refusal(cwd, f'[permissions]\n{kind} = ["a", "b(c)", "{rule}"]')
    assert error.message == f"{cwd}/hookproxy.toml: permissions.{kind}[2]: {message}"
    assert error.hint.startswith(hint)


def test_an_unknown_dialect_in_a_use_table_is_reported_with_its_place(cwd: Path) -> None:
    error = refusal(cwd, '[[use]]\nfile = "a.json"\ndialect = "claud"')
    assert error.message == f"{cwd}/hookproxy.toml: use[0].dialect: there is no dialect 'claud'"
    assert error.hint == "did you mean 'claude'?"


def test_a_missing_file_of_a_use_table_is_reported_with_its_place(cwd: Path) -> None:
    error = refusal(cwd, '[[use]]\nfile = "gone.json"')
    assert error.message == f"{cwd}/gone.json: there is no such file"
    assert error.hint == f"{cwd}/hookproxy.toml: use[0] names it"


def test_a_named_configuration_that_is_missing_or_a_folder_is_an_error(cwd: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file"):
        loaded(cwd, config="gone.toml")
    with pytest.raises(ConfigError, match="is a folder, not a file"):
        loaded(cwd, config=".")


# --- speed ---


def test_hook_files_alone_do_not_import_pydantic(cwd: Path) -> None:
    write(cwd / "a.json", settings_json("guard"))
    script = (
        "import os, sys; old = set(sys.modules); from hookproxy.config.load import load\n"
        "found = load(None, ['claude=a.json'], None, os.environ, os.getcwd())\n"
        "print(len(found.groups), {'pydantic', 'yaml', 'mcp', 'tomllib'} & (set(sys.modules) - old))"
    )
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, timeout=30, check=True)
    assert ended.stdout == "1 set()\n"


def test_a_valid_configuration_is_read_without_pydantic_and_without_rules_that_it_has_not(cwd: Path) -> None:
    write(
        cwd / "hookproxy.toml", 'on_trouble = "deny"\n[[hooks.PreToolUse]]\ncommand = "guard"\n[audit]\nchain = true\n'
    )
    script = (
        "import os, sys; old = set(sys.modules)\n"  # what .pth files of other packages import is not ours
        "from hookproxy.config.load import load\n"
        "found = load('hookproxy.toml', [], None, os.environ, os.getcwd())\n"
        "unwanted = {'pydantic', 'pathlib', 'random', 'hookproxy.policy.rules', 'hookproxy.jsonrpc.redact'}\n"
        "unwanted |= {'hookproxy.flow', 'hookproxy.config.flow_table'}\n"
        "print(len(found.groups), unwanted & (set(sys.modules) - old))"
    )
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, timeout=30, check=True)
    assert ended.stdout == "1 set()\n"


SHAPES = {
    "claude": '{"hooks": {"PreToolUse": [{"matcher": "", "hooks": [{"type": "command", "command": "true"}]}]}}',
    "code-assist": '{"hooks": {"PreToolUse": [{"command": "true", "timeout": 3000, "name": "x"}]}}',
    "copilot": '{"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": "true"}]}}',
    "docker-agent": '{"agents": {"root": {"hooks": {"session_start": [{"type": "command", "command": "true"}]}}}}',
    "lime": '{"hooks": {"PreToolUse": ["true"], "SessionStart": ["true"]}}',
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_hook_file_is_recognised_by_its_shape(cwd: Path, name: str) -> None:
    write(cwd / "hooks.json", SHAPES[name])
    (group,) = loaded(cwd, hooks=["hooks.json"]).groups
    assert group.dialect.name == name


def test_a_shape_that_fits_two_dialects_is_an_error_that_names_both(cwd: Path) -> None:
    write(cwd / "hooks.json", '{"hooks": {"PreToolUse": ["true"]}}')
    with pytest.raises(ConfigError) as caught:
        loaded(cwd, hooks=["hooks.json"])
    assert "could be a hook file of claw or lime: it fits each of these formats" in caught.value.message
    assert caught.value.hint.startswith("name its dialect: --hooks claw=")
    for name in ("claw", "lime", "claw@current"):
        (group,) = loaded(cwd, hooks=[f"{name}=hooks.json"]).groups
        assert (group.dialect.name, {spec.dialect for spec in group.hooks}) == (name, {name})


def test_a_file_in_another_systems_folder_is_an_error_that_names_both(cwd: Path) -> None:
    write(cwd / ".lime/settings.json", SHAPES["copilot"])
    with pytest.raises(ConfigError) as caught:
        loaded(cwd, hooks=[".lime/settings.json"])
    assert caught.value.message.endswith("has the format of copilot, but is in a folder of lime")
    assert caught.value.hint.startswith("if it is of lime, correct this: hooks.preToolUse")
    assert caught.value.hint.endswith(f"; or name its dialect: --hooks copilot={cwd}/.lime/settings.json")
    (group,) = loaded(cwd, hooks=["copilot=.lime/settings.json"]).groups
    assert group.dialect.name == "copilot"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            {"hooks": {"preToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}]}]}},
            "'PreToolUse'",
        ),
        (
            {"hooks": {"PreToolUse": {"hooks": [{"type": "command", "command": "x"}]}}},
            "hooks.PreToolUse is left out: must be a list",
        ),
        (
            {"hooks": {"PreToolUse": [{"matcher": "Bash", "type": "command", "command": "x"}]}},
            'write {"matcher": "…", "hooks": [',
        ),
        ({"hook": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x"}]}]}}, "write \"hooks\" for 'hook'"),
    ],
)
def test_a_mistake_in_a_file_in_its_systems_folder_is_reported_as_one_of_this_system(
    cwd: Path, content: object, says: str
) -> None:
    write(cwd / ".claude/settings.json", json.dumps(content))
    with pytest.raises(ConfigError) as caught:
        loaded(cwd, hooks=[".claude/settings.json"])
    assert "claude" in str(caught.value)
    assert says in f"{caught.value.message} {caught.value.hint}"


def test_a_folder_decides_between_formats_that_a_file_fits(cwd: Path) -> None:
    write(cwd / ".lime/settings.json", '{"hooks": {"PreToolUse": ["true"]}}')
    (group,) = loaded(cwd, hooks=[".lime/settings.json"]).groups
    assert group.dialect.name == "lime"


def test_a_key_of_another_dialect_is_an_error(cwd: Path) -> None:
    write(cwd / "hooks.json", SHAPES["lime"])
    write(cwd / "hookproxy.toml", '[[use]]\nfile = "hooks.json"\nmax_retries = 2\n')
    with pytest.raises(ConfigError) as caught:
        loaded(cwd, config="hookproxy.toml")
    assert caught.value.message.endswith("use[0].max_retries: is for code-assist only, not for lime")


def test_the_keys_of_a_dialect_are_passed_to_it(cwd: Path) -> None:
    write(cwd / "hooks.json", '{"hooks": {"PostToolUse": ["true"], "SessionStart": ["true"]}}')
    write(cwd / "hookproxy.toml", '[[use]]\nfile = "hooks.json"\nawait_post = true\n')
    (group,) = loaded(cwd, config="hookproxy.toml").groups
    assert [spec.background for spec in group.hooks if spec.event == "PostToolUse"] == [False]


@pytest.mark.parametrize(
    ("file", "dialect", "project"),
    [
        (".github/hooks/a.json", "copilot", "."),
        (".claude/settings.json", "claude", "."),
        (".lime/settings.json", "lime", "."),
        ("hooks.json", "lime", "."),
        ("sub/hooks.json", "lime", "."),
        ("sub/.claude/settings.local.json", "claude", "sub"),
        ("sub/.claude/hooks/hooks.json", "claude", "."),
        ("plugin/hooks/hooks.json", "claude", "."),
        ("sub/anything.json", "claude", "."),
    ],
)
def test_commands_start_in_the_project_of_their_hook_file(cwd: Path, file: str, dialect: str, project: str) -> None:
    (cwd / file).parent.mkdir(parents=True, exist_ok=True)
    write(cwd / file, SHAPES[dialect])
    (group,) = loaded(cwd, hooks=[f"{dialect}={file}"]).groups
    assert {spec.cwd for spec in group.hooks} == {str((cwd / project).resolve())}


@pytest.mark.parametrize(
    ("text", "fallback", "prompter"),
    [
        ("", OnFailure.DENY, ()),
        ('on_ask_fallback = "deny"', OnFailure.DENY, ()),
        ('on_ask_fallback = "allow"', OnFailure.ALLOW, ()),
        ('on_ask_fallback = { command = ["./ask", "-x"] }', OnFailure.DENY, ("{cwd}/ask", "-x")),
        ('on_ask_fallback = { command = ["zenity"] }', OnFailure.DENY, ("zenity",)),
        ('on_ask_fallback = "console"', OnFailure.DENY, ()),
        ('on_ask_fallback = "auto"', OnFailure.DENY, ()),
    ],
)
def test_the_fallback_when_nobody_can_ask_is_read(
    cwd: Path, text: str, fallback: OnFailure, prompter: tuple[str, ...]
) -> None:
    write(cwd / "hookproxy.toml", text)
    settings = loaded(cwd, config="hookproxy.toml").settings
    assert settings.on_ask_fallback is fallback
    uses = {"": ConsoleUse.IF_OPEN, "auto": ConsoleUse.IF_OPEN, "console": ConsoleUse.ALWAYS}
    assert settings.console is uses.get(text.partition('"')[2].rstrip('"'), ConsoleUse.NEVER)
    assert settings.prompter == tuple(word.format(cwd=cwd) for word in prompter)


@pytest.mark.parametrize(
    "value", ['"ask"', "{ command = [] }", '{ command = "./ask" }', '{ comand = ["x"] }', '{ command = [""] }', "true"]
)
def test_an_invalid_fallback_is_an_error(cwd: Path, value: str) -> None:
    write(cwd / "hookproxy.toml", f"on_ask_fallback = {value}\n")
    with pytest.raises(ConfigError, match="on_ask_fallback"):
        loaded(cwd, config="hookproxy.toml")


def test_permissions_of_a_settings_file_join_the_rules_of_their_layer(cwd: Path) -> None:
    settings = write(cwd / ".claude/settings.json", '{"permissions":\n{"deny": ["Bash(rm *)"],\n"allow": ["Read"]}}')
    config = write(cwd / "a.toml", '[[use]]\nfile = ".claude/settings.json"\ndialect = "claude"\npermissions = true\n')
    found = loaded(cwd, config=str(config))
    rules = [(one.decision, one.text, one.place) for one in found.settings.agent_rules]
    assert rules == [("deny", "Bash(rm *)", f"{settings}:2"), ("allow", "Read", f"{settings}:3")]
    assert found.remarks == ()
    assert found.settings.rule_count == 2


def test_permissions_are_for_claude_only(cwd: Path) -> None:
    write(cwd / "a.json", '{"version": 1, "hooks": {}}')
    config = write(cwd / "a.toml", '[[use]]\nfile = "a.json"\ndialect = "copilot"\npermissions = true\n')
    with pytest.raises(ConfigError, match="permissions: is for claude only, not for copilot"):
        loaded(cwd, config=str(config))
