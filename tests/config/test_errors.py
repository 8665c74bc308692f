"""Errors about an invalid hookproxy.toml name line and key; test_load has a table of them."""

from __future__ import annotations

import pytest

from hookproxy.config.parse import parse
from hookproxy.model.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a =", "/x.toml:1: not TOML: invalid value"),
        (
            '[[hooks.PreToolUse]]\ncommand = "x"\n\n[[hooks.PreToolUse]]\nurll = "y"',
            "/x.toml:5: hooks.PreToolUse[1].urll: unknown key",
        ),
        ("[[hooks.PreToolUs]]", "/x.toml:1: hooks.PreToolUs: unknown event"),
    ],
)
def test_an_error_names_line_and_key(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as problem:
        parse("/x.toml", text)
    assert problem.value.message == message


@pytest.mark.parametrize(
    "text", ["[gateway]", '[servers.a]\ncommand = ["x"]', '[[permissions.for]]\nusers = ["a"]\ndeny = ["x"]']
)
def test_a_gateways_file_in_place_of_a_runs_file_is_named_as_such(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse("f", text)
    assert caught.value.hint == "only a gateway's file has it, which `hookproxy serve --config FILE` reads"


def test_a_former_key_where_no_table_has_it_has_its_own_line() -> None:
    with pytest.raises(ConfigError, match=r"f:3: audit\.on_trouble: unknown key"):
        parse("f", '\n[audit]\non_trouble = "deny"\n')


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        (
            "[guard]\nlimits = 3",
            ":2: guard.limits",
            "it is a table of its own: write [[limits]], and its keys below that line",
        ),
        (
            '[audit]\nuse = ["a"]',
            ":2: audit.use",
            "it is a key of [packs]: move it there; or a table of its own: write [[use]]",
        ),
        ('[guard]\non_ask = "deny"', ":2: guard.on_ask", "move it above [guard], before the first line with brackets"),
        ('[[hooks]]\nevent = "PreToolUse"', ":1: hooks: the event", "write [[hooks.PreToolUse]]"),
        ("[[limits]]\nseconds = inf", ":2: limits[0].seconds", "write seconds = 31536000 or less"),
        ("[[limits]]\nseconds = nan", ":2: limits[0].seconds", "write seconds = 31536000 or less"),
        ('[permissions]\ndeny = ["a",]]', ":2: not TOML", 'remove the last bracket: deny = ["a",]'),
    ],
)
def test_a_repair_works_as_it_is_written(text: str, place: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse("f", text)
    assert caught.value.message.startswith(f"f{place}")
    assert hint in caught.value.hint
