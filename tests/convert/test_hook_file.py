"""A hook file of one system as another's: every hook is in it, or in the notes."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hookproxy.config.hook_files import parse_option, read_use
from hookproxy.convert.hook_file import Converted, Place, convert
from hookproxy.convert.run_hook import ForeignHook, run_hooks
from hookproxy.dialects.agent_side import Can, agent_side, names
from hookproxy.dialects.dialect import Group, HookFile, WrittenEntry
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import Ended, Event, HookResult, HookSpec, Permission
from hookproxy.model.settings import ToolNames
from hookproxy.trust.sources import FileContext


def groups(folder: Path, settings: dict[str, object], dialect: str = "claude") -> list[Group]:
    path = folder / "settings.json"
    path.write_text(json.dumps(settings), "utf-8")
    use = parse_option(f"{dialect}={path}", str(folder))
    return [one.group for one in read_use(use, FileContext({}, str(folder)))]


def claude(folder: Path, event: str = "PreToolUse", matcher: str = "", **entry: object) -> list[Group]:
    hook = {"type": "command", "command": "./guard.sh --strict", **entry}
    return groups(folder, {"hooks": {event: [{"matcher": matcher, "hooks": [hook]}]}})


def converted(found: list[Group], target: str, project: str = "") -> Converted:
    side = agent_side(target)
    assert side is not None
    return convert(found, side, Place(project, project))


def words(command: str) -> list[str]:
    return shlex.split(command)


def test_each_hook_stays_its_own_program(tmp_path: Path) -> None:
    found = converted(claude(tmp_path, matcher="Bash|Edit", timeout=5), "copilot", str(tmp_path))
    ((path, text),) = found.files.items()
    assert path == ".github/hooks/hookproxy.json"
    (entry,) = json.loads(text)["hooks"]["PreToolUse"]
    assert (entry["matcher"], entry["timeoutSec"]) == ("bash|edit", 10)
    assert words(entry["bash"]) == [
        *("hookproxy", "hook", "--for", "copilot", "--as", "claude", "--matcher", "Bash|Edit", "--timeout", "5"),
        *("--", "./guard.sh --strict"),
    ]
    assert found.notes == ()


@pytest.mark.parametrize(
    ("matcher", "names"),
    [
        ("", None),
        ("*", None),
        ("Bash", "bash"),
        ("mcp__files__read|Bash", "files-read|bash"),
        ("Bash|Task", None),
        ("mcp__.*", None),
        ("Notebook.*", None),
    ],
)
def test_the_agent_gets_a_matcher_only_if_each_name_can_be_spelled(
    tmp_path: Path, matcher: str, names: str | None
) -> None:
    ((_, text),) = converted(claude(tmp_path, matcher=matcher), "copilot").files.items()
    (entry,) = json.loads(text)["hooks"]["PreToolUse"]
    assert entry.get("matcher") == names
    assert ("--matcher" in words(entry["bash"])) is bool(matcher)


def test_what_the_target_cannot_say_is_in_the_notes(tmp_path: Path) -> None:
    found = converted(
        groups(
            tmp_path,
            {
                "hooks": {
                    "Elicitation": [{"hooks": [{"type": "command", "command": "true"}]}],
                    "PreToolUse": [
                        {"hooks": [{"type": "http", "url": "https://example.com/"}]},
                        {"hooks": [{"type": "command", "command": "true", "async": True}]},
                    ],
                }
            },
        ),
        "copilot",
    )
    assert found.hooks == 1
    left_out, http, waits = found.notes
    assert "hooks.Elicitation[0].hooks[0] is left out: copilot has no event for Elicitation" in left_out
    assert "is left out: a hook of type http has no command" in http
    assert "copilot waits for it" in waits


@pytest.mark.parametrize("name", [name for name in DIALECTS if agent_side(name)])
def test_a_written_file_is_read_again_as_it_was_meant(name: str, tmp_path: Path) -> None:
    side = agent_side(name)
    assert side is not None
    for event_name, event in side.events.items():
        command = "printf '%s' \"$X\" | cat"
        timeout = 0.0 if event is Event.SESSION_END else 7.0  # which some dialects report as too long there
        files = side.write_hook_file([WrittenEntry(event_name, command, timeout=timeout)])
        for path, text in files.items():
            whole = tmp_path / path
            whole.parent.mkdir(parents=True, exist_ok=True)
            whole.write_text(text, "utf-8")
            whole.chmod(0o755)
            found = DIALECTS[name].read_hook_file(HookFile(str(whole), text, str(tmp_path)))
            specs = [spec for spec in found.hooks if spec.event is event]
            assert specs, (event_name, found)
            assert found.notes == ()
            if not DIALECTS[name].executables:
                assert any(command in (spec.shell, *spec.argv) for spec in specs)


@pytest.mark.parametrize("name", names())
def test_an_agent_that_can_ask_can_also_be_written_for(name: str) -> None:
    side = agent_side(name)
    assert side is not None
    assert side.name in DIALECTS
    assert Event.PRE_TOOL_USE in side.events.values()
    assert isinstance(side.can, Can)
    assert side.file


def test_one_program_with_several_hooks_is_one_entry(tmp_path: Path) -> None:
    guard = tmp_path / ".clinerules/hooks/PreToolUse"
    guard.parent.mkdir(parents=True)
    guard.write_text("#!/bin/sh\n")
    found = DIALECTS["cline"].read_hook_file(HookFile(str(guard), "", str(tmp_path)))
    assert converted([Group(DIALECTS["cline"], str(guard), found.hooks, ToolNames.MCP)], "claude").hooks == 1


def written(dialect: str, path: str, document: object, tmp_path: Path, target: str) -> list[Any]:
    """The entries of the hooks before a call of a converted file, for a target with Claude Code's shape."""
    found = DIALECTS[dialect].read_hook_file(HookFile(str(tmp_path / path), json.dumps(document), str(tmp_path)))
    assert found.notes == ()
    side = agent_side(target)
    assert side is not None
    files = convert([Group(DIALECTS[dialect], path, found.hooks, ToolNames.MCP)], side, Place(str(tmp_path))).files
    ((_, text),) = files.items()
    entries: list[Any] = json.loads(text)["hooks"]["PreToolUse"]
    return entries


def test_a_matcher_that_matches_parts_of_names_gives_no_list_of_whole_names(tmp_path: Path) -> None:
    document = {"hooks": {"BeforeTool": [{"matcher": "write_file", "hooks": [{"type": "command", "command": "true"}]}]}}
    (group,) = written("gemini", ".gemini/settings.json", document, tmp_path, "claude")  # it matches mcp_a_write_file
    assert "matcher" not in group


@pytest.mark.parametrize(
    ("matcher", "target", "names"),
    [
        ("mcp__my_server__read", "cursor", None),
        ("mcp__my_server__read_file", "gemini", None),
        ("mcp__my_server__read_file", "codex", "mcp__my_server__read_file"),
        ("mcp__a__b", "gemini", "^(?:mcp_a_b)$"),
    ],
)
def test_a_name_in_which_characters_were_replaced_is_not_spelled_for_another_system(
    matcher: str, target: str, names: str | None, tmp_path: Path
) -> None:
    ((_, text),) = converted(claude(tmp_path, matcher=matcher), target).files.items()
    hooks = json.loads(text)["hooks"]
    ((entry,),) = hooks.values()
    assert entry.get("matcher") == names


@pytest.mark.parametrize(("timeout", "written_timeout"), [(600, 605), (20, 25)])
def test_the_agent_waits_longer_than_the_hook_may_take(timeout: int, written_timeout: int, tmp_path: Path) -> None:
    ((_, text),) = converted(claude(tmp_path, timeout=timeout), "vscode").files.items()
    (entry,) = json.loads(text)["hooks"]["PreToolUse"]
    assert entry["timeout"] == written_timeout


@pytest.mark.parametrize(
    ("dialect", "path", "document", "target"),
    [
        (
            "cursor",
            ".cursor/hooks.json",
            {"version": 1, "hooks": {"preToolUse": [{"command": "guard", "failClosed": True}]}},
            "claude",
        ),
        (
            "goose",
            ".agents/plugins/x/hooks/hooks.json",
            {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "guard", "on_failure": "block"}]}]}},
            "copilot",
        ),
    ],
)
def test_a_guard_whose_failure_refuses_the_call_still_does_so(
    dialect: str, path: str, document: object, target: str, tmp_path: Path
) -> None:
    (entry,) = written(dialect, path, document, tmp_path, target)
    (hook,) = entry.get("hooks", [entry])
    line = words(hook.get("command") or hook["bash"])
    assert "--fail-closed" in line[: line.index("--")]


def test_augment_gets_a_script_for_each_hook_because_its_file_holds_paths(tmp_path: Path) -> None:
    found = converted(claude(tmp_path, matcher="Bash"), "augment", str(tmp_path))
    settings, script = found.files
    (group,) = json.loads(found.files[settings])["hooks"]["PreToolUse"]
    assert (settings, script) == (".augment/settings.json", ".augment/hooks/hookproxy-1.sh")
    assert group["hooks"][0]["command"] == f"{tmp_path}/{script}"
    assert (group["matcher"], group["metadata"]) == ("^(?:launch\\-process)$", {"includeMCPMetadata": True})
    first, command = found.files[script].splitlines()
    assert (first, words(command)[:6]) == ("#!/bin/sh", ["hookproxy", "hook", "--for", "augment", "--as", "claude"])


def test_claw_code_gets_command_strings_and_keeps_the_matchers_of_its_groups(tmp_path: Path) -> None:
    ((_, text),) = converted(claude(tmp_path, matcher="Bash"), "claw").files.items()
    (command,) = json.loads(text)["hooks"]["PreToolUse"]
    assert words(command)[words(command).index("--matcher") + 1] == "Bash"
    group = {"matcher": "bash,mcp__*", "hooks": [{"type": "command", "command": "./p.py"}]}
    found = converted(groups(tmp_path, {"hooks": {"PreToolUse": [group]}}, "claw@current"), "claude")
    ((_, text),) = found.files.items()
    (written_group,) = json.loads(text)["hooks"]["PreToolUse"]
    command = words(written_group["hooks"][0]["command"])
    assert command[command.index("--matcher") + 1] == "bash,mcp__*"


def test_docker_agent_gets_the_hooks_of_its_root_agent(tmp_path: Path) -> None:
    found = converted(claude(tmp_path, matcher="Bash", timeout=30), "docker-agent")
    (hooks,) = [
        DIALECTS["docker-agent"].read_hook_file(HookFile(str(tmp_path / path), text, str(tmp_path)))
        for path, text in found.files.items()
    ]
    (spec,) = hooks.hooks
    assert (spec.timeout, spec.matches("shell"), spec.matches("shell2")) == (35.0, True, False)
    assert hooks.notes == ()


def test_the_hook_keeps_its_folder_and_its_variables(tmp_path: Path) -> None:
    hook = {"type": "command", "bash": "./guard.sh", "cwd": "tools", "env": {"LEVEL": "a b"}}
    document = {"version": 1, "hooks": {"preToolUse": [hook]}}
    ((entry,),) = (group["hooks"] for group in written("copilot", ".github/hooks/a.json", document, tmp_path, "claude"))
    line = words(entry["command"])[-1]
    folder, rest = line.split(" || ", 1)
    assert folder == f"cd {tmp_path}/tools"
    assert rest.endswith("; export LEVEL='a b'; bash -c ./guard.sh")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("source", "file", "document"),
    [
        (
            "copilot",
            ".github/hooks/a.json",
            {"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": "true", "cwd": "gone"}]}},
        ),
        (
            "claude",
            ".claude/settings.json",
            {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}},
        ),
    ],
)
async def test_a_hook_whose_folder_is_missing_refuses_the_call_as_its_own_system_does(
    source: str, file: str, document: object, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    ((entry,),) = (group["hooks"] for group in written(source, file, document, place, "claude"))
    line = words(entry["command"])[-1]
    shutil.rmtree(place)
    if " || " not in line:
        line = f"cd {place} || exit 2; {line}"  # a hook of the project's own folder is started in it
    side = agent_side("claude")
    assert side is not None
    call = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}, "cwd": "/"}
    output = await run_hooks([ForeignHook(DIALECTS[source], line)], side, json.dumps(call).encode(), {"PATH": "/bin"})
    assert b'"deny"' in output.stdout or output.status == 2


def test_the_forms_of_kiro_keep_their_own_matchers(tmp_path: Path) -> None:
    document = {"name": "a", "hooks": {"preToolUse": [{"matcher": "fs_*", "command": "true"}]}}
    (group,) = written("kiro", ".kiro/agents/a.json", document, tmp_path, "claude")
    command = words(group["hooks"][0]["command"])
    assert command[command.index("--event") + 1] == "preToolUse"


def test_the_list_of_tools_of_an_older_kiro_hook_stays_a_matcher(tmp_path: Path) -> None:
    path = tmp_path / ".kiro/hooks/guard.kiro.hook"
    path.parent.mkdir(parents=True)
    when = {"type": "preToolUse", "toolTypes": ["shell", "write"]}
    content = {"name": "guard", "version": "1", "when": when, "then": {"type": "runCommand", "command": "guard"}}
    path.write_text(json.dumps(content), "utf-8")
    use = parse_option(f"kiro={path}", str(tmp_path))
    found = converted([one.group for one in read_use(use, FileContext({}, str(tmp_path)))], "claude")
    ((_, text),) = found.files.items()
    (group,) = json.loads(text)["hooks"]["PreToolUse"]
    command = words(group["hooks"][0]["command"])
    matches = DIALECTS["kiro"].read_hook_file(
        HookFile(
            str(tmp_path / "x.json"),
            json.dumps(
                {
                    "version": "v1",
                    "hooks": [
                        {
                            "name": "x",
                            "trigger": "PreToolUse",
                            "matcher": command[command.index("--matcher") + 1],
                            "action": {"type": "command", "command": "guard"},
                        }
                    ],
                }
            ),
            str(tmp_path),
        )
    )
    assert [matches.hooks[0].matches(name) for name in ("execute_bash", "fs_write", "fs_read")] == [True, True, False]


def two_guards(folder: Path, **entry: object) -> list[Group]:
    """Two hooks of one event, with matchers of their own."""
    entries = [
        {"matcher": matcher, "hooks": [{"type": "command", "command": command, **entry}]}
        for matcher, command in (("Bash", "./bash.sh"), ("Write", "./write.sh"))
    ]
    return groups(folder, {"hooks": {"PreToolUse": entries}})


def test_several_hooks_of_an_event_are_one_entry(tmp_path: Path) -> None:
    found = converted(two_guards(tmp_path, timeout=5), "copilot", str(tmp_path))
    (entry,) = json.loads(found.files[".github/hooks/hookproxy.json"])["hooks"]["PreToolUse"]
    assert (entry["matcher"], entry["timeoutSec"], found.hooks) == ("bash|create", 10, 2)
    assert words(entry["bash"]) == [
        *("hookproxy", "hook", "--for", "copilot"),
        *("--as", "claude", "--matcher", "Bash", "--timeout", "5", "--run", "./bash.sh"),
        *("--as", "claude", "--matcher", "Write", "--timeout", "5", "--run", "./write.sh"),
    ]


def test_hooks_that_run_one_after_another_may_take_as_long_as_all_of_them(tmp_path: Path) -> None:
    hooks = [{"type": "command", "bash": command, "timeoutSec": 20} for command in ("./a.sh", "./b.sh")]
    document = {"version": 1, "hooks": {"preToolUse": hooks}}
    (group,) = written("copilot", ".github/hooks/a.json", document, tmp_path, "claude")
    assert group["hooks"][0]["timeout"] == 45


def test_a_sentence_about_several_hooks_is_said_once(tmp_path: Path) -> None:
    found = converted(two_guards(tmp_path), "cascade", str(tmp_path))
    asks, rewrites = found.notes
    assert "hooks.PreToolUse[0].hooks[0] and 1 more: where a hook asks a person, the call is refused" in asks
    assert "and 1 more: where a hook rewrites arguments, the call is refused" in rewrites


def test_hookproxy_and_the_hook_are_named_by_absolute_paths(tmp_path: Path) -> None:
    (tmp_path / "guard.sh").write_text("")
    side = agent_side("claude")
    assert side is not None
    place = Place(str(tmp_path), str(tmp_path), ("/opt/hookproxy",))
    (text,) = convert(claude(tmp_path), side, place).files.values()
    ((group,),) = json.loads(text)["hooks"].values()
    line = words(group["hooks"][0]["command"])
    assert (line[0], line[-1]) == ("/opt/hookproxy", f"{tmp_path}/guard.sh --strict")
    (text,) = convert(claude(tmp_path), side, Place(str(tmp_path), str(tmp_path), portable=True)).files.values()
    assert str(tmp_path) not in text


@pytest.mark.parametrize("target", names())
@pytest.mark.parametrize("program", ["/missing/hookproxy", "false"])
def test_where_hookproxy_is_missing_or_breaks_a_call_is_refused_if_that_is_wanted(
    target: str, program: str, tmp_path: Path
) -> None:
    side = agent_side(target)
    assert side is not None
    place = Place(str(tmp_path), str(tmp_path), (program,), fails_closed=True)
    for entry in convert(claude(tmp_path, "PreToolUse", "Bash"), side, place).entries:
        ended = subprocess.run(["sh", "-c", entry.command], input=b"{}", capture_output=True, timeout=60)
        spec = HookSpec(target, "x", Event.PRE_TOOL_USE, "x", event_name=entry.event_name)
        result = HookResult(Ended.EXITED, ended.returncode, ended.stdout, ended.stderr)
        verdict = DIALECTS[f"{target}@current" if target == "copilot" else target].read_output(spec, result)
        assert verdict.permission is Permission.DENY, (entry.command, verdict)


def test_nothing_but_the_judging_of_calls_ends_in_a_refusal(tmp_path: Path) -> None:
    side = agent_side("claude")
    assert side is not None
    place = Place(str(tmp_path), str(tmp_path), ("/missing/hookproxy",), fails_closed=True)
    (entry,) = convert(claude(tmp_path, "PostToolUse", "Bash"), side, place).entries
    assert "||" not in entry.command
    assert "--fail-closed" in entry.command


def test_a_persons_own_file_has_its_place_in_the_home_folder(tmp_path: Path) -> None:
    expected = {
        "augment": {".augment/settings.json", ".augment/hooks/hookproxy-1.sh"},
        "cascade": {".codeium/windsurf/hooks.json"},
        "cline": {"Documents/Cline/Hooks/PreToolUse"},
        "copilot": {".copilot/hooks/hookproxy.json"},
        "crush": {".config/crush/crush.json"},
        "claude": {".claude/settings.json"},
    }
    for target, paths in expected.items():
        side = agent_side(target)
        assert side is not None
        files = convert(claude(tmp_path), side, Place("", "/home/a", of_user=True)).files
        assert files.keys() == paths
        if target == "augment":
            assert "/home/a/.augment/hooks/hookproxy-1.sh" in files[".augment/settings.json"]


def test_in_any_folder_the_hook_of_a_project_goes_to_its_own(tmp_path: Path) -> None:
    side = agent_side("copilot")
    assert side is not None
    (entry,) = convert(claude(tmp_path), side, Place("", "/home/a", of_user=True)).entries
    assert f"cd {tmp_path} || exit 2" in entry.command
    (entry,) = convert(claude(tmp_path), side, Place(str(tmp_path), "/home/a", of_user=True, any_folder=True)).entries
    assert str(tmp_path) not in entry.command
