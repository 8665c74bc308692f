"""Docker Agent's files: their hooks, notes and errors."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields

from hookproxy.dialects.dialect import Dialect, HookFile, HookList
from hookproxy.dialects.docker_agent import CURRENT as DOCKER_AGENT_CURRENT
from hookproxy.dialects.docker_agent import DIALECT as DOCKER_AGENT
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event, HookSpec
from tests.dialects.tables import sample

BOTH = pytest.mark.parametrize("dialect", [DOCKER_AGENT, DOCKER_AGENT_CURRENT], ids=lambda dialect: dialect.name)
AFTER_FAILURE = Event.POST_TOOL_USE_FAILURE
ENVIRON = {"HOME": "/home/me", "PROFILE": "dev", "SUB": "sub"}
PAGE = sample("docker_agent.yaml")
TIMEOUT = """\
hooks:
  pre_tool_use:
    - matcher: "*"
      hooks:
        - type: command
          command: "./slow-validation.sh"
          timeout: 120 # 2 minutes
"""
"""The page's section on timeouts, with restored indentation."""


OF_OTHER_TYPES = {
    part.name: part.default
    for part in fields(HookSpec)
    if part.name in {"call", "url", "headers", "allowed_env_vars", "concurrent", "warm_max_age", "warm_spares"}
    or part.name in {"server", "tool", "input", "process"}
    or part.name in {"expression", "policy", "policy_file", "policy_schema", "deny_reason", "only_narrows"}
    or part.name in {"model", "sees_values"}
}
"""The members of hooks of other types, with their defaults."""


def load(text: object, dialect: Dialect = DOCKER_AGENT, path: str = "/repo/agent.yaml", **options: str) -> HookList:
    written = text if isinstance(text, str) else json.dumps(text)
    return dialect.read_hook_file(HookFile(path, written, "/repo", options, ENVIRON))


def command(command: str = "x", **more: object) -> dict[str, object]:
    return {"type": "command", "command": command, **more}


def group(*entries: object, **more: object) -> dict[str, object]:
    return {"hooks": list(entries), **more}


def one(entry: dict[str, object], dialect: Dialect = DOCKER_AGENT, **more: object) -> HookSpec:
    """The one hook of a file with one pre_tool_use entry."""
    (hook,) = load({"hooks": {"pre_tool_use": [group(entry, **more)]}}, dialect).hooks
    return hook


# --- the hooks of a file ---


@BOTH
def test_the_configuration_of_the_page_is_read(dialect: Dialect) -> None:
    found = load(PAGE, dialect)
    assert found.notes == ()
    assert [(hook.event, hook.shell, hook.timeout) for hook in found.hooks if hook.event is not AFTER_FAILURE] == [
        (Event.PRE_TOOL_USE, "./scripts/validate-command.sh", 30.0),
        (Event.POST_TOOL_USE, "./scripts/log-tool-call.sh", 60.0),
        (Event.SESSION_START, "./scripts/setup-env.sh", 60.0),
        (Event.SESSION_END, "./scripts/cleanup.sh", 60.0),
        (Event.USER_INPUT, "./scripts/notify.sh", 60.0),
    ]
    before = found.hooks[0]
    assert [before.matches(name) for name in ("shell", "edit_file", "read_file")] == [True, True, False]


def test_post_tool_use_is_for_calls_that_succeeded() -> None:
    assert [hook.event for hook in load(PAGE).hooks if hook.event_name == "post_tool_use"] == [Event.POST_TOOL_USE]


def test_the_newer_post_tool_use_is_also_for_failed_calls() -> None:
    events = [hook.event for hook in load(PAGE, DOCKER_AGENT_CURRENT).hooks if hook.event_name == "post_tool_use"]
    assert events == [Event.POST_TOOL_USE, AFTER_FAILURE]


@BOTH
def test_a_file_with_hooks_alone_is_accepted_and_its_timeout_is_in_seconds(dialect: Dialect) -> None:
    (hook,) = load(TIMEOUT, dialect).hooks
    assert (hook.timeout, hook.shell, hook.source) == (
        120.0,
        "./slow-validation.sh",
        "/repo/agent.yaml: hooks.pre_tool_use[0].hooks[0]",
    )


def test_a_hook_has_the_values_of_its_entry_and_documented_defaults() -> None:
    hook = one(command("python3 scripts/guard.py --strict", timeout=1.5), matcher="shell")
    assert {part.name: getattr(hook, part.name) for part in fields(hook) if part.name != "matches"} == {
        **OF_OTHER_TYPES,
        "dialect": "docker-agent",
        "source": "/repo/agent.yaml: hooks.pre_tool_use[0].hooks[0]",
        "event": Event.PRE_TOOL_USE,
        "label": "guard.py",
        "matcher": "shell",
        "argv": (),
        "shell": "python3 scripts/guard.py --strict",
        "cwd": "/repo",
        "env": (),
        "timeout": 1.5,
        "background": False,
        "fails_closed": False,
        "withholds": False,
        "on_failure": None,
        "only_if": "",
        "type": "command",
        "event_name": "pre_tool_use",
        "traits": frozenset(),
        "accepts": None,
        "stage": 0,
        "sequential": False,
        "every_call": False,
        "detaches": None,
        "max_retries": 0,
    }
    assert one(command()).timeout == 60.0
    assert one(command()).matches("anything")


@BOTH
def test_hooks_of_an_event_are_in_the_order_of_the_file(dialect: Dialect) -> None:
    groups = [group(command("a"), command("b"), matcher="x"), group(command("c"))]
    assert [hook.shell for hook in load({"hooks": {"pre_tool_use": groups}}, dialect).hooks] == ["a", "b", "c"]


@BOTH
def test_hooks_have_the_name_of_their_dialect(dialect: Dialect) -> None:
    assert {hook.dialect for hook in load(PAGE, dialect).hooks} == {dialect.name}


@BOTH
def test_the_matcher_for_all_mcp_tools_matches_every_tool(dialect: Dialect) -> None:
    hook = one(command(), dialect, matcher="mcp:.*")
    assert hook.matches("shell")
    assert hook.matches("read_file")


@BOTH
@pytest.mark.parametrize("path", ["/repo/agent.yaml", "/repo/agent.yml", "/repo/agent.json"])
def test_a_file_may_be_json(dialect: Dialect, path: str) -> None:
    written = {"agents": {"root": {"hooks": {"pre_tool_use": [group(command())]}}}}
    assert len(load(written, dialect, path).hooks) == 1


@BOTH
def test_anchors_and_merge_keys_of_yaml_work(dialect: Dialect) -> None:
    text = """
guard: &guard
  type: command
  command: ./guard.sh
agents:
  root:
    hooks: &hooks
      pre_tool_use:
        - matcher: shell
          hooks:
            - <<: *guard
              timeout: 5
            - *guard
      session_start: [{<<: *guard, command: ./start.sh}]
  helper:
    hooks:
      <<: *hooks
      session_start: []
"""
    found = [(hook.event_name, hook.shell, hook.timeout) for hook in load(text, dialect).hooks]
    calls = [("pre_tool_use", "./guard.sh", 5.0), ("pre_tool_use", "./guard.sh", 60.0)]
    assert found == [*calls, ("session_start", "./start.sh", 60.0)]
    found = [(hook.event_name, hook.shell, hook.timeout) for hook in load(text, dialect, agent="helper").hooks]
    assert found == calls


def test_a_merge_key_works_wherever_its_anchor_is() -> None:
    text = """
agents:
  helper:
    hooks:
      session_end:
        - &end {<<: &hook {type: command, command: a}, command: b}
  root:
    hooks: {session_start: [{<<: *hook}], session_end: [{<<: *end, timeout: 1}]}
ends: {<<: *end}
"""
    assert [hook.shell for hook in load(text).hooks] == ["a", "b"]


def test_a_command_of_several_lines_is_not_changed() -> None:
    text = (
        'hooks:\n  session_start:\n    - type: command\n      command: |\n        INPUT=$(cat)\n        echo "$INPUT"\n'
    )
    (hook,) = load(text).hooks
    assert hook.shell == 'INPUT=$(cat)\necho "$INPUT"\n'


def test_other_members_of_an_agent_file_are_ignored() -> None:
    text = PAGE + "    toolsets: [{type: mcp, ref: docker:x}]\n    pre_tool_uses: 7\nmodels: {}\nversion: '2'\n"
    assert load(text).notes == ()


# --- the hooks of one agent ---


SEVERAL = {
    "agents": {
        "root": {"hooks": {"pre_tool_use": [group(command("of root"))]}},
        "helper": {"hooks": {"pre_tool_use": [group(command("of helper"))]}},
        "quiet": {"model": "x"},
        "odd": 7,
    }
}


@BOTH
def test_of_several_agents_the_hooks_of_root_run_and_the_others_are_reported(dialect: Dialect) -> None:
    found = load(SEVERAL, dialect)
    assert [hook.shell for hook in found.hooks] == ["of root"]
    assert found.notes == (
        '/repo/agent.yaml: agents.helper.hooks do not run: for them, write agent = "helper" in [[use]]',
    )


@BOTH
def test_the_hooks_of_the_named_agent_run(dialect: Dialect) -> None:
    found = load(SEVERAL, dialect, agent="helper")
    assert [(hook.shell, hook.source) for hook in found.hooks] == [
        ("of helper", "/repo/agent.yaml: agents.helper.hooks.pre_tool_use[0].hooks[0]")
    ]


def test_newer_hooks_have_the_name_of_their_agent() -> None:
    (hook,) = load(SEVERAL, DOCKER_AGENT_CURRENT, agent="helper").hooks
    assert "agent=helper" in hook.traits
    (hook,) = load(TIMEOUT, DOCKER_AGENT_CURRENT).hooks
    assert "agent=root" in hook.traits


def refusal(text: object, dialect: Dialect = DOCKER_AGENT, **options: str) -> tuple[str, str]:
    with pytest.raises(ConfigError) as problem:
        load(text, dialect, "/a.yaml", **options)
    return problem.value.message, problem.value.hint


@BOTH
def test_a_missing_agent_is_refused_with_a_suggestion(dialect: Dialect) -> None:
    assert refusal(SEVERAL, dialect, agent="helpr") == (
        "/a.yaml: there is no agent 'helpr' in it",
        "did you mean 'helper'?",
    )
    assert refusal({"agents": {"writer": {"hooks": {}}, "b": {}}}, dialect) == (
        "/a.yaml: there is no agent 'root' in it",
        'write agent = "…" in [[use]] with one of writer, b',
    )
    assert refusal({"agents": {}}, dialect) == ("/a.yaml: there is no agent 'root' in it", "it has no agents")
    assert refusal(TIMEOUT, dialect, agent="root") == (
        "/a.yaml: there is no agent 'root' in it",
        "it has no agents",
    )


@BOTH
def test_an_agent_without_hooks_is_reported(dialect: Dialect) -> None:
    assert load(SEVERAL, dialect, agent="quiet").remarks == ("/repo/agent.yaml: agents.quiet contains no hooks",)
    assert load({"models": {}}, dialect) == HookList((), remarks=("/repo/agent.yaml: contains no hooks",))


# --- notes on what cannot work behind MCP ---


@pytest.mark.parametrize("event", DOCKER_AGENT_CURRENT.unavailable)
def test_a_newer_unavailable_event_is_reported(event: str) -> None:
    reason = DOCKER_AGENT_CURRENT.unavailable[event]
    assert load({"hooks": {event: [command()]}}, DOCKER_AGENT_CURRENT) == HookList(
        (), remarks=(f"/repo/agent.yaml: hooks.{event} cannot fire behind MCP: {reason}",)
    )
    assert load({"hooks": {event: []}}, DOCKER_AGENT_CURRENT) == HookList(())


@pytest.mark.parametrize("event", ["stop", "notification", "tool_guard", "permission_request"])
def test_a_newer_event_is_refused_with_the_name_of_the_dialect_that_has_it(event: str) -> None:
    assert refusal({"hooks": {event: []}}) == (
        f"/a.yaml: hooks.{event} is not an event",
        "only the dialect docker-agent@current has it",
    )


@BOTH
@pytest.mark.parametrize(
    ("handler_type", "note"),
    [
        ("builtin", "type 'builtin' is not supported: it is a function inside Docker Agent"),
        ("model", "type 'model' is not supported: hookproxy has no model to ask"),
    ],
)
def test_a_hook_of_another_type_is_reported(dialect: Dialect, handler_type: str, note: str) -> None:
    entry = {"type": handler_type, "command": "redact_secrets", "args": ["x"], "prompt": "?"}
    found = load({"hooks": {"pre_tool_use": [group(entry, command("runs"))]}}, dialect)
    assert [hook.shell for hook in found.hooks] == ["runs"]
    assert found.notes == (f"/repo/agent.yaml: hooks.pre_tool_use[0].hooks[0] does not run: {note}",)


@pytest.mark.parametrize(
    ("entry", "more", "note"),
    [
        ({"timout": 3}, {}, ".hooks[0].timout is unknown and ignored: did you mean 'timeout'?"),
        ({"colour": 3}, {}, ".hooks[0].colour is unknown and ignored"),
        ({"env": {}}, {}, ".hooks[0].env is unknown and ignored: only the dialect docker-agent@current has it"),
        (
            {"strict_output": True},
            {},
            ".strict_output is unknown and ignored: only the dialect docker-agent@current has it",
        ),
        (
            {},
            {"preempt_yolo": True},
            "[0].preempt_yolo is unknown and ignored: only the dialect docker-agent@current has it",
        ),
        ({}, {"matchr": "x"}, "[0].matchr is unknown and ignored: did you mean 'matcher'?"),
        ({"timeout": 7200}, {}, ".hooks[0]: a timeout of 7200 seconds is longer than agents wait for a call"),
        (
            {"timeout": 30000},
            {},
            ".hooks[0]: a timeout of 30000 is read as seconds, as written: if they are meant as milliseconds, write 30",
        ),
    ],
    ids=lambda value: next(iter(value), "") if isinstance(value, dict) else None,
)
def test_a_key_without_effect_is_reported(entry: dict[str, object], more: dict[str, object], note: str) -> None:
    (actual,) = load({"hooks": {"pre_tool_use": [group({**command(), **entry}, **more)]}}).notes
    assert actual.startswith("/repo/agent.yaml: hooks.pre_tool_use[0]")
    assert actual.endswith(note)


@BOTH
def test_a_long_timeout_at_the_end_of_a_session_is_reported(dialect: Dialect) -> None:
    (actual,) = load({"hooks": {"session_end": [command(timeout=30)]}}, dialect).notes
    assert actual == (
        "/repo/agent.yaml: hooks.session_end[0]: session_end hooks get 1.5 seconds: the agent has disconnected"
    )
    assert load({"hooks": {"session_end": [command(timeout=1)]}}, dialect).notes == ()


# --- invalid files ---


@BOTH
@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("hooks:\n  pre_tool_use: [\n", "/a.yaml:3: not YAML: ", ""),
        ("hooks: {}\nhooks: {}\n", "/a.yaml:2: the key 'hooks' appears twice in one mapping", ""),
        ("- hooks\n", "/a.yaml: must contain one YAML mapping", ""),
        ("", "/a.yaml: must contain one YAML mapping", ""),
        ("hooks: !!timestamp x\n", "/a.yaml: cannot be read as YAML", ""),
        ("hooks: !!python/object:os.system {}\n", "/a.yaml:1: not YAML: could not determine a constructor", ""),
        ({"agents": []}, "/a.yaml: agents must be an object, not a list", ""),
        ({"agents": {"root": None}}, "/a.yaml: agents.root must be an object, not null", ""),
        ("agents:\n  root:\n    hooks:\n    pre_tool_use: []\n", "/a.yaml: agents.root.hooks must be an object", ""),
        ({"agents": {"root": {}}, "hooks": {}}, "/a.yaml: hooks is next to agents", "move it into an agent"),
        ({"hooks": []}, "/a.yaml: hooks must be an object, not a list", ""),
        (
            {"hooks": {"pre_tool_uses": []}},
            "/a.yaml: hooks.pre_tool_uses is not an event",
            "did you mean 'pre_tool_use'?",
        ),
        ({"hooks": {"PreToolUse": []}}, "/a.yaml: hooks.PreToolUse is not an event", "did you mean 'pre_tool_use'?"),
        ({"hooks": {"whenever": []}}, "/a.yaml: hooks.whenever is not an event", ""),
        ({"hooks": {"pre_tool_use": None}}, "/a.yaml: hooks.pre_tool_use must be a list, not null", ""),
        ({"hooks": {"pre_tool_use": "./a.sh"}}, "/a.yaml: hooks.pre_tool_use must be a list, not a string", ""),
        ({"hooks": {"pre_tool_use": ["./a.sh"]}}, "/a.yaml: hooks.pre_tool_use[0] must be an object", ""),
        ({"hooks": {"pre_tool_use": [command()]}}, "/a.yaml: hooks.pre_tool_use[0].hooks is missing", "write {matcher"),
        ({"hooks": {"pre_tool_use": [group("x")]}}, "/a.yaml: hooks.pre_tool_use[0].hooks[0] must be an object", ""),
        ({"hooks": {"session_start": [group(command())]}}, "/a.yaml: hooks.session_start[0].hooks is not allowed", ""),
        ({"hooks": {"session_start": [7]}}, "/a.yaml: hooks.session_start[0] must be an object, not a number", ""),
    ],
)
def test_an_invalid_file_is_refused_with_line_or_key(dialect: Dialect, text: object, message: str, hint: str) -> None:
    error, error_hint = refusal(text, dialect)
    assert error.startswith(message)
    assert hint in error_hint


@BOTH
@pytest.mark.parametrize(
    ("matcher", "message"),
    [
        ("shell(", "'shell(' cannot be used: missing ), unterminated"),
        ("(?!shell).*", "'(?!shell).*' cannot be used: hookproxy does not support '(?!s' in regular"),
        (7, "must be a string, not a number"),
        (None, "must be a string, not null"),
    ],
)
def test_an_invalid_matcher_is_refused(dialect: Dialect, matcher: object, message: str) -> None:
    error, _ = refusal({"hooks": {"post_tool_use": [group(command(), matcher=matcher)]}}, dialect)
    assert error.startswith(f"/a.yaml: hooks.post_tool_use[0].matcher {message}")


@BOTH
@pytest.mark.parametrize("event", ["pre_tool_use", "session_start"])
@pytest.mark.parametrize(
    ("entry", "message", "hint"),
    [
        ({"command": ...}, "command is missing", ""),
        ({"type": ...}, "type is missing", "write type: command"),
        ({"type": "comand"}, "type must be one of command, builtin, model, not 'comand'", "did you mean 'command'?"),
        ({"type": 1}, "type must be a string, not a number", ""),
        ({"command": " \n"}, "command is empty", ""),
        ({"command": ["x"]}, "command must be a string, not a list", ""),
        ({"command": "a\0b"}, "command contains a NUL", ""),
        ({"timeout": "30"}, "timeout must be a number of seconds, not a string", ""),
        ({"timeout": True}, "timeout must be a number of seconds, not true or false", ""),
        ({"timeout": None}, "timeout must be a number of seconds, not null", ""),
        ({"timeout": 0}, "timeout must be more than 0 seconds, not 0", ""),
        ({"timeout": -1}, "timeout must be more than 0 seconds, not -1", ""),
        ({"timeout": 10**400}, "timeout must be more than 0 seconds, not 1000", ""),
    ],
)
def test_an_invalid_hook_is_refused_with_its_key(
    dialect: Dialect, event: str, entry: dict[str, object], message: str, hint: str
) -> None:
    bad = {key: value for key, value in {**command(), **entry}.items() if value is not ...}
    grouped = event == "pre_tool_use"
    hooks = {event: [group(command(), bad)] if grouped else [command(), bad]}
    error, error_hint = refusal({"hooks": hooks}, dialect)
    place = f"{event}[0].hooks[1]" if grouped else f"{event}[1]"
    assert error.startswith(f"/a.yaml: hooks.{place}.{message}")
    assert hint in error_hint


# --- options of the newer page ---


def newer(hooks: object) -> HookList:
    return load({"hooks": hooks}, DOCKER_AGENT_CURRENT)


def test_transforms_come_first_and_guards_come_last() -> None:
    hooks = newer(
        {
            "tool_guard": [group(command("guard"))],
            "pre_tool_use": [group(command("b")), group(command("a"), preempt_yolo=True)],
            "tool_input_transform": [group(command("transform"))],
        }
    ).hooks
    assert [(hook.shell, hook.event) for hook in hooks] == [
        (name, Event.PRE_TOOL_USE) for name in ("transform", "a", "b", "guard")
    ]
    assert [hook.shell for hook in hooks if "preempts" in hook.traits] == ["a"]


def test_a_transform_of_responses_runs_for_successes_and_failures() -> None:
    found = newer({"tool_response_transform": [group(command())], "permission_request": [group(command())]})
    assert [hook.event for hook in found.hooks] == [
        Event.PERMISSION_REQUEST,
        Event.POST_TOOL_USE,
        AFTER_FAILURE,
    ]
    assert found.notes == ()


@pytest.mark.parametrize(
    "hooks",
    [
        {"tool_response_transform": [group(command("a"), command("b"))]},
        {"tool_response_transform": [group(command("a"))], "post_tool_use": [group(command("b"))]},
    ],
)
def test_transforms_of_responses_that_would_build_on_each_other_are_reported(hooks: object) -> None:
    assert newer(hooks).notes == (
        "/repo/agent.yaml: here all hooks after a call get the tool's own output, "
        "and the last tool_response_transform counts",
    )


def test_a_hook_has_its_own_name_folder_and_variables() -> None:
    entry = command(
        "./guard.sh --x",
        name="project policy",
        working_dir="./hooks/${env.SUB}/$SUB/${NONE}",
        env={"PROFILE": "is ${env.PROFILE} $SUB ${SUB}", "EMPTY": "${env.NONE}"},
        on_error="block",
        strict_output=True,
    )
    hook = one(entry, DOCKER_AGENT_CURRENT)
    assert (hook.label, hook.cwd) == ("project policy", "/repo/./hooks/sub/sub/")
    assert hook.env == (("PROFILE", "is dev $SUB ${SUB}"), ("EMPTY", ""))
    assert (hook.fails_closed, "strict" in hook.traits) == (True, True)


@pytest.mark.parametrize(
    ("written", "folder"), [("~/hooks", "/home/me/hooks"), ("~", "/home/me"), ("/x", "/x"), ("$NONE", "/repo")]
)
def test_a_working_dir_is_resolved(written: str, folder: str) -> None:
    assert one(command(working_dir=written), DOCKER_AGENT_CURRENT).cwd == folder


def test_hooks_of_different_names_are_different_hooks() -> None:
    first, second, third = (
        one(command(**more), DOCKER_AGENT_CURRENT) for more in ({}, {"name": "again"}, {"strict_output": True})
    )
    assert len({first.identity, second.identity, third.identity}) == 3
    assert one(command(), DOCKER_AGENT_CURRENT).identity == first.identity


def test_a_single_hook_needs_no_list() -> None:
    assert [hook.shell for hook in newer({"session_start": command("a")}).hooks] == ["a"]
    assert [hook.shell for hook in newer({"pre_tool_use": {"hooks": command("b")}}).hooks] == ["b"]
    assert newer({"stop": command()}).remarks != ()


def test_the_users_own_configuration_and_files_of_hooks_d_are_read() -> None:
    hooks = {"session_start": [command("a")], "stop": [command("b")]}
    for written in ({"settings": {"hooks": hooks, "theme": "x"}}, hooks):
        found = load(written, DOCKER_AGENT_CURRENT)
        assert ([hook.shell for hook in found.hooks], len(found.remarks)) == (["a"], 1)


@pytest.mark.parametrize(
    ("event", "entry", "message"),
    [
        ("session_start", {"on_error": "block"}, "on_error cannot be block: session_start hooks cannot block"),
        ("on_user_input", {"on_error": "stop"}, "on_error must be one of warn, ignore, block, not 'stop'"),
        ("session_end", {"env": ["A=1"]}, "env must be an object, not a list"),
        ("session_end", {"env": {"A": 1}}, "env.A must be a string, not a number"),
        ("session_end", {"env": {"A": "\0"}}, "env.A contains a NUL"),
        ("session_end", {"strict_output": "yes"}, "strict_output must be true or false, not a string"),
        ("session_end", {"working_dir": 1}, "working_dir must be a string, not a number"),
        ("session_end", {"name": []}, "name must be a string, not a list"),
    ],
)
def test_an_invalid_newer_option_is_refused(event: str, entry: dict[str, Any], message: str) -> None:
    error, _ = refusal({"hooks": {event: [command(**entry)]}}, DOCKER_AGENT_CURRENT)
    assert error.startswith(f"/a.yaml: hooks.{event}[0].{message}")


def test_only_pre_tool_use_preempts() -> None:
    error, _ = refusal({"hooks": {"tool_guard": [group(command(), preempt_yolo=True)]}}, DOCKER_AGENT_CURRENT)
    assert error == "/a.yaml: hooks.tool_guard[0].preempt_yolo is only for pre_tool_use"


# --- any file ---


KEYS = st.sampled_from([
    "agents", "root", "hooks", "settings", "pre_tool_use", "session_start", "tool_guard", "stop", "matcher", "type",
    "command", "timeout", "env", "working_dir", "on_error",
]) | st.text()  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["command", "x", "", "block"])
YAML = st.lists(st.sampled_from([*"ab: -[]{}&*!<>|\n\"'#%?,", "hooks:", "\n  ", "- ", "!!int", "<<: *a", "&a "]))


@BOTH
@given(
    st.text()
    | YAML.map("".join)
    | st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=20).map(json.dumps)
)
def test_any_file_is_read_or_refused_with_a_config_error(dialect: Dialect, text: str) -> None:
    for path in ("/a.yaml", "/a.json"):
        with suppress(ConfigError):
            assert all(hook.shell.strip() for hook in load(text, dialect, path).hooks)


# --- recognition ---


GROUPS = [{"matcher": "shell", "hooks": [{"type": "command", "command": "x"}]}]


@pytest.mark.parametrize(
    "members",
    [
        {"agents": {"root": {"model": "x", "hooks": {"pre_tool_use": GROUPS}}}},
        {"version": "2", "agents": {"a": {}, "b": {"hooks": {"stop": []}}}, "models": {}},
        {"hooks": {"pre_tool_use": GROUPS}},
        {"hooks": {"on_user_input": [], "stop": []}},
    ],
)
def test_a_file_of_docker_agents_shape_is_recognised(members: dict[str, object]) -> None:
    assert [dialect.name for dialect in DIALECTS.values() if dialect.recognises(members)] == ["docker-agent"]


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"agents": {"root": {"model": "x"}}},
        {"agents": ["root"]},
        {"agents": {"root": None, "b": {"hooks": []}}},
        {"hooks": {"PreToolUse": GROUPS}},
        {"hooks": {}},
        {"hooks": [1]},
        {"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": "x"}]}},
    ],
)
def test_other_files_are_not_recognised(members: dict[str, object]) -> None:
    assert not DOCKER_AGENT.recognises(members)
    assert not DOCKER_AGENT_CURRENT.recognises(members)
