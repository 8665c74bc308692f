"""What a run of the proxy takes from whoever answers as the guard, and where it looks for one."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream
from msgspec.structs import replace

from hookproxy.config.digest import digest_of
from hookproxy.config.load import Loaded, load
from hookproxy.guard import place
from hookproxy.guard.link import GuardLink
from hookproxy.model.hooks import Event, EventContext, Session
from hookproxy.policy.shared_state import Approved
from hookproxy.trust.sources import ManagedSummary

pytestmark = pytest.mark.anyio

SESSION = Session("own", "files", "/", "/")
CALL = EventContext(Event.PRE_TOOL_USE, SESSION, tool="delete", arguments=b"{}")
REPORTED = {"session": "x", "cwd": "/", "project_dir": "/", "tool_use_id": "t", "state": {}, "decided": True}


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    (tmp_path / "hookproxy.toml").write_text("")
    return load(str(tmp_path / "hookproxy.toml"), [], None, {"HOME": str(tmp_path)}, str(tmp_path))


@pytest.fixture
def answer() -> dict[str, object]:
    return {"session": "x", "reported": REPORTED, "approved": [{"tool": "a"}, {"tool": "b", "managed": True}]}


@pytest.fixture
def delay() -> list[float]:
    """The seconds that each answer takes."""
    return [0.0]


@pytest.fixture
async def path(tmp_path: Path, answer: dict[str, object], delay: list[float]) -> AsyncIterator[str]:
    """Where somebody gives the same answer to everything."""

    async def serve(stream: SocketStream) -> None:
        async with stream:
            async for piece in stream:
                lines = piece.count(b"\n") - piece.count(b"hookproxy-guard")
                await anyio.sleep(sum(delay))
                await stream.send((json.dumps(answer).encode() + b"\n") * lines)

    async with (
        await anyio.create_unix_listener(tmp_path / "guard.sock") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, serve)
        yield str(tmp_path / "guard.sock")
        tasks.cancel_scope.cancel()


async def test_under_an_administrators_policy_no_decision_of_a_guard_counts(path: str, loaded: Loaded) -> None:
    managed = replace(loaded, managed=ManagedSummary((), {}))
    calls = [await GuardLink(path, SESSION, one).claim(CALL, None, "") for one in (loaded, managed)]
    assert [call and call.decided for call in calls] == [True, False]
    assert digest_of(managed) == ""
    assert digest_of(loaded) != ""


@pytest.mark.slow  # it waits for the answer
async def test_a_guard_that_answers_after_seconds_on_a_busy_machine_is_still_believed(
    path: str, loaded: Loaded, delay: list[float]
) -> None:
    link = GuardLink(path, SESSION, loaded)
    await link.join()
    delay[:] = [2.5]
    call = await link.claim(CALL, None, "")
    assert call is not None
    assert call.decided


async def test_what_the_administrator_requires_is_not_allowed_by_a_guard(path: str, loaded: Loaded) -> None:
    approvals = GuardLink(path, SESSION, loaded).shared.approvals
    assert approvals is not None
    await approvals.allow(Approved("c", managed=True))
    assert set(await approvals.approved()) == {Approved("a"), Approved("c", managed=True)}


@pytest.mark.parametrize("wrong", [[], {"session": 7}, {"reported": REPORTED}])
async def test_an_answer_that_cannot_be_read_is_no_answer(
    path: str, loaded: Loaded, answer: dict[str, object], wrong: object
) -> None:
    answer.clear()
    answer.update(wrong if isinstance(wrong, dict) else {"session": wrong})
    assert await GuardLink(path, SESSION, loaded).claim(CALL, None, "") is None


async def test_nobody_listens(tmp_path: Path, loaded: Loaded) -> None:
    assert await GuardLink(str(tmp_path / "guard.sock"), SESSION, loaded).claim(CALL, None, "") is None


def test_the_environment_of_an_agent_does_not_say_where_the_guard_is_under_an_administrators_policy() -> None:
    home = pwd.getpwuid(os.geteuid()).pw_dir
    environ = {"HOME": "/evil", "XDG_STATE_HOME": "/evil/state", "XDG_RUNTIME_DIR": "/evil/run"}
    own = f"{home}/.local/state/hookproxy/guard/guard.sock"
    assert place.socket_for_run(environ, managed=True) == own
    assert place.socket_for_run(environ, managed=False) == "/evil/state/hookproxy/guard/guard.sock"


def test_two_configurations_are_the_same_if_their_files_and_options_are(tmp_path: Path) -> None:
    file, environ = tmp_path / "hookproxy.toml", {"HOME": str(tmp_path)}
    digests = []
    for text in ("", "", '[permissions]\ndeny = ["x"]\n'):
        file.write_text(text)
        digests.append(digest_of(load(str(file), [], None, environ, str(tmp_path))))
    digests.append(digest_of(load(str(file), [], str(tmp_path / "audit.jsonl"), environ, str(tmp_path))))
    digests.append(digest_of(load(str(file), [], None, environ, str(tmp_path), str(tmp_path))))
    assert digests[0] == digests[1]
    assert len(set(digests)) == 4
