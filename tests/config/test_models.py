"""Every key of hookproxy.toml has a description, and none is missing."""

from __future__ import annotations

import pytest

from hookproxy.config.models import Audit, ConfigFile, Otel, OwnHook, OwnHooks, Permissions, Table, Use
from hookproxy.config.parse import parse
from hookproxy.config.pydantic_models import model_of
from hookproxy.dialects.own import KEYS, OWN
from hookproxy.model.errors import ConfigError
from hookproxy.model.settings import Settings

TABLES = [ConfigFile, Use, OwnHooks, OwnHook, Permissions, Audit, Otel]


@pytest.mark.parametrize("table", TABLES)
def test_every_key_is_described_in_a_sentence(table: type[Table]) -> None:
    for name, field in model_of(table).model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name


def test_every_event_may_have_hooks() -> None:
    assert set(OwnHooks.__struct_fields__) == {*OWN.events, "notifications", "composition"}


def test_the_keys_of_an_own_hook_are_those_that_are_read() -> None:
    assert set(OwnHook.__struct_encode_fields__) == {*KEYS, "mode"}  # which says where the hook belongs


def test_the_description_of_the_timeout_contains_the_default() -> None:
    assert f"Default: {OWN.default_timeout:g}." in (model_of(OwnHook).model_fields["timeout"].description or "")


def test_an_empty_file_gives_the_defaults() -> None:
    file, settings = parse("hookproxy.toml", ""), Settings()
    assert (file.on_failure, file.on_ask, file.feedback) == (
        settings.on_failure,
        settings.on_ask,
        settings.feedback,
    )
    assert file.max_message_bytes == settings.max_message_bytes == 67108864
    assert "67108864" in (model_of(ConfigFile).model_fields["max_message_bytes"].description or "")


def test_an_error_names_the_line_that_a_key_starts() -> None:
    text = """
# [[use]] in a comment is none
'on_ask' = "deny"

[[use]]
file = "a"

[[ use ]]
file = "b"
tool_names = "nonsense"
"""
    with pytest.raises(Exception, match=r"x\.toml:10: use\[1\]\.tool_names: should be 'mcp' or 'bare'"):
        parse("x.toml", text)


FORMER = """
on_trouble = "deny"
[tools.on_trouble]
as = "Bash"
[[use]]
file = "a.json"
on_trouble = "allow"
[[hooks.PreToolUse]]
command = "guard"
on_trouble = "allow"
env = { on_trouble = "a variable" }
"""


def test_a_key_is_read_under_its_former_name() -> None:
    file = parse("f", FORMER)
    (hook,) = file.hooks.PreToolUse
    assert (file.on_failure, file.use[0].on_failure, hook.on_failure) == ("deny", "allow", "allow")
    assert (hook.env, list(file.tools)) == ({"on_trouble": "a variable"}, ["on_trouble"])


@pytest.mark.parametrize("table", ["", "[[use]]\n", "[[hooks.PreToolUse]]\n"])
def test_a_key_under_both_of_its_names_is_refused(table: str) -> None:
    with pytest.raises(ConfigError, match="on_trouble and on_failure are the same key"):
        parse("f", f'{table}on_trouble = "deny"\non_failure = "deny"\n')


def test_a_wrong_value_under_the_former_name_has_its_line() -> None:
    with pytest.raises(ConfigError, match=r"f:2: on_failure: .*") as raised:
        parse("f", '\non_trouble = "den"\n')
    assert raised.value.hint == "did you mean 'deny'?"


def test_a_file_that_is_nested_too_deeply_is_an_error_of_its_author() -> None:
    with pytest.raises(ConfigError, match="nested too deeply"):
        parse("hookproxy.toml", f"a = {'[' * 5000}")
