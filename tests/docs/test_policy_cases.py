"""Each of configs/policies passes its own cases, and whatever is changed in its rules is noticed by one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from hookproxy.testing import PolicyTester

POLICIES: Final = Path(__file__).resolve().parents[2] / "configs" / "policies"


@pytest.mark.usefixtures("forgets_hooks")
@pytest.mark.parametrize("name", sorted(folder.name for folder in POLICIES.iterdir()))
def test_a_policy_has_a_case_for_each_of_its_rules(name: str, tmp_path: Path) -> None:
    policy = PolicyTester(str(tmp_path)).policy(POLICIES / name / "hookproxy.toml")
    policy.run_cases(POLICIES / name / "tests.toml", mutate=True)
