"""The registry of dialects, and the variables that hooks do not inherit."""

import subprocess
import sys

import pytest

from hookproxy.dialects.dialect import Dialect
from hookproxy.dialects.own import OWN
from hookproxy.dialects.registry import DIALECTS
from hookproxy.dialects.shared.identity_variables import foreign_variables
from tests.dialects.calls import read


@pytest.mark.parametrize("name", DIALECTS)
def test_a_dialect_is_registered_under_its_name(name: str) -> None:
    assert DIALECTS[name].name == name


@pytest.mark.parametrize("dialect", [*DIALECTS.values(), OWN], ids=lambda dialect: dialect.name)
def test_a_dialect_keeps_its_own_variables_and_loses_all_others(dialect: Dialect) -> None:
    foreign = foreign_variables(dialect.variables)
    own = {name for name in dialect.variables if not name.startswith("HOOK_")}
    assert foreign.isdisjoint(own)
    assert "HOOK_TOOL_NAME" in foreign, "an inherited value is about another event"
    for other in DIALECTS.values():
        assert set(other.variables) <= foreign | set(dialect.variables)
    assert {"CURSOR_VERSION", "GEMINI_PROJECT_DIR", "COPILOT_CLI", "HOOK_TOOL_NAME"} <= foreign | set(dialect.variables)


@pytest.mark.parametrize("dialect", [*DIALECTS.values(), OWN], ids=lambda dialect: dialect.name)
def test_keys_and_ordinary_variables_are_never_taken_away(dialect: Dialect) -> None:
    for name in foreign_variables(dialect.variables):
        assert not any(word in name for word in ("KEY", "TOKEN", "SECRET", "PASSWORD", "CONFIG"))
    assert foreign_variables(dialect.variables).isdisjoint({"PATH", "HOME", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"})


def test_a_dialect_is_imported_only_when_it_is_used() -> None:
    program = (
        "import sys\n"
        "from hookproxy.dialects.agent_documents import Members, agents_of\n"
        "from hookproxy.dialects.registry import DIALECTS\n"
        "from hookproxy.dialects.shared.identity_variables import foreign_variables\n"
        "foreign_variables(DIALECTS['claude'].variables), list(DIALECTS), agents_of(Members(b'{}'))\n"
        "print(*(name for name in DIALECTS if f'hookproxy.dialects.{name.replace(chr(45), chr(95))}' in sys.modules))\n"
    )
    ended = subprocess.run((sys.executable, "-c", program), capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["claude"]


def test_an_unknown_dialect_is_a_key_error() -> None:
    assert "nobody" not in DIALECTS
    with pytest.raises(KeyError):
        DIALECTS["nobody"]


@pytest.mark.parametrize("name", ["claude", "droid", "iflow", "kimi", "qwen"])
@pytest.mark.parametrize("matcher", ["mcp__files__notes.read", "mcp__files__notes_read"])
def test_a_matcher_may_spell_a_tools_name_as_the_server_or_as_claudes_api(name: str, matcher: str) -> None:
    content: object = {"hooks": {"PreToolUse": [{"matcher": matcher, "hooks": [{"type": "command", "command": "x"}]}]}}
    if name == "kimi":
        content = f'[[hooks]]\nevent = "PreToolUse"\nmatcher = "{matcher}"\ncommand = "x"\n'
    (hook,) = read(name, content).hooks
    assert hook.matches(DIALECTS[name].mcp_tool_name("files", "notes.read"))
    assert not hook.matches(DIALECTS[name].mcp_tool_name("files", "other.read"))
