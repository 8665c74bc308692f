"""The verdicts of many hooks, as one decision."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hookproxy.model.decision import ApprovalRequest, Comments, Proceed, RefusalCause, Refuse
from hookproxy.model.flow import Chain
from hookproxy.model.hooks import NO_VERDICT, Ended, Event, HookResult, HookRun, HookSpec, Permission, Verdict
from hookproxy.model.settings import ConsoleUse, OnAsk, OnFailure, Settings
from hookproxy.policy.decide import (
    allowed_arguments,
    allows,
    allows_final,
    chosen_meta,
    comments,
    consequence,
    decide,
    declined,
    merge_comments,
    no_verdicts,
    permission_decision,
    settings_for,
    without_person,
)

ALLOW, ASK, DENY = Permission.ALLOW, Permission.ASK, Permission.DENY
PRE = HookSpec(dialect="any", source="hooks.json: 0", event=Event.PRE_TOOL_USE, label="guard.sh")
POST = replace(PRE, event=Event.POST_TOOL_USE)
CLOSED = replace(PRE, fails_closed=True)
CRASH = Verdict(failure="it exited with status 1")


def hook_run(verdict: Verdict, spec: HookSpec = PRE, label: str = "") -> HookRun:
    return HookRun(replace(spec, label=label or spec.label), HookResult(Ended.EXITED), verdict)


def test_a_call_without_verdicts_proceeds_unchanged() -> None:
    assert decide([], Settings(), None) == Proceed()
    assert decide([hook_run(Verdict()), hook_run(Verdict(permission=ALLOW))], Settings(), None) == Proceed()


def test_one_denial_beats_any_number_of_allow_and_ask_verdicts() -> None:
    hook_runs = [
        hook_run(Verdict(permission=ALLOW)),
        hook_run(Verdict(permission=ASK, reason="sure?")),
        hook_run(Verdict(permission=DENY, reason="no rm"), label="rm.sh"),
        hook_run(Verdict(permission=ALLOW)),
    ]
    assert decide(hook_runs, Settings(on_ask=OnAsk.ALLOW), None) == Refuse(by="rm.sh", reason="no rm")


def test_a_refusal_names_the_first_denying_hook_and_all_reasons_in_order() -> None:
    hook_runs = [
        hook_run(Verdict(permission=DENY, reason="one"), label="a"),
        hook_run(Verdict(permission=DENY), label="b"),
        hook_run(Verdict(permission=DENY, reason="two"), label="c"),
    ]
    assert decide(hook_runs, Settings(), None) == Refuse(by="a", reason="one\ntwo")


QUESTION = ApprovalRequest("the PreToolUse hook guard.sh", "sure?")


def test_an_ask_verdict_creates_an_approval_request() -> None:
    hook_runs = [hook_run(Verdict(permission=ALLOW)), hook_run(Verdict(permission=ASK, reason="sure?"))]
    assert decide(hook_runs, Settings(), None) == Proceed(approval_request=QUESTION)


@pytest.mark.parametrize(
    ("settings", "can_ask", "decision"),
    [
        (Settings(), True, Proceed(approval_request=QUESTION)),
        (Settings(), False, Refuse(QUESTION.by, "sure?", asked=True, cause=RefusalCause.ASK_UNAVAILABLE)),
        (Settings(on_ask_fallback=OnFailure.ALLOW), False, Proceed(asked=True)),
        (Settings(on_ask_fallback=OnFailure.ALLOW), True, Proceed(approval_request=QUESTION)),
        (Settings(on_ask=OnAsk.ALLOW), False, Proceed(asked=True)),
        (Settings(on_ask=OnAsk.DENY), True, Refuse(QUESTION.by, "sure?", asked=True, cause=RefusalCause.ASK_DENIED)),
    ],
)
def test_an_approval_request_that_no_hook_answers_is_decided_as_configured(
    settings: Settings, can_ask: bool, decision: Proceed | Refuse
) -> None:
    found = without_person(Proceed(approval_request=QUESTION), settings, can_ask)
    assert (replace(found, remedy="") if isinstance(found, Refuse) else found) == decision
    helps = isinstance(found, Refuse) and found.cause is RefusalCause.ASK_UNAVAILABLE
    assert (isinstance(found, Refuse) and "on_ask_fallback" in found.remedy) is helps
    assert without_person(Proceed(), settings, can_ask) == Proceed()


def test_a_declined_approval_is_a_refusal_with_the_hooks_feedback() -> None:
    refuse = declined(Proceed(b"{}", ("note",), QUESTION), RefusalCause.DECLINED)
    assert refuse == Refuse(QUESTION.by, "sure?", asked=True, cause=RefusalCause.DECLINED, feedback=("note",))


REQUEST = replace(PRE, event=Event.PERMISSION_REQUEST)
YES, NO, NOTHING = (Verdict(permission=ALLOW), Verdict(permission=DENY, reason="no"), Verdict())


@pytest.mark.parametrize(
    ("verdicts", "last_answer_counts", "answer"),
    [
        ([], False, False),
        ([NOTHING, Verdict(permission=ASK)], False, False),
        ([NOTHING, YES], False, True),
        ([NO, YES], False, Refuse("guard.sh", "no", asked=True, event=Event.PERMISSION_REQUEST)),
        ([YES, NO], False, Refuse("guard.sh", "no", asked=True, event=Event.PERMISSION_REQUEST)),
        ([NO, YES], True, True),
        ([NO, Verdict(reason="later")], True, Refuse("guard.sh", "later", asked=True, event=Event.PERMISSION_REQUEST)),
        ([YES, NO, NOTHING], True, Refuse("guard.sh", "no", asked=True, event=Event.PERMISSION_REQUEST)),
        (
            [replace(NO, stop=True), YES],
            True,
            Refuse("guard.sh", "no", asked=True, stop=True, event=Event.PERMISSION_REQUEST),
        ),
        ([YES, CRASH], False, True),
        ([YES, replace(CRASH, fails_closed=True)], True, "failed"),
    ],
)
def test_permission_request_hooks_decide_for_the_person(
    verdicts: list[Verdict], last_answer_counts: bool, answer: Refuse | bool | str
) -> None:
    if answer == "failed":
        answer = Refuse(
            "guard.sh", CRASH.failure, asked=True, cause=RefusalCause.FAILED_CLOSED, event=Event.PERMISSION_REQUEST
        )
    hook_runs = [hook_run(verdict, REQUEST) for verdict in verdicts]
    assert permission_decision(hook_runs, Settings(), None, last_answer_counts) == answer


def test_a_denying_post_hook_marks_the_result_and_a_hiding_one_is_named() -> None:
    commented = comments([hook_run(NO, POST), hook_run(Verdict(hides=True), POST, "hide.sh")], Settings(), None)
    assert commented == Comments(failed=True, hidden_by="hide.sh")
    assert merge_comments(Comments(failed=True), Comments(hidden_by="b")) == Comments(failed=True, hidden_by="b")
    assert merge_comments(Comments(hidden_by="a"), Comments(hidden_by="b")).hidden_by == "a"


def test_the_configuration_can_allow_a_failure_that_blocks_by_the_document() -> None:
    crash = hook_run(replace(CRASH, fails_closed=True))
    assert decide([crash], Settings(), None) == Refuse("guard.sh", CRASH.failure, cause=RefusalCause.FAILED_CLOSED)
    assert decide([crash], Settings(on_failure=OnFailure.ALLOW), None) == Proceed()


def test_a_hook_that_stops_the_agent_denies_the_call_and_is_reported() -> None:
    hook_runs = [hook_run(Verdict(permission=DENY, reason="no")), hook_run(Verdict(stop=True, reason="enough"))]
    assert decide(hook_runs, Settings(), None) == Refuse("guard.sh", "no\nenough", stop=True)
    assert decide(hook_runs[1:], Settings(), None) == Refuse("guard.sh", "enough", stop=True)


def test_the_last_rewrite_wins_byte_for_byte() -> None:
    first, last = b'{"n": 1}', b'{"n":  2.0}'
    hook_runs = [hook_run(Verdict(arguments=first)), hook_run(Verdict(arguments=last)), hook_run(Verdict())]
    decision = decide(hook_runs, Settings(), None)
    assert isinstance(decision, Proceed)
    assert decision.arguments is last


def test_all_feedback_is_delivered_in_order_with_a_refusal_too() -> None:
    hook_runs = [hook_run(Verdict(feedback=("a", "b"))), hook_run(Verdict(feedback=("c",)))]
    denial = hook_run(Verdict(permission=DENY, reason="no", feedback=("d",)))
    assert decide(hook_runs, Settings(), None) == Proceed(feedback=("a", "b", "c"))
    assert decide([*hook_runs, denial], Settings(), None).feedback == ("a", "b", "c", "d")


def test_a_background_hook_decides_nothing() -> None:
    later = replace(CLOSED, background=True)
    wishes = [Verdict(permission=DENY, arguments=b"{}"), Verdict(stop=True), Verdict(permission=ASK), CRASH]
    assert decide([hook_run(wish, later) for wish in wishes], Settings(OnFailure.DENY), None) == Proceed()
    post = replace(later, event=Event.POST_TOOL_USE, withholds=True)
    commented = comments(
        [hook_run(Verdict(replacement=b"[]"), post), hook_run(CRASH, post)], Settings(OnFailure.DENY), None
    )
    assert commented == Comments()


DIALECT, DENY_IT, ALLOW_IT = OnFailure.DIALECT, OnFailure.DENY, OnFailure.ALLOW
RULES = [
    # the hook's own choice, its group's, the configuration's: the first that is made counts
    (None, None, DIALECT, DIALECT),
    (None, None, DENY_IT, DENY_IT),
    (None, None, ALLOW_IT, ALLOW_IT),
    (None, DIALECT, DENY_IT, DIALECT),
    (None, DENY_IT, ALLOW_IT, DENY_IT),
    (None, ALLOW_IT, DENY_IT, ALLOW_IT),
    (DIALECT, DENY_IT, DENY_IT, DIALECT),
    (DENY_IT, ALLOW_IT, ALLOW_IT, DENY_IT),
    (ALLOW_IT, DENY_IT, DENY_IT, ALLOW_IT),
]


@pytest.mark.parametrize(("own", "group", "settings", "rule"), RULES)
@pytest.mark.parametrize("fails_closed", [False, True])
def test_a_failure_before_a_call_has_the_consequence_of_the_nearest_setting(
    own: OnFailure | None, group: OnFailure | None, settings: OnFailure, rule: OnFailure, fails_closed: bool
) -> None:
    hook = replace(PRE, on_failure=own, fails_closed=fails_closed)
    expected: Proceed | Refuse = Proceed()
    if rule is DENY_IT:
        expected = Refuse("guard.sh", CRASH.failure, cause=RefusalCause.FAILURE)
    if rule is DIALECT and fails_closed:
        expected = Refuse("guard.sh", CRASH.failure, cause=RefusalCause.FAILED_CLOSED)
    assert decide([hook_run(CRASH, hook)], Settings(on_failure=settings), group) == expected


@pytest.mark.parametrize(("own", "group", "settings", "rule"), RULES)
@pytest.mark.parametrize("fails_closed", [False, True])
@pytest.mark.parametrize("withholds", [False, True])
def test_a_failure_after_a_call_withholds_or_is_noted_or_changes_nothing(
    own: OnFailure | None,
    group: OnFailure | None,
    settings: OnFailure,
    rule: OnFailure,
    fails_closed: bool,
    withholds: bool,
) -> None:
    hook = replace(POST, on_failure=own, fails_closed=fails_closed, withholds=withholds)
    crash = hook_run(CRASH, hook)
    expected = Comments()
    if rule is DENY_IT or (rule is DIALECT and withholds):
        expected = Comments(withheld=(crash,))
    elif rule is DIALECT and fails_closed:
        expected = Comments(noted=(crash,))
    assert comments([crash], Settings(on_failure=settings), group) == expected


def test_a_denial_is_reported_before_a_failure_and_a_failure_before_an_approval_request() -> None:
    crash = hook_run(CRASH, CLOSED, "crash.sh")
    denial = hook_run(Verdict(permission=DENY, reason="no rm"), label="rm.sh")
    question = hook_run(Verdict(permission=ASK), label="ask.sh")
    assert decide([crash, denial], Settings(), None) == Refuse("rm.sh", "no rm")
    asked_and_failed = decide([question, crash], Settings(), None)
    assert asked_and_failed == Refuse("crash.sh", CRASH.failure, cause=RefusalCause.FAILED_CLOSED)


def test_a_failed_hook_whose_failure_is_allowed_can_refuse_but_not_rewrite() -> None:
    broken = Verdict(failure="the rewrite does not fit", arguments=b'{"n":1}')
    good = hook_run(Verdict(arguments=b"{}"))
    assert decide([good, hook_run(broken)], Settings(), None) == Proceed(b"{}")
    denying = replace(broken, permission=DENY, reason="no")
    assert decide([good, hook_run(denying)], Settings(), None) == Refuse("guard.sh", "no")
    replacing = hook_run(Verdict(failure="its output was cut", replacement=b'"x"'), POST)
    assert comments([replacing], Settings(), None) == Comments()


def test_comments_have_all_feedback_and_the_last_replacement() -> None:
    hook_runs = [
        hook_run(Verdict(feedback=("a",), replacement=b'"first"'), POST),
        hook_run(Verdict(feedback=("b", "c"), replacement=b'"last"'), POST),
        hook_run(Verdict(feedback=("d",)), POST),
    ]
    assert comments(hook_runs, Settings(), None) == Comments(("a", "b", "c", "d"), b'"last"')


def test_merged_comments_have_both_groups_in_order_and_the_later_replacement() -> None:
    one, two = hook_run(CRASH, POST, "one"), hook_run(CRASH, POST, "two")
    first = Comments(("a",), b"[1]", (one,), (two,))
    assert merge_comments(first, Comments(("b",), b"[2]", (two,), (one,))) == Comments(
        ("a", "b"), b"[2]", (one, two), (two, one)
    )
    assert merge_comments(first, Comments()) == first
    assert merge_comments(Comments(), first) == first


VERDICTS = st.builds(
    Verdict,
    permission=st.sampled_from([None, *Permission]),
    reason=st.sampled_from(["", "r"]),
    arguments=st.sampled_from([None, b"{}"]),
    feedback=st.sampled_from([(), ("f",)]),
    replacement=st.sampled_from([None, b"[]"]),
    stop=st.booleans(),
    failure=st.sampled_from(["", "it hung"]),
)
SPECS = st.builds(
    replace,
    st.just(PRE),
    background=st.booleans(),
    fails_closed=st.booleans(),
    withholds=st.booleans(),
    on_failure=st.sampled_from([None, *OnFailure]),
)
HOOK_RUNS = st.lists(st.builds(hook_run, VERDICTS, SPECS), max_size=5)
SETTINGS = st.builds(Settings, on_failure=st.sampled_from(OnFailure), on_ask=st.sampled_from(OnAsk))
GROUP = st.sampled_from([None, *OnFailure])


@given(HOOK_RUNS, st.builds(hook_run, VERDICTS, SPECS), SETTINGS, GROUP)
def test_no_further_hook_turns_a_refusal_into_an_approval(
    hook_runs: list[HookRun], further: HookRun, settings: Settings, group: OnFailure | None
) -> None:
    if isinstance(decide(hook_runs, settings, group), Refuse):
        assert isinstance(decide([*hook_runs, further], settings, group), Refuse)
        assert isinstance(decide([further, *hook_runs], settings, group), Refuse)


@given(HOOK_RUNS, HOOK_RUNS, SETTINGS, GROUP)
def test_two_groups_give_the_same_comments_as_one(
    first: list[HookRun], second: list[HookRun], settings: Settings, group: OnFailure | None
) -> None:
    apart = merge_comments(comments(first, settings, group), comments(second, settings, group))
    assert apart == comments([*first, *second], settings, group)


@pytest.mark.parametrize(
    ("spec", "rule", "reported"),
    [
        (PRE, OnFailure.DENY, "the call is refused"),
        (PRE, OnFailure.DIALECT, "it does not block the call"),
        (CLOSED, OnFailure.DIALECT, "the call is refused"),
        (CLOSED, OnFailure.ALLOW, "it does not block the call"),
        (replace(PRE, event=Event.PERMISSION_REQUEST), OnFailure.DENY, "the call is refused"),
        (replace(PRE, event=Event.PERMISSION_REQUEST), OnFailure.ALLOW, "it does not block the call"),
        (POST, OnFailure.DENY, "the result is withheld"),
        (replace(POST, withholds=True), OnFailure.DIALECT, "the result is withheld"),
        (replace(POST, fails_closed=True), OnFailure.DIALECT, "the model is informed"),
        (POST, OnFailure.ALLOW, "it does not change the result"),
        (replace(CLOSED, background=True), OnFailure.DENY, ""),
        (replace(PRE, event=Event.NOTIFICATION), OnFailure.DENY, ""),
    ],
)
def test_the_consequence_of_a_failure_is_reported(spec: HookSpec, rule: OnFailure, reported: str) -> None:
    assert consequence(hook_run(CRASH, spec), Settings(), rule) == reported
    assert consequence(hook_run(Verdict(), spec), Settings(), rule) == ""


def test_the_report_says_that_the_denial_of_a_failed_hook_counts() -> None:
    denies = hook_run(replace(CRASH, permission=DENY, reason="no"))
    assert consequence(denies, Settings(), OnFailure.ALLOW) == "the call is refused"


# --- what only some hooks have ---


def test_only_hooks_that_said_something_or_failed_have_verdicts() -> None:
    assert no_verdicts([])
    assert no_verdicts([hook_run(NO_VERDICT), hook_run(Verdict())])
    assert not no_verdicts([hook_run(NO_VERDICT), hook_run(CRASH)])
    assert not no_verdicts([hook_run(Verdict(permission=ALLOW)), hook_run(NO_VERDICT)])


ALLOWED_WITH = Verdict(permission=ALLOW, arguments=b"{}")


@pytest.mark.parametrize(
    ("verdict", "spec", "allowed"),
    [
        (ALLOWED_WITH, PRE, True),
        (Verdict(permission=ALLOW), PRE, True),
        (replace(ALLOWED_WITH, failure="it crashed"), PRE, False),
        (Verdict(permission=ASK, arguments=b"{}"), PRE, False),
        (Verdict(arguments=b"{}"), PRE, False),
        (ALLOWED_WITH, replace(PRE, background=True), False),
    ],
)
def test_a_call_is_allowed_by_a_hook_that_says_so_and_has_not_failed(
    verdict: Verdict, spec: HookSpec, allowed: bool
) -> None:
    runs = [hook_run(verdict, spec)]
    assert allows(runs) is allowed
    assert allowed_arguments(runs) == (verdict.arguments if allowed else None)
    assert permission_decision(runs, Settings(on_failure=OnFailure.ALLOW), None, False) is allowed


def test_the_last_meta_of_a_hook_that_has_not_failed_is_sent() -> None:
    first, second = hook_run(Verdict(meta=b'{"a":1}')), hook_run(Verdict(meta=b'{"b":2}'))
    assert chosen_meta([]) is None
    assert chosen_meta([first, second]) == b'{"b":2}'
    assert chosen_meta([first, hook_run(Verdict(meta=b"{}", failure="it crashed"))]) == b'{"a":1}'
    assert chosen_meta([first, hook_run(Verdict(meta=b"{}"), replace(PRE, background=True))]) == b'{"a":1}'


def test_a_failed_hook_for_approvals_has_the_consequence_that_its_group_names() -> None:
    failed = [hook_run(CRASH, REQUEST)]
    assert isinstance(permission_decision(failed, Settings(), OnFailure.DENY, False), Refuse)
    assert permission_decision(failed, Settings(on_failure=OnFailure.DENY), OnFailure.ALLOW, False) is False


def test_where_the_last_answer_counts_it_is_given_with_the_last_reason() -> None:
    runs = [hook_run(Verdict(permission=ALLOW)), hook_run(Verdict(permission=DENY))]
    assert permission_decision(runs, Settings(), None, True) == Refuse("guard.sh", "", asked=True)
    runs += [hook_run(Verdict(reason="it writes")), hook_run(Verdict())]
    assert permission_decision(runs, Settings(), None, True) == Refuse("guard.sh", "it writes", asked=True)


# --- approvals that nobody can give ---


MANAGED = Settings(on_ask=OnAsk.DENY)
REMEDIES = {
    "administrator": "The administrator's configuration names no other way to ask (on_ask_fallback).",
    "open": (
        "The user can open `hookproxy console` or `hookproxy top`: while one of them is open, such calls wait for an "
        'answer there (on_ask_fallback = "auto").'
    ),
    "nowhere": "No console can find this run: standard error says why, or the machine has no place for its socket.",
    "auto": (
        'With on_ask_fallback = "auto" in hookproxy.toml, such calls wait for an answer in `hookproxy console` or '
        "`hookproxy top` while one of them is open."
    ),
}


@pytest.mark.parametrize(
    ("console", "managed", "remedy"),
    [
        (ConsoleUse.NEVER, False, "auto"),
        (ConsoleUse.NEVER, True, "administrator"),
        (ConsoleUse.IF_OPEN, False, "open"),
        (ConsoleUse.IF_OPEN, True, "open"),
        (ConsoleUse.ALWAYS, False, "nowhere"),
        (ConsoleUse.ALWAYS, True, "nowhere"),
    ],
)
def test_a_refusal_says_what_lets_people_be_asked_the_next_time(
    console: ConsoleUse, managed: bool, remedy: str
) -> None:
    request = replace(QUESTION, managed=managed)
    refuse = without_person(Proceed(approval_request=request), Settings(console=console), can_ask=False)
    assert isinstance(refuse, Refuse)
    assert refuse.remedy == REMEDIES[remedy]


@pytest.mark.parametrize(
    ("request_of", "settings", "expected"),
    [
        (replace(QUESTION, managed=True), Settings(managed=MANAGED), MANAGED),
        (replace(QUESTION, managed=False), Settings(managed=MANAGED), Settings(managed=MANAGED)),
        (replace(QUESTION, managed=True), Settings(), Settings()),
        (None, Settings(managed=MANAGED), Settings(managed=MANAGED)),
    ],
)
def test_the_administrators_settings_hold_for_what_the_administrator_asks(
    request_of: ApprovalRequest | None, settings: Settings, expected: Settings
) -> None:
    assert settings_for(settings, request_of) == expected


def test_a_managed_approval_is_decided_by_the_managed_settings_alone() -> None:
    settings = Settings(on_ask=OnAsk.ALLOW, managed=MANAGED)
    refuse = without_person(Proceed(approval_request=replace(QUESTION, managed=True)), settings, can_ask=True)
    assert isinstance(refuse, Refuse)
    assert (refuse.cause, refuse.remedy) == (RefusalCause.ASK_DENIED, "")
    assert without_person(Proceed(approval_request=QUESTION), settings, can_ask=True) == Proceed(asked=True)


@pytest.mark.parametrize("settings", [Settings(on_ask=OnAsk.ALLOW), Settings(on_ask_fallback=OnFailure.ALLOW)])
def test_where_only_some_people_approve_nothing_else_does_and_they_are_named(settings: Settings) -> None:
    settings = replace(settings, approvers=("@leads", "kim"))
    refuse = without_person(Proceed(approval_request=QUESTION), settings, can_ask=False)
    assert isinstance(refuse, Refuse)
    assert (refuse.approvers, refuse.remedy) == ("@leads, kim", "")


def test_a_call_that_nobody_asked_about_is_declined_without_a_name() -> None:
    assert declined(Proceed(), RefusalCause.DECLINED) == Refuse("", "", asked=True, cause=RefusalCause.DECLINED)


# --- whether what goes out in the end is what a hook has allowed ---

SENT, OTHER = b'{"sent":1}', b'{"other":1}'
YES, SENDS, MAKES = Verdict(permission=ALLOW), Verdict(arguments=SENT), Verdict(permission=ALLOW, arguments=SENT)


@pytest.mark.parametrize(
    ("verdicts", "rewritten", "before", "in_turn", "allowed"),
    [
        # nobody rewrites: one that allows is enough, in this group or before
        ([], None, False, False, False),
        ([], None, True, False, True),
        ([YES], None, False, False, True),
        ([Verdict(permission=ASK)], None, False, True, False),
        # at the same time, each sees the original: only who makes these arguments has allowed them
        ([MAKES], SENT, False, False, True),
        ([YES, SENDS], SENT, True, False, False),
        ([SENDS, YES], SENT, True, False, False),
        ([Verdict(permission=ALLOW, arguments=OTHER), SENDS], SENT, False, False, False),
        ([Verdict(permission=ALLOW, arguments=OTHER), MAKES], SENT, False, False, True),
        ([MAKES, Verdict(permission=ALLOW, arguments=OTHER)], SENT, False, False, True),
        # one after the other: who allows last has seen what the others made
        ([YES, SENDS], SENT, True, True, False),
        ([SENDS, YES], SENT, False, True, True),
        ([MAKES], SENT, False, True, True),
        ([YES, SENDS, YES], SENT, False, True, True),
        ([YES, SENDS, Verdict()], SENT, False, True, False),
        ([SENDS, YES, SENDS], SENT, False, True, False),
        ([SENDS], SENT, True, True, False),
        # what a hook says that failed does not count
        ([SENDS, YES, Verdict(arguments=OTHER, failure="crash")], SENT, False, True, True),
        ([SENDS, Verdict(permission=ALLOW, failure="crash")], SENT, False, True, False),
        ([Verdict(permission=ALLOW, failure="crash")], None, False, False, False),
    ],
)
def test_a_hook_allows_what_it_has_seen_or_made_itself(
    verdicts: list[Verdict], rewritten: bytes | None, before: bool, in_turn: bool, allowed: bool
) -> None:
    hook_runs = [hook_run(verdict) for verdict in verdicts]
    assert allows_final(hook_runs, lambda _: True, rewritten, before, in_turn=in_turn) is allowed


@pytest.mark.parametrize(("rewritten", "in_turn"), [(None, False), (SENT, False), (SENT, True)])
def test_only_hooks_that_count_allow_and_background_hooks_never_do(rewritten: bytes | None, in_turn: bool) -> None:
    counting, late = hook_run(MAKES, label="counts"), hook_run(MAKES, replace(PRE, background=True), "counts")

    def counts(run: HookRun) -> bool:
        return run.spec.label == "counts"

    assert allows_final([counting], counts, rewritten, before=False, in_turn=in_turn)
    assert not allows_final([hook_run(MAKES, label="other")], counts, rewritten, before=False, in_turn=in_turn)
    assert not allows_final([hook_run(SENDS), late], counts, rewritten, before=False, in_turn=in_turn)


def test_a_failure_behind_a_hook_that_works_or_may_fail_still_counts() -> None:
    open_failure = hook_run(CRASH, replace(PRE, on_failure=OnFailure.ALLOW))
    refuse = decide([hook_run(Verdict()), open_failure, hook_run(CRASH, CLOSED, "closed")], Settings(), None)
    assert isinstance(refuse, Refuse)
    assert (refuse.by, refuse.cause) == ("closed", RefusalCause.FAILED_CLOSED)
    withheld = comments([hook_run(Verdict(), POST), hook_run(CRASH, POST)], Settings(on_failure=OnFailure.DENY), None)
    assert len(withheld.withheld) == 1


def test_what_could_not_be_judged_is_refused_for_that() -> None:
    refuse = decide([hook_run(Verdict(failure="its input was too long", unjudged=True))], Settings(), None)
    assert isinstance(refuse, Refuse)
    assert refuse.cause is RefusalCause.UNJUDGED


@pytest.mark.parametrize("on_ask", [OnAsk.ALLOW, OnAsk.ELICIT, OnAsk.CONSOLE])
def test_only_a_person_allows_what_would_carry_data_to_a_sink(on_ask: OnAsk) -> None:
    settings = Settings(on_ask=on_ask, on_ask_fallback=OnFailure.ALLOW)
    chain = Chain((), (1,), ("secret",), "flow.sinks[0]", "fetch")
    asking = Proceed(approval_request=ApprovalRequest("flow.sinks[0]", "it would", chains=(chain,)))
    assert without_person(asking, settings, can_ask=True) is asking
    refused = without_person(asking, settings, can_ask=False)
    assert isinstance(refused, Refuse)
    assert (refused.cause, refused.chains) == (RefusalCause.ASK_UNAVAILABLE, (chain,))


def test_what_hooks_say_of_labels_after_a_call_holds_for_all_of_them() -> None:
    first = comments(
        [
            hook_run(Verdict(added_labels=("private",)), POST),
            hook_run(Verdict(added_labels=("secret",), removed_labels=("untrusted",)), POST),
        ],
        Settings(),
        None,
    )
    assert first == Comments(added_labels=("private", "secret"), removed_labels=("untrusted",))
    both = merge_comments(first, Comments(added_labels=("pii",), removed_labels=("private",)))
    assert both == Comments(added_labels=("private", "secret", "pii"), removed_labels=("untrusted", "private"))
