"""Which hooks run, under which tool name, in which order, and what they inherit; all of them are real."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from hookproxy.dialects.dialect import Group
from hookproxy.dialects.registry import DIALECTS
from hookproxy.hooks.evaluate import Hooks
from hookproxy.model.decision import ApprovalRequest, Proceed, RefusalCause, Refuse
from hookproxy.model.hooks import Ended, Event, EventContext, HookRun, HookSpec, Order, Outcome, Tool
from hookproxy.model.settings import OnFailure, Settings, ToolNames
from tests.support.proxy_rig import SESSION, group, hook, stub, stub_group

pytestmark = pytest.mark.anyio

PRE, POST = Event.PRE_TOOL_USE, Event.POST_TOOL_USE

EVERY_CALL = "it is about every call of this tool"


def hooks(*groups: Group, settings: Settings | None = None, environ: dict[str, str] | None = None) -> Hooks:
    return Hooks(groups, settings or Settings(), "my files", environ or dict(os.environ))


def context(event: Event = PRE, tool: str = "write", arguments: bytes = b'{"a":1}') -> EventContext:
    outcome = None if event is PRE else Outcome(content=b'[{"type":"text","text":"x"}]')
    return EventContext(event, SESSION, tool=tool, arguments=arguments, outcome=outcome)


def recording(folder: Path, name: str, then: str = "") -> str:
    """A hook that keeps its document in a file of this name."""
    return f"cat > {shlex.quote(str(folder / name))}; {then or ':'}"


def hook_inputs(folder: Path) -> dict[str, dict[str, Any]]:
    return {path.name: json.loads(path.read_bytes()) for path in folder.iterdir()}


def rewriting(**arguments: object) -> str:
    answer = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": arguments}}
    return f"echo {shlex.quote(json.dumps(answer))}"


async def decision_of(some_hooks: Hooks, event_context: EventContext, listed: Tool | None = None) -> Proceed | Refuse:
    with anyio.fail_after(30):
        return (await some_hooks.run_pre_hooks(event_context, listed, [])).decision


async def test_only_hooks_of_the_event_whose_matcher_fits_run(tmp_path: Path) -> None:
    some_hooks = hooks(
        group(
            hook(recording(tmp_path, "all")),
            hook(recording(tmp_path, "write"), matcher="write|edit"),
            hook(recording(tmp_path, "pattern"), matcher="^wr.*"),
            hook(recording(tmp_path, "read"), matcher="read"),
            hook(recording(tmp_path, "post"), POST),
        )
    )
    assert await decision_of(some_hooks, context()) == Proceed()
    assert set(hook_inputs(tmp_path)) == {"all", "write", "pattern"}


@pytest.mark.parametrize(
    ("names", "both", "matcher", "seen"),
    [
        (ToolNames.MCP, False, "mcp__my_files__.*", "mcp__my_files__write"),
        (ToolNames.MCP, False, "write", None),
        (ToolNames.BARE, False, "write", "write"),
        (ToolNames.BARE, False, "mcp__my_files__write", None),
        (ToolNames.BARE, True, "mcp__my_files__write", "write"),
        (ToolNames.BARE, True, "write", "write"),
    ],
)
async def test_a_group_sees_a_tool_under_the_name_it_expects(
    tmp_path: Path, names: ToolNames, both: bool, matcher: str, seen: str | None
) -> None:
    one = replace(group(hook(recording(tmp_path, "x"), matcher=matcher)), tool_names=names, match_all_names=both)
    some_hooks = hooks(one)
    await decision_of(some_hooks, context())
    assert [document["tool_name"] for document in hook_inputs(tmp_path).values()] == ([seen] if seen else [])


async def test_a_hook_that_is_configured_twice_runs_once(tmp_path: Path) -> None:
    count = f"echo x >> {shlex.quote(str(tmp_path / 'count'))}"
    some_hooks = hooks(group(hook(count), hook(count, matcher="write")), group(hook(count), hook(f"{count}; true")))
    await decision_of(some_hooks, context())
    assert (tmp_path / "count").read_text() == "x\nx\n"


async def test_hooks_of_one_group_run_in_parallel_and_see_the_same_arguments(tmp_path: Path) -> None:
    for name in ("one", "two"):
        os.mkfifo(tmp_path / name)
    one, two = (shlex.quote(str(tmp_path / name)) for name in ("one", "two"))
    told = tmp_path / "told"
    told.mkdir()
    meets = f"read x < {one}; echo y > {two}"  # neither ends unless both run
    waits = f"echo x > {one}; read y < {two}"
    some_hooks = hooks(
        group(hook(recording(told, "a", f"{meets}; {rewriting(n=1)}")), hook(recording(told, "b", waits)))
    )
    assert await decision_of(some_hooks, context()) == Proceed(arguments=b'{"n": 1}')
    assert [document["tool_input"] for document in hook_inputs(told).values()] == [{"a": 1}, {"a": 1}]


async def test_hooks_of_a_serial_dialect_run_one_after_another(tmp_path: Path) -> None:
    serial = replace(DIALECTS["claude"], order=Order.SERIAL)
    path = shlex.quote(str(tmp_path / "order"))
    specs = [hook(f"echo {name} >> {path}; sleep 0.0{4 - name}; echo {name} >> {path}") for name in range(4)]
    some_hooks = hooks(replace(group(*specs), dialect=serial))
    await decision_of(some_hooks, context())
    assert (tmp_path / "order").read_text().split() == ["0", "0", "1", "1", "2", "2", "3", "3"]


async def test_a_group_sees_the_normalised_rewrite_of_the_group_before_it(tmp_path: Path) -> None:
    some_hooks = hooks(group(hook(rewriting(path="a/b"))), group(hook(recording(tmp_path, "x"))))
    with anyio.fail_after(30):
        hook_runs: list[HookRun] = []
        evaluation = await some_hooks.run_pre_hooks(context(), None, hook_runs)
    assert hook_inputs(tmp_path)["x"]["tool_input"] == {"path": "a/b"}
    assert evaluation.arguments == b'{"path":"a/b"}'
    assert evaluation.decision == Proceed(arguments=b'{"path": "a/b"}')
    assert len(hook_runs) == 2


async def test_after_a_denial_no_further_group_runs_and_earlier_feedback_is_kept(tmp_path: Path) -> None:
    printed = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "Psst."}})
    some_hooks = hooks(
        group(hook(f"echo {shlex.quote(printed)}")),
        group(hook("echo no >&2; exit 2")),
        group(hook(recording(tmp_path, "x"))),
    )
    decision = await decision_of(some_hooks, context())
    assert isinstance(decision, Refuse)
    assert (decision.reason, decision.feedback) == ("no", ("Psst.",))
    assert hook_inputs(tmp_path) == {}


async def test_a_hook_does_not_run_on_calls_for_which_its_if_does_not_hold(tmp_path: Path) -> None:
    one = replace(hook(recording(tmp_path, "x")), only_if="write(/etc/*)")
    some_hooks = hooks(group(one))
    await decision_of(some_hooks, context(arguments=b'{"path":"/home/x"}'))
    assert hook_inputs(tmp_path) == {}
    await decision_of(some_hooks, context(arguments=b'{"path":"/etc/passwd"}'))
    assert set(hook_inputs(tmp_path)) == {"x"}


async def test_an_if_of_a_second_group_is_tried_on_the_rewrite_of_the_first(tmp_path: Path) -> None:
    one = replace(hook(recording(tmp_path, "x")), only_if="write(/etc/*)")
    some_hooks = hooks(group(hook(rewriting(path="/etc/passwd"))), group(one))
    await decision_of(some_hooks, context(arguments=b'{"path":"/home/x"}'))
    assert set(hook_inputs(tmp_path)) == {"x"}


async def test_a_rewrite_that_does_not_fit_the_schema_is_a_failure_and_is_not_applied() -> None:
    listed = Tool("write", input_schema=b'{"required":["path"]}')
    some_hooks = hooks(group(hook(rewriting(n=1))))
    assert await decision_of(some_hooks, context(), listed) == Proceed(), (
        "a failure: by its document, the hook does not count"
    )
    strict = hooks(group(hook(rewriting(n=1))), settings=Settings(on_failure=OnFailure.DENY))
    decision = await decision_of(strict, context(), listed)
    assert isinstance(decision, Refuse)
    assert "'path' is a required property" in decision.reason
    assert await decision_of(strict, context(), Tool("write")) == Proceed(arguments=b'{"n": 1}')


async def test_the_feedback_of_all_groups_post_hooks_is_combined() -> None:
    def comment(text: str) -> HookSpec:
        return hook(f"echo {shlex.quote(json.dumps({'decision': 'block', 'reason': text}))}", POST)

    with anyio.fail_after(30):
        hook_runs: list[HookRun] = []
        comments = await hooks(group(comment("one")), group(comment("two"))).run_post_hooks(context(POST), hook_runs)
    assert comments.feedback == ("one", "two")
    assert len(hook_runs) == 2


async def test_session_hooks_are_selected_by_the_trigger_of_the_event(tmp_path: Path) -> None:
    start = Event.SESSION_START
    some_hooks = hooks(
        group(
            hook(recording(tmp_path, "startup"), start, matcher="startup"),
            hook(recording(tmp_path, "resume"), start, matcher="resume"),
            hook(recording(tmp_path, "any", "echo Hello"), start),
        )
    )
    with anyio.fail_after(30):
        hook_runs = await some_hooks.run_event_hooks(EventContext(start, SESSION, trigger="startup"))
    assert set(hook_inputs(tmp_path)) == {"startup", "any"}
    assert [text for one in hook_runs for text in one.verdict.feedback] == ["Hello"]


async def test_a_background_hook_is_not_awaited_and_decides_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    waiting = f"read x < {shlex.quote(str(tmp_path / 'go'))}; touch {shlex.quote(str(tmp_path / 'done'))}; exit 2"
    some_hooks = hooks(group(replace(hook(waiting), background=True)))
    reported: list[HookRun] = []
    async with anyio.create_task_group() as tasks:
        some_hooks.open(tasks, reported.append, lambda: None)
        assert await decision_of(some_hooks, context()) == Proceed()
        assert not (tmp_path / "done").exists()
        with anyio.fail_after(30):
            await anyio.Path(tmp_path / "go").write_text("x\n")
    assert (tmp_path / "done").exists()
    assert [one.result.code for one in reported] == [2]
    assert some_hooks.background.running == 0


async def test_hooks_inherit_our_environment_without_other_systems_variables() -> None:
    show = 'printf "%s|%s|%s" "$MINE" "$CLAUDE_PROJECT_DIR" "$CLAUDECODE" >&2; exit 2'
    environ = {"PATH": os.environ["PATH"], "MINE": "kept", "CLAUDE_PROJECT_DIR": "/elsewhere"}
    decision = await decision_of(hooks(group(hook(show)), environ=environ), context())
    assert isinstance(decision, Refuse)
    assert decision.reason == "kept|/|1"


async def test_when_the_run_is_cancelled_no_hook_process_is_left(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    reader = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    holds = f"exec 9> {shlex.quote(str(tmp_path / 'alive'))}; echo up >&9; sleep 60 & wait"
    some_hooks = hooks(group(hook(holds), hook(f"{holds}; true")))
    hook_runs: list[HookRun] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(some_hooks.run_pre_hooks, context(), None, hook_runs)
        seen = b""
        with anyio.fail_after(30):
            while seen.count(b"up") < 2:
                await anyio.wait_readable(reader)
                try:
                    seen += os.read(reader, 100)
                except BlockingIOError:
                    continue
        tasks.cancel_scope.cancel()
    with anyio.fail_after(30):
        await anyio.wait_readable(reader)
        assert os.read(reader, 100) == b"", "nobody holds the pipe any more"
    os.close(reader)
    assert [one.result.ended for one in hook_runs] == [Ended.CANCELLED] * 2


@pytest.mark.slow
async def test_very_many_hooks_of_one_call_do_not_use_up_descriptors(tmp_path: Path) -> None:
    count = shlex.quote(str(tmp_path / "count"))
    some_hooks = hooks(group(*(hook(f"echo {number} >> {count}") for number in range(300))))
    with anyio.fail_after(30):
        await some_hooks.run_pre_hooks(context(), None, [])
    assert sorted(map(int, (tmp_path / "count").read_text().split())) == list(range(300))


async def test_hooks_of_a_serial_group_run_one_after_another_and_all(tmp_path: Path) -> None:
    log = shlex.quote(str(tmp_path / "log"))
    denies = json.dumps({"permission": "deny", "reason": "no"})
    serial = [stub(PRE, f"echo {n} >> {log}; printf %s {shlex.quote(denies)}") for n in "abc"]
    assert await decision_of(hooks(stub_group(*serial)), context()) == Refuse("stub", "no\nno\nno")
    assert (tmp_path / "log").read_text().split() == ["a", "b", "c"]


async def test_after_a_denial_or_a_blocking_failure_the_rest_is_skipped_if_the_dialect_says_so(
    tmp_path: Path,
) -> None:
    log = shlex.quote(str(tmp_path / "log"))
    order = Order.UNTIL_DENIED
    crash, note = stub(PRE, f"echo crash >> {log}; exit 1"), stub(PRE, f"echo note >> {log}")
    denies = stub(PRE, permission="deny", reason="no")
    assert await decision_of(hooks(stub_group(crash, denies, note, order=order)), context()) == Refuse("stub", "no")
    closed = replace(crash, fails_closed=True)
    assert isinstance(await decision_of(hooks(stub_group(closed, note, order=order)), context()), Refuse)
    assert (tmp_path / "log").read_text().split() == ["crash", "crash"]
    lenient = hooks(stub_group(closed, note, order=order), settings=Settings(on_failure=OnFailure.ALLOW))
    assert await decision_of(lenient, context()) == Proceed()
    assert (tmp_path / "log").read_text().split()[2:] == ["crash", "note"]


async def test_hooks_that_run_in_parallel_are_combined_in_the_order_of_the_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    go = shlex.quote(str(tmp_path / "go"))
    late = stub(PRE, f"read x < {go}; printf %s {shlex.quote(json.dumps({'arguments': {'n': 1}}))}")
    early = stub(PRE, f"echo go > {go}; printf %s {shlex.quote(json.dumps({'arguments': {'n': 2}}))}")
    assert await decision_of(hooks(stub_group(late, early, order=Order.TOGETHER)), context()) == Proceed(b'{"n": 2}')


async def test_in_a_pipeline_each_hook_sees_the_arguments_that_the_one_before_rewrote(tmp_path: Path) -> None:
    first = stub(PRE, arguments={"b": 2}, merges=True)
    second = stub(PRE, f"cat > {shlex.quote(str(tmp_path / 'seen'))}")
    third = stub(PRE, arguments={"a": 9, "c": 3}, merges=True)
    some_hooks = hooks(stub_group(first, second, third, order=Order.PIPELINE))
    assert await decision_of(some_hooks, context()) == Proceed(b'{"a":9,"b":2,"c":3}')
    assert hook_inputs(tmp_path)["seen"]["arguments"] == {"a": 1, "b": 2}


async def test_a_hook_that_says_so_makes_the_hooks_of_its_event_a_pipeline(tmp_path: Path) -> None:
    first = stub(PRE, arguments={"b": 2}, merges=True)
    second = replace(stub(PRE, f"cat > {shlex.quote(str(tmp_path / 'seen'))}"), sequential=True)
    assert await decision_of(hooks(stub_group(first, second, order=Order.PARALLEL)), context()) == Proceed(
        b'{"a":1,"b":2}'
    )
    assert hook_inputs(tmp_path)["seen"]["arguments"] == {"a": 1, "b": 2}


async def test_hooks_of_a_later_stage_see_what_earlier_ones_rewrote_and_do_not_run_after_a_denial(
    tmp_path: Path,
) -> None:
    later = replace(stub(PRE, f"cat > {shlex.quote(str(tmp_path / 'seen'))}"), stage=1)
    first, second = stub(PRE, arguments={"a": 2}), stub(PRE)
    some_hooks = hooks(stub_group(later, first, second, order=Order.PARALLEL))
    assert await decision_of(some_hooks, context()) == Proceed(b'{"a": 2}')
    assert hook_inputs(tmp_path)["seen"]["arguments"] == {"a": 2}
    (tmp_path / "seen").unlink()
    denies = stub(PRE, permission="deny", reason="no")
    assert await decision_of(hooks(stub_group(later, denies, second)), context()) == Refuse("stub", "no")
    assert not (tmp_path / "seen").exists()


async def test_a_hook_that_stops_the_agent_skips_the_rest_where_its_system_says_so(tmp_path: Path) -> None:
    log = shlex.quote(str(tmp_path / "log"))
    denies = stub(PRE, f"echo denies >> {log}; printf %s {shlex.quote(json.dumps({'permission': 'deny'}))}")
    stops = stub(PRE, f"echo stops >> {log}; printf %s {shlex.quote(json.dumps({'stop': True}))}")
    rest = stub(PRE, f"echo rest >> {log}")
    decision = await decision_of(hooks(stub_group(denies, stops, rest, order=Order.UNTIL_STOPPED)), context())
    assert isinstance(decision, Refuse)
    assert decision.stop
    assert (tmp_path / "log").read_text().split() == ["denies", "stops"]


async def test_a_rewrite_that_hooks_could_not_read_is_a_failure_and_is_never_applied() -> None:
    number = "1" * 500
    says = stub(PRE, arguments=1)
    huge = replace(group(hook(rewriting(n=1).replace('"n": 1', f'"n": {number}'))))
    decision = await decision_of(hooks(huge, settings=Settings(on_failure=OnFailure.DENY)), context())
    assert isinstance(decision, Refuse)
    assert "rewrote the arguments so that they cannot be read" in decision.reason
    assert await decision_of(hooks(huge), context()) == Proceed()
    assert isinstance(
        await decision_of(hooks(stub_group(says), settings=Settings(on_failure=OnFailure.DENY)), context()), Refuse
    )


ASKS = {"permission": "ask", "reason": "sure?"}
REQUEST = Event.PERMISSION_REQUEST


@pytest.mark.parametrize(
    ("verdict", "decision"),
    [
        ({}, Proceed(approval_request=ApprovalRequest("the PreToolUse hook stub", "sure?"))),
        ({"permission": "allow"}, Proceed(asked=True)),
        ({"permission": "deny", "reason": "never"}, Refuse("stub", "never", asked=True, event=REQUEST)),
    ],
)
async def test_permission_request_hooks_answer_for_the_person(
    tmp_path: Path, verdict: dict[str, str], decision: Proceed | Refuse
) -> None:
    says = f"cat > {shlex.quote(str(tmp_path / 'seen'))}; printf %s {shlex.quote(json.dumps(verdict))}"
    some_hooks = hooks(stub_group(stub(PRE, **ASKS)), stub_group(stub(REQUEST, says)))
    assert await decision_of(some_hooks, context()) == decision
    seen = hook_inputs(tmp_path)["seen"]
    assert (seen["event"], seen["tool"], seen["message"]) == (REQUEST, "write", "sure?")


async def test_nobody_is_asked_where_a_later_group_denies(tmp_path: Path) -> None:
    request = stub(REQUEST, f"touch {shlex.quote(str(tmp_path / 'asked'))}")
    denies = stub(PRE, permission="deny", reason="no")
    assert await decision_of(hooks(stub_group(stub(PRE, **ASKS), request), stub_group(denies)), context()) == Refuse(
        "stub", "no"
    )
    assert not (tmp_path / "asked").exists()


async def test_permission_request_hooks_for_every_call_run_without_an_approval_request() -> None:
    denies = replace(stub(REQUEST, permission="deny", reason="no"), every_call=True)
    assert await decision_of(hooks(stub_group(denies)), context()) == Refuse("stub", "no", asked=True, event=REQUEST)
    assert await decision_of(hooks(stub_group(replace(denies, every_call=False))), context()) == Proceed()


async def test_of_several_answers_the_last_counts_if_the_dialect_says_so() -> None:
    answers = (stub(REQUEST, permission="deny", reason="no"), stub(REQUEST, permission="allow"))
    assert await decision_of(hooks(stub_group(stub(PRE, **ASKS), *answers)), context()) == Refuse(
        "stub", "no", asked=True, event=REQUEST
    )
    later = stub_group(stub(PRE, **ASKS), *answers, last_answer_counts=True)
    assert await decision_of(hooks(later), context()) == Proceed(asked=True)


async def test_a_rule_that_a_hook_added_answers_for_the_rest_of_the_session(tmp_path: Path) -> None:
    once = (
        f"test -e {shlex.quote(str(tmp_path / 'x'))} || printf %s {shlex.quote(json.dumps({'allows': ['write(*)']}))}"
    )
    some_hooks = hooks(stub_group(stub(PRE, **ASKS), stub(PRE, f"{once}; touch {shlex.quote(str(tmp_path / 'x'))}")))
    assert await decision_of(some_hooks, context()) == Proceed(asked=True)
    assert await decision_of(some_hooks, context()) == Proceed(asked=True)
    other = await decision_of(some_hooks, context(tool="delete"))
    assert isinstance(other, Proceed)
    assert other.approval_request, "the rule is about another tool"
    await some_hooks.allow_tool("delete", None)
    assert await decision_of(some_hooks, context(tool="delete")) == Proceed(asked=True)
    denied = hooks(stub_group(stub(PRE, permission="deny", reason="no"), stub(PRE, allows=["write"])))
    assert await decision_of(denied, context()) == Refuse("stub", "no"), "it never lifts a denial"


async def test_an_invalid_permission_rule_is_a_failure() -> None:
    some_hooks = hooks(stub_group(stub(PRE, allows=["a b"])), settings=Settings(on_failure=OnFailure.DENY))
    decision = await decision_of(some_hooks, context())
    assert isinstance(decision, Refuse)
    assert "gave an invalid permission rule" in decision.reason


async def test_a_hook_never_inherits_variables_that_another_system_set_for_our_own_process() -> None:
    show = 'printf "%s" "$HOOK_TOOL_NAME$HOOK_TOOL_OUTPUT" >&2; exit 2'
    environ = {"PATH": os.environ["PATH"], "HOOK_TOOL_NAME": "old", "HOOK_TOOL_OUTPUT": "old"}
    for name in ("claude", "lime", "claw"):
        some_hooks = hooks(replace(group(hook(show)), dialect=replace(DIALECTS["claude"], name=name)), environ=environ)
        decision = await decision_of(some_hooks, context())
        assert isinstance(decision, Refuse)
        assert decision.reason == ""


def with_rules(*groups: Group, **rules: object) -> Hooks:
    return hooks(*groups, settings=replace(Settings(), **rules))


async def test_a_deny_rule_refuses_a_call_that_hooks_allow() -> None:
    allows = stub_group(stub(PRE, permission="allow", allows=["write"], feedback=["note"]))
    decision = await decision_of(with_rules(allows, deny=("write(*)",)), context())
    assert decision == Refuse("write(*)", EVERY_CALL, cause=RefusalCause.RULE, feedback=("note",))
    assert await decision_of(with_rules(deny=("mcp__my_files__*",)), context()) == Refuse(
        "mcp__my_files__*", EVERY_CALL, cause=RefusalCause.RULE
    )


async def test_rules_are_applied_to_the_final_arguments() -> None:
    rewrites = group(hook(rewriting(path="/etc/passwd")))
    assert isinstance(
        await decision_of(with_rules(rewrites, deny=("write(/etc/*)",)), context(arguments=b'{"path":"a"}')), Refuse
    )
    cleans = group(hook(rewriting(path="a")))
    decision = await decision_of(
        with_rules(cleans, deny=("write(/etc/*)",)), context(arguments=b'{"path":"/etc/passwd"}')
    )
    assert isinstance(decision, Proceed)


async def test_an_ask_rule_makes_an_approval_request_that_hooks_may_answer() -> None:
    question = ApprovalRequest("the permission rule write of hookproxy.toml", "", "write")
    assert await decision_of(with_rules(ask=("write",)), context()) == Proceed(approval_request=question)
    answers = stub_group(stub(REQUEST, permission="allow"))
    assert await decision_of(with_rules(answers, ask=("write",)), context()) == Proceed(asked=True)
    session = with_rules(stub_group(stub(PRE, allows=["write"])), ask=("write",))
    assert await decision_of(session, context()) == Proceed(asked=True)


async def test_an_ask_rule_of_a_gateway_is_of_the_gateways_configuration() -> None:
    some_hooks = with_rules(ask=("write",), called="the gateway's configuration")
    decision = await decision_of(some_hooks, context())
    assert isinstance(decision, Proceed)
    assert decision.approval_request is not None
    assert decision.approval_request.by == "the permission rule write of the gateway's configuration"


async def test_an_allow_rule_answers_the_approval_requests_of_hooks_and_nothing_else() -> None:
    asks = stub_group(stub(PRE, **ASKS))
    assert await decision_of(with_rules(asks, allow=("write",)), context()) == Proceed(asked=True)
    decision = await decision_of(with_rules(asks, allow=("write",), ask=("write",)), context())
    assert isinstance(decision, Proceed)
    assert decision.approval_request
    assert isinstance(await decision_of(with_rules(asks, allow=("write",), deny=("write",)), context()), Refuse)


def test_rules_concern_and_hide_tools() -> None:
    some_hooks = with_rules(deny=("delete_*", "write_file(/etc/*)"), ask=("mcp__my_files__read",))
    assert [some_hooks.concerns(tool) for tool in ("delete_x", "write_file", "read", "list")] == [
        True,
        True,
        True,
        False,
    ]
    assert [some_hooks.hides(tool) for tool in ("delete_x", "write_file", "read", "list")] == [
        True,
        False,
        False,
        False,
    ]


def test_rules_about_files_concern_tools_that_may_run_commands() -> None:
    assert with_rules(deny=("Read(**/.env)",)).concerns("run_command")
    assert not with_rules(deny=("Read",)).concerns("run_command")


async def test_a_permission_request_hook_may_allow_other_arguments_which_rules_see_too() -> None:
    asks = stub(PRE, **ASKS)
    instead = stub(REQUEST, permission="allow", arguments={"path": "a"})
    assert await decision_of(hooks(stub_group(asks, instead)), context()) == Proceed(b'{"path": "a"}', asked=True)
    hook_runs = await hooks(stub_group(asks, instead)).run_pre_hooks(context(), None, [])
    assert hook_runs.arguments == b'{"path":"a"}'
    denied = await decision_of(with_rules(stub_group(asks, instead), deny=("write(a)",)), context())
    assert isinstance(denied, Refuse)
    assert denied.cause is RefusalCause.RULE
    again = await decision_of(with_rules(stub_group(asks, instead), ask=("write(a)",)), context())
    assert isinstance(again, Proceed)
    assert again.approval_request, "an ask rule is about what will run"
    unfit = await decision_of(hooks(stub_group(asks, instead)), context(), Tool("write", b'{"required":["x"]}'))
    assert isinstance(unfit, Proceed)
    assert unfit.approval_request, "what does not fit the tool is no yes"


async def test_contexts_of_a_dialect_with_a_limit_are_joined_and_cut() -> None:
    specs = [stub(POST, feedback=["a" * 6000]), stub(POST, feedback=["b" * 6000])]
    limited = stub_group(*specs)
    limited = replace(limited, dialect=replace(limited.dialect, longest_feedback=10_240))
    (text,) = (await hooks(limited).run_post_hooks(context(POST), [])).feedback
    assert text.startswith("a" * 6000 + "\n\n" + "b" * 4238 + " … [")
    assert (await hooks(stub_group(*specs)).run_post_hooks(context(POST), [])).feedback == ("a" * 6000, "b" * 6000)


async def test_a_hook_that_asks_is_not_lost_beside_one_that_defers_and_ends_first() -> None:
    def says(decision: str) -> str:
        said = {"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": decision}
        return f"echo {shlex.quote(json.dumps({'hookSpecificOutput': said}))}"

    decision = await decision_of(hooks(group(hook(f"sleep 0.05; {says('ask')}"), hook(says("defer")))), context())
    assert isinstance(decision, Proceed)
    assert decision.approval_request
    assert decision.approval_request.reason.splitlines() == ["ask", "defer"]  # as in the file
