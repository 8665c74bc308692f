"""The registry of dialects, and what their hooks must not inherit."""

import pytest

from hookproxy.dialects import DIALECTS, foreign_variables
from hookproxy.dialects.base import Dialect
from hookproxy.dialects.own import OWN


@pytest.mark.parametrize("name", DIALECTS)
def test_a_dialect_is_registered_under_its_name(name: str) -> None:
    assert DIALECTS[name].name == name


@pytest.mark.parametrize("dialect", [*DIALECTS.values(), OWN], ids=lambda dialect: dialect.name)
def test_a_dialect_keeps_its_own_variables_and_loses_all_others(dialect: Dialect) -> None:
    foreign = foreign_variables(dialect)
    assert foreign.isdisjoint(dialect.variables)
    for other in DIALECTS.values():
        assert set(other.variables) <= foreign | set(dialect.variables)
    assert {"CURSOR_VERSION", "GEMINI_PROJECT_DIR", "COPILOT_CLI", "HOOK_TOOL_NAME"} <= foreign


@pytest.mark.parametrize("dialect", [*DIALECTS.values(), OWN], ids=lambda dialect: dialect.name)
def test_keys_and_ordinary_variables_are_never_taken_away(dialect: Dialect) -> None:
    for name in foreign_variables(dialect):
        assert not any(word in name for word in ("KEY", "TOKEN", "SECRET", "PASSWORD", "CONFIG"))
    assert foreign_variables(dialect).isdisjoint({"PATH", "HOME", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"})
