"""`hookproxy check` as people, pipes and programs get it: the real program in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.cli.check import build_parser, main
from hookproxy.model.errors import UserError
from tests.support import preloaded_program, terminal

pytestmark = pytest.mark.slow

CHECK: Final = [sys.executable, "-m", "hookproxy", "check"]
LONG: Final = "./gone.sh --with 'an argument' --and another --so that --the line --is long --enough to --be wrapped"
AGENTS: Final = ("CLAUDECODE", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS")
"""Variables of whoever runs the tests that would change what is shown."""


def environment(**variables: str) -> dict[str, str]:
    known = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", *AGENTS))}
    return known | variables


def check(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return preloaded_program.run(["check", *arguments], folder, environment(**variables))


def on_a_terminal(folder: Path, columns: int, *arguments: str, **variables: str) -> str:
    """What a terminal of this width gets."""
    return terminal.shown([*CHECK, *arguments], folder, environment(**variables), columns)


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    """A folder with one hook that has no findings."""
    (tmp_path / "good.sh").touch(0o755)
    write(tmp_path, PreToolUse=[{"matcher": "mcp__git__.*", "hooks": [{"type": "command", "command": "./good.sh"}]}])
    return tmp_path


@pytest.fixture
def project(clean: Path) -> Path:
    """A folder with hooks of all kinds."""
    write(
        clean,
        PreToolUse=[
            {"hooks": [{"type": "command", "command": LONG, "onFailure": "block", "if": "mcp__git__*"}]},
            {"hooks": [{"type": "command", "command": "true\nfalse \x1b[31m\u202e", "async": True}]},
        ],
        PostToolUse=[{"hooks": [{"type": "command", "command": "true", "onFailure": "block", "timeout": 1.5}]}],
        PostToolUseFailure=[{"hooks": [{"type": "command", "command": "true"}]}],
        SessionEnd=[{"hooks": [{"type": "command", "command": "true"}]}],
        Stop=[{"hooks": [{"type": "command", "command": "true"}]}],
    )
    (clean / ".claude").mkdir()
    (clean / "settings.json").rename(clean / ".claude" / "settings.json")
    (clean / "hookproxy.toml").write_text(
        '[[use]]\nfile = ".claude/settings.json"\n[[hooks.PostToolUse]]\nargv = ["a b"]\n'
    )
    return clean


def write(folder: Path, **events: object) -> None:
    (folder / "settings.json").write_text(json.dumps({"hooks": events}, indent=1))


BRIEF: Final = """\
warning: .claude/settings.json:6: there is no file FOLDER/gone.sh
warning: hookproxy.toml:3: there is no program 'a b' in PATH
note: .claude/settings.json: an agent that calls itself 'claude-code' runs the hooks of this file itself: with \
hookproxy they would run twice

.claude/settings.json (claude)
   6  PreToolUse if mcp__git__*: LONG (600 s; if it fails, the call is refused)
  16  PreToolUse: true false \\x1b[31m\\u202e (600 s; nothing waits for it)
  27  PostToolUse: true (1.5 s; if it fails, the result passes, and the model is informed that it was not judged)
  39  PostToolUseFailure: true (600 s; if it fails, the result passes)
  49  SessionEnd: true (1.5 s; if it fails, everything continues)
  56  Stop: cannot fire behind MCP: an MCP server does not see turns, tasks and subagents

hookproxy.toml (hookproxy)
  3  PostToolUse: 'a b' (60 s; if it fails, the result is withheld)

6 hooks, 1 that cannot run, 2 warnings
"""


SHOWN: Final = """\
.claude/settings.json:6  hooks.PreToolUse[0].hooks[0]
  dialect  claude
  event    PreToolUse, fires behind MCP
  matcher  all
  if       mcp__git__*
  command  LONG
  timeout  600 seconds
  failure  the call is refused
  warning: there is no file FOLDER/gone.sh

.claude/settings.json:16  hooks.PreToolUse[1].hooks[0]
  dialect  claude
  event    PreToolUse, fires behind MCP
  matcher  all; under a tool's familiar name if it has one
  command  true
           false \\x1b[31m\\u202e
  timeout  600 seconds
  failure  nothing waits for it; the failure is reported on standard error

.claude/settings.json:27  hooks.PostToolUse[0].hooks[0]
  dialect  claude
  event    PostToolUse, fires behind MCP
  matcher  all; under a tool's familiar name if it has one
  command  true
  timeout  1.5 seconds
  failure  the result passes, and the model is informed that it was not judged

.claude/settings.json:39  hooks.PostToolUseFailure[0].hooks[0]
  dialect  claude
  event    PostToolUseFailure, fires behind MCP
  matcher  all; under a tool's familiar name if it has one
  command  true
  timeout  600 seconds
  failure  the result passes; the failure is reported on standard error

.claude/settings.json:49  hooks.SessionEnd[0].hooks[0]
  dialect  claude
  event    SessionEnd, fires behind MCP
  matcher  all
  command  true
  timeout  1.5 seconds
  failure  everything continues; the failure is reported on standard error

.claude/settings.json:56  hooks.Stop
  dialect  claude
  event    Stop, cannot fire behind MCP
  note: cannot fire behind MCP: an MCP server does not see turns, tasks and subagents

hookproxy.toml:3  hooks.PostToolUse[0]
  dialect  hookproxy
  event    PostToolUse, fires behind MCP
  matcher  all
  command  'a b'
  timeout  60 seconds
  failure  the result is withheld
  warning: there is no program 'a b' in PATH

.claude/settings.json
  note: an agent that calls itself 'claude-code' runs the hooks of this file itself: with hookproxy they would run twice

6 hooks, 1 that cannot run, 2 warnings
"""


@pytest.mark.parametrize(("options", "shown"), [((), BRIEF), (("--verbose",), SHOWN)])
def test_a_pipe_gets_findings_and_hooks_without_wrapped_lines(
    project: Path, options: tuple[str, ...], shown: str
) -> None:
    ended = check(project, "--config", "hookproxy.toml", *options)
    assert (ended.returncode, ended.stderr) == (1, "")
    assert ended.stdout == shown.replace("FOLDER", str(project)).replace("LONG", LONG)


@pytest.mark.parametrize(("columns", "verbose"), [(120, ()), (50, ("--verbose",)), (80, ("--verbose",))])
def test_a_terminal_gets_the_same_words_wrapped_to_its_width(
    project: Path, columns: int, verbose: tuple[str, ...]
) -> None:
    options = ("--config", "hookproxy.toml", *verbose)
    shown = on_a_terminal(project, columns, *options, NO_COLOR="1")
    shown = terminal.plain(shown)  # bold is not a colour
    lines = shown.splitlines()
    assert all(len(line) <= columns or len(line.split()) == 1 or str(project) in line for line in lines)
    assert all(line == line.rstrip() for line in lines)
    assert shown.split() == check(project, *options).stdout.split(), "no word is broken"


def test_a_finding_that_several_hooks_share_stands_there_once_with_their_places(tmp_path: Path) -> None:
    gone = {"type": "command", "command": "./gone.sh"}
    (tmp_path / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [gone, gone]}]}}))
    (tmp_path / "other.json").write_text(
        json.dumps({"hooks": {"PreToolUse": [{"hooks": [gone]}, {"hooks": [gone]}]}}, indent=1)
    )
    ended = check(tmp_path, "claude=settings.json", "claude=other.json")
    warnings = [line for line in ended.stdout.splitlines() if line.startswith("warning: ")]
    assert warnings == [f"warning: settings.json:1 (2 hooks); other.json:6, 14: there is no file {tmp_path}/gone.sh"]
    assert ended.stdout.endswith("\n4 hooks, 4 warnings\n")


def test_a_long_command_is_cut_unless_the_output_is_verbose(tmp_path: Path) -> None:
    write(tmp_path, PreToolUse=[{"hooks": [{"type": "command", "command": "true " + "word " * 50 + "end"}]}])
    assert "word … (600 s" in check(tmp_path, "claude=settings.json").stdout
    assert "word end\n" in check(tmp_path, "claude=settings.json", "--verbose").stdout


def test_who_waits_for_a_slow_server_is_told_until_when(tmp_path: Path) -> None:
    ended = check(tmp_path, "--", "sh", "-c", "sleep 1.5; exit 3")
    first, *rest = ended.stderr.splitlines()
    assert re.fullmatch(r"hookproxy: waiting for the server's list of tools, until \d\d:\d\d:\d\d at the latest", first)
    assert rest[0].startswith("error: the server exited with status 3")
    assert "waiting" not in check(tmp_path, "--", "false").stderr


def test_colours_are_only_for_terminals_and_add_no_information(project: Path) -> None:
    options = ("--config", "hookproxy.toml")
    assert "\x1b[1;33mwarning:\x1b[0m .claude/settings.json:6: " in on_a_terminal(project, 120, *options)
    assert "[1;33m" not in on_a_terminal(project, 120, *options, NO_COLOR="1")
    assert "[1;33m" not in on_a_terminal(project, 120, *options, "--json")
    assert "\x1b" not in check(project, *options).stdout


def test_nothing_in_a_hook_file_reaches_the_terminal_raw(project: Path) -> None:
    shown = on_a_terminal(project, 120, "--config", "hookproxy.toml")
    assert "false \\x1b[31m\\u202e" in shown
    assert "\x1b[31m" not in shown


def test_a_character_that_the_output_cannot_encode_is_escaped(clean: Path) -> None:
    write(clean, PreToolUse=[{"hooks": [{"type": "command", "command": "true é…"}]}])
    shown = check(clean, "--hooks", "settings.json", PYTHONIOENCODING="ascii").stdout
    assert "PreToolUse: true \\xe9\\u2026 (600 s" in shown


def test_a_file_whose_name_is_not_utf_8_can_be_checked(clean: Path) -> None:
    odd = os.fsencode(clean) + b"/\xff.json"
    os.rename(clean / "settings.json", odd)
    assert check(clean, "--hooks", os.fsdecode(odd)).stdout.startswith("note: \\udcff.json: read as ")
    assert json.loads(check(clean, "--hooks", os.fsdecode(odd), "--json").stdout)["hooks"][0]["file"] == os.fsdecode(
        odd
    )


def test_clean_is_0(clean: Path) -> None:
    ended = check(clean, "--hooks", "claude=settings.json")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.endswith("\n\n1 hook, no warnings\n")


def test_a_remark_alone_is_clean(clean: Path) -> None:
    ended = check(clean, "--hooks", "claude=settings.json", CLAUDECODE="1")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "note: settings.json: an agent that calls itself 'claude-code' runs " in ended.stdout


def test_a_file_whose_shape_other_systems_share_is_never_taken_for_claudes_in_silence(clean: Path) -> None:
    assert "read as a hook file" not in check(clean, "--hooks", "settings.json").stdout
    (clean / "settings.json").rename(clean / "hooks.json")
    ended = check(clean, "--hooks", "hooks.json")
    assert ended.returncode == 0
    assert "read as a hook file of claude; if it is one of" in " ".join(ended.stdout.split())
    (clean / ".claude").mkdir()
    (clean / "hooks.json").rename(clean / ".claude/hooks.json")
    assert "read as a hook file" not in check(clean, "--hooks", ".claude/hooks.json").stdout


def test_no_hook_at_all_is_a_finding(tmp_path: Path) -> None:
    ended = check(tmp_path)
    assert (ended.returncode, ended.stderr) == (1, "")
    assert ended.stdout == (
        "warning: no hook is configured: name hook files with --hooks or --config, or write a first guard with "
        "hookproxy init guard --user\n\nno hooks, 1 warning\n"
    )


def test_permission_rules_are_shown_the_strongest_first(tmp_path: Path) -> None:
    text = '[permissions]\nallow = ["a"]\nask = ["b(c d)"]\ndeny = ["e_*", "\\u001b[31m(x)"]\nhide_denied = false\n'
    (tmp_path / "hookproxy.toml").write_text(text)
    ended = check(tmp_path, "--config", "hookproxy.toml")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == (
        "permission rules\n  deny     e_*\n  deny     \\x1b[31m(x)\n  ask      b(c d)\n  allow    a\n"
        "  asks     if the agent cannot ask, hookproxy console or hookproxy top asks while one is open, and else the "
        'call is refused (on_ask_fallback = "auto")\n'
        "  listed   denied tools stay in tools/list\n\nno hooks, 4 permission rules, no warnings\n"
    )
    settings = json.loads(check(tmp_path, "--config", "hookproxy.toml", "--json").stdout)["settings"]
    assert (settings["allow"], settings["ask"], settings["hide_denied"]) == (["a"], ["b(c d)"], False)


def test_the_users_own_file_is_checked_without_being_named(tmp_path: Path, home: Path) -> None:
    (home / ".config" / "hookproxy").mkdir(parents=True)
    (home / ".config" / "hookproxy" / "hookproxy.toml").write_text("[[hooks.PreToolUse]]\ncommand = 'true'\n")
    ended = check(tmp_path)
    assert ended.returncode == 0
    assert ended.stdout.startswith(f"{home}/.config/hookproxy/hookproxy.toml (hookproxy)\n  1  PreToolUse: true")


@pytest.mark.parametrize("json_option", [[], ["--json"]])
@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("settings.json", None, "FOLDER/settings.json: there is no such file\nhint: --hooks settings.json names it"),
        ("settings.json", b"{\n,}", "FOLDER/settings.json:2: not JSON"),
        ("settings.json", b"\xff", "FOLDER/settings.json:1: is not UTF-8"),
        ("settings.json", b'{"hooks": {"PreToolUze": []}}', "FOLDER/settings.json: "),
        (
            "hookproxy.toml",
            b"[hook.PreToolUse]",
            "FOLDER/hookproxy.toml:1: hook: unknown key\nhint: did you mean 'hooks'",
        ),
        (
            "hookproxy.toml",
            b"[[hooks.PreToolUse]]\ntype = 'pyhton'",
            "FOLDER/hookproxy.toml:2: hooks.PreToolUse[0].type: should be 'command', 'worker', 'python', 'http', "
            "'cel', 'cedar', 'opa' or 'agent-hooks'\n"
            "hint: did you mean 'python'?",
        ),
        ("hookproxy.toml", b"[audit]\nfille = 'x'", "FOLDER/hookproxy.toml:2: audit.fille: unknown key\nhint: did you"),
    ],
)
def test_a_configuration_that_stops_run_is_the_same_error_with_status_2(
    tmp_path: Path, file: str, text: bytes | None, message: str, json_option: list[str]
) -> None:
    if text is not None:
        (tmp_path / file).write_bytes(text)
    ended = check(tmp_path, "--config" if file.endswith("toml") else "--hooks", file, *json_option)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"error: {message}".replace("FOLDER", str(tmp_path)))


@pytest.mark.parametrize("arguments", [["--zzz"], ["--hooks"], ["--json=x"]])
def test_an_unknown_argument_is_an_error_with_the_usage(arguments: list[str]) -> None:
    with pytest.raises(UserError, match=arguments[0].partition("=")[0]) as error:
        main(arguments)
    assert (error.value.status, error.value.hint) == (2, f"usage: {build_parser().usage}")


def test_a_missing_file_is_an_error_with_the_similar_one_of_its_folder(clean: Path) -> None:
    ended = check(clean, "claude=setings.json")
    assert ended.stderr == (
        f"error: {clean}/setings.json: there is no such file\n"
        "hint: did you mean 'settings.json'? --hooks claude=setings.json names it\n"
    )


def test_a_file_needs_no_option(clean: Path) -> None:
    named = check(clean, "--hooks", "claude=settings.json")
    assert check(clean, "claude=settings.json").stdout == named.stdout
    assert check(clean, "claude=settings.json", "--", "cat").stdout.startswith(named.stdout.rpartition("\n1 hook")[0])
    assert check(clean, "gone.json").stderr.startswith(f"error: {clean}/gone.json: there is no such file\n")


def test_a_configuration_of_our_own_needs_no_option_either(clean: Path) -> None:
    (clean / "any.toml").write_text('strict = true\n[permissions]\ndeny = ["x"]\n')
    assert check(clean, "any.toml").stdout == check(clean, "--config", "any.toml").stdout
    ended = check(clean, "any.toml", "claude=settings.json", "--json")
    assert len(json.loads(ended.stdout)["hooks"]) == 1
    assert json.loads(ended.stdout)["settings"]["deny"] == ["x"]


@pytest.mark.parametrize(
    "text",
    ["", "strict = true", '[permissions]\ndeny = ["x"]', '[[use]]\nfile = "x"', '[[hooks.PreToolUse]]\nargv=["x"]'],
)
def test_hooks_with_a_file_of_our_own_format_says_config(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.toml").write_text(text)
    ended = check(tmp_path, "--hooks", "x.toml")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        f"error: {tmp_path}/x.toml: is not a hook file of another system\n"
        f"hint: it is hookproxy's own configuration: --config {tmp_path}/x.toml\n"
    )


def test_help_names_every_option_and_status(tmp_path: Path) -> None:
    ended = check(tmp_path, "--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert build_parser().usage in " ".join(ended.stdout.split())
    assert all(
        word in " ".join(ended.stdout.split())
        for word in ("--config", "--hooks", "--json", "--strict", "0 clean (notes do not count), 1 warnings, 2")
    )


def document(folder: Path, *arguments: str) -> dict[str, Any]:
    ended = check(folder, *arguments, "--json")
    assert ended.stderr == ""
    read: dict[str, Any] = json.loads(ended.stdout)
    assert ended.returncode == (1 if read["findings"] else 0)
    return read


def test_programs_get_one_document_whose_keys_stay(project: Path) -> None:
    read = document(project, "--config", "hookproxy.toml")
    assert list(read) == [
        "v",
        "settings",
        "managed",
        "trust",
        "hooks",
        "watched",
        "findings",
        "remarks",
        "server",
        "starts",
    ]
    assert (read["managed"], read["settings"]["managed"], read["trust"]) == (None, None, None)
    assert read["v"] == 1
    assert {"on_failure", "on_ask", "feedback", "max_message_bytes", "audit_file"} <= set(read["settings"])
    assert (read["settings"]["on_failure"], read["settings"]["on_trouble"]) == ("dialect", "dialect")
    path = f"{project}/.claude/settings.json"
    assert read["hooks"][0] == {
        "file": path,
        "line": 6,
        "key": "hooks.PreToolUse[0].hooks[0]",
        "dialect": "claude",
        "event": "PreToolUse",
        "event_name": "PreToolUse",
        "matcher": "",
        "if": "mcp__git__*",
        "command": LONG,
        "timeout": 600.0,
        "on_failure": "block",
        "lets_pass": False,
        "awaited": True,
        "fires": True,
        "managed": False,
        "sees_values": False,
        "names": None,
        "tools": None,
        "findings": [f"there is no file {project}/gone.sh"],
        "remarks": [],
    }
    assert [hook["on_failure"] for hook in read["hooks"]] == [
        "block", "continue", "tell", "continue", "continue", None, "withhold",
    ]  # fmt: skip
    assert read["hooks"][1]["command"] == "true\nfalse \x1b[31m\u202e"
    assert read["hooks"][1]["awaited"] is False
    assert [hook["names"] for hook in read["hooks"]] == [None, *["familiar"] * 3, None, None, "own"]
    reason = "hooks.Stop cannot fire behind MCP: an MCP server does not see turns, tasks and subagents"
    assert read["hooks"][5] == dict.fromkeys(read["hooks"][0]) | {
        "file": path,
        "line": 56,
        "key": "hooks.Stop",
        "dialect": "claude",
        "event_name": "Stop",
        "fires": False,
        "managed": False,
        "sees_values": False,
        "findings": [],
        "remarks": [reason],
    }
    assert read["findings"][:1] == [
        {
            "file": path,
            "line": 6,
            "key": "hooks.PreToolUse[0].hooks[0]",
            "text": f"there is no file {project}/gone.sh",
        },
    ]
    assert read["remarks"][0] == {"file": path, "line": 56, "key": "hooks.Stop", "text": reason}
    assert [(one["file"], one["line"], one["key"]) for one in read["remarks"][1:]] == [(path, None, "")]


def test_programs_also_get_a_document_without_findings_and_without_hooks(clean: Path) -> None:
    read = document(clean, "--hooks", "claude=settings.json")
    assert (len(read["hooks"]), read["findings"], read["remarks"]) == (1, [], [])
    read = document(clean)
    assert (read["hooks"], [one["file"] for one in read["findings"]]) == ([], [""])


def test_it_ends_as_by_sigpipe_if_nobody_reads_the_output(project: Path) -> None:
    with subprocess.Popen(
        [*CHECK, "--config", "hookproxy.toml"], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 141


def test_checking_runs_nothing_and_leaves_nothing_behind(clean: Path) -> None:
    write(clean, PreToolUse=[{"hooks": [{"type": "command", "command": "touch ran"}]}])
    before = sorted(clean.iterdir())
    check(clean, "--hooks", "settings.json")
    assert sorted(clean.iterdir()) == before


@pytest.mark.parametrize(("project", "status"), [(False, 1), (True, 0)])
def test_a_deleted_working_directory_is_not_an_error(clean: Path, project: bool, status: int) -> None:
    (clean / "gone").mkdir()
    options = f"--hooks {clean}/settings.json" + (f" --project {clean}" if project else "")
    script = f"cd gone; rmdir ../gone; exec {' '.join(CHECK)} {options}"
    ended = subprocess.run(["sh", "-c", script], cwd=clean, env=environment(), capture_output=True, timeout=30)
    assert (ended.returncode, ended.stderr) == (status, b"")
    assert (b"settings.json:7: the folder that it starts in does not exist: " in ended.stdout) is not project


def test_an_entry_that_never_runs_is_explained_as_far_as_its_dialect_is_known(clean: Path) -> None:
    idle = [{"hooks": [{"type": "prompt", "prompt": "x"}]}]
    write(clean, PreToolUse=idle)
    shown = check(clean, "--hooks", "claude=settings.json", "--verbose").stdout
    assert "\n  event    PreToolUse\n  warning: does not run: type 'prompt' is not supported" in shown
    write(clean, PreToolUse=[*idle, {"hooks": [{"type": "command", "command": "true"}]}])
    brief = check(clean, "--hooks", "claude=settings.json").stdout
    assert "\n   6  PreToolUse: never runs\n" in brief
    assert "warning: settings.json:6: does not run: type 'prompt' is not supported" in brief
    shown = check(clean, "--hooks", "claude=settings.json", "--verbose").stdout
    assert "\n  event    PreToolUse, but never runs\n" in shown


def test_aliases_and_limits_are_shown_with_both_names(tmp_path: Path) -> None:
    text = (
        '[tools.run]\nas = "Bash"\narguments = { command = "cmd", timeout = "\\u001b[1m" }\n[tools.log]\n'
        'arguments = { path = "repo" }\n[[limits]]\ntool = "B*"\ncalls = 1\nper = "day"\n'
    )
    (tmp_path / "hookproxy.toml").write_text(text)
    ended = check(tmp_path, "--config", "hookproxy.toml")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == (
        "tools\n  alias    run as Bash (cmd as command, \\x1b[1m as timeout)\n  alias    log (repo as path)\n"
        "  limit    B*: 1 call per day\n\nno hooks, no warnings\n"
    )
    settings = json.loads(check(tmp_path, "--config", "hookproxy.toml", "--json").stdout)["settings"]
    assert settings["aliases"] == [
        {"tool": "run", "as": "Bash", "arguments": {"command": "cmd", "timeout": "\x1b[1m"}, "preset": None},
        {"tool": "log", "as": None, "arguments": {"path": "repo"}, "preset": None},
    ]
    (limit,) = settings["limits"]
    assert limit.pop("place").endswith("hookproxy.toml:6: limits[0]")
    everybody: dict[str, object] = {"users": [], "servers": [], "together": False}
    usual: dict[str, object] = {"window": 0.0, "within": None, "then": "deny"}
    assert limit == {"tool": "B*", "calls": 1, "per": "day", "by": "limits[0]"} | everybody | usual


def test_it_says_which_hooks_let_a_call_pass_if_they_fail_and_how_to_change_that(tmp_path: Path) -> None:
    entries = [{"type": "command", "command": "true"}, {"type": "command", "command": "false", "onFailure": "block"}]
    file = {"hooks": {"PreToolUse": [{"hooks": entries}], "PostToolUse": [{"hooks": entries}]}}
    (tmp_path / "settings.json").write_text(json.dumps(file, indent=1))
    brief = check(tmp_path, "--hooks", "claude=settings.json").stdout
    assert "  6  PreToolUse: true (600 s; if it fails, the call passes" in brief
    assert "1 of 2 hooks lets a call pass if it fails:\n  refuse   such calls: on_failure = " in brief
    printed = check(tmp_path, "--hooks", "claude=settings.json", "--verbose").stdout
    block = printed[printed.index("1 of 2 hooks lets a call pass if it fails:") :]
    assert "settings.json:6 (claude)" in block
    assert 'on_failure = "deny" in hookproxy.toml or a [[use]] table of it, or run --fail-closed' in block
    closed = check(tmp_path, "--fail-closed", "--hooks", "claude=settings.json")
    assert "a call pass" not in closed.stdout
    found = json.loads(check(tmp_path, "--hooks", "claude=settings.json", "--json").stdout)
    assert [hook["lets_pass"] for hook in found["hooks"]] == [True, False, False, False]


def test_a_system_that_refuses_after_some_failures_only_is_among_those_that_let_pass(tmp_path: Path) -> None:
    file = {"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": "true"}]}}
    (tmp_path / "copilot.json").write_text(json.dumps(file))
    printed = check(tmp_path, "--hooks", "copilot@current=copilot.json").stdout
    assert "the call is refused, but not after each failure" in printed
    assert "1 of 1 hook lets a call pass if it fails" in printed


def test_tools_that_a_preset_does_not_rename_are_a_remark_and_not_a_finding(tmp_path: Path) -> None:
    (tmp_path / "hookproxy.toml").write_text('preset = "playwright"\n[[hooks.PreToolUse]]\ncommand = "true"\n')
    ended = check(tmp_path, "--config", "hookproxy.toml")
    assert ended.returncode == 0
    assert "note: preset playwright: hooks see these tools of @playwright/mcp under their own names: " in ended.stdout
    assert "browser_navigate as WebFetch, by the preset playwright" in ended.stdout


def test_a_function_that_cannot_be_found_stops_check_as_it_stops_run(tmp_path: Path) -> None:
    (tmp_path / "hookproxy.toml").write_text('[[hooks.PreToolUse]]\ntype = "python"\ncall = "guards:judge"\n')
    checked = check(tmp_path, "--config", "hookproxy.toml")
    run = [*CHECK[:-1], "run", "--config", "hookproxy.toml", "--", "cat"]
    ran = subprocess.run(
        run, cwd=tmp_path, env=environment(), capture_output=True, encoding="utf-8", timeout=30, input=""
    )
    assert (checked.returncode, checked.stdout) == (ran.returncode, ran.stdout) == (2, "")
    assert checked.stderr == ran.stderr
    assert "guards" in checked.stderr
    (tmp_path / "guards.py").write_text("print('loud')\ndef judge(document):\n    return None\n")
    found = check(tmp_path, "--config", "hookproxy.toml", "--json")
    assert (found.returncode, found.stderr) == (0, "loud\n")
    assert json.loads(found.stdout)["hooks"][0]["key"] == "hooks.PreToolUse[0]"


# --- with a server ---

SERVER: Final = """
import json, sys
names = {"git": ["git_log", "git_commit"], "long": ["\\x1b[31m" + "x" * 10_000], "many": [f"t{n}" for n in range(999)]}
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        tools = [{"name": name, "inputSchema": {"properties": {}}} for name in names[sys.argv[1]]]
        result = {"capabilities": {"tools": {}}, "tools": tools, "serverInfo": {"name": "Git\\x1b[31m"}}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


@pytest.fixture
def beside_server(tmp_path: Path) -> Path:
    """A folder with a server and hooks, one of which sees no tool of it."""
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "good.sh").touch(0o755)
    guard = {"type": "command", "command": "./good.sh"}
    write(
        tmp_path,
        PreToolUse=[
            {"matcher": "mcp__git__git_log", "hooks": [guard]},
            {"matcher": "mcp__github__.*", "hooks": [guard]},
        ],
        PostToolUse=[{"matcher": "git_log|Task", "hooks": [guard]}],
    )
    (tmp_path / "hookproxy.toml").write_text(
        "[[use]]\nfile = 'settings.json'\n[tools.git_commit]\nas = 'Task'\n[permissions]\ndeny = ['git_log(x)']\n"
    )
    return tmp_path


WITH_SERVER: Final = ("--config", "hookproxy.toml", "--name", "git")


def server(*tools: str) -> tuple[str, ...]:
    return ("--", sys.executable, "server.py", *tools)


TABLE: Final = """\
tools of git (Git\\x1b[31m): hooks see 2 of 2 tools
  tool        seen as            by
  git_log     mcp__git__git_log  good.sh (PreToolUse)
  git_commit  Task               good.sh (PostToolUse)
  rules    git_log
  unread   resources/list, resources/read, resources/subscribe, prompts/get,
           completion/complete, sampling/createMessage, elicitation/create,
           roots/list: requests that nothing judges, because no hook and no rule
           names their method

"""


def test_with_a_server_it_shows_which_hook_sees_which_tool_and_why_another_sees_none(beside_server: Path) -> None:
    ended = check(beside_server, *WITH_SERVER, *server("git"))
    assert (ended.returncode, ended.stderr) == (1, "")
    assert TABLE in ended.stdout
    assert (
        "warning: settings.json:16: never runs for this server: its matcher 'mcp__github__.*' matches none of the "
        "server's 2 tools; the server is 'git' here, not 'github': --name github names it\n"
    ) in ended.stdout
    assert ended.stdout.endswith("\n3 hooks, 1 permission rule, 1 warning\n")


def test_where_there_are_only_rules_it_says_which_tools_they_are_about_and_not_that_no_hook_sees_them(
    beside_server: Path,
) -> None:
    (beside_server / "hookproxy.toml").write_text('[permissions]\ndeny = ["git_log(x)"]\n')
    shown = check(beside_server, *WITH_SERVER, *server("git")).stdout
    assert (
        "tools of git (Git\\x1b[31m): rules are about 1 of 2 tools\n  no rule  git_commit\n  rules    git_log\n"
        in shown
    )
    assert "unseen" not in shown


def test_a_rule_that_names_no_tool_of_the_server_is_shown(beside_server: Path) -> None:
    """`Bahs(rm *)` guards nothing, and nothing else says so."""
    (beside_server / "hookproxy.toml").write_text(
        '[permissions]\ndeny = ["Bahs(rm *)", "git_log(x)"]\nask = ["*_comit"]\n'
    )
    ended = check(beside_server, *WITH_SERVER, *server("git"))
    assert "  no tool  Bahs(rm *), *_comit: rules that match no tool of this server\n" in ended.stdout
    read = json.loads(check(beside_server, *WITH_SERVER, "--json", *server("git")).stdout)
    assert read["server"]["idle_rules"] == ["Bahs(rm *)", "*_comit"]


def test_a_table_of_a_tool_that_the_server_does_not_list_is_shown(beside_server: Path) -> None:
    (beside_server / "hookproxy.toml").write_text('[tools.git_lgo]\nas = "Bash"\n[tools.git_log]\nhide = true\n')
    ended = check(beside_server, *WITH_SERVER, *server("git"))
    assert "  no such  git_lgo: tools of [tools.X] that this server does not list\n" in ended.stdout
    read = json.loads(check(beside_server, *WITH_SERVER, "--json", *server("git")).stdout)
    assert read["server"]["unknown_tools"] == ["git_lgo"]


def test_what_is_hidden_and_who_gets_the_values_is_shown(beside_server: Path) -> None:
    (beside_server / "hookproxy.toml").write_text(
        """[secrets]
        detectors = { ticket = "TICKET-[0-9]{12}" }
        values = { DEPLOY = "file:deploy-key" }
        [[secrets.restore]]
        tool = ["git_log", "git_psuh"]
        rules = ["DEPLOY"]
        [[secrets.off]]
        tool = "git_*"
        server = "other"
        [[hooks.PostToolUse]]
        command = "exit 0"
        name = "dlp"
        secrets = "values"
        """
    )
    ended = check(beside_server, *WITH_SERVER, *server("git"))
    shown = [
        "secrets: the agent gets placeholders",
        "  detector ticket TICKET-[0-9]{12}",
        f"  value    DEPLOY file:{beside_server / 'deploy-key'}",
        "  off      git_* of other",
        "  restored DEPLOY in arguments of git_psuh of any server",
        "  hook     dlp sees the values",
        "  values   git_log: tools that get secrets in the place of placeholders",
        "  no tool  [[secrets.restore]] git_psuh: tables that match no tool of this",
    ]
    assert [line for line in shown if line not in ended.stdout.splitlines()] == []
    read = json.loads(check(beside_server, *WITH_SERVER, "--json", *server("git")).stdout)["server"]
    assert (read["restoring_tools"], read["idle_secrets"]) == (["git_log"], ["[[secrets.restore]] git_psuh"])


def test_secrets_alone_are_a_configuration(tmp_path: Path) -> None:
    (tmp_path / "hookproxy.toml").write_text("[secrets]\n")
    ended = check(tmp_path, "--config", "hookproxy.toml")
    assert "no hook is configured" not in ended.stdout
    assert "  rules    those of gitleaks\n" in ended.stdout


def test_programs_get_the_tools_with_the_hooks_that_see_them(beside_server: Path) -> None:
    read = json.loads(check(beside_server, *WITH_SERVER, "--json", *server("git")).stdout)
    found = read["server"]
    assert (found["name"], found["command"], found["failure"], found["noise"]) == (
        "git",
        list(server("git")[1:]),
        None,
        0,
    )
    assert found["info"] == "Git\x1b[31m"
    path = str(beside_server / "settings.json")
    assert found["tools"] == [
        {
            "tool": "git_log",
            "names": [
                {
                    "name": "mcp__git__git_log",
                    "why": "",
                    "arguments": {},
                    "hooks": [{"file": path, "line": 7, "key": "hooks.PreToolUse[0].hooks[0]"}],
                }
            ],
            "rules": True,
        },
        {
            "tool": "git_commit",
            "names": [
                {
                    "name": "Task",
                    "why": "[tools.X]",
                    "arguments": {},
                    "hooks": [{"file": path, "line": 27, "key": "hooks.PostToolUse[0].hooks[0]"}],
                }
            ],
            "rules": False,
        },
    ]
    assert [hook["tools"] for hook in read["hooks"]] == [
        [{"tool": "git_log", "name": "mcp__git__git_log"}],
        [],
        [{"tool": "git_commit", "name": "Task"}],
    ]


@pytest.mark.parametrize("tools", ["long", "many"])
def test_the_table_fits_80_columns_and_is_harmless_whatever_tools_are_called(beside_server: Path, tools: str) -> None:
    write(beside_server, PreToolUse=[{"hooks": [{"type": "command", "command": "./good.sh"}]}])
    ended = check(beside_server, *WITH_SERVER, *server(tools))
    table = ended.stdout.partition("\n  tool ")[2].splitlines()
    assert len(table) > 5
    assert all(len(line) <= 80 or len(line.split()) == 1 for line in table[1:])
    assert "\x1b" not in ended.stdout
    assert len(ended.stdout) < 100_000


def test_a_server_that_cannot_list_its_tools_is_status_2_and_the_hooks_are_shown(beside_server: Path) -> None:
    ended = check(beside_server, *WITH_SERVER, "--", "sh", "-c", "echo no such thing >&2; exit 3")
    assert ended.returncode == 2
    assert "tools of git\n  failure  the server exited with status 3 before it had listed its tools\n" in ended.stdout
    assert ended.stderr.startswith(
        "error: the server exited with status 3 before it had listed its tools\n"
        "hint: its standard error ends with: no such thing; the server's command line is: sh -c"
    )
    ended = check(beside_server, *WITH_SERVER, "--json", "--", "no-such-program")
    assert ended.returncode == 2
    read = json.loads(ended.stdout)["server"]
    assert (read["tools"], read["failure"]) == (None, "cannot start the server: command not found: no-such-program")


def test_a_name_without_a_server_is_an_error(clean: Path) -> None:
    ended = check(clean, "--hooks", "settings.json", "--name", "git")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("error: --name has no server to name: there is no COMMAND\nhint: write -- COMMAND")


# --- strict ---


@pytest.mark.parametrize("by_file", [False, True])
def test_under_strict_a_finding_that_stops_run_is_status_2_and_all_are_shown(clean: Path, by_file: bool) -> None:
    write(clean, PreToolUse=[{"hooks": [{"type": "command", "command": "./gone.sh"}]}])
    (clean / "hookproxy.toml").write_text(f"strict = {str(by_file).lower()}\n[[use]]\nfile = 'settings.json'\n")
    options = ("--config", "hookproxy.toml", *(() if by_file else ("--strict",)))
    ended = check(clean, *options)
    assert (ended.returncode, ended.stderr) == (2, "")
    assert "warning: settings.json:6: there is no file " in ended.stdout
    assert ended.stdout.endswith("\n1 hook, 1 warning, and strict is set: run does not start\n")
    assert json.loads(check(clean, *options, "--json").stdout)["starts"] is False
    write(clean, PreToolUse=[{"hooks": [{"type": "command", "command": "./good.sh"}]}])
    assert check(clean, *options).returncode == 0


def test_under_strict_what_only_the_tools_show_is_status_1(beside_server: Path) -> None:
    ended = check(beside_server, *WITH_SERVER, "--strict", *server("git"))
    assert ended.returncode == 1
    assert "strict is set" not in ended.stdout


def test_an_event_that_cannot_occur_is_a_note_also_under_strict(clean: Path) -> None:
    write(clean, Stop=[{"hooks": [{"type": "command", "command": "true"}]}])
    for options in ((), ("--strict",)):
        ended = check(clean, "--hooks", "claude=settings.json", *options)
        assert ended.returncode == 0
        assert "  3  Stop: cannot fire behind MCP: an MCP server does not see turns" in ended.stdout


def test_a_hookproxy_toml_that_is_not_read_is_reported(clean: Path) -> None:
    (clean / "hookproxy.toml").write_text("")
    note = "hookproxy: ./hookproxy.toml is not read, because nothing names it: --config hookproxy.toml does\n"
    assert check(clean, "--hooks", "settings.json").stderr == note
    assert check(clean, "--config", "hookproxy.toml").stderr == ""
    (clean / "other.toml").write_text("")
    assert check(clean, "--config", "other.toml").stderr == ""  # who names another file has chosen
