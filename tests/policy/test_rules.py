"""Permission rules: which calls are denied, need approval or are allowed, in the spelling of attackers and models."""

from __future__ import annotations

import json
import tracemalloc
from time import process_time
from typing import Final, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hookproxy.jsonrpc.normalize import normalize
from hookproxy.model.hooks import Permission
from hookproxy.model.settings import Settings
from hookproxy.policy import rules
from hookproxy.policy.matchers import allow_rule
from hookproxy.policy.rules import RuleDecision, Rules

ALLOW, ASK, DENY = Permission.ALLOW, Permission.ASK, Permission.DENY


def configured(*, deny: str = "", ask: str = "", allow: str = "", hide_denied: bool = True) -> Rules:
    """At most one rule of each kind."""
    kinds = [(text,) if text else () for text in (allow, ask, deny)]
    return Rules.of(Settings(allow=kinds[0], ask=kinds[1], deny=kinds[2], hide_denied=hide_denied))


def names(tool: str) -> tuple[str, str]:
    return (tool, f"mcp__files__{tool}")


def denies(rule: str, tool: str, **arguments: object) -> bool:
    return is_ruling(configured(deny=rule).judge(names(tool), json.dumps(arguments).encode()), DENY, rule)


def is_ruling(decision: RuleDecision | None, permission: Permission, rule: str) -> bool:
    """This rule decides, and says why it applies."""
    return decision is not None and (decision.permission, decision.rule) == (permission, rule) and bool(decision.reason)


# --- which tools ---


@pytest.mark.parametrize(
    ("rule", "meant", "other"),
    [
        ("delete_*", ["delete_file", "delete_", "Delete_file", " delete_x"], ["undelete_file", "delete"]),
        ("mcp__files__delete_*", ["delete_x"], ["read"]),
        ("mcp__files", ["delete_x", "read"], []),
        ("mcp__other", [], ["delete_x"]),
        ("mcp__*__read", ["read"], ["write"]),
        ("get_?", ["get_a"], ["get_ab", "get_"]),
        ("get_[ab]", ["get_a"], ["get_c"]),
        ("get_[!ab]", ["get_c"], ["get_a"]),
        ("files.read", ["files.read"], ["files_read"]),
        ("*", ["anything at all", ""], []),
    ],
)
def test_a_rule_is_a_glob_over_the_names_of_a_tool(rule: str, meant: list[str], other: list[str]) -> None:
    one = configured(deny=rule)
    assert [tool for tool in [*meant, *other] if one.judge(names(tool), b"{}")] == meant
    assert [tool for tool in [*meant, *other] if one.concerns(names(tool))] == meant
    assert [tool for tool in [*meant, *other] if one.hides(names(tool))] == meant


def test_a_rule_is_tried_on_every_name() -> None:
    run = ("execute", "mcp__x__execute", "Bash")
    one = configured(deny="Bash(rm *)")
    assert one.concerns(run)
    assert is_ruling(one.judge(run, b'{"command":"rm -rf /"}'), DENY, "Bash(rm *)")
    assert one.judge(run[:2], b'{"command":"rm -rf /"}') is None


# --- which of the rules counts ---


@pytest.mark.parametrize(
    ("deny", "ask", "allow", "permission"),
    [
        ("a*", "a*", "a*", DENY),
        ("b", "a*", "a*", ASK),
        ("b", "b", "a*", ALLOW),
        ("b", "b", "b", None),
        ("a(x*)", "b", "a", DENY),
        ("a(y*)", "a(x*)", "a", ASK),
        ("a(y*)", "a(z*)", "a(x*)", ALLOW),
    ],
)
def test_deny_beats_ask_beats_allow(deny: str, ask: str, allow: str, permission: Permission | None) -> None:
    ruling = configured(deny=deny, ask=ask, allow=allow).judge(["a"], b'{"text":"xx"}')
    assert (ruling.permission if ruling else None) == permission


def test_the_first_rule_of_its_kind_is_reported_as_written() -> None:
    several = Rules.of(Settings(deny=("b", " a(x) ", "a*"), ask=("a",)))
    assert several.judge(["a"], b'{"n":"x"}') == RuleDecision(DENY, "a(x)", reason="one of the arguments matches it")
    assert is_ruling(several.judge(["a"], b'{"n":"y"}'), DENY, "a*")
    assert RuleDecision(ASK, "a(x)").by("hookproxy.toml") == "the permission rule a(x) of hookproxy.toml"


def test_only_deny_and_ask_rules_concern_a_tool_and_only_whole_denials_hide_it() -> None:
    assert not configured(allow="a").concerns(["a"])
    assert configured(ask="a(x)").concerns(["a"])
    assert not configured(ask="a").hides(["a"])
    assert not configured(deny="a(rm *)").hides(["a"])
    assert configured(deny="a(rm *)").concerns(["a"])
    assert configured(deny="a(*)").hides(["a"])
    assert configured(deny="a()").hides(["a"])
    assert not configured(deny="a", hide_denied=False).hides(["a"])


def test_rules_are_true_if_there_are_any() -> None:
    assert not Rules.of(Settings())
    assert configured(allow="a")
    assert configured(ask="a")
    assert configured(deny="a")


# --- arguments that are command lines: tests/test_commandline.py has their spellings ---


@pytest.mark.parametrize("key", ["command", "cmd", "Command", "shell_command", "commandLine", "script"])
def test_a_command_line_is_judged_in_any_argument(key: str) -> None:
    assert denies("run(rm *)", "run", **{"note": "harmless", key: "ls; \\rm x"})
    assert not denies("run(rm *)", "run", **{"note": "harmless", key: "ls; cat x"})


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "ls", "cmd": "rm -rf /"},
        {"command": "ls", "text": "rm -rf /"},
        {"command": "ls", "argv": ["rm", "-rf", "/"]},
        {"command": "rm", "args": ["-rf", "/"]},
        {"command": ["rm", "-rf", "/"]},
        {"command": {"what": "ls"}},
        {"command": {"program": "rm", "args": ["x"]}},
        {"command": [None]},
        {"argv": ["rm", "-rf", "/"]},
        {"options": {"deep": [{"line": "rm -rf /"}]}},
        {"text": "ls; rm -rf /"},
        {"n": None},
        {},
    ],
)
def test_another_argument_or_another_type_of_it_does_not_bypass_a_rule(arguments: dict[str, object]) -> None:
    assert denies("run(rm *)", "run", **arguments)


LISTS: Final[list[dict[str, object]]] = [
    {"command": "git", "args": ["push", "--force"]},
    {"command": "git", "arguments": ["push", "--force"]},
    {"command": "git", "argv": ["push", "--force"]},
    {"command": "/usr/bin/git", "args": ["-C", "x", "push"]},
    {"command": "git push", "args": ["--force"]},
    {"command": "env", "args": ["A=1", "git", "push"]},
    {"command": "sh", "args": ["-c", "git push"]},
    {"program": "git", "args": ["push"]},
    {"executable": "bash", "args": ["-c", "cd x && git push"]},
    {"command": ["git", "push"]},
    {"command": ["env", "git", "push"]},
    {"command": ["bash", "-lc", "git push"]},
    {"command": ["git push", "ls"]},
    {"cmd": ["git", "push"], "n": 1},
    {"argv": ["nice", "git", "push"]},
    {"args": ["nice", "git", "push"]},
    {"commands": ["ls", "git push --force"]},
    {"commands": ["git", "push", "--force"]},
    {"commands": [["ls"], ["git", "push"]]},
    {"commands": [{"command": "git", "args": ["push"]}]},
    {"commands": {"command": "git push"}},
]
"""Commands in parts, of which each runs `git push`."""


@pytest.mark.parametrize("arguments", LISTS, ids=json.dumps)
def test_a_list_is_a_command_too(arguments: dict[str, object]) -> None:
    assert denies("run(git push:*)", "run", **arguments)
    assert not denies("run(git pull:*)", "run", **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "git", "args": ["commit", "-m", "do not git push"]},
        {"command": "git", "args": ["commit", "-m", "x; git push"]},
        {"command": ["echo", "do git push"]},
        {"command": ["git", "log", "--grep", "push"]},
        {"commands": ["git status", "git log"]},
        {"command": "ls", "options": [{"deep": True}], "params": {"x": "y"}},
        {"args": [{"name": "x"}, {"name": "y"}]},
        {"args": [1, 2]},
        {"command": "ls", "args": []},
        {"command": "ls", "args": None},
    ],
    ids=json.dumps,
)
def test_a_list_that_runs_something_else_is_not_denied(arguments: dict[str, object]) -> None:
    assert not denies("run(git push:*)", "run", **arguments)


def test_a_program_and_its_list_of_arguments_are_one_command() -> None:
    assert denies("run(git push:*)", "run", program="git", args=["push", "origin"])
    assert denies("run(git push:*)", "run", args=["push"], x="y", command="git")
    assert not denies("run(git push:*)", "run", program="git", args=["status"])


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "ls -la"},
        {"command": "ls", "description": "the `rm` of $(x)"},
        {"text": "the rm of x"},
        {"argv": ["ls", "$(x)"], "wait": True},
    ],
)
def test_an_unrelated_call_is_not_denied(arguments: dict[str, object]) -> None:
    assert not denies("run(rm *)", "run", **arguments)


def test_in_claude_codes_own_tools_only_the_judged_argument_counts() -> None:
    assert not denies("Bash(rm *)", "Bash", description="rm the rest", command="ls")
    assert denies("Bash(rm *)", "Bash", command="ls", Command="rm x")
    assert denies("Bash(rm *)", "Bash", cmd="rm x")
    assert not denies("Write(/etc/*)", "Write", file_path="/tmp/x", content="/etc/passwd")
    assert denies("Write(/etc/*)", "Write", path="/etc/passwd")
    assert not denies("Write(/etc/*)", "Write", path="/tmp/x", content="`code` and ../x")


def test_an_allow_rule_covers_an_own_tool_of_the_agent_by_its_judged_argument_alone() -> None:
    bash = configured(allow="Bash(git *)").about(("Bash",))
    described = b'{"command":"git status","description":"rm -rf x"}'
    assert bash.judge(described, own_tool=True) == RuleDecision(ALLOW, "Bash(git *)")
    assert bash.judge(described) is None
    for other in (b'{"command":"rm x","description":"git x"}', b'{"description":"git status"}', b"{}"):
        assert bash.judge(other, own_tool=True) is None
    other_tool = configured(allow="Grep(src*)").about(("Grep",))
    assert other_tool.judge(b'{"pattern":"src"}', own_tool=True) is not None
    assert other_tool.judge(b'{"pattern":"src","path":"/etc"}', own_tool=True) is None


@pytest.mark.parametrize("domain", ["b\u00fccher.example", "xn--bcher-kva.example"])
@pytest.mark.parametrize(
    "host", ["b\u00fccher.example", "xn--bcher-kva.example", "BU\u0308CHER.example", "a.XN--bcher-KVA\u3002example"]
)
def test_a_rule_about_a_domain_holds_for_both_of_its_spellings(domain: str, host: str) -> None:
    assert denies(f"fetch(domain:{domain})", "fetch", url=f"https://{host}/x")
    assert not denies(f"fetch(domain:{domain})", "fetch", url="https://bucher.example/")


def test_a_label_that_is_not_punycode_is_the_text_that_it_is() -> None:
    assert denies("fetch(domain:xn--999999999.example)", "fetch", url="https://xn--999999999.example/")


# --- arguments that are paths, addresses, texts ---


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "//etc/passwd",
        "/etc/./passwd",
        "/tmp/../etc/passwd",
        "/tmp/\n/../../etc/passwd",
        "etc/passwd",
        "../../../etc/passwd",
        "x/../../etc",
        "file:///etc/passwd",
        "FILE://%2Fetc/passwd",
        "\\etc\\passwd",
        " /etc/passwd ",
    ],
)
def test_a_path_is_judged_in_any_spelling(path: str) -> None:
    assert denies("write_file(/etc/*)", "write_file", content="x", path=path)


@pytest.mark.parametrize("path", ["/tmp/etc", "/etcetera/x", "/home/u/a"])
def test_another_path_is_not_denied(path: str) -> None:
    assert not denies("write_file(/etc/*)", "write_file", content="see ./x\n/etc/passwd\n", path=path)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/x",
        "https://docs.example.com",
        "HTTPS://EXAMPLE.COM:8443/",
        "https://user@example.com/",
        "https://example.com./",
        "https://ex%61mple.com/",
        "https://example\uff0ecom/",  # a wide full stop
        "https://example.com/" + "x" * 9000,
    ],
)
def test_a_domain_is_judged_in_any_spelling(url: str) -> None:
    assert denies("fetch(domain:example.com)", "fetch", url=url)


def test_another_domain_is_not_denied() -> None:
    assert not denies("fetch(domain:example.com)", "fetch", url="https://notexample.com/")
    assert not denies("fetch(domain:example.com)", "fetch", url="https://example.org/")


FIRST_FOLDER: Final = [
    ".env",
    "./.env",
    ".//.env",
    "/.env",
    "/srv/x/.env",
    "a/b/.env",
    "a/../.env",
    "~/.env",
    "a\\.env",
]


@pytest.mark.parametrize("rule", ["**/.env", "./**/.env", "/**/.env", "**/**/.env", "***/.env", "**/" * 9 + ".env"])
@pytest.mark.parametrize("path", FIRST_FOLDER)
@pytest.mark.parametrize(("tool", "argument"), [("Write", "file_path"), ("Read", "file_path"), ("put", "where")])
def test_two_stars_and_a_slash_stand_for_no_folder_as_well(rule: str, path: str, tool: str, argument: str) -> None:
    assert denies(f"{tool}({rule})", tool, **{argument: path})
    assert not denies(f"{tool}({rule})", tool, **{argument: path + "x"})


@pytest.mark.parametrize(
    "path", ["../.env", "../../x/.env", "x/../../.env", "..\\.env", "../.env/", "../x/../.env", "../.ENV"]
)
def test_a_rule_about_a_name_holds_in_folders_above(path: str) -> None:
    assert denies("Read(**/.env)", "Read", file_path=path)
    assert denies("Read(**/.e*)", "Read", file_path=path)


@pytest.mark.parametrize("path", ["..", "../x", "../../src/x.py", "../.env.d"])
def test_other_names_in_folders_above_are_not_denied_by_a_rule_about_a_name(path: str) -> None:
    assert not denies("Read(**/.env)", "Read", file_path=path)
    assert not denies("Read(**/.env)", "LS", path=path)
    assert denies("Read(src/.env)", "Read", file_path=path), "only the server knows which folder that is"


def test_a_path_is_judged_up_to_where_a_system_call_stops_to_read() -> None:
    for path in ("/srv/.env\0", "/srv/.env\0.txt", "\\srv\\.env\0x", "file:///srv/.env%00x"):
        assert denies("Write(**/.env)", "Write", file_path=path, content="")
    assert not denies("Write(**/.env)", "Write", file_path="/srv/a\0b", content="")


def test_two_stars_and_a_slash_in_the_middle_stand_for_no_folder_as_well() -> None:
    for path in ("src/.env", "./src/.env", "/srv/src/.env", "src/a/.env", "src/a/b/.env"):
        assert denies("Write(src/**/.env)", "Write", file_path=path, content="")
    assert denies("Write(**/a/**/b/**/.env)", "Write", file_path="a/b/.env")
    assert not denies("Write(src/**/.env)", "Write", file_path=".env", content="")
    assert denies("Write(**/secrets/**)", "Write", file_path="secrets/x", content="")


def test_a_text_is_judged_as_a_whole_and_in_its_parts() -> None:
    assert denies("query(DROP *)", "query", sql="select 1; DROP TABLE x")
    assert denies("open(8080)", "open", port=8080)
    assert denies("open(true)", "open", wide=True)
    assert denies("send(secret*)", "send", to="bob", text="secret plan")
    assert not denies("send(secret*)", "send", to="bob", text="a secret", times=1)


def test_keys_are_judged_like_texts() -> None:
    assert denies("write_files(/etc/*)", "write_files", files={"/etc/passwd": "x"})
    assert denies("write_files(/etc/*)", "write_files", **{"/etc/passwd": "x"})
    assert denies("run(rm:*)", "run", commands=[{"rm -rf /": True}])
    assert denies("fetch(domain:x.org)", "fetch", **{"https://x.org": "x"})
    assert not denies("write_files(/etc/*)", "write_files", files={"/tmp/passwd": "x"})
    assert not denies("write_files(etc*/x)", "write_files", etc="x")


@pytest.mark.parametrize("rule", ["caf\u00e9", "cafe\u0301", "CAF\u00c9"])
@pytest.mark.parametrize("spelled", ["caf\u00e9", "cafe\u0301", "Cafe\u0301"])
def test_how_the_characters_of_a_path_are_composed_hides_nothing(rule: str, spelled: str) -> None:
    assert denies(f"write(/data/{rule}/*)", "write", path=f"/data/{spelled}/x")
    assert denies("write(/data/cafe*)", "write", path="/data/cafe\u0301")
    assert not denies(f"write(/data/{rule}/*)", "write", path="/data/cafe/x")


def test_case_and_blanks_around_names_and_paths_hide_nothing_and_allow_nothing() -> None:
    for name in ("Wipe_x", " wipe_x", "wipe_x ", "WIPE_X\n"):
        assert configured(deny="wipe_*").judge(names(name), b"{}")
        assert configured(deny="wipe_*").hides(names(name))
        assert configured(ask="WIPE_*").concerns(names(name))
        assert configured(allow="wipe_x").judge(names(name), b"{}") is None
    assert denies("write_file(/etc/*)", "write_file", path="/ETC/passwd")
    assert denies("write_file(/Etc/*)", "write_file", path=" /eTC/passwd")
    assert configured(allow="read(/etc/*)").judge(["read"], b'{"path":"/ETC/x"}') is None


def test_a_servers_name_is_written_as_it_is_or_as_claude_code_composes_it() -> None:
    composed = ("wipe", "mcp__my_server__wipe")
    for rule in ("mcp__my.server__wipe", "mcp__my.server", "mcp__my_server__w*", "mcp__m*.server__[vw]ipe"):
        assert configured(deny=rule).judge(composed, b"{}")
    assert configured(deny="mcp__x__a.b").judge(("a.b", "mcp__x__a.b"), b"{}")


def test_no_tool_is_allowed_because_its_name_imitates_another_server() -> None:
    posing = ("mcp__github__wipe", "mcp__evil__mcp__github__wipe")
    for rule in ("mcp__github", "mcp__github__wipe"):
        assert configured(allow=rule).judge(posing, b"{}") is None
        assert configured(deny=rule).judge(posing, b"{}")
    for rule in ("*", "mcp__evil", "mcp__evil__mcp__github__wipe"):
        assert configured(allow=rule).judge(posing, b"{}")


# --- calls that cannot be judged ---


@pytest.mark.parametrize(
    "arguments",
    [
        b"",
        b"[]",
        b"nonsense",
        b'{"text":"\\ud800"}',
        b'{"text":1,"text":"ls"}',
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":[' + b"1," * 2000 + b"1]}",
        json.dumps({str(number): ["x"] if number % 2 else "x" for number in range(200)}).encode(),
        json.dumps({"text": "\n".join(map(str, range(20_000)))}).encode(),
        json.dumps({"command": "\n".join(map(str, range(20_000)))}).encode(),
    ],
)
def test_deny_and_ask_rules_match_what_cannot_be_judged_and_allow_rules_never_do(arguments: bytes) -> None:
    assert is_ruling(configured(deny="run(rm *)").judge(["run"], arguments), DENY, "run(rm *)")
    assert is_ruling(configured(ask="run(rm *)").judge(["run"], arguments), ASK, "run(rm *)")
    assert configured(allow="run(rm *)").judge(["run"], arguments) is None
    assert configured(deny="run(rm *)").judge(["other"], arguments) is None


def test_long_arguments_take_no_time() -> None:
    """Each of these is read once: a rule with many stars must not be a way to stop everything."""
    long = "git a push x " * 50_000
    for rule in ("run(git * push * y * z)", "run(*a*b*c*)", "run(git * y:*)", "run(domain:*.a.*.b)", "run(a/*b*c)"):
        one = configured(deny=rule, allow=rule)
        for key in ("command", "text"):
            one.judge(["run"], json.dumps({key: long}).encode())


# --- how much is judged ---

SHORT = {f"a{number}": "x" for number in range(500)}


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["run(/etc/*)", "run(rm:*)", "run(a*b*c)", "run(domain:*.x.org)"])
@pytest.mark.parametrize(
    "arguments",
    [
        {**SHORT, "list": ["y" * 3_000_000]},
        {"list": ["y"] * 1_000_000},
        {f"k{number}": 1 for number in range(300_000)},
        {"command": ";".join("sudo " + "-a b " * 60 + str(number) for number in range(3900))},
        {"command": ";".join("xargs " + "env " * 250 + str(number) for number in range(900))},
        {"text": "y" * 20_000_000},
    ],
)
def test_a_call_takes_little_time_and_memory_and_else_counts_as_a_match(
    rule: str, arguments: dict[str, object]
) -> None:
    guard, raw = configured(deny=rule, allow=rule), json.dumps(arguments, separators=(",", ":")).encode()
    tracemalloc.start()
    start = process_time()
    ruling = guard.judge(["run"], raw)
    took = process_time() - start
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert is_ruling(ruling, DENY, rule)
    assert took < 1  # 0.05 where nobody counts the memory
    assert peak < 5 * len(raw)


def test_a_long_text_beside_a_path_does_not_match_a_rule_about_paths() -> None:
    for content in ("// a comment\n" * 20_000, "y" * 500_000):
        assert not denies("write_file(/etc/*)", "write_file", path="/tmp/x", content=content)
        assert not denies("write_files(/etc/*)", "write_files", files=[{"path": "/tmp/x", "text": content[:200_000]}])
    for path in (
        "/etc/" + "./" * 50_000 + "passwd",
        "/tmp/" + "./" * 50_000 + "../etc",
        "/tmp/" + "./" * 3000 + "../etc/x",
    ):
        assert denies("write_file(/etc/*)", "write_file", path=path)
        assert denies("write_file(/etc/*)", "write_file", files=[path])


# --- what is no rule ---


@pytest.mark.parametrize("rule", ["", "Bash(", "Bash Edit", "(a)", "Bash(a) && Edit(b)", "Bash(a), Edit(b)"])
def test_a_text_that_is_not_a_rule_is_an_error(rule: str) -> None:
    with pytest.raises(ValueError, match="is not a permission rule"):
        Rules.of(Settings(ask=(rule,)))


@pytest.mark.parametrize("rule", ["a|b", "^a", "a$", "a,b", r"\w", "a+"])
def test_a_name_that_is_meant_as_a_regular_expression_is_an_error(rule: str) -> None:
    with pytest.raises(ValueError, match="has no meaning in a tool's name"):
        rules.parsed(rule)
    assert rules.parsed(f"x({rule})").specifier == rule


# --- laws ---

WORDS = st.sampled_from(["rm", "git", "push", "-x", "a b", "/etc/x", ";", "&&", "$X", "`", "'", "\\", "\n", "x=1", "*"])
TEXTS = st.lists(WORDS, max_size=6).map(" ".join) | st.text(max_size=8)
KEYS = st.sampled_from(["command", "cmd", "file_path", "url", "text", "x"])
VALUES = st.recursive(
    TEXTS | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=4,
)
ARGUMENTS = st.dictionaries(KEYS, VALUES, max_size=4)
TOOLS = st.sampled_from(["Bash", "Edit", "WebFetch", "run"])
WANTED = st.sampled_from(
    [
        *("rm *", "rm:*", "git push:*", "git push", "*", "*x*", "/etc/*", "a*", "domain:x.org", "git * x", ""),
        *("/bin/rm *", "file_path:/etc/*", "url:domain:x.org", "text:/a/*"),
    ]
)


@given(TOOLS, WANTED | TEXTS.map(lambda text: text.replace("(", "").strip() or "x"), ARGUMENTS)
def test_a_deny_rule_covers_every_call_that_the_same_allow_rule_covers(
    tool: str, wanted: str, arguments: dict[str, object]
) -> None:
    rule, raw = f"{tool}({wanted})", normalize(json.dumps(arguments).encode())
    if allow_rule(rule)(tool, raw):
        assert configured(deny=rule).judge([tool], raw)


@given(
    TOOLS, st.sampled_from(["rm", "rm x", "rm -rf /"]), st.sampled_from([";", "&&", "||", "|", "\n", "&", " & "]), TEXTS
)
def test_words_before_or_after_a_command_do_not_hide_it(tool: str, command: str, separator: str, other: str) -> None:
    guard = configured(deny="run(rm *)")
    for line in (f"{other}{separator}{command}", f"{command}{separator}{other}"):
        assert guard.judge(["run"], normalize(json.dumps({"command": line}).encode()))


@given(st.binary(max_size=20) | ARGUMENTS.map(lambda value: json.dumps(value).encode()), TOOLS, WANTED)
def test_no_arguments_raise_an_error_and_no_allow_rule_overrides_a_denial(raw: bytes, tool: str, wanted: str) -> None:
    rule = f"{tool}({wanted})"
    denied = configured(deny=rule).judge([tool], raw)
    ruling = configured(deny=rule, ask="*", allow="*").judge([tool], raw)
    if denied and denied.permission is DENY:
        assert ruling == denied
    else:  # no rule applies, or one may apply to what cannot be read
        assert ruling is not None
        assert ruling.permission is ASK


@pytest.mark.parametrize(
    ("rule", "arguments", "reason"),
    [
        ("tool", {}, "it is about every call of this tool"),
        ("tool(rm *)", {"command": "ls; rm x"}, "its argument 'command' may run such a command"),
        ("tool(rm *)", {"cmd": ["rm"]}, "its argument 'cmd' may run such a command"),
        ("tool(rm *)", {"cmd": [None]}, "its argument 'cmd' is not a text, so the command in it cannot be read"),
        ("tool(/etc/*)", {"path": "/etc/x"}, "one of the arguments matches it"),
        ("tool(/etc/*)", {"path": "/" + 70_000 * "x"}, "its argument 'path' may be such a path"),
        ("tool(path:/etc/*)", {"note": None}, "the call has no argument on which it could be tried, so it may not run"),
        ("tool(x)", {str(n): "y" for n in range(2000)}, "the arguments are too large, too many or too unusual to be"),
    ],
)
def test_a_ruling_says_why_the_rule_applies(rule: str, arguments: dict[str, object], reason: str) -> None:
    ruling = configured(deny=rule).judge(["tool"], json.dumps(arguments).encode())
    assert ruling is not None
    assert ruling.reason.startswith(reason)


def test_a_ruling_has_the_place_of_its_rule() -> None:
    settings = Settings(
        deny=("a",), ask=("b",), rule_places={"deny a": "x.toml:2: deny[0]", "ask b": "x.toml:3: ask[0]"}
    )
    rulings = [Rules.of(settings).judge([tool], b"{}") for tool in "ab"]
    assert [one.at for one in rulings if one] == ["x.toml:2: deny[0]", "x.toml:3: ask[0]"]


@pytest.mark.parametrize(
    "rule", ["write(path:/etc/*)", "write(file_path:/etc/*)", "write(path:~/x/*)", "write(path:./x/*)"]
)
def test_the_name_of_an_argument_before_a_path_does_not_disable_the_rule(rule: str) -> None:
    path = rule.partition(":")[2][:-2] + "passwd"
    assert denies(rule, "write", path=path)
    assert not denies(rule, "write", path="/tmp/passwd")


def test_the_rules_about_a_tool_are_those_that_name_it() -> None:
    configured_rules = configured(deny="delete_*", ask="*(x)", allow="read_*")
    assert configured_rules.about(names("delete_file")).judge(b"{}") == configured_rules.judge(
        names("delete_file"), b"{}"
    )
    assert not configured(deny="delete_*", ask="write(x)", allow="read_*").about(names("list"))


# --- what no rule is about ---


def by_default(permission: Literal["allow", "ask", "deny"], **settings: object) -> Rules:
    return Rules.of(replace(Settings(default_permission=permission), **settings))


@pytest.mark.parametrize("permission", ["ask", "deny"])
def test_the_default_is_about_tools_and_about_the_methods_that_a_rule_names(permission: Literal["ask", "deny"]) -> None:
    default = Permission[permission.upper()]
    assert by_default(permission).default_for(("x",)) is default
    assert by_default(permission).default_for(("x", "Bash")) is default
    assert by_default(permission).default_for(()) is default
    assert by_default(permission).default_for(("resources/read", "Read")) is ALLOW
    assert by_default(permission, deny=("Read", "x")).default_for(("resources/read", "Read")) is ALLOW
    for kind in ("deny", "ask", "allow"):
        named = by_default(permission, **{kind: ("x", "resources/*")})
        assert named.default_for(("resources/read", "Read")) is default, kind
        assert named.default_for(("prompts/get",)) is ALLOW, kind


def test_a_default_that_allows_is_one_for_everything() -> None:
    rules_ = by_default("allow", deny=("resources/*", "x"))
    assert [rules_.default_for(names_) for names_ in (("y",), ("resources/read",), ("prompts/get",), ())] == [ALLOW] * 4
    assert not rules_.concerns(("y",))
    assert not rules_.concerns(("prompts/get",))
    assert rules_.concerns(("x",))


@pytest.mark.parametrize("permission", ["ask", "deny"])
def test_another_default_concerns_every_tool_and_no_method_that_is_not_named(
    permission: Literal["ask", "deny"],
) -> None:
    assert by_default(permission).concerns(("y",))
    assert not by_default(permission).concerns(("prompts/get",))
    assert by_default(permission, allow=("prompts/get",)).concerns(("prompts/get",))


@pytest.mark.parametrize(("permission", "decided"), [("ask", ASK), ("deny", DENY)])
def test_a_call_that_no_rule_is_about_is_decided_by_the_default_as_written(
    permission: Literal["ask", "deny"], decided: Permission
) -> None:
    decision = by_default(permission, rule_places={"default": "hookproxy.toml:7: default"}).by_default()
    assert decision == RuleDecision(
        decided,
        f'default = "{permission}"',
        reason="no rule allows it",
        at="hookproxy.toml:7: default",
        is_default=True,
    )


@pytest.mark.parametrize(
    ("permission", "settings", "hidden"),
    [
        ("deny", {}, True),
        ("deny", {"hide_denied": False}, False),
        ("ask", {}, False),
        ("allow", {}, False),
        ("deny", {"ask": ("x",)}, False),
        ("deny", {"ask": ("Bash",)}, False),
        ("deny", {"ask": ("Write", "Read")}, False),
        ("deny", {"ask": ("y",)}, True),
        ("deny", {"deny": ("Bash",)}, True),
        ("deny", {"allow": ("x",)}, False),
        ("deny", {"allow": ("x(a)",)}, False),
        ("deny", {"allow": ("Read",)}, False),
        ("deny", {"allow": ("y",)}, True),
        ("deny", {"allow": ("Bash",)}, True),  # no allow rule for a name that is only good for refusing
        ("deny", {"allow": ("y", "x")}, False),
    ],
)
def test_a_tool_is_hidden_by_the_default_unless_a_person_may_be_asked_or_a_rule_allows_it(
    permission: Literal["allow", "ask", "deny"], settings: dict[str, object], hidden: bool
) -> None:
    found = by_default(permission, **settings).hides_by_default(("x", "Read"), ("x", "Read", "Bash", "Write"))
    assert found is hidden


def test_the_default_hides_by_the_names_that_a_call_may_have() -> None:
    assert not by_default("deny").hides_by_default(("x",), ("prompts/get",))
    assert by_default("deny", deny=("prompts/get",)).hides_by_default(("x",), ("prompts/get",))


def test_rules_about_a_tool_count_as_some_if_there_is_one_of_either_kind() -> None:
    assert not configured(deny="y", allow="y").about(("x",))
    assert configured(deny="x").about(("x",))
    assert configured(allow="x").about(("x",))


def test_a_decision_says_which_rule_it_is_and_where() -> None:
    places = {"deny d": "f:1", "ask a": "f:2", "allow l": "f:3"}
    rules_ = Rules.of(Settings(deny=("d",), ask=("a",), allow=("l",), rule_places=places))
    found = [rules_.judge((name,), b"{}") for name in ("d", "a", "l")]
    assert [(one.rule, one.place, one.at) for one in found if one] == [
        ("d", "", "f:1"),
        ("a", "", "f:2"),
        ("l", "", ""),
    ]
    assert [rule.at for rule in rules_.allow] == ["f:3"]
    assert [rule.at for rule in Rules.of(Settings(allow=("l",))).allow] == [""]
