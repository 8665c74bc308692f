"""Servers are started with what the configuration meant when it was read, and never with less than their sandbox."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from hookproxy.config.gateway import GatewayConfig, load_gateway
from hookproxy.gateway import server_process
from hookproxy.gateway.metrics import Metrics
from hookproxy.model.errors import UserError
from hookproxy.processes import process, service


def config(folder: Path, text: str) -> GatewayConfig:
    (folder / "gateway.toml").write_text(text)
    return load_gateway("gateway.toml", {"XDG_STATE_HOME": str(folder / "state")}, str(folder))


def start(config: GatewayConfig, name: str, account: service.Account | None = None) -> None:
    """Start it, and wait for its end."""
    try:
        server_process.check(config)
    except UserError as problem:
        pytest.skip(problem.message)
    started = server_process.start(config.servers[name], "", account or service.own_account(), {}, 2)
    process.reap_killed(started.server.pid)
    process.close_all((started.server.to_server, started.server.from_server))
    started.ended()


@pytest.mark.slow
def test_a_working_folder_that_another_server_has_made_a_link_is_not_followed(tmp_path: Path) -> None:
    (work := tmp_path / "projects" / "work").mkdir(parents=True)
    (tmp_path / "ssh").mkdir()
    servers = '[servers.{0}]\ncommand = ["/bin/true"]\n'
    loaded = config(
        tmp_path,
        f"{servers.format('a')}sandbox.write = ['projects']\n{servers.format('b')}cwd = 'projects/work'\n",
    )
    start(loaded, "b")
    work.rmdir()
    work.symlink_to(tmp_path / "ssh")
    with pytest.raises(UserError, match="leads through a link"):
        start(loaded, "b")


def test_what_holds_servers_to_their_limits_is_in_the_metrics(tmp_path: Path) -> None:
    off = config(tmp_path, '[servers.s]\ncommand = ["/bin/true"]\nsandbox = "off"\n')
    assert server_process.limits_kind(off) == ""
    metrics = Metrics()
    metrics.sandbox_limits = "rlimits"
    assert 'hookproxy_sandbox_limits{kind="rlimits"} 1' in metrics.text(Counter(), "", draining=False)
    assert os.path.isabs(off.servers["s"].real_cwd)


@pytest.mark.slow
def test_temporary_files_of_another_account_are_its_own_under_landlock(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:  # tmp_path is for one account
        account = service.account_named("nobody")
        os.chmod(name, 0o755)
        (work := Path(name, "work")).mkdir()
        os.chown(work, account.uid, account.gid)
        script = 'f=$(mktemp) && echo kept >"$f" && cp "$f" done; ls -ldn "$TMPDIR" >>done'
        text = f"[gateway]\nsandbox = 'landlock'\n[servers.s]\ncommand = ['/bin/sh', '-c', '''{script}''']\n"
        loaded = config(tmp_path, f"{text}user = 'nobody'\ncwd = '{work}'\n")
        start(loaded, "s", account)
        kept, listed = (work / "done").read_text().splitlines()
        assert kept == "kept"
        assert listed.split()[0].startswith("drwx------")
        assert listed.split()[2] == str(account.uid)


def test_what_looks_like_a_secret_in_a_command_is_not_in_the_error(tmp_path: Path) -> None:
    loaded = config(tmp_path, '[servers.s]\ncommand = ["/no/API_KEY=hunter2hunter2"]\nsandbox = "off"\n')
    with pytest.raises(UserError, match=r"command not found: /no/API_KEY=\[masked: \w+\]") as error:
        server_process.start(loaded.servers["s"], "", service.own_account(), {}, 2)
    assert "hunter2" not in str(error.value)
