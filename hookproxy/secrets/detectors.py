"""Compiles `detectors.toml`: what looks like a secret in a text, and which names say that a value is one.

How it works. Searching 2 kB for one pattern takes twenty microseconds. So a text is searched for the keywords of all
rules at once (by an automaton: five microseconds), and a pattern is tried only where one of its own stands.
Nothing here keeps a text.
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
from ahocorasick_rs import BytesAhoCorasick, Implementation

PROGRAM: Final = -1
"""Stands for the number of a rule with the places of programs."""

PROGRAM_NAME: Final = re.compile(rb"(?<![\w-])([\w-]+)(?:\.exe)?(?=\s)")
"""Matches where the name of a program may be."""

_LONGEST_NAME: Final = 200  # characters of a member's name that are looked at: longer ones name nothing
_NAMES_KEPT: Final = 1024  # decided names that are remembered: all tools of a few servers have fewer
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")

# What stands between a name and its value, and the value. A value ends where a shell would go on with something else:
# nothing that runs may hide in one.
_ASSIGNED: Final = (
    rb"(?=[\s:=?({\[\"'\\)\]*,%&/<>\xef])(?:[ \t]{0,3}:[ \t]{0,3}&?(?:'static )?(?:str|string|bytes)"
    rb"(?:[ \t]{0,3}\|[ \t]{0,3}None)?[ \t]{0,3}=[ \t]{0,3}(?=[\"'])"
    rb"|[ \t](?:as[ \t])?string[ \t]{0,3}=[ \t]{0,3}(?=[\"'])"
    rb"|:[ \t]{1,3}(?:!vault[ \t]{1,3})?[|>][+-]?[ \t]{0,3}\n[+-]?[ \t]{1,20}"
    rb"(?:\$ANSIBLE_VAULT;[^\n]{1,60}\n[ \t]{1,20})?"
    rb"|[ \t]{0,3}=[ \t]{0,3}<<[-~]?[\"']?\w{1,20}[\"']?\n[ \t]{0,20}"
    rb"|\((?=[\"'])|(?<=api[_-]key)\{(?=\")|:?[\"'][ \t;\n]{1,9}(?:exp_)?send(?:[ \t]--)?[ \t](?=[\"'])"
    rb"|(?:\[\d{0,4}\])?[\"'\\)\]*]{0,4}[ \t]{0,3}(?::=|=>|<-(?=[ \t]{0,3}[\"'])|\?=|\xef\xbc[\x9a\x9d]|::(?= )"
    rb"|:(?![=:?])(?:[ \t]{0,3}\n)?|=(?!=))[ \t]{0,3}"
    rb"(?:\*\*[ \t]{1,3}|<(?:b|code|strong)>|!!str[ \t]{1,3}|&\w{1,20}[ \t]{1,3})?"
    rb"(?:[bfnru]{1,2}(?=[\"'])|(?:md5|sha\d{1,3}|crypt|password|hash)?\((?=[\"'])|\"\"(?=\"[^\"])|''(?='[^']))?"
    rb"|\\{0,3}[\"'][ \t]{0,3},[ \t]{0,3}\\{0,3}[\"'](?:value|content|default)\\{0,3}[\"'][ \t]{0,3}:[ \t]{0,3}"
    rb"(?=\\{0,3}[\"'])"
    rb"|\\{0,3}[\"'][ \t]{0,3},[ \t]{0,3}(?:default[ \t]{0,3}=[ \t]{0,3})?(?=\\{0,3}[\"'])"
    rb"|(?:(?<=password)|(?<=passwd)|(?<=secret))[ \t]{0,3}={2,3}[ \t]{0,3}(?=[\"'][^\"'\s]{4})"
    rb"|[\"'\\)\]]{0,4}[ \t]{1,3}(?:\|\||\?\?|or)[ \t]{1,3}(?=[\"'][^\"'\s/]{0,40}\d)"
    rb"|[ \t]{1,3}ist?[ \t:]{1,3}(?=[\"']?[^\s\"']*\d)|[\"']?[ \t]{1,3}(?:value|content)[ \t]?=[ \t]?"
    rb"|[ \t]{1,3}--?value(?:[ \t]{1,3}|=)|(?<=password)[ \t]password[ \t]{1,3}(?=\S)"
    rb"|(?:(?<=userpwd)|(?<=:password)),[ \t]{0,3}(?=[\"'])"
    rb"|(?:%2[27])?%3[ad](?:%2[027])?|&(?:quot|\#39|\#34);[ \t]?:[ \t]?&(?:quot|\#39|\#34);|&\#61;"
    rb"|[\"'](?:\r?\n){2}|</key>\s{0,9}<string>|[\"'][^<>\n]{0,60}>\s{0,20}<value>|[\"']>(?=[^<>\s\"']*\d[^<>\s\"']*</)"
    rb"|(?<=password)/(?=[\w-]{0,60}\d)(?=[\w-]{24})"
    rb"|[ \t]{1,3}(?=[\"'][^\"']{2})|[ \t]{1,3}(?=[A-Za-z+/_-]*\d[A-Za-z0-9+/_=-]{12})|>(?=[^<]))"
)
_AFTER_OPTION: Final = rb"(?:[ \t]{1,3}(?:\\\n[ \t]{0,8})?|=)"
_VALUE: Final = (
    rb"(?:\\{1,3}\"((?:[^\"\\$`]|\\[^\"]|\$(?!\())+)|\"(?![ \t\n]|[),;\]}]+(?:[\s.,;:]|$))((?:[^\"\\$`]|\\.|\$(?!\())+)"
    rb"|\$?'(?![ \t\n;|&]|[),\]}]+(?:[\s.,;:]|$))((?:[^']|''|'\\'')+)|(?<= )`([\w+/=!@\#%^*~-]{6,})(?=`)"
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
    regex: re.Pattern[bytes]
    needs: bytes = b""
    """A character without which no text can match."""
    guessable: bool = False
    """People choose such secrets: somebody who knows a digest could try all of them."""
    option: re.Pattern[bytes] | None = None
    """Tried instead where the keyword stands in an option, such as `--token`."""
    anchored: bool = False
    """A match begins where a keyword stands."""
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

    rules: tuple[Rule, ...]
    keywords: BytesAhoCorasick
    """Finds the keywords of all rules and the names of programs, by their numbers."""
    ascii_keywords: BytesAhoCorasick
    """Finds those that may be in a text of ASCII, with the same numbers: it has fewer states, and takes less time."""
    rules_of: tuple[tuple[int, ...], ...]
    """The numbers of the rules that have each of the keywords; PROGRAM for names of programs."""
    programs: Mapping[bytes, Program]
    program_options: re.Pattern[bytes]
    """A text without one of them has no program's password; a JSON value has one too where a text begins with `-`."""
    names: _Names

    def places(self, low: bytes) -> dict[int, list[int]]:
        """The numbers of the rules that may find something in a text in small letters; where their keywords begin.

        With PROGRAM are the places where the name of a program may be.
        """
        found: dict[int, list[int]] = {}
        keywords = self.ascii_keywords if low.isascii() else self.keywords
        for keyword, begin, _ in keywords.find_matches_as_indexes(low, overlapping=True):
            for number in self.rules_of[keyword]:
                if number in found:
                    found[number].append(begin)
                else:
                    found[number] = [begin]
        return found


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
    words = {option for row in raw.programs for option in f"{row.joined} {row.separate}".split()}
    options = [re.escape(option.removeprefix("-")) for option in sorted(words)]
    options += sorted({(_BUNDLED % row.bundled).removeprefix("-") for row in raw.programs if row.bundled})
    rules_of = {name: [PROGRAM] for name in programs}
    for number, rule in enumerate(raw.rules):
        for keyword in rule.keywords:
            rules_of.setdefault(keyword.encode(), []).append(number)
    keywords = sorted(rules_of, key=bytes.isascii, reverse=True)
    return Detectors(
        rules,
        BytesAhoCorasick(keywords, implementation=Implementation.DFA),
        BytesAhoCorasick([word for word in keywords if word.isascii()], implementation=Implementation.DFA),
        tuple(tuple(rules_of[keyword]) for keyword in keywords),
        programs,
        re.compile(b'-(?:(?<="-)|(?<=[ \\t]-)(?:%s))' % "|".join(options).encode()),  # texts have few dashes
        names,
    )


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
    rules: Sequence[_RuleTable]
    programs: Sequence[_ProgramTable]
    names: _NamesTable
    values: _ValuesTable


def _rule(table: _RuleTable, texts: bytes, public: bytes) -> Rule:
    needs, begins = table.needs.encode(), tuple(word.encode() for word in table.begins)
    if not table.named:
        regex = re.compile(table.regex.encode())
        return Rule(table.id, regex, needs, table.guessable, None, table.anchored, begins, table.elsewhere)
    assigned = re.compile(b"(?i)" + texts + _ASSIGNED + public + _VALUE)
    option = re.compile(b"(?i)(?<!=)" + texts + _AFTER_OPTION + public + _VALUE)
    return Rule(table.id, assigned, needs, table.guessable, option, anchored=True)


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
