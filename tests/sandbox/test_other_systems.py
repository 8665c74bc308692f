"""Where there is neither bubblewrap nor Landlock, as on a Mac, nothing starts that should run in a sandbox."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from hookproxy.model.errors import UserError
from hookproxy.processes import platforms
from hookproxy.processes.watch import watching
from hookproxy.sandbox.available import find_sandbox

PORTABLE: Final = (
    "import sys; from hookproxy.cli.main import main; from hookproxy.processes.platforms import PORTABLE; "
    "sys.exit(main(sys.argv[1:], PORTABLE))"
)


@pytest.mark.parametrize("wanted", ["auto", "bubblewrap", "landlock"])
def test_no_sandbox_is_found_whatever_is_wanted(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platforms, "linux", False)
    with pytest.raises(UserError, match="bubblewrap and Landlock are parts of Linux") as caught:
        find_sandbox(wanted)
    assert caught.value.hint


def test_no_server_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platforms, "linux", False)
    with pytest.raises(UserError, match="on Linux only"), watching():
        raise AssertionError("it watches")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("run", "--sandbox", "--"), "parts of Linux"),
        (("sandbox", "learn", "--"), "on Linux only"),
        (("serve", "--config", "gateway.toml"), "there is no sandbox for the server x"),
    ],
)
def test_each_verb_refuses_before_the_server_starts(words: tuple[str, ...], why: str, tmp_path: Path) -> None:
    started = tmp_path / "started"
    command = ["sh", "-c", f"touch {started}"]
    (tmp_path / "gateway.toml").write_text(f'[servers.x]\ncommand = ["sh", "-c", "touch {started}"]\n')
    given = command if words[-1] == "--" else []
    done = subprocess.run(
        [sys.executable, "-c", PORTABLE, *words, *given],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, why in done.stderr, "hint: " in done.stderr) == (2, True, True)
    assert not started.exists()
