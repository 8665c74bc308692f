"""`hookproxy convert`: a hook file for another agent, on standard output or in its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hookproxy.cli.convert import main
from hookproxy.model.errors import UserError

HOOKS = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "guard"}]}]}


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


def test_a_file_without_hooks_that_can_run_is_an_error(project: Path) -> None:
    (project / ".claude/settings.json").write_text('{"hooks": {"Stop": []}}', "utf-8")
    with pytest.raises(UserError, match="no hook of it can run in copilot"):
        main([".claude/settings.json", "--to", "copilot"])


def test_hooks_of_another_project_keep_their_folder(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "other").mkdir()
    assert main([".claude/settings.json", "--to", "copilot", "--project", "other", "--write"]) == 0
    written = project / "other/.github/hooks/hookproxy.json"
    assert f"cd {project} || exit 2; export CLAUDE_PROJECT_DIR={project}; guard" in written.read_text()
    assert capsys.readouterr().out == f"{written}\n"


def test_several_files_are_written_and_not_printed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="augment needs several files") as caught:
        main([".claude/settings.json", "--to", "augment"])
    assert "--write" in str(caught.value.hint)
    assert main([".claude/settings.json", "--to", "augment", "--write"]) == 1  # it cannot ask, rewrite, …
    script = project / ".augment/hooks/hookproxy-1.sh"
    assert str(script) in (project / ".augment/settings.json").read_text()
    assert script.stat().st_mode & 0o777 == 0o755
    assert "the call is refused: augment lets no hook ask" in capsys.readouterr().err


def test_events_of_the_agent_alone_are_left_out_in_the_words_of_a_conversion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = {"type": "command", "command": "true"}
    events = {"Stop": [{"hooks": [hook]}], "PreToolUse": [{"hooks": [hook]}]}
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"hooks": events}))
    assert main([str(path), "--from", "claude", "--to", "cursor"]) == 1
    assert f"{path}: hooks.Stop is left out: only hooks of tool calls are converted\n" in capsys.readouterr().err
