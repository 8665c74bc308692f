"""The calls of one tool by how they were decided, and the subjects that they are about. Pure.

How it works: `SortedCalls` puts each call into one of three tables: allowed, asked and denied. What was both allowed
and denied is asked about. `Subjects` finds the arguments that say what a call is about (`kind` and `keys`), and reads
the subject of each call from them: a path, a URI, a command line, a host or a text. Rules are about the parts of a
subject, such as folders; a subject that was denied bars the places around it (`bar`), so that no allow rule covers it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from ..jsonrpc import raw_json
from ..policy import matchers, methods
from ..policy.rules import parsed
from . import commands, places
from .bars import Bars, PassedCommands, programs
from .generalise import Node, Parts
from .kinds import ALIKE, KINDS, PARTS, Kind, mostly
from .observations import Outcome, Seen, Tool, texts_of

LONGEST_SUBJECT: Final = 4096
"""Characters of a path, a line or an address from which something is learned: no system has a longer path."""

PASSES: Final = (Outcome.ALLOWED,)
ASKS: Final = (Outcome.APPROVED, Outcome.DECLINED, Outcome.ASKED)


class SortedCalls:
    """The calls of a tool by how they were decided, each in one of the tables."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self.allowed: dict[bytes, int] = {}
        self.asked: dict[bytes, int] = {}
        self.denied: dict[bytes, int] = {}
        for arguments, seen in tool.calls.items():
            self._sort(arguments, seen)
        self.unknown = (tool.digests, tool.unread, tool.beyond)
        """Calls whose arguments are not known: only the name of the tool is."""

    def _sort(self, arguments: bytes, seen: Seen) -> None:
        asked, denied, allowed = seen.count(*ASKS), seen.count(Outcome.DENIED), seen.count(*PASSES)
        if asked or (denied and allowed):
            self.asked[arguments] = asked + denied + allowed
        elif denied:
            self.denied[arguments] = denied
        else:
            self.allowed[arguments] = allowed

    def unknown_count(self, *outcomes: Outcome) -> int:
        """How many of those calls had one of these outcomes."""
        return sum(seen.count(*outcomes) for seen in self.unknown)

    @property
    def declined(self) -> bool:
        """People were asked about calls of it, and nobody has approved one."""
        asked = [*(self.tool.calls[arguments] for arguments in self.asked), *self.unknown]
        return (
            any(seen.count(Outcome.DECLINED) for seen in asked)
            and not any(seen.count(Outcome.APPROVED, Outcome.ASKED, Outcome.ALLOWED) for seen in asked)
        )  # fmt: skip


class Subjects:
    """What the calls of one tool are about. It owns what is known of the tool's arguments."""

    def __init__(self, tool: Tool, name: str, calls: SortedCalls) -> None:
        """`name` is the tool's in rules."""
        self._tool = tool
        self._name = name
        self._calls = calls
        self._texts = {arguments: dict(texts_of(arguments)) for arguments in tool.calls}
        self.kind, self.keys = self._kind_and_keys()

    def _kind_and_keys(self) -> tuple[Kind, tuple[str, ...]]:
        """What the calls are about, and in which arguments that is.

        The name of an argument says so first: values alone could be chosen so that the tool is taken for another kind,
        and then a rule would be about its name alone.
        """
        name = self._tool.name
        if methods.is_method(name):
            if name == "prompts/get" and all(texts.keys() == {"name"} for texts in self._texts.values()):
                return Kind.TEXT, ("name",)
            return (Kind.URI, ("uri",)) if methods.has_uri(name) else (Kind.NAME, ())
        keys: dict[str, list[str]] = {}
        for texts in self._texts.values():
            for key, text in texts.items():
                if not matchers.is_written(key):
                    keys.setdefault(key, []).append(text)
        for kind, is_named, is_alike in KINDS:
            regular = [
                key for key, texts in keys.items() if mostly(texts, is_alike) and len(texts) >= ALIKE * len(self._texts)
            ]
            about = tuple(key for key in keys if is_named(key) or key in regular)
            if about:
                return kind, about
        alone = len(keys) == 1 and all(len(texts) == 1 for texts in self._texts.values())
        return (Kind.TEXT, tuple(keys)) if alone else (Kind.NAME, ())

    def can_be_covered(self) -> bool:
        """True if a rule about what it is about covers some call that passed: not if each has another text or list.

        One such call is enough: others cannot make of a rule about a folder one about the whole tool.
        """
        if self.kind is Kind.TEXT and sum(map(bool, (self._calls.allowed, self._calls.asked, self._calls.denied))) < 2:
            return False  # nothing says that the text matters
        return any(map(self._exactly_covered, self.passing()))

    def _exactly_covered(self, arguments: bytes) -> bool:
        subjects = self.of_call(arguments)
        if not subjects:
            return False
        if len(subjects) > 1:
            common = self.common(subjects)
            if common is None:
                return False
            exact = self.text(common, whole=True)
        else:
            exact = f"domain:{subjects[0]}" if self.kind is Kind.ADDRESS else subjects[0]
        return self._covers(f"{self.argument}{exact}", arguments)

    def _spelled(self) -> str:
        """The tool's name by which the rules know it."""
        return next(name for name in self._tool.names if parsed(self._name).names_tool(name))

    @cached_property
    def argument(self) -> str:
        """The name of the argument in allow rules, if calls have texts beside it that only are written."""
        if self.kind not in (Kind.PATH, Kind.ADDRESS) or len(self.keys) != 1:
            return ""
        others = any(matchers.is_written(key) for arguments in self.passing() for key in _members(arguments))
        named = f"{self.keys[0]}:"
        return named if others and matchers.ARGUMENT_OF_PLACE.match(f"{named}/x") else ""

    def passing(self) -> Iterable[bytes]:
        """The arguments of calls that passed, or might have passed with a person."""
        return (*self._calls.allowed, *self._calls.asked)

    def of_call(self, arguments: bytes) -> list[str]:
        """What one call is about: most are about one thing."""
        about = [text for text in self.texts_of_call(arguments) if len(text) <= LONGEST_SUBJECT]
        if self.kind is not Kind.ADDRESS:
            return about
        passed = arguments in self._calls.allowed
        return [host for text in about if (host := places.host_of(text) if passed else self._barred_host(text))]

    def _barred_host(self, address: str) -> str:
        """The host of an address that was denied, or asked about, however it is spelled."""
        return places.host_of(address) if self._says_nothing(address) else places.loose_host_of(address)

    def texts_of_call(self, arguments: bytes) -> list[str]:
        """The texts that say what one call is about, as they were sent."""
        texts = self._texts[arguments]
        return [text for key in self.keys if (text := texts.get(key)) is not None]

    def of(self, calls: Mapping[bytes, int]) -> dict[str, int]:
        """What the calls are about, with how often."""
        about: dict[str, int] = {}
        for arguments, count in calls.items():
            for subject in self.of_call(arguments):
                about[subject] = about.get(subject, 0) + count
        return about

    def of_denied(self, passed: Iterable[str], explained: Collection[str]) -> dict[str, int]:
        """As `of`, for denied calls with a text whose denial is not explained. Of several subjects of one call, the one
        that is farthest from all that passed counts as the reason: to copy a file from a good folder to a bad one says
        nothing about the good one.
        """
        begun = {parts[:length] for text in passed if (parts := self.parts(text)) for length in range(len(parts) + 1)}

        def nearness(subject: str) -> int:
            parts = self.parts(subject)
            return (
                max((length for length in range(len(parts) + 1) if parts[:length] in begun), default=0) if parts else 0
            )

        about: dict[str, int] = {}
        for arguments, count in self._calls.denied.items():
            unexplained = not explained or any(text not in explained for text in self.texts_of_call(arguments))
            if unexplained and (subjects := self.of_call(arguments)):
                subject = min(subjects, key=nearness)
                about[subject] = about.get(subject, 0) + count
        return about

    def common(self, subjects: Sequence[str]) -> Parts | None:
        """The folder in which all of these are; None: there is none that may be opened."""
        parts = [self.parts(subject) for subject in subjects]
        if self.kind not in (Kind.PATH, Kind.URI) or None in parts:
            return None
        common = tuple(_common_beginning([known for known in parts if known is not None]))
        return common if places.children_needed(common, Node()) == places.FEWEST else None

    def parts(self, subject: str) -> Parts | None:
        """The parts of what is to be refused or asked about, or bars its surroundings."""
        return commands.loose_line_parts(subject) if self.kind is Kind.COMMAND else PARTS[self.kind](subject)

    def bars(self, explained: Collection[str]) -> Bars:
        """The calls that were denied, or asked about, and bar what is around them, but for subjects whose denial has a
        known reason. What has parts is left out: it bars by its parts.
        """
        bars = Bars(self._name, self._tool.names)
        for arguments in (*self._calls.denied, *self._calls.asked):
            for key in self.keys:
                subject = self._texts[arguments].get(key)
                if subject is None or subject in explained:
                    continue
                says_nothing = self._says_nothing(subject)
                if self.kind is Kind.COMMAND:
                    bars.add(arguments, self._passed_commands.barred_programs(subject, says_nothing=says_nothing))
                elif not says_nothing and self.bar(subject) is None:
                    bars.add(raw_json.encode({key: subject}))
        return bars

    def bar(self, subject: str) -> Parts | None:
        """Where a subject that was denied, or asked about, bars its surroundings, also if it is spelled as none that
        passes. None: it has no parts, or says nothing about its parts.
        """
        parts = self.parts(subject)
        if parts is not None or self.kind not in (Kind.PATH, Kind.URI) or self._says_nothing(subject):
            return parts
        return self.parts(places.resolved(subject))

    @cached_property
    def _passed_commands(self) -> PassedCommands:
        return PassedCommands(parts for subject in self.of(self._calls.allowed) if (parts := self.parts(subject)))

    def _says_nothing(self, subject: str) -> bool:
        """True if a call met the default whatever the rules say: no allow rule covers what is spelled like this."""
        if subject not in self._met_by_default:
            return False
        if self.kind is Kind.ADDRESS:
            texts = [f"domain:{places.loose_host_of(subject)}"]
        elif self.kind is Kind.COMMAND:
            texts = [f"{program} *" for program in programs(subject)]
        elif self.kind is Kind.TEXT or (parts := self.parts(places.resolved(subject))) is None:
            texts = [subject]
        else:
            texts = [self.text(parts[:-1], whole=True)] if len(parts) > 1 else []
        return not any(self._covers(text, arguments) for text in texts for arguments in self._met_by_default[subject])

    def _covers(self, text: str, arguments: bytes) -> bool:
        """True if an allow rule with this text covers a call."""
        try:
            return matchers.allow_rule(f"{self._name}({text})")(self._spelled(), arguments)
        except ValueError:
            return False

    @cached_property
    def _met_by_default(self) -> dict[str, list[bytes]]:
        """The subjects that only ever met the default, with their calls."""
        met: dict[str, list[bytes]] = {}
        others: set[str] = set()
        for arguments in (*self._calls.denied, *self._calls.asked):
            seen = self._tool.calls[arguments]
            for subject in self.texts_of_call(arguments):
                if seen.by_default == seen.count(Outcome.DENIED, *ASKS):
                    met.setdefault(subject, []).append(arguments)
                else:
                    others.add(subject)
        return {subject: calls for subject, calls in met.items() if subject not in others}

    def text(self, parts: Parts, *, whole: bool) -> str:
        """The text of a rule about these parts, or about everything that begins with them."""
        if self.kind in (Kind.COMMAND, Kind.TEXT):
            return commands.line_text(parts, whole)
        return places.folder_text(parts) if whole else places.place_text(parts)

    def opens(self, parts: Parts) -> str:
        """What a rule about everything that begins with these parts lets pass, in words."""
        if self.kind is Kind.COMMAND:
            return f"any arguments of {' '.join(parts)}, and any files that they name"
        if self.kind is Kind.TEXT:
            return "any text that begins like this"
        return "everything below, seen or not"


def _common_beginning(all_parts: Sequence[Parts]) -> Parts:
    """The parts with which all begin, at most those of a folder: without the last one of each."""
    first = all_parts[0]
    length = 0
    while length < min(map(len, all_parts)) - 1 and all(parts[length] == first[length] for parts in all_parts):
        length += 1
    return first[:length]


def _members(arguments: bytes) -> Iterable[str]:
    return raw_json.fields(arguments)
