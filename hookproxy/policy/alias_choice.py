"""Which of a tool's aliases a call gets, by its arguments, and where that is not clear."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

from ..jsonrpc import raw_json
from ..model.aliases import Alias
from ..model.command_line import is_command, word_arguments
from .recognisers import COMMAND, CONTENT, NEW, PATH, URL
from .tool_names import TABLE, is_editor, plain, words_of

ACTIONS: Final = TABLE.arguments["action"]
_READING_ACTIONS: Final = frozenset(TABLE.arguments["reading_actions"])
_WRITING_ACTIONS: Final = frozenset(TABLE.arguments["writing_actions"])
_WRITING: Final = frozenset({"Write", "Edit", "MultiEdit"})


def action_of(aliases: Sequence[Alias], arguments: bytes) -> str | None:
    """What a call asks a tool to do that reads and writes: its `command`, `action` or `operation` in lower case.

    Empty: that is not a text. None: the call has no such argument, or the tool does not both read and write.
    """
    names = {alias.name for alias in aliases}
    if "Read" not in names or not (is_editor(words_of(aliases[0].tool)) or names & _WRITING):
        return None
    try:
        members = raw_json.fields(arguments)
        stated = [bytes(members[name]) for name in ACTIONS if name in members]
        return (raw_json.text(stated[0]) or "").lower() if stated else None
    except ValueError:
        return ""


def aliases_for_call(aliases: Sequence[Alias], keys: Container[str], action: str | None = None) -> tuple[Alias, ...]:
    """The aliases whose needed arguments the call has, else the first of all; none if there are no aliases.

    A tool keeps a familiar name for calls with other arguments: its hooks run, and see what is there. A hook for any of
    these names concerns the call. `action`, from `action_of`, says whether a call that only names a file reads it: an
    action that is known to write does not, and one that is unknown may do both.
    """
    fitting = tuple(alias for alias in aliases if all(name in keys for name in alias.needed))
    if action is None or action in _READING_ACTIONS:
        return fitting or tuple(aliases[:1])
    all_writing = tuple(alias for alias in aliases if alias.name != "Read")
    writing = tuple(alias for alias in fitting if alias.name != "Read") or all_writing
    if action in _WRITING_ACTIONS:
        return writing
    return (*writing, *(alias for alias in fitting if alias.name == "Read"))


def rival_arguments(aliases: Sequence[Alias], arguments: Iterable[str], listed: Container[str]) -> list[str]:
    """The arguments of a call that may all be the one on which an alias depends; none if it is clear which one it is.

    It is clear if `listed`, the tool's arguments in tools/list, has them. Otherwise the server may ignore one of them,
    and hooks would judge that one: an agent could add `command` to a call whose tool reads `cmd`.
    """
    by_name = spellings(arguments)
    for names in (COMMAND, PATH, CONTENT, NEW, URL):
        if by_name.keys().isdisjoint(names):
            continue
        rivals = [own for name in names for own in by_name.get(name, ())]
        concerned = any(not alias.needed.isdisjoint(rivals) for alias in aliases)
        if concerned and len(rivals) > 1 and not all(own in listed for own in rivals):
            return rivals
    return _unlisted_commands(aliases, arguments, listed)


def _unlisted_commands(aliases: Sequence[Alias], arguments: Iterable[str], listed: Container[str]) -> list[str]:
    """What a call of a listed tool that is Bash has beside its command, as if it were another one, or words of it."""
    commands = [own for alias in aliases if alias.name == "Bash" for own in alias.needed if own in listed]
    unlisted = [own for own in arguments if own not in listed]
    others = [own for own in unlisted if is_command(own) or plain(own) in COMMAND]
    others += word_arguments(unlisted)
    return [commands[0], *others] if commands and others else []


def rival_commands(aliases: Sequence[Alias], arguments: Mapping[str, str], listed: Container[str]) -> list[str]:
    """The arguments of a call that may all be run as a command; none if there is at most one.

    All are listed, so the server may run each of them, and a hook for Bash would look at one.
    """
    if not any(alias.name == "Bash" for alias in aliases):
        return []
    by_name = spellings(own for own, kind in arguments.items() if kind in ("string", "array", "object"))
    rivals = [own for name in COMMAND for own in by_name.get(name, ()) if own in listed]
    return rivals if len(rivals) > 1 else []


def spellings(arguments: Iterable[str]) -> dict[str, list[str]]:
    """The arguments by their plain names."""
    by_name: dict[str, list[str]] = {}
    for own in arguments:
        by_name.setdefault(plain(own), []).append(own)
    return by_name
