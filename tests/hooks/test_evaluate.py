"""Which hooks are asked, under which name, in which order, and what they inherit; all of them real."""

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
from tests.rig import SESSION, frank, frank_group, group, hook

pytestmark = pytest.mark.anyio

PRE, POST = Event.PRE_TOOL_USE, Event.POST_TOOL_USE


def hooks(*groups: Group, settings: Settings | None = None, environ: dict[str, str] | None = None) -> Hooks:
    return Hooks(groups, settings or Settings(), "my files", environ or dict(os.environ))


def context(event: Event = PRE, tool: str = "write", arguments: bytes = b'{"a":1}') -> EventContext:
    outcome = None if event is PRE else Outcome(content=b'[{"type":"text","text":"x"}]')
    return EventContext(event, SESSION, tool=tool, arguments=arguments, outcome=outcome)


def noting(folder: Path, name: str, then: str = "") -> str:
    """A hook that keeps its document in a file of this name."""
    return f"cat > {shlex.quote(str(folder / name))}; {then or ':'}"


def documents(folder: Path) -> dict[str, dict[str, Any]]:
    return {path.name: json.loads(path.read_bytes()) for path in folder.iterdir()}


def rewriting(**arguments: object) -> str:
    answer = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": arguments}}
    return f"echo {shlex.quote(json.dumps(answer))}"


async def ask(asked: Hooks, what: EventContext, listed: Tool | None = None) -> Proceed | Refuse:
    with anyio.fail_after(10):
        return (await asked.before(what, listed, [])).decision


async def test_only_hooks_of_the_event_whose_matcher_fits_are_asked(tmp_path: Path) -> None:
    asked = hooks(
        group(
            hook(noting(tmp_path, "all")),
            hook(noting(tmp_path, "write"), matcher="write|edit"),
            hook(noting(tmp_path, "pattern"), matcher="^wr.*"),
            hook(noting(tmp_path, "read"), matcher="read"),
            hook(noting(tmp_path, "post"), POST),
        )
    )
    assert await ask(asked, context()) == Proceed()
    assert set(documents(tmp_path)) == {"all", "write", "pattern"}


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
    one = replace(group(hook(noting(tmp_path, "x"), matcher=matcher)), tool_names=names, match_all_names=both)
    asked = hooks(one)
    await ask(asked, context())
    assert [document["tool_name"] for document in documents(tmp_path).values()] == ([seen] if seen else [])


async def test_a_hook_that_stands_twice_runs_once(tmp_path: Path) -> None:
    count = f"echo x >> {shlex.quote(str(tmp_path / 'count'))}"
    asked = hooks(group(hook(count), hook(count, matcher="write")), group(hook(count), hook(f"{count}; true")))
    await ask(asked, context())
    assert (tmp_path / "count").read_text() == "x\nx\n"


async def test_hooks_of_one_group_run_at_once_and_see_the_same(tmp_path: Path) -> None:
    for name in ("one", "two"):
        os.mkfifo(tmp_path / name)
    one, two = (shlex.quote(str(tmp_path / name)) for name in ("one", "two"))
    told = tmp_path / "told"
    told.mkdir()
    meets = f"read x < {one}; echo y > {two}"  # neither ends unless both run
    waits = f"echo x > {one}; read y < {two}"
    asked = hooks(group(hook(noting(told, "a", f"{meets}; {rewriting(n=1)}")), hook(noting(told, "b", waits))))
    assert await ask(asked, context()) == Proceed(arguments=b'{"n": 1}')
    assert [document["tool_input"] for document in documents(told).values()] == [{"a": 1}, {"a": 1}]


async def test_hooks_of_a_serial_dialect_run_one_after_another(tmp_path: Path) -> None:
    serial = replace(DIALECTS["claude"], order=Order.SERIAL)
    path = shlex.quote(str(tmp_path / "order"))
    specs = [hook(f"echo {name} >> {path}; sleep 0.0{4 - name}; echo {name} >> {path}") for name in range(4)]
    asked = hooks(replace(group(*specs), dialect=serial))
    await ask(asked, context())
    assert (tmp_path / "order").read_text().split() == ["0", "0", "1", "1", "2", "2", "3", "3"]


async def test_a_group_sees_what_the_one_before_it_rewrote_normalised(tmp_path: Path) -> None:
    asked = hooks(group(hook(rewriting(path="a/b"))), group(hook(noting(tmp_path, "x"))))
    with anyio.fail_after(10):
        hook_runs: list[HookRun] = []
        evaluation = await asked.before(context(), None, hook_runs)
    assert documents(tmp_path)["x"]["tool_input"] == {"path": "a/b"}
    assert evaluation.arguments == b'{"path":"a/b"}'
    assert evaluation.decision == Proceed(arguments=b'{"path": "a/b"}')
    assert len(hook_runs) == 2


async def test_a_denial_in_one_group_ends_the_asking_and_keeps_what_was_said_before(tmp_path: Path) -> None:
    printed = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "Psst."}})
    asked = hooks(
        group(hook(f"echo {shlex.quote(printed)}")),
        group(hook("echo no >&2; exit 2")),
        group(hook(noting(tmp_path, "x"))),
    )
    decision = await ask(asked, context())
    assert isinstance(decision, Refuse)
    assert (decision.reason, decision.feedback) == ("no", ("Psst.",))
    assert documents(tmp_path) == {}


async def test_a_rule_leaves_out_calls_that_it_does_not_mean(tmp_path: Path) -> None:
    one = replace(hook(noting(tmp_path, "x")), only_if="write(/etc/*)")
    asked = hooks(group(one))
    await ask(asked, context(arguments=b'{"path":"/home/x"}'))
    assert documents(tmp_path) == {}
    await ask(asked, context(arguments=b'{"path":"/etc/passwd"}'))
    assert set(documents(tmp_path)) == {"x"}


async def test_a_rule_of_a_second_group_is_tried_on_what_the_first_rewrote(tmp_path: Path) -> None:
    one = replace(hook(noting(tmp_path, "x")), only_if="write(/etc/*)")
    asked = hooks(group(hook(rewriting(path="/etc/passwd"))), group(one))
    await ask(asked, context(arguments=b'{"path":"/home/x"}'))
    assert set(documents(tmp_path)) == {"x"}


async def test_a_rewrite_that_does_not_fit_is_trouble_and_is_not_applied() -> None:
    listed = Tool("write", input_schema=b'{"required":["path"]}')
    asked = hooks(group(hook(rewriting(n=1))))
    assert await ask(asked, context(), listed) == Proceed(), "trouble: by its document, the hook does not count"
    strict = hooks(group(hook(rewriting(n=1))), settings=Settings(on_failure=OnFailure.DENY))
    decision = await ask(strict, context(), listed)
    assert isinstance(decision, Refuse)
    assert "'path' is a required property" in decision.reason
    assert await ask(strict, context(), Tool("write")) == Proceed(arguments=b'{"n": 1}')


async def test_what_post_hooks_of_all_groups_say_comes_together() -> None:
    def comment(text: str) -> HookSpec:
        return hook(f"echo {shlex.quote(json.dumps({'decision': 'block', 'reason': text}))}", POST)

    with anyio.fail_after(10):
        hook_runs: list[HookRun] = []
        comments = await hooks(group(comment("one")), group(comment("two"))).after(context(POST), hook_runs)
    assert comments.feedback == ("one", "two")
    assert len(hook_runs) == 2


async def test_session_hooks_are_chosen_by_what_occasioned_the_event(tmp_path: Path) -> None:
    start = Event.SESSION_START
    asked = hooks(
        group(
            hook(noting(tmp_path, "startup"), start, matcher="startup"),
            hook(noting(tmp_path, "resume"), start, matcher="resume"),
            hook(noting(tmp_path, "any", "echo Hello"), start),
        )
    )
    with anyio.fail_after(10):
        hook_runs = await asked.at(EventContext(start, SESSION, trigger="startup"))
    assert set(documents(tmp_path)) == {"startup", "any"}
    assert [text for one in hook_runs for text in one.verdict.feedback] == ["Hello"]


async def test_a_background_hook_is_not_awaited_and_decides_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    waiting = f"read x < {shlex.quote(str(tmp_path / 'go'))}; touch {shlex.quote(str(tmp_path / 'done'))}; exit 2"
    asked = hooks(group(replace(hook(waiting), background=True)))
    reported: list[HookRun] = []
    async with anyio.create_task_group() as tasks:
        asked.begin(tasks, reported.append, lambda: None)
        assert await ask(asked, context()) == Proceed()
        assert not (tmp_path / "done").exists()
        with anyio.fail_after(10):
            await anyio.Path(tmp_path / "go").write_text("x\n")
    assert (tmp_path / "done").exists()
    assert [one.result.code for one in reported] == [2]
    assert asked.aside.running == 0


async def test_hooks_inherit_our_environment_without_what_tells_of_other_systems() -> None:
    show = 'printf "%s|%s|%s" "$MINE" "$CLAUDE_PROJECT_DIR" "$CLAUDECODE" >&2; exit 2'
    environ = {"PATH": os.environ["PATH"], "MINE": "kept", "CLAUDE_PROJECT_DIR": "/elsewhere"}
    decision = await ask(hooks(group(hook(show)), environ=environ), context())
    assert isinstance(decision, Refuse)
    assert decision.reason == "kept|/|1"


async def test_when_the_asking_is_cancelled_no_hook_is_left(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    reader = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    holds = f"exec 9> {shlex.quote(str(tmp_path / 'alive'))}; echo up >&9; sleep 60 & wait"
    asked = hooks(group(hook(holds), hook(f"{holds}; true")))
    hook_runs: list[HookRun] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.before, context(), None, hook_runs)
        seen = b""
        with anyio.fail_after(10):
            while seen.count(b"up") < 2:
                await anyio.wait_readable(reader)
                try:
                    seen += os.read(reader, 100)
                except BlockingIOError:
                    continue
        tasks.cancel_scope.cancel()
    with anyio.fail_after(10):
        await anyio.wait_readable(reader)
        assert os.read(reader, 100) == b"", "nobody holds the pipe any more"
    os.close(reader)
    assert [one.result.ended for one in hook_runs] == [Ended.CANCELLED] * 2


async def test_very_many_hooks_of_one_call_do_not_use_up_descriptors(tmp_path: Path) -> None:
    count = shlex.quote(str(tmp_path / "count"))
    asked = hooks(group(*(hook(f"echo {number} >> {count}") for number in range(300))))
    with anyio.fail_after(30):
        await asked.before(context(), None, [])
    assert sorted(map(int, (tmp_path / "count").read_text().split())) == list(range(300))


async def test_hooks_of_a_serial_group_run_one_after_another_and_all(tmp_path: Path) -> None:
    log = shlex.quote(str(tmp_path / "log"))
    denies = json.dumps({"permission": "deny", "reason": "no"})
    serial = [frank(PRE, f"echo {n} >> {log}; printf %s {shlex.quote(denies)}") for n in "abc"]
    assert await ask(hooks(frank_group(*serial)), context()) == Refuse("frank", "no\nno\nno")
    assert (tmp_path / "log").read_text().split() == ["a", "b", "c"]


async def test_after_a_denial_or_trouble_that_blocks_the_rest_is_skipped_where_the_dialect_says_so(
    tmp_path: Path,
) -> None:
    log = shlex.quote(str(tmp_path / "log"))
    order = Order.UNTIL_DENIED
    crash, note = frank(PRE, f"echo crash >> {log}; exit 1"), frank(PRE, f"echo note >> {log}")
    denies = frank(PRE, permission="deny", reason="no")
    assert await ask(hooks(frank_group(crash, denies, note, order=order)), context()) == Refuse("frank", "no")
    closed = replace(crash, fails_closed=True)
    assert isinstance(await ask(hooks(frank_group(closed, note, order=order)), context()), Refuse)
    assert (tmp_path / "log").read_text().split() == ["crash", "crash"]
    lenient = hooks(frank_group(closed, note, order=order), settings=Settings(on_failure=OnFailure.ALLOW))
    assert await ask(lenient, context()) == Proceed()
    assert (tmp_path / "log").read_text().split()[2:] == ["crash", "note"]


async def test_hooks_that_run_together_count_in_the_order_of_the_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    go = shlex.quote(str(tmp_path / "go"))
    late = frank(PRE, f"read x < {go}; printf %s {shlex.quote(json.dumps({'arguments': {'n': 1}}))}")
    early = frank(PRE, f"echo go > {go}; printf %s {shlex.quote(json.dumps({'arguments': {'n': 2}}))}")
    assert await ask(hooks(frank_group(late, early, order=Order.TOGETHER)), context()) == Proceed(b'{"n": 2}')


async def test_in_a_pipeline_each_hook_sees_what_the_one_before_made_of_the_arguments(tmp_path: Path) -> None:
    first = frank(PRE, arguments={"b": 2}, merges=True)
    second = frank(PRE, f"cat > {shlex.quote(str(tmp_path / 'seen'))}")
    third = frank(PRE, arguments={"a": 9, "c": 3}, merges=True)
    asked = hooks(frank_group(first, second, third, order=Order.PIPELINE))
    assert await ask(asked, context()) == Proceed(b'{"a":9,"b":2,"c":3}')
    assert documents(tmp_path)["seen"]["arguments"] == {"a": 1, "b": 2}


async def test_a_rewrite_that_hooks_could_not_read_is_trouble_and_never_applied() -> None:
    number = "1" * 500
    says = frank(PRE, arguments=1)
    huge = replace(group(hook(rewriting(n=1).replace('"n": 1', f'"n": {number}'))))
    decision = await ask(hooks(huge, settings=Settings(on_failure=OnFailure.DENY)), context())
    assert isinstance(decision, Refuse)
    assert "rewrote the arguments so that they cannot be read" in decision.reason
    assert await ask(hooks(huge), context()) == Proceed()
    assert isinstance(
        await ask(hooks(frank_group(says), settings=Settings(on_failure=OnFailure.DENY)), context()), Refuse
    )


ASKS = {"permission": "ask", "reason": "sure?"}
REQUEST = Event.PERMISSION_REQUEST


@pytest.mark.parametrize(
    ("verdict", "decision"),
    [
        ({}, Proceed(question=ApprovalRequest("the PreToolUse hook frank", "sure?"))),
        ({"permission": "allow"}, Proceed(asked=True)),
        ({"permission": "deny", "reason": "never"}, Refuse("frank", "never", asked=True, event=REQUEST)),
    ],
)
async def test_permission_request_hooks_answer_for_the_person(
    tmp_path: Path, verdict: dict[str, str], decision: Proceed | Refuse
) -> None:
    says = f"cat > {shlex.quote(str(tmp_path / 'seen'))}; printf %s {shlex.quote(json.dumps(verdict))}"
    asked = hooks(frank_group(frank(PRE, **ASKS)), frank_group(frank(REQUEST, says)))
    assert await ask(asked, context()) == decision
    seen = documents(tmp_path)["seen"]
    assert (seen["event"], seen["tool"], seen["message"]) == (REQUEST, "write", "sure?")


async def test_nobody_is_asked_where_a_later_group_denies(tmp_path: Path) -> None:
    request = frank(REQUEST, f"touch {shlex.quote(str(tmp_path / 'asked'))}")
    denies = frank(PRE, permission="deny", reason="no")
    assert await ask(hooks(frank_group(frank(PRE, **ASKS), request), frank_group(denies)), context()) == Refuse(
        "frank", "no"
    )
    assert not (tmp_path / "asked").exists()


async def test_permission_request_hooks_for_each_call_are_asked_without_a_question() -> None:
    denies = replace(frank(REQUEST, permission="deny", reason="no"), every_call=True)
    assert await ask(hooks(frank_group(denies)), context()) == Refuse("frank", "no", asked=True, event=REQUEST)
    assert await ask(hooks(frank_group(replace(denies, every_call=False))), context()) == Proceed()


async def test_of_several_answers_the_last_counts_where_the_dialect_says_so() -> None:
    answers = (frank(REQUEST, permission="deny", reason="no"), frank(REQUEST, permission="allow"))
    assert await ask(hooks(frank_group(frank(PRE, **ASKS), *answers)), context()) == Refuse(
        "frank", "no", asked=True, event=REQUEST
    )
    later = frank_group(frank(PRE, **ASKS), *answers, last_answer_counts=True)
    assert await ask(hooks(later), context()) == Proceed(asked=True)


async def test_a_rule_that_a_hook_added_answers_for_the_rest_of_the_session(tmp_path: Path) -> None:
    once = (
        f"test -e {shlex.quote(str(tmp_path / 'x'))} || printf %s {shlex.quote(json.dumps({'allows': ['write(*)']}))}"
    )
    asked = hooks(frank_group(frank(PRE, **ASKS), frank(PRE, f"{once}; touch {shlex.quote(str(tmp_path / 'x'))}")))
    assert await ask(asked, context()) == Proceed(asked=True)
    assert await ask(asked, context()) == Proceed(asked=True)
    other = await ask(asked, context(tool="delete"))
    assert isinstance(other, Proceed)
    assert other.question, "the rule is about another tool"
    asked.allow_tool("delete", None)
    assert await ask(asked, context(tool="delete")) == Proceed(asked=True)
    denied = hooks(frank_group(frank(PRE, permission="deny", reason="no"), frank(PRE, allows=["write"])))
    assert await ask(denied, context()) == Refuse("frank", "no"), "it never lifts a denial"


async def test_a_rule_that_is_none_is_trouble() -> None:
    asked = hooks(frank_group(frank(PRE, allows=["a b"])), settings=Settings(on_failure=OnFailure.DENY))
    decision = await ask(asked, context())
    assert isinstance(decision, Refuse)
    assert "gave a permission rule that is none" in decision.reason


async def test_a_hook_never_inherits_what_another_system_told_a_hook_that_we_run_in() -> None:
    show = 'printf "%s" "$HOOK_TOOL_NAME$HOOK_TOOL_OUTPUT" >&2; exit 2'
    environ = {"PATH": os.environ["PATH"], "HOOK_TOOL_NAME": "old", "HOOK_TOOL_OUTPUT": "old"}
    for name in ("claude", "lime", "claw"):
        asked = hooks(replace(group(hook(show)), dialect=replace(DIALECTS["claude"], name=name)), environ=environ)
        decision = await ask(asked, context())
        assert isinstance(decision, Refuse)
        assert decision.reason == ""


def ruled(*groups: Group, **rules: object) -> Hooks:
    return hooks(*groups, settings=replace(Settings(), **rules))


async def test_a_deny_rule_refuses_what_hooks_let_go_whatever_they_say() -> None:
    allows = frank_group(frank(PRE, permission="allow", allows=["write"], feedback=["note"]))
    decision = await ask(ruled(allows, deny=("write(*)",)), context())
    assert decision == Refuse("write(*)", "", cause=RefusalCause.RULE, feedback=("note",))
    assert await ask(ruled(deny=("mcp__my_files__*",)), context()) == Refuse(
        "mcp__my_files__*", "", cause=RefusalCause.RULE
    )


async def test_rules_are_judged_on_what_will_run() -> None:
    rewrites = group(hook(rewriting(path="/etc/passwd")))
    assert isinstance(await ask(ruled(rewrites, deny=("write(/etc/*)",)), context(arguments=b'{"path":"a"}')), Refuse)
    cleans = group(hook(rewriting(path="a")))
    decision = await ask(ruled(cleans, deny=("write(/etc/*)",)), context(arguments=b'{"path":"/etc/passwd"}'))
    assert isinstance(decision, Proceed)


async def test_an_ask_rule_makes_a_question_that_hooks_may_answer() -> None:
    question = ApprovalRequest("the permission rule write of hookproxy.toml", "")
    assert await ask(ruled(ask=("write",)), context()) == Proceed(question=question)
    answers = frank_group(frank(REQUEST, permission="allow"))
    assert await ask(ruled(answers, ask=("write",)), context()) == Proceed(asked=True)
    session = ruled(frank_group(frank(PRE, allows=["write"])), ask=("write",))
    assert await ask(session, context()) == Proceed(asked=True)


async def test_an_allow_rule_answers_what_hooks_ask_and_nothing_else() -> None:
    asks = frank_group(frank(PRE, **ASKS))
    assert await ask(ruled(asks, allow=("write",)), context()) == Proceed(asked=True)
    decision = await ask(ruled(asks, allow=("write",), ask=("write",)), context())
    assert isinstance(decision, Proceed)
    assert decision.question
    assert isinstance(await ask(ruled(asks, allow=("write",), deny=("write",)), context()), Refuse)


def test_rules_concern_and_hide_tools() -> None:
    asked = ruled(deny=("delete_*", "write(/etc/*)"), ask=("mcp__my_files__read",))
    assert [asked.concern(tool) for tool in ("delete_x", "write", "read", "list")] == [
        True,
        True,
        True,
        False,
    ]
    assert [asked.hide(tool) for tool in ("delete_x", "write", "read", "list")] == [
        True,
        False,
        False,
        False,
    ]


async def test_a_permission_request_hook_may_allow_another_call_which_rules_see_too() -> None:
    asks = frank(PRE, **ASKS)
    instead = frank(REQUEST, permission="allow", arguments={"path": "a"})
    assert await ask(hooks(frank_group(asks, instead)), context()) == Proceed(b'{"path": "a"}', asked=True)
    hook_runs = await hooks(frank_group(asks, instead)).before(context(), None, [])
    assert hook_runs.arguments == b'{"path":"a"}'
    denied = await ask(ruled(frank_group(asks, instead), deny=("write(a)",)), context())
    assert isinstance(denied, Refuse)
    assert denied.cause is RefusalCause.RULE
    again = await ask(ruled(frank_group(asks, instead), ask=("write(a)",)), context())
    assert isinstance(again, Proceed)
    assert again.question, "an ask rule is about what will run"
    unfit = await ask(hooks(frank_group(asks, instead)), context(), Tool("write", b'{"required":["x"]}'))
    assert isinstance(unfit, Proceed)
    assert unfit.question, "what does not fit the tool is no yes"
