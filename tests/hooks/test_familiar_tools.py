"""Tools with familiar names: guards written for Claude Code's own tools hold for the server's, and no guard is lost."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from msgspec.structs import replace

from hookproxy.dialects.dialect import Group
from hookproxy.hooks.familiar_tools import FamiliarTools
from hookproxy.hooks.select import HookGroups
from hookproxy.jsonrpc import raw_json
from hookproxy.model.aliases import Alias
from hookproxy.model.hooks import Event, Order, Tool
from hookproxy.model.limits import Limit, Per
from hookproxy.model.settings import OnFailure, Settings, ToolNames
from tests.support.proxy_rig import DIRECT_LOOP, Peer, Rig, group, hook, rig, stub, stub_group

pytestmark = pytest.mark.anyio

PRE, POST = Event.PRE_TOOL_USE, Event.POST_TOOL_USE

SCHEMA: Final = {"type": "object", "properties": {"cmd": {"type": "string"}, "n": {"type": "number"}}}


@pytest.mark.slow
@pytest.mark.parametrize("recognised", [False, True])
def test_what_recognises_names_is_read_only_where_tools_get_them(recognised: bool) -> None:
    script = (
        "import sys; from hookproxy.hooks.evaluate import Hooks\n"
        "from hookproxy.model.limits import Limit, Per\n"
        "from hookproxy.model.settings import Settings\n"
        f"settings = Settings(auto_aliases={recognised}, limits=(Limit('*', 1, Per.MINUTE, 'limits[0]'),))\n"
        "Hooks([], settings, 'server', {}).prepare_names()\n"
        "print(*(f'hookproxy.policy.{name}' in sys.modules for name in ('tool_names', 'presets')))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
    assert ended.stdout == f"{recognised} {recognised}\n"


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def request(number: int, method: str, params: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def call(number: int, tool: str, **arguments: object) -> bytes:
    return request(number, "tools/call", {"name": tool, "arguments": arguments})


def result(number: object, **members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": members}).encode() + b"\n"


async def list_tools(proxied: Rig, *tools: dict[str, Any]) -> list[str]:
    """Have the server list these tools; return the names that the agent sees."""
    await proxied.agent.send(request(900, "tools/list", {}))
    await proxied.server.line()
    await proxied.server.send(result(900, tools=tools))
    return [tool["name"] for tool in (await proxied.agent.message())["result"]["tools"]]


async def judged(proxied: Rig, line: bytes) -> Any:  # noqa: ANN401  # JSON
    """Send a call: the arguments that the server gets, or the text of the refusal."""
    await proxied.agent.send(line)
    got: list[tuple[str, dict[str, Any]]] = []
    async with anyio.create_task_group() as tasks:

        async def wait(name: str, peer: Peer) -> None:
            got.append((name, await peer.message()))
            tasks.cancel_scope.cancel()

        tasks.start_soon(wait, "server", proxied.server)
        tasks.start_soon(wait, "agent", proxied.agent)
    ((name, message),) = got
    if name == "agent":
        return message["result"]["content"][0]["text"]
    await proxied.server.send(result(message["id"], content=[{"type": "text", "text": "done"}]))
    assert (await proxied.agent.message())["id"] == message["id"]
    return message["params"]["arguments"]


def seen_by(folder: Path) -> str:
    """A command that appends its document to a file."""
    return f"cat >> {shlex.quote(str(folder / 'seen'))}"


def documents(folder: Path) -> list[tuple[str, Any]]:
    file = folder / "seen"
    lines = file.read_text().splitlines() if file.exists() else []
    return [(one["tool_name"], one["tool_input"]) for one in map(json.loads, lines)]


def mcp_group(*hooks: Any) -> Group:  # noqa: ANN401  # HookSpec
    """A group as a settings file of Claude Code makes it: its hooks see mcp__SERVER__TOOL."""
    return replace(group(*hooks), tool_names=ToolNames.MCP)


async def test_a_guard_for_bash_runs_for_a_tool_that_was_never_listed_and_sees_its_own_argument(tmp_path: Path) -> None:
    async with rig(mcp_group(hook(f"{seen_by(tmp_path)}; exit 2", matcher="Bash"))) as proxied:
        assert "Blocked" in await judged(proxied, call(1, "execute_command", cmd="rm -rf x"))
        assert "Blocked" in await judged(proxied, call(2, "execute_command", command="ls"))
        assert await judged(proxied, call(3, "list_issues", text="x")) == {"text": "x"}
    assert documents(tmp_path) == [("Bash", {"command": "rm -rf x"}), ("Bash", {"command": "ls"})]


async def test_a_guard_for_bash_runs_for_a_listed_tool_whatever_arguments_the_call_has(tmp_path: Path) -> None:
    async with rig(mcp_group(hook(seen_by(tmp_path), matcher="Bash"))) as proxied:
        await list_tools(proxied, {"name": "execute_command", "inputSchema": SCHEMA})
        assert await judged(proxied, call(1, "execute_command", n=1)) == {"n": 1}
    assert documents(tmp_path) == [("Bash", {"n": 1})]


async def test_a_hook_that_matches_the_servers_own_name_sees_that_name_and_its_arguments(tmp_path: Path) -> None:
    hooks = mcp_group(
        hook(seen_by(tmp_path), matcher="*"),
        hook(f"{seen_by(tmp_path)}; :", matcher="mcp__files__.*"),
        hook(f"{seen_by(tmp_path)}; : 2", matcher="Bash"),
    )
    async with rig(replace(hooks, dialect=replace(hooks.dialect, order=Order.SERIAL))) as proxied:
        await judged(proxied, call(1, "execute_command", cmd="ls"))
    own = ("mcp__files__execute_command", {"cmd": "ls"})
    assert documents(tmp_path) == [own, own, ("Bash", {"command": "ls"})]


async def test_rewrites_under_both_names_reach_the_server_under_its_own_names() -> None:
    def adding(word: str, name: str) -> str:
        answer = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {name: word, "n": 1}}}
        return f"echo {shlex.quote(json.dumps(answer))}"

    for matcher, name in (("Bash", "command"), ("mcp__files__execute_command", "cmd")):
        async with rig(mcp_group(hook(adding("ls -n", name), matcher=matcher))) as proxied:
            assert await judged(proxied, call(1, "execute_command", cmd="ls")) == {"cmd": "ls -n", "n": 1}


async def test_the_next_hook_sees_the_rewritten_arguments_under_its_own_names(tmp_path: Path) -> None:
    first = stub_group(replace(stub(PRE, arguments={"cmd": "echo 1"}), matches=lambda name: name == "execute_command"))
    second = mcp_group(hook(seen_by(tmp_path), matcher="Bash"))
    async with rig(first, second) as proxied:
        assert await judged(proxied, call(1, "execute_command", cmd="ls")) == {"cmd": "echo 1"}
    assert documents(tmp_path) == [("Bash", {"command": "echo 1"})]


async def test_a_rewrite_that_another_hook_would_read_differently_is_a_failure() -> None:
    own = replace(stub(PRE, arguments={"cmd": "ls", "command": "rm"}), matches=lambda name: name == "execute_command")
    guard = hook("exit 0", matcher="Bash")
    settings = Settings(on_failure=OnFailure.DENY)
    async with rig(stub_group(own), mcp_group(guard), settings=settings) as proxied:
        text = await judged(proxied, call(1, "execute_command", cmd="ls"))
    assert "'cmd' and 'command' are the same argument for its hooks" in text


async def test_a_call_with_both_spellings_of_an_argument_is_refused() -> None:
    async with rig(mcp_group(hook("exit 0", matcher="Bash"))) as proxied:
        await list_tools(proxied, {"name": "execute_command", "inputSchema": SCHEMA})
        await proxied.agent.send(call(1, "execute_command", cmd="ls", command="rm"))
        assert "'command' and 'cmd' may be the same argument" in (await proxied.agent.message())["error"]["message"]


async def test_post_hooks_see_the_familiar_name_as_well(tmp_path: Path) -> None:
    async with rig(mcp_group(hook(seen_by(tmp_path), POST, matcher="Bash"))) as proxied:
        await judged(proxied, call(1, "execute_command", cmd="ls"))
    assert documents(tmp_path) == [("Bash", {"command": "ls"})]


async def test_an_if_may_name_the_tool_by_its_familiar_name(tmp_path: Path) -> None:
    everything = replace(hook(seen_by(tmp_path), matcher="*"), only_if="Bash(rm *)")
    async with rig(mcp_group(everything)) as proxied:
        await judged(proxied, call(1, "execute_command", cmd="ls"))
        await judged(proxied, call(2, "execute_command", cmd="rm x"))
    assert documents(tmp_path) == [("Bash", {"command": "rm x"})]


async def test_off_takes_the_familiar_names_away(tmp_path: Path) -> None:
    guard = mcp_group(hook(f"{seen_by(tmp_path)}; exit 2", matcher="Bash"))
    async with rig(guard, settings=Settings(auto_aliases=False)) as proxied:
        assert await judged(proxied, call(1, "execute_command", cmd="ls")) == {"cmd": "ls"}
    assert documents(tmp_path) == []


async def test_a_rule_denies_by_a_familiar_name_but_allows_nothing_by_it() -> None:
    asking = stub_group(stub(PRE, permission="ask"))
    async with rig(asking, settings=Settings(deny=("Bash(rm *)",), allow=("Bash(ls)",))) as proxied:
        assert "Bash(rm *)" in await judged(proxied, call(1, "execute_command", cmd="rm -rf x"))
        assert "approv" in await judged(proxied, call(2, "execute_command", cmd="ls"))


async def test_a_rate_limit_counts_calls_by_the_familiar_name() -> None:
    limits = (Limit("Bash", 1, Per.SESSION, "limits[0]"),)
    async with rig(settings=Settings(limits=limits)) as proxied:
        assert await judged(proxied, call(1, "execute_command", cmd="ls")) == {"cmd": "ls"}
        assert "no more than 1 call of Bash" in await judged(proxied, call(2, "execute_command", cmd="ls"))


async def test_a_tool_whose_every_call_a_rule_denies_is_hidden_by_its_familiar_name() -> None:
    async with rig(settings=Settings(deny=("Bash",))) as proxied:
        listed = {"name": "execute_command", "inputSchema": SCHEMA}, {"name": "echo", "inputSchema": {"type": "object"}}
        assert await list_tools(proxied, *listed) == ["echo"]


async def test_a_tool_that_was_unjudged_is_judged_once_its_arguments_are_known(tmp_path: Path) -> None:
    guard = mcp_group(hook(f"{seen_by(tmp_path)}; exit 2", matcher="WebFetch"))
    async with rig(guard) as proxied:
        await list_tools(proxied, {"name": "execute_command", "inputSchema": SCHEMA})
        assert await judged(proxied, call(1, "execute_command", cmd="ls")) == {"cmd": "ls"}


async def test_a_tool_with_an_empty_table_has_no_familiar_name(tmp_path: Path) -> None:
    guard = mcp_group(hook(f"{seen_by(tmp_path)}; exit 2", matcher="Bash"))
    async with rig(guard, settings=Settings(aliases=(Alias("execute_command"),))) as proxied:
        assert await judged(proxied, call(1, "execute_command", cmd="ls")) == {"cmd": "ls"}
    assert documents(tmp_path) == []


async def test_a_list_of_edits_is_seen_as_multiedit_or_by_a_hook_that_does_not_know_it_as_edit(tmp_path: Path) -> None:
    edits = [{"oldText": "a", "newText": "b"}]
    hooks = mcp_group(
        hook(seen_by(tmp_path), matcher="Edit"), hook(f"{seen_by(tmp_path)}; :", matcher="Edit|MultiEdit")
    )
    async with rig(replace(hooks, dialect=replace(hooks.dialect, order=Order.SERIAL))) as proxied:
        await judged(proxied, call(1, "edit_file", path="/a", edits=edits))
    given = {"file_path": "/a", "edits": [{"old_string": "a", "new_string": "b"}]}
    assert documents(tmp_path) == [("Edit", given), ("MultiEdit", given)]


async def test_a_hook_rewrites_a_list_of_edits_in_its_own_words(tmp_path: Path) -> None:
    edits = [{"old_string": "a", "new_string": "c"}]
    output = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "updatedInput": {"file_path": "/a", "edits": edits},
    }
    rewrites = f"echo {shlex.quote(json.dumps({'hookSpecificOutput': output}))}"
    async with rig(mcp_group(hook(rewrites, matcher="^MultiEdit$"))) as proxied:
        sent = await judged(proxied, call(1, "edit_file", path="/a", edits=[{"oldText": "a", "newText": "b"}]))
    assert sent == {"path": "/a", "edits": [{"oldText": "a", "newText": "c"}]}


async def test_an_edit_that_hides_its_text_behind_another_name_is_refused(tmp_path: Path) -> None:
    edits = [{"oldText": "a", "newText": "rm -rf /", "new_string": "b"}]
    async with rig(mcp_group(hook("true", matcher="MultiEdit"))) as proxied:
        await proxied.agent.send(call(1, "edit_file", path="/a", edits=edits))
        assert "the same text for its hooks" in json.dumps(await proxied.agent.message())


async def test_an_argument_that_is_added_to_a_call_hides_it_from_no_guard(tmp_path: Path) -> None:
    """A text editor writes, edits or views: what a call does with an argument too many is not known."""
    guard = mcp_group(hook(seen_by(tmp_path), matcher="Write"))
    properties = {key: {"type": "string"} for key in ("command", "path", "file_text", "old_str", "new_str")}
    async with rig(guard, settings=Settings(deny=("Write(/etc/**)",))) as proxied:
        await list_tools(proxied, {"name": "text_editor", "inputSchema": {"type": "object", "properties": properties}})
        create = {"command": "create", "path": "/x", "file_text": "text", "old_str": "a", "new_str": "b"}
        assert await judged(proxied, call(1, "text_editor", **create)) == create
        assert "Write(/etc/**)" in await judged(proxied, call(2, "text_editor", **{**create, "path": "/etc/x"}))
    ((name, seen), _) = documents(tmp_path)
    assert (name, seen["file_path"], seen["content"]) == ("Write", "/x", "text")


@pytest.mark.parametrize("managed", [False, True])
async def test_a_tool_list_that_changes_during_a_call_takes_no_name_from_it(tmp_path: Path, *, managed: bool) -> None:
    guard = replace(mcp_group(hook(seen_by(tmp_path), POST, matcher="Read")), managed=managed)
    tool: dict[str, Any] = {
        "name": "read_file",
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
    async with rig(guard) as proxied:
        await list_tools(proxied, tool)
        await proxied.agent.send(call(1, "read_file", path="/x"))
        await proxied.server.line()
        await list_tools(proxied, {**tool, "annotations": {"destructiveHint": True}})
        await proxied.server.send(result(1, content=[{"type": "text", "text": "done"}]))
        assert (await proxied.agent.message())["id"] == 1
    assert documents(tmp_path) == [("Read", {"file_path": "/x"})]


async def test_the_depth_of_results_is_limited_for_managed_hooks_of_familiar_names_that_the_user_switched_off(
    tmp_path: Path,
) -> None:
    guard = replace(mcp_group(hook(seen_by(tmp_path), POST, matcher="Read")), managed=True)
    async with rig(guard, settings=Settings(auto_aliases=False, managed=Settings())) as proxied:
        await proxied.agent.send(call(1, "read_file", path="/x"))
        await proxied.server.line()
        deep: object = 1
        for _ in range(100):
            deep = [deep]
        await proxied.server.send(result(1, content=[], structuredContent={"x": deep}))
        assert "max_depth" in json.dumps(await proxied.agent.message())
    assert documents(tmp_path) == []


@pytest.mark.parametrize(("matcher", "allowed"), [("Bash", False), ("execute_command", True)])
async def test_no_hook_answers_for_the_person_by_a_name_that_was_only_recognised(
    matcher: str, *, allowed: bool
) -> None:
    answering = replace(stub(Event.PERMISSION_REQUEST, permission="allow"), matches=lambda name: name == matcher)
    async with rig(stub_group(answering), settings=Settings(ask=("execute_command",))) as proxied:
        found = await judged(proxied, call(1, "execute_command", cmd="ls"))
    assert (found == {"cmd": "ls"}) is allowed


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("execute_command", {"command": "rm", "image": ""}),
        ("execute_command", {"script": "rm", "sql": "", "host": ""}),
        ("write_file", {"path": "x", "content": "", "owner": "", "replace": ""}),
        ("fetch_url", {"url": "https://a", "owner": "", "path": ""}),
    ],
)
async def test_no_added_argument_hides_an_unlisted_tool_from_its_hooks(tool: str, arguments: dict[str, str]) -> None:
    async with rig(mcp_group(hook("exit 2", matcher="Bash|Write|WebFetch"))) as proxied:
        assert "Blocked" in await judged(proxied, call(1, tool, **arguments))


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("execute_command", {"cmd": "rm", "command": "ls"}),
        ("execute_command", {"command": ["rm"], "script": "ls"}),
        ("write_file", {"path": "/etc/x", "file_path": "x", "content": ""}),
        ("write_file", {"path": "x", "content": "", "text": "y"}),
        ("fetch_url", {"url": "https://a", "uri": "https://b"}),
    ],
)
async def test_no_added_argument_hides_the_one_that_counts_before_the_tool_is_listed(
    tool: str, arguments: dict[str, Any]
) -> None:
    schema = {"type": "object", "properties": {name: {} for name in arguments}}
    async with rig(mcp_group(hook(":", matcher="Bash|Write|WebFetch"))) as proxied:
        await proxied.agent.send(call(1, tool, **arguments))
        assert "the same argument" in (await proxied.agent.message())["error"]["message"]
        await list_tools(proxied, {"name": tool, "inputSchema": {"type": "object"}})
        await proxied.agent.send(call(2, tool, **arguments))
        assert "the same argument" in (await proxied.agent.message())["error"]["message"]
        await list_tools(proxied, {"name": tool, "inputSchema": schema})
        if tool == "execute_command":  # the server may run both
            await proxied.agent.send(call(3, tool, **arguments))
            assert "the same argument" in (await proxied.agent.message())["error"]["message"]
        else:
            assert await judged(proxied, call(3, tool, **arguments)) == arguments


@pytest.mark.parametrize("listed_first", [True, False])
async def test_a_tool_with_two_arguments_for_commands_hides_neither_from_hooks(
    tmp_path: Path, *, listed_first: bool
) -> None:
    guard = mcp_group(hook(seen_by(tmp_path), matcher="Bash"))
    properties = {"command": {"type": "string"}, "script": {"type": ["string", "null"]}}
    async with rig(guard) as proxied:
        if listed_first:
            await list_tools(
                proxied, {"name": "run_command", "inputSchema": {"type": "object", "properties": properties}}
            )
        assert await judged(proxied, call(1, "run_command", script="rm x")) == {"script": "rm x"}
        assert await judged(proxied, call(2, "run_command", command="rm y")) == {"command": "rm y"}
        await proxied.agent.send(call(3, "run_command", command="ls", script="rm z"))
        message = (await proxied.agent.message())["error"]["message"]
        assert "'command' and 'script' may be the same argument" in message
    assert documents(tmp_path) == [("Bash", {"command": "rm x"}), ("Bash", {"command": "rm y"})]


@pytest.mark.parametrize("properties", [None, frozenset({"command", "cmd"})])
def test_a_preset_knows_both_arguments_of_one_tool_that_may_be_the_command(properties: frozenset[str] | None) -> None:
    familiar = FamiliarTools(["npx", "bash-command-mcp"])
    if properties:
        familiar.note_tools([Tool("run", properties=properties)], "")
    groups = HookGroups([], "files", familiar=familiar)
    for own in ("cmd", "command"):
        found = groups.alias("run", json.dumps({own: "rm"}).encode())
        assert found is not None
        assert (found.name, json.loads(found.for_hooks(json.dumps({own: "rm"}).encode()))) == (
            "Bash",
            {"command": "rm"},
        )
    with pytest.raises(raw_json.Unreadable, match="the same argument"):
        groups.alias("run", b'{"cmd":"rm","command":"ls"}')


@pytest.mark.parametrize("listed_first", [True, False])
@pytest.mark.parametrize(
    ("action", "seen"), [("view", True), ("VIEW", True), ("create", False), ("undo_edit", False), ("wat", True)]
)
async def test_a_text_editor_is_seen_as_read_only_for_calls_that_may_read(
    tmp_path: Path, action: str, *, seen: bool, listed_first: bool
) -> None:
    guard = mcp_group(hook(seen_by(tmp_path), matcher="Read"), hook(f"{seen_by(tmp_path)}; :", matcher="Edit"))
    keys = ("command", "path", "file_text", "old_str", "new_str")
    properties: dict[str, object] = {key: {"type": "string"} for key in keys}
    properties["view_range"] = {"type": "array"}
    async with rig(guard) as proxied:
        if listed_first:
            await list_tools(
                proxied, {"name": "text_editor", "inputSchema": {"type": "object", "properties": properties}}
            )
        assert await judged(proxied, call(1, "text_editor", command=action, path="/x"))
    found = dict(documents(tmp_path))
    assert ("Read" in found) is seen
    if seen:
        assert found["Read"]["file_path"] == "/x"
    if listed_first:
        assert ("Edit" in found) is (action.lower() != "view")


async def test_tools_of_earlier_pages_keep_their_names(tmp_path: Path) -> None:
    guard = mcp_group(hook(seen_by(tmp_path), matcher="Bash"))
    async with rig(guard) as proxied:
        await list_tools(proxied, {"name": "execute_command", "inputSchema": SCHEMA})
        await list_tools(proxied, {"name": "other", "inputSchema": SCHEMA})
        assert await judged(proxied, call(1, "execute_command", cmd="ls", n=1)) == {"cmd": "ls", "n": 1}
        assert proxied.proxy.router.judged_tools.may_judge
    assert documents(tmp_path) == [("Bash", {"command": "ls", "n": 1})]


def test_lists_of_tools_do_not_fill_memory() -> None:
    familiar = FamiliarTools()
    familiar._listed._most = 20_000
    for number in range(500):
        familiar.note_tools([Tool(f"tool{number}")], "")
    assert len(familiar._listed) < 20


# --- commands in parts ---


def listed(name: str, required: tuple[str, ...] = (), **types: object) -> dict[str, Any]:
    """An entry of tools/list; `types` are JSON types or whole schemas."""
    properties = {key: {"type": kind} if isinstance(kind, str) else kind for key, kind in types.items()}
    return {"name": name, "inputSchema": {"type": "object", "properties": properties, "required": list(required)}}


PARTS: Final = [
    ({"command": "git", "args": ["push", "a b"]}, "git push 'a b'"),
    ({"command": "git push", "args": ["-f"]}, "git push -f"),
    ({"command": ["git", "push", "$x"]}, "git push '$x'"),
    ({"argv": ["git", "push"]}, "git push"),
    ({"commands": ["git add .", "git push"]}, "git add .\ngit push"),
    ({"program": "git", "arguments": ["push"]}, "git push"),
]


@pytest.mark.parametrize("lists_first", [True, False])
@pytest.mark.parametrize(("arguments", "line"), PARTS)
async def test_a_hook_for_bash_sees_a_command_in_parts_as_one_line(
    tmp_path: Path, arguments: dict[str, Any], line: str, *, lists_first: bool
) -> None:
    guard = mcp_group(hook(seen_by(tmp_path), matcher="Bash"))
    async with rig(guard) as proxied:
        if lists_first:
            kinds: dict[str, Any] = {
                key: "array" if isinstance(each, list) else "string" for key, each in arguments.items()
            }
            await list_tools(proxied, listed("run_it", **kinds))
        assert await judged(proxied, call(1, "run_it", cwd="/x", **arguments)) == {"cwd": "/x", **arguments}
    assert documents(tmp_path) == [("Bash", {"cwd": "/x", "command": line})]


def rewriting(line: str) -> str:
    """A hook that replaces the command."""
    answer = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": line}}}
    return f"printf %s {shlex.quote(json.dumps(answer))}"


@pytest.mark.parametrize(
    ("arguments", "line", "sent"),
    [
        ({"command": "git", "args": ["push"]}, "git pull 'a b'", {"command": "git", "args": ["pull", "a b"]}),
        ({"command": "git", "args": ["push"]}, "ls", {"command": "ls", "args": []}),
        ({"command": "git", "args": "push -f"}, "git pull -v", {"command": "git", "args": "pull -v"}),
        ({"command": ["git", "push"]}, 'git "pull"', {"command": ["git", "pull"]}),
        ({"argv": ["git", "push"]}, "git pull", {"argv": ["git", "pull"]}),
        ({"commands": ["git add .", "git push"]}, "git add .\ngit pull", {"commands": ["git add .", "git pull"]}),
        ({"command": "git", "args": ["push"]}, "git push", {"command": "git", "args": ["push"]}),
        ({"shell_cmd": "git push"}, "cd x && git pull", {"shell_cmd": "cd x && git pull"}),
    ],
)
async def test_a_rewritten_line_reaches_the_server_in_the_parts_of_which_it_was_made(
    arguments: dict[str, Any], line: str, sent: dict[str, Any]
) -> None:
    async with rig(mcp_group(hook(rewriting(line), matcher="Bash"))) as proxied:
        assert await judged(proxied, call(1, "run_it", **arguments)) == sent


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"command": "git", "args": ["push"]}, "git pull && ls"),
        ({"command": "git", "args": ["push"]}, "git $X"),
        ({"command": "git", "args": ["push"]}, "A=1 git pull"),
        ({"command": "git", "args": ["push"]}, ""),
        ({"command": "git push", "args": ["x"]}, "git pull x"),
        ({"command": ["git", "push"]}, "git pull > x"),
        ({"command": ["git", "push"]}, "git 'pull"),
        ({"commands": ["git add .", "git push"]}, "git add ."),
        ({"commands": [{"command": "git"}]}, "ls"),
    ],
)
async def test_a_rewritten_line_that_cannot_be_divided_exactly_refuses_the_call(
    arguments: dict[str, Any], line: str
) -> None:
    async with rig(
        mcp_group(hook(rewriting(line), matcher="Bash")), settings=Settings(on_failure=OnFailure.DENY)
    ) as proxied:
        text = await judged(proxied, call(1, "run_it", **arguments))
    assert "cannot be divided among them exactly" in text


async def test_a_configured_name_gets_one_line_as_well(tmp_path: Path) -> None:
    guard = mcp_group(hook(seen_by(tmp_path), matcher="Bash"))
    alias = Alias("do_it", "Bash", {"command": "what"})
    async with rig(guard, settings=Settings(aliases=(alias,), deny=("Bash(git push:*)",))) as proxied:
        ls = {"what": ["ls", "-l"]}
        assert await judged(proxied, call(1, "do_it", **ls)) == ls
        assert "Bash(git push:*)" in await judged(proxied, call(2, "do_it", what=["git", "push"]))
        assert "Bash(git push:*)" in await judged(proxied, call(3, "do_it", what="git", args=["push"]))
    assert documents(tmp_path)[0] == ("Bash", {"command": "ls -l"})


async def test_a_command_of_which_no_line_can_be_made_is_refused(tmp_path: Path) -> None:
    guard = mcp_group(hook(seen_by(tmp_path), matcher="Bash"))
    async with rig(guard) as proxied:
        for number, command in enumerate(({"a": 1}, [None], [{"a": "b"}], [[["x", None]]])):
            await proxied.agent.send(call(number, "run_it", command=command))
            assert "command" in (await proxied.agent.message())["error"]["message"]
    assert documents(tmp_path) == []


async def test_two_commands_of_a_tool_are_seen_together(tmp_path: Path) -> None:
    guard = mcp_group(hook(seen_by(tmp_path), matcher="Bash"))
    async with rig(guard, settings=Settings(deny=("Bash(git push:*)",))) as proxied:
        await list_tools(proxied, listed("deploy", build_command="string", start_command="string"))
        both = {"build_command": "make", "start_command": "./run"}
        assert await judged(proxied, call(1, "deploy", **both)) == both
        assert "git push" in await judged(proxied, call(2, "deploy", build_command="make", start_command="git push"))
        assert await judged(proxied, call(3, "deploy", start_command=None)) == {"start_command": None}
    assert documents(tmp_path)[0] == ("Bash", {"command": "make\n./run"})
    assert documents(tmp_path)[-1] == ("Bash", {"command": ""})


# --- nothing that an agent or a later list sends takes a name away ---

OPTIONAL: Final = (
    "image",
    "query",
    "database",
    "table",
    "collection",
    "sql",
    "host",
    "owner",
    "repo",
    "content",
    "text",
)


@pytest.mark.parametrize("value", [None, "x", [], {}, 1, True])
@pytest.mark.parametrize("optional", OPTIONAL)
def test_no_optional_argument_that_a_call_sends_takes_a_name_away(optional: str, value: object) -> None:
    for tool, argument, name in (
        ("execute_command", "command", "Bash"),
        ("run_shell", "cmd", "Bash"),
        ("do_it", "shell_cmd", "Bash"),
        ("read_file", "path", "Read"),
        ("fetch_url", "url", "WebFetch"),
    ):
        one = listed(tool, (argument,), **{argument: "string", optional: {}})
        familiar = FamiliarTools()
        for schema in (None, one["inputSchema"]):
            if schema is not None:
                familiar.note_tools(
                    [Tool(tool, json.dumps(schema).encode(), properties=frozenset({argument, optional}))], ""
                )
            for arguments in ({argument: "x"}, {argument: "x", optional: value}, {optional: value, argument: "x"}):
                alias = familiar.alias(tool, json.dumps(arguments).encode())
                assert alias is not None
                assert name in alias.names


def test_an_argument_that_every_call_must_have_says_what_a_tool_is_for() -> None:
    familiar = FamiliarTools()
    for required in ((), ("database",)):
        tool = listed("execute_command", required, command="string", database="string")
        familiar = FamiliarTools()
        familiar.note_tools([Tool("execute_command", json.dumps(tool["inputSchema"]).encode())], "")
        assert bool(familiar.aliases("execute_command")) is not bool(required)


FIRST: Final = {"type": "object", "properties": {"command": {"type": "string"}}}


@pytest.mark.parametrize(
    "later",
    [
        {"type": "object", "properties": {"n": {"type": "number"}}},
        {"type": "object", "properties": {}},
        {"type": "object"},
        {"type": "object", "properties": {"command": {"type": "object"}}},
        {"type": "object", "properties": {"command": {"enum": ["a"]}, "sql": {"type": "string"}}, "required": ["sql"]},
        {"type": "object", "properties": {"cmd": {"type": "string"}, "CMD": {"type": "string"}}},
        7,
    ],
    ids=json.dumps,
)
def test_a_later_list_may_add_a_name_and_never_takes_one_away(later: object) -> None:
    familiar = FamiliarTools()
    familiar.note_tools([Tool("run_it", json.dumps(FIRST).encode())], "")
    for _ in range(2):
        familiar.note_tools([Tool("run_it", json.dumps(later).encode())], "")
        alias = familiar.alias("run_it", b'{"command":"rm x"}')
        assert alias is not None
        assert json.loads(alias.for_call(b'{"command":"rm x"}').for_hooks(b'{"command":"rm x"}'))["command"] == "rm x"
    familiar.note_tools([Tool("run_it", json.dumps(FIRST).encode())], "redis")
    assert familiar.alias("run_it", b'{"command":"rm x"}') is not None


def test_another_name_of_the_server_takes_no_name_away() -> None:
    familiar = FamiliarTools()
    familiar.note_tools([Tool("run_container", json.dumps(FIRST).encode())], "")
    assert [one.name for one in familiar.aliases("run_container")] == ["Bash"]
    familiar.note_tools([], "mcp-server-docker")  # its preset says that this tool is not Bash
    assert "Bash" in [one.name for one in familiar.aliases("run_container")]


def test_annotations_of_a_later_list_take_no_name_away() -> None:
    familiar = FamiliarTools()
    schema = b'{"type":"object","properties":{"path":{"type":"string"}}}'
    familiar.note_tools([Tool("read_file", schema)], "")
    familiar.note_tools([Tool("read_file", schema, annotations=b'{"destructiveHint":true}')], "")
    assert [one.name for one in familiar.aliases("read_file")] == ["Read"]


@pytest.mark.parametrize(
    ("tool", "arguments", "name"),
    [
        ("read_file", {"path": ["/a/.env"]}, "Read"),
        ("read_file", {"path": {"p": "/a/.env"}}, "Read"),
        ("fetch", {"url": ["https://example.com"]}, "WebFetch"),
        ("write_file", {"path": ["/a"], "content": 5}, "Write"),
        ("edit_file", {"path": "/a/.env", "edits": "[]"}, "MultiEdit"),
        ("edit_file", {"path": ["/a/.env"], "edits": []}, "MultiEdit"),
        ("list_directory", {"path": 5}, "LS"),
        ("web_search", {"query": ["x"]}, "WebSearch"),
    ],
)
def test_a_value_of_another_type_takes_no_name_from_a_tool_that_is_not_listed(
    tool: str, arguments: dict[str, object], name: str
) -> None:
    alias = FamiliarTools().alias(tool, json.dumps(arguments).encode())
    assert alias is not None
    assert name in alias.names


def test_a_command_that_is_null_beside_a_list_of_commands_is_no_second_command() -> None:
    familiar = FamiliarTools()
    properties = {"command": {"type": ["string", "null"]}, "commands": {"type": "array"}}
    text = json.dumps({"type": "object", "properties": properties}).encode()
    familiar.note_tools([Tool("execute_command", text, properties=frozenset(properties))], "")
    raw = b'{"command":null,"commands":["ls","rm x"],"n":1}'
    alias = familiar.alias("execute_command", raw)
    assert alias is not None
    assert json.loads(alias.for_call(raw).for_hooks(raw)) == {"command": "ls\nrm x", "n": 1}
