"""Edges of rules that other tests pass by: each was found by a change of the code that no test noticed."""

from __future__ import annotations

import json

import pytest

from hookproxy.model.hooks import Permission
from hookproxy.model.principal import Principal
from hookproxy.model.settings import AgentRule, Settings
from hookproxy.policy import matchers
from hookproxy.policy.bounds import Bound
from hookproxy.policy.call_texts import MOST_TEXTS, NO_PATH
from hookproxy.policy.globs import BudgetExceeded, WorkBudget
from hookproxy.policy.path_rules import PathPattern
from hookproxy.policy.rules import Rules
from hookproxy.policy.shell_commands import Runs, command_matcher

DOES, DOES_NOT = (True, ""), (False, "")


def runs(rule: str, line: str) -> Runs:
    return command_matcher(rule)(line, WorkBudget())


def is_unreadable(found: Runs) -> bool:
    return not found.certain and bool(found.unreadable)


# --- command lines ---


@pytest.mark.parametrize("line", ["=rm x", "rm.exe x", "/usr/bin/rm.exe x"])
def test_a_program_is_known_with_what_shells_and_systems_put_around_its_name(line: str) -> None:
    assert runs("rm *", line) == DOES


@pytest.mark.parametrize(
    "line",
    [
        *(
            "sudo =rm x",
            "env =rm x",
            "time =rm x",
            "sudo '=rm' x",
            "sudo =/bin/rm x",
            "sudo -u root =rm x",
            "env A=b =rm x",
        ),
        *(
            "env -- =rm x",
            "sudo -- =rm x",
            "env =a rm x",
            "env -- =a rm x",
            "sudo env =rm x",
            "nice =rm x",
            "x; sudo =rm y",
        ),
    ],
)
def test_a_word_that_zsh_reads_as_a_program_is_one_behind_programs_that_take_assignments(line: str) -> None:
    assert runs("rm *", line) == DOES


@pytest.mark.parametrize("rule", ["rm.exe *", "=rm *", "rm.exe:*", "C:/x/rm.exe *"])
@pytest.mark.parametrize("line", ["rm.exe x", "ls; rm.exe x", "C:/x/rm.exe x", "rm x", "bash -c 'rm.exe x'"])
def test_a_rule_may_spell_its_program_as_a_command_may(rule: str, line: str) -> None:
    assert runs(rule, line) == DOES


@pytest.mark.parametrize("line", ["rmx y", "=rmx y", "rm.exec y"])
def test_another_name_is_another_program(line: str) -> None:
    assert runs("rm *", line) == DOES_NOT


def test_a_rule_with_separators_needs_all_its_commands_in_any_order() -> None:
    assert runs("curl * | wget *", "wget y; curl x") == DOES
    assert runs("curl * | wget *", "curl x; ls y") == DOES_NOT
    assert runs("curl * | wget *", "ls; wget y") == DOES_NOT
    assert runs("a && b && c", "c; b; a") == DOES
    assert runs("a && b && c", "c; b") == DOES_NOT


def test_a_rule_with_separators_is_unreadable_where_one_of_its_commands_is() -> None:
    assert is_unreadable(runs("curl * | wget *", 'curl x; $X "y"'))
    assert is_unreadable(runs("curl * | wget *", '$X "y"; wget x'))
    assert not is_unreadable(runs("curl * | wget *", "curl x; ls"))


def test_a_line_that_would_take_too_long_is_unreadable_and_not_certain() -> None:
    exhausted = WorkBudget()
    with pytest.raises(BudgetExceeded):
        exhausted.spend(10**9)
    found = command_matcher("rm *")("ls", exhausted)
    assert found == (False, "it would take too long to read")


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("git push -f *", "some-program 'git push --mirror'"),
        ("git-* *", "some-program 'git-push x'"),
        ("rm *", "some-program --exec='rm x'"),
        ("rm *", "some-program " + " ".join(f"rm{n}" for n in range(17))),
    ],
)
def test_what_a_program_may_start_is_suspected(rule: str, line: str) -> None:
    assert is_unreadable(runs(rule, line)), line


def test_a_few_words_that_begin_with_its_name_are_no_suspicion() -> None:
    assert runs("rm *", "some-program " + " ".join(f"rm{n}" for n in range(16))) == DOES_NOT


@pytest.mark.parametrize("line", ["rm *", "rm *.txt", "rm $X", "rm ${X} y"])
def test_a_pattern_of_files_and_a_variable_of_somebody_else_are_operands_and_no_options(line: str) -> None:
    assert runs("rm -rf *", line) == DOES_NOT


@pytest.mark.parametrize("line", ["X='-rf y'; rm $X", "rm $(cat x)", "rm `cat x`", "rm {-r,-f} $Y"])
def test_what_the_line_itself_makes_may_be_an_option(line: str) -> None:
    assert runs("rm -rf *", line) != DOES_NOT, line


# --- rules ---


def test_a_deny_rule_that_may_apply_is_not_replaced_by_an_ask_rule_that_does() -> None:
    settings = Settings(deny=("Bash(rm *)",), ask=("Bash(git *)",), unreadable="deny")
    decision = Rules.of(settings).judge(("Bash",), b'{"command":"git x; $X y"}')
    assert decision is not None
    assert (decision.permission, decision.rule) == (Permission.DENY, "Bash(rm *)")


def test_an_ask_rule_that_applies_stands_beside_a_deny_rule_that_may_only_ask() -> None:
    settings = Settings(deny=("Bash(rm *)",), ask=("Bash(git *)",), unreadable="ask")
    decision = Rules.of(settings).judge(("Bash",), b'{"command":"git x; $X y"}')
    assert decision is not None
    assert (decision.permission, decision.rule) == (Permission.ASK, "Bash(git *)")


@pytest.mark.parametrize("text", ["a b", " a b ", "a \t b", "a\n\nb"])
def test_blanks_between_the_words_of_an_argument_do_not_matter(text: str) -> None:
    decision = Rules.of(Settings(deny=("say(a b)",))).judge(("say",), json.dumps({"text": text}).encode())
    assert decision is not None


def test_a_search_without_a_path_is_one_in_the_folder() -> None:
    rule = AgentRule("deny", "Grep(**)", "s:1", ("Grep",), "**", ("/project",), ("/project",), "/home/kim")
    assert Rules.of(Settings(agent_rules=(rule,))).judge(("Grep",), b'{"pattern":"x"}') is not None


# --- matchers, paths, bounds ---


def test_a_permission_rule_is_told_from_a_matcher_that_happens_to_look_like_one() -> None:
    assert matchers.is_rule("Bash(git push:*)")
    assert matchers.is_rule("Bash(git push)")
    assert not matchers.is_rule("Bash")
    assert not matchers.is_rule("mcp__files__(read|write)")


def test_a_server_is_one_word_behind_mcp() -> None:
    assert matchers.is_server("mcp__files")
    assert not matchers.is_server("mcp____files")
    assert not matchers.is_server("mcp__files__read")


def test_a_domain_is_found_on_any_line_and_with_several_stars() -> None:
    assert matchers.value_pattern("domain:example.com").fullmatch("a\nhttps://example.com\nb")
    assert matchers.has_domain("*.example.*", "https://a.example.org/")
    assert not matchers.has_domain("*.example.*", "https://a.other.org/")


@pytest.mark.parametrize("path", ["a\\b", "a%2fb", "a\0b", " a", "a ", "../x", "c:x", "x" * 5000])
def test_no_allow_rule_covers_a_path_that_servers_may_read_in_another_way(path: str) -> None:
    one = PathPattern.of(("/repo",), "**", ("/repo",), "/home/u", fold=False)
    assert one.must_match("a/b")
    assert not one.must_match(path)


def test_a_bound_is_about_its_users_and_without_any_about_everybody() -> None:
    alice, bob = Principal("token:alice", "alice"), Principal("token:bob", "bob")
    assert [Bound("b", users=("alice",)).is_about(who, "s") for who in (alice, bob)] == [True, False]
    assert [Bound("b").is_about(who, "s") for who in (alice, bob)] == [True, True]
    assert [Bound("b", together=together).is_about(None, "s") for together in (True, False)] == [True, False]
    assert not Bound("b", users=("alice",), together=True).is_about(None, "s")
    assert not Bound("b", servers=frozenset({"other"})).is_about(alice, "s")


def judged(file_path: object) -> bool:
    rule = AgentRule("deny", "Read(.env)", "s:1", ("Read",), ".env", ("/project",), ("/project",), "/home/kim")
    arguments = json.dumps({"File_Path": file_path}).encode()
    return Rules.of(Settings(agent_rules=(rule,))).judge(("Read",), arguments) is not None


def test_more_texts_than_can_be_compared_in_time_count_as_a_match() -> None:
    assert not judged(["x"] * 900)
    assert judged(["x"] * 899 + [".env"])
    assert not judged(["x"] * (MOST_TEXTS - 1))
    assert judged(["xenv"] * (MOST_TEXTS - 1))


def test_the_longest_text_that_may_be_a_path_is_one() -> None:
    assert judged("y" * (NO_PATH - 4) + "/env")
    assert not judged("y" * (NO_PATH - 3) + "/env")


def denied(rule: str, **arguments: object) -> bool:
    names = (rule.partition("(")[0],)
    return Rules.of(Settings(deny=(rule,))).judge(names, json.dumps(arguments).encode()) is not None


@pytest.mark.parametrize("up", ["/../etc/passwd", "\\..\\etc\\passwd"])
def test_a_long_text_with_a_way_up_may_be_a_path(up: str) -> None:
    assert denied("x(/etc/*)", text="# " + "y" * 70_000 + up)
    assert denied("x(/etc/*)", a="# " + "y" * 40_000 + up, b="z" * 40_000) is denied("x(/etc/*)", a="# y" + up)
    assert not denied("x(/etc/*)", text="# " + "y" * 70_000)


def test_a_long_text_that_has_the_words_of_a_rule_is_not_what_it_is_about() -> None:
    assert denied("say(a b)", text="a b")
    assert not denied("say(a b)", text="a b" + "y" * NO_PATH)


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("x(etc/passwd)", "file:etc/passwd"),
        ("x(/etc/passwd)", "file:/etc/passwd"),
        ("x(/etc/passwd)", "/etc/passwd\0x\0y"),
        ("x(/etc/a*.key)", "/etc/q/../a\0.key"),
    ],
)
def test_a_path_is_denied_in_the_spellings_that_servers_read(rule: str, path: str) -> None:
    assert denied(rule, path=path)


def test_a_text_behind_which_words_stand_is_also_a_command_alone() -> None:
    assert denied("Bash(git status)", command="git status", args=["x"])


def test_more_pairs_of_texts_and_lists_than_can_be_compared_count_as_a_match() -> None:
    texts = {f"t{n}": "x" for n in range(40)}
    assert denied("x(zzz)", **texts, **{f"l{n}": ["y"] for n in range(40)})
    assert not denied("x(zzz)", **texts, l=["y"])


def test_what_is_true_or_false_in_a_list_is_a_text() -> None:
    assert denied("x(true)", a=[True])
    assert not denied("x(true)", a=[False])


# --- command lines, further ---


@pytest.mark.parametrize(
    ("rule", "line", "does"),
    [
        ("|", "ls", False),
        ("curl -f * | wget *", "curl $(x) y", False),
        ("rm /etc/x", "rm x", False),
        ("/bin/rm /etc/x", "rm /etc/x", True),
        ("/bin/rm /etc/x", "ls; /usr/bin/rm /etc/x", True),
        ("/bin/rm /etc/x", "rm x", False),
        ("rm x", "rm $(a) y", False),
        ("rm -rf x", "rm -r -f x", True),
        ("rm -rf x", "rm -rf x y", False),
        ("*.exe x", "ls; rm.exe x", True),
        ("prog -a* b", "/usr/bin/prog -ax b", True),
        ("prog push *", "prog -a push x", True),
        ("prog push *", "prog -a b push x", True),
        ("prog push *", "prog -a -b c push x", True),
        ("prog push *", "prog -a b -c d push x", True),
        ("prog push *", "prog -a b c push x", False),
        ("prog push *", "prog -a -- x push y", False),
    ],
)
def test_which_commands_of_a_line_a_rule_is_about(rule: str, line: str, does: bool) -> None:
    assert runs(rule, line) == (DOES if does else DOES_NOT)


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("rm *", "some-program --exec=rm x"),
        ("rm *", "some-program '--exec=rm a=b'"),
        ("rm *", "some-program a rm x"),
        ("rm x", "some-program a rm x"),
        ("rm *", "some-program <<< 'ls rm x'"),
        ("git * --force", "git $(a) x $(b)force"),
        ("git push * --force", "git $(a) x $(b) y --force"),
    ],
)
def test_what_may_become_such_a_command_is_unreadable(rule: str, line: str) -> None:
    assert is_unreadable(runs(rule, line))


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("rm -rf *", "some-program rm x"),
        ("rm *", "some-program 'rmx y'"),
        ("rm *", "some-program X=rm y"),
    ],
)
def test_a_word_that_only_has_the_name_in_it_is_no_suspicion(rule: str, line: str) -> None:
    assert runs(rule, line) == DOES_NOT


def test_an_unreadable_command_is_shown_with_the_word_that_is_not_known() -> None:
    assert runs("rm -rf *", "rm $(x) y") == (False, "in 'rm $(x) y', '$(x)' is only known when it runs")


# --- addresses and paths in unusual spellings ---


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("https://EXAMPLE.com/x", True),
        ("https://\uff45xample.com", True),  # a browser reads it as `e`
        ("https://ex%61mple.com", True),
        ("https://notexample.com", False),
        ("https://b\u00fccher.de", False),
    ],
)
def test_a_domain_is_found_in_the_spellings_of_clients(text: str, has: bool) -> None:
    assert matchers.has_domain("example.com", text) is has
    assert denied("WebFetch(domain:Example.com)", url=text) is has


def test_a_domain_is_an_address_and_never_a_command() -> None:
    assert matchers.is_path_or_address("domain:example.com")
    assert matchers.is_path_or_address("a/b c")
    assert not matchers.is_path_or_address("rm a/b")


@pytest.mark.parametrize(
    "path", ["//etc/passwd", "///etc/passwd", "file:////etc/passwd", "file:/etc/%70asswd", "/etc//passwd"]
)
def test_a_path_with_more_slashes_is_the_same_path(path: str) -> None:
    assert denied("x(/etc/passwd)", path=path)


@pytest.mark.parametrize("dots", ["\uff0e\uff0e", "\u2025", "\u3002\u3002", "\u3002\uff0e"])
def test_no_allow_rule_covers_dots_of_another_alphabet(dots: str) -> None:
    settings = Settings(allow=("x(/srv/data/*)",), default_permission="deny")

    def passes(path: str) -> bool:
        decision = Rules.of(settings).judge(("x",), json.dumps({"path": path}).encode())
        return decision is not None and decision.permission is Permission.ALLOW

    assert passes("/srv/data/a")
    assert not passes(f"/srv/data/{dots}/b")


def test_a_name_with_blanks_around_it_is_the_same_tool() -> None:
    rule = matchers.rule("write_*")
    assert rule.may_name_tool(" write_file ")
    assert rule.may_name_tool("WRITE_FILE")
    assert not rule.may_name_tool("read_file")


def test_two_stars_within_a_name_are_one() -> None:
    pattern = PathPattern.of(("/",), "/srv/a**b/x", ("/",), "/home/kim", fold=False)
    assert pattern.may_match("/srv/a1b/x")
    assert not pattern.may_match("/srv/a/1/b/x")


@pytest.mark.parametrize("line", ["git -C a push x", "git -c k=v push", "git --no-pager push", "git push"])
def test_a_subcommand_is_found_behind_the_options_of_its_program(line: str) -> None:
    assert runs("git push *", line) == DOES
    assert runs("git pull *", line) == DOES_NOT


@pytest.mark.parametrize("line", ["tool -v push", "tool -a -b push", "tool -o value push"])
def test_a_subcommand_of_an_unknown_program_is_found_behind_its_options(line: str) -> None:
    assert runs("tool push", line) == DOES


def test_an_unknown_word_may_hold_a_line_end() -> None:
    assert is_unreadable(runs("do\nit", '"d$X"'))
