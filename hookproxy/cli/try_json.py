"""What `hookproxy try --json` prints: one document.

A key is never taken away or given another meaning without another `v`; new ones may come.

    v          1
    status     the exit status
    decision   as in the audit: "allow", "deny", "asked-allow", "asked-deny"; "asked": a person would be; null: what was
               tried decides nothing
    by, reason who decided and why, in words; empty where nobody had anything to say
    failed     whether it is not allowed because a hook failed
    question   what the person would be asked; null
    tool, server, event   what was tried; event null for the whole call, as far as a result was given
    alias      what hooks call it: as (null: what the server does), arguments: by the hooks' name the server's; null
    arguments  before, after: as given, and as they would run; after null where the call is refused
    result     before, after: as given, and as the agent gets it, a refusal included; null where there is none
    hooks      one object for each run, in the order in which they began, then one for each hook that was not run:
      source, dialect, event, label, command, matcher, if, timeout, background
      absent     why it was not run; null
      stdin      the document that it got, exactly; null if it was not run, as the following
      variables  those that were set for it, over what it inherited
      hidden     names of variables that it did not inherit
      ended, exit, detail, ms, stdout, stderr, cut   how it ended, what it printed, and whether some of that is lost
      verdict    permission, reason, arguments, feedback, replacement, messages, stop, hides, retry, allows, trouble
    remarks    what else people would be told
"""

from __future__ import annotations

from typing import Final

from ..model.hooks import HookSpec
from ..trial.observe import Run
from ..trial.run import Attempt, Trial
from .layout import as_json, document
from .try_text import Told

VERSION: Final = 1
"""The number of the document's format."""

_RUN: Final = (
    *("stdin", "variables", "hidden", "ended", "exit", "detail", "ms", "stdout", "stderr", "cut", "verdict"),
)
"""The keys that are null for a hook that was not run."""


def for_programs(told: Told) -> str:
    """The document."""
    trial, attempt = told.trial, told.attempt
    by, reason = told.because
    return document(
        {
            "v": VERSION,
            "status": told.status,
            "decision": trial.decision or None,
            "by": by,
            "reason": trial.unreadable or reason,
            "failed": trial.failed,
            "question": told.question or None,
            "tool": attempt.tool,
            "server": told.server,
            "event": told.event,
            "alias": told.alias and {"as": told.alias.name or None, "arguments": dict(told.alias.arguments)},
            "arguments": {"before": as_json(attempt.arguments), "after": as_json(_after(trial, attempt))},
            "result": {"before": as_json(attempt.result), "after": as_json(trial.answer)},
            "hooks": [
                *(_ran(run) for run in trial.seen.runs),
                *(_spec(one.spec) | {"absent": one.why} | dict.fromkeys(_RUN) for one in told.absent),
            ],
            "remarks": trial.seen.remarks,
        }
    )


def _after(trial: Trial, attempt: Attempt) -> bytes | None:
    return None if trial.decision in ("deny", "asked-deny") else trial.proposed or attempt.arguments


def _spec(spec: HookSpec) -> dict[str, object]:
    return {
        "source": spec.source,
        "dialect": spec.dialect,
        "event": spec.event,
        "label": spec.label,
        "command": spec.runs,
        "matcher": spec.matcher,
        "if": spec.only_if,
        "timeout": spec.timeout,
        "background": spec.background,
    }


def _ran(run: Run) -> dict[str, object]:
    members = _spec(run.spec) | {"absent": None} | dict.fromkeys(_RUN)
    members |= {"stdin": _decoded(run.stdin), "variables": dict(run.variables), "hidden": list(run.hidden)}
    if run.result is not None:
        result = run.result
        members |= {"ended": result.ended.value, "exit": result.code, "detail": result.detail, "cut": result.cut}
        members |= {"ms": round(result.ms, 3), "stdout": _decoded(result.stdout), "stderr": _decoded(result.stderr)}
    if run.statement is not None:
        said = run.statement.verdict
        members["verdict"] = {
            "permission": said.permission.name.lower() if said.permission else None,
            "reason": said.reason,
            "arguments": as_json(said.arguments),
            "feedback": said.feedback,
            "replacement": as_json(said.replacement),
            "messages": said.messages,
            "stop": said.stop,
            "hides": said.hides,
            "retry": said.retry,
            "allows": said.allows,
            "trouble": said.trouble,
        }
    return members


def _decoded(raw: bytes) -> str:
    return raw.decode(errors="backslashreplace")
