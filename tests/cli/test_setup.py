"""`hookproxy setup` at a real terminal, and without one."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import tomllib
from pathlib import Path
from typing import Final

import pytest

from hookproxy.cli.signals import uninterrupted
from hookproxy.policy.presets import PRESETS
from tests.cli.test_wrap import HOOKPROXY, configuration, run, servers
from tests.support import agent_homes, terminal

pytestmark = pytest.mark.slow

CLAUDE_HOOKS: Final = json.dumps(
    {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}]}}
)
COPILOT_HOOKS: Final = json.dumps({"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": "true"}]}})
WRAP_ONE: Final = "hookproxy.toml? [y/N] "
WRAP_ALONE: Final = "Wrap 1 server in 1 file? [y/N] "
FAIL_CLOSED: Final = ("let them pass. [Y/n] ", b"\n")
USE_PROJECT: Final = "if you trust them. [y/N] "


@pytest.fixture
def cursor(home: Path) -> Path:
    """The configuration of an agent with one server."""
    (home / ".cursor").mkdir()
    file = home / ".cursor" / "mcp.json"
    file.write_text(configuration("git"))
    return file


@pytest.fixture
def hooks(home: Path) -> Path:
    """The person's own hooks."""
    (home / ".claude").mkdir()
    file = home / ".claude" / "settings.json"
    file.write_text(CLAUDE_HOOKS)
    return file


def at_terminal(
    folder: Path, *answers: tuple[str, bytes], columns: int = 100, variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    return terminal.converse([HOOKPROXY, "setup"], folder, env | (variables or {}), columns, answers)


def everything_below(*folders: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for folder in folders for file in folder.rglob("*") if file.is_file()}


# --- at a terminal ---


def test_it_shows_what_it_found_asks_wraps_and_says_how_to_undo_it(project: Path, cursor: Path, hooks: Path) -> None:
    before = cursor.read_text()
    done = at_terminal(project, FAIL_CLOSED, (WRAP_ONE, b"y\n"))
    assert done.returncode == 0
    shown = terminal.plain(done.stdout)
    assert f"{cursor}  Cursor\n  mcpServers.git  not wrapped\n" in shown
    assert "  hooks    ~/.claude: 1 hook, as claude runs them\n" in shown
    assert '-      "command": "npx",\n' in shown
    assert shown.endswith(
        f"\nrestart the agents; to undo this:\n  hookproxy unwrap {cursor}\n  hookproxy guard uninstall cursor\n"
        "everything at once: hookproxy uninstall\n"
        "what the hooks are, and what cannot work in them: hookproxy check\n"
    )
    own = own_config()
    assert servers(cursor)["git"]["args"] == ["run", "--name", "git", "--config", str(own), "--", "npx", "git"]
    assert tomllib.loads(own.read_text()) == {
        "use": [{"file": str(hooks.parent), "dialect": "claude", "on_failure": "deny"}]
    }
    assert run(project, "unwrap", str(cursor)).returncode == 0
    assert cursor.read_text() == before


def own_config() -> Path:
    """The person's own hookproxy.toml."""
    return Path(os.environ["XDG_CONFIG_HOME"]) / "hookproxy" / "hookproxy.toml"


def test_who_does_not_want_failing_hooks_to_refuse_says_no(project: Path, cursor: Path, hooks: Path) -> None:
    assert at_terminal(project, (FAIL_CLOSED[0], b"n\n"), (WRAP_ONE, b"y\n")).returncode == 0
    assert tomllib.loads(own_config().read_text())["use"] == [{"file": str(hooks.parent), "dialect": "claude"}]


@pytest.mark.parametrize(("option", "denies"), [("--yes", True), ("--no-fail-closed", False), ("--fail-closed", True)])
def test_without_a_question_failing_hooks_refuse_unless_an_option_says_no(
    project: Path, cursor: Path, hooks: Path, option: str, denies: bool
) -> None:
    assert run(project, "setup", *dict.fromkeys(("--yes", option))).returncode == 0
    (use,) = tomllib.loads(own_config().read_text())["use"]
    assert use.get("on_failure") == ("deny" if denies else None)


def test_what_was_set_up_is_known_to_try_and_check(project: Path, cursor: Path, hooks: Path) -> None:
    hooks.write_text(CLAUDE_HOOKS.replace('"true"', '"exit 9"'))
    assert run(project, "setup", "--yes").returncode == 0
    done = run(project, "try", "execute_command", '{"command": "ls"}', "--name", "desktop-commander")
    assert (done.returncode, "claude" in done.stdout) == (2, True), done.stdout
    assert str(hooks) in run(project, "check").stdout.replace("~", os.environ["HOME"])


def test_hook_files_are_added_to_a_configuration_that_exists_and_every_byte_of_it_stays(
    project: Path, cursor: Path, hooks: Path
) -> None:
    own_config().parent.mkdir(parents=True)
    before = '# mine\r\n[permissions]\r\ndeny = ["x"]  # this'
    own_config().write_bytes(before.encode())
    assert run(project, "setup", "--yes").returncode == 0
    after = own_config().read_bytes().decode()
    assert after.startswith(before)
    assert tomllib.loads(after)["use"][0]["file"] == str(hooks.parent)
    assert "\n" not in after.replace("\r\n", "")
    assert run(project, "uninstall", "--yes").returncode == 0
    assert own_config().read_bytes().decode() == before


@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"yo\n", b"\x04", b"\x03"])
def test_everything_but_yes_changes_nothing(
    project: Path, cursor: Path, hooks: Path, home: Path, answer: bytes
) -> None:
    before = everything_below(home, project)
    done = at_terminal(project, FAIL_CLOSED, (WRAP_ONE, answer))
    assert done.returncode == (130 if answer == b"\x03" else 0)
    assert done.stdout.endswith("nothing was changed\n")
    assert everything_below(home, project) == before


def test_without_any_hook_it_offers_a_first_guard_and_writes_it_only_after_the_last_yes(
    project: Path, cursor: Path, home: Path
) -> None:
    before = everything_below(home, project)
    question = ("secret files. [y/N] ", b"y\n")
    wrap_and_write = f"and write {home}/.config/hookproxy/hookproxy.toml? [y/N] "
    for answers in (
        [("secret files. [y/N] ", b"n\n")],
        [("secret files. [y/N] ", b"\x03")],
        [question, (wrap_and_write, b"n\n")],
        [question, (wrap_and_write, b"\x03")],
    ):
        assert at_terminal(project, *answers, columns=200).stdout.endswith("nothing was changed\n")
        assert everything_below(home, project) == before
    assert at_terminal(project, question, (wrap_and_write, b"yes\n"), columns=200).returncode == 0
    own = home / ".config" / "hookproxy" / "hookproxy.toml"
    assert "guard.sh" in own.read_text()
    assert servers(cursor)["git"]["args"][3:5] == ["--config", str(own)]
    assert run(project, "check").returncode == 0


def test_hooks_of_the_project_guard_only_its_own_servers_and_only_if_a_person_says_so(
    project: Path, cursor: Path, home: Path
) -> None:
    (project / ".github" / "hooks").mkdir(parents=True)
    hooks = project / ".github" / "hooks" / "a.json"
    hooks.write_text(COPILOT_HOOKS)
    (project / ".vscode").mkdir()
    file = project / ".vscode" / "mcp.json"
    file.write_text('{"servers": {"git": {"command": "npx", "args": []}}}')
    before = everything_below(home, project)
    refused = at_terminal(project, (USE_PROJECT, b"n\n"), ("secret files. [y/N] ", b"n\n"), columns=200)
    assert refused.stdout.endswith("nothing was changed\n")
    assert everything_below(home, project) == before
    done = at_terminal(project, (USE_PROJECT, b"y\n"), FAIL_CLOSED, (WRAP_ALONE, b"y\n"), columns=200)
    assert done.returncode == 0
    assert "nothing would guard its servers: it is not changed" in " ".join(done.stdout.split())
    assert cursor.read_bytes() == before[str(cursor)]
    args = json.loads(file.read_text())["servers"]["git"]["args"]
    assert args[2:5] == ["--hooks", f"copilot@current={hooks}", "--fail-closed"]


def test_in_a_shared_file_hooks_of_the_project_have_relative_paths_and_others_are_left_out(
    project: Path, hooks: Path
) -> None:
    subprocess.run(["git", "init", "--quiet", str(project)], check=True)
    (project / ".github" / "hooks").mkdir(parents=True)
    (project / ".github" / "hooks" / "a.json").write_text(COPILOT_HOOKS)
    (project / ".vscode").mkdir()
    file = project / ".vscode" / "mcp.json"
    file.write_text('{"servers": {"git": {"command": "npx", "args": ["x"]}}}')
    path = f"{os.path.dirname(HOOKPROXY)}:{os.environ['PATH']}"
    done = at_terminal(
        project, (USE_PROJECT, b"y\n"), FAIL_CLOSED, (WRAP_ONE, b"y\n"), columns=200, variables={"PATH": path}
    )
    assert f'+file = "{hooks.parent}"' in done.stdout
    assert json.loads(file.read_text())["servers"]["git"] == {
        "command": "hookproxy",
        "args": [
            *("run", "--name", "git", "--hooks", "copilot@current=.github/hooks/a.json", "--fail-closed", "--"),
            *("npx", "x"),
        ],
    }  # fmt: skip


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_it_fits_on_any_terminal_and_nothing_in_a_file_reaches_it_raw(
    project: Path, cursor: Path, home: Path, hooks: Path, columns: int
) -> None:
    cursor.write_text('{"mcpServers": {"\u202eevil\x9b31m": {"command": "a\u202eb"}}}')
    (home / ".copilot" / "hooks").mkdir(parents=True)
    (home / ".copilot" / "hooks" / "\u202eodd\x9b31m.json").write_text("{")
    done = at_terminal(project, FAIL_CLOSED, (WRAP_ONE, b"y\n"), columns=columns)
    assert done.returncode == 1  # a hook file is left out
    assert "\\u202eodd" in "".join(terminal.plain(done.stdout).split())  # a long path is broken into lines
    assert "\u202e" not in done.stdout
    assert "\x9b" not in done.stdout
    assert "\\u202eevil\\x9b31m" in done.stdout
    assert "\x1b[3" in done.stdout


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_there_are_no_colours_where_they_are_not_wanted(
    project: Path, cursor: Path, hooks: Path, name: str, value: str
) -> None:
    done = at_terminal(project, FAIL_CLOSED, (WRAP_ONE, b"n\n"), variables={name: value})
    assert "\x1b[3" not in done.stdout
    assert "\n-      " in done.stdout


def test_a_file_that_changes_while_the_person_thinks_is_not_written(project: Path, cursor: Path, hooks: Path) -> None:
    newer = cursor.with_name("other.json")
    changed = configuration("git", "time")
    newer.write_text(changed)
    done = terminal.converse(
        ["sh", "-c", f"{HOOKPROXY} setup || echo status $?"],
        project,
        dict(os.environ),
        100,
        [FAIL_CLOSED, (WRAP_ONE, lambda: os.rename(newer, cursor)), ("", b"y\n")],
    )
    assert "has changed since it was read" in " ".join(done.stdout.split())
    assert "status 2" in done.stdout
    assert cursor.read_text() == changed


# --- without a terminal ---


def test_without_a_terminal_it_changes_nothing_unless_told_to(project: Path, cursor: Path, hooks: Path) -> None:
    before = cursor.read_text()
    done = run(project, "setup")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "error: there is no terminal to ask on; nothing was changed\nhint: hookproxy setup --yes"
    )
    trial = run(project, "setup", "--dry-run")
    assert (trial.returncode, cursor.read_text()) == (0, before)
    assert trial.stdout.endswith("nothing was changed\n")
    done = run(project, "setup", "--yes")
    assert done.returncode == 0, done.stderr
    assert servers(cursor)["git"]["command"] == HOOKPROXY
    again = run(project, "setup", "--yes")
    assert again.returncode == 0
    assert "nothing to do: every server that can be wrapped is wrapped already\n" in again.stdout


def test_servers_at_an_address_are_wrapped_too(project: Path, cursor: Path, hooks: Path) -> None:
    before = configuration(far={"url": "https://x"}, near={"command": "npx", "args": ["mcp-remote", "https://y"]})
    cursor.write_text(before)
    done = run(project, "setup", "--yes", "--replace-mcp-remote")
    assert done.returncode == 0, done.stderr
    assert servers(cursor)["far"]["args"][-2:] == ["--url", "https://x"]
    assert servers(cursor)["near"]["args"][-2:] == ["--url", "https://y"]
    again = run(project, "setup", "--yes")
    assert "nothing to do: every server that can be wrapped is wrapped already\n" in again.stdout
    assert run(project, "unwrap", "cursor").returncode == 0
    assert cursor.read_text() == before


def test_a_second_time_servers_that_their_agent_guards_itself_are_no_error(
    project: Path, cursor: Path, hooks: Path, home: Path
) -> None:
    (home / ".claude.json").write_text(configuration("git"))
    assert run(project, "setup", "--yes").returncode == 0
    again = run(project, "setup", "--yes")
    assert (again.returncode, again.stderr.count("error:")) == (0, 0), again.stderr
    assert again.stdout.endswith("nothing to do: all other servers are wrapped already\n")


def test_the_error_of_one_file_is_two_lines(project: Path, cursor: Path, hooks: Path, home: Path) -> None:
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text("{bad")
    for verb in (["setup", "--yes"], ["wrap", "--all"], ["unwrap", "--all"]):
        done = run(project, *verb)
        lines = (done.stdout + done.stderr).splitlines()
        beginning = f"error: {home}/.gemini/settings.json:1: not JSON"
        error = next(number for number, line in enumerate(lines) if line.startswith(beginning))
        assert lines[error + 1] == "hint: correct it there; comments are allowed"


def test_yes_never_uses_the_hooks_of_a_project(project: Path, cursor: Path, home: Path) -> None:
    (project / ".claude").mkdir()
    (project / ".claude" / "settings.json").write_text(CLAUDE_HOOKS)
    before = everything_below(home, project)
    done = run(project, "setup", "--yes")
    assert done.returncode == 2
    assert "the hook files of this project are left out; --hooks DIALECT=FILE names one of them\n" in done.stderr
    assert "error: nothing would guard these servers; nothing was changed\nhint: " in done.stderr
    assert everything_below(home, project) == before
    assert run(project, "setup", "--yes", "--hooks", "claude=.claude/settings.json").returncode == 0


def test_all_agents_are_set_up_with_one_command_and_every_byte_comes_back(
    project: Path, home: Path, hooks: Path
) -> None:
    files = agent_homes.write_all(home, project)
    done = run(project, "setup", "--yes")
    assert done.returncode == 0, done.stderr
    unchanged = [file for file, raw in agent_homes.content(files).items() if raw == files[file]]
    assert unchanged == [home / ".claude.json"]  # Claude Code runs these hooks itself
    assert f"Claude Code runs the hooks of {hooks.parent} itself: they are left out here" in done.stderr
    assert done.stderr.count("written with its path") == 1  # which is the same for all
    for line in done.stdout.splitlines():
        if line.startswith("  hookproxy "):
            assert run(project, *shlex.split(line)[1:]).returncode == 0
    assert agent_homes.content(files) == files


def test_an_agents_own_hooks_are_not_put_in_front_of_its_own_calls(project: Path, home: Path) -> None:
    own = home / ".cursor" / "hooks.json"
    own.parent.mkdir()
    own.write_text(json.dumps({"version": 1, "hooks": {"beforeMCPExecution": [{"command": "true"}]}}))
    for folder in (".cursor", ".gemini"):
        file = home / folder / ("mcp.json" if folder == ".cursor" else "settings.json")
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"mcpServers": {"files": {"command": "true"}}}))
    done = run(project, "setup", "--yes")
    assert done.returncode == 0, done.stderr
    assert f"Cursor runs the hooks of {own} itself: they are left out here" in done.stderr
    assert "hookproxy" not in (home / ".cursor" / "mcp.json").read_text()
    assert "hookproxy" in (home / ".gemini" / "settings.json").read_text()


def test_it_shows_the_familiar_names_of_known_servers(project: Path, cursor: Path, hooks: Path) -> None:
    server = {"command": "npx", "args": ["-y", "@wonderwhy-er/desktop-commander"]}
    cursor.write_text(json.dumps({"mcpServers": {"shell": server}}))
    shown = run(project, "setup", "--dry-run").stdout
    for alias in PRESETS["desktop-commander"].tools:
        assert f"{alias.tool} as {alias.name}" in shown


def test_only_the_named_agents_are_set_up(project: Path, home: Path, hooks: Path) -> None:
    files = agent_homes.write_all(home, project)
    assert run(project, "setup", "--yes", "zed", "codex").returncode == 0
    changed = [file.name for file, raw in agent_homes.content(files).items() if raw != files[file]]
    assert sorted(changed) == ["config.toml", "settings.json"]


def test_servers_that_are_wrapped_stay_as_they_are(project: Path, cursor: Path, hooks: Path) -> None:
    own = {"command": "/old/hookproxy", "args": ["run", "--hooks", "lime=/x", "--", "npx"]}
    cursor.write_text(configuration("git", mine=own))
    assert run(project, "setup", "--yes").returncode == 0
    assert servers(cursor)["mine"] == own
    assert servers(cursor)["git"]["command"] == HOOKPROXY


def test_the_users_own_configuration_guards_every_server(project: Path, cursor: Path, home: Path, hooks: Path) -> None:
    own = home / ".config" / "hookproxy" / "hookproxy.toml"
    own.parent.mkdir(parents=True)
    own.write_text(f'use = [{{ file = "{hooks}", dialect = "claude" }}]\n')
    assert run(project, "setup", "--yes", "--no-fail-closed").returncode == 0
    assert servers(cursor)["git"]["args"] == ["run", "--name", "git", "--config", str(own), "--", "npx", "git"]
    assert run(project, "unwrap", "cursor").returncode == 0
    assert run(project, "setup", "--yes").returncode == 0
    assert servers(cursor)["git"]["args"][3:7] == ["--config", str(own), "--fail-closed", "--"]
    assert run(project, "unwrap", "cursor").returncode == 0
    assert run(project, "setup", "--yes", "--fail-closed").returncode == 0
    assert servers(cursor)["git"]["args"][3:7] == ["--config", str(own), "--fail-closed", "--"]


def test_an_own_hook_file_that_cannot_be_read_is_left_out_and_the_exit_status_says_so(
    project: Path, cursor: Path, home: Path, hooks: Path
) -> None:
    (home / ".copilot" / "hooks").mkdir(parents=True)
    (home / ".copilot" / "hooks" / "a.json").write_text("{")
    done = run(project, "setup", "--yes")
    assert done.returncode == 1
    assert "left out" in done.stdout
    assert f"{home}/.copilot/hooks/a.json cannot be read and is left out: its hooks will not run\n" in done.stderr
    assert tomllib.loads(own_config().read_text())["use"][0]["file"] == str(hooks.parent)


def test_a_configuration_that_would_not_start_stops_it(project: Path, cursor: Path, home: Path, hooks: Path) -> None:
    own = home / ".config" / "hookproxy" / "hookproxy.toml"
    own.parent.mkdir(parents=True)
    own.write_text("nonsense = 1\n")
    before = everything_below(home, project)
    done = run(project, "setup", "--yes")
    assert done.returncode == 2
    assert "hookproxy.toml:1" in done.stderr
    assert everything_below(home, project) == before


def test_if_no_configuration_can_be_read_nothing_is_changed(project: Path, cursor: Path, hooks: Path) -> None:
    cursor.write_text("{")
    done = run(project, "setup", "--yes")
    assert done.returncode == 2
    assert "error: no configuration can be used; nothing was changed" in done.stderr


def test_what_a_person_has_said_yes_to_is_not_interrupted() -> None:
    done = []

    def interrupted() -> None:
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert done == ["all of it"]


def test_a_hook_file_that_is_new_is_added_although_all_servers_are_wrapped(
    project: Path, cursor: Path, home: Path, hooks: Path
) -> None:
    assert run(project, "setup", "--yes").returncode == 0
    wrapped = cursor.read_text()
    (home / ".copilot" / "hooks").mkdir(parents=True)
    (home / ".copilot" / "hooks" / "a.json").write_text(COPILOT_HOOKS)
    done = at_terminal(project, FAIL_CLOSED, ("Write ", b"y\n"), columns=200)
    assert done.returncode == 0, done.stdout
    files = [use["file"] for use in tomllib.loads(own_config().read_text())["use"]]
    assert files == [str(hooks.parent), f"{home}/.copilot/hooks/a.json"]
    assert cursor.read_text() == wrapped
    assert "nothing to do" in run(project, "setup", "--yes").stdout
    assert run(project, "uninstall", "--yes").returncode == 0
    assert not own_config().exists()


def test_hook_files_that_wrapped_servers_name_themselves_are_not_added(
    project: Path, cursor: Path, hooks: Path
) -> None:
    assert run(project, "wrap", "cursor", "--hooks", f"claude={hooks.parent}").returncode == 0
    done = run(project, "setup", "--yes")
    assert (done.returncode, "nothing to do" in done.stdout) == (0, True)
    assert not own_config().exists()


def test_where_trust_is_required_it_says_how_to_trust_what_it_wrote(project: Path, cursor: Path, hooks: Path) -> None:
    own_config().parent.mkdir(parents=True)
    own_config().write_text("require_trust = true\n")
    assert run(project, "trust", str(own_config())).returncode == 0
    refused = run(project, "setup", "--yes")
    assert refused.returncode == 2  # the hook file is not trusted
    assert run(project, "trust", f"claude={hooks.parent}").returncode == 0
    done = run(project, "setup", "--yes")
    assert done.returncode == 0, done.stderr
    assert f"servers start again after: hookproxy trust {own_config()}\n" in done.stderr
    assert run(project, "check").returncode == 2
    assert run(project, "trust", str(own_config())).returncode == 0
    assert run(project, "check").returncode in (0, 1)


# --- the agents' own tools ---


def own_tools(home: Path) -> Path:
    """The hook file of the agent of `cursor`."""
    return home / ".cursor" / "hooks.json"


def test_the_guard_judges_the_own_tools_of_the_agents_that_are_set_up(
    project: Path, home: Path, cursor: Path, hooks: Path
) -> None:
    shown = run(project, "setup", "--dry-run")
    assert "Cursor: an entry for each event in ~/.cursor/hooks.json" in shown.stdout
    assert not own_tools(home).exists()
    done = run(project, "setup", "--yes")
    assert done.returncode == 0, done.stderr
    assert "/hookproxy/guard/client.py cursor " in own_tools(home).read_text()
    assert "nothing to do" in run(project, "setup", "--yes").stdout
    assert run(project, "check").returncode == 0
    assert run(project, "uninstall", "--yes").returncode == 0
    assert not own_tools(home).exists()


def test_a_person_is_asked_once_for_servers_and_own_tools(project: Path, home: Path, cursor: Path, hooks: Path) -> None:
    question = "Wrap 1 server in 1 file, let the guard judge what Cursor does with tools of its own, and write "
    done = at_terminal(project, FAIL_CLOSED, (WRAP_ONE, b"n\n"), columns=200)
    assert question in terminal.plain(done.stdout)
    assert not own_tools(home).exists()


def test_the_guard_can_be_left_out(project: Path, home: Path, cursor: Path, hooks: Path) -> None:
    assert run(project, "setup", "--yes", "--no-guard").returncode == 0
    assert not own_tools(home).exists()
    assert "nothing to do" in run(project, "setup", "--yes", "--no-guard").stdout
    assert run(project, "setup", "--yes").returncode == 0
    assert own_tools(home).exists()


def test_without_a_configuration_of_the_person_the_guard_is_left_out(
    project: Path, home: Path, cursor: Path, hooks: Path
) -> None:
    config = project / "hookproxy.toml"
    config.write_text('[permissions]\ndeny = ["x"]\n')
    assert run(project, "setup", "--yes", "--config", str(config)).returncode == 0
    assert not own_tools(home).exists()


@pytest.mark.usefixtures("cursor", "hooks")
@pytest.mark.parametrize(
    ("words", "config", "refused"),
    [
        ((), "", True),
        (("--fail-closed",), "[guard]\nfail_closed = false\n", True),
        ((), "[guard]\nfail_closed = false\n", False),
        (("--no-fail-closed",), "[guard]\nfail_closed = true\n", False),
    ],
)
def test_what_the_guard_cannot_judge_is_refused_unless_an_option_or_the_configuration_says_otherwise(
    words: tuple[str, ...], config: str, refused: bool, project: Path, home: Path
) -> None:
    own_config().parent.mkdir(parents=True)
    own_config().write_text(config)
    done = run(project, "setup", "--yes", *words)
    assert done.returncode == 0, done.stderr
    text = own_tools(home).read_text()
    assert (" SECONDS=540 2 " in text, " SECONDS=540 open 2 " in text) == (refused, not refused)
    other = "--no-fail-closed lets cursor decide" if refused else "--fail-closed refuses it"
    assert f"hookproxy guard install cursor {other}" in " ".join(done.stdout.split())
