"""What scripts/conformance says about two runs of the suite."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

ERA = "2025-11-25"


@pytest.fixture(scope="module")
def compare() -> ModuleType:
    path = Path(__file__).parents[1] / "scripts/conformance_suite/compare.py"
    spec = importlib.util.spec_from_file_location("conformance_compare", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("direct", "through", "ends"),
    [
        ("SUCCESS", "SUCCESS", []),
        ("FAILURE", "FAILURE", []),
        ("SUCCESS", "FAILURE", [False]),
        ("SUCCESS", "WARNING", [False]),
        ("SUCCESS", None, [False]),
        ("FAILURE", None, [False]),
        (None, "FAILURE", [False]),
        (None, "SUCCESS", [False]),
        ("FAILURE", "SUCCESS", [True]),
    ],
)
def test_whatever_is_not_equal_or_better_is_to_be_mended(
    compare: ModuleType, direct: str | None, through: str | None, ends: list[bool]
) -> None:
    key = ("tools-list", "tools-list")
    runs = [{key: status} if status else {} for status in (direct, through)]
    assert [known for _, known in compare.differences(ERA, *runs)] == ends


def test_a_check_of_what_a_server_may_do_may_be_missing_and_may_not_fail(compare: ModuleType) -> None:
    for key, reason in compare.KNOWN.items():
        ((line, known),) = compare.differences(ERA, {key: "SUCCESS"}, {})
        assert known
        assert reason in line
        ((_, known),) = compare.differences(ERA, {key: "SUCCESS"}, {key: "FAILURE"})
        assert not known


def test_of_a_check_that_is_made_several_times_the_worst_counts(compare: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "server-tools-list-2026-01-31T00-00-00-000Z"
    folder.mkdir()
    found = [("wire", "SUCCESS"), ("wire", "FAILURE"), ("wire", "SUCCESS"), ("sent", "INFO"), ("list", "SUCCESS")]
    (folder / "checks.json").write_text(json.dumps([{"id": id_, "status": status} for id_, status in found]))
    checks = compare.read_checks(tmp_path)
    assert checks == {("tools-list", "wire"): "FAILURE", ("tools-list", "list"): "SUCCESS"}
    assert compare.summary(checks) == "1 scenarios; checks: 1 success, 1 failure"
