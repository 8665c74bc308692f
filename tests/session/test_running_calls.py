"""How many bytes may wait for hooks before reading from the agent pauses."""

from hookproxy.protocol.calls import Call
from hookproxy.session.running_calls import Backpressure


def call(size: int) -> Call:
    return Call(b"7", b"7", b"x" * size, "write", b"{}", {}, stateless=False, task=False)


def test_reading_pauses_beyond_the_limit_and_resumes_below_it() -> None:
    pauses: list[bool] = []
    waiting = Backpressure(10, pauses.append)
    calls = [call(6), call(4), call(1)]
    for one in calls:
        waiting.add_call(one)
    assert pauses == [True]
    waiting.remove_call(calls[0])
    assert pauses == [True, False]
    waiting.remove_call(calls[0])
    waiting.remove_call(calls[1])
    waiting.remove_call(call(9))
    assert pauses == [True, False]
    assert waiting._bytes == 1
