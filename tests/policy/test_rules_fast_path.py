"""The fast path of rules decides as the slow one: what is left out because a word is missing changes no decision.

Two things are left out: a whole call, if its arguments are plain and have no rule's word in them (`_is_plain_without`),
and a text without the word of a rule (`_text_matcher`). The slow path here is the same rules without these words.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from hypothesis import event, example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from hookproxy.jsonrpc.normalize import normalize
from hookproxy.model.settings import Settings
from hookproxy.policy import matchers, rules
from hookproxy.policy.globs import command_pattern, path_pattern
from hookproxy.policy.rules import Rules, ToolRules

PIECES: Final = st.sampled_from(
    (
        *("etc", "ETC", "e", "tc", "x", "rm", "rm x", "git push", "sudo", "-f", "a.b", "null", "true", "1", "cmd"),
        *(
            "/",
            "//",
            "\\",
            ".",
            "..",
            "~",
            " ",
            "\t",
            "\n",
            ":",
            "*",
            "?",
            ";",
            "&&",
            "$(",
            "`",
            "'",
            '"',
            "-",
            "{",
            "[",
        ),
        *(
            "file:",
            "http://",
            "%",
            "%65",
            "%2f",
            "%2E%2e",
            "\0",
            "\u212a",
            "k",
            "K",
            "\u0130",
            "\u0131",
            "\ud800",
            "\uff45",
        ),
        *("\u00e9", "e\u0301"),
    )
)
TEXTS: Final = st.lists(PIECES, max_size=4).map("".join)
SCALARS: Final = TEXTS | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES: Final = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=5,
)
NAMES: Final = st.sampled_from(
    (
        *("text", "x", "path", "file_path", "url", "etc", "/etc/x", "rm x", "Command", "command", "cmdline", "Script"),
        *("shell", "args", "argv", "program", "options", "commands", "\u212a"),
    )
)
PLAIN: Final = st.dictionaries(
    st.sampled_from(("text", "path", "url", "x", "n")),
    st.sampled_from(("x", "main.py", "src/e/main", "rm", "git log", "r m", "tc", "a b", "/e/tc/x", "K", "~", "-f"))
    | st.integers(),
    max_size=3,
)
"""Arguments that take the fast path unless they have a rule's word."""
ARGUMENTS: Final = st.one_of(
    st.dictionaries(NAMES, VALUES, max_size=3),
    st.dictionaries(NAMES | TEXTS, TEXTS | st.integers(), max_size=3),
    st.dictionaries(NAMES, st.lists(TEXTS, max_size=3), min_size=1, max_size=2),  # lists as commands
)
SPECIFIERS: Final = st.one_of(
    st.sampled_from(
        ["rm *", "rm:*", "/etc/*", "~/etc/**", "*.etc", "git push:*", "*e*", "*", "domain:e.tc", "domain:*.x"]
    ),
    st.lists(PIECES.filter(lambda text: "(" not in text and text.strip() != ""), min_size=1, max_size=4).map("".join),
)
TOOLS: Final = st.sampled_from(
    [("tool",), ("tool", "mcp__s__tool"), ("run", "Bash"), ("read", "Read"), ("get", "WebFetch")]
)
RULES: Final = st.lists(
    st.tuples(st.sampled_from(["*", "tool", "Bash", "mcp__s__*"]), SPECIFIERS).map("{0[0]}({0[1]})".format),
    max_size=2,
).map(tuple)


WORDY: Final = st.sampled_from(
    (
        "*(rm *)",
        "*(git push:*)",
        "*(/etc/*)",
        "*(~/e/**)",
        "tool(*tc*)",
        "Bash(r*m)",
        "*(K)",
        "*(a b)",
        "*(-f*)",
        "*(1)",
    )
)
"""Rules with a word."""


def slow(about: ToolRules) -> ToolRules:
    """The same rules, so that every call and every text is compared."""

    def without_word(rule: object) -> object:
        return replace(rule, word="", matches_text=compares(rule)) if isinstance(rule, rules._DenyOrAskRule) else rule

    return replace(
        about,
        words=None,
        deny_or_ask=tuple((kind, without_word(rule), judged) for kind, rule, judged in about.deny_or_ask),
    )


def compares(rule: rules._DenyOrAskRule) -> Callable[[str], bool]:
    specifier = matchers.ARGUMENT_OF_PLACE.sub("", rule.parts.specifier)
    if specifier.startswith("domain:"):
        return rule.matches_text
    exact = path_pattern if matchers.is_path(specifier) else command_pattern
    is_place = matchers.is_path_or_address(specifier)
    needs_folder = rules._needs_folder(specifier)

    def matches(text: str) -> bool:
        pairs = [(text, specifier), (matchers.folded(text), matchers.folded(specifier))]
        return any(
            rules._matches_text(spelled, matchers.value_pattern(wanted), exact(wanted), is_place, needs_folder)
            for spelled, wanted in pairs[: 1 + is_place]
        )

    return matches


@given(RULES, RULES, RULES, TOOLS, ARGUMENTS)
@example(("*(/etc/*)",), (), (), ("tool",), {"text": "file:/%65tc/x"})
@example(("*(/etc/*)",), (), (), ("tool",), {"text": "../x"})
@example(("*(**/.env)",), (), (), ("tool",), {"text": "../.env"})
@example(("*(/k/*)",), (), (), ("tool",), {"text": "/\u212a/x"})
@example(("*(rm *)",), (), (), ("tool",), {"argv": ["r", "m"]})
@example(("*(null)",), (), (), ("tool",), {"text": None})
@example(("*(rm *)",), (), (), ("tool",), {"n": 1})
@example(("*(rm *)",), (), (), ("tool",), {"a": {}, "text": "x"})
@example((), ("*(rm *)",), ("tool(*)",), ("tool",), {"text": "x"})
def test_what_the_fast_path_leaves_out_changes_no_decision(
    deny: tuple[str, ...],
    ask: tuple[str, ...],
    allow: tuple[str, ...],
    tool: tuple[str, ...],
    arguments: dict[str, object],
) -> None:
    assert_same(Rules.of(Settings(deny=deny, ask=ask, allow=allow)).about(tool), arguments)


@given(st.lists(WORDY, min_size=1, max_size=2).map(tuple), st.lists(WORDY, max_size=1).map(tuple), TOOLS, PLAIN)
def test_it_changes_none_about_arguments_that_nearly_all_take_it(
    deny: tuple[str, ...], ask: tuple[str, ...], tool: tuple[str, ...], arguments: dict[str, object]
) -> None:
    assert_same(Rules.of(Settings(deny=deny, ask=ask)).about(tool), arguments)


def assert_same(about: ToolRules, arguments: dict[str, object]) -> None:
    raw = normalize(json.dumps(arguments).encode(), lenient=True)
    event(f"fast: {about.words is not None and rules._is_plain_without(raw, about.words)}")
    assert about.judge(raw) == slow(about).judge(raw)


def test_most_calls_take_the_fast_path() -> None:
    words = Rules.of(Settings(deny=("*(rm *)", "*(/etc/*)"))).about(("tool",)).words
    assert words is not None
    assert rules._is_plain_without(b'{"path":"src/main.py","limit":20}', words)
    assert not rules._is_plain_without(b'{"path":"src/etc/main.py","limit":20}', words)
