"""The configuration of the guard is read anew when one of its files has changed, whenever that was."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import anyio
import pytest

from hookproxy.config.digest import digest_of
from hookproxy.guard.current_policy import CurrentPolicy, Read, seen
from hookproxy.model.hooks import Permission
from tests.guard.test_judge import before, configured, permission

pytestmark = pytest.mark.anyio

STRICT: Final = '[permissions]\ndeny = ["Bash(rm *)"]\n'


async def judged(policy: CurrentPolicy) -> Permission | None:
    return permission("claude", await policy.judge(before("claude")))


@pytest.mark.parametrize("at", [1, 2], ids=["at the start", "while a change is read"])
async def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path: Path, at: int) -> None:
    file = tmp_path / "hookproxy.toml"
    reads = 0

    def read() -> Read:
        nonlocal reads
        reads += 1
        text = file.read_text("utf-8") if file.exists() else ""
        known = seen([str(file)])
        loaded = configured(tmp_path, STRICT if STRICT in text else f"on_ask = 'deny' # {reads}")
        if reads == at:
            file.write_text(STRICT, "utf-8")
        elif STRICT not in text:
            known = seen([str(file)])  # `configured` has written it
        return Read(loaded, known, digest_of(loaded))

    async with anyio.create_task_group() as tasks:
        policy = CurrentPolicy(read, tasks, print)
        if at == 2:
            file.write_text("# changed\n", "utf-8")
            await judged(policy)
        assert await judged(policy) is Permission.DENY
        await policy.aclose()
        tasks.cancel_scope.cancel()


async def test_a_change_that_leaves_size_and_time_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "hookproxy.toml"

    def read() -> Read:
        known = seen([str(file)])
        text = file.read_text("utf-8")
        loaded = configured(tmp_path / "of", text)
        return Read(loaded, known, digest_of(loaded))

    (tmp_path / "of").mkdir()
    file.write_text(STRICT.replace("(rm", "(cp"), "utf-8")
    async with anyio.create_task_group() as tasks:
        policy = CurrentPolicy(read, tasks, print)
        assert await judged(policy) is not Permission.DENY
        state = file.stat()
        file.write_text(STRICT, "utf-8")
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
        assert await judged(policy) is Permission.DENY
        await policy.aclose()
        tasks.cancel_scope.cancel()
