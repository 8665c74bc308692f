"""How much time the answers to servers may take."""

from __future__ import annotations

import pytest

from hookproxy.sandbox.modes import Pace


def test_all_servers_together_get_a_tenth_of_the_time() -> None:
    pace = Pace()
    assert pace.pause(0.001, now=100.0) == pytest.approx(0.009)
    assert pace.pause(0.001, now=100.0) == pytest.approx(0.018)  # another server, at the same time
    assert pace.pause(0.001, now=100.018) == pytest.approx(0.009)


def test_who_asks_seldom_does_not_save_up_time() -> None:
    pace = Pace()
    pace.pause(0.001, now=100.0)
    assert pace.pause(0.002, now=500.0) == pytest.approx(0.018)
