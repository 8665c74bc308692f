"""The rules that the calls of one tool suggest: none of them has been tried. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import ceil, log
from typing import Final

from msgspec import Struct

from ..jsonrpc import raw_json
from ..model.settings import Settings
from ..policy import matchers, methods
from ..policy.rules import Rules, parsed
from . import commands, places
from .generalise import Node, Parts, opened
from .kinds import ALIKE, KINDS, NEEDED, PARTS, WHY_LOST, Kind, mostly, needed_to_narrow
from .masked import may_be_secret
from .observations import Outcome, Seen, Tool, texts_of
from .proposal import Learned, PermissionName

MOST_EXACT: Final = 25
"""Rules about single paths, lines or hosts of one tool, the most frequent first: a list that nobody reads opens too
much."""

MOST_DENIALS: Final = 25
"""Rules about what was denied of one tool. The default denies the rest as well; these say so, and hide nothing."""

CHANCE: Final = 0.001
"""Where calls were denied here and there, for a reason that their places do not show: how likely it may be at most that
a place that is opened was without a denial by chance alone. A tool has tens of places."""

LONGEST_SUBJECT: Final = 4096
"""Characters of a path, a line or an address from which something is learned: no system has a longer path."""

_BESIDE: Final = " (content, message and their like)"

PASSES: Final = (Outcome.ALLOWED,)
ASKS: Final = (Outcome.APPROVED, Outcome.DECLINED, Outcome.ASKED)


class SortedCalls:
    """The calls of a tool by how they were decided. Owns the sorting of one tool; `subjects` are what a kind calls
    them."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self.allowed: dict[bytes, int] = {}
        self.asked: dict[bytes, int] = {}
        self.denied: dict[bytes, int] = {}
        for arguments, seen in tool.calls.items():
            self._sort(arguments, seen)
        self.unknown = (tool.digests, tool.unread, tool.beyond)
        """Calls of which nothing but the name is known."""

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
        """People were asked about calls of it, and all of them said no, at least once."""
        seen = [*(self.tool.calls[arguments] for arguments in self.asked), *self.unknown]
        return (
            any(one.count(Outcome.DECLINED) for one in seen)
            and not any(one.count(Outcome.APPROVED, Outcome.ASKED, Outcome.ALLOWED) for one in seen)
        )  # fmt: skip


# --- the rules that one tool suggests ---


class _Denials(Struct, frozen=True):
    """What was denied, where other calls passed."""

    rules: list[str]
    """The texts of deny rules."""
    explained: set[str]
    """Subjects that one of them explains wherever they stand: they do not bar their surroundings."""
    amid: list[str]
    """Subjects that nothing explains, and that have no place of their own: the place may not have been the reason."""


class Suggestions:
    """Finds the rules that the calls of one tool suggest. It owns what is known of the tool's arguments."""

    def __init__(self, tool: Tool, name: str) -> None:
        self.tool = tool
        self.name = name
        self.calls = SortedCalls(tool)
        self._texts = {arguments: dict(texts_of(arguments)) for arguments in tool.calls}
        self._kind, self._keys = self._kind_and_keys()
        self.remarks: list[str] = []
        self.why_lost = ""
        self._fewest = 0
        """Calls that a place needs, so that none of them was denied by more than chance."""

    def rules(self) -> Iterator[Learned]:
        """Yield rules that may be good: none of them has been tried."""
        calls = self.calls
        if calls.unknown_count(*ASKS, Outcome.DENIED):  # no rule about a part of its calls can be tried on them
            self.remarks.append(f"{self.name} is learned by its name alone: {self._why_unknown()}.")
            yield from self._by_name()
        elif not calls.allowed and self.tool.digests.count(*PASSES):
            self.remarks.append(f"{self.name} is learned by its name alone: the audit has no arguments of its calls.")
            yield from self._by_name()
        elif not calls.allowed and (not calls.asked or calls.declined):
            if calls.denied or calls.asked:
                yield Learned("deny", self.name)
        elif self._kind is Kind.NAME or not self._can_be_covered():
            yield from self._by_name()
        else:
            yield from self._by_place()
        for seen, why in ((self.tool.unread, "masked, too long or not readable"), (self.tool.beyond, "too many")):
            if number := seen.count(*PASSES):
                self.remarks.append(f"{self.name}: {number} calls that passed have arguments that are {why}.")

    def _why_unknown(self) -> str:
        if self.tool.overflowed:
            return "too many different calls of it were denied, or asked about"
        return "the audit lacks the arguments of calls that were denied, or asked about"

    def _by_name(self) -> Iterator[Learned]:
        calls = self.calls
        allowed = bool(calls.allowed) or self.tool.digests.count(*PASSES) > 0
        asked = bool(calls.asked) or calls.unknown_count(*ASKS) > 0
        denied = bool(calls.denied) or calls.unknown_count(Outcome.DENIED) > 0
        if not allowed and (not asked or calls.declined):
            yield Learned("deny", self.name)
        elif asked or denied or self._kind in (Kind.ADDRESS, Kind.COMMAND):
            if allowed:
                why = (
                    "passed and others were denied, and no rule tells them apart" if denied else _WHY_ASKED[self._kind]
                )
                self.remarks.append(f"{self.name}: some calls {why}: a person is asked.")
            self.why_lost = "no rule about a part of its calls was found that is safe"
            yield Learned("ask", self.name)
        elif allowed:
            yield Learned("allow", self.name, opens="all its calls, whatever their arguments")

    # --- what its calls are about ---

    def _kind_and_keys(self) -> tuple[Kind, tuple[str, ...]]:
        """What the calls are about, and in which arguments that is.

        The name of an argument says so first: values alone could be chosen so that the tool is taken for another kind,
        and then a rule would be about its name alone.
        """
        name = self.tool.name
        if methods.is_method(name):
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
            found = tuple(key for key in keys if is_named(key) or key in regular)
            if found:
                return kind, found
        alone = len(keys) == 1 and all(len(texts) == 1 for texts in self._texts.values())
        return (Kind.TEXT, tuple(keys)) if alone else (Kind.NAME, ())

    def _can_be_covered(self) -> bool:
        """True if a rule about what it is about covers some call that passed: not if each has another text or list.

        One such call is enough: others cannot make of a rule about a folder one about the whole tool.
        """
        if self._kind is Kind.TEXT and sum(map(bool, (self.calls.allowed, self.calls.asked, self.calls.denied))) < 2:
            return False  # nothing says that the text matters
        return any(map(self._exactly_covered, self._passing()))

    def _exactly_covered(self, arguments: bytes) -> bool:
        subjects = self._subjects_of(arguments)
        if not subjects:
            return False
        if len(subjects) > 1:
            common = self._common(subjects)
            if common is None:
                return False
            exact = self._text(common, whole=True)
        else:
            exact = f"domain:{subjects[0]}" if self._kind is Kind.ADDRESS else subjects[0]
        rule = f"{self.name}({self._argument}{exact})"
        try:
            return matchers.allow_rule(rule)(self._spelled(), arguments)
        except ValueError:
            return False

    def _spelled(self) -> str:
        """The tool's name by which the rules know it."""
        return next(name for name in self.tool.names if parsed(self.name).names_tool(name))

    @cached_property
    def _argument(self) -> str:
        """The name of the argument in allow rules, if calls have texts beside it that only are written."""
        if self._kind not in (Kind.PATH, Kind.ADDRESS) or len(self._keys) != 1:
            return ""
        others = any(matchers.is_written(key) for arguments in self._passing() for key in _members(arguments))
        named = f"{self._keys[0]}:"
        return named if others and matchers.ARGUMENT_OF_PLACE.match(f"{named}/x") else ""

    def _passing(self) -> Iterable[bytes]:
        return (*self.calls.allowed, *self.calls.asked)

    # --- rules about them ---

    def _by_place(self) -> Iterator[Learned]:
        self.why_lost = WHY_LOST[self._kind]
        allowed, asked = self._subjects(self.calls.allowed), self._subjects(self.calls.asked)
        denied = self._denied_subjects((*allowed, *asked))
        known, ruled = self._known_rules()
        yield from (Learned("deny", rule) for rule in known)
        conflicts = {subject for subject in allowed if subject in denied or subject in asked}
        asked |= {subject: allowed.pop(subject) for subject in conflicts}
        counts = {subject: asked[subject] + denied.pop(subject, 0) for subject in conflicts}
        others = {**allowed, **asked}
        if self._kind is Kind.ADDRESS:
            self._fewest = _fewest_calls(sum(counts.values()), sum(allowed.values())) if conflicts else 0
            yield from self._hosts(allowed, asked, denied)
            return
        denials = self._denials({subject: denied[subject] for subject in denied if subject not in ruled}, others)
        amid = {subject: denied[subject] for subject in denials.amid} | counts
        if self._argument and any(number == 1 for number in amid.values()):
            self.remarks.append(
                f"{self.name}: calls were denied amid others that passed, perhaps for what was to be written: "
                "a person is asked."
            )
            yield Learned("ask", self.name)
            return
        if conflicts or len({parts[:-1] for subject in amid if (parts := self._parts(subject))}) > 1:
            self._fewest = _fewest_calls(sum(amid.values()), sum(allowed.values()))
        yield from (Learned("deny", f"{self.name}({text})") for text in denials.rules[:MOST_DENIALS])
        barred = [subject for subject in denied if subject not in denials.explained and subject not in ruled]
        verb: PermissionName = "deny" if self.calls.declined else "ask"
        yield from self._covering(verb, asked, [*allowed, *barred])
        if conflicts:  # the place does not decide
            allowed = {subject: number for subject, number in allowed.items() if number >= self._fewest}
        yield from self._covering("allow", allowed, [*asked, *barred])
        if len(self._keys) > 1 and not self._fewest:
            yield from self._common_folders([*asked, *barred])

    def _known_rules(self) -> tuple[list[str], set[str]]:
        """The rules that denied calls, by the audit, as rules about this tool; and the subjects of calls that one of
        them denied for a name or an option, wherever it stands (`**/.env`): those need no bar, as the reason is known.

        What hits a call that passed is not such a rule: it is about the tool by another name, or was changed.
        """
        rules: list[str] = []
        subjects: set[str] = set()
        texts = dict.fromkeys(text for arguments in self.calls.denied for text in self.tool.calls[arguments].rules)
        for text in [*texts][:MOST_DENIALS]:
            try:
                specifier = parsed(text).specifier
                rule = f"{self.name}({specifier})"
                about = Rules.of(Settings(deny=(rule,), unreadable="deny")).about(self.tool.names)
            except ValueError:
                continue
            if not specifier or may_be_secret(rule) or any(about.judge(arguments) for arguments in self._passing()):
                continue
            hit = [arguments for arguments in self.calls.denied if about.judge(arguments)]
            rules += [rule] if hit else []
            if specifier.startswith("*") or " -" in specifier:
                subjects |= {subject for arguments in hit for subject in self._subjects_of(arguments)}
        return rules, subjects

    def _subjects_of(self, arguments: bytes) -> list[str]:
        """What one call is about: most are about one thing."""
        texts = self._texts[arguments]
        found = [text for key in self._keys if (text := texts.get(key)) is not None and len(text) <= LONGEST_SUBJECT]
        return [host for text in found if (host := places.host_of(text))] if self._kind is Kind.ADDRESS else found

    def _subjects(self, calls: Mapping[bytes, int]) -> dict[str, int]:
        """What the calls are about, with how often."""
        found: dict[str, int] = {}
        for arguments, count in calls.items():
            for subject in self._subjects_of(arguments):
                found[subject] = found.get(subject, 0) + count
        return found

    def _denied_subjects(self, passed: Iterable[str]) -> dict[str, int]:
        """As `_subjects`, for denied calls. Of several things that one was about, the one that is farthest from all
        that passed is taken for the reason: to copy a file from a good folder to a bad one says nothing about the
        good one.
        """
        begun = {parts[:length] for text in passed if (parts := self._parts(text)) for length in range(len(parts) + 1)}

        def nearness(subject: str) -> int:
            parts = self._parts(subject)
            return (
                max((length for length in range(len(parts) + 1) if parts[:length] in begun), default=0) if parts else 0
            )

        found: dict[str, int] = {}
        for arguments, count in self.calls.denied.items():
            if subjects := self._subjects_of(arguments):
                subject = min(subjects, key=nearness)
                found[subject] = found.get(subject, 0) + count
        return found

    def _common(self, subjects: Sequence[str]) -> Parts | None:
        """The folder in which all of these are; None: there is none that may be opened."""
        parts = [self._parts(subject) for subject in subjects]
        if self._kind not in (Kind.PATH, Kind.URI) or None in parts:
            return None
        common = tuple(_common_beginning([one for one in parts if one is not None]))
        return common if places.children_needed(common, Node()) == places.FEWEST else None

    def _common_folders(self, barred: Sequence[str]) -> Iterator[Learned]:
        """Rules for calls that are about several things in different folders: about the folder that has them all."""
        bars = {bar[:length] for subject in barred if (bar := self._bar(subject)) for length in range(len(bar) + 1)}
        found: dict[Parts, int] = {}
        for arguments in self.calls.allowed:
            subjects = self._subjects_of(arguments)
            common = self._common(subjects) if len(subjects) > 1 else None
            if common is not None and common not in bars:
                found[common] = found.get(common, 0) + 1
        for common, number in found.items():
            if number >= places.FEWEST:
                yield Learned("allow", f"{self.name}({self._text(common, whole=True)})", self._opens(common))

    def _parts(self, subject: str) -> Parts | None:
        """The parts of what is to be refused or asked about, or bars its surroundings."""
        return commands.loose_line_parts(subject) if self._kind is Kind.COMMAND else PARTS[self._kind](subject)

    def _covering(
        self, permission: PermissionName, subjects: Mapping[str, int], barred: Sequence[str]
    ) -> Iterator[Learned]:
        """Yield rules that cover the subjects, and nothing at or below what is barred."""
        argument = self._argument if permission == "allow" else ""
        parts_of = PARTS[self._kind] if permission == "allow" else self._parts
        parts_by_subject = {subject: parts_of(subject) for subject in subjects}
        by_parts = {parts: subjects[subject] for subject, parts in parts_by_subject.items() if parts is not None}
        bars = [parts for subject in barred if (parts := self._bar(subject)) is not None]
        exact: dict[str, int] = {}
        # to ask or refuse too much opens nothing
        needed = self._needed_to_allow if permission == "allow" else needed_to_narrow
        for found in opened(by_parts, bars, needed):
            if found.whole and _can_be_exact(found.parts[-1]):
                text = self._text(found.parts, whole=True)
                opens = self._opens(found.parts) + (f", and any text that is only written{_BESIDE}" if argument else "")
                yield Learned(permission, f"{self.name}({argument}{text})", opens)
            elif not found.whole and _can_be_exact(text := self._text(found.parts, whole=False)):
                exact[text] = by_parts.get(found.parts, 0)
        others = [subject for subject, parts in parts_by_subject.items() if parts is None]
        exact |= {subject: subjects[subject] for subject in others if _can_be_exact(subject)}
        frequent = sorted(exact, key=lambda text: -exact[text])
        for text in frequent[:MOST_EXACT]:
            rule = f"{self.name}({argument}{text})"
            yield (
                Learned(permission, rule, f"any text that is only written{_BESIDE}")
                if argument
                else Learned(permission, rule)
            )

    def _needed_to_allow(self, parts: Parts, node: Node) -> int | None:
        return NEEDED[self._kind](parts, node) if node.calls >= self._fewest else None

    def _bar(self, subject: str) -> Parts | None:
        """Where a subject bars its surroundings. A path that can be read in several ways is covered by no rule: it need
        not. The program of a line that cannot be read for certain is barred as a whole.
        """
        parts = self._parts(subject)
        return tuple(subject.split()[:1]) if parts is None and self._kind is Kind.COMMAND else parts

    def _text(self, parts: Parts, *, whole: bool) -> str:
        if self._kind in (Kind.COMMAND, Kind.TEXT):
            return commands.line_text(parts, whole)
        return places.folder_text(parts) if whole else places.place_text(parts)

    def _opens(self, parts: Parts) -> str:
        if self._kind is Kind.COMMAND:
            return f"any arguments of {' '.join(parts)}, and any files that they name"
        if self._kind is Kind.TEXT:
            return "any text that begins so"
        return "everything below, seen or not"

    def _denials(self, denied: Mapping[str, int], others: Mapping[str, int]) -> _Denials:
        if self._kind in (Kind.COMMAND, Kind.TEXT):
            denied_parts = {parts: subject for subject in denied if (parts := self._parts(subject)) is not None}
            passed = [parts for subject in others if (parts := self._parts(subject)) is not None]
            beginnings = commands.denied_beginnings(denied_parts, passed)
            begun = {parts for lines in beginnings.values() for parts in lines}
            rest = [parts for parts in denied_parts if parts not in begun]
            options = commands.denied_options(rest, passed) if self._kind is Kind.COMMAND else {}
            with_option = {parts for lines in options.values() for parts in lines}
            several = [lines for lines in options.values() if len(lines) >= commands.FEWEST_DENIED]
            explained = {denied_parts[parts] for lines in several for parts in lines}
            amid = [parts for parts in rest if parts not in with_option]
            exact = [commands.line_text(parts, whole=False) for parts in amid]
            return _Denials([*beginnings, *options, *exact], explained, [denied_parts[parts] for parts in amid])
        names = places.denied_names(denied, others)
        covered = {path for paths in names.values() for path in paths}
        unnamed = [path for path in denied if path not in covered]
        folders, alone = places.denied_folders(unnamed, others, uris=self._kind is Kind.URI)
        return _Denials([*names, *folders], covered, alone)

    def _hosts(
        self, allowed: Mapping[str, int], asked: Mapping[str, int], denied: Mapping[str, int]
    ) -> Iterator[Learned]:
        argument = self._argument
        for host in sorted(denied, key=lambda host: -denied[host])[:MOST_DENIALS]:
            yield Learned("deny", f"{self.name}(domain:{host})")
        verb: PermissionName = "deny" if self.calls.declined else "ask"
        for host in sorted(asked, key=lambda host: -asked[host])[:MOST_EXACT]:
            yield Learned(verb, f"{self.name}(domain:{host})")
        found = places.hosts_text(allowed, [*asked, *denied])
        frequent = sorted(found, key=lambda text: -sum(allowed[host] for host in found[text]))
        frequent = [text for text in frequent if sum(allowed[host] for host in found[text]) >= self._fewest]
        for text in frequent[:MOST_EXACT]:
            opens = f"all hosts below {text[2:]}, and all their pages" if text[0] == "*" else "all pages of this host"
            yield Learned("allow", f"{self.name}({argument}domain:{text})", opens)


_WHY_ASKED: Final[Mapping[Kind, str]] = dict.fromkeys(Kind, "passed after a person was asked") | {
    Kind.ADDRESS: "have texts beside the address, so that no rule about a host covers them",
    Kind.COMMAND: "have several commands, or texts beside the line, and a shell is never allowed as a whole",
}
"""Why a person is asked about all calls of a tool, some of which passed without."""


def _fewest_calls(denied: int, passed: int) -> int:
    """How many calls must have passed at a place, so that it is not by chance that none was denied there."""
    return ceil(log(CHANCE) / log(1 - denied / (denied + passed))) if denied and passed else 0


def _common_beginning(all_parts: Sequence[Parts]) -> Parts:
    """The parts with which all begin, at most those of a folder: without the last one of each."""
    first = all_parts[0]
    length = 0
    while length < min(map(len, all_parts)) - 1 and all(parts[length] == first[length] for parts in all_parts):
        length += 1
    return first[:length]


def _members(arguments: bytes) -> Iterable[str]:
    return raw_json.fields(arguments)


def _can_be_exact(subject: str) -> bool:
    """True if a rule with this text is about nothing else: a star is a wildcard, and some beginnings mean more."""
    return (
        bool(subject.strip()) and "*" not in subject and subject.isprintable() and len(subject) <= 500
        and not subject.startswith("domain:") and not subject.endswith(":*")
        and matchers.ARGUMENT_OF_PLACE.match(subject) is None
    )  # fmt: skip
