"""Reads what a hook printed into its verdict, and says where that does not count as one.

The dialect reads the output as its system does. Beyond that, only a denial counts of a hook that did not get or give
all that counts; and where its failures refuse calls, a run before a call that is not a clean verdict is a failure.
Where they withhold results, so is a run after a call whose output may be a verdict that cannot be read.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ..dialects.dialect import Effect, Group
from ..model.hooks import Event, HookResult, HookSpec, Permission, Verdict
from ..model.settings import OnFailure, Settings
from ..policy import decide

_AFTER_CALL: Final = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
_EDITS: Final = {
    Event.PRE_TOOL_USE: (Effect.REWRITES,),
    Event.PERMISSION_REQUEST: (Effect.REWRITES,),
    Event.POST_TOOL_USE: (Effect.REPLACES, Effect.HIDES),
    Event.POST_TOOL_USE_FAILURE: (Effect.REPLACES, Effect.HIDES),
    Event.ELICITATION: (Effect.ANSWERS_ELICITATION,),
    Event.ELICITATION_RESULT: (Effect.ANSWERS_ELICITATION,),
}
"""How hooks may edit what an event is about. If their output is lost, it must not pass unedited."""
_ALLOWS_NOTHING: Final = "a hook of a pack only narrows: what it allows decides nothing"
_OUTPUT_CUT: Final = "printed more than hookproxy keeps"
_INPUT_CUT: Final = "cannot see all of the call's arguments, which are too long for HOOK_TOOL_INPUT"


def read_verdict(
    group: Group, spec: HookSpec, result: HookResult, settings: Settings, *, input_cut: bool = False
) -> Verdict:
    """The verdict of a run. `input_cut`: the hook did not get all of the arguments in its variable."""
    verdict = group.dialect.read_output(spec, result)
    if not group.dialect.only_verdicts:
        verdict = _if_clean(group, spec, result, settings, verdict)
    if spec.only_narrows:
        verdict = _without_allowing(spec, verdict)
    if not (result.cut or input_cut) or spec.background:
        return verdict
    layer = settings.managed if group.managed and settings.managed else settings
    failure = ""
    if input_cut and spec.event in decide.BEFORE_CALL and layer.on_cut_input is OnFailure.DENY:
        failure = _INPUT_CUT
    elif result.cut and any(map(group.dialect.has_effect, _EDITS.get(spec.event, ()))):
        failure = f"{result.detail or _OUTPUT_CUT}, so what it decided is not known"
    denies = verdict.permission is Permission.DENY and spec.event not in _AFTER_CALL
    if not failure or denies or verdict.stop or verdict.hides:
        return verdict
    return Verdict(failure=failure, messages=verdict.messages, unjudged=True)


def _without_allowing(spec: HookSpec, verdict: Verdict) -> Verdict:
    """The verdict of a hook that only narrows: nothing in it answers for a person, opens a default or repeats a call.

    The same object if nothing does. After a call there is nothing to allow.
    """
    allows = verdict.permission is Permission.ALLOW and spec.event not in _AFTER_CALL
    accepts = verdict.action == "accept"
    if not (allows or accepts or verdict.allows or verdict.retry):
        return verdict
    return replace(
        verdict,
        permission=None if allows else verdict.permission,
        # what it answers an approval request with is a part of the answer
        arguments=None if allows and spec.event is Event.PERMISSION_REQUEST else verdict.arguments,
        allows=(),
        retry=False,
        action="" if accepts else verdict.action,
        content=None if accepts else verdict.content,
        messages=(*verdict.messages, _ALLOWS_NOTHING),
    )


def must_be_clean(group: Group, spec: HookSpec, settings: Settings) -> bool:
    """Whether only a clean verdict of this hook lets a call pass: its failures refuse, by the configuration or its own
    field."""
    if spec.background or spec.event not in decide.PRE_EVENTS:
        return False
    rule = decide.failure_rule(spec, settings, group.on_failure)
    by_field = spec.fails_closed and group.dialect.closed_by_field
    return rule is OnFailure.DENY or (rule is OnFailure.DIALECT and by_field)


def _if_readable(group: Group, spec: HookSpec, result: HookResult, settings: Settings, verdict: Verdict) -> Verdict:
    """The verdict on a result; a failure if failures withhold it, and the hook may have printed another one."""
    if not result.stdout or spec.background or verdict.failure or verdict.permission is Permission.DENY:
        return verdict
    rule = decide.failure_rule(spec, settings, group.on_failure)
    if not (rule is OnFailure.DENY or (rule is OnFailure.DIALECT and spec.withholds)):
        return verdict
    from ..dialects.shared import clean_verdict  # as below

    failure = clean_verdict.doubt_about_result(group.dialect, result)
    return Verdict(failure=failure, messages=verdict.messages) if failure else verdict


def _if_clean(group: Group, spec: HookSpec, result: HookResult, settings: Settings, verdict: Verdict) -> Verdict:
    """The verdict; a failure if it must be clean and is not."""
    if spec.event in _AFTER_CALL:
        return _if_readable(group, spec, result, settings, verdict)
    if not (result.stdout or result.stderr or result.code) or not must_be_clean(group, spec, settings):
        return verdict
    if verdict.failure or verdict.permission is Permission.DENY or verdict.stop:
        return verdict
    from ..dialects.shared import clean_verdict  # its patterns take 3 ms, and most hooks print nothing

    failure = clean_verdict.doubt(group.dialect, spec, result, verdict)
    return Verdict(failure=failure, messages=verdict.messages) if failure else verdict
