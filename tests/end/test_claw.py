"""claw-code's settings files, and the example of its hooks page, in front of a real process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests.end.agent import HOOKPROXY, Agent, Json, Scene, call, request, text_of

PAGE: Final = r"""
{
"hooks": {
"PreToolUse": [
"if echo \"$HOOK_TOOL_INPUT\" | grep -q 'rm -rf'; then echo 'Blocked: destructive command'; exit 2; fi"
]
}
}
"""
"""The page's example, unchanged, `.claude/settings.json`; only its indentation is lost."""

LAYOUT: Final = """\
[tool output]

Hook feedback:
[pre hook message]

Hook feedback:
[post hook message]"""
"""What "the output becomes if both hooks provide feedback"; the page's rendering has lost the empty lines."""


def settings(scene: Scene, text: str) -> Path:
    path = scene.folder / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text(text)
    return path


def hooks(scene: Scene, dialect: str = "claw", **events: object) -> str:
    """`--hooks` with a settings file of these events."""
    return f"--hooks={dialect}={settings(scene, json.dumps({'hooks': events}))}"


async def begun(scene: Scene, *options: str, env: dict[str, str] | None = None) -> Agent:
    agent = scene.run("--name=lean", *options, env=env)
    await agent.initialize()
    return agent


def expected_result(*texts: str, failed: bool = False) -> Json:
    """The result that the test's server returns."""
    return {"content": [{"type": "text", "text": text} for text in texts], **({"isError": True} if failed else {})}


# --- the example ---


async def test_the_example_of_the_page_blocks_a_destructive_command_and_no_other(scene: Scene) -> None:
    agent = await begun(scene, f"--hooks=claw={settings(scene, PAGE)}")
    allowed = await agent.ask(call(1, "bash", command="ls"))
    assert allowed["result"] == expected_result("ran bash")
    blocked = await agent.ask(call(2, "bash", command="cd /; rm -rf *"))
    assert blocked["result"].keys() == {"content", "isError"}
    assert blocked["result"]["isError"] is True
    assert text_of(blocked).endswith(": Blocked: destructive command")
    assert [one["params"]["arguments"] for one in scene.calls_received()] == [{"command": "ls"}]
    assert agent.reports() == ""


async def test_the_example_of_the_page_sees_through_spellings_of_a_command(scene: Scene) -> None:
    agent = await begun(scene, f"--hooks=claw={settings(scene, PAGE)}")
    line = rb'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"bash","arguments":%b}}'
    line %= rb'{"command":"rm\u0020-rf x"}'
    await agent.send(line + b"\n")
    assert "Blocked: destructive command" in text_of(await agent.answer(1))
    assert scene.calls_received() == []


async def test_outside_of_its_folder_the_example_may_be_lime_s_as_well_so_that_the_person_must_choose(
    scene: Scene,
) -> None:
    path = settings(scene, PAGE)
    assert scene.complete([HOOKPROXY, "run", f"--hooks={path}", "--", "true"]).returncode == 0
    ended = scene.complete([HOOKPROXY, "run", f"--hooks={path.rename(scene.folder / 'settings.json')}", "--", "true"])
    assert ended.returncode == 2
    assert b"could be a hook file of claw or lime" in ended.stderr


# --- feedback ---


async def test_feedback_follows_the_output_as_the_page_shows(scene: Scene) -> None:
    option = hooks(scene, PreToolUse=["echo '[pre hook message]'"], PostToolUse=["echo '[post hook message]'"])
    agent = await begun(scene, option)
    answer = await agent.ask(call(1, "reply", result=expected_result("[tool output]")))
    assert answer["result"].keys() == {"content"}
    texts = [block["text"] for block in answer["result"]["content"]]
    assert texts[0] == "[tool output]"
    assert "\n\n".join(texts) == LAYOUT


async def test_a_result_without_feedback_is_byte_for_byte_the_server_s(scene: Scene) -> None:
    agent = await begun(scene, hooks(scene, PreToolUse=["true"], PostToolUse=["cat >/dev/null"]))
    await agent.send(call(1, "raw", text='{"jsonrpc":"2.0", "id":1,"result":{"content":[ ],"n":1.0}}\n'))
    assert await agent.line() == b'{"jsonrpc":"2.0", "id":1,"result":{"content":[ ],"n":1.0}}'


async def test_a_post_hook_that_denies_marks_the_result_as_an_error(scene: Scene) -> None:
    agent = await begun(scene, hooks(scene, PreToolUse=["echo before"], PostToolUse=["echo 'a secret!'; exit 2"]))
    result = (await agent.ask(call(1, "reply", result=expected_result("output"))))["result"]
    assert result["isError"] is True
    assert [block["text"] for block in result["content"]] == [
        "output",
        "Hook feedback:\nbefore\n\nHook feedback (denied):\na secret!",
    ]


async def test_a_post_hook_that_denies_also_comments_on_a_json_rpc_error(scene: Scene) -> None:
    agent = await begun(scene, hooks(scene, PostToolUse=["echo no; exit 2"]))
    error = (await agent.ask(call(1, "error", error={"code": -32602, "message": "Unknown tool"})))["error"]
    assert error["code"] == -32602
    assert error["message"].startswith("Unknown tool")
    assert "Hook feedback (denied):\nno" in error["message"]


async def test_json_on_standard_output_is_plain_feedback(scene: Scene) -> None:
    answer = '{"decision":"block","reason":"R"}'
    agent = await begun(scene, hooks(scene, PreToolUse=[scene.prints(answer)]))
    assert text_of(await agent.ask(call(1, "bash"))) == f"ran bash\nHook feedback:\n{answer}"
    assert "claw@current reads it" in agent.standard_error()


# --- exit codes ---


@pytest.mark.parametrize(
    ("command", "failure"),
    [
        ("echo half; echo broken >&2; exit 1", "exited with status 1: broken"),
        ("no-such-command-here", "exited with status 127"),
        ("kill -9 $$", "was ended by signal SIGKILL"),
    ],
)
async def test_any_other_end_is_a_warning_and_the_call_goes_on(scene: Scene, command: str, failure: str) -> None:
    agent = await begun(scene, hooks(scene, PreToolUse=[command], PostToolUse=[command]))
    assert (await agent.ask(call(1, "bash")))["result"] == expected_result("ran bash")
    assert agent.standard_error().count(failure) == 2


async def test_on_failure_makes_a_warning_a_denial(scene: Scene) -> None:
    agent = await begun(scene, scene.config('on_failure = "deny"\n'), hooks(scene, PreToolUse=["exit 1"]))
    assert "exited with status 1" in text_of(await agent.ask(call(1, "bash")))
    assert scene.calls_received() == []


async def test_after_a_denial_the_other_hooks_are_skipped(scene: Scene) -> None:
    wrong = scene.gate("wrong")
    commands = ["echo noted", "echo no; exit 2", wrong.report]
    agent = await begun(scene, hooks(scene, PreToolUse=commands, PostToolUse=[wrong.report]))
    answer = text_of(await agent.ask(call(1, "bash")))
    assert "no\n\nHook feedback:\nnoted" in answer
    assert not wrong.visited
    assert scene.calls_received() == []


async def test_hooks_run_one_after_another(scene: Scene) -> None:
    first, second = scene.gate("first"), scene.gate("second")
    agent = await begun(scene, hooks(scene, PreToolUse=[f"{first.script}; echo 1", f"{second.report}; echo 2"]))
    await agent.send(call(1, "bash"))
    await first.reached()
    assert not second.visited
    first.open()
    await second.reached()
    assert text_of(await agent.answer(1)) == "ran bash\nHook feedback:\n1\n\nHook feedback:\n2"


# --- what hooks get ---

RECORD: Final = """
cat >"$HOOK_EVENT.stdin"
printf '%s|' "$HOOK_EVENT" "$HOOK_TOOL_NAME" "$HOOK_TOOL_INPUT" "$HOOK_TOOL_IS_ERROR" "${HOOK_TOOL_OUTPUT-unset}" \\
    "${CLAUDE_PROJECT_DIR-unset}" >"$HOOK_EVENT.env"
"""


async def test_hooks_get_everything_that_the_page_lists(scene: Scene) -> None:
    record = scene.file("record.sh", RECORD)
    agent = await begun(
        scene,
        hooks(scene, PreToolUse=[f"sh '{record}'"], PostToolUse=[f"sh '{record}'"]),
        env={"CLAUDE_PROJECT_DIR": "/elsewhere"},
    )
    await agent.ask(call(1, "bash", command="ls"))
    ls = '{"command":"ls"}'
    before = {"tool_name": "bash", "tool_input": {"command": "ls"}, "tool_input_json": ls}
    project = scene.folder
    assert json.loads((project / "PreToolUse.stdin").read_text()) == {
        "hook_event_name": "PreToolUse",
        **before,
        "tool_output": None,
        "tool_result_is_error": False,
    }
    assert (project / "PreToolUse.env").read_text() == f"PreToolUse|bash|{ls}|0|unset|unset|"
    assert json.loads((project / "PostToolUse.stdin").read_text()) == {
        "hook_event_name": "PostToolUse",
        **before,
        "tool_output": "ran bash",
        "tool_result_is_error": False,
    }
    assert (project / "PostToolUse.env").read_text() == f"PostToolUse|bash|{ls}|0|ran bash|unset|"


@pytest.mark.parametrize(
    ("tool", "arguments", "output"),
    [
        ("reply", {"result": expected_result("it broke", "twice", failed=True)}, "it broke\ntwice"),
        ("error", {"error": {"code": -32602, "message": "no"}}, "MCP error -32602: no"),
    ],
)
async def test_post_hooks_see_failed_calls_as_failed(scene: Scene, tool: str, arguments: Json, output: str) -> None:
    record = scene.file("record.sh", RECORD)
    agent = await begun(scene, hooks(scene, PostToolUse=[f"sh '{record}'"]))
    await agent.ask(request(1, "tools/call", name=tool, arguments=arguments))
    recorded = json.loads((scene.folder / "PostToolUse.stdin").read_text())
    assert [recorded[key] for key in ("hook_event_name", "tool_output", "tool_result_is_error")] == [
        "PostToolUse",
        output,
        True,
    ]
    env = (scene.folder / "PostToolUse.env").read_text()
    assert env.startswith(f"PostToolUse|{tool}|")
    assert env.endswith(f"|1|{output}|unset|")


async def test_the_shell_is_not_a_login_shell_whose_profile_would_print(scene: Scene) -> None:
    (Path(scene.env["HOME"]) / ".profile").write_text("echo Welcome\n")
    agent = await begun(scene, hooks(scene, PreToolUse=["if true; then echo mine; fi"]))
    assert text_of(await agent.ask(call(1, "bash"))) == "ran bash\nHook feedback:\nmine"


async def test_relative_commands_start_in_the_project(scene: Scene) -> None:
    guard = scene.folder / "guard.sh"
    guard.write_text("#!/bin/sh\necho stop; exit 2\n")
    guard.chmod(0o700)
    agent = await begun(scene, hooks(scene, PreToolUse=["./guard.sh"]))
    assert text_of(await agent.ask(call(1, "bash"))) == "Blocked by the PreToolUse hook guard.sh: stop"


async def test_an_input_too_long_for_a_variable_is_whole_on_standard_input(scene: Scene) -> None:
    check = 'cat >document; printf %s "$HOOK_TRUNCATED" >truncated'
    config = scene.config('on_cut_input = "allow"\n')
    agent = await begun(scene, config, hooks(scene, PreToolUse=[check]))
    await agent.ask(call(1, "echo", text="x" * 200_000))
    assert len(json.loads((scene.folder / "document").read_text())["tool_input"]["text"]) == 200_000
    assert (scene.folder / "truncated").read_text() == "1"


@pytest.mark.parametrize("length", [100_000, 140_000])
@pytest.mark.parametrize("dialect", ["claw", "claw@current"])
async def test_a_call_whose_input_does_not_fit_into_the_variable_is_refused(
    scene: Scene, dialect: str, length: int
) -> None:
    options = hooks(scene, dialect, PreToolUse=["true"])
    agent = await begun(scene, options)
    text = text_of(await agent.ask(call(1, "echo", text="x" * length, command="rm -rf /")))
    assert ("too long for HOOK_TOOL_INPUT. The tool was not run. Send less" in text) == (length > 131_072)
    assert len(scene.calls_received()) == (length < 131_072)


async def test_what_guards_look_at_comes_first_in_a_variable_that_is_cut(scene: Scene) -> None:
    guard = """if echo "$HOOK_TOOL_INPUT" | grep -q 'rm -rf'; then echo 'destructive'; exit 2; fi"""
    config = scene.config('on_cut_input = "allow"\n')
    agent = await begun(scene, config, hooks(scene, PreToolUse=[guard]))
    for number, name in enumerate(("command", "file_path", "path", "url", "query")):
        text = text_of(await agent.ask(call(number, "bash", text="x" * 140_000, **{name: "rm -rf /"})))
        assert "destructive" in text
    assert scene.calls_received() == []
    await agent.ask(call(9, "bash", text="x" * 140_000, command="ls"))
    [received] = scene.calls_received()
    assert list(received["params"]["arguments"]) == ["text", "command"]  # as the agent sent them


# --- claw@current ---


def current(scene: Scene, **events: object) -> str:
    return hooks(scene, "claw@current", **events)


def specific(**members: object) -> Json:
    return {"systemMessage": "for people", "hookSpecificOutput": members}


async def test_the_variant_reads_json(scene: Scene) -> None:
    deny = scene.prints({"decision": "block", "reason": "not that one"})
    rewrite = scene.prints(specific(permissionDecision="allow", updatedInput={"path": "/safe"}))
    groups = [
        {"matcher": "BASH, other", "hooks": [{"type": "command", "command": deny}]},
        {"matcher": "ec*", "hooks": [{"type": "command", "command": rewrite}]},
    ]
    agent = await begun(scene, current(scene, PreToolUse=groups))
    assert "not that one" in text_of(await agent.ask(call(1, "bash")))
    assert text_of(await agent.ask(call(2, "echo", path="/etc"))) == '{"path": "/safe"}'
    assert "for people" in agent.standard_error()


async def test_the_variant_pushes_an_answer_without_a_text_as_it_is(scene: Scene) -> None:
    agent = await begun(scene, current(scene, PreToolUse=["echo '{}'"]))
    assert text_of(await agent.ask(call(1, "bash"))) == "ran bash\nHook feedback:\n{}"


@pytest.mark.parametrize("command", ["exit 1", "exit 127", "kill -9 $$"])
async def test_in_the_variant_any_failure_denies_a_call(scene: Scene, command: str) -> None:
    agent = await begun(scene, current(scene, PreToolUse=[command]))
    answer = await agent.ask(call(1, "bash"))
    assert answer["result"]["isError"] is True
    assert scene.calls_received() == []


async def test_in_the_variant_on_failure_can_let_a_call_pass(scene: Scene) -> None:
    agent = await begun(scene, scene.config('on_failure = "allow"\n'), current(scene, PreToolUse=["exit 1"]))
    assert (await agent.ask(call(1, "bash")))["result"] == expected_result("ran bash")


async def test_in_the_variant_failures_are_for_their_own_event(scene: Scene) -> None:
    wrong = scene.gate("wrong")
    record = scene.file("record.sh", RECORD)
    agent = await begun(
        scene, current(scene, PostToolUse=[wrong.report], PostToolUseFailure=[f"sh '{record}'; echo try again; exit 2"])
    )
    result = (await agent.ask(call(1, "reply", result=expected_result("it broke", failed=True))))["result"]
    assert [block["text"] for block in result["content"]] == ["it broke", "Hook feedback (error):\ntry again"]
    recorded = json.loads((scene.folder / "PostToolUseFailure.stdin").read_text())
    assert (recorded["tool_error"], recorded["tool_result_is_error"]) == ("it broke", True)
    assert "tool_output" not in recorded
    assert not wrong.visited


async def test_in_the_variant_a_post_hook_that_fails_marks_the_result(scene: Scene) -> None:
    agent = await begun(scene, current(scene, PostToolUse=["echo lint >&2; exit 1"]))
    result = (await agent.ask(call(1, "bash")))["result"]
    assert result["isError"] is True
    assert result["content"][1]["text"].startswith("Hook feedback (error):\n")
    assert "exited with status 1: lint" in result["content"][1]["text"]


async def test_in_the_variant_continue_false_also_denies_the_other_pending_calls(scene: Scene) -> None:
    gate = scene.gate("held")
    stop = scene.prints({"continue": False, "reason": "enough"})
    groups = [
        {"matcher": "echo", "hooks": [{"command": gate.script}]},
        {"matcher": "bash", "hooks": [{"command": stop}]},
    ]
    agent = await begun(scene, current(scene, PreToolUse=groups))
    await agent.send(call(1, "echo"))
    await gate.reached()
    await agent.send(call(2, "bash"))
    assert "enough" in text_of(await agent.answer(1))
    assert "enough" in text_of(await agent.answer(2))
    assert scene.calls_received() == []


async def test_the_variant_s_file_says_by_which_name_it_is_read(scene: Scene) -> None:
    entry = {"matcher": "x", "hooks": [{"type": "command", "command": "./guard.sh"}]}
    path = settings(scene, json.dumps({"hooks": {"PreToolUse": [entry]}}))
    ended = scene.complete([HOOKPROXY, "run", f"--hooks=claw={path}", "--", "true"])
    assert ended.returncode == 2  # none of its hooks would run
    assert b"claw@current and claude read matcher groups" in ended.stderr
    assert f"name that: --hooks claw@current={path}".encode() in ended.stderr
