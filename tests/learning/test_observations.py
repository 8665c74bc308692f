"""Which records are evidence, for what, and which say nothing; and that memory is bounded."""

from __future__ import annotations

import json

import pytest

from hookproxy.learning import observations as module
from hookproxy.learning.observations import Outcome
from tests.support.learning import Line, learned, line, observed, reads, rules, runs, text


@pytest.mark.parametrize(
    ("decision", "cause", "result", "outcome"),
    [
        ("allow", "", "ok", Outcome.ALLOWED),
        ("allow", "", "pending", Outcome.ALLOWED),
        ("allow", "", "error", None),
        ("allow", "", "lost", None),
        ("allow", "", "cancelled", None),
        ("allow", "", "begun", None),
        ("asked-allow", "", "ok", Outcome.APPROVED),
        ("asked-allow", "", "error", None),
        ("asked-deny", "declined", "refused", Outcome.DECLINED),
        ("asked-deny", "cannot ask", "refused", Outcome.ASKED),
        ("asked-deny", "", "refused", Outcome.DECLINED),
        ("asked-deny", "store away", "refused", None),
        ("deny", "cannot ask", "refused", Outcome.ASKED),
        ("deny", "ask denied", "refused", Outcome.ASKED),
        ("asked", "", "pending", Outcome.ASKED),
        ("deny", "rule", "refused", Outcome.DENIED),
        ("deny", "denied", "refused", Outcome.DENIED),
        ("deny", "", "refused", Outcome.DENIED),
        ("deny", "limit", "refused", None),
        ("deny", "arguments", "refused", None),
        ("deny", "hook failed", "refused", None),
        ("deny", "changed", "refused", None),
        ("", "", "lost", None),
    ],
)
def test_a_record_is_evidence_for_what_the_policy_said_of_the_call(
    decision: str, cause: str, result: str, outcome: Outcome | None
) -> None:
    seen = observed([line("t", decision, result=result, cause=cause, arguments={"a": 1})])
    outcomes = [found for tool in seen.tools.values() for call in tool.calls.values() for found in call.counts]
    assert outcomes == ([] if outcome is None else [outcome])
    assert sum(seen.left_out.values()) == (outcome is None)


@pytest.mark.parametrize(
    ("decision", "cause", "result", "outcome"),
    [
        ("deny", "rule", "ok", Outcome.DENIED),
        ("deny", "denied", "sent", Outcome.DENIED),
        ("deny", "denied", "error", Outcome.DENIED),
        ("deny", "ask denied", "ok", Outcome.ASKED),
        ("deny", "limit", "ok", None),
        ("deny", "hook failed", "ok", None),
        ("ask", "", "ok", Outcome.ASKED),
        ("allow", "", "ok", Outcome.ALLOWED),
        ("", "", "ok", Outcome.ALLOWED),
    ],
)
def test_what_passed_only_because_a_policy_is_watched_counts_as_that_policy_decides(
    decision: str, cause: str, result: str, outcome: Outcome | None
) -> None:
    monitor = {"decision": decision, "cause": cause}
    seen = observed([line("t", result=result, monitor=monitor, arguments={"a": 1})])
    outcomes = [found for tool in seen.tools.values() for call in tool.calls.values() for found in call.counts]
    assert outcomes == ([] if outcome is None else [outcome])


def test_a_watched_denial_becomes_the_rule_that_is_watched_and_bars_its_folder() -> None:
    would = {"decision": "deny", "cause": "rule", "by": "read_file(/srv/app/keys/*)"}
    passed = reads(*(f"/srv/app/src/{at}" for at in range(5)))
    watched = reads(*(f"/srv/app/keys/{at}" for at in range(5)), monitor=would)
    assert rules([*passed, *watched]) == ["deny read_file(/srv/app/keys/*)", "allow read_file(/srv/app/src/*)"]


def test_what_a_watched_hook_would_rewrite_is_evidence_for_what_it_would_make_of_it() -> None:
    calls = [
        line(
            "read_file",
            arguments={"path": f"/etc/{at}"},
            monitor={"decision": "allow", "rewritten": {"path": f"/srv/copy/{at}"}},
        )
        for at in range(5)
    ]
    assert rules([*calls]) == ["allow read_file(/srv/copy/*)"]


def test_what_a_server_refused_or_failed_to_do_widens_nothing() -> None:
    seen = reads(*(f"/srv/app/{at}" for at in range(5)))
    failed = reads(*(f"/etc/{at}" for at in range(50)), result="error")
    assert rules([*seen, *failed]) == ["allow read_file(/srv/app/*)"]


def test_calls_whose_response_was_not_read_count_and_that_is_said() -> None:
    seen = reads(*(f"/srv/app/{at}" for at in range(5)), result="sent")
    assert rules(seen) == ["allow read_file(/srv/app/*)"]
    assert "# - Of 5 calls the audit does not say whether the server did what was asked." in text(seen)


def test_the_rule_that_denied_a_call_is_kept_and_what_it_is_about_wherever_it_stands_bars_nothing() -> None:
    seen = reads(*(f"/srv/app/{at}" for at in range(5)))
    by_name = reads("/srv/app/.env", decision="deny", by="Read(**/.env)")
    assert rules([*seen, *by_name]) == ["deny read_file(**/.env)", "allow read_file(/srv/app/*)"]
    by_place = reads("/srv/app/x", decision="deny", by="read_file(/srv/app/x)")
    found = rules([*seen, *by_place])
    assert found[0] == "deny read_file(/srv/app/x)"
    assert "allow read_file(/srv/app/*)" not in found


@pytest.mark.parametrize(
    "by", ["*", "x(", 'default = "deny"', "read_file(*)", "read_file(/srv/**)", "t(domain:x)", "\n"]
)
def test_what_is_recorded_as_the_rule_is_kept_only_if_it_denies_the_call_and_nothing_that_passed(by: str) -> None:
    seen = reads(*(f"/srv/app/{at}" for at in range(5)))
    found = rules([*seen, *reads("/etc/passwd", decision="deny", by=by)])
    assert found == ["deny read_file(/etc/passwd)", "allow read_file(/srv/app/*)"]


def test_lines_that_cannot_be_read_are_counted_and_do_no_harm() -> None:
    whole = json.dumps(line("t")).encode()
    lines: list[Line] = [
        b"no record",
        b"{}",
        b"\xff",
        b'{"v":1,"tool":[]}',
        {**line("t"), "v": 99},
        {**line("t"), "v": 0},
        whole,
    ]
    seen = observed(lines)
    assert seen.records == 1
    assert seen.left_out == {"lines that are not records": 4, "records of another version": 2}


def test_a_call_that_hooks_rewrote_is_learned_as_it_ran() -> None:
    calls = [line("read_file", arguments={"path": f"/x/{at}"}, rewritten={"path": f"/srv/a/{at}"}) for at in range(3)]
    assert rules([*calls]) == ["allow read_file(/srv/a/*)"]


def test_a_tool_with_digests_is_learned_by_its_name_and_asked_about_if_a_call_was_denied() -> None:
    digest = line("t", arguments_sha256="0" * 64)
    del digest["arguments"]
    assert rules([digest]) == ["allow t"]
    assert learned([digest]).remarks == ["t is learned by its name alone: the audit has no arguments of its calls."]
    assert rules([digest, {**digest, "decision": "deny", "cause": "rule"}]) == ["ask t"]
    assert rules([{**digest, "decision": "deny", "cause": "rule"}]) == ["deny t"]


def test_digests_and_masked_or_long_arguments_open_no_tool_that_is_known_otherwise() -> None:
    digest = line("read_file", arguments_sha256="0" * 64)
    del digest["arguments"]
    masked = reads("/srv/[masked: token]/x")
    long = reads("/srv/app/" + "x" * 100_000)
    seen = reads(*(f"/srv/app/{at}" for at in range(3)))
    assert rules([*seen, *[digest] * 50, *masked * 50, *long * 50]) == ["allow read_file(/srv/app/*)"]
    assert rules(masked) == []


def test_a_denial_whose_arguments_are_not_known_lets_a_person_decide() -> None:
    seen = reads(*(f"/srv/app/{at}" for at in range(3)))
    assert rules([*seen, *reads("/srv/[masked: token]", decision="deny")]) == ["ask read_file"]


def test_memory_is_bounded_and_denials_that_are_not_kept_let_a_person_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CALLS", 10)
    monkeypatch.setattr(module, "MOST_TOOLS", 2)
    allowed = observed(reads(*(f"/srv/app/{at}" for at in range(40))))
    (tool,) = allowed.tools.values()
    assert len(tool.calls) == 10
    assert rules(reads(*(f"/srv/app/{at}" for at in range(40)))) == ["allow read_file(/srv/app/*)"]
    denied = reads(*(f"/etc/{at}" for at in range(40)), decision="deny")
    assert rules([*reads(*(f"/srv/app/{at}" for at in range(9))), *denied]) == ["ask read_file"]
    assert rules([line("a"), line("b"), line("c")]) == ["allow a", "allow b"]


def test_tools_of_several_servers_are_told_apart() -> None:
    lines = [line("t", server="one"), line("t", "deny", server="two"), line("u", server="a b")]
    assert rules([*lines]) == ["deny mcp__two__t", "allow mcp__a_b__u", "allow mcp__one__t"]


def test_what_passed_for_one_user_and_was_denied_for_another_is_asked_about() -> None:
    lines = [line("t", user="ann"), line("t", "deny", user="bob")]
    proposal = learned([*lines])
    assert [f"{rule.permission} {rule.rule}" for rule in proposal.rules] == ["ask t"]
    assert proposal.rules[0].seen.users == {"ann": 1, "bob": 1}


def test_a_call_that_was_both_allowed_and_denied_is_asked_about() -> None:
    assert rules([*runs("make test"), *runs("make test", decision="deny")]) == ["ask run(make test)"]


def test_a_method_that_some_servers_may_not_be_asked_for_is_named_so_that_the_default_holds() -> None:
    calls = [line("resources/read", server="two", arguments={"uri": "file://src/b"}, method="resources/read")]
    calls.append({**calls[0], "server": "one", "decision": "deny", "cause": "rule"})
    found = rules([*calls, line("t", server="one"), line("t", server="two")])
    assert found[0].startswith("ask resources/read")
    odd = line("resources/read", "deny", arguments={"uri": "a\0b"}, method="resources/read")
    assert rules([odd]) == ["deny resources/read"]
    words = " ".join(text([odd]).replace("\n#", "").split())
    assert "no rule names their methods: resources/list, resources/subscribe" in words
