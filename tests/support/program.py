"""The program that end-to-end tests start: the installed one, or with `--portable` the same on the portable way."""

from __future__ import annotations

import sys
from pathlib import Path

HOOKPROXY = str(Path(sys.executable).with_name("hookproxy"))
"""Its path. `pytest --portable` changes it before any module with tests is imported."""

portable = False
"""Whether that is the portable way."""

_LAUNCHER = """#!{python}
import sys
from hookproxy.cli.main import main
from hookproxy.processes.platforms import PORTABLE
sys.exit(main(platform=PORTABLE))
"""


def portable_program(folder: Path) -> str:
    """Write a program into the folder that runs hookproxy on the portable way. Returns its path."""
    path = folder / "hookproxy"
    path.write_text(_LAUNCHER.format(python=sys.executable))
    path.chmod(0o755)
    return str(path)


def use_portable(folder: Path) -> None:
    """From now on, tests start this program."""
    global HOOKPROXY, portable
    HOOKPROXY, portable = portable_program(folder), True
