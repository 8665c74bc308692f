"""Recorded calls on changed hooks: which decisions differ, and which lines cannot be replayed."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from hookproxy.audit import records
from hookproxy.config.load import Loaded
from hookproxy.dialects.dialect import Group
from hookproxy.model.hooks import Event
from hookproxy.model.limits import Limit, Per
from hookproxy.model.settings import OnAsk, OnFailure, Settings
from hookproxy.trial.replay import (
    Difference,
    Outcome,
    Replay,
    UnreadableLine,
    outcomes_differ,
    recorded_outcome,
    same_for_all,
)
from tests.support.proxy_rig import DIRECT_LOOP, group, hook, stub, stub_group

pytestmark = pytest.mark.anyio

PRE, POST, REQUEST = Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.PERMISSION_REQUEST
CALL: Final[dict[str, Any]] = {
    "v": 1,
    "time": "2026-11-21T08:00:00.000+00:00",
    "session": "s",
    "server": "files",
    "tool": "write",
    "id": 7,
    "arguments": {"a": 1},
    "decision": "allow",
    "result": "ok",
}
ASKS, DENIES = stub(PRE, permission="ask", reason="sure?"), stub(PRE, permission="deny", reason="no")


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def entry(number: int, lines: dict[str, Any] | bytes) -> records.Entry:
    raw = lines if isinstance(lines, bytes) else json.dumps(lines).encode()
    return records.entry(records.Line(number, raw))


async def replayed(
    *lines: dict[str, Any] | bytes, groups: tuple[Group, ...] = (), settings: Settings | None = None
) -> tuple[list[Difference | UnreadableLine], Replay]:
    loaded = Loaded(settings or Settings(), groups, ())
    async with Replay(same_for_all(loaded, os.environ, "/")) as replay:
        found = [one async for one in replay.over(entry(number, one) for number, one in enumerate(lines, 1))]
    return found, replay


async def after(recorded: str, *groups: Group, settings: Settings | None = None, **members: object) -> str:
    """The decision that a call with this recorded decision gets now; empty: the same."""
    found, _ = await replayed(CALL | {"decision": recorded} | members, groups=groups, settings=settings)
    return found[0].after.decision if found and isinstance(found[0], Difference) else ""


async def test_the_same_decision_is_no_difference() -> None:
    found, replay = await replayed(CALL, groups=(group(hook("exit 0")),))
    assert (found, replay.tally.replayed, replay.tally.differing) == ([], 1, 0)


async def test_a_call_that_would_now_be_refused_is_a_difference_with_hook_and_reason() -> None:
    found, replay = await replayed(CALL, groups=(stub_group(DENIES),))
    (one,) = found
    assert isinstance(one, Difference)
    assert one.before == Outcome("allow", arguments=b'{"a": 1}')
    assert one.after == Outcome("deny", "the PreToolUse hook stub", "no")
    assert (one.record.line, replay.tally.differing) == (1, 1)


async def test_a_call_that_was_refused_names_the_refusing_hook() -> None:
    hooks = [{"source": "old.json: x", "event": "PreToolUse", "verdict": "deny", "reason": "because"}]
    found, _ = await replayed(CALL | {"decision": "deny", "hooks": hooks})
    (one,) = found
    assert isinstance(one, Difference)
    assert (one.before.by, one.before.reason) == ("the PreToolUse hook old.json: x", "because")
    assert (one.after.decision, one.after.arguments) == ("allow", b'{"a": 1}')


async def test_asking_a_person_is_one_decision_whatever_the_answer() -> None:
    asks = stub_group(ASKS)
    for recorded in ("asked", "asked-allow", "asked-deny"):
        assert await after(recorded, asks) == ""
        assert await after(recorded) == "allow"
        assert await after(recorded, stub_group(DENIES)) == "deny"
    assert await after("allow", asks) == "asked"
    assert await after("deny", asks) == "asked"


async def test_an_answer_by_the_configuration_or_a_hook_is_a_separate_decision() -> None:
    asks, denies = stub_group(ASKS), Settings(on_ask=OnAsk.DENY)
    assert await after("asked-allow", asks, settings=denies) == "asked-deny"
    assert await after("asked-deny", asks, settings=denies) == ""
    assert await after("asked-deny", stub_group(ASKS, stub(REQUEST, permission="allow"))) == "asked-allow"


async def test_arguments_that_are_rewritten_differently_are_a_difference() -> None:
    rewriting = stub_group(stub(PRE, arguments={"a": 2, "b": 1.0}))
    assert await after("allow", rewriting) == "allow"
    assert await after("allow", rewriting, rewritten={"b": 1.0, "a": 2}) == ""
    assert await after("allow", rewriting, rewritten={"a": 2, "b": True}) == "allow"
    assert await after("allow", rewritten={"a": 2}) == "allow"
    found, _ = await replayed(CALL, groups=(rewriting,))
    assert isinstance(found[0], Difference)
    assert found[0].after.by == "the PreToolUse hook stub.json: PreToolUse"


def test_values_are_compared_by_content_and_numbers_by_spelling() -> None:
    def differing(before: bytes, now: bytes) -> bool:
        return outcomes_differ(Outcome("allow", arguments=before), Outcome("allow", arguments=now))

    assert not differing(b'{"a": "\\u0062", "c": [1]}', b'{"c":[1],"a":"b"}')
    for now in (b'{"a":1.0}', b'{"a":"1"}', b'{"a":true}', b'{"a":["1"]}', b"no JSON"):
        assert differing(b'{"a":1}', now), now


async def test_permission_rules_are_replayed_too() -> None:
    assert await after("allow", settings=Settings(deny=("wri*",))) == "deny"
    assert await after("allow", settings=Settings(ask=("write",))) == "asked"


async def test_post_hooks_and_background_hooks_are_not_run(tmp_path: Path) -> None:
    mark = f"touch {shlex.quote(str(tmp_path / 'ran'))}"
    hooks = [stub(event, mark) for event in (POST, Event.PERMISSION_DENIED, Event.SESSION_START)]
    await replayed(CALL, groups=(stub_group(*hooks, replace(stub(PRE, mark), background=True), DENIES),))
    assert os.listdir(tmp_path) == []


async def test_lines_that_cannot_be_replayed_are_counted_and_reported() -> None:
    digest = {name: value for name, value in CALL.items() if name != "arguments"} | {"arguments_sha256": "0" * 64}
    found, replay = await replayed(
        digest,
        CALL | {"decision": ""},
        {"v": 1, "note": "dropped something"},
        b"{",
        b"[]",
        b'{"v":1}',
        b"\xff",
        CALL | {"v": 2},
        CALL | {"arguments": [1]},
        json.dumps(CALL).replace('{"a": 1}', '{"a":1,"a":2}').encode(),
        CALL | {"tool": "a\0b"},
        CALL | {"decision": "perhaps"},
        groups=(group(hook("exit 0")),),
    )
    tally = replay.tally
    assert (tally.replayed, tally.digests, tally.undecided, tally.unread) == (0, 1, 2, 8)
    assert [one.line for one in found if isinstance(one, UnreadableLine)] == [4, 5, 6, 7, 8, 9, 10, 11]
    reported = {one.line: one.why for one in found if isinstance(one, UnreadableLine)}
    assert reported[8] == "it has format 2, and this hookproxy reads 1"
    assert "'a' appears twice" in reported[10]


@pytest.mark.parametrize("odd", [None, {"a": 1}, 1.5, True, "text", 10**30])
async def test_a_call_with_any_recorded_id_is_replayed(odd: object) -> None:
    _, replay = await replayed(CALL | {"id": odd}, groups=(group(hook("exit 0")),))
    assert replay.tally.replayed == 1


async def test_rate_limits_are_not_replayed() -> None:
    limits = (Limit("write", 1, Per.SESSION, "limits[0]"),)
    refused = CALL | {"decision": "deny", "by": "limits[0]", "reason": "no more than 1 call of write per session"}
    found, replay = await replayed(CALL, CALL, refused, settings=Settings(limits=limits))
    assert (found, replay.tally.replayed, replay.tally.limited) == ([], 2, 1)


async def test_a_hook_that_fails_is_counted() -> None:
    found, replay = await replayed(CALL, groups=(group(hook("exit 3")),), settings=Settings(on_failure=OnFailure.ALLOW))
    assert (found, replay.tally.failed_hooks) == ([], 1)


async def test_hooks_see_the_recorded_server_and_a_session_of_their_own(tmp_path: Path) -> None:
    note = f"cat >> {shlex.quote(str(tmp_path / 'documents'))}"
    calls = [CALL | {"session": "one"}, CALL | {"session": "two"}, CALL | {"session": "one"}, CALL | {"server": "git"}]
    await replayed(*calls, groups=(group(hook(note)),))
    documents = [json.loads(line) for line in (tmp_path / "documents").read_text().splitlines()]
    assert [one["mcp_server"]["name"] for one in documents] == ["files", "files", "files", "git"]
    first, second, third, fourth = (one["session_id"] for one in documents)
    assert first == third
    assert len({first, second, fourth, "one", "two"}) == 5


@pytest.mark.slow
async def test_many_sessions_are_replayed_with_few_of_them_in_memory(tmp_path: Path) -> None:
    calls = [CALL | {"session": str(number)} for number in range(40)]
    _, replay = await replayed(*calls, groups=(stub_group(stub(PRE, allows=["write"])),))
    assert replay.tally.replayed == 40
    assert len(replay._sessions._open) == 16


def test_a_refusal_after_a_failure_names_the_hook_that_failed() -> None:
    hooks = [
        {"source": "a", "event": "PreToolUse", "verdict": "none"},
        {"source": "b", "event": "PreToolUse", "verdict": "trouble", "reason": "exited with status 1"},
    ]
    record = entry(1, CALL | {"decision": "deny", "hooks": hooks})
    assert isinstance(record, records.CallRecord)
    assert recorded_outcome(record) == Outcome("deny", "the PreToolUse hook b", "exited with status 1")


async def test_calls_with_masked_or_missing_arguments_are_replayed_and_named() -> None:
    masked = CALL | {"call": "3f2a91-1", "arguments": {"password": "[masked: name]"}, "masked": ["name"]}
    found, replay = await replayed(masked, CALL, CALL | {"left_out": 7}, groups=(stub_group(DENIES),))
    assert [isinstance(one, Difference) and one.record.is_partial for one in found] == [True, False, True]
    assert (replay.tally.replayed, replay.tally.partial) == (3, 2)
    assert replay.tally.partial_calls == ["3f2a91-1", "line 3"]
