"""The files for a service of the system, and the example of a gateway's configuration."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from hookproxy.config.gateway import load_gateway
from hookproxy.model.principal import Principal
from tests.support.signed_audit import make_audit_keys

ROOT: Final = Path(__file__).resolve().parents[2]
UNITS: Final = ("hookproxy.service", "hookproxy.socket", "hookproxy-policy.service", "hookproxy-policy.timer")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for unit in UNITS:
        text = (ROOT / "deploy" / unit).read_text()
        (tmp_path / unit).write_text(text.replace("/usr/local/bin/hookproxy", "/bin/true"))  # it must be there
    done = subprocess.run(
        ["systemd-analyze", "verify", *(str(tmp_path / unit) for unit in UNITS)],
        capture_output=True,
        text=True,
        check=False,
    )
    about_ours = [line for line in done.stderr.splitlines() if "hookproxy" in line and "man " not in line]
    assert about_ours == []


def test_systemd_waits_until_the_gateway_listens() -> None:
    assert "Type=notify\n" in (ROOT / "deploy" / "hookproxy.service").read_text()


def _of_the_service(key: str) -> str:
    lines = (ROOT / "deploy" / "hookproxy.service").read_text().splitlines()
    [value] = [line.partition("=")[2] for line in lines if line.startswith(f"{key}=")]
    return value


def test_a_reload_of_the_service_fails_if_the_file_is_refused() -> None:
    assert _of_the_service("ExecReload") == "/usr/local/bin/hookproxy reload"  # a signal says nothing


def test_a_gateway_that_crashes_again_and_again_is_always_started_again() -> None:
    starts, seconds = 5, 10  # StartLimitBurst= and StartLimitIntervalSec= of systemd.unit(5)
    assert int(_of_the_service("RestartSec")) * starts > seconds


def test_servers_that_take_all_memory_or_processes_end_neither_the_machine_nor_the_gateway() -> None:
    assert _of_the_service("MemoryMax") == "80%"
    assert int(_of_the_service("TasksMax")) > 32 * 100
    assert _of_the_service("OOMPolicy") == "continue", "the others go on"


def test_the_service_gets_the_keys_that_the_example_names() -> None:
    lines = (ROOT / "deploy" / "hookproxy.service").read_text().splitlines()
    loaded = [line.partition("=")[2] for line in lines if line.startswith("LoadCredential=")]
    assert loaded == [f"{name}:/etc/hookproxy/{name}" for name in ("audit.key", "audit-sign.key")]
    example = (ROOT / "deploy" / "example" / "gateway.toml").read_text()
    assert all(f'"$CREDENTIALS_DIRECTORY/{name.partition(":")[0]}"' in example for name in loaded)


def test_the_example_of_a_gateway_is_valid(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "deploy" / "example", tmp_path / "gateway")
    (tmp_path / "gateway").chmod(0o755)
    for file in (tmp_path / "gateway").iterdir():
        file.chmod(0o755)
    credentials = tmp_path / "credentials"
    make_audit_keys(credentials)
    environ = {"HOME": str(tmp_path), "CREDENTIALS_DIRECTORY": str(credentials)}
    config = load_gateway(str(tmp_path / "gateway" / "gateway.toml"), environ, "/")
    for server in config.servers.values():
        settings = server.loaded.settings
        assert settings.audit_required
        assert settings.audit_chain_key_file == str(credentials / "audit.key")
        assert settings.audit_sign_key == str(credentials / "audit-sign.key")
        assert settings.audit_begun
    assert set(config.servers) == {"time", "tickets", "files"}
    trainee = Principal("uid:1", "tom", ("developers", "trainees"))
    assert config.servers["tickets"].allows(trainee)
    assert not config.servers["tickets"].allows(Principal("uid:2", "eve", ("trainees",)))
    assert "create_*" in config.servers["tickets"].settings_for(trainee).deny
    assert "create_*" not in config.servers["time"].settings_for(trainee).deny
    assert all("delete_*" in one.loaded.settings.deny for one in config.servers.values())
