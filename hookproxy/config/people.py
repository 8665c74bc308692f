"""Who is named in a gateway's configuration and in a signed policy, and the rules that are for some people only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ..model.errors import ConfigError
from .gateway_models import GatewayPermissions, UserRules
from .validate import check_permission_rules, rule_places


def check_people(names: Sequence[str], path: str, key: str) -> list[tuple[str, str]]:
    """Raise ConfigError for a text that is nobody's name: a rule for it would hold for nobody. Returns `people`."""
    for number, text in enumerate(names):
        name = text.removeprefix("@")
        if not name or name != name.strip() or "*" in name:
            for_all = "without the list it is for everybody"
            if key.endswith(".users") and "limits[" not in key:
                for_all = "rules for all are in [permissions]"
            elif key.startswith("roles."):
                for_all = "a role is for people that it names"
            hint = f"write names of users, and names of groups with @ in front; {for_all}"
            raise ConfigError(path, f"{key}[{number}]: {text!r} is not the name of a user or a group", hint)
    return [(f"{key}[{number}]", text) for number, text in enumerate(names)]


def check_permission_rules_for_users(
    table: GatewayPermissions, path: str, within: tuple[str, ...]
) -> list[tuple[str, str]]:
    """Raise ConfigError for the first rule for some people that is invalid. Returns the names as `people`."""
    people: list[tuple[str, str]] = []
    for number, rules in enumerate(table.for_users):
        key = ".".join((*within, f"permissions.for[{number}]"))
        people += check_people(rules.users, path, f"{key}.users")
        check_permission_rules(rules, path, key)
    return people


def rules_for_users(
    table: GatewayPermissions, path: str, text: str, within: tuple[str, ...]
) -> Iterator[tuple[UserRules, Mapping[str, str]]]:
    """The rules of a table for some people, each with the places of its rules, as `Settings.rule_places`."""
    for number, rules in enumerate(table.for_users):
        rules = replace(rules, mode="monitor") if table.mode == "monitor" else rules
        yield rules, rule_places(rules, path, text, (*within, "permissions", "for", number))
