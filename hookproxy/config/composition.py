"""`[hooks.composition]`: how the verdicts of hooks of type "agent-hooks" become one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from ..dialects import agent_hooks
from ..dialects.agent_hooks_host import AgentHooksHost, hosted
from ..dialects.agent_hooks_verdicts import KEY_OF_PROFILE, NAME, Composition, is_path
from ..dialects.dialect import Dialect
from ..dialects.own import own_hook
from ..model.errors import ConfigError
from ..model.hooks import Event, HookSpec

_CONSULTED: Final = (Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
"""The events of calls: the others decide nothing, so there is nothing to lift."""

RESOLVER_SECONDS: Final = 120.0
"""How long a resolver may take by default: it may ask a person in a chat program, and agents wait a few minutes."""


def composed(table: Mapping[str, object], where: str, folder: str = "/") -> Dialect:
    """The system of such hooks with the keys of this table; its resolver starts in `folder`. Raises ConfigError."""
    if not table:
        return agent_hooks.AGENT_HOOKS
    known = {name: str(value) for name, value in table.items() if name in Composition.__struct_fields__}
    composition = Composition(**known)
    for profile, key in KEY_OF_PROFILE.items():
        if key in table and composition.profile != profile:
            message = f"is not for the profile {composition.profile!r}"
            raise ConfigError(f"{where}.{key}", message, f'it is for profile = "{profile}"')
    redact = tuple(map(str, cast("list[object]", table.get("redact", ()))))
    for number, path in enumerate(redact):
        if not is_path(path):
            raise ConfigError(f"{where}.redact[{number}]", f"{path!r} is not a path", 'write it as "$target.a.b[0]"')
    if redact and "resolver" not in table:
        raise ConfigError(f"{where}.redact", "is about what the resolver gets, and there is none", "remove it")
    provider = str(table["identity_provider"]) if "identity_provider" in table else None
    host = AgentHooksHost(composition=composition, provider=provider, redact=redact)
    return hosted(agent_hooks.composed(composition), host, _resolvers(table.get("resolver"), where, folder))


def _resolvers(table: object, where: str, folder: str) -> tuple[HookSpec, ...]:
    if not isinstance(table, Mapping):
        return ()
    written = {"type": NAME, "timeout": RESOLVER_SECONDS, **table}
    return tuple(own_hook(written, event, f"{where}.resolver", folder) for event in _CONSULTED)
