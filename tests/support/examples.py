"""How many examples a property test tries that needs more or fewer than most."""

from __future__ import annotations

from hypothesis import settings

_USUAL = 30  # of the profile "steady" in tests/conftest.py


def examples(count: int, steps: int = 50) -> settings:
    """So many, of so many steps each; with another profile, as `./scripts/test --fast` has, in the same proportion."""
    most = max(count * settings().max_examples // _USUAL, 1)
    return settings(max_examples=most, stateful_step_count=steps, deadline=None)
