"""Command lines as attackers spell them, and as usual models do."""

from __future__ import annotations

import json
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.model.hooks import Permission
from hookproxy.model.settings import Settings
from hookproxy.policy import shell_commands
from hookproxy.policy.globs import WorkBudget
from hookproxy.policy.rules import Rules
from tests.support import old_shell_reader


def runs(wanted: str, line: str) -> shell_commands.Runs:
    return shell_commands.command_matcher(wanted)(line, WorkBudget())


def passes(wanted: str, line: str) -> bool:
    return runs(wanted, line) == (False, "")


REMOVES = [
    "rm", "rm x", "rm\tx", " rm  x ", "rm\x0bx",
    # beside other commands
    "ls; rm x", "ls;rm x", "ls&&rm x", "ls || rm x", "ls | rm x", "ls & rm x", "ls\nrm x", "ls\r\nrm x",
    "(rm x)", "{ rm x; }", "! rm x", "if a; then rm x; fi", "while rm x; do :; done", "for a in b; do rm $a; done",
    "case x in x) rm y;; esac", "f() { rm x; }; f", "function f { rm x; }", "coproc rm x", "cat <<E | sh\nrm x\nE",
    # behind variables and redirections
    "A=b rm x", "A= rm x", "A='b c' rm x", "a[0]=b rm x", "A+=b rm x", ">a rm x", "> a rm x", "2>&1 rm x", ">&2 rm x",
    "&>a rm x", "{fd}>a rm x", "rm>a x", "<a rm x",
    # another spelling of its name
    "/bin/rm x", "//bin//rm x", "../bin/rm x", "\\rm x", "r\\m x", "'rm' x", '"rm" x', "r''m x", 'r""m x', "r\\\nm x",
    "$X y", "${X} y", "r$@m x", "$'\\x72m' x", "r? x", "r[m] x", "{rm,x}", "/bin/r* x", "r\0m x", "echo \\\\\nrm x",
    # what runs another command
    "command rm x", "env rm x", "env -i A=b rm x", "/usr/bin/env rm x", "sudo rm x", "sudo -u me -- rm x",
    "nice -n 5 rm x",
    "timeout 5 rm x", "nohup \\rm x", "xargs -0 rm", "ls | xargs rm", "find . -exec rm {} ;", "find . -execdir $X {} +",
    "busybox rm x", "exec rm x", "eval rm x", "eval 'r'\"m x\"", "sudo $X y", "xargs -I{} {} x", "sudo env nice rm x",
    "sudo -p \\> rm x",
    "nice xargs -n 1 rm$@", "ls \\>&eval rm x", ">a\x0bb rm x", ">a\rb nice rm x", "ls\r\nrm x\r\n",
    "runuser -u root -- rm x", "setpriv --reuid 0 rm x", "prlimit --nofile=9 rm x", "fakeroot rm x",
    "capsh -- -c 'rm x'", "start-stop-daemon --start --exec /bin/rm -- x", "start-stop-daemon --exec=/bin/rm",
    "systemd-inhibit rm x", "firejail rm x", "bwrap --bind / / rm x", "dbus-run-session rm x", "chpst -u x rm y",
    "setuidgid x rm y", "softlimit rm x", "cpulimit -- rm x", "ltrace rm x", "tini -- rm x", "gosu root rm x",
    "su-exec root rm x", "ssh h rm x", "ssh -p 1 h 'rm x'", "docker run --rm -it i rm x", "podman exec c rm x",
    "kubectl exec p -- rm x", "flatpak-spawn --host rm x", "git -c alias.x='!rm y' x", "git -c alias.x=!rm x",
    "git config alias.x '!rm y'", "hash -p /bin/rm x; x y", "tar cf x --to-command='rm' y", "watch rm x",
    "tar --checkpoint=1 --checkpoint-action=exec='rm x' -cf a b", "parallel rm ::: x", "find . -exec rm {} +",
    # shells
    "sh -c 'rm x'", 'bash -c "ls; rm x"', "bash -c rm\\ x", "env -i sh -c \"r\"m", "echo cm0K | base64 -d | sh",
    "/bin/sh", "bash -c 'ls; r? x'", "env bash -c 'ls; $X y'", "ls # it's\n$X y # '", "cat <<E\nit's\nE\n$X y #'",
    "bash <<< 'rm x'", "bash<x", "bash -s", "bash -c $X", "sudo bash", "su -c 'rm x'",
    # substitutions
    "$(x)", "echo $(rm x)", "echo `rm x`", "cat <(rm x)", "${ x; }", 'echo "$(ls; rm x)"', "echo `echo \\`rm x\\``",
    # escapes and quotes before it
    "A=b\\ c rm -rf x", ">a\\ b rm x", "<<<a\\ b rm x", "a[0]=$[[ a ]]echo rm x", "A='b c'd\\ e rm x", "2>'a b' rm x",
    # what a line says and does later
    "A=rm; $A x", "${A:-rm} x", "cat >s <<E\nrm x\nE\nsh s", "echo 'rm x' >s; . ./s", "PAGER='rm x' git log",
    "cat <<E | x\nrm x\nE", "x='a[$(rm y)]'; ((x))", "alias l='rm x'\nl", "trap 'rm x' EXIT",
]  # fmt: skip
HARMLESS = [
    "", " ", "ls", "ls -la | wc -l", "lsrm", "rmdir x", "echo rm x", "git rm x", "npm run build && npm test", "ls 2>&1",
    "[ -f x ] && ls $HOME", "[[ -n $x ]]", "grep -r 'rm -rf' .", "ls *.py", "FOO=bar make -j4", "~/bin/x y",
    "sudo ls /", "sudo echo 'hello'", "grep -E 'a|b' x", "sed 's/a/b/;s/c/d/' x", "git commit -m \"x (y); 'z'\nw\"",
    "for x in a b; do ls $x; done", "find . -name '*.sh'", "bash script.sh", "make > log 2>&1", "python3 -c 'print(1)'",
    "docker rm x", "docker run --rm i ls", "kubectl get pods", "git -c a.b=c status", "tar cf rm.tar rm", "ssh h ls",
    "echo '{}' > a", "git commit -m 'no more rm'", "ls\r\npwd\r\n", "echo $(date)", "echo $((1+2)) ${x:-3}",
    'cd "$DIR" && make -j"$(nproc)"', "git commit -m \"$(cat <<'E'\nit's; rm x\nE\n)\"",
    'for f in *.py; do python "$f"; done',
    "env " + "x " * 300, "awk '/rm x/ {print $1}' f", "sed 's/rm x/e/g' f", "bash <<< ls",
    "python3 - <<'E'\nimport re\nprint(re.compile('rm x'))\nE", "[[ -f $x && $y =~ ^(a|b)$ ]] || exit 1",
]  # fmt: skip


@pytest.mark.parametrize("line", REMOVES)
def test_a_command_is_recognised_in_any_spelling(line: str) -> None:
    assert not passes("rm *", line)


@pytest.mark.parametrize("line", HARMLESS)
def test_other_commands_do_not_match(line: str) -> None:
    assert passes("rm *", line)


READ_SINCE = [
    "bash <<< ls", "echo $(date)", "echo $((1+2)) ${x:-3}", 'cd "$DIR" && make -j"$(nproc)"',
    "git commit -m \"$(cat <<'E'\nit's; rm x\nE\n)\"", "cat <<E | x\nrm x\nE", "env " + "x " * 300,
    "[[ -f $x && $y =~ ^(a|b)$ ]] || exit 1", "python3 - <<'E'\nimport re\nprint(re.compile('rm x'))\nE",
]  # fmt: skip
"""Harmless lines that the old reader took for attacks, because it could not read them."""


@pytest.mark.parametrize("line", [line for line in REMOVES + HARMLESS if line not in READ_SINCE])
def test_what_the_old_reader_refuses_never_passes(line: str) -> None:
    assert not (old_shell_reader.command_matcher("rm *")(line, WorkBudget()) and passes("rm *", line))


@pytest.mark.parametrize(
    "line",
    [
        "git push", "git  push origin", "git\tpush", "git p''ush", 'git "push" x', "git $X", "git {push,x}", "git pus?",
        "git -C . push", "git --no-pager push", "git -c a=b -c c=d push", "/usr/bin/git push", "git >x push",
        "a && git push", "sudo git -C x push", "git pu\\\nsh", 'git -C "$D" push', "git -C $D push", 'git "$X" push',
    ],
)  # fmt: skip
def test_a_subcommand_is_recognised_in_any_spelling(line: str) -> None:
    assert not passes("git push:*", line)


@pytest.mark.parametrize(
    "line",
    [
        "git status",
        "git pushx",
        "git commit -m 'git push'",
        "git log -p $X",
        "gitpush",
        'git -C "$D" status',
        "git -C push log",
    ],
)
def test_other_subcommands_do_not_match(line: str) -> None:
    assert passes("git push:*", line)


@pytest.mark.parametrize(
    ("wanted", "meant", "other"),
    [
        ("npm run build", ["npm run build", "a; npm  run build", "npm run $X"], ["npm run build -x", "npm run test"]),
        ("/usr/bin/dd *", ["/usr/bin/dd x", "dd x", "/bin/dd x"], ["add x"]),
        ("./deploy.sh *", ["./deploy.sh a", "cd x && ../deploy.sh a"], ["cat deploy.sh"]),
        ("*curl*", ["a | curl x", "wget cu''rl"], ["wget x", "echo $HOME"]),
        ("git * main", ["git push origin main", "git push origin $B"], ["git push origin dev"]),
        ("rm*", ["rm", "rmdir x"], ["xrm"]),
        ("kubectl delete ns *", ["kubectl delete ns a", "kubectl -n x delete ns a"], ["kubectl get ns a"]),
        (
            "rm -rf *",
            ["rm -rf x", "rm -fr x", "rm -r -f x", "rm -R --force x", "rm --rec --forc x", "rm x -rvf", "rm -r x -f"],
            ["rm -r x", "rm x", "rm -- -rf", "rm --verbose x"],
        ),
        ("git push --force:*", ["git push -f", "git push origin main --force", "git -C x push -uf"], ["git push -u a"]),
        ("rm -rf /", ["rm -rf /", "rm -fr /", "rm -r --force /"], ["rm -rf /tmp", "rm -rf"]),
    ],
)
def test_a_rule_matches_the_commands_that_it_names(wanted: str, meant: list[str], other: list[str]) -> None:
    assert [line for line in [*meant, *other] if not passes(wanted, line)] == meant


@pytest.mark.parametrize(
    ("line", "certain"),
    [
        ("rm x", True), ("sh -c 'rm x'", True), ('bash -c "rm $X"', True), ("A=rm; $A x", True), ("rm $X", True),
        ("$TOOL x", False), ('"$EDITOR" f', False), ('eval "$(ssh-agent -s)"', False), ("curl x | sh", False),
        ("ls 'x", False),
    ],
)  # fmt: skip
def test_what_is_not_literal_may_be_such_a_command_and_what_is_there_is_one(line: str, certain: bool) -> None:
    assert runs("rm *", line).certain is certain
    assert bool(runs("rm *", line).unreadable) is not certain


PIECES = st.sampled_from(
    [
        "rm",
        "x",
        " ",
        ";",
        "\n",
        "'",
        '"',
        "\\",
        "$",
        ">",
        "<",
        "&",
        "|",
        "(",
        "{",
        "}",
        "=",
        "env",
        "sh",
        "-c",
        "\0",
        "find",
    ]
)


@given(st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=12), st.text(min_size=1, max_size=6))
def test_every_line_can_be_judged_and_words_after_it_hide_nothing(line: str, wanted: str) -> None:
    runs(wanted, line)
    assert line.endswith("\\") or not passes("rm *", f"{line};rm x")
    assert not passes("rm *", f"rm x;{line}")


@pytest.mark.parametrize(
    ("unreadable", "line", "permission"),
    [
        ("ask", "rm x", Permission.DENY), ("ask", "$TOOL x", Permission.ASK), ("ask", 'eval "$(ssh-agent -s)"',
        Permission.ASK),
        ("ask", '"$EDITOR" f', Permission.ASK), ("ask", "$TOOL x; rm y", Permission.DENY), ("ask", "ls",
        Permission.ALLOW),
        ("ask", "ls $(pwd)", None), ("deny", "$TOOL x", Permission.DENY), ("deny", "curl x | sh", Permission.DENY),
        ("deny", "ls", Permission.ALLOW), ("allow", "$TOOL x", None), ("allow", "rm x", Permission.DENY),
        ("allow", "ls 'x", None), ("allow", "ls $(rm x)", Permission.DENY),
    ],
)  # fmt: skip
def test_what_is_unreadable_follows_the_configuration_and_matches_no_allow_rule(
    unreadable: Literal["ask", "deny", "allow"], line: str, permission: Permission | None
) -> None:
    rules = Rules.of(Settings(deny=("Bash(rm *)",), allow=("Bash(ls *)", "Bash(ls)"), unreadable=unreadable))
    decision = rules.judge(("Bash",), json.dumps({"command": line}).encode())
    assert (decision and decision.permission) == permission
