"""The reference of hookproxy.toml, from the same models that read it."""

# mypy: disable-error-code="import-not-found"

import json
from typing import Any

from schema import schema
from tables import row

from hookproxy.config.gateway_models import GatewayFile

TABLES = {
    "Use": "[[use]]",
    "OwnHook": "[[hooks.EVENT]]",
}
"""Tables of the file whose model has another name than their key."""


def keys() -> str:
    """A section for each table of the file, with a row for each key."""
    model = json.loads(schema())
    defs = model["$defs"]
    tables = {"At the top": model, **_inner_tables(model, defs)}
    return "\n\n".join(_section(title, table, defs) for title, table in tables.items())


GATEWAY_TABLES = {
    "GatewayTable": "[gateway]",
    "PerUser": "[gateway.per_user]",
    "Total": "[gateway.total]",
    "StoreTable": "[gateway.store]",
    "AuditExport": "[gateway.audit_export]",
    "Oidc": "[gateway.oidc]",
    "Tls": "[gateway.tls]",
    "Roles": "[roles]",
    "ServerTable": "[servers.NAME]",
    "UserRules": "[[permissions.for]]",
    "GatewayLimit": "[[limits]]",
}
"""The tables that only a gateway.toml has, each with its header."""


def gateway_keys() -> str:
    """The same for these tables, without the keys of hookproxy.toml."""
    defs = json.loads(schema(GatewayFile))["$defs"]
    sections = []
    for name, title in GATEWAY_TABLES.items():
        table = dict(defs[name])
        table["properties"] = {
            key: value
            for key, value in table["properties"].items()
            if name != "ServerTable" or key not in json.loads(schema())["properties"]
        }
        sections.append(_section(title, table, defs))
    return "\n\n".join(sections)


def _inner_tables(model: dict[str, Any], defs: dict[str, Any], prefix: str = "") -> dict[str, dict[str, Any]]:
    """The tables in a table, by what their header looks like, in the order of the file."""
    found: dict[str, dict[str, Any]] = {}
    for key, value in model.get("properties", {}).items():
        for header, name in _models_of(value, f"{prefix}{key}"):
            table = defs[name]
            if "properties" in table and table not in found.values():
                found[TABLES.get(name, header)] = table
                inner = _inner_tables(table, defs, f"{prefix}{key}.")
                found |= {title: each for title, each in inner.items() if title not in found}
    return found


def _models_of(value: dict[str, Any], path: str) -> list[tuple[str, str]]:
    """The names of the models that a key's value may be of, each with the header of such a table."""
    places = [
        (f"[{path}]", value),
        (f"[[{path}]]", value.get("items")),
        (f"[{path}.NAME]", value.get("additionalProperties")),
    ]
    places += [(f"[{path}]", one) for one in value.get("anyOf", ())]
    return [
        (header, one["$ref"].rpartition("/")[2]) for header, one in places if isinstance(one, dict) and "$ref" in one
    ]


def _section(title: str, table: dict[str, Any], defs: dict[str, Any]) -> str:
    head = f"### {title if title == 'At the top' else f'`{title}`'}\n\n{_description(table)}\n\n"
    rows = [row("key", "value", "default", "meaning"), row(*["---"] * 4)]
    required = table.get("required", ())
    for key, value in table["properties"].items():
        default = "required" if key in required else _default(value)
        rows.append(row(f"`{key}`", _type(value, defs), default, value.get("description", "").replace("|", "\\|")))
    return head + "\n".join(rows)


def _description(table: dict[str, Any]) -> str:
    return str(table.get("description", "")).partition("\n\n")[0].replace("\n", " ")


def _default(value: dict[str, Any]) -> str:
    default = value.get("default")
    return "" if default is None or default in ([], {}) or isinstance(default, dict) else f"`{json.dumps(default)}`"


def _type(value: dict[str, Any], defs: dict[str, Any]) -> str:
    """What the value may be, in the words of TOML."""
    if "$ref" in value:
        target = defs[value["$ref"].rpartition("/")[2]]
        return "table" if "properties" in target else _type(target, defs)
    if "anyOf" in value:
        return ", ".join(dict.fromkeys(_type(one, defs) for one in value["anyOf"]))
    if "enum" in value or "const" in value:
        return ", ".join(f'`"{one}"`' for one in value.get("enum", [value.get("const")]))
    kind = value.get("type", "any")
    if kind == "array":
        inner = value.get("items", {})
        return f"array of {_type(inner, defs)}s"
    if kind == "object":
        return "table"
    return str(kind)
