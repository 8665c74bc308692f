"""A hook whose matcher matches a tool's own name and a familiar one: under which of them it runs, and how often."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from msgspec.structs import replace

from hookproxy.audit.call_record import Record
from hookproxy.dialects.dialect import Group
from hookproxy.dialects.registry import DIALECTS
from hookproxy.hooks.evaluate import Evaluation, Hooks
from hookproxy.hooks.select import HookGroups
from hookproxy.hooks.skipped import SkippedHooks
from hookproxy.model.aliases import Alias
from hookproxy.model.command_line import Parts
from hookproxy.model.decision import Proceed, Refuse
from hookproxy.model.hooks import NO_VERDICT, Ended, Event, EventContext, HookResult, HookRun, HookSpec, Order, Outcome
from hookproxy.model.settings import SeenNames, Settings, ToolNames
from tests.support.proxy_rig import SESSION, hook

PRE, POST, ASK = Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.PERMISSION_REQUEST
RUN: Final = Alias("run", "Bash", {"command": "cmd"}, automatic=True)
EDIT: Final = Alias(
    "edit_file",
    "MultiEdit",
    {"file_path": "path"},
    (Alias("edit_file", "Edit", {"file_path": "path"}, automatic=True),),
    automatic=True,
)
OWN: Final = "mcp__files__run"


def of_claude(
    *hooks: HookSpec, names: SeenNames = SeenNames.BOTH, order: Order = Order.PARALLEL, dialect: str = "claude"
) -> Group:
    known = DIALECTS[dialect]
    return Group(replace(known, order=order), "hooks.json", hooks, known.tool_names, names=names)


def seen(group: Group, alias: Alias | None = RUN, event: Event = PRE) -> list[str]:
    tool = alias.tool if alias else "run"
    selected = HookGroups([group], "files").select(event, tool, alias)
    return [one.tool_name for each in selected for one in each.hooks]


@pytest.mark.parametrize("matcher", ["", "*", ".*", "^.*$", ".+", "mcp__.*|.*", "^(?!Read$)", "(?:)", "[^]+", "[Br]"])
@pytest.mark.parametrize("event", [PRE, ASK])
def test_a_hook_for_all_tools_runs_under_both_names_before_a_call(matcher: str, event: Event) -> None:
    assert seen(of_claude(hook("guard", event, matcher)), event=event) == [OWN, "Bash"]


@pytest.mark.parametrize("event", [POST, Event.POST_TOOL_USE_FAILURE, Event.PERMISSION_DENIED])
def test_it_runs_once_under_the_familiar_name_when_the_call_is_decided(event: Event) -> None:
    assert seen(of_claude(hook("guard", event)), event=event) == ["Bash"]


@pytest.mark.parametrize(
    ("matcher", "names"),
    [
        ("Bash", ["Bash"]),
        ("Bash|Write", ["Bash"]),
        ("mcp__.*", [OWN]),
        (OWN, [OWN]),
        ("Read", []),
        ("Bash|mcp__.*", [OWN, "Bash"]),
        (f"Bash|{OWN}", [OWN, "Bash"]),
    ],
)
def test_a_matcher_that_names_a_tool_decides_under_which_names_its_hook_runs(matcher: str, names: list[str]) -> None:
    assert seen(of_claude(hook("guard", PRE, matcher))) == names


@pytest.mark.parametrize(
    ("names", "before", "after"),
    [
        (SeenNames.OWN, [OWN], [OWN]),
        (SeenNames.FAMILIAR, ["Bash"], ["Bash"]),
        (SeenNames.BOTH, [OWN, "Bash"], ["Bash"]),
    ],
)
def test_the_configuration_chooses_the_names(names: SeenNames, before: list[str], after: list[str]) -> None:
    assert seen(of_claude(hook("guard"), names=names)) == before
    assert seen(of_claude(hook("guard", POST), names=names), event=POST) == after
    assert seen(of_claude(hook("guard"), names=names), None) == [OWN]  # it has no familiar name
    assert seen(of_claude(hook("guard", matcher="Bash"), names=names)) == ["Bash"]


def test_a_hook_in_the_background_runs_once() -> None:
    assert seen(of_claude(replace(hook("log"), background=True))) == ["Bash"]


def test_a_list_of_edits_is_seen_under_each_name_that_a_guard_may_look_for() -> None:
    assert seen(of_claude(hook("guard")), EDIT) == ["mcp__files__edit_file", "MultiEdit", "Edit"]
    assert seen(of_claude(hook("guard", matcher="Edit|MultiEdit|Write")), EDIT) == ["MultiEdit"]
    assert seen(of_claude(hook("guard", POST)), EDIT, POST) == ["MultiEdit"]
    assert seen(of_claude(hook("guard"), dialect="gemini"), EDIT) == ["mcp_files_edit_file", "replace"]


def test_a_name_that_a_person_has_written_is_the_only_one() -> None:
    written = replace(RUN, automatic=False)
    assert seen(of_claude(hook("guard")), written) == ["Bash"]
    assert seen(of_claude(hook("guard", matcher="mcp__.*")), written) == ["Bash"]


def test_a_name_that_is_only_guessed_is_good_for_refusing_calls_and_replaces_no_other() -> None:
    guess = replace(RUN, guessed=True)
    assert seen(of_claude(hook("guard")), guess) == [OWN, "Bash"]
    assert seen(of_claude(hook("guard"), names=SeenNames.FAMILIAR), guess) == [OWN, "Bash"]
    assert seen(of_claude(hook("log", POST)), guess, POST) == [OWN]
    assert seen(of_claude(replace(hook("log"), background=True)), guess) == [OWN]


def test_nothing_runs_twice_that_sees_the_same_twice() -> None:
    """Docker Agent's own tool has the name and the arguments of this server's."""
    alias = Alias("write_file", "Write", {"file_path": "path"}, automatic=True)
    assert seen(of_claude(hook("guard"), dialect="docker-agent"), alias) == ["write_file"]
    other = Alias("write_file", "Write", {"file_path": "name"}, automatic=True)
    assert seen(of_claude(hook("guard"), dialect="docker-agent"), other) == ["write_file", "write_file"]
    twice = of_claude(hook("guard"), hook("guard", matcher=".*"))
    assert seen(twice) == [OWN, "Bash"]


def test_a_hook_sees_a_command_once_if_its_system_calls_the_shell_as_the_server_does() -> None:
    """The names may be the same, and the arguments of this call as well, but not those of the next one."""
    alias = Alias("bash", "Bash", automatic=True, line="command", parts=Parts(("command",), ("args",)))
    (selected,) = HookGroups([of_claude(hook("guard"), dialect="claw")], "files").select(PRE, "bash", alias)
    for arguments, runs in ((b'{"command":"ls"}', 1), (b'{"command":"rm","args":["x"]}', 2)):
        context = EventContext(PRE, SESSION, tool="bash", arguments=arguments, alias=alias)
        assert [one.tool_name for one in selected.applicable(context)] == ["bash"] * runs


def test_the_arguments_of_one_call_do_not_decide_for_another() -> None:
    groups = HookGroups([of_claude(hook("guard"), dialect="docker-agent")], "files")
    for own, names in (("path", 1), ("name", 2), ("path", 1)):
        (selected,) = groups.select(PRE, "write_file", Alias("write_file", "Write", {"file_path": own}, automatic=True))
        assert len(selected.hooks) == names


@pytest.mark.parametrize(
    ("rule", "names"),
    [
        ("Bash(rm *)", ["Bash"]),
        ("Bash(ls *)", []),
        (f"{OWN}(rm *)", [OWN]),
        ("mcp__files", [OWN]),
        ("*(rm *)", [OWN, "Bash"]),
    ],
)
def test_an_if_holds_for_the_name_that_it_names(rule: str, names: list[str]) -> None:
    groups = HookGroups([of_claude(replace(hook("guard"), only_if=rule))], "files")
    (selected,) = groups.select(PRE, "run", RUN)
    context = EventContext(PRE, SESSION, tool="run", arguments=b'{"cmd":"rm x"}', alias=RUN)
    assert [one.tool_name for one in selected.applicable(context)] == names


FOREIGN: Final = [name for name in DIALECTS if name != "cascade"]  # its events name tools themselves


@pytest.mark.parametrize("dialect", FOREIGN)
def test_hooks_of_every_system_see_its_own_name_of_the_shell(dialect: str) -> None:
    known = DIALECTS[dialect]
    names = seen(of_claude(hook("guard"), dialect=dialect))
    assert len(names) == 2
    assert names[0] == (known.mcp_tool_name("files", "run") if known.tool_names is ToolNames.MCP else "run")
    spelled = known.tool_spellings.get("Bash", ())
    assert names[1] == (spelled[0].name if spelled else "Bash")
    assert len(seen(of_claude(hook("log", POST), dialect=dialect), event=POST)) == 1


@pytest.mark.parametrize(("ran", "reasons"), [(0, ["an earlier hook had refused the call"]), (1, []), (2, [])])
def test_the_audit_lists_a_hook_that_did_not_run_once(ran: int, reasons: list[str]) -> None:
    spec = hook("guard")
    runs = [HookRun(spec, HookResult(Ended.EXITED), NO_VERDICT, tool_name=name) for name in (OWN, "Bash")[:ran]]
    record = Record("s", "files", "run", b"1", b"{}", hook_runs=runs, cause="denied", result="refused")
    skipped = SkippedHooks(HookGroups([of_claude(spec)], "files")).of(record, RUN)
    assert [one.why for one in skipped] == reasons


# --- running them ---


def guard(folder: Path, text: str) -> HookSpec:
    """A hook that appends its document to a file, and then does this with it as `$input`."""
    script = folder / "guard.sh"
    script.write_text(f"input=$(cat); printf '%s\\n' \"$input\" >> {shlex.quote(str(folder / 'seen'))}\n{text}\n")
    return hook(f"sh {shlex.quote(str(script))}")


def documents(folder: Path) -> list[dict[str, Any]]:
    path = folder / "seen"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def of_name(name: str, output: dict[str, object]) -> str:
    """A piece of shell: print this, with hookSpecificOutput for PreToolUse, if the hook sees this name."""
    document = {"hookSpecificOutput": {"hookEventName": "PreToolUse", **output}}
    return f'case $input in *\'"tool_name":"{name}"\'*) printf %s {shlex.quote(json.dumps(document))};; esac'


async def evaluated(group: Group, event: Event = PRE, cmd: str = "rm x") -> tuple[Evaluation, list[HookRun]]:
    runs: list[HookRun] = []
    arguments = json.dumps({"cmd": cmd}, separators=(",", ":")).encode()
    context = EventContext(event, SESSION, tool="run", arguments=arguments, alias=RUN)
    hooks = Hooks([group], Settings(), "files", {"PATH": "/usr/bin:/bin"})
    with anyio.fail_after(30):
        return await hooks.run_pre_hooks(context, None, runs), runs


ORDERS: Final = pytest.mark.parametrize("order", [Order.PARALLEL, Order.TOGETHER, Order.SERIAL, Order.PIPELINE])


@pytest.mark.anyio
@ORDERS
@pytest.mark.parametrize("name", [OWN, "Bash"])
async def test_either_run_may_refuse(tmp_path: Path, order: Order, name: str) -> None:
    deny = of_name(name, {"permissionDecision": "deny", "permissionDecisionReason": "no"})
    evaluation, runs = await evaluated(of_claude(guard(tmp_path, deny), order=order))
    assert isinstance(evaluation.decision, Refuse)
    assert evaluation.decision.reason == "no"
    at_once = order in (Order.PARALLEL, Order.TOGETHER)
    assert sorted(run.tool_name for run in runs) == ([OWN] if name == OWN and not at_once else ["Bash", OWN])


@pytest.mark.anyio
async def test_both_runs_see_the_arguments_by_their_names_and_are_recorded(tmp_path: Path) -> None:
    evaluation, runs = await evaluated(of_claude(guard(tmp_path, "true")))
    assert evaluation.decision == Proceed()
    assert sorted((run.tool_name, run.verdict.permission) for run in runs) == [("Bash", None), (OWN, None)]
    inputs = {document["tool_name"]: document["tool_input"] for document in documents(tmp_path)}
    assert inputs == {OWN: {"cmd": "rm x"}, "Bash": {"command": "rm x"}}
    assert all("mcp_tool_name" not in document for document in documents(tmp_path))


@pytest.mark.anyio
async def test_where_hooks_run_at_the_same_time_both_runs_do(tmp_path: Path) -> None:
    pipes = [tmp_path / name for name in ("one", "two")]
    for pipe in pipes:
        os.mkfifo(pipe)
    one, two = (shlex.quote(str(pipe)) for pipe in pipes)
    meet = f"case $input in *Bash*) read x < {one}; echo y > {two};; *) echo x > {one}; read y < {two};; esac"
    evaluation, runs = await evaluated(of_claude(guard(tmp_path, meet)))  # neither ends unless both run
    assert (evaluation.decision, len(runs)) == (Proceed(), 2)


@pytest.mark.anyio
@ORDERS
async def test_a_rewrite_under_the_familiar_name_reaches_the_server_by_its_own_names(
    tmp_path: Path, order: Order
) -> None:
    rewrite = of_name("Bash", {"updatedInput": {"command": "ls"}})
    evaluation, _ = await evaluated(of_claude(guard(tmp_path, rewrite), order=order))
    assert evaluation.arguments == b'{"cmd":"ls"}'


@pytest.mark.anyio
@ORDERS
async def test_the_familiar_run_judges_what_the_own_one_has_rewritten(tmp_path: Path, order: Order) -> None:
    rewrite = of_name(OWN, {"updatedInput": {"cmd": "sudo ls"}})
    deny = "case $input in *'\"command\":\"sudo ls\"'*) echo 'no sudo' >&2; exit 2;; esac"
    evaluation, _ = await evaluated(of_claude(guard(tmp_path, f"{rewrite}\n{deny}"), order=order))
    assert isinstance(evaluation.decision, Refuse)
    assert "no sudo" in evaluation.decision.reason


@pytest.mark.anyio
@ORDERS
async def test_of_two_rewrites_the_one_under_the_familiar_name_is_made_on_the_other(
    tmp_path: Path, order: Order
) -> None:
    own = of_name(OWN, {"updatedInput": {"cmd": "one"}})
    familiar = """case $input in *'"command":"one"'*) %s;; esac""" % (
        "printf %s '"
        + json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "one two"}}})
        + "'"
    )
    evaluation, _ = await evaluated(of_claude(guard(tmp_path, f"{own}\n{familiar}"), order=order))
    assert evaluation.arguments == b'{"cmd":"one two"}'


@pytest.mark.anyio
@ORDERS
async def test_what_both_runs_say_is_said_once(tmp_path: Path, order: Order) -> None:
    output = {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "ask",
            "permissionDecisionReason": "sure?",
            "additionalContext": "look",
        }
    }
    say = f"printf %s {shlex.quote(json.dumps(output))}"
    evaluation, _ = await evaluated(of_claude(guard(tmp_path, say), order=order))
    assert isinstance(evaluation.decision, Proceed)
    assert evaluation.decision.approval_request is not None
    assert evaluation.decision.approval_request.reason == "sure?"
    assert evaluation.decision.feedback == ("look",)


@pytest.mark.anyio
async def test_a_refusal_under_one_name_is_no_answer_that_a_later_one_replaces(tmp_path: Path) -> None:
    """In Copilot CLI the last answer to a permission request counts."""
    deny, allow = '{"behavior":"deny","message":"no"}', '{"behavior":"allow"}'
    say = f"case $input in *'\"toolName\":\"run\"'*) printf %s '{deny}';; *) printf %s '{allow}';; esac"
    one = replace(guard(tmp_path, say), dialect="copilot", event=ASK, event_name="permissionRequest", every_call=True)
    evaluation, runs = await evaluated(of_claude(one, order=Order.PARALLEL, dialect="copilot"))
    assert isinstance(evaluation.decision, Refuse)
    assert sorted(run.tool_name for run in runs) == ["bash", "run"]


@pytest.mark.anyio
async def test_a_permission_request_hook_that_knows_only_the_familiar_name_allows_nothing(tmp_path: Path) -> None:
    decision = json.dumps({"hookSpecificOutput": {"hookEventName": ASK, "decision": {"behavior": "allow"}}})
    say = 'case $input in *\'"tool_name":"%s"\'*) printf %%s ' + shlex.quote(decision) + ";; esac"
    for name, allowed in (("Bash", False), (OWN, True)):
        one = replace(guard(tmp_path, say % name), event=ASK)
        runs: list[HookRun] = []
        hooks = Hooks([of_claude(one)], Settings(ask=("run",)), "files", {"PATH": "/usr/bin:/bin"})
        context = EventContext(PRE, SESSION, tool="run", arguments=b'{"cmd":"ls"}', alias=RUN)
        with anyio.fail_after(30):
            decided = (await hooks.run_pre_hooks(context, None, runs)).decision
        assert isinstance(decided, Proceed)
        assert (decided.approval_request is None) is allowed
        assert sorted(run.tool_name for run in runs) == ["Bash", OWN]


async def after_call(groups: Sequence[Group], alias: Alias | None) -> None:
    outcome = Outcome(b'[{"type":"text","text":"x"}]', has_result=True)
    context = EventContext(POST, SESSION, tool="run", arguments=b'{"cmd":"ls"}', alias=alias, outcome=outcome)
    with anyio.fail_after(30):
        await Hooks(groups, Settings(), "files", {"PATH": "/usr/bin:/bin"}).run_post_hooks(context, [])


@pytest.mark.anyio
@pytest.mark.parametrize("matcher", ["", "Bash"])
async def test_after_a_call_a_further_member_has_the_servers_own_name(tmp_path: Path, matcher: str) -> None:
    one = replace(guard(tmp_path, "true"), event=POST, matches=hook("", matcher=matcher).matches)
    await after_call([of_claude(one)], RUN)
    (document,) = documents(tmp_path)
    assert (document["tool_name"], document["tool_input"]) == ("Bash", {"command": "ls"})
    assert document["mcp_tool_name"] == OWN


@pytest.mark.anyio
async def test_a_tool_without_a_familiar_name_has_no_further_member(tmp_path: Path) -> None:
    await after_call([of_claude(replace(guard(tmp_path, "true"), event=POST))], None)
    (document,) = documents(tmp_path)
    assert document["tool_name"] == OWN
    assert "mcp_tool_name" not in document


@pytest.mark.anyio
@pytest.mark.parametrize("dialect", [name for name in FOREIGN if POST in DIALECTS[name].events.values()])
async def test_the_further_member_has_one_name_in_all_systems(tmp_path: Path, dialect: str) -> None:
    known = DIALECTS[dialect]
    names = [name for name, event in known.events.items() if event is POST]
    one = replace(guard(tmp_path, "true"), dialect=dialect, event=POST, event_name=names[0])
    await after_call([of_claude(one, dialect=dialect)], RUN)
    (document,) = documents(tmp_path)
    assert document["mcp_tool_name"] == (
        known.mcp_tool_name("files", "run") if known.tool_names is ToolNames.MCP else "run"
    )
