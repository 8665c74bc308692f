"""A person accepts or refuses on a console what a server has changed: a real feed and a real follower."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hookproxy.console.call_filter import CallFilter
from hookproxy.console.live_view import LiveView
from hookproxy.console.terminal_text import approval as terminal_text
from hookproxy.lock import lock_file
from hookproxy.model.lock_settings import LockSettings
from hookproxy.model.settings import Settings
from tests.session.test_live_feed import Watched, watched
from tests.session.test_lock_guard import (
    EVIL,
    READ,
    SEND,
    SERVER,
    Json,
    Locked,
    changed,
    locked,
    page,
)
from tests.support.proxy_rig import DIRECT_LOOP, SESSION

pytestmark = pytest.mark.anyio

EVIL_SEND = changed(SEND, description=f"Sends a mail, {EVIL}")


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


@asynccontextmanager
async def asking(folder: Path) -> AsyncIterator[tuple[Watched, Locked]]:
    file = folder / "hookproxy.lock"
    file.write_bytes(locked())
    settings = Settings(lock=LockSettings(str(file), locked(), "ask"), audit_file=str(folder / "audit.jsonl"))
    consoles = folder / "consoles"
    consoles.mkdir(mode=0o700)
    async with watched(consoles, settings=settings) as one:
        yield one, Locked(one, folder)


def listed(line: bytes) -> list[Json]:
    tools: list[Json] = json.loads(line)["result"]["tools"]
    return tools


async def test_a_person_sees_both_texts_and_accepts_one_and_refuses_the_other(tmp_path: Path) -> None:
    async with asking(tmp_path) as (one, session):
        new = changed(READ, name="run")
        reordered = dict(reversed(EVIL_SEND.items()))
        assert listed(await session.ask("tools/list", page("tools", READ, reordered, new))) == [READ]
        approvals = one.console.state.approvals
        await one.until(lambda: len(approvals) == 2)
        asked = {waiting.approval.tool: waiting for waiting in approvals.values()}
        question = asked["tool send"].approval
        assert json.loads(bytes(question.recorded)) == SEND
        assert json.loads(bytes(question.now)) == EVIL_SEND
        assert [*json.loads(bytes(question.now))] == [*json.loads(bytes(question.recorded))], "in the same order"
        markup = "".join(text for _, text, _ in LiveView(one.console.state, CallFilter(), "token").change().asked)
        assert "Recorded in hookproxy.lock" in markup
        assert EVIL in markup
        assert "Sends a mail." in markup
        assert EVIL in terminal_text(asked["tool send"], "Lean")
        assert (await one.say(question, "allow_session")).accepted is False
        assert (await one.say(question, "allow")).accepted
        await one.until(lambda: len(approvals) == 1)
        await session.passes("tools/call", name="send")
        assert (await one.say(asked["tool run"].approval, "deny")).accepted
        await one.until(lambda: not approvals)
        assert listed(await session.ask("tools/list", page("tools", READ, EVIL_SEND))) == [READ, EVIL_SEND]
        assert "isError" in (await session.refused("tools/call", name="run"))["result"]
        recorded = lock_file.read(str(tmp_path / "hookproxy.lock"))[SESSION.server]
        assert {name: json.loads(entry.text) for (_, name), entry in recorded.entries.items()}["send"] == EVIL_SEND
        notes = json.dumps(session.recorded)
        assert "tool send: accepted by" in notes
        assert "tool run: refused by" in notes


async def test_the_same_difference_is_asked_about_once(tmp_path: Path) -> None:
    async with asking(tmp_path) as (one, session):
        for _ in range(3):
            await session.ask("tools/list", page("tools", READ, EVIL_SEND))
        await one.approval()


async def test_what_was_refused_is_not_asked_about_again(tmp_path: Path) -> None:
    async with asking(tmp_path) as (one, session):
        await session.ask("tools/list", page("tools", READ, EVIL_SEND))
        await one.say(await one.approval(), "deny")
        await one.until(lambda: not one.console.state.approvals)
        await session.ask("tools/list", page("tools", READ, EVIL_SEND))
        other = changed(EVIL_SEND, description=f"{EVIL}!")
        await session.ask("tools/list", page("tools", READ, other))
        assert json.loads(bytes((await one.approval()).now)) == other


@pytest.mark.slow
async def test_a_server_that_says_something_else_each_time_does_not_tire_a_person_out(tmp_path: Path) -> None:
    async with asking(tmp_path) as (one, session):
        for number in range(22):
            for text in ("a", "b"):  # of two texts of one tool, one is asked about at a time
                await session.ask("tools/list", page("tools", READ, changed(SEND, description=f"{text}{number}")))
            if number < 20:
                question = await one.approval()
                assert json.loads(bytes(question.now))["description"] == f"a{number}"
                await one.say(question, "deny")
                await one.until(lambda: not one.console.state.approvals)
        assert not one.console.state.approvals
        told = "files: nobody is asked about it any more, because 20 of its changes were refused"
        assert session.reports.count(told) == 1


async def test_instructions_are_asked_about_and_pass_from_the_next_session_on(tmp_path: Path) -> None:
    async with asking(tmp_path) as (one, session):
        said = {**SERVER, "instructions": EVIL}
        assert "instructions" not in json.loads(await session.ask("initialize", said))["result"]
        question = await one.approval()
        assert (question.tool, bytes(question.recorded), bytes(question.now)) == (
            "instructions",
            b'"Be brief."',
            json.dumps(EVIL).encode(),
        )
        await one.say(question, "allow")
        await one.until(lambda: not one.console.state.approvals)
        assert json.loads(await session.ask("initialize", said))["result"] == said
