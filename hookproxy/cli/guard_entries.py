"""The guard's entries that are in a person's hook files, and what is wrong with them.

An entry is known by the command line that `guard install` writes. It is looked for in the files that hookproxy has
written, and in those of agents that are named.
"""

from __future__ import annotations

import os
import pwd
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Final

from msgspec import Struct

from ..checks.report import Finding
from ..config.load import Loaded
from ..dialects.agent_side import AgentSide, Can, agent_side, user_path
from ..guard import entries
from ..guard.client import OPEN, PLACES, SECONDS
from ..model.errors import ConfigError, UserError
from ..model.settings import ServerNamed
from ..trust.sources import state_folder
from ..wrapping import files, written
from ..wrapping.known_agents import AGENTS_BY_NAME
from ..wrapping.wrap_entry import PROGRAM

_WORD: Final = r"(?:'[^']*'|[^\s'\"\\])+"
_LINE: Final = re.compile(rf" -I -S -E (?P<rest>{_WORD} {_WORD} {_WORD} {_WORD}(?: {_WORD})*)")
"""The words of an entry's command line behind its interpreter as far as its refusal, which may be a JSON text, in any
form of file. It begins with a text: a file may be long, and anybody's."""
_ENDS_WORD: Final = frozenset(' \t\r\n"\\')
_LONGEST_INTERPRETER: Final = 4096  # characters: no system has a longer path
_MOST_LINES: Final = 1000  # of a file: an agent has some ten events


class Unjudged(Enum):
    """What becomes of an agent's calls that no guard can judge."""

    AGENT_DECIDES = auto()
    REFUSED = auto()
    MANAGED = auto()  # refused, because there is an administrator's policy


class Entry(Struct, frozen=True):
    """The entries of one agent in one file, all of which start the same client."""

    path: str
    agent: str
    interpreter: str
    client: str
    program: str
    fails_closed: bool
    """Without a guard, they refuse calls."""
    knows_refusal: bool
    """They know how their agent reads a refusal, and how long they may take."""
    count: int


def home() -> str:
    """The home folder, for a person's own hook files. Raises UserError."""
    folder = os.path.expanduser("~")
    if not os.path.isabs(folder):
        raise UserError("there is no home folder", "set HOME")
    return folder


def other_owner() -> str:
    """The account to which the home folder belongs, for root, as `sudo` may leave it; empty: our own, or not known."""
    if os.geteuid():
        return ""
    try:
        owner = os.stat(home()).st_uid
        return pwd.getpwuid(owner).pw_name if owner else ""
    except (OSError, KeyError):  # an account of another machine, as in containers
        return ""


def texts(side: AgentSide, line: str) -> Mapping[str, str]:
    """The texts of a person's own hook files with the guard's entries, by their absolute paths. Raises UserError."""
    found = {}
    moved = os.environ.get(side.user_variable, "") if side.user_variable else ""
    for path, text in entries.files(side, line).items():
        try:
            own = user_path(side, path)
        except ValueError as error:
            raise UserError(str(error), "write the entries into a project's file: --dry-run prints them") from None
        found[os.path.join(moved, own.partition("/")[2]) if os.path.isabs(moved) else os.path.join(home(), own)] = text
    return found


def paths(side: AgentSide) -> list[str]:
    """The absolute paths of a person's own hook files of this agent; none: it reads none."""
    return list(texts(side, "")) if side.user_folder is not None else []


def recorded() -> list[Entry]:
    """The entries in the files that hookproxy has written. Raises UserError."""
    state = state_folder(os.environ, os.path.expanduser("~"))
    record = written.read(state) if state else written.Written()
    return found_in(dict.fromkeys((*record.created, *record.inserted)))


def unrecorded(record: written.Written, sides: Sequence[AgentSide]) -> Iterator[UserError]:
    """The person's hook files with entries of these agents that cannot be taken out: the record does not know them."""
    agents = {side.name for side in sides}
    for path in dict.fromkeys(path for side in sides for path in paths(side)):
        known = path in record.inserted or path in record.created
        if not known and any(entry.agent in agents for entry in found_in([path])):
            why = "it has entries of the guard, and hookproxy has no record of them"
            hint = "delete the entries that name guard/client.py by hand, or put back the backup beside it"
            yield UserError(f"{path} stays: {why}", hint)


def found_in(named: Iterable[str]) -> list[Entry]:
    """The entries in these files, as far as they exist and can be read."""
    found: list[Entry] = []
    for path in named:
        try:
            found += _entries(path, files.read(path).text)
        except ConfigError:
            continue
    return found


def _entries(path: str, text: str) -> Iterator[Entry]:
    lines = [match for match in _LINE.finditer(text) if "/guard/client.py" in match["rest"]][:_MOST_LINES]
    by_line: dict[tuple[str, ...], int] = {}
    for match in lines:
        words = (*shlex.split(_last_word(text, match.start()))[-1:], *shlex.split(match["rest"]))
        by_line[words] = by_line.get(words, 0) + 1
    for (interpreter, client, agent, _socket, program, *rest), count in by_line.items():
        rest = [word for word in rest if not word.startswith(PLACES)]
        limited = rest[:1] and rest[0].startswith(SECONDS)
        refusal = rest[1:] if limited else rest
        opens = refusal[:1] == [OPEN]
        knows = bool(limited and refusal)
        yield Entry(path, agent, interpreter, client, program, bool(refusal) and not opens, knows, count)


def _last_word(text: str, end: int) -> str:
    """The word of a shell, perhaps in single quotes, that ends there."""
    at, first = end, max(0, end - _LONGEST_INTERPRETER)
    while at > first and text[at - 1] not in _ENDS_WORD:
        begun = text.rfind("'", first, at - 1) if text[at - 1] == "'" else at - 1
        if begun < 0:
            break
        at = begun
    return text[at:end]


def problems(found: Sequence[Entry], program: str) -> Iterator[Finding]:
    """What is wrong with entries: they start what is gone, or are not those that `guard install` writes now.

    `program` is the path of the hookproxy that it would write.
    """
    for entry in found:
        again = f"hookproxy guard install {entry.agent}"
        gone = [path for path in (entry.interpreter, entry.client, entry.program) if not os.path.exists(path)]
        side = agent_side(entry.agent)
        now = (os.path.realpath(entry.interpreter), entry.client, entry.program)
        if gone:
            text = f"the guard's entries start {gone[0]}, which is gone: nothing judges the own tools of {entry.agent}"
        elif now != (entries.INTERPRETER, entries.CLIENT, program):
            text = f"the guard's entries start another hookproxy, {entry.program}"
        elif not entry.knows_refusal or side is None or entry.count < expected(side, entry.path):
            text = "the guard's entries are those of an older hookproxy"
        else:
            continue
        yield Finding(entry.path, None, "", f"{text}: {again}")


class Checked(Struct, frozen=True):
    """What `check` says about the guard."""

    findings: tuple[Finding, ...] = ()
    remarks: tuple[Finding, ...] = ()


_ONE_SERVER: Final = (
    "[flow]: labels hold within one server's run, as no guard joins them: hookproxy guard install AGENT"
)


def of_agent(agent: str) -> list[Entry]:
    """The entries in the files of this agent, by its own name or that of its hook system."""
    side = _side_of(agent)
    return [] if side is None else [entry for entry in found_in(paths(side)) if entry.agent == side.name]


def checked(loaded: Loaded, agent: str | None) -> Checked:
    """The guard's entries of all agents, or of this one alone: whether they work, and what the agents cannot do."""
    side = None if agent is None else _side_of(agent)
    if agent is not None and side is None:
        return Checked()
    try:
        found = recorded() if agent is None else of_agent(agent)
        program = program_path() if found else ""
    except UserError as error:
        return Checked((Finding("", None, "", f"the guard's entries cannot be checked: {error.message}"),))
    alone = _ONE_SERVER if loaded.settings.has_flow and not found else ""
    if side is not None and not found:
        text = f"{side.name}: nothing judges its own tools; hookproxy guard install {side.name} lets the guard do so"
        return Checked(remarks=tuple(Finding("", None, "", remark) for remark in (text, alone) if remark))
    agents = list(dict.fromkeys(entry.agent for entry in found))
    remarks = [alone] if alone else []
    remarks += [_what_it_does([entry for entry in found if entry.agent == name], loaded) for name in agents]
    sides = [side for name in agents if (side := agent_side(name)) is not None]
    remarks += [sentence for side in sides for sentence in limits(side)]
    if found and loaded.settings.lock is not None:
        remarks.append("[lock] is about servers' tools: an agent's own tools describe nothing that could be recorded")
    return Checked(tuple(problems(found, program)), tuple(Finding("", None, "", text) for text in remarks))


def _side_of(agent: str) -> AgentSide | None:
    known = AGENTS_BY_NAME.get(agent)
    return agent_side(known.dialect if known is not None else agent)


def _what_it_does(found: Sequence[Entry], loaded: Loaded) -> str:
    """A sentence about the entries of one agent."""
    agent = found[0].agent
    if loaded.managed is not None and all(entry.knows_refusal for entry in found):
        unjudged = Unjudged.MANAGED
    else:
        unjudged = Unjudged.REFUSED if all(entry.fails_closed for entry in found) else Unjudged.AGENT_DECIDES
    named = ", ".join(dict.fromkeys(entry.path for entry in found))
    return f"{agent}: the guard judges its own tools, by {named}; {if_none_judges(agent, unjudged)}"


def program_path() -> str:
    """The path of the program that becomes the guard. Raises UserError."""
    beside = os.path.join(os.path.dirname(sys.executable), PROGRAM)
    if os.access(beside, os.X_OK):
        return beside
    from . import wrap

    words = wrap.own_program().start
    found = shutil.which(words[0]) if len(words) == 1 else None
    if found is None:
        raise UserError("this hookproxy has no program of its own", "install it, with pipx or uv tool install")
    return os.path.abspath(found)


def expected(side: AgentSide, path: str) -> int:
    """How many entries a file of this agent has."""
    try:
        return texts(side, " -x- ").get(path, "").count(" -x- ")
    except UserError:
        return 0


def if_none_judges(agent: str, unjudged: Unjudged) -> str:
    """What becomes of an agent's calls that no guard can judge, and the command that changes it."""
    again = f"hookproxy guard install {agent}"
    match unjudged:
        case Unjudged.MANAGED:
            return "a call that it cannot judge is refused, because there is an administrator's policy"
        case Unjudged.REFUSED:
            return f"a call that it cannot judge is refused; {again} --no-fail-closed lets {agent} decide"
        case Unjudged.AGENT_DECIDES:
            return f"a call that it cannot judge may go on, as {agent} decides; {again} --fail-closed refuses it"


def limits(side: AgentSide) -> Iterator[str]:
    """Sentences about what an agent does not let its hooks do."""
    if Can.ASK not in side.can:
        waits = "a call that a rule asks about waits on a console that is open, or is refused"
        yield f"{side.name}: its hooks cannot ask the person: {waits}"
    if side.form.server_named is not ServerNamed.FOR_CERTAIN:
        rules = "deny and ask rules for mcp__SERVER__TOOL count wherever it may be that one, allow rules do not"
        yield f"{side.name}: its hooks do not know for certain which server a tool is of: {rules}"
    if Can.REWRITE not in side.can:
        yield f"{side.name}: its hooks cannot change arguments: a call that a hook rewrites is refused"
    if not {Can.TELL_AFTER, Can.BLOCK_AFTER} & set(side.can):
        yield f"{side.name}: what hooks say about a result does not reach the model"
    if Can.REPLACE not in side.can:
        yield f"{side.name}: its hooks cannot replace a result: what a hook hides is not hidden from the model"
