"""`hookproxy convert`: a hook file for another agent, on standard output or in its place."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from hookproxy.cli.convert import main
from hookproxy.model.errors import UserError

HOOKS = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}]}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a hook file of Claude Code."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text(json.dumps({"hooks": HOOKS}), "utf-8")
    return tmp_path


def test_the_file_is_printed_and_nothing_is_written(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([".claude/settings.json", "--to", "copilot"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["version"] == 1
    assert printed.err == ""
    assert sorted(path.name for path in project.iterdir()) == [".claude"]


def test_it_is_written_to_its_place_and_never_over_another_file(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([".claude/settings.json", "--to", "copilot", "--write"]) == 0
    written = project / ".github/hooks/hookproxy.json"
    assert capsys.readouterr().out == f"{written}\n"
    assert "preToolUse" in written.read_text().replace("PreToolUse", "preToolUse")
    assert main([".claude/settings.json", "--to", "copilot", "--write"]) == 0
    assert capsys.readouterr().out == f"{written}: nothing to do\n"
    written.write_text("{}", "utf-8")
    with pytest.raises(UserError, match="exists already"):
        main([".claude/settings.json", "--to", "copilot", "--write"])


def test_what_the_other_system_cannot_say_is_printed_and_makes_the_status_one(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hooks = HOOKS | {"Elicitation": [{"hooks": [{"type": "command", "command": "true"}]}]}
    (project / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}), "utf-8")
    assert main([".claude/settings.json", "--to", "copilot"]) == 1
    assert "copilot has no event for Elicitation" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([".claude/settings.json", "--to", "nobody"], "hookproxy cannot write hook files of 'nobody'"),
        ([".claude/settings.json", "--to", "copilot", "--from", "nobody"], "there is no dialect 'nobody'"),
        (["missing.json", "--to", "copilot"], "missing.json"),
    ],
)
@pytest.mark.usefixtures("project")
def test_a_wrong_word_is_an_error(words: list[str], why: str) -> None:
    with pytest.raises(UserError) as caught:
        main(words)
    assert why in str(caught.value)


def test_where_the_system_is_not_known_the_hint_is_an_option_of_convert(project: Path) -> None:
    (project / "x.json").write_text('{"theme": "dark"}')
    with pytest.raises(UserError) as raised:
        main(["x.json", "--to", "copilot"])
    assert raised.value.message.endswith("cannot tell which system this hook file is for")
    assert raised.value.hint.startswith("name its dialect: --from claude; ")


def test_a_file_without_hooks_that_can_run_is_an_error(project: Path) -> None:
    (project / ".claude/settings.json").write_text('{"hooks": {"Stop": []}}', "utf-8")
    with pytest.raises(UserError, match="none of its hooks can run in copilot"):
        main([".claude/settings.json", "--to", "copilot"])


def test_hooks_of_another_project_keep_their_folder(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "other").mkdir()
    assert main([".claude/settings.json", "--to", "copilot", "--project", "other", "--write"]) == 0
    written = project / "other/.github/hooks/hookproxy.json"
    assert f"cd {project} || exit 2; export CLAUDE_PROJECT_DIR={project}; true" in written.read_text()
    assert capsys.readouterr().out == f"{written}\n"


def test_several_files_are_written_and_not_printed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="augment needs several files") as caught:
        main([".claude/settings.json", "--to", "augment"])
    assert "--write" in str(caught.value.hint)
    assert main([".claude/settings.json", "--to", "augment", "--write"]) == 1  # it cannot ask, rewrite, …
    script = project / ".augment/hooks/hookproxy-1.sh"
    assert str(script) in (project / ".augment/settings.json").read_text()
    assert script.stat().st_mode & 0o777 == 0o755
    assert "the call is refused: augment does not let hooks ask" in capsys.readouterr().err


def test_events_of_the_agent_alone_are_left_out_in_the_words_of_a_conversion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = {"type": "command", "command": "true"}
    events = {"Stop": [{"hooks": [hook]}], "PreToolUse": [{"hooks": [hook]}]}
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"hooks": events}))
    assert main([str(path), "--from", "claude", "--to", "cursor"]) == 1
    assert f"{path}: hooks.Stop is left out: only hooks of tool calls are converted\n" in capsys.readouterr().err


def hook_file(project: Path, command: str) -> None:
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}]}
    (project / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}), "utf-8")


def test_a_hook_that_cannot_run_stops_the_writing_and_no_try_does_not(project: Path) -> None:
    hook_file(project, "./missing.sh")
    with pytest.raises(UserError, match=r"PreToolUse: a dry call of bash failed: .*not found") as caught:
        main([".claude/settings.json", "--to", "copilot", "--write"])
    assert caught.value.hint.startswith("nothing was written")
    assert not (project / ".github").exists()
    assert main([".claude/settings.json", "--to", "copilot", "--write", "--no-try"]) == 0
    assert (project / ".github/hooks/hookproxy.json").exists()


def test_paths_are_absolute_unless_the_file_is_to_be_committed(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "guard.sh").write_text("exit 0\n")
    hook_file(project, "sh guard.sh")
    assert main([".claude/settings.json", "--to", "copilot"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["hooks"]["PreToolUse"]
    assert entry["bash"].startswith("/")
    assert entry["bash"].endswith(f"-- 'sh {project}/guard.sh'")
    assert main([".claude/settings.json", "--to", "copilot", "--portable"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["hooks"]["PreToolUse"]
    assert entry["bash"] == "hookproxy hook --for copilot --as claude --matcher Bash -- 'sh guard.sh'"


@pytest.mark.slow
def test_a_persons_own_file_is_written_into_the_home_folder_or_where_a_variable_says(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Path(os.environ["HOME"])
    assert main([".claude/settings.json", "--to", "copilot", "--user", "--write"]) == 0
    assert capsys.readouterr().out == f"{home}/.copilot/hooks/hookproxy.json\n"
    assert f"cd {project} || exit 2" in (home / ".copilot/hooks/hookproxy.json").read_text()
    monkeypatch.setenv("COPILOT_HOME", str(home / "moved"))
    assert main([".claude/settings.json", "--to", "copilot", "--user", "--write"]) == 0
    assert (home / "moved/hooks/hookproxy.json").exists()
    with pytest.raises(UserError, match="docker-agent reads no hook file in the home folder"):
        main([".claude/settings.json", "--to", "docker-agent", "--user"])


@pytest.mark.slow
def test_a_file_that_it_wrote_is_replaced_and_one_that_somebody_changed_is_not(project: Path) -> None:
    words = [".claude/settings.json", "--to", "copilot", "--write"]
    written = project / ".github/hooks/hookproxy.json"
    assert main(words) == 0
    hook_file(project, "true; true")
    assert main(words) == 0
    assert "true; true" in written.read_text()
    assert [path.name for path in written.parent.iterdir()] == ["hookproxy.json"]
    written.write_text(written.read_text() + "\n")
    hook_file(project, "true")
    with pytest.raises(UserError, match="exists already"):
        main(words)


def test_where_it_is_to_fail_closed_the_command_itself_refuses_without_hookproxy(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([".claude/settings.json", "--to", "codex", "--fail-closed"]) == 1
    ((group,),) = json.loads(capsys.readouterr().out)["hooks"].values()
    command = group["hooks"][0]["command"]
    assert "--fail-closed" in command
    broken = re.sub(r" \S+ hook --for", " /missing/hookproxy hook --for", command)
    ended = subprocess.run(["sh", "-c", broken], input="{}", capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert ended.stderr.endswith("hookproxy did not run, so that no hook judged this call: it is refused\n")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--user", "--portable"], "--portable is for a project's file"),
        (["--project", "missing"], "there is no folder"),
        (["--no-try"], "--no-try is for --write"),
        (["--user", "--project", "."], "not allowed with argument"),
    ],
)
@pytest.mark.usefixtures("project")
def test_options_that_contradict_each_other_are_an_error(words: list[str], why: str) -> None:
    with pytest.raises(UserError, match=why):
        main([".claude/settings.json", "--to", "copilot", *words])
