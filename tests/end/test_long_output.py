"""Hooks on long texts: a rewrite or a replacement that is too long is never lost in silence."""

from __future__ import annotations

import sys

import pytest

from tests.end.agent import Scene, call, group, text_of

pytestmark = pytest.mark.slow

MEGABYTE = 1024 * 1024
SECRET = "hunter2"
# What a careless redactor does: it reads the document, and prints it again with all but ASCII escaped.
REDACT = """
import json, sys
document = json.load(sys.stdin)
if document["hook_event_name"] == "PreToolUse":
    arguments = document["tool_input"]
    arguments["text"] = arguments["text"].replace("hunter2", "[secret]")
    output = {"updatedInput": arguments}
else:
    output = {"updatedToolOutput": json.dumps(document["tool_response"]).replace("hunter2", "[secret]")}
print(json.dumps({"hookSpecificOutput": {"hookEventName": document["hook_event_name"], **output}}))
"""


@pytest.mark.parametrize("padding", ["x" * (11 * MEGABYTE), "é" * (4 * MEGABYTE)], ids=["ASCII", "escaped threefold"])
async def test_a_long_argument_is_rewritten_like_a_short_one(scene: Scene, padding: str) -> None:
    hook = f"'{sys.executable}' '{scene.file('redact.py', REDACT)}'"
    agent = scene.run(scene.hooks(PreToolUse=hook))
    await agent.initialize()
    await agent.ask(call(1, "echo", text=padding + SECRET))
    [received] = scene.calls_received()
    assert received["params"]["arguments"] == {"text": padding + "[secret]"}


@pytest.mark.parametrize("setting", ["dialect", "allow"])
async def test_a_hook_that_prints_more_than_is_kept_blocks_whatever_is_configured(scene: Scene, setting: str) -> None:
    flood = scene.file(
        "settings.json",
        '{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"head -c 11000000 /dev/zero"}]}]}}',
    )
    agent = scene.run(scene.config(f'on_failure = "{setting}"\n[[use]]\nfile = "{flood}"\ndialect = "claude"\n'))
    await agent.initialize()
    text = text_of(await agent.ask(call(1, "echo", text=SECRET)))
    assert "printed more than hookproxy keeps" in text
    assert "The tool was not run" in text
    assert scene.calls_received() == []


async def test_a_result_is_withheld_if_a_hook_that_may_replace_it_prints_more_than_is_kept(scene: Scene) -> None:
    agent = scene.run(scene.hooks(PostToolUse=[group("head -c 11000000 /dev/zero")]))
    await agent.initialize()
    text = str(await agent.ask(call(1, "echo", text=SECRET)))
    assert "its output is withheld" in text
    assert SECRET not in text


async def test_a_denial_counts_however_much_is_printed_beside_it(scene: Scene) -> None:
    agent = scene.run(scene.hooks(PreToolUse=[group("head -c 11000000 /dev/zero; echo no >&2; exit 2")]))
    await agent.initialize()
    assert "guard" not in (text := text_of(await agent.ask(call(1, "echo"))))
    assert text.endswith(": no")
