"""How much waits for hooks before nothing more is read from the agent."""

from hookproxy.protocol.calls import Call
from hookproxy.session.backpressure import Backpressure


def call(size: int) -> Call:
    return Call(b"7", b"7", b"x" * size, "write", b"{}", {}, stateless=False, task=False)


def test_reading_pauses_beyond_the_limit_and_goes_on_below_it() -> None:
    pauses: list[bool] = []
    held = Backpressure(10, pauses.append)
    calls = [call(6), call(4), call(1)]
    for one in calls:
        held.add(one)
    assert pauses == [True]
    held.remove(calls[0])
    assert pauses == [True, False]
    held.remove(calls[0])
    held.remove(calls[1])
    held.remove(call(9))
    assert pauses == [True, False]
    assert held._bytes == 1
