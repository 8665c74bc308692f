"""What `try` tells programs: values as they were spelled, and null for what is not there."""

from __future__ import annotations

import json

from hookproxy.cli.try_ import Told, for_programs
from hookproxy.hooks.evaluate import Evaluation
from hookproxy.model.decision import Proceed
from hookproxy.model.hooks import Ended, HookResult, HookRun, Verdict
from hookproxy.model.settings import Settings
from hookproxy.trial.observe import Observation, ObservedRun
from hookproxy.trial.run import TrialCall, TrialResult
from tests.rig import hook


def test_numbers_and_bytes_stay_as_they_were() -> None:
    result = HookResult(Ended.EXITED, 0, b"\xff\x1b", b"", 1.23456)
    run = ObservedRun(hook("x"), b"{}", {"A": "\udcff"}, ("B",), result, HookRun(hook("x"), result, Verdict()))
    seen = Observation(runs=[run], evaluation=Evaluation(Proceed(b'{"a":1.50}'), b"{}"))
    attempt = TrialCall("write", b'{"big":123456789012345678901234567890.0}')
    text = for_programs(
        Told(
            attempt,
            None,
            "files",
            Settings(),
            (),
            TrialResult("asked", seen, question="Allow?", proposed=b'{"a":1.50}'),
            (),
        )
    )
    assert text.isascii()
    assert '"big": 123456789012345678901234567890.0' in text
    assert '"a": 1.50' in text
    read = json.loads(text)
    (shown,) = read["hooks"]
    assert (shown["stdout"], shown["variables"], shown["ms"]) == ("\\xff\x1b", {"A": "\\udcff"}, 1.235)
    assert (read["result"], read["question"], read["decision"]) == ({"before": None, "after": None}, "Allow?", "asked")


def test_a_run_that_was_ended_before_it_answered_has_what_it_got() -> None:
    seen = Observation(runs=[ObservedRun(hook("x"), b"{}", {}, ())])
    read = json.loads(
        for_programs(Told(TrialCall("write"), None, "files", Settings(), (), TrialResult("allow", seen), ()))
    )
    assert (read["hooks"][0]["stdin"], read["hooks"][0]["ended"], read["hooks"][0]["verdict"]) == ("{}", None, None)
