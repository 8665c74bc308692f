"""Unmodified guards for familiar tools, in front of a server with other tool names; for each hook system."""

from __future__ import annotations

import json
from typing import Final

import pytest

from tests.end.agent import STATELESS, Agent, Json, Scene, call, group, line_of, request, specific, text_of
from tests.end.test_several_dialects import DENIALS, DIALECTS, hook_file

pytestmark = pytest.mark.anyio

BASH: Final = '[tools.echo]\nas = "Bash"\narguments = { command = "cmd" }\n'

GUARD: Final = r"""#!/bin/bash
# Refuses commands that delete, for Claude Code's Bash.
input=$(cat)
tool=$(jq -r .tool_name <<<"$input")
command=$(jq -r '.tool_input.command // empty' <<<"$input")
[ "$tool" = Bash ] || exit 0
if grep -Eq '(^|[;&| ])rm +-' <<<"$command"; then
  echo "rm is not for agents: $command" >&2
  exit 2
fi
exit 0
"""

REWRITES: Final = {
    "claude": r"""jq -c '{hookSpecificOutput: {hookEventName: "PreToolUse",
        updatedInput: (.tool_input | .command += " -n")}}'""",
    "code-assist": r"""jq -c '{decision: "approve", updated_input: (.tool_input | .command += " -n")}'""",
    "copilot": r"""jq -c '{permissionDecision: "allow", modifiedArgs: (.toolArgs | fromjson | .command += " -n")}'""",
    "docker-agent": r"""jq -c '{hook_specific_output: {hook_event_name: "pre_tool_use",
        updated_input: (.tool_input | .command += " -n")}}'""",
    "docker-agent@current": r"""jq -c '{hook_specific_output: {hook_event_name: "pre_tool_use",
        updated_input: {command: (.tool_input.command + " -n")}}}'""",
    "lime": r"""jq -c '{hookSpecificOutput: {updatedInput: (.tool_input | .command += " -n")}}'""",
}
"""A hook of each system that adds a word to the command; docker-agent's today names what changes; claw's cannot."""


def hook_file_of(scene: Scene, dialect: str, command: str) -> str:
    """As `hook_file`, of any edition."""
    system = dialect.partition("@")[0]
    return hook_file(scene, system, command).replace(f"={system}=", f"={dialect}=", 1)


async def begun(scene: Scene, *options: str) -> Agent:
    agent = scene.run("--name=lean", *options)
    await agent.initialize()
    return agent


def refused(answer: Json) -> str:
    assert answer["result"]["isError"] is True
    return text_of(answer)


def using(scene: Scene, settings: Json, more: str = BASH) -> str:
    """`--config` that uses a settings file of Claude Code's, and has this in it."""
    file = scene.file("settings.json", json.dumps(settings))
    return scene.config(f'{more}\n[[use]]\nfile = "{file}"\ndialect = "claude"\n')


def before(*groups: Json) -> Json:
    return {"hooks": {"PreToolUse": list(groups)}}


async def test_a_guard_for_bash_holds_for_execute_command_unmodified(scene: Scene) -> None:
    guard = scene.file("guard.sh", GUARD, mode=0o700)
    aliases = BASH.replace("echo", "execute_command") + BASH
    agent = await begun(scene, using(scene, before(group(guard, matcher="Bash")), aliases))
    assert "rm is not for agents: rm -rf x" in refused(await agent.ask(call(1, "execute_command", cmd="rm -rf x")))
    assert "rm is not for agents: rm -rf x" in refused(await agent.ask(call(2, "echo", cmd="rm -rf x", n=1)))
    assert json.loads(text_of(await agent.ask(call(3, "echo", cmd="ls", n=1)))) == {"cmd": "ls", "n": 1}
    assert "rm is not" in refused(await agent.ask(call(4, "echo", command="rm -rf x")))  # by the hooks' own name
    assert [one["params"]["arguments"] for one in scene.calls_received()] == [{"cmd": "ls", "n": 1}]


@pytest.mark.parametrize("tool", ["Echo", "ECHO", " echo"])
async def test_another_spelling_of_a_configured_tool_gets_past_no_guard_and_is_allowed_nothing(
    scene: Scene, tool: str
) -> None:
    guard = group(scene.file("guard.sh", GUARD, mode=0o700), matcher="Bash")
    agent = await begun(scene, scene.config(BASH), scene.hooks(PreToolUse=[guard]))
    assert "rm is not for agents" in refused(await agent.ask(call(1, tool, cmd="rm -rf /")))
    rules = 'on_ask = "deny"\n[permissions]\nallow = ["Bash(ls)"]\nask = ["*"]\ndeny = ["Bash(rm *)"]\n'
    agent = await begun(scene, scene.config(rules + BASH))
    assert "Bash(rm *)" in refused(await agent.ask(call(1, tool, cmd="rm -rf /")))
    refused(await agent.ask(call(2, tool, cmd="ls")))
    assert scene.calls_received() == []


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_hooks_of_each_system_see_the_familiar_names(scene: Scene, dialect: str) -> None:
    text = "; echo '{}'" if dialect == "code-assist" else ""
    recorded = scene.folder / "recorded"
    agent = await begun(scene, scene.config(BASH), hook_file(scene, dialect, f"cat > '{recorded}'{text}"))
    answer = await agent.ask(line := call(1, "echo", cmd="ls", n=1.50))
    assert json.loads(text_of(answer)) == {"cmd": "ls", "n": 1.5}
    assert line_of(line).strip() in scene.received()
    document = json.loads(recorded.read_bytes())
    assert document.get("tool_name", document.get("toolName")) == "Bash"
    given = document.get("tool_input", document.get("toolArgs"))
    arguments = json.loads(given) if isinstance(given, str) else given
    assert arguments == {"command": "ls", "n": 1.5}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_hooks_of_each_system_deny_a_familiar_tool(scene: Scene, dialect: str) -> None:
    agent = await begun(scene, scene.config(BASH), hook_file(scene, dialect, DENIALS[dialect]))
    assert ": no" in refused(await agent.ask(call(1, "echo", cmd="ls")))
    assert scene.calls_received() == []


@pytest.mark.parametrize("dialect", REWRITES)
async def test_a_rewrite_of_each_system_reaches_the_server_under_its_own_names(scene: Scene, dialect: str) -> None:
    config = scene.config(BASH + '[audit]\nfile = "audit.jsonl"')
    audit = (scene.folder / "file1") / "audit.jsonl"
    agent = await begun(scene, config, hook_file_of(scene, dialect, REWRITES[dialect]))
    await agent.ask(call(1, "echo", x="é", cmd="ls"))
    (received,) = scene.calls_received()
    assert received["params"] == {"name": "echo", "arguments": {"x": "é", "cmd": "ls -n"}}
    (line,) = map(json.loads, audit.read_text().splitlines())
    assert (line["tool"], line["alias"], line["changed"]) == ("echo", "Bash", ["arguments"])
    assert line["arguments"]["cmd"] == "ls"
    assert line["rewritten"]["cmd"] == "ls -n"


async def test_a_group_judges_what_the_one_before_it_rewrote_under_the_same_names(scene: Scene) -> None:
    rewrite = scene.prints(specific("PreToolUse", updatedInput={"command": "rm -rf /"}))
    guard = scene.file("guard.sh", GUARD, mode=0o700)
    own = f'[[hooks.PreToolUse]]\nmatcher = "Bash"\ncommand = "{guard}"\n'
    agent = await begun(scene, using(scene, before(group(rewrite)), BASH + own))
    assert "rm is not for agents: rm -rf /" in refused(await agent.ask(call(1, "echo", cmd="ls")))
    assert scene.calls_received() == []


async def test_a_later_hook_of_the_same_file_judges_a_patch_under_the_same_names(scene: Scene) -> None:
    patch = scene.prints(
        {"hook_specific_output": {"hook_event_name": "pre_tool_use", "updated_input": {"command": "rm -rf x"}}}
    )
    guard = scene.file("guard.sh", GUARD, mode=0o700)
    hooks = {
        "pre_tool_use": [{"matcher": "Bash", "hooks": [{"type": "command", "command": one}]} for one in (patch, guard)]
    }
    file = scene.file("agent.json", json.dumps({"agents": {"root": {"hooks": hooks}}}))
    agent = await begun(scene, scene.config(BASH), f"--hooks=docker-agent@current={file}")
    assert "rm is not for agents: rm -rf x" in refused(await agent.ask(call(1, "echo", cmd="ls")))
    assert scene.calls_received() == []


async def test_an_if_about_bash_holds_for_the_servers_own_argument(scene: Scene) -> None:
    guard = {"matcher": "Bash", "hooks": [{"type": "command", "command": "exit 2", "if": "Bash(rm *)"}]}
    agent = await begun(scene, using(scene, before(guard)))
    refused(await agent.ask(call(1, "echo", cmd="rm x")))
    assert json.loads(text_of(await agent.ask(call(2, "echo", cmd="ls")))) == {"cmd": "ls"}


# --- what an attacker or a hook may try ---


@pytest.mark.parametrize(
    "arguments",
    [
        b'{"cmd":"rm -rf /","command":"ls"}',
        b'{"command":"ls","cmd":"rm -rf /"}',
        b'{"command":"ls","\\u0063md":"rm -rf /"}',
        b'{"command":"ls","CMD":"rm -rf /"}',
        b'{"Command":"ls","cmd":"rm -rf /"}',
        b'{"cmd\\u0000":"rm -rf /"}',
    ],
)
async def test_no_argument_hides_behind_the_familiar_name_of_another(scene: Scene, arguments: bytes) -> None:
    agent = await begun(scene, using(scene, before(group("true", matcher="Bash"))))
    await agent.send(
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":%b}}\n' % arguments
    )
    error = (await agent.answer(1))["error"]
    assert error["message"].startswith("hookproxy refused this message. The tool call cannot be judged: ")
    assert scene.calls_received() == []


@pytest.mark.parametrize("arguments", [{"cmd": "rm"}, {"command": "ls", "cmd": "rm"}, {"COMMAND": "ls"}])
@pytest.mark.parametrize(("on_failure", "runs"), [("deny", False), ("allow", True)])
async def test_a_rewrite_that_cannot_be_mapped_is_a_failure_and_never_forwarded(
    scene: Scene, arguments: Json, on_failure: str, runs: bool
) -> None:
    hook = scene.prints(specific("PreToolUse", updatedInput=arguments))
    more = f'on_failure = "{on_failure}"\n{BASH}'
    agent = await begun(scene, using(scene, before(group(hook)), more))
    answer = await agent.ask(call(1, "echo", cmd="ls"))
    if runs:
        assert json.loads(text_of(answer)) == {"cmd": "ls"}
    else:
        assert "rewrote the arguments so that they cannot be read: " in refused(answer)
    assert [one["params"]["arguments"] for one in scene.calls_received()] == [{"cmd": "ls"}] * runs
    assert "rewrote the arguments" in agent.standard_error()


async def test_a_merged_rewrite_under_the_servers_name_is_also_a_failure(scene: Scene) -> None:
    hook = scene.prints({"hook_specific_output": {"hook_event_name": "pre_tool_use", "updated_input": {"cmd": "rm"}}})
    agent = await begun(
        scene, scene.config(f'on_failure = "deny"\n{BASH}'), hook_file_of(scene, "docker-agent@current", hook)
    )
    assert "'cmd' is the tool's own name for 'command'" in refused(await agent.ask(call(1, "echo", cmd="ls")))
    assert scene.calls_received() == []


async def test_an_empty_merge_changes_no_name(scene: Scene) -> None:
    """Nothing changes, but the hook has rewritten: what is forwarded has the server's names."""
    hook = scene.prints({"hook_specific_output": {"hook_event_name": "pre_tool_use", "updated_input": {}}})
    agent = await begun(scene, scene.config(BASH), hook_file_of(scene, "docker-agent@current", hook))
    await agent.ask(call(1, "echo", cmd="ls"))
    assert [one["params"]["arguments"] for one in scene.calls_received()] == [{"cmd": "ls"}]


async def test_a_rewrite_that_does_not_fit_the_tool_is_reported_with_the_name_that_the_hook_knows(scene: Scene) -> None:
    hook = scene.prints(specific("PreToolUse", updatedInput={"file_path": 7}))
    more = 'on_failure = "deny"\n[tools.typed]\nas = "Read"\narguments = { file_path = "path" }\n'
    agent = await begun(scene, using(scene, before(group(hook)), more))
    await agent.ask(request(1, "tools/list"))
    text = refused(await agent.ask(call(2, "typed", path="a")))
    assert "do not fit the tool: file_path: 7 is not of type 'string'" in text
    assert scene.calls_received() == []


# --- other events ---


async def test_post_hooks_see_what_ran_under_the_familiar_names(scene: Scene) -> None:
    recorded = scene.folder / "recorded"
    rewrite = scene.prints(specific("PreToolUse", updatedInput={"command": "ls -l"}))
    hooks = {"hooks": {"PreToolUse": [group(rewrite)], "PostToolUse": [group(f"cat > '{recorded}'", matcher="Bash")]}}
    agent = await begun(scene, using(scene, hooks))
    await agent.ask(call(1, "echo", cmd="ls"))
    document = json.loads(recorded.read_bytes())
    assert (document["tool_name"], document["tool_input"]) == ("Bash", {"command": "ls -l"})
    assert json.loads(document["tool_response"]["stdout"]) == {"cmd": "ls -l"}


async def test_a_denial_is_reported_under_the_familiar_names(scene: Scene) -> None:
    gate = scene.gate("ran")
    recorded = scene.folder / "recorded"
    lime = {"hooks": {"PermissionDenied": [f"cat > '{recorded}'; {gate.report}"]}}
    config = scene.config(f'{BASH}[permissions]\ndeny = ["Bash(rm *)"]\n')
    agent = await begun(scene, config, "--hooks=lime=" + scene.file("lime.json", json.dumps(lime)))
    assert "the permission rule Bash(rm *)" in refused(await agent.ask(call(1, "echo", cmd="rm x")))
    await gate.reached()
    document = json.loads(recorded.read_bytes())
    assert (document["tool_name"], document["tool_input"]) == ("Bash", {"command": "rm x"})
    assert json.loads(text_of(await agent.ask(call(2, "echo", cmd="ls")))) == {"cmd": "ls"}


async def test_a_permission_request_hook_rewrites_under_the_familiar_names(scene: Scene) -> None:
    answer = {"behavior": "allow", "updatedInput": {"command": "ls -n"}}
    hook = scene.prints(specific("PermissionRequest", decision=answer))
    ask = scene.prints(specific("PreToolUse", permissionDecision="ask"))
    hooks = {"hooks": {"PreToolUse": [group(ask)], "PermissionRequest": [group(hook, matcher="Bash")]}}
    agent = await begun(scene, using(scene, hooks))
    assert json.loads(text_of(await agent.ask(call(1, "echo", cmd="ls")))) == {"cmd": "ls -n"}


async def test_a_person_is_shown_what_will_run_by_the_tools_own_names(scene: Scene) -> None:
    hook = scene.prints(specific("PreToolUse", permissionDecision="ask", updatedInput={"command": "ls -l"}))
    recorded = scene.folder / "recorded"
    hooks = {"hooks": {"PreToolUse": [group(hook, matcher="Bash")], "PostToolUse": [group(f"cat > '{recorded}'")]}}
    agent = scene.run("--name=lean", using(scene, hooks))
    meta = {**STATELESS, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
    params = {"name": "echo", "arguments": {"cmd": "ls"}, "_meta": meta}
    result = (await agent.ask(request(1, "tools/call", **params)))["result"]
    (question,) = result["inputRequests"].values()
    assert question["params"]["message"].startswith('Allow the tool echo of lean to run?\n\ncmd: "ls -l"')
    yes = {name: {"action": "accept", "content": {"decision": "allow once"}} for name in result["inputRequests"]}
    again = request(2, "tools/call", **params, inputResponses=yes, requestState=result["requestState"])
    assert json.loads(text_of(await agent.ask(again))) == {"cmd": "ls -l"}
    assert json.loads(recorded.read_bytes())["tool_input"] == {"command": "ls -l"}  # also in the next round


async def test_an_operators_prompter_gets_the_tools_own_names(scene: Scene) -> None:
    asked = scene.folder / "asked"
    prompter = scene.file("prompter", f"#!/bin/sh\ncat > '{asked}'\n", mode=0o700)
    more = f'on_ask_fallback = {{ command = ["{prompter}"] }}\n{BASH}[permissions]\nask = ["Bash"]\n'
    agent = await begun(scene, scene.config(more))
    assert json.loads(text_of(await agent.ask(call(1, "echo", cmd="ls")))) == {"cmd": "ls"}
    document = json.loads(asked.read_bytes())
    assert (document["tool"], document["arguments"]) == ("echo", {"cmd": "ls"})


async def test_a_denied_alias_hides_its_tools(scene: Scene) -> None:
    agent = await begun(scene, scene.config(f'{BASH}[permissions]\ndeny = ["Bash"]\n'))
    tools = (await agent.ask(request(1, "tools/list")))["result"]["tools"]
    assert "echo" not in [tool["name"] for tool in tools]
    assert "the permission rule Bash" in refused(await agent.ask(call(2, "echo", cmd="ls")))


async def test_a_preset_makes_path_guards_hold(scene: Scene) -> None:
    guard = """jq -e '.tool_input.file_path | test("[.]env$")' >/dev/null && { echo secret >&2; exit 2; }; exit 0"""
    config = using(scene, before(group(guard, matcher="Read|Write|Edit")), 'preset = "filesystem"\n')
    agent = await begun(scene, config)
    for number, tool in enumerate(("read_text_file", "write_file", "edit_file")):
        assert "secret" in refused(await agent.ask(call(number, tool, path="/work/.env")))
    assert scene.calls_received() == []


async def test_a_tool_without_hooks_passes_unchanged_whatever_its_name(scene: Scene) -> None:
    agent = await begun(scene, using(scene, before(group("exit 2", matcher="Read"))))
    odd = b'{"jsonrpc":"2.0", "id":1,"method":"tools/call","params":{"name":"echo","arguments":{"cmd":1,"command":2}}}'
    await agent.send(odd + b"\n")
    assert json.loads(text_of(await agent.answer(1))) == {"cmd": 1, "command": 2}
    assert odd in scene.received()
