"""What `check` finds in real files: each hook with its place, each finding once, and remarks that do not count."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from hookproxy.checks.inspect import inspect
from hookproxy.checks.report import FailureEffect, Finding, HookEntry, Report
from hookproxy.config.load import load

PATH = {"PATH": "/bin:/usr/bin"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "good.sh").touch(0o755)
    return tmp_path


def claude(path: Path, *groups: Mapping[str, object], event: str = "PreToolUse") -> Path:
    """A settings file with these matcher groups, an item to a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"hooks": {event: groups}}, indent=1))
    return path


def group(*commands: str, matcher: str = "", **more: object) -> dict[str, object]:
    return {"matcher": matcher, "hooks": [{"type": "command", "command": command, **more} for command in commands]}


def checked(project: Path, *hooks: str, config: str = "", environ: Mapping[str, str] = PATH) -> Report:
    """What is found in these hook files, and in a hookproxy.toml of this text."""
    path = None
    if config:
        path = str(project / "hookproxy.toml")
        (project / "hookproxy.toml").write_text(config)
    environ = {"HOME": str(project / "home"), **environ}
    return inspect(load(path, hooks, None, environ, str(project)), environ)


def texts(findings: tuple[Finding, ...]) -> list[str]:
    return [one.text for one in findings]


def test_an_entry_describes_a_hook_as_in_its_file(project: Path) -> None:
    path = claude(
        project / "settings.json",
        group("./good.sh --x", matcher="mcp__git__commit", timeout=7, onFailure="block", **{"if": "mcp__git__*(x)"}),
    )
    report = checked(project, "claude=settings.json")
    assert report.entries == (
        HookEntry(
            file=str(path),
            line=7,
            key="hooks.PreToolUse[0].hooks[0]",
            dialect="claude",
            event="PreToolUse",
            event_name="PreToolUse",
            matcher="mcp__git__commit",
            only_if="mcp__git__*(x)",
            command="./good.sh --x",
            timeout=7.0,
            on_failure=FailureEffect.BLOCK,
            decides=True,
            fires=True,
            awaited=True,
            label="good.sh",
        ),
    )
    assert (report.findings, report.remarks) == ((), ())


def test_an_own_hook_has_the_line_of_its_table(project: Path) -> None:
    config = (
        "\n[[hooks.PreToolUse]]\nargv = ['./good.sh', 'a b']\n\n[[hooks.PostToolUse]]\ncommand = 'gone'\nasync = true\n"
    )
    report = checked(project, config=config)
    first, second = report.entries
    assert (first.line, first.dialect, first.command) == (2, "hookproxy", f"{project}/good.sh 'a b'")
    assert (first.on_failure, first.awaited) == (FailureEffect.BLOCK, True)
    assert (second.line, second.key, second.awaited) == (5, "hooks.PostToolUse[0]", False)
    assert report.findings == second.findings
    assert report.findings[0].line == 5
    assert texts(report.findings) == ["there is no program 'gone' in PATH"]


def test_one_hook_can_have_every_kind_of_finding(project: Path) -> None:
    claude(project / "settings.json", group("bash -lc x", matcher="Task", timeout=0.01, **{"if": "Task(x)"}))
    report = checked(project, "claude=settings.json")
    assert [text.split()[0] for text in texts(report.findings)] == ["matcher", "`if`", "a", "it"]


def test_a_hook_for_an_event_that_cannot_fire_is_an_entry_with_the_reason(project: Path) -> None:
    path = claude(project / "settings.json", group("x"), event="Stop")
    (project / "more.json").write_text(
        json.dumps({"hooks": {"PreToolUse": [group("./good.sh")], "SubagentStop": [group("x")]}}, indent=1)
    )
    report = checked(project, "claude=settings.json", "claude=more.json")
    fires, idle, unknown = report.entries
    assert fires.fires
    assert (idle.dialect, idle.event, idle.event_name, idle.fires, idle.line) == (
        "claude",
        "",
        "SubagentStop",
        False,
        14,
    )
    assert (unknown.file, unknown.key, unknown.event_name) == (str(path), "hooks.Stop", "Stop")
    assert (unknown.fires, unknown.line) == (False, 3)
    assert report.findings == ()
    assert idle.remarks + unknown.remarks == report.remarks[:2]
    assert [one.text for one in report.remarks if one.file == str(path)] == [
        "hooks.Stop cannot fire behind MCP: an MCP server does not see turns, tasks and subagents",
        "none of its hooks can run here",
    ]


def test_a_hook_that_does_not_run_is_an_entry(project: Path) -> None:
    entry = {"hooks": [{"type": "prompt", "prompt": "x"}, {"type": "command", "command": "./good.sh"}]}
    claude(project / "settings.json", entry)
    report = checked(project, "claude=settings.json")
    idle, running = report.entries
    assert (idle.key, idle.event, idle.fires) == ("hooks.PreToolUse[0].hooks[0]", "PreToolUse", False)
    assert idle.findings == report.findings
    assert running.findings == ()


def test_a_note_about_a_group_appears_at_each_of_its_hooks_and_counts_once(project: Path) -> None:
    claude(project / "settings.json", group("./good.sh", "true", matcher="mcp__memory"), group("true"))
    report = checked(project, "claude=settings.json")
    assert [len(entry.findings) for entry in report.entries] == [1, 1, 0]
    (only,) = report.findings
    assert only.text.startswith("hooks.PreToolUse[0].matcher 'mcp__memory' never matches")
    assert only.line == 5


def test_a_finding_that_a_start_up_note_reports_is_not_repeated(project: Path) -> None:
    claude(project / "settings.json", group("true", timeout=5000))
    report = checked(project, "claude=settings.json")
    assert texts(report.findings) == ["a timeout of 5000 seconds is longer than agents wait for a call"]


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ('{"hooks": {}}', "none of its hooks can run here"),
        ("{}", "contains no hooks"),
        ('{"hooks": {}, "disableAllHooks": true}', "disableAllHooks is true, so none of its hooks run"),
    ],
)
def test_a_file_without_any_hook_gets_a_remark(project: Path, text: str, remark: str) -> None:
    (project / "settings.json").write_text(text)
    report = checked(project, "claude=settings.json")
    assert report.entries == ()
    assert report.findings == ()
    assert remark in texts(report.remarks)
    assert {one.file for one in report.remarks} == {str(project / "settings.json")}


NO_HOOK_HINT = "name hook files with --hooks or --config, or write a first guard with hookproxy init guard --user"


def test_a_configuration_without_hooks_is_a_finding_without_a_file(project: Path) -> None:
    assert checked(project).findings == (Finding("", None, "", f"no hook is configured: {NO_HOOK_HINT}"),)
    assert checked(project, config='on_ask = "deny"').findings == checked(project).findings


def test_an_audit_alone_is_a_complete_configuration(project: Path) -> None:
    assert checked(project, config='[audit]\nfile = "audit.jsonl"').findings == ()


@pytest.mark.parametrize("kind", ["allow", "ask", "deny"])
def test_permission_rules_alone_are_a_complete_configuration(project: Path, kind: str) -> None:
    report = checked(project, config=f'[permissions]\n{kind} = ["a"]')
    assert (report.findings, getattr(report.settings, kind)) == ((), ("a",))


def test_entries_are_sorted_by_file_and_line(project: Path) -> None:
    claude(project / "b.json", group("true"))
    (project / "a.json").write_text(
        json.dumps({"hooks": {"Stop": [group("x")], "PreToolUse": [group("true")], "Setup": [group("x")]}}, indent=1)
    )
    report = checked(project, "claude=b.json", "claude=a.json")
    assert [(Path(entry.file).name, entry.event_name) for entry in report.entries] == [
        ("b.json", "PreToolUse"),
        ("a.json", "Stop"),
        ("a.json", "PreToolUse"),
        ("a.json", "Setup"),
    ]


def test_the_same_hook_in_two_files_is_a_remark(project: Path) -> None:
    claude(project / "a.json", group("./good.sh"))
    claude(project / "b.json", group("./good.sh", "true"))
    report = checked(project, "claude=a.json", "claude=b.json")
    assert report.findings == ()
    assert texts(report.remarks) == [
        f"it is the same hook as {project}/a.json:7: where both match, it runs once",
    ]
    assert [len(entry.remarks) for entry in report.entries] == [0, 1, 0]


def test_a_file_that_is_named_twice_is_a_remark(project: Path) -> None:
    claude(project / "a.json", group("./good.sh"))
    report = checked(project, "claude=a.json", "a.json")
    assert (len(report.entries), report.findings) == (2, ())
    assert texts(report.remarks)[0] == "its file is named twice: where both match, it runs once"


INSIDE = {**PATH, "CLAUDECODE": "1"}


@pytest.mark.parametrize(
    ("file", "environ", "remarks", "findings"),
    [
        ("settings.json", PATH, 0, 0),
        (".claude/settings.json", PATH, 1, 0),
        ("settings.json", INSIDE, 1, 0),
        (".claude/settings.json", INSIDE, 0, 1),
        (".claude/settings.json", {**PATH, "CLAUDE_PROJECT_DIR": "."}, 1, 0),
    ],
)
def test_an_agent_that_runs_the_same_hooks_is_a_remark_or_inside_it_a_finding(
    project: Path, file: str, environ: Mapping[str, str], remarks: int, findings: int
) -> None:
    claude(project / file, group("./good.sh"))
    report = checked(project, f"claude={file}", environ=environ)
    assert (len(report.remarks), len(report.findings)) == (remarks, findings)
    assert all(
        text.startswith("an agent that calls itself 'claude-code'") for text in texts(report.remarks + report.findings)
    )


def test_no_agent_runs_hooks_of_hookproxy_toml(project: Path) -> None:
    report = checked(project, config="[[hooks.PreToolUse]]\ncommand = 'true'", environ=INSIDE)
    assert (report.findings, report.remarks) == ((), ())


def test_claws_login_shell_is_a_remark(project: Path) -> None:
    (project / "claw.json").write_text('{"hooks": {"PreToolUse": ["./good.sh"]}}')
    for dialect in ("claw", "claw@current"):
        report = checked(project, f"{dialect}=claw.json")
        assert (report.findings, len(report.remarks)) == ((), 1)
        assert "sh -lc" in report.remarks[0].text


def test_yaml_hooks_have_lines_and_the_spelling_of_events_in_their_file(project: Path) -> None:
    (project / "agent.yaml").write_text(
        "agents:\n  root:\n    hooks:\n      pre_tool_use:\n        - matcher: x\n          hooks:\n"
        "            - {type: command, command: ./good.sh}\n"
    )
    (entry,) = checked(project, "docker-agent=agent.yaml").entries
    assert (entry.line, entry.event_name, entry.event) == (7, "pre_tool_use", "PreToolUse")


def test_a_configuration_that_was_a_pipe_is_not_read_again(project: Path) -> None:
    """Opening it again would wait for ever, so its hooks have no lines."""
    os.mkfifo(project / "own.toml")
    writer = threading.Thread(
        target=(project / "own.toml").write_text, args=("[[hooks.PreToolUse]]\ncommand = './gone.sh'",)
    )
    writer.start()
    report = inspect(load(str(project / "own.toml"), (), None, PATH, str(project)), PATH)
    writer.join()
    assert [(entry.line, entry.key) for entry in report.entries] == [(None, "hooks.PreToolUse[0]")]
    assert texts(report.findings) == [f"there is no file {project}/gone.sh"]
