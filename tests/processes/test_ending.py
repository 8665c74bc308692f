"""A server that does not exit by itself is sent SIGTERM, and then SIGKILL."""

from __future__ import annotations

import signal

import pytest

from hookproxy.processes.ending import EXIT_SECONDS, TERM_SECONDS, end_server

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("exits_after", "sent", "waited"),
    [
        (0.0, [], [EXIT_SECONDS]),
        (EXIT_SECONDS, [], [EXIT_SECONDS]),
        (EXIT_SECONDS + 0.1, [signal.SIGTERM], [EXIT_SECONDS, TERM_SECONDS]),
        (EXIT_SECONDS + TERM_SECONDS + 0.1, [signal.SIGTERM, signal.SIGKILL], [EXIT_SECONDS, TERM_SECONDS]),
    ],
)
async def test_it_has_time_to_exit_before_each_signal(
    exits_after: float, sent: list[signal.Signals], waited: list[float]
) -> None:
    signals: list[int] = []
    waits: list[float] = []

    async def exits_within(seconds: float) -> bool:
        waits.append(seconds)
        return exits_after <= sum(waits)

    await end_server(exits_within, signals.append)
    assert (signals, waits) == (sent, waited)
