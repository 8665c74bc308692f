"""Which permission rules guard nothing of a server: a misspelled tool in a rule is silent otherwise (law 3). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..hooks.coverage import coverage
from ..model.hooks import Tool
from ..model.settings import Settings
from ..policy import matchers


def rules_without_tools(
    settings: Settings, server: str, tools: Sequence[Tool], command: Sequence[str], server_info: str
) -> tuple[str, ...]:
    """The user's deny and ask rules that are about none of these tools, as written. The arguments are `coverage`'s."""
    without_rules = replace(
        settings, allow=(), ask=(), deny=(), default_permission="allow", agent_rules=(), limits=(), managed=None
    )
    return tuple(
        rule
        for rule in dict.fromkeys((*settings.deny, *settings.ask))
        if not matchers.rule(rule).names_methods
        and not coverage((), replace(without_rules, deny=(rule,)), server, tools, command, server_info).ruled
    )
