"""Rules with a path for Read, Write and Edit hold for what commands do with files that they name: to refuse only."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookproxy.guard.exchange import Request
from hookproxy.model.hooks import Permission
from hookproxy.model.settings import AgentRule, Settings
from hookproxy.policy.call_texts import CallArguments
from hookproxy.policy.command_files import CommandFiles
from hookproxy.policy.globs import WorkBudget
from hookproxy.policy.rules import RuleDecision, Rules
from tests.guard.test_judge import AGENTS, configured, judging, permission


def judged(line: str, *deny: str, ask: tuple[str, ...] = (), allow: tuple[str, ...] = ()) -> RuleDecision | None:
    files = CommandFiles(Rules.of(Settings(deny=deny, ask=ask, allow=allow)))
    return files.judge({line: ()}, WorkBudget()) if files else None


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("Read(**/.env)", "cat .env"),
        ("Read(.env)", "cat .env"),
        ("Read(**/.env)", "cat a/../.env"),
        ("Read(**/.env)", "cat ../x/.ENV"),
        ("Read(**/.env)", "cat .en?"),
        ("Read(secrets/**)", "cd secrets && cat a"),
        ("Read(secrets/**)", "grep -r x secrets"),
        ("Read(secrets/**)", "tar cz secrets/* > x"),
        ("Read(/etc/**)", "cat ../../../etc/shadow"),
        ("Read(~/.ssh/**)", "cat $HOME/.ssh/id_rsa"),
        ("*(**/.env)", "cat .env"),
        ("Write(/etc/**)", "echo x > /etc/hosts"),
        ("Edit(/etc/**)", "echo x | sudo tee /etc/hosts"),
        ("Write(src/**)", "rm -rf src/x"),
        ("Write(**/.env)", "cp /srv/.env ."),
        ("Write(/etc/**)", "cp -t/etc x"),
        ("Read(~/.ssh/**)", "H=$HOME; cat $H/.ssh/id"),
        ("Read(secrets/**)", "ls secrets | while read f; do cat secrets/$f; done"),
        ("Read(secrets/**)", "find secrets -type f | xargs cat"),
        ("Read(secrets/**)", "cat $(pwd)/secrets/x"),
        ("Read(secrets/**)", "cat s*/**"),
        ("Read(**/.env)", "find . -name '*env' -exec cat {} +"),
    ],
)
def test_a_rule_about_a_path_is_about_the_command(rule: str, line: str) -> None:
    ruling = judged(line, rule)
    assert ruling is not None
    assert (ruling.permission, ruling.rule) == (Permission.DENY, rule)


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("Read(**/.env)", "cat .env.example"),
        ("Read(**/.env)", "cat *"),
        ("Read(**/.env)", "grep -r x ."),
        ("Read(**/.env)", "echo x > .env"),
        ("Read(**/build/**)", "npm run build"),
        ("Read(/etc/**)", "cat ../x"),
        ("Read(/etc/**)", "cat $DIR/etc/x"),
        ("Read(**/.env)", "find . -name '*.md' -exec cat {} +"),
        ("Read(secrets/**)", "wc -l src/**/*.ts"),
        ("Read(~/.ssh/**)", "wc -l src/**/*.ts"),
        ("Read(secrets/**)", "mv x secrets/"),
        ("Write(/etc/**)", "scp x h:/etc/x"),
        ("Write(/etc/**)", "cat /etc/hosts"),
        ("Write(**/migrations/**)", "rm -rf build/*"),
        ("Read", "cat x"),
        ("Bash(**/.env)", "cat .env"),
    ],
)
def test_it_is_not_about_others(rule: str, line: str) -> None:
    assert judged(line, rule) is None


def test_deny_beats_ask_and_nothing_is_allowed() -> None:
    ruling = judged("cat .env > x", "Read(**/.env)", ask=("Write(x)",))
    assert ruling is not None
    assert ruling.permission is Permission.DENY
    ruling = judged("cat .env > x", ask=("Write(x)",), allow=("Read(**)",))
    assert ruling is not None
    assert ruling.permission is Permission.ASK
    assert judged("cat .env", allow=("Read(**)",)) is None


def test_more_files_than_can_be_compared_are_judged_as_the_first_rule_says() -> None:
    ruling = judged("cat " + " ".join(map(str, range(5000))), "Read(**/.env)")
    assert ruling is not None
    assert ruling.permission is Permission.DENY


def test_rules_of_an_agents_settings_file_start_from_their_folder() -> None:
    rule = AgentRule(
        "deny", "Read(./secrets/**)", "settings.json", ("Read",), "secrets/**", ("/w",), ("/w",), "/home/a"
    )
    files = CommandFiles(Rules.of(Settings(agent_rules=(rule,))))
    assert files.judge({"cat secrets/x": ()}, WorkBudget()) is not None
    for line in ("cat s*/x", "cat secrets/$X", "cat $D/secrets/x", "cat /w/secret?/*", "grep -r x secrets"):
        assert files.judge({line: ()}, WorkBudget()) is not None, line
    for line in ("cat *", "cat src/*", "cat /other/s*/x", "cat $D/x"):
        assert files.judge({line: ()}, WorkBudget()) is None, line
    assert files.judge({"cat /w/secrets/x": ()}, WorkBudget()) is not None
    assert files.judge({"cat /other/secrets/x": ()}, WorkBudget()) is None


PATHS = st.lists(st.sampled_from(("a", "b", ".env", "..", "k.pem", "x y")), min_size=1, max_size=4).map("/".join)
RULES = ("Read(**/.env)", "Read(a/**)", "Read(/b/**)", "Read(**/*.pem)", "Read(**/x y)")


@given(PATHS, st.sampled_from(RULES), st.sampled_from(("cat {}", "head < {}", "sudo nl x {}")), st.booleans())
@settings(suppress_health_check=[HealthCheck.differing_executors])
def test_what_the_rule_certainly_denies_to_read_no_command_that_names_it_reads(
    path: str, rule: str, form: str, absolute: bool
) -> None:
    """Paths that leave an unknown folder are left out: of them, `Read` is refused whatever they name."""
    path = f"/{path}" if absolute else path
    if path.startswith(".."):
        return
    read = Rules.of(Settings(deny=(rule,))).judge(("Read",), json.dumps({"file_path": path}).encode())
    if read is not None and not ("../.." in path or path.count("..") > path.count("/")):
        assert judged(form.format(shlex.quote(path)), rule) is not None


@pytest.mark.parametrize("name", ["cwd", "workdir", "working_directory", "workingDir", "Cwd", "dir_path"])
def test_the_folder_of_an_argument_counts(name: str) -> None:
    files = CommandFiles(Rules.of(Settings(deny=("Read(secrets/**)",))))

    def is_denied(command: str, folder: object) -> bool:
        call = CallArguments(json.dumps({"command": command, name: folder}).encode())
        return files.judge_calls([call]) is not None

    assert is_denied("cat k", "secrets")
    assert is_denied("cd b && cat k", "./secrets/a")
    assert is_denied("cat secrets/k", "/srv")
    assert not is_denied("cat k", "src")
    assert not is_denied("cat k", ["secrets"])


@pytest.mark.anyio
@pytest.mark.parametrize(("command", "denied"), [("cat .env", True), ("head .env", False)])
async def test_asking_about_a_file_does_not_open_a_default_that_denies(
    command: str, denied: bool, tmp_path: Path
) -> None:
    config = '[permissions]\ndefault = "deny"\nask = ["Read(**/.env)"]\nallow = ["Bash(head *)"]'
    row = AGENTS["claude"]
    document = json.dumps(row.before).replace("rm -rf x", command).replace("rm x", command)
    async with judging(configured(tmp_path, config)) as judge:
        request = Request("claude", "/", {"PATH": "/usr/bin:/bin", **row.before_variables}, document.encode())
        answer = permission("claude", await judge.judge(request))
    assert answer is (Permission.DENY if denied else Permission.ASK)


@pytest.mark.anyio
@pytest.mark.parametrize("agent", ["claude", "codex", "cursor", "gemini"])
async def test_an_agents_own_shell_is_judged_so_where_nothing_else_is_about_it(agent: str, tmp_path: Path) -> None:
    row = AGENTS[agent]
    document = json.dumps(row.before)
    answers = []
    async with judging(configured(tmp_path, '[permissions]\ndeny = ["Read(**/.env)"]')) as judge:
        for command in ("cat .env", "cat x"):
            given_document = document.replace("rm -rf x", command).replace("rm x", command)
            request = Request(agent, "/", {"PATH": "/usr/bin:/bin", **row.before_variables}, given_document.encode())
            answers.append(permission(agent, await judge.judge(request)) is Permission.DENY)
    assert answers == [True, False]
