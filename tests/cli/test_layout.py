"""The layout of output: nothing raw, nothing wider than the terminal, and JSON that every parser reads."""

from __future__ import annotations

import json

from rich.console import Console
from rich.text import Text

from hookproxy.cli.layout import alias_text, as_json, diff, document, label, new_console, row, short_path, visible, wrap
from hookproxy.policy.familiar_names import listed_aliases
from hookproxy.policy.tool_arguments import ToolArguments


def shown(name: str, before: bytes, after: bytes) -> str:
    console = new_console()
    with console.capture() as capture:
        diff(console, name, before, after)
    return capture.get()


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
    wide = "word " * 40
    for terminal, longest in ((True, 40), (False, 220)):
        console = Console(width=40, force_terminal=terminal, highlight=False, color_system=None)
        with console.capture() as capture:
            row(console, label("name"), wide)
        lines = capture.get().splitlines()
        assert max(map(len, lines)) <= longest
        assert lines[0].startswith("  name     word")
        assert (len(lines) > 1) is terminal


def test_nothing_reaches_a_terminal_raw() -> None:
    console = new_console()
    assert visible("a\x1b[31m\u202e\r", console) == "a\\x1b[31m\\u202e\\r"
    with console.capture() as capture:
        row(console, Text("x "), "[bold]\x07")
    assert capture.get() == "x [bold]\\x07\n"


def test_short_paths() -> None:
    assert (short_path("/a/b/c", "/a/b"), short_path("/x", "/a"), short_path("/x", "/")) == ("c", "/x", "x")


def test_a_text_is_broken_between_words_only() -> None:
    lines = [line.plain for line in wrap(Text("  a /long/path/that/does/not/fit b\u4e2d\u4e2d c"), 8)]
    assert [line.rstrip() for line in lines] == ["  a", "/long/path/that/does/not/fit", "b\u4e2d\u4e2d c"]
    assert "".join(lines) == "  a /long/path/that/does/not/fit b\u4e2d\u4e2d c"
    assert [line.plain for line in wrap(Text(""), 8)] == [""]


def test_a_command_in_parts_is_shown_with_its_parts() -> None:
    (alias,) = listed_aliases("run_it", ToolArguments({"program": "string", "args": "array"}, frozenset()))
    assert alias_text(alias) == "as Bash (program + args as command), by its name and arguments"
