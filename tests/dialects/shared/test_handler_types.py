"""Handler types in configurations: combinations that work, and combinations that are errors."""

from __future__ import annotations

import json
import tomllib

import pytest

from hookproxy.dialects.claude import DIALECT as CLAUDE
from hookproxy.dialects.dialect import HookFile, HookList
from hookproxy.dialects.own import own_hook
from hookproxy.dialects.registry import DIALECTS
from hookproxy.dialects.shared.handler_types import make_warm
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event, EventContext, HookSpec, Outcome, Session
from hookproxy.model.settings import OnFailure


def hook(toml: str) -> HookSpec:
    return own_hook(tomllib.loads(toml), Event.PRE_TOOL_USE, "/etc/h.toml: hooks.PreToolUse[0]", "/etc")


def test_each_type_is_read_with_what_it_needs() -> None:
    worker = hook('type = "worker"\nargv = ["./w.py"]\nconcurrent = true')
    assert (worker.type, worker.argv, worker.concurrent, worker.cwd) == ("worker", ("/etc/w.py",), True, "/etc")
    python = hook('type = "python"\ncall = "guards.paths:check"')
    assert (python.type, python.call, python.label, python.cwd, python.target) == (
        "python", "guards.paths:check", "guards.paths:check", "/etc", "guards.paths:check",
    )  # fmt: skip
    http = hook(
        'type = "http"\nurl = "https://h.example/x?key=1#y"\nheaders = { A = "Bearer ${T}" }\nallowed_env_vars = ["T"]'
    )
    assert (http.type, http.url, http.headers, http.allowed_env_vars, http.label) == (
        "http", "https://h.example/x?key=1", (("A", "Bearer ${T}"),), ("T",), "h.example",
    )  # fmt: skip
    assert http.target == "https://h.example/x"
    cel = hook("type = 'cel'\nexpression = 'tool == \"x\"'\nreason = 'no'")
    assert (cel.type, cel.label, cel.target, cel.deny_reason) == ("cel", 'cel: tool == "x"', 'tool == "x"', "no")
    assert cel.on_failure is OnFailure.DENY
    cedar = hook('type = "cedar"\npolicy = "permit(principal, action, resource);"')
    assert (cedar.type, cedar.label, cedar.policy) == ("cedar", "cedar", "permit(principal, action, resource);")
    opa = hook('type = "opa"\nurl = "http://localhost:8181/v1/data/mcp/allow?metrics"')
    assert (opa.type, opa.label, opa.on_failure) == ("opa", "opa: mcp/allow", OnFailure.DENY)
    warm = hook('command = "x"\nwarm = true\nwarm_max_age = 5\nwarm_spares = 3')
    assert (warm.type, warm.shell, warm.warm_max_age, warm.warm_spares) == ("warm", "x", 5.0, 3)
    assert hook('type = "command"\ncommand = "x"').type == "command"


@pytest.mark.parametrize("url", ["http://localhost:80/x", "http://127.0.0.1", "http://[::1]:8/x", "HTTPS://a.b"])
def test_plain_http_is_only_for_this_machine(url: str) -> None:
    assert hook(f'type = "http"\nurl = "{url}"').url == url


@pytest.mark.parametrize(
    ("toml", "message", "hint"),
    [
        ('type = "ftp"', "type must be one of command, worker, python, http, cel, cedar, opa", ""),
        ('type = "python"\ncommand = "x"', "command is not for a hook of type 'python'", 'type = "command"'),
        ('command = "x"\nurl = "https://x"', "url is not for a hook of type 'command'", 'type = "http"'),
        ('command = "x"\nconcurrent = true', "concurrent is not for a hook of type 'command'", 'type = "worker"'),
        ('type = "worker"\ncommand = "x"\nwarm = true', "warm is not for a hook of type 'worker'", 'type = "command"'),
        ('type = "worker"', "needs exactly one of command and argv", ""),
        ('type = "python"', "call is missing", "write call"),
        ('type = "python"\ncall = "guards"', "call 'guards' does not name a function", "package.module:function"),
        ('type = "python"\ncall = "../x:f"', "does not name a function", ""),
        ('type = "python"\ncall = "a:b"\nenv = { A = "1" }', "env is not for a hook of type 'python'", ""),
        ('type = "http"', "url is missing", ""),
        ('type = "http"\nurl = "http://example.com/"', "url would send the document unencrypted", "https://"),
        ('type = "http"\nurl = "http://localhost.evil.com/"', "url would send the document unencrypted", ""),
        ('type = "http"\nurl = "http://localhost@evil.com/"', "url contains a user name or a password", ""),
        ('type = "http"\nurl = "file:///etc/passwd"', "cannot be the URL of a hook", ""),
        ('type = "http"\nurl = "https://a b/"', "cannot be the URL of a hook", ""),
        ("type = \"http\"\nurl = 'http://localhost\\@evil.com/'", "cannot be the URL of a hook", ""),
        ('type = "http"\nurl = "https://a:99999/"', "cannot be the URL of a hook", ""),
        ('type = "http"\nurl = "https://a/"\nheaders = { X = "$T" }', "headers.X uses $T, which", "allowed_env_vars"),
        ('type = "http"\nurl = "https://a/"\nheaders = { X = "a\\r\\nB: c" }', "headers.X contains line ends", ""),
        ('type = "http"\nurl = "https://a/"\nheaders = { Host = "b" }', "is not a header that a hook can send", ""),
        ('type = "http"\nurl = "https://a/"\nheaders = { "X: y" = "b" }', "is not a header that a hook can send", ""),
        ('type = "cel"', "expression is missing", "write expression"),
        ('type = "cel"\nexpression = " "', "expression is empty", "'true'"),
        (f'type = "cel"\nexpression = "{"1" * 10_001}"', "expression has 10001 characters", "several hooks"),
        ('type = "cel"\nexpression = "true"\ncommand = "x"', "command is not for a hook of type 'cel'", ""),
        ('type = "cel"\nexpression = "true"\nreason = ""', "reason is empty", ""),
        ('type = "cel"\nexpression = "true"\nenv = { A = "1" }', "env is not for a hook of type 'cel'", ""),
        ('type = "cel"\nexpression = "true"\nasync = true', "in the background it would decide nothing", ""),
        ('type = "cel"\nexpression = "true"\non_failure = "allow"', "cannot be 'allow'", 'mode = "monitor"'),
        ('command = "x"\nreason = "y"', "reason is not for a hook of type 'command'", 'type = "cel"'),
        ('type = "cedar"', "needs exactly one of file and policy", "file"),
        ('type = "cedar"\nfile = "a"\npolicy = "b"', "needs exactly one of file and policy", "file"),
        ('type = "cedar"\nfile = "a"', "cannot be read from here", "policy"),
        ('type = "opa"', "url is missing", ""),
        ('type = "opa"\nurl = "http://localhost:8181/"', "does not name a rule of OPA", "/v1/data/mcp/allow"),
        ('type = "opa"\nurl = "http://localhost:8181/v1/data/"', "does not name a rule of OPA", ""),
        ('type = "opa"\nurl = "http://opa.example:8181/v1/data/a"', "would send the document unencrypted", "https"),
        ('command = "x"\nwarm_spares = 2', "warm_spares is only for warm hooks", "warm = true"),
        ('command = "x"\nwarm = true\nwarm_spares = 0', "warm_spares must be a number from 1 to 16", ""),
        ('command = "x"\nwarm = true\nwarm_max_age = 0', "warm_max_age must be more than 0 seconds", ""),
    ],
)
def test_a_combination_that_cannot_work_is_refused_by_key(toml: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as problem:
        hook(toml)
    assert message in problem.value.message
    assert hint in problem.value.hint


def claude_file(**entry: object) -> HookList:
    text = json.dumps({"hooks": {"PreToolUse": [{"hooks": [entry]}]}})
    return CLAUDE.read_hook_file(HookFile("/r/.claude/settings.json", text, "/r"))


def claude(**entry: object) -> HookSpec:
    (hook,) = claude_file(**entry).hooks
    return hook


def test_an_http_hook_of_a_settings_file_runs_as_our_own_do() -> None:
    hook = claude(type="http", url="http://localhost:8080/h", headers={"X": "$TOK"}, allowedEnvVars=["TOK"], timeout=5)
    assert (hook.type, hook.url, hook.headers, hook.allowed_env_vars, hook.timeout, hook.label) == (
        "http", "http://localhost:8080/h", (("X", "$TOK"),), ("TOK",), 5.0, "localhost",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, "url is missing"),
        ({"url": "ftp://a/"}, "url 'ftp://a/' cannot be the URL of a hook"),
        ({"url": "https://a/", "headers": {"Host": "b"}}, "headers.'Host' is not a header that a hook can send"),
    ],
)
def test_a_settings_files_http_hook_that_cannot_work_is_left_out(entry: dict[str, object], message: str) -> None:
    found = claude_file(type="http", **entry)
    assert found.hooks == ()
    assert f"hooks.PreToolUse[0].hooks[0] is left out: {message}" in found.notes[0]


@pytest.mark.parametrize(
    "url", ["http://10.1.2.3:8080/h", "http://192.168.0.7/", "http://172.16.0.1/", "http://[fd00::1]/"]
)
def test_plain_http_to_a_private_address_is_as_the_file_says(url: str) -> None:
    found = claude_file(type="http", url=url)
    assert ([hook.url for hook in found.hooks], found.notes) == ([url], ())


@pytest.mark.parametrize("host", ["example.com", "8.8.8.8", "localhost.evil.com", "10.0.0.1.evil.com"])
def test_plain_http_to_other_hosts_gets_a_note(host: str) -> None:
    found = claude_file(type="http", url=f"http://{host}/")
    assert len(found.hooks) == 1
    assert found.notes[0].endswith(f"hooks[0]: the document goes to {host} unencrypted: write https://")


def test_a_variable_that_is_not_allowed_is_empty_with_a_note() -> None:
    headers = {"A": "Bearer $T-${U}", "B": "$U$U", "C": "$"}
    found = claude_file(type="http", url="https://a/", headers=headers, allowedEnvVars=["U"])
    assert found.hooks[0].headers == (("A", "Bearer -${U}"), ("B", "$U$U"), ("C", "$"))
    assert found.hooks[0].allowed_env_vars == ("U",)
    (note,) = found.notes
    assert note.endswith("hooks[0]: the header A uses $T, which is not in allowedEnvVars, so it is empty")


@pytest.mark.parametrize("name", DIALECTS)
def test_only_dialects_with_a_constant_environment_can_be_warm(name: str) -> None:
    dialect, command = DIALECTS[name], claude(type="command", command="x")
    http = claude(type="http", url="https://a/")
    options = {"warm": True, "warm_spares": 2}
    if not dialect.constant_environment:
        with pytest.raises(ConfigError, match=r"use\[0\]\.warm: is not possible"):
            make_warm(dialect, (command,), "/f: use[0]", options)
    else:
        hooks = make_warm(dialect, (command, http), "/f: use[0]", options)
        assert [(hook.type, hook.warm_spares) for hook in hooks] == [("warm", 2), ("http", 1)]
    assert make_warm(dialect, (command,), "/f: use[0]", {"warm": False}) == (command,)
    with pytest.raises(ConfigError, match="is only for warm hooks"):
        make_warm(dialect, (command,), "/f: use[0]", {"warm_spares": 2})


@pytest.mark.parametrize("name", [name for name in DIALECTS if DIALECTS[name].constant_environment])
def test_a_constant_environment_is_the_same_at_each_event(name: str) -> None:
    dialect, session = DIALECTS[name], Session("s", "files", "/", "/")
    for spelled, event in dialect.events.items():
        spec = HookSpec(name, "f: k", event, "x", event_name=spelled)
        first = EventContext(event, session, "a", "a", "1", b"{}", outcome=Outcome(), at=1.0)
        other = EventContext(event, session, "b", "b", "2", b'{"x":1}', outcome=Outcome(error="x"), message="m", at=2.0)
        assert dialect.write_input(spec, first).env == dialect.write_input(spec, other).env
