"""`hookproxy top` in a terminal of 80 columns, driven by Textual's pilot; its runs are real proxies with real feeds."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, Log, Static, TextArea

from hookproxy.console import terminal_text
from hookproxy.console.call_filter import CallFilter
from hookproxy.console.top import ApprovalScreen, EditScreen, Top
from hookproxy.dialects.dialect import Group
from hookproxy.model.settings import Settings
from tests.session.test_live_feed import ASKS, FALLBACK, PRE, Watched, answer, call, handshake, watched
from tests.support.proxy_rig import DIRECT_LOOP, TIMEOUT, stub, stub_group

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

HIDDEN = "\u202e\x1b[31m\u3164"
"""A character that reorders others, one that a terminal interprets, and one that no font shows."""


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP  # the proxies need it


@asynccontextmanager
async def shown(
    folder: Path, *groups: Group, settings: Settings | None = None
) -> AsyncIterator[tuple[Watched, Pilot[None]]]:
    """A run with a top that follows it."""
    async with watched(folder, *groups, settings=settings, follows=False) as one:
        top = Top(one.folder, CallFilter(), "a test")
        one.console = top.follower
        async with top.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: bool(top.state.runs))
            yield one, pilot


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    with anyio.fail_after(TIMEOUT):
        while not condition():
            await pilot.pause(0.01)


def table(pilot: Pilot[None]) -> DataTable[object]:
    return pilot.app.screen_stack[0].query_one(DataTable)


def cells(pilot: Pilot[None]) -> list[list[str]]:
    return [list(map(str, table(pilot).get_row_at(row))) for row in range(table(pilot).row_count)]


def text(pilot: Pilot[None], selector: str) -> str:
    return str(pilot.app.screen.query_one(selector, Static).render())


def log(pilot: Pilot[None]) -> str:
    return "\n".join(pilot.app.screen.query_one(Log).lines)


async def one_call(one: Watched, number: int, tool: str = "write", **arguments: object) -> None:
    await one.agent.send(call(number, tool, **arguments))
    await one.server.line()
    await one.server.send(answer(number))
    await one.agent.line()


async def test_a_call_is_listed_and_opened(tmp_path: Path) -> None:
    hook = stub(PRE, """printf '%s' '{"arguments": {"b": 2}}'""")
    async with shown(tmp_path, stub_group(hook)) as (one, pilot):
        await handshake(one)
        await one_call(one, 1, a=HIDDEN)
        await until(pilot, lambda: [row[1] for row in cells(pilot)] == ["allowed, rewritten"])
        (row,) = cells(pilot)
        assert (row[2], row[3]) == ("files", "write")
        await until(pilot, lambda: "1 ended, 0 refused, 1 rewritten" in text(pilot, "#counts"))
        await pilot.press("enter")
        await until(pilot, lambda: "as they were forwarded" in log(pilot))
        page = log(pilot)
        assert "PreToolUse hook printf" in page
        assert '"b": 2' in page
        assert page.replace("\n", "").isprintable()
        assert "\u3164" not in page
        await pilot.press("slash", "w", "p", "escape")  # keys of the list
        assert pilot.app.screen is pilot.app.screen_stack[0]


async def test_a_call_that_waits_in_a_hook_says_in_which(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    async with shown(tmp_path, stub_group(stub(PRE, f"cat {fifo}"))) as (one, pilot):
        await handshake(one)
        await one.agent.send(call(1))
        await until(pilot, lambda: any("stub.json: PreToolUse since" in row[5] for row in cells(pilot)))
        await pilot.press("enter")
        await until(pilot, lambda: "PreToolUse hook stub.json" in log(pilot))
        with fifo.open("w"):
            pass
        await one.server.line()
        await until(pilot, lambda: "at the server" in log(pilot))
        await one.server.send(answer(1))
        await one.agent.line()
        await until(pilot, lambda: "decision   allow" in log(pilot))


@pytest.mark.parametrize(("key", "asked"), [("a", 2), ("s", 1)])
async def test_an_approval_is_allowed_by_a_key(tmp_path: Path, key: str, asked: int) -> None:
    async with shown(tmp_path, stub_group(ASKS), settings=FALLBACK) as (one, pilot):
        await handshake(one)
        await one.agent.send(call(1, path=HIDDEN, long="x" * 1000))
        await until(pilot, lambda: "1 approval waiting: press w" in text(pilot, "#counts"))
        await pilot.press(key)  # before the approval is open, it means nothing
        await pilot.press("w")
        await until(pilot, lambda: "May write of files run?" in log(pilot))
        page = log(pilot).replace("\n", "")
        assert "sure?" in page
        assert "x" * 1000 in page
        assert r"\u202e" in page
        assert r"\u3164" in page
        assert page.isprintable()
        await pilot.press(key)
        assert await one.server.line() == call(1, path=HIDDEN, long="x" * 1000)
        await one.server.send(answer(1))
        await one.agent.line()
        await until(pilot, lambda: "approved" in cells(pilot)[0][1])
        assert one.console.state.ended[-1].record.answered.endswith("at a test")
        await one.agent.send(call(2, path="a"))
        if asked == 1:
            await one.server.line()
        assert one.feed.counts.asked == 1 or asked == 2


async def test_the_arguments_are_changed_before_the_call_is_allowed(tmp_path: Path) -> None:
    async with shown(tmp_path, stub_group(ASKS), settings=FALLBACK) as (one, pilot):
        await handshake(one)
        await one.agent.send(call(1, path="a"))
        await until(pilot, lambda: "1 approval waiting: press w" in text(pilot, "#counts"))
        await pilot.press("w", "e")
        await until(pilot, lambda: isinstance(pilot.app.screen, EditScreen))
        field = pilot.app.screen.query_one(TextArea)
        assert json.loads(field.text) == {"path": "a"}
        field.text = "[1]"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "they are not a JSON object" in text(pilot, "#taken"))
        field.text = '{"path": "b"}'
        await pilot.press("a", "ctrl+s")  # a key of the approval is a letter here
        await until(pilot, lambda: "These arguments cannot be used" in text(pilot, "#taken"))
        field.text = '{"path": "b"}'
        await pilot.press("ctrl+s")
        assert json.loads(await one.server.line())["params"]["arguments"] == {"path": "b"}
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)


async def test_an_approval_is_denied_with_a_reason(tmp_path: Path) -> None:
    async with shown(tmp_path, stub_group(ASKS), settings=FALLBACK) as (one, pilot):
        await handshake(one)
        await one.agent.send(call(1))
        await until(pilot, lambda: any(row[1] == "waits for a person" for row in cells(pilot)))
        await pilot.press("enter")  # the page of a call that waits is its approval
        await until(pilot, lambda: isinstance(pilot.app.screen, ApprovalScreen))
        await pilot.press("d", *"salt", "enter")
        assert (await one.refusal()).endswith("The user says: salt")


async def test_an_approval_that_another_console_has_answered_says_so(tmp_path: Path) -> None:
    async with shown(tmp_path, stub_group(ASKS), settings=FALLBACK) as (one, pilot):
        await handshake(one)
        await one.agent.send(call(1))
        await until(pilot, lambda: bool(one.console.state.approvals))
        await pilot.press("w")
        approval = await one.approval()
        assert (await one.console.answer("run", approval.id, "deny", "", "the other")).accepted
        await until(pilot, lambda: "no longer waits for approval: deny by" in text(pilot, "#taken"))
        await pilot.press("a")
        assert "did not allow it" in await one.refusal()


async def test_the_filter_shows_what_it_names_and_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    async with shown(tmp_path, stub_group(stub(PRE))) as (one, pilot):
        await handshake(one)
        await one_call(one, 1, "read")
        await one_call(one, 2, "write")
        await until(pilot, lambda: [row[3] for row in cells(pilot)] == ["write", "read"])
        await pilot.press("slash", *"tool:read", "enter")
        await until(pilot, lambda: [row[3] for row in cells(pilot)] == ["read"])
        await pilot.press("escape")
        await until(pilot, lambda: table(pilot).row_count == 2)
        await pilot.press("slash")
        pilot.app.screen.query_one("#filter", Input).value = "decision:maybe"
        await pilot.press("enter")
        await until(pilot, lambda: [note.severity for note in pilot.app._notifications] == ["error"])
        assert table(pilot).row_count == 2


async def test_a_pause_keeps_the_list_and_the_sums_go_on(tmp_path: Path) -> None:
    async with shown(tmp_path, stub_group(stub(PRE))) as (one, pilot):
        await handshake(one)
        await pilot.press("p")
        await one_call(one, 1)
        await until(pilot, lambda: "1 ended" in text(pilot, "#counts"))
        assert "(paused)" in text(pilot, "#counts")
        assert table(pilot).row_count == 0
        await pilot.press("p")
        await until(pilot, lambda: table(pilot).row_count == 1)


def test_a_filter_is_read_from_words() -> None:
    found = terminal_text.read_filter("server:git decision:refused push to x:y")
    assert found == CallFilter(server="git", decision="refused", text="push to x:y")
    with pytest.raises(ValueError, match="decision:maybe is not one of allowed, refused"):
        terminal_text.read_filter("decision:maybe")


async def test_a_timer_after_the_end_finds_nothing_and_does_nothing(tmp_path: Path) -> None:
    async with shown(tmp_path, stub_group(stub(PRE))) as (_, pilot):
        top = pilot.app
        assert isinstance(top, Top)
        await top.query("#counts").remove()
        top.draw()
        top._report("too late")
