"""What `try` tells people of a trial: a word for each decision, and a line for each thing that a hook can say."""

from __future__ import annotations

import pytest

from hookproxy.cli.try_ import Told, verdict
from hookproxy.hooks.evaluate import Evaluation
from hookproxy.model.decision import ApprovalRequest, Comments, Proceed, RefusalCause, Refuse
from hookproxy.model.hooks import Ended, Event, HookResult, HookRun, Permission, Verdict
from hookproxy.model.settings import Settings
from hookproxy.trial.observe import Observation
from hookproxy.trial.run import TrialCall, TrialResult
from tests.support.proxy_rig import group, hook

FAILED = HookRun(hook(""), HookResult(Ended.EXITED, 1), Verdict(failure="exited with status 1"))


def told(decision: str, refuse: Refuse | None = None, comments: Comments | None = None) -> Told:
    judged = refuse or Proceed(approval_request=ApprovalRequest("the rule", "") if decision == "asked" else None)
    seen = Observation(evaluation=Evaluation(judged, b"{}"), comments=comments)
    return Told(TrialCall("write"), None, "files", Settings(), (), TrialResult(decision, seen), ())


@pytest.mark.parametrize(
    ("trial", "status", "word"),
    [
        (told("allow"), 0, "allowed"),
        (told("asked-allow"), 0, "allowed"),
        (told(""), 0, "nothing is decided"),
        (told("asked"), 1, "a person would be asked"),
        (told("deny", Refuse("guard", "")), 1, "refused"),
        (told("asked-deny"), 1, "refused"),
        (told("deny", Refuse("guard", "", cause=RefusalCause.RULE)), 1, "refused"),
        (told("deny", Refuse("guard", "", cause=RefusalCause.FAILURE)), 2, "refused, for a hook failed"),
        (told("deny", Refuse("guard", "", cause=RefusalCause.FAILED_CLOSED)), 2, "refused, for a hook failed"),
        (told("allow", comments=Comments(withheld=(FAILED,))), 2, "the result is withheld"),
        (told("allow", comments=Comments(hidden_by="x")), 1, "allowed, but the result is refused"),
        (told("allow", comments=Comments(failed=True)), 1, "allowed, but the result is refused"),
        (told("allow", comments=Comments(noted=(FAILED,), feedback=("x",))), 0, "allowed"),
    ],
)
def test_each_decision_has_its_status_and_its_words(trial: Told, status: int, word: str) -> None:
    assert (trial.status, trial.word) == (status, word)


def test_all_that_a_hook_can_say_has_its_line() -> None:
    said = Verdict(
        permission=Permission.DENY,
        reason="no",
        arguments=b'{"a":1}',
        feedback=("for the model",),
        replacement=b"[]",
        messages=("for the person",),
        stop=True,
        hides=True,
        retry=True,
        allows=("Bash(ls:*)",),
        failure="exited with status 1",
    )
    assert list(verdict(said)) == [
        "trouble: it exited with status 1",
        "deny: no",
        'rewrites the arguments: {"a":1}',
        "rewrites the result: []",
        "wants all other calls that wait for their hooks to be denied, too",
        "hides the result from the model",
        "has the call repeated",
        "tells the model: for the model",
        "tells the person: for the person",
        "allows for the session: Bash(ls:*)",
    ]
    assert list(verdict(Verdict())) == []
    assert list(verdict(Verdict(reason="because"))) == ["reason: because"]


def test_a_hook_is_placed_by_the_file_that_it_stands_in() -> None:
    here, elsewhere = hook("a", Event.PRE_TOOL_USE), hook("b")
    one = Told(TrialCall("write"), None, "files", Settings(), (group(here),), TrialResult("allow", Observation()), ())
    assert one.place(here) == ("hooks.json", "PreToolUse")
    assert one.place(elsewhere) == ("", "hooks.json: PreToolUse")
