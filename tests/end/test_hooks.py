"""Hooks as their authors write them, with real shells, in front of a real process: what server and model get."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from tests.end.agent import (
    DISCOVER,
    PATIENCE,
    SERVER,
    STATELESS,
    Agent,
    Json,
    Scene,
    call,
    ends,
    group,
    line_of,
    refused,
    request,
    specific,
    stateless_call,
    text_of,
)

NAME = "--name=lean"


def pre(**members: object) -> Json:
    return specific("PreToolUse", **members)


def post(**members: object) -> Json:
    return specific("PostToolUse", **members)


async def begun(scene: Scene, *options: str, server: Sequence[str] = SERVER) -> Agent:
    """A run after its handshake."""
    agent = scene.run(NAME, *options, server=server)
    await agent.initialize()
    return agent


# --- blocking ---


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo 'no, never' >&2; exit 2", "no, never"),
        ("cat >/dev/null; echo 'no, never' >&2; exit 2", "no, never"),
        ('echo \'{"decision":"block","reason":"old style"}\'', "old style"),
        ('echo \'{"continue":false,"stopReason":"all stop"}\'', "all stop"),
        ("exit 2", "gave no reason"),
    ],
)
async def test_a_hook_that_blocks_keeps_the_call_from_the_server_and_its_reason_reaches_the_model(
    scene: Scene, command: str, reason: str
) -> None:
    guard = scene.file("guard.sh", f"#!/bin/sh\n{command}\n", mode=0o700)
    agent = await begun(scene, scene.hooks(PreToolUse=guard, PostToolUse="exit 2", PostToolUseFailure="exit 2"))
    text = refused(await agent.ask(call(1, "echo")))
    assert text.startswith("Blocked by the PreToolUse hook guard.sh")
    assert reason in text
    assert scene.calls_received() == []


async def test_a_json_denial_wins_over_exit_codes_and_its_reason_is_reported(scene: Scene) -> None:
    denial = scene.prints(pre(permissionDecision="deny", permissionDecisionReason='é "quoted"\nsecond line'))
    agent = await begun(scene, scene.hooks(PreToolUse=f"{denial}; exit 1"))
    assert 'é "quoted"\nsecond line' in refused(await agent.ask(call(1, "echo")))
    assert scene.calls_received() == []


async def test_in_the_stateless_era_a_refusal_says_that_it_is_complete(scene: Scene) -> None:
    agent = scene.run(scene.hooks(PreToolUse="exit 2"))
    result = (await agent.ask(stateless_call(1, "echo")))["result"]
    assert result.keys() == {"resultType", "content", "isError"}
    assert result["resultType"] == "complete"


async def test_a_refused_task_is_an_error_because_a_result_would_not_be_a_task(scene: Scene) -> None:
    agent = await begun(scene, scene.hooks(PreToolUse="echo no >&2; exit 2"))
    asked = request(1, "tools/call", name="echo", arguments={}, task={"ttl": 1000})
    error = (await agent.ask(asked))["error"]
    assert "no" in error["message"]
    assert scene.calls_received() == []


async def test_a_hook_that_stops_everything_also_denies_the_other_pending_calls(scene: Scene) -> None:
    gate = scene.gate("held")
    stop = scene.prints({"continue": False, "stopReason": "enough"})
    groups = [group(gate.script, matcher="mcp__lean__echo"), group(stop, matcher="mcp__lean__other")]
    agent = await begun(scene, scene.hooks(PreToolUse=groups))
    await agent.send(call(1, "echo"))
    await gate.reached()
    await agent.send(call(2, "other"))
    assert "enough" in refused(await agent.answer(1))
    assert "enough" in refused(await agent.answer(2))
    assert scene.calls_received() == []


# --- rewriting ---


async def test_a_rewrite_replaces_the_arguments_and_nothing_else(scene: Scene) -> None:
    rewrite = scene.prints(pre(permissionDecision="allow", updatedInput={"path": "/safe"}))
    agent = await begun(scene, scene.hooks(PreToolUse=rewrite))
    line = (
        b'{ "id" : 1 ,"jsonrpc":"2.0", "x-more":[1.0,1e2] ,"method":"tools/call",'
        b'"params": {"_meta":{"a":1.50}, "name":"echo" , "arguments" : {"path":"/etc"} , "extra":null} }\n'
    )
    await agent.send(line)
    await agent.answer(1)
    assert scene.received()[-1] + b"\n" == line.replace(b'{"path":"/etc"}', b'{"path": "/safe"}')


async def test_numbers_keep_their_spelling_in_arguments_documents_and_rewrites(scene: Scene) -> None:
    numbers = '{"a":1e400,"b":0.10,"c":1180591620717411303424,"d":-0,"e":1E+2,"f":0.1000000000000000055511151231257827}'
    seen = scene.folder / "seen"
    copy = scene.prints('{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":' + numbers + "}}")
    groups = [group(f"cat >'{seen}'", matcher="mcp__lean__other"), group(copy, matcher="mcp__lean__echo")]
    agent = await begun(scene, scene.hooks(PreToolUse=groups))
    for tool, arguments in (("other", numbers), ("echo", "{}")):
        text = '{"jsonrpc":"2.0","id":"%s","method":"tools/call","params":{"name":"%s","arguments":%s}}\n'
        await agent.send((text % (tool, tool, arguments)).encode())
        await agent.answer(tool)
        assert f'"arguments":{numbers}'.encode() in scene.received()[-1]
    assert f'"tool_input":{numbers}' in seen.read_text()


async def test_arguments_that_were_absent_are_added_by_a_rewrite(scene: Scene) -> None:
    agent = await begun(scene, scene.hooks(PreToolUse=scene.prints(pre(updatedInput={"a": 1}))))
    await agent.ask(request(1, "tools/call", name="echo"))
    assert scene.calls_received()[0]["params"] == {"name": "echo", "arguments": {"a": 1}}


async def test_a_rewrite_printed_over_many_lines_arrives_on_one(scene: Scene) -> None:
    rewrite = json.dumps(pre(updatedInput={"text": "a\nb", "list": [1, 2]}), indent=4).replace("\n", "\r\n")
    agent = await begun(scene, scene.hooks(PreToolUse=scene.prints(rewrite)))
    assert json.loads(text_of(await agent.ask(call(1, "echo")))) == {"text": "a\nb", "list": [1, 2]}
    assert b"\r" not in scene.received()[-1]


async def test_the_result_hook_gets_the_arguments_that_ran(scene: Scene) -> None:
    recorded = scene.folder / "recorded"
    rewrite = scene.prints(pre(updatedInput={"a": 2}))
    agent = await begun(scene, scene.hooks(PreToolUse=rewrite, PostToolUse=f"cat >'{recorded}'"))
    await agent.ask(call(1, "echo", a=1))
    assert json.loads(recorded.read_text())["tool_input"] == {"a": 2}


@pytest.mark.parametrize(
    ("rewritten", "field", "rule"),
    [
        ({"path": 7}, "path", "deny"),
        ({"n": 1}, "path", "deny"),
        ({"path": "x", "n": "one"}, "n", "allow"),
        ({"path": "x", "n": "one"}, "n", "dialect"),
    ],
)
async def test_a_rewrite_that_does_not_fit_the_listed_schema_is_a_failure_that_names_the_field(
    scene: Scene, rewritten: Json, field: str, rule: str
) -> None:
    hooks = scene.hooks(PreToolUse=scene.prints(pre(updatedInput=rewritten)))
    agent = await begun(scene, scene.config(f'on_failure = "{rule}"\n'), hooks)
    await agent.ask(request("list", "tools/list"))
    answer = await agent.ask(call(1, "typed", path="as it was"))
    if rule == "deny":
        assert field in refused(answer)
        assert scene.calls_received() == []
    else:
        assert scene.calls_received()[0]["params"]["arguments"] == {"path": "as it was"}
    assert field in agent.standard_error()


async def test_a_rewrite_that_fits_the_listed_schema_is_applied(scene: Scene) -> None:
    agent = await begun(scene, scene.hooks(PreToolUse=scene.prints(pre(updatedInput={"path": "x", "n": 1}))))
    await agent.ask(request("list", "tools/list"))
    await agent.ask(call(1, "typed", path="y"))
    assert scene.calls_received()[0]["params"]["arguments"] == {"path": "x", "n": 1}


async def test_a_denial_beats_a_rewrite_and_nothing_is_forwarded(scene: Scene) -> None:
    rewrite = scene.prints(pre(permissionDecision="allow", updatedInput={"a": 1}))
    groups = [group("echo stop >&2; exit 2"), group(rewrite)]
    agent = await begun(scene, scene.hooks(PreToolUse=groups))
    assert "stop" in refused(await agent.ask(call(1, "echo")))
    assert scene.calls_received() == []


async def test_later_files_see_what_earlier_files_rewrote_and_hooks_of_one_file_do_not(scene: Scene) -> None:
    rewrite = scene.prints(pre(updatedInput={"a": 2}))
    beside, after = scene.folder / "beside", scene.folder / "after"
    first = scene.hooks(PreToolUse=[group(rewrite), group(f"cat >'{beside}'")])
    agent = await begun(scene, first, scene.hooks(PreToolUse=f"cat >'{after}'"))
    await agent.ask(call(1, "echo", a=1))
    assert json.loads(beside.read_text())["tool_input"] == {"a": 1}
    assert json.loads(after.read_text())["tool_input"] == {"a": 2}


# --- asking ---


@pytest.mark.parametrize("decision", ["ask", "defer"])
async def test_a_hook_that_asks_denies_if_no_person_can_be_asked(scene: Scene, decision: str) -> None:
    ask = scene.prints(pre(permissionDecision=decision, permissionDecisionReason="is it safe"))
    agent = await begun(scene, scene.hooks(PreToolUse=ask))
    text = refused(await agent.ask(call(1, "echo")))
    assert "is it safe" in text
    assert "requires the user's approval" in text
    assert "cannot ask" in text
    assert scene.calls_received() == []


@pytest.mark.parametrize(("rule", "passes"), [("allow", True), ("deny", False), ("elicit", False)])
async def test_on_ask_decides_what_happens_if_a_person_should_be_asked(scene: Scene, rule: str, passes: bool) -> None:
    ask = scene.prints(pre(permissionDecision="ask"))
    log = scene.folder / "audit.jsonl"
    agent = await begun(scene, scene.config(f'on_ask = "{rule}"\n'), f"--audit={log}", scene.hooks(PreToolUse=ask))
    answer = await agent.ask(call(1, "echo"))
    assert answer["result"].get("isError", False) is not passes
    assert len(scene.calls_received()) == passes
    assert json.loads(log.read_text())["decision"] == ("asked-allow" if passes else "asked-deny")


# --- commenting ---


async def test_feedback_from_before_and_after_the_call_follows_the_tools_own_content(scene: Scene) -> None:
    hooks = scene.hooks(
        PreToolUse=scene.prints(pre(additionalContext="before é")),
        PostToolUse=scene.prints({**post(additionalContext="after"), "decision": "block", "reason": "look again"}),
    )
    agent = await begun(scene, hooks)
    result = (await agent.ask(call(1, "echo", a=1)))["result"]
    assert [block["text"] for block in result["content"]] == ['{"a": 1}', "before é\n\nlook again\n\nafter"]
    assert "isError" not in result


async def test_standard_error_of_a_result_hook_that_exits_2_reaches_the_model(scene: Scene) -> None:
    agent = await begun(scene, scene.hooks(PostToolUse="echo 'check the units' >&2; exit 2"))
    assert text_of(await agent.ask(call(1, "echo"))) == "{}\ncheck the units"


@pytest.mark.parametrize("command", ["echo plain", "echo aside >&2", "true", "echo '[1]'", "echo '\"text\"'"])
async def test_a_hook_without_feedback_leaves_the_result_unchanged(scene: Scene, command: str) -> None:
    agent = await begun(scene, scene.hooks(PreToolUse=command, PostToolUse=command))
    text = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"reply","arguments":{"result":{}}}}\n'
    await agent.send(text)
    assert await agent.line() == b'{"jsonrpc": "2.0", "id": 1, "result": {}}'
    assert scene.received()[-1] + b"\n" == text
    assert agent.reports() == ""


@pytest.mark.parametrize("key", ["updatedMCPToolOutput", "updatedToolOutput"])
async def test_a_hook_replaces_the_output(scene: Scene, key: str) -> None:
    blocks = [{"type": "text", "text": "instead"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}]
    agent = await begun(scene, scene.hooks(PostToolUse=scene.prints(post(**{key: blocks}, additionalContext="and"))))
    result = (await agent.ask(call(1, "echo", secret="s3cret")))["result"]
    assert result["content"] == [*blocks, {"type": "text", "text": "and"}]


async def test_a_replacement_that_is_a_text_becomes_a_block(scene: Scene) -> None:
    agent = await begun(scene, scene.hooks(PostToolUse=scene.prints(post(updatedMCPToolOutput="instead"))))
    result = (await agent.ask(call(1, "echo")))["result"]
    assert result["content"] == [{"type": "text", "text": "instead"}]


async def test_a_replacement_leaves_no_secret_in_structured_content(scene: Scene) -> None:
    agent = await begun(scene, scene.hooks(PostToolUse=scene.prints(post(updatedMCPToolOutput=[]))))
    await agent.ask(request("list", "tools/list"))
    output = {"content": [{"type": "text", "text": "s3cret"}], "structuredContent": {"n": "s3cret"}}
    answer = await agent.ask(call(1, "closed", result=output))
    assert "s3cret" not in json.dumps(answer)


FAILED = {"content": [{"type": "text", "text": "it broke"}, {"type": "text", "text": "twice"}], "isError": True}


async def test_a_failed_result_is_for_failure_hooks_alone(scene: Scene) -> None:
    recorded, wrong = scene.folder / "recorded", scene.gate("wrong")
    comment = scene.prints(specific("PostToolUseFailure", additionalContext="try again later"))
    hooks = scene.hooks(PostToolUse=wrong.report, PostToolUseFailure=f"cat >'{recorded}'; {comment}")
    agent = await begun(scene, hooks)
    result = (await agent.ask(call(1, "reply", result=FAILED)))["result"]
    assert result["isError"] is True
    assert [block["text"] for block in result["content"]] == ["it broke", "twice", "try again later"]
    document = json.loads(recorded.read_text())
    assert document["error"] == "it broke\ntwice"
    assert document["is_interrupt"] is False
    assert not wrong.visited


@pytest.mark.parametrize(
    ("error", "message", "data"),
    [
        ({"code": -32602, "message": "No such file"}, "No such file. use ls", {"hook_feedback": "use ls"}),
        ({"code": 7, "message": "Done!", "data": {"a": 1.50}}, "Done! use ls", {"a": 1.5, "hook_feedback": "use ls"}),
        ({"code": 7, "message": "Odd", "data": [1]}, "Odd. use ls", [1]),
    ],
)
async def test_a_json_rpc_error_stays_one_with_the_comment_in_message_and_data(
    scene: Scene, error: Json, message: str, data: object
) -> None:
    recorded = scene.folder / "recorded"
    agent = await begun(scene, scene.hooks(PostToolUseFailure=f"cat >'{recorded}'; echo 'use ls' >&2; exit 2"))
    answer = await agent.ask(call(1, "error", error=error))
    assert answer["error"] == {"code": error["code"], "message": message, "data": data}
    more = f'\n{{"data":{json.dumps(error["data"])}}}' if "data" in error else ""
    assert json.loads(recorded.read_text())["error"] == f"MCP error {error['code']}: {error['message']}{more}"


async def test_feedback_from_before_the_call_reaches_the_model_even_if_the_call_fails(scene: Scene) -> None:
    agent = await begun(scene, scene.hooks(PreToolUse=scene.prints(pre(additionalContext="mind the gap"))))
    assert text_of(await agent.ask(call(1, "reply", result=FAILED))).endswith("\nmind the gap")
    answer = await agent.ask(call(2, "error", error={"code": 1, "message": "no"}))
    assert answer["error"]["data"] == {"hook_feedback": "mind the gap"}


async def test_feedback_from_before_the_call_goes_with_a_refusal_too(scene: Scene) -> None:
    groups = [group(scene.prints(pre(additionalContext="mind the gap"))), group("echo no >&2; exit 2")]
    agent = await begun(scene, scene.hooks(PreToolUse=groups))
    text = refused(await agent.ask(call(1, "echo")))
    assert "no" in text
    assert text.endswith("mind the gap")


# --- structured content ---


STRUCTURED = {"content": [{"type": "text", "text": '{"n": 1}'}], "structuredContent": {"n": 1}}
COMMENT = post(additionalContext="round up")


async def commented(scene: Scene, tool: str, result: Json, *options: str, listed: bool = True) -> tuple[Json, Agent]:
    agent = await begun(scene, *options, scene.hooks(PostToolUse=scene.prints(COMMENT), PostToolUseFailure="exit 0"))
    if listed:
        await agent.ask(request("list", "tools/list"))
    delivered: Json = (await agent.ask(call(1, tool, result=result)))["result"]
    return delivered, agent


@pytest.mark.parametrize("tool", ["open", "reply"])  # the second is listed without an outputSchema
async def test_feedback_joins_structured_content_where_the_schema_is_open_or_absent(scene: Scene, tool: str) -> None:
    delivered, _ = await commented(scene, tool, STRUCTURED)
    assert delivered["structuredContent"] == {"n": 1, "hook_feedback": "round up"}
    assert delivered["content"][-1]["text"] == "round up"


@pytest.mark.parametrize(("tool", "listed"), [("closed", True), ("open", False)])
async def test_feedback_stays_out_of_structured_content_that_is_closed_or_unknown_and_this_is_reported(
    scene: Scene, tool: str, listed: bool
) -> None:
    delivered, agent = await commented(scene, tool, STRUCTURED, listed=listed)
    assert delivered["structuredContent"] == {"n": 1}
    assert delivered["content"][-1]["text"] == "round up"
    assert "feedback may be invisible" in agent.standard_error()


async def test_feedback_that_may_not_be_seen_is_reported_once_for_each_tool(scene: Scene) -> None:
    _, agent = await commented(scene, "closed", STRUCTURED)
    for number in (2, 3):
        await agent.ask(call(number, "closed", result=STRUCTURED))
    assert agent.standard_error().count("feedback may be invisible") == 1


async def test_a_failed_result_loses_structured_content_to_feedback(scene: Scene) -> None:
    comment = scene.prints(specific("PostToolUseFailure", additionalContext="round up"))
    agent = await begun(scene, scene.hooks(PostToolUseFailure=comment))
    await agent.ask(request("list", "tools/list"))
    delivered = (await agent.ask(call(1, "open", result={**STRUCTURED, "isError": True})))["result"]
    assert "structuredContent" not in delivered
    assert [block["text"] for block in delivered["content"]] == ['{"n": 1}', "round up"]


async def test_feedback_as_text_never_touches_structured_content(scene: Scene) -> None:
    delivered, _ = await commented(scene, "open", STRUCTURED, scene.config('feedback = "text"\n'))
    assert delivered["structuredContent"] == {"n": 1}
    assert delivered["content"][-1]["text"] == "round up"


async def test_strip_output_schema_takes_it_from_listings_and_structured_content_from_commented_results(
    scene: Scene,
) -> None:
    config = scene.config('feedback = "strip-output-schema"\n')
    groups = [group(scene.prints(COMMENT), matcher="mcp__lean__closed")]
    agent = await begun(scene, config, scene.hooks(PostToolUse=groups))
    tools = {tool["name"]: tool for tool in (await agent.ask(request("list", "tools/list")))["result"]["tools"]}
    assert "outputSchema" not in tools["closed"]
    assert "outputSchema" in tools["open"]
    delivered = (await agent.ask(call(1, "closed", result=STRUCTURED)))["result"]
    assert "structuredContent" not in delivered
    assert [block["text"] for block in delivered["content"]] == ['{"n": 1}', "round up"]
    untouched = (await agent.ask(call(2, "open", result=STRUCTURED)))["result"]
    assert untouched == STRUCTURED


# --- calls that continue in further requests ---


@pytest.mark.parametrize(
    ("asked", "result"),
    [
        (
            {"_meta": STATELESS},
            {"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list"}}, "requestState": "s"},
        ),
        ({"_meta": STATELESS}, {"resultType": "task", "taskId": "t", "status": "working"}),
        ({"task": {"ttl": 1}}, {"task": {"taskId": "t", "status": "working"}}),
    ],
    ids=["input_required", "task", "task of 2025"],
)
async def test_a_result_that_is_not_the_end_of_the_call_passes_and_no_result_hook_runs_for_it(
    scene: Scene, asked: Json, result: Json
) -> None:
    before, after = scene.gate("before"), scene.gate("after")
    comment = scene.prints(pre(additionalContext="a comment"))
    agent = scene.run(
        scene.hooks(PreToolUse=f"{before.report}; {comment}", PostToolUse=after.report, PostToolUseFailure=after.report)
    )
    await agent.send(request(1, "tools/call", name="reply", arguments={"result": result}, **asked))
    line = await agent.line()
    sealed = {
        name: json.loads(line)["result"][name] for name in result.keys() & {"requestState"}
    }  # by us, around theirs
    assert line == line_of({"jsonrpc": "2.0", "id": 1, "result": {**result, **sealed}}).rstrip(b"\n")
    assert all(state.startswith("hookproxy1.") for state in sealed.values())
    assert before.visited
    assert not after.visited


# --- failures ---


FAILURES: dict[str, tuple[str, Json, str]] = {
    "exit code": ("echo what is wrong >&2; exit 1", {}, "exited with status 1: what is wrong"),
    "signal": ("kill -KILL $$", {}, "was ended by signal SIGKILL"),
    "timeout": ("exec sleep 600", {"timeout": 0.2}, "timed out after 0.2 s"),
    "missing": ("/no/such/hook", {"args": []}, "could not be started: command not found: /no/such/hook"),
    "missing in a shell": ("/no/such/hook", {}, "exited with status 127"),
    "bad JSON": ("echo '{nonsense}'", {}, "printed JSON that cannot be read"),
    "wrong event": ('echo \'{"hookSpecificOutput":{"hookEventName":"Stop"}}\'', {}, "printed output for 'Stop'"),
    "wrong type": ('echo \'{"continue":"yes"}\'', {}, "printed JSON that cannot be read"),
    "duplicate keys": ('echo \'{"decision":"block","decision":"approve"}\'', {}, "printed JSON that cannot be read"),
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_failed_hook_lets_the_call_pass_as_the_document_says_and_is_reported(
    scene: Scene, failure: str
) -> None:
    command, more, text = FAILURES[failure]
    agent = await begun(scene, scene.hooks(PreToolUse=[group(command, **more)]))
    assert text_of(await agent.ask(call(1, "echo"))) == "{}"
    assert text in agent.standard_error()


@pytest.mark.parametrize("failure", ["exit code", "signal", "timeout", "missing", "bad JSON"])
async def test_a_failed_hook_that_blocks_on_failure_blocks(scene: Scene, failure: str) -> None:
    command, more, text = FAILURES[failure]
    agent = await begun(scene, scene.hooks(PreToolUse=[group(command, onFailure="block", **more)]))
    recorded = refused(await agent.ask(call(1, "echo")))
    assert text in recorded
    assert "blocking because this hook is set to block when it fails" in recorded
    assert scene.calls_received() == []


async def test_on_failure_deny_blocks_and_names_the_configuration(scene: Scene) -> None:
    agent = await begun(scene, scene.config('on_failure = "deny"\n'), scene.hooks(PreToolUse="exit 1"))
    assert 'on_failure = "deny"' in refused(await agent.ask(call(1, "echo")))


async def test_on_failure_deny_withholds_a_result_whose_hook_failed(scene: Scene) -> None:
    agent = await begun(scene, scene.config('on_failure = "deny"\n'), scene.hooks(PostToolUse="exit 1"))
    answer = await agent.ask(call(1, "echo", secret="s3cret"))
    assert "s3cret" not in json.dumps(answer)
    assert "output is withheld" in refused(answer)
    assert len(scene.calls_received()) == 1


async def test_on_failure_of_a_file_overrides_that_of_the_configuration(scene: Scene) -> None:
    file = scene.hooks(PreToolUse="exit 1").removeprefix("--hooks=claude=")
    config = scene.config(f'on_failure = "deny"\n[[use]]\nfile = "{file}"\ndialect = "claude"\non_trouble = "allow"\n')
    agent = await begun(scene, config)
    assert text_of(await agent.ask(call(1, "echo"))) == "{}"


async def test_a_timeout_ends_the_hook_with_everything_it_started(scene: Scene) -> None:
    agent = await begun(scene, scene.hooks(PreToolUse=[group("sleep 600 & sleep 601", timeout=0.2)]))
    await agent.ask(call(1, "echo"))
    await scene.empty(word="sleep")


async def test_a_hook_that_ignores_term_is_killed_after_its_grace(scene: Scene) -> None:
    stubborn = "trap '' TERM; while :; do sleep 1; done"
    agent = await begun(scene, scene.hooks(PreToolUse=[group(stubborn, timeout=1, onFailure="block")]))
    begun_at = time.monotonic()
    assert "timed out after 1 s" in refused(await agent.ask(call(1, "echo")))
    assert 1 + 2 < time.monotonic() - begun_at < 10
    await scene.empty(word="sleep")


async def test_calls_without_slow_hooks_overtake_those_with_them(scene: Scene) -> None:
    gate = scene.gate("slow")
    agent = await begun(scene, scene.hooks(PreToolUse=[group(gate.script, matcher="mcp__lean__echo")]))
    await agent.send(call(1, "echo"))
    await gate.reached()
    await agent.ask(request(2, "ping"))
    await agent.ask(call(3, "other"))
    gate.open()
    await agent.answer(1)
    assert agent.earlier_messages == []


# --- what a hook does with its input and output ---


async def test_arguments_of_300_kilobytes_reach_the_hook_whole(scene: Scene) -> None:
    recorded = scene.folder / "recorded"
    agent = await begun(scene, scene.hooks(PreToolUse=f"cat >'{recorded}'", PostToolUse="true"))
    text = "é" * 150_000
    assert json.loads(text_of(await agent.ask(call(1, "echo", text=text)))) == {"text": text}
    assert json.loads(recorded.read_text())["tool_input"] == {"text": text}


async def test_a_hook_that_never_reads_300_kilobytes_does_not_fail(scene: Scene) -> None:
    agent = await begun(scene, scene.hooks(PreToolUse="exec <&-; exit 0"))
    text = "x" * 300_000
    assert json.loads(text_of(await agent.ask(call(1, "echo", text=text)))) == {"text": text}
    assert agent.reports() == ""


async def test_a_hook_that_prints_two_megabytes_is_read_in_full(scene: Scene) -> None:
    padding = "head -c 2000000 /dev/zero | tr '\\0' ' '"
    denial = scene.prints(pre(permissionDecision="deny", permissionDecisionReason="not now"))
    agent = await begun(scene, scene.hooks(PreToolUse=f"{padding}; {padding} >&2; {denial}"))
    assert "not now" in refused(await agent.ask(call(1, "echo")))


async def test_a_long_text_of_a_hook_is_cut_where_its_document_says(scene: Scene) -> None:
    agent = await begun(scene, scene.hooks(PostToolUse=scene.prints(post(additionalContext="x" * 50_000))))
    text = text_of(await agent.ask(call(1, "echo")))
    assert "x" * 10_000 in text
    assert "x" * 10_001 not in text
    assert "40000 more characters cut" in text


async def test_a_hook_whose_child_keeps_its_output_is_over_when_it_exits(scene: Scene) -> None:
    denial = scene.prints(pre(permissionDecision="deny", permissionDecisionReason="said before"))
    agent = await begun(scene, scene.hooks(PreToolUse=f"{denial}; sleep 600 & exit 0"))
    with anyio.fail_after(30):
        assert "said before" in refused(await agent.ask(call(1, "echo")))
    (child,) = scene.running("sleep 600")
    os.kill(child, signal.SIGKILL)  # what a hook leaves behind on purpose is not ours to end
    await ends(child)


async def test_what_a_hook_prints_never_reaches_the_wire_or_the_terminal(scene: Scene) -> None:
    agent = await begun(
        scene, scene.hooks(PreToolUse="echo out; echo err >&2; if (: </dev/tty) 2>/dev/null; then exit 2; fi")
    )
    assert text_of(await agent.ask(call(1, "echo"))) == "{}"
    agent.end_input()
    assert await agent.rest() == b""
    assert agent.reports() == ""


async def test_a_python_hook_reads_the_document_and_its_variables(scene: Scene) -> None:
    script = scene.file(
        "guard.py",
        "import json, os, sys\n"
        "document = json.load(sys.stdin)\n"
        "document['variables'] = {k: v for k, v in os.environ.items() if k.startswith('CLAUDE')}\n"
        "document['folder'] = os.getcwd()\n"
        f"json.dump(document, open({str(scene.folder / 'recorded')!r}, 'w'))\n"
        "if document['tool_input'].get('path', '').startswith('/etc'):\n"
        "    print('outside of the project', file=sys.stderr)\n"
        "    sys.exit(2)\n",
    )
    agent = await begun(scene, scene.hooks(PreToolUse=f"python3 {script}"))
    await agent.ask(request("list", "tools/list"))
    asked = request(
        1, "tools/call", name="echo", arguments={"path": "/etc/x"}, _meta={"claudecode/toolUseId": "toolu_1"}
    )
    assert "guard.py: outside of the project" in refused(await agent.ask(asked))
    document = json.loads((scene.folder / "recorded").read_text())
    session = document.pop("session_id")
    variables = document.pop("variables")
    assert variables["CLAUDE_CODE_SESSION_ID"] == session
    assert variables["CLAUDE_PROJECT_DIR"] == document.pop("folder")
    assert document.pop("transcript_path").endswith(".jsonl")
    assert document == {
        "cwd": str(scene.folder),
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": "mcp__lean__echo",
        "tool_input": {"path": "/etc/x"},
        "tool_use_id": "toolu_1",
        "mcp_server": {"name": "lean"},
        "annotations": {"readOnlyHint": True},
    }
    assert text_of(await agent.ask(call(2, "echo", path="/home"))) == '{"path": "/home"}'


async def test_the_result_hook_gets_the_content_and_how_long_the_tool_took(scene: Scene) -> None:
    recorded = scene.folder / "recorded"
    agent = await begun(scene, scene.hooks(PreToolUse="sleep 0.3", PostToolUse=f"cat >'{recorded}'"))
    await agent.ask(call(1, "echo", a=1))
    document = json.loads(recorded.read_text())
    assert document["tool_response"] == [{"type": "text", "text": '{"a": 1}'}]
    assert 0 <= document["duration_ms"] < 300  # the tool's time, not the hook's
    assert document["tool_use_id"]


async def test_a_document_has_no_needless_escapes_for_guards_that_search_it(scene: Scene) -> None:
    agent = await begun(scene, scene.hooks(PreToolUse="grep -q 'rm -rf /' && { echo no >&2; exit 2; }; exit 0"))
    spelled = line_of(call(1, "echo", c="COMMAND")).replace(b"COMMAND", rb"r\u006d\u0020-rf \/")
    await agent.send(spelled)
    assert "no" in refused(await agent.answer(1))


# --- which hooks run ---


MATCHING = [
    "",
    "*",
    "mcp__lean__echo",
    "mcp__other__x|mcp__lean__echo",
    "mcp__other__x, mcp__lean__echo",
    "mcp__lean__.*",
    "^mcp__.*__ec",
    "echo$",
]
NOT_MATCHING = [
    "mcp__lean",  # a plain name is the whole name
    "echo",
    "mcp__lean__ECHO",
    "mcp__lean__ech",
    "Bash|Edit",
]


async def test_matchers_choose_by_the_documents_rules(scene: Scene) -> None:
    ran = scene.folder / "ran"
    matchers = MATCHING + NOT_MATCHING
    groups = [group(f"echo '{matcher}' >>'{ran}'", matcher=matcher) for matcher in matchers]
    agent = await begun(scene, scene.hooks(PreToolUse=groups))
    await agent.ask(call(1, "echo"))
    assert sorted(ran.read_text().splitlines()) == sorted(MATCHING)


async def test_the_servers_name_is_made_from_its_command_and_can_be_given(scene: Scene) -> None:
    recorded = scene.folder / "recorded"
    hooks = scene.hooks(PreToolUse=f"cat >'{recorded}'")
    for options, name in (([], "mcp__tool_server__echo"), (["--name", "my server!"], "mcp__my_server___echo")):
        agent = scene.run(*options, hooks)
        await agent.ask(call(1, "echo"))
        assert json.loads(recorded.read_text())["tool_name"] == name


async def test_exec_form_passes_arguments_as_they_are_and_fills_the_project_in(scene: Scene) -> None:
    recorded = scene.folder / "recorded"
    script = scene.file("args.sh", f"#!/bin/sh\nprintf '%s\\n' \"$@\" >'{recorded}'\n", mode=0o700)
    args = ["$HOME", "a b", "*", "${CLAUDE_PROJECT_DIR}/x", ""]
    hooks = scene.hooks(PreToolUse=[group(script, args=args)])
    agent = await begun(scene, hooks)
    await agent.ask(call(1, "echo"))
    assert recorded.read_text() == f"$HOME\na b\n*\n{scene.folder}/x\n\n"


async def test_a_relative_command_starts_from_the_project_of_its_file(scene: Scene) -> None:
    project = scene.folder / "project"
    (project / ".claude" / "hooks").mkdir(parents=True)
    guard = project / ".claude" / "hooks" / "guard.sh"
    guard.write_text('#!/bin/sh\necho "$CLAUDE_PROJECT_DIR" >&2; exit 2\n')
    guard.chmod(0o700)
    settings = project / ".claude" / "settings.json"
    commands = ['"$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh', ".claude/hooks/guard.sh"]
    for command in commands:
        settings.write_text(json.dumps({"hooks": {"PreToolUse": [group(command)]}}))
        agent = await begun(scene, f"--hooks={settings}")
        assert str(project) in refused(await agent.ask(call(1, "echo")))


async def test_the_same_hook_in_two_files_runs_once_and_different_ones_both(scene: Scene) -> None:
    runs = scene.folder / "runs"
    folder = scene.folder / "project" / ".claude"
    folder.mkdir(parents=True)
    for name in ("settings", "settings.local"):
        groups = [group(f"echo same >>'{runs}'"), group(f"echo {name} >>'{runs}'")]
        (folder / f"{name}.json").write_text(json.dumps({"hooks": {"PreToolUse": groups}}))
    agent = await begun(scene, f"--hooks={folder}/settings.json", f"--hooks={folder}/settings.local.json")
    await agent.ask(call(1, "echo"))
    assert sorted(runs.read_text().split()) == ["same", "settings", "settings.local"]


async def test_hooks_of_one_event_run_at_the_same_time(scene: Scene) -> None:
    one, two = scene.gate("one"), scene.gate("two")
    agent = await begun(scene, scene.hooks(PreToolUse=[group(one.script), group(two.script)]))
    await agent.send(call(1, "echo"))
    await one.reached()
    await two.reached()
    two.open()
    one.open()
    assert text_of(await agent.answer(1)) == "{}"


async def test_of_parallel_rewrites_the_last_to_finish_wins_and_all_comments_are_kept(scene: Scene) -> None:
    first, last = scene.gate("first"), scene.gate("last")
    rewrite_first = scene.prints(pre(updatedInput={"by": "first"}, additionalContext="from the first"))
    rewrite_last = scene.prints(pre(updatedInput={"by": "last"}, additionalContext="from the last"))
    groups = [group(f"{last.script}; {rewrite_last}"), group(f"{first.script}; {rewrite_first}; {first.report}")]
    agent = await begun(scene, scene.hooks(PreToolUse=groups))
    await agent.send(call(1, "echo"))
    pid = await first.reached()
    await last.reached()
    first.open()
    await first.reached()
    await ends(int(pid))
    last.open()
    text = text_of(await agent.answer(1))
    assert text.startswith('{"by": "last"}')
    assert "from the first" in text
    assert "from the last" in text


async def test_a_background_hook_delays_nothing_and_decides_nothing(scene: Scene) -> None:
    gate = scene.gate("background")
    hook = group(f"{gate.script}; echo no >&2; exit 2", in_background=True)
    agent = await begun(scene, scene.hooks(PreToolUse=[hook]))
    assert text_of(await agent.ask(call(1, "echo"))) == "{}"
    await gate.reached()
    gate.open()
    assert text_of(await agent.ask(call(2, "echo"))) == "{}"
    await gate.reached()


async def test_a_background_hook_ends_with_the_run(scene: Scene) -> None:
    gate = scene.gate("background")
    agent = await begun(scene, scene.hooks(PostToolUse=[group(gate.script, in_background=True)]))
    await agent.ask(call(1, "echo"))
    await gate.reached()
    agent.end_input()
    assert await agent.ended() == 0  # like any hook that is under way, it gets five seconds
    await scene.empty()


async def test_disabled_hooks_do_not_run_and_this_is_reported(scene: Scene) -> None:
    text = json.dumps({"disableAllHooks": True, "hooks": {"PreToolUse": [group("exit 2")]}})
    agent = await begun(scene, "--hooks=claude=" + scene.file("settings.json", text))
    assert text_of(await agent.ask(call(1, "echo"))) == "{}"
    assert "disableAllHooks" in agent.standard_error()


async def test_events_that_cannot_happen_here_are_named_at_the_start(scene: Scene) -> None:
    agent = await begun(scene, scene.hooks(PreToolUse="true", Stop="true"))
    assert "hooks.Stop cannot fire behind MCP" in agent.standard_error()


# --- sessions ---


async def test_session_start_adds_to_the_instructions_of_the_handshake_and_fires_once(scene: Scene) -> None:
    recorded = scene.folder / "recorded"
    hook = f"cat >>'{recorded}'; {scene.prints(specific('SessionStart', additionalContext='be careful'))}"
    agent = scene.run(scene.hooks(SessionStart=hook), server=[*SERVER, "--instructions", "use me"])
    answer = await agent.initialize()
    assert answer["result"]["instructions"] == "use me\n\nbe careful"
    await agent.ask(call(1, "echo"))
    document = json.loads(recorded.read_text())
    assert (document["hook_event_name"], document["source"]) == ("SessionStart", "startup")


async def test_plain_text_of_session_start_becomes_instructions_where_there_were_none(scene: Scene) -> None:
    agent = scene.run(scene.hooks(SessionStart=[group("echo be careful", matcher="startup"), group("exit 1")]))
    assert (await agent.initialize())["result"]["instructions"] == "be careful"
    assert "exited with status 1" in agent.standard_error()


async def test_a_slow_session_start_delays_only_the_handshake_and_judged_calls(scene: Scene) -> None:
    gate = scene.gate("starting")
    agent = scene.run(scene.hooks(SessionStart=f"{gate.script}; echo hello", PreToolUse="true"))
    discovered = await agent.ask(request(0, "server/discover"))
    assert "result" in discovered
    await agent.send(request(1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "a"}))
    await gate.reached()
    await agent.ask(request(2, "ping"))
    await agent.send(call(3, "echo"))
    await agent.ask(request(4, "ping"))
    assert agent.earlier_messages == []
    gate.open()
    assert (await agent.answer(1))["result"]["instructions"] == "hello"
    assert text_of(await agent.answer(3)) == "{}"


async def test_in_the_stateless_era_feedback_of_session_start_comes_with_the_first_call(scene: Scene) -> None:
    gate = scene.gate("session")
    hook = f"{gate.report}; echo be careful"
    agent = scene.run(scene.hooks(SessionStart=hook, PreToolUse="true"))
    await agent.ask(DISCOVER)
    assert not gate.visited
    await agent.ask(request(1, "tools/list", _meta=STATELESS))
    await gate.reached()
    assert text_of(await agent.ask(stateless_call(2, "echo"))) == "{}\nbe careful"
    assert text_of(await agent.ask(stateless_call(3, "echo"))) == "{}"


@pytest.mark.parametrize("refuses", ["refuses", "fails"])
async def test_feedback_of_session_start_reaches_the_model_even_if_the_first_call_fails(
    scene: Scene, refuses: str
) -> None:
    guard = "echo no >&2; exit 2" if refuses == "refuses" else "true"
    agent = scene.run(scene.hooks(SessionStart="echo be careful", PreToolUse=[group(guard, matcher=".*__error")]))
    error = {"code": 1, "message": "no"}
    text = json.dumps(await agent.ask(stateless_call(1, "error", error=error)))
    text += json.dumps(await agent.ask(stateless_call(2, "echo")))
    assert text.count("be careful") >= 1


async def test_session_start_alone_reaches_the_model_in_the_stateless_era(scene: Scene) -> None:
    agent = scene.run(scene.hooks(SessionStart="echo be careful"))
    assert text_of(await agent.ask(stateless_call(1, "echo"))) == "{}\nbe careful"


async def test_session_end_fires_once_when_the_agent_has_gone(scene: Scene) -> None:
    recorded = scene.folder / "recorded"
    agent = await begun(scene, scene.hooks(SessionEnd=f"cat >>'{recorded}'"))
    agent.end_input()
    assert await agent.ended(within=4.5) == 0
    document = json.loads(recorded.read_text())
    assert (document["hook_event_name"], document["reason"]) == ("SessionEnd", "other")


async def test_session_end_never_fires_without_a_session(scene: Scene) -> None:
    gate = scene.gate("end")
    agent = scene.run(scene.hooks(SessionEnd=gate.report))
    agent.end_input()
    assert await agent.ended() == 0
    assert not gate.visited


async def test_a_session_end_hook_that_hangs_gets_a_second_and_a_half(scene: Scene) -> None:
    gate = scene.gate("end")
    agent = await begun(scene, scene.hooks(SessionEnd=gate.script))
    agent.end_input()
    begun_at = time.monotonic()
    assert await agent.ended(within=10) == 0
    assert 1.3 < time.monotonic() - begun_at < 4.5  # other hooks get five
    await scene.empty()


async def test_session_end_fires_when_a_signal_ends_us(scene: Scene) -> None:
    gate = scene.gate("end")
    agent = await begun(scene, scene.hooks(SessionEnd=gate.report))
    agent.signal(signal.SIGTERM)
    await agent.ended()
    assert gate.visited


# --- messages for people ---


@pytest.mark.parametrize("logging", [True, False])
async def test_a_system_message_is_a_log_message_where_the_server_declared_logging(scene: Scene, logging: bool) -> None:
    message = scene.prints({"systemMessage": "for people é"})
    server = [*SERVER, "--logging"] if logging else SERVER
    agent = await begun(scene, scene.hooks(PreToolUse=message), server=server)
    answer = await agent.ask(call(1, "echo"))
    assert text_of(answer) == "{}"
    assert "for people é" in agent.standard_error()
    logged = [one for one in agent.earlier_messages if one.get("method") == "notifications/message"]
    assert [one["params"]["data"] for one in logged] == (["for people é"] if logging else [])
    assert all(one["params"].keys() >= {"level", "data"} for one in logged)


async def test_a_system_message_is_not_a_log_message_in_the_stateless_era_without_the_agents_opt_in(
    scene: Scene,
) -> None:
    agent = scene.run(
        scene.hooks(PreToolUse=scene.prints({"systemMessage": "for people"})), server=[*SERVER, "--logging"]
    )
    await agent.ask(stateless_call(1, "echo"))
    assert agent.earlier_messages == []
    assert "for people" in agent.standard_error()


# --- our own hooks and keys ---


async def test_own_hooks_match_bare_and_composed_names_and_start_in_their_files_folder(scene: Scene) -> None:
    config = scene.config(
        '[[hooks.PreToolUse]]\nmatcher = "echo"\ncommand = "./guard.sh"\n'
        '[[hooks.PreToolUse]]\nmatcher = "mcp__lean__other"\nargv = ["sh", "-c", "pwd >&2; exit 2"]\n'
        '[[hooks.PostToolUse]]\nmatcher = "open"\nname = "the checker"\ncommand = "echo checked >&2; exit 2"\n'
    )
    folder = Path(config.removeprefix("--config=")).parent
    guard = folder / "guard.sh"
    guard.write_text('#!/bin/sh\ngrep -q \'"tool_name":"echo"\' && echo bare >&2 && exit 2\n')
    guard.chmod(0o700)
    agent = await begun(scene, config)
    assert "guard.sh: bare" in refused(await agent.ask(call(1, "echo")))
    assert str(folder) in refused(await agent.ask(call(2, "other")))
    assert text_of(await agent.ask(call(3, "open", result={"content": []}))) == "checked"


@pytest.mark.parametrize("command", ["exit 1", "exec sleep 600", "echo '{nonsense}'", "/no/such/file"])
async def test_a_failed_own_hook_denies(scene: Scene, command: str) -> None:
    agent = await begun(scene, scene.config(f'[[hooks.PreToolUse]]\ncommand = "{command}"\ntimeout = 0.2\n'))
    assert "failed" in refused(await agent.ask(call(1, "echo")))
    assert scene.calls_received() == []


async def test_a_failed_own_result_hook_withholds_the_result(scene: Scene) -> None:
    agent = await begun(scene, scene.config('[[hooks.PostToolUse]]\ncommand = "exit 1"\n'))
    answer = await agent.ask(call(1, "echo", secret="s3cret"))
    assert "s3cret" not in json.dumps(answer)
    assert answer["result"]["isError"] is True


async def test_an_own_hooks_rule_goes_over_everything(scene: Scene) -> None:
    hook = '[[hooks.PreToolUse]]\ncommand = "exit 1"\non_trouble = "allow"\n'
    agent = await begun(scene, scene.config('on_failure = "deny"\n' + hook))
    assert text_of(await agent.ask(call(1, "echo"))) == "{}"


async def test_a_hook_file_is_used_with_bare_names_where_the_configuration_says_so(scene: Scene) -> None:
    file = scene.hooks(PreToolUse=[group("exit 2", matcher="echo")]).removeprefix("--hooks=claude=")
    agent = await begun(scene, scene.config(f'[[use]]\nfile = "{file}"\ntool_names = "bare"\n'))
    refused(await agent.ask(call(1, "echo")))


async def test_the_users_own_configuration_is_used_without_being_named_and_none_of_the_folder(
    scene: Scene, home: Path
) -> None:
    own = home / ".config" / "hookproxy" / "hookproxy.toml"
    own.parent.mkdir(parents=True)
    own.write_text('[[hooks.PreToolUse]]\nmatcher = "echo"\ncommand = "exit 2"\n')
    (scene.folder / ".claude").mkdir()
    (scene.folder / ".claude" / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [group("exit 2")]}}))
    (scene.folder / "hookproxy.toml").write_text('[[hooks.PreToolUse]]\ncommand = "exit 2"\n')
    agent = await begun(scene)
    refused(await agent.ask(call(1, "echo")))
    assert text_of(await agent.ask(call(2, "other"))) == "ran other"


# --- the audit ---


def records(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_each_judged_call_is_one_line_of_the_audit(scene: Scene) -> None:
    log = scene.folder / "logs" / "audit.jsonl"
    guard = "grep -q forbidden && { echo 'no way' >&2; exit 2; }; exit 0"
    rewrite = scene.prints(pre(updatedInput={"a": 1.50}))
    groups = [group(guard, matcher=".*__(echo|reply|error)"), group(rewrite, matcher=".*__typed")]
    agent = await begun(scene, scene.hooks(PreToolUse=groups), f"--audit={log}")
    await agent.ask(call(1, "echo", text="é\u2028"))
    await agent.ask(call("two", "echo", text="forbidden"))
    await agent.ask(call(3, "typed", path="x"))
    await agent.ask(call(4, "reply", result=FAILED))
    await agent.ask(call(5, "error", error={"code": 1, "message": "no"}))
    await agent.ask(call(6, "other"))
    assert oct(log.stat().st_mode & 0o777) == "0o600"
    ok, denied, changed, failed, errored = records(log)
    assert ok.keys() >= {"v", "time", "session", "server", "ms", "hook_ms", "user"}
    assert (ok["tool"], ok["id"], ok["server"], ok["arguments"]) == ("echo", 1, "lean", {"text": "é\u2028"})
    assert (ok["decision"], ok["result"], ok["changed"]) == ("allow", "ok", [])
    assert ok["agent"] == "lean-agent 1"
    (hook,) = ok["hooks"]
    assert (hook["event"], hook["dialect"], hook["exit"], hook["command"]) == ("PreToolUse", "claude", 0, guard)
    assert 0 < hook["ms"] <= ok["hook_ms"] <= ok["ms"]
    assert (denied["id"], denied["decision"], denied["result"]) == ("two", "deny", "refused")
    assert denied["hooks"][0]["reason"] == "no way"
    assert denied["hooks"][0]["verdict"] == "deny"
    assert (changed["changed"], changed["rewritten"], changed["arguments"]) == (
        ["arguments"],
        {"a": 1.5},
        {"path": "x"},
    )
    assert (failed["decision"], failed["result"]) == ("allow", "error")
    assert (errored["decision"], errored["result"]) == ("allow", "error")


async def test_calls_that_end_without_a_response_are_in_the_audit_too(scene: Scene) -> None:
    log = scene.folder / "audit.jsonl"
    agent = await begun(scene, scene.hooks(PreToolUse="true"), f"--audit={log}")
    await agent.send(call(1, "hold"))
    await agent.notified("notifications/holding")
    await agent.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    await agent.send(call(2, "quit", status=5))
    await agent.answer(2)
    await agent.ended()
    assert [(one["id"], one["result"]) for one in records(log)] == [(1, "cancelled"), (2, "lost")]


async def test_a_digest_keeps_arguments_out_of_the_audit(scene: Scene) -> None:
    log = scene.folder / "audit.jsonl"
    config = scene.config(f'[audit]\nfile = "{log}"\narguments = "digest"\n')
    agent = await begun(scene, config, scene.hooks(PreToolUse=scene.prints(pre(updatedInput={"b": "s3cret"}))))
    await agent.ask(call(1, "echo", a="s3cret"))
    assert "s3cret" not in log.read_text()
    (record,) = records(log)
    assert record["arguments_sha256"] == hashlib.sha256(b'{"a":"s3cret"}').hexdigest()


async def test_all_calls_are_in_the_audit_where_the_configuration_says_so(scene: Scene) -> None:
    log = scene.folder / "audit.jsonl"
    agent = await begun(scene, scene.config(f'[audit]\nfile = "{log}"\ncalls = "all"\n'))
    assert text_of(await agent.ask(call(1, "echo"))) == "{}"
    assert [one["tool"] for one in records(log)] == ["echo"]


async def test_several_proxies_share_an_audit_file_line_by_line(scene: Scene) -> None:
    log = scene.folder / "audit.jsonl"
    agents = [await begun(scene, scene.hooks(PreToolUse="true"), f"--audit={log}") for _ in range(3)]
    for agent in agents:
        await agent.send(*[call(number, "echo", text="x" * 10_000) for number in range(10)])
    for agent in agents:
        for number in range(10):
            await agent.answer(number)
    assert len(records(log)) == 30


async def test_a_required_audit_that_cannot_be_written_refuses_calls_before_any_hook(scene: Scene) -> None:
    gate = scene.gate("hook")
    blocker = scene.folder / "blocker"
    blocker.mkdir()
    config = scene.config(f'[audit]\nfile = "{blocker}"\nrequired = true\n')
    agent = await begun(scene, config, scene.hooks(PreToolUse=gate.report))
    text = refused(await agent.ask(call(1, "echo")))
    assert "audit" in text
    assert scene.calls_received() == []
    assert not gate.visited
    assert str(blocker) in agent.standard_error()


async def test_a_required_audit_on_a_full_disk_refuses_calls(scene: Scene) -> None:
    agent = await begun(
        scene, scene.config('[audit]\nfile = "/dev/full"\nrequired = true\n'), scene.hooks(PreToolUse="true")
    )
    await agent.ask(call(1, "echo", secret="s3cret"))
    assert "audit" in refused(await agent.ask(call(2, "echo")))
    assert len(scene.calls_received()) <= 1


async def test_an_audit_that_is_not_required_and_cannot_be_written_is_only_reported(scene: Scene) -> None:
    agent = await begun(scene, scene.hooks(PreToolUse="true"), "--audit=/dev/full")
    assert text_of(await agent.ask(call(1, "echo"))) == "{}"
    assert "No space left on device" in agent.standard_error()


# --- many at once ---


async def test_two_hundred_judged_calls_at_once_each_get_one_response(scene: Scene) -> None:
    groups = [group("grep -q '\"n\":[0-9]*7}' && exit 2; exit 0")]
    comment = scene.prints(post(additionalContext="seen"))
    agent = await begun(scene, scene.hooks(PreToolUse=groups, PostToolUse=comment))
    asked = range(200)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: agent.send(*[call(number, "echo", n=number) for number in asked]))
        with anyio.fail_after(2 * PATIENCE):
            answers = {(one := await agent.message())["id"]: text_of(one) for _ in asked}
    expected = {number: f'{{"n": {number}}}\nseen' for number in asked if number % 10 != 7}
    assert {number: text for number, text in answers.items() if number % 10 != 7} == expected
    assert all("Blocked" in answers[number] for number in asked if number % 10 == 7)
    assert sorted(one["id"] for one in scene.calls_received()) == sorted(expected)
    agent.end_input()
    assert await agent.rest() == b""


async def test_the_first_of_two_responses_to_a_judged_call_counts(scene: Scene) -> None:
    agent = await begun(scene, scene.hooks(PostToolUse="true"))
    assert text_of(await agent.ask(call(1, "twice"))) == "once"
    await agent.ask(request(2, "ping"))
    agent.end_input()
    assert await agent.rest() == b""
    assert agent.earlier_messages == []
    assert "dropped" in agent.standard_error()


@pytest.mark.parametrize(
    ("event", "effect", "received"),
    [("PreToolUse", "The tool was not run.", 0), ("PostToolUse", "Calling the tool again would run it again.", 1)],
)
async def test_too_few_descriptors_for_a_hook_end_its_call_with_a_message_that_says_so(
    scene: Scene, event: str, effect: str, received: int
) -> None:
    agent = await begun(scene, scene.hooks(**{event: "true"}))
    soft, hard = resource.prlimit(agent.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(agent.pid, resource.RLIMIT_NOFILE, (4, hard))
    error = (await agent.ask(call(1, "echo")))["error"]["message"]
    assert "the system is short of resources: Too many open files" in error
    assert error.endswith(effect)
    assert len(scene.calls_received()) == received
    await agent.ask(request(2, "ping"))  # the report comes after the response
    (line,) = [one for one in agent.standard_error().splitlines() if "cannot be handled" in one]
    assert line.endswith("Too many open files; ulimit -a shows the limits")
    assert "Traceback" not in agent.standard_error()
    resource.prlimit(agent.pid, resource.RLIMIT_NOFILE, (soft, hard))
    assert text_of(await agent.ask(call(3, "echo", n=2)))


async def test_a_secret_that_a_failing_hook_prints_reaches_neither_people_nor_model_nor_audit(scene: Scene) -> None:
    token = "ghp_" + "aB3" * 12
    hook = f"[[hooks.PreToolUse]]\ncommand = 'echo \"login with {token} failed\" >&2; exit 1'\n"
    config = scene.config(f'{hook}[audit]\nfile = "audit.jsonl"\n')
    agent = scene.run("--name=lean", config)
    await agent.initialize()
    refused = text_of(await agent.ask(call(1, "echo")))
    agent.go()
    await agent.ended()
    audit = next(scene.folder.glob("*/audit.jsonl")).read_text()
    for text in (refused, agent.standard_error(), audit):
        assert "login with [masked: " in text
        assert token not in text.replace(hook.splitlines()[1], "")
