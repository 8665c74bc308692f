"""Reads what hookproxy.toml says about single tools: what hooks call them, and how many calls are allowed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..dialects.shared.hook_file import suggestion
from ..model.aliases import Alias
from ..model.errors import ConfigError
from ..model.settings import Limit, Per

if TYPE_CHECKING:
    from .models import ConfigFile, LimitTable, ToolTable


def aliases(file: ConfigFile, path: str) -> tuple[Alias, ...]:
    """What hooks call tools: those of the presets, the last of which counts, and over them `[tools.X]`.

    Raises ConfigError.
    """
    found = {one.tool: one for one in _of_presets(file.preset, path)} if file.preset else {}
    for tool, table in file.tools.items():
        found[tool] = _alias(tool, table, f"{path}: tools.{tool}")
    return tuple(one for one in found.values() if one.name or one.arguments)


def _of_presets(names: list[str], path: str) -> Iterator[Alias]:
    from ..policy.presets import PRESETS

    for name in names:
        if name not in PRESETS:
            hint = suggestion(name, PRESETS) or f"known: {', '.join(PRESETS)}"
            raise ConfigError(f"{path}: preset", f"there is no preset {name!r}", hint)
        for one in PRESETS[name].tools:
            yield replace(one, preset=name)


def _alias(tool: str, table: ToolTable, where: str) -> Alias:
    names: dict[str, str] = {}
    for name, own in table.arguments.items():
        if own in names:
            problem = f"{names[own]!r} and {name!r} are both the tool's {own!r}"
            raise ConfigError(f"{where}.arguments", problem, "one name for each argument")
        names[own] = name
    renamed = {name: own for own, name in names.items() if name != own}
    return Alias(tool, table.known_as or "", renamed)


def limits(file: ConfigFile, path: str) -> tuple[Limit, ...]:
    """How many calls are allowed. Raises ConfigError."""
    return tuple(_limit(table, f"limits[{number}]", path) for number, table in enumerate(file.limits))


def _limit(table: LimitTable, key: str, path: str) -> Limit:
    from ..policy.rate_limits import HINT, tools

    try:
        tools(table.tool)
    except ValueError as problem:
        raise ConfigError(f"{path}: {key}.tool", str(problem), HINT) from None
    return Limit(table.tool, table.calls, Per(table.per), key)
