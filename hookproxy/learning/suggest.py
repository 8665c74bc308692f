"""The rules that the calls of one tool suggest: none of them has been tried. Pure.

How it works: a tool is learned either by its name, which is one rule, or by its subjects (`subjects`): then each place,
command or host gets a rule. It is learned by its name where its calls have no common subject, and where the arguments
of calls are unknown that were denied or asked about, because no rule about a part of the calls could be tried on those.

By its subjects: denied ones become deny rules where a name, a folder, an option or a host explains the denial, and bar
their surroundings otherwise. Then subjects that a person was asked about are generalised (`generalise`) to places with
none that passed or was denied, and at last those that passed, to places without any other. Where denials stand amid
calls that passed, a place is only opened with so many calls that it was hardly spared by chance (`CHANCE`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, log
from typing import Final

from msgspec import Struct

from ..model.settings import Settings
from ..policy import matchers
from ..policy.rules import Rules, parsed
from . import commands, places
from .bars import Bars
from .generalise import Node, Parts, opened
from .kinds import NEEDED, PARTS, WHY_LOST, Kind, needed_to_narrow
from .masked import may_be_secret
from .observations import Outcome, Tool
from .proposal import Learned, PermissionName
from .subjects import ASKS, PASSES, SortedCalls, Subjects

MOST_EXACT: Final = 25
"""Rules about single paths, lines or hosts of one tool, the most frequent first: a list that nobody reads opens too
much."""

MOST_DENIALS: Final = 25
"""Rules about what was denied of one tool. The default denies the rest as well; these say so, and hide nothing."""

CHANCE: Final = 0.001
"""Where calls were denied here and there, for a reason that their places do not show: how likely it may be at most that
a place that is opened was without a denial by chance alone. A tool has tens of places."""
_BESIDE: Final = " (content, message and their like)"


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
        self._about = Subjects(tool, name, self.calls)
        self.remarks: list[str] = []
        self.why_lost = ""
        self._bars = Bars(name, tool.names)
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
        elif self._about.kind is Kind.NAME or not self._about.can_be_covered():
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
        elif asked or denied or self._about.kind in (Kind.ADDRESS, Kind.COMMAND):
            if allowed:
                why = (
                    "passed and others were denied, and no rule tells them apart"
                    if denied
                    else _WHY_ASKED[self._about.kind]
                )
                self.remarks.append(f"{self.name}: some calls {why}: a person is asked.")
            self.why_lost = "no rule about only a part of its calls is safe"
            yield Learned("ask", self.name)
        elif allowed:
            yield Learned("allow", self.name, opens="all its calls, whatever their arguments")

    # --- rules about what its calls are about ---

    def _by_place(self) -> Iterator[Learned]:
        self.why_lost = WHY_LOST[self._about.kind]
        allowed, asked = self._about.of(self.calls.allowed), self._about.of(self.calls.asked)
        known, ruled = self._known_rules()
        yield from (Learned("deny", rule) for rule in known)
        denied = self._about.of_denied((*allowed, *asked), ruled)
        conflicts = {subject for subject in allowed if subject in denied or subject in asked}
        asked |= {subject: allowed.pop(subject) for subject in conflicts}
        counts = {subject: asked[subject] + denied.pop(subject, 0) for subject in conflicts}
        others = {**allowed, **asked}
        if self._about.kind is Kind.ADDRESS:
            self._fewest = _fewest_calls(sum(counts.values()), sum(allowed.values())) if conflicts else 0
            yield from self._hosts(allowed, asked, denied)
            return
        denials = self._denials(denied, others)
        amid = {subject: denied[subject] for subject in denials.amid} | counts
        if self._about.argument and any(number == 1 for number in amid.values()):
            self.remarks.append(
                f"{self.name}: calls were denied amid others that passed, perhaps for what was to be written: "
                "a person is asked."
            )
            yield Learned("ask", self.name)
            return
        if conflicts or len({parts[:-1] for subject in amid if (parts := self._about.parts(subject))}) > 1:
            self._fewest = _fewest_calls(sum(amid.values()), sum(allowed.values()))
        yield from (Learned("deny", f"{self.name}({text})") for text in denials.rules[:MOST_DENIALS])
        explained = {*denials.explained, *ruled}
        barred = [subject for subject in denied if subject not in explained]
        self._bars = self._about.bars(explained)
        verb: PermissionName = "deny" if self.calls.declined else "ask"
        yield from self._covering(verb, asked, [*allowed, *barred])
        if self._about.kind is Kind.COMMAND and (hosts := commands.fetched_hosts(allowed, [*denied, *asked])):
            self.remarks.append(
                f"{self.name}: some hosts were only used with a different address each time. A person is asked about "
                "these hosts, because a rule that allows a command cannot keep other addresses out of it."
            )
            yield from (Learned("ask", f"{self.name}({text})") for text in hosts[:MOST_EXACT])
        if conflicts:  # the place does not decide
            allowed = {subject: number for subject, number in allowed.items() if number >= self._fewest}
        yield from self._covering("allow", allowed, [*asked, *barred])
        if len(self._about.keys) > 1 and not self._fewest:
            yield from self._common_folders([*asked, *barred])

    def _known_rules(self) -> tuple[list[str], set[str]]:
        """The rules that denied calls, by the audit, as rules about this tool; and the subjects of calls that one of
        them denied for a name, an option or a command, wherever it stands (`**/.env`): those need no bar, as the reason
        is known. One about a folder or host may not be all: other rules may be about its neighbours.

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
            if (
                not specifier
                or may_be_secret(rule)
                or any(about.judge(arguments) for arguments in self._about.passing())
            ):
                continue
            hit = [arguments for arguments in self.calls.denied if about.judge(arguments)]
            rules += [rule] if hit else []
            if self._about.kind is Kind.COMMAND or specifier.startswith("*") or " -" in specifier:
                subjects |= {subject for arguments in hit for subject in self._about.texts_of_call(arguments)}
        return rules, subjects

    def _common_folders(self, barred: Sequence[str]) -> Iterator[Learned]:
        """Rules for calls that are about several things in different folders: about the folder that has them all."""
        parts_barred = filter(None, map(self._about.bar, barred))
        closed = {parts[:length] for parts in parts_barred for length in range(len(parts) + 1)}
        folders: dict[Parts, int] = {}
        for arguments in self.calls.allowed:
            subjects = self._about.of_call(arguments)
            common = self._about.common(subjects) if len(subjects) > 1 else None
            if common is not None and common not in closed:
                folders[common] = folders.get(common, 0) + 1
        for folder, number in folders.items():
            text = self._about.text(folder, whole=True)
            if number >= places.FEWEST and not self._bars.hits(text):
                yield Learned("allow", f"{self.name}({text})", self._about.opens(folder))

    def _covering(
        self, permission: PermissionName, subjects: Mapping[str, int], barred: Sequence[str]
    ) -> Iterator[Learned]:
        """Yield rules that cover the subjects, and nothing at or below what is barred."""
        argument = self._about.argument if permission == "allow" else ""
        parts_of = PARTS[self._about.kind] if permission == "allow" else self._about.parts
        parts_by_subject = {subject: parts_of(subject) for subject in subjects}
        by_parts = {parts: subjects[subject] for subject, parts in parts_by_subject.items() if parts is not None}
        bars = [parts for subject in barred if (parts := self._about.bar(subject)) is not None]
        exact: dict[str, int] = {}
        # to ask or refuse too much opens nothing
        needed = self._needed_to_allow if permission == "allow" else needed_to_narrow
        for place in opened(by_parts, bars, needed):
            if place.whole and _can_be_exact(place.parts[-1]):
                text = self._about.text(place.parts, whole=True)
                opens = self._about.opens(place.parts) + (
                    f", and any text that is only written{_BESIDE}" if argument else ""
                )
                yield Learned(permission, f"{self.name}({argument}{text})", opens)
            elif not place.whole and _can_be_exact(text := self._about.text(place.parts, whole=False)):
                exact[text] = by_parts.get(place.parts, 0)
        others = [subject for subject, parts in parts_by_subject.items() if parts is None]
        exact |= {subject: subjects[subject] for subject in others if _can_be_exact(subject)}
        frequent = sorted(exact, key=lambda text: -exact[text])
        for text in frequent[:MOST_EXACT]:
            rule = f"{self.name}({argument}{text})"
            if permission == "allow" and self._about.kind is not Kind.COMMAND and self._bars.hits(text):
                continue  # the same place in another spelling; of a command, this very line passed
            yield (
                Learned(permission, rule, f"any text that is only written{_BESIDE}")
                if argument
                else Learned(permission, rule)
            )

    def _needed_to_allow(self, parts: Parts, node: Node) -> int | None:
        needed = NEEDED[self._about.kind](parts, node) if node.calls >= self._fewest else None
        if needed is None or len(node.children) < needed:
            return None
        text = self._about.text(parts, whole=True)
        return None if self._bars.hits(text, self._program(text)) else needed

    def _program(self, text: str) -> str:
        """The program that a rule with this text is about; empty: it is not about commands."""
        return text.partition(" ")[0] if self._about.kind is Kind.COMMAND else ""

    def _denials(self, denied: Mapping[str, int], others: Mapping[str, int]) -> _Denials:
        if self._about.kind in (Kind.COMMAND, Kind.TEXT):
            denied_parts = {parts: subject for subject in denied if (parts := self._about.parts(subject)) is not None}
            passed = [parts for subject in others if (parts := self._about.parts(subject)) is not None]
            beginnings = commands.denied_beginnings(denied_parts, passed)
            begun = {parts for lines in beginnings.values() for parts in lines}
            rest = [parts for parts in denied_parts if parts not in begun]
            options = commands.denied_options(rest, passed) if self._about.kind is Kind.COMMAND else {}
            with_option = {parts for lines in options.values() for parts in lines}
            several = [lines for lines in options.values() if len(lines) >= commands.FEWEST_DENIED]
            explained = {denied_parts[parts] for lines in several for parts in lines}
            amid = [parts for parts in rest if parts not in with_option]
            exact = [commands.line_text(parts, whole=False) for parts in amid]
            return _Denials([*beginnings, *options, *exact], explained, [denied_parts[parts] for parts in amid])
        names = places.denied_names(denied, others)
        covered = {path for paths in names.values() for path in paths}
        unnamed = [path for path in denied if path not in covered]
        folders, alone = places.denied_folders(unnamed, others, uris=self._about.kind is Kind.URI)
        return _Denials([*names, *folders], covered, alone)

    def _hosts(
        self, allowed: Mapping[str, int], asked: Mapping[str, int], denied: Mapping[str, int]
    ) -> Iterator[Learned]:
        argument = self._about.argument
        for host in sorted(denied, key=lambda host: -denied[host])[:MOST_DENIALS]:
            yield Learned("deny", f"{self.name}(domain:{host})")
        verb: PermissionName = "deny" if self.calls.declined else "ask"
        for host in sorted(asked, key=lambda host: -asked[host])[:MOST_EXACT]:
            yield Learned(verb, f"{self.name}(domain:{host})")
        domains = places.hosts_text(allowed, [*asked, *denied])
        frequent = sorted(domains, key=lambda text: -sum(allowed[host] for host in domains[text]))
        frequent = [text for text in frequent if sum(allowed[host] for host in domains[text]) >= self._fewest]
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


def _can_be_exact(subject: str) -> bool:
    """True if a rule with this text is about nothing else: a star is a wildcard, and some beginnings mean more."""
    return (
        bool(subject.strip()) and "*" not in subject and subject.isprintable() and len(subject) <= 500
        and not subject.startswith("domain:") and not subject.endswith(":*")
        and matchers.ARGUMENT_OF_PLACE.match(subject) is None
    )  # fmt: skip
