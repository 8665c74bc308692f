"""Any file of a system with Claude Code's groups is read, or refused with an error that names the file."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.errors import ConfigError
from tests.dialects.calls import read

NAMES: Final = [name for name, dialect in DIALECTS.items() if ".json" in dialect.suffixes]
KEYS: Final = st.sampled_from([
    "hooks", "PreToolUse", "SessionStart", "SessionEnd", "Stop", "matcher", "type", "command", "timeout", "async",
    "env", "sequential", "failMode", "shell", "server", "tool", "input", "url", "version", "state", "hooksDisabled",
]) | st.text(max_size=3)  # fmt: skip
LEAVES: Final = (
    st.sampled_from(["command", "http", "mcp_tool", "prompt", "x", "", "(", "mcp__s", "a|b", "\0"])
    | st.none() | st.booleans() | st.integers() | st.floats()
)  # fmt: skip
VALUES: Final = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=8)
LISTED: Final = st.lists(st.dictionaries(KEYS, LEAVES, max_size=4), max_size=3)
ENTRIES: Final = LISTED | st.lists(st.fixed_dictionaries({"type": LEAVES, "command": LEAVES}), max_size=3)
GROUPS: Final = st.lists(
    st.fixed_dictionaries({"hooks": ENTRIES}, optional={"matcher": LEAVES, "sequential": LEAVES}), max_size=3
)
EVENTS: Final = st.dictionaries(KEYS, GROUPS, max_size=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@given(members=st.dictionaries(KEYS, VALUES) | EVENTS | EVENTS.map(lambda events: {"hooks": events}))
def test_any_file_is_read_or_refused_with_a_config_error(name: str, members: dict[str, object]) -> None:
    assert DIALECTS[name].recognises(members) in (True, False)
    with suppress(ConfigError):
        for hook in read(name, json.dumps(members)).hooks:
            assert hook.argv or hook.shell or hook.url or hook.tool
            assert hook.timeout > 0
            hook.matches("mcp__s__t")


@given(members=st.dictionaries(KEYS, VALUES) | st.fixed_dictionaries({"hooks": LISTED}))
def test_the_list_of_kimi_code_is_read_or_refused(members: dict[str, object]) -> None:
    assert DIALECTS["kimi"].recognises(members) in (True, False)
    with suppress(ConfigError):
        read("kimi", json.dumps(members), "/repo/hooks.json")


ODD: Final[tuple[object, ...]] = (None, 1, "x", [], [1], [None, 2], ["x"], [{}], [[1]], [{"hooks": 1}], {"a": 1})
"""Values where a file should have events, groups or entries."""
BESIDES: Final[tuple[dict[str, object], ...]] = ({}, {"version": 1}, {"version": "v1", "name": 1}, {"$schema": 1})
"""Members beside `hooks` that may tell systems apart."""


@pytest.mark.parametrize("name", DIALECTS)
def test_recognising_a_file_with_odd_values_never_raises(name: str) -> None:
    dialect = DIALECTS[name]
    for odd in ODD:
        for hooks in (odd, *({event: odd} for event in dialect.events)):
            for besides in BESIDES:
                members = {"hooks": hooks, **besides}
                assert dialect.recognises(members) in (True, False)
                assert dialect.recognises_at_home is None or dialect.recognises_at_home(members) in (True, False)
