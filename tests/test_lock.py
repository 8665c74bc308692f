"""requirements.lock: what CI installs is what pyproject.toml allows, wherever it is fetched from."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "requirements.lock").read_text()


def dependencies() -> Iterator[Requirement]:
    """All that development needs: of the package, of its extras but `keyring`, and of the tools."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = {**project["project"]["optional-dependencies"], "keyring": []}
    for listed in (project["project"]["dependencies"], *extras.values(), *project["dependency-groups"].values()):
        yield from (Requirement(text) for text in listed if isinstance(text, str))


@pytest.mark.parametrize("dependency", [*dependencies()], ids=lambda dependency: dependency.name)
def test_each_dependency_is_locked_at_a_version_that_is_allowed(dependency: Requirement) -> None:
    locked = re.findall(rf"^{re.escape(canonicalize_name(dependency.name))}==(\S+)", LOCK, re.MULTILINE)
    assert locked, "run ./scripts/lock"
    assert all(version in dependency.specifier for version in locked)


def test_every_package_has_hashes_and_no_place_to_fetch_it_from() -> None:
    packages = re.split(r"^(?=\S+==)", re.sub(r"^#.*\n", "", LOCK, flags=re.MULTILINE), flags=re.MULTILINE)[1:]
    assert packages
    for package in packages:
        assert "--hash=sha256:" in package, package
    assert "://" not in LOCK
    assert "--index" not in LOCK
