"""The permission rules of hookproxy.toml: which calls are denied, need a person's consent, or have it.

A rule is a glob over a tool's names, with what it says about arguments in parentheses. Deny beats ask beats allow.
Where a call cannot be judged, a deny or ask rule counts as meant, and an allow rule does not (law 3). Of command lines
`commandline` says what is seen through: a rule about them is no sandbox. Nor is one about paths: links lead anywhere.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from . import commandline, matching, wire
from .matching import JUDGED
from .model import Permission
from .settings import Settings

HINT: Final = "write Tool or Tool(what), as in delete_* or Bash(git push:*)"
_EXPRESSION: Final = re.compile(r"[|,^$\\+]")
"""In a tool's name: of a regular expression or a list."""

_LINES: Final = re.compile(r"command|cmd|(?<![a-z])(?:script|shell)", re.IGNORECASE)
"""In an argument's name: it is a command line."""

_HALF_PAIR: Final = re.compile(r"[\ud800-\udfff]")
_NO_PATH: Final = 4096  # characters: what is longer is no path, and no address
_MOST_TEXTS: Final = 1024  # in a call, and as many pairs: all are looked at
_MOST_PARTS: Final = 16_384  # of all texts, such as lines


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the rules say about a call."""

    permission: Permission
    rule: str
    """The rule that says so, as written."""

    @property
    def by(self) -> str:
        """Who says so, in words: for questions to a person."""
        return f"the permission rule {self.rule} of hookproxy.toml"


@dataclass(frozen=True, slots=True)
class _Guard:
    """A deny or ask rule: what cannot be judged is meant."""

    rule: matching.Rule
    runs: Callable[[str], bool]
    """Of a command line."""
    says: Callable[[str], bool]
    """Of any other text."""

    def covers(self, names: Sequence[str], arguments: bytes) -> bool:
        """Whether a call of a tool with these names may be meant."""
        meant = [name for name in names if self.rule.is_for(name)]
        return bool(meant) and (not self.rule.wanted or any(self._means(name, arguments) for name in meant))

    def _means(self, name: str, arguments: bytes) -> bool:
        try:
            members = {key: _read(bytes(raw)) for key, raw in wire.fields(arguments).items()}
        except (ValueError, RecursionError):
            return True
        judged = JUDGED.get(name, "")
        if judged in members:  # one of Claude Code's own tools: no other argument is meant
            members = {key: value for key, value in members.items() if key.casefold() == judged}
        return _any_meant(members, self)


def _any_meant(members: dict[str, object], guard: _Guard) -> bool:
    """Every argument is looked at: which one the tool takes for its command or its first is the server's affair."""
    lines = {key: value for key, value in members.items() if value is not None and _LINES.search(key)}
    lists = [_texts(value) for key, value in members.items() if isinstance(value, list | dict)]
    texts = [value for value in members.values() if isinstance(value, str)]
    known = [*texts, *(text for each in lists for text in each)]
    if any(isinstance(value, list | dict) for value in lines.values()) or not known or len(known) > _MOST_TEXTS:
        return True
    if any(map(_HALF_PAIR.search, known)) or any(
        guard.runs(value) for value in lines.values() if isinstance(value, str)
    ):
        return True
    joined = [" ".join(each) for each in lists]
    if len(texts) * len(joined) > _MOST_TEXTS:
        return True
    composed = [f"{text} {rest}" for text in texts for rest in joined if len(text) <= _NO_PATH]
    if any(guard.says(text) for text in [*known, *joined, *composed]):
        return True
    if lines or _is_place(guard.rule.wanted):
        return False
    parts = {part.strip() for text in known for part in matching.BETWEEN_COMMANDS.split(text)}
    return len(parts) > _MOST_PARTS or any(map(guard.says, parts))


def _read(raw: bytes) -> object:
    """A JSON value; a number or a truth as a text of how it is spelled."""
    value: object = json.loads(raw, parse_int=str, parse_float=str, parse_constant=wire.no_constant)
    return json.dumps(value) if isinstance(value, bool) else value


def _texts(value: object) -> list[str]:
    """All texts in a list or an object, in order."""
    found: list[str] = []
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            todo.extend(reversed(one.values()))
        elif isinstance(one, list):
            todo.extend(reversed(one))
        elif one is not None:
            found.append(one if isinstance(one, str) else json.dumps(one))
    return found


def _is_place(wanted: str) -> bool:
    """The rule is about a path or an address: such a text has no parts."""
    return wanted.startswith("domain:") or "/" in wanted.split(" ")[0]


def _says(wanted: str) -> Callable[[str], bool]:
    """Tells of a text that is no command line whether a rule says something about it."""
    if wanted.startswith("domain:"):
        return lambda text: _has_domain(wanted[7:].casefold(), text)
    anywhere, exact, place = matching.value_pattern(wanted), matching.command_pattern(wanted), _is_place(wanted)

    def says(text: str) -> bool:
        if any(exact.fullmatch(one) for one in (text, text.strip(), " ".join(text.split()))):
            return True
        if len(text) > _NO_PATH:
            return False
        paths = _paths(text)
        if place and any(path == ".." or path.startswith("../") for path in paths):
            return True  # whither that leads, only the server knows
        pattern = exact if "\n" in text else anywhere
        return any(pattern.fullmatch(path) for path in paths)

    return says


def _paths(text: str) -> list[str]:
    """The text as the path that it may be a spelling of."""
    text = text.strip()
    if text[:5].casefold() == "file:":
        text = re.sub("^/+", "/", _unquoted(text[5:]))
    spelled = [text, text.replace("\\", "/")]
    return [*spelled, *(re.sub("^//", "/", posixpath.normpath(one)) for one in spelled)]


def _unquoted(text: str) -> str:
    from urllib.parse import unquote  # 5 ms, for those who have such rules only

    return unquote(text)


def _has_domain(domain: str, text: str) -> bool:
    from unicodedata import normalize

    text = normalize("NFKC", _unquoted(text)).casefold()
    if len(text) > _NO_PATH:
        return all(part in text for part in domain.split("*"))
    first, star, _ = domain.partition("*")
    begin = rf".*?(?<![\w-]){re.escape(first)}"
    pattern = f"(?>{begin})" if star else begin  # before a star, the first is as good as any
    return re.fullmatch(rf"{pattern}{matching.glob(domain[len(first) :])}(?![\w-]).*", text, re.DOTALL) is not None


@dataclass(frozen=True, slots=True)
class Rules:
    """All permission rules of one configuration."""

    deny: tuple[_Guard, ...] = ()
    ask: tuple[_Guard, ...] = ()
    allow: tuple[tuple[str, Callable[[str, bytes], bool]], ...] = ()
    hide_denied: bool = True

    @staticmethod
    def of(settings: Settings) -> Rules:
        """The rules that are configured. Raises ValueError for one that is none."""
        return Rules(
            tuple(map(_guard, settings.deny)),
            tuple(map(_guard, settings.ask)),
            tuple((parsed(text).text, matching.allow_rule(text)) for text in settings.allow),
            settings.hide_denied,
        )

    def __bool__(self) -> bool:
        """Some rule is configured."""
        return bool(self.deny or self.ask or self.allow)

    def concerns(self, names: Sequence[str]) -> bool:
        """True if some deny or ask rule could be about a tool with these names."""
        return any(guard.rule.is_for(name) for guard in (*self.deny, *self.ask) for name in names)

    def hides(self, names: Sequence[str]) -> bool:
        """True if a tool with these names is not to be listed, for every call of it would be denied."""
        whole = (guard for guard in self.deny if not guard.rule.wanted)
        return self.hide_denied and any(guard.rule.is_for(name) for guard in whole for name in names)

    def judge(self, names: Sequence[str], arguments: bytes) -> Ruling | None:
        """What is ruled on a call: `names` are all names of its tool, `arguments` normalised JSON. None: nothing."""
        for permission, guards in ((Permission.DENY, self.deny), (Permission.ASK, self.ask)):
            for guard in guards:
                if guard.covers(names, arguments):
                    return Ruling(permission, guard.rule.text)
        for text, covers in self.allow:
            if any(covers(name, arguments) for name in names):
                return Ruling(Permission.ALLOW, text)
        return None


def parsed(text: str) -> matching.Rule:
    """A rule of hookproxy.toml. Raises ValueError for what is none, or is meant as a regular expression."""
    one = matching.rule(text)
    sign = _EXPRESSION.search(one.text.partition("(")[0])
    if sign:
        raise ValueError(
            f"{text!r} is no permission rule: {sign[0]!r} stands for nothing in a tool's name, but *, ? do"
        )
    return one


def _guard(text: str) -> _Guard:
    one = parsed(text)
    return _Guard(one, commandline.runs(one.wanted), _says(one.wanted))
