"""While hooks run, nothing that they write reaches standard output; afterwards it is our own again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from hookproxy.cli.hook_runtime import run_until_done
from hookproxy.model.errors import UserError

pytestmark = pytest.mark.slow

NOISY: Final = """
import os, subprocess
from hookproxy.cli.hook_runtime import redirected_output
print("before")
with redirected_output():
    print("printed")
    os.write(1, b"written\\n")
    subprocess.run(["echo", "started"], check=True)
print("after")
"""


def test_output_of_hooks_goes_to_standard_error(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", NOISY], capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stdout) == (0, "before\nafter\n")
    assert sorted(ended.stderr.split()) == ["printed", "started", "written"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_that_ends_us_ends_the_hooks(tmp_path: Path, number: signal.Signals) -> None:
    os.mkfifo(tmp_path / "begun")
    (tmp_path / "hookproxy.toml").write_text('[[hooks.PreToolUse]]\ncommand = "echo $$ > begun; exec sleep 60"\n')
    argv = [sys.executable, "-m", "hookproxy", "try", "sh", "--config=hookproxy.toml"]
    with subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        hook = int((tmp_path / "begun").read_text())
        process.send_signal(number)
        printed = process.communicate(timeout=30)
    assert (process.returncode, printed) == (128 + number, (b"", b""))
    with pytest.raises(ProcessLookupError):
        os.kill(hook, 0)


def test_an_error_is_raised_unchanged() -> None:
    async def fail() -> None:
        raise UserError("no", "yes")

    with pytest.raises(UserError, match="no"):
        run_until_done(fail)


def test_a_closed_standard_output_is_not_an_error(tmp_path: Path) -> None:
    imports = "import sys\nfrom hookproxy.cli.hook_runtime import redirected_output"
    code = f"{imports}\nwith redirected_output(): pass\nsys.exit(7)"
    ended = subprocess.run(f"exec '{sys.executable}' -c '{code}' >&-", shell=True, capture_output=True, timeout=30)
    assert (ended.returncode, ended.stderr) == (7, b"")
