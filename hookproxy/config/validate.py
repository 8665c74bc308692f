"""What hookproxy.toml names and cannot be used stops start-up: rules, patterns, what is not installed (law 3)."""

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
    from ..policy.rate_limits import HINT, tool_rule

    try:
        tool_rule(table.tool)
    except ValueError as problem:
        raise ConfigError(f"{path}: {key}.tool", str(problem), HINT) from None
    return Limit(table.tool, table.calls, Per(table.per), key)


def check_patterns(file: ConfigFile, path: str) -> None:
    """Raise ConfigError for the first rule or pattern of the file that cannot be read."""
    _rules(file, path)
    _secrets(file, path)
    _telemetry(file, path)


def _rules(file: ConfigFile, path: str) -> None:
    """Raise ConfigError for a permission rule that is none."""
    from ..policy.rules import HINT, parsed

    for key in ("allow", "ask", "deny"):
        rules: list[str] = getattr(file.permissions, key)
        for number, rule in enumerate(rules):
            try:
                parsed(rule)
            except ValueError as problem:
                raise ConfigError(f"{path}: permissions.{key}[{number}]", str(problem), HINT) from None


def _secrets(file: ConfigFile, path: str) -> None:
    """Raise ConfigError for a pattern of secrets that is none: it would leave them in the audit."""
    from ..jsonrpc.redact import pattern

    for number, text in enumerate(file.audit.redact):
        try:
            pattern(text)
        except ValueError as problem:
            raise ConfigError(
                f"{path}: audit.redact[{number}]", str(problem), "a literal string: 'sk-[a-z]+'"
            ) from None


def _telemetry(file: ConfigFile, path: str) -> None:
    """Raise ConfigError if it is wanted and not installed."""
    if not file.otel.enabled:
        return
    from importlib.util import find_spec

    for module in ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"):
        try:
            there = find_spec(module) is not None
        except ModuleNotFoundError:  # not even what it is a part of
            there = False
        if not there:
            hint = "python3 -m pip install 'hookproxy[otel]'"
            raise ConfigError(f"{path}: otel.enabled", f"{module} is not installed", hint)
