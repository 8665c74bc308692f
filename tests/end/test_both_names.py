"""Guards for all tools that look for their system's own tools, unmodified, in front of servers with other names."""

from __future__ import annotations

import json
from typing import Final

import pytest

from tests.end.agent import HOOKPROXY, SERVER, Agent, Json, Scene, call, group, refused, request, specific, text_of
from tests.end.test_several_dialects import hook_file

TOOLS: Final[list[Json]] = [
    {
        "name": name,
        "inputSchema": {
            "type": "object",
            "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties),
        },
    }
    for name, properties in {
        "write_file": {"path": "string", "content": "string"},
        "edit_file": {"path": "string", "edits": "array"},
        "read_file": {"path": "string"},
        "execute_command": {"cmd": "string"},
        "query": {"sql": "string"},
    }.items()
]

ENV_GUARD: Final = r'''#!/usr/bin/env python3
"""Keeps agents away from .env files; the shape of many published ones: no matcher, and names in the script."""
import json, re, sys

call = json.load(sys.stdin)
tool, given = call.get("tool_name", ""), call.get("tool_input", {})
if tool in ("Read", "Edit", "Write"):
    path = given.get("file_path", "")
    if ".env" in path and not path.endswith(".env.sample"):
        print("BLOCKED: .env files are secret", file=sys.stderr)
        sys.exit(2)
elif tool == "Bash":
    if re.search(r"\brm\s+-[a-z]*r", given.get("command", "")) or ".env" in given.get("command", ""):
        print("BLOCKED: dangerous command", file=sys.stderr)
        sys.exit(2)
sys.exit(0)
'''


async def begun(scene: Scene, *options: str, listed: bool = True) -> Agent:
    """An agent that has the list of the server's tools, or has not asked for it."""
    tools = scene.file("tools.json", json.dumps(TOOLS))
    agent = scene.run("--name=files", *options, server=[*SERVER, "--tools", tools])
    await agent.initialize()
    if listed:
        await agent.ask(request("list", "tools/list"))
    return agent


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("matcher", [None, "*", ".*"])
async def test_a_guard_that_looks_for_env_files_itself_holds(scene: Scene, matcher: str | None, listed: bool) -> None:
    entry = group(scene.file("pre_tool_use.py", ENV_GUARD, mode=0o700))
    entry = {key: value for key, value in entry.items() if key != "matcher"} | ({"matcher": matcher} if matcher else {})
    agent = await begun(scene, scene.hooks(PreToolUse=[entry]), listed=listed)
    edits = [{"oldText": "a", "newText": "b"}]
    assert ".env files are secret" in refused(await agent.ask(call(1, "write_file", path="/p/.env", content="A=1")))
    assert ".env files are secret" in refused(await agent.ask(call(2, "edit_file", path="/p/.env", edits=edits)))
    assert ".env files are secret" in refused(await agent.ask(call(3, "read_file", path="/p/.env")))
    assert "dangerous command" in refused(await agent.ask(call(4, "execute_command", cmd="rm -rf /")))
    assert scene.calls_received() == []
    assert text_of(await agent.ask(call(5, "write_file", path="/p/.env.sample", content=""))) == "ran write_file"
    assert text_of(await agent.ask(call(6, "query", sql=".env"))) == "ran query"


async def test_an_audit_line_has_both_runs_and_a_post_hook_runs_once(scene: Scene) -> None:
    runs = scene.folder / "runs"
    guard, after = (f"jq -c '[.hook_event_name, .tool_name, .mcp_tool_name]' >> '{runs}'" for _ in range(2))
    file = scene.file(
        "settings.json", json.dumps({"hooks": {"PreToolUse": [group(guard)], "PostToolUse": [group(after)]}})
    )
    config = scene.config(f'[audit]\nfile = "audit.jsonl"\n[[use]]\nfile = "{file}"\ndialect = "claude"\n')
    agent = await begun(scene, config)
    await agent.ask(call(1, "write_file", path="a", content=""))
    await agent.ask(call(2, "query", sql=""))
    own, other = "mcp__files__write_file", "mcp__files__query"
    seen = [tuple(json.loads(line)) for line in runs.read_text().splitlines()]
    assert sorted(seen[:2]) == [("PreToolUse", "Write", None), ("PreToolUse", own, None)]
    assert seen[2:] == [("PostToolUse", "Write", own), ("PreToolUse", other, None), ("PostToolUse", other, None)]
    (audit,) = scene.folder.glob("*/audit.jsonl")
    first, second = map(json.loads, audit.read_text().splitlines())
    assert sorted(one["tool_name"] for one in first["hooks"]) == ["Write", "Write", own]
    assert [one["event"] for one in second["hooks"]] == ["PreToolUse", "PostToolUse"]


@pytest.mark.parametrize(("names", "refuses"), [("own", False), ("familiar", True), ("both", True)])
async def test_a_file_chooses_the_names_that_its_hooks_see(scene: Scene, names: str, refuses: bool) -> None:
    guard = scene.file("pre_tool_use.py", ENV_GUARD, mode=0o700)
    file = scene.file("settings.json", json.dumps({"hooks": {"PreToolUse": [group(guard)]}}))
    config = scene.config(f'[[use]]\nfile = "{file}"\ndialect = "claude"\nnames = "{names}"\n')
    answer = await (await begun(scene, config)).ask(call(1, "write_file", path="/p/.env", content=""))
    assert ("BLOCKED" in text_of(answer)) is refuses


async def test_hooks_of_hookproxy_toml_see_own_names(scene: Scene) -> None:
    runs = scene.folder / "runs"
    hook = f"""[[hooks.PreToolUse]]\ncommand = "jq -r .tool_name >> '{runs}'"\n"""
    await (await begun(scene, scene.config(hook))).ask(call(1, "write_file", path="a", content=""))
    assert runs.read_text() == "write_file\n"


COPILOT_GUARD: Final = r"""#!/bin/bash
# Compares toolName with Copilot CLI's own tools.
input=$(cat)
tool=$(jq -r .toolName <<<"$input")
args=$(jq -r .toolArgs <<<"$input")
deny() { jq -nc --arg reason "$1" '{permissionDecision: "deny", permissionDecisionReason: $reason}'; exit 0; }
case "$tool" in
bash) [[ $(jq -r .command <<<"$args") == *"rm -rf"* ]] && deny "no rm -rf" ;;
create | edit | view) [[ $(jq -r .path <<<"$args") == *.env ]] && deny "no .env, $tool" ;;
esac
exit 0
"""


@pytest.mark.parametrize("dialect", ["copilot", "copilot@current"])
async def test_copilots_guards_see_its_own_tools_and_arguments(scene: Scene, dialect: str) -> None:
    guard = scene.file("guard.sh", COPILOT_GUARD, mode=0o700)
    hooks = {"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": guard}]}}
    agent = await begun(scene, f"--hooks={dialect}=" + scene.file("hooks.json", json.dumps(hooks)))
    edits = [{"oldText": "a", "newText": "b"}]
    assert "no .env, create" in refused(await agent.ask(call(1, "write_file", path="/p/.env", content="A=1")))
    assert "no .env, edit" in refused(await agent.ask(call(2, "edit_file", path="/p/.env", edits=edits)))
    assert "no .env, view" in refused(await agent.ask(call(3, "read_file", path="/p/.env")))
    assert "no rm -rf" in refused(await agent.ask(call(4, "execute_command", cmd="rm -rf /")))
    assert text_of(await agent.ask(call(5, "execute_command", cmd="ls"))) == "ran execute_command"
    assert len(scene.calls_received()) == 1


async def test_copilots_rewrite_of_its_own_arguments_reaches_the_server_by_the_servers_names(scene: Scene) -> None:
    rewrite = """jq -c 'if .toolName == "create"
    then {permissionDecision: "allow", modifiedArgs: (.toolArgs | fromjson | .file_text = "safe")} else {} end'"""
    hooks = {"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": rewrite}]}}
    agent = await begun(scene, "--hooks=copilot@current=" + scene.file("hooks.json", json.dumps(hooks)))
    await agent.ask(call(1, "write_file", path="a", content="evil"))
    (received,) = scene.calls_received()
    assert received["params"]["arguments"] == {"path": "a", "content": "safe"}


async def test_copilots_hooks_at_events_in_pascal_case_see_claude_codes_names(scene: Scene) -> None:
    guard = """jq -e '.tool_name == "Write" and (.tool_input.file_path | test("[.]env$"))' >/dev/null || exit 0
    printf '{"permissionDecision": "deny", "permissionDecisionReason": "no .env"}'"""
    hooks = {"version": 1, "hooks": {"PreToolUse": [{"type": "command", "bash": guard}]}}
    agent = await begun(scene, "--hooks=copilot@current=" + scene.file("hooks.json", json.dumps(hooks)))
    assert "no .env" in refused(await agent.ask(call(1, "write_file", path="/p/.env", content="A=1")))


OWN_SHELLS: Final = {
    "claw": """[ "$HOOK_TOOL_NAME" = bash ] || exit 0
        case $HOOK_TOOL_INPUT in *'"command":"rm -rf'*) echo no; exit 2;; esac""",
    "lime": """[ "$HOOK_TOOL_NAME" = bash ] || exit 0
        case $HOOK_TOOL_INPUT in *'"command":"rm -rf'*) echo no >&2; exit 2;; esac""",
    "code-assist": """jq -c 'if .tool_name == "BashTool" and (.tool_input.command | test("rm -rf"))
        then {decision: "deny", reason: "no"} else {decision: "approve"} end'""",
    "docker-agent": """jq -e '.tool_name == "shell" and (.tool_input.cmd | test("rm -rf"))' >/dev/null || exit 0
        echo no >&2; exit 2""",
}
"""For each system, a guard as its document has it: it compares the name of the shell itself."""


@pytest.mark.parametrize("dialect", OWN_SHELLS)
async def test_guards_of_each_document_know_the_shell_by_its_name_there(scene: Scene, dialect: str) -> None:
    agent = await begun(scene, hook_file(scene, dialect, OWN_SHELLS[dialect]))
    assert "no" in refused(await agent.ask(call(1, "execute_command", cmd="rm -rf /")))
    assert scene.calls_received() == []
    assert text_of(await agent.ask(call(2, "execute_command", cmd="ls"))) == "ran execute_command"


async def test_a_name_that_a_person_has_written_stays_the_one_that_these_hooks_see(scene: Scene) -> None:
    seen = scene.folder / "seen"
    config = scene.config('[tools.query]\nas = "Bash"\narguments = { command = "sql" }\n')
    await (await begun(scene, config, hook_file(scene, "copilot", f"jq -r .toolName >> '{seen}'"))).ask(
        call(1, "query", sql="x")
    )
    assert seen.read_text() == "Bash\n"


async def test_try_and_check_say_under_which_names_a_hook_runs(scene: Scene) -> None:
    guard = scene.file("pre_tool_use.py", ENV_GUARD, mode=0o700)
    option = scene.hooks(PreToolUse=[group(guard)], PostToolUse=[group("cat >/dev/null")])
    arguments = json.dumps({"path": "/p/.env", "content": ""})
    tried = scene.complete([HOOKPROXY, "try", "write_file", arguments, option])
    assert tried.returncode == 1
    assert b"tool     mcp__server__write_file; it runs once under each name" in tried.stdout
    assert b"tool     Write; it runs once under each name" in tried.stdout
    assert b"once for each name of a tool" in scene.complete([HOOKPROXY, "check", option]).stdout
    checked = scene.complete([HOOKPROXY, "check", "--verbose", option]).stdout
    assert b"matcher  all; once under a tool's own name, once under its familiar one" in checked
    assert b"matcher  all; under a tool's familiar name if it has one" in checked
    tools = scene.file("tools.json", json.dumps(TOOLS))
    checked = scene.complete([HOOKPROXY, "check", option, "--name", "files", "--", *SERVER, "--tools", tools]).stdout
    assert b"mcp__files__write_file" in checked
    assert b"Write" in checked


async def test_the_comment_of_a_hook_that_looks_for_no_name_is_read_once(scene: Scene) -> None:
    hook = scene.prints(specific("PreToolUse", additionalContext="be careful"))
    agent = await begun(scene, scene.hooks(PreToolUse=hook))
    assert text_of(await agent.ask(call(1, "write_file", path="a", content=""))).count("be careful") == 1
