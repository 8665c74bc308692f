"""Compiles `detectors.toml`: what looks like a secret in a text, and which names say that a value is one.

How it works. Searching 2 kB for one word takes a microsecond, and for a pattern twenty times that. So a text is
searched for a few words first (`keywords`), all that begin alike at once (a pattern that begins with one character
jumps from one of these to the next), and a pattern is tried only where one of them stands. What no word begins
is found by its form: a piece of at least 20 characters as tokens have them. Nothing here keeps a text.
"""

from __future__ import annotations

import os
import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Final

import msgspec

SHORTEST_TOKEN: Final = 20
"""Characters of the shortest piece in which tokens are looked for: shorter ones are names."""

_LONGEST_NAME: Final = 200  # characters of a member's name that are looked at: longer ones name nothing
_MOST_PIECES: Final = 16  # places of a word at which longer ones are looked for; of more, all of the text is searched
_BEFORE_DOT: Final = 14  # characters of a token of Terraform before what tells it
_NAMES_KEPT: Final = 1024  # decided names that are remembered: all tools of a few servers have fewer
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")

# What stands between a name and its value, and the value. A value ends where a shell would go on with something else:
# nothing that runs may hide in one.
_ASSIGNED: Final = (
    rb"(?:[ \t]{0,3}:[ \t]{0,3}(?:str|string|bytes)[ \t]{0,3}=[ \t]{0,3}(?=[\"'])"
    rb"|:[ \t]{1,3}[|>][+-]?[ \t]{0,3}\n[ \t]{1,20}|\((?=[\"'])"
    rb"|[\"'\\)\]]{0,4}[ \t]{0,3}(?::=|=>|:(?!=)(?:[ \t]{0,3}\n)?|=(?!=))[ \t]{0,3}(?:[bfnru]{1,2}(?=[\"'])"
    rb"|(?:md5|sha\d{1,3}|crypt|password|hash)\((?=[\"']))?"
    rb"|\\{0,3}[\"'][ \t]{0,3},[ \t]{0,3}(?=\\{0,3}[\"'])"
    rb"|[ \t]{1,3}is[ \t:]{1,3}(?=[\"']?[^\s\"']*\d)|[\"'] {1,3}value ?= ?(?=[\"'])"
    rb"|[ \t]{1,3}(?=[\"'])|[ \t]{1,3}(?=[A-Za-z+/_-]*\d[A-Za-z0-9+/_=-]{12})|>(?=[^<]))"
)
_AFTER_OPTION: Final = rb"(?:[ \t]{1,3}(?:\\\n[ \t]{0,8})?|=)"
_VALUE: Final = (
    rb"(?:\\{1,3}\"((?:[^\"\\$`]|\\[^\"]|\$(?!\())+)|\"(?![ \t\n])((?:[^\"\\$`]|\\.|\$(?!\())+)"
    rb"|\$?'(?![ \t\n;|&])((?:[^']|'')+)"
    rb"|((?:[^\s\"'`,;&|<>\\$]|,(?![\w.-]+[=:]|\s|$)|\$(?![('])|\\[^\sa-z\"'\\]|\\ (?=\S))+))"
)
_BUNDLED: Final = "-[A-Za-z]{1,9}%s"  # an option of one letter behind others that take nothing
# A word of a command, in quotes or not, each with what stands before the password in it. References stay.
_WORD_OF_PROGRAM: Final = (
    rb"\"%s(?!\[masked: )([^\"$`;|&]+)\"|'%s(?!\[masked: )([^';|&]+)'|[\"']?%s(?!\$\{?[A-Za-z_]|\[masked: )([^\s\"']+)"
)


class Rule(msgspec.Struct, frozen=True):
    """A rule of `[[rules]]`."""

    id: str
    keywords: tuple[bytes, ...]
    """In small letters. A text without one of them is not searched."""
    regex: re.Pattern[bytes]
    needs: bytes = b""
    """A character without which no text can match."""
    guessable: bool = False
    """People choose such secrets: somebody who knows a digest could try all of them."""
    option: re.Pattern[bytes] | None = None
    """Tried instead where the keyword stands in an option, such as `--token`."""
    begins: tuple[bytes, ...] = ()
    """A match begins where one of these words stands; without any, anywhere. Found in small letters."""
    elsewhere: bool = False
    """A keyword in another text of the same JSON value will do: the path of a file says what its content is."""


class Program(msgspec.Struct, frozen=True):
    """A row of `[[programs]]`."""

    options: re.Pattern[bytes]
    """What follows its name; the last group that takes part is the password."""
    only_with: bytes = b""


class Detectors(msgspec.Struct, frozen=True):
    """All rules."""

    tokens: Tokens
    rules: tuple[Rule, ...]
    programs: Mapping[bytes, Program]
    program_names: re.Pattern[bytes]
    program_options: re.Pattern[bytes]
    """A text without one of them has no program's password; a JSON value has one too where a text begins with `-`."""
    names: _Names
    words: tuple[_Words, ...]
    """The keywords of all rules but those that need a character as well."""
    needed: tuple[tuple[int, bytes, tuple[bytes, ...]], ...]
    """The numbers of the other rules, with what they need and their keywords: one character is found at once."""

    def active(self, raw: bytes, low: bytes) -> Sequence[tuple[Rule, tuple[bytes, ...]]]:
        """The rules that may find something in a text, which is given in small letters too, with their words in it."""
        found: dict[int, list[bytes]] = {}
        for words in self.words:
            if words.any_of.search(low):
                _look_for(words.words, low, found)
        for number, needs, keywords_of_rule in self.needed:
            if needs in raw and (there := [keyword for keyword in keywords_of_rule if keyword in low]):
                found[number] = there
        return [(self.rules[number], tuple(found[number])) for number in sorted(found)] if found else ()


class Tokens(msgspec.Struct, frozen=True):
    """The rules of `[[tokens]]`."""

    ids: tuple[str, ...]
    named: re.Pattern[bytes]
    """The group of this number has matched for each of them."""
    plain: re.Pattern[bytes]
    """Most of them. It has no group, so that places where none of them begins are passed over at once."""
    anchored: tuple[re.Pattern[bytes], ...]
    """Those that are all of a piece."""

    def first(self, raw: bytes, begin: int, end: int) -> tuple[str, int, int]:
        """The id of the rule of the first one in a piece of the text, and where that is; an empty id: there is none."""
        matches = [self.plain.search(raw, begin, end), *[pattern.match(raw, begin, end) for pattern in self.anchored]]
        starts = [match.start() for match in matches if match]
        match = self.named.match(raw, min(starts), end) if starts else None
        if match is None:
            return "", end, end
        start = match.start()
        if raw[start : start + 1] == b".":
            start = max(start - _BEFORE_DOT, begin)
        return self.ids[(match.lastindex or 1) - 1], start, match.end()


class _Word(msgspec.Struct, frozen=True):
    """A keyword. A text without it has none of the longer ones that have it in them."""

    word: bytes
    rules: tuple[int, ...]
    longer: tuple[_Word, ...]
    longest: int
    """Bytes of the longest of these."""


class _Words(msgspec.Struct, frozen=True):
    """Keywords that begin with the same character."""

    any_of: re.Pattern[bytes]
    words: tuple[_Word, ...]


def _look_for(words: Sequence[_Word], low: bytes, found: dict[int, list[bytes]]) -> None:
    for node in words:
        at = low.find(node.word)
        if at >= 0:
            for number in node.rules:
                found.setdefault(number, []).append(node.word)
            if node.longer:
                _look_for(node.longer, _around(node, low, at), found)


def _around(node: _Word, low: bytes, at: int) -> bytes:
    """What of a text can be one of the longer words, where the first word in it is at this place."""
    pieces: list[bytes] = []
    while at >= 0:
        if len(pieces) == _MOST_PIECES:
            return low
        pieces.append(low[max(at - node.longest, 0) : at + node.longest])
        at = low.find(node.word, at + 1)
    return b"\0".join(pieces)  # no word has this byte


class _Names(msgspec.Struct, frozen=True):
    ends: tuple[str, ...]
    words: frozenset[str]
    alone: frozenset[str]
    has: tuple[str, ...]
    about: tuple[str, ...]
    public: frozenset[str]


@cache
def detectors() -> Detectors:
    """The compiled rules. Reading them takes some milliseconds, once."""
    with open(os.path.join(os.path.dirname(__file__), "detectors.toml"), "rb") as file:
        return compiled(tomllib.load(file))


def compiled(tables: Mapping[str, object]) -> Detectors:
    """Compile the content of a file with rules. Raises msgspec.ValidationError and re.error for a wrong one."""
    raw = msgspec.convert(tables, _File)
    names = _Names(
        tuple(map(_joined, raw.names.ends.split())),
        frozenset(raw.names.words.split()),
        frozenset(raw.names.alone.split()),
        tuple(raw.names.has.split()),
        tuple(raw.names.about.split()),
        frozenset(raw.names.public.split()),
    )
    public = b"(?!\\\\{0,3}[\"']?(?:%s))" % raw.values.public.encode()
    public += b"(?!(?<=[=:] )(?:%s))" % raw.values.code.encode()
    rules = tuple(_rule(rule, raw.names.texts.encode(), public) for rule in raw.rules)
    rows: dict[str, list[_ProgramTable]] = {}
    for row in raw.programs:
        for name in row.programs.split():
            rows.setdefault(name, []).append(row)
    programs = {name.encode(): _program(tables) for name, tables in rows.items()}
    longest_first = b"|".join(map(re.escape, sorted(programs, key=len, reverse=True)))
    words = {option for row in raw.programs for option in f"{row.joined} {row.separate}".split()}
    options = [re.escape(option.removeprefix("-")) for option in sorted(words)]
    options += sorted({(_BUNDLED % row.bundled).removeprefix("-") for row in raw.programs if row.bundled})
    return Detectors(
        _tokens(raw.tokens),
        rules,
        programs,
        re.compile(rb"(?<![\w-])(%s)(?:\.exe)?(?=\s)" % longest_first),
        re.compile(b'-(?:(?<="-)|(?<=[ \\t]-)(?:%s))' % "|".join(options).encode()),  # texts have few dashes
        names,
        _words_of(rules),
        tuple((number, rule.needs, rule.keywords) for number, rule in enumerate(rules) if rule.needs),
    )


def _tokens(tables: Sequence[_RuleTable]) -> Tokens:
    regexes = [table.regex.encode() for table in tables]
    plain = [table.regex.encode() for table in tables if not table.anchored]
    return Tokens(
        tuple(table.id for table in tables),
        re.compile(b"|".join(b"(%s)" % regex for regex in regexes)),
        re.compile(b"|".join(plain)),
        tuple(re.compile(table.regex.encode()) for table in tables if table.anchored),
    )


def _words_of(rules: Sequence[Rule]) -> tuple[_Words, ...]:
    numbers: dict[bytes, list[int]] = {}
    for number, rule in enumerate(rules):
        for keyword in () if rule.needs else rule.keywords:
            numbers.setdefault(keyword, []).append(number)

    def of(words: Sequence[bytes]) -> tuple[_Word, ...]:
        nodes, left = [], words
        while left:  # the shortest one has no other one in it
            first, *left = sorted(left, key=lambda word: (len(word), word))
            longer = [word for word in left if first in word]
            left = [word for word in left if first not in word]
            nodes.append(_Word(first, tuple(numbers[first]), of(longer), max(map(len, longer), default=0)))
        return tuple(nodes)

    alike: dict[bytes, list[_Word]] = {}
    for word in of(list(numbers)):
        alike.setdefault(word.word[:1], []).append(word)
    return tuple(_Words(_any_of(first, words), tuple(words)) for first, words in alike.items())


def _any_of(first: bytes, words: Sequence[_Word]) -> re.Pattern[bytes]:
    return re.compile(b"%s(?=%s)" % (re.escape(first), b"|".join(re.escape(word.word[1:]) for word in words)))


class _RuleTable(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    regex: str = ""
    keywords: Sequence[str] = ()
    needs: str = ""
    guessable: bool = False
    named: bool = False
    begins: Sequence[str] = ()
    anchored: bool = False
    elsewhere: bool = False


class _ProgramTable(msgspec.Struct, forbid_unknown_fields=True):
    programs: str
    joined: str = ""
    separate: str = ""
    bundled: str = ""
    after: str = ""
    only_with: str = ""


class _NamesTable(msgspec.Struct, forbid_unknown_fields=True):
    ends: str
    words: str
    alone: str
    has: str
    about: str
    public: str
    texts: str


class _ValuesTable(msgspec.Struct, forbid_unknown_fields=True):
    public: str
    code: str


class _File(msgspec.Struct, forbid_unknown_fields=True):
    tokens: Sequence[_RuleTable]
    rules: Sequence[_RuleTable]
    programs: Sequence[_ProgramTable]
    names: _NamesTable
    values: _ValuesTable


def _rule(table: _RuleTable, texts: bytes, public: bytes) -> Rule:
    keywords = tuple(word.encode() for word in table.keywords)
    needs = table.needs.encode()
    if not table.named:
        begins = keywords if table.anchored else tuple(word.encode() for word in table.begins)
        regex = re.compile(table.regex.encode())
        return Rule(table.id, keywords, regex, needs, table.guessable, None, begins, table.elsewhere)
    assigned = re.compile(b"(?i)" + texts + _ASSIGNED + public + _VALUE)
    option = re.compile(b"(?i)" + texts + _AFTER_OPTION + public + _VALUE)
    return Rule(table.id, keywords, assigned, needs, table.guessable, option, begins=keywords)


def _program(rows: Sequence[_ProgramTable]) -> Program:
    ways = []
    for row in rows:
        if row.joined:
            ways.append(rb"(?<=\s)%s(?:%s)" % (re.escape(row.joined.encode()), _WORD_OF_PROGRAM % ((b"",) * 3)))
        before: tuple[bytes, ...] = (b"", b"", b"(?!-)")
        if row.after:
            after = re.escape(row.after.encode())
            before = tuple(rb"[^%s%s]*?%s" % (ends, after, after) for ends in (b'"', b"'", rb"\s\"'"))
        words = [re.escape(option) for option in row.separate.split()] + [_BUNDLED % row.bundled] * bool(row.bundled)
        ways += [rb"(?<=\s)%s(?:\s{1,3}|=)(?:%s)" % (word.encode(), _WORD_OF_PROGRAM % before) for word in words]
    return Program(re.compile(b"|".join(ways)), rows[0].only_with.encode())


# --- names ---


def is_secret_name(name: str, *, several: bool = False) -> bool:
    """True if the value of a member, an argument or a variable of this name is a secret; or all `several` are."""
    return _decided(name[-_LONGEST_NAME:]) or (
        several and name[-1:] in ("s", "S") and _decided(name[-_LONGEST_NAME:-1])
    )


@lru_cache(maxsize=_NAMES_KEPT)
def _decided(name: str) -> bool:
    names, joined = detectors().names, _joined(name)
    joined = joined.rstrip("0123456789") or joined
    if joined in names.public:
        return False
    if joined.endswith(names.ends) or joined in names.alone:
        return True
    words = [word.casefold() for word in _WORDS.findall(name) if not word.isdigit()]
    if words and words[-1] in names.words:
        return True
    return any(word in joined for word in names.has) and not joined.endswith(names.about)


def _joined(name: str) -> str:
    if not name.isascii():
        name = unicodedata.normalize("NFKC", name)  # full-width letters, for example
    return "".join(filter(str.isalnum, name.casefold()))
