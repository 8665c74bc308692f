"""Finds hook files from which the named system reads no hook although they hold some: nothing would guard (law 3).

A settings file without hooks is not such a file, nor is one whose hooks are switched off or cannot fire behind MCP.
What a file holds is judged by what looks like a hook in any system: an event's name, with a command below or beside it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from ..dialects.dialect import Dialect, HookFile, HookList
from ..dialects.registry import DIALECTS
from ..dialects.shared.hook_file import (
    CANNOT_FIRE,
    LEFT_OUT,
    NOT_AN_EVENT,
    SWITCHED_OFF,
    is_comment,
    read_document,
    suggestion,
)
from ..model.errors import ConfigError
from ..model.late_pattern import late_pattern

_SIMILAR: Final = 0.8  # of a key and `hooks`: `hook` and `Hooks`
_MOST_LEVELS: Final = 12  # of objects and lists in which hooks are looked for: hook files have six

_RESTING: Final = (CANNOT_FIRE, SWITCHED_OFF, "is not enabled", "not run", "run behind MCP", "the agent's turn")
"""What sentences say about hooks that the system reads, and that cannot run here."""

_COMMANDS: Final = frozenset(
    ("command", "cmd", "bash", "powershell", "shell", "run", "exec", "script", "argv", "url", "prompt", "action",
     "handler", "program", "runCommand", "server")
)  # fmt: skip
"""Keys of an entry that say what runs."""
_EVENT_KEYS: Final = frozenset(("event", "events", "trigger", "type", "on", "when", "hook"))
"""Keys of an entry that name its event."""
_OTHER_TABLES: Final = frozenset(
    ("mcpServers", "mcp_servers", "mcp", "lsp", "servers", "statusLine", "permissions", "env", "toolsets", "scripts")
)
"""Tables of settings files that have commands, but no hooks."""

_EVENT: Final = late_pattern(
    r"(?:pre|post|before|after|on)\w*(?:tool|call|command|shell|exec|mcp|read|write|edit|file|code|invocation|model|llm"
    r"|agent|turn|session|prompt|compact|commit|push|request|response|use)\w*"
    r"|(?:tool|agent|session)(?:call|result|start|end|settled|use|execution)\w*"
)
"""The names of events in systems that are not known here, in lower case and without signs."""
_BEFORE_CALL: Final = late_pattern(
    r"(?:pre|before)\w*(?:tool|call|command|shell|exec|mcp|read|write|edit|file|code)|permission\w*request|toolcall"
)

_UNKNOWN: Final = "hooks"
_FOLDERS: Final = {".amp": "Amp", ".pi": "Pi"}
"""Where other systems, of which there is no dialect, have their hook files in a project."""


def unread_hooks(dialect: Dialect, file: HookFile, found: HookList) -> ConfigError | None:
    """The error about a file whose hooks the dialect has not read. `found` is what it has read."""
    if found.hooks:
        return None
    sentences = (*found.notes, *found.remarks)
    rests = any(words in sentence for sentence in sentences for words in _RESTING)
    left_out = [note for note in found.notes if LEFT_OUT in note and not any(words in note for words in _RESTING)]
    members = _members(file)
    looks_like = list(_find_hooks(members))
    guards = [place for place in looks_like if _BEFORE_CALL.search(_folded(place))]
    unknown = [note for note in found.notes if NOT_AN_EVENT in note]
    lost = [note for note in (*left_out, *unknown) if _BEFORE_CALL.search(_folded(_place(note, file.path)))]
    if rests and not (lost and guards):
        return None
    wrong = _misspelt_hooks(dialect, members)
    if not left_out and not looks_like and not wrong:
        return None
    owner = _owner(file, members)
    if dropped := (*left_out, *lost, *unknown):
        what = dropped[0].removeprefix(f"{file.path}: ").removeprefix(file.path).strip()
        also = "" if owner == _UNKNOWN or dialect.recognises(members) else f"; the file looks like {owner}"
        where = _with_line(file, _place(dropped[0], file.path))
        return ConfigError(
            where, f"{dialect.name} can read none of its hooks: {what}{also}", _hint(dialect, file, members)
        )
    if wrong:
        what = f"{dialect.name} reads no hooks from this file: {wrong!r} is not read"
        return ConfigError(_with_line(file, wrong), what, f'write "hooks" for {wrong!r}')
    where = looks_like[0] if len(looks_like) == 1 else f"{looks_like[0]} and {len(looks_like) - 1} more"
    message = f"{dialect.name} reads no hooks from this file, which looks like {owner} ({where})"
    return ConfigError(file.path, message, _hint(dialect, file, members))


def problem_as(dialect: Dialect, file: HookFile) -> ConfigError | None:
    """Why the file is none of this dialect, in whose folder it is; None: nothing is wrong with it."""
    try:
        return unread_hooks(dialect, file, dialect.read_hook_file(file))
    except ConfigError as error:
        return error


def correction(dialect: Dialect, file: HookFile) -> str:
    """What to correct in a file of this dialect that has the format of another one; empty: that is not known."""
    if (problem := problem_as(dialect, file)) is None:
        return ""
    what = re.sub(rf"^{re.escape(file.path)}(?::\d+)?:? ?", "", problem.message).partition("; the file looks like")[0]
    what = what.removeprefix(f"{dialect.name} can read none of its hooks: ")
    repair = f": {problem.hint}" if problem.hint.startswith("write ") else ""
    return f"if it is of {dialect.name}, correct this: {what}{repair}"


def unrecognised(file: HookFile, members: Mapping[str, object]) -> ConfigError | None:
    """The error about a file that holds hooks, and that no dialect recognises; None: it holds none."""
    where = next(_find_hooks(members), "")
    if not where:
        return None
    message = f"no dialect recognises this file, which looks like {_owner(file, members)} ({where})"
    return ConfigError(file.path, message, _hint(None, file, members))


def with_owner(error: ConfigError, dialect: Dialect, file: HookFile) -> ConfigError:
    """The dialect's error about a file, which also says whose hooks the file looks like, if not the dialect's own."""
    members, is_foreign = _members(file), os.path.basename(os.path.dirname(file.path)) in _FOLDERS
    recognises = dialect.recognises_at_home or dialect.recognises
    if not is_foreign and (dialect.recognises(members) or recognises(members)):
        return error
    owner = _owner(file, members) if next(_find_hooks(members), "") else ""
    if owner in ("", _UNKNOWN):
        return error
    where, _, what = error.message.partition(": ")
    return ConfigError(where, f"{what}; the file looks like {owner}", error.hint)


def _misspelt_hooks(dialect: Dialect, members: Mapping[str, object]) -> str:
    """The member that is meant to be `hooks`: it has events of this system, or nothing yet; empty: there is none."""
    events = dialect.events.keys() | dialect.unavailable.keys()
    similar = (name for name in members if suggestion(name, ("hooks",), _SIMILAR) and "hooks" not in members)
    tables = ((name, table) for name in similar if isinstance(table := members[name], dict))
    return next((name for name, table in tables if not table or events & table.keys()), "")


def _with_line(file: HookFile, key: str) -> str:
    """The path of the file, with the line of a key in it if that can be found."""
    from ..jsonrpc import locate  # only for errors

    try:
        found = locate.read(file.path, file.text).find(key)
    except ValueError:
        return file.path
    return f"{file.path}:{found.line}" if found is not None else file.path


def _place(note: str, path: str) -> str:
    """The key path that a note begins with."""
    return note.removeprefix(f"{path}: ").partition(" ")[0]


def _members(file: HookFile) -> Mapping[str, object]:
    try:
        return read_document(file.path, file.text, comments=True).members if file.text else {}
    except ConfigError:  # the dialect has another format
        return {}


def _owner(file: HookFile, members: Mapping[str, object]) -> str:
    """Whose hooks the file holds, by its folder or by its shape."""
    folder = os.path.basename(os.path.dirname(file.path))
    owner = _FOLDERS.get(folder) or _owner_of_shape(members)
    if not owner:
        owner = " or ".join(
            name for name, dialect in DIALECTS.items() if "@" not in name and dialect.recognises(members)
        )
    return f"hooks of {owner}" if owner else _UNKNOWN


def _owner_of_shape(members: Mapping[str, object]) -> str:
    """The system, without a dialect here, that has files of this shape; empty: none is known."""
    hooks = members.get("hooks")
    is_pi = isinstance(hooks, list) and any(isinstance(entry, dict) and "id" in entry for entry in hooks)
    return "Pi" if is_pi else ""


def _hint(dialect: Dialect | None, file: HookFile, members: Mapping[str, object]) -> str:
    """What to do about the file: the dialects that read hooks from it, or none."""
    foreign = os.path.basename(os.path.dirname(file.path)) in _FOLDERS or _owner_of_shape(members)
    others = [] if foreign else [name for name in DIALECTS if DIALECTS[name] is not dialect and _reads(name, file)]
    own = dialect.name.partition("@")[0] if dialect else ""
    others = [name for name in others if name.partition("@")[0] == own] or [name for name in others if "@" not in name]
    if others:
        return f"if it is a hook file of {' or '.join(others)}, name that: --hooks {others[0]}={file.path}"
    if foreign or dialect is None:
        known = ", ".join(name for name in DIALECTS if "@" not in name)
        return f"no dialect reads this system's files: leave it out, or write its guards for one of {known}"
    return f"correct it, or leave the file out if it is of another system than {dialect.name}"


def _reads(name: str, file: HookFile) -> bool:
    dialect = DIALECTS[name]
    if dialect.executables or not file.path.endswith(dialect.suffixes):
        return False
    try:
        return bool(dialect.read_hook_file(HookFile(file.path, file.text, file.project_dir)).hooks)
    except ConfigError:
        return False


# --- what looks like a hook ---


def _find_hooks(value: object, place: str = "", levels: int = _MOST_LEVELS) -> Iterator[str]:
    """The places of what looks like hooks."""
    if not levels:
        return
    if isinstance(value, list):
        for at, item in enumerate(value):
            yield from _find_hooks(item, f"{place}[{at}]", levels - 1)
    elif isinstance(value, dict) and _is_entry(value):
        yield place or "the whole file"
    elif isinstance(value, dict):
        for name, member in value.items():
            if not is_comment(str(name)) and name not in _OTHER_TABLES:
                yield from _find_below(str(name), member, f"{place}.{name}" if place else str(name), levels)


def _find_below(name: str, member: object, place: str, levels: int) -> Iterator[str]:
    has_command = _has_command(member, levels)
    if has_command and _is_event(name):
        yield place
        return
    inside = list(_find_hooks(member, place, levels - 1))
    if not inside and _folded(name).endswith(("hook", "hooks")) and has_command and not isinstance(member, str):
        inside = [place]
    yield from inside


def _is_entry(value: Mapping[str, object]) -> bool:
    """Whether an object names its event, and says what runs."""
    named = [value[key] for key in _EVENT_KEYS & value.keys()]
    named += [name["type"] for name in named if isinstance(name, dict) and "type" in name]
    return any(map(_is_event, named)) and _has_command(value, 3)


def _has_command(value: object, levels: int) -> bool:
    """Whether something runs: a command line, alone or in a list, or an entry with one."""
    if isinstance(value, str):
        return bool(value.strip())
    if not levels:
        return False
    if isinstance(value, list):
        return any(_has_command(item, levels - 1) for item in value)
    if not isinstance(value, dict):
        return False
    inside = (member for member in value.values() if isinstance(member, dict | list))
    if any(value[key] for key in _COMMANDS & value.keys()):
        return True
    return any(_has_command(member, levels - 1) for member in inside)


def _is_event(name: object) -> bool:
    if not isinstance(name, str):
        return False
    folded = _folded(name)
    return folded in _known_events() or _EVENT.fullmatch(folded) is not None


@cache
def _known_events() -> frozenset[str]:
    """The events of all dialects. Importing them all takes 10 ms: only for a file without hooks that can run."""
    return frozenset(_folded(name) for dialect in DIALECTS.values() for name in (*dialect.events, *dialect.unavailable))


def _folded(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())
