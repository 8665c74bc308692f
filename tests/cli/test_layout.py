"""How things are shown: nothing raw, nothing wider than the terminal, and JSON that any reader takes."""

from __future__ import annotations

import json

from rich.console import Console
from rich.text import Text

from hookproxy.cli.layout import as_json, count, diff, document, label, new_page, row, short, visible


def shown(name: str, before: bytes, after: bytes) -> str:
    page = new_page()
    with page.capture() as capture:
        diff(page, name, before, after)
    return capture.get()


def test_values_are_compared_line_by_line_and_spelling_without_meaning_is_no_difference() -> None:
    assert shown("arguments", b'{"a":1,"b":2}', b'{"a": 1, "b": 3}') == (
        "arguments\n  --- before\n  +++ after\n  @@ -1,4 +1,4 @@\n"
        '   {\n     "a": 1,\n  -  "b": 2\n  +  "b": 3\n   }\n\n'
    )
    assert shown("result", b'{"a":"\\u0062"}', b'{ "a" : "b" }') == "result: unchanged\n\n"


def test_what_is_too_large_to_be_compared_is_counted() -> None:
    assert shown("x", b'"%b"' % (b"a" * 1_000_000), b'"b"').startswith("x\n  1000002 bytes before, 3 after: too many")


def test_what_can_be_read_in_two_ways_is_shown_as_it_is() -> None:
    assert '  -{"a":1,"a":2}\n' in shown("x", b'{"a":1,"a":2}', b"{}")
    assert "\x1b" not in shown("x", b'"\x1b[31m"', b"{}")


def test_a_document_is_ascii_and_json_whatever_it_holds() -> None:
    text = document({"a": "é\U0001f600\udcff\x00", "b": as_json(b"1.50"), "c": ("x",), "d": {"\u2028": None}})
    assert text.isascii()
    assert json.loads(text) == {"a": "é\U0001f600\\udcff\x00", "b": 1.5, "c": ["x"], "d": {"\u2028": None}}
    assert "1.50" in text


def test_what_is_no_json_stands_in_it_as_a_text() -> None:
    assert (as_json(None), as_json(b"")) == (None, None)
    for raw in (b"{", b"\xff", b'{"a":1,"a":1}', b"NaN", b"[" * 100_000):
        json.loads(document({"x": as_json(raw)}))
        assert isinstance(as_json(raw), str)


def test_lines_are_wrapped_for_a_terminal_alone() -> None:
    wide = "word " * 40
    for terminal, longest in ((True, 40), (False, 220)):
        page = Console(width=40, force_terminal=terminal, highlight=False, color_system=None)
        with page.capture() as capture:
            row(page, label("name"), wide)
        lines = capture.get().splitlines()
        assert max(map(len, lines)) <= longest
        assert lines[0].startswith("  name     word")
        assert (len(lines) > 1) is terminal


def test_nothing_reaches_a_terminal_raw() -> None:
    page = new_page()
    assert visible("a\x1b[31m\u202e\r", page) == "a\\x1b[31m\\u202e\\r"
    with page.capture() as capture:
        row(page, Text("x "), "[bold]\x07")
    assert capture.get() == "x [bold]\\x07\n"


def test_small_words() -> None:
    assert [count(number, "hook") for number in (0, 1, 2)] == ["no hooks", "1 hook", "2 hooks"]
    assert (short("/a/b/c", "/a/b"), short("/x", "/a"), short("/x", "/")) == ("c", "/x", "x")
