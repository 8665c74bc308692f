"""Copilot CLI's hook files in both editions: how they are read, and the dialects as data."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from hookproxy.dialects.copilot import CURRENT as COPILOT_CURRENT
from hookproxy.dialects.copilot import DIALECT as COPILOT
from hookproxy.dialects.copilot.input import OBJECT
from hookproxy.dialects.dialect import Dialect, HookFile, HookList
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import Event, HookSpec, Order
from hookproxy.model.settings import ToolNames

PATH = "/repo/.github/hooks/guard.json"
BOTH = pytest.mark.parametrize("dialect", [COPILOT, COPILOT_CURRENT], ids=lambda dialect: dialect.name)

OF_OTHER_TYPES = {
    part.name: part.default
    for part in fields(HookSpec)
    if part.name in {"call", "url", "headers", "allowed_env_vars", "concurrent", "warm_max_age", "warm_spares"}
    or part.name in {"server", "tool", "input", "model"}
}
"""Fields that only hooks of other types have."""


def load(
    hooks: object,
    dialect: Dialect = COPILOT,
    options: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> HookList:
    text = json.dumps({"version": 1, "hooks": hooks})
    return dialect.read_hook_file(HookFile(PATH, text, "/repo", options or {}, environ or {}))


def one(
    entry: dict[str, object],
    event: str = "preToolUse",
    dialect: Dialect = COPILOT,
    options: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> HookSpec:
    (hook,) = load({event: [{"type": "command", **entry}]}, dialect, options, environ).hooks
    return hook


# --- what is read ---


def test_all_keys_of_an_entry_are_read() -> None:
    hook = one(
        {
            "bash": "./scripts/guard.sh --strict",
            "powershell": "./scripts/guard.ps1",
            "cwd": "tools/hooks",
            "env": {"MODE": "block", "TOKEN": "$TOK", "BOTH": "${HOME}/x:$TOK"},
            "timeoutSec": 15,
            "matcher": "bash|edit",
        },
        environ={"TOK": "t0", "HOME": "/home/me"},
    )
    assert {name.name: getattr(hook, name.name) for name in fields(hook) if name.name != "matches"} == {
        **OF_OTHER_TYPES,
        **{field.name: field.default for field in fields(HookSpec) if isinstance(field.default, str | bool | int)},
        "dialect": "copilot",
        "source": f"{PATH}: hooks.preToolUse[0]",
        "event": Event.PRE_TOOL_USE,
        "label": "guard.sh",
        "matcher": "bash|edit",
        "argv": ("bash", "-c", "./scripts/guard.sh --strict"),
        "cwd": "/repo/tools/hooks",
        "env": (
            ("COPILOT_PROJECT_DIR", "/repo"),
            ("MODE", "block"),
            ("TOKEN", "t0"),
            ("BOTH", "/home/me/x:t0"),
        ),
        "timeout": 15.0,
        "on_failure": None,
        "detaches": None,
        "accepts": None,
        "event_name": "preToolUse",
        "traits": frozenset(),
    }


@BOTH
def test_a_hook_has_the_documented_defaults(dialect: Dialect) -> None:
    hook = one({"bash": "true"}, dialect=dialect)
    assert (hook.dialect, hook.timeout, hook.cwd) == (dialect.name, 30.0, "/repo")
    assert (hook.env, hook.background, hook.fails_closed, hook.every_call) == (
        (("COPILOT_PROJECT_DIR", "/repo"),),
        False,
        False,
        False,
    )
    assert hook.matches("anything")


@BOTH
def test_a_hook_of_each_event_carries_its_spelling(dialect: Dialect) -> None:
    hooks = load({name: [{"type": "command", "bash": "true"}] for name in dialect.events}, dialect).hooks
    assert {hook.event_name: hook.event for hook in hooks} == dialect.events


def test_both_spellings_of_an_event_are_two_hooks() -> None:
    entry = {"type": "command", "bash": "./guard.sh"}
    first, second = load({"PreToolUse": [entry], "preToolUse": [entry]}).hooks
    assert (first.event_name, second.event_name) == ("PreToolUse", "preToolUse")
    assert first.identity != second.identity


def test_hooks_have_the_order_of_the_file() -> None:
    hooks: dict[str, object] = {
        "postToolUse": [{"type": "command", "bash": "a"}],
        "preToolUse": [{"type": "command", "bash": "b"}, {"type": "command", "bash": "c"}],
    }
    assert [hook.argv[2] for hook in load(hooks).hooks] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("cwd", "folder"),
    [("", "/repo"), (".", "/repo"), ("./a/", "/repo/a"), ("/srv/x", "/srv/x"), ("link/../a", "/repo/link/../a")],
)
def test_the_working_directory_starts_from_the_root(cwd: str, folder: str) -> None:
    assert one({"bash": "true", "cwd": cwd}).cwd == folder


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("$A$B", "12"),
        ("${A}b", "1b"),
        ("$Ab", ""),
        ("$", "$"),
        ("$1 ${} ${A", "$1 ${} ${A"),
        ("${A:-x}", "${A:-x}"),
        ("é$A", "é1"),
    ],
)
def test_variables_are_expanded_in_env(written: str, value: str) -> None:
    assert one({"bash": "true", "env": {"V": written}}, environ={"A": "1", "B": "2"}).env[1] == ("V", value)


def test_an_entry_may_set_our_own_variables() -> None:
    assert dict(one({"bash": "true", "env": {"COPILOT_PROJECT_DIR": "/x"}}).env) == {"COPILOT_PROJECT_DIR": "/x"}


# --- matchers ---


@BOTH
@pytest.mark.parametrize("event", ["preToolUse", "postToolUse", "postToolUseFailure", "permissionRequest"])
@pytest.mark.parametrize(
    ("matcher", "matching", "others"),
    [
        ("bash", ["bash"], ["bash2", "mybash", "Bash", "bash\n", ""]),
        ("bash|edit", ["bash", "edit"], ["bash|edit", "editor"]),
        ("file_.*", ["file_read"], ["my_file_read"]),
        ("a$|b", ["a", "b"], ["ab"]),
        ("", ["anything", ""], []),
    ],
)
def test_a_matcher_is_anchored(
    dialect: Dialect, event: str, matcher: str, matching: list[str], others: list[str]
) -> None:
    hook = one({"bash": "true", "matcher": matcher}, event, dialect)
    assert all(map(hook.matches, matching))
    assert not any(map(hook.matches, others))


def test_a_notification_matcher_is_for_its_type() -> None:
    hook = one({"bash": "true", "matcher": "permission_.*"}, "notification")
    assert hook.matches("permission_prompt")
    assert not hook.matches("elicitation_dialog")


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
@pytest.mark.parametrize("matcher", ["*", "**"])
def test_the_current_edition_takes_claudes_asterisks_in_pascal_case(event: str, matcher: str) -> None:
    assert one({"bash": "true", "matcher": matcher}, event, COPILOT_CURRENT).matches("anything")


# --- options ---


@BOTH
@pytest.mark.parametrize(("option", "traits"), [("object", {OBJECT}), ("string", set())])
def test_tool_args_selects_the_format_of_arguments(dialect: Dialect, option: str, traits: set[str]) -> None:
    assert one({"bash": "true"}, dialect=dialect, options={"tool_args": option}).traits == traits


@BOTH
@pytest.mark.parametrize(("option", "every_call"), [("always", True), ("asked", False)])
def test_permission_requests_may_be_fired_for_each_call(dialect: Dialect, option: str, every_call: bool) -> None:
    options = {"fire_permission_request": option}
    assert one({"bash": "true"}, "permissionRequest", dialect, options=options).every_call is every_call
    assert one({"bash": "true"}, "PermissionRequest", dialect, options=options).every_call is every_call
    assert one({"bash": "true"}, "preToolUse", dialect, options=options).every_call is False


# --- what the current edition adds ---


def test_type_may_be_absent_in_the_current_edition() -> None:
    (hook,) = load({"preToolUse": [{"bash": "./guard.sh"}]}, COPILOT_CURRENT).hooks
    assert hook.argv == ("bash", "-c", "./guard.sh")


def test_command_may_replace_bash_in_the_current_edition() -> None:
    assert one({"command": "./g", "powershell": "g.ps1"}, dialect=COPILOT_CURRENT).argv == ("bash", "-c", "./g")
    assert one({"command": "./g", "bash": "./b"}, dialect=COPILOT_CURRENT).argv == ("bash", "-c", "./b")


def test_exec_runs_without_a_shell_in_the_current_edition() -> None:
    hook = one({"exec": "python3", "args": ["hooks/h.py", "$HOME", "a b"]}, dialect=COPILOT_CURRENT)
    assert (hook.argv, hook.label) == (("python3", "hooks/h.py", "$HOME", "a b"), "h.py")
    assert one({"exec": "./g.sh", "cwd": "hooks"}, dialect=COPILOT_CURRENT).argv == ("/repo/hooks/g.sh",)


@pytest.mark.parametrize(
    ("entry", "seconds"), [({"timeout": 5}, 5), ({"timeout": 5, "timeoutSec": 7}, 7), ({"timeoutSec": 0.5}, 0.5)]
)
def test_timeout_is_another_name_in_the_current_edition(entry: dict[str, object], seconds: float) -> None:
    assert one({"bash": "true", **entry}, dialect=COPILOT_CURRENT).timeout == seconds


# --- whose file it is ---

ENTRY: dict[str, object] = {"type": "command", "bash": "x"}


@pytest.mark.parametrize(
    ("members", "fitting"),
    [
        ({"version": 1, "hooks": {"preToolUse": [ENTRY]}}, True),
        ({"version": 1, "hooks": {"PreToolUse": [{"bash": "x"}], "agentStop": []}}, True),
        ({"version": 1, "hooks": {"sessionStart": [{"type": "prompt", "prompt": "hi"}]}}, True),
        ({"version": 1, "hooks": {"userPromptTransformed": [ENTRY]}}, True),
        ({"version": 1, "hooks": {}, "disableAllHooks": True}, True),
        ({"version": 1}, False),
        ({"version": True, "hooks": {"preToolUse": [ENTRY]}}, False),
        ({"version": "1", "hooks": {"preToolUse": [ENTRY]}}, False),
        ({"hooks": {"preToolUse": [ENTRY]}}, True),  # its version is forgotten, which reading it says
        ({"hooks": {"PreToolUse": [ENTRY]}}, False),
        ({"hooks": {"preToolUse": [{"type": "command", "command": "x"}]}}, False),
        ({"version": 1, "hooks": {"preToolUse": [{"matcher": "x", "hooks": [ENTRY]}]}}, False),
        ({"version": 1, "hooks": {"preToolUse": [{**ENTRY, "hooks": []}]}}, False),
        ({"version": 1, "hooks": {"preToolUse": [{"command": "./cursor.sh"}]}}, False),
        ({"version": 1, "hooks": {"beforeMCPExecution": [ENTRY]}}, False),
        ({"version": 1, "hooks": {"preToolUse": ["./x"]}}, False),
        ({"version": 1, "hooks": {"preToolUse": ENTRY}}, False),
        ({"version": 1, "hooks": []}, False),
    ],
)
def test_only_files_of_this_shape_are_recognised(members: dict[str, object], fitting: bool) -> None:
    assert COPILOT.recognises(members) is fitting
    fits = [name for name, dialect in DIALECTS.items() if dialect.recognises(members)]
    assert fits == ["copilot"] if fitting else "copilot" not in fits


KEYS = st.sampled_from(["version", "hooks", "preToolUse", "PreToolUse", "type", "bash", "command"]) | st.text()
LEAVES = st.none() | st.booleans() | st.integers(0, 2) | st.floats() | st.sampled_from(["command", ""])


@given(
    st.dictionaries(
        KEYS, st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=20)
    )
)
@pytest.mark.slow
def test_recognising_never_raises(members: dict[str, object]) -> None:
    assert COPILOT.recognises(members) in (True, False)
    assert COPILOT.recognises({**members, "version": 1}) in (True, False)


# --- the dialects as data ---


def test_the_dialect_is_described() -> None:
    assert (COPILOT.name, COPILOT.order, COPILOT.default_timeout, COPILOT.tool_names) == (
        "copilot",
        Order.SERIAL,
        30.0,
        ToolNames.BARE,
    )
    assert COPILOT.folders == (".github/hooks", ".copilot/hooks")
    assert COPILOT.options == ("fire_permission_request", "tool_args")
    assert COPILOT.last_answer_counts


def test_the_current_edition_differs_in_a_few_fields() -> None:
    changed = {
        field.name for field in fields(Dialect) if getattr(COPILOT, field.name) != getattr(COPILOT_CURRENT, field.name)
    }
    differing = {
        "name", "described_by", "unavailable", "output_fields", "read_hook_file", "read_output", "recognises",
        "longest_feedback", "find_plugin", "unframed", "user_files", "project_files",
    }  # fmt: skip
    assert changed == differing
    assert not COPILOT_CURRENT.recognises({"version": 1, "hooks": {"preToolUse": [ENTRY]}})


def test_every_event_of_the_document_is_available_or_has_a_reason() -> None:
    documented = {
        "sessionStart", "SessionStart", "sessionEnd", "SessionEnd", "userPromptSubmitted", "UserPromptSubmit",
        "preToolUse", "PreToolUse", "postToolUse", "PostToolUse", "postToolUseFailure", "PostToolUseFailure",
        "agentStop", "Stop", "subagentStart", "subagentStop", "SubagentStop", "errorOccurred", "ErrorOccurred",
        "preCompact", "PreCompact", "permissionRequest", "notification",
    }  # fmt: skip
    assert set(COPILOT.events) | set(COPILOT.unavailable) == documented | {
        "SubagentStart", "PermissionRequest", "Notification", "preMcpToolCall",
    }  # fmt: skip


def test_the_same_entry_in_two_files_is_the_same_hook() -> None:
    hook = one({"bash": "x", "matcher": "a"})
    assert replace(hook, source="elsewhere", matcher="b").identity == hook.identity
