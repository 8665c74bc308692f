"""Command lines as attackers spell them, and as usual models do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.policy import shell_commands
from hookproxy.policy.matchers import WorkBudget


def runs(wanted: str) -> Callable[[str], bool]:
    may_run = shell_commands.command_matcher(wanted)
    return lambda line: may_run(line, WorkBudget())


REMOVES = [
    "rm", "rm x", "rm\tx", " rm  x ", "rm\x0bx",
    # beside other commands
    "ls; rm x", "ls;rm x", "ls&&rm x", "ls || rm x", "ls | rm x", "ls & rm x", "ls\nrm x", "ls\r\nrm x",
    "(rm x)", "{ rm x; }", "! rm x", "if a; then rm x; fi", "while rm x; do :; done", "for a in b; do rm $a; done",
    "case x in x) rm y;; esac", "f() { rm x; }; f", "function f { rm x; }", "coproc rm x", "cat <<E | x\nrm x\nE",
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
    "sudo -p \\> rm x", "env " + "x " * 300,
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
    "bash <<< x", "bash<x", "bash -s", "bash -c $X", "sudo bash", "su -c 'rm x'",
    # substitutions
    "$(x)", "echo $(x)", "echo `x`", "cat <(x)", "${ x; }", "echo $((1))",
]  # fmt: skip
HARMLESS = [
    "", " ", "ls", "ls -la | wc -l", "lsrm", "rmdir x", "echo rm x", "git rm x", "npm run build && npm test", "ls 2>&1",
    "[ -f x ] && ls $HOME", "[[ -n $x ]]", "grep -r 'rm -rf' .", "ls *.py", "FOO=bar make -j4", "~/bin/x y",
    "sudo ls /", "sudo echo 'hello'", "grep -E 'a|b' x", "sed 's/a/b/;s/c/d/' x", "git commit -m \"x (y); 'z'\nw\"",
    "for x in a b; do ls $x; done", "find . -name '*.sh'", "bash script.sh", "make > log 2>&1", "python3 -c 'print(1)'",
    "docker rm x", "docker run --rm i ls", "kubectl get pods", "git -c a.b=c status", "tar cf rm.tar rm", "ssh h ls",
    "echo '{}' > a", "git commit -m 'no more rm'", "ls\r\npwd\r\n",
]  # fmt: skip


@pytest.mark.parametrize("line", REMOVES)
def test_a_command_is_recognised_in_any_spelling(line: str) -> None:
    assert runs("rm *")(line)


@pytest.mark.parametrize("line", HARMLESS)
def test_other_commands_do_not_match(line: str) -> None:
    assert not runs("rm *")(line)


@pytest.mark.parametrize(
    "line",
    [
        "git push", "git  push origin", "git\tpush", "git p''ush", 'git "push" x', "git $X", "git {push,x}", "git pus?",
        "git -C . push", "git --no-pager push", "git -c a=b -c c=d push", "/usr/bin/git push", "git >x push",
        "a && git push", "sudo git -C x push", "git pu\\\nsh",
    ],
)  # fmt: skip
def test_a_subcommand_is_recognised_in_any_spelling(line: str) -> None:
    assert runs("git push:*")(line)


@pytest.mark.parametrize("line", ["git status", "git pushx", "git commit -m 'git push'", "git log -p $X", "gitpush"])
def test_other_subcommands_do_not_match(line: str) -> None:
    assert not runs("git push:*")(line)


@pytest.mark.parametrize(
    ("wanted", "meant", "other"),
    [
        ("npm run build", ["npm run build", "a; npm  run build", "npm run $X"], ["npm run build -x", "npm run test"]),
        ("/usr/bin/dd *", ["/usr/bin/dd x", "dd x", "/bin/dd x"], ["add x"]),
        ("./deploy.sh *", ["./deploy.sh a", "cd x && ../deploy.sh a"], ["cat deploy.sh"]),
        ("*curl*", ["a | curl x", "wget cu''rl"], ["wget x"]),
        ("git * main", ["git push origin main"], ["git push origin dev"]),
        ("rm*", ["rm", "rmdir x"], ["xrm"]),
        ("kubectl delete ns *", ["kubectl delete ns a", "kubectl -n x delete ns a"], ["kubectl get ns a"]),
    ],
)
def test_a_rule_matches_the_commands_that_it_names(wanted: str, meant: list[str], other: list[str]) -> None:
    assert [line for line in [*meant, *other] if runs(wanted)(line)] == meant


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
    runs(wanted)(line)
    assert runs("rm *")(f"{line};rm x")
    assert runs("rm *")(f"rm x;{line}")
