"""What end-to-end tests share: a scene with agents, servers and hooks, of which nothing is left afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.preloaded_servers import preloading

if TYPE_CHECKING:
    from tests.end.agent import Scene


@pytest.fixture
async def scene(tmp_path: Path, home: Path) -> AsyncIterator[Scene]:
    from tests.end.agent import Scene  # not before `pytest --portable` has chosen the program

    scene = Scene(tmp_path, home)
    yield scene
    await scene.close()


@pytest.fixture(scope="session")
def preloaded_servers() -> Iterator[None]:
    """Servers of `preloaded` start at once."""
    with preloading():
        yield
