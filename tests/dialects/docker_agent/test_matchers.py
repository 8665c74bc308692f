"""Docker Agent's matchers: Go's regular expressions over whole names."""

import re
import warnings
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.dialects.docker_agent.hook_file import compile_matcher


@pytest.mark.parametrize("pattern", ["*", ""])
def test_a_star_and_an_empty_matcher_match_all(pattern: str) -> None:
    assert compile_matcher(pattern)("anything at all")
    assert compile_matcher(pattern)("")


@pytest.mark.parametrize(
    ("pattern", "selected", "left_out"),
    [
        # the page's own
        ("shell", ["shell"], ["shell2", "my_shell", "Shell", "shell\n", "edit_file"]),
        ("shell|edit_file", ["shell", "edit_file"], ["shell|edit_file", "edit_files", "shelledit_file"]),
        ("mcp:.*", ["shell", "read_file", "mcp:x", ""], []),
        ("shell|mcp:read_.*", ["shell", "read_file"], ["write_file"]),
        # anchored as a whole, alternatives and all
        ("a|ab", ["a", "ab"], ["abc"]),
        ("read_.*", ["read_file", "read_"], ["thread_x", "read"]),
        ("^shell$", ["shell"], ["shell\n"]),
        (r"\Ashell\z", ["shell"], ["shell\n"]),
        # what Go spells otherwise
        ("(?i)shell", ["SHELL"], ["shells"]),
        ("(?is)a.", ["A\n"], ["B\n"]),
        ("(?i:s)hell", ["Shell"], ["SHELL"]),
        ("[[:alpha:]_]+", ["a_b"], ["a1"]),
        ("[^[:digit:]]+", ["ab"], ["a1"]),
        ("[[:^alpha:]]+", ["12ä"], ["a"]),
        ("[[a]", ["[", "a"], ["b"]),
        ("[]a]", ["]", "a"], ["b"]),
        ("[^]a]", ["b"], ["]", "a"]),
        ("[a&&b-]", ["&", "-"], ["c"]),
        (r"\Qa.b\Ec*", ["a.bcc"], ["axbc"]),
        (r"\Q[x", ["[x"], ["x"]),
        (r"\x41\x{42}\103[\x{44}]", ["ABCD"], []),
        (r"(?P<x>a)(?<y>b)", ["ab"], []),
        ("a{,2}", ["a{,2}"], ["a"]),
        ("a{1,2}", ["aa"], ["aaa"]),
        (r"a\++\$", ["a++$"], ["a"]),
        ("[$]", ["$"], [""]),
        (r"\d\w", ["1a"], ["\u0661a", "1ä"]),
        (".", ["a"], ["\n"]),
    ],
)
def test_a_matcher_matches_as_in_go(pattern: str, selected: list[str], left_out: list[str]) -> None:
    matches = compile_matcher(pattern)
    assert [name for name in selected if not matches(name)] == []
    assert [name for name in left_out if matches(name)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        "(", ")", "a)|(?:b", "[a", "a**", "*a", "\\", "(?", "[[:foo:]]", r"[\z]",  # no expressions at all
        "a(?=b)", "a(?!b)", "(?<=a)b", "(?<!a)b", "(?>a)", "(a)\\1", "(?P<x>a)(?P=x)", "(?#c)a", "(a)(?(1)b|c)",
        "a++", "a*+", "a?+", "a{2}+", r"\Z", r"\u0041", r"\N{BULLET}", r"\8",  # Python's alone
        r"\pL", r"\p{Greek}", r"\P{L}", r"\C", "a(?i)b", "(?m)a", "(?U)a", "a{1000000000000}",  # not here
    ],
)  # fmt: skip
def test_an_unsupported_matcher_is_an_error(pattern: str) -> None:
    with pytest.raises((ValueError, re.error, OverflowError)):
        compile_matcher(pattern)


SIGNS = st.sampled_from([*r"ab1.*+?|()[]{}^$\-:,&QEPpxzZ<>=!#is", "[:alpha:]", "(?:", "(?P<a>", r"\x{41}", "mcp:"])


@given(st.text() | st.lists(SIGNS, max_size=12).map("".join), st.text(max_size=5))
def test_any_pattern_is_a_matcher_or_an_error(pattern: str, name: str) -> None:
    with warnings.catch_warnings(), suppress(ValueError, re.error, OverflowError):
        warnings.simplefilter("error")
        assert compile_matcher(pattern)(name) in (True, False)
