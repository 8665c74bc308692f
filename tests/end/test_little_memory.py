"""A process with little memory: a line that it cannot read is refused, and the session goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end.agent import HOOKPROXY

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs ulimit -v")]

ROOM = 256 * 1024  # KiB of address space: enough for everything but the long line
LONG = 57_000_000  # bytes: below the limit for a line, and six times this do not fit


@pytest.mark.parametrize("hooked", [True, False])
def test_a_line_for_which_there_is_not_enough_memory_is_refused(tmp_path: Path, *, hooked: bool) -> None:
    config = tmp_path / "hookproxy.toml"
    config.write_text('[permissions]\ndeny = ["danger"]\n' if hooked else "[audit]\nenabled = false\n")
    command = f'ulimit -v {ROOM}; exec "$@"'
    run = [HOOKPROXY, "run", "--config", str(config), "--", "cat"]
    long = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"danger","arguments":{"x":"%b"}}}\n'
    ping = b'{"jsonrpc":"2.0","id":3,"method":"ping"}\n'
    ended = subprocess.run(
        ["sh", "-c", command, "sh", *run],
        input=long % (b"x" * LONG) + ping,
        capture_output=True,
        cwd=tmp_path,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines(keepends=True)
    assert ping in lines  # as `cat` repeats it
    if hooked:
        (refused,) = (json.loads(line) for line in lines if line != ping)
        assert refused["id"] == 2
        assert "not enough memory" in refused["error"]["message"]
    else:
        assert sum(map(len, lines)) == LONG + len(long % b"") + len(ping)
