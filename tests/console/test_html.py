"""Text as HTML: nothing that others wrote is markup, and every character is visible."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from hookproxy.console import html
from hookproxy.console.html import render, shown
from hookproxy.console.visible import pretty

TEMPLATES = Path(html.__file__).parent / "templates"


class Reader(HTMLParser):
    """The elements and the text of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def made(macro: str, *values: object) -> str:
    """What a macro of the pages makes of the values."""
    return str(getattr(html._ENVIRONMENT.get_template("ui.html").module, macro)(*values))


@given(st.text())
@pytest.mark.slow
def test_text_is_never_markup_and_has_nothing_invisible(value: str) -> None:
    found = Reader(made("code", value))
    assert set(found.tags) <= {"code", "span"}
    assert all(one.isprintable() or one in "\n\t" for one in found.text)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_an_attribute_stays_one(value: str) -> None:
    found = Reader(made("hidden", value, value))
    assert [name for name, _ in found.attributes] == ["type", "name", "value"]


@given(st.text("<>&\"'abc \n\t"))
def test_plain_text_is_shown_as_it_is(value: str) -> None:
    assert Reader(made("code", value)).text == value


def test_no_template_puts_a_label_into_an_attribute() -> None:
    """A label is markup with quotation marks of its own."""
    for template in TEMPLATES.iterdir():
        text = template.read_text()
        assert re.findall(r'="[^"]*\bshown\b', text) == [], template.name
        assert re.findall(r"=[{']", re.sub(r"{%.*?%}|{{.*?}}", "", text, flags=re.DOTALL)) == [], template.name
        assert re.findall(r"\bsafe\b|autoescape", text) == [], template.name


@pytest.mark.parametrize(
    ("character", "label", "name"),
    [
        ("\x1b", "U+001B", "control character"),
        ("\u202e", "U+202E", "right-to-left override"),
        ("\u2066", "U+2066", "left-to-right isolate"),
        ("\u200b", "U+200B", "zero width space"),
        ("\xa0", "U+00A0", "no-break space"),
        ("\u3164", "U+3164", "hangul filler"),
        ("\ufe01", "U+FE01", "variation selector-2"),
        ("\U000e0041", "U+E0041", "tag latin capital letter a"),
        ("\ud800", "U+D800", "character without a sign"),
        ("\r", "U+000D", "control character"),
    ],
)
def test_a_character_that_is_not_visible_gets_a_label(character: str, label: str, name: str) -> None:
    assert shown(f"a{character}b") == f'a<span class="char" title="{name}">{label}</span>b'


def test_letters_of_all_scripts_are_shown() -> None:
    assert shown("naïve, Ελλάδα, 日本, עברית, 🙂") == "naïve, Ελλάδα, 日本, עברית, 🙂"


def test_markup_is_taken_as_it_is_and_text_is_not() -> None:
    assert made("fact", "Name", Markup("<b>bold</b>")) == "<dt>Name</dt><dd><b>bold</b></dd>"
    assert made("fact", "Name", "<i>") == "<dt>Name</dt><dd>&lt;i&gt;</dd>"


@pytest.mark.slow
def test_a_block_has_the_whole_text_however_long_it_is() -> None:
    value = "".join(f"{number}<" for number in range(300_000))
    begun = monotonic()
    block = made("block", value, "Arguments")
    assert monotonic() - begun < 5  # seconds: it takes a tenth of one
    assert Reader(block.strip()).text == value
    assert block.count('class="chunk"') > 50


def test_json_is_shown_over_lines_with_its_numbers_and_characters() -> None:
    raw = b'{"a":1.00,"b":"\\u0041\\u202e","c":[]}'
    assert pretty(raw) == '{\n  "a": 1.00,\n  "b": "A\u202e",\n  "c": []\n}'
    assert pretty(b"not json \xff") == "not json \\xff"
    assert pretty(b"[" * 100_000)


def test_a_difference_shows_what_was_removed_and_added() -> None:
    difference = made("changes", '{\n  "a": 1\n}', '{\n  "a": "<b>"\n}', "Changed")
    assert '<span class="removed">-  "a": 1</span>' in difference
    assert '<span class="added">+  "a": "&lt;b&gt;"</span>' in difference


def test_a_page_has_no_script_or_style_of_its_own() -> None:
    page = render("message.html", title="<script>", current="history", text="x", back=False)
    assert re.findall(r"<script[^>]*>", page) == ['<script src="static/console.js" defer>']
    assert " style=" not in page
    assert "<style" not in page
    assert " on" not in " ".join(name for name, _ in Reader(page).attributes)
