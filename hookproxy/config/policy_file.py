"""Reads the policy.toml of a signed policy for a gateway: what holds for all, and for single people and servers.

What a server's table says comes on top of what holds for all. A gateway without a server of that name does not use it.
"""

from __future__ import annotations

from ..model.errors import ConfigError
from ..trust.sources import FileContext
from .gateway_models import PolicyFile
from .load import layer_of
from .parse import read_tables, tables_of_server, validated
from .people import check_permission_rules_for_users, rules_for_users
from .policy_in_force import PolicyContent


def read(path: str, file_context: FileContext) -> PolicyContent:
    """Read the file, and the hook files that it names. Raises ConfigError."""
    text = file_context.text(path)
    tables = read_tables(path, text)
    file = validated(path, text, tables, PolicyFile)
    people = check_permission_rules_for_users(file.permissions, path, ())
    servers = {}
    for name, table in file.servers.items():
        within = ("servers", name)
        for key in ("managed_only", "require_trust", "policy"):
            if getattr(table, key):
                raise ConfigError(path, f"servers.{name}.{key} is for all servers", "write it at the top of the file")
        people += check_permission_rules_for_users(table.permissions, path, within)
        servers[name] = PolicyContent(
            layer_of(table, tables_of_server(tables, name), path, text, file_context, within),
            tuple(rules_for_users(table.permissions, path, text, within)),
        )
    layer = layer_of(file, tables, path, text, file_context)
    rules = tuple(rules_for_users(file.permissions, path, text, ()))
    return PolicyContent(layer, rules, servers, tuple((f"policy: {key}", name) for key, name in people))
