"""The permission rules of hookproxy.toml: which calls are denied, need approval, or are allowed.

A rule is a glob over the names of tools, with an optional specifier for the arguments in parentheses. Deny beats ask
beats allow.
If a call cannot be judged, deny and ask rules apply to it, and allow rules do not (law 3). `shell_commands` says what
is recognised in command lines: a rule about them is not a sandbox. A rule about paths is not one either, because of
links. A server may ignore the case of names and paths. Therefore deny and ask rules ignore it, but allow rules do not.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model import command_line
from ..model.hooks import Permission
from ..model.settings import AgentRule, Settings
from . import matchers
from .globs import COMMAND_SEPARATORS, BudgetExceeded, WorkBudget, command_pattern, path_pattern
from .matchers import COMMAND_ARGUMENT, JUDGED_ARGUMENT
from .path_rules import PathPattern, allows

if TYPE_CHECKING:
    from . import shell_commands

HINT: Final = "write Tool or Tool(specifier), such as delete_* or Bash(git push:*)"
_EXPRESSION: Final = re.compile(r"[|,^$\\+]")
"""In a tool's name: a character of a regular expression or a list."""

_LIKE_A_PLACE: Final = re.compile(r"[/.:\\\s]")
"""In an argument's name: the name itself may be a path or an address."""

_WORD: Final = re.compile(r"[A-Za-z0-9]+")
"""In a specifier: a text that matches it has this in it, in whatever folder, with whatever blanks or slashes."""

_MAY_BECOME_WORD: Final = re.compile(r"%|\.\.")
"""It matches a text that is decoded before it is compared, or that is any folder."""

_LONGEST_PLAIN: Final = 1024  # bytes of arguments that are looked at as a whole first: they have few members
_NOT_PLAIN: Final = (b"\\", b"%", b"..", b"[", b"null", b"command", b"cmd", b"script", b"shell")
"""What plain arguments do not contain: as `_MAY_BECOME_WORD`, a list, no text at all, and names that `COMMAND_ARGUMENT`
finds."""

_HALF_PAIR: Final = re.compile(r"[\ud800-\udfff]")
_NO_PATH: Final = 4096  # characters: a longer text is no path or address, unless it is spelled like one
_MOST_TEXTS: Final = 1024  # in one call, and as many pairs of texts
_MOST_MEMBERS: Final = 16_384  # of all objects of a call
_MOST_BYTES: Final = 65_536  # of all texts that are searched as a whole
_LONGEST: Final = 4_194_304  # bytes of all arguments
_MOST_NESTED: Final = 262_144  # of all lists and objects with their contents

_LONG_PATH: Final = re.compile(r"\s*(?:/+[^/*\s]|[.~\\]|file:)", re.IGNORECASE)
"""The beginning of a long text that may spell a path; comments begin differently."""


_ARGUMENT_OF_PATH: Final = re.compile(r"(?!domain:|file:)[A-Za-z_]\w+:(?=/(?!/)|~/|\.{1,2}/)")
"""In `path:/etc/*`: the name of an argument. A server may take the path from any argument, so all are checked."""

_LONGEST_SHOWN: Final = 60  # characters
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
    is_place: bool
    """The rule is about a path or an address."""
    word: str = ""
    """What every text that matches the rule contains in some case, unless it is decoded first; empty if not known."""
    place: str = ""
    at: str = ""
    """File, line and key of the rule; empty if not known."""

    def judged(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the argument that it is about, for each of a tool's names that it names; empty: about all of them."""
        return tuple(dict.fromkeys(JUDGED_ARGUMENT.get(name, "") for name in names if self.parts.may_name_tool(name)))

    def reason_for(self, judged: Sequence[str], call: _Call) -> _Reason:
        """Why the rule applies to a call of a tool that it names, or may apply; empty if it does not.

        `judged` is as returned by the method of this name.
        """
        if not self.parts.specifier:
            return _Reason(_EVERY_CALL)
        unreadable = _NO_REASON
        try:
            for argument in judged:
                reason = _reason_to_match(call, argument, self)
                if reason.text and not reason.unreadable:
                    return reason
                unreadable = unreadable if unreadable.text else reason
        except (ValueError, RecursionError, BudgetExceeded):
            return _Reason(_NOT_JUDGED)
        return unreadable


class _PathRule(Struct, frozen=True):
    """A deny or ask rule about paths from an agent's settings file."""

    parts: matchers.Rule
    pattern: PathPattern
    place: str
    at: str = ""

    def judged(self, names: Sequence[str]) -> tuple[str, ...]:
        """As `_DenyOrAskRule.judged`: the argument with the path."""
        return tuple(
            dict.fromkeys(_PATH_ARGUMENT.get(name, "path") for name in names if self.parts.may_name_tool(name))
        )

    def reason_for(self, judged: Sequence[str], call: _Call) -> _Reason:
        """As `_DenyOrAskRule.reason_for`."""
        try:
            matches = any(self._may_match(call, argument) for argument in judged)
        except (ValueError, RecursionError, BudgetExceeded):
            return _Reason(_NOT_JUDGED)
        return _Reason(_MATCHES) if matches else _NO_REASON

    def _may_match(self, call: _Call, judged: str) -> bool:
        members = call.members(judged)
        if members.get(judged, b'"')[:1] != b'"':
            return True
        texts = [text for raw in members.values() for text in _all_texts(raw)]
        if judged not in map(str.casefold, members) and judged == "path":
            texts.append(".")  # a search without a path is one in the folder
        if len(texts) > _MOST_TEXTS or not texts or any(map(_HALF_PAIR.search, texts)):
            return True
        call.budget.spend(2000 * len(texts) + sum(map(len, texts)))
        return any(self.pattern.may_match(text) for text in texts if len(text) <= _NO_PATH or _LONG_PATH.match(text))


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


class _Call:
    """The arguments of a call, and the work that judging it may still take."""

    def __init__(self, arguments: bytes) -> None:
        self._arguments = arguments
        self._members: dict[str, bytes] | None = None
        self._read: dict[tuple[str, bool], _Arguments] = {}
        self.budget: Final = WorkBudget()

    def members(self, judged: str) -> dict[str, bytes]:
        """Return the arguments that the rule is about. Raises ValueError, BudgetExceeded."""
        if self._members is None:
            if len(self._arguments) > _LONGEST or _too_many(self._arguments):
                raise BudgetExceeded
            self._members = {key: bytes(raw) for key, raw in raw_json.fields(self._arguments).items()}
        if judged not in self._members:
            return self._members
        # one of Claude Code's own tools: the rule is about no other argument
        return {key: raw for key, raw in self._members.items() if key.casefold() == judged}

    def arguments(self, judged: str, *, without_long: bool) -> _Arguments:
        """Read what `members` returns, once for all rules. Raises ValueError, RecursionError, BudgetExceeded."""
        without_long = without_long and len(self._arguments) > _MOST_BYTES  # otherwise none of them is long
        found = self._read.get((judged, without_long))
        if found is None:
            found = _Arguments(self.members(judged), without_long, self.budget)
            self._read[judged, without_long] = found
        return found


def _too_many(raw: bytes) -> bool:
    """True if there are too many members to read. It never counts too few, because quotes in texts are escaped."""
    most = raw.count(b'":')
    return most > _MOST_MEMBERS and most - raw.count(b'\\":') + raw.count(b'\\\\":') > _MOST_MEMBERS


def _reason_to_match(call: _Call, judged: str, rule: _DenyOrAskRule) -> _Reason:
    """Check every argument, because only the server knows which one the tool takes for its command.

    Returns why the rule may be about them; empty if it is not. Raises ValueError, RecursionError, BudgetExceeded.
    """
    arguments = call.arguments(judged, without_long=rule.is_path)
    for key in arguments.long:
        if _long_text_may_match(arguments.members[key], rule):
            return _Reason(f"its argument {_shown(key)} may be such a path")
    arguments.decode()
    if arguments.not_a_line:
        key = _shown(arguments.not_a_line)
        return _Reason(f"its argument {key} is not a text, so the command in it cannot be read")
    if not arguments.texts.values and not arguments.long:
        return _Reason(_NO_ARGUMENT)
    if arguments.unreadable:
        return _Reason(_NOT_JUDGED)
    return _reason_of_texts(arguments, rule, call.budget)


class _Texts(Struct, frozen=True):
    """All texts in the arguments of a call."""

    whole: list[str]
    """Arguments that are texts."""
    joined: list[str]
    """The texts of each list and each object, with blanks between them."""
    values: list[str]
    """All texts, at any depth."""
    keys: list[str]
    """The names of all members below the arguments."""

    @staticmethod
    def of(values: dict[str, object]) -> _Texts:
        nested = [_texts(value) for value in values.values() if isinstance(value, list | dict)]
        whole = [value for value in values.values() if isinstance(value, str)]
        if not nested:
            return _Texts(whole, [], whole, [])
        inner = [text for each, _ in nested for text in each]
        return _Texts(whole, [" ".join(each) for each, _ in nested], whole + inner, [k for _, ks in nested for k in ks])


class _Arguments:
    """The arguments of a call as rules read them: what no rule changes is made once, and only where one needs it."""

    def __init__(self, members: dict[str, bytes], without_long: bool, budget: WorkBudget) -> None:
        self.members: Final = members
        self._budget: Final = budget
        line_keys = [key for key, raw in members.items() if raw != b"null" and COMMAND_ARGUMENT.search(key)]
        self.long: Final = [
            key
            for key, raw in members.items()
            if without_long and len(raw) > _MOST_BYTES and raw[:1] == b'"' and key not in line_keys
        ]
        """The texts that are left out of all below because they are long."""
        self._line_keys: Final = line_keys
        self.lines: list[tuple[str, str]] = []
        """The command lines, each with the argument in which it, or its first word, is."""
        self.not_a_line = ""
        """An argument with a command of which no line can be made."""
        self.texts = _Texts([], [], [], [])
        self.known: list[str] = []
        """All texts, and all names that may be a path or an address."""
        self.unreadable = False
        """There are too many texts, or half of a surrogate pair."""
        self._decoded = False
        self._whole: list[str] | None = None
        self._size = 0  # characters in them
        self._parts: set[str] | None = None

    def decode(self) -> None:
        """Decode the arguments. Raises ValueError, RecursionError, BudgetExceeded."""
        if self._decoded:
            return
        short = {key: raw for key, raw in self.members.items() if key not in self.long} if self.long else self.members
        values = _values(short, self._budget)
        self._read_lines(values)
        self.texts = _Texts.of(values)
        self.known = self.texts.values + [key for key in self.members if _LIKE_A_PLACE.search(key)] + self.texts.keys
        self.unreadable = len(self.known) > _MOST_TEXTS or _HALF_PAIR.search("".join(self.known)) is not None
        self._decoded = True

    @property
    def has_commands(self) -> bool:
        """Some argument is a command by its name."""
        return bool(self._line_keys)

    def _read_lines(self, values: dict[str, object]) -> None:
        """Note the command lines: texts, and lists of words, also behind the program in another argument."""
        lists = [key for key, value in values.items() if isinstance(value, list)]
        words = (
            [key for key in command_line.word_arguments(lists) if command_line.has_words(values[key])] if lists else []
        )
        if not (self._line_keys or words):
            return
        keys = self._line_keys or [key for key in values if words and command_line.is_program(key)]
        tail = [values[key] for key in words if key not in keys]
        for key in keys or words[:1]:
            value = values.get(key) if keys else None
            if value is None and keys:
                continue
            try:
                self.lines += [(key, line) for line in _lines(key, value, tail)]
            except raw_json.Unreadable:
                self.not_a_line = key if keys else ""

    def whole(self) -> list[str]:
        """All texts that may be or spell one value: also a text and a list together. Raises BudgetExceeded."""
        if self._whole is None:
            self._whole = [*self.known, *_composed(self.texts.whole, self.texts.joined, self._budget)]
            self._size = sum(map(len, self._whole))
        self._budget.spend(1000 * len(self._whole) + 8 * self._size)  # for the rule that is tried
        return self._whole

    def parts(self) -> set[str]:
        """The texts between separators of commands that are not in `whole`. Raises BudgetExceeded."""
        if self._parts is None:
            self._parts = {part.strip() for text in self.known for part in COMMAND_SEPARATORS.split(text)}
            self._parts.difference_update(self.known)
        self._budget.spend(900 * len(self._parts))  # two thousand of them are too many
        return self._parts


def _reason_of_texts(arguments: _Arguments, rule: _DenyOrAskRule, budget: WorkBudget) -> _Reason:
    """As `_reason_to_match`, for arguments that can be read."""
    unreadable = _NO_REASON
    for key, line in arguments.lines:
        runs = rule.runs(line, budget)
        if runs.certain:
            return _Reason(f"its argument {_shown(key)} may run such a command")
        if runs.unreadable and not unreadable.text:
            unreadable = _Reason(
                f"its argument {_shown(key)} cannot be read, so it may run such a command ({runs.unreadable})", True
            )
    if rule.is_path:  # no path is composed of several texts
        matches = any(_path_may_match(text, rule, budget) for text in arguments.known)
    else:
        in_parts = not arguments.has_commands and not rule.is_place
        matches = any(map(rule.matches_text, arguments.whole())) or (
            in_parts and any(map(rule.matches_text, arguments.parts()))
        )
    return _Reason(_MATCHES) if matches else unreadable


def _lines(key: str, value: object, words: list[object]) -> list[str]:
    """The lines that a command and the words behind it may be; a text is also one alone. Raises Unreadable."""
    if isinstance(value, str) and not words:
        return [value]
    lines = command_line.readings(key, value, words)
    return [*lines, value] if isinstance(value, str) else lines


def _values(members: dict[str, bytes], budget: WorkBudget) -> dict[str, object]:
    """Return the decoded arguments. Raises ValueError, BudgetExceeded."""
    nested = sum(len(raw) for raw in members.values() if raw[:1] in (b"[", b"{"))
    whole = sum(map(len, members.values())) - nested
    if nested > _MOST_NESTED or whole > _MOST_BYTES or len(members) > _MOST_TEXTS:
        raise BudgetExceeded
    budget.spend(4 * nested + whole)
    return {key: _read(raw) for key, raw in members.items()}


def _composed(texts: list[str], joined: list[str], budget: WorkBudget) -> list[str]:
    """Return what a text and a list may form together, such as a program and its arguments. Raises BudgetExceeded."""
    if not joined:
        return []
    short = [text for text in texts if len(text) <= _NO_PATH]
    if len(texts) * len(joined) > _MOST_TEXTS:
        raise BudgetExceeded
    budget.spend(4 * (len(joined) * sum(map(len, short)) + len(short) * sum(map(len, joined))))
    return [*joined, *(f"{text} {rest}" for text in short for rest in joined)]


def _path_may_match(text: str, rule: _DenyOrAskRule, budget: WorkBudget) -> bool:
    if len(text) > _MOST_BYTES:
        return _long_text_may_match(raw_json.encode(text), rule)
    budget.spend(1000 + 4 * len(text))
    return rule.matches_text(text)


def _long_text_may_match(raw: bytes, rule: _DenyOrAskRule) -> bool:
    """True if a text that is too long to be searched as a whole may spell a path that the rule is about."""
    if b"/.." in raw or b"\\.." in raw:
        return True
    text = raw_json.text(raw)
    if text is None or _LONG_PATH.match(text):
        return True
    return rule.matches_text(text[:_NO_PATH])


_DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=raw_json.reject_constant)


def _read(raw: bytes) -> object:
    """Decode a JSON value, with numbers and booleans as texts of their spelling."""
    if raw[:1] == b'"' and (text := raw_json.text(raw)) is not None:  # nearly all
        return text
    value: object = _DECODER.decode(raw.decode(errors="surrogatepass"))  # `json.loads` would make a decoder each time
    return json.dumps(value) if isinstance(value, bool) else value


def _texts(value: object) -> tuple[list[str], list[str]]:
    """Return all texts in a list or an object, in order, and all keys."""
    found: list[str] = []
    keys: list[str] = []
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            keys.extend(one)
            todo.extend(reversed(one.values()))
        elif isinstance(one, list):
            todo.extend(reversed(one))
        elif one is not None:
            found.append(one if isinstance(one, str) else json.dumps(one))
    return found, keys


def _word(specifier: str) -> str:
    """Return the longest word of a specifier, in lower case; empty if it has none, or is decided otherwise."""
    if specifier.startswith("domain:"):
        return ""
    return max(_WORD.findall(matchers.folded(specifier)), key=len, default="")


def _text_matcher(specifier: str) -> Callable[[str], bool]:
    """Return a function that tells whether a text that is no command line matches the specifier."""
    if specifier.startswith("domain:"):
        return lambda text: matchers.has_domain(specifier[7:].casefold(), text)
    is_place = matchers.is_path_or_address(specifier)
    spelled = [specifier, matchers.folded(specifier)] if is_place else [specifier]
    exact = path_pattern if matchers.is_path(specifier) else command_pattern
    patterns = [(matchers.value_pattern(text), exact(text)) for text in spelled]
    word = _word(specifier)

    def matches(text: str) -> bool:
        folded = matchers.folded(text)
        if word not in folded and word not in text.casefold() and not _MAY_BECOME_WORD.search(text):
            return False
        return any(
            _matches_text(one, anywhere, exact, is_place)
            for one, (anywhere, exact) in zip((text, folded), patterns, strict=False)
        )

    return matches


def _matches_text(text: str, anywhere: re.Pattern[str], exact: re.Pattern[str], is_place: bool) -> bool:
    if any(exact.fullmatch(one) for one in (text, text.strip(), " ".join(text.split()))):
        return True
    if len(text) > _NO_PATH and not is_place:
        return False
    paths = _paths(text)
    if len(text) > _NO_PATH:
        return any(exact.fullmatch(path) for path in paths)
    if is_place and any(path == ".." or path.startswith("../") for path in paths):
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
        spelled += [one.partition("\0")[0] for one in spelled]
    return [*spelled, *(re.sub("^//", "/", posixpath.normpath(one)) for one in spelled)]


class Rules(Struct, frozen=True):
    """All permission rules of one configuration."""

    deny: tuple[_DenyOrAskRule | _PathRule, ...] = ()
    ask: tuple[_DenyOrAskRule | _PathRule, ...] = ()
    allow: tuple[_AllowRule, ...] = ()
    hide_denied: bool = True
    unreadable: Permission = Permission.ASK
    """What happens to a call whose command line cannot be read, and might run what a rule denies."""

    @staticmethod
    def of(settings: Settings) -> Rules:
        """Parse the configured rules. Raises ValueError for a text that is not a rule."""
        return Rules(
            (
                *_own_rules(settings, "deny", settings.deny),
                *_agent_rules(settings, "deny"),
            ),
            (
                *_own_rules(settings, "ask", settings.ask),
                *_agent_rules(settings, "ask"),
            ),
            (
                *(_allow_rule(text) for text in settings.allow),
                *(_agent_allow_rule(one) for one in settings.agent_rules if one.decision == "allow"),
            ),
            settings.hide_denied,
            Permission[settings.unreadable.upper()],
        )

    def __bool__(self) -> bool:
        """True if some rule is configured."""
        return bool(self.deny or self.ask or self.allow)

    def concerns(self, names: Sequence[str]) -> bool:
        """True if some deny or ask rule may apply to a tool with these names."""
        return any(rule.parts.may_name_tool(name) for rule in (*self.deny, *self.ask) for name in names)

    def about(self, names: Sequence[str]) -> ToolRules:
        """Return the rules that decide about calls of a tool, by all its names."""
        deny_or_ask = [(Permission.DENY, rule) for rule in self.deny] + [(Permission.ASK, rule) for rule in self.ask]
        allowed = matchers.allowed_as(names)
        named = [(rule, tuple(filter(rule.names_tool, allowed))) for rule in self.allow]
        about = tuple((permission, rule, judged) for permission, rule in deny_or_ask if (judged := rule.judged(names)))
        words = [rule.word.encode() if isinstance(rule, _DenyOrAskRule) else b"" for _, rule, _ in about]
        return ToolRules(
            about, tuple(one for one in named if one[1]), tuple(words) if all(words) else None, self.unreadable
        )

    def hides(self, names: Sequence[str]) -> bool:
        """True if a tool with these names must not be listed, because every call of it would be denied."""
        whole = (rule for rule in self.deny if not rule.parts.specifier)
        return self.hide_denied and any(rule.parts.may_name_tool(name) for rule in whole for name in names)

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

    def __bool__(self) -> bool:
        """True if some rule names the tool."""
        return bool(self.deny_or_ask or self.allow)

    def judge(self, arguments: bytes) -> RuleDecision | None:
        """Return the decision about a call with these arguments, normalised JSON; None: no rule applies."""
        if not (self.words is not None and _is_plain_without(arguments, self.words)):
            decision = self._denied_or_asked(_Call(arguments))
            if decision is not None:
                return decision
        for allow_rule, names in self.allow:
            if any(allow_rule.covers(name, arguments) for name in names):
                return RuleDecision(Permission.ALLOW, allow_rule.text, allow_rule.place)
        return None

    def _denied_or_asked(self, call: _Call) -> RuleDecision | None:
        """The first rule that certainly applies decides, unless a stricter one may apply (`unreadable`)."""
        may_apply: RuleDecision | None = None
        for permission, rule, judged in self.deny_or_ask:
            reason = rule.reason_for(judged, call)
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
    one = matchers.rule(text)
    sign = _EXPRESSION.search(one.text.partition("(")[0])
    if sign:
        raise ValueError(
            f"{text!r} is not a permission rule: {sign[0]!r} has no meaning in a tool's name; the wildcards are * and ?"
        )
    return one


def _deny_or_ask_rule(text: str, place: str = "", at: str = "") -> _DenyOrAskRule:
    one = parsed(text)
    specifier = _ARGUMENT_OF_PATH.sub("", one.specifier)
    return _DenyOrAskRule(
        one,
        _command_matcher(specifier),
        _text_matcher(specifier),
        matchers.is_path(specifier),
        matchers.is_path_or_address(one.specifier),
        _word(specifier),
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


def _shown(key: str) -> str:
    """The name of an argument, cut to what a sentence can hold: the agent chooses it."""
    return repr(key[:_LONGEST_SHOWN])


def _own_rules(settings: Settings, kind: str, rules: Sequence[str]) -> Iterator[_DenyOrAskRule]:
    """The deny or ask rules of hookproxy.toml. Raises ValueError for a text that is not a rule."""
    return (_deny_or_ask_rule(text, at=settings.rule_places.get(f"{kind} {text}", "")) for text in rules)


def _agent_rules(settings: Settings, decision: str) -> Iterator[_DenyOrAskRule | _PathRule]:
    """The deny or ask rules of agents' settings files."""
    for one in settings.agent_rules:
        if one.decision == decision and one.path:
            yield _PathRule(_named(one), _path_pattern(one, fold=True), one.place)
        elif one.decision == decision:
            yield _deny_or_ask_rule(one.text, one.place)


def _named(one: AgentRule) -> matchers.Rule:
    """The parts of a rule about the paths of several tools."""
    names = "|".join(map(re.escape, one.names))
    return matchers.Rule(one.text, re.compile(names), one.path, re.compile(names.casefold()))


def _path_pattern(one: AgentRule, *, fold: bool) -> PathPattern:
    return PathPattern.of(one.bases, one.path, one.folders, one.home, fold=fold)


def _allow_rule(text: str, place: str = "") -> _AllowRule:
    """Raises ValueError for a text that is not a rule."""
    one = parsed(text)
    return _AllowRule(one.text, place, one.names_tool, matchers.allow_rule(text))


def _agent_allow_rule(one: AgentRule) -> _AllowRule:
    """An allow rule of an agent's settings file."""
    if not one.path:
        return _AllowRule(one.text, one.place, matchers.rule(one.text).names_tool, matchers.allow_rule(one.text))
    pattern = _path_pattern(one, fold=False)

    def covers(name: str, arguments: bytes) -> bool:
        return name in one.names and allows(pattern, _PATH_ARGUMENT.get(name, "path"), arguments)

    return _AllowRule(one.text, one.place, lambda name: name in one.names, covers)


def _all_texts(raw: bytes) -> list[str]:
    """Every text in a JSON value, keys included. Raises ValueError."""
    if raw[:1] == b'"':
        text = raw_json.text(raw)
        if text is None:
            raise raw_json.Unreadable("a text has half of a surrogate pair")
        return [text]
    texts, keys = _texts(_read(raw)) if raw[:1] in (b"[", b"{") else ([], [])
    return texts + keys
