"""The layout of output: nothing raw, nothing wider than the terminal, and JSON that every parser reads."""

from __future__ import annotations

import json

import pytest

from hookproxy.cli import common
from hookproxy.cli.layout import Page, alias_text, as_json, diff, document, label, short_path
from hookproxy.cli.words import wrap
from hookproxy.policy.familiar_names import listed_aliases
from hookproxy.policy.tool_arguments import ToolArguments


def shown(name: str, before: bytes, after: bytes) -> str:
    page = Page()
    diff(page, name, before, after)
    return page.text


def test_values_are_compared_line_by_line_and_formatting_is_not_a_difference() -> None:
    assert shown("arguments", b'{"a":1,"b":2}', b'{"a": 1, "b": 3}') == (
        "arguments\n  --- before\n  +++ after\n  @@ -1,4 +1,4 @@\n"
        '   {\n     "a": 1,\n  -  "b": 2\n  +  "b": 3\n   }\n\n'
    )
    assert shown("result", b'{"a":"\\u0062"}', b'{ "a" : "b" }') == "result: unchanged\n\n"


def test_values_too_large_to_compare_are_shown_as_sizes() -> None:
    assert shown("x", b'"%b"' % (b"a" * 1_000_000), b'"b"').startswith("x\n  1000002 bytes before, 3 after: too long")


def test_a_value_with_duplicate_keys_is_shown_unchanged() -> None:
    assert '  -{"a":1,"a":2}\n' in shown("x", b'{"a":1,"a":2}', b"{}")
    assert "\x1b" not in shown("x", b'"\x1b[31m"', b"{}")


def test_a_document_is_ascii_json_whatever_it_contains() -> None:
    text = document({"a": "é\U0001f600\udcff\x00", "b": as_json(b"1.50"), "c": ("x",), "d": {"\u2028": None}})
    assert text.isascii()
    assert json.loads(text) == {"a": "é\U0001f600\\udcff\x00", "b": 1.5, "c": ["x"], "d": {"\u2028": None}}
    assert "1.50" in text


def test_invalid_json_becomes_a_string_of_the_document() -> None:
    assert (as_json(None), as_json(b"")) == (None, None)
    for raw in (b"{", b"\xff", b'{"a":1,"a":1}', b"NaN", b"[" * 100_000):
        json.loads(document({"x": as_json(raw)}))
        assert isinstance(as_json(raw), str)


def test_lines_are_wrapped_only_for_a_terminal() -> None:
    for width, longest in ((40, 40), (0, 220)):
        page = Page(width)
        page.row(label("name"), "word " * 40)
        lines = page.text.splitlines()
        assert max(map(len, lines)) <= longest
        assert lines[0].startswith("  name     word")
        assert (len(lines) > 1) is bool(width)


def test_nothing_reaches_a_terminal_raw() -> None:
    page = Page(encoding="ascii")
    page.line("a\x1b[31m\u202e\r", ("\x07é ", "bold"), " ")
    page.row(("\x1bx ", ""), "[bold]\x07")
    assert page.text == "a\\x1b[31m\\u202e\\r\\x07\\xe9\n\\x1bx [bold]\\x07\n"


def test_colours_are_only_on_a_terminal_that_has_them() -> None:
    shown = []
    for coloured in (True, False):
        page = Page(80, coloured=coloured)
        page.line(("a", "bold red"), " b", ("  ", "dim"))
        shown.append(page.text)
    assert shown == ["\x1b[1;31ma\x1b[0m b\n", "a b\n"]


def test_a_section_without_rows_is_not_shown() -> None:
    page = Page()
    page.section("rules", iter([]))
    page.section("tools", iter([("alias", "a"), ("limit", "b")]))
    assert page.text == "tools\n  alias    a\n  limit    b\n\n"


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colours_can_be_switched_off(
    variables: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "70")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert common.terminal()[::2] == (70, coloured)


def test_short_paths() -> None:
    assert (short_path("/a/b/c", "/a/b"), short_path("/x", "/a"), short_path("/x", "/")) == ("c", "/x", "x")


def test_a_text_is_broken_between_words_only() -> None:
    lines = wrap("  a /long/path/that/does/not/fit b\u4e2d\u4e2d c", 8)
    assert [line.rstrip() for line in lines] == ["  a", "/long/path/that/does/not/fit", "b\u4e2d\u4e2d c"]
    assert "".join(lines) == "  a /long/path/that/does/not/fit b\u4e2d\u4e2d c"
    assert wrap("", 8) == [""]


def test_a_command_in_parts_is_shown_with_its_parts() -> None:
    (alias,) = listed_aliases("run_it", ToolArguments({"program": "string", "args": "array"}, frozenset()))
    assert alias_text(alias) == "as Bash (program + args as command), by its name and arguments"
