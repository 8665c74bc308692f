"""`[hooks.composition]`: how the verdicts of hooks of type "agent-hooks" become one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..dialects import agent_hooks
from ..dialects.dialect import Dialect
from ..model.errors import ConfigError

_PROFILE_OF: Final = {
    "on_approval": "sequential/first_deny",
    "on_disagreement": "parallel/unanimous",
    "on_transform_conflict": "parallel/strictest",
}
"""The profile that consults each key: with another one, the standard refuses the key."""


def composed(table: Mapping[str, object], where: str) -> Dialect:
    """The system of such hooks with the keys of this table. Raises ConfigError."""
    composition = agent_hooks.Composition(**{name: str(value) for name, value in table.items()})
    for key, profile in _PROFILE_OF.items():
        if key in table and composition.profile != profile:
            message = f"is not for the profile {composition.profile!r}"
            raise ConfigError(f"{where}.{key}", message, f'it is for profile = "{profile}"')
    return agent_hooks.composed(composition)
