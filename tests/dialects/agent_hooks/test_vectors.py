"""The vectors of AGENT-HOOKS-0.1 against hookproxy as their host, in a run of its own for each."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

SUITE = Path(__file__).parents[3] / "scripts/standards_suite"


@pytest.fixture(scope="module")
def suite() -> Any:  # noqa: ANN401 - a module that is no part of a package
    """scripts/standards_suite/agent_hooks_vectors.py."""
    path, sys.path = sys.path, [str(SUITE), *sys.path]
    try:
        return import_module("agent_hooks_vectors")
    finally:
        sys.path = path


def test_each_vector_is_played_or_listed_with_its_reason(suite: Any) -> None:  # noqa: ANN401
    known = suite.vectors()
    assert len(known) >= 75
    assert suite.OUT_OF_REACH.keys() <= known.keys()
    page = suite.PAGE.read_text("utf-8")
    played = [name for name in known if name not in suite.OUT_OF_REACH]
    assert f"{len(played)} of {len(known)} vectors pass" in page
    assert all(f"| {reason} |" in page for reason in suite.OUT_OF_REACH.values())


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_each_vector_in_reach_passes(suite: Any) -> None:  # noqa: ANN401
    results = {name: suite.play(vector) for name, vector in suite.vectors().items() if name not in suite.OUT_OF_REACH}
    assert {name: result.failures for name, result in results.items() if result.status != "pass"} == {}
