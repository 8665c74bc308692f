"""What an audit shows of each tool: which calls there were, and how each was decided. Memory is bounded.

Arguments are chosen by whoever calls. So a call counts as evidence for a rule only if the policy let it pass and the
server did what was asked: what a server refused to do is no reason to allow it next time. What a person allowed is kept
apart from what passed without one. A denial counts only if a rule or a hook denied the call for what it is: a hook that
crashed, or a rate limit, says nothing about the call. What passed only because a policy is watched and not in force
(`mode = "monitor"`) counts as that policy decides: nobody learns the opposite of the policy that is being tried.

Law: of allowed calls, only the first of very many are kept. Denials are all kept, or it is said that some are not
(`Tool.overflowed`), and then no rule is learned about a part of the tool's calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final

import msgspec
from msgspec import Struct, field

from ..audit import lines
from ..audit.records import BadLine, CallRecord, Entry, joined
from ..dialects.dialect import claude_tool_name
from ..jsonrpc import normalize, raw_json
from ..policy import methods
from ..policy.matchers import is_written
from .masked import is_masked

MOST_TOOLS: Final = 2_000
"""Tools of all servers together: an agent may call tools that no server has, and the largest servers have hundreds."""

MOST_CALLS: Final = 5_000
"""Different calls of one tool that are kept. A folder, command or host of which 5,000 calls show nothing is rare."""

MOST_BYTES: Final = 32 * 1024 * 1024
"""Arguments of all kept calls together."""

LONGEST: Final = 16 * 1024
"""Bytes of the arguments of a kept call. Texts that only are written (`matchers.WRITTEN_ARGUMENTS`) are left out
before."""

LONGEST_NAME: Final = 200
"""Characters of the name of a tool of which anything is learned: the longest that providers of models accept has
128."""

_MOST_AGENTS: Final = 20  # and users, for each call: a table must be bounded, and three are shown
_LONGEST_RULE: Final = 500  # characters
_LONGEST_AGENT: Final = 60  # characters


class Outcome(Enum):
    """What a record says about a call."""

    ALLOWED = "allowed"
    APPROVED = "approved by a person"
    DECLINED = "declined by a person"
    ASKED = "asked about, without an answer"
    DENIED = "denied"


_DENIES: Final = frozenset({"", "denied", "rule"})
"""Causes of denials by a hook or a rule. Older records have none."""

_ASKED: Final = frozenset({"ask denied", "cannot ask", "not answered"})
"""Causes of refusals because nobody has answered."""

_OTHER_REFUSAL: Final = "calls refused for another reason than what they are, such as a rate limit"
_DONE: Final = frozenset({"", "ok", "pending", "sent"})
"""Results of calls that the server has carried out, or goes on with."""


class Seen(Struct):
    """All records of one call with the same arguments, or all calls of one tool whose arguments are not known."""

    counts: dict[Outcome, int] = field(default_factory=dict)
    agents: dict[str, int] = field(default_factory=dict)
    users: dict[str, int] = field(default_factory=dict)
    rules: dict[str, int] = field(default_factory=dict)
    """The permission rules that denied it, as written."""
    by_default: int = 0
    """How many records were denied, or asked about, because no rule allows the call, and for no other reason."""
    first: str = ""
    last: str = ""

    def add(self, outcome: Outcome, record: CallRecord) -> None:
        """Count one record."""
        self.counts[outcome] = self.counts.get(outcome, 0) + 1
        _count(self.agents, record.agent)
        _count(self.users, record.user)
        denial = record if record.decision == "deny" or record.monitor is None else record.monitor
        self.by_default += outcome is not Outcome.ALLOWED and _is_by_default(record)
        if outcome is Outcome.DENIED and denial.cause == "rule" and len(denial.by) <= _LONGEST_RULE:
            self.rules[denial.by] = self.rules.get(denial.by, 0) + 1
        if record.at is not None:  # others are not times, and may be anything
            self.first = min(self.first or record.time, record.time)
            self.last = max(self.last, record.time)

    def include(self, other: Seen) -> None:
        """Add all that another one has counted."""
        for table, more in ((self.agents, other.agents), (self.users, other.users)):
            for name, number in more.items():
                if name in table or len(table) < _MOST_AGENTS:
                    table[name] = table.get(name, 0) + number
        for outcome, number in other.counts.items():
            self.counts[outcome] = self.counts.get(outcome, 0) + number
        self.by_default += other.by_default
        self.first = min(filter(None, (self.first, other.first)), default="")
        self.last = max(self.last, other.last)

    def count(self, *outcomes: Outcome) -> int:
        """How many records had one of these outcomes."""
        return sum(self.counts.get(outcome, 0) for outcome in outcomes)


class Tool(Struct):
    """What was seen of one tool, or of one method."""

    server: str
    """Empty for a method: rules about it hold for all servers."""
    name: str
    calls: dict[bytes, Seen] = field(default_factory=dict)
    """By their arguments: normalised JSON, without texts that only are written."""
    digests: Seen = field(default_factory=Seen)
    """Calls of which the record has no arguments."""
    unread: Seen = field(default_factory=Seen)
    """Calls whose arguments are masked, too long, or cannot be read."""
    beyond: Seen = field(default_factory=Seen)
    """Calls that are not kept, because there are too many different ones."""
    overflowed: bool = False
    """Denied calls, or calls that were asked about, were not kept."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which rules know it in a session: as `select.own_names`."""
        return (self.name,) if methods.is_method(self.name) else (self.name, claude_tool_name(self.server, self.name))


class Observations:
    """Everything that records show. Whoever reads them calls `add`."""

    def __init__(self) -> None:
        self.tools: Final[dict[tuple[str, str], Tool]] = {}
        self.records = 0
        """Records of calls that count: as evidence for a rule, or against one."""
        self.left_out: Final[dict[str, int]] = {}
        """Why others do not count, in words, and how many there are."""
        self.servers: Final[set[str]] = set()
        self.agents: Final[dict[str, int]] = {}
        self.users: Final[dict[str, int]] = {}
        self.sent = 0
        """Allowed calls that count, although it is not recorded whether the server did them."""
        self._bytes = 0

    def add_all(self, entries: Iterable[Entry]) -> None:
        """Count all records, and lines that are not records. Raises what reading them raises."""
        for entry in joined(entries):
            if isinstance(entry, BadLine):
                self.leave_out("lines that were cut" if entry.torn else "lines that are not records")
            elif isinstance(entry, CallRecord):
                self.add(entry)

    def leave_out(self, why: str) -> None:
        """Count something that says nothing."""
        self.left_out[why] = self.left_out.get(why, 0) + 1

    def add(self, record: CallRecord) -> None:
        """Count one record."""
        outcome = outcome_of(record)
        if isinstance(outcome, str):
            self.leave_out(outcome)
            return
        tool = self._tool(record)
        if tool is None:
            self.leave_out("calls with a name that is too long" if len(record.tool) > LONGEST_NAME else
                           f"calls of other than the first {MOST_TOOLS} tools")  # fmt: skip
            return
        self.records += 1
        self.sent += outcome is Outcome.ALLOWED and record.result == "sent"
        _count(self.agents, record.agent)
        _count(self.users, record.user)
        self._seen(tool, outcome, bytes(_judged(record, outcome))).add(outcome, record)

    def _tool(self, record: CallRecord) -> Tool | None:
        server = "" if methods.is_method(record.tool) else record.server
        key = (server, record.tool)
        tool = self.tools.get(key)
        if tool is None and len(self.tools) < MOST_TOOLS and len(record.tool) + len(record.server) <= 2 * LONGEST_NAME:
            tool = self.tools[key] = Tool(server, record.tool)
            self.servers.add(record.server)
        return tool

    def _seen(self, tool: Tool, outcome: Outcome, raw: bytes) -> Seen:
        """The entry of a call. Denials are kept beyond the limit of allowed calls, up to twice as many."""
        arguments = comparable(raw)
        if arguments is None:
            return tool.unread if raw else tool.digests
        seen = tool.calls.get(arguments)
        if seen is not None:
            return seen
        passes = outcome is Outcome.ALLOWED
        most_calls, most_bytes = (MOST_CALLS, MOST_BYTES) if passes else (2 * MOST_CALLS, 2 * MOST_BYTES)
        if len(tool.calls) >= most_calls or self._bytes + len(arguments) > most_bytes:
            tool.overflowed = tool.overflowed or not passes
            return tool.beyond
        self._bytes += len(arguments)
        seen = tool.calls[arguments] = Seen()
        return seen


_BY_DEFAULT: Final = re.compile(r'default = "(?:ask|deny)"')
_ASKED_BY_DEFAULT: Final = re.compile(r'the permission rule default = "ask" of .*', re.DOTALL)


def _is_by_default(record: CallRecord) -> bool:
    """True if the call was denied, or asked about, only because no rule allows it."""
    if record.monitor is not None:
        return False  # two policies: which of them is meant is not worth telling
    if record.decision == "deny":
        return record.cause == "rule" and _BY_DEFAULT.fullmatch(record.by) is not None
    return _ASKED_BY_DEFAULT.fullmatch(record.asked_by) is not None


def _judged(record: CallRecord, outcome: Outcome) -> msgspec.Raw:
    """The arguments that a rule would judge: as hooks have rewritten them, those that are only watched included. Of a
    denied call they are those that the agent has sent.
    """
    if outcome is Outcome.DENIED:
        return record.arguments
    watched = record.monitor
    if watched is not None and (watched.rewritten or watched.rewritten_sha256):
        return watched.rewritten
    return record.rewritten if record.rewritten or record.rewritten_sha256 else record.arguments


def outcome_of(record: CallRecord) -> Outcome | str:
    """What a record says about its call; or, in words, why it says nothing."""
    if not 1 <= record.v <= lines.VERSION:
        return "records of another version"
    watched = record.monitor
    if watched is not None and watched.decision == "deny" and watched.cause in _DENIES:
        return Outcome.DENIED
    in_force = _in_force(record)
    if in_force not in (Outcome.ALLOWED, Outcome.APPROVED) or watched is None:
        return in_force
    if watched.decision == "deny":
        return Outcome.ASKED if watched.cause in _ASKED else _OTHER_REFUSAL
    return Outcome.ASKED if watched.decision == "ask" and in_force is Outcome.ALLOWED else in_force


def _in_force(record: CallRecord) -> Outcome | str:
    """The same, by the policy in force alone."""
    if record.decision == "allow" and record.result in _DONE:
        return Outcome.ALLOWED
    if record.decision == "asked-allow" and record.result in _DONE:
        return Outcome.APPROVED
    if record.decision in ("allow", "asked-allow"):
        return "allowed calls that failed, were cancelled or have no response"
    if record.decision == "asked" or (record.decision in ("deny", "asked-deny") and record.cause in _ASKED):
        return Outcome.ASKED
    if record.decision == "asked-deny":
        return Outcome.DECLINED if record.cause in ("", "declined") else _OTHER_REFUSAL
    if record.decision == "deny":
        return Outcome.DENIED if record.cause in _DENIES else _OTHER_REFUSAL
    return "calls that were not decided"


_LONG: Final = 200  # bytes of a text that is only written, and is left out


def comparable(raw: bytes) -> bytes | None:
    """The arguments as they are kept; None: nothing can be learned from them.

    Without texts that are only written: `""` stands for such a text in what is tried on rules.
    """
    if not raw or len(raw) > 64 * LONGEST:
        return None
    try:
        members = {key: bytes(value) for key, value in raw_json.fields(normalize.normalize(raw)).items()}
    except (ValueError, RecursionError):
        return None
    for key, value in members.items():
        if len(value) > _LONG and value[:1] == b'"' and is_written(key):
            members[key] = b'""'
        elif is_masked(value) and not is_written(key):
            return None
    kept = raw_json.encode({key: msgspec.Raw(value) for key, value in sorted(members.items())})
    return kept if len(kept) <= LONGEST else None


def texts_of(arguments: bytes) -> Iterator[tuple[str, str]]:
    """The names and texts of arguments that are texts."""
    for key, raw in raw_json.fields(arguments).items():
        text = raw_json.text(bytes(raw))
        if text is not None:
            yield key, text


def _count(table: dict[str, int], name: str) -> None:
    name = name[:_LONGEST_AGENT]
    if name and (name in table or len(table) < _MOST_AGENTS):
        table[name] = table.get(name, 0) + 1
