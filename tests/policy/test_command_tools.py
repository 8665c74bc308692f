"""Tools that run commands under odd names are Bash for everything that refuses, and few others are.

The table has invented tools: names and arguments as servers in the wild have them, and none of them is in a preset.
"""

from __future__ import annotations

import json
from typing import Final

import pytest

from hookproxy.hooks.familiar_tools import FamiliarTools
from hookproxy.jsonrpc import raw_json
from hookproxy.model.hooks import Tool
from hookproxy.model.settings import Settings
from hookproxy.policy.familiar_names import is_left_out, listed_aliases
from hookproxy.policy.rules import Rules
from hookproxy.policy.tool_arguments import listed_arguments

LINE: Final = "git push --force"

COMMANDS: Final[dict[str, dict[str, object]]] = {
    # a text
    "execute_shell_command": {"shell_cmd": LINE},
    "run_shell_cmd": {"cmd_line": LINE},
    "create_process": {"command": LINE},
    "cmd": {"command": LINE},
    "run_test_command": {"command": LINE},
    "test_runner": {"test_command": LINE},
    "build_project": {"buildCommand": LINE},
    "start_dev_server": {"start_command": LINE},
    "schedule_job": {"command": LINE},
    "add_cron_job": {"schedule": "@daily", "cron_command": LINE},
    "register_hook": {"command": LINE},
    "job": {"commandLine": LINE},
    "do_it": {"cmd": LINE},
    "host_exec": {"host": "h", "cmd": LINE},
    "sandbox": {"image": "debian", "command": LINE},
    "run_container": {"image": "debian", "command": LINE},
    "docker_run": {"image": "debian", "cmd": ["git", "push", "--force"]},
    "exec_in_pod": {"pod": "p", "command": ["git", "push", "--force"]},
    "remote_shell": {"input": LINE},
    "ssh_session_send": {"text": LINE},
    "tmux_send": {"keys": LINE},
    "terminal_input": {"data": LINE},
    "write_stdin": {"session_id": 3, "chars": LINE},
    "unified_exec": {"input": ["git", "push", "--force"], "session_id": "3"},
    "exec_session": {"input": LINE, "timeout_ms": 5},
    "js_repl": {"input": LINE},
    "repl_write": {"text": LINE},
    "write-process": {"terminal_id": 3, "input_text": LINE},
    "interact_with_process": {"pid": 3, "input": LINE},
    "sendToProcess": {"id": "3", "data": LINE},
    "powershell": {"script": LINE},
    "pwsh_invoke": {"code": LINE},
    "bash_tool": {"line": LINE},
    "sh": {"script": LINE},
    "shell": {"body": LINE},
    "invoke_script": {"script": LINE},
    "batch_script": {"bash_script": LINE},
    "evaluate": {"shell_code": LINE},
    "step": {"shellCommand": LINE},
    "pipeline_step": {"bash": LINE},
    "worker": {"command_to_run": LINE},
    "queue_task": {"cmd_to_execute": LINE},
    "system": {"commandString": LINE},
    "os_system": {"command_text": LINE},
    "validate_command": {"command": LINE},
    "list_processes": {"command": LINE},
    "get_output": {"raw_command": LINE},
    "vscode_run": {"command": LINE},
    "git_helper": {"git_command": LINE},
    "npm_script_runner": {"run_cmd": LINE},
    "sqlite_helper": {"shell_command": LINE},
    # a list
    "spawn_process": {"program": "git", "args": ["push", "--force"]},
    "popen": {"args": ["git", "push", "--force"]},
    "subprocess_run": {"args": ["git", "push", "--force"], "cwd": "/x"},
    "start": {"executable": "git", "arguments": ["push", "--force"]},
    "launch_process": {"binary": "git", "argv": ["push", "--force"]},
    "process_create": {"commandLine": "git", "args": ["push", "--force"]},
    "exec": {"argv": ["git", "push", "--force"]},
    "execv": {"argv": ["env", "git", "push", "--force"]},
    "run": {"command": ["git", "push", "--force"]},
    "run_many": {"commands": ["ls", LINE]},
    "run_all": {"commands": [["ls"], ["git", "push", "--force"]]},
    "batch": {"cmds": [LINE, "ls"]},
    "parallel_exec": {"commands": [{"command": "git", "args": ["push", "--force"]}]},
    "cli": {"command": "git", "subcommand": "push", "flags": ["--force"]},
    "git": {"args": ["push", "--force"]},
    "run_git": {"arguments": ["push", "--force"]},
    "git_exec": {"command": "push --force"},
    "tool_runner": {"command_name": "git", "command_args": ["push", "--force"]},
    "command": {"program_name": "git", "params": ["push", "--force"]},
    "run_program": {"program": "git", "args": "push --force"},
    "ExecuteProcess": {"fileName": "git", "arguments": "push --force"},
    "launch_app": {"path": "git", "args": ["push", "--force"]},
    "launch": {"app": "git", "args": ["push", "--force"]},
    "run_pip_or_git": {"command": "git", "args": [["push", "--force"]]},
    "start_argv": {"command": "ls", "argv": ["git", "push", "--force"]},
    "execve": {"path": "env", "argv": ["git", "git", "push", "--force"]},
    "spawn_in_shell": {"command": "ls", "args": ["&&", "git", "push", "--force"], "shell": True},
    "spawn_if_shell": {"command": ["ls", ";git push --force"], "use_shell": True},
    # the one text of a tool whose name says that it runs something
    "exec_raw": {"to_run": LINE},
    "sys_exec": {"input": LINE},
    "remote_exec": {"host": "h", "what": LINE},
    "sh_c": {"value": LINE},
    "bash": {"s": LINE},
    "iterm_write": {"text": LINE},
    "pty_write": {"data": LINE},
    "powershell_exec": {"scriptBlock": LINE},
    "execute_shell_script": {"script_body": LINE},
    "run_script": {"contents": LINE},
    "console": {"input": LINE},
    "execute_code": {"source": LINE, "lang": "sh"},
    "code_interpreter": {"shell": LINE},
    "two_texts_for_a_terminal": {"input": "ls", "text": LINE},
    # inside of an argument
    "start_job": {"options": {"command": LINE, "verbose": True}},
    "create_pod": {"containers": [{"image": "x", "command": ["git", "push", "--force"]}, {"image": "y"}]},
    "deploy": {"jobs": {"build": {"steps": [{"action": {"command": LINE}}, {"name": "x"}]}}},
    "chain": {"first": {"command": "ls", "then": {"command": LINE}}},
    "workflow": {"steps": [{"run_command": "ls"}, {"run_command": LINE}]},
}
"""Each tool with a call that runs `git push --force`."""

OTHERS: Final[dict[str, dict[str, object]]] = {
    "run_sql": {"sql": "x"},
    "execute_query": {"query": "x"},
    "redis_execute": {"command": "FLUSHALL"},
    "mongo_run_command": {"command": "x"},
    "eval_js": {"expression": "x"},
    "browser_evaluate": {"script": "x"},
    "neo4j_query": {"cypher_command": "x"},
}
"""Tools for a database or in another language: they are left out, and people are told which."""


def shape(value: object) -> dict[str, object]:
    if isinstance(value, dict):
        return {"type": "object", "properties": {name: shape(each) for name, each in value.items()}}
    if isinstance(value, list):
        return {"type": "array", "items": shape(value[0])}
    return {"type": "boolean" if isinstance(value, bool) else "string"}


def schema(call: dict[str, object]) -> bytes:
    properties = {name: shape(value) for name, value in call.items()}
    return json.dumps({"type": "object", "properties": properties, "required": list(call)}).encode()


def denied(familiar: FamiliarTools, tool: str, call: dict[str, object]) -> bool:
    """Whether `Bash(git push:*)` denies the call in one of its readings."""
    raw = json.dumps(call).encode()
    alias = familiar.alias(tool, raw)
    if alias is None:
        return False
    rules = Rules.of(Settings(deny=("Bash(git push:*)",)))
    aliases = (alias, *alias.alternatives)
    return any(rules.judge((one.name,), reading) for one in aliases for reading in one.readings(raw))


def test_there_are_enough_tools() -> None:
    assert len(COMMANDS) >= 59


@pytest.mark.parametrize("tool", COMMANDS)
@pytest.mark.parametrize("listed", [True, False], ids=["listed", "not listed"])
def test_a_tool_that_runs_commands_escapes_no_rule_for_bash(tool: str, *, listed: bool) -> None:
    familiar = FamiliarTools()
    if listed:
        familiar.note_tools([Tool(tool, schema(COMMANDS[tool]))], "")
    assert "Bash" in {one.name for one in familiar.possible_aliases(tool)}
    assert denied(familiar, tool, COMMANDS[tool])


@pytest.mark.parametrize("tool", COMMANDS)
def test_its_name_allows_nothing(tool: str) -> None:
    aliases = listed_aliases(tool, listed_arguments(schema(COMMANDS[tool])))
    assert aliases
    assert all(one.automatic for one in aliases)


@pytest.mark.parametrize("tool", OTHERS)
def test_a_tool_of_a_database_or_another_language_is_left_out_by_name(tool: str) -> None:
    arguments = listed_arguments(schema(OTHERS[tool]))
    assert listed_aliases(tool, arguments) == ()
    assert is_left_out(tool, arguments)


@pytest.mark.parametrize(
    ("tool", "properties"),
    [
        ("get_weather", {"city": {"type": "string"}}),
        ("create_issue", {"title": {"type": "string"}, "body": {"type": "string"}}),
        ("search_docs", {"query": {"type": "string"}}),
        ("add", {"args": {"type": "array", "items": {"type": "number"}}, "name": {"type": "string"}}),
        ("status", {"command_id": {"type": "string"}}),
        ("configure", {"allowed_commands": {"type": "array"}, "blocked_commands": {"type": "array"}}),
        ("robot", {"command": {"enum": ["left", "right"]}}),
        ("lamp", {"command": {"type": "object"}}),
        (
            "str_replace_editor",
            {"command": {"type": "string"}, "path": {"type": "string"}, "old_str": {"type": "string"}},
        ),
        ("convert", {"text": {"type": "string"}, "options": {"type": "array"}}),
        ("start_timer", {"name": {"type": "string"}}),
        ("run_workflow", {"workflow": {"type": "string"}, "inputs": {"type": "object"}}),
        ("call_tool", {"name": {"type": "string"}, "arguments": {"type": "object"}}),
        ("process_image", {"input": {"type": "string"}}),
        ("execute_trade", {"symbol": {"type": "string"}}),
        ("get_shell_env", {"name": {"type": "string"}}),
        ("read_terminal", {"terminal": {"type": "string"}}),
        ("close_terminal", {"terminal_id": {"type": "string"}}),
        ("ssh_connect", {"host": {"type": "string"}}),
        ("system_status", {"component": {"type": "string"}}),
        ("run", {"script_id": {"type": "string"}}),
        ("launch_browser", {"path": {"type": "string"}}),
    ],
)
def test_other_tools_are_neither_bash_nor_left_out(tool: str, properties: dict[str, object]) -> None:
    arguments = listed_arguments(json.dumps({"type": "object", "properties": properties}).encode())
    assert "Bash" not in {one.name for one in listed_aliases(tool, arguments)}
    assert not is_left_out(tool, arguments)


@pytest.mark.parametrize(
    ("schema", "is_open"),
    [
        ({}, True),
        ({"properties": {}}, True),
        ({"properties": {"n": {"type": "number"}}, "additionalProperties": True}, True),
        ({"properties": {"n": {"type": "number"}}, "additionalProperties": {"type": "string"}}, True),
        ({"properties": {"n": {}}, "dependentSchemas": {"n": {"properties": {"command": {}}}}}, True),
        ({"properties": {"n": {}}, "if": {}, "then": {"properties": {"command": {}}}}, True),
        ({"properties": {"n": {}}, "patternProperties": {"^c": {"type": "string"}}}, True),
        ({"properties": {"command": {"type": "number"}}}, True),
        ({"properties": {"n": {"type": "number"}}}, False),
        ({"properties": {}, "additionalProperties": False}, False),
    ],
    ids=json.dumps,
)
def test_a_command_that_an_open_schema_does_not_list_is_judged(schema: dict[str, object], is_open: bool) -> None:
    familiar = FamiliarTools()
    familiar.note_tools([Tool("zap", json.dumps({"type": "object", **schema}).encode())], "")
    assert denied(familiar, "zap", {"command": LINE}) is is_open
    assert denied(familiar, "zap", {"n": 1, "opts": {"command": ["git", "push", "--force"]}}) is is_open
    assert not denied(familiar, "zap", {"n": 1})


def test_an_object_of_which_the_schema_says_nothing_may_hold_a_command() -> None:
    familiar = FamiliarTools()
    for name, kind in (("object", {"type": "object"}), ("list", {"type": "array", "items": {"type": "object"}})):
        familiar.note_tools([Tool(name, json.dumps({"type": "object", "properties": {"task": kind}}).encode())], "")
    assert denied(familiar, "object", {"task": {"type": "exec", "command": ["git", "push", "--force"]}})
    assert denied(familiar, "list", {"task": [{"command": "ls"}, {"command": LINE}]})
    assert familiar.alias("object", b'{"task":{"title":"command"}}') is None


def test_fixed_values_beside_any_text_are_any_text() -> None:
    for one, counts in (
        ({"anyOf": [{"enum": ["ls"]}, {"type": "string"}]}, True),
        ({"anyOf": [{"enum": ["left"]}, {"const": "right"}, {"type": "null"}]}, False),
        ({"allOf": [{"type": "string"}, {"enum": ["left"]}]}, False),
    ):
        text = json.dumps({"type": "object", "properties": {"command": one}}).encode()
        assert bool(listed_aliases("robot", listed_arguments(text))) is counts


@pytest.mark.parametrize(
    "added",
    [{"cmd": LINE}, {"argv": ["git", "push"]}, {"args": [";git", "push"]}, {"script": LINE}, {"commands": [LINE]}],
)
def test_a_further_command_that_is_not_listed_is_refused(added: dict[str, object]) -> None:
    familiar = FamiliarTools()
    properties = {"command": {"type": "string"}, "cwd": {"type": "string"}}
    text = json.dumps({"type": "object", "properties": properties}).encode()
    familiar.note_tools([Tool("execute_command", text, properties=frozenset(properties))], "")
    with pytest.raises(raw_json.Unreadable, match="may be the same argument"):
        familiar.alias("execute_command", json.dumps({"command": "ls", **added}).encode())
    assert familiar.alias("execute_command", b'{"command":"ls","cwd":"/","color":true}') is not None


def test_an_object_with_numbers_for_names_is_a_list() -> None:
    familiar = FamiliarTools()
    familiar.note_tools([Tool("spawn", schema({"program": "git", "args": ["push"]}))], "")
    assert denied(familiar, "spawn", {"program": "git", "args": {"0": "push", "1": "--force"}})


def test_of_two_entries_with_one_name_each_adds_names() -> None:
    command, other = schema({"command": LINE}), schema({"n": LINE})
    for texts in ((command, other), (other, command)):
        familiar = FamiliarTools()
        familiar.note_tools([Tool("zap", text) for text in texts], "")
        assert denied(familiar, "zap", {"command": LINE})


def test_words_for_a_shell_are_quoted_only_if_no_shell_reads_them() -> None:
    call: dict[str, object] = {"command": "git", "args": ["commit", "-m", "a; git push"]}
    for shell, refused in ((False, False), (True, True), (None, True)):
        familiar = FamiliarTools()
        familiar.note_tools([Tool("spawn", schema({**call, "shell": True}))], "")
        assert denied(familiar, "spawn", call if shell is None else {**call, "shell": shell}) is refused


def test_an_object_without_its_optional_command_is_no_command() -> None:
    familiar = FamiliarTools()
    familiar.note_tools([Tool("start_job", schema(COMMANDS["start_job"]))], "")
    for raw in (b'{"options":{"verbose":true}}', b'{"options":{}}', b'{"options":null}', b"{}"):
        alias = familiar.alias("start_job", raw)
        assert alias is not None
        held = alias.for_call(raw)
        assert json.loads(held.for_hooks(raw))["command"] == ""
        assert held.for_server(held.for_hooks(raw)) == raw
