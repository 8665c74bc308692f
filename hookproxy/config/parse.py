"""Reads the text of a hookproxy.toml into the tables of `models`, or says what is wrong with it.

pydantic is imported only for what is wrong: it takes 100 ms and 12 MB.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import ValidationError, convert

from ..model.errors import ConfigError
from ..model.settings import FORMER_KEYS
from ..model.toml import NotToml, parse_toml
from .errors import toml_error
from .models import ConfigFile, File


def parse(path: str, text: str) -> ConfigFile:
    """Parse and validate the file. Raises ConfigError with the line and the key of the first error."""
    return validated(path, text, read_tables(path, text), ConfigFile)


def read_tables(path: str, text: str) -> dict[str, object]:
    """The tables of the file, not yet validated, under the present names of keys. Raises ConfigError."""
    try:
        return _with_current_keys(path, parse_toml(text))
    except NotToml as problem:
        raise toml_error(path, text, problem) from None


def validated(path: str, text: str, tables: dict[str, object], whole: type[File]) -> File:
    """The tables of the file with this text as values; `whole` stands for all of it. Raises ConfigError as `parse`."""
    try:
        return convert(with_lists(tables), whole)
    except ValidationError as problem:
        from .pydantic_models import explanation

        raise explanation(path, text, tables, whole, str(problem)) from None


def tables_of_server(tables: Mapping[str, object], name: str) -> Mapping[str, object]:
    """What stands below [servers.NAME]."""
    servers = tables.get("servers")
    table = servers.get(name) if isinstance(servers, Mapping) else None
    return table if isinstance(table, Mapping) else {}


def with_lists(tables: dict[str, object]) -> dict[str, object]:
    """The tables of a file with a list in place of each string that stands for one, also in the tables of servers."""
    servers = tables.get("servers")
    if isinstance(servers, dict):
        with_list = {name: _with_list(table) if isinstance(table, dict) else table for name, table in servers.items()}
        tables = {**tables, "servers": with_list}
    return _with_list(tables)


def _with_list(table: dict[str, object]) -> dict[str, object]:
    preset = table.get("preset")
    return {**table, "preset": [preset]} if isinstance(preset, str) else table


def _with_current_keys(path: str, tables: dict[str, object]) -> dict[str, object]:
    """Rename former keys at the top level, in `[[use]]` and in hooks. Raises ConfigError.

    Other tables are left alone: a variable, a tool or an argument may have any name.
    """
    renamed = _rename_keys(path, tables)
    if "use" in renamed:
        renamed["use"] = _rename_in_each(path, renamed["use"])
    hooks = renamed.get("hooks")
    if isinstance(hooks, dict):
        renamed["hooks"] = {event: _rename_in_each(path, entries) for event, entries in hooks.items()}
    return renamed


def _rename_in_each(path: str, tables: object) -> object:
    if not isinstance(tables, list):
        return tables
    return [_rename_keys(path, table) if isinstance(table, dict) else table for table in tables]


def _rename_keys(path: str, table: dict[str, object]) -> dict[str, object]:
    for former, name in FORMER_KEYS.items():
        if former in table and name in table:
            raise ConfigError(path, f"{former} and {name} are the same key", f"remove {former}, the former name")
    return {FORMER_KEYS.get(key, key): value for key, value in table.items()}
