"""What no table of gateway.toml opens to a server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hookproxy.config.gateway import GatewayConfig, load_gateway
from hookproxy.config.server_sandbox import binds_cwd
from hookproxy.model.errors import ConfigError


def load(folder: Path, text: str) -> GatewayConfig:
    (folder / "gateway.toml").write_text(text)
    environ = {"XDG_STATE_HOME": f"{folder}/state", "CREDENTIALS_DIRECTORY": f"{folder}/credentials"}
    return load_gateway("gateway.toml", environ, str(folder))


def server(sandbox: str, more: str = "") -> str:
    return f'[servers.s]\ncommand = ["/bin/cat"]\n{more}\n[servers.s.sandbox]\n{sandbox}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("state/hookproxy", "credentials", "work", "hooks"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "to-state").symlink_to("state/hookproxy")
    (tmp_path / "hooks" / "guard").write_text("#!/bin/sh\n")
    (tmp_path / "hooks" / "guard").chmod(0o755)
    (tmp_path / "token").write_text("secret")
    (tmp_path / "token").chmod(0o600)
    return tmp_path


@pytest.mark.parametrize("key", ["read", "write"])
@pytest.mark.parametrize(
    ("path", "what"),
    [
        (".", "contains the gateway's"),
        ("/", "contains the "),
        ("state", "contains the sockets of the gateway's consoles"),
        ("to-state", "the gateway's consoles"),
        ("state/hookproxy/audit.jsonl", "lies in the gateway's state"),
        ("work/../gateway.toml", "is the gateway's configuration"),
        ("credentials", "is the gateway's credentials"),
        ("/proc/1", "shows other processes"),
        ("/sys", "shows other processes"),
        ("/dev", "shows other processes"),
        ("/etc/hookproxy", "the administrator's configuration"),
    ],
)
def test_no_folder_opens_what_is_the_gateways(folder: Path, key: str, path: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what) as problem:
        load(folder, server(f'{key} = ["{path}"]'))
    assert f"servers.s.sandbox.{key}" in str(problem.value)


@pytest.mark.parametrize("path", ["/usr/local", "/etc", "/bin", "hooks", "hooks/guard"])
def test_what_decides_how_things_run_is_not_written(folder: Path, path: str) -> None:
    hook = f'[[hooks.PreToolUse]]\ncommand = "{folder}/hooks/guard"\n'
    with pytest.raises(ConfigError):
        load(folder, hook + server(f'write = ["{path}"]'))


def test_hooks_may_be_read(folder: Path) -> None:
    hook = f'[[hooks.PreToolUse]]\ncommand = "{folder}/hooks/guard"\n'
    loaded = load(folder, hook + server('read = ["hooks"]'))
    sandbox = loaded.servers["s"].sandbox
    assert sandbox is not None
    assert sandbox.read == (f"{folder}/hooks",)


@pytest.mark.parametrize("name", ["HOOKPROXY_X", "LISTEN_FDS", "NOTIFY_SOCKET", "CREDENTIALS_DIRECTORY", "A=B"])
def test_variables_of_the_gateway_itself_reach_no_server(folder: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="the gateway's own, or no name"):
        load(folder, server(f'env = ["{name}"]'))


def test_secrets_of_other_servers_are_protected(folder: Path) -> None:
    more = 'credentials = { T = "file:token" }'
    with pytest.raises(ConfigError, match="the credential T of s"):
        load(folder, server("", more) + '[servers.t]\ncommand = ["/bin/cat"]\nsandbox.read = ["token"]\n')


def test_a_working_folder_that_every_sandbox_has_is_not_shown(folder: Path) -> None:
    for cwd, shown in (("/", False), ("/tmp", False), ("/usr/share", False), ("work", True)):
        assert binds_cwd(load(folder, server("", f'cwd = "{cwd}"')).servers["s"]) is shown
    assert not binds_cwd(load(folder, server("")).servers["s"])


def test_links_are_followed_when_the_file_is_read(folder: Path) -> None:
    (folder / "link").symlink_to("work")
    loaded = load(folder, server('write = ["link"]', 'cwd = "link"'))
    one = loaded.servers["s"]
    assert one.sandbox is not None
    assert one.sandbox.write == (f"{folder}/work",)
    assert (one.cwd, one.real_cwd) == (f"{folder}/link", f"{folder}/work")
    assert f"{folder}/work" in one.surroundings.writable


def test_a_server_without_a_process_has_no_sandbox(folder: Path) -> None:
    with pytest.raises(ConfigError, match="is for a server with a command"):
        load(folder, '[servers.s]\nurl = "https://mcp.example/"\nsandbox.network = "none"\n')


def test_off_is_a_word_of_its_own(folder: Path) -> None:
    assert load(folder, '[servers.s]\ncommand = ["/bin/cat"]\nsandbox = "off"\n').servers["s"].sandbox is None
    with pytest.raises(ConfigError):
        load(folder, '[servers.s]\ncommand = ["/bin/cat"]\nsandbox = false\n')
    assert os.path.isfile(folder / "gateway.toml")
