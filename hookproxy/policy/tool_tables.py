"""Which tables are about no tool of a server: a misspelled name is silent otherwise (law 3). Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from ..model.secret_settings import SecretSettings, SecretsOff, SecretsRestore
from ..model.settings import Settings
from .globs import glob


def unknown_tools(settings: Settings, listed: Collection[str]) -> tuple[str, ...]:
    """Return the tools of the user's `[tools.X]` that are not among the listed ones, in order.

    What hooks call a tool counts in any case of its name, as it does for calls; what the agent sees of it does not.
    """
    loose = {name.strip().casefold() for name in listed}
    unknown = [alias.tool for alias in settings.aliases if alias.tool.strip().casefold() not in loose]
    unknown += [shown.tool for shown in settings.shown_tools if shown.tool not in listed]
    return tuple(dict.fromkeys(unknown))


def idle_secret_tables(secrets: SecretSettings | None, server: str, listed: Collection[str]) -> tuple[str, ...]:
    """Return the `[[secrets.restore]]` and `[[secrets.off]]` about this server that name none of the listed tools."""
    tables = () if secrets is None else idle_tables(secrets, server, listed)
    return tuple(f"[[{key}]] {table.tool}" for key, table in tables if is_about(table.server, server))


def idle_tables(
    secrets: SecretSettings, server: str, listed: Collection[str]
) -> Iterator[tuple[str, SecretsRestore | SecretsOff]]:
    """Yield the tables about other servers, and those that name none of the listed tools, each with its key."""
    for key, tables in (("secrets.restore", secrets.restore), ("secrets.off", secrets.off)):
        for table in tables:
            if not is_about(table.server, server) or not any(is_about(table.tool, tool) for tool in listed):
                yield key, table


def is_about(pattern: str, name: str) -> bool:
    """True if a glob of a table of `[secrets]` is about a tool or a server of this name."""
    return re.fullmatch(glob(pattern), name) is not None
