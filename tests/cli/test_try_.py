"""`hookproxy try`: the real program with hook files of six systems and hostile input, and the parts of its output."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.cli.try_ import build_parser, json_output, main, verdict_lines
from hookproxy.hooks.evaluate import Evaluation
from hookproxy.model.decision import ApprovalRequest, Comments, Proceed, RefusalCause, Refuse
from hookproxy.model.errors import UserError
from hookproxy.model.hooks import Ended, Event, HookResult, HookRun, Permission, Verdict
from hookproxy.model.settings import Settings
from hookproxy.trial.observe import Observation, ObservedRun
from hookproxy.trial.report import TrialReport
from hookproxy.trial.run import TrialCall, TrialResult
from tests.support import preloaded_program, terminal
from tests.support.hook_files import COMMENTS, DENIALS, HOOK_FILES, config, hooks_file
from tests.support.proxy_rig import group, hook

pytestmark = pytest.mark.slow

TRY: Final = [sys.executable, "-m", "hookproxy", "try"]
RESULT: Final = '{"content": [{"type": "text", "text": "done"}]}'


def attempt(folder: Path, *arguments: str, given: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    known = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "COLUMNS"))}
    return preloaded_program.run(["try", *arguments], folder, known | variables, document=given)


def document(folder: Path, *arguments: str, status: int = 0) -> dict[str, Any]:
    ended = attempt(folder, *arguments, "--json")
    assert (ended.returncode, ended.stderr) == (status, "")
    read: dict[str, Any] = json.loads(ended.stdout)
    assert read["status"] == status
    return read


def test_a_request_of_another_method_is_tried_like_a_call(tmp_path: Path) -> None:
    (tmp_path / "hookproxy.toml").write_text('[permissions]\ndeny = ["Read(**/.env)"]\nask = ["prompts/*"]\n')
    named = ("--config", "hookproxy.toml")
    read = document(tmp_path, "resources/read", '{"uri": "FILE:/a/%252eenv"}', *named, status=1)
    assert (read["decision"], read["by"]) == ("deny", "the permission rule Read(**/.env)")
    assert document(tmp_path, "resources/read", '{"uri": "file:///a"}', *named)["decision"] == "allow"
    asked = document(tmp_path, "prompts/get", '{"name": "review"}', *named, status=1)
    assert (asked["decision"], asked["by"]) == ("asked", "the permission rule prompts/* of hookproxy.toml")
    shown = attempt(tmp_path, "resources/read", '{"uri": "file:///.env"}', *named).stdout
    assert "The server did not get this resources/read." in " ".join(shown.split())


def test_a_request_of_the_server_is_tried_with_the_agents_answer(tmp_path: Path) -> None:
    output = {"hookEventName": "PostToolUse", "updatedMCPToolOutput": {"roots": []}}
    (tmp_path / "said.json").write_text(json.dumps({"hookSpecificOutput": output}))
    rules = '[permissions]\ndeny = ["sampling/*"]\n'
    hooks = '[[hooks.PostToolUse]]\nmatcher = "roots/list"\nargv = ["cat", "said.json"]\n'
    (tmp_path / "hookproxy.toml").write_text(rules + hooks)
    named = ("--config", "hookproxy.toml")
    denied = document(tmp_path, "sampling/createMessage", '{"messages": []}', *named, status=1)
    assert (denied["decision"], denied["by"]) == ("deny", "the permission rule sampling/*")
    assert "User rejected" in attempt(tmp_path, "sampling/createMessage", "{}", *named).stdout
    answered = attempt(tmp_path, "roots/list", "{}", *named, "--result", '{"roots": [{"uri": "file:///a"}]}')
    assert 'server   {"roots":[]}' in answered.stdout
    unclear = attempt(tmp_path, "sampling/createMessage", '{"Messages": []}', *named)
    assert "is taken for 'messages' by some readers" in " ".join(unclear.stdout.split())
    event = attempt(tmp_path, "roots/list", "{}", *named, "--event", "PreToolUse")
    assert event.returncode == 2
    assert "is a request of the server, which is tried as a whole" in event.stderr


def test_a_person_would_be_asked_about_a_request_of_the_server(tmp_path: Path) -> None:
    methods = ("elicitation/create", "sampling/createMessage", "roots/list")
    (tmp_path / "hookproxy.toml").write_text(f"[permissions]\nask = {json.dumps(methods)}\n")
    for method in methods:
        asked = document(tmp_path, method, "{}", "--config", "hookproxy.toml", status=1)
        assert (asked["decision"], asked["by"]) == ("asked", f"the permission rule {method} of hookproxy.toml")
    shown = attempt(tmp_path, methods[0], '{"message": "Your name?"}', "--config", "hookproxy.toml").stdout
    assert "elicitation/create of server: a person would be asked" in shown
    assert 'message: "Your name?"' in shown
    (tmp_path / "hookproxy.toml").write_text('on_ask = "deny"\n[permissions]\nask = ["roots/list"]\n')
    denied = document(tmp_path, "roots/list", "{}", "--config", "hookproxy.toml", status=1)
    assert denied["decision"] == "asked-deny"


# --- hook files of other systems ---


@pytest.mark.parametrize("dialect", HOOK_FILES)
def test_the_shown_input_is_exactly_what_the_hook_of_each_system_gets(tmp_path: Path, dialect: str) -> None:
    output = "; echo '{}'" if dialect == "code-assist" else ""
    keep = f"cat > '{tmp_path}/stdin'; env -0 > '{tmp_path}/env'{output}"
    read = document(tmp_path, "write_file", '{"path": "a"}', hooks_file(tmp_path, dialect, keep), "--name", "files")
    (shown,) = read["hooks"]
    assert shown["stdin"] == (tmp_path / "stdin").read_text()
    got = dict(pair.split("=", 1) for pair in (tmp_path / "env").read_text().rstrip("\0").split("\0"))
    assert shown["variables"].items() <= got.items()
    assert got.keys() - shown["variables"].keys() - {"_", "SHLVL", "OLDPWD", "PWD"} <= os.environ.keys()
    assert (shown["dialect"], shown["event"], shown["exit"], shown["absent"]) == (dialect, "PreToolUse", 0, None)
    assert (read["decision"], read["arguments"]["after"]) == ("allow", {"path": "a"})


def test_an_allowed_call_says_that_its_guards_have_failed(tmp_path: Path) -> None:
    """Otherwise who tries a broken guard reads `allowed`, as if it had judged the call."""
    options = ("sh", hooks_file(tmp_path, "claude", "exit 1"))
    allowed = attempt(tmp_path, *options)
    assert allowed.returncode == 0
    assert allowed.stdout.endswith(
        "sh of server: allowed\n"
        "  but      1 hook has failed, which does not stop the call: --fail-closed refuses it then\n"
    )
    refused = attempt(tmp_path, *options, "--fail-closed")
    assert (refused.returncode, "has failed, which" in refused.stdout) == (2, False)


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
    if dialect == "lime":  # its hooks after a call are not awaited, unless the configuration says so
        hooks = config(tmp_path, '[[use]]\nfile = "lime.json"\ndialect = "lime"\nawait_post = true\n')
    read = document(tmp_path, "sh", "{}", "--result", RESULT, hooks)
    assert read["result"]["before"] == json.loads(RESULT)
    assert "seen" in json.dumps(read["result"]["after"])


# --- the output ---

SHOWN: Final = """\
settings.json:1  hooks.PreToolUse[0].hooks[0]
  event    PreToolUse, claude
  command  cat > /dev/null; echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"a":2}}}'
  stdin    {"session_id":"the session","transcript_path":"","cwd":"FOLDER","permission_mode":"default",\
"hook_event_name":"PreToolUse","tool_name":"mcp__server__write","tool_input":{"a":1.0},"tool_use_id":"call_1",\
"mcp_server":{"name":"server"}}
  set      CLAUDECODE=1
           CLAUDE_CODE_CHILD_SESSION=1
           CLAUDE_CODE_SESSION_ID=the session
           CLAUDE_PROJECT_DIR=FOLDER
           PWD=FOLDER
  unset    COPILOT_CLI
  ended    exit status 0, after N ms
  stdout   {"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"a":2}}}
  verdict  rewrites the arguments: {"a":2}

settings.json:1  hooks.PreToolUse[1].hooks[0]
  event    PreToolUse, claude
  command  ./other.sh
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
    command = SHOWN.split("command  ")[1].split("\n")[0]
    hooks = [
        {"hooks": [{"type": "command", "command": command}]},
        {"matcher": "mcp__git__.*", "hooks": [{"type": "command", "command": "./other.sh"}]},
    ]
    (tmp_path / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": hooks}}))
    (tmp_path / "other.sh").touch(0o755)
    return tmp_path


def test_people_get_the_input_and_output_of_each_hook_and_last_the_decision(rewriting: Path) -> None:
    ended = attempt(
        rewriting,
        "write",
        '{"a":1.0}',
        "--hooks",
        "claude=settings.json",
        COPILOT_CLI="1",
        CLAUDE_CODE_SESSION_ID="the session",
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    shown = re.sub(r"after [\d.]+ ms", "after N ms", ended.stdout)
    assert shown == SHOWN.replace("FOLDER", str(rewriting))


def test_programs_get_one_document_whose_keys_stay(rewriting: Path) -> None:
    read = document(rewriting, "write", '{"a":1.0}', "--hooks", "claude=settings.json")
    assert list(read) == [
        *("v", "status", "decision", "by", "reason", "failed", "question", "tool", "server", "event"),
        *("alias", "arguments", "result", "hooks", "remarks", "watched"),
    ]
    assert [list(hook) for hook in read["hooks"]] == [list(read["hooks"][0])] * 2
    assert list(read["hooks"][0]) == [
        *("source", "dialect", "event", "label", "command", "matcher", "if", "timeout", "background", "absent"),
        *("stdin", "variables", "hidden", "ended", "exit", "detail", "ms", "stdout", "stderr", "cut", "verdict"),
    ]
    assert read["hooks"][0]["verdict"]["arguments"] == {"a": 2}
    assert read["hooks"][1]["absent"] == "its matcher 'mcp__git__.*' does not match 'mcp__server__write'"
    assert read["hooks"][1]["verdict"] is None


def test_what_is_only_watched_is_tried_too_and_decides_nothing(tmp_path: Path) -> None:
    rules = '[permissions]\nmode = "monitor"\ndeny = ["write"]\n'
    (tmp_path / "hookproxy.toml").write_text(rules, "utf-8")
    ended = attempt(tmp_path, "write", "--config", "hookproxy.toml")
    assert ended.returncode == 0
    assert "write of server: allowed" in ended.stdout
    assert ended.stdout.index("only watched") < ended.stdout.index("write of server: refused")
    read = document(tmp_path, "write", "--config", "hookproxy.toml")
    assert (read["decision"], read["watched"]["decision"]) == ("allow", "deny")


def test_no_hook_output_reaches_the_terminal_raw(tmp_path: Path) -> None:
    hooks = hooks_file(tmp_path, "claude", "printf 'a\\033[31m\\377\\n' | tee /dev/stderr; exit 2")
    ended = attempt(tmp_path, "sh\x1b[31m", hooks)
    assert ended.returncode == 1
    assert "\x1b" not in ended.stdout
    assert "  stderr   a\\x1b[31m\\xff\n" in ended.stdout


def test_long_hook_output_is_shortened(tmp_path: Path) -> None:
    hooks = hooks_file(tmp_path, "claude", "head -c 300000 /dev/zero | tr '\\0' x")
    assert "… 290000 more characters; --json shows the whole text" in attempt(tmp_path, "sh", hooks).stdout
    assert len(document(tmp_path, "sh", hooks)["hooks"][0]["stdout"]) == 300_000


def test_a_terminal_gets_the_same_text_wrapped_and_with_colours_that_add_no_information(rewriting: Path) -> None:
    argv = [*TRY, "write", '{"a":1.0}', "--hooks", "claude=settings.json", "--verbose"]
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "CLAUDECODE")}
    env |= {"CLAUDE_CODE_SESSION_ID": "the session"}
    coloured = terminal.shown(argv, rewriting, env, 80)
    lines = terminal.plain(coloured).splitlines()
    assert all(len(line) <= 80 or len(line.split()) <= 2 for line in lines), "only a word is longer, behind its label"
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


def test_a_failure_that_lets_the_call_go_on_is_shown_and_the_status_is_0(tmp_path: Path) -> None:
    ended = attempt(tmp_path, "sh", config(tmp_path, FAILING + 'on_failure = "allow"'))
    assert ended.returncode == 0
    assert "  verdict  failure: exited with status 9\n" in ended.stdout


def test_a_failure_that_refuses_the_call_has_status_2(tmp_path: Path) -> None:
    ended = attempt(tmp_path, "sh", config(tmp_path, FAILING))
    assert ended.returncode == 2
    assert "sh of server: refused because a hook failed\n" in ended.stdout
    hanging = '[[hooks.PreToolUse]]\ncommand = "sleep 60"\ntimeout = 0.1\n'
    ended = attempt(tmp_path, "sh", config(tmp_path, hanging))
    assert ended.returncode == 2
    assert "  ended    timed out, after " in ended.stdout


def test_a_call_that_needs_approval_shows_the_question_and_the_status_is_1(tmp_path: Path) -> None:
    text = '[permissions]\nask = ["sh(git push:*)"]\n'
    ended = attempt(tmp_path, "sh", '{"cmd": "git push"}', config(tmp_path, text))
    assert ended.returncode == 1
    assert "sh of server: a person would be asked\n" in ended.stdout
    assert "  by       the permission rule sh(git push:*) of hookproxy.toml\n" in ended.stdout
    assert "  asked    Allow the tool sh of server to run?\n" in ended.stdout
    words = " ".join(ended.stdout.split())
    assert 'hookproxy top asks while one is open, and else the call is refused (on_ask_fallback = "auto")' in words
    prompter = f'on_ask_fallback = {{ command = ["./ask"] }}\n{text}'
    ended = attempt(tmp_path, "sh", '{"cmd": "git push"}', config(tmp_path, prompter))
    assert f"if the agent cannot ask, {tmp_path}/ask asks instead" in ended.stdout.replace("\n", "")
    allowing = 'on_ask_fallback = "allow"\n' + text
    assert "the call is allowed" in attempt(tmp_path, "sh", '{"cmd": "git push"}', config(tmp_path, allowing)).stdout
    for word, done in (("deny", "the call is refused"), ("console", "hookproxy top asks instead")):
        configured = config(tmp_path, f'on_ask_fallback = "{word}"\n{text}')
        ended = attempt(tmp_path, "sh", '{"cmd": "git push"}', configured)
        assert f'{done} (on_ask_fallback = "{word}")' in " ".join(ended.stdout.split())


def test_a_deny_rule_precedes_an_ask_rule(tmp_path: Path) -> None:
    read = document(
        tmp_path, "delete_all", config(tmp_path, '[permissions]\ndeny = ["delete_*"]\nask = ["*"]'), status=1
    )
    assert (read["decision"], read["by"]) == ("deny", "the permission rule delete_*")


def test_if_nothing_is_configured_it_says_so_and_does_not_call_that_allowed(tmp_path: Path) -> None:
    empty = config(tmp_path, "strict = false\n")
    for options, where in ((), ""), ((empty,), f" in {tmp_path}/hookproxy.toml"):
        for more in ((), ("--json",)):
            ended = attempt(tmp_path, "sh", *options, *more)
            error = (
                f"error: no policy is loaded{where}: no hook and no rule is configured, so there is nothing to try\n"
            )
            assert (ended.returncode, ended.stdout) == (4, "")
            assert f"{error}hint: name files with --config FILE or --hooks FILE; hookproxy init guard" in ended.stderr


def test_a_call_that_no_hook_or_rule_is_about_passes(tmp_path: Path) -> None:
    ended = attempt(tmp_path, "sh", config(tmp_path, '[permissions]\ndeny = ["delete_*"]\n'))
    assert ended.returncode == 0
    assert "no hook or rule applies to this call: it passes unchanged" in ended.stdout


# --- the command line ---


def test_arguments_and_results_come_from_the_command_line_files_or_standard_input(tmp_path: Path) -> None:
    hooks = hooks_file(tmp_path, "claude", "exit 0")
    (tmp_path / "arguments.json").write_bytes(b'\xef\xbb\xbf{\n\t"a": 1\n}\n')
    assert document(tmp_path, "sh", "@arguments.json", hooks)["arguments"]["before"] == {"a": 1}
    ended = attempt(tmp_path, "sh", "-", "--result", "@arguments.json", hooks, "--json", given='{"b": [2]}')
    read = json.loads(ended.stdout)
    assert (read["arguments"]["before"], read["result"]["before"]) == ({"b": [2]}, {"a": 1})


def test_a_single_event_can_be_tried_in_any_systems_spelling(tmp_path: Path) -> None:
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


def test_a_permission_request_that_is_tried_alone_names_no_hook_or_rule(tmp_path: Path) -> None:
    options = ("sh", "--event", "PermissionRequest", hooks_file(tmp_path, "claude", "exit 0", "PermissionRequest"))
    read = document(tmp_path, *options, status=1)
    assert (read["decision"], read["by"], read["question"]) == ("asked", "", None)
    answer = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "deny"}}}
    hooks_file(tmp_path, "claude", f"echo '{json.dumps(answer)}'", "PermissionRequest")
    read = document(tmp_path, *options, status=1)
    assert (read["decision"], read["by"]) == ("asked-deny", "the PermissionRequest hook echo")


def test_a_tool_name_as_hooks_see_it_is_accepted_with_a_note(tmp_path: Path) -> None:
    ended = attempt(tmp_path, "mcp__git__git_commit", config(tmp_path, '[permissions]\ndeny = ["delete_*"]\n'))
    assert ended.returncode == 0
    assert "hookproxy: TOOL is the server's own name of the tool" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no tool is named"),
        (["sh", "{"], "ARGUMENTS: not JSON"),
        (["sh", "[]"], "ARGUMENTS: not a JSON object"),
        (["sh", '{"a":NaN}'], "ARGUMENTS: NaN is not JSON"),
        (["sh", '{"a":' * 1000 + "1" + "}" * 1000], "ARGUMENTS: nested too deeply"),
        (["sh", '{"a":1' + "0" * 5000 + "}"], "ARGUMENTS: a number is too long"),
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
        (["sh", "--event", "PreToolUse", "--result", "{}"], "--result: PreToolUse has no result"),
        (["sh", "--event", "PostToolUse", "--result", '{"isError":true}'], "--result: is an error, which is for"),
        (
            ["sh", "--event", "PostToolUseFailure", "--result", "{}"],
            "--result: is not an error, which is for",
        ),
        (["sh", "{}", "stray"], "unrecognized arguments: stray"),
    ],
)
def test_input_that_cannot_be_used_is_an_error(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError) as error:
        main(arguments)
    assert str(error.value).startswith(f"error: {message}")
    assert error.value.status == 2


def test_arguments_with_duplicate_keys_are_refused_as_by_run(tmp_path: Path) -> None:
    ended = attempt(tmp_path, "sh", '{"a":1,"a":2}', hooks_file(tmp_path, "claude", "exit 0"))
    assert ended.returncode == 1
    assert "the key 'a' appears twice in one object" in ended.stdout
    unreadable = document(tmp_path, "sh", '{"a":1,"a":2}', hooks_file(tmp_path, "claude", "exit 0"), status=1)
    assert unreadable["arguments"] == {"before": '{"a":1,"a":2}', "after": None}


@pytest.mark.parametrize("json_option", [[], ["--json"]])
def test_a_configuration_that_stops_run_is_the_same_error(tmp_path: Path, json_option: list[str]) -> None:
    ended = attempt(tmp_path, "sh", "--hooks", "gone.json", *json_option)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"error: {tmp_path}/gone.json: there is no such file\nhint: ")


def test_help_names_every_option_and_that_hooks_run_for_real(tmp_path: Path) -> None:
    ended = attempt(tmp_path, "--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    shown = " ".join(ended.stdout.split())
    assert " ".join(build_parser().usage.split()) in shown
    assert "Hooks run for real" in shown


def test_output_of_a_python_hook_does_not_mix_with_the_document(tmp_path: Path) -> None:
    (tmp_path / "guards.py").write_text("def look(call):\n    print('noise')\n    return {}\n")
    ended = attempt(
        tmp_path, "sh", "--json", config(tmp_path, "[[hooks.PreToolUse]]\ntype = 'python'\ncall = 'guards:look'\n")
    )
    assert (ended.returncode, ended.stderr) == (0, "noise\n")
    assert json.loads(ended.stdout)["hooks"][0]["variables"] == {}


def test_no_process_of_a_hook_is_left(tmp_path: Path) -> None:
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
    assert "execute_command of server: refused\n  alias    as Bash (cmd as command)\n" in shown
    read = document(tmp_path, *call, status=1)
    assert (read["tool"], read["alias"]) == ("execute_command", {"as": "Bash", "arguments": {"command": "cmd"}})
    ended = attempt(tmp_path, "other", *call[2:], "--json")
    assert json.loads(ended.stdout)["alias"] is None
    assert ended.stderr == "hookproxy: no hook, rule or alias is about a tool 'other'\n"


def test_findings_and_an_unread_configuration_are_reported(tmp_path: Path) -> None:
    hooks = hooks_file(tmp_path, "claude", "./gone.sh")
    (tmp_path / "hookproxy.toml").write_text("nonsense")
    stderr = attempt(tmp_path, "sh", hooks).stderr
    assert f"there is no file {tmp_path}/gone.sh\n" in stderr
    assert "hookproxy: ./hookproxy.toml is not read, because nothing names it: --config hookproxy.toml does\n" in stderr
    ended = attempt(tmp_path, "sh", hooks, "--strict")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("error: strict: ")


def test_a_tool_that_a_preset_knows_is_reported_with_the_preset(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('aliases = "off"\n[permissions]\ndeny = ["Bash"]\n')
    ended = attempt(tmp_path, "start_process", "--config", "own.toml")
    assert ended.returncode == 0
    assert ended.stderr == (
        "hookproxy: no hook, rule or alias is about a tool 'start_process'; "
        "preset = 'desktop-commander' in hookproxy.toml gives it the name that hooks know\n"
    )


# --- parts of the output ---

FAILED = HookRun(hook(""), HookResult(Ended.EXITED, 1), Verdict(failure="exited with status 1"))


REFUSED_BY_FAILURE: Final = "refused because a hook failed"


def trial_report(decision: str, refuse: Refuse | None = None, comments: Comments | None = None) -> TrialReport:
    judged = refuse or Proceed(approval_request=ApprovalRequest("the rule", "") if decision == "asked" else None)
    seen = Observation(evaluation=Evaluation(judged, b"{}"), comments=comments)
    return TrialReport(TrialCall("write"), None, "files", Settings(), (), TrialResult(decision, seen), ())


@pytest.mark.parametrize(
    ("report", "status", "decision"),
    [
        (trial_report("allow"), 0, "allowed"),
        (trial_report("asked-allow"), 0, "allowed"),
        (trial_report(""), 0, "no decision"),
        (trial_report("asked"), 1, "a person would be asked"),
        (trial_report("deny", Refuse("guard", "")), 1, "refused"),
        (trial_report("asked-deny"), 1, "refused"),
        (trial_report("deny", Refuse("guard", "", cause=RefusalCause.RULE)), 1, "refused"),
        (trial_report("deny", Refuse("guard", "", cause=RefusalCause.FAILURE)), 2, "refused because a hook failed"),
        (
            trial_report("deny", Refuse("guard", "", cause=RefusalCause.FAILED_CLOSED)),
            2,
            "refused because a hook failed",
        ),
        (trial_report("allow", comments=Comments(withheld=(FAILED,))), 2, "the result is withheld"),
        (trial_report("allow", comments=Comments(hidden_by="x")), 1, "allowed, but the result is refused"),
        (trial_report("allow", comments=Comments(failed=True)), 1, "allowed, but the result is refused"),
        (trial_report("allow", comments=Comments(noted=(FAILED,), feedback=("x",))), 0, "allowed"),
    ],
)
def test_each_decision_has_its_exit_status_and_its_text(report: TrialReport, status: int, decision: str) -> None:
    assert (report.status, report.decision) == (status, decision)


def test_each_part_of_a_verdict_has_its_line() -> None:
    verdict = Verdict(
        permission=Permission.DENY,
        reason="no",
        arguments=b'{"a":1}',
        feedback=("a comment",),
        replacement=b"[]",
        messages=("a message",),
        stop=True,
        hides=True,
        retry=True,
        allows=("Bash(ls:*)",),
        failure="exited with status 1",
    )
    assert list(verdict_lines(verdict)) == [
        "failure: exited with status 1",
        "deny: no",
        'rewrites the arguments: {"a":1}',
        "rewrites the result: []",
        "denies all other calls that are waiting for their hooks",
        "hides the result from the model",
        "repeats the call",
        "for the model: a comment",
        "for the person: a message",
        "allows for the session: Bash(ls:*)",
    ]
    assert list(verdict_lines(Verdict())) == []
    assert list(verdict_lines(Verdict(reason="because"))) == ["reason: because"]


def test_the_place_of_a_hook_is_its_file_and_key() -> None:
    configured, other = hook("a", Event.PRE_TOOL_USE), hook("b")
    report = TrialReport(
        TrialCall("write"), None, "files", Settings(), (group(configured),), TrialResult("allow", Observation()), ()
    )
    assert report.place(configured) == ("hooks.json", "PreToolUse")
    assert report.place(other) == ("", "hooks.json: PreToolUse")


def test_the_document_keeps_numbers_as_they_are_spelled_and_escapes_bytes() -> None:
    result = HookResult(Ended.EXITED, 0, b"\xff\x1b", b"", 1.23456)
    run = ObservedRun(hook("x"), b"{}", {"A": "\udcff"}, ("B",), result, HookRun(hook("x"), result, Verdict()))
    seen = Observation(runs=[run], evaluation=Evaluation(Proceed(b'{"a":1.50}'), b"{}"))
    attempt = TrialCall("write", b'{"big":123456789012345678901234567890.0}')
    text = json_output(
        TrialReport(
            attempt,
            None,
            "files",
            Settings(),
            (),
            TrialResult("asked", seen, approval_message="Allow?", proposed=b'{"a":1.50}'),
            (),
        )
    )
    assert text.isascii()
    assert '"big": 123456789012345678901234567890.0' in text
    assert '"a": 1.50' in text
    read = json.loads(text)
    (shown,) = read["hooks"]
    assert (shown["stdout"], shown["variables"], shown["ms"]) == ("\\xff\x1b", {"A": "\\udcff"}, 1.235)
    assert (read["result"], read["question"], read["decision"]) == ({"before": None, "after": None}, "Allow?", "asked")


def test_a_hook_that_was_ended_early_has_its_input_in_the_document() -> None:
    seen = Observation(runs=[ObservedRun(hook("x"), b"{}", {}, ())])
    read = json.loads(
        json_output(TrialReport(TrialCall("write"), None, "files", Settings(), (), TrialResult("allow", seen), ()))
    )
    assert (read["hooks"][0]["stdin"], read["hooks"][0]["ended"], read["hooks"][0]["verdict"]) == ("{}", None, None)


def test_a_hook_that_chooses_the_meta_of_a_call_can_be_tried(tmp_path: Path) -> None:
    entry = {"type": "command", "bash": """echo '{"metaToUse":{"tenant":1}}'"""}
    (tmp_path / "h.json").write_text(json.dumps({"version": 1, "hooks": {"preMcpToolCall": [entry]}}))
    for options in ((), ("--event", "PreMcpToolCall")):
        shown = attempt(tmp_path, "write", "{}", "--hooks", "copilot=h.json", *options)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert 'verdict  rewrites the _meta: {"tenant":1}' in shown.stdout
