"""Servers that were not written for hookproxy, and the `mcp` package's client: directly and through the proxy."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters, types
from mcp.client import ClientRequestContext, Transport
from mcp.client.stdio import stdio_client
from pydantic import BaseModel

from tests.end.agent import HOOKPROXY, PATIENCE, Json, Scene, group, specific
from tests.support import serve_mcp
from tests.support.preloaded_servers import preloaded

pytestmark = pytest.mark.usefixtures("preloaded_servers")

EVERYTHING = preloaded(serve_mcp.__file__, str(Path(__file__).with_name("all_features_server.py")))
TIME = preloaded("-m", "mcp_server_time", "--local-timezone", "Europe/Berlin")
GIT = preloaded("-m", "mcp_server_git")

ERAS = ["legacy", "auto"]
LATEST = {"legacy": "2025-11-25", "auto": "2026-07-28"}

Plan = Sequence[tuple[str, Json]]


def unnoticed(scene: Scene) -> dict[str, list[str]]:
    """Options with hooks that must not be noticed."""
    silent: Json = dict.fromkeys(("PreToolUse", "PostToolUse", "PostToolUseFailure"), "true")
    return {
        "no hooks": [],
        "hooks that match nothing": [scene.hooks(PreToolUse=[group("exit 2", matcher="mcp__other__.*")])],
        "hooks that say nothing": [scene.hooks(**silent)],
    }


def through(options: Sequence[str], server: Sequence[str]) -> list[str]:
    return [HOOKPROXY, "run", "--name=real", *options, "--", *server]


class Person:
    """Answers requests of servers, and keeps their notifications."""

    def __init__(self) -> None:
        self.requests: list[object] = []
        self.notifications: list[object] = []
        self.list_changed = anyio.Event()

    async def sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        self.requests.append(plain(params))
        content = types.TextContent(type="text", text="a sample")
        return types.CreateMessageResult(role="assistant", content=content, model="none", stop_reason="endTurn")

    async def elicit(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.requests.append(plain(params))
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        self.requests.append("roots")
        return types.ListRootsResult(roots=[types.Root(uri="file:///tmp/root", name="root")])

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.notifications.append(plain(params))

    async def message(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.notifications.append("tools changed")
            self.list_changed.set()
        assert not isinstance(message, Exception), message

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.notifications.append((progress, total, message))


def plain(model: BaseModel) -> Json:
    """A message as JSON, without what differs from run to run."""
    dumped: Json = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    meta = dumped.get("_meta", {})
    meta.pop("progressToken", None)
    return {key: value for key, value in dumped.items() if key != "_meta" or meta}


@asynccontextmanager
async def connected(
    scene: Scene,
    argv: Sequence[str] | str | Transport,
    era: str,
    person: Person | None = None,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[Client]:
    """A client of a command, of a URL, or of whatever a transport reaches."""
    person = person or Person()
    with (scene.folder / "stderr").open("a") as errors, anyio.fail_after(2 * PATIENCE):
        async with Client(
            argv
            if isinstance(argv, (str, AbstractAsyncContextManager))
            else stdio_client(parameters(scene, argv, env), errlog=errors),
            mode=era,
            sampling_callback=person.sample,
            elicitation_callback=person.elicit,
            list_roots_callback=person.roots,
            logging_callback=person.log,
            log_level="debug",
            message_handler=person.message,
            client_info=types.Implementation(name="a-real-agent", version="1"),
        ) as client:
            assert client.protocol_version == LATEST[era]
            yield client


def parameters(scene: Scene, argv: Sequence[str], env: Mapping[str, str] | None) -> StdioServerParameters:
    return StdioServerParameters(
        command=argv[0], args=list(argv[1:]), env={**scene.env, **(env or {})}, cwd=scene.folder
    )


async def outcome(text: Awaitable[BaseModel]) -> object:
    """The outcome of a request: a result or an error."""
    try:
        return plain(await text)
    except MCPError as error:
        return {"code": error.code, "message": error.message, "data": error.data}


async def side_by_side(
    scene: Scene, script: Callable[[str, Sequence[str]], Awaitable[object]], server: Sequence[str]
) -> object:
    """What a script gets from a server directly; through the proxy it gets the same, whatever hooks there are."""
    commands = {"directly": server} | {name: through(options, server) for name, options in unnoticed(scene).items()}
    got: dict[str, object] = {}

    async def run(name: str) -> None:
        got[name] = await script(name, commands[name])

    async with anyio.create_task_group() as tasks:
        for name in commands:
            tasks.start_soon(run, name)
    direct = got.pop("directly")
    assert got == dict.fromkeys(got, direct)
    return direct


async def introduced(client: Client) -> list[object]:
    capabilities = plain(client.server_capabilities)
    info = plain(client.server_info) if client.server_info else None
    return [capabilities, info, client.instructions, plain(await client.list_tools())]


# --- mcp-server-time and mcp-server-git ---

TIMES: Plan = [
    ("get_current_time", {"timezone": "Asia/Tokyo"}),
    ("get_current_time", {"timezone": "Nowhere/Never"}),
    ("get_current_time", {"timezone": ""}),
    ("get_current_time", {}),
    ("convert_time", {"source_timezone": "Asia/Kathmandu", "time": "14:30", "target_timezone": "UTC"}),
    ("convert_time", {"source_timezone": "UTC", "time": "25:00", "target_timezone": "UTC"}),
    ("no_such_tool", {}),
]


@pytest.mark.parametrize("era", ERAS)
async def test_the_time_server_answers_through_the_proxy_as_it_does_directly(scene: Scene, era: str) -> None:
    async def script(_name: str, argv: Sequence[str]) -> object:
        async with connected(scene, argv, era) as client:
            text = [*await introduced(client), *[await outcome(client.call_tool(*one)) for one in TIMES]]
        return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "NOW", json.dumps(text))

    assert "NOW" in str(await side_by_side(scene, script, TIME))


def repository(folder: Path, env: Mapping[str, str]) -> str:
    """A repository with two commits, a change that is staged, one that is not, and a branch."""
    folder.mkdir(parents=True)
    (folder / "first").write_text("one\n")
    (folder / "second").write_text("two é\n")
    commands = [
        "git init -q -b main", "git add first", "git commit -q -m first", "git add second", "git commit -q -m second",
        "git branch other HEAD~1", "echo staged >>first", "git add first", "echo changed >>second",
    ]  # fmt: skip
    subprocess.run(["sh", "-ec", "; ".join(commands)], cwd=folder, env=env, check=True, timeout=PATIENCE)
    return str(folder)


AUTHOR = {
    "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_AUTHOR_DATE": "1767323045 +0000",
    "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org", "GIT_COMMITTER_DATE": "1767323045 +0000",
}  # fmt: skip

COMMITS: Plan = [
    ("git_status", {}),
    ("git_diff_unstaged", {}),
    ("git_diff_staged", {"context_lines": 0}),
    ("git_diff", {"target": "other"}),
    ("git_diff", {"target": "--output=/tmp/x"}),
    ("git_add", {"files": ["second"]}),
    ("git_add", {"files": ["../outside"]}),
    ("git_commit", {"message": "third é"}),
    ("git_log", {"max_count": 3}),
    ("git_show", {"revision": "HEAD"}),
    ("git_show", {"revision": "no-such-revision"}),
    ("git_create_branch", {"branch_name": "new", "base_branch": "other"}),
    ("git_checkout", {"branch_name": "new"}),
    ("git_branch", {"branch_type": "local"}),
    ("git_reset", {}),
    ("git_status", {"repo_path": "/no/such/folder"}),
    ("git_status", {"repo_path": 7}),
    ("git_nonsense", {}),
]


@pytest.mark.parametrize("era", ERAS)
async def test_the_git_server_works_through_the_proxy_as_it_does_directly_in_the_agents_environment(
    scene: Scene, era: str
) -> None:
    env = {**scene.env, **AUTHOR}

    async def script(name: str, argv: Sequence[str]) -> object:
        folder = repository(scene.folder / name, env)
        async with connected(scene, argv, era, env=AUTHOR) as client:
            text = await introduced(client)
            for tool, arguments in COMMITS:
                text.append(await outcome(client.call_tool(tool, {"repo_path": folder, **arguments})))
        return json.dumps(text).replace(folder, "REPO")

    direct = str(await side_by_side(scene, script, GIT))
    assert all(word in direct for word in ("Changes committed successfully", "Ada", "Switched to branch"))


async def test_hooks_guard_rewrite_and_comment_on_the_git_server(scene: Scene) -> None:
    folder = repository(scene.folder / "repo", {**scene.env, **AUTHOR})
    guard = scene.file(
        "guard.py",
        "import json, sys\n"
        "message = json.load(sys.stdin)['tool_input']['message']\n"
        "if 'wip' in message:\n"
        "    sys.exit(print('no work in progress', file=sys.stderr) or 2)\n",
    )
    log = scene.prints(specific("PreToolUse", updatedInput={"repo_path": folder, "max_count": 1}))
    hooks = scene.hooks(
        PreToolUse=[
            group(f"python3 {guard}", matcher="mcp__real__git_commit"),
            group(log, matcher="mcp__real__git_log"),
        ],
        PostToolUse=[group("echo 'remember to push' >&2; exit 2", matcher="mcp__real__git_commit")],
        PostToolUseFailure=[group("echo 'list branches first' >&2; exit 2", matcher="mcp__real__git_checkout")],
    )
    async with connected(scene, through([hooks], GIT), "auto", env=AUTHOR) as client:
        blocked = await client.call_tool("git_commit", {"repo_path": folder, "message": "wip"})
        assert blocked.is_error
        assert "guard.py: no work in progress" in texts(blocked)[0]
        committed = await client.call_tool("git_commit", {"repo_path": folder, "message": "third"})
        assert not committed.is_error
        assert texts(committed)[-1] == "remember to push"
        logged = await client.call_tool("git_log", {"repo_path": folder, "max_count": 10})
        assert "third" in texts(logged)[0]
        assert "second" not in texts(logged)[0]
        failed = await client.call_tool("git_checkout", {"repo_path": folder, "branch_name": "none"})
        assert failed.is_error
        assert texts(failed)[-1] == "list branches first"


def texts(result: types.CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, types.TextContent)]


# --- a server with all features ---

TOOLS: Plan = [
    ("text", {"word": 'é ☃ \u2028 \\ " \n'}),
    ("text", {}),
    ("text", {"word": 7}),
    ("unstructured", {"word": "x" * 100_000}),
    ("open_schema", {"word": "word"}),
    ("closed_schema", {"word": "word"}),
    ("all_kinds", {}),
    ("error_result", {}),
    ("raises", {}),
    ("protocol_error", {}),
    ("environment", {"name": "ODD_ONE"}),
    ("environment", {"name": "CLAUDE_PROJECT_DIR"}),
    ("logs", {}),
    ("samples", {"prompt": "say something"}),
    ("elicits", {}),
    ("roots", {}),
    ("asks", {}),
    ("no_such_tool", {}),
]


async def everything(scene: Scene, era: str, _name: str, argv: Sequence[str] | str | Transport) -> object:
    """All messages of a server with all features."""
    person = Person()
    async with connected(scene, argv, era, person, {"ODD_ONE": "first\nsecond é"}) as client:
        text = await introduced(client)
        for name, arguments in TOOLS:
            text.append([name, await outcome(client.call_tool(name, arguments))])
        text.append(await outcome(client.call_tool("progress", {"steps": 3}, progress_callback=person.progress)))
        prompt = types.PromptReference(type="ref/prompt", name="greeting")
        text += [
            await outcome(client.list_prompts()),
            await outcome(client.get_prompt("greeting", {"name": "Ada"})),
            await outcome(client.get_prompt("none")),
            await outcome(client.list_resources()),
            await outcome(client.list_resource_templates()),
            await outcome(client.read_resource("memo://5")),
            await outcome(client.read_resource("data://bytes")),
            await outcome(client.read_resource("none://")),
            await outcome(client.complete(prompt, {"name": "name", "value": "Ad"})),
        ]
        if era == "legacy":
            text.append(await outcome(client.send_ping()))
            text.append(await outcome(client.set_logging_level("error")))
    text += [person.requests, person.notifications]
    return text


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")  # they are still there, in 2025
@pytest.mark.parametrize("era", ERAS)
async def test_a_server_with_all_features_behaves_through_the_proxy_as_it_does_directly(scene: Scene, era: str) -> None:
    recorded = json.dumps(await side_by_side(scene, partial(everything, scene, era), EVERYTHING))
    expected = ["step 3", "it broke", "not like this", "memo 5", "Ad-2", "first\\nsecond"]
    expected += ["a sample", "file:///tmp/root", "accept name='Ada'"] if era == "legacy" else ["state of the server: "]
    assert [word for word in expected if json.dumps(word)[1:-1] not in recorded and word not in recorded] == []


@pytest.mark.parametrize("era", ERAS)
async def test_a_changed_list_of_tools_is_announced_and_the_new_tool_can_be_called(scene: Scene, era: str) -> None:
    person = Person()
    argv = through(unnoticed(scene)["hooks that say nothing"], EVERYTHING)
    async with connected(scene, argv, era, person) as client:
        before = {tool.name for tool in (await client.list_tools()).tools}
        if era == "legacy":
            await client.call_tool("grows")
            await person.list_changed.wait()
        else:
            async with client.listen(tools_list_changed=True) as changes:
                await client.call_tool("grows")
                await anext(aiter(changes))
        after = {tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools}
        assert after - before == {"grown"}
        assert texts(await client.call_tool("grown", {"word": "new"})) == ["You said new."]


@pytest.mark.parametrize(("era", "hooks"), [("legacy", "hooks that say nothing"), ("auto", "no hooks")])
async def test_cancelling_a_call_reaches_the_tool(scene: Scene, era: str, hooks: str) -> None:
    gate = scene.gate("slow")
    argv = through(unnoticed(scene)[hooks], EVERYTHING)
    async with connected(scene, argv, era, env={"E2E_FIFO": gate.arrival}) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "slow")
            assert await gate.reached() == "begun"
            tasks.cancel_scope.cancel()
        assert await gate.reached() == "cancelled"
        assert texts(await client.call_tool("text", {"word": "still here"})) == ["You said still here."]


@pytest.mark.parametrize("era", ERAS)
async def test_cancelling_a_call_that_a_hook_judges_leaves_the_tool_alone(scene: Scene, era: str) -> None:
    gate, slow = scene.gate("judging"), scene.gate("slow")
    hooks = scene.hooks(PreToolUse=[group(f"sleep 600 & {gate.script}", matcher="mcp__real__slow")])
    argv = through([hooks], EVERYTHING)
    async with connected(scene, argv, era, env={"E2E_FIFO": slow.arrival}) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "slow")
            await gate.reached()
            tasks.cancel_scope.cancel()
        assert texts(await client.call_tool("text", {"word": "still here"})) == ["You said still here."]
    assert not slow.visited


# --- hooks in front of a server with all features ---


@pytest.mark.parametrize("era", ERAS)
async def test_hooks_rewrite_block_comment_and_fail_and_the_client_accepts_every_result(scene: Scene, era: str) -> None:
    rewrite = scene.prints(specific("PreToolUse", permissionDecision="allow", updatedInput={"word": "rewritten"}))
    bad_rewrite = scene.prints(specific("PreToolUse", updatedInput={"word": 7}))
    hooks = scene.hooks(
        PreToolUse=[
            group(rewrite, matcher="mcp__real__text"),
            group("echo 'not that one' >&2; exit 2", matcher="mcp__real__environment"),
            group(scene.prints(specific("PreToolUse", additionalContext="before")), matcher=".*_(schema|result|kinds)"),
            group("exit 1", matcher="mcp__real__unstructured"),
            group("exit 1", matcher="mcp__real__progress", onFailure="block"),
            group(bad_rewrite, matcher="mcp__real__closed_schema"),
        ],
        PostToolUse=[group("echo after >&2; exit 2", matcher=".*_(schema|kinds)")],
        PostToolUseFailure=[group("echo failed >&2; exit 2")],
    )
    async with connected(scene, through([hooks], EVERYTHING), era) as client:
        await client.list_tools()

        async def call_tool(tool: str, **arguments: Any) -> types.CallToolResult:  # noqa: ANN401  # any JSON
            return await client.call_tool(tool, arguments)

        rewritten = await call_tool("text", word="mine")
        assert rewritten.structured_content == {"result": "You said rewritten."}
        blocked = await call_tool("environment", name="PATH")
        assert blocked.is_error
        assert "not that one" in texts(blocked)[0]
        commented = await call_tool("open_schema", word="abc")
        assert texts(commented)[-1] == "before\n\nafter"
        assert commented.structured_content == {
            "text": "abc", "length": 3, "ratio": 1.0, "hook_feedback": "before\n\nafter",
        }  # fmt: skip
        closed = await call_tool("closed_schema", word="abc")  # its rewrite does not fit, and is not applied
        assert texts(closed)[-1] == "before\n\nafter"
        assert closed.structured_content == {"text": "abc", "length": 3, "ratio": 1.0}
        kinds = await call_tool("all_kinds")
        assert [block.type for block in kinds.content] == [
            "text",
            "image",
            "audio",
            "resource_link",
            "resource",
            "text",
        ]
        assert texts(await call_tool("error_result"))[-1] == "before\n\nfailed"
        assert texts(await call_tool("raises"))[-1] == "failed"
        with pytest.raises(MCPError, match=r"not like this\. failed") as caught:
            await call_tool("protocol_error")
        assert caught.value.code == -31999
        assert caught.value.data == {"n": 1, "hook_feedback": "failed"}
        assert texts(await call_tool("unstructured", word="x")) == ["You said x."]
        stopped = await call_tool("progress", steps=1)
        assert stopped.is_error
        assert "set to block when it fails" in texts(stopped)[0]


@pytest.mark.parametrize("era", ERAS)
async def test_requests_of_the_server_pass_while_hooks_judge_its_calls(scene: Scene, era: str) -> None:
    person = Person()
    comment = scene.prints(specific("PostToolUse", additionalContext="asked"))
    before = scene.folder / "before"
    hooks = scene.hooks(PreToolUse=f"echo >>'{before}'", PostToolUse=comment)
    async with connected(scene, through([hooks], EVERYTHING), era, person) as client:
        if era == "legacy":
            for tool, arguments in (("samples", {"prompt": "hi"}), ("elicits", {}), ("roots", {})):
                result = await client.call_tool(tool, arguments)
                assert not result.is_error
                assert texts(result)[-1] == "asked"
            assert len(person.requests) == 3
        else:
            result = await client.call_tool("asks")
            assert texts(result)[0].startswith("state of the server: ")
            assert texts(result)[-1] == "asked"
            assert len(person.requests) == 1
            assert len(texts(result)) == 2  # hooks did not comment on the round before


@pytest.mark.parametrize("era", ERAS)
async def test_session_start_reaches_a_real_agent(scene: Scene, era: str) -> None:
    hooks = scene.hooks(SessionStart="echo be careful", PreToolUse=[group("true", matcher=".*__text")])
    async with connected(scene, through([hooks], EVERYTHING), era) as client:
        first = texts(await client.call_tool("text", {"word": "x"}))
        if era == "legacy":
            assert client.instructions == "All of it.\n\nbe careful"
            assert first == ["You said x."]
        else:
            assert client.instructions == "All of it."
            assert first == ["You said x.", "be careful"]


async def test_a_pinned_stateless_agent_needs_no_discovery(scene: Scene) -> None:
    server = StdioServerParameters(
        command=HOOKPROXY, args=through([scene.hooks(PreToolUse="exit 2")], EVERYTHING)[1:], env=scene.env
    )
    with (scene.folder / "stderr").open("a") as errors, anyio.fail_after(PATIENCE):
        async with Client(stdio_client(server, errlog=errors), mode="2026-07-28") as client:
            blocked = await client.call_tool("text", {"word": "x"})
            assert blocked.is_error


async def test_the_servers_standard_error_is_the_agents(scene: Scene) -> None:
    async with connected(scene, through([], EVERYTHING), "auto"):
        pass
    assert "everything starts" in (scene.folder / "stderr").read_text().splitlines()
