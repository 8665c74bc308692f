"""Hook files of other systems: which ones a `[[use]]` table or `--hooks` means, whose they are, and what is in them.

Nothing is loaded because it lies in the working directory: a hook file is code, and must have been named.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from ..dialects.dialect import Dialect, Group, HookFile
from ..dialects.registry import DIALECTS
from ..dialects.shared.handler_types import make_warm
from ..dialects.shared.hook_file import read_document, suggestion
from ..model.errors import ConfigError, UserError
from ..model.settings import OnFailure, ToolNames
from ..trust.sources import FileContext

_PATTERN: Final = frozenset("*?[")  # what makes a path a glob pattern, unless a file is named so


class Use(Struct, frozen=True):
    """A `[[use]]` table, or what `--hooks` is short for."""

    file: str
    """A file, a folder or a pattern, as written."""
    folder: str
    """Where a relative one starts from."""
    place: str
    """Who names it, for errors."""
    dialect: Dialect | None
    """None: seen from the file's shape."""
    tool_names: ToolNames | None = None
    on_failure: OnFailure | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    """The keys that only some dialects have."""
    warmth: Mapping[str, object] = field(default_factory=dict)


Read = tuple[Group, tuple[str, ...]]
"""A hook file's hooks, and what start-up should say about it."""


def short_form(item: str, cwd: str, by: str = "--hooks") -> Use:
    """What `--hooks DIALECT=FILE` or `--hooks FILE` asks for."""
    name, equals, file = item.partition("=")
    if not equals or (name not in DIALECTS and ("/" in name or os.path.lexists(os.path.join(cwd, item)))):
        name, file = "", item  # an equals sign in the file's own name
    place = f"{by} {item}"
    if not file:
        raise UserError(f"{place}: no file is named", f"{by} DIALECT=FILE, or {by} FILE")
    return Use(file, cwd, place, dialect_named(name, place) if name else None)


def dialect_named(name: str, place: str) -> Dialect:
    """Raises ConfigError where there is none of this name."""
    if name in DIALECTS:
        return DIALECTS[name]
    hint = suggestion(name, DIALECTS) or f"known: {', '.join(DIALECTS)}"
    raise ConfigError(place, f"there is no dialect {name!r}", hint)


def read_use(use: Use, file_context: FileContext) -> Iterator[Read]:
    """The hooks of each file that is meant. Raises ConfigError."""
    for path in _files(use, file_context):
        text = file_context.text(path, use.place)
        dialect = use.dialect or _recognised(path, text)
        for option in use.options:
            if option not in dialect.options:
                raise ConfigError(
                    f"{use.place}.{option}", f"is for {_takers(option)} only, not for {dialect.name}", "leave it out"
                )
        project = _project_dir(path, dialect, file_context)
        found = dialect.read_hook_file(HookFile(path, text, project, use.options, file_context.environ))
        nothing = () if found.hooks else (f"{path}: no hook in it can fire here",)
        tool_names = use.tool_names or dialect.tool_names
        hooks = make_warm(dialect, found.hooks, use.place, use.warmth)
        yield Group(dialect, path, hooks, tool_names, use.on_failure), (*found.notes, *nothing)


def _takers(option: str) -> str:
    return ", ".join(name for name, dialect in DIALECTS.items() if option in dialect.options)


def _files(use: Use, file_context: FileContext) -> list[str]:
    """The hook files that are asked for, at least one; those of a folder or pattern by name."""
    path = file_context.find(use.file, use.folder)
    if os.path.isdir(path):
        endings = use.dialect.suffixes if use.dialect else (".json",)
        found = sorted(name for name in os.listdir(path) if name.endswith(endings) and not name.startswith("."))
        if not found:
            raise ConfigError(
                use.place, f"{path} holds no {' or '.join(endings)} file", "name a folder that holds hook files"
            )
        return [os.path.join(path, name) for name in found]
    if _PATTERN.isdisjoint(use.file) or os.path.lexists(path):
        return [path]
    pattern, root = file_context.expand(use.file), use.folder
    from glob import glob

    matches = sorted(glob(pattern, root_dir=root, recursive=True))
    if not matches:
        raise ConfigError(use.place, f"no file matches {os.path.join(root, pattern)}", "name a hook file that exists")
    return [os.path.normpath(os.path.join(root, match)) for match in matches]


def _recognised(path: str, text: str) -> Dialect:
    """The one dialect whose shape the file has. Raises ConfigError where there is none, or more than one."""
    members = read_document(path, text).members
    fitting = [dialect for dialect in DIALECTS.values() if dialect.recognises(members)]
    if len(fitting) == 1:
        return fitting[0]
    likely = fitting[0].name if fitting else "claude"
    hint = f'name its dialect: --hooks {likely}={path}, or dialect = "{likely}" in [[use]]'
    if not fitting:
        hint += f"; known: {', '.join(DIALECTS)}"
        raise ConfigError(path, "cannot tell whose hook file this is", hint)
    names = " and ".join(dialect.name for dialect in fitting)
    raise ConfigError(path, f"may be a hook file of {names}: its shape fits both", hint)


def _project_dir(path: str, dialect: Dialect, file_context: FileContext) -> str:
    """What relative commands of a hook file start from: the project it belongs to."""
    given = file_context.environ.get("CLAUDE_PROJECT_DIR")
    if given and "CLAUDE_PROJECT_DIR" in dialect.variables:
        return os.path.join(file_context.cwd, given)
    folder = os.path.dirname(path)
    for inner in dialect.folders:
        if file_context.home and os.path.realpath(folder) == os.path.realpath(os.path.join(file_context.home, inner)):
            return file_context.cwd  # the user's own hooks are for whatever project is being worked on
        if folder.endswith(f"/{inner}"):
            return folder.removesuffix(f"/{inner}") or "/"
    return folder
