"""`[[use]]` tables in a hookproxy.toml: added as text, and removed again byte for byte."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.model.errors import ConfigError
from hookproxy.wrapping.use_tables import UseTable, inserted_text, without

TABLES = [UseTable("/home/a/.claude", "claude", fails_closed=True), UseTable('/odd "name"\\\n', "copilot@current")]


@pytest.mark.parametrize(
    "text",
    ["", "# mine", "on_ask = 'deny'\n", "[permissions]\r\ndeny = ['x']\r\n", "[[use]]\nfile = 'a'\n", "\n\n"],
)
def test_tables_are_added_and_removed_without_a_trace(text: str) -> None:
    inserted = inserted_text("x.toml", text, TABLES)
    values = tomllib.loads(text + inserted)
    assert values["use"][-2:] == [
        {"file": "/home/a/.claude", "dialect": "claude", "on_failure": "deny"},
        {"file": '/odd "name"\\\n', "dialect": "copilot@current"},
    ]
    assert without("x.toml", text + inserted, inserted) == text
    assert without("x.toml", text + inserted + "\n[audit]\nenabled = false\n", inserted) == (
        text + "\n[audit]\nenabled = false\n"
    )


@given(st.text(max_size=30), st.sampled_from(["claude", "lime"]), st.booleans())
def test_any_path_is_read_as_it_was_meant(file: str, dialect: str, fails_closed: bool) -> None:
    if any("\ud800" <= character <= "\udfff" for character in file):
        return
    inserted = inserted_text("x.toml", "", [UseTable(file, dialect, fails_closed)])
    (use,) = tomllib.loads(inserted)["use"]
    assert (use["file"], use["dialect"]) == (file, dialect)


def test_a_list_in_brackets_cannot_be_extended() -> None:
    with pytest.raises(ConfigError, match="has `use` as a list in brackets") as caught:
        inserted_text("x.toml", "use = [{ file = 'a' }]\n", TABLES)
    assert "[[use]]" in caught.value.hint


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"deny"', '"allow"'),
        lambda text: text + "warm = true\n",  # a key below the last table is a key of it
        lambda _text: "on_ask = 'deny'\n",
        lambda text: text.replace("[[use]]", "# [[use]]"),
    ],
)
def test_what_was_changed_by_others_is_not_removed(change: object) -> None:
    assert callable(change)
    text = "on_ask = 'deny'\n\n[audit]\nenabled = true\n"
    inserted = inserted_text("x.toml", text, TABLES)
    with pytest.raises(ConfigError, match="has changed since"):
        without("x.toml", change(text + inserted), inserted)


def test_a_table_of_the_persons_own_that_says_the_same_stays() -> None:
    text = '[[use]]\nfile = "/home/a/.claude"\ndialect = "claude"\non_failure = "deny"\n'
    inserted = inserted_text("x.toml", text, TABLES[:1])
    assert without("x.toml", text + inserted, inserted) == text
