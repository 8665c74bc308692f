"""Which tools a matcher selects, and which calls a permission rule matches."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.policy import matchers, methods
from hookproxy.policy.globs import path_pattern, path_spellings
from hookproxy.policy.matchers import allow_rule, claude_matcher, is_server, permission_rule, plain_names


@pytest.mark.parametrize("pattern", ["", "*"])
def test_an_empty_matcher_and_a_star_select_all(pattern: str) -> None:
    assert claude_matcher(pattern)("anything at all")


@pytest.mark.parametrize(
    ("pattern", "selected", "left_out"),
    [
        # a name, or a list of names
        ("Edit", ["Edit"], ["NotebookEdit", "edit", "Edit2", ""]),
        ("Edit|Write", ["Edit", "Write"], ["Edit|Write", "EditWrite"]),
        ("Edit , Write,", ["Edit", "Write"], ["", " "]),
        ("read-file", ["read-file"], ["read", "xread-file"]),
        ("mcp__memory", ["mcp__memory"], ["mcp__memory__store"]),
        ("|", [], ["", "|", "a"]),
        # anything else is a regular expression, unanchored and case-sensitive
        ("mcp__memory__.*", ["mcp__memory__store", "xmcp__memory__"], ["mcp__Memory__store"]),
        ("Edit.", ["NotebookEditX"], ["Edit"]),
        ("^Edit$", ["Edit"], ["NotebookEdit", "Edits"]),
        ("^(?!mcp__)", ["Bash"], ["mcp__a__b"]),
        ("(?<=__)delete_", ["mcp__a__delete_x"], ["delete_x"]),
        # what JavaScript spells or means otherwise
        (r"^(?<first>\w)\k<first>", ["aab"], ["abb"]),
        (r"^x$", ["x"], ["x\n"]),
        (r"\$", ["a$"], ["a"]),
        (r"^\d$", ["7"], ["\u0667"]),
        (r"^\w$", ["a"], ["ä"]),
        (r"^[^]$", ["a", "\n"], ["ab"]),
        (r"a[]", [], ["a", "a[]"]),
        (r"^[[a]$", ["[", "a"], ["b"]),
        (r"^[$]$", ["$"], [""]),
        (r"^x{,2}$", ["x{,2}"], ["xx"]),
        (r"^\/$", ["/"], []),
        ("^é+$", ["éé"], ["e"]),
    ],
)
def test_a_matcher_selects_as_in_claude_code(pattern: str, selected: list[str], left_out: list[str]) -> None:
    matches = claude_matcher(pattern)
    assert [name for name in [*selected, *left_out] if matches(name)] == selected


@pytest.mark.parametrize("pattern", ["a(", "[z-a].", "*a", r"(?<=a*)b", "a.{999999999999}", "(?<1>a)"])
def test_a_regular_expression_that_cannot_be_used_is_an_error(pattern: str) -> None:
    with pytest.raises((re.error, OverflowError)):
        claude_matcher(pattern)


@given(st.text())
def test_any_pattern_is_a_matcher_or_an_error(pattern: str) -> None:
    try:
        matches = claude_matcher(pattern)
    except (re.error, OverflowError, RecursionError):
        return
    assert matches("Bash") in (True, False)


def test_plain_names_are_distinguished_from_expressions() -> None:
    assert plain_names("Edit | Write, Read") == ["Edit", "Write", "Read"]
    assert plain_names("mcp__.*") == []


def test_a_server_is_distinguished_from_its_tools() -> None:
    assert is_server("mcp__github")
    assert not is_server("mcp__github__search")
    assert not is_server("github")


def means(rule: str, name: str, **arguments: object) -> bool:
    return permission_rule(rule)(name, json.dumps(arguments).encode())


@pytest.mark.parametrize(
    ("rule", "meant", "other"),
    [
        ("Bash", ["Bash"], ["BashOutput", "bash"]),
        ("mcp__github__*", ["mcp__github__search"], ["mcp__gitlab__search"]),
        ("mcp__github", ["mcp__github__search", "mcp__github"], ["mcp__github2__search"]),
        ("*", ["anything"], []),
        ("Bash()", ["Bash"], ["Edit"]),
        ("Bash(*)", ["Bash"], ["Edit"]),
    ],
)
def test_a_rule_without_arguments_is_about_names(rule: str, meant: list[str], other: list[str]) -> None:
    assert [name for name in [*meant, *other] if means(rule, name, command="ls")] == meant


@pytest.mark.parametrize(
    ("rule", "meant", "other"),
    [
        ("Bash(ls:*)", ["ls", "ls -la"], ["lsof", "als"]),
        ("Bash(ls *)", ["ls", "ls -la"], ["lsof"]),
        ("Bash(ls*)", ["ls -la", "lsof"], ["als"]),
        ("Bash(npm run build)", ["npm run build", " npm run build "], ["npm run build -x"]),
        ("Bash(git * main)", ["git push origin main"], ["git push origin dev"]),
        # each command of a line, without the variables set for it
        ("Bash(git push *)", ["FOO=b git push", "a&&git push", "a;git push x", "a|git push"], ["git pull"]),
        # what cannot be seen into
        ("Bash(rm *)", ["echo $(rm -rf x)", "echo `rm x`", "cat <(rm x)"], ["echo x"]),
    ],
)  # fmt: skip
def test_a_rule_about_commands_matches_as_in_claude_code(rule: str, meant: list[str], other: list[str]) -> None:
    assert [line for line in [*meant, *other] if means(rule, "Bash", command=line)] == meant


@pytest.mark.parametrize(
    ("rule", "meant", "other"),
    [
        ("Edit(*.ts)", ["a.ts", "/repo/src/a.ts"], ["a.tsx"]),
        ("Edit(src/**)", ["src/a", "/repo/src/a/b"], ["/repo/mysrc/a"]),
        ("Edit(./.env)", [".env", "/repo/.env", "./.env"], ["/repo/x.env"]),
        ("Edit(~/.ssh/*)", ["/home/u/.ssh/id"], ["/home/u/ssh/id"]),
        ("Edit(//etc/*)", ["/etc/passwd"], ["/etcetera"]),
    ],
)
def test_a_rule_about_paths_matches_them_in_any_folder(rule: str, meant: list[str], other: list[str]) -> None:
    assert [path for path in [*meant, *other] if means(rule, "Edit", file_path=path)] == meant


def test_a_rule_about_a_domain_matches_its_urls() -> None:
    assert means("WebFetch(domain:example.com)", "WebFetch", url="https://docs.example.com/x")
    assert not means("WebFetch(domain:example.com)", "WebFetch", url="https://example.org/")


def test_neither_order_nor_other_arguments_hide_a_call_from_a_rule() -> None:
    assert means("Bash(rm *)", "Bash", description="harmless", command="rm -rf /")
    assert not means("Bash(rm *)", "Bash", description="rm the rest", command="ls")
    assert means("run(rm *)", "run", command="ls", cmd="rm -rf /")
    assert means("send(secret*)", "send", to="bob", text="secret plan")
    assert not means("send(secret*)", "send", to="bob", times=1, now=True)


@pytest.mark.parametrize("tool", ["Bash", "run"])
@pytest.mark.parametrize(
    "arguments",
    [
        b"[]",
        b"nonsense",
        b'{"command":["rm","-rf"]}',
        b'{"command":"\\ud800"}',
        b'{"command":1,"command":"ls"}',
    ],
)
def test_a_call_that_cannot_be_judged_counts_as_a_match(tool: str, arguments: bytes) -> None:
    assert permission_rule(f"{tool}(rm *)")(tool, arguments)


def test_a_call_without_the_judged_argument_counts_as_a_match() -> None:
    assert means("Bash(rm *)", "Bash", description="x")


def test_a_call_of_another_tool_never_matches() -> None:
    assert not permission_rule("Bash(rm *)")("Edit", b"nonsense")


@pytest.mark.parametrize("rule", ["", "Bash(", "Bash)", "Bash(a", "(a)", "Bash Edit", "Bash(a) && Edit(b)"])
def test_a_text_that_is_not_one_rule_is_an_error(rule: str) -> None:
    with pytest.raises(ValueError, match="is not a permission rule"):
        permission_rule(rule)


COVERED = [
    ("Bash(git push:*)", "Bash", {"command": "git push origin main"}),
    ("Bash(git push:*)", "Bash", {"command": "git push && git push --tags"}),
    ("Bash(git status)", "Bash", {"command": "git status"}),
    ("run(make *)", "run", {"timeout": 5, "command": "make all", "quiet": True}),
    ("echo(hi)", "echo", {"text": "hi", "other": None}),
    ("mcp__github", "mcp__github__search", {}),
    ("Read(/repo/*)", "Read", {"file_path": "/repo/a/b.txt"}),
    ("fetch(domain:example.com)", "fetch", {"url": "https://example.com/x?y=1"}),
    ("fetch(domain:*.example.com)", "fetch", {"url": "https://a.Example.com:8443"}),
    ("anything", "anything", {"a": [1]}),
    ("anything(*)", "anything", {"a": [1]}),
]
NOT_COVERED = [
    ("Bash(git push:*)", "Bash", {"command": "git pushx"}),
    ("Bash(git push:*)", "Bash", {"command": "git push; rm -rf /"}),
    ("Bash(git push:*)", "Bash", {"command": "git push\nrm -rf /"}),
    ("Bash(git push:*)", "Bash", {"command": "git push $(rm -rf /)"}),
    ("Bash(git push:*)", "Bash", {"command": "git push `rm -rf /`"}),
    ("Bash(git push:*)", "Bash", {"command": "git push > ~/.bashrc"}),
    ("Bash(git push:*)", "Bash", {"command": "git push ${x@P}"}),
    ("Bash(git push:*)", "Bash", {"command": "PATH=/evil git push"}),
    ("Bash(git push:*)", "Bash", {"command": ["git push"]}),
    ("Bash(git push:*)", "bash", {"command": "git push"}),
    ("Read(/repo/*)", "Read", {"file_path": "/repo/../etc/passwd"}),
    ("Read(/repo/*)", "Read", {"file_path": "/x/repo/a"}),
    ("fetch(domain:example.com)", "fetch", {"url": "https://evil.com/?q=example.com"}),
    ("fetch(domain:example.com)", "fetch", {"url": "https://example.com@evil.com/"}),
    ("fetch(domain:example.com)", "fetch", {"url": "https://example.com.evil.com/"}),
    ("fetch(domain:example.com)", "fetch", {"url": "https://evil.com\\@example.com/"}),
    ("run(make *)", "run", {"cwd": "/", "command": "make all"}),
    ("shell(git status:*)", "shell", {"command": "git status", "cmd": "rm -rf /"}),
    ("run(git *)", "run", {"note": "git x", "script": "rm -rf /"}),
    ("run(git *)", "run", {"script": "git status; rm -rf /"}),
    ("run(git *)", "run", {"note": "git x", "script": ["rm"]}),
    ("PowerShell(Get-*)", "PowerShell", {"command": "Get-Item (rm x)"}),
    ("Read(src/**)", "Read", {"file_path": "src/%2e%2e/x"}),
    ("echo(hi)", "echo", {"text": "\ud800"}),
    ("echo(hi)", "echo", {"n": 5}),
    ("echo(hi)", "echo", {"first": "no", "text": "hi"}),
]


NAMED: list[tuple[str, dict[str, object], bool]] = [
    ("write(path:/srv/*)", {"path": "/srv/a", "content": "rm -rf / `x` ../"}, True),
    (
        "write(path:/srv/*)",
        {"path": "/srv/a", "edits": [{"oldText": "/etc", "newText": ""}], "encoding": "utf-8"},
        True,
    ),
    ("write(path:~/app/*)", {"path": "~/app/a"}, True),
    ("commit(repo_path:/srv/*)", {"repo_path": "/srv/a", "message": "fix (all) things"}, True),
    ("post(url:domain:*.example.com)", {"url": "https://a.example.com/x", "text": "https://evil.example"}, True),
    ("write(path:/srv/*)", {"content": "/srv/a"}, False),
    ("write(path:/srv/*)", {"file": "/srv/a"}, False),
    ("write(path:/srv/*)", {"path": "/srv/a", "file": "/etc/x", "content": ""}, False),
    ("write(path:/srv/*)", {"path": "/srv/a", "file": ["/etc/x"]}, False),
    ("write(path:/srv/*)", {"path": "/srv/../etc/x", "content": ""}, False),
    ("write(path:/srv/*)", {"path": ["/srv/a"], "content": "/srv/a"}, False),
    ("write(content:/srv/*)", {"path": "/etc/x", "content": "/srv/a"}, False),
    ("write(content:/srv/*)", {"content": "/etc/x"}, False),
    ("write(/srv/*)", {"path": "/srv/a", "content": "x"}, False),
    ("post(url:domain:example.com)", {"url": "https://evil.example/", "text": ""}, False),
    ("run(path:/srv/*)", {"path": "/srv/a", "command": "rm x"}, False),
    ("edit(path:/srv/*)", {"path": "/srv/a", "edits": [{"old_string": "a", "newText": "b", "line": 3}, "x"]}, True),
    ("edit(path:/srv/*)", {"path": "/srv/a", "edits": [{"path": "/etc/x", "newText": "b"}]}, False),
    ("edit(path:/srv/*)", {"path": "/srv/a", "edits": {"/etc/x": "b"}}, False),
    ("edit(path:/srv/*)", {"path": "/srv/a", "message": {"text": {"uri": "file:///etc/x"}}}, False),
    ("edit(path:/srv/*)", {"path": "/srv/a", "content": [[{"text": "b", "file": ["/etc/x"]}]]}, False),
    ("write(path:/srv/*)", {"path": "/srv/%252E%2525252e/x"}, False),
    ("write(path:/srv/*)", {"path": "/srv/\uff0e\uff0e/x"}, False),
    ("write(path:/srv/*)", {"path": "/srv/\u2025/x"}, False),
    ("write(path:/srv/*)", {"path": "/srv/\u00e9.txt"}, True),
    ("commit(git commit *)", {"command": "git commit -m wip\u2026"}, True),
    ("post(url:domain:example.com)", {"url": "https://example.com/\nhttps://evil.example"}, False),
    ("post(url:domain:example.com)", {"url": "https://example.com/ https://evil.example"}, False),
]


@pytest.mark.parametrize(("rule", "arguments", "covered"), NAMED)
def test_a_rule_that_names_its_argument_covers_any_text_that_only_is_written(
    rule: str, arguments: dict[str, object], covered: bool
) -> None:
    assert allow_rule(rule)(rule.partition("(")[0], json.dumps(arguments).encode()) is covered


@pytest.mark.parametrize(("rule", "tool", "arguments"), COVERED)
def test_an_allow_rule_covers_the_calls_that_it_names(rule: str, tool: str, arguments: dict[str, object]) -> None:
    assert allow_rule(rule)(tool, json.dumps(arguments).encode())


@pytest.mark.parametrize(("rule", "tool", "arguments"), NOT_COVERED)
def test_an_allow_rule_covers_no_call_that_it_cannot_judge(rule: str, tool: str, arguments: dict[str, object]) -> None:
    assert not allow_rule(rule)(tool, json.dumps(arguments).encode())
    assert not allow_rule("x(y)")("x", b"no object")


@pytest.mark.parametrize("rule", ["", "a b", "Bash(a", "Bash(a) && Bash(b)"])
def test_a_text_that_is_not_a_rule_allows_nothing(rule: str) -> None:
    with pytest.raises(ValueError, match="is not a permission rule"):
        allow_rule(rule)


@pytest.mark.parametrize("path", ["/x/Secrets/key", "/x/secrets/key", "/x/SECRETS/key"])
def test_on_a_file_system_that_ignores_case_a_condition_about_a_path_ignores_it(path: str) -> None:
    arguments = json.dumps({"file_path": path}).encode()
    assert permission_rule("Write(/x/Secrets/*)", fold=True)("Write", arguments)
    assert permission_rule("Write(/x/Secrets/*)", fold=False)("Write", arguments) is ("Secrets" in path)


def test_a_condition_about_a_command_minds_its_case_everywhere() -> None:
    assert not permission_rule("Bash(rm *)", fold=True)("Bash", b'{"command":"RM x"}')


@pytest.mark.parametrize(
    "line",
    [
        "rm x", "ls; rm x", "A=b\\ c rm x", "/bin/rm x", "r''m x", "$'\\x72m' x", "{rm,x}", "sh -c 'rm x'",
        "env -S 'rm x'",
        "echo rm x | sh", "xargs rm <<< x", "find . -exec rm {} +", "timeout 5 rm x", "taskset 1 rm x", "uv run rm x",
        "python -c 'import os; os.system(\"rm x\")'", "git -c alias.a='!rm x' a", "GIT_PAGER='rm x' git log",
        "cat <<E | sh\nrm x\nE",
        "$TOOL x", "eval \"$X\"", "A=rm; $A x", "echo $(rm x)", "ls 'x", "awk 'BEGIN{system(\"rm x\")}'",
        "alias a=rm\na x",
        "if :; then rm x; fi", "hash -p /bin/rm a; a x", "sudo -u me rm x",
    ],
)  # fmt: skip
def test_a_hook_runs_for_a_command_in_any_spelling(line: str) -> None:
    matches = permission_rule("Bash(rm *)")
    assert matches("Bash", json.dumps({"command": line}).encode())


@pytest.mark.parametrize(
    "line", ["ls", "git rm x", "echo rm", "npm run build && npm test", 'cd "$DIR" && make', "kill $(lsof -t)"]
)
def test_a_hook_does_not_run_for_other_commands(line: str) -> None:
    matches = permission_rule("Bash(rm *)")
    assert not matches("Bash", json.dumps({"command": line}).encode())


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("Bash(git:*)", "git -c core.fsmonitor='x' status"), ("Bash(git:*)", "git -c alias.x=!x y"),
        ("Bash(git:*)", "git config alias.x !y"), ("Bash(git:*)", "git clone -u x . y"),
        ("Bash(git:*)", "git rebase -x a"), ("Bash(git diff:*)", "git diff --output=a"),
        ("Bash(find *)", "find . -exec a {} +"),
        ("Bash(npm run test:*)", "npm run test --script-shell=a"), ("Bash(tar:*)", "tar cf a -I b c"),
        ("Bash(sed:*)", "sed '1e x' a"), ("Bash(vim:*)", "vim -c '!x'"),
        ("Bash(awk:*)", "awk 'BEGIN{system(\"x\")}'"),
    ],
)  # fmt: skip
def test_an_allow_rule_does_not_cover_what_an_option_starts(rule: str, command: str) -> None:
    assert not allow_rule(rule)("Bash", json.dumps({"command": command}).encode())


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("Bash(git:*)", "git -c a.b=c status -s"), ("Bash(find *)", "find . -name x"),
        ("Bash(uv run:*)", "uv run pytest -q"),
        ("Bash(timeout *)", "timeout 5 ls"), ("Bash(docker run *)", "docker run --rm a ls"),
        ("Bash(npm run:*)", "npm run a -- --b"),
        ("Bash(xargs:*)", "xargs ls"), ("Bash(python:*)", "python a.py"), ("Bash(awk:*)", "awk '{n++} END{print n}' f"),
    ],
)  # fmt: skip
def test_an_allow_rule_covers_what_its_program_is_for(rule: str, command: str) -> None:
    assert allow_rule(rule)("Bash", json.dumps({"command": command}).encode())


@pytest.mark.parametrize(
    ("pattern", "in_neither"), [("(", True), ("[z-a]", True), ("*x", True), (r"(?<=a*)b", False), (r"\p{L}", False)]
)
def test_what_only_python_refuses_is_an_expression(pattern: str, in_neither: bool) -> None:
    with pytest.raises(re.error) as error:
        re.compile(pattern)
    assert matchers.is_no_expression(error.value) is in_neither


@pytest.mark.parametrize("pattern", ["Bash(*)", "Bash(+x)", "Bash([)"])
def test_a_permission_rule_that_is_no_expression_is_a_rule(pattern: str) -> None:
    assert matchers.is_rule(pattern)


def test_a_domain_is_found_behind_one_that_only_begins_like_it() -> None:
    assert matchers.has_domain("example.com", "https://example.com-x.org/ https://example.com/")
    assert matchers.has_domain("example.com", "see\nhttps://example.com\nthere")
    assert matchers.has_domain("*.example.*", "see\nhttps://a.example.org\nthere")


def test_in_a_very_long_text_the_parts_of_a_domain_are_enough() -> None:
    longest = "y" * (4096 - len("xexample.com")) + "xexample.com"
    assert not matchers.has_domain("example.com", longest)
    assert matchers.has_domain("example.com", "y" + longest)
    assert matchers.has_domain("*.example.*", "y" * 5000 + "https://a.example.org/")
    assert not matchers.has_domain("*.example.*", "y" * 5000 + "https://a.other.org/")


def test_a_path_that_repeats_its_name_is_in_any_folder() -> None:
    assert matchers.value_pattern("./.env").fullmatch(".env/.env")
    assert matchers.value_pattern("./.env").fullmatch("a/.env")


def test_folders_in_a_pattern_may_be_none_and_names_may_have_line_breaks() -> None:
    pattern = path_pattern("a/**/b*c")
    assert all(map(pattern.fullmatch, ["a/bc", "a/x/y/bc", "a/b\nc"]))
    assert not pattern.fullmatch("abc")
    assert len(path_spellings("a/**/b/**/c/**/d/**/e/**/f")) == 16


# --- methods ---


def test_a_name_with_a_slash_is_a_glob_and_only_an_expression_is_searched() -> None:
    assert not methods.pattern_names_method("esources/read", "resources/read")
    assert methods.pattern_names_method("^resources/rea", "resources/read")
    assert not methods.pattern_names_method("^prompts/.*$", "resources/read")
    assert methods.pattern_names_method("resources/read")
    assert not methods.pattern_names_method("resources/none")


def test_without_its_methods_a_matcher_keeps_its_tools() -> None:
    assert methods.without_methods("Bash|resources/read|Read") == "Bash|Read"


@pytest.mark.parametrize("unseen", ["\u00ad", "\u200b", "\u2060", "\ufe0f", "\ufeff", "%C2%AD"])
def test_a_domain_is_found_with_what_browsers_leave_out_of_it(unseen: str) -> None:
    assert matchers.has_domain("evil.example", f"https://ev{unseen}il.exam{unseen}ple/x")


@pytest.mark.parametrize(
    "host",
    [
        *("2852039166", "0xA9FEA9FE", "0xa9.0xfe.0xa9.0xfe", "0251.0376.0251.0376", "169.16689662", "169.254.43518."),
        *("[::ffff:a9fe:a9fe]", "[::ffff:169.254.169.254]", "u:p@2852039166", "169.254.169.254:80"),
    ],
)
def test_an_address_of_four_numbers_is_found_in_every_form(host: str) -> None:
    assert matchers.has_domain("169.254.169.254", f"http://{host}/latest")
    assert matchers.has_domain("169.254.169.254", f"curl http://{host}")


@pytest.mark.parametrize("host", ["2852039167", "0xzz", "[::1]", "[:::]", "169.254.169.25", "99999999999", "1.2.3.4.5"])
def test_other_numbers_are_other_addresses(host: str) -> None:
    assert not matchers.has_domain("169.254.169.254", f"http://{host}/latest")
