"""What was denied in one spelling is not opened in another; and what a denial says nothing about stays open."""

from __future__ import annotations

import pytest

from tests.support.learning import Line, line, reads, rules, runs

BY_DEFAULT = 'default = "deny"'
REMOVED = runs("rm a.o", "rm b.o", "rm c.o", "rm d.o")


@pytest.mark.parametrize(
    "denied",
    [
        "rm -rf x", "\\rm x", "cd / && rm -rf x", "sudo rm -rf x", "/bin/rm -rf x", "FOO=1 rm -rf x", "(rm -rf x)",
        "r'm' -rf x", "echo x | xargs rm -rf", "bash -c 'rm -rf x'", "env rm x", "ls; rm -rf x > /dev/null",
        "rm  -rf x", "$(rm -rf x)",
    ],
)  # fmt: skip
def test_a_command_that_was_denied_in_any_spelling_is_not_opened(denied: str) -> None:
    found = rules([*REMOVED, *runs(denied, decision="deny", cause="denied")])
    assert "allow run(rm *)" not in found


def test_a_program_that_passed_by_another_folder_is_not_opened_either() -> None:
    passed = runs(*(f"/bin/rm {name}.o" for name in "abcd"))
    assert "allow run(/bin/rm *)" not in rules([*passed, *runs("cd / && rm -rf x", decision="deny", cause="denied")])


def test_a_line_that_no_rule_could_have_allowed_says_nothing_about_commands_like_those_that_passed() -> None:
    shows = runs(*(f"cat src/{name}.py" for name in "abcd"))
    met = runs("cat src/x.py; echo done", "cd /srv && cat src/y.py", decision="deny", by=BY_DEFAULT)
    assert "allow run(cat *)" in rules([*shows, *met])


@pytest.mark.parametrize("denied", ["cat /etc/shadow | head", "cd / && cat --all src/x.py", "cat src/../../x; true"])
def test_it_bars_a_command_that_is_unlike_those(denied: str) -> None:
    shows = runs(*(f"cat src/{name}.py" for name in "abcd"))
    assert "allow run(cat *)" not in rules([*shows, *runs(denied, decision="deny", by=BY_DEFAULT)])


def test_a_line_that_passed_is_listed_although_it_was_denied_with_something_behind_it() -> None:
    passed, denied = runs("node --version"), runs('node --version "x"', "node x", decision="deny", by=BY_DEFAULT)
    assert "allow run(node --version)" in rules([*passed, *denied])


def test_a_line_that_met_the_default_as_an_ask_says_nothing_either() -> None:
    shows = runs(*(f"cat src/{name}.py" for name in "abcd"))
    rule = 'the permission rule default = "ask" of hookproxy.toml'
    met = runs("cat src/x.py; echo done", decision="asked-allow", asked_by=rule)
    assert "allow run(cat *)" in rules([*shows, *met])
    by_a_rule = runs("cat src/x.py; echo done", decision="asked-allow", asked_by="the permission rule run(echo *)")
    assert "allow run(cat *)" not in rules([*shows, *by_a_rule])


@pytest.mark.parametrize(
    "denied",
    [
        "/srv/app/zz/../keys/id", "/srv/app/keys//id", "/srv/app/keys/./id", "/srv/app/keys/id/",
        "file:///srv/app/keys/id", "\\srv\\app\\keys\\id",
    ],
)  # fmt: skip
def test_a_folder_with_a_denial_in_another_spelling_is_not_opened(denied: str) -> None:
    passed = reads(*(f"/srv/app/keys/{name}" for name in "abcd"))
    found = rules([*passed, *reads(denied, decision="deny", cause="denied")])
    assert "allow read_file(/srv/app/keys/*)" not in found


@pytest.mark.parametrize("odd", ["/srv/app/docs/y/../x", "/srv/app/docs/%2e/x"])
def test_a_path_that_no_rule_could_have_allowed_says_nothing_about_its_folder(odd: str) -> None:
    passed = reads(*(f"/srv/app/docs/{name}" for name in "abcd"))
    assert "allow read_file(/srv/app/docs/*)" in rules([*passed, *reads(odd, decision="deny", by=BY_DEFAULT)])


def fetches(*urls: str, decision: str = "allow") -> list[Line]:
    cause = "denied" if decision == "deny" else ""
    return [line("fetch", decision, arguments={"url": url}, cause=cause) for url in urls]


@pytest.mark.parametrize(
    "denied",
    [
        "https://u:p@bad.example.com/", "https://BAD.example.com./x", "//bad.example.com/", "https://bad.example.com:8443",
        "https://bad%2eexample.com/",
    ],
)  # fmt: skip
def test_a_host_that_was_denied_in_another_spelling_is_not_opened(denied: str) -> None:
    passed = fetches(*(f"https://{name}.example.com/x{name}" for name in ("a", "b", "c", "d", "bad")))
    found = rules([*passed, *fetches(denied, decision="deny")])
    assert "allow fetch(domain:*.example.com)" not in found
    assert "allow fetch(domain:bad.example.com)" not in found


def test_a_line_that_was_denied_for_a_command_by_a_rule_of_the_audit_bars_no_other_command() -> None:
    lines = runs("sudo rm x", "cd / && sudo rm x", decision="deny", by="Bash(sudo:*)")
    assert "allow run(rm *)" in rules([*REMOVED, *lines])


def test_prompts_are_told_apart_by_their_names_if_some_were_denied() -> None:
    def prompts(*names: str, decision: str = "allow") -> list[Line]:
        return [line("prompts/get", decision, arguments={"name": name}) for name in names]

    found = rules([*prompts("summary", "review"), *prompts("admin", decision="deny")])
    assert found == ["deny prompts/get(admin *)", "allow prompts/get(review)", "allow prompts/get(summary)"]
    assert rules(prompts("summary", "review")) == ["allow prompts/get"]
