"""Policies are planted, and learned back from the audit of their traffic: calls that were held out are decided alike.

Both policies are asked by the code of a session. What the planted one denies, the learned one never allows.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Final

import pytest

from hookproxy.learning.propose import propose
from hookproxy.model.settings import Settings
from tests.support.learning import observed
from tests.support.planted_policies import PLANTED, UNSEEN, Call, Draw, Planted, decide, decide_by
from tests.support.planted_policies import records as lines_of

SEEN: Final = 400
HELD_OUT: Final = 200


def learned(planted: Planted, seed: int) -> tuple[Counter[tuple[str, str]], str]:
    """How often both policies decided what about calls that were held out, and the rules that were learned."""
    rng = random.Random(f"{planted.name} {seed}")
    decided = decide(planted.settings)
    proposal = propose(observed([*lines_of(planted.calls(rng, SEEN), decided, rng, decide_by(planted.settings))]))
    again = decide(proposal.settings)
    pairs = Counter((decided(call), again(call)) for call in planted.calls(rng, HELD_OUT))
    return pairs, "\n".join(f"{rule.permission} {rule.rule}" for rule in proposal.rules)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
@pytest.mark.slow
def test_calls_that_were_held_out_are_decided_alike_and_no_denial_is_allowed(planted: Planted) -> None:
    pairs, rules = learned(planted, 1)
    assert pairs["deny", "allow"] == 0, rules
    assert pairs["ask", "allow"] == 0, rules
    alike = sum(number for (before, after), number in pairs.items() if before == after)
    assert alike >= 0.95 * HELD_OUT, f"{alike} of {HELD_OUT}\n{pairs}\n{rules}"


@pytest.mark.parametrize(("by", "denies", "draws"), UNSEEN, ids=[by for by, _, _ in UNSEEN])
def test_what_is_denied_by_something_else_than_its_place_is_never_allowed(
    by: str, denies: Callable[[Call], bool], draws: tuple[tuple[int, Draw], ...]
) -> None:
    rng = random.Random(by)
    planted = Planted(by, Settings(), draws)
    lines = lines_of(planted.calls(rng, SEEN), lambda call: "deny" if denies(call) else "allow", rng)
    again = decide(propose(observed([*lines])).settings)
    held_out = [call for call in planted.calls(rng, 2 * HELD_OUT) if denies(call)]
    assert held_out
    assert [call for call in held_out if again(call) == "allow"] == []
