"""What a Claude Code hook answers to PermissionRequest: `hookSpecificOutput.decision`."""

from __future__ import annotations

import re
from typing import Final, Literal

import msgspec

from ...model.hooks import Permission, Verdict
from ...policy import matchers
from ..shared import output as shared_output

_NOTHING: Final = msgspec.Raw(b"")
_MOST_RULES: Final = 1000  # each is compiled: a hook that prints nothing but rules must not hold up all calls
_OF_THE_AGENT: Final = ("setMode", "addDirectories", "removeDirectories")
"""The changes of permissions that are about the agent's own matters."""


class _Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A permission rule in two parts."""

    toolName: str
    ruleContent: str = ""

    @property
    def text(self) -> str:
        """The rule as settings files have it, `Tool` or `Tool(what)`."""
        return f"{self.toolName}({self.ruleContent})" if self.ruleContent else self.toolName


class _Change(msgspec.Struct, frozen=True):
    """An entry of `updatedPermissions`."""

    type: str
    behavior: str = ""
    rules: tuple[_Rule, ...] = ()


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What a PermissionRequest hook answers."""

    behavior: Literal["allow", "deny"]
    updatedInput: msgspec.Raw = _NOTHING
    updatedPermissions: tuple[_Change, ...] = ()
    message: str = ""
    interrupt: bool = False


def verdict(decision: Decision) -> Verdict:
    """What the decision says. An answer that cannot be followed whole is trouble, and allows nothing."""
    if decision.behavior == "deny":
        return Verdict(permission=Permission.DENY, reason=shared_output.cut(decision.message), stop=decision.interrupt)
    rules, trouble, idle = _permissions(decision.updatedPermissions)
    trouble = trouble or _unusable(rules)
    arguments = shared_output.one_line(decision.updatedInput)
    if arguments[:1] not in (b"", b"{"):  # to run the call as it was would be another thing than what it allowed
        trouble = "gave an updatedInput that is no object"
    return Verdict(
        permission=Permission.ALLOW,
        arguments=arguments if arguments and not trouble else None,
        allows=() if trouble else rules,
        messages=idle,
        trouble=trouble,
    )


def _permissions(changes: tuple[_Change, ...]) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """The rules that calls may pass by from now on, what is wrong with the rest, and what is without effect.

    Wherever a change would be kept, here it holds for the session. One that restricts is never passed over.
    """
    rules: list[str] = []
    idle: list[str] = []
    for change in changes:
        if change.type in _OF_THE_AGENT:
            idle.append(f"without effect behind MCP: {change.type}")
        elif (change.type, change.behavior) == ("addRules", "allow"):
            rules += [rule.text for rule in change.rules]
        else:
            what = shared_output.cut(f"{change.type} {change.behavior}".strip(), shared_output.FIRST_LINE)
            return (), f"gave an updatedPermissions entry that cannot be followed here: {what}", tuple(idle)
    return tuple(rules), "", tuple(idle)


def _unusable(rules: tuple[str, ...]) -> str:
    """What is wrong with the rules; empty: nothing."""
    if len(rules) > _MOST_RULES:
        return f"gave {len(rules)} permission rules, more than {_MOST_RULES}"
    for rule in rules:
        try:
            matchers.allow_rule(rule)
        except (re.error, ValueError, OverflowError, RecursionError):
            return f"gave a permission rule that is none: {shared_output.cut(repr(rule), shared_output.FIRST_LINE)}"
    return ""
