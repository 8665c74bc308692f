"""A real gateway signs its audit: what somebody cuts from it is found, by the files, the store, and the next start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hookproxy.audit.checkpoints import read
from tests.support.cluster import wait_until
from tests.support.gateway_process import HOOKPROXY, GatewayProcess
from tests.support.signed_audit import KEY, make_audit_keys
from tests.support.store_process import PROGRAM, StoreProcess

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="NOT TESTED: valkey-server or redis-server is needed"),
]

SERVER = Path(__file__).with_name("tool_server.py")


def config_of(store: StoreProcess) -> str:
    return f"""
log = "json"
[gateway.store]
url = "{store.url}"
[audit]
file = "audit.jsonl"
calls = "all"
required = true
chain = "keyed"
chain_key_file = "$CREDENTIALS_DIRECTORY/audit.key"
sign_key = "$CREDENTIALS_DIRECTORY/audit-sign.key"
checkpoint_lines = 4
checkpoint_seconds = 1
[servers.tools]
command = {json.dumps([sys.executable, "-S", "-E", str(SERVER)])}
"""


class Scene:
    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, StoreProcess(folder)
        self.audit, self.copy = folder / "audit.jsonl", folder / "audit.jsonl.signed"
        make_audit_keys(folder / "keys")
        from hookproxy.signing.keys import PublicKey

        self.public = folder / "audit.pub"
        self.public.write_text(PublicKey(KEY.public_key().public_bytes_raw()).line)
        self.start()

    def start(self) -> None:
        self.gateway = GatewayProcess(
            self.folder, config_of(self.store), env={"CREDENTIALS_DIRECTORY": str(self.folder / "keys")}
        )

    def call(self, count: int) -> None:
        with self.gateway.open(b"hookproxy 1\nserver tools\n\n") as connection, connection.makefile("rwb") as file:
            assert file.readline().startswith(b"ok")
            for number in range(count):
                params = {"name": "echo", "arguments": {"n": number}}
                message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
                file.write(json.dumps(message).encode() + b"\n")
                file.flush()
                assert file.readline()

    def verify(self, *options: str) -> tuple[int, str]:
        keys = ["--key", str(self.folder / "keys" / "audit.key"), "--public-key", str(self.public)]
        done = subprocess.run(
            [HOOKPROXY, "audit", "verify", str(self.audit), *keys, *options],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stdout + done.stderr

    @property
    def checkpoints(self) -> list[int]:
        return [number for number, line in enumerate(self.audit.read_bytes().splitlines()) if read(line) is not None]

    def cut_to_checkpoint(self, which: int) -> None:
        """As somebody does it who may write all files of the gateway, and has no key."""
        lines = self.audit.read_bytes().splitlines(keepends=True)[: self.checkpoints[which] + 1]
        self.audit.write_bytes(b"".join(lines))
        signed = read(lines[-1].rstrip(b"\n"))
        assert signed is not None
        self.copy.write_bytes(signed.text)
        (self.folder / "audit.jsonl.checkpoint").unlink(missing_ok=True)

    def in_store(self) -> bytes:
        keys = self.store.ask("KEYS", "hookproxy:audit:*")
        key = keys.split(b"\r\n")[2].decode() if keys.startswith(b"*1") else ""
        return self.store.ask("GET", key) if key else b""


def test_an_audit_that_was_cut_back_to_a_checkpoint_is_found_by_the_store_and_by_the_next_start(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    store = ["--store", str(tmp_path / "gateway.toml")]
    try:
        scene.call(6)
        wait_until(lambda: len(scene.checkpoints) > 1 and scene.copy.exists(), lambda: scene.gateway.log)
        wait_until(lambda: scene.copy.read_bytes().strip() in scene.in_store(), lambda: scene.gateway.log)
        assert scene.verify(*store)[0] == 0
        scene.gateway.kill()
        status, said = scene.verify(*store)
        assert (status, "lines are missing" in said) == (0, False), said
        scene.cut_to_checkpoint(1)
        assert scene.verify()[0] == 0, "nobody can know by these files alone"
        status, said = scene.verify(*store)
        assert status == 1
        assert "lines are missing: the store names checkpoint" in said
        scene.start()
        scene.gateway.logged("is not in it: it was cut or replaced")
        line = next(json.loads(line) for line in scene.gateway.log.splitlines() if "was cut or replaced" in line)
        assert (line["code"], line["level"]) == ("audit.cut", "error")
        scene.call(2)
        assert scene.gateway.end() == 0
        status, said = scene.verify()
        assert status == 1
        assert "when it was made, the audit had been cut or replaced" in said
        records = [json.loads(line) for line in scene.audit.read_text().splitlines()]
        assert records[-1]["checkpoint"]["closed"]
    finally:
        scene.gateway.kill()
        scene.store.kill()
