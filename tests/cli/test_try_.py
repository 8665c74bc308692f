"""`hookproxy try` as people and programs get it: the real program, real hook files of six systems, hostile input."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.cli.try_ import USAGE, main
from hookproxy.model.errors import UserError
from tests.support import terminal
from tests.support.hook_files import COMMENTS, DENIALS, HOOK_FILES, config, hooks_file

pytestmark = pytest.mark.slow

TRY: Final = [sys.executable, "-m", "hookproxy", "try"]
RESULT: Final = '{"content": [{"type": "text", "text": "done"}]}'


def attempt(folder: Path, *arguments: str, given: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    known = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "COLUMNS"))}
    return subprocess.run(
        [*TRY, *arguments],
        cwd=folder,
        env=known | variables,
        input=given,
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        timeout=30,
    )


def document(folder: Path, *arguments: str, status: int = 0) -> dict[str, Any]:
    ended = attempt(folder, *arguments, "--json")
    assert (ended.returncode, ended.stderr) == (status, "")
    read: dict[str, Any] = json.loads(ended.stdout)
    assert read["status"] == status
    return read


# --- hook files of other systems ---


@pytest.mark.parametrize("dialect", HOOK_FILES)
def test_each_system_is_told_exactly_what_is_shown(tmp_path: Path, dialect: str) -> None:
    said = "; echo '{}'" if dialect == "code-assist" else ""
    keep = f"cat > '{tmp_path}/stdin'; env -0 > '{tmp_path}/env'{said}"
    read = document(tmp_path, "write_file", '{"path": "a"}', hooks_file(tmp_path, dialect, keep), "--name", "files")
    (shown,) = read["hooks"]
    assert shown["stdin"] == (tmp_path / "stdin").read_text()
    got = dict(pair.split("=", 1) for pair in (tmp_path / "env").read_text().rstrip("\0").split("\0"))
    assert shown["variables"].items() <= got.items()
    assert got.keys() - shown["variables"].keys() - {"_", "SHLVL", "OLDPWD", "PWD"} <= os.environ.keys()
    assert (shown["dialect"], shown["event"], shown["exit"], shown["absent"]) == (dialect, "PreToolUse", 0, None)
    assert (read["decision"], read["arguments"]["after"]) == ("allow", {"path": "a"})


@pytest.mark.parametrize("dialect", HOOK_FILES)
def test_each_system_can_refuse(tmp_path: Path, dialect: str) -> None:
    read = document(tmp_path, "sh", hooks_file(tmp_path, dialect, DENIALS[dialect]), status=1)
    assert (read["decision"], read["reason"], read["failed"]) == ("deny", "no", False)
    assert read["by"].startswith("the PreToolUse hook ")
    assert read["hooks"][0]["verdict"]["permission"] == "deny"
    assert read["arguments"]["after"] is None
    assert "Blocked by the PreToolUse hook" in read["result"]["after"]["content"][0]["text"]


@pytest.mark.parametrize("dialect", COMMENTS)
def test_each_system_comments_on_a_result(tmp_path: Path, dialect: str) -> None:
    hooks = hooks_file(tmp_path, dialect, COMMENTS[dialect], "PostToolUse")
    if dialect == "lime":  # its post hooks are not awaited, unless that is chosen
        hooks = config(tmp_path, '[[use]]\nfile = "lime.json"\ndialect = "lime"\nawait_post = true\n')
    read = document(tmp_path, "sh", "{}", "--result", RESULT, hooks)
    assert read["result"]["before"] == json.loads(RESULT)
    assert "seen" in json.dumps(read["result"]["after"])


# --- what it shows ---

SHOWN: Final = """\
settings.json:1  hooks.PreToolUse[0].hooks[0]
  event    PreToolUse, claude
  runs     cat > /dev/null; echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"a":2}}}'
  stdin    {"session_id":"the session","transcript_path":"","cwd":"FOLDER","permission_mode":"default",\
"hook_event_name":"PreToolUse","tool_name":"mcp__server__write","tool_input":{"a":1.0},"tool_use_id":"call_1",\
"mcp_server":{"name":"server"}}
  set      CLAUDECODE=1
           CLAUDE_CODE_CHILD_SESSION=1
           CLAUDE_CODE_SESSION_ID=the session
           CLAUDE_PROJECT_DIR=FOLDER
           PWD=FOLDER
  hidden   COPILOT_CLI
  answer   exit status 0, after N ms
  stdout   {"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"a":2}}}
  verdict  rewrites the arguments: {"a":2}

settings.json:1  hooks.PreToolUse[1].hooks[0]
  event    PreToolUse, claude
  runs     ./gone.sh
  not run  its matcher 'mcp__git__.*' does not match 'mcp__server__write'

arguments
  --- before
  +++ after
  @@ -1,3 +1,3 @@
   {
  -  "a": 1.0
  +  "a": 2
   }

write of server: allowed
"""


@pytest.fixture
def rewriting(tmp_path: Path) -> Path:
    command = SHOWN.split("runs     ")[1].split("\n")[0]
    hooks = [
        {"hooks": [{"type": "command", "command": command}]},
        {"matcher": "mcp__git__.*", "hooks": [{"type": "command", "command": "./gone.sh"}]},
    ]
    (tmp_path / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": hooks}}))
    return tmp_path


def test_people_get_each_hook_with_what_it_got_and_said_and_the_decision_last(rewriting: Path) -> None:
    ended = attempt(
        rewriting,
        "write",
        '{"a":1.0}',
        "--hooks",
        "settings.json",
        COPILOT_CLI="1",
        CLAUDE_CODE_SESSION_ID="the session",
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    shown = re.sub(r"after [\d.]+ ms", "after N ms", ended.stdout)
    assert shown == SHOWN.replace("FOLDER", str(rewriting))


def test_programs_get_one_document_whose_keys_stay(rewriting: Path) -> None:
    read = document(rewriting, "write", '{"a":1.0}', "--hooks", "settings.json")
    assert list(read) == [
        *("v", "status", "decision", "by", "reason", "failed", "question", "tool", "server", "event"),
        *("alias", "arguments", "result", "hooks", "remarks"),
    ]
    assert [list(hook) for hook in read["hooks"]] == [list(read["hooks"][0])] * 2
    assert list(read["hooks"][0]) == [
        *("source", "dialect", "event", "label", "command", "matcher", "if", "timeout", "background", "absent"),
        *("stdin", "variables", "hidden", "ended", "exit", "detail", "ms", "stdout", "stderr", "cut", "verdict"),
    ]
    assert read["hooks"][0]["verdict"]["arguments"] == {"a": 2}
    assert read["hooks"][1]["absent"] == "its matcher 'mcp__git__.*' does not match 'mcp__server__write'"
    assert read["hooks"][1]["verdict"] is None


def test_nothing_that_a_hook_prints_reaches_the_terminal_raw(tmp_path: Path) -> None:
    hooks = hooks_file(tmp_path, "claude", "printf 'a\\033[31m\\377\\n' | tee /dev/stderr; exit 2")
    ended = attempt(tmp_path, "sh\x1b[31m", hooks)
    assert ended.returncode == 1
    assert "\x1b" not in ended.stdout
    assert "  stderr   a\\x1b[31m\\xff\n" in ended.stdout


def test_what_a_hook_prints_without_end_is_shown_in_part(tmp_path: Path) -> None:
    hooks = hooks_file(tmp_path, "claude", "head -c 300000 /dev/zero | tr '\\0' x")
    assert "… 290000 characters more, all of which --json has" in attempt(tmp_path, "sh", hooks).stdout
    assert len(document(tmp_path, "sh", hooks)["hooks"][0]["stdout"]) == 300_000


def test_a_terminal_gets_the_same_in_lines_that_fit_it_and_colour_says_no_more_than_words(rewriting: Path) -> None:
    argv = [*TRY, "write", '{"a":1.0}', "--hooks", "settings.json"]
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "CLAUDECODE")}
    env |= {"CLAUDE_CODE_SESSION_ID": "the session"}
    coloured = terminal.shown(argv, rewriting, env, 80)
    assert max(map(len, terminal.plain(coloured).splitlines())) <= 80
    assert "write of server: \x1b[32mallowed\x1b[0m\n" in coloured
    assert '\x1b[31m-  "a": 1.0\x1b[0m' in coloured
    uncoloured = terminal.shown(argv, rewriting, env | {"NO_COLOR": "1"}, 80)
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", uncoloured)
    piped = attempt(rewriting, *argv[4:], CLAUDE_CODE_SESSION_ID="the session").stdout
    timeless = [re.sub(r"[\d.]+ms|\s", "", text.replace(" ms", "ms")) for text in (terminal.plain(coloured), piped)]
    assert timeless[0] == timeless[1]
    assert "\x1b" not in piped


# --- exit status ---

FAILING: Final = '[[hooks.PreToolUse]]\ncommand = "exit 9"\n'


def test_a_hook_that_fails_and_lets_the_call_go_is_0_and_shown(tmp_path: Path) -> None:
    ended = attempt(tmp_path, "sh", config(tmp_path, FAILING + 'on_failure = "allow"'))
    assert ended.returncode == 0
    assert "  verdict  trouble: it exited with status 9\n" in ended.stdout


def test_a_hook_that_fails_and_refuses_is_2_for_nobody_has_judged_the_call(tmp_path: Path) -> None:
    ended = attempt(tmp_path, "sh", config(tmp_path, FAILING))
    assert ended.returncode == 2
    assert "sh of server: refused, for a hook failed\n" in ended.stdout
    hanging = '[[hooks.PreToolUse]]\ncommand = "sleep 60"\ntimeout = 0.1\n'
    ended = attempt(tmp_path, "sh", config(tmp_path, hanging))
    assert ended.returncode == 2
    assert "  answer   timed out, after " in ended.stdout


def test_a_call_about_which_a_person_would_be_asked_is_1_and_shows_the_question(tmp_path: Path) -> None:
    text = '[permissions]\nask = ["sh(git push:*)"]\n'
    ended = attempt(tmp_path, "sh", '{"cmd": "git push"}', config(tmp_path, text))
    assert ended.returncode == 1
    assert "sh of server: a person would be asked\n" in ended.stdout
    assert "  by       the permission rule sh(git push:*) of hookproxy.toml\n" in ended.stdout
    assert "  asked    Allow the tool sh of server to run?\n" in ended.stdout
    assert "  fallback where the agent cannot ask, the call would be refused\n" in ended.stdout
    prompter = f'on_ask_fallback = {{ command = ["./ask"] }}\n{text}'
    ended = attempt(tmp_path, "sh", '{"cmd": "git push"}', config(tmp_path, prompter))
    assert f"where the agent cannot ask, {tmp_path}/ask would" in ended.stdout.replace("\n", "")
    allowing = 'on_ask_fallback = "allow"\n' + text
    assert (
        "the call would be allowed" in attempt(tmp_path, "sh", '{"cmd": "git push"}', config(tmp_path, allowing)).stdout
    )


def test_a_rule_refuses_before_anybody_is_asked(tmp_path: Path) -> None:
    read = document(
        tmp_path, "delete_all", config(tmp_path, '[permissions]\ndeny = ["delete_*"]\nask = ["*"]'), status=1
    )
    assert (read["decision"], read["by"]) == ("deny", "the permission rule delete_*")


def test_what_is_not_configured_passes(tmp_path: Path) -> None:
    ended = attempt(tmp_path, "sh")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "no hook and no rule is about this call: it passes as it came" in ended.stdout


# --- what is tried ---


def test_arguments_and_results_come_from_the_line_from_files_or_from_standard_input(tmp_path: Path) -> None:
    hooks = hooks_file(tmp_path, "claude", "exit 0")
    (tmp_path / "arguments.json").write_bytes(b'\xef\xbb\xbf{\n\t"a": 1\n}\n')
    assert document(tmp_path, "sh", "@arguments.json", hooks)["arguments"]["before"] == {"a": 1}
    ended = attempt(tmp_path, "sh", "-", "--result", "@arguments.json", hooks, "--json", given='{"b": [2]}')
    read = json.loads(ended.stdout)
    assert (read["arguments"]["before"], read["result"]["before"]) == ({"b": [2]}, {"a": 1})


def test_one_event_alone_in_any_systems_spelling(tmp_path: Path) -> None:
    hooks = hooks_file(tmp_path, "copilot", "exit 0", "PostToolUse")
    for spelled in ("PostToolUse", "postToolUse", "post_tool_use"):
        read = document(tmp_path, "sh", "--event", spelled, hooks)
        assert (read["event"], read["result"]["before"]) == ("PostToolUse", {"content": []})
        assert [hook["absent"] for hook in read["hooks"]] == [None]
    started = document(tmp_path, "--event", "SessionStart", hooks)
    assert (started["decision"], started["hooks"][0]["absent"]) == (
        None,
        "it is for PostToolUse, and only SessionStart is tried",
    )


def test_a_question_that_is_tried_alone_is_nobodys(tmp_path: Path) -> None:
    options = ("sh", "--event", "PermissionRequest", hooks_file(tmp_path, "claude", "exit 0", "PermissionRequest"))
    read = document(tmp_path, *options, status=1)
    assert (read["decision"], read["by"], read["question"]) == ("asked", "", None)
    answer = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "deny"}}}
    hooks_file(tmp_path, "claude", f"echo '{json.dumps(answer)}'", "PermissionRequest")
    read = document(tmp_path, *options, status=1)
    assert (read["decision"], read["by"]) == ("asked-deny", "the PermissionRequest hook echo")


def test_a_name_as_hooks_see_it_is_taken_for_the_servers_with_a_word_about_it(tmp_path: Path) -> None:
    ended = attempt(tmp_path, "mcp__git__git_commit")
    assert ended.returncode == 0
    assert ended.stderr.startswith("hookproxy: TOOL is the name that the server has for it")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no tool is named"),
        (["sh", "{"], "ARGUMENTS: not JSON"),
        (["sh", "[]"], "ARGUMENTS: not a JSON object"),
        (["sh", '{"a":NaN}'], "ARGUMENTS: NaN is not JSON"),
        (["sh", '{"a":' * 1000 + "1" + "}" * 1000], "ARGUMENTS: nested too deep"),
        (["sh", '{"a":1' + "0" * 5000 + "}"], "ARGUMENTS: a number too long"),
        (["sh", "{} {}"], "ARGUMENTS: not JSON"),
        (["sh", '{"a":1,"a":2}, "name": "other", "x": {'], "ARGUMENTS: not JSON"),
        (["sh", "\udcff"], "ARGUMENTS: not UTF-8 at byte 0"),
        (["\udcff"], "the tool's name"),
        (["sh", "@gone.json"], "ARGUMENTS: gone.json cannot be read: No such file"),
        (["sh", "@"], "ARGUMENTS: no file is named"),
        (["sh", "@."], "ARGUMENTS: . cannot be read: Is a directory"),
        (["sh", "{}", "--result", "1"], "--result: not a JSON object"),
        (["sh", "-", "--result", "-"], "standard input cannot be both"),
        (["sh", "--event", "Elicitation"], "--event: 'Elicitation' cannot be tried"),
        (["sh", "--event", "PreToolUse", "--result", "{}"], "--result: PreToolUse comes without a result"),
        (["sh", "--event", "PostToolUse", "--result", '{"isError":true}'], "--result: is an error, which is for"),
        (["sh", "--event", "PostToolUseFailure", "--result", "{}"], "--result: is no error, which is for PostToolUse"),
        (["sh", "{}", "stray"], "unrecognized arguments: stray"),
    ],
)
def test_what_cannot_be_tried_is_told(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError) as error:
        main(arguments)
    assert str(error.value).startswith(f"error: {message}")
    assert error.value.status == 2


def test_arguments_that_can_be_read_in_two_ways_are_refused_as_in_a_run(tmp_path: Path) -> None:
    ended = attempt(tmp_path, "sh", '{"a":1,"a":2}', hooks_file(tmp_path, "claude", "exit 0"))
    assert ended.returncode == 1
    assert "the key 'a' stands twice in one object" in ended.stdout
    unreadable = document(tmp_path, "sh", '{"a":1,"a":2}', hooks_file(tmp_path, "claude", "exit 0"), status=1)
    assert unreadable["arguments"] == {"before": '{"a":1,"a":2}', "after": None}


@pytest.mark.parametrize("json_option", [[], ["--json"]])
def test_what_run_would_not_start_with_is_told_as_by_run(tmp_path: Path, json_option: list[str]) -> None:
    ended = attempt(tmp_path, "sh", "--hooks", "gone.json", *json_option)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"error: {tmp_path}/gone.json: there is no such file\nhint: ")


def test_help_names_every_option_and_that_hooks_run_for_real(tmp_path: Path) -> None:
    ended = attempt(tmp_path, "--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    told = " ".join(ended.stdout.split())
    assert " ".join(USAGE.split()) in told
    assert "Hooks run for real" in told


def test_what_a_python_hook_prints_is_not_taken_for_the_document(tmp_path: Path) -> None:
    (tmp_path / "guards.py").write_text("def look(call):\n    print('noise')\n    return {}\n")
    ended = attempt(
        tmp_path, "sh", "--json", config(tmp_path, "[[hooks.PreToolUse]]\ntype = 'python'\ncall = 'guards:look'\n")
    )
    assert (ended.returncode, ended.stderr) == (0, "noise\n")
    assert json.loads(ended.stdout)["hooks"][0]["variables"] == {}


def test_nothing_that_hooks_started_is_left(tmp_path: Path) -> None:
    config(
        tmp_path,
        f"[[hooks.PreToolUse]]\ntype = 'worker'\nargv = ['{sys.executable}', '-c', '''\n"
        "import os, sys\nopen('pid', 'w').write(str(os.getpid()))\n"
        "for line in sys.stdin: print('{}', flush=True)\n''']\n",
    )
    document(tmp_path, "sh", "--config=hookproxy.toml")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_both_names_of_an_aliased_tool_are_shown(tmp_path: Path) -> None:
    (tmp_path / "hookproxy.toml").write_text(
        '[tools.execute_command]\nas = "Bash"\narguments = { command = "cmd" }\n'
        '[[hooks.PreToolUse]]\nmatcher = "Bash"\ncommand = "cat >&2; exit 2"\n'
    )
    call = ("execute_command", '{"cmd":"ls"}', "--config", "hookproxy.toml")
    shown = attempt(tmp_path, *call).stdout
    assert '"tool_name":"Bash","tool_input":{"command":"ls"}' in shown
    assert "execute_command of server: refused\n  to hooks as Bash (cmd as command)\n" in shown
    read = document(tmp_path, *call, status=1)
    assert (read["tool"], read["alias"]) == ("execute_command", {"as": "Bash", "arguments": {"command": "cmd"}})
    assert document(tmp_path, "other", *call[2:])["alias"] is None
