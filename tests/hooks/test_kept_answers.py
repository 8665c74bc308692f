"""What is kept from call to call: whatever came before, a call is judged as if nothing had been kept."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.dialects.dialect import Group
from hookproxy.dialects.registry import DIALECTS
from hookproxy.hooks.evaluate import Hooks
from hookproxy.hooks.familiar_tools import FamiliarTools
from hookproxy.model.aliases import Alias
from hookproxy.model.hooks import Event, Tool
from hookproxy.model.limits import Limit, Per
from hookproxy.model.settings import Settings, ToolNames
from tests.support.examples import examples
from tests.support.proxy_rig import group, hook

TEXT: Final = {"type": "string"}
SCHEMAS: Final[list[dict[str, Any]]] = [
    {"type": "object", "properties": {"command": TEXT}},
    {"type": "object", "properties": {"cmd": TEXT, "n": {"type": "number"}}},
    {"type": "object", "properties": {"command": TEXT, "cmd": TEXT}},
    {
        "type": "object",
        "properties": dict.fromkeys(("path", "command", "file_text", "new_str", "old_str"), TEXT)
        | {"view_range": {"type": "array"}},
    },
    {"type": "object", "properties": {"path": TEXT, "content": TEXT}, "required": ["path"]},
    {"type": "object", "additionalProperties": True},
    {"type": "object"},
]
NAMES: Final = ["run_command", "read_file", "text_editor", "zap", "run_container"]
CALLS: Final = [
    (tool, json.dumps(arguments, separators=(",", ":")).encode())
    for tool in NAMES
    for arguments in (
        {},
        {"command": "view", "path": "/a"},
        {"command": "create", "path": "/a"},
        {"path": "/a", "command": "create"},
        {"command": ["ls"]},
        {"command": 5},
        {"cmd": "ls", "command": None},
        {"cmd": "ls"},
        {"cmd": "ls", "command": "rm x"},
        {"path": "/a", "file": "/b"},
        {"file": "/b", "path": "/a"},
        {"path": {"command": "ls"}},
        {"path": {"text": "ls"}},
    )
]
SERVERS: Final = ["", "redis", "mcp-server-docker"]
LISTED: Final = st.tuples(st.sampled_from(NAMES), st.sampled_from(SCHEMAS), st.sampled_from(SERVERS))
STEPS: Final = st.lists(st.one_of(LISTED, st.sampled_from(CALLS)), max_size=12)


def listed(name: str, schema: dict[str, Any]) -> Tool:
    return Tool(name, json.dumps(schema).encode(), properties=frozenset(schema.get("properties", {})))


def answer(familiar: FamiliarTools, tool: str, arguments: bytes) -> Alias | str | None:
    try:
        return familiar.alias(tool, arguments)
    except ValueError as unclear:
        return str(unclear)


@pytest.mark.parametrize("tool", NAMES)
@pytest.mark.parametrize("schema", [None, *SCHEMAS], ids=json.dumps)
def test_no_call_changes_what_another_one_gets(tool: str, schema: dict[str, Any] | None) -> None:
    def familiar() -> FamiliarTools:
        tools = FamiliarTools()
        tools.note_tools([] if schema is None else [listed(tool, schema)], "")
        return tools

    calls = [arguments for name, arguments in CALLS if name == tool]
    alone = {arguments: answer(familiar(), tool, arguments) for arguments in calls}
    for order in (calls, calls[::-1]):
        kept = familiar()
        assert {arguments: answer(kept, tool, arguments) for arguments in order} == alone


@examples(200)
@given(STEPS, st.booleans())
def test_an_alias_depends_on_the_call_and_on_what_is_listed_alone(steps: list[Any], any_server: bool) -> None:
    kept, noted = FamiliarTools(any_server=any_server), []
    for step in steps:
        if len(step) == 3:
            noted.append(([listed(*step[:2])], step[2]))
            kept.note_tools(*noted[-1])
            continue
        fresh = FamiliarTools(any_server=any_server)
        for of_list in noted:
            fresh.note_tools(*of_list)
        assert answer(kept, *step) == answer(fresh, *step)


def guards() -> list[Group]:
    return [
        group(hook("true", matcher="Bash"), hook("true", Event.POST_TOOL_USE, matcher="Read")),
        Group(DIALECTS["gemini"], "settings.json", (hook("true", matcher="run_shell_command"),), ToolNames.BARE),
    ]


SETTINGS: Final = Settings(
    deny=("Write(/etc/*)", "delete_*"), ask=("Bash(rm *)",), limits=(Limit("zap", 5, Per.MINUTE, "limits[0]"),)
)
OWN: Final = Alias("zap", "Bash", {"command": "cmd"})


def judged(hooks: Hooks, tool: str, arguments: bytes) -> tuple[object, ...]:
    try:
        alias = hooks.groups.alias(tool, arguments)
    except ValueError as unclear:
        return (str(unclear),)
    selected = [
        [hook.tool_name for hook in of_group.hooks] for of_group in hooks.groups.select(Event.PRE_TOOL_USE, tool, alias)
    ]
    return (
        alias,
        selected,
        hooks.concerns(tool),
        hooks.needs_outcome(tool),
        hooks.groups.possible_names(tool),
        hooks.hides(tool),
    )


@examples(100)
@given(st.lists(st.one_of(LISTED, st.sampled_from(CALLS), st.just(OWN)), max_size=10))
def test_who_judges_a_call_depends_on_the_call_and_on_what_is_known_alone(steps: list[Any]) -> None:
    kept, noted = Hooks(guards(), SETTINGS, "server", {}), []

    def note(hooks: Hooks, step: Alias | tuple[str, dict[str, Any], str]) -> None:
        if isinstance(step, Alias):
            hooks.note_own_tool(step)
        else:
            hooks.note_tools([listed(*step[:2])], step[2])

    for step in steps:
        if isinstance(step, Alias) or len(step) == 3:
            noted.append(step)
            note(kept, step)
            continue
        fresh = Hooks(guards(), SETTINGS, "server", {})
        for earlier in noted:
            note(fresh, earlier)
        assert judged(kept, *step) == judged(fresh, *step)
