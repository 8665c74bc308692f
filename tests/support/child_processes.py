"""The children of this process, for tests that check that none is left."""

from __future__ import annotations

import os
from pathlib import Path


def children() -> dict[str, str]:
    """Command lines of our living and unreaped children by id, without the guardian, which stays as long as we do."""
    found = {}
    for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        if "hookproxy-guardian" not in command:
            found[pid] = command
    return found
