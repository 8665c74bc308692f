"""What is said about wrong keys and values: the key, what is wrong, and a repair that works as it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from hookproxy.config.gateway import load_gateway
from hookproxy.config.parse import parse
from hookproxy.model.errors import ConfigError

LIMIT: Final = "[[limits]]\ncalls = 1\n"
HOOK: Final = "[[hooks.PreToolUse]]\ncommand = 'true'\n"

KEYS: Final = (
    ("mode = 'monitor'", "1: mode", "a table has it: [permissions], [[limits]]"),
    ("timeout = 1", "1: timeout", "[[hooks.PreToolUse]] and of"),
    ("version = 1", "1: version", "expected one of: on_failure"),
    ("[general]\non_ask = 'deny'", "1: general", "write them above all lines with brackets, and remove [general]"),
    ("[server]\ncommand = ['x']", "1: server", "only a gateway's file has it"),
    ("[telemetry]\nenabled = true", "1: telemetry", "did you mean 'otel'?"),
    ("[otel]\nurl = 'http://localhost:4318'", "2: otel.url", "did you mean 'endpoint'?"),
    ("[secrets]\nenabled = true", "2: secrets.enabled", "remove this line, or the whole table"),
    (f"{HOOK}enabled = false", "3: hooks.PreToolUse[0].enabled", 'or mode = "monitor"'),
    ("[[limits]]\nmax = 1", "2: limits[0].max", "did you mean 'calls'?"),
    (f"{LIMIT}every = 'day'", "3: limits[0].every", "did you mean 'per'?"),
    (f"{LIMIT}action = 'ask'", "3: limits[0].action", "did you mean 'then'?"),
    ("[permissions]\nblock = ['x']", "2: permissions.block", "did you mean 'deny'?"),
    ("[permissions]\nallowlist = ['x']", "2: permissions.allowlist", "did you mean 'allow'?"),
    ("[model]\nprovider = 'openai'", "2: model.provider", "did you mean 'api'?"),
    ("[model]\nbase_url = 'http://x'", "2: model.base_url", "did you mean 'url'?"),
    ("[model]\napi_key = 'env:K'", "2: model.api_key", "did you mean 'key'?"),
    ("[approvals.console]\nx = 1", "1: approvals.console", 'on_ask = "console"'),
    ("[webhook]\nurl = 'x'", "1: webhook", "write [approvals.webhook]"),
    ("[[PreToolUse]]\ncommand = 'x'", "1: PreToolUse", "write [[hooks.PreToolUse]]"),
    ("[[hooks.BeforeTool]]\ncommand = 'x'", "1: hooks.BeforeTool: unknown event", "did you mean 'PreToolUse'?"),
    ("[[hooks.Stop]]\ncommand = 'x'", "1: hooks.Stop: unknown event", "only the agent itself has it"),
    ("[[interceptors]]\nname = 'x'\ncommand = 'x'", "3: interceptors[0].command", "did you mean 'argv'?"),
    ("[monitor]\nfiles = 'x'", "2: monitor.files", "did you mean 'file'?"),
    ("[monitor]", "1: monitor.file is missing", 'add file = "next.toml"'),
    ("[[interceptors]]\nargv = ['x']", "1: interceptors[0].name is missing", 'add name = "…"'),
    ("[remote]\ntimeout = 1", "2: remote.timeout", "expected one of: connect_seconds"),
)
"""A hookproxy.toml, the line and what is wrong there, and the repair."""

VALUES: Final = (
    ('on_ask_fallback = { command = "./ask" }', "1: on_ask_fallback.command", 'write command = ["./ask"]'),
    ('[audit]\nchain = "true"', "2: audit.chain:", "write chain = true or false"),
    ("aliases = false", "1: aliases", "did you mean 'off'?"),
    ('[audit]\nmax_file_bytes = "20MB"', "2: audit.max_file_bytes", "write max_file_bytes = 20000000"),
    ('max_message_bytes = "64 mib"', "1: max_message_bytes", "write max_message_bytes = 67108864"),
    ('max_message_bytes = "1.5GB"', "1: max_message_bytes", "write max_message_bytes = 1500000000"),
    ('max_message_bytes = "64 sacks"', "1: max_message_bytes", "write max_message_bytes = 67108864"),
    ("[[limits]]\ncalls = 1e3", "2: limits[0].calls", "write calls = 1000"),
    (f"{LIMIT}per = 60", "3: limits[0].per", 'window = "60s" in the place of per'),
    (f"{LIMIT}per = '5m'", "3: limits[0].per", 'window = "5m" in the place of per'),
    (f"{LIMIT}window = 600", "3: limits[0].window", 'write window = "600s"'),
    (f"{LIMIT}window = '1.5h'", "3: limits[0].window", 'write window = "90m"'),
    (f"{LIMIT}window = '1 week'", "3: limits[0].window", 'write window = "7d"'),
    (f"{LIMIT}window = 'soon'", "3: limits[0].window", 'write window = "10m"'),
    (f"{LIMIT}then = 'warn'", "3: limits[0].then", "did you mean 'comment'?"),
    (f"{LIMIT}tool = ['x', 'y']", "3: limits[0].tool", 'write tool = "x", and a table [[limits]] of its own'),
    ("[permissions]\nmode = 'observe'", "2: permissions.mode", "did you mean 'monitor'?"),
    ("[permissions]\ndeny = [['x']]", "2: permissions.deny[0]", 'write deny = ["x"]'),
    ("[[permissions.deny]]\ntool = 'x'", "1: permissions.deny[0]", 'write deny = ["x"]'),
    (
        "[permissions.deny]\nrules = ['x']",
        "1: permissions.deny: should be a list",
        "[permissions], and below it deny =",
    ),
    ("[approvals.desktop]\nenabled = true", "1: approvals.desktop", "write [approvals], and below it desktop = true"),
    ("[secrets]\nvalues = ['env:X']", "2: secrets.values: should be a table", 'write values = { NAME = "…" }'),
    ("[[secrets.detectors]]\nname = 'x'", "1: secrets.detectors", 'write [secrets.detectors], and below it x = "…"'),
    ("[[tools]]\nname = 'x'", "1: tools: should be a table", "write [tools.x], and its keys below that line"),
    (f"{HOOK}env = ['A=b']", "3: hooks.PreToolUse[0].env", 'write env = { A = "b" }'),
    (f"{HOOK}matcher = ['Bash', 'Write']", "3: hooks.PreToolUse[0].matcher", 'write matcher = "Bash|Write"'),
    ("[[hooks.PreToolUse]]\ncommand = ['a', 'b']", "2: hooks.PreToolUse[0].command", 'write argv = ["a", "b"]'),
    ("[otel]\nendpoint = 'localhost:4318'", "2: otel.endpoint", 'write endpoint = "http://localhost:4318"'),
    ("[otel]\nendpoint = 'grpc://c.example:4317'", "2: otel.endpoint", 'write endpoint = "https://c.example:4317"'),
    ("[packs]\nuse = ['No Leaks']", "2: packs.use[0]", 'small letters, digits and -: write "no-leaks"'),
    ("[tools.x]\nrename = 'my tool'", "2: tools.x.rename", 'write "my-tool"'),
    ("[[flow.sources]]\ntool = 'x'\nlabels = ['Top secret']", "3: flow.sources[0].labels[0]", 'write "top-secret"'),
)
"""As `KEYS`."""

OF_GATEWAYS: Final = (
    ("[servers.git.sandbox]\nreads = ['/x']", "4: servers.git.sandbox.reads", "did you mean 'read'?"),
    ("[servers.git.sandbox]\nread = '/x'", "4: servers.git.sandbox.read", 'write read = ["/x"]'),
    ("[servers.git.sandbox]\nnetwork = false", "4: servers.git.sandbox.network", "did you mean 'none'?"),
    ("sandbox = true", "3: servers.git.sandbox", "remove it, or write a table with its keys"),
    ("deny = ['x']", "3: servers.git.deny", "it is a key of [servers.git.permissions]"),
    ("args = ['x']", "3: servers.git.args", "did you mean 'command'?"),
    ("timeout = 3", "3: servers.git.timeout", "expected one of: on_failure"),
    ("[sandbox]\nread = ['x']", "3: sandbox", "write [servers.NAME.sandbox]"),
    ("[tokens]\nfile = 'x'", "3: tokens", "it is a key, and not a table: write tokens = … below [gateway]"),
    ("[groups]\ndev = ['ann']", "3: groups", "hookproxy token new USER --group GROUP"),
    ("[gateway.tls]\ncert = 'x'", "4: gateway.tls.cert", "did you mean 'certificate'?"),
)
"""What stands below a server in gateway.toml, and what is said of it."""


@pytest.mark.parametrize(("text", "message", "hint"), [*KEYS, *VALUES])
def test_a_wrong_key_or_value_is_answered_with_its_repair(text: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse("f", text)
    assert f"f:{message}" in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(("text", "message", "hint"), OF_GATEWAYS)
def test_one_in_a_gateways_file_is_answered_so_too(tmp_path: Path, text: str, message: str, hint: str) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(f"[servers.git]\ncommand = ['cat']\n{text}\n")
    with pytest.raises(ConfigError) as caught:
        load_gateway(str(path), {}, str(tmp_path))
    assert f"gateway.toml:{message}" in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize("key", ["read = '/x'", "network = 'off'", "memory = 1", "reads = []", "env = { A = 'b' }"])
def test_no_repair_takes_a_sandbox_away(tmp_path: Path, key: str) -> None:
    """A table with a mistake is a wish for a sandbox: to write sandbox = "off" would be the opposite."""
    path = tmp_path / "gateway.toml"
    path.write_text(f"[servers.git]\ncommand = ['cat']\n[servers.git.sandbox]\n{key}\n")
    with pytest.raises(ConfigError) as caught:
        load_gateway(str(path), {}, str(tmp_path))
    assert "off" not in caught.value.hint
