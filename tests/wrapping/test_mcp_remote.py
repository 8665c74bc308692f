"""Command lines of mcp-remote: recognised in every way to start it, and replaced only if nothing is lost."""

from __future__ import annotations

import json
from typing import Final

import pytest

from hookproxy.wrapping import edit_plan
from hookproxy.wrapping.mcp_remote import McpRemote, parse
from hookproxy.wrapping.wrap_entry import RunOptions
from tests.wrapping.connections import connection, entry_of
from tests.wrapping.roundtrip import launcher, unwrapped

URL: Final = "https://example.com/sse"


@pytest.mark.parametrize(
    "words",
    [
        "npx mcp-remote",
        "npx -y mcp-remote@latest",
        "npx --yes -q mcp-remote@0.1.16",
        "/usr/local/bin/npx mcp-remote",
        "bunx mcp-remote",
        "bun x --bun mcp-remote",
        "pnpm dlx mcp-remote",
        "yarn dlx mcp-remote",
        "npm exec -- mcp-remote",
        "cmd /c npx -y mcp-remote",
        "cmd.exe /C npx.cmd mcp-remote",
        r"C:\nodejs\npx.cmd mcp-remote",
        "mcp-remote",
        "/opt/bin/mcp-remote",
    ],
)
def test_every_way_to_start_it_is_recognised(words: str) -> None:
    assert parse((*words.split(" "), URL)) == McpRemote(URL, (), allow_http=False)


@pytest.mark.parametrize(
    "words",
    ["npx mcp-remote", "npx mcp-remotely https://x", "npx -y server mcp-remote https://x", "node mcp-remote https://x",
     "npx --package mcp-remote mcp-remote https://x", "cmd /k npx mcp-remote https://x", ""],
)  # fmt: skip
def test_other_command_lines_are_not(words: str) -> None:
    assert parse(words.split()) is None


def test_its_options() -> None:
    words = [
        "npx",
        "mcp-remote",
        URL,
        "3334",
        "--debug",
        "--transport",
        "sse-only",
        "--header",
        "A:b",
        "--header",
        "C: d: e",
    ]
    assert parse(words) == McpRemote(URL, (("A", "b"), ("C", "d: e")), allow_http=False)
    assert parse(["mcp-remote", "--host", "::1", "--allow-http", URL]) == McpRemote(URL, (), allow_http=True)
    found = parse(["mcp-remote", URL, "--ignore-tool", "delete*"])
    assert found is not None
    assert found.unknown == "--ignore-tool"


def text_of(*words: str, **members: object) -> str:
    return json.dumps({"mcpServers": {"far": {"command": words[0], "args": words[1:], **members}}})


def replaced(text: str) -> edit_plan.Plan:
    return edit_plan.wrap(edit_plan.read("x.json", text), (), launcher, RunOptions(), replace_mcp_remote=True)


def test_it_is_replaced_only_if_that_is_asked_for_and_comes_back() -> None:
    text = text_of("npx", "-y", "mcp-remote", URL, env={"A": "b"}, timeout=5)
    plain = edit_plan.wrap(edit_plan.read("x.json", text), (), launcher, RunOptions())
    assert entry_of("x.json", plain.text, "far").argv[-4:] == ("npx", "-y", "mcp-remote", URL)
    assert edit_plan.starts_mcp_remote(plain.changed[0])
    plan = replaced(text)
    assert connection(entry_of("x.json", plan.text, "far")) == (URL, [])
    assert unwrapped("x.json", plan.text) == text


def test_its_references_are_hookproxys_own_and_secrets_leave_the_command_line() -> None:
    text = text_of(
        "npx", "mcp-remote", URL, "--header", "Authorization:Bearer ${TOKEN}", "--header", "X-Key: k0123456789",
        "--header", "X-Input: ${input:key}", env={"TOKEN": "t0123456789"},
    )  # fmt: skip
    plan = replaced(text)
    entry = entry_of("x.json", plan.text, "far")
    assert entry.argv[6:8] == ("--header", "Authorization: Bearer %{TOKEN}")
    assert not any("k0123456789" in word or "${" in word for word in entry.argv)
    headers = [("Authorization", "Bearer t0123456789"), ("X-Key", "k0123456789"), ("X-Input", "${input:key}")]
    assert connection(entry) == (URL, headers)
    assert plan.text.count("t0123456789") == plan.text.count("k0123456789") == 1
    assert unwrapped("x.json", plan.text) == text


def test_an_option_that_hookproxy_has_no_equal_of_keeps_mcp_remote_and_a_note_says_so() -> None:
    plan = replaced(text_of("npx", "mcp-remote", URL, "--ignore-tool", "delete*"))
    assert entry_of("x.json", plan.text, "far").argv[-3:] == (URL, "--ignore-tool", "delete*")
    assert plan.notes == (
        "mcpServers.far gives mcp-remote --ignore-tool, which hookproxy has no equal of: mcp-remote is not replaced",
    )


def test_a_wrapped_mcp_remote_is_not_replaced_and_a_note_says_what_to_do() -> None:
    text = text_of("npx", "mcp-remote", URL)
    once = edit_plan.wrap(edit_plan.read("x.json", text), (), launcher, RunOptions())
    plan = replaced(once.text)
    assert plan.text == once.text
    assert plan.notes == ("mcpServers.far is wrapped with mcp-remote already: unwrap it, and wrap it again",)


TABLE: Final = """\
[mcp_servers.far]
args = [
 "mcp-remote", # c
 "https://x"]
command = "npx"

[mcp_servers.far.env]
A = "b"
"""
BLOCK: Final = """\
extensions:
  far:
    cmd: npx
    args:
    - mcp-remote
    - https://x # c
    envs:
      A: b
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.toml", '[mcp_servers.far]\ncommand = "npx" # c\nargs = ["mcp-remote", "https://x"]\nenv = {A="b"}\n'),
        ("config.toml", TABLE),
        ("config.yaml", BLOCK),
        ("config.yaml", "extensions:\n  far: {args: [mcp-remote, 'https://x'], envs: {A: b}, cmd: npx}\n"),
        ("x.json", '{"mcp": {"far": {"command": ["npx", "mcp-remote", "https://x"], "environment": {"A": "b"}}}}'),
        ("x.jsonc", '{"servers": {"far": {"args": [/*c*/ "mcp-remote", "https://x",], "command": "npx", "env": {},}}}'),
    ],
)  # fmt: skip
def test_it_is_replaced_in_every_syntax_and_every_byte_comes_back(name: str, text: str) -> None:
    configuration = edit_plan.read(name, text)
    plan = edit_plan.wrap(configuration, (), launcher, RunOptions(), replace_mcp_remote=True)
    assert connection(entry_of(name, plan.text, "far")) == ("https://x", [])
    assert unwrapped(name, plan.text) == text


def test_a_command_that_zed_writes_as_a_table_is_not_replaced() -> None:
    text = '{"context_servers": {"far": {"command": {"path": "npx", "args": ["mcp-remote", "https://x"]}}}}'
    plan = replaced(text)
    assert entry_of("x.json", plan.text, "far").argv[-2:] == ("mcp-remote", "https://x")
    assert "mcp-remote is not replaced" in plan.notes[0]
    assert unwrapped("x.json", plan.text) == text
