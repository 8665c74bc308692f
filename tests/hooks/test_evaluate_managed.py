"""Managed hooks and rules see the final arguments: nothing of the user's rewrites after them or answers for them."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hookproxy.dialects.dialect import Group
from hookproxy.hooks.evaluate import Hooks
from hookproxy.model.aliases import Alias
from hookproxy.model.decision import Proceed, RefusalCause, Refuse
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event, EventContext, Tool
from hookproxy.model.settings import OnAsk, OnFailure, Settings
from hookproxy.policy.decide import settings_for, without_person
from hookproxy.protocol.tool_results import NO_OUTCOME
from tests.support.proxy_rig import SESSION, group, hook, stub, stub_group

pytestmark = pytest.mark.anyio

PRE, REQUEST = Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST
CALL = EventContext(PRE, SESSION, tool="write", arguments=b'{"a":1}')


def managed(*hooks: object) -> Group:
    one = stub_group(*hooks)  # type: ignore[arg-type]  # as they are
    return replace(one, managed=True, source="/etc/hookproxy/managed.toml", on_failure=OnFailure.DENY)


def layered(*groups: Group, users: Settings | None = None, **rules: tuple[str, ...]) -> Hooks:
    settings = replace(users or Settings(), managed=Settings(**rules))  # type: ignore[arg-type]  # rules by name
    return Hooks(groups, settings, "files", dict(os.environ))


async def decided(hooks: Hooks, context: EventContext = CALL) -> Proceed | Refuse:
    with anyio.fail_after(30):
        return (await hooks.run_pre_hooks(context, None, [])).decision


def recording(folder: Path, event: Event = PRE) -> str:
    return f"cat >> {shlex.quote(str(folder / event))}"


def hook_inputs(folder: Path, event: Event = PRE) -> list[object]:
    path = folder / event
    return [json.loads(line)["arguments"] for line in path.read_text().splitlines()] if path.exists() else []


async def test_a_managed_hook_sees_the_arguments_after_every_rewrite_of_the_users(tmp_path: Path) -> None:
    asking = stub(PRE, permission="ask")
    rewriting = stub(PRE, arguments={"a": 2})
    answering = stub(REQUEST, permission="allow", arguments={"a": 3})
    hooks = layered(managed(stub(PRE, recording(tmp_path))), stub_group(rewriting, asking, answering))
    decision = await decided(hooks)
    assert isinstance(decision, Proceed)
    assert (json.loads(decision.arguments or b""), decision.approval_request) == ({"a": 3}, None)
    assert hook_inputs(tmp_path) == [{"a": 3}]


async def test_a_managed_rule_is_applied_to_the_rewrite_of_a_users_permission_request_hook() -> None:
    asking = stub(PRE, permission="ask")
    answering = stub(REQUEST, permission="allow", arguments={"path": "/etc/passwd"})
    decision = await decided(layered(stub_group(asking, answering), deny=("write(/etc/**)",)))
    assert isinstance(decision, Refuse)
    assert decision.cause is RefusalCause.RULE


async def test_the_next_managed_hooks_and_the_rules_see_the_rewrite_of_managed_hooks(tmp_path: Path) -> None:
    one, two = managed(stub(PRE, arguments={"path": "/etc/x"})), managed(stub(PRE, recording(tmp_path)))
    decision = await decided(layered(one, two, deny=("write(/etc/**)",)))
    assert hook_inputs(tmp_path) == [{"path": "/etc/x"}]
    assert isinstance(decision, Refuse)


async def test_the_same_hook_in_the_users_file_does_not_run_in_the_managed_ones_place(tmp_path: Path) -> None:
    same = stub(PRE, recording(tmp_path))
    mine = replace(stub_group(same, stub(PRE, arguments={"a": 2})), on_failure=OnFailure.DENY)
    await decided(layered(mine, managed(same)))
    assert hook_inputs(tmp_path) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("wants", ["hook", "rule"])
@pytest.mark.parametrize("answer", ["request hook", "allow rule", "session rule", "consent", "on_ask", "fallback"])
async def test_nothing_of_the_users_answers_a_managed_approval_request(wants: str, answer: str) -> None:
    users = Settings()
    mine = [stub(PRE)]
    if answer == "request hook":
        mine = [stub(REQUEST, permission="allow")]
    elif answer == "session rule":
        mine = [stub(PRE, allows=["write"])]
    elif answer == "allow rule":
        users = Settings(allow=("write", "*"))
    elif answer == "on_ask":
        users = Settings(on_ask=OnAsk.ALLOW)
    elif answer == "fallback":
        users = Settings(on_ask_fallback=OnFailure.ALLOW, prompter=("true",))
    theirs = [managed(stub(PRE, permission="ask", reason="really?"))] if wants == "hook" else []
    hooks = layered(stub_group(*mine), *theirs, users=users, ask=("write",) if wants == "rule" else ())
    if answer == "consent":
        await hooks.allow_tool("write", None)
    decision = await decided(hooks)
    assert isinstance(decision, Proceed)
    assert decision.approval_request is not None
    assert decision.approval_request.managed
    settings = replace(users, managed=Settings())
    assert settings_for(settings, decision.approval_request).prompter == ()
    assert isinstance(without_person(decision, settings, can_ask=False), Refuse)
    assert without_person(decision, settings, can_ask=True) is decision


async def test_a_persons_approval_of_a_managed_request_holds_for_the_session() -> None:
    hooks = layered(ask=("write",))
    decision = await decided(hooks)
    assert isinstance(decision, Proceed)
    assert decision.approval_request is not None
    assert decision.approval_request.by == "the managed permission rule write"
    await hooks.allow_tool("write", decision.approval_request)
    assert await decided(hooks) == Proceed(asked=True)


async def test_a_managed_denial_stands_whatever_the_user_allows() -> None:
    users = Settings(allow=("*",))
    mine = stub_group(stub(PRE, permission="allow", allows=["*"]), stub(REQUEST, permission="allow"))
    decision = await decided(layered(mine, managed(stub(PRE, permission="deny", reason="no")), users=users))
    assert isinstance(decision, Refuse)
    assert isinstance(await decided(layered(mine, users=users, deny=("wr*",))), Refuse)


async def test_managed_permission_request_hooks_and_rules_answer_managed_approval_requests() -> None:
    asking = managed(stub(PRE, permission="ask"))
    answering = managed(stub(PRE, permission="ask"), stub(REQUEST, permission="allow"))
    assert await decided(layered(answering)) == Proceed(asked=True)
    assert await decided(layered(asking, allow=("write",))) == Proceed(asked=True)


async def test_an_approval_request_of_the_users_stays_and_managed_permission_request_hooks_may_deny_it(
    tmp_path: Path,
) -> None:
    asking = stub_group(stub(PRE, permission="ask", reason="mine"))
    decision = await decided(layered(asking, managed(stub(PRE)), allow=("write",)))
    assert isinstance(decision, Proceed)
    assert decision.approval_request is not None
    assert (decision.approval_request.managed, decision.approval_request.reason) == (False, "mine")
    assert isinstance(await decided(layered(asking, managed(stub(REQUEST, permission="deny")))), Refuse)


async def test_two_approval_requests_become_one_managed_request_with_both_reasons() -> None:
    mine, theirs = stub(PRE, permission="ask", reason="mine"), stub(PRE, permission="ask", reason="theirs")
    decision = await decided(layered(stub_group(mine), managed(theirs)))
    assert isinstance(decision, Proceed)
    assert decision.approval_request is not None
    assert (decision.approval_request.managed, decision.approval_request.reason) == (True, "theirs\nmine")


async def test_feedback_of_users_hooks_goes_with_the_decision_of_managed_hooks() -> None:
    mine = stub_group(stub(PRE, feedback=["mine"], arguments={"a": 2}))
    decision = await decided(layered(mine, managed(stub(PRE, feedback=["theirs"]))))
    assert isinstance(decision, Proceed)
    assert (decision.feedback, json.loads(decision.arguments or b"")) == (("mine", "theirs"), {"a": 2})
    refused = await decided(layered(mine, managed(stub(PRE, feedback=["theirs"], permission="deny"))))
    assert refused.feedback == ("mine", "theirs")


async def test_a_call_that_the_users_hooks_deny_is_denied_and_no_managed_hook_runs(tmp_path: Path) -> None:
    mine = stub_group(stub(PRE, permission="deny"))
    assert isinstance(await decided(layered(mine, managed(stub(PRE, recording(tmp_path))))), Refuse)
    assert hook_inputs(tmp_path) == []


async def test_a_failure_of_a_managed_hook_denies_whatever_the_user_configures() -> None:
    decision = await decided(layered(managed(hook("exit 1")), users=Settings(on_failure=OnFailure.ALLOW)))
    assert isinstance(decision, Refuse)


async def test_a_managed_hook_runs_in_a_clean_environment(tmp_path: Path) -> None:
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "LD_EVIL": "x", "HOME": str(tmp_path)}
    seen = tmp_path / "seen"
    theirs = managed(stub(PRE, f"env > {shlex.quote(str(seen))}"))
    hooks = Hooks([theirs], Settings(managed=Settings()), "files", environ)
    assert await decided(hooks) == Proceed()
    variables = dict(line.split("=", 1) for line in seen.read_text().splitlines())
    assert str(tmp_path) not in variables["PATH"]
    assert variables["HOME"] == "/nonexistent"
    assert "LD_EVIL" not in variables


async def test_an_alias_of_the_users_hides_nothing_from_managed_hooks_and_rules(tmp_path: Path) -> None:
    alias = Alias("write", "Bash", {"command": "path"})
    users = Settings(aliases=(alias,))
    seen = managed(replace(stub(PRE, recording(tmp_path)), matches=lambda name: name == "write"))
    call = replace(CALL, alias=alias, arguments=b'{"path":"/etc/passwd"}')
    assert await decided(layered(seen, users=users), call) == Proceed()
    assert hook_inputs(tmp_path) == [{"path": "/etc/passwd"}]
    assert isinstance(await decided(layered(users=users, deny=("write(/etc/**)",)), call), Refuse)
    rewriting = managed(stub(PRE, arguments={"path": "/tmp/x"}))
    decision = await decided(layered(rewriting, users=users), call)
    assert isinstance(decision, Proceed)
    assert json.loads(decision.arguments or b"") == {"path": "/tmp/x"}


async def test_an_alias_of_the_users_hides_nothing_from_managed_hooks_after_a_call(tmp_path: Path) -> None:
    alias = Alias("write", "Harmless", {"command": "path"})
    event = Event.POST_TOOL_USE
    seen = replace(stub(event, recording(tmp_path, event)), matches=lambda name: name == "write")
    hooks = layered(stub_group(seen), managed(seen), users=Settings(aliases=(alias,)))
    call = replace(CALL, event=event, alias=alias, tool_name="Harmless", arguments=b'{"path":"/etc/passwd"}')
    call = replace(call, outcome=NO_OUTCOME)
    with anyio.fail_after(30):
        await hooks.run_post_hooks(call, [])
        await hooks.run_event_hooks(call)
    users, theirs = {"command": "/etc/passwd"}, {"path": "/etc/passwd"}
    assert hook_inputs(tmp_path, event) == [users, theirs, users, theirs]


@pytest.mark.parametrize(
    "users",
    [Settings(auto_aliases=False), Settings(aliases=(Alias("execute_command"),))],
    ids=["aliases off", "no other name"],
)
def test_no_name_of_the_users_keeps_an_outcome_from_managed_hooks(users: Settings) -> None:
    theirs = managed(replace(hook("", event=Event.POST_TOOL_USE), matches=lambda name: name == "Bash"))
    hooks = layered(theirs, users=users)
    assert hooks.concerns("execute_command")
    assert hooks.observes_outcome("execute_command")
    assert hooks.has_post_hooks_for("execute_command")
    hooks.note_tools([Tool("create_issue", b'{"type":"object","properties":{"title":{"type":"string"}}}')], "")
    assert not hooks.observes_outcome("create_issue")


def test_no_hook_of_the_users_may_call_a_tool_that_managed_hooks_or_rules_are_about() -> None:
    tool_call = replace(hook(""), shell="", type="mcp_tool", server="files", tool="die")
    users = replace(group(tool_call), source="mine")
    with pytest.raises(ConfigError, match="calls the tool die, to which managed hooks or rules apply"):
        layered(users, ask=("d*",))
    with pytest.raises(ConfigError, match="calls the tool die"):
        layered(users, managed(stub(PRE)))
    layered(users, deny=("other",))
    layered(replace(users, managed=True), deny=("die",))  # the administrator's own may be one


def test_no_hook_of_the_users_may_call_a_tool_that_only_a_preset_knows_by_the_name_of_managed_hooks() -> None:
    theirs = managed(replace(stub(PRE), matches=lambda name: name == "Bash"))
    tool_call = replace(hook(""), shell="", type="mcp_tool", server="files", tool="interact_with_process")
    with pytest.raises(ConfigError, match="calls the tool interact_with_process"):
        layered(replace(group(tool_call), source="mine"), theirs)


@pytest.mark.parametrize("arguments", [b'{"shell_cmd":"rm x"}', b'{"argv":["rm"]}', b'{"program":"rm","args":["x"]}'])
def test_no_hook_of_the_users_may_run_a_command_that_managed_rules_for_bash_do_not_see(arguments: bytes) -> None:
    tool_call = replace(hook(""), shell="", type="mcp_tool", server="files", tool="do_it", input=arguments)
    with pytest.raises(ConfigError, match="calls the tool do_it"):
        layered(replace(group(tool_call), source="mine"), deny=("Bash(rm *)",))
    layered(replace(group(replace(tool_call, input=b'{"text":"rm"}')), source="mine"), deny=("Bash(rm *)",))


def test_rules_of_both_layers_concern_and_hide_tools() -> None:
    hooks = layered(users=Settings(deny=("mine",)), deny=("theirs",))
    assert hooks.has_rules
    assert [hooks.hides(tool) for tool in ("mine", "theirs", "other")] == [True, True, False]
    assert [hooks.concerns(tool) for tool in ("mine", "theirs", "other")] == [True, True, False]
