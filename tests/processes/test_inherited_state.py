"""What whoever starts us has set does not reach hooks of the administrator."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SHOW = (
    "from hookproxy.processes import inherited_state; import os, subprocess; inherited_state.reset();"
    "script = 'umask; ulimit -f; ulimit -t; ls /proc/self/fd; grep -E \"Sig(Blk|Ign)\" /proc/self/status';"
    "subprocess.run(['sh', '-c', script], close_fds=False)"
)

# Python does not notice that a limit cuts off the modules that it compiles
ENV = {**os.environ, "SHOW": SHOW, "PYTHONDONTWRITEBYTECODE": "1"}


def test_limits_umask_signals_and_descriptors_are_known_afterwards() -> None:
    setting = "trap '' HUP USR1 ALRM CHLD; umask 077; ulimit -S -f 1; ulimit -S -t 5; exec 7</dev/null"
    command = f"{setting}; exec '{sys.executable}' -c \"$SHOW\""
    shown = subprocess.run(["sh", "-c", command], env=ENV, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    assert shown[0] == "0022"
    assert shown[1:3] == ["unlimited", "unlimited"]
    assert "7" not in shown
    assert [line.split()[1].strip("0") for line in shown if line.startswith("Sig")] == ["", ""]


def test_a_hard_limit_stays() -> None:
    command = f"ulimit -f 100000; exec '{sys.executable}' -c \"$SHOW\""
    ended = subprocess.run(["sh", "-c", command], env=ENV, capture_output=True, text=True)
    assert ended.stdout.split("\n")[1] == "100000"
