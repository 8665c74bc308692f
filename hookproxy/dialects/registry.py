"""The registry of dialects. A dialect is imported when it is first used: all of them take 10 ms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from .dialect import Dialect
from .index import NAMES

_EDITION: Final = "@current"


class _Registry(Mapping[str, Dialect]):
    """The dialects by name: `DIALECT` of a module, and `CURRENT` for its edition NAME@current."""

    def __getitem__(self, name: str) -> Dialect:
        """Raises KeyError."""
        if name not in NAMES:
            raise KeyError(name)
        dialect = getattr(import_module(module_name(name)), "CURRENT" if name.endswith(_EDITION) else "DIALECT")
        assert isinstance(dialect, Dialect)
        return dialect

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)

    def __contains__(self, name: object) -> bool:
        return name in NAMES


def module_name(name: str) -> str:
    """The module or package of a dialect: the dialect's name with `_` for `-`."""
    return f"{__package__}.{name.removesuffix(_EDITION).replace('-', '_')}"


DIALECTS: Final[Mapping[str, Dialect]] = _Registry()

INTERCEPTORS: Final = "interceptors"
"""The standard whose hosts start no hooks: they ask a server that offers all of a file's."""

STANDARDS: Final = {"agent-hooks": "AGENT_HOOKS", INTERCEPTORS: "INTERCEPTORS"}
"""Standards that hooks are written for, each with the variable of its module: hookproxy.toml has such hooks, so they
are not dialects, whose hook files are found and recognised."""


def hook_system(name: str) -> Dialect:
    """The dialect or the standard of this name. Raises KeyError."""
    if name not in STANDARDS:
        return DIALECTS[name]
    dialect = getattr(import_module(module_name(name)), STANDARDS[name])
    assert isinstance(dialect, Dialect)
    return dialect
