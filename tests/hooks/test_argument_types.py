"""Arguments that hooks read are of the types that the server lists, or the call is refused before any hook runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from hookproxy.hooks.argument_types import _READ
from hookproxy.hooks.familiar_tools import FamiliarTools
from hookproxy.model.aliases import FAMILIAR_NAMES
from hookproxy.model.settings import OnFailure, Settings
from tests.hooks.test_familiar_tools import call, documents, judged, list_tools, listed, mcp_group, seen_by
from tests.support.proxy_rig import DIRECT_LOOP, hook, rig

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        (
            listed("run_it", command="string"),
            {"command": 5},
            "the argument 'command' must be a text, and it is a number",
        ),
        (listed("run_it", command="string"), {"command": ["ls"]}, "'command' must be a text, and it is a list"),
        (listed("run_it", ("command",), command="string"), {}, "'command' is missing, and it must be a text"),
        (
            listed("run_it", ("command",), command="string"),
            {"command": None},
            "'command' must be a text, and it is null",
        ),
        (listed("run_it", command="string", args="array"), {"command": "ls", "args": "-l"}, "'args' must be a list"),
        (
            listed("write_file", path="string", content="string"),
            {"path": ["x"], "content": ""},
            "'path' must be a text",
        ),
        (
            listed("write_file", path="string", content="string"),
            {"path": "x", "content": {}},
            "'content' must be a text",
        ),
        (listed("fetch_url", url="string"), {"url": True}, "'url' must be a text, and it is true or false"),
    ],
)
@pytest.mark.parametrize("settings", [Settings(), Settings(on_failure=OnFailure.ALLOW)])
async def test_a_call_with_an_argument_of_another_type_is_refused_before_hooks(
    tmp_path: Path, tool: dict[str, Any], arguments: dict[str, object], text: str, settings: Settings
) -> None:
    guard = mcp_group(hook(seen_by(tmp_path), matcher="Bash|Write|WebFetch"))
    async with rig(guard, settings=settings) as proxied:
        await list_tools(proxied, tool)
        answer = await judged(proxied, call(1, tool["name"], **arguments))
    assert text in answer
    assert answer.startswith("Blocked: ")
    assert "The tool was not run. Send the arguments as the tool's inputSchema says." in answer
    assert documents(tmp_path) == []


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (listed("run_it", command="string", cwd="string"), {"command": "ls", "cwd": None}),
        (listed("run_it", command="string"), {"command": None}),
        (listed("run_it", command="string", timeout="number"), {"command": "ls", "timeout": "5"}),
        (listed("run_it", command={"anyOf": [{"type": "string"}, {"type": "array"}]}), {"command": ["ls"]}),
        (listed("run_it", command={"type": ["string", "array"]}), {"command": ["ls"]}),
        (listed("run_it", command={}), {"command": "ls"}),
        (listed("run_it", command="string"), {"command": "ls", "more": {"x": 1}}),
        (listed("run_it", command="string"), {}),
        (listed("write_file", path="string", content={"type": ["string", "object"]}), {"path": "x", "content": {}}),
    ],
)
async def test_a_call_that_may_fit_reaches_its_hooks(
    tmp_path: Path, tool: dict[str, Any], arguments: dict[str, object]
) -> None:
    guard = mcp_group(hook(seen_by(tmp_path), matcher="Bash|Write"))
    async with rig(guard) as proxied:
        await list_tools(proxied, tool)
        assert await judged(proxied, call(1, tool["name"], **arguments)) == arguments
    assert len(documents(tmp_path)) == 1


TYPED: Final = listed("create_issue", ("title",), title="string", count="number", labels={"items": {"type": "string"}})


async def test_check_types_is_about_every_argument_of_a_judged_call(tmp_path: Path) -> None:
    guard = mcp_group(hook(seen_by(tmp_path), matcher=".*create_issue"))
    async with rig(guard, settings=Settings(check_types=True)) as proxied:
        await list_tools(proxied, TYPED)
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"title": "x", "count": "5"}, "'count' must be a number, and it is a text"),
            ({"count": 5}, "'title' is missing"),
            ({"title": "x", "labels": ["a", 5]}, "'labels[1]' must be a text"),
        ]
        for number, (arguments, text) in enumerate(wrong):
            assert text in await judged(proxied, call(number, "create_issue", **arguments))
        fitting: dict[str, Any] = {"title": "x", "count": None, "labels": ["a"], "more": 1}
        assert await judged(proxied, call(9, "create_issue", **fitting)) == fitting
    assert len(documents(tmp_path)) == 1


@pytest.mark.parametrize("settings", [Settings(check_types=True), Settings(check_types=True, audit_all_calls=True)])
async def test_a_call_that_no_hook_judges_is_not_checked(tmp_path: Path, settings: Settings) -> None:
    guard = mcp_group(hook(seen_by(tmp_path), matcher="Bash"))
    async with rig(guard, settings=settings) as proxied:
        await list_tools(proxied, TYPED)
        assert await judged(proxied, call(1, "create_issue", count="5")) == {"count": "5"}


async def test_without_the_key_only_what_hooks_read_by_a_familiar_name_is_checked(tmp_path: Path) -> None:
    guard = mcp_group(hook(seen_by(tmp_path), matcher=".*create_issue"))
    async with rig(guard) as proxied:
        await list_tools(proxied, TYPED)
        assert await judged(proxied, call(1, "create_issue", count="5")) == {"count": "5"}


async def test_managed_hooks_get_what_the_server_lists_as_well(tmp_path: Path) -> None:
    guard = replace(mcp_group(hook(seen_by(tmp_path), matcher="Bash")), managed=True)
    async with rig(guard, settings=Settings(auto_aliases=False, managed=Settings())) as proxied:
        await list_tools(proxied, listed("run_it", command="string"))
        assert "must be a text" in await judged(proxied, call(1, "run_it", command=5))
    assert documents(tmp_path) == []


async def test_a_preset_says_of_which_type_an_argument_is(tmp_path: Path) -> None:
    familiar = FamiliarTools(["npx", "@wonderwhy-er/desktop-commander"])
    from hookproxy.hooks.argument_types import refusal

    for arguments, refused in ((b'{"command":5}', True), (b'{"command":"ls"}', False), (b"{}", False)):
        alias = familiar.alias("start_process", arguments)
        assert (refusal(alias, None, arguments, check_all=False) is not None) is refused


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write_file", {"path": ["/p/.env"], "content": "x"}),
        ("read_file", {"path": {"name": "/p/.env"}}),
        ("fetch", {"url": ["https://example.com"]}),
        ("edit_file", {"path": "/p/.env", "edits": "[]"}),
        ("run_command", {"command": 5}),
    ],
)
async def test_an_agent_that_lists_no_tools_first_gets_no_other_type_past_hooks(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    async with rig(mcp_group(hook(seen_by(tmp_path), matcher=".*"))) as proxied:
        assert "must be a" in await judged(proxied, call(1, tool, **arguments))
    assert documents(tmp_path) == []


def test_every_familiar_name_says_what_hooks_read() -> None:
    assert set(_READ) == set(FAMILIAR_NAMES)
