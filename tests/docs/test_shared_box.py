"""The complete managed.toml of docs/shared-box.md, for a user without rights, in an /etc of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import ROOT, blocks
from tests.support.managed_folder import ROOT_ONLY, in_private_etc, python_for_user, root_only_folder, write

pytestmark = [ROOT_ONLY, pytest.mark.slow]

FILES: Final = {
    block.name: block.text for block in blocks((ROOT / "docs" / "shared-box.md").read_text("utf-8")) if block.name
}
WEAKER: Final = 'on_ask = "allow"\non_failure = "allow"\n[permissions]\nallow = ["*"]\n[audit]\nenabled = false\n'
OTHER: Final = '[permissions]\nallow = ["*"]\n[[limits]]\ntool = "*"\ncalls = 100000\nper = "second"\n'


@pytest.fixture
def log(nobody: int) -> Iterator[Path]:
    """The audit's folder, as the page makes it: the users' group may write there."""
    folder = root_only_folder()
    os.chown(folder, 0, nobody)
    folder.chmod(0o2770)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def box(private_etc: Path, log: Path) -> Path:
    managed = FILES["managed.toml"]
    assert "/var/log/hookproxy/" in managed
    write(private_etc / "hookproxy" / "managed.toml", managed.replace("/var/log/hookproxy", str(log)))
    write(private_etc / "hookproxy" / "office-hours.sh", FILES["office-hours.sh"], 0o755)
    return private_etc


def test_everybody_has_the_policy_and_nobody_can_weaken_it(box: Path, log: Path, nobody: int) -> None:
    home = root_only_folder()
    os.chown(home, nobody, nobody)
    own = write(home / "own.toml", WEAKER)
    server = write(home / "server.py", Path(__file__).with_name("tiny_server.py").read_text("utf-8"))
    calls = [
        ("execute_command", {"command": "ls"}),
        ("execute_command", {"command": "sudo ls"}),
        ("read_file", {"path": "/home/ann/.ssh/id_rsa"}),
        ("send_mail", {"to": "ann"}),
        ("deploy", {"password": "a secret"}),
    ]
    lines = [
        json.dumps(
            {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": given}}
        )
        for number, (tool, given) in enumerate(calls)
    ]

    def hookproxy(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        command = in_private_etc(box, sys.executable, "-m", "hookproxy", *arguments, user=nobody)
        env = {"PATH": os.environ["PATH"], "HOME": str(home)}
        return subprocess.run(
            command, cwd="/", env=env, input=text, capture_output=True, encoding="utf-8", timeout=60, check=False
        )

    run = ("run", "--config", str(own), "--", python_for_user(nobody), str(server))
    try:
        untrusted = hookproxy(*run)
        hookproxy("trust", str(own))
        weaker = hookproxy(*run)
        own.write_text(OTHER)
        trusted = hookproxy("trust", str(own))
        ended = hookproxy(*run, text="".join(line + "\n" for line in lines))
    finally:
        shutil.rmtree(home)
    assert (weaker.returncode, "takes precedence" in weaker.stderr) == (2, True)
    assert (untrusted.returncode, trusted.returncode, ended.returncode) == (2, 0, 0), (trusted.stderr, ended.stderr)
    assert "is not trusted yet" in untrusted.stderr
    results = {one["id"]: one["result"] for one in map(json.loads, ended.stdout.splitlines())}
    closed = datetime.now().astimezone().isoweekday() > 5
    assert [bool(results[number].get("isError")) for number in range(5)] == [False, True, True, True, closed], ended
    (audit,) = log.glob("*.jsonl")
    records = [json.loads(line) for line in audit.read_text("utf-8").splitlines()]
    assert {record["tool"] for record in records} == {tool for tool, _ in calls}
    assert "a secret" not in audit.read_text("utf-8")
    assert audit.stat().st_mode & 0o077 == 0
