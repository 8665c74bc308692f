"""Whoever chooses names and arguments leaves no comment and no string, widens no rule, and gets no secret printed."""

from __future__ import annotations

import tomllib

import pytest

from tests.support.learning import learned, line, reads, rules, runs, text

ENDS = [
    '"',
    "'",
    '"""',
    "\n",
    "\r",
    "\u2028",
    "\x85",
    "\x0b",
    "\\",
    '", "*',
    '"]\nallow = ["*"]\n#',
    "]",
    "#",
    "\x1b[2J",
]


@pytest.mark.parametrize("end", ENDS)
def test_no_text_ends_its_string_or_its_comment(end: str) -> None:
    hostile = f"/srv/app/x{end}y"
    lines = [
        *reads(hostile, *(f"/srv/app/{at}" for at in range(3)), agent=f"a{end}b", user=f"u{end}"),
        *reads(hostile, tool=f"tool{end}", server=f"s{end}"),
        *reads(hostile, decision="deny", tool="cat_file"),
        *runs(f"echo {end}", decision="asked-allow"),
        line("fetch", arguments={"url": f"https://a.example/{end}", "note": end}),
        line("t", arguments={end: end}),
    ]
    printed = text([*lines])
    table = tomllib.loads(printed)["permissions"]
    assert set(table) <= {"default", "unreadable", "deny", "ask", "allow"}
    assert table["default"] == "deny"
    assert "*" not in table.get("allow", [])
    assert all(character == "\n" or character.isprintable() for character in printed)
    assert all(not row or row[0] in "#[]dua" or row.startswith("    ") for row in printed.split("\n"))


@pytest.mark.parametrize("star", ["/srv/*", "/*", "*", "/srv/app/**", "domain:*", "path:/*", "**/*"])
def test_a_star_in_an_argument_is_no_wildcard_in_a_rule(star: str) -> None:
    for tool, key in (("read_file", "path"), ("fetch", "url"), ("run", "command"), ("find", "text")):
        allowed = [line(tool, arguments={key: star})] * 30
        denied = [line(tool, "deny", arguments={key: "/srv/secret"})]
        assert not any("*" in rule for rule in rules([*allowed, *denied]) if rule.startswith("allow"))


@pytest.mark.parametrize(
    "name", ["*", "read_*", "a|b", "x(y)", "x y", "t[ab]", "resources/read", "", "\ud800", "x" * 500]
)
def test_a_name_that_rules_read_as_something_else_is_not_learned(name: str) -> None:
    if name == "resources/read":
        assert rules([line(name, arguments={"other": 1})]) in ([], ["allow resources/read"])
        return
    lines = [line(name.encode(errors="replace").decode(), arguments={"path": "/a"})]
    assert not [rule for rule in rules([*lines]) if rule != f"allow {name}(/a)"]


@pytest.mark.parametrize("sign", ["\u2028", "\u202e", "\x7f", "\u200b", "\ud800"])
def test_a_place_whose_name_nobody_can_read_is_not_opened(sign: str) -> None:
    lines = [*reads(*(f"/srv/a{sign}b/{at}" for at in range(9))), *reads(*(f"/srv/app/{at}" for at in range(9)))]
    assert tomllib.loads(text(lines))["permissions"]["allow"] == ["read_file(/srv/app/*)"]


def test_a_tool_that_imitates_another_server_is_not_allowed() -> None:
    assert rules([line("mcp__git__push")]) == []
    both = ["allow mcp__files__mcp__git__push", "allow mcp__git__status"]
    assert rules([line("mcp__git__push"), line("status", server="git")]) == both


def test_planted_calls_with_other_arguments_make_no_rule_about_the_whole_tool() -> None:
    seen = reads(*(f"/srv/app/{at}" for at in range(3)))
    planted = [line("read_file", arguments={"path": "/etc/x", "also": f"/etc/{at}"}) for at in range(200)]
    planted += [line("read_file", arguments={"other": at}) for at in range(200)]
    assert rules([*seen, *planted]) == ["allow read_file(/srv/app/*)"]


def test_planted_values_do_not_turn_a_shell_or_an_address_into_something_that_is_allowed_as_a_whole() -> None:
    planted = [line("run", arguments={"command": "ls", "n": {"x": at}}) for at in range(50)]
    assert rules([*planted]) == ["ask run"]
    planted = [line("fetch", arguments={"url": f"file:///{at}", "x": "y"}) for at in range(50)]
    assert rules([*planted]) == ["ask fetch"]


SECRETS = ["ghp_" + "a1B2c3D4e5" * 4, "AKIAIOSFODNN7EXAMPLE", "sk-ant-api03-" + "x9Y8" * 10]


@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_are_neither_in_rules_nor_in_examples(secret: str) -> None:
    lines = [
        *runs(f"deploy --token {secret}", f"curl -H 'Authorization: Bearer {secret}' x", "make test"),
        *runs(f"login {secret}", decision="deny"),
        *reads(f"/srv/{secret}/a", f"/srv/{secret}/b", f"/srv/{secret}/c"),
        line("t", arguments={"password": "hunter2hunter2", "key": secret}),
    ]
    printed = text([*lines])
    assert secret not in printed
    assert "hunter2" not in printed
    assert "run(make test)" in printed
    assert any("looks like a secret" in remark for remark in learned([*lines]).remarks)


def test_a_rule_that_would_allow_a_recorded_denial_is_never_proposed() -> None:
    """Spelled so that the tree of folders does not see it, but an allow rule might cover it."""
    seen = reads(*(f"/srv/app/f{at}" for at in range(9)))
    for denied in ("/srv/app//x", "/srv/app/./x", "/srv/app/x/", "/srv/app/x y", "/srv/app/\u00e9"):
        found = learned([*seen, *reads(denied, decision="deny")])
        assert found.denied == 1
        assert not any(rule.rule == "read_file(/srv/app/*)" for rule in found.of("allow")), denied
