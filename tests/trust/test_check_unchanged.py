"""Only trusted files are used, at start-up and at each run of a hook."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hookproxy.cli.main import main
from hookproxy.config.load import Loaded, load
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import HookSpec
from hookproxy.trust import check_unchanged
from hookproxy.trust.check_unchanged import Trust

REQUIRED = "require_trust = true\n"


class Project:
    """A folder with a guard, and a hookproxy.toml that requires trust."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.guard = self.write("guard.sh", "#!/bin/sh\nexit 0\n", 0o755)
        self.config = self.write("hookproxy.toml", f'{REQUIRED}[[hooks.PreToolUse]]\ncommand = "./guard.sh"\n')

    def write(self, name: str, text: str, mode: int = 0o644) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def load(self, *hooks: str) -> Loaded:
        return load(str(self.config), hooks, None, os.environ, str(self.folder))

    def refusal(self, *hooks: str) -> ConfigError:
        with pytest.raises(ConfigError) as caught:
            self.load(*hooks)
        return caught.value

    def trust(self, *files: str) -> None:
        assert main(["trust", *(files or [str(self.config)])]) == 0

    def running(self) -> tuple[Trust, HookSpec]:
        """All is trusted, and hooks run now."""
        self.trust()
        loaded = self.load()
        assert loaded.trust
        return loaded.trust, loaded.groups[0].hooks[0]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)


# --- at start-up ---


def test_without_required_trust_nothing_is_checked(project: Project) -> None:
    project.config.write_text(project.config.read_text().removeprefix(REQUIRED))
    assert project.load().trust is None


def test_an_untrusted_file_stops_start_up_and_the_hint_names_the_command(project: Project) -> None:
    error = project.refusal()
    assert error.message == f"{project.config}: is not trusted yet (and 1 more)"
    assert error.hint == f"hookproxy trust {project.config} shows what is new or changed, and trusts it"
    project.trust()
    assert project.load().trust


@pytest.mark.parametrize("name", ["guard.sh", "hookproxy.toml"])
def test_a_changed_file_stops_start_up_until_it_is_trusted_again(project: Project, name: str) -> None:
    project.trust()
    path = project.folder / name
    path.write_text(path.read_text() + "# softer\n")
    assert project.refusal().message == f"{path}: has changed since it was trusted"
    project.trust()
    project.load()


def test_a_hook_file_on_the_command_line_must_be_trusted_by_its_own_name(project: Project) -> None:
    project.trust()
    hooks = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "./more.sh"}]}]}}
    file = project.write("settings.json", json.dumps(hooks))
    project.write("more.sh", "", 0o755)
    error = project.refusal("settings.json")
    assert error.message == f"{file}: is not trusted yet (and 1 more)"
    assert error.hint.startswith(f"hookproxy trust claude={file} ")
    project.trust("claude=settings.json")
    project.load("settings.json")
    project.write("more.sh", "exit 0", 0o755)
    assert project.refusal("settings.json").message == f"{project.folder}/more.sh: has changed since it was trusted"


def test_hook_files_that_a_configuration_names_are_trusted_with_it(project: Project) -> None:
    project.write("settings.json", '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x"}]}]}}')
    project.config.write_text(f'{REQUIRED}[[use]]\nfile = "settings.json"\n')
    project.trust()
    project.load()
    project.write("settings.json", '{"hooks": {}}')  # no hook is left of it, and it is looked at all the same
    assert "settings.json: has changed" in project.refusal().message
    project.config.write_text(REQUIRED)
    error = project.refusal("claude=settings.json")
    assert error.message.endswith("(and 1 more)")
    assert f"claude={project.folder}/settings.json" in error.hint


def test_the_config_option_does_not_turn_off_trust_that_the_users_own_file_requires(
    project: Project, home: Path
) -> None:
    own = home / ".config/hookproxy/hookproxy.toml"
    own.parent.mkdir(parents=True)
    own.write_text(REQUIRED)
    project.config.write_text("require_trust = false\n")
    assert project.refusal().message == f"{project.config}: is not trusted yet"
    own.write_text("require_trust = ")
    assert "not TOML" in project.refusal().message
    own.write_text("require_trust = false\nnonsense = 1")
    assert project.load().trust is None
    own.write_text("nonsense")
    assert project.load().trust is None


@pytest.mark.parametrize("kind", ["folder", "pipe", "long"])
def test_only_regular_files_of_limited_size_are_trusted(
    project: Project, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.guard.unlink()
    if kind == "folder":
        project.guard.mkdir()
    elif kind == "pipe":
        os.mkfifo(project.guard, 0o755)
    else:
        monkeypatch.setattr(check_unchanged, "MAX_BYTES", 10)
        project.guard.write_text("12345678901")
    with pytest.raises(ConfigError, match=r"guard\.sh: is .*, so it cannot be trusted"):
        check_unchanged.read_for_hashing(str(project.guard))
    assert main(["trust", str(project.config)]) == 2


def test_a_prompter_is_checked_and_programs_of_the_system_are_not(project: Project) -> None:
    project.config.write_text(f'{REQUIRED}on_ask_fallback = {{ command = ["sh", "./ask.sh"] }}\n')
    ask = project.write("ask.sh", "exit 2")
    project.trust()
    project.load()
    ask.write_text("exit 0")
    assert project.refusal().message == f"{ask}: has changed since it was trusted"


def test_a_function_is_imported_from_the_text_that_was_hashed(project: Project) -> None:
    project.config.write_text(f'{REQUIRED}[[hooks.PreToolUse]]\ntype = "python"\ncall = "trusted_guard:check"\n')
    project.write("trusted_guard.py", "def check(d): return None\n")
    project.trust()
    watched = project.load().trust
    assert watched
    with watched.importing():
        inside = sys.pycache_prefix, sys.dont_write_bytecode
    assert inside != (sys.pycache_prefix, sys.dont_write_bytecode)
    assert inside[1]
    with pytest.raises(ConfigError, match=r"trusted_guard\.py has changed"), watched.importing():
        project.write("trusted_guard.py", "def check(d): return {}\n")


def test_a_hook_file_that_is_removed_from_a_folder_stops_start_up(project: Project) -> None:
    for name in ("a", "b"):
        project.write(
            f"hooks/{name}.json", '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x"}]}]}}'
        )
    project.config.write_text(f'{REQUIRED}[[use]]\nfile = "hooks"\n')
    project.trust()
    project.load()
    (project.folder / "hooks" / "a.json").unlink()
    gone = f"{project.folder}/hooks/a.json: was trusted with {project.config}, which no longer uses it"
    assert project.refusal().message == gone
    project.trust()
    project.load()


def test_a_removed_script_stops_start_up_until_its_absence_is_trusted(project: Project) -> None:
    project.trust()
    project.guard.unlink()
    assert project.refusal().message == f"{project.guard}: is gone"
    project.trust()
    project.load()


# --- while hooks run ---


def swap(project: Project) -> None:
    project.write("other.sh", "#!/bin/sh\necho softer\n", 0o755).replace(project.guard)


def write_over(project: Project) -> None:
    state = project.guard.stat()
    project.guard.write_text(project.guard.read_text().replace("0", "1"))
    os.utime(project.guard, ns=(state.st_atime_ns, state.st_mtime_ns))  # same length, same time, same number


def link(project: Project) -> None:
    project.write("other.sh", "#!/bin/sh\nexit 1\n", 0o755)
    project.guard.unlink()
    project.guard.symlink_to("other.sh")


def pipe(project: Project) -> None:
    project.guard.unlink()
    os.mkfifo(project.guard)


def configuration(project: Project) -> None:
    project.config.write_text(project.config.read_text() + "# softer\n")


@pytest.mark.parametrize(
    "change", [swap, write_over, link, pipe, configuration, lambda project: project.guard.unlink()]
)
def test_a_file_that_changes_while_hooks_run_is_a_failure(project: Project, change: Callable[[Project], None]) -> None:
    watched, spec = project.running()
    assert watched.check(spec).failure == ""
    change(project)
    failure = watched.check(spec).failure
    assert failure.startswith("is not run, because ")


def test_a_hook_runs_again_when_its_changed_file_is_trusted(project: Project) -> None:
    watched, spec = project.running()
    swap(project)
    failure = watched.check(spec).failure
    changed = f"{project.guard} has changed since it was trusted"
    assert failure == f"is not run, because {changed}: hookproxy trust {project.config} shows what changed"
    project.trust()
    mark = watched.check(spec)
    assert (mark.failure, mark.rewritten) == ("", True)
    assert not watched.check(spec).rewritten


def test_a_file_rewritten_with_the_same_text_is_trusted_and_reported_as_rewritten(project: Project) -> None:
    watched, spec = project.running()
    project.guard.write_bytes(project.guard.read_bytes())
    assert watched.check(spec).rewritten


def test_a_rewritten_script_is_reported_to_each_of_its_hooks(project: Project) -> None:
    again = '[[hooks.PostToolUse]]\ncommand = "./guard.sh"\n'
    project.write("hookproxy.toml", project.config.read_text() + again)
    project.trust()
    loaded = project.load()
    assert loaded.trust
    before, after = loaded.groups[0].hooks
    project.guard.write_bytes(project.guard.read_bytes())
    assert [loaded.trust.check(spec).rewritten for spec in (before, after, before, after)] == [True, True, False, False]


def test_a_script_that_is_replaced_during_the_start_is_detected(project: Project) -> None:
    watched, spec = project.running()
    mark = watched.check(spec)
    before = project.guard.stat()
    kept = project.guard.rename(project.folder / "kept")
    project.write("guard.sh", "#!/bin/sh\necho softer\n", 0o755)
    kept.replace(project.guard)
    os.utime(project.guard, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert project.guard.stat().st_ino == before.st_ino
    assert watched.failure_after(mark, spec)
    again = watched.check(spec)
    assert (again.failure, again.rewritten) == ("", True)


def test_a_script_that_appears_later_is_a_failure(project: Project) -> None:
    project.guard.unlink()
    watched, spec = project.running()
    assert watched.check(spec).failure == ""
    project.write("guard.sh", "#!/bin/sh\n", 0o755)
    assert "guard.sh is not trusted yet" in watched.check(spec).failure


def test_removing_require_trust_from_a_trusted_file_does_not_turn_it_off(project: Project) -> None:
    project.trust()
    lax = project.config.read_text().replace(REQUIRED, "")
    for text in (lax, f"require_trust = false\n{lax}", ""):
        project.write("hookproxy.toml", text)
        assert "has changed since it was trusted" in project.refusal().message
    own = Path(os.environ["HOME"]) / ".config" / "hookproxy" / "hookproxy.toml"
    project.write(str(own), REQUIRED)
    project.trust(str(own))
    own.write_text("")
    project.write("hookproxy.toml", lax)
    assert "has changed since it was trusted" in project.refusal().message
    own.unlink()
    project.trust()
    assert project.load().trust is None  # a person has trusted that


def test_a_program_that_appears_earlier_in_path_is_a_failure(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{project.folder}/bin:{os.environ['PATH']}")
    project.guard.write_text("#!/usr/bin/env sh\n")
    watched, spec = project.running()
    assert not watched.check(spec).failure
    project.write("bin/sh", "#!/bin/sh\nexit 0\n", 0o755)
    assert "bin/sh is not trusted yet" in watched.check(spec).failure


@pytest.mark.parametrize("name", ["json.py", "rules/__init__.py", "helper.py"])
def test_a_module_that_appears_beside_a_script_and_would_be_imported_is_a_failure(project: Project, name: str) -> None:
    project.write("guards/guard.py", "import rules.deep\nimport json, other\n")
    project.write("guards/other.py", "from helper import x\n")
    project.write("hookproxy.toml", project.config.read_text().replace("./guard.sh", "python3 guards/guard.py"))
    watched, spec = project.running()
    project.write("guards/mine.py", "")
    project.write("guards/__pycache__/other.cpython-311.pyc", "")
    mark = watched.check(spec)
    assert (mark.failure, watched.failure_after(mark, spec)) == ("", "")
    project.write(f"guards/{name}", "")
    assert f"{name} is not trusted yet" in watched.check(spec).failure
    assert f"{name}: is not trusted yet" in project.refusal().message
    project.trust()
    assert not watched.check(spec).failure


def test_a_module_beside_a_script_is_trusted_with_it(project: Project) -> None:
    rules = project.write("guards/rules.py", "LIST = 1\n")
    project.write("guards/guard.py", "import rules\n")
    project.write("hookproxy.toml", project.config.read_text().replace("./guard.sh", "python3 guards/guard.py"))
    watched, spec = project.running()
    rules.write_text("LIST = 2\n")
    assert "rules.py has changed since it was trusted" in watched.check(spec).failure


def test_the_project_folder_is_the_one_that_hooks_get(project: Project) -> None:
    project.write("hookproxy.toml", project.config.read_text().replace("./", "$CLAUDE_PROJECT_DIR/"))
    watched, spec = project.running()
    project.write("guard.sh", "#!/bin/sh\necho softer\n", 0o755)
    assert watched.check(spec).failure


def test_a_link_to_a_program_of_the_system_does_not_replace_a_script(project: Project) -> None:
    watched, spec = project.running()
    project.guard.unlink()
    project.guard.symlink_to("/bin/true")
    assert "guard.sh has changed" in watched.check(spec).failure
    assert project.refusal().message == f"{project.guard}: has changed since it was trusted"


def test_a_script_behind_a_linked_folder_is_checked_by_its_content(project: Project) -> None:
    project.write("one/guard.sh", "#!/bin/sh\nexit 0\n", 0o755)
    project.write("two/guard.sh", "#!/bin/sh\nexit 1\n", 0o755)
    (project.folder / "hooks").symlink_to("one")
    project.config.write_text(f'{REQUIRED}[[hooks.PreToolUse]]\ncommand = "hooks/guard.sh"\n')
    watched, spec = project.running()
    assert watched.check(spec).failure == ""
    (project.folder / "hooks").unlink()
    (project.folder / "hooks").symlink_to("two")
    assert "hooks/guard.sh has changed" in watched.check(spec).failure


def test_another_name_of_a_trusted_script_is_another_file(project: Project) -> None:
    project.trust()
    os.link(project.guard, project.folder / "linked.sh")
    project.config.write_text(project.config.read_text().replace("guard.sh", "linked.sh"))
    assert project.refusal().message.endswith("(and 1 more)")


# --- plugins and other projects ---


def test_all_files_of_a_plugin_must_be_trusted_with_its_folder(project: Project) -> None:
    hook = {"type": "command", "command": "python3 ${CLAUDE_PLUGIN_ROOT}/hooks/pretooluse.py"}
    manifest = project.write("plugin/.claude-plugin/plugin.json", '{"name": "p"}')
    hooks = project.write("plugin/hooks/hooks.json", json.dumps({"hooks": {"PreToolUse": [{"hooks": [hook]}]}}))
    script = project.write("plugin/hooks/pretooluse.py", "import rules")
    module = project.write("plugin/hooks/rules.py", "")
    named = f"claude={project.folder}/plugin"
    project.trust()
    assert f"hookproxy trust {named} shows what" in project.refusal(named).hint
    project.trust(named)
    assert project.load(named).groups
    for path in (manifest, hooks, script, module):
        before = path.read_text()
        path.write_text(before + "\n")
        error = project.refusal(named)
        assert (error.message, named in error.hint) == (f"{path}: has changed since it was trusted", True)
        path.write_text(before)


def test_switching_a_plugin_of_the_user_off_needs_trust(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    home = project.folder / "home"
    monkeypatch.setenv("HOME", str(home))
    hook = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}}
    project.write("home/.claude/plugins/cache/m/p/1/hooks/hooks.json", json.dumps(hook))
    installed = {"version": 2, "plugins": {"p@m": [{"installPath": f"{home}/.claude/plugins/cache/m/p/1"}]}}
    project.write("home/.claude/plugins/installed_plugins.json", json.dumps(installed))
    settings = project.write("home/.claude/settings.json", '{"enabledPlugins": {"p@m": true}}')
    project.trust()
    project.trust("claude=~/.claude")
    assert len(project.load("claude=~/.claude").groups) == 2
    settings.write_text('{"enabledPlugins": {"p@m": false}}')
    error = project.refusal("claude=~/.claude")
    assert f"{settings}: has changed" in error.message
    assert f"hookproxy trust claude={home}/.claude" in error.hint


def test_the_scripts_of_another_project_are_trusted_for_that_project(project: Project) -> None:
    project.write(".claude/settings.json", json.dumps(
        {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "./check.sh"}]}]}}
    ))  # fmt: skip
    project.write("check.sh", "true")
    other = project.write("other/check.sh", "true").parent
    project.trust()
    project.trust("claude=.claude/settings.json")

    def load_there() -> Loaded:
        named = ["claude=.claude/settings.json"]
        return load(str(project.config), named, None, os.environ, str(project.folder), "other")

    with pytest.raises(ConfigError) as caught:
        load_there()
    assert caught.value.message == f"{other}/check.sh: is not trusted yet"
    assert caught.value.hint.startswith(f"hookproxy trust --project {other} claude=")
    assert main(["trust", "--project", "other", "claude=.claude/settings.json"]) == 0
    assert load_there().groups
