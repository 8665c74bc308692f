"""How many examples a property test tries that needs more or fewer than most."""

from __future__ import annotations

from hypothesis import settings

_USUAL = 100  # of the profile "steady" in tests/conftest.py


def examples(count: int) -> settings:
    """So many; with another profile, as `./scripts/test --fast` has, in the same proportion."""
    return settings(max_examples=max(count * settings().max_examples // _USUAL, 1), deadline=None)
