"""Codex's hooks.json and config.toml in front of a real process, for an agent that is not Codex."""

from __future__ import annotations

import json

from tests.end.agent import Agent, Json, Scene, call, refused, text_of

FAILED: Json = {"content": [{"type": "text", "text": "it broke"}], "isError": True}


def group(command: str, matcher: str = "") -> Json:
    return {"matcher": matcher, "hooks": [{"type": "command", "command": command}]}


async def begun(scene: Scene, **events: Json) -> Agent:
    """An agent behind a project's hooks.json with a group for each of these events."""
    folder = scene.folder / ".codex"
    folder.mkdir()
    (folder / "hooks.json").write_text(json.dumps({"hooks": {name: [one] for name, one in events.items()}}))
    agent = scene.run("--name=files", f"--hooks={folder / 'hooks.json'}")  # recognised by its folder
    await agent.initialize()
    return agent


async def test_a_guard_denies_by_exit_code_with_a_reason_on_standard_error(scene: Scene) -> None:
    guard = "jq -r .tool_input.command | grep -q 'rm -rf' && { echo 'no rm -rf' >&2; exit 2; }; exit 0"
    agent = await begun(scene, PreToolUse=group(guard, "^Bash$"))
    assert "no rm -rf" in refused(await agent.ask(call(1, "bash", command="cd /; rm -rf .")))
    assert text_of(await agent.ask(call(2, "bash", command="ls"))) == "ran bash"
    assert text_of(await agent.ask(call(3, "echo", text="rm -rf"))) == '{"text": "rm -rf"}'
    assert len(scene.calls_received()) == 2


async def test_a_guard_of_patches_denies_a_servers_write(scene: Scene) -> None:
    guard = "jq -r .tool_input.command | grep -q 'File: .*[.]env$' && { echo 'no .env' >&2; exit 2; }; exit 0"
    agent = await begun(scene, PreToolUse=group(guard, "Edit|Write"))
    assert "no .env" in refused(await agent.ask(call(1, "write_file", path="a/.env", content="X=1")))
    assert text_of(await agent.ask(call(2, "write_file", path="a/b", content="File: a"))) == "ran write_file"


async def test_a_rewritten_patch_cannot_be_sent_so_the_call_is_refused(scene: Scene) -> None:
    answer = {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"command": "*** Begin"}}
    agent = await begun(scene, PreToolUse=group(scene.prints({"hookSpecificOutput": answer}), "apply_patch"))
    assert "they are a patch, and this tool takes none" in refused(
        await agent.ask(call(1, "write_file", path="a", content="x"))
    )
    assert scene.calls_received() == []


async def test_allow_with_updated_input_replaces_the_arguments(scene: Scene) -> None:
    answer = {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"a": 2}}
    agent = await begun(scene, PreToolUse=group(scene.prints({"hookSpecificOutput": answer}), "mcp__files__echo"))
    assert text_of(await agent.ask(call(1, "echo", a=1, b=1))) == '{"a": 2}'


async def test_a_hook_after_a_call_comments_or_replaces_and_does_not_run_after_a_failed_one(scene: Scene) -> None:
    comment = scene.prints({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "seen"}})
    block = scene.prints({"decision": "block", "reason": "lint first"})
    agent = await begun(
        scene, PostToolUse=group(f'if test "$(jq -r .tool_name)" = mcp__files__echo; then {comment}; else {block}; fi')
    )
    result = (await agent.ask(call(1, "echo", a=1)))["result"]
    assert [block["text"] for block in result["content"]] == ['{"a": 1}', "seen"]
    assert text_of(await agent.ask(call(2, "bash", command="ls"))) == "lint first"
    assert (await agent.ask(call(3, "reply", result=FAILED)))["result"] == FAILED


async def test_output_that_codex_does_not_accept_is_a_failure_and_the_call_goes_on(scene: Scene) -> None:
    ask = scene.prints({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask"}})
    agent = await begun(scene, PreToolUse=group(ask))
    assert text_of(await agent.ask(call(1, "bash"))) == "ran bash"
    assert 'gave "permissionDecision": "ask", which Codex does not accept' in agent.standard_error()


async def test_the_tables_of_a_config_toml_run(scene: Scene) -> None:
    path = scene.file(
        "config.toml",
        "model = 'x'\n[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = 'command'\n"
        "command = 'echo no >&2; exit 2'\n",
    )
    agent = scene.run(f"--hooks=codex={path}")
    await agent.initialize()
    assert refused(await agent.ask(call(1, "bash"))).endswith(": no")
