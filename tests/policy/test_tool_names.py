"""`familiar_names.toml`: every list of it can have an effect, and a mistake in it is told."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pytest

from hookproxy.model.aliases import FAMILIAR_NAMES
from hookproxy.policy import tool_names
from hookproxy.policy.tool_names import TABLE, Table, plain, read_table, words_of

FILE: Final = (Path(tool_names.__file__).parent / "familiar_names.toml").read_text("utf-8")
MEANINGS: Final = {
    *("command", "path", "directory", "content", "old", "new", "edits", "url", "pattern", "name_pattern"),
    *("searched", "file_filter", "about_content", "query", "remote", "not_fetched"),
    *("action", "reading_actions", "writing_actions"),
}


def faults(text: str) -> Iterator[str]:
    """What is wrong with the file, for whoever has changed it."""
    try:
        table = Table(text)
    except (msgspec.DecodeError, ValueError) as error:
        yield f"{type(error).__name__}: {error}"
        return
    yield from phrase_faults(table)
    yield from word_faults(table)
    yield from argument_faults(table)


def phrase_faults(table: Table) -> Iterator[str]:
    for name, phrases in table.phrases.items():
        if name not in FAMILIAR_NAMES:
            yield f"[[phrases.{name}]]: {name} is not a tool of Claude Code"
        for phrase in phrases:
            if not phrase.alone <= phrase.verbs:
                yield f"[[phrases.{name}]]: {sorted(phrase.alone - phrase.verbs)} are alone, and not verbs"


def word_faults(table: Table) -> Iterator[str]:
    phrases = [phrase for of_name in table.phrases.values() for phrase in of_name]
    lists = [words for phrase in phrases for words in msgspec.structs.astuple(phrase)]
    lists += [table.edit_verbs, table.not_edited, *table.spellings.values()]
    for word in sorted({word for words in lists for word in words}):
        if not re.fullmatch("[a-z]+", word):
            yield f"{word!r} is not a word: small letters alone"
        elif word in table.spellings:
            yield f"{word!r} never stands in a name: [spellings] makes {' '.join(table.spellings[word])!r} of it"


def argument_faults(table: Table) -> Iterator[str]:
    for meaning in sorted(MEANINGS ^ table.arguments.keys()):
        yield f"[arguments]: {meaning} is {'missing' if meaning in MEANINGS else 'not known'}"
    for meaning, names in table.arguments.items():
        for name in names:
            if plain(name) != name and not meaning.endswith("actions"):
                yield f"[arguments] {meaning}: write {plain(name)!r}, not {name!r}"
        if len(set(names)) < len(names):
            yield f"[arguments] {meaning}: a name stands there twice"
    for name in set(table.arguments["searched"]) - set(table.arguments["pattern"]):
        yield f"[arguments] searched: {name} is not a pattern"


def test_the_file_is_valid() -> None:
    assert list(faults(FILE)) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("command = 'cmd cmds", "command = 'command cmd", "'command' never stands in a name: [spellings] makes"),
        ("verbs = 'grep'", "verbs = 'rg'", "'rg' never stands in a name: [spellings] makes 'grep' of it"),
        ("verbs = 'grep'", "verbs = 'Grep'", "'Grep' is not a word"),
        ("alone = 'grep'", "alone = 'seek'", "[[phrases.Grep]]: ['seek'] are alone, and not verbs"),
        ("[[phrases.LS]]", "[[phrases.Ls]]", "[[phrases.Ls]]: Ls is not a tool of Claude Code"),
        ("fillers = '@link view'", "fillers = '@lnk view'", "'@lnk view': @lnk stands for nothing"),
        ("@other_verbs -get post", "@other_verbs -git -git post", "-git stands for nothing"),
        ("fillers = '@link view'", "filler = ''", "ValidationError: Object contains unknown field `filler`"),
        ("query = 'q", "query = '", ""),
        ("edits = 'edits", "edits = 'file_edits", "[arguments] edits: write 'fileedits', not 'file_edits'"),
        ("edits = 'edits", "edit = 'edits", "[arguments]: edit is not known"),
        ("searched = 'pattern", "searched = 'glob", "[arguments] searched: glob is not a pattern"),
        ("[words]", "[words", "DecodeError"),
    ],
)
def test_whoever_writes_a_wrong_list_is_told_what_and_where(old: str, new: str, fault: str) -> None:
    assert old in FILE
    lines = list(faults(FILE.replace(old, new)))
    assert lines == [] if not fault else fault in "\n".join(lines)


def test_a_list_may_name_another_and_take_words_of_it_away() -> None:
    listing, _ = TABLE.phrases["LS"]
    elsewhere, other_verbs = (set(tomllib.loads(FILE)["words"][name].split()) for name in ("elsewhere", "other_verbs"))
    assert listing.not_before == elsewhere | other_verbs - {"list"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("readFile2", ["read", "file"]),
        ("exec-cmds", ["execute", "command"]),
        ("HTTPGet.page", ["http", "get", "page"]),
        ("runcommand", ["run", "command"]),
        ("", []),
    ],
)
def test_a_name_is_a_list_of_words_as_the_table_spells_them(name: str, words: list[str]) -> None:
    assert words_of(name) == words


def test_the_table_is_read_from_the_package() -> None:
    table = read_table()
    assert {"the", "of"} <= table.links
    assert "command" in table.arguments["command"]
    assert set(table.phrases) == set(TABLE.phrases)
