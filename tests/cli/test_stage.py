"""While hooks run, standard output is not theirs, however they write to it; afterwards it is ours again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

NOISY: Final = """
import os, subprocess
from hookproxy.cli.stage import hooks_at_work
print("before")
with hooks_at_work():
    print("printed")
    os.write(1, b"written\\n")
    subprocess.run(["echo", "started"], check=True)
print("after")
"""


def test_what_is_printed_meanwhile_goes_to_standard_error(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", NOISY], capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stdout) == (0, "before\nafter\n")
    assert sorted(ended.stderr.split()) == ["printed", "started", "written"]


def test_a_standard_output_that_is_closed_is_no_obstacle(tmp_path: Path) -> None:
    code = "import sys\nfrom hookproxy.cli.stage import hooks_at_work\nwith hooks_at_work(): pass\nsys.exit(7)"
    ended = subprocess.run(f"exec '{sys.executable}' -c '{code}' >&-", shell=True, capture_output=True, timeout=30)
    assert (ended.returncode, ended.stderr) == (7, b"")
