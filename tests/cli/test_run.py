"""The command line of `hookproxy run`: its options, and the errors if it cannot start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from hookproxy.cli.run import _split, main, server_name
from hookproxy.model.errors import UserError
from tests.support import preloaded_program

pytestmark = pytest.mark.slow

RUN: Final = [sys.executable, "-m", "hookproxy", "run"]
CALL: Final = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look","arguments":{}}}\n'
ANSWER: Final = '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
SERVER: Final = ("sh", "-c", f"while read -r line; do echo '{ANSWER}'; done")
RECORDING: Final = {"type": "command", "command": 'cat >>"$CLAUDE_PROJECT_DIR/recorded.jsonl"'}


def run(folder: Path, *arguments: str, agent: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return preloaded_program.run(["run", *arguments], folder, os.environ | environment, document=agent)


def hook_file(path: Path, event: str = "PreToolUse", **hook: object) -> Path:
    path.write_text(json.dumps({"hooks": {event: [{"hooks": [RECORDING | hook]}]}}))
    return path


def recorded_inputs(folder: Path) -> list[dict[str, object]]:
    """The inputs of recording hooks."""
    return [json.loads(line) for line in (folder / "recorded.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["npx", "server"], ([], ["npx", "server"])),
        (["--name", "git", "npx", "-y", "server"], (["--name", "git"], ["npx", "-y", "server"])),
        (["--name=git", "--hooks", "a=b", "npx"], (["--name=git", "--hooks", "a=b"], ["npx"])),
        (["stray", "--", "npx", "x"], (["stray"], ["npx", "x"])),
        (["--", "npx", "--", "x"], ([], ["npx", "--", "x"])),
        (["--name", "--", "npx"], (["--name"], ["npx"])),
        (["--name", "git", "--", "--odd"], (["--name", "git"], ["--odd"])),
        (["--hoks", "a", "--", "npx"], (["--hoks", "a"], ["npx"])),
        (["--hoks", "a", "npx"], (["--hoks", "a", "npx"], [])),
        (["--help", "npx"], (["--help"], ["npx"])),
        (["--name", "git"], (["--name", "git"], [])),
        (["--name"], (["--name"], [])),
        ([], ([], [])),
    ],
)
def test_the_command_begins_after_two_dashes_or_at_the_first_word_that_is_no_option(
    arguments: list[str], expected: tuple[list[str], list[str]]
) -> None:
    assert _split(arguments) == expected


def test_a_server_starts_without_two_dashes(tmp_path: Path) -> None:
    ended = run(tmp_path, "--name", "x", *SERVER, agent=CALL)
    assert (ended.returncode, ended.stdout) == (0, f"{ANSWER}\n")


def test_an_unknown_option_before_a_command_is_an_error(tmp_path: Path) -> None:
    ended = run(tmp_path, "--hoks", "x", "touch", "started")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("error: there is no option --hoks\nhint: did you mean '--hooks'?")
    assert not (tmp_path / "started").exists()


def test_an_empty_command_is_an_error(tmp_path: Path) -> None:
    ended = run(tmp_path, "--", "")
    assert ended.returncode == 127
    assert (
        ended.stderr
        == "error: cannot start the server: its command is empty\nhint: name a program after the two dashes\n"
    )


def test_help_names_every_option(tmp_path: Path) -> None:
    ended = run(tmp_path, "--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert all(f"\n  {option} " in ended.stdout for option in ("--config", "--hooks", "--name", "--audit"))


@pytest.mark.parametrize("arguments", [[], ["--"], ["--name", "x"], ["--name", "x", "--"]])
def test_without_a_command_there_is_nothing_to_start(arguments: list[str]) -> None:
    with pytest.raises(UserError, match="there is no server to start") as error:
        main(arguments)
    assert (error.value.status, error.value.hint[:14]) == (2, "usage: hookpro")


@pytest.mark.parametrize("arguments", [["--nope"], ["--conf", "x"], ["--name"], ["stray"]])
def test_an_unknown_option_is_an_error(tmp_path: Path, arguments: list[str]) -> None:
    ended = run(tmp_path, *arguments, "--", *SERVER, agent=CALL)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert arguments[0] in ended.stderr


INSTALL: Final = "install it, or give its full path"


def test_the_error_of_a_server_that_cannot_be_started_names_no_secret_of_its_command_line(tmp_path: Path) -> None:
    for words in (["no-such", "--token", "hunter22x"], ["no-such --token hunter22x"]):
        ended = run(tmp_path, "--", *words)
        assert ended.returncode == 127
        assert ended.stderr.endswith("the server's command line is: no-such --token [masked: password]\n")
        assert "hunter22x" not in ended.stderr


@pytest.mark.parametrize(
    ("command", "status", "message", "hint"),
    [
        ("no-such-command", 127, "command not found: no-such-command", INSTALL),
        ("no-such -x .", 127, "command not found: no-such -x .", "leave out the quotes, which make one word of it"),
        ("./no/such/file", 127, "command not found: ./no/such/file", INSTALL),
        ("./plain", 126, "not executable: ./plain", "chmod +x ./plain, or name the program that runs it"),
        ("./", 126, "not executable: ./", "it is a folder"),
        ("./orphan", 127, "the interpreter in its first line is missing: ./orphan", "correct that line"),
    ],
)
def test_a_server_that_cannot_be_started_is_an_error_with_a_shells_status(
    tmp_path: Path, command: str, status: int, message: str, hint: str
) -> None:
    (tmp_path / "plain").write_text("not executable")
    (tmp_path / "orphan").write_text("#!/no/such/interpreter\n")
    (tmp_path / "orphan").chmod(0o755)
    ended = run(tmp_path, "--", command, "an argument")
    assert (ended.returncode, ended.stdout) == (status, "")
    assert ended.stderr == (
        f"error: cannot start the server: {message}\n"
        f"hint: {hint}; the server's command line is: {command} an argument\n"
    )


HOOK: Final = '{"hooks": {"PreToolUse": [{"matcher": "%s", "hooks": [{"type": "command", "command": "true"%s}]}]}}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n  "hooks": {\n    "PreToolUse": [,]\n  }\n}', "3: not JSON"),
        ('{"hooks": []}', "hooks must be an object, not a list"),
        ("[]", "must contain one JSON object"),
    ],
)
def test_an_invalid_hook_file_is_an_error_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    ended = run(tmp_path, "--hooks", "claude=settings.json", "--", *SERVER, agent=CALL)
    assert (ended.returncode, ended.stdout) == (2, "")
    place = f"{path}:" if message[0].isdigit() else f"{path}: "
    assert ended.stderr.startswith(f"error: {place}{message}")


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ('{"hooks": {"PreToolUze": []}}', "hooks.PreToolUze is not an event, so its hooks never run: did you mean"),
        (HOOK % ("(", ""), "hooks.PreToolUse[0].matcher '(' never matches: Claude Code cannot read it as a regular"),
        (HOOK % ("", ', "timeout": 30000'), "hooks.PreToolUse[0].hooks[0]: a timeout of 30000 is read as seconds"),
    ],
)
def test_what_an_agent_loads_is_loaded_with_a_line_on_standard_error(tmp_path: Path, text: str, note: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    ended = run(tmp_path, "--hooks", "claude=settings.json", "--", *SERVER, agent=CALL)
    assert ended.returncode == 0
    assert f"hookproxy: {path}: {note}" in ended.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HOOK % ("", ', "onFailure": "deny"'), "hooks.PreToolUse[0].hooks[0] is left out: onFailure must be one of"),
        ('{"hooks": {"PreToolUze": [{"hooks": [{"type": "command", "command": "x"}]}]}}', "hooks.PreToolUze is not an"),
    ],
)
def test_a_file_of_which_every_hook_is_dropped_stops_the_start(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    ended = run(tmp_path, "--hooks", "claude=settings.json", "--", *SERVER, agent=CALL)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"error: {path}:1: claude can read none of its hooks: {message}")
    assert "\nhint: " in ended.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[audit]\nfille = 'x'", "2: audit.fille: unknown key\nhint: did you mean 'file'?"),
        ("[[hooks.PreToolUze]]\ncommand = 'x'", "1: hooks.PreToolUze: unknown event\nhint: did you mean 'PreToolUse'?"),
        ("on_ask = ask", "1: not TOML: invalid value\nhint: put strings in quotes"),
        (
            "[[use]]\nfile = 'gone.json'",
            " FOLDER/gone.json: there is no such file\nhint: FOLDER/own.toml:1: use[0] names it",
        ),
    ],
)
def test_an_invalid_configuration_is_an_error_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "own.toml").write_text(text)
    ended = run(tmp_path, "--config", "own.toml", "--", *SERVER, agent=CALL)
    assert (ended.returncode, ended.stdout) == (2, "")
    place = "" if message.startswith(" ") else f"{tmp_path}/own.toml:"
    assert ended.stderr.startswith(f"error: {place}{message.strip()}".replace("FOLDER", str(tmp_path)))


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--config", "gone.toml", "error: FOLDER/gone.toml: there is no such file\n"),
        (
            "--hooks",
            "claude=gone.json",
            "error: FOLDER/gone.json: there is no such file\nhint: --hooks claude=gone.json",
        ),
        (
            "--hooks",
            "cluade=gone.json",
            "error: --hooks cluade=gone.json: there is no dialect 'cluade'\nhint: did you m",
        ),
        ("--hooks", "claude=", "error: --hooks claude=: no file is named\nhint: --hooks DIALECT=FILE"),
    ],
)
def test_a_missing_file_is_an_error_that_says_what_names_it(
    tmp_path: Path, option: str, value: str, message: str
) -> None:
    ended = run(tmp_path, option, value, "--", *SERVER, agent=CALL)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(message.replace("FOLDER", str(tmp_path)))


@pytest.mark.parametrize(("config", "status", "received"), [("nonsense", 2, ""), ("", 0, CALL)])
def test_the_server_gets_nothing_before_the_configuration_is_read(
    tmp_path: Path, config: str, status: int, received: str
) -> None:
    """Whatever it is: while the configuration, here a pipe, has not been read, the server is started and waits."""
    os.mkfifo(tmp_path / "own.toml")
    os.mkfifo(tmp_path / "pid")
    (tmp_path / "received").touch()
    server = ["sh", "-c", "echo $$ >pid; exec cat >>received"]
    with subprocess.Popen(
        [*RUN, "--config", "own.toml", "--", *server], cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        process.stdin.write(CALL.encode())
        process.stdin.close()
        pid = int((tmp_path / "pid").read_text())
        assert Path("/proc", str(pid)).exists()
        assert (tmp_path / "received").read_text() == ""
        (tmp_path / "own.toml").write_text(config)
        assert process.wait(30) == status
    assert not Path("/proc", str(pid)).exists()
    assert (tmp_path / "received").read_text() == received


@pytest.mark.parametrize(("script", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143)])
def test_it_ends_with_the_servers_status(tmp_path: Path, script: str, status: int) -> None:
    assert run(tmp_path, "--", "sh", "-c", script).returncode == status


def test_everything_after_the_first_two_dashes_belongs_to_the_server(tmp_path: Path) -> None:
    script = 'printf "%s\\n" "$PWD" "$TOKEN" "$@" >&2'
    ended = run(tmp_path, "--name", "x", "--", "sh", "-c", script, "sh", "--name", "--", "y", TOKEN="secret")
    assert ended.stderr.startswith(f"{tmp_path}\nsecret\n--name\n--\ny\n")


def test_name_is_what_hooks_call_the_server(tmp_path: Path) -> None:
    hook_file(tmp_path / "settings.json")
    for options in (["--name", "my server"], []):
        ended = run(tmp_path, *options, "--hooks", "claude=settings.json", "--", *SERVER, agent=CALL)
        assert ended.stdout == ANSWER + "\n"
    named, unnamed = recorded_inputs(tmp_path)
    assert (named["tool_name"], named["mcp_server"]) == ("mcp__my_server__look", {"name": "my server"})
    assert str(unnamed["tool_name"]).endswith("__look")
    assert unnamed["tool_name"] != named["tool_name"]


def test_hooks_may_be_given_several_times(tmp_path: Path) -> None:
    hook_file(tmp_path / "one.json", "PreToolUse")
    hook_file(tmp_path / "two.json", "PostToolUse")
    run(tmp_path, "--hooks", "claude=one.json", "--hooks", "two.json", "--", *SERVER, agent=CALL)
    assert [one["hook_event_name"] for one in recorded_inputs(tmp_path)] == ["PreToolUse", "PostToolUse"]


def test_the_users_own_file_is_read_without_being_named(tmp_path: Path, home: Path) -> None:
    folder = home / ".config" / "hookproxy"
    folder.mkdir(parents=True)
    (folder / "hookproxy.toml").write_text("[[hooks.PreToolUse]]\ncommand = 'cat >recorded.jsonl'")
    run(tmp_path, "--", *SERVER, agent=CALL)
    assert [one["tool_name"] for one in recorded_inputs(folder)] == ["look"]


def test_no_file_is_read_just_because_it_is_in_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "hookproxy.toml").write_text("nonsense")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text("nonsense")
    ended = run(tmp_path, "--name", "x", "--", *SERVER, agent=CALL)
    assert (ended.returncode, ended.stdout) == (0, ANSWER + "\n")
    assert ended.stderr == (
        "hookproxy: ./hookproxy.toml is not read, because nothing names it: --config hookproxy.toml does\n"
        "hookproxy: x: no hook and no permission rule is configured, so no call is guarded\n"
    )


def test_audit_appends_a_line_for_each_judged_call(tmp_path: Path) -> None:
    hook_file(tmp_path / "settings.json")
    for _ in range(2):
        options = ["--hooks", "claude=settings.json", "--audit", "logs/audit.jsonl"]
        run(tmp_path, *options, "--", *SERVER, agent=CALL, CLAUDE_CODE_SESSION_ID="a session")
    lines = (tmp_path / "logs" / "audit.jsonl").read_text("utf-8").splitlines()
    assert [(one["tool"], one["session"]) for one in map(json.loads, lines)] == [("look", "a session")] * 2


def test_hooks_that_cannot_fire_are_reported_and_the_server_runs(tmp_path: Path) -> None:
    hook_file(tmp_path / "settings.json", "Stop")
    ended = run(tmp_path, "--hooks", "claude=settings.json", "--", *SERVER, agent=CALL)
    assert (ended.returncode, ended.stdout) == (0, ANSWER + "\n")
    assert "hookproxy: " in ended.stderr
    assert "hooks.Stop cannot fire behind MCP" in ended.stderr


LIST: Final = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
LISTED: Final = '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"look"},{"name":"write"}]}}'
LISTING: Final = ("sh", "-c", f"while read -r line; do echo '{LISTED}'; done")


PASSING: Final = (
    "hookproxy: 1 of 1 hook lets a call pass if it fails: hookproxy check --hooks claude=settings.json says which; "
    "--fail-closed refuses such calls\n"
)
"""The command that it names works as typed: it has the files of the run."""

NO_LOCK: Final = "hookproxy: tools not pinned: `hookproxy lock --name files -- COMMAND` pins them\n"
"""What comes with the first list of tools."""


def test_it_says_in_one_line_what_hooks_see_when_the_tools_are_known(tmp_path: Path) -> None:
    hook_file(tmp_path / "settings.json")
    options = ("--name", "files", "--hooks", "claude=settings.json")
    ended = run(tmp_path, *options, "--", *LISTING, agent=LIST)
    assert (ended.returncode, ended.stdout) == (0, LISTED + "\n")
    assert ended.stderr == PASSING + NO_LOCK + "hookproxy: files: 1 hook on 2 of 2 tools\n"
    (tmp_path / "settings.json").write_text(HOOK % ("Bash", ""))
    ended = run(tmp_path, *options, "--", *LISTING, agent=LIST)
    assert ended.stderr == PASSING + NO_LOCK + (
        "hookproxy: files: no hooks on 2 tools; 1 hook never matches, and no tool is known as Bash "
        "([tools.X] in hookproxy.toml names one): see hookproxy check -- COMMAND\n"
    )


def test_a_run_without_hooks_says_that_it_guards_nothing(tmp_path: Path) -> None:
    ended = run(tmp_path, "--name", "files", "--", *LISTING, agent=LIST)
    unguarded = "hookproxy: files: no hook and no permission rule is configured, so no call is guarded\n"
    assert ended.stderr == unguarded + NO_LOCK
    (tmp_path / "own.toml").write_text("[permissions]\nmode = 'monitor'\ndeny = ['write']\n")
    ended = run(tmp_path, "--config", "own.toml", "--name", "files", "--", *LISTING, agent=LIST)
    assert unguarded.replace("configured", "in force") in ended.stderr
    (tmp_path / "own.toml").write_text("[permissions]\ndeny = ['write']\nhide_denied = false\n")
    ended = run(tmp_path, "--config", "own.toml", "--name", "files", "--", *LISTING, agent=LIST)
    assert ended.stderr == NO_LOCK + "hookproxy: files: no hooks on 2 tools, permission rules on 1\n"


def test_verbose_tells_each_decision_in_one_line(tmp_path: Path) -> None:
    hook_file(tmp_path / "settings.json", command="echo no looking >&2; exit 2")
    options = ("--verbose", "--hooks", "claude=settings.json")
    ended = run(tmp_path, *options, "--", *SERVER, agent=CALL)
    assert ended.stderr.startswith(f"{PASSING}hookproxy: deny look: ")
    assert ended.stderr.endswith(": no looking\n")
    hook_file(tmp_path / "settings.json", command="exit 0")
    assert run(tmp_path, *options, "--", *SERVER, agent=CALL).stderr == PASSING + "hookproxy: allow look\n"
    assert run(tmp_path, *options[1:], "--", *SERVER, agent=CALL).stderr == PASSING


def hook_files(folder: Path) -> tuple[str, ...]:
    """Guards that pass, refuse, and have no effect on calls if they fail."""
    hook_file(folder / "passes.json", command="echo noise >&2; exit 1")
    hook_file(folder / "asked.json", "PermissionRequest", command="exit 0")
    hook_file(folder / "closed.json", command="exit 0", onFailure="block")
    hook_file(folder / "after.json", "PostToolUse", command="exit 1")
    later: dict[str, object] = {"command": "exit 1; # later", "async": True}
    hook_file(folder / "background.json", "PreToolUse", **later)
    (folder / "own.toml").write_text('[[hooks.PreToolUse]]\ncommand = "exit 0"\n')
    files = ("passes", "asked", "closed", "after", "background")
    return ("--config=own.toml", *(f"--hooks=claude={name}.json" for name in files))


def test_it_says_at_start_how_many_hooks_let_a_call_pass_if_they_fail(tmp_path: Path) -> None:
    options = hook_files(tmp_path)
    ended = run(tmp_path, *options, "--", *SERVER, agent=CALL)
    assert "hookproxy: 2 of 4 hooks let a call pass if they fail: hookproxy check " in ended.stderr
    assert ended.stdout == f"{ANSWER}\n"


def test_fail_closed_refuses_the_call_after_every_failure_whatever_the_files_say(tmp_path: Path) -> None:
    options = hook_files(tmp_path)
    ended = run(tmp_path, "--fail-closed", *options, "--", *SERVER, agent=CALL)
    assert "let a call pass" not in ended.stderr
    assert "exited with status 1" in json.loads(ended.stdout)["result"]["content"][0]["text"]
    (tmp_path / "lax.toml").write_text(
        "on_failure = 'allow'\n[[use]]\nfile = 'passes.json'\ndialect = 'claude'\non_failure = 'allow'\n"
        "[[hooks.PreToolUse]]\ncommand = 'echo [{}]'\non_failure = 'allow'\n"
    )
    assert run(tmp_path, "--config=lax.toml", "--", *SERVER, agent=CALL).stdout == f"{ANSWER}\n"
    ended = run(tmp_path, "--config=lax.toml", "--fail-closed", "--", *SERVER, agent=CALL)
    assert json.loads(ended.stdout)["result"]["isError"] is True
    (tmp_path / "passes.json").unlink()
    hook_file(tmp_path / "passes.json", command="exit 0")
    ended = run(tmp_path, "--config=lax.toml", "--fail-closed", "--", *SERVER, agent=CALL)
    assert "printed JSON that is not one object" in ended.stdout


@pytest.mark.parametrize("by_file", [False, True])
def test_strict_stops_the_start_with_the_first_finding_and_ends_the_server(tmp_path: Path, by_file: bool) -> None:
    hook_file(tmp_path / "settings.json", command="./gone.sh")
    hook_file(tmp_path / "other.json", command="./gone.sh", timeout=0.01)
    own = f"strict = {str(by_file).lower()}\n[[use]]\nfile = 'settings.json'\n[[use]]\nfile = 'other.json'\n"
    (tmp_path / "own.toml").write_text(own)
    os.mkfifo(tmp_path / "pid")
    options = ["--config", "own.toml", *([] if by_file else ["--strict"])]
    server = ["sh", "-c", "echo $$ >pid; exec cat >received"]
    with subprocess.Popen(
        [*RUN, *options, "--", *server], cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        pid = int((tmp_path / "pid").read_text())
        assert process.stderr is not None
        error = process.stderr.read().decode()
        assert process.wait(30) == 2
    assert error == (
        f"error: strict: {tmp_path}/settings.json:1: hooks.PreToolUse[0].hooks[0]: there is no file "
        f"{tmp_path}/gone.sh (and 2 more)\nhint: hookproxy check shows all, with the same options\n"
    )
    assert not Path("/proc", str(pid)).exists()


def test_strict_stops_a_hook_that_is_a_tool_of_another_server(tmp_path: Path) -> None:
    tool = {"type": "mcp_tool", "server": "files", "tool": "look"}
    (tmp_path / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [tool]}]}}))
    options = ("--strict", "--hooks", "claude=settings.json", "--name")
    assert run(tmp_path, *options, "git", "--", *LISTING, agent=LIST).returncode == 2
    assert run(tmp_path, *options, "files", "--", *LISTING, agent=LIST).returncode == 0


def test_strict_starts_where_there_are_only_notes(tmp_path: Path) -> None:
    hook_file(tmp_path / "settings.json", "Stop")
    ended = run(tmp_path, "--strict", "--hooks", "claude=settings.json", "--", *SERVER, agent=CALL)
    assert (ended.returncode, ended.stdout) == (0, ANSWER + "\n")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("mcp-server-git --repository .", "mcp-server-git"),
        ("/usr/local/bin/mcp-server-git", "mcp-server-git"),
        ("./server.sh", "server"),
        ("python3 server.py", "server"),
        ("python3.12 -u /opt/tools/files.py", "files"),
        ("python -m my_server", "my_server"),
        ("node build/index.js", "index"),
        ("npx -y @modelcontextprotocol/server-filesystem .", "server-filesystem"),
        ("uvx mcp-server-time", "mcp-server-time"),
        ("python3", "python3"),
        ("uv run server.py", "server"),
        ("uv --directory x run s.py", "s"),
        ("uvx --from pkg cmd", "cmd"),
        ("npx -y pkg@latest", "pkg"),
        ("docker run -i --rm -e TOKEN -v /a:/b ghcr.io/x/mcp-fetch:latest", "mcp-fetch"),
        ("env A=1 node x.js", "x"),
        ("node --require ./a.js server.js", "server"),
        ("pnpm dlx pkg", "pkg"),
    ],
)
def test_a_server_without_a_name_gets_the_name_of_its_program(command: str, name: str) -> None:
    assert server_name(command.split()) == name


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["python3", "-c", "print('hunter2')"], "python3"),
        (["bash", "-lc", "srv --token hunter2"], "bash"),
        (["bash", "-c", "TOKEN=hunter2 exec srv"], "bash"),
        (["sh", "/srv/my server.sh"], "sh"),
        (["/srv/my server.sh"], "my server"),
        (["node", "-e", "start()"], "node"),
    ],
)
def test_no_code_is_a_servers_name(command: list[str], name: str) -> None:
    assert server_name(command) == name
