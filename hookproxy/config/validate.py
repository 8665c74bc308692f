"""What hookproxy.toml names and cannot be used stops start-up: rules, patterns, what is not installed (law 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model.errors import ConfigError

if TYPE_CHECKING:
    from .models import ConfigFile


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
