"""Servers are found under all keys that agents use, and none is skipped silently."""

from __future__ import annotations

import json

import pytest

from hookproxy.model.errors import ConfigError
from hookproxy.wrapping import edit_plan
from hookproxy.wrapping.find_servers import Kind
from tests.wrapping.roundtrip import argv


@pytest.mark.parametrize(
    ("server", "kind", "disabled"),
    [
        ({"command": "x"}, Kind.STARTED, False),
        ({"command": "x", "disabled": True}, Kind.STARTED, True),
        ({"command": "x", "enabled": False}, Kind.STARTED, True),
        ({"url": "https://x", "disabled": True}, Kind.REMOTE, True),
        ({"httpUrl": "https://x"}, Kind.REMOTE, False),
        ({"serverUrl": "https://x", "command": ""}, Kind.REMOTE, False),
        ({"source": "extension", "settings": {}}, Kind.OTHER, False),
        ({"command": None}, Kind.OTHER, False),
        ({"command": []}, Kind.OTHER, False),
        ({}, Kind.OTHER, False),
    ],
)
def test_kinds_of_servers(server: object, kind: Kind, disabled: bool) -> None:
    entry = edit_plan.read("x.json", json.dumps({"servers": {"a": server}})).entries[0]
    assert (entry.kind, entry.disabled) == (kind, disabled)


def test_servers_are_found_under_all_keys_that_agents_use() -> None:
    text = json.dumps(
        {
            "mcpServers": {"a": {"command": "1"}},
            "projects": {"/p": {"mcpServers": {"b": {"command": "2"}}}, "/q": {}, "/r": 1},
            "mcp": {"servers": {"c": {"command": "3"}}, "allowed": []},
            "other": {"mcpServers": {"d": {"command": "4"}}},
        }
    )
    assert argv("x.json", text) == {
        "mcpServers.a": ("1",), "projects./p.mcpServers.b": ("2",), "mcp.servers.c": ("3",),
    }  # fmt: skip
    gemini = json.dumps({"mcp": {"allowed": ["a"], "serverCommand": "x"}})
    assert argv("settings.json", gemini) == {}


@pytest.mark.parametrize(
    ("server", "what"),
    [
        (1, "mcpServers.a must hold a server"),
        ({"command": 1}, "mcpServers.a.command must be a string, or a list of strings"),
        ({"command": ["x", 1]}, "must be a string, or a list of strings"),
        ({"command": "x", "args": "y"}, "mcpServers.a.args must be a list of strings"),
        ({"command": "x", "args": None}, "mcpServers.a.args must be a list of strings"),
        ({"command": "x", "args": [["y"]]}, "mcpServers.a.args must be a list of strings"),
        ({"command": {"path": 1}}, "mcpServers.a.path must be a string"),
    ],
)
def test_an_entry_that_is_not_understood_is_an_error_and_not_skipped(server: object, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        edit_plan.read("x.json", json.dumps({"mcpServers": {"a": server}}))


@pytest.mark.parametrize(
    ("server", "for_python"),
    [
        ({"command": "x", "env": {"PYTHONPATH": "/src"}}, True),
        ({"command": ["x"], "environment": {"PYTHONHOME": "/p"}}, True),
        ({"command": {"path": "x", "env": {"PYTHONPATH": ""}}}, True),
        ({"command": "x", "env": {"PATH": "/bin", "pythonpath": "/src"}}, False),
        ({"command": "x", "env": ["PYTHONPATH"]}, False),
        ({"command": "x"}, False),
    ],
)
def test_variables_that_python_reads_are_detected(server: object, for_python: bool) -> None:
    entry = edit_plan.read("x.json", json.dumps({"servers": {"a": server}})).entries[0]
    assert entry.for_python is for_python
