"""Policies are planted, and learned back from the audit of their traffic: calls that were held out are decided alike.

Both policies are asked by the code of a session. What the planted one denies, the learned one never allows.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Final

import pytest

from hookproxy.audit import records
from hookproxy.learning.observations import Observations
from hookproxy.learning.propose import propose
from tests.support.planted_policies import PLANTED, Planted, decide
from tests.support.planted_policies import records as lines_of

SEEN: Final = 400
HELD_OUT: Final = 200


def learned(planted: Planted, seed: int) -> tuple[Counter[tuple[str, str]], str]:
    """How often both policies decided what about calls that were held out, and the rules that were learned."""
    rng = random.Random(f"{planted.name} {seed}")
    decided = decide(planted.settings)
    lines = [json.dumps(line).encode() for line in lines_of(planted.calls(rng, SEEN), decided, rng)]
    observations = Observations()
    observations.add_all(records.entry(records.Line(at, line)) for at, line in enumerate(lines, 1))
    proposal = propose(observations)
    again = decide(proposal.settings)
    pairs = Counter((decided(call), again(call)) for call in planted.calls(rng, HELD_OUT))
    return pairs, "\n".join(f"{rule.permission} {rule.rule}" for rule in proposal.rules)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_calls_that_were_held_out_are_decided_alike_and_no_denial_is_allowed(planted: Planted) -> None:
    pairs, rules = learned(planted, 1)
    assert pairs["deny", "allow"] == 0, rules
    assert pairs["ask", "allow"] == 0, rules
    alike = sum(number for (before, after), number in pairs.items() if before == after)
    assert alike >= 0.95 * HELD_OUT, f"{alike} of {HELD_OUT}\n{pairs}\n{rules}"
