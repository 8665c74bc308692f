"""The learned TOML is a configuration of ours: it loads, and a session decides by it what was held out, as planted."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Final

import pytest

from hookproxy.audit import records
from hookproxy.config.load import load
from hookproxy.learning.as_toml import toml_of
from hookproxy.learning.propose import propose
from hookproxy.trial.replay import Difference, Replay, same_for_all
from tests.support.learning import observed
from tests.support.planted_policies import PLANTED, Planted, decide, decide_by
from tests.support.planted_policies import records as lines_of
from tests.support.proxy_rig import DIRECT_LOOP

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SEEN: Final = 400
HELD_OUT: Final = 100


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
async def test_a_session_decides_by_the_learned_file_as_by_the_planted_policy(planted: Planted, tmp_path: Path) -> None:
    rng = random.Random(f"session {planted.name}")
    decided = decide(planted.settings)
    observations = observed([*lines_of(planted.calls(rng, SEEN), decided, rng, decide_by(planted.settings))])
    config = tmp_path / "learned.toml"
    config.write_text(toml_of(propose(observations), observations, ["audit.jsonl"]), "utf-8")
    loaded = load(str(config), [], None, {"HOME": str(tmp_path)}, str(tmp_path))
    held_out = [json.dumps(line).encode() for line in lines_of(planted.calls(rng, HELD_OUT), decided, rng)]
    async with Replay(same_for_all(loaded, {}, str(tmp_path))) as replay:
        entries = (records.entry(records.Line(at, line)) for at, line in enumerate(held_out, 1))
        differences = [found async for found in replay.over(entries) if isinstance(found, Difference)]
    assert replay.tally.replayed == HELD_OUT
    allowed_now = [found.record for found in differences if found.after.decision == "allow"]
    assert allowed_now == []
    assert len(differences) <= 0.05 * HELD_OUT, config.read_text("utf-8")
