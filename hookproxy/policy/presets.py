"""Presets of widely used servers: Claude Code's names for their tools. `presets.toml` has them.

A preset also lists the tools without an alias: hooks for Read or Bash do not run for them (law 4).

Reading the whole file takes 7 ms, and a run needs one preset or none. So the text is searched for the words that may
identify a server, and only the tables that have them are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..model.aliases import Alias, with_command_line
from ..model.late_pattern import late_pattern


class SandboxProfile(Struct, frozen=True, forbid_unknown_fields=True):
    """What a server needs from its sandbox beyond the default: the key `sandbox`, whose head says what each means."""

    folders: Literal["", "read", "write"] = ""
    options: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    env: dict[str, str] = {}


class Preset(Struct, frozen=True):
    """One server's tools: a table of `presets.toml`, which says what each key means."""

    server: str
    tools: tuple[Alias, ...]
    """One for each tool of `aliases`."""
    others: tuple[str, ...]
    notes: tuple[str, ...]
    packages: tuple[str, ...]
    alternatives: tuple[Alias, ...]
    server_names: tuple[str, ...]
    sandbox: SandboxProfile | None = None

    def aliases_of(self, tool: str) -> tuple[Alias, ...] | None:
        """The tool's aliases; a list of edits is both `MultiEdit` and `Edit`. Empty: it has none; None: not known."""
        aliases = [alias for alias in (*self.alternatives, *self.tools) if alias.tool == tool]
        aliases += [replace(alias, name="Edit") for alias in aliases if alias.name == "MultiEdit"]
        return tuple(aliases) if aliases or tool in self.others else None


class _Entry(Struct, frozen=True, forbid_unknown_fields=True, rename={"name": "as"}):
    tools: tuple[str, ...]
    name: str = ""
    arguments: dict[str, str] = {}
    needed: frozenset[str] = frozenset()


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    server: str
    packages: tuple[str, ...]
    server_names: tuple[str, ...] = ()
    aliases: tuple[_Entry, ...] = ()
    alternatives: tuple[_Entry, ...] = ()
    others: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    sandbox: SandboxProfile | None = None


def read_preset(table: str) -> Preset:
    """Read one table of `presets.toml`, without its name. Raises msgspec.DecodeError."""
    read = msgspec.toml.decode(table, type=_Table)
    aliases, alternatives = tuple(_aliases(read.aliases)), tuple(_aliases(read.alternatives))
    return Preset(
        read.server, aliases, read.others, read.notes, read.packages, alternatives, read.server_names, read.sandbox
    )


def _aliases(entries: Iterable[_Entry]) -> Iterator[Alias]:
    for entry in entries:
        edits = entry.arguments.get("edits", "edits") if entry.name == "MultiEdit" else ""
        for tool in entry.tools:
            yield Alias(tool, entry.name, entry.arguments, edits=edits, needed=entry.needed)


class _Presets(Mapping[str, Preset]):
    """The presets by their names, each read when it is first asked for."""

    def __getitem__(self, name: str) -> Preset:
        return _preset(name)

    def __iter__(self) -> Iterator[str]:
        return iter(tables())

    def __len__(self) -> int:
        return len(tables())

    def naming(self, word: str) -> Iterator[tuple[str, Preset]]:
        """Yield those in which this word stands in double quotes, as all names do, with their own names."""
        quoted = f'"{word}"'
        return ((name, self[name]) for name, table in tables().items() if quoted in table)


PRESETS: Final = _Presets()
"""The presets, by the value of the key `preset`."""

_FILE: Final = os.path.join(os.path.dirname(__file__), "presets.toml")
_HEADER: Final = late_pattern(r"^\[([a-z0-9-]+)\]$", re.MULTILINE)


def read_file() -> str:
    """Return the text of `presets.toml`."""
    with open(_FILE, encoding="utf-8") as file:
        return file.read()


@cache
def tables() -> Mapping[str, str]:
    """The text of each table by its name."""
    _, *parts = _HEADER.split(read_file())
    return dict(zip(parts[::2], parts[1::2], strict=True))


@cache
def _preset(name: str) -> Preset:
    return read_preset(tables()[name])


def preset_aliases(preset: str, tool: str, arguments: Collection[str] | None = None) -> tuple[Alias, ...] | None:
    """Return the aliases that a recognised preset has for a tool, for `familiar_names.aliases_for_call`.

    As there, a list of edits is both `MultiEdit` and `Edit`. Empty: the preset knows the tool, and it has no familiar
    name. None: the preset does not know the tool, or there is no such preset. With the listed arguments of the tool,
    what does not fit them is left out: the server may be another version than the preset.
    """
    known = PRESETS.get(preset)
    aliases = known.aliases_of(tool) if known is not None else None
    return None if aliases is None else tuple(_automatic(alias, preset, arguments) for alias in aliases if alias.name)


def names_in_any_preset(tool: str) -> frozenset[str]:
    """The familiar names that a tool of this name has on some server with a preset."""
    aliases = (alias for _, preset in PRESETS.naming(tool) for alias in preset.aliases_of(tool) or ())
    return frozenset(alias.name for alias in aliases if alias.name)


def _automatic(alias: Alias, preset: str, arguments: Collection[str] | None) -> Alias:
    renamed = alias.arguments
    if arguments is not None:
        renamed = {
            known: own
            for known, own in renamed.items()
            if own in arguments and (known not in arguments or own in alias.needed)
        }
    return with_command_line(replace(alias, arguments=renamed, preset=preset, automatic=True), arguments)


# --- which preset is for a server ---

_RUNNERS: Final = frozenset(
    "npx npm bunx bun pnpm yarn node deno uv uvx pipx python python3 py docker podman env sudo cmd sh bash".split()  # noqa: SIM905
)
"""Programs that start another one, which their arguments name."""
_VERSION: Final = late_pattern(r"(?<=.)@[^/@]*$|[=<>~!\[;].*|(?<=.):[^/:]+$")
_SCRIPT: Final = late_pattern(r"\.(py|pyz|[cm]?[jt]s|exe|cmd|bat|ps1|sh)$", re.IGNORECASE)
_INSTALLED: Final = late_pattern(r".*/node_modules/((?:@[^/]+/)?[^/]+)/")


def preset_for(command: Sequence[str], server_name: str) -> str:
    """The name of the preset for a server with this command line or `serverInfo.name`; empty: none.

    The command line counts before what the server says of itself. Of several words that identify a server the first
    one counts: what follows is its own arguments.
    """
    for word in _identifying(command):
        for name, preset in PRESETS.naming(word):
            if word in preset.packages:
                return name
    return next((name for name, preset in PRESETS.naming(server_name) if server_name in preset.server_names), "")


def _identifying(command: Sequence[str]) -> Iterator[str]:
    """The words of a command line that may say which server it starts: of files only the first, which is started."""
    if not command:
        return
    yield _program(command[0])
    if _program(command[0]) not in _RUNNERS:
        return
    started = False
    for word in command[1:]:
        yield _VERSION.sub("", word)
        is_file = _SCRIPT.search(word) is not None or (word[:1] not in ("-", "@") and ("/" in word or "\\" in word))
        if is_file and not started:
            started = True
            installed = _INSTALLED.match(word.replace("\\", "/"))
            yield installed[1] if installed else _program(word)


def _program(word: str) -> str:
    """The name of a program without its folder and ending."""
    return _SCRIPT.sub("", word.replace("\\", "/").rpartition("/")[2])
