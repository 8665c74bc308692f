"""Cases of several calls in a session show where data may go, and what no case notices of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.policy_tests.test_run import differences, result_of, unnoticed
from tests.support.proxy_rig import DIRECT_LOOP

pytestmark = pytest.mark.anyio

POLICY = """
[flow]
seconds = 60
[[flow.sources]]
tool = "read_file"
path = "**/.ssh/**"
labels = ["secret"]
[[flow.sinks]]
tool = "fetch"
labels = ["secret"]
[[flow.sinks]]
tool = "post"
labels = ["secret"]
action = "deny"
by = "value"
"""
READ = """
[[case]]
[[case.steps]]
call = { tool = "read_file", arguments = { path = "/home/u/.ssh/config" } }
result = "Host bastion-of-the-kings"
expect = { decision = "allow" }
"""


def step(tool: str, decision: str, text: str, more: str = "") -> str:
    return f"""
[[case.steps]]
call = {{ tool = "{tool}", arguments = {{ text = "{text}" }} }}
expect = {{ decision = "{decision}"{more} }}
"""


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


async def test_a_sink_decides_by_what_was_read_before(tmp_path: Path) -> None:
    steps = (
        step("fetch", "ask", "x", ', reason = { contains = "would send what `read_file` read" }')
        + step("post", "allow", "the weather")
        + step("post", "deny", "to bastion-of-the-kings!")
    )
    result = await result_of(tmp_path, POLICY, READ + steps)
    assert not differences(result)
    assert not result.undecided


async def test_labels_end_with_the_time_of_the_case(tmp_path: Path) -> None:
    times = ("12:00:00", "12:00:59", "12:01:00")
    cases = "".join(
        f"{part}time = 2026-11-27T{time}Z\n"
        for part, time in zip((READ, step("fetch", "ask", "x"), step("fetch", "allow", "x")), times, strict=True)
    )
    assert not differences(await result_of(tmp_path, POLICY, cases))


async def test_what_no_case_notices_of_a_sink_is_named(tmp_path: Path) -> None:
    noticed = await result_of(tmp_path, POLICY, READ + step("fetch", "ask", "x"), mutate=True)
    assert unnoticed(noticed) == [
        "the sink flow.sinks[1]: taken out",
        "the sink flow.sinks[1]: weakened: it only comments",
    ]
