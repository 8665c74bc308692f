"""`hookproxy demo`, as a person at a terminal, a pipe and a changed set of hooks see it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import mcp  # noqa: F401  # keeps the standard error at import for its servers: that of a test has no descriptor
import pytest

from hookproxy.cli.demo import CALLS, main
from hookproxy.demo.received import FOLDER
from hookproxy.model.errors import UserError
from tests.support import terminal

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "hookproxy", "demo"]
SEEN = """\
hookproxy: tools not pinned: `hookproxy lock --name files -- COMMAND` pins them
hookproxy: files: 4 hooks on 4 of 4 tools
"""  # what `run` says on standard error; the command is left out where the name of the folder looks like a secret


def seen(text: str) -> str:
    """What is on standard error, without the server's command."""
    return re.sub(r"-- \S[^`]*`", "-- COMMAND`", text)


COLOURED = "\x1b[1;31m3  blocked\x1b[0m"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the demo prints into a pipe, where everything that it might read or leave behind is in the way."""
    folder = tmp_path_factory.mktemp("demo")
    config = folder / ".config" / "hookproxy" / "hookproxy.toml"
    config.parent.mkdir(parents=True)
    config.write_text("nonsense")
    (folder / "anyio.py").write_text("raise SystemExit('taken from the working directory')")
    before = sorted(folder.rglob("*"))
    env = os.environ | {
        "TMPDIR": str(folder),
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / ".config"),
        "COLUMNS": "120",
    }
    command = [str(Path(sys.executable).with_name("hookproxy")), "demo"]
    ended = subprocess.run(command, env=env, cwd=folder, capture_output=True, encoding="utf-8", timeout=60)
    assert (ended.returncode, seen(ended.stderr)) == (0, SEEN)
    assert sorted(folder.rglob("*")) == before
    assert running_with(folder) == []
    return ended.stdout


def demo_output_on_a_terminal(tmp_path: Path, **environment: str) -> str:
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    ended = terminal.run(COMMAND, tmp_path, env | environment, 80)
    assert ended.returncode == 0
    return ended.stdout


def running_with(folder: Path) -> list[str]:
    """The command lines of processes with this folder in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder) in (process / "environ").read_text(errors="replace"):
                found.append((process / "cmdline").read_text(errors="replace"))
        except OSError:  # it has ended, or is not ours
            continue
    return found


def test_it_ends_as_by_sigpipe_if_nobody_reads_the_output() -> None:
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert seen(process.stderr.read().decode()) == SEEN
        assert process.wait(60) == 141


def test_each_call_is_shown_as_agent_hooks_and_server_saw_it(shown: str) -> None:
    assert "\x1b" not in shown
    assert not any(line.endswith(" ") for line in shown.splitlines())
    headings = [line.split()[:2] for line in shown.splitlines() if line[:1].isdigit()]
    assert headings == [["1", "allowed"], ["2", "rewritten"], ["3", "blocked"], ["4", "failed"]]
    allowed, rewritten, blocked, failed = shown.split("\n\n")[1:5]
    assert 'server received  write_file  path="todo.md"  text="- buy milk"  (unchanged)' in allowed
    assert "\n  and            todo.md does not end with a line feed. Write it again with one." in allowed
    assert 'agent sent       write_file  path="keys.md"  text="key: sk-live-51Hx9TqLm27\\n"' in rewritten
    assert "\nredact.py        allows (PreToolUse, exit 0, " in rewritten
    assert 'server received  write_file  path="keys.md"  text="key: [key removed]\\n"  (rewritten)' in rewritten
    assert "\nguard.py         blocks (PreToolUse, exit 2, " in blocked
    assert "server received  nothing" in blocked
    assert "agent got        Blocked by the PreToolUse hook guard.py: .env holds secrets." in blocked
    assert "\nreview.py        comments (PostToolUseFailure, exit 0, " in failed
    assert "agent got        there is no file plan.md  (isError)" in failed


def test_nothing_is_left_behind_and_nothing_of_the_users_own_is_read(shown: str) -> None:
    assert shown


def test_a_terminal_gets_colours_unless_no_color_is_set(tmp_path: Path) -> None:
    assert COLOURED in demo_output_on_a_terminal(tmp_path)
    plain = demo_output_on_a_terminal(tmp_path, NO_COLOR="1", PYTHONIOENCODING="ascii")
    assert "31m" not in plain
    assert plain.isascii()


def test_the_output_shows_what_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hooks = shutil.copytree(FOLDER, tmp_path / "demo")
    (hooks / "hooks" / "guard.py").write_text("")
    (hooks / "hooks" / "redact.py").write_text("import sys\nsys.exit('no key is safe')")
    monkeypatch.setattr("hookproxy.cli.demo.FOLDER", hooks)
    monkeypatch.setenv("COLUMNS", "120")
    assert main([]) == 0
    shown = capsys.readouterr().out
    headings = [line.split()[1] for line in shown.splitlines() if line[:1].isdigit()]
    assert headings == ["blocked", "blocked", "allowed", "failed"]
    assert "redact.py        failed (PreToolUse, exit 1, " in shown
    assert "exited with status 1: no key is safe" in shown
    assert "agent got        .env deleted" in shown


def test_hooks_that_block_everything_leave_the_server_without_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hooks = shutil.copytree(FOLDER, tmp_path / "demo")
    (hooks / "hooks" / "guard.py").write_text("import sys\nsys.exit(2)")
    monkeypatch.setattr("hookproxy.cli.demo.FOLDER", hooks)
    assert main([]) == 0
    assert capsys.readouterr().out.count("server received  nothing") == len(CALLS)


def test_help_and_unknown_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert (ended.value.code, "hookproxy demo" in capsys.readouterr().out) == (0, True)
    with pytest.raises(UserError, match="--nonsense"):
        main(["--nonsense"])
