"""The guard judges agents' own tools: real clients, a real guard, hooks and rules of a hookproxy.toml."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import pytest

from hookproxy.console.follow import Follower
from hookproxy.live import messages, registry
from tests.support.guard_desk import CLIENT, Desk
from tests.support.program import HOOKPROXY

REFUSAL: Final = ("2", "")
RULES: Final = """
[permissions]
deny = ["Bash(rm *)", "Read(**/.env)"]
[[limits]]
tool = "Write"
calls = 2
per = "hour"
[audit]
calls = "all"
"""


@pytest.fixture
def tmp_path(short_path: Path) -> Path:
    """Home folders are in it, and the guard's socket is in these."""
    return short_path


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    one = Desk(tmp_path)
    one.configure(RULES)
    yield one
    one.end(signal.SIGKILL)


def test_rules_limits_and_the_audit_hold_for_an_agents_own_tools(desk: Desk) -> None:
    assert desk.tool("PreToolUse", "Bash", {"command": "cd /; rm -rf x"})[0] == "deny"
    assert desk.tool("PreToolUse", "Read", {"file_path": "/a/.env"})[0] == "deny"
    assert desk.tool("PreToolUse", "Bash", {"command": "ls"}) == ("", "")
    assert desk.tool("PostToolUse", "Bash", {"command": "ls"}, tool_response={"stdout": "x"}) == ("", "")
    for n in range(3):
        decision, _ = desk.tool("PreToolUse", "Write", {"file_path": f"/{n}", "content": ""})
        assert decision == ("deny" if n == 2 else "")
    assert len(desk.guards()) == 1
    results = [(record["tool"], record["result"]) for record in desk.records()]
    assert results[:4] == [("Bash", "refused"), ("Read", "refused"), ("Bash", "begun"), ("Bash", "ok")]
    assert results[-1] == ("Write", "refused")


def test_a_persons_hook_file_is_about_the_project_of_each_session_and_not_where_the_guard_was_started(
    desk: Desk,
) -> None:
    says_where = {"type": "command", "command": 'echo "$PWD $CLAUDE_PROJECT_DIR" >&2; exit 2'}
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [says_where]}]}
    file = {"permissions": {"deny": ["Read(./secrets/**)"], "ask": ["Edit(/src/**)"]}, "hooks": hooks}
    (desk.home / "guards.json").write_text(json.dumps(file))
    text = '[[use]]\nfile = "~/guards.json"\ndialect = "claude"\n'
    desk.configure(f"{text}permissions = true\n")
    projects = [desk.home / name for name in ("first", "second")]
    for _ in range(2):
        for folder in projects:
            folder.mkdir(exist_ok=True)
            desk.environ["CLAUDE_PROJECT_DIR"] = str(folder)
            of_project = {"session_id": folder.name, "cwd": str(folder)}
            assert desk.tool("PreToolUse", "Read", {"file_path": f"{folder}/secrets/x"}, **of_project)[0] == "deny"
            assert desk.tool("PreToolUse", "Edit", {"file_path": f"{folder}/src/x"}, **of_project)[0] == "ask"
            assert desk.tool("PreToolUse", "Bash", {}, **of_project) == ("deny", f"{folder} {folder}")
        desk.configure(f"{text}permissions = true\n# read again\n")
    assert len(desk.guards()) == 1


def test_a_file_that_was_touched_changes_nothing_and_another_configuration_keeps_what_the_same_limits_have_counted(
    desk: Desk,
) -> None:
    limit = '[[limits]]\ntool = "Write"\ncalls = 3\nper = "hour"\n'
    texts = (limit, limit, f'{limit}[permissions]\ndeny = ["Read"]\n', limit)
    for number, text in enumerate(texts):
        desk.configure(text)
        decision, _ = desk.tool("PreToolUse", "Write", {"file_path": f"/{number}", "content": ""})
    assert decision == "deny"
    desk.configure(limit.replace("3", "4"))
    assert desk.tool("PreToolUse", "Write", {"file_path": "/x", "content": ""}) == ("", ""), "it is another limit"


def test_a_command_that_is_run_again_and_again_is_noticed_whatever_the_model_says_about_it(desk: Desk) -> None:
    desk.configure('[[limits]]\nsame = 2\nwindow = "10m"\n')
    said = [desk.tool("PreToolUse", "Bash", {"command": "make", "description": text})[0] for text in "abc"]
    assert said == ["", "", "deny"]


def test_an_open_console_is_asked_about_a_call_of_an_agent_whose_hooks_cannot_ask(desk: Desk) -> None:
    desk.configure('[permissions]\nask = ["Bash(git push *)"]\n')
    before = {"session_id": "s", "cwd": "/", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "t1"}
    document = json.dumps({**before, "turn_id": "1", "tool_input": {"command": "git push origin"}}).encode()
    refused = desk.event("codex", document)
    assert b"hookproxy console" in refused.stdout + refused.stderr
    anyio.run(_allow_on_console, desk, document)
    assert [record["decision"] for record in desk.records()] == ["asked-deny", "asked-allow"]
    assert desk.records()[1]["answered_by"].endswith("at a test")


async def _allow_on_console(desk: Desk, document: bytes) -> None:
    console = Follower(str(desk.home / ".local" / "state" / "hookproxy" / "runs"), print)
    changed = anyio.Event()

    def notice() -> None:
        nonlocal changed
        before, changed = changed, anyio.Event()
        before.set()

    console.state.listen(notice)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(console.follow)
            while not console.state.runs:
                await changed.wait()

            async def answer() -> None:
                while not console.state.approvals:
                    await changed.wait()
                ((run, name), _), *_ = console.state.approvals.items()
                assert (await console.answer(run, name, "allow", "", "a test")).accepted

            tasks.start_soon(answer)
            allowed = await anyio.to_thread.run_sync(desk.event, "codex", document.replace(b'"t1"', b'"t2"'))
            assert (allowed.returncode, b"deny" in allowed.stdout) == (0, False), allowed.stderr
            tasks.cancel_scope.cancel()


def test_what_a_guard_has_confirmed_is_recorded_even_if_it_is_killed(desk: Desk) -> None:
    desk.tool("PreToolUse", "Bash", {"command": "ls"})
    desk.end(signal.SIGKILL)
    assert [record["result"] for record in desk.records()] == ["begun"]
    assert desk.tool("PreToolUse", "Bash", {"command": "rm x"})[0] == "deny"


def test_a_document_that_cannot_be_read_is_refused(desk: Desk) -> None:
    for document in (b"", b"{", b'{"hook_event_name":"PreToolUse"}', b"[" * 100_000, b"\xff{}"):
        done = desk.event("claude", document)
        assert (done.returncode, done.stdout) == (2, b""), document[:40]
        assert done.stderr


def test_a_document_that_is_too_long_is_refused_and_the_guard_goes_on(desk: Desk) -> None:
    head = b'{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Write","tool_input":{"content":"'
    done = desk.event("claude", head + b"x" * 50_000_000)
    assert (done.returncode, b"50000094 bytes" in done.stderr) == (2, True), done.stderr
    assert desk.tool("PreToolUse", "Bash", {"command": "rm x"})[0] == "deny"


CURSOR: Final = (
    b'{"conversation_id":"c","generation_id":"g","hook_event_name":"preToolUse","cursor_version":"3","workspace_roots":["/"],'
    b'"tool_name":"Shell","tool_input":{"command":"rm x"},"tool_use_id":"t1"}'
)


def test_an_act_that_comes_by_the_entries_of_two_files_is_judged_once(desk: Desk) -> None:
    first, second = desk.event("cursor", CURSOR), desk.event("claude", CURSOR)
    assert json.loads(first.stdout)["permission"] == "deny"
    assert first.stdout == second.stdout
    assert len(desk.records()) == 1


def test_an_act_of_another_tool_with_the_same_id_and_arguments_is_judged_itself(desk: Desk) -> None:
    desk.configure('[permissions]\ndeny = ["Write"]\n')
    assert desk.tool("PreToolUse", "Read", {"file_path": "/x"}) == ("", "")
    assert desk.tool("PreToolUse", "Write", {"file_path": "/x"})[0] == "deny"


@pytest.mark.parametrize("rules", ['default = "deny"', 'deny = ["*"]'])
@pytest.mark.parametrize("tool", ["resources/read", "mcp__evil__prompts/get"])
def test_a_tool_with_the_name_of_a_method_is_refused(desk: Desk, tool: str, rules: str) -> None:
    desk.configure(f"[permissions]\n{rules}\n")
    document = LIST.replace(b'"Bash"', json.dumps(tool).encode())
    done = desk.event("claude", document)
    assert (done.returncode, b"name is that of a method" in done.stderr) == (2, True), done


def test_the_environment_of_an_agent_does_not_say_which_policy_holds(desk: Desk) -> None:
    other = desk.home / "project"
    (other / "hookproxy").mkdir(parents=True)
    (other / "hookproxy" / "hookproxy.toml").write_text("")
    (other / "sitecustomize.py").write_text("raise SystemExit(3)")
    places = {name: str(other) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "PYTHONPATH", "PYTHONHOME")}
    desk.environ |= places
    document = LIST.replace(b'"ls"', b'"rm x"')
    done = desk.event("claude", document, f"HOME={desk.home}", *REFUSAL)
    assert done.returncode == 0, done.stderr
    assert b"rm *" in done.stdout
    assert len(desk.records()) == 1, "in the audit of the person"


LIST: Final = (
    b'{"session_id":"s","cwd":"/","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}'
)


def test_if_no_guard_can_be_started_the_agents_own_rule_for_failing_hooks_holds(desk: Desk) -> None:
    desk.configure("[permissions]\ndeny = 7\n")
    done = desk.event("claude", LIST)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"the guard did not judge this: " in done.stderr
    assert b"permissions.deny" in done.stderr
    done = desk.event("claude", LIST, *REFUSAL)
    assert (done.returncode, done.stdout) == (2, b"")
    done = desk.event("cline", LIST, "0", '{"cancel":true}\n')
    assert (done.returncode, done.stdout) == (0, b'{"cancel":true}\n')


@pytest.mark.parametrize("response", [b"", b"0 0\n", b"0 5 0\nab", b"x y z\n", b"300 0 0\n", b"0 -1 1\n"])
def test_a_guard_that_answers_nonsense_is_a_failure(desk: Desk, response: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(desk.socket))
        listener.listen()
        answering = threading.Thread(target=answer, args=(listener, response))
        answering.start()
        done = desk.event("claude", LIST, *REFUSAL)
        listener.shutdown(socket.SHUT_RDWR)
        answering.join()
    assert (done.returncode, done.stdout) == (2, b"")


def answer(listener: socket.socket, response: bytes) -> None:
    with contextlib.suppress(OSError):
        while True:
            answer_once(listener, response)


def answer_once(listener: socket.socket, response: bytes) -> None:
    connection, _ = listener.accept()
    connection.recv(1_000_000)
    connection.sendall(response)
    connection.close()


def test_a_changed_configuration_is_in_force_from_the_next_event_on(desk: Desk) -> None:
    assert desk.tool("PreToolUse", "Bash", {"command": "ls"})[0] == ""
    desk.configure('[permissions]\ndeny = ["Bash(ls *)", "Bash(ls)"]\n[audit]\ncalls = "all"\n')
    assert desk.tool("PreToolUse", "Bash", {"command": "ls"})[0] == "deny"
    assert desk.tool("PostToolUse", "Bash", {"command": "ls"}, tool_response={"stdout": ""})[0] == ""
    assert [record["result"] for record in desk.records()] == ["begun", "refused", "ok"]
    desk.configure("[permissions]\ndeny = 7\n")
    done = desk.event("claude", LIST)
    assert (done.returncode, b"permissions.deny" in done.stderr) == (1, True)
    assert desk.event("claude", LIST, *REFUSAL).returncode == 2
    desk.configure(RULES)
    assert desk.tool("PreToolUse", "Bash", {"command": "rm x"})[0] == "deny"
    assert len(desk.guards()) == 1


def test_many_agents_that_start_at_once_get_one_guard(desk: Desk) -> None:
    words = [sys.executable, "-I", "-S", "-E", CLIENT, "claude", str(desk.socket), HOOKPROXY]
    clients = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=desk.environ)
        for _ in range(8)
    ]
    document = LIST.replace(b'"ls"', b'"rm x"')
    outputs = [one.communicate(document, timeout=60) for one in clients]
    assert [error for output, error in outputs if b'"deny"' not in output] == []
    assert len(desk.guards()) == 1


def test_a_client_that_is_ended_ends_the_hooks_of_its_event(desk: Desk, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    os.mkfifo(mark)
    hook = tmp_path / "hook.sh"
    hook.write_text(f"#!/bin/sh\nexec 3> {mark}\necho $$ >&3\nexec sleep 1000\n")
    hook.chmod(0o755)
    desk.configure(f"[[hooks.PreToolUse]]\nmatcher = 'Bash'\ncommand = '{hook}'\n")
    words = [sys.executable, "-I", "-S", "-E", CLIENT, "claude", str(desk.socket), HOOKPROXY]
    one = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=desk.environ)
    assert one.stdin
    one.stdin.write(LIST)
    one.stdin.close()
    with mark.open() as pipe:
        assert pipe.readline()
        one.kill()
        one.wait(30)
        assert pipe.read() == ""  # it has ended: nobody else holds the pipe
    assert desk.tool("PreToolUse", "Edit", {"file_path": "/a"})[0] == ""


def control(desk: Desk, *words: str) -> subprocess.CompletedProcess[bytes]:
    """`hookproxy guard WORDS`, about the guard in the usual place."""
    return subprocess.run(
        [HOOKPROXY, "guard", *words], capture_output=True, env=desk.environ, timeout=60, check=False, cwd=desk.home
    )


def in_its_usual_place(desk: Desk) -> None:
    desk.socket = desk.home / ".local" / "state" / "hookproxy" / "guard" / "guard.sock"


def test_a_person_sees_how_the_guard_is_and_ends_it(desk: Desk) -> None:
    in_its_usual_place(desk)
    done = control(desk, "status")
    assert (done.returncode, b"no guard runs" in done.stderr) == (1, True)
    assert json.loads(control(desk, "status", "--json").stdout)["running"] is False
    desk.tool("PreToolUse", "Bash", {"command": "ls"})
    [pid] = desk.guards()
    status = json.loads(control(desk, "status", "--json").stdout)
    assert status["pid"] == pid
    assert status["sessions"] == [{"agent": "claude", "session": "s"}]
    assert (status["open_calls"], status["clients"], status["idle_seconds"]) == (1, 0, 900)
    assert status["version"] == status["installed_version"]
    assert str(pid).encode() in control(desk, "status").stdout
    descriptor = os.pidfd_open(pid)
    assert control(desk, "stop").returncode == 0
    select.select([descriptor], [], [], 30)
    os.close(descriptor)
    assert desk.guards() == []
    assert [record["result"] for record in desk.records()] == ["begun", "lost"]
    assert not desk.socket.exists()
    assert b"no guard runs" in control(desk, "stop").stderr


def test_a_guard_of_another_version_gives_way_to_the_one_that_is_installed(desk: Desk) -> None:
    desk.tool("PreToolUse", "Bash", {"command": "ls"})
    [old] = desk.guards()
    with socket.socket(socket.AF_UNIX) as newer:
        newer.connect(str(desk.socket))
        newer.sendall(b"hookproxy-guard 2 claude 1 1 1 1 1\n")
        assert newer.recv(1) == b""
    assert desk.tool("PreToolUse", "Bash", {"command": "rm x"})[0] == "deny"
    assert old not in desk.guards()


def test_an_upgrade_replaces_the_guard_that_runs(desk: Desk) -> None:
    """The package's folder, with a client of its own."""
    installed = desk.home / "installed"
    package = Path(CLIENT).parents[1]
    (installed / "hookproxy" / "guard").mkdir(parents=True)
    for folder, left_out in ((package, "guard"), (package / "guard", "client.py")):
        for entry in folder.iterdir():
            if entry.name not in (left_out, "__pycache__"):
                (installed / "hookproxy" / entry.relative_to(package)).symlink_to(entry)
    own_client = installed / "hookproxy" / "guard" / "client.py"
    own_client.write_bytes(Path(CLIENT).read_bytes())
    program = installed / "program"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(installed)!r})\n"
        "from hookproxy.cli.main import main\nsys.exit(main())\n"
    )
    program.chmod(0o755)

    def ask() -> bytes:
        words = [sys.executable, "-I", "-S", "-E", str(own_client), "claude", str(desk.socket), str(program)]
        document = LIST.replace(b'"ls"', b'"rm x"')
        done = subprocess.run(words, input=document, capture_output=True, env=desk.environ, timeout=60, check=False)
        return done.stdout or done.stderr

    assert b'"deny"' in ask()
    [old] = desk.guards()
    assert b'"deny"' in ask()
    assert desk.guards() == [old]
    own_client.unlink()
    own_client.write_bytes(Path(CLIENT).read_bytes())
    assert b'"deny"' in ask()
    descriptor = os.pidfd_open(old) if old in desk.guards() else -1
    if descriptor >= 0:  # it is about to end
        select.select([descriptor], [], [], 30)
        os.close(descriptor)
    assert len(desk.guards()) == 1
    assert desk.guards() != [old]


def test_an_event_that_comes_while_a_guard_is_killed_is_judged_by_the_next_one(desk: Desk, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    os.mkfifo(mark)
    hook = tmp_path / "hook.sh"
    hook.write_text(f"#!/bin/sh\ntest -e {mark}2 && exit 2\ntouch {mark}2\necho $$ >{mark}\nexec sleep 1000\n")
    hook.chmod(0o755)
    desk.configure(f"[[hooks.PreToolUse]]\nmatcher = 'Bash'\ncommand = '{hook}'\n")
    words = [sys.executable, "-I", "-S", "-E", CLIENT, "claude", str(desk.socket), HOOKPROXY]
    pipe = subprocess.PIPE
    one = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env=desk.environ)
    assert one.stdin
    one.stdin.write(LIST)
    one.stdin.close()
    one.stdin = None
    assert mark.read_text().strip()  # the hook runs
    desk.end(signal.SIGKILL)
    output, text = one.communicate(timeout=60)
    assert b'"deny"' in output, text


def test_a_console_sees_the_calls_of_agents_own_tools(desk: Desk) -> None:
    desk.tool("PreToolUse", "Bash", {"command": "ls"})
    folder = str(desk.home / ".local" / "state" / "hookproxy" / "runs")
    [name] = registry.names(folder)
    console = registry.connect(folder, name)
    assert console is not None
    console.setblocking(True)
    console.settimeout(30)
    with console, console.makefile("rb") as lines:
        run = messages.from_run(lines.readline())
        assert isinstance(run, messages.Run)
        assert run.pid == desk.guards()[0]
        begun = messages.from_run(lines.readline())
        assert isinstance(begun, messages.Changes)
        assert begun.sessions == (messages.RunSession("s", "", "claude"),)
        [call] = begun.calls
        assert (call.tool, call.session, call.stage, bytes(call.arguments)) == (
            "Bash",
            "s",
            "sent",
            b'{"command":"ls"}',
        )
        desk.tool("PreToolUse", "Bash", {"command": "rm x"}, tool_use_id="t2")
        refused = messages.from_run(lines.readline())
        assert isinstance(refused, messages.Changes)
        assert (refused.counts.calls, refused.counts.refused) == (1, 1)
        assert b'"decision":"deny"' in bytes(refused.ended[0])
        desk.configure(RULES + "# changed\n")
        desk.tool("PostToolUse", "Bash", {"command": "ls"}, tool_response={"stdout": ""})
        ended = messages.from_run(lines.readline())
        assert isinstance(ended, messages.Changes)
        assert json.loads(bytes(ended.ended[0]))["call"] == call.call
    desk.end()
    assert registry.names(folder) == []


AS_SYSTEMD: Final = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1');"
    "os.execv(sys.argv[2], sys.argv[2:])"
)
"""Starts a program with one socket that listens already."""


def test_a_guard_that_systemd_starts_serves_who_has_connected_and_leaves_the_socket(desk: Desk) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(desk.socket))
        listener.listen()
        for _ in range(2):
            words = [sys.executable, "-c", AS_SYSTEMD, str(listener.fileno()), HOOKPROXY, "guard", "--socket"]
            service = subprocess.Popen([*words, str(desk.socket)], env=desk.environ, pass_fds=[listener.fileno()])
            assert desk.tool("PreToolUse", "Bash", {"command": "rm x"})[0] == "deny"
            assert [service.pid] == desk.guards()
            service.terminate()
            assert service.wait(30) == 0
            assert desk.socket.exists()


NOBODY: Final = 65534
SYSTEM_PYTHON: Final = "/usr/bin/python3"
"""That of our own environment may lie in a folder that others cannot enter."""

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not Path(SYSTEM_PYTHON).exists(), reason="only root starts programs of other accounts"
)


@needs_root
def test_a_guard_of_another_account_is_never_asked(desk: Desk) -> None:
    code = (
        "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1])\ns.listen()\n"
        "print('listens', flush=True)\n"
        "c, _ = s.accept()\nc.sendall(b'0 0 0\\n' if c.recv(1) else b'x')"
    )
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o777)
        desk.socket = Path(folder) / "guard.sock"
        other = subprocess.Popen(
            [SYSTEM_PYTHON, "-I", "-S", "-c", code, str(desk.socket)], stdout=subprocess.PIPE, user=NOBODY, cwd="/"
        )
        with other:
            assert other.stdout
            assert other.stdout.readline() == b"listens\n"
            done = desk.event("claude", LIST, *REFUSAL)
            other.kill()
    assert (done.returncode, f"user {NOBODY} listens".encode() in done.stderr) == (2, True), done


@needs_root
def test_events_of_another_account_are_turned_away(desk: Desk) -> None:
    assert desk.tool("PreToolUse", "Bash", {"command": "ls"})[0] == ""
    code = (
        "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(f'/proc/self/fd/{sys.argv[1]}/guard.sock')\n"
        "try:\n    s.sendall(sys.stdin.buffer.read())\n    print(s.recv(100))\nexcept ConnectionError:\n    print(b'')"
    )
    document = LIST.replace(b'"s"', b'"of-another-user"')
    request = b"hookproxy-guard 1 claude 1 0 %d\n/" % len(document) + document
    os.chmod(desk.socket.parent, 0o711)
    os.chmod(desk.socket, 0o777)
    folder = os.open(desk.socket.parent, os.O_RDONLY)
    try:
        done = subprocess.run(
            [SYSTEM_PYTHON, "-I", "-S", "-c", code, str(folder)],
            input=request,
            capture_output=True,
            pass_fds=[folder],
            user=NOBODY,
            cwd="/",
            timeout=60,
            check=False,
        )
    finally:
        os.close(folder)
        os.chmod(desk.socket.parent, 0o700)
    assert done.stdout == b"b''\n", done
    assert len(desk.records()) == 1, "the event of this account alone"
    assert desk.tool("PreToolUse", "Bash", {"command": "rm x"})[0] == "deny"
