"""hookproxy's own hooks: flat tables of hookproxy.toml, read strictly. They deny if they fail."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from hookproxy.dialects.claude import DIALECT as CLAUDE
from hookproxy.dialects.own import KEYS, OWN, own_hook
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Ended, Event, EventContext, HookResult, Permission, Session
from hookproxy.model.settings import OnFailure, ToolNames

if TYPE_CHECKING:
    from hookproxy.model.hooks import HookSpec

WHERE = "/etc/hookproxy.toml: hooks.PreToolUse[0]"


def hook(toml: str, event: Event = Event.PRE_TOOL_USE) -> HookSpec:
    return own_hook(tomllib.loads(toml), event, WHERE, "/etc")


def test_all_keys_of_a_table_are_read() -> None:
    spec = hook("""
        matcher = "write_file|edit_.*"
        command = "./guards/paths.py --strict"
        timeout = 5
        on_failure = "allow"
        name = "paths"
        env = { MODE = "strict" }
        async = true
        if = "write_file(/etc/*)"
    """)
    assert (spec.dialect, spec.source, spec.label, spec.matcher) == (
        "hookproxy",
        WHERE,
        "paths",
        "write_file|edit_.*",
    )
    assert spec.matches("edit_lines")
    assert not spec.matches("read_file")
    assert (spec.shell, spec.argv, spec.cwd, spec.env) == (
        "./guards/paths.py --strict",
        (),
        "/etc",
        (("MODE", "strict"),),
    )
    assert (spec.timeout, spec.background, spec.only_if) == (5.0, True, "write_file(/etc/*)")
    assert spec.on_failure is OnFailure.ALLOW


def test_a_table_fails_closed_by_default() -> None:
    spec = hook('command = "true"')
    assert (spec.fails_closed, spec.withholds, spec.on_failure) == (True, True, None)


def test_a_table_has_a_minute_and_all_tools() -> None:
    spec = hook('command = "true"')
    assert (spec.timeout, spec.matches("anything"), spec.background) == (60.0, True, False)
    assert hook('command = "true"', Event.SESSION_END).timeout == 1.5


def test_argv_starts_its_program_from_the_files_folder() -> None:
    spec = hook('argv = ["./guards/paths.py", "./x"]')
    assert (spec.argv, spec.shell, spec.label) == (("/etc/guards/paths.py", "./x"), "", "paths.py")
    assert hook('argv = ["python3", "guards/paths.py"]').label == "paths.py"


@pytest.mark.parametrize(
    ("toml", "message", "hint"),
    [
        ('comand = "x"', "unknown key 'comand'", "did you mean 'command'?"),
        ('command = "x"\ncolour = 1', "unknown key 'colour'", "the keys are matcher, type, command,"),
        ("", "needs exactly one of command and argv", "write command"),
        ('command = "x"\nargv = ["y"]', "needs exactly one of command and argv", ""),
        ('command = "  "', "needs exactly one of command and argv", ""),
        ("argv = []", "needs exactly one of command and argv", ""),
        ("command = 1", "command must be a string, not a number", ""),
        ('argv = ["a", 1]', "argv[1] must be a string, not a number", ""),
        ('command = "x"\nmatcher = "a("', "matcher 'a(' cannot be used: missing ), unterminated", ""),
        ('command = "x"\nif = "a b"', "if 'a b' cannot be used: 'a b' is not a permission rule", ""),
        ('command = "x"\ntimeout = 5000.0\nasync = 1', "async must be true or false, not a number", ""),
        ('command = "x"\ntimeout = 30000', "timeout looks like milliseconds: 30000", "30 for 30000"),
        ('command = "x"\ntimeout = nan', "timeout must be more than 0 seconds, not nan", ""),
        ('command = "x"\non_failure = "denny"', "on_failure must be one of dialect, deny, allow", "'deny'"),
        ('command = "x"\nenv = { A = 1 }', "env.A must be a string, not a number", ""),
        ('command = "x"\nenv = "A=1"', "env must be an object, not a string", ""),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_by_key(toml: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as problem:
        hook(toml)
    assert problem.value.message.startswith(f"{WHERE}: {message}")
    assert hint in problem.value.hint


@pytest.mark.parametrize("event", [Event.SESSION_START, Event.SESSION_END])
def test_if_is_refused_where_it_would_never_let_the_hook_run(event: Event) -> None:
    with pytest.raises(ConfigError, match="is for tool events"):
        hook('command = "x"\nif = "Bash"', event)


def test_the_keys_are_those_of_the_reference() -> None:
    assert set(KEYS) == {
        "matcher", "command", "argv", "timeout", "on_failure", "name", "env", "async", "if",
        "type", "concurrent", "call", "url", "headers", "allowed_env_vars", "warm", "warm_max_age", "warm_spares",
        "expression", "policy", "file", "schema", "reason", "secrets",
    }  # fmt: skip


def test_our_hooks_have_the_claude_dialect_with_bare_names() -> None:
    assert (OWN.name, OWN.tool_names, OWN.default_timeout) == ("hookproxy", ToolNames.BARE, 60.0)
    assert (OWN.events, OWN.order) == (CLAUDE.events, CLAUDE.order)
    verdict = OWN.read_output(hook('command = "x"'), HookResult(Ended.EXITED, 2, stderr=b"no"))
    assert (verdict.permission, verdict.reason) == (Permission.DENY, "no")


def test_our_hooks_get_claude_codes_document_and_the_time_of_the_event() -> None:
    context = EventContext(Event.PRE_TOOL_USE, Session("s", "files", "/", "/"), "write", "write", at=1_764_235_800.5)
    for event in (Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.SESSION_START):
        of_event = replace(context, event=event)
        own = json.loads(OWN.write_input(hook('command = "x"', event), of_event).stdin)
        assert own.pop("timestamp") == "2025-11-27T09:30:00.500Z"
        assert own == json.loads(CLAUDE.write_input(hook('command = "x"', event), of_event).stdin)


@pytest.mark.parametrize("event", [event for event in OWN.events.values() if event is not Event.PRE_TOOL_USE])
def test_a_policy_is_for_calls_that_have_not_run_yet(event: Event) -> None:
    with pytest.raises(ConfigError, match="type is for PreToolUse"):
        hook('type = "cel"\nexpression = "true"', event)
