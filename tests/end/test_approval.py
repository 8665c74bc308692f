"""A person is asked through a real agent of either era, and an agent that cheats, leaves or dies has not approved."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from mcp import Client, StdioServerParameters, types
from mcp.client import ClientRequestContext
from mcp.client.stdio import stdio_client
from mcp_types import methods

from tests.end.agent import (
    HOOKPROXY,
    INITIALIZED,
    PATIENCE,
    STATELESS,
    Agent,
    Json,
    Scene,
    call,
    cancel,
    group,
    notification,
    request,
    specific,
    text_of,
)
from tests.support.preloaded_servers import preloaded

pytestmark = pytest.mark.usefixtures("preloaded_servers")

ROUNDS: Final = preloaded(str(Path(__file__).with_name("elicitation_server.py")))
BOTH: Final = pytest.mark.parametrize("era", ["legacy", "auto"])
LATEST: Final = {"legacy": "2025-11-25", "auto": "2026-07-28"}
ONCE, SESSION, NO = "allow once", "allow this tool for this session", "deny"
SURE: Final = specific("PreToolUse", permissionDecision="ask", permissionDecisionReason="sure?")
RULE: Final = '[permissions]\nask = ["write"]\n'
DECLINED: Final = "The user was asked and did not allow it."
NOT_ANSWERED: Final = "The user was asked, but no answer came"
CANNOT: Final = "This agent cannot ask the user, so the call is denied."


Elicit = Callable[[types.ElicitRequestParams], Awaitable[types.ElicitResult]]


def form_answer(decision: str, action: Any = "accept") -> types.ElicitResult:  # noqa: ANN401  # a literal
    return types.ElicitResult(action=action, content={"decision": decision} if action == "accept" else None)


class Person:
    """Gives one answer after another, and keeps the questions."""

    def __init__(self, *answers: types.ElicitResult | Exception) -> None:
        self.answers = list(answers)
        self.questions: list[str] = []

    async def __call__(self, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.questions.append(params.message)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class SlowPerson(Person):
    """Waits until a test lets it answer, and notices if the request is withdrawn."""

    def __init__(self, *answers: types.ElicitResult | Exception) -> None:
        super().__init__(*answers)
        self.thinks, self.has_thought, self.left_alone = anyio.Event(), anyio.Event(), anyio.Event()

    async def __call__(self, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.thinks.set()
        try:
            await self.has_thought.wait()
        except anyio.get_cancelled_exc_class():
            self.left_alone.set()
            raise
        return await super().__call__(params)


@asynccontextmanager
async def connected(
    scene: Scene, era: str, person: Elicit | None, *options: str, server: Sequence[str] = ROUNDS
) -> AsyncIterator[Client]:
    """The `mcp` package's client, the real proxy, a real server."""
    argv = ["run", "--name=real", *options, "--", *server]
    started = StdioServerParameters(command=HOOKPROXY, args=argv, env=scene.env, cwd=scene.folder)

    async def elicit(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert person is not None
        return await person(params)

    with (scene.folder / "stderr").open("a") as errors, anyio.fail_after(2 * PATIENCE):
        async with Client(
            stdio_client(started, errlog=errors), mode=era, elicitation_callback=elicit if person else None
        ) as client:
            assert client.protocol_version == LATEST[era]
            yield client


def result_text(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


def hooks_that_ask(scene: Scene, tool: str = "write") -> str:
    """`--hooks` with one of Claude Code that asks about a tool."""
    return scene.hooks(PreToolUse=[group(scene.prints(SURE), matcher=f"mcp__real__{tool}")])


def without_file(text: str) -> str:
    """The text without the beginning of a file's path in the name of a hook."""
    return re.sub(r"(hook cat) \S+", r"\1 FILE", text)


def ran(scene: Scene) -> list[tuple[str, Json]]:
    """The calls that the server received, with their arguments."""
    return [(one["params"]["name"], one["params"]["arguments"]) for one in scene.calls_received()]


# --- the person's answers ---


@BOTH
async def test_an_approval_for_one_call_does_not_cover_the_next_call(scene: Scene, era: str) -> None:
    person = Person(form_answer(ONCE), form_answer(NO))
    async with connected(scene, era, person, hooks_that_ask(scene)) as client:
        assert result_text(await client.call_tool("write", {"path": "a"})) == "wrote a"
        assert (await client.call_tool("write", {"path": "b"})).is_error
        assert result_text(await client.call_tool("look", {"path": "c"})) == "saw c"
    assert ran(scene) == [("write", {"path": "a"}), ("look", {"path": "c"})]
    assert [without_file(one).splitlines() for one in person.questions] == [
        [
            "Allow the tool write of real to run?",
            "",
            f'path: "{path}"',
            "",
            "the PreToolUse hook cat FILE asks you to confirm: sure?",
            "",
            "- allow this tool for this session: every call of write, whatever its arguments",
        ]
        for path in "ab"
    ]


@BOTH
@pytest.mark.parametrize("by", ["a hook", "a rule"])
async def test_an_approval_for_the_session_covers_the_next_calls(scene: Scene, era: str, by: str) -> None:
    person = Person(form_answer(SESSION))
    option = hooks_that_ask(scene) if by == "a hook" else scene.config(RULE)
    async with connected(scene, era, person, option) as client:
        assert result_text(await client.call_tool("write", {"path": "a"})) == "wrote a"
        assert result_text(await client.call_tool("write", {"path": "b", "text": "x"})) == "wrote b x"
    assert len(person.questions) == 1


@BOTH
async def test_anything_but_a_yes_is_a_refusal_and_reaches_no_server(scene: Scene, era: str) -> None:
    answers = [
        (form_answer(NO), DECLINED),
        (form_answer("", "decline"), DECLINED),
        (form_answer("", "cancel"), NOT_ANSWERED),
        (form_answer("Allow once"), NOT_ANSWERED),
        (types.ElicitResult(action="accept", content={}), NOT_ANSWERED),
        (types.ElicitResult(action="accept", content={"decision": [ONCE]}), NOT_ANSWERED),
        (types.ElicitResult(action="decline", content={"decision": ONCE}), DECLINED),
    ]
    person = Person(*(answer for answer, _ in answers))
    async with connected(scene, era, person, hooks_that_ask(scene)) as client:
        for _, says in answers:
            result = await client.call_tool("write", {"path": "a"})
            assert result.is_error
            assert "requires the user's approval: sure? " + says in result_text(result)
        assert result_text(await client.call_tool("look", {"path": "c"})) == "saw c"
    assert ran(scene) == [("look", {"path": "c"})]
    assert len(person.questions) == len(answers)


@BOTH
async def test_a_failed_form_is_not_an_approval(scene: Scene, era: str) -> None:
    person = Person(ValueError("no screen"))
    async with connected(scene, era, person, hooks_that_ask(scene)) as client:
        if era == "legacy":
            result = await client.call_tool("write", {"path": "a"})
            assert result.is_error
            assert NOT_ANSWERED in result_text(result)
        else:  # this client does not come back
            with pytest.raises(ExceptionGroup) as caught:
                await client.call_tool("write", {"path": "a"})
            assert caught.group_contains(ValueError, match="no screen")
        assert result_text(await client.call_tool("look", {"path": "c"})) == "saw c"
    assert ran(scene) == [("look", {"path": "c"})]


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")  # ping is still there, in 2025
@BOTH
async def test_while_the_person_thinks_all_other_lines_pass(scene: Scene, era: str) -> None:
    person = SlowPerson(form_answer(ONCE))
    results: list[str] = []
    async with connected(scene, era, person, hooks_that_ask(scene)) as client, anyio.create_task_group() as tasks:

        async def write() -> None:
            results.append(result_text(await client.call_tool("write", {"path": "a"})))

        tasks.start_soon(write)
        await person.thinks.wait()
        assert result_text(await client.call_tool("look", {"path": "c"})) == "saw c"
        if era == "legacy":
            await client.send_ping()
        assert len((await client.list_tools()).tools) == 4
        assert results == []
        person.has_thought.set()
    assert results == ["wrote a"]


@BOTH
async def test_a_client_without_forms_gets_a_refusal_that_says_it_cannot_ask(scene: Scene, era: str) -> None:
    async with connected(scene, era, None, hooks_that_ask(scene)) as client:
        result = await client.call_tool("write", {"path": "a"})
        assert result.is_error
        assert CANNOT in result_text(result)
    assert ran(scene) == []


@BOTH
async def test_a_cancelled_call_withdraws_its_approval_request(scene: Scene, era: str) -> None:
    person = SlowPerson(form_answer(ONCE))
    async with connected(scene, era, person, hooks_that_ask(scene)) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "write", {"path": "a"})
            await person.thinks.wait()
            tasks.cancel_scope.cancel()
        await person.left_alone.wait()
        assert result_text(await client.call_tool("look", {"path": "c"})) == "saw c"
    assert ran(scene) == [("look", {"path": "c"})]


@BOTH
async def test_shown_and_run_are_the_rewritten_arguments(scene: Scene, era: str) -> None:
    rewrite = specific("PreToolUse", permissionDecision="ask", updatedInput={"path": "safe", "text": "t"})
    person = Person(form_answer(ONCE))
    hooks = scene.hooks(PreToolUse=scene.prints(rewrite))
    async with connected(scene, era, person, hooks) as client:
        assert result_text(await client.call_tool("write", {"path": "/etc/passwd"})) == "wrote safe t"
    assert 'path: "safe"\ntext: "t"' in person.questions[0]
    assert "/etc/passwd" not in person.questions[0]
    assert ran(scene) == [("write", {"path": "safe", "text": "t"})]


# --- rules ---


@BOTH
async def test_a_denied_tool_is_refused_and_hidden(scene: Scene, era: str) -> None:
    config = scene.config('[permissions]\ndeny = ["delete", "write(/etc/*)"]\n')
    async with connected(scene, era, None, config) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {"write", "look", "travel"}
        for tool, path in (("delete", "a"), ("write", "/etc/passwd")):
            result = await client.call_tool(tool, {"path": path})
            assert result.is_error
            assert "of hookproxy.toml" in result_text(result)
        assert result_text(await client.call_tool("write", {"path": "a"})) == "wrote a"
    assert ran(scene) == [("write", {"path": "a"})]


@BOTH
async def test_a_denied_tool_may_stay_in_the_list(scene: Scene, era: str) -> None:
    config = scene.config('[permissions]\ndeny = ["delete"]\nhide_denied = false\n')
    async with connected(scene, era, None, config) as client:
        assert "delete" in {tool.name for tool in (await client.list_tools()).tools}
        assert (await client.call_tool("delete", {"path": "a"})).is_error
    assert ran(scene) == []


@BOTH
async def test_rules_judge_what_hooks_have_rewritten(scene: Scene, era: str) -> None:
    rewrite = specific("PreToolUse", permissionDecision="allow", updatedInput={"path": "/etc/passwd"})
    hooks = scene.hooks(
        PreToolUse=[
            group(scene.prints(rewrite), matcher="mcp__real__write"),
            group(scene.prints(specific("PreToolUse", updatedInput={"path": "ok"})), matcher="mcp__real__look"),
        ]
    )
    config = scene.config('[permissions]\ndeny = ["write(/etc/*)", "look(bad)"]\n')
    async with connected(scene, era, None, config, hooks) as client:
        assert "Blocked by the permission rule write(/etc/*)" in result_text(
            await client.call_tool("write", {"path": "a"})
        )
        assert result_text(await client.call_tool("look", {"path": "bad"})) == "saw ok"
    assert ran(scene) == [("look", {"path": "ok"})]


@BOTH
async def test_an_allow_rule_gives_the_approval_that_a_hook_wants_but_not_that_of_a_rule(
    scene: Scene, era: str
) -> None:
    person = Person(form_answer(NO))
    config = scene.config('[permissions]\nallow = ["*"]\nask = ["delete"]\n')
    async with connected(scene, era, person, config, hooks_that_ask(scene)) as client:
        assert result_text(await client.call_tool("write", {"path": "a"})) == "wrote a"
        assert (await client.call_tool("delete", {"path": "a"})).is_error
    assert len(person.questions) == 1
    assert "the permission rule delete of hookproxy.toml asks you to confirm." in person.questions[0]


# --- who answers in the person's place, and which hooks run ---


@BOTH
@pytest.mark.parametrize("dialect", ["copilot", "lime"])
async def test_a_permission_request_hook_answers_first(scene: Scene, era: str, dialect: str) -> None:
    def printing(answer: str) -> str:
        if dialect == "copilot":
            return scene.prints({"behavior": answer, "message": "Not here."})
        decision = {"permissionDecision": answer, "permissionDecisionReason": "Not here."}
        return scene.prints({"hookSpecificOutput": decision})

    command = f"case $(cat) in *yes*) {printing('allow')};; *no*) {printing('deny')};; esac"
    if dialect == "copilot":
        hooks: Json = {"version": 1, "hooks": {"permissionRequest": [{"type": "command", "bash": command}]}}
    else:
        hooks = {"hooks": {"PermissionRequest": [command]}}
    option = f"--hooks={dialect}={scene.file('hooks.json', json.dumps(hooks))}"
    person = Person(form_answer(ONCE))
    async with connected(scene, era, person, hooks_that_ask(scene), option) as client:
        assert result_text(await client.call_tool("write", {"path": "yes"})) == "wrote yes"
        refused = await client.call_tool("write", {"path": "no"})
        assert refused.is_error
        assert "Not here." in result_text(refused)
        assert person.questions == []
        assert result_text(await client.call_tool("write", {"path": "perhaps"})) == "wrote perhaps"
    assert len(person.questions) == 1
    assert [arguments["path"] for _, arguments in ran(scene)] == ["yes", "perhaps"]


@BOTH
async def test_permission_denied_hooks_run_after_a_persons_no(scene: Scene, era: str) -> None:
    gate, recorded = scene.gate("ran"), scene.folder / "recorded.json"
    settings = json.dumps({"hooks": {"PermissionDenied": [f"cat >'{recorded}'; {gate.report}"]}})
    option = f"--hooks=lime={scene.file('settings.json', settings)}"
    async with connected(scene, era, Person(form_answer(NO)), hooks_that_ask(scene), option) as client:
        assert (await client.call_tool("write", {"path": "a"})).is_error
        await gate.reached()
    document = json.loads(recorded.read_text())
    assert (document["event"], document["tool_name"]) == ("PermissionDenied", "write")


# --- an agent that cannot ask ---


@BOTH
@pytest.mark.parametrize(("fallback", "passes"), [("deny", False), ("allow", True)])
async def test_on_ask_decides_if_the_agent_cannot_ask(scene: Scene, era: str, fallback: str, passes: bool) -> None:
    config = scene.config(f'on_ask_fallback = "{fallback}"\n{RULE}')
    async with connected(scene, era, None, config) as client:
        result = await client.call_tool("write", {"path": "a"})
        assert result.is_error is not passes
        assert (CANNOT in result_text(result)) is not passes
    assert len(ran(scene)) == passes


@BOTH
async def test_a_prompter_reads_the_approval_request_and_answers(scene: Scene, era: str) -> None:
    script = """#!/bin/sh
    read -r question
    printf '%s\\n' "$question" >>"$0.asked"
    case "$question" in
      *'"path":"good"'*) exit 0 ;;
      *'"path":"bad"'*) exit 2 ;;
      *) echo '{"decision":"allow once"}'; exit 3 ;;
    esac
    """
    prompter = scene.file("prompter", script, mode=0o700)
    config = scene.config(f'on_ask_fallback = {{ command = ["{prompter}"] }}\n')
    async with connected(scene, era, None, config, hooks_that_ask(scene)) as client:
        assert result_text(await client.call_tool("write", {"path": "good"})) == "wrote good"
        for path, refusal in (("bad", DECLINED), ("odd", CANNOT)):
            assert refusal in result_text(await client.call_tool("write", {"path": path}))
    asked = records(Path(f"{prompter}.asked"))
    assert [one["arguments"]["path"] for one in asked] == ["good", "bad", "odd"]
    asked[0]["asked_by"] = without_file(asked[0]["asked_by"])
    assert asked[0] == {
        "server": "real",
        "tool": "write",
        "arguments": {"path": "good"},
        "reason": "sure?",
        "asked_by": "the PreToolUse hook cat FILE",
    }
    assert "prompter failed (status 3)" in (scene.folder / "stderr").read_text()
    assert ran(scene) == [("write", {"path": "good"})]


@BOTH
async def test_the_prompter_does_not_run_when_the_agent_can_ask(scene: Scene, era: str) -> None:
    config = scene.config(f'on_ask_fallback = {{ command = ["/nowhere/prompter"] }}\n{RULE}')
    async with connected(scene, era, Person(form_answer(ONCE)), config) as client:
        assert result_text(await client.call_tool("write", {"path": "a"})) == "wrote a"


# --- a tool that itself asks, in rounds ---


@pytest.mark.parametrize("asked_first", [False, True])
async def test_a_tool_that_asks_in_rounds_is_judged_once_and_rewritten_each_time(
    scene: Scene, asked_first: bool
) -> None:
    log = scene.folder / "hooks.log"
    decision = {"permissionDecision": "ask"} if asked_first else {}
    before = specific("PreToolUse", updatedInput={"to": "Rome"}, additionalContext="before", **decision)
    hooks = scene.hooks(
        PreToolUse=f"echo pre >>'{log}'; {scene.prints(before)}",
        PostToolUse=f"echo post >>'{log}'; {scene.prints(specific('PostToolUse', additionalContext='after'))}",
    )
    names = [types.ElicitResult(action="accept", content={"name": name}) for name in ("Ada", "Bob")]
    person = Person(*[form_answer(ONCE)] * asked_first, *names)
    async with connected(scene, "auto", person, hooks) as client:
        result = await client.call_tool("travel", {"to": "Paris"})
    assert not result.is_error
    assert result_text(result) == "begun to Rome, then Ada, then Bob to Rome\nbefore\n\nafter"
    assert log.read_text().split() == ["pre", "post"]
    assert ran(scene) == [("travel", {"to": "Rome"})] * 3
    states = [one["params"].get("requestState", "") for one in scene.calls_received()]
    assert states[0] == ""
    assert all(state and not state.startswith("hookproxy1.") for state in states[1:])
    answers = [set(one["params"].get("inputResponses", {})) for one in scene.calls_received()]
    assert answers == [set(), {"first"}, {"second"}]
    assert len(person.questions) == 2 + asked_first


# --- our messages follow the protocol ---


async def lean(scene: Scene, *options: str, elicitation: Json | None = None, version: str = "2025-11-25") -> Agent:
    """A small agent that has finished its handshake and can show forms."""
    agent = scene.run("--name=lean", *options)
    capabilities = {"elicitation": elicitation if elicitation is not None else {}}
    who = {"name": "lean-agent", "version": "1"}
    await agent.ask(request("init", "initialize", protocolVersion=version, capabilities=capabilities, clientInfo=who))
    await agent.send(INITIALIZED)
    return agent


META: Final = {**STATELESS, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
ACCEPTED: Final = {"hookproxy.ask": {"action": "accept", "content": {"decision": ONCE}}}


def stateless(number: int | str, tool: str = "write", arguments: Json | None = None, **more: object) -> Json:
    return request(number, "tools/call", name=tool, arguments=arguments or {"path": "a"}, _meta=META, **more)


def answers(question: Json, decision: str = ONCE) -> Json:
    result = {"action": "accept", "content": {"decision": decision}}
    return {"jsonrpc": "2.0", "id": question["id"], "result": result}


def without_meta(params: Json) -> Json:
    return {key: value for key, value in params.items() if key != "_meta"}


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
async def test_the_proxys_messages_in_the_handshake_era_follow_the_protocol(scene: Scene, version: str) -> None:
    config = scene.config('[permissions]\nask = ["write"]\ndeny = ["echo"]\n')
    agent = await lean(scene, config, version=version)
    listed = await agent.ask(request(0, "tools/list"))
    assert "echo" not in {tool["name"] for tool in listed["result"]["tools"]}
    methods.validate_server_result("tools/list", version, listed["result"])
    await agent.send(call(1, "write"), call(2, "write"), call(3, "echo"))
    first, second = [await agent.notified("elicitation/create") for _ in range(2)]
    for question in (first, second):
        methods.parse_server_request("elicitation/create", version, question["params"])
    await agent.send(answers(first, NO), cancel(2))
    refusals = [await agent.answer(1), await agent.answer(3)]
    assert DECLINED in text_of(refusals[0])
    for refusal in refusals:
        assert set(refusal) == {"jsonrpc", "id", "result"}
        methods.validate_server_result("tools/call", version, refusal["result"])
    withdrawn = await agent.notified("notifications/cancelled")
    methods.parse_server_notification("notifications/cancelled", version, withdrawn["params"])
    assert withdrawn["params"]["requestId"] == second["id"]
    await agent.send(answers(second))
    await agent.ask(request("sync", "ping"))
    assert agent.earlier_messages == []
    assert scene.calls_received() == []


async def test_the_proxys_messages_in_the_stateless_era_follow_the_protocol(scene: Scene) -> None:
    agent = scene.run(scene.config('[permissions]\nask = ["write"]\ndeny = ["echo"]\n'))
    asked = await agent.ask(stateless(1))
    methods.validate_server_result("tools/call", "2026-07-28", asked["result"])
    state = asked["result"]["requestState"]
    no = {"hookproxy.ask": {"action": "decline"}}
    for number, answer in enumerate(
        (
            await agent.ask(stateless(2, inputResponses=no, requestState=state)),
            await agent.ask(stateless(3, "echo")),
            await agent.ask(request(4, "tools/call", name="write", arguments={}, _meta=STATELESS)),
        ),
        2,
    ):
        assert answer["id"] == number
        assert answer["result"]["isError"] is True
        methods.validate_server_result("tools/call", "2026-07-28", answer["result"])
    assert scene.calls_received() == []


# --- agents that cheat: rounds ---


async def request_state_of(agent: Agent, number: int | str = "first", **more: Any) -> str:  # noqa: ANN401  # JSON
    """Make a call that needs approval; gives its request state."""
    result = (await agent.ask(stateless(number, **more)))["result"]
    assert result["resultType"] == "input_required"
    return str(result["requestState"])


async def assert_asked_again(agent: Agent, *calls: Json) -> None:
    """None of these reaches the server: the person is asked, as for new calls."""
    await agent.send(*calls)
    for one in calls:
        answer = await agent.answer(one["id"])
        assert answer["result"]["resultType"] == "input_required", answer


async def test_a_request_state_with_any_changed_character_is_rejected(scene: Scene) -> None:
    agent = scene.run(scene.config(RULE))
    state = await request_state_of(agent)
    forged = [
        state[:at] + ("A" if state[at] != "A" else "B") + state[at + 1 :]
        for at in range(len("hookproxy1."), len(state))
    ]
    forged += [state + "A", state + "=", state[:-1], state.replace(".", "..", 2), f"{state}.{state}", state.upper(), ""]
    forged += ["hookproxy1.", "hookproxy1..", "hookproxy1.e30.", "hookproxy1.é.", "hookproxy1." + "A" * 100_000]
    await assert_asked_again(
        agent, *[stateless(n, requestState=one, inputResponses=ACCEPTED) for n, one in enumerate(forged)]
    )
    assert scene.calls_received() == []
    await agent.ask(stateless("last", requestState=state, inputResponses=ACCEPTED))
    assert ran(scene) == [("write", {"path": "a"})]


async def test_a_request_state_without_its_beginning_is_rejected_and_never_reaches_the_server(
    scene: Scene,
) -> None:
    agent = scene.run(scene.config(RULE))
    state = await request_state_of(agent)
    await agent.ask(stateless(1, requestState=state.partition(".")[2], inputResponses=ACCEPTED))
    assert scene.calls_received() == []


async def test_a_request_state_is_valid_once_for_its_call(scene: Scene) -> None:
    agent = scene.run(scene.config('[permissions]\nask = ["*"]\n'))
    state = await request_state_of(agent)
    more: Json = {"requestState": state, "inputResponses": ACCEPTED}
    await assert_asked_again(
        agent,
        stateless(1, "delete", **more),
        stateless(2, arguments={"path": "b"}, **more),
        stateless(3, arguments={"path": "a", "force": True}, **more),
        stateless(4, inputResponses=ACCEPTED),
    )
    assert scene.calls_received() == []
    assert text_of(await agent.ask(stateless(5, **more))) == "ran write"
    await assert_asked_again(agent, stateless(6, **more))
    await agent.send(stateless("left", **more), stateless("right", **more))
    for number in ("left", "right"):
        assert (await agent.answer(number))["result"]["resultType"] == "input_required"
    assert len(scene.calls_received()) == 1


async def test_only_one_of_two_rounds_with_the_same_request_state_passes(scene: Scene) -> None:
    agent = scene.run(scene.config(RULE))
    more: Json = {"requestState": await request_state_of(agent), "inputResponses": ACCEPTED}
    await agent.send(*[stateless(number, **more) for number in range(20)])
    results = [(await agent.answer(number))["result"] for number in range(20)]
    assert sum("content" in result for result in results) == 1
    assert len(scene.calls_received()) == 1


async def test_a_no_is_final_even_if_a_yes_follows_with_the_same_request_state(scene: Scene) -> None:
    agent = scene.run(scene.config(RULE))
    state = await request_state_of(agent)
    no = {"hookproxy.ask": {"action": "accept", "content": {"decision": NO}}}
    answer = await agent.ask(stateless(1, requestState=state, inputResponses=no))
    assert DECLINED in text_of(answer)
    await assert_asked_again(agent, stateless(2, requestState=state, inputResponses=ACCEPTED))
    assert scene.calls_received() == []


async def test_a_request_state_in_a_call_of_the_other_era_is_not_an_approval(scene: Scene) -> None:
    agent = scene.run(scene.config(RULE))
    more: Json = {"requestState": await request_state_of(agent), "inputResponses": ACCEPTED}
    answer = await agent.ask(request(1, "tools/call", name="write", arguments={"path": "a"}, **more))
    assert answer["result"]["isError"] is True
    await assert_asked_again(agent, stateless(2, **more))
    assert scene.calls_received() == []


async def test_a_request_state_of_another_run_is_rejected(scene: Scene) -> None:
    config = scene.config(RULE)
    first, second = scene.run(config), scene.run(config)
    state = await request_state_of(first)
    await assert_asked_again(second, stateless(1, requestState=state, inputResponses=ACCEPTED))
    assert scene.calls_received() == []


def set_clock(later: Path, seconds: str) -> None:
    """Replace the file at once: hookproxy may read it at any time."""
    new = later.with_name("new")
    new.write_text(seconds)
    new.replace(later)


async def test_a_request_state_expires_after_an_hour(scene: Scene) -> None:
    later = scene.folder / "later"
    later.write_text("0")
    shifted = (
        f"import time; real = time.monotonic; time.monotonic = lambda: real() + float(open({str(later)!r}).read())"
    )
    clock = scene.file("sitecustomize.py", shifted)
    agent = scene.run(scene.config(RULE), env={"PYTHONPATH": str(Path(clock).parent)})
    state_sealer = [await request_state_of(agent, number) for number in ("first", "second")]
    set_clock(later, "3590")
    assert text_of(await agent.ask(stateless(1, requestState=state_sealer[0], inputResponses=ACCEPTED))) == "ran write"
    set_clock(later, "3700")
    await assert_asked_again(agent, stateless(2, requestState=state_sealer[1], inputResponses=ACCEPTED))
    assert len(scene.calls_received()) == 1


@pytest.mark.parametrize(
    "reply",
    [
        b'{"hookproxy.ask":{},"hookproxy.ask":{"action":"accept","content":{"decision":"allow once"}}}',
        b'{"hookproxy.ask":{"action":"accept","action":"decline","content":{"decision":"allow once"}}}',
        b'{"hookproxy\\u002eask":[{"action":"accept","content":{"decision":"allow once"}}]}',
        b'[{"action":"accept","content":{"decision":"allow once"}}]',
        b"null",
        b'{"other":{"action":"accept","content":{"decision":"allow once"}}}',
    ],
)
async def test_an_answer_that_readers_could_take_differently_is_not_an_approval(scene: Scene, reply: bytes) -> None:
    agent = scene.run(scene.config(RULE))
    line = json.dumps(stateless(1, requestState=await request_state_of(agent), inputResponses="HERE")).encode()
    await agent.send(line.replace(b'"HERE"', reply) + b"\n")
    answer = await agent.answer(1)
    assert "error" in answer or answer["result"]["isError"] is True
    assert scene.calls_received() == []


# --- agents that cheat: approval requests ---


@pytest.mark.parametrize(("first", "then"), [(NO, ONCE), (ONCE, NO)])
async def test_the_first_answer_counts(scene: Scene, first: str, then: str) -> None:
    agent = await lean(scene, scene.config(RULE))
    await agent.send(call(1, "write"))
    question = await agent.notified("elicitation/create")
    await agent.send(answers(question, first), answers(question, then))
    passes = first == ONCE
    assert (await agent.answer(1))["result"].get("isError", False) is not passes
    await agent.ask(request("sync", "ping"))
    assert len(scene.calls_received()) == passes
    assert not any(b"hookproxy:" in line for line in scene.received())


@pytest.mark.parametrize("spelling", ["\\u0068ookproxy:", "hookproxy\\u003a", "\\u0068\\u006F\\u006f\\u006bproxy:"])
async def test_an_answer_whose_id_is_spelled_differently_is_the_answer(scene: Scene, spelling: str) -> None:
    agent = await lean(scene, scene.config(RULE))
    await agent.send(call(1, "write"))
    question = await agent.notified("elicitation/create")
    line = json.dumps(answers(question)).replace("hookproxy:", spelling)
    assert spelling in line
    await agent.send(line.encode() + b"\n")
    assert text_of(await agent.answer(1)) == "ran write"
    assert [json.loads(line).get("method") for line in scene.received()] == [
        "initialize",
        "notifications/initialized",
        "tools/call",
    ]


async def test_an_answer_before_the_approval_request_or_to_another_one_is_ignored(scene: Scene) -> None:
    agent = await lean(scene, scene.config(RULE))
    early = [answers({"id": one}) for one in ("hookproxy:", "hookproxy:0", "hookproxy:" + "0" * 16)]
    await agent.send(*early, call(1, "write"), *early)
    question = await agent.notified("elicitation/create")
    await agent.send(*early, answers({"id": question["id"].upper()}), answers({"id": question["id"] + " "}))
    await agent.ask(request("sync", "ping"))
    assert scene.calls_received() == []
    await agent.send(answers(question, NO))
    assert DECLINED in text_of(await agent.answer(1))


async def test_an_answer_counts_only_for_its_own_approval_request(scene: Scene) -> None:
    agent = await lean(scene, scene.config(RULE))
    await agent.send(call(1, "write", path="a"), call(2, "write", path="b"))
    questions = [await agent.notified("elicitation/create") for _ in range(2)]
    by_path = {path: one for one in questions for path in "ab" if f'path: "{path}"' in one["params"]["message"]}
    await agent.send(answers(by_path["b"]), answers(by_path["a"], NO))
    assert text_of(await agent.answer(2)) == "ran write"
    assert DECLINED in text_of(await agent.answer(1))
    assert ran(scene) == [("write", {"path": "b"})]


@pytest.mark.parametrize("alone", [True, False])
async def test_an_answer_in_a_batch_reaches_no_server(scene: Scene, alone: bool) -> None:
    agent = await lean(scene, scene.config(RULE))
    await agent.send(call(1, "write"))
    question = await agent.notified("elicitation/create")
    batch = [answers(question)] if alone else [answers(question), request("p", "ping")]
    await agent.send(json.dumps(batch).encode() + b"\n")
    await agent.ask(request("sync", "ping"))
    agent.go()
    await agent.ended()
    assert not any(b"hookproxy:" in line for line in scene.received())


async def test_a_request_under_an_id_like_ours_is_not_taken_for_an_answer(scene: Scene) -> None:
    agent = await lean(scene, scene.config(RULE))
    await agent.send(call(1, "write"))
    question = await agent.notified("elicitation/create")
    await agent.ask(request(question["id"], "ping"))
    await agent.send(answers(question, NO))
    assert DECLINED in text_of(await agent.answer(1))


# --- servers that are like us ---


async def test_a_server_whose_ids_look_like_ours_gets_its_answers(scene: Scene) -> None:
    agent = await lean(scene, scene.config(RULE))
    asks = json.dumps(request("hookproxy:1", "roots/list")) + "\n"
    await agent.send(request("r", "raw", text=asks))
    question = await agent.notified("roots/list")
    answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}
    await agent.send(answer)
    await agent.ask(request("sync", "ping"))
    assert json.dumps(answer).encode() in scene.received()


@pytest.mark.parametrize(("era", "outer"), [("legacy", "judges"), ("auto", "asks"), ("auto", "judges")])
async def test_a_proxy_behind_a_proxy_asks_and_gets_its_answer(scene: Scene, era: str, outer: str) -> None:
    inner = [HOOKPROXY, "run", "--name=inner", scene.config(RULE), "--", *ROUNDS]
    options = {
        "asks": scene.config(RULE),
        "judges": scene.hooks(PreToolUse="true"),
    }[outer]
    person = Person(*[form_answer(ONCE)] * 3)
    with anyio.fail_after(PATIENCE):
        async with connected(scene, era, person, options, server=inner) as client:
            assert result_text(await client.call_tool("write", {"path": "a"})) == "wrote a"
    assert len(person.questions) == (2 if outer == "asks" else 1)


# --- many, and ends ---


async def test_three_hundred_approval_requests_are_pending_at_once(scene: Scene) -> None:
    agent = await lean(scene, scene.config(RULE))
    await agent.send(*[call(number, "write", n=number) for number in range(300)])
    questions = [await agent.notified("elicitation/create") for _ in range(300)]
    assert len({one["id"] for one in questions}) == 300
    await agent.ask(request("sync", "ping"))
    numbers = [int(one["params"]["message"].split("n: ")[1].split("\n")[0]) for one in questions]
    wish = {number: number % 3 == 0 for number in numbers}
    for number, question in reversed(list(zip(numbers, questions, strict=True))):
        await agent.send(answers(question, ONCE if wish[number] else NO))
    for number in numbers:
        assert ((await agent.answer(number))["result"].get("isError") is None) is wish[number]
    assert {one["params"]["arguments"]["n"] for one in scene.calls_received()} == set(range(0, 300, 3))


async def test_three_hundred_rounds_are_pending_at_once(scene: Scene) -> None:
    agent = scene.run(scene.config(RULE))
    calls = [stateless(number, arguments={"n": number}) for number in range(300)]
    await agent.send(*calls)
    state_sealer = [(await agent.answer(number))["result"]["requestState"] for number in range(300)]
    for number in range(299, -1, -1):
        more: Json = {"requestState": state_sealer[number], "inputResponses": ACCEPTED}
        await agent.send(stateless(f"again {number}", arguments={"n": number}, **more))
    for number in range(300):
        assert text_of(await agent.answer(f"again {number}")) == "ran write"
    assert len(scene.calls_received()) == 300


@pytest.mark.parametrize("end", ["of input", "of the agent", "by a signal"])
@pytest.mark.parametrize("by", ["the agent", "a prompter"])
async def test_no_approval_request_is_left_when_the_run_ends(scene: Scene, end: str, by: str) -> None:
    gate = scene.gate("prompter")
    prompter = json.dumps(["sh", "-c", f"sleep 600 & {gate.script}"])
    config = scene.config(f"on_ask_fallback = {{ command = {prompter} }}\n{RULE}")
    agent = await lean(scene, config, elicitation={} if by == "the agent" else {"url": {}})
    await agent.send(call(1, "write"))
    if by == "the agent":
        await agent.notified("elicitation/create")
    else:
        await gate.reached()
    if end == "of input":
        agent.end_input()
        rest = await agent.rest()
        assert b"The session has ended " in rest
        assert b"The tool was not run." in rest
    elif end == "of the agent":
        agent.go()
    else:
        agent.signal(signal.SIGTERM)
        await agent.rest()
    await agent.ended()
    await scene.empty()
    assert scene.calls_received() == []


@pytest.mark.parametrize("by", ["the agent", "a prompter"])
async def test_a_server_that_dies_while_a_person_is_asked_ends_the_question(scene: Scene, by: str) -> None:
    gate = scene.gate("prompter")
    prompter = json.dumps(["sh", "-c", f"sleep 600 & {gate.script}"])
    config = scene.config(f"on_ask_fallback = {{ command = {prompter} }}\n{RULE}")
    agent = await lean(scene, config, elicitation={} if by == "the agent" else {"url": {}})
    await agent.send(call(1, "write"))
    question = await agent.notified("elicitation/create") if by == "the agent" else None
    if question is None:
        await gate.reached()
    await agent.send(notification("quit", status=7))
    answer = await agent.answer(1)
    assert "exited with status 7" in answer["error"]["message"]
    if question is not None:
        assert (await agent.notified("notifications/cancelled"))["params"]["requestId"] == question["id"]
    assert await agent.rest() == b""
    assert await agent.ended() == 7


@BOTH
async def test_a_real_client_that_leaves_while_its_person_thinks_leaves_nothing_behind(scene: Scene, era: str) -> None:
    person = SlowPerson()
    with anyio.move_on_after(2 * PATIENCE) as scope:
        async with connected(scene, era, person, hooks_that_ask(scene)) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "write", {"path": "a"})
            await person.thinks.wait()
            scope.cancel()
    await scene.empty(within=PATIENCE)
    assert ran(scene) == []


# --- the record ---


def records(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@BOTH
async def test_the_audit_record_names_who_was_asked_and_the_outcome(scene: Scene, era: str) -> None:
    audit = scene.folder / "audit.jsonl"
    config = scene.config(f'{RULE}[audit]\nfile = "{audit}"\nrequired = true\n')
    async with connected(scene, era, Person(form_answer(ONCE), form_answer(NO)), config) as client:
        await client.call_tool("write", {"path": "a"})
        await client.call_tool("write", {"path": "b"})
    found = [(one["decision"], one["result"]) for one in records(audit) if one["result"] not in ("pending", "begun")]
    assert found == [("asked-allow", "ok"), ("asked-deny", "refused")]
    pending = [one for one in records(audit) if one["result"] == "pending"]
    assert [one["decision"] for one in pending] == (["asked", "asked"] if era == "auto" else [])


@pytest.mark.parametrize("on_ask", ["allow", "deny"])
async def test_an_answer_from_the_configuration_is_recorded_like_that_of_a_person(scene: Scene, on_ask: str) -> None:
    audit = scene.folder / "audit.jsonl"
    config = scene.config(f'on_ask = "{on_ask}"\n{RULE}[audit]\nfile = "{audit}"\nrequired = true\n')
    agent = await lean(scene, config)
    await agent.ask(call(1, "write"))
    await agent.ask(request("sync", "ping"))
    ended = [one for one in records(audit) if one["result"] != "begun"]
    assert [one["decision"] for one in ended] == [f"asked-{on_ask}"]


async def test_an_approval_request_whose_required_record_cannot_be_written_is_a_refusal(scene: Scene) -> None:
    agent = scene.run(scene.config(f'{RULE}[audit]\nfile = "/dev/full"\nrequired = true\n'))
    result = (await agent.ask(stateless(1)))["result"]
    assert result["isError"] is True
    assert "requestState" not in result
    assert "Blocked: the tool was not run" in text_of({"result": result})
    assert scene.calls_received() == []


async def test_a_required_record_that_fails_while_the_person_thinks_withholds_the_result(scene: Scene) -> None:
    folder = scene.folder / "logs"
    folder.mkdir()
    config = scene.config(f'{RULE}[audit]\nfile = "{folder}/audit.jsonl"\nrequired = true\n')
    agent = await lean(scene, config)
    await agent.send(call(1, "write"))
    question = await agent.notified("elicitation/create")
    (folder / "audit.jsonl").unlink()
    (folder / "audit.jsonl").mkdir()
    await agent.send(answers(question))
    result = (await agent.answer(1))["result"]
    assert result["isError"] is True
    assert "ran write" not in text_of({"result": result})


# --- hooks for approval requests ---


@pytest.mark.parametrize(
    "era",
    [
        "legacy",
        "auto",
    ],
)
async def test_elicitation_hooks_do_not_run_for_our_own_approval_requests(scene: Scene, era: str) -> None:
    log = scene.folder / "recorded"
    hooks = {event: [{"command": f"cat >>'{log}'"}] for event in ("Elicitation", "ElicitationResult")}
    option = f"--hooks=code-assist={scene.file('settings.json', json.dumps({'hooks': hooks}))}"
    async with connected(scene, era, Person(form_answer(ONCE)), hooks_that_ask(scene), option) as client:
        assert result_text(await client.call_tool("write", {"path": "a"})) == "wrote a"
    await scene.empty(within=PATIENCE)
    assert not log.exists(), log.read_text()


async def test_a_reason_that_is_not_valid_text_still_reaches_the_prompter(scene: Scene) -> None:
    answer = scene.prints(json.dumps(SURE).replace("sure?", "\\ud800sure?"))
    recorded = scene.folder / "recorded"
    prompter = json.dumps(["sh", "-c", f"cat >'{recorded}'"])
    config = scene.config(f"on_ask_fallback = {{ command = {prompter} }}\n")
    agent = scene.run(config, scene.hooks(PreToolUse=answer))
    await agent.initialize()
    await agent.send(call(1, "write"))
    answered = await agent.answer(1)
    assert text_of(answered) == "ran write", answered
    assert "sure?" in recorded.read_text()


@BOTH
async def test_calls_like_an_approved_one_run_for_the_session_and_no_others(scene: Scene, era: str) -> None:
    person = Person(form_answer("allow calls like this for this session"), form_answer(NO), form_answer(NO))
    async with connected(scene, era, person, hooks_that_ask(scene, "look")) as client:
        for command in ("git push origin main", "git push --force", "git push; rm -rf /", "git status"):
            result = await client.call_tool("look", {"path": "p", "command": command})
            assert result.is_error is (command in ("git push; rm -rf /", "git status"))
    assert "- allow calls like this for this session: look(git push *)" in person.questions[0].splitlines()
    assert len(person.questions) == 3


@BOTH
async def test_calls_that_fall_under_the_same_rule_run_for_the_session(scene: Scene, era: str) -> None:
    person = Person(form_answer("allow calls like this for this session"), form_answer(NO))
    config = scene.config('[permissions]\nask = ["look(/tmp/*)"]\n')
    async with connected(scene, era, person, config) as client:
        assert result_text(await client.call_tool("look", {"path": "/tmp/a"})) == "saw /tmp/a"
        assert result_text(await client.call_tool("look", {"path": "/tmp/b"})) == "saw /tmp/b"
        assert (await client.call_tool("look", {"path": "/tmp/../etc/passwd"})).is_error
    assert "- allow calls like this for this session: look(/tmp/*)" in person.questions[0].splitlines()
