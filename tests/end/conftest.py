"""What end-to-end tests share: a scene with agents, servers and hooks, of which nothing is left afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.end.agent import Scene


@pytest.fixture
async def scene(tmp_path: Path, home: Path) -> AsyncIterator[Scene]:
    scene = Scene(tmp_path, home)
    yield scene
    await scene.close()
