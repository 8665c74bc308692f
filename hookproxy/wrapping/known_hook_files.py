"""Finds the hook files of known systems on this machine, for `setup` to propose: nothing is loaded by being found.

The places follow each system's own document, as its dialect does. A project's hook files are code of whoever made the
project: they are kept apart from the person's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from glob import escape, glob
from typing import Final

from msgspec import Struct

from ..config.hook_files import parse_option, read_use
from ..model.errors import UserError
from ..trust.sources import FileContext
from .files import read

_CLAUDE_SETTINGS: Final = ("settings.json", "settings.local.json")
"""The folder `~/.claude` with one of these is named as a whole: then its plugins that are switched on run too."""

_USER_PLACES: Final = (
    ("claude", "CLAUDE_CONFIG_DIR", "", "settings.json"),
    ("claw@current", "CLAW_CONFIG_HOME", ".claw", "settings.json"),
    ("codex", "CODEX_HOME", ".codex", "hooks.json"),
    ("codex", "CODEX_HOME", ".codex", "config.toml"),
    ("copilot@current", "COPILOT_HOME", ".copilot", "hooks/*.json"),
    ("cursor", "", ".cursor", "hooks.json"),
    ("droid", "", ".factory", "hooks.json"),
    ("droid", "", ".factory", "settings.json"),
    ("kimi", "", ".kimi-code", "config.toml"),
    ("gemini", "", ".gemini", "settings.json"),
    ("lime", "", ".lime", "settings.json"),
    ("qwen", "", ".qwen", "settings.json"),
    ("cascade", "", ".codeium/windsurf", "hooks.json"),
    ("augment", "", ".augment", "settings.json"),
    ("cline", "", "Documents/Cline", "Hooks"),
    ("cline", "", ".cline", "hooks"),
    ("crush", "", ".config/crush", "crush.json"),
    ("goose", "", ".agents/plugins", "*/hooks/hooks.json"),
    ("iflow", "", ".iflow", "settings.json"),
    ("kiro", "", ".kiro", "hooks/*.json"),
    ("kiro", "", ".kiro", "agents/*.json"),
    ("kiro", "", ".aws/amazonq", "cli-agents/*.json"),
)
"""Dialect, the variable that moves the folder, the folder in the home folder (empty: none), and the files in it."""

PROJECT_PLACES: Final = (
    ("claude", ".claude/settings.json"),
    ("claude", ".claude/settings.local.json"),
    ("claw@current", ".claw.json"),
    ("claw@current", ".claw/settings.json"),
    ("claw@current", ".claw/settings.local.json"),
    ("codex", ".codex/hooks.json"),
    ("codex", ".codex/config.toml"),
    ("copilot@current", ".github/hooks/*.json"),
    ("cursor", ".cursor/hooks.json"),
    ("droid", ".factory/hooks.json"),
    ("droid", ".factory/settings.json"),
    ("droid", ".factory/settings.local.json"),
    ("gemini", ".gemini/settings.json"),
    ("lime", ".lime/settings.local.json"),
    ("qwen", ".qwen/settings.json"),
    ("cascade", ".windsurf/hooks.json"),
    ("augment", ".augment/settings.json"),
    ("augment", ".augment/settings.local.json"),
    ("cline", ".clinerules/hooks"),
    ("cline", ".cline/hooks"),
    ("crush", "crush.json"),
    ("crush", ".crush.json"),
    ("goose", ".agents/plugins/*/hooks/hooks.json"),
    ("iflow", ".iflow/settings.json"),
    ("kiro", ".kiro/hooks/*.json"),
    ("kiro", ".kiro/hooks/*.kiro.hook"),
    ("kiro", ".kiro/agents/*.json"),
    ("kiro", ".amazonq/cli-agents/*.json"),
)
"""Dialect, and the files in the project's folder."""


_CONVERTED: Final = " hook --for "
"""What every command line has that `convert` writes."""


class FoundHookFile(Struct, frozen=True):
    """A hook file, or a folder with hook files, that exists."""

    path: str
    dialect: str
    in_project: bool
    """True if it is a file of the project in the working directory, and not the person's own."""
    hooks: int = 0
    """The number of its hooks that can run behind MCP."""
    sources: frozenset[str] = frozenset()
    """The files with these hooks."""
    notes: tuple[str, ...] = ()
    """What in it does not do what its author wrote."""
    error: UserError | None = None

    @property
    def option(self) -> str:
        """The value of `--hooks` that names it."""
        return f"{self.dialect}={self.path}"


def find(environ: Mapping[str, str], home: str, cwd: str) -> list[FoundHookFile]:
    """Every hook file with hooks that can run behind MCP, or with something to report."""
    file_context = FileContext(environ, cwd)
    found = [_read(path, dialect, in_project, file_context) for path, dialect, in_project in _paths(environ, home, cwd)]
    return [file for file in found if file.hooks or file.notes or file.error]


def starting_hookproxy(environ: Mapping[str, str], home: str, cwd: str) -> list[str]:
    """The files in these places that start `hookproxy hook`, as `convert` writes it, whoever wrote them there."""
    found = []
    for path, _dialect, _in_project in _paths(environ, home, cwd):
        names = [os.path.join(path, name) for name in sorted(os.listdir(path))] if os.path.isdir(path) else [path]
        found += [name for name in names if _starts_hookproxy(name)]
    return found


def _starts_hookproxy(path: str) -> bool:
    try:
        return "hookproxy" in (text := read(path).text) and _CONVERTED in text
    except UserError:
        return False


def _paths(environ: Mapping[str, str], home: str, cwd: str) -> Iterator[tuple[str, str, bool]]:
    """The existing files, each once, with their dialects, and whether they belong to the project."""
    places = []
    for dialect, variable, folder, files in _USER_PLACES:
        moved = environ.get(variable, "")
        if os.path.isabs(moved):
            places.append((dialect, moved, files, False))
        elif folder:
            places.append((dialect, os.path.join(home, folder), files, False))
    places += [(dialect, cwd, files, True) for dialect, files in PROJECT_PLACES]
    seen: set[str] = set()
    claude = os.path.join(home, ".claude")
    own_settings = [os.path.join(claude, name) for name in _CLAUDE_SETTINGS]
    if any(map(os.path.isfile, own_settings)) and not os.path.isabs(environ.get("CLAUDE_CONFIG_DIR", "")):
        seen.update(map(os.path.realpath, own_settings))
        yield claude, "claude", False
    for dialect, folder, files, in_project in places:
        for path in sorted(glob(os.path.join(escape(folder), files))):
            real = os.path.realpath(path)
            if real not in seen:
                seen.add(real)
                yield path, dialect, in_project


def _read(path: str, dialect: str, in_project: bool, file_context: FileContext) -> FoundHookFile:
    found = FoundHookFile(path, dialect, in_project)
    try:
        loaded = list(read_use(parse_option(found.option, file_context.cwd), file_context))
    except UserError as error:
        return FoundHookFile(path, dialect, in_project, error=error)
    return FoundHookFile(
        path,
        dialect,
        in_project,
        sum(len(one.group.hooks) for one in loaded),
        frozenset(one.group.source for one in loaded if one.group.hooks),
        tuple(note for one in loaded for note in one.notes),
    )
