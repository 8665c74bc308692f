"""What is permitted without asking, and what is not at all: the configuration's rules, and what a session has added."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from . import matching
from .decision import Decision, Ground, Proceed, Question, Refuse
from .groups import Groups
from .model import Occasion, Permission, Verdict
from .settings import Settings

if TYPE_CHECKING:
    from .rules import Rules

_RULES: Final = 1024  # permission rules that hooks may add to a session: a table must not grow for ever


class Permissions:
    """The permission rules of one run, for the tools of one server."""

    def __init__(self, groups: Groups, settings: Settings) -> None:
        self.rules = _rules(settings)
        self._groups = groups
        self._allowed: dict[str, Callable[[str, bytes], bool]] = {}
        self._allowed_tools: set[str] = set()

    def ruled(self, proceed: Proceed, occasion: Occasion) -> Decision:
        """What the configuration's permission rules make of a call that hooks let go, on its final arguments."""
        ruling = (
            self.rules.judge(self._groups.names(occasion.tool), occasion.arguments) if self.rules is not None else None
        )
        if ruling is None:
            return proceed
        if ruling.permission is Permission.DENY:
            return Refuse(ruling.rule, "", ground=Ground.RULE, feedback=proceed.feedback)
        if ruling.permission is Permission.ASK:
            return replace(proceed, question=proceed.question or Question(ruling.by, ""))
        return replace(proceed, question=None, asked=proceed.asked or proceed.question is not None)

    def allow(self, occasion: Occasion) -> bool:
        """A person, or a rule that a hook added, has allowed the call for this session."""
        if occasion.tool in self._allowed_tools:
            return True
        names = matching.allowed_as(self._groups.names(occasion.tool))
        return any(rule(name, occasion.arguments) for rule in self._allowed.values() for name in names)

    def concern(self, tool: str) -> bool:
        """True if any hook or rule is to see calls of this tool."""
        return self._groups.concerns(tool) or (self.rules is not None and self.rules.concerns(self._groups.names(tool)))

    def hide(self, tool: str) -> bool:
        """True if the tool is not to be listed: a rule denies each of its calls."""
        return self.rules is not None and self.rules.hides(self._groups.names(tool))

    def allow_tool(self, tool: str) -> None:
        """A person allows this tool for the rest of the session, whatever its arguments."""
        if len(self._allowed_tools) < _RULES:
            self._allowed_tools.add(tool)

    def add(self, verdict: Verdict) -> Verdict:
        """Add the rules of a hook to the session, unless it denies or failed. No rule, or one too many, is trouble."""
        if verdict.trouble or verdict.permission is Permission.DENY:
            return verdict
        try:
            rules = {text: matching.allow_rule(text) for text in verdict.allows}
        except ValueError as problem:
            return replace(verdict, trouble=verdict.trouble or f"gave a permission rule that is none: {problem}")
        if len(self._allowed.keys() | rules.keys()) > _RULES:
            return replace(verdict, trouble=verdict.trouble or f"gave more than {_RULES} permission rules")
        self._allowed.update(rules)
        return verdict


def _rules(settings: Settings) -> Rules | None:
    """The configuration's rules; None where it has none, and what reads them is not imported."""
    if not (settings.allow or settings.ask or settings.deny):
        return None
    from .rules import Rules  # 5 ms

    return Rules.of(settings)
