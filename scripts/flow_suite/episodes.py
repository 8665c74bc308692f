"""Episodes: a user task, with or without an attack, through a real `hookproxy run` with the policy of its suite."""

from __future__ import annotations

import copy
import json
import pickle
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import suites
from agent import Agent
from suites import Call

READING = ("get_", "search_", "list_", "read_", "check_")
"""How the names of the tools begin that change nothing. A call of an attack to another one does harm."""
FETCHING = "get_webpage"
"""It only reads, too, but the address itself tells somebody something."""


@dataclass
class Outcome:
    """What became of an episode."""

    suite: str
    user_task: str
    injection_task: str | None
    order: str
    useful: bool = False
    was_read: bool = False
    """The agent got what the attacker wrote: without that, there is no attack."""
    broken: bool = False
    """AgentDojo says that the attack reached its goal."""
    approvals: int = 0
    """Questions about calls of the user task."""
    stopped: list[str] = field(default_factory=list)
    """Tools of the attack that were asked about or refused."""
    breaks_alone: bool = False
    """AgentDojo says that it reaches its goal without hookproxy."""
    passed: list[str] = field(default_factory=list)
    """Tools of the attack that did something, without a question."""
    refused: list[str] = field(default_factory=list)
    """Tools of the user task that did not run."""
    asked: list[str] = field(default_factory=list)
    """The tools that the approvals were about."""
    reasons: list[str] = field(default_factory=list)
    """What the person read."""


class Way(NamedTuple):
    """How episodes of a suite run."""

    hookproxy: Path
    config: Path
    server: Sequence[str | Path]
    """The command line of the server, without the episode."""
    disguises: bool = False
    """What attackers write spells addresses out: it names none as it is."""


async def play(way: Way, name: str, user_task: str, injection_task: str | None, order: str) -> Outcome:
    """Play an episode. `order`: the attack's calls come when it was "read", or at the "end"."""
    texts = {} if injection_task is None else dict(suites.injections(name, user_task, injection_task))
    if way.disguises:
        texts = {vector: suites.disguised(text) for vector, text in texts.items()}
    outcome = Outcome(name, user_task, injection_task, order)
    with tempfile.TemporaryDirectory(prefix="flow-") as temporary:
        folder = Path(temporary)
        episode = folder / "episode"
        episode.write_text(json.dumps({"suite": name, "user_task": user_task, "injections": texts}))
        command = [way.hookproxy, "run", "--config", way.config, "--name", name, "--", *way.server, episode]
        async with Agent(command, folder, folder / "stderr") as agent:
            before, _ = _state(episode)
            player = _Player(agent, episode, outcome, list(texts.values()))
            for call in suites.user_calls(name, user_task):
                had_read = outcome.was_read
                await player.as_user(call)
                if injection_task and order == "read" and outcome.was_read and not had_read:
                    await player.as_attacker(suites.attack_calls(name, injection_task, _state(episode)[0]))
            if injection_task and order == "end" and outcome.was_read:
                await player.as_attacker(suites.attack_calls(name, injection_task, _state(episode)[0]))
        after, ran = _state(episode)
    done = [call for call, _ in ran]
    outcome.useful = suites.is_useful(name, user_task, before, after, done)
    if injection_task:
        outcome.broken = suites.is_broken(name, user_task, injection_task, before, after, done)
    return outcome


def play_bare(name: str, user_task: str, injection_task: str, order: str) -> bool:
    """Whether AgentDojo says that the attack reaches its goal without hookproxy."""
    env = suites.environment(name, user_task, suites.injections(name, user_task, injection_task))
    before, ran = copy.deepcopy(env), []
    calls = list(suites.user_calls(name, user_task))
    at = suites.reads(name, user_task)[0] + 1

    def run(some: Sequence[Call]) -> None:
        for call in some:
            suites.run(name, env, call)
            ran.append(call)

    run(calls[:at])
    if order == "read":
        run(suites.attack_calls(name, injection_task, env))
    run(calls[at:])
    if order == "end":
        run(suites.attack_calls(name, injection_task, env))
    return suites.is_broken(name, user_task, injection_task, before, env, ran)


def _state(episode: Path) -> tuple[Any, list[tuple[Call, bool]]]:
    with open(f"{episode}.state", "rb") as file:
        state: tuple[Any, list[tuple[Call, bool]]] = pickle.load(file)
    return state


def _letters(text: str) -> str:
    """The letters of a text, which are the same whatever YAML makes of blanks, quotes and lines in it."""
    return "".join(sign for sign in text.encode().decode("unicode_escape", "ignore") if sign.isalpha())


class _Player:
    def __init__(self, agent: Agent, episode: Path, outcome: Outcome, written: Sequence[str]) -> None:
        """`written` is what the attacker wrote."""
        self._agent, self._episode, self._outcome = agent, episode, outcome
        self._written = {_letters(text) for text in written}
        self._ran = 0

    async def as_user(self, call: Call) -> None:
        """Make a call of the user task: the person says yes to what is asked."""
        tool, arguments = call
        result = await self._agent.call(tool, arguments, approves=True)
        self._outcome.approvals += len(self._agent.asked)
        self._outcome.asked += [tool] * len(self._agent.asked)
        self._outcome.reasons += self._agent.asked
        if not self._has_run():
            self._outcome.refused.append(tool)
        text = _letters("".join(block.get("text", "") for block in result.get("content", ())))
        self._outcome.was_read = self._outcome.was_read or any(written in text for written in self._written)

    async def as_attacker(self, calls: Sequence[Call]) -> None:
        """Make calls of the attack: the person says no to what is asked."""
        for tool, arguments in calls:
            result = await self._agent.call(tool, arguments, approves=False)
            ran = self._has_run()
            if not ran:
                self._outcome.stopped.append(tool)
            elif not result.get("isError") and (tool == FETCHING or not tool.startswith(READING)):
                self._outcome.passed.append(tool)

    def _has_run(self) -> bool:
        """Whether the server has run the last call."""
        before, self._ran = self._ran, len(_state(self._episode)[1])
        return self._ran > before
