"""The law of what is learned, for records at random: what was denied, or asked about, is not allowed."""

from __future__ import annotations

import tomllib
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from hookproxy.learning.as_toml import toml_of
from hookproxy.learning.propose import propose
from tests.support.learning import line, observed
from tests.support.planted_policies import decide

FOLDERS: Final = (
    "/",
    "/srv",
    "/srv/app",
    "/srv/app/src",
    "/home/ann",
    "~",
    "src",
    "",
    "/srv/app/..",
    "C:\\x",
    "/srv//app",
)
NAMES: Final = (
    *("1", "2", "3", "4", "a", "b.py", "c.py", "d", ".env", "*", "x y", "k;rm", "e.pem", "\u2028", "é", "[redacted]"),
    *("%2e", "'", '"'),
)
PATHS: Final = st.builds(lambda folder, name: f"{folder}/{name}", st.sampled_from(FOLDERS), st.sampled_from(NAMES))
WORDS: Final = st.sampled_from(
    [
        "git",
        "push",
        "status",
        "rm",
        "-rf",
        "--force",
        "sh",
        "-c",
        "x",
        "a/b",
        "|",
        ";",
        "$(id)",
        "main",
        "*",
        "env",
        "'",
    ]
)
LINES: Final = st.lists(WORDS, min_size=1, max_size=5).map(" ".join)
HOSTS: Final = st.sampled_from(
    ["a.example.com", "b.example.com", "c.example.com", "example.com", "x.github.io", "10.0.0.1", "a@evil.example", ""]
)
CALLS: Final = st.one_of(
    st.builds(lambda path: ("read_file", {"path": path}), PATHS),
    st.builds(
        lambda path, text: ("write_file", {"path": path, "content": text}), PATHS, st.sampled_from(["", "x", "y"])
    ),
    st.builds(lambda one, two: ("move", {"source": one, "destination": two}), PATHS, PATHS),
    st.builds(lambda command: ("run", {"command": command}), LINES),
    st.builds(
        lambda host, page: ("fetch", {"url": f"https://{host}/{page}"}), HOSTS, st.sampled_from(["", "?x", "\\"])
    ),
    st.builds(lambda text: ("query", {"sql": text}), LINES),
    st.builds(lambda number: ("scale", {"n": number}), st.integers(0, 3)),
    st.builds(lambda path: ("resources/read", {"uri": f"file://{path}"}), PATHS),
)
DECISIONS: Final = st.sampled_from(["allow"] * 6 + ["deny", "deny", "asked-allow", "asked-deny"])
SERVERS: Final = st.sampled_from(["one", "two", "a b"])


@given(st.lists(st.tuples(CALLS, DECISIONS, SERVERS), min_size=1, max_size=60))
def test_nothing_that_was_denied_or_asked_about_is_allowed_and_the_file_says_what_was_judged(
    drawn: list[tuple[tuple[str, dict[str, Any]], str, str]],
) -> None:
    observations = observed(
        [
            line(tool, decision, arguments=arguments, server=server, **({"method": tool} if "/" in tool else {}))
            for (tool, arguments), decision, server in drawn
        ]
    )
    proposal = propose(observations)
    decided = decide(proposal.settings)
    for (tool, arguments), decision, server in drawn:
        if decision != "allow":
            assert decided((server, tool, arguments)) != "allow", proposal.settings.allow
    table = tomllib.loads(toml_of(proposal, observations, ["audit.jsonl"]))["permissions"]
    settings = proposal.settings
    assert (tuple(table.get("deny", ())), tuple(table.get("ask", ())), tuple(table.get("allow", ()))) == (
        settings.deny,
        settings.ask,
        settings.allow,
    )
