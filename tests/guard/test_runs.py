"""What a run of the proxy may ask of the guard, and what it cannot do whatever it says."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from hookproxy import __version__
from hookproxy.config.load import Loaded, load
from hookproxy.guard.agent_process import RunProcess
from hookproxy.guard.agent_sessions import AgentSessions
from hookproxy.guard.judge import Judge
from hookproxy.guard.runs import NotARun, RunPeer, RunPeers
from hookproxy.policy.shared_state import Approved
from hookproxy.processes.ancestry import Process

pytestmark = pytest.mark.anyio

AGENT, SHELL, SERVER, RUN = Process(10, 1), Process(5, 0), Process(20, 3), Process(15, 2)


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    (tmp_path / "hookproxy.toml").write_text("")
    return load(str(tmp_path / "hookproxy.toml"), [], None, {"HOME": str(tmp_path)}, str(tmp_path))


@pytest.fixture
async def judge(loaded: Loaded) -> AsyncIterator[Judge]:
    async with anyio.create_task_group() as tasks:
        judge = Judge(loaded, tasks, print, digest="same")
        yield judge
        await judge.aclose()
        tasks.cancel_scope.cancel()


@pytest.fixture
async def sessions(judge: Judge) -> AgentSessions:
    return judge.sessions


def ask(peer: RunPeer, kind: str, **members: object) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(peer.respond(json.dumps({"type": kind, **members}).encode()))
    return answer


def peer_of(judge: Judge, *above: Process, itself: Process = RUN) -> RunPeer:
    return RunPeer(RunProcess(itself, above, above), lambda: judge, RunPeers())


def joined(judge: Judge, *above: Process, server: str = "files", own: str = "own") -> RunPeer:
    peer = peer_of(judge, *above)
    ask(peer, "Join", version=__version__, server=server, session=own)
    return peer


def session_of(peer: RunPeer) -> str:
    return str(ask(peer, "Approvals")["session"])


async def test_a_run_belongs_to_the_nearest_process_that_has_told_of_a_session(
    judge: Judge, sessions: AgentSessions
) -> None:
    run = joined(judge, AGENT, SHELL)
    assert session_of(run) == "own"
    sessions.of_event("claude", "s", {}, SHELL)
    assert session_of(run) == "own", "the shell in which the agent was started may have started others"
    sessions.of_event("claude", "a", {}, AGENT)
    assert session_of(run) == "a"
    sessions.of_event("claude", "b", {}, AGENT)
    assert session_of(run) == "b", "the session that it has told of last"
    assert session_of(joined(judge, SERVER, AGENT)) == "b"


async def test_the_first_event_goes_on_with_the_session_of_the_runs(judge: Judge, sessions: AgentSessions) -> None:
    first, second = joined(judge, AGENT, own="one"), joined(judge, AGENT, own="two")
    assert session_of(first) == session_of(second) == "one"
    ask(first, "Allow", calls={"tool": "write"})
    session = sessions.of_event("claude", "a", {}, AGENT)
    assert session.approvals("files").all == [Approved("write")]
    assert session_of(second) == "a"


async def test_a_server_that_has_detached_itself_allows_nothing_in_the_sessions_of_agents(judge: Judge) -> None:
    init = Process(1, 0)  # it adopts orphans
    detached = joined(judge, init, own="detached")
    ask(detached, "Allow", calls={"tool": "write"})
    run = joined(judge, AGENT, SHELL, init)
    assert (session_of(run), ask(run, "Approvals").get("approved")) == ("own", None)


async def test_another_process_with_the_id_of_an_agent_is_not_that_agent(judge: Judge, sessions: AgentSessions) -> None:
    sessions.of_event("claude", "a", {}, AGENT)
    assert session_of(joined(judge, Process(AGENT.pid, 99))) == "own"


async def test_a_session_that_goes_on_in_another_process_is_the_same(judge: Judge, sessions: AgentSessions) -> None:
    session = sessions.of_event("claude", "a", {}, AGENT)
    assert sessions.of_event("claude", "a", {}, Process(11, 2)) is session
    assert sessions.of_event("codex", "a", {}, Process(11, 2)) is not session
    nameless = sessions.of_event("crush", "", {}, Process(11, 2))
    assert sessions.of_event("crush", "", {}, Process(11, 2)) is nameless
    assert sessions.of_event("crush", "", {}, Process(12, 2)) is not nameless, "its documents have no ids"


async def test_a_run_cannot_allow_what_the_administrator_requires_or_what_another_server_does(
    judge: Judge,
) -> None:
    run = joined(judge, AGENT)
    ask(run, "Allow", calls={"tool": "write", "managed": True})
    ask(run, "Allow", calls={"tool": "read"})
    assert ask(run, "Approvals")["approved"] == [{"tool": "read"}]
    assert "approved" not in ask(joined(judge, AGENT, server="mail"), "Approvals")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b'{"type":"Nonsense"}',
        b'{"type":"Allow","calls":{"tool":"x","unless":"rm"}}',
        b'{"type":"Allow","calls":7}',
        b'{"type":"Count","limits":[{"tool":"((","most":1,"per":"hour","by":"x"}],"keys":[""],"approved":[]}',
        b'{"type":"Limits","limits":[{"tool":"*","most":1,"per":"hour","by":"x"}],"keys":[]}',
        b'{"type":"Join","version":"0.0.0","server":"s","session":"s"}',
        b"[" * 100_000,
        b"\xff",
    ],
)
async def test_what_a_run_of_this_version_does_not_say_ends_the_connection(judge: Judge, line: bytes) -> None:
    peer = joined(judge, AGENT)
    with pytest.raises(NotARun):
        peer.respond(line)


async def test_nothing_is_answered_before_a_run_has_said_who_it_is(judge: Judge, sessions: AgentSessions) -> None:
    with pytest.raises(NotARun):
        peer_of(judge, AGENT).respond(b'{"type":"Approvals"}')


async def test_runs_of_one_session_share_what_they_have_hidden_and_others_do_not(judge: Judge) -> None:
    first, second = joined(judge, AGENT, server="a"), joined(judge, AGENT, server="b")
    stranger = joined(judge, Process(77, 7), server="b")
    ask(first, "KeepSecrets", values={"{{secret:x:00000000}}": "value"})
    ask(first, "KeepSecrets", values={"{{secret:x:00000000}}": "another"})
    assert ask(second, "SecretOf", placeholder="{{secret:x:00000000}}")["secret"] == "value"
    assert "secret" not in ask(stranger, "SecretOf", placeholder="{{secret:x:00000000}}")
    assert "secret" not in ask(second, "SecretOf", placeholder="{{secret:x:11111111}}")
    keys = {ask(peer, "SecretKey")["secret_key"] for peer in (first, second)}
    assert len(keys) == 1
    assert ask(stranger, "SecretKey")["secret_key"] not in keys


async def test_a_server_is_no_run_and_what_it_has_said_before_its_run_came_does_not_hold(judge: Judge) -> None:
    peers = RunPeers()
    server = RunPeer(RunProcess(SERVER, (RUN, AGENT), (AGENT,)), lambda: judge, peers)
    run = RunPeer(RunProcess(RUN, (AGENT,), (AGENT,)), lambda: judge, peers)
    hello = {"version": __version__, "server": "files", "session": "own"}
    ask(server, "Join", **hello)
    ask(server, "Allow", calls={"tool": "delete"})
    key = ask(server, "LabelKey")["label_key"]
    ask(server, "Clear", cleared={"readings": [1], "sink": "flow.sinks[0]", "tool": "send", "server": "mail"}, key=key)
    ask(run, "Join", **hello)
    assert "approved" not in ask(run, "Approvals")
    assert not ask(run, "KnownNow")["known"].get("cleared")
    with pytest.raises(NotARun):
        ask(server, "Allow", calls={"tool": "delete"})
    run.close()
    with pytest.raises(NotARun):
        ask(RunPeer(RunProcess(SERVER, (RUN, AGENT), (AGENT,)), lambda: judge, peers), "Approvals")
