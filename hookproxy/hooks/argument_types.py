"""Refuses a call whose arguments are not of the types that the server lists, before any hook sees them (law 1).

A hook that gets a number where it expects a text crashes, and what follows depends on its configuration; an agent can
send such a call on purpose. So the arguments that a familiar name reads are checked whatever the configuration says;
with `check_types` all arguments are. What a schema leaves open fits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from ..jsonrpc import raw_json
from ..jsonrpc.schema_types import Problem, types_of
from ..model.aliases import Alias
from ..model.decision import RefusalCause, Refuse
from ..model.hooks import Tool

if TYPE_CHECKING:
    import msgspec

_READ: Final[Mapping[str, tuple[str, ...]]] = {
    "Bash": ("command",),
    "Write": ("file_path", "content"),
    "Edit": ("file_path", "old_string", "new_string", "edits"),
    "MultiEdit": ("file_path", "edits"),
    "Read": ("file_path",),
    "LS": ("path",),
    "Glob": ("pattern", "path"),
    "Grep": ("pattern", "path", "glob"),
    "WebFetch": ("url",),
    "WebSearch": ("query",),
}
"""The arguments that hooks read of Claude Code's tools, by the tools' names. Numbers and switches are left out: servers
coerce these, and models send "5" for 5."""


def refusal(alias: Alias | None, listed: Tool | None, arguments: bytes, *, check_all: bool) -> Refuse | None:
    """Return the refusal of a call with these arguments under the server's names; None: they fit, or nothing is known.

    `check_all` looks at all arguments, else those count that the familiar names of `alias` read.
    """
    names = None if check_all else _names(alias)
    if names is not None and not names:
        return None
    members = raw_json.fields(arguments)
    problem = None
    if listed is not None and listed.input_schema:
        problem = types_of(listed.input_schema).first_problem(members, names)
    elif alias is not None:
        problem = _problem_of_alias(alias, members)
    if problem is None:
        return None
    return Refuse(problem.path, _reason(problem), cause=RefusalCause.ARGUMENTS)


def _names(alias: Alias | None) -> Collection[str]:
    """The server's names of the arguments that hooks read by the familiar names of a call."""
    names: set[str] = set()
    for familiar in (alias, *alias.alternatives) if alias is not None else ():
        for known in _READ.get(familiar.name, ()):
            names.add(familiar.arguments.get(known, known))
        if familiar.parts is not None:
            names |= {*familiar.parts.commands, *(familiar.parts.words or ())}
    return names


def _problem_of_alias(alias: Alias, members: Mapping[str, msgspec.Raw]) -> Problem | None:
    """An argument that is not of the type that Claude Code's tool has.

    It counts if a preset says that it is the same tool, or if only the call shows the tool's arguments: an agent that
    lists no tools first gets nothing past hooks by that.
    """
    for familiar in (alias, *alias.alternatives):
        for known in _READ.get(familiar.name, ()) if familiar.preset or familiar.automatic else ():
            own = familiar.arguments.get(known, known)
            raw = bytes(members.get(own, b"null"))
            first = b"[" if known == "edits" else b'"'
            is_line = known == "command" and (raw[:1] == b"[" or (raw[:1] == b"{" and familiar.parts is not None))
            if raw != b"null" and raw[:1] != first and not is_line:
                return Problem(own, "a list" if known == "edits" else "a text", "something else")
    return None


def _reason(problem: Problem) -> str:
    if not problem.found:
        return f"is missing{f', and it must be {problem.wanted}' if problem.wanted else ''}"
    return f"must be {problem.wanted or 'something else'}, and it is {problem.found}"
