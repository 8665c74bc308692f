"""Reads the output of systems whose hooks decide by their exit status, and say why on standard error.

It never raises: output that such a system does not read is not a decision, and people get a message about it (law 3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from ...model.hooks import NO_VERDICT, Ended, Event, HookResult, HookSpec, Permission, Verdict
from . import output as shared_output
from .events import AFTER_CALL, BEFORE_CALL
from .output import BLOCKS

JSON_IGNORED: Final = f"printed a decision as JSON, which is not read: to deny, a hook exits with status {BLOCKS}"
"""The message to people on a hook that was written for a system with JSON: here it would seem to work."""

DECISION_IGNORED: Final = "printed a decision as JSON that does not count with this exit status, event or other text"
"""The same for a system that reads JSON, but not here."""

_DECISIONS: Final = ('"decision"', '"permissionDecision"', '"permission"', '"cancel"')
"""The members with which hooks of other systems deny."""


class ExitStatusRules(Struct, frozen=True):
    """What exit statuses and output mean to one system."""

    denies: Callable[[int], bool] = lambda code: code == BLOCKS
    """The exit statuses with which a hook before a call denies it."""
    stops: Callable[[int], bool] = lambda _code: False
    """The exit statuses that deny and stop other calls, too."""
    contexts: tuple[Event, ...] = ()
    """The events on which the standard output of a hook that succeeds is for the model."""
    comments: bool = False
    """The model reads the standard error of a hook after a call that exits with status BLOCKS."""
    shows: Callable[[HookSpec], bool] = lambda _spec: False
    """Whether people see what a hook prints."""
    read_json: Callable[[HookSpec, HookResult], Verdict | None] | None = None
    """The verdict of what a hook prints if its exit status does not deny; None: its exit status counts. Never raises.
    If the system reads no JSON, there is no such function."""


def read_output(rules: ExitStatusRules, spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run."""
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result))
    if not (result.code or result.stdout or result.stderr):
        return NO_VERDICT
    stdout, stderr = shared_output.decode(result.stdout), shared_output.decode(result.stderr)
    if spec.event in BEFORE_CALL and rules.denies(result.code):
        reason = shared_output.truncate(stderr or stdout)
        return Verdict(permission=Permission.DENY, reason=reason, stop=rules.stops(result.code))
    read = rules.read_json(spec, result) if rules.read_json else None
    if read is not None:
        return read
    messages = shared_output.nonempty(stdout, stderr) if rules.shows(spec) else ()
    if _is_decision(stdout):
        messages += (JSON_IGNORED if rules.read_json is None else DECISION_IGNORED,)
    if result.code == BLOCKS and rules.comments and spec.event in AFTER_CALL:
        return Verdict(feedback=shared_output.nonempty(stderr), messages=messages)
    if result.code:
        return Verdict(failure=shared_output.exit_failure(result.code, stderr), messages=messages)
    feedback = shared_output.nonempty(stdout) if spec.event in rules.contexts else ()
    return Verdict(feedback=feedback, messages=messages)


def _is_decision(stdout: str) -> bool:
    return "{" in stdout and any(word in stdout for word in _DECISIONS)
