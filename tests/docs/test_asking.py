"""The dialog of docs/asking.md: it shows the whole call, and only "Allow" lets it pass.

`zenity` is a stand-in that keeps what it would show, and ends as the real one does for each of its buttons.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import ROOT, blocks

pytestmark = pytest.mark.slow

ZENITY: Final = '#!/bin/sh\nprintf "%s\\n" "$@" >arguments\ncat >shown\nexit "$(cat button)"\n'
ALLOW, DENY, TIMEOUT = 0, 1, 5  # the exit status that zenity documents; closing the window is the same as DENY

ARGUMENTS: Final = {"to": "ann@example.com", "body": "\n".join(["a line"] * 2000) + "\u202eend"}
LINE: Final = json.dumps(
    {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "send_mail", "arguments": ARGUMENTS}}
)


@pytest.fixture
def dialog(tmp_path: Path) -> Path:
    """The page's folder, with a `bin` that has what its script needs."""
    for block in blocks((ROOT / "docs" / "asking.md").read_text("utf-8")):
        if block.name.startswith("dialog/"):
            path = tmp_path / block.name
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.text)
            path.chmod(0o755)
    programs = tmp_path / "bin"
    programs.mkdir()
    zenity = programs / "zenity"
    zenity.write_text(ZENITY)
    zenity.chmod(0o755)
    for name in ("sh", "cat", "jq"):
        (programs / name).symlink_to(str(shutil.which(name)))
    return tmp_path / "dialog"


def reached_the_server(dialog: Path) -> bool:
    command = [sys.executable, "-m", "hookproxy", "run", "--config", "hookproxy.toml", "--name", "mail", "--", "cat"]
    env = os.environ | {"PATH": str(dialog.parent / "bin")}
    ended = subprocess.run(
        command, cwd=dialog, env=env, input=LINE + "\n", capture_output=True, encoding="utf-8", timeout=60
    )
    responses = [json.loads(line) for line in ended.stdout.splitlines()]
    assert not any("result" in one and not one["result"]["isError"] for one in responses), ended
    return any("method" in one for one in responses)  # `cat` gives back what it gets


@pytest.mark.parametrize(("button", "passes"), [(ALLOW, True), (DENY, False), (TIMEOUT, False), (127, False)])
def test_only_allow_lets_the_call_pass(dialog: Path, button: int, passes: bool) -> None:
    (dialog / "button").write_text(str(button))
    assert reached_the_server(dialog) is passes


def test_the_dialog_shows_the_whole_call_and_no_invisible_character(dialog: Path) -> None:
    (dialog / "button").write_text(str(DENY))
    reached_the_server(dialog)
    shown = (dialog / "shown").read_text("utf-8")
    assert json.loads(shown)["arguments"] == ARGUMENTS
    assert shown.isascii()
    assert (dialog / "arguments").read_text().split()[0] == "--text-info"


@pytest.mark.parametrize("missing", ["jq", "zenity"])
def test_without_one_of_its_programs_the_call_is_refused(dialog: Path, missing: str) -> None:
    (dialog / "button").write_text(str(ALLOW))
    (dialog.parent / "bin" / missing).unlink()
    assert not reached_the_server(dialog)
