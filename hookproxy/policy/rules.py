"""The permission rules of hookproxy.toml: which calls are denied, need approval, or are allowed.

A rule is a glob over the names of tools, with an optional specifier for the arguments in parentheses. Deny beats ask
beats allow, and what no rule is about meets the default, unless a hook has decided.
If a call cannot be judged, deny and ask rules apply to it, and allow rules do not (law 3). `shell_commands` says what
is recognised in command lines: a rule about them is not a sandbox. A rule about paths is not one either, because of
links. A server may ignore the case of names and paths. Therefore deny and ask rules ignore it, but allow rules do not.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.hooks import Permission
from ..model.late_pattern import late_pattern
from ..model.settings import AgentRule, Settings
from . import matchers, methods
from .call_texts import HALF_PAIR, MOST_BYTES, MOST_TEXTS, NO_PATH, CallArguments, CallTexts, all_texts
from .globs import BudgetExceeded, WorkBudget, command_pattern, may_both_name, path_pattern
from .matchers import ARGUMENT_OF_PLACE, JUDGED_ARGUMENT
from .path_rules import PathPattern, allows

if TYPE_CHECKING:
    from . import shell_commands

HINT: Final = "write Tool or Tool(specifier), such as delete_* or Bash(git push:*)"
_EXPRESSION: Final = late_pattern(r"[|,^$\\+]")
"""In a tool's name: a character of a regular expression or a list."""

_WORD: Final = late_pattern(r"[A-Za-z0-9]+")
"""In a specifier: a text that matches it has this in it, in whatever folder, with whatever blanks or slashes."""

_MAY_BECOME_WORD: Final = late_pattern(r"%|\.\.")
"""It matches a text that is decoded before it is compared, or that is any folder."""

_MAY_LOSE_WORD: Final = late_pattern(r"%|\.\.|localhost", re.IGNORECASE)
"""It matches a URI that is decoded, loses a folder, or its host."""
_BY_LAST_NAME: Final = late_pattern(r"\*\*/(?!.*\*\*)[^/\\]+")
"""A specifier such as `**/.env`: in whichever folder a path is, its last name says whether it matches."""
_SHORTEST_URI_WORD: Final = 2  # characters: one alone may be a drive

_LONGEST_PLAIN: Final = 1024  # bytes of arguments that are looked at as a whole first: they have few members
_NOT_PLAIN: Final = (b"\\", b"%", b"..", b"[", b"null", b"command", b"cmd", b"script", b"shell")
"""What plain arguments do not contain: as `_MAY_BECOME_WORD`, a list, no text at all, and names that `COMMAND_ARGUMENT`
finds."""

_LONG_PATH: Final = late_pattern(r"\s*(?:/+[^/*\s]|[.~\\]|file:)", re.IGNORECASE)
"""The beginning of a long text that may spell a path; comments begin differently."""

_LONGEST_SHOWN: Final = 60  # characters
_SEARCHED: Final = {"Glob": "(its places and pattern)", "LS": "(its places and pattern)", "Grep": "(its places)"}
"""The tools that show what is in files, or which there are, with what `judged` has for them under a rule for what
`Read` reads: not the name of an argument. A pattern of `Glob` is a path, and one of `Grep` is not."""

_EVERY_CALL: Final = "it is about every call of this tool"
_MATCHES: Final = "one of the arguments matches it"
_NO_ARGUMENT: Final = "the call has no argument on which it could be tried, so it may not run"
_NOT_JUDGED: Final = "the arguments are too large, too many or too unusual to be judged, so it applies"


class RuleDecision(Struct, frozen=True):
    """What the rules decide about a call."""

    permission: Permission
    rule: str
    """The deciding rule, as written."""
    place: str = ""
    """Where it is written, if that is an agent's settings file; empty: the layer's own configuration."""
    reason: str = ""
    """Why it applies to the call, for the model: a clause without a full stop."""
    at: str = ""
    """File, line and key of the rule, for people; empty if not known."""
    unreadable: bool = False
    """It only may apply, because a command line cannot be read: a person who is asked needs to know why."""
    is_default: bool = False
    """No rule is about the call: `rule` has the default, as written."""
    of_named_file: bool = False
    """The rule is about a file that a command names, so that it says nothing about what else the command does."""

    @property
    def only_narrows(self) -> bool:
        """True if no call is better off by it than by a stricter default."""
        return self.unreadable or self.of_named_file

    def by(self, configuration: str) -> str:
        """The rule in words, for approval requests. `configuration` is what the layer's own is called."""
        return f"the permission rule {self.rule} of {self.place or configuration}"


class _Reason(NamedTuple):
    """Why a rule applies to a call, as a clause; empty: it does not."""

    text: str
    unreadable: bool = False
    """It may apply, because a command line cannot be read; otherwise it does."""


_NO_REASON: Final = _Reason("")


class _DenyOrAskRule(Struct, frozen=True):
    """A deny or ask rule: it applies to everything that cannot be judged."""

    parts: matchers.Rule
    runs: Callable[[str, WorkBudget], shell_commands.Runs]
    """Whether a command line runs a command that the rule names."""
    matches_text: Callable[[str], bool]
    """Whether any other text matches the rule."""
    is_path: bool
    """The rule is about a path."""
    is_host: bool
    """The rule is about a host."""
    is_place: bool
    """The rule is about a path or an address."""
    matches_uri: Callable[[str], bool]
    """Whether a reading of the URI of a resource matches the rule, without case and forms of Unicode."""
    word: str = ""
    """What every text that matches the rule contains in some case, unless it is decoded first; empty if not known."""
    uri_word: str = ""
    """What the readings of every URI that matches the rule contain; empty if not known."""
    place: str = ""
    at: str = ""
    """File, line and key of the rule; empty if not known."""

    def named(self, names: Sequence[str]) -> list[str]:
        """Those of a tool's names that the rule may name: a rule about what `Read` reads names tools that search it.

        So it is in Claude Code, whose rules for `Read` hold for its tools that search and list files.
        """
        named = self.parts.named(names)
        if named or not self.parts.specifier or not self.parts.may_name_tool("Read"):
            return named
        return [name for name in names if name in _SEARCHED]

    def judged(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the argument that it is about, for each of a tool's names that it names; empty: about all of them."""
        if named := self.parts.named(names):
            return tuple(dict.fromkeys(JUDGED_ARGUMENT.get(name, "") for name in named))
        return tuple(dict.fromkeys(_SEARCHED[name] for name in self.named(names)))

    def reason_for(self, judged: Sequence[str], call: CallArguments) -> _Reason:
        """Why the rule applies to a call of a tool that it names, or may apply; empty if it does not.

        `judged` is as returned by the method of this name.
        """
        if not self.parts.specifier:
            return _Reason(_EVERY_CALL)
        unreadable = _NO_REASON
        try:
            for argument in judged:
                if argument in _SEARCHED.values():
                    reason = _reason_to_search(call, argument, self)
                else:
                    reason = _reason_to_match(call, argument, self)
                if reason.text and not reason.unreadable:
                    return reason
                unreadable = unreadable if unreadable.text else reason
        except (ValueError, RecursionError, BudgetExceeded):
            return _Reason(_NOT_JUDGED)
        return unreadable

    def reason_for_uri(self, call: CallArguments) -> _Reason:
        """As `reason_for`, for a request about a resource: the rule applies if a reading of the URI matches it."""
        if not self.parts.specifier:
            return _NO_REASON
        try:
            matches = call.uri_readings().any_match(self.matches_uri, self.matches_text, self.uri_word, call.budget)
        except (ValueError, RecursionError, BudgetExceeded):
            return _Reason(_NOT_JUDGED)
        return _Reason(_MATCHES) if matches else _NO_REASON

    def places(self, _members: Collection[str], texts: Sequence[str], budget: WorkBudget) -> list[str]:
        """The texts of a search, and what two of them may spell together, if that may be a path that the rule names.

        A search without a path is one in the server's folder, which nobody knows. Raises BudgetExceeded.
        """
        return [*texts, *_joined(texts, self.word, budget)]

    def may_match_path(self, text: str, budget: WorkBudget) -> bool:
        """Whether a text may be a path that the rule is about. Raises BudgetExceeded."""
        if len(text) > MOST_BYTES:
            return self.may_match_long(raw_json.encode(text))
        budget.spend(1000 + 4 * len(text))
        return self.matches_text(text)

    def may_match_long(self, raw: bytes) -> bool:
        """Whether a text that is too long to be searched as a whole may spell a path that the rule is about."""
        return _may_be_long_path(raw) or self.matches_text((raw_json.text(raw) or "")[:NO_PATH])


class _PathRule(Struct, frozen=True):
    """A deny or ask rule about paths from an agent's settings file."""

    parts: matchers.Rule
    pattern: PathPattern
    place: str
    at: str = ""
    specifiers: tuple[str, ...] = ()
    """The pattern below each folder that it starts from, as `may_both_name` has it."""

    def judged(self, names: Sequence[str]) -> tuple[str, ...]:
        """As `_DenyOrAskRule.judged`: the argument with the path, or what a search is about."""
        named = self.named(names)
        return tuple(dict.fromkeys(_SEARCHED.get(name) or _PATH_ARGUMENT.get(name, "path") for name in named))

    def named(self, names: Sequence[str]) -> list[str]:
        """As `_DenyOrAskRule.named`: the rule has the names of all its tools."""
        return self.parts.named(names)

    def reason_for(self, judged: Sequence[str], call: CallArguments) -> _Reason:
        """As `_DenyOrAskRule.reason_for`."""
        try:
            for argument in judged:
                if argument in _SEARCHED.values():
                    reason = _reason_to_search(call, argument, self)
                else:
                    reason = _Reason(_MATCHES) if self._may_match(call, argument) else _NO_REASON
                if reason.text:
                    return reason
        except (ValueError, RecursionError, BudgetExceeded):
            return _Reason(_NOT_JUDGED)
        return _NO_REASON

    def _may_match(self, call: CallArguments, judged: str) -> bool:
        members = call.members(judged)
        if members.get(judged, b'"')[:1] != b'"':
            return True
        texts = [text for raw in members.values() for text in all_texts(raw)]
        if len(texts) > MOST_TEXTS or not texts or any(map(HALF_PAIR.search, texts)):
            return True
        return any(self.may_match_path(text, call.budget) for text in texts)

    def places(self, members: Collection[str], texts: Sequence[str], budget: WorkBudget) -> list[str]:
        """As `_DenyOrAskRule.places`; a search without a path is one in the folder from which paths start."""
        here = [] if "path" in map(str.casefold, members) else ["."]
        return [*texts, *here, *_joined(texts, self.pattern.word, budget)]

    def may_name(self, pattern: str, budget: WorkBudget) -> bool:
        """True if a shell's pattern may name a file that the rule is about. Raises BudgetExceeded."""
        budget.spend(len(self.specifiers) * (1000 + 100 * len(pattern)))
        at_home = self.pattern.home + pattern[1:] if pattern.startswith("~/") else pattern
        patterns = [matchers.folded(posixpath.join(folder, at_home)) for folder in self.pattern.folders or ("",)]
        return any(may_both_name(specifier, given) for specifier in self.specifiers for given in patterns)

    def may_match_path(self, text: str, budget: WorkBudget) -> bool:
        """As `_DenyOrAskRule.may_match_path`."""
        budget.spend(100 + len(text))
        if not self.pattern.may_be_near(text) or (len(text) > NO_PATH and not _LONG_PATH.match(text)):
            return False
        budget.spend(3000 + 30 * len(text))
        return self.pattern.may_match(text)

    def may_match_long(self, raw: bytes) -> bool:
        """As `_DenyOrAskRule.may_match_long`."""
        return _may_be_long_path(raw)


def _acted_upon(name: str, arguments: bytes) -> bytes:
    """Of the arguments of an agent's own tool, the one that rules judge; all of a tool without such an argument.

    Raises Unreadable, DuplicateKeys.
    """
    if (judged := JUDGED_ARGUMENT.get(name)) is None:
        return arguments
    members = raw_json.fields(arguments)
    return b"{%b:%b}" % (raw_json.encode(judged), members[judged]) if judged in members else b"{}"


_PATH_ARGUMENT: Final = {name: judged for name, judged in JUDGED_ARGUMENT.items() if judged.endswith("_path")}
"""The argument with the path in Claude Code's tools for files; in its tools that search, it is `path`."""


class _AllowRule(Struct, frozen=True):
    """An allow rule: it applies only to what it certainly covers."""

    text: str
    place: str
    """As in `RuleDecision`."""
    names_tool: Callable[[str], bool]
    covers: Callable[[str, bytes], bool]
    """Whether it covers a call of the tool of this name with these arguments."""
    at: str = ""
    """File, line and key of the rule; empty if not known."""


def _reason_to_match(call: CallArguments, judged: str, rule: _DenyOrAskRule) -> _Reason:
    """Check every argument, because only the server knows which one the tool takes for its command.

    Returns why the rule may be about them; empty if it is not. Raises ValueError, RecursionError, BudgetExceeded.
    """
    texts = call.texts(judged, without_long=rule.is_path)
    for key in texts.long:
        if rule.may_match_long(texts.members[key]):
            return _Reason(f"its argument {_shown(key)} may be such a path")
    if texts.not_a_line:
        key = _shown(texts.not_a_line)
        return _Reason(f"its argument {key} is not a text, so the command in it cannot be read")
    if not texts.all and not texts.long:
        return _Reason(_NO_ARGUMENT)
    if texts.unreadable:
        return _Reason(_NOT_JUDGED)
    return _reason_of_texts(texts, rule, call.budget)


def _reason_to_search(call: CallArguments, judged: str, rule: _DenyOrAskRule | _PathRule) -> _Reason:
    """Why a rule for `Read` may be about a search or a list: a path that it is given, or folder and pattern together.

    A search of a folder above what the rule names does not show it. `judged` is as in `_SEARCHED`.
    Raises ValueError, RecursionError, BudgetExceeded.
    """
    members = call.members("")
    if judged == _SEARCHED["Grep"]:  # what it searches for is not a path
        from .tool_names import TABLE, plain  # 2 ms, where no tool has been looked up yet

        members = {key: raw for key, raw in members.items() if plain(key) not in TABLE.arguments["searched"]}
    texts = CallTexts(members, True, call.budget)
    if texts.unreadable:
        return _Reason(_NOT_JUDGED)
    for key in texts.long:
        if rule.may_match_long(texts.members[key]):
            return _Reason(f"its argument {_shown(key)} may be such a path")
    places = rule.places(members, [text for text in texts.all if text], call.budget)
    return _Reason(_MATCHES) if any(rule.may_match_path(text, call.budget) for text in places) else _NO_REASON


def _joined(texts: Sequence[str], word: str, budget: WorkBudget) -> list[str]:
    """What a folder and a pattern below it may spell together, if that may have the word. Raises BudgetExceeded."""
    folded = "\n".join(map(matchers.folded, texts))
    if word not in folded and not _MAY_BECOME_WORD.search(folded):
        return []
    budget.spend(1000 * len(texts) * len(texts))
    return [f"{folder}/{below}" for folder in texts for below in (*texts, "")]


def _reason_of_texts(texts: CallTexts, rule: _DenyOrAskRule, budget: WorkBudget) -> _Reason:
    """As `_reason_to_match`, for arguments that can be read."""
    unreadable = _NO_REASON
    for key, line in texts.lines:
        runs = rule.runs(line, budget)
        if runs.certain:
            return _Reason(f"its argument {_shown(key)} may run such a command")
        if runs.unreadable and not unreadable.text:
            unreadable = _Reason(
                f"its argument {_shown(key)} cannot be read, so it may run such a command ({runs.unreadable})", True
            )
    if rule.is_path:  # no path is composed of several texts
        matches = any(rule.may_match_path(text, budget) for text in texts.known)
    else:
        in_parts = not texts.has_commands and not rule.is_place
        matches = any(map(rule.matches_text, texts.whole())) or (
            in_parts and any(map(rule.matches_text, texts.parts()))
        )
    return _Reason(_MATCHES) if matches else unreadable


def _may_be_long_path(raw: bytes) -> bool:
    """True if a text that is too long to be searched as a whole may spell any path."""
    if b"/.." in raw or b"\\.." in raw:
        return True
    text = raw_json.text(raw)
    return text is None or _LONG_PATH.match(text) is not None


def _word(specifier: str) -> str:
    """Return the longest word of a specifier, in lower case; empty if it has none, or is decided otherwise."""
    if specifier.startswith("domain:"):
        return ""
    return max(_WORD.findall(matchers.folded(specifier)), key=len, default="")


def _uri_word(specifier: str) -> str:
    """As `_word`, for the readings of a URI; empty also for a specifier of which they may have only a part."""
    word = _word(specifier)
    may_lose = len(word) < _SHORTEST_URI_WORD or _MAY_LOSE_WORD.search(specifier) or not specifier.isascii()
    return "" if may_lose else word


def _text_matcher(specifier: str) -> Callable[[str], bool]:
    """Return a function that tells whether a text that is not a command line matches the specifier."""
    if specifier.startswith("domain:"):
        return lambda text: matchers.has_domain(specifier[7:].casefold(), text)
    is_place = matchers.is_path_or_address(specifier)
    spelled = [specifier, matchers.folded(specifier)] if is_place else [specifier]
    exact = path_pattern if matchers.is_path(specifier) else command_pattern
    patterns = [(matchers.value_pattern(text), exact(text)) for text in spelled]
    word = _word(specifier)
    needs_folder = _needs_folder(specifier)

    def matches(text: str) -> bool:
        folded = matchers.folded(text)
        if word not in folded and word not in text.casefold() and not _MAY_BECOME_WORD.search(text):
            return False
        return any(
            _matches_text(spelling, anywhere, exact, is_place, needs_folder)
            for spelling, (anywhere, exact) in zip((text, folded), patterns, strict=False)
        )

    return matches


def _needs_folder(specifier: str) -> bool:
    """Whether the folder in which a path is may decide about it; else its last name does, or it is not a path."""
    return matchers.is_path_or_address(specifier) and not _BY_LAST_NAME.fullmatch(specifier)


def _matches_text(
    text: str, anywhere: re.Pattern[str], exact: re.Pattern[str], is_place: bool, needs_folder: bool
) -> bool:
    if any(map(exact.fullmatch, (text, text.strip(), " ".join(text.split())))):
        return True
    if len(text) > NO_PATH and not is_place:
        return False
    paths = _paths(text)
    if len(text) > NO_PATH:
        return any(exact.fullmatch(path) for path in paths)
    if needs_folder and any(path == ".." or path.startswith("../") for path in paths):
        return True  # only the server knows which folder that is
    pattern = exact if "\n" in text else anywhere
    return any(pattern.fullmatch(path) for path in paths)


def _paths(text: str) -> list[str]:
    """Return the paths that the text may spell."""
    text = text.strip()
    if text[:5].casefold() == "file:":
        text = re.sub("^/+", "/", matchers.unquoted(text[5:]))
    spelled = [text, text.replace("\\", "/")] if "\\" in text else [text]
    if "\0" in text:  # where the server's system calls stop to read it
        spelled += [path.partition("\0")[0] for path in spelled]
    return [*spelled, *(re.sub("^//", "/", posixpath.normpath(path)) for path in spelled)]


class Rules(Struct, frozen=True):
    """All permission rules of one configuration."""

    deny: tuple[_DenyOrAskRule | _PathRule, ...] = ()
    ask: tuple[_DenyOrAskRule | _PathRule, ...] = ()
    allow: tuple[_AllowRule, ...] = ()
    hide_denied: bool = True
    unreadable: Permission = Permission.ASK
    """What happens to a call whose command line cannot be read, and might run what a rule denies."""
    default: Permission = Permission.ALLOW
    """What happens to a call that no rule is about."""
    default_at: str = ""
    """File, line and key of the default; empty if not known."""

    @staticmethod
    def of(settings: Settings) -> Rules:
        """Parse the configured rules. Raises ValueError for a text that is not a rule."""
        allow = [_allow_rule(text, settings.rule_places.get(f"allow {text}", "")) for text in settings.allow]
        allow += [_agent_allow_rule(rule) for rule in settings.agent_rules if rule.decision == "allow"]
        return Rules(
            tuple(_deny_or_ask_rules(settings, "deny", settings.deny)),
            tuple(_deny_or_ask_rules(settings, "ask", settings.ask)),
            tuple(allow),
            settings.hide_denied,
            Permission[settings.unreadable.upper()],
            Permission[settings.default_permission.upper()],
            settings.rule_places.get("default", ""),
        )

    def __bool__(self) -> bool:
        """True if some rule, or another default than to allow, is configured."""
        return bool(self.deny or self.ask or self.allow) or self.default is not Permission.ALLOW

    def concerns(self, names: Sequence[str]) -> bool:
        """True if the default, or some deny or ask rule, may refuse or hold calls of a tool, or a method, with these
        names.
        """
        return self.default_for(names) is not Permission.ALLOW or self.name(names)

    def name(self, names: Sequence[str]) -> bool:
        """True if some deny or ask rule may apply to a tool, or a method, with these names."""
        return any(rule.named(names) for rule in (*self.deny, *self.ask))

    def default_for(self, names: Sequence[str]) -> Permission:
        """The default for a tool, or a method, with these names.

        It is about tools; and about a method if a rule names it, by its own name or by a glob such as `resources/*`.
        """
        if self.default is Permission.ALLOW or not (names and methods.is_method(names[0])):
            return self.default
        method = names[0]
        named = any(rule.parts.names_tool(method) for rule in (*self.deny, *self.ask))
        named = named or any(rule.names_tool(method) for rule in self.allow)
        return self.default if named else Permission.ALLOW

    def by_default(self) -> RuleDecision:
        """The default as a decision about a call that no rule is about."""
        default = self.default
        text = f'default = "{default.name.lower()}"'
        return RuleDecision(default, text, reason="no rule allows it", at=self.default_at, is_default=True)

    def hides_by_default(self, names: Sequence[str], possible_names: Sequence[str]) -> bool:
        """True if a tool must not be listed, because its calls meet the default, which denies.

        `names` are those to which allow rules apply, `possible_names` all that a call may have: under one of these, a
        person may be asked. What hooks could allow is not considered.
        """
        if not self.hide_denied or self.default_for(possible_names) is not Permission.DENY:
            return False
        asked = any(rule.named(possible_names) for rule in self.ask)
        return not asked and not any(rule.names_tool(name) for rule in self.allow for name in names)

    def about(self, names: Sequence[str]) -> ToolRules:
        """Return the rules that decide about calls of a tool, by all its names."""
        deny_or_ask = [(Permission.DENY, rule) for rule in self.deny] + [(Permission.ASK, rule) for rule in self.ask]
        allowed = matchers.allowed_as(names)
        named = [(rule, tuple(filter(rule.names_tool, allowed))) for rule in self.allow]
        about = tuple((permission, rule, judged) for permission, rule in deny_or_ask if (judged := rule.judged(names)))
        words = [rule.word.encode() if isinstance(rule, _DenyOrAskRule) else b"" for _, rule, _ in about]
        allow = tuple((rule, names_) for rule, names_ in named if names_)
        # another spelling of a URI may not have the words; as `Read`, a request has a path
        has_uri = bool(names) and methods.has_uri(names[0]) and names[-1] != "Read"
        return ToolRules(about, allow, tuple(words) if all(words) and not has_uri else None, self.unreadable, has_uri)

    def hides(self, names: Sequence[str]) -> bool:
        """True if a tool with these names must not be listed, because every call of it would be denied."""
        whole = (rule for rule in self.deny if not rule.parts.specifier)
        return self.hide_denied and any(rule.parts.named(names) for rule in whole)

    def judge(self, names: Sequence[str], arguments: bytes) -> RuleDecision | None:
        """As `ToolRules.judge`, for a call of a tool with these names."""
        return self.about(names).judge(arguments)


class ToolRules(Struct, frozen=True):
    """The permission rules that name one tool, prepared for its calls."""

    deny_or_ask: tuple[tuple[Permission, _DenyOrAskRule | _PathRule, tuple[str, ...]], ...]
    """The rules in the order in which they count, each with the arguments that it is about."""
    allow: tuple[tuple[_AllowRule, tuple[str, ...]], ...]
    """Each rule with the names of the tool to which it applies."""
    words: tuple[bytes, ...] | None
    """A word for each deny or ask rule, without which plain arguments do not match it; None: some rule has none."""
    unreadable: Permission = Permission.ASK
    """As in `Rules`."""
    has_uri: bool = False
    """They are about requests for a resource: deny and ask rules hold for each reading of its URI."""

    def __bool__(self) -> bool:
        """True if some rule names the tool."""
        return bool(self.deny_or_ask or self.allow)

    def match_places(self, paths: Collection[str], patterns: Collection[str], words: str) -> bool:
        """True if a deny or ask rule is about a path, a file that a shell's pattern may name, or a host in `words`."""
        for _, rule, _ in self.deny_or_ask:
            if not isinstance(rule, _DenyOrAskRule):
                continue
            if rule.is_path:
                specifier = matchers.folded(rule.parts.specifier)
                if any(may_both_name(specifier, matchers.folded(pattern)) for pattern in patterns):
                    return True
                if any(map(rule.matches_text, paths)):
                    return True
            elif rule.is_host and rule.matches_text(words):
                return True
        return False

    def about_files(self) -> ToolRules:
        """Of rules about a tool that gets the path of a file: the deny and ask rules that are about some files."""
        about = [entry for entry in self.deny_or_ask if isinstance(entry[1], _PathRule) or entry[1].parts.specifier]
        return ToolRules(tuple(about), (), None, self.unreadable)

    def judge_files(
        self, paths: Sequence[str], spelled: Sequence[str], patterns: Sequence[str], budget: WorkBudget
    ) -> RuleDecision | None:
        """The decision on files that a command names; None: no rule is about them.

        `paths` are as the command has them, and `spelled` as they can be compared with a pattern of paths. `patterns`
        are those of a shell. Raises BudgetExceeded.
        """
        folded = matchers.folded("\n".join(spelled))
        for permission, rule, _ in self.deny_or_ask:
            named = _named_file(rule, paths, spelled, patterns, folded, budget)
            if named:
                reason = f"the command names {_shown(named)}"
                return RuleDecision(permission, rule.parts.text, rule.place, reason, rule.at, of_named_file=True)
        return None

    def judge_unknown_files(self) -> RuleDecision:
        """The decision on a command that names more files than can be compared. Raises IndexError without rules."""
        permission, rule, _ = self.deny_or_ask[0]
        reason = "the command names too many files to be judged, so it applies"
        return RuleDecision(permission, rule.parts.text, rule.place, reason, rule.at, of_named_file=True)

    def judge(
        self,
        arguments: bytes,
        budget: WorkBudget | None = None,
        *,
        own_tool: bool = False,
        call: CallArguments | None = None,
    ) -> RuleDecision | None:
        """Return the decision about a call with these arguments, normalised JSON; None: no rule applies.

        `budget` is as in `CallArguments`, `own_tool` as in `allowed`. `call` has the arguments, if others read them.
        """
        if not (self.words is not None and _is_plain_without(arguments, self.words)):
            decision = self._denied_or_asked(call or CallArguments(arguments, budget))
            if decision is not None:
                return decision
        return self.allowed(arguments, own_tool=own_tool)

    def allowed(self, arguments: bytes, *, own_tool: bool = False) -> RuleDecision | None:
        """The first allow rule that covers a call with these arguments, whatever other rules say; None: none does.

        It covers all texts of a call, because only the server knows which of them it acts upon. Of an `own_tool` of the
        agent it is known: a command's description, or what is written to a file, is not what a rule is about.
        """
        for allow_rule, names in self.allow:
            for name in names:
                if allow_rule.covers(name, _acted_upon(name, arguments) if own_tool else arguments):
                    return RuleDecision(Permission.ALLOW, allow_rule.text, allow_rule.place)
        return None

    def _denied_or_asked(self, call: CallArguments) -> RuleDecision | None:
        """The first rule that certainly applies decides, unless a stricter one may apply (`unreadable`)."""
        may_apply: RuleDecision | None = None
        for permission, rule, judged in self.deny_or_ask:
            reason = self._reason(rule, judged, call)
            if not reason.text:
                continue
            decision = RuleDecision(permission, rule.parts.text, rule.place, reason.text, rule.at, reason.unreadable)
            if not reason.unreadable:
                denied = may_apply is not None and may_apply.permission is Permission.DENY
                return may_apply if denied else decision
            if may_apply is None and self.unreadable is not Permission.ALLOW:
                stricter = permission is Permission.DENY and self.unreadable is Permission.DENY
                may_apply = replace(decision, permission=Permission.DENY if stricter else Permission.ASK)
        return may_apply

    def _reason(self, rule: _DenyOrAskRule | _PathRule, judged: Sequence[str], call: CallArguments) -> _Reason:
        if self.has_uri and isinstance(rule, _DenyOrAskRule) and (reason := rule.reason_for_uri(call)).text:
            return reason
        return rule.reason_for(judged, call)


def _named_file(  # what the files are called
    rule: _DenyOrAskRule | _PathRule,
    paths: Sequence[str],
    spelled: Sequence[str],
    patterns: Sequence[str],
    folded: str,
    budget: WorkBudget,
) -> str:
    """The first file that a rule is about; empty: none. Raises BudgetExceeded."""
    if isinstance(rule, _PathRule):
        named = next((path for path in paths if rule.may_match_path(path, budget)), "")
        return named or next((pattern for pattern in patterns if rule.may_name(pattern, budget)), "")
    if rule.word in folded or "%" in folded:
        for text in spelled:
            if rule.may_match_path(text, budget):
                return text
    specifier = matchers.folded(rule.parts.specifier)
    for pattern in patterns:
        budget.spend(1000 + 100 * len(pattern))
        if may_both_name(specifier, matchers.folded(pattern)):
            return pattern
    return ""


def _is_plain_without(arguments: bytes, words: tuple[bytes, ...]) -> bool:
    """True if the arguments are short, spelled as they are meant, and contain none of these words: most calls.

    Then no deny or ask rule with such a word matches them: none is a command line, a list or an object, which may match
    a rule otherwise, and at least one is a text.
    """
    if len(arguments) > _LONGEST_PLAIN or not arguments.isascii():
        return False
    folded = arguments.lower()
    for sign in _NOT_PLAIN:  # `any` with a generator would cost more than the loops
        if sign in folded:
            return False
    for word in words:
        if word in folded:
            return False
    try:
        return folded.count(b"{") == 1 and b':"' in folded and bool(raw_json.fields(arguments))
    except ValueError:
        return False


def parsed(text: str) -> matchers.Rule:
    """Parse a rule of hookproxy.toml. Raises ValueError for a text that is not a rule, or is a regular expression."""
    rule = matchers.rule(text)
    sign = _EXPRESSION.search(rule.text.partition("(")[0])
    if sign:
        raise ValueError(
            f"{text!r} is not a permission rule: {sign[0]!r} has no meaning in a tool's name; the wildcards are * and ?"
        )
    return rule


def _deny_or_ask_rule(text: str, place: str = "", at: str = "") -> _DenyOrAskRule:
    rule = parsed(text)
    specifier = ARGUMENT_OF_PLACE.sub("", rule.specifier)  # a server may take it from any argument: all are checked
    return _DenyOrAskRule(
        rule,
        _command_matcher(specifier),
        _text_matcher(specifier),
        matchers.is_path(specifier),
        specifier.startswith("domain:"),
        matchers.is_path_or_address(specifier),
        _uri_matcher(rule.specifier),
        _word(specifier),
        _uri_word(rule.specifier),
        place,
        at,
    )


def _command_matcher(specifier: str) -> Callable[[str, WorkBudget], shell_commands.Runs]:
    """Return a function that decides whether a command line may run a command that this specifier names.

    The grammar of shells takes 30 ms to import: it waits for the first command line.
    """
    matcher: Callable[[str, WorkBudget], shell_commands.Runs] | None = None

    def runs(line: str, budget: WorkBudget) -> shell_commands.Runs:
        nonlocal matcher
        if matcher is None:
            from .shell_commands import command_matcher

            matcher = command_matcher(specifier)
        return matcher(line, budget)

    return runs


def _uri_matcher(specifier: str) -> Callable[[str], bool]:
    """Return a function that tells whether a reading of a URI matches; it is made when the first request has one."""
    matcher: Callable[[str], bool] | None = None

    def matches(reading: str) -> bool:
        nonlocal matcher
        if matcher is None:
            from .resource_uris import matcher as uri_matcher

            matcher = uri_matcher(specifier)
        return matcher(reading)

    return matches


def _shown(key: str) -> str:
    """The name of an argument, cut to what a sentence can hold: the agent chooses it."""
    return repr(key[:_LONGEST_SHOWN])


def _deny_or_ask_rules(settings: Settings, decision: str, own: Sequence[str]) -> Iterator[_DenyOrAskRule | _PathRule]:
    """The rules of hookproxy.toml, and then those of agents' settings files. Raises ValueError, as `parsed`."""
    for text in own:
        yield _deny_or_ask_rule(text, at=settings.rule_places.get(f"{decision} {text}", ""))
    for rule in settings.agent_rules:
        if rule.decision == decision and rule.path:
            pattern = _path_pattern(rule, fold=True)
            yield _PathRule(_named(rule), pattern, rule.place, specifiers=_specifiers(rule))
        elif rule.decision == decision:
            yield _deny_or_ask_rule(rule.text, rule.place)


def _named(rule: AgentRule) -> matchers.Rule:
    """The parts of a rule about the paths of several tools."""
    names = "|".join(map(re.escape, rule.names))
    return matchers.Rule(rule.text, re.compile(names), rule.path, re.compile(names.casefold()))


def _specifiers(rule: AgentRule) -> tuple[str, ...]:
    """The pattern below each folder that it starts from: a single name is for any depth, and all below it as well."""
    path = rule.path.removeprefix("./").strip("/")
    depth = "" if "/" in path or rule.path.startswith(("/", "./", "../")) else "**/"
    below = path if path.endswith("**") else f"{path}/**"
    return tuple(matchers.folded(f"{base.rstrip('/')}/{depth}{below}") for base in rule.bases)


def _path_pattern(rule: AgentRule, *, fold: bool) -> PathPattern:
    return PathPattern.of(rule.bases, rule.path, rule.folders, rule.home, fold=fold)


def _allow_rule(text: str, at: str = "") -> _AllowRule:
    """Raises ValueError for a text that is not a rule."""
    rule = parsed(text)
    return _AllowRule(rule.text, "", rule.names_tool, matchers.allow_rule(text), at)


def _agent_allow_rule(rule: AgentRule) -> _AllowRule:
    """An allow rule of an agent's settings file."""
    if not rule.path:
        return _AllowRule(rule.text, rule.place, matchers.rule(rule.text).names_tool, matchers.allow_rule(rule.text))
    pattern = _path_pattern(rule, fold=False)

    def covers(name: str, arguments: bytes) -> bool:
        return name in rule.names and allows(pattern, _PATH_ARGUMENT.get(name, "path"), arguments)

    return _AllowRule(rule.text, rule.place, rule.names.__contains__, covers)
