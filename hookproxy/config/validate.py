"""Checks and converts the parts of hookproxy.toml that a model cannot check: aliases, rate limits, rules and patterns.

What cannot be used stops start-up: nothing is allowed, or recorded, in its place (law 3).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..dialects.shared.hook_file import suggestion
from ..model.aliases import Alias
from ..model.durations import seconds_of
from ..model.errors import ConfigError, install_command
from ..model.limits import Beyond, Limit, Measure, Per, Within
from ..model.shown_tools import ShownTool
from ..model.sizes import size_in_bytes
from .errors import line_of
from .models import ConfigFile, LimitTable, Permissions, ToolTable

if TYPE_CHECKING:
    from .gateway_models import GatewayLimit, UserRules

# --- aliases ---


def aliases(file: ConfigFile, path: str, within: Sequence[str | int] = ()) -> tuple[Alias, ...]:
    """The names by which hooks know tools, one alias for each tool. Raises ConfigError.

    Of several presets the last one counts; `[tools.X]` takes precedence over all of them. An empty table says that the
    tool has no other name, so it gets none by itself either.
    """
    by_tool = {alias.tool: alias for alias in _preset_aliases(file.preset, path, within)} if file.preset else {}
    for tool, table in file.tools.items():
        if _is_about_agent_only(table):
            continue
        by_tool[tool] = _alias(tool, table, f"{path}: {dotted((*within, 'tools', tool))}")
    return tuple(by_tool.values())


def _is_about_agent_only(table: ToolTable) -> bool:
    """Whether a table says something of how the agent sees the tool, and nothing of what hooks see."""
    about_agent = table.hide is not None or table.rename is not None or table.description is not None
    return about_agent and table.known_as is None and not table.arguments


def shown_tools(file: ConfigFile, path: str, within: Sequence[str | int] = ()) -> tuple[ShownTool, ...]:
    """How the agent sees the tools of the file, as far as it is not as the server lists them. Raises ConfigError."""
    shown = []
    for tool, table in file.tools.items():
        place = f"{path}: {dotted((*within, 'tools', tool))}"
        if table.rename == tool:
            raise ConfigError(f"{place}.rename", "is the name that the tool has", "remove it, or write another name")
        if table.hide and (table.rename is not None or table.description is not None):
            key = "rename" if table.rename is not None else "description"
            raise ConfigError(f"{place}.{key}", "the agent does not see a hidden tool", f"remove it, or {place}.hide")
        if table.hide or table.rename is not None or table.description is not None:
            shown.append(ShownTool(tool, bool(table.hide), table.rename or "", table.description, place))
    return tuple(shown)


def _preset_aliases(names: list[str], path: str, within: Sequence[str | int]) -> Iterator[Alias]:
    from ..policy.presets import PRESETS

    for name in names:
        if name not in PRESETS:
            several = [part.strip() for part in name.split(",")]
            hint = suggestion(name, PRESETS) or "docs/reference.md has the list of presets"
            hint = f"write preset = {json.dumps(several)}" if len(several) > 1 else hint
            raise ConfigError(f"{path}: {dotted((*within, 'preset'))}", f"there is no preset {name!r}", hint)
        for alias in PRESETS[name].tools:
            other = (replace(alias, name="Edit", preset=name),) if alias.name == "MultiEdit" else ()
            yield replace(alias, preset=name, alternatives=other)


def _alias(tool: str, table: ToolTable, where: str) -> Alias:
    hook_names: dict[str, str] = {}
    for name, server_name in table.arguments.items():
        if server_name in hook_names:
            problem = f"{hook_names[server_name]!r} and {name!r} both name the tool's argument {server_name!r}"
            raise ConfigError(f"{where}.arguments", problem, "use one name for each argument")
        hook_names[server_name] = name
    renamed = {name: server_name for server_name, name in hook_names.items() if name != server_name}
    return Alias(tool, table.known_as or "", renamed)


# --- rate limits ---


def limits(file: ConfigFile, path: str, text: str, within: Sequence[str | int] = ()) -> tuple[Limit, ...]:
    """The limits of calls in a table of a file with this text; `within` are the names on the way to it.

    Raises ConfigError.
    """
    read: list[Limit] = []
    for number, table in enumerate(file.limits):
        key = dotted((*within, "limits", number))
        place = place_in_file(path, line_of(text, (*within, "limits", number)), key)
        read += _limits_of(table, key, path, place)
    return tuple(read)


def rule_places(
    rules: Permissions | UserRules, path: str, text: str, within: Sequence[str | int] = ("permissions",)
) -> dict[str, str]:
    """The file, line and key of each rule of a table, as in `Settings`; `within` as in `limits`."""
    lines = text.splitlines()
    places: dict[str, str] = {}
    if rules.default not in (None, "allow"):
        places["default"] = place_in_file(path, line_of(text, (*within, "default")), dotted((*within, "default")))
    for kind, texts in (("deny", rules.deny), ("ask", rules.ask), ("allow", rules.allow)):
        first = line_of(text, (*within, kind)) or 1
        for number, rule in enumerate(texts):
            quoted = (f'"{rule}"', f"'{rule}'")
            with_rule = (at for at, line in enumerate(lines[first - 1 :], first) if any(map(line.__contains__, quoted)))
            places[f"{kind} {rule}"] = place_in_file(path, next(with_rule, first), dotted((*within, kind, number)))
    return places


def dotted(names: Sequence[str | int]) -> str:
    """A key as people read it: `servers.db.limits[0]`."""
    return "".join(f"[{name}]" if isinstance(name, int) else f".{name}" for name in names).removeprefix(".")


def place_in_file(path: str, line: int | None, key: str) -> str:
    """A key of a file as people read it, with its line if that is known."""
    return f"{path}:{line}: {key}" if line else f"{path}: {key}"


def _limits_of(table: LimitTable | GatewayLimit, key: str, path: str, place: str) -> Iterator[Limit]:
    """The limits of a table, one for each of its measures; a gateway's of sessions or memory alone has none."""
    if isinstance(table, LimitTable) and not any(_amounts(table)):
        raise ConfigError(place, "limits nothing", 'add calls = 100 and per = "hour", or same = 5 and window = "10m"')
    if table.per is not None and table.window is not None:
        raise ConfigError(place, "has a period twice, as per and as window", "remove one of them")
    for measure, most in _amounts(table):
        _check_tool(table.tool or "*", f"{path}: {key}.tool")
        yield Limit(
            table.tool or "*",
            most,
            Per(table.per or "session"),
            key,
            place,
            watched=table.mode == "monitor",
            measure=measure,
            window=seconds_of(table.window) if table.window else 0.0,
            within=Within(table.within) if table.within else None,
            beyond=Beyond(table.then),
        )


def _amounts(table: LimitTable | GatewayLimit) -> Iterator[tuple[Measure, float]]:
    """What a table limits, and how much of it there may be."""
    for measure in Measure:
        value: float | str | None = getattr(table, measure, None)
        if value is not None:
            yield measure, size_in_bytes(value) if isinstance(value, str) else value


def _check_tool(tool: str, place: str) -> None:
    from ..policy.rate_limits import HINT, tool_rule

    try:
        tool_rule(tool)
    except ValueError as problem:
        from ..policy.rule_repairs import rule_repair  # only for errors

        raise ConfigError(place, str(problem), ("(" not in tool and rule_repair(tool)) or HINT) from None


# --- rules and patterns ---


def check_patterns(file: ConfigFile, path: str) -> None:
    """Raise ConfigError for the first rule or pattern that is invalid, or if telemetry cannot be sent."""
    check_permission_rules(file.permissions, path, "permissions")
    _check_redaction(file, path)
    _check_telemetry(file, path)


def check_permission_rules(rules: Permissions | UserRules, path: str, table: str) -> None:
    """Raise ConfigError for the first rule of a table that is invalid; `table` is its name in the file."""
    if not (rules.allow or rules.ask or rules.deny):
        return
    from ..policy.rules import HINT, parsed

    for key, texts in (("allow", rules.allow), ("ask", rules.ask), ("deny", rules.deny)):
        for number, rule in enumerate(texts):
            try:
                parsed(rule)
            except ValueError as problem:
                from ..policy.rule_repairs import rule_repair  # only for errors

                raise ConfigError(f"{path}: {table}.{key}[{number}]", str(problem), rule_repair(rule) or HINT) from None


def _check_redaction(file: ConfigFile, path: str) -> None:
    """An invalid pattern would leave secrets in the audit."""
    if not file.audit.redact:
        return
    from ..jsonrpc.redact import pattern

    for number, text in enumerate(file.audit.redact):
        try:
            pattern(text)
        except ValueError as problem:
            hint = "write a regular expression in single quotes: 'sk-[a-z]+'"
            raise ConfigError(f"{path}: audit.redact[{number}]", str(problem), hint) from None


def _check_telemetry(file: ConfigFile, path: str) -> None:
    """Telemetry that is enabled must be installed."""
    if not file.otel.enabled:
        return
    from importlib.util import find_spec

    for module in ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"):
        try:
            installed = find_spec(module) is not None
        except ModuleNotFoundError:  # not even the package that contains it
            installed = False
        if not installed:
            raise ConfigError(f"{path}: otel.enabled", f"{module} is not installed", install_command("otel"))
