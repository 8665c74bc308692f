"""From what was seen of each tool to rules, the smallest that let it pass. Pure.

For each tool: what kind of thing its calls are about (`kinds`), which rules that suggests (`suggest`), and which of
these hold when the code of a session (`policy.rules`) judges every call that was seen by them. A rule that would
allow what was denied, or what a person was asked about, is dropped, and the calls that it was for are refused by the
default. So the text of a rule is never trusted: what counts is what it decides.

- Allow rules come from calls that passed without a person. Where a person was asked, the rule asks again: a yes was
  about one call. If a person only ever said no, it is a denial. What was both allowed and denied is asked about.
- Denied calls become deny rules where they can be told from what passed: by the tool, the folder or name of a file, the
  command or its option, the host.
- A tool of which nothing is known but its name (digests, no texts, texts that no rule can cover) is learned by its
  name; if some of its calls were denied, a person is asked about each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ..dialects.dialect import claude_tool_name
from ..model.counts import counted
from ..model.hooks import Permission
from ..model.settings import Settings
from ..policy import matchers, methods
from ..policy.call_texts import SHELL, CallArguments
from ..policy.command_files import CommandFiles
from ..policy.rules import Rules, ToolRules, parsed
from .masked import may_be_secret
from .observations import Observations, Outcome, Seen, Tool
from .proposal import Learned, Lost, PermissionName, Proposal
from .subjects import ASKS, PASSES, SortedCalls
from .suggest import Suggestions

_NAME: Final = re.compile(r"[A-Za-z0-9_./:@-]+")
"""A tool's name that a rule can spell, and that is not a pattern."""

MOST_EXAMPLES: Final = 2
"""Examples of the calls of a tool that are lost: who wants all replays the audit."""


def propose(observations: Observations) -> Proposal:
    """Return what is learned from what was seen."""
    proposal = Proposal()
    alone = len(observations.servers) == 1
    candidates: list[Learned] = []
    tools: list[Suggestions] = []
    unspelled = 0
    for tool in observations.tools.values():
        name = _rule_name(tool, alone)
        if name is None:
            unspelled += 1
            continue
        of_tool = Suggestions(tool, name)
        tools.append(of_tool)
        candidates += of_tool.rules()
        proposal.remarks += dict.fromkeys(of_tool.remarks)
    if unspelled:
        proposal.remarks.append(
            f"{counted(unspelled, 'tool')} with a name that no rule can spell: all calls stay refused."
        )
    _Trial(proposal, candidates, tools).fill_in_proposal()
    return proposal


def _rule_name(tool: Tool, alone: bool) -> str | None:
    """The name of a tool in rules: with its server, if there are several. None: no rule can spell it, or allow it."""
    is_method = methods.is_method(tool.name)
    name = tool.name if is_method or alone else claude_tool_name(tool.server, tool.name)
    if not _NAME.fullmatch(name) or (not is_method and methods.glob_names_method(name)):
        return None
    try:
        names_it = any(map(parsed(name).names_tool, matchers.allowed_as(tool.names)))
    except ValueError:
        return None
    return name if names_it and parsed(name).specifier == "" else None


# --- what the rules decide ---


_CallOfTool = tuple[tuple[str, ...], bytes]
"""The names of a tool, and the arguments of a call of it."""


class _Trial:
    """Judges all calls that were seen by the rules, and drops rules until none decides too much.

    It owns the list of rules that still stand. Deny rules that hit what passed go first, because an allow rule that
    relied on one is dropped after it; then allow and ask rules that let pass what must not.
    """

    def __init__(self, proposal: Proposal, candidates: Sequence[Learned], tools: Sequence[Suggestions]) -> None:
        self._proposal = proposal
        self._standing = {(learned.permission, learned.rule): learned for learned in candidates}
        self._tools = tools
        self._tried = [(of_tool.tool.names, arguments) for of_tool in tools for arguments in of_tool.tool.calls]
        self._secrets = 0
        self._decided: dict[_CallOfTool, tuple[PermissionName, str] | None] = {}

    def fill_in_proposal(self) -> None:
        """Drop rules until none decides too much, and give the others to the proposal."""
        self._drop_unreadable()
        self._judge(self._tried)
        while wrong := self._drop_wrong():
            self._judge([call for call in self._tried if self._decided[call] in wrong])
        for of_tool in self._tools:
            self._name_method(of_tool)
            self._count(of_tool)
        order = {"deny": 0, "ask": 1, "allow": 2}
        needed = [learned for learned in self._standing.values() if learned.seen.counts]
        self._proposal.rules = sorted(needed, key=lambda learned: (order[learned.permission], learned.rule))

    def _name_method(self, of_tool: Suggestions) -> None:
        """Make sure that a rule is about a method of which calls were not allowed: the default holds only for methods
        that rules name.
        """
        calls, names = of_tool.calls, of_tool.tool.names
        passed = bool(calls.allowed or calls.asked) or calls.unknown_count(*PASSES, *ASKS) > 0
        restricted = bool(calls.denied or calls.asked) or calls.unknown_count(Outcome.DENIED, *ASKS) > 0
        named = any(self._decided[names, arguments] for arguments in of_tool.tool.calls)
        if methods.is_method(of_tool.name) and restricted and not named:
            learned = Learned("ask" if passed else "deny", of_tool.name)
            self._standing.setdefault((learned.permission, learned.rule), learned)
            self._judge([(names, arguments) for arguments in of_tool.tool.calls])

    def _judge(self, calls: Iterable[_CallOfTool]) -> None:
        """Judge these calls by the rules that stand. What none that is dropped has decided is decided as before."""
        rules = self._rules()
        abouts = {of_tool.tool.names: rules.about(of_tool.tool.names) for of_tool in self._tools}
        files = CommandFiles(rules)
        for names, arguments in calls:
            self._decided[names, arguments] = _decided(abouts[names], arguments, files if SHELL in names else None)

    def _drop_unreadable(self) -> None:
        """Drop what is not a rule, cannot be read by people, or has something in it that looks like a secret."""
        for key in list(self._standing):
            if not _can_be_written(key[1]):
                del self._standing[key]
            elif may_be_secret(key[1]):
                del self._standing[key]
                self._secrets += 1
        if self._secrets:
            self._proposal.remarks.append(
                f"{counted(self._secrets, 'rule')} would have had in it what looks like a secret."
            )

    def _rules(self) -> Rules:
        texts: dict[str, tuple[str, ...]] = {
            name: tuple(rule for permission, rule in self._standing if permission == name)
            for name in ("deny", "ask", "allow")
        }
        return Rules.of(Settings(deny=texts["deny"], ask=texts["ask"], allow=texts["allow"], unreadable="deny"))

    def _drop_wrong(self) -> set[tuple[PermissionName, str] | None]:
        """Drop the rules that decide a call wrongly, and return them."""
        wrong: set[tuple[PermissionName, str] | None] = set()
        for of_tool in self._tools:
            calls, names = of_tool.calls, of_tool.tool.names
            for passed, wanted in ((calls.allowed, "allow"), (calls.asked, "ask"), (calls.denied, "deny")):
                for arguments in passed:
                    decided = self._decided[names, arguments]
                    if decided is not None and decided[0] != wanted and self._is_wrong(decided[0], wanted, calls):
                        wrong.add(decided)
        for key in wrong:
            if key is not None:
                self._standing.pop(key, None)
        return wrong

    @staticmethod
    def _is_wrong(decided: PermissionName, wanted: str, calls: SortedCalls) -> bool:
        """Whether it is bad that a call which passed, was asked about or denied (`wanted`) is decided so."""
        if decided == "allow":
            return True
        if decided == "deny":
            return not (wanted == "ask" and calls.declined)
        return False  # asking is never too lax, and a tool that is learned by name is asked about as a whole

    def _count(self, of_tool: Suggestions) -> None:
        """Count what the rules decide about the calls of a tool, as the rules' evidence and as calls that are lost."""
        tool = of_tool.tool
        lost = Lost(tool.server, tool.name, why=of_tool.why_lost)
        for arguments, seen in tool.calls.items():
            self._count_one(seen, self._decided[tool.names, arguments], lost, arguments)
        by_name: list[tuple[PermissionName, str]] = [
            ("deny", of_tool.name),
            ("ask", of_tool.name),
            ("allow", of_tool.name),
        ]
        whole = next((key for key in by_name if key in self._standing), None)
        for seen in of_tool.calls.unknown:
            if seen is not tool.beyond or whole is not None:
                self._count_one(seen, whole, lost, b"")
        if lost.calls:
            self._proposal.lost.append(lost)

    def _count_one(self, seen: Seen, decided: tuple[PermissionName, str] | None, lost: Lost, arguments: bytes) -> None:
        passed = seen.count(*PASSES)
        self._proposal.passed += passed
        self._proposal.denied += seen.count(Outcome.DENIED)
        if decided is not None and seen.counts:
            self._note(self._standing[decided], seen, arguments)
        if decided is not None and decided[0] == "allow":
            self._proposal.passing += passed
        elif passed:
            lost.calls += passed
            lost.different += 1
            lost.asks = lost.asks or (decided is not None and decided[0] == "ask")
            if len(lost.examples) < MOST_EXAMPLES and arguments:
                lost.examples.append(arguments)

    @staticmethod
    def _note(learned: Learned, seen: Seen, arguments: bytes) -> None:
        learned.seen.include(seen)
        learned.different += 1
        learned.example = learned.example or arguments


def _can_be_written(rule: str) -> bool:
    """True if it is a rule, and has no character that nobody sees or that TOML cannot have."""
    try:
        parsed(rule)
    except ValueError:
        return False
    return rule.isprintable()


def _decided(about: ToolRules, arguments: bytes, files: CommandFiles | None) -> tuple[PermissionName, str] | None:
    """The permission of a call, and the rule that decides it; None: the default decides.

    `files` has the rules about files that commands name; None: the tool runs no commands.
    """
    call = CallArguments(arguments)
    by_name = about.judge(arguments, call=call) if about else None
    by_file = files.judge_calls([call]) if files is not None else None
    if (
        by_file is not None
        and by_file.permission is Permission.ASK
        and (by_name is None or not about.allowed(arguments))
    ):
        by_file = None  # the default denies what no allow rule covers
    rulings = [ruling for ruling in (by_name, by_file) if ruling is not None]
    ruling = max(rulings, key=lambda ruling: ruling.permission, default=None)
    if ruling is None:
        return None
    names: Mapping[Permission, PermissionName] = {
        Permission.ALLOW: "allow", Permission.ASK: "ask", Permission.DENY: "deny",
    }  # fmt: skip
    return names[ruling.permission], ruling.rule
