"""The events of every agent are judged as the same act is behind MCP, and answered as that agent reads it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import pytest
from msgspec.structs import replace

from hookproxy.config.load import Loaded, load
from hookproxy.dialects.agent_side import Can, HookOutput, agent_side, names
from hookproxy.dialects.registry import DIALECTS
from hookproxy.guard.exchange import Request
from hookproxy.guard.judge import Judge
from hookproxy.model.hooks import Ended, Event, HookResult, HookSpec, Permission
from hookproxy.processes.ancestry import Process
from tests.dialects.tables import agents

pytestmark = pytest.mark.anyio

AGENTS: Final = agents()
WITH_SHELL: Final = [name for name in names() if b"rm x" in json.dumps(AGENTS[name].before).encode()]


def configured(folder: Path, text: str) -> Loaded:
    config = folder / "hookproxy.toml"
    config.write_text(f'{text}\n[audit]\nfile = "{folder}/audit.jsonl"\n', "utf-8")
    return load(str(config), [], None, {"HOME": str(folder), "PATH": "/usr/bin:/bin"}, str(folder))


@asynccontextmanager
async def judging(loaded: Loaded, report: Callable[[str], None] = print) -> AsyncIterator[Judge]:
    async with anyio.create_task_group() as tasks:
        judge = Judge(loaded, tasks, report)
        yield judge
        await judge.aclose()
        tasks.cancel_scope.cancel()


def before(agent: str) -> Request:
    """The agent's shell is to run `rm x`."""
    environ = {"PATH": "/usr/bin:/bin", **AGENTS[agent].before_variables}
    return Request(agent, "/", environ, json.dumps(AGENTS[agent].before).encode())


def permission(agent: str, output: HookOutput) -> Permission | None:
    """What the agent reads, by our reading of its hooks."""
    name = next(name for name, event in DIALECTS[agent].events.items() if event is Event.PRE_TOOL_USE)
    spec = HookSpec(agent, "f", Event.PRE_TOOL_USE, "h", shell="h", event_name=name)
    result = HookResult(Ended.EXITED, output.status, output.stdout, output.stderr.encode())
    return DIALECTS[agent].read_output(spec, result).permission


def records(folder: Path) -> list[dict[str, object]]:
    file = folder / "audit.jsonl"
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def test_all_agents_are_tried() -> None:
    assert set(names()) - set(WITH_SHELL) <= {"lime"}, "the document of its cases runs another command"


@pytest.mark.parametrize("agent", WITH_SHELL)
async def test_a_rule_about_bash_refuses_the_shell_of_every_agent(agent: str, tmp_path: Path) -> None:
    async with judging(configured(tmp_path, '[permissions]\ndeny = ["Bash(rm *)"]')) as judge:
        output = await judge.judge(before(agent))
    assert permission(agent, output) is Permission.DENY
    (record,) = records(tmp_path)
    assert (record["alias"], record["decision"], record["result"]) == ("Bash", "deny", "refused")


@pytest.mark.parametrize("agent", WITH_SHELL)
async def test_what_no_rule_is_about_gets_no_decision(agent: str, tmp_path: Path) -> None:
    async with judging(configured(tmp_path, '[permissions]\ndeny = ["Bash(git *)"]')) as judge:
        output = await judge.judge(before(agent))
    assert permission(agent, output) is not Permission.DENY
    assert (output.status, output.stdout) == (0, AGENTS[agent].no_decision.encode())


@pytest.mark.parametrize("agent", WITH_SHELL)
async def test_a_rule_that_asks_has_the_agent_ask_or_refuses(agent: str, tmp_path: Path) -> None:
    side = agent_side(agent)
    assert side is not None
    async with judging(configured(tmp_path, '[permissions]\nask = ["Bash(rm *)"]')) as judge:
        output = await judge.judge(before(agent))
    assert permission(agent, output) is (Permission.ASK if Can.ASK in side.can else Permission.DENY)


@pytest.mark.parametrize("agent", WITH_SHELL)
async def test_a_guard_of_claude_code_sees_every_agents_shell_as_bash(agent: str, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(
        json.dumps(
            {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./guard.sh"}]}]}}
        )
    )
    guard = tmp_path / "guard.sh"
    guard.write_text('#!/bin/sh\ngrep -q \'"tool_name":"Bash".*"command":"rm x"\' || exit 0\necho no rm >&2\nexit 2\n')
    guard.chmod(0o755)
    loaded = configured(tmp_path, '[[use]]\nfile = "settings.json"\ndialect = "claude"')
    async with judging(loaded) as judge:
        output = await judge.judge(before(agent))
    assert permission(agent, output) is Permission.DENY


@pytest.mark.parametrize("agent", ["claude", "cursor", "gemini"])
async def test_limits_count_all_tools_of_a_session(agent: str, tmp_path: Path) -> None:
    outputs = []
    async with judging(configured(tmp_path, '[[limits]]\ntool = "*"\ncalls = 2\nper = "hour"')) as judge:
        for number in range(3):
            request = before(agent)
            document = json.loads(request.document)
            document["tool_use_id"] = f"t{number}"
            outputs.append(await judge.judge(Request(agent, "/", request.environ, json.dumps(document).encode())))
    assert [permission(agent, output) is Permission.DENY for output in outputs] == [False, False, True]


@pytest.mark.parametrize("agent", names())
async def test_a_document_that_cannot_be_read_is_refused_by_every_agent(agent: str, tmp_path: Path) -> None:
    async with judging(configured(tmp_path, "")) as judge:
        for document in (b"", b"null", b"{", b'{"a":1}', b"[" * 5000):
            output = await judge.judge(Request(agent, "/", before(agent).environ, document))
            assert permission(agent, output) is Permission.DENY, document[:20]


async def test_a_defect_refuses_the_call_and_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[str] = []
    async with judging(configured(tmp_path, '[permissions]\ndeny = ["Bash"]'), reported.append) as judge:
        monkeypatch.setattr(judge, "_prepared", None)
        output = await judge.judge(before("claude"))
    assert permission("claude", output) is Permission.DENY
    assert "TypeError" in reported[0]


async def test_a_call_that_must_be_recorded_and_cannot_be_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "hookproxy.toml"
    config.write_text(f'[audit]\nfile = "{config}/audit.jsonl"\nrequired = true\ncalls = "all"\n', "utf-8")
    loaded = load(str(config), [], None, {"HOME": str(tmp_path), "PATH": "/bin"}, str(tmp_path))
    async with judging(loaded, lambda _text: None) as judge:
        output = await judge.judge(before("claude"))
    assert permission("claude", output) is Permission.DENY
    assert b"audit log" in output.stdout


SUBAGENT: Final = r"""#!/bin/sh
document=$(cat)
case $document in
*'"agent_type":"Explore"'*) echo 'not by Explore' >&2; exit 2 ;;
*'"agent_id":"a7"'*) echo 'not by a7' >&2; exit 2 ;;
*'"permission_mode":"plan"'*) echo 'not while planning' >&2; exit 2 ;;
esac
"""


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "PermissionRequest"])
@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"agent_id": "a1", "agent_type": "Explore"}, "not by Explore"),
        ({"agent_id": "a7", "agent_type": "general-purpose"}, "not by a7"),
        ({"agent_type": "Explore"}, "not by Explore"),
        ({"permission_mode": "plan"}, "not while planning"),
        ({"agent_id": "a1", "agent_type": "general-purpose"}, ""),
        ({"agent_id": "a70", "agent_type": "Explorer"}, ""),
        ({"agent_id": "", "agent_type": 'x","agent_type2":"y'}, ""),
        ({"agent_id": 7}, ""),
        ({}, ""),
    ],
)
async def test_a_hook_refuses_one_subagent_alone(
    event: str, members: dict[str, object], reason: str, tmp_path: Path
) -> None:
    hook = tmp_path / "subagent.sh"
    hook.write_text(SUBAGENT)
    hook.chmod(0o755)
    document = {**AGENTS["claude"].before, "hook_event_name": event, **members}
    if event == "PostToolUse":
        document["tool_response"] = {"stdout": ""}
    async with judging(configured(tmp_path, f'[[hooks.{event}]]\ncommand = "{hook}"')) as judge:
        output = await judge.judge(Request("claude", "/", {"PATH": "/usr/bin:/bin"}, json.dumps(document).encode()))
    assert (reason in output.stdout.decode() + output.stderr) if reason else output == HookOutput()


async def test_a_subagent_does_not_get_what_the_main_agent_may_do_by_an_id_that_both_count(tmp_path: Path) -> None:
    hook = tmp_path / "subagent.sh"
    hook.write_text(SUBAGENT)
    hook.chmod(0o755)
    async with judging(configured(tmp_path, f'[[hooks.PreToolUse]]\ncommand = "{hook}"')) as judge:
        decided = await permissions_of(judge, claude(), claude(agent_id="a7"), claude(agent_type="Explore"), claude())
    assert decided == [None, Permission.DENY, Permission.DENY, None]


async def test_a_server_that_pretends_to_be_its_agent_is_not_in_the_session_of_that(tmp_path: Path) -> None:
    """Hooks of a session get the environment of its first event, and limits would count what was never called."""
    hook = tmp_path / "hook.sh"
    hook.write_text('#!/bin/sh\n[ "$WHOSE" = agent ] || { echo "of the $WHOSE" >&2; exit 2; }\n')
    hook.chmod(0o755)
    text = f'[[hooks.PreToolUse]]\ncommand = "{hook}"\n[[limits]]\ntool = "*"\ncalls = 1\nper = "session"'
    real = replace(claude(), environ={"PATH": "/usr/bin:/bin", "WHOSE": "agent"}, process=Process(10, 1))
    fake = replace(claude(), environ={"PATH": "/usr/bin:/bin", "WHOSE": "server"}, run=Process(15, 2))
    async with judging(configured(tmp_path, text)) as judge:
        assert await permissions_of(judge, fake, real) == [Permission.DENY, None]


# --- budgets ---


def claude(event: str = "PreToolUse", number: int = 0, **members: object) -> Request:
    """An event of Claude Code's shell; each call has an id of its own."""
    document = {**AGENTS["claude"].before, "hook_event_name": event, "tool_use_id": f"t{number}", **members}
    return Request("claude", "/", {"PATH": "/usr/bin:/bin"}, json.dumps(document).encode())


async def permissions_of(judge: Judge, *requests: Request) -> list[Permission | None]:
    return [permission("claude", await judge.judge(request)) for request in requests]


async def test_a_loop_of_an_agents_own_tool_is_stopped(tmp_path: Path) -> None:
    async with judging(configured(tmp_path, '[[limits]]\nsame = 2\nwindow = "10m"')) as judge:
        decided = await permissions_of(
            judge, *(claude(number=n) for n in range(3)), claude(number=3, tool_input={"command": "ls"})
        )
    assert decided == [None, None, Permission.DENY, None]


async def test_each_subagent_has_its_own_budget_and_the_session_one_for_all(tmp_path: Path) -> None:
    text = '[[limits]]\ncalls = 1\nwithin = "subagent"\n[[limits]]\ncalls = 3\nthen = "ask"'
    async with judging(configured(tmp_path, text)) as judge:
        decided = await permissions_of(
            judge,
            claude(number=1),
            claude(number=2, agent_id="a"),
            claude(number=3, agent_id="a"),
            claude(number=4, agent_id="b"),
            claude(number=5),
            claude(number=6, agent_id="c"),
        )
    assert decided == [None, None, Permission.DENY, None, Permission.DENY, Permission.ASK]


@pytest.mark.parametrize("limit", ['result_bytes = "1kB"', "seconds = 2"])
async def test_results_and_time_of_an_agents_own_tools_count_after_the_call(limit: str, tmp_path: Path) -> None:
    async with judging(configured(tmp_path, f"[[limits]]\n{limit}")) as judge:
        for number, (output, duration) in enumerate((("x", 1000), ("y" * 990, 1001))):
            assert await permissions_of(judge, claude(number=number)) == [None]
            after = claude("PostToolUse", number, tool_response={"stdout": output}, duration_ms=duration)
            await judge.judge(after)
        assert await permissions_of(judge, claude(number=9)) == [Permission.DENY]


async def test_an_agent_reads_what_a_limit_comments(tmp_path: Path) -> None:
    async with judging(configured(tmp_path, '[[limits]]\ncalls = 1\nthen = "comment"')) as judge:
        first, second = [await judge.judge(claude(number=number)) for number in range(2)]
    assert b"limits[0]" not in first.stdout
    assert b"more than 1 call per session" in second.stdout
    assert permission("claude", second) is None
    assert [("exceeds" in record) for record in records(tmp_path) if record["result"] == "begun"] == [False, True]


@pytest.mark.parametrize(("agent", "runs"), [("claude", 0), ("cursor", 0), ("gemini", 1)])
async def test_the_hooks_of_a_file_that_the_agent_runs_itself_do_not_run_twice(
    agent: str, runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / ".claude" / "settings.json"
    file.parent.mkdir()
    hook = {"type": "command", "command": f"echo >> {tmp_path}/runs"}
    file.write_text(json.dumps({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}))
    async with judging(configured(tmp_path, f'[[use]]\nfile = "{file}"\ndialect = "claude"')) as judge:
        await judge.judge(before(agent))
        marks = tmp_path / "runs"
        assert (len(marks.read_text()) if marks.exists() else 0) == runs
        moved = before(agent)
        environ = {**moved.environ, "CLAUDE_CONFIG_DIR": "/elsewhere"}
        document = moved.document.replace(b'"session_id": "', b'"session_id": "another')
        document = document.replace(b'"conversation_id": "', b'"conversation_id": "another')
        await judge.judge(Request(agent, "/", environ, document))
        assert len(marks.read_text()) == runs + 1, "a variable from a project does not switch them off"


def patch(*files: str, event: str = "PreToolUse", use: str = "t1") -> Request:
    """Codex is to change these files by one patch."""
    lines = [f"*** Update File: {file}\n@@\n-a\n+b\n" for file in files]
    text = f"*** Begin Patch\n{''.join(lines)}*** End Patch"
    document = {**AGENTS["codex"].before, "hook_event_name": event, "tool_name": "apply_patch", "tool_use_id": use}
    document |= {"tool_input": {"command": text}, "cwd": "/"}
    if event == "PostToolUse":
        document["tool_response"] = "done"
    return Request("codex", "/", {"PATH": "/usr/bin:/bin"}, json.dumps(document).encode())


async def test_each_file_of_a_patch_is_open_and_has_its_end_in_the_record(tmp_path: Path) -> None:
    async with judging(configured(tmp_path, '[permissions]\ndeny = ["Edit(/c)"]')) as judge:
        assert permission("codex", await judge.judge(patch("/a", "/b"))) is not Permission.DENY
        assert judge.open_calls() == 2
        await judge.judge(patch("/a", "/b", event="PostToolUse"))
        assert judge.open_calls() == 0
    assert [record["result"] for record in records(tmp_path)] == ["begun", "begun", "ok", "ok"]


async def test_if_one_file_of_a_patch_is_refused_none_is_recorded_as_allowed(tmp_path: Path) -> None:
    async with judging(configured(tmp_path, '[permissions]\ndeny = ["Edit(/b)"]')) as judge:
        assert permission("codex", await judge.judge(patch("/a", "/b", "/c"))) is Permission.DENY
        assert judge.open_calls() == 0
    found = records(tmp_path)
    assert [(record["decision"], record["result"]) for record in found] == [("deny", "refused")] * 3
    assert len({record["by"] for record in found}) == 1


async def test_a_call_that_the_agent_cannot_express_is_recorded_as_refused(tmp_path: Path) -> None:
    hook = tmp_path / "rewrite.sh"
    hook.write_text('#!/bin/sh\ncat >&-\necho \'{"hookSpecificOutput":{"updatedInput":{"command":"true"}}}\'\n')
    hook.chmod(0o755)
    agent = next(name for name in WITH_SHELL if (side := agent_side(name)) and Can.REWRITE not in side.can)
    async with judging(configured(tmp_path, f"[[hooks.PreToolUse]]\ncommand = '{hook}'")) as judge:
        assert permission(agent, await judge.judge(before(agent))) is Permission.DENY
        assert judge.open_calls() == 0
    assert [(record["decision"], record["result"]) for record in records(tmp_path)] == [("deny", "refused")]


@pytest.mark.parametrize("agent", WITH_SHELL)
async def test_an_allow_rule_covers_an_agents_own_command_whatever_else_it_says(agent: str, tmp_path: Path) -> None:
    text = '[permissions]\ndefault = "deny"\nallow = ["Bash(rm x)"]\n'
    async with judging(configured(tmp_path, text)) as judge:
        assert permission(agent, await judge.judge(before(agent))) is not Permission.DENY


async def test_a_description_is_not_what_an_allow_rule_is_about(tmp_path: Path) -> None:
    text = '[permissions]\ndefault = "deny"\nallow = ["Bash(git *)", "Edit(/src/*)"]\n'
    async with judging(configured(tmp_path, text)) as judge:
        for tool, arguments, decision in (
            ("Bash", {"command": "git status", "description": "Shows what has changed"}, None),
            ("Bash", {"command": "rm x", "description": "git status"}, Permission.DENY),
            ("Bash", {"description": "git status"}, Permission.DENY),
            ("Edit", {"file_path": "/src/a", "old_string": "x", "new_string": "/etc/passwd"}, None),
            ("Edit", {"file_path": "/etc/a", "old_string": "/src/a", "new_string": "/src/a"}, Permission.DENY),
        ):
            found = await permissions_of(judge, claude(tool_name=tool, tool_input=arguments))
            assert found == [decision], (tool, arguments)
