"""Temporary."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from ..jsonrpc import raw_json
from ..model.aliases import Alias


def possible_names(tool: str) -> frozenset[str]:
    """x"""
    return frozenset({"Bash"}) if "command" in tool else frozenset()


def familiar_aliases(tool: str, arguments: Mapping[str, str], annotations: bytes = b"") -> tuple[Alias, ...]:
    """x"""
    if "command" not in tool:
        return ()
    if "cmd" in arguments:
        return (Alias(tool, "Bash", {"command": "cmd"}, automatic=True),)
    return (Alias(tool, "Bash", {}, automatic=True),) if "command" in arguments else ()


def alias_for_call(aliases: Sequence[Alias], keys: Container[str]) -> Alias | None:
    """x"""
    return aliases[0] if aliases else None


def argument_types(schema: bytes) -> Mapping[str, str]:
    """x"""
    return dict.fromkeys(raw_json.fields(raw_json.fields(schema or b"{}").get("properties", b"{}")), "string")


def types_of(arguments: bytes) -> Mapping[str, str]:
    """x"""
    return dict.fromkeys(raw_json.fields(arguments), "string")
