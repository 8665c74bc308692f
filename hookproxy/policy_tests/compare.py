"""Compares the outcome of a step with what is expected of it. Pure.

How it works: `came_of` puts the outcome of a trial into the words of cases (`Came`), and `differences` compares these
with what the step names; what it does not name may be anything. Differences are shown to people and uploaded by CI
systems: they are compared as they are, and shown with secrets masked, as records have them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from msgspec import Struct

from ..secrets.mask import Masking
from ..trial.replay import current_outcome, same_json
from ..trial.report import text_of
from ..trial.run import TrialResult
from .cases import Step, TextExpected

RUNS = frozenset({"allow", "asked-allow", "asked"})
_MISSING = "no text"


class Difference(Struct, frozen=True):
    """One thing that is not as it is expected, with secrets masked."""

    what: str
    expected: str
    actual: str


class Came(Struct, frozen=True):
    """The outcome of a step, in the words of cases."""

    decision: str
    """`allow`, `deny`, `ask`; of a call about which a person was asked who answered: `ask, then allow`."""
    by: str
    reason: str
    arguments: bytes
    """The arguments with which it runs, JSON; empty: it does not run."""
    reads: str
    response: bytes
    """The whole response, JSON; empty: none."""
    failures: tuple[str, ...]
    """How hooks failed."""
    was_asked: bool = False

    @property
    def decisions(self) -> frozenset[str]:
        """All words that are true of it."""
        return frozenset(self.decision.split(", then "))


def refused_at_the_door(why: str) -> Came:
    """The outcome if the person who calls may not use the server."""
    return Came("deny", "the gateway", why, b"", "", b"", ())


def came_of(trial: TrialResult, step: Step) -> Came:
    """The outcome of a trial."""
    outcome = current_outcome(trial, step.call.arguments)
    asked = bool(trial.approval_message) or trial.decision == "asked"
    final = "allow" if trial.decision in ("", "allow", "asked-allow") else "deny"
    decision = final if not asked else "ask" if trial.decision == "asked" else f"ask, then {final}"
    record = trial.record
    by, reason = outcome.by, outcome.reason
    if record is not None and final == "deny" and trial.decision != "asked":
        by, reason = by or record.by, reason or record.reason
    runs = [run for run in trial.observation.runs if run.hook_run is not None]
    failures = tuple(
        f"the {run.spec.event} hook {run.spec.label} {run.hook_run.verdict.failure}"
        for run in runs
        if run.hook_run is not None and run.hook_run.verdict.failure
    )
    reads = trial.approval_message if trial.decision == "asked" else text_of(trial.response)
    arguments = outcome.arguments if trial.decision != "asked" or step.expected.arguments is not None else b""
    unique = tuple(dict.fromkeys(failures))
    return Came(decision, by, trial.unreadable or reason, arguments, reads, trial.response, unique, asked)


def differences(came: Came, step: Step) -> Iterator[Difference]:
    """All that is not as expected."""
    return map(_masked, _differences(came, step))


def _masked(difference: Difference) -> Difference:
    """The difference without secrets; if nothing else differs, it says so."""
    masking = Masking()
    expected, actual = masking.text(difference.expected), masking.text(difference.actual)
    if (expected, actual) == (difference.expected, difference.actual):
        return difference
    note = ", but for what is masked here" if expected == actual else ""
    return Difference(difference.what, expected, f"the same{note}" if note else actual)


def _differences(came: Came, step: Step) -> Iterator[Difference]:
    expected = step.expected
    if expected.decision is not None and expected.decision not in came.decisions:
        by = f", by {came.by}" if came.by else ""
        reason = f": {came.reason}" if came.reason else ""
        yield Difference("decision", expected.decision, f"{came.decision}{by}{reason}")
    if expected.failure is not bool(came.failures):
        wanted = "a hook fails" if expected.failure else "no hook fails"
        yield Difference("failure", wanted, "; ".join(came.failures) or "no hook failed")
    if expected.arguments is not None:
        yield from _arguments_differences(expected.arguments, came.arguments)
    if expected.reason is not None:
        yield from _text_differences("reason", expected.reason, came.reason, "")
    if expected.reads is not None:
        if came.reads or came.response:
            yield from _text_differences("reads", expected.reads, came.reads, _all_texts(came.response))
        else:
            yield Difference("reads", _shown(expected.reads), "nothing: add result = …, which the server responds")


def _arguments_differences(expected: bytes, actual: bytes) -> Iterator[Difference]:
    if not actual or not same_json(expected, actual):
        shown = actual.decode(errors="replace") if actual else "none: it does not run"
        yield Difference("arguments", expected.decode(), shown)


def _text_differences(what: str, expected: TextExpected, actual: str, more: str) -> Iterator[Difference]:
    """`more` is what must lack the same."""
    if expected.whole is not None and expected.whole != actual:
        yield Difference(what, expected.whole, actual or _MISSING)
    for part in expected.contains:
        if part not in actual:
            yield Difference(what, f"contains {part!r}", actual or _MISSING)
    for part in expected.lacks:
        if part in actual or part in more:
            yield Difference(what, f"lacks {part!r}", actual if part in actual else more)


def _shown(expected: TextExpected) -> str:
    if expected.whole is not None:
        return expected.whole
    contains = [f"contains {part!r}" for part in expected.contains]
    return ", ".join((*contains, *(f"lacks {part!r}" for part in expected.lacks)))


def _all_texts(response: bytes) -> str:
    """Every text in a response, names of members too: what must be lacking may be in its structured part."""
    try:
        value = json.loads(response) if response else None
    except ValueError:
        return response.decode(errors="replace")
    return "\n".join(_texts(value))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
