"""The typed input and the output functions for Python hooks, read back by the dialect of our own hooks."""

from __future__ import annotations

import msgspec
import pytest

from hookproxy.dialects.own import OWN, own_hook
from hookproxy.hooks.api import HookInput, HookOutput, allow, ask, comment, deny, rewrite
from hookproxy.model.hooks import Ended, Event, EventContext, HookResult, Outcome, Permission, Session

SPEC = own_hook({"type": "python", "call": "a:b"}, Event.PRE_TOOL_USE, "f: k", "/")


def hook_input(event: Event) -> HookInput:
    outcome = Outcome(content=b'[{"type":"text","text":"x"}]', has_result=True)
    context = EventContext(
        event, Session("s", "files", "/", "/"), "read", "read", "id", b'{"path":"/etc"}', outcome=outcome
    )
    return msgspec.json.decode(OWN.write_input(SPEC, context).stdin, type=HookInput)


@pytest.mark.parametrize("event", OWN.events.values())
def test_every_event_can_be_read_typed(event: Event) -> None:
    read = hook_input(event)
    assert read.hook_event_name == event
    if event is Event.POST_TOOL_USE:
        assert (read.tool_input, read.tool_response) == ({"path": "/etc"}, [{"type": "text", "text": "x"}])


@pytest.mark.parametrize(
    ("output", "permission", "reason", "arguments", "feedback"),
    [
        (deny("no"), Permission.DENY, "no", None, ()),
        (ask("sure?"), Permission.ASK, "sure?", None, ()),
        (allow(), Permission.ALLOW, "", None, ()),
        (rewrite({"a": 1}), None, "", b'{"a":1}', ()),
        (comment(hook_input(Event.PRE_TOOL_USE), "hm"), None, "", None, ("hm",)),
    ],
)
def test_each_function_gives_the_verdict_that_it_names(
    output: HookOutput, permission: Permission | None, reason: str, arguments: bytes | None, feedback: tuple[str, ...]
) -> None:
    verdict = OWN.read_output(SPEC, HookResult(Ended.EXITED, 0, msgspec.json.encode(output)))
    assert (verdict.permission, verdict.reason, verdict.arguments, verdict.feedback, verdict.failure) == (
        permission, reason, arguments, feedback, "",
    )  # fmt: skip
