"""What the tests of verbs share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import saying_server


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def say(project: Path) -> Callable[..., list[str]]:
    """Sets what a server beside the project says of itself, and returns its command."""

    def set_said(name: str = "server", **said: object) -> list[str]:
        file = project.parent / f"{name}.json"
        file.write_text(json.dumps(said), "utf-8")
        return saying_server.command(str(file))

    return set_said
