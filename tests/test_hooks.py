"""Which hooks are asked, under which name, in which order, and what they inherit; all of them real."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from hookproxy.dialects import DIALECTS
from hookproxy.dialects.base import Group
from hookproxy.hooks import Hooks
from hookproxy.model import (
    Event,
    HookSpec,
    Occasion,
    OnTrouble,
    Order,
    Outcome,
    Proceed,
    Refuse,
    Settings,
    Statement,
    Tool,
    ToolNames,
)
from tests.rig import SESSION, group, hook

pytestmark = pytest.mark.anyio

PRE, POST = Event.PRE_TOOL_USE, Event.POST_TOOL_USE


def hooks(*groups: Group, settings: Settings | None = None, environ: dict[str, str] | None = None) -> Hooks:
    return Hooks(groups, settings or Settings(), "my files", environ or dict(os.environ))


def occasion(event: Event = PRE, tool: str = "write", arguments: bytes = b'{"a":1}') -> Occasion:
    outcome = None if event is PRE else Outcome(content=b'[{"type":"text","text":"x"}]')
    return Occasion(event, SESSION, tool=tool, arguments=arguments, outcome=outcome)


def noting(folder: Path, name: str, then: str = "") -> str:
    """A hook that keeps its document in a file of this name."""
    return f"cat > {shlex.quote(str(folder / name))}; {then or ':'}"


def documents(folder: Path) -> dict[str, dict[str, Any]]:
    return {path.name: json.loads(path.read_bytes()) for path in folder.iterdir()}


def rewriting(**arguments: object) -> str:
    answer = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": arguments}}
    return f"echo {shlex.quote(json.dumps(answer))}"


async def ask(asked: Hooks, what: Occasion, listed: Tool | None = None) -> Proceed | Refuse:
    with anyio.fail_after(10):
        return (await asked.before(what, listed)).decision


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
    assert await ask(asked, occasion()) == Proceed()
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
    assert asked.concerns("write") is (seen is not None)
    assert asked.first_name("write") == (seen or "write")
    await ask(asked, occasion())
    assert [document["tool_name"] for document in documents(tmp_path).values()] == ([seen] if seen else [])


async def test_who_concerns_a_tool() -> None:
    asked = hooks(group(hook("true", matcher="write"), hook("true", POST, matcher="read")))
    assert asked.any
    assert (asked.concerns("write"), asked.concerns("read"), asked.concerns("list")) == (True, True, False)
    assert (asked.comments_on("write"), asked.comments_on("read")) == (False, True)
    assert (asked.hears(PRE), asked.hears(Event.SESSION_START)) == (True, False)
    nobody = hooks()
    assert not nobody.any
    assert not nobody.concerns("write")
    everything = hooks(settings=Settings(audit_all_calls=True))
    assert everything.any
    assert everything.concerns("write")


async def test_a_table_of_names_does_not_grow_for_ever() -> None:
    asked = hooks(group(hook("true", matcher="write")))
    for number in range(10_000):
        asked.concerns(f"tool{number}")
    assert len(asked._chosen) <= 4096 + 3
    assert asked.concerns("write")


async def test_a_hook_that_stands_twice_runs_once(tmp_path: Path) -> None:
    count = f"echo x >> {shlex.quote(str(tmp_path / 'count'))}"
    asked = hooks(group(hook(count), hook(count, matcher="write")), group(hook(count), hook(f"{count}; true")))
    await ask(asked, occasion())
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
    assert await ask(asked, occasion()) == Proceed(arguments=b'{"n": 1}')
    assert [document["tool_input"] for document in documents(told).values()] == [{"a": 1}, {"a": 1}]


async def test_hooks_of_a_serial_dialect_run_one_after_another(tmp_path: Path) -> None:
    serial = replace(DIALECTS["claude"], order=Order.SERIAL)
    path = shlex.quote(str(tmp_path / "order"))
    specs = [hook(f"echo {name} >> {path}; sleep 0.0{4 - name}; echo {name} >> {path}") for name in range(4)]
    asked = hooks(replace(group(*specs), dialect=serial))
    await ask(asked, occasion())
    assert (tmp_path / "order").read_text().split() == ["0", "0", "1", "1", "2", "2", "3", "3"]


async def test_a_group_sees_what_the_one_before_it_rewrote_normalised(tmp_path: Path) -> None:
    asked = hooks(group(hook(rewriting(path="a/b"))), group(hook(noting(tmp_path, "x"))))
    with anyio.fail_after(10):
        hearing = await asked.before(occasion(), None)
    assert documents(tmp_path)["x"]["tool_input"] == {"path": "a/b"}
    assert hearing.arguments == b'{"path":"a/b"}'
    assert hearing.decision == Proceed(arguments=b'{"path": "a/b"}')
    assert len(hearing.statements) == 2


async def test_a_denial_in_one_group_ends_the_asking_and_keeps_what_was_said_before(tmp_path: Path) -> None:
    context = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "Psst."}})
    asked = hooks(
        group(hook(f"echo {shlex.quote(context)}")),
        group(hook("echo no >&2; exit 2")),
        group(hook(noting(tmp_path, "x"))),
    )
    decision = await ask(asked, occasion())
    assert isinstance(decision, Refuse)
    assert (decision.reason, decision.feedback) == ("no", ("Psst.",))
    assert documents(tmp_path) == {}


async def test_a_rule_leaves_out_calls_that_it_does_not_mean(tmp_path: Path) -> None:
    one = replace(hook(noting(tmp_path, "x")), only_if="write(/etc/*)")
    asked = hooks(group(one))
    await ask(asked, occasion(arguments=b'{"path":"/home/x"}'))
    assert documents(tmp_path) == {}
    await ask(asked, occasion(arguments=b'{"path":"/etc/passwd"}'))
    assert set(documents(tmp_path)) == {"x"}


async def test_a_rule_of_a_second_group_is_tried_on_what_the_first_rewrote(tmp_path: Path) -> None:
    one = replace(hook(noting(tmp_path, "x")), only_if="write(/etc/*)")
    asked = hooks(group(hook(rewriting(path="/etc/passwd"))), group(one))
    await ask(asked, occasion(arguments=b'{"path":"/home/x"}'))
    assert set(documents(tmp_path)) == {"x"}


async def test_a_rewrite_that_does_not_fit_is_trouble_and_is_not_applied() -> None:
    listed = Tool("write", input_schema=b'{"required":["path"]}')
    asked = hooks(group(hook(rewriting(n=1))))
    assert await ask(asked, occasion(), listed) == Proceed(), "trouble: by its document, the hook does not count"
    strict = hooks(group(hook(rewriting(n=1))), settings=Settings(on_trouble=OnTrouble.DENY))
    decision = await ask(strict, occasion(), listed)
    assert isinstance(decision, Refuse)
    assert "'path' is a required property" in decision.reason
    assert await ask(strict, occasion(), Tool("write")) == Proceed(arguments=b'{"n": 1}')


async def test_what_post_hooks_of_all_groups_say_comes_together() -> None:
    def comment(text: str) -> HookSpec:
        return hook(f"echo {shlex.quote(json.dumps({'decision': 'block', 'reason': text}))}", POST)

    with anyio.fail_after(10):
        comments, statements = await hooks(group(comment("one")), group(comment("two"))).after(occasion(POST))
    assert comments.feedback == ("one", "two")
    assert len(statements) == 2


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
        statements = await asked.of_session(Occasion(start, SESSION, occasioned_by="startup"))
    assert set(documents(tmp_path)) == {"startup", "any"}
    assert [text for one in statements for text in one.verdict.feedback] == ["Hello"]


async def test_a_background_hook_is_not_awaited_and_decides_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    waiting = f"read x < {shlex.quote(str(tmp_path / 'go'))}; touch {shlex.quote(str(tmp_path / 'done'))}; exit 2"
    asked = hooks(group(replace(hook(waiting), background=True)))
    reported: list[Statement] = []
    async with anyio.create_task_group() as tasks:
        asked.run_aside_in(tasks, reported.extend, lambda: None)
        assert await ask(asked, occasion()) == Proceed()
        assert not (tmp_path / "done").exists()
        with anyio.fail_after(10):
            await anyio.Path(tmp_path / "go").write_text("x\n")
    assert (tmp_path / "done").exists()
    assert [one.result.code for one in reported] == [2]
    assert asked.aside == 0


async def test_hooks_inherit_our_environment_without_what_tells_of_other_systems() -> None:
    show = 'printf "%s|%s|%s" "$MINE" "$CLAUDE_PROJECT_DIR" "$CLAUDECODE" >&2; exit 2'
    environ = {"PATH": os.environ["PATH"], "MINE": "kept", "CLAUDE_PROJECT_DIR": "/elsewhere"}
    decision = await ask(hooks(group(hook(show)), environ=environ), occasion())
    assert isinstance(decision, Refuse)
    assert decision.reason == "kept|/|1"


async def test_when_the_asking_is_cancelled_no_hook_is_left(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    reader = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    holds = f"exec 9> {shlex.quote(str(tmp_path / 'alive'))}; echo up >&9; sleep 60 & wait"
    asked = hooks(group(hook(holds), hook(f"{holds}; true")))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.before, occasion(), None)
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


async def test_very_many_hooks_of_one_call_do_not_use_up_descriptors(tmp_path: Path) -> None:
    count = shlex.quote(str(tmp_path / "count"))
    asked = hooks(group(*(hook(f"echo {number} >> {count}") for number in range(300))))
    with anyio.fail_after(30):
        await asked.before(occasion(), None)
    assert sorted(map(int, (tmp_path / "count").read_text().split())) == list(range(300))


async def test_an_agent_that_runs_these_hooks_itself_is_known() -> None:
    asked = hooks(group(hook("true")))
    assert asked.double("some-agent 1.0") == []
    for agent in DIALECTS["claude"].agents:
        assert asked.double(f"{agent} 2.1") == ["hooks.json"]
