"""Decides the same calls by two configurations, one after the other, for whoever is about to replace one by the other.

Hooks really run, those for results only where a result is known. Nothing is forwarded, and no person is asked.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from ..audit.records import CallRecord, Entry, joined
from ..config.load import Loaded
from ..model.hooks import Session
from ..protocol import calls
from ..runners.python import forget_modules
from .replay import Outcome, awaited_hooks, current_outcome, is_limited, outcomes_differ, without_limits
from .run import EVENTS_AFTER, EVENTS_BEFORE, Plan, TrialCall, TrialRunner

MOST_RECORDED: Final = 2000
"""The calls of a record that are compared, the last ones: with a hook of 10 ms for each, twice, that is 40 seconds."""


class Question(Struct, frozen=True):
    """A call about which both are asked."""

    name: str
    """For people: what it is, and where it comes from."""
    server: str
    call: TrialCall


class Answer(Struct, frozen=True):
    """What one configuration makes of a call."""

    outcome: Outcome
    response: bytes = b""
    """What the agent gets; empty: no result is known."""


class Changed(Struct, frozen=True):
    """A call of which both make something else."""

    question: Question
    before: Answer
    after: Answer


async def compare(
    before: Loaded,
    after: Loaded,
    questions: Sequence[Question],
    environ: Mapping[str, str],
    cwd: str,
) -> list[Changed]:
    """The calls of which both make something else. Raises UserError if hooks cannot run.

    The modules of one are forgotten before the other is asked: both may have modules of the same names.
    """
    old = await _answers(before, questions, environ, cwd)
    _forget(before)
    new = await _answers(after, questions, environ, cwd)
    _forget(after)
    return [
        Changed(question, one, other)
        for question, one, other in zip(questions, old, new, strict=True)
        if outcomes_differ(one.outcome, other.outcome) or one.response != other.response
    ]


def _forget(loaded: Loaded) -> None:
    for folder in {spec.cwd for group in loaded.groups for spec in group.hooks if spec.type == "python"}:
        forget_modules(folder)


async def _answers(loaded: Loaded, questions: Iterable[Question], environ: Mapping[str, str], cwd: str) -> list[Answer]:
    groups = tuple(map(awaited_hooks, loaded.groups))
    plan = Plan(EVENTS_BEFORE | EVENTS_AFTER, without_limits(loaded.settings))
    runners: dict[str, TrialRunner] = {}
    answers = []
    try:
        for question in questions:
            if question.server not in runners:
                project = environ.get("CLAUDE_PROJECT_DIR") or cwd
                session = Session(str(uuid.uuid4()), question.server, cwd, project).in_project(loaded.project)
                runners[question.server] = TrialRunner(groups, plan, session, environ, loaded.trust)
            answers.append(await _answer(runners[question.server], question.call))
    finally:
        for runner in runners.values():
            await runner.hooks.runners.aclose()
    return answers


async def _answer(runner: TrialRunner, call: TrialCall) -> Answer:
    trial = await runner.call(call)
    if trial.unreadable:
        return Answer(Outcome("deny", "", trial.unreadable.rstrip(".")))
    return Answer(current_outcome(trial, call.arguments), trial.response if call.result is not None else b"")


def recorded(entries: Iterable[Entry], named: str) -> list[Question]:
    """The last calls of an audit file, each of them once; `named` is the file for people."""
    found: dict[tuple[str, str, bytes], Question] = {}
    for record in _with_arguments(joined(entries)):
        raw_id = calls.response_id({"id": record.id})
        arguments = bytes(record.arguments)
        call = TrialCall(record.tool, arguments, id=b"1" if raw_id == b"null" else raw_id)
        key = record.server, record.tool, arguments
        found.pop(key, None)
        found[key] = Question(f"{named}:{record.line}", record.server, call)
        if len(found) > MOST_RECORDED:
            del found[next(iter(found))]
    return list(found.values())


def _with_arguments(entries: Iterable[Entry | CallRecord]) -> Iterator[CallRecord]:
    for entry in entries:
        if isinstance(entry, CallRecord) and entry.arguments and not is_limited(entry):
            yield entry
