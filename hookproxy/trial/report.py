"""Tries one call and reports it: the decision, each hook that ran, and why the others did not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from ..config.load import Loaded
from ..dialects.dialect import Group
from ..dialects.shared.input import block_texts
from ..jsonrpc import raw_json
from ..model.aliases import Alias
from ..model.decision import Proceed
from ..model.errors import EXIT_FINDINGS, EXIT_USER_ERROR, UserError
from ..model.hooks import Event, HookSpec, Session
from ..model.settings import Settings
from .run import TrialCall, TrialResult, TrialRunner, plan
from .why_not import SkippedHook, skipped_hooks

DEFAULT_RESULTS: Final = {
    Event.POST_TOOL_USE: b'{"content":[]}',
    Event.POST_TOOL_USE_FAILURE: b'{"content":[{"type":"text","text":"The tool failed."}],"isError":true}',
}
"""The call's result if none is given, for each event that has one."""

DECIDING_EVENTS: Final = (Event.PRE_TOOL_USE, Event.PRE_MCP_TOOL_CALL, Event.PERMISSION_REQUEST, *DEFAULT_RESULTS)
_ALLOWED: Final = {"allow": "allowed", "asked-allow": "allowed", "": "no decision"}


async def try_call(
    loaded: Loaded, attempt: TrialCall, event: Event | None, session: Session, environ: Mapping[str, str]
) -> TrialReport:
    """Try a call, or one event alone. On cancel its hooks are ended. Raises ConfigError, UserError."""
    planned = plan(event, attempt.result is not None, loaded.settings)
    async with TrialRunner(loaded.groups, planned, session, environ, loaded.trust) as trials:
        if event is None or event in DECIDING_EVENTS:
            trial = await trials.call(attempt)
        else:
            trial = await trials.run_event(event, attempt)
        not_run = skipped_hooks(loaded.groups, trials, trial, attempt.tool)
    watched = None
    if (of_watched := loaded.of_watched) is not None:
        watched = await try_call(of_watched, attempt, event, session, environ)
    return TrialReport(attempt, event, session.server, loaded.settings, loaded.groups, trial, not_run, watched)


class TrialReport(Struct, frozen=True):
    """A trial, with what was tried and what is shown of it."""

    attempt: TrialCall
    event: Event | None
    """The only event that was tried; None: the whole call."""
    server: str
    settings: Settings
    groups: Sequence[Group]
    trial: TrialResult
    not_run: Sequence[SkippedHook]
    watched: TrialReport | None = None
    """The same for the policy that is only watched, and changes nothing; None: there is none."""

    @property
    def status(self) -> int:
        """The exit status: 0 allowed; 1 refused, or a person would be asked; 2 not allowed because a hook failed."""
        if self.trial.allowed:
            return 0
        return EXIT_USER_ERROR if self.trial.failed else EXIT_FINDINGS

    @property
    def decision(self) -> str:
        """The decision in a few words."""
        trial = self.trial
        if trial.allowed:
            return _ALLOWED[trial.decision]
        if trial.failed:
            refused = trial.decision in ("deny", "asked-deny")
            return "refused because a hook failed" if refused else "the result is withheld"
        if trial.decision == "asked":
            return "a person would be asked"
        return "refused" if trial.decision in ("deny", "asked-deny") else "allowed, but the result is refused"

    @property
    def decided_by(self) -> tuple[str, str]:
        """Who decided, as text, and why. If only a permission request is tried, just the trial itself wants to ask."""
        if self.event is Event.PERMISSION_REQUEST and isinstance(self.trial.hook_decision, Proceed):
            return "", ""
        return self.trial.decided_by

    @property
    def alias(self) -> Alias | None:
        """The names that hooks see for the tool; None: they see the server's own name."""
        return next((alias for alias in self.settings.aliases if alias.tool == self.attempt.tool), None)

    @property
    def approval_text(self) -> str:
        """What a person would be asked."""
        return "" if self.event is Event.PERMISSION_REQUEST else self.trial.approval_message

    def place(self, spec: HookSpec) -> tuple[str, str]:
        """The file and the key of a hook."""
        for group in self.groups:
            if any(hook is spec for hook in group.hooks):
                return group.source, spec.source.removeprefix(f"{group.source}: ")
        return "", spec.source


def text_of(response: bytes) -> str:
    """What a model reads of the result of a call or request: its texts, or an error's message."""
    if not response:
        return ""
    members = raw_json.fields(response)
    if "error" in members:
        return raw_json.text(bytes(raw_json.fields(bytes(members["error"])).get("message", b""))) or ""
    for name in ("content", "contents"):
        if name in members:
            return "\n".join(block_texts(bytes(members[name])))
    return response.decode(errors="replace")


def json_object(name: str, raw: bytes) -> bytes:
    """The text if it is a JSON object; `name` says what it is. Raises UserError.

    Duplicate keys are left for the hooks' reader.
    """
    try:
        if not isinstance(json.loads(raw.decode(), parse_constant=raw_json.reject_constant), dict):
            raise raw_json.Unreadable("not a JSON object")
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{name}: {_error_text(error)}", """give a JSON object, for example '{"path": "a.txt"}'"""
        ) from None
    return raw


def _error_text(error: ValueError | RecursionError) -> str:
    match error:
        case raw_json.Unreadable():
            return str(error)
        case UnicodeDecodeError():
            return f"not UTF-8 at byte {error.start}"
        case json.JSONDecodeError():
            return f"not JSON: {error.msg} at character {error.pos + 1}"
        case ValueError():
            return "a number is too long"
        case RecursionError():
            return "nested too deeply"
