"""Proposes sources and sinks of `[flow]` from what a server says of its tools. Pure.

What a tool reads and does follows from its annotations, its familiar names, and the words of its name; where the name
has no verb, from the first word of its description; and from the names of its arguments. `flow_words.toml` has the
words. Where these contradict each other, a tool is what needs more care: one that says it only reads and is called
`send_mail` sends.

A person reviews the proposal, so each group of tools says why it is one. What is written is only what hookproxy says
itself: of a server's texts, names alone, and only those that mean themselves in a rule (`allow_list.rule_for`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

import msgspec
from msgspec import Struct

from ..flow.matching import holds
from ..hooks.familiar_tools import FamiliarTools
from ..jsonrpc import raw_json
from ..model.hooks import Tool
from ..policy.presets import PRESETS, preset_for
from . import allow_list

SOURCE: Final = "flow"
"""What wrote the tables, for people."""

_WIDTH: Final = 112  # columns of a line with names of tools
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""A word of snake_case, kebab-case, camelCase, dots and blanks. Digits are ignored."""
_NOT_PLURAL: Final = ("ss", "us", "is", "news", "sms")
"""Ends of words that are not plurals for all their `s`."""
_FIRST_WORDS: Final = 2  # of a description: "Securely sends …"
_UNTRUSTED_ALIASES: Final = frozenset({"WebFetch", "WebSearch"})
_FILE_ALIASES: Final = frozenset({"Read", "Grep", "Glob", "LS"})
_READING_ALIASES: Final = _FILE_ALIASES | _UNTRUSTED_ALIASES
_UNTRUSTED_HINTS: Final = ("returnMetadata.source=untrustedPublic", "maliciousActivityHint")
_PRIVATE_HINTS: Final = ("privateHint", "sensitiveHint=high", "sensitiveHint=medium")
"""Trust annotations of SEP-1913 on a tool, as entries of `[flow]` name them."""
_CHANGING_ALIASES: Final = frozenset({"Write", "Edit", "MultiEdit"})


class _SourceWords(Struct, frozen=True, forbid_unknown_fields=True):
    labels: tuple[str, ...]
    remark: str
    words: str


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    verbs: dict[str, str | dict[str, str]]
    sources: tuple[_SourceWords, ...]
    acts_on: dict[str, str]
    arguments: dict[str, str]


class _Words:
    """The content of `flow_words.toml`."""

    def __init__(self, text: str) -> None:
        """Raises msgspec.DecodeError."""
        file = msgspec.toml.decode(text, type=_File)
        self.verbs: Final[dict[str, str]] = {}
        """What each verb does."""
        self.weak_verbs: Final[dict[str, str]] = {}
        for does, words in file.verbs.items():
            if isinstance(words, dict):
                self.weak_verbs.update((word, kind) for kind, own in words.items() for word in own.split())
            else:
                self.verbs.update((word, does) for word in words.split())
        self.sources: Final = file.sources
        self.source_of: Final = {word: source for source in reversed(file.sources) for word in source.words.split()}
        self.acts_on: Final = {word: does for does, words in file.acts_on.items() for word in words.split()}
        self.recipients: Final = frozenset(file.arguments["recipients"].split())
        self.addresses: Final = frozenset(file.arguments["addresses"].split())


@cache
def table() -> _Words:
    """The words. Raises msgspec.DecodeError."""
    with open(os.path.join(os.path.dirname(__file__), "flow_words.toml"), encoding="utf-8") as file:
        return _Words(file.read())


class Group(Struct, frozen=True):
    """Tools that are sources or sinks for the same reason."""

    remark: str
    tools: tuple[str, ...]
    labels: tuple[str, ...]
    by: str = ""
    """Of a sink: the value of its key `by`; empty: the default."""
    is_suggestion: bool = False
    """It is only a suggestion: it stands in a comment."""
    only_secrets: bool = False
    """Of a source: only what looks like a secret gets the labels."""


class FlowProposal(Struct, frozen=True):
    """The sources and sinks of one server."""

    sources: tuple[Group, ...] = ()
    sinks: tuple[Group, ...] = ()
    others: tuple[str, ...] = ()
    """Tools that are neither."""
    unnamed: tuple[str, ...] = ()
    """Names of tools that no rule can name exactly."""
    known: tuple[str, ...] = ()
    """Tools that the configuration names already."""


class _SinkKind(Struct, frozen=True):
    remark: str
    labels: tuple[str, ...]
    by: str = ""
    is_suggestion: bool = False


_SINKS: Final[Mapping[str, _SinkKind]] = {
    "send": _SinkKind("They send something to somebody.", ("untrusted", "private", "secret")),
    "fetch": _SinkKind(
        "They fetch an address that the agent chooses, and what stands in an address leaves with it.",
        ("private", "secret"),
        by="value",
    ),
    "run": _SinkKind("They run what the agent writes.", ("untrusted",)),
    "spend": _SinkKind("They spend money, or promise it.", ("untrusted",)),
    "grant": _SinkKind("They change who may do what, or who somebody is.", ("untrusted",)),
    "destroy": _SinkKind("They remove something.", ("untrusted",)),
    "change": _SinkKind(
        "They change what is yours, and nothing leaves by them. Remove the # to have a person asked after the agent "
        "has read what others wrote.",
        ("untrusted",),
        is_suggestion=True,
    ),
}
"""By what a tool does, in the order in which they are written."""

_ALL: Final = "*"
_SECRETS: Final = Group("Whatever looks like a secret is one, in any result.", (_ALL,), ("secret",), only_secrets=True)


def propose(
    tools: Iterable[Tool],
    descriptions: Mapping[str, str],
    command: Sequence[str],
    server: str,
    server_info: str,
    *,
    known: Collection[str] = (),
) -> FlowProposal:
    """The sources and sinks among these tools.

    `descriptions` are the tools' by name; `command`, `server` and `server_info` are as in `allow_list.propose`. `known`
    are names of tools that the configuration has in `[flow]`: what a person has reviewed is not proposed again.
    """
    listed = list(tools)
    familiar = FamiliarTools(command, server=server)
    familiar.note_tools(listed, server_info)
    preset = PRESETS.get(preset_for(command, server_info) or "")
    sources: dict[tuple[str, ...], list[str]] = {}
    sinks: dict[str, list[str]] = {}
    others, unnamed, present = [], [], []
    for tool in listed:
        name = tool.name
        if not allow_list.rule_for(name):
            unnamed.append(name)
            continue
        if name in known:
            present.append(name)
            continue
        aliases = [*familiar.aliases(name), *((preset.aliases_of(name) or ()) if preset else ())]
        judged = _Judged(tool, descriptions.get(name, ""), frozenset(alias.name for alias in aliases))
        if labels := judged.labels:
            sources.setdefault(labels, []).append(name)
        if does := judged.sink:
            sinks.setdefault(does, []).append(name)
        if not labels and not does:
            others.append(name)
    takes_no_secrets = any("secret" in _SINKS[does].labels for does in sinks) and _ALL not in known
    return FlowProposal(
        (
            *(Group(_remark(labels), tuple(names), labels) for labels, names in _in_order(sources)),
            *([_SECRETS] if takes_no_secrets else ()),
        ),
        tuple(
            Group(kind.remark, tuple(sinks[does]), kind.labels, kind.by, kind.is_suggestion)
            for does, kind in _SINKS.items()
            if does in sinks
        ),
        tuple(others),
        tuple(unnamed),
        tuple(present),
    )


def _in_order(sources: Mapping[tuple[str, ...], list[str]]) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    known = [source.labels for source in table().sources]
    return iter(sorted(sources.items(), key=lambda item: known.index(item[0]) if item[0] in known else len(known)))


def _remark(labels: tuple[str, ...]) -> str:
    by_words = {source.labels: source.remark for source in table().sources}
    return by_words.get(labels, "Their server says so of them.")


class _Judged:
    """What a tool reads and does."""

    def __init__(self, tool: Tool, description: str, familiar: frozenset[str]) -> None:
        hints = msgspec.json.decode(tool.annotations) if tool.annotations else {}
        self._hints: Mapping[str, object] = hints if isinstance(hints, dict) else {}
        self._familiar = familiar
        self._words = [singular(word.lower()) for word in _WORD.findall(tool.name)]
        self._arguments = {singular(_plain(name)) for name in tool.properties}
        at, self.does = _verb(self._words, description)
        self._objects = [*self._words[at + 1 :], *self._words[: max(at, 0)]]
        if not self.does and (self._hints.get("readOnlyHint") is True or familiar & _READING_ALIASES):
            self.does = "read"
        elif not self.does and familiar & _CHANGING_ALIASES:
            self.does = "change"

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of what it returns; none if it does not read, or nothing of interest."""
        if self.does == "run" or "Bash" in self._familiar:
            return ("untrusted", "private")
        if self.does != "read":
            return ()
        found = [source.labels for word in self._objects if (source := table().source_of.get(word)) is not None]
        labels = found[0] if found else ()
        if not labels and self._familiar & _FILE_ALIASES:
            labels = ("untrusted", "private")
        if self._is_open or self._fetches or self._familiar & _UNTRUSTED_ALIASES or self._says(_UNTRUSTED_HINTS):
            labels = labels if "untrusted" in labels else ("untrusted", *labels)
        is_private = self._says(_PRIVATE_HINTS)
        return (*labels, "private") if is_private and not {"private", "secret"} & set(labels) else labels

    @property
    def sink(self) -> str:
        """What it does with what it is given, by the names of `_SINKS`; empty: nothing of interest."""
        if self.does == "run" or "Bash" in self._familiar:
            return "run"
        if self.does == "read":
            return "fetch" if self._fetches else ""
        acts_on = next((kind for word in self._objects if (kind := table().acts_on.get(word))), "")
        if self.does in ("destroy", "spend"):
            return self.does
        if acts_on == "spend":
            return "spend"
        if self.does == "send" or self._arguments & table().recipients or self._is_open:
            return "send"
        if (
            not self.does and self._hints.get("destructiveHint") is True
        ):  # of what changes something, many servers say it
            return "destroy"
        return acts_on or self.does

    @property
    def _is_open(self) -> bool:
        """Whether its server says, in so many words, that it deals with the world outside."""
        return self._hints.get("openWorldHint") is True

    def _says(self, hints: Iterable[str]) -> bool:
        return any(holds(hint, self._hints, {}) for hint in hints)

    @property
    def _fetches(self) -> bool:
        """Whether it reads what is at an address that the agent chooses."""
        return bool(self._arguments & table().addresses) or "WebFetch" in self._familiar


def _verb(words: Sequence[str], description: str) -> tuple[int, str]:
    """The place of the verb among the words of a name, and what it does; -1 and empty: it has none."""
    for verbs in (table().verbs, table().weak_verbs):
        for at, word in enumerate(words):
            if word in verbs:
                return at, verbs[word]
    first = [singular(word.lower()) for word in _WORD.findall(description[:100])[:_FIRST_WORDS]]
    return -1, next((table().verbs[word] for word in first if word in table().verbs), "")


def singular(word: str) -> str:
    """The word without the `s` of a plural."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(_NOT_PLURAL):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("ches", "shes", "xes", "sses")) else word[:-1]


def _plain(argument: str) -> str:
    return argument.lower().replace("_", "").replace("-", "")


# --- as text ---

_HEAD: Final = """\
# Where data may go, as proposed from what a server lists. Review it: remove what nobody minds, and move tools between
# the tables. A person is asked before a sink gets what has one of its labels; action = "deny" refuses it, and
# by = "value" looks only for what was read itself, not at all that the session has read.
"""


def text_of(proposal: FlowProposal, server: str = "", *, with_head: bool = True) -> str:
    """The tables of hookproxy.toml, with what a reader must know of them at the head. Empty: there is none.

    With `server`, each is about this server only.
    """
    blocks = [
        *(_block("sources", group, server) for group in proposal.sources),
        *(_block("sinks", group, server) for group in proposal.sinks),
    ]
    if not blocks:
        return ""
    return "\n".join([_HEAD, *blocks] if with_head else blocks)


def _block(table_name: str, group: Group, server: str) -> str:
    lines = [f"[[flow.{table_name}]]", *_names(group.tools)]
    if server:
        lines.append(f"server = {raw_json.encode(server).decode()}")
    lines.append("labels = [{}]".format(", ".join(f'"{label}"' for label in group.labels)))
    if group.only_secrets:
        lines.append("secrets = true")
    if group.by:
        lines.append(f'by = "{group.by}"')
    if group.is_suggestion:
        lines = [f"# {line}" for line in lines]
    return "\n".join([*_remark_lines(group.remark), *lines, ""])


def _remark_lines(remark: str) -> Iterator[str]:
    line = "#"
    for word in remark.split():
        if len(line) + len(word) + 1 > _WIDTH:
            yield line
            line = "#"
        line += f" {word}"
    yield line


def _names(tools: Sequence[str]) -> Iterator[str]:
    items = [f'"{tool}"' for tool in tools]
    one_line = f"tool = [{', '.join(items)}]"
    if len(one_line) <= _WIDTH:
        yield one_line
        return
    yield "tool = ["
    line = ""
    for item in items:
        if line and len(line) + len(item) + 6 > _WIDTH:
            yield f"    {line}"
            line = ""
        line = f"{line} {item},".lstrip()
    yield f"    {line}"
    yield "]"
