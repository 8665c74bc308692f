"""What programs in other languages start."""

from __future__ import annotations

import pytest

from hookproxy.shell import embedded
from hookproxy.shell.programs import Code, Foreign, Unreadable
from hookproxy.shell.words import Command


def started(language: str, text: str, *, whole: bool = True) -> tuple[set[str], bool]:
    """The lines and commands that a program starts, and whether some of it is unreadable."""
    found = list(embedded.commands_in(Foreign(language, text, whole)))
    lines = {each.text for each in found if isinstance(each, Code)}
    words = {" ".join(word.text for word in each.words) for each in found if isinstance(each, Command)}
    return lines | words, any(
        isinstance(each, Unreadable) or (isinstance(each, Code) and not each.whole) for each in found
    )


@pytest.mark.parametrize(
    ("language", "text", "line"),
    [
        ("python", "import os; os.system('rm x')", "rm x"), ("python", "os.popen(\"rm x\").read()", "rm x"),
        ("python", "subprocess.run(['rm', 'x'])", "rm x"), ("python", "os.execvp('rm', ['rm', 'x'])", "rm x"),
        ("python", "from os import system as s; s('rm x')", "rm x"), ("python", "exec('os.system(1)')", "os.system(1)"),
        ("python", "os.system('r\\x6d x')", "rm x"), ("python", "os.system('''rm x''')", "rm x"),
        ("javascript", "require('child_process').execSync('rm x')", "rm x"), ("javascript", "execSync(`rm x`)", "rm x"),
        ("javascript", "import('node:child_process').then(c => c.exec('rm x'))", "rm x"),
        ("javascript", "Bun.spawn(['rm', 'x'])", "rm x"),
        ("javascript", "require('child_process').spawnSync('rm', ['x', `y`])", "x y"), ("other", "system('rm x')",
        "rm x"), ("other", "system 'rm', 'x'", "rm x"), ("other", "`rm x`", "rm x"),
        ("other", "qx{rm x}", "rm x"), ("other", "%x(rm x)", "rm x"), ("other", "os.execute('rm x')", "rm x"),
        ("other", "(shell-command \"rm x\")", "rm x"),
        ("editor", "!rm x", "rm x"), ("editor", ":call system('rm x')", "rm x"), ("editor", "shell rm x", " rm x"),
        ("awk", 'BEGIN{system("rm x")}', "rm x"), ("awk", '{print | "rm x"}', "rm x"),
        ("awk", '/"/ {system("rm x")} /"/', "rm x"),
        ("awk", 'BEGIN{# "\nsystem("rm x") # "\n}', "rm x"),
        ("awk", '"rm x" | getline',
        "rm x"),
        ("sed", "1e rm x", "rm x"),
        ("sed", "\\na\\nbne rm x", "rm x"), ("sed", "/a/,$e rm x", "rm x"), ("sed", "s/a/b/;$!e rm x", "rm x"), ("sed",
        "1{e rm x\n}", "rm x"),
    ],
)  # fmt: skip
def test_what_is_started_by_a_literal_is_read(language: str, text: str, line: str) -> None:
    assert line in started(language, text)[0]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "os.system(x)"), ("python", "os.system('r' + 'm')"), ("python", "getattr(os, 'sys' + 'tem')('a')"),
        ("python", "f = os.system; f(x)"), ("python", "map(os.system, x)"), ("python",
        "import subprocess as s; s.__dict__"),
        ("python", "__import__('os')"), ("python", "exec(x)"), ("python", "import pty; pty.spawn('a')"),
        ("javascript", "eval(x)"), ("javascript", "require(x)"), ("javascript", "require('child_process')[x]('a')"),
        ("javascript", "const e = require('child_process').exec; e(x)"), ("javascript", "execSync(`a ${x}` + y)"),
        ("other", "system($x)"), ("other", "eval $x"), ("other", "spawn rm x"), ("other", "\\! a"), ("editor",
        ":exe x"),
        ("awk", "BEGIN{system(x)}"), ("awk", "{print | x}"), ("awk", '@load "fork"'),
        ("awk", 'BEGIN{f = "system"; @f("a")}'), ("sed", "e"), ("sed", "s/a/b/e"), ("sed", "s/a/b/2e"),
        ("sed", "s/a"),
    ],
)  # fmt: skip
def test_what_is_started_otherwise_is_unreadable(language: str, text: str) -> None:
    assert started(language, text)[1]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "print('os.system')"), ("python", "import os; print(os.getcwd())"), ("python",
        "import re; re.compile('rm x')"),
        ("python", "# system\nprint(1)"), ("javascript", "console.log('exec')"),
        ("javascript", "const {a} = require('./b'); a()"), ("javascript", "fetch('x').then(r => r.json())"),
        ("python", "import asyncio; asyncio.run(main())"), ("python", "import platform; print(platform.system())"),
        ("javascript", "const m = /a(b)/.exec(s); console.log(m[1])"), ("other", "puts 'rm x'"), ("other",
        "select 1"), ("editor", "set number"), ("editor", "42"),
        ("awk", "/rm x/ {print $1}"), ("awk", "$1 > 2 || $2 ~ /a|b/ {n++} END {print n}"), ("awk", 'BEGIN {FS="|"}'),
        ("sed", "s/a/b/g"), ("sed", "s/rm x/e/"), ("sed", "/e/d; $d"), ("sed", "y/abc/def/"), ("sed",
        "1,3p; s|a|/e|w e"), ("sed", "a e rm x"),
        ("sed", "s/[/e]/x/"), ("sed", ":a;N;$!ba;s/\\n/ /g"),
    ],
)  # fmt: skip
def test_what_starts_nothing_is_readable(language: str, text: str) -> None:
    assert started(language, text) == (set(), False)


@pytest.mark.parametrize("language", ["python", "javascript", "other", "editor", "awk", "sed"])
def test_a_program_that_is_not_literal_is_unreadable(language: str) -> None:
    assert started(language, "1", whole=False)[1]
