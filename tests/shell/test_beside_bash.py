"""What the real bash turns into `rm`, and what the reader of command lines makes of it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

import pytest

from hookproxy.policy.globs import WorkBudget
from hookproxy.policy.shell_commands import command_matcher
from tests.support import real_bash

LAUNCHERS: Final = ("doas", "pkexec", "chronic", "xvfb-run", "busybox", "sudo", "fakeroot", "eatmydata", "torsocks")
"""Programs that run the words behind them, and that may be missing here or want to be asked."""

WHEREVER_BASH_IS: Final = [
    # beside other commands
    "rm x", "rm\tx", " rm  x ", "rm -rf x", ":; rm x", ":;rm x", ":&&rm x", "! : || rm x", ": | rm x", ": |& rm x",
    ": & rm x", ":\nrm x", "\n\nrm x\n\n", "(rm x)", "((1)) && rm x", "{ rm x; }", "{\nrm x\n}", "! rm x", "! ! rm x",
    "time rm x", "time -p rm x", "time -p -- rm x", "time A=b rm x", "time ! rm x", "coproc rm x", "coproc A=b rm x",
    "if rm x; then :; fi", "if :; then rm x; fi", "if ! :\nthen :\nelif :\nthen rm x\nfi", "while rm x; do break; done",
    "until ! :; do rm x; break; done", "for a in b; do rm $a; done", "for a in rm; do $a x; done",
    "for ((i=0;i<1;i++)); do rm x; done",
    "for a in b; { rm x; }", "case x in x) rm y;; esac", "case x in (y|x) rm y; esac", "case x in y) :;; *) rm x\nesac",
    "select a in b; do rm x; break; done <<< 1", "case x in x) : ;& y) rm x;; esac",
    "case x in x) : ;;& *) rm x;; esac",
    # functions, aliases, other names
    "f() { rm x; }; f", "f () ( rm x ); f", "function f { rm x; }; f", "function f() { rm x; }\nf",
    "f() if :; then rm x; fi; f",
    'f() { "$@"; }; f rm x', "f() { $1 x; }; f rm", "shopt -s expand_aliases\nalias l='rm x'\nl",
    "shopt -s expand_aliases\nalias l=rm\nl x",
    "hash -p @BIN@/rm foo; foo x", "trap 'rm x' EXIT", "trap 'rm x' DEBUG; :", "trap rm\\ x 0",
    "ln -s @BIN@/rm foo; ./foo",
    "cp @BIN@/rm foo; ./foo",
    # variables and redirections before it
    "A=b rm x", "A= rm x", "A='b c' rm x", 'A="b c" rm x', "A=b\\ c rm x", "A=b\\\nc rm x", "A=$'b\\'c' rm x",
    "A=$(echo ')') rm x",
    "A=`echo b` rm x", 'A="$(echo "a b")" rm x', "A=b B=c rm x", "A+=b rm x", "a[0]=b rm x", "A=(b c); rm x",
    "A=$((1+2)) rm x",
    "A='b c'd\\ e rm x", ">a rm x", "> a rm x", "rm>a x", ">>a rm x", "2>&1 rm x", ">&2 rm x", "&>a rm x", "&>>a rm x",
    ">|a rm x", "{fd}>a rm x", "3>a rm x", "<&- rm x", "</dev/null rm x", "<<<a rm x", "<<<a\\ b rm x",
    "<<<'a b' rm x", ">a\\ b rm x",
    ">'a b' rm x", "2>\"a b\" rm x", "2>&1rm x; rm x", "<>a rm x", "a[0]=$[[ a ]]echo rm x; rm x", "9>&1 8>&9 rm x",
    # another spelling of its name
    "@BIN@/rm x", "@BIN@//rm x", "@BIN@/./rm x", "@BIN@/../bin/rm x", "\\rm x", "r\\m x", "'rm' x", '"rm" x',
    "r''m x", 'r""m x', "r\\\nm x",
    "r\\\n\\\nm x", "'r'm x", '"r"\'m\' x', "$'rm' x", "$'\\x72m' x", "$'\\162\\x6d' x", "$'\\u0072m' x", '$"rm" x',
    "$'r\\\nm' x; rm x",
    "r$@m x", "r$*m x", "r${A}m x", "r$(:)m x", "r`:`m x", "${A}rm x", "$(echo rm) x", "`echo rm` x", "$(echo rm x)",
    "{rm,x}", "{rm,-rf,x}",
    "r{m,} x", "{,}rm x", "@BIN@/r? x", "@BIN@/[r]m x", "@BIN@/r* x", "${A:-rm} x", "${A-rm} x", "${A:=rm} x",
    "$(printf r)m x",
    "$(printf '\\x72')m x", "$(tr a r <<<am) x",
    # what the line says and does later
    "A=rm; $A x", "A=r; ${A}m x", "A='rm x'; $A", "A=rm; B=$A; $B x", 'A=(rm x); "${A[@]}"', "A=(rm x); ${A[0]} y",
    'set -- rm x; "$@"',
    "set -- rm x; $1 $2", "set rm x; $*", "printf -v A rm; $A x", "read A <<< rm; $A x",
    "read -r A B <<< 'rm x'; $A $B",
    "mapfile -t A <<< rm; ${A[0]} x", "declare A=rm; $A x", "export A=rm; $A x",
    "local A=rm 2>/dev/null; A=rm; $A x", "A=mr; ${A:1:1}${A:0:1} x",
    "A=xrm; ${A#x} y", "A=RM; ${A,,} x", "A=am; ${A/a/r} x", "B=rm; A=B; ${!A} x", "declare -n A=B; B=rm; $A x",
    "A='$(rm x)'; echo \"${A@P}\"",
    "A='a[$(rm x)]'; echo $((A))", "A='a[$(rm x)]'; ((A))", "A='a[$(rm x)]'; [[ $A -eq 1 ]]",
    "[[ -v 'a[$(rm x)]' ]]", "test -v 'a[$(rm x)]'",
    "printf -v 'a[$(rm x)]' b", "read 'a[$(rm x)]' <<< b", "a=1; unset 'a[$(rm x)]'", "let 'a[$(rm x)]=1'",
    "declare 'a[$(rm x)]=1'", "echo $((a[$(rm x)]))",
    "PS4='$(rm x)'; set -x; :", "PROMPT_COMMAND='rm x' bash --norc -i <<< :", "BASH_ENV=<(echo rm x) bash -c :",
    "echo rm x >s; . ./s", "echo 'rm x' >s; bash s",
    "printf 'rm x' >s; sh ./s", "cat >s <<'E'\nrm x\nE\nbash s", "echo rm x >s; chmod +x s; ./s",
    "echo rm x | tee s >/dev/null; sh s",
    # substitutions
    "echo $(rm x)", 'echo "$(rm x)"', "echo `rm x`", 'echo "`rm x`"', "echo `echo \\`rm x\\``", "cat <(rm x)",
    "echo a > >(rm x)", "A=$(rm x)",
    "echo ${A:-$(rm x)}", 'echo "${A:-"$(rm x)"}"', "echo ${A:+b} $(rm x)", "echo $((1 + $(rm x; echo 1)))",
    "[[ $(rm x) ]]", "case $(rm x) in *) ;; esac",
    "for a in $(rm x); do :; done", "echo $(# it's\nrm x)", "echo $(case a in a) rm x;; esac)",
    "cat <<E\n$(rm x)\nE", "cat <<E\n`rm x`\nE", "a=(b $(rm x))", ">$(rm x)a :",
    "[ \"$(rm x)\" ]", "echo ${a[$(rm x)]}", 'cat <<< "$(rm x)"', "compgen -W '$(rm x)'", "echo \"a\"'b'$(rm x)\\ c",
    # quotes, comments and here-documents before it
    "echo 'a'\\''b'; rm x", 'echo "a\\"b"; rm x', "echo a#b; rm x", "echo a # b'\nrm x", "echo \\'; rm x",
    "echo \\\\\nrm x", "echo $'a\\'b'; rm x #'", "echo \"'\"; rm x",
    "cat <<E\nit's\nE\nrm x", "cat <<'E'\n$(\nE\nrm x", "cat <<\\E\n`\nE\nrm x", "cat <<-E\n\tx\n\tE\nrm x",
    "cat <<E; rm x\na\nE", "cat <<A - <<B; rm x\na\nA\nb\nB", 'cat <<"A B"\nx\nA B\nrm x',
    "cat <<E && rm x\na\nE", "cat <<E\na \\\nE\nE\nrm x", "cat <<'E'\na \\\nE\nrm x", "{ cat <<E\na\nE\n} | rm x",
    "A=$(cat <<E\n)\nE\n); rm x", ": <<'#'\n'\n#\nrm x",
    # shells
    "eval rm x", "eval 'rm x'", 'eval "r""m x"', "eval r\\\\m x", "builtin eval 'rm x'", "eval -- 'rm x'",
    "eval eval rm x", "bash -c 'rm x'", 'bash -c "rm x"', "bash -c rm\\ x",
    "bash -ec 'rm x'", "bash -c -e 'rm x'", "bash +x -c 'rm x'", "bash -o posix -c 'rm x'",
    "bash +o posix -c 'rm x'", "bash -O extglob -c 'rm x'", "bash --norc --noprofile -c 'rm x'",
    "bash --rcfile a -c 'rm x'", "sh -c 'rm x'", "sh -c 'exec rm x'", "bash -c '$0 x' rm", "bash -c '\"$@\"' _ rm x",
    "sh -c '$*' _ rm x", "bash -c 'eval \"$1\"' _ 'rm x'", "sh -c \"sh -c 'rm x'\"",
    "bash -c \"$(echo rm x)\"", "echo rm x | sh", "echo rm x | bash -s", "echo rm x | bash -",
    "echo rm x | bash /dev/stdin", "printf 'rm x' | sh -e", "echo -e 'r\\x6d x' | bash",
    "sh <<< 'rm x'", "sh -s <<< 'rm x'", "sh -s a <<< 'rm x'", "bash /dev/stdin <<< 'rm x'", "sh <<E\nrm x\nE",
    "bash -s a <<'E'\n$2 x\nE\nrm x", "cat <<E | sh\nrm x\nE", "bash <(echo rm x)",
    "bash < <(echo rm x)", ". /dev/stdin <<< 'rm x'", "source /dev/stdin <<< 'rm x'", ". <(echo rm x)",
    "source /dev/fd/0 <<< 'rm x'", "rev <<< 'x mr' | sh", "base64 -d <<< cm0geA== | sh",
    "sed s/a/r/ <<< 'am x' | sh", "{ echo rm x; } | sh", "(echo rm x) | bash", "sh -c '. /dev/stdin' <<< 'rm x'",
    "while read l; do $l; done <<< 'rm x'", "while read -r l; do eval \"$l\"; done <<< 'rm x'",
    "mapfile -c 1 -C rm a <<< b", "mapfile -C 'rm x' -c 1 <<< a", "compgen -C rm", "command rm x", "command -- rm x",
    "command command rm x", "exec rm x", "exec -a y rm x", "exec -c @BIN@/rm x",
    "enable -n echo; rm x",
]  # fmt: skip
"""With nothing but the tools that every system has."""

BY_PROGRAMS: Final = [
    ("env", ["env rm x", "env A=b rm x", "env -- rm x", "env -u A rm x", "env -uA rm x", "env --unset=A rm x",
    "env -C . rm x", "env --chdir=. rm x", "env -S 'rm x'", "env -S'rm x'", "env -vS 'rm x'",
             "env --split-string='rm x'", "env -S 'A=b rm' x", "env -S 'sh -c \"rm x\"'", "env -S'rm\\_x'",
             "env env rm x", "env -i @BIN@/rm x", "env - @BIN@/rm x", "env -S 'r\\\"\\\"m x'; env rm x"]),
    ("xargs", ["echo x | xargs rm", "xargs rm <<< x", "xargs -n1 rm <<< x", "xargs -n 1 rm <<< x",
    "xargs -I{} rm {} <<< x", "xargs -I % sh -c 'rm %' <<< x", "xargs -i rm {} <<< x", "xargs -t -- rm <<< x",
    "xargs --max-args=1 rm <<< x",
               "echo rm x | xargs env", "printf 'rm x' | xargs -d '\\n' sh -c", "echo x | xargs -0 rm",
               "echo x | xargs env rm"]),
    ("find", ["find . -exec rm {} +", "find . -exec rm {} \\;",
    "find . -maxdepth 0 -exec sh -c 'rm \"$1\"' _ {} ';'", "find . -maxdepth 0 -exec env rm {} ';'",
    "find @BIN@ -name rm -exec {} x \\;"]),
    ("timeout", ["timeout 5 rm x", "timeout -k 1 5 rm x", "timeout -s KILL 5 rm x", "timeout --signal=KILL 5 rm x",
    "timeout --preserve-status 5 rm x", "timeout 5 env rm x"]),
    ("nice", ["nice rm x", "nice -n 5 rm x", "nice -5 rm x", "nice -n5 rm x", "nice --adjustment=5 rm x"]),
    ("nohup", ["nohup rm x"]),
    ("stdbuf", ["stdbuf -oL rm x", "stdbuf -o L rm x", "stdbuf --output=L rm x"]),
    ("setsid", ["setsid -w rm x"]),
    ("ionice", ["ionice -c 3 rm x", "ionice -c3 rm x"]),
    ("taskset", ["taskset -c 0 rm x", "taskset 1 rm x"]),
    ("chrt", ["chrt -o 0 rm x"]),
    ("setarch", ["setarch x86_64 rm x", "setarch x86_64 -R rm x"]),
    ("linux64", ["linux64 rm x", "linux64 -R rm x"]),
    ("choom", ["choom -n 0 rm x", "choom -n 0 -- rm x"]),
    ("prlimit", ["prlimit --nofile=64 rm x"]),
    ("flock", ["flock a rm x", "flock a -c 'rm x'", "flock -n a rm x", "flock -w 1 a rm x"]),
    ("script", ["script -qc 'rm x' /dev/null", "script -q -c 'rm x' a", "script -qec 'rm x' a", "script a -c 'rm x'",
    "script --command='rm x' a"]),
    ("ssh-agent", ["ssh-agent rm x", "ssh-agent sh -c 'rm x'"]),
    ("split", ["echo a | split --filter='rm x'"]),
    ("tar", ["tar -cf a -I 'rm x' /dev/null", "tar -I'rm x' -cf a /dev/null",
    "tar --use-compress-program='rm x' -cf a /dev/null", "tar cfI a 'rm x' /dev/null"]),
    ("sed", ["sed 'e rm x' <<< a", "sed '1e rm x' <<< a", "sed -n '$e rm x' <<< a", "sed 's/a/rm x/e' <<< a",
    "sed -e 's/a/rm x/ge' <<< a", "sed e <<< 'rm x'", "sed --expression='1e rm x' <<< a"]),
    ("awk", ["awk 'BEGIN{system(\"rm x\")}'", "awk 'BEGIN{\"rm x\" | getline}'", "awk 'BEGIN{print 1 | \"rm x\"}'",
    "awk 'BEGIN{system(\"r\" \"m x\")}'", "awk -v c='rm x' 'BEGIN{system(c)}'"]),
    ("git", ["git -c alias.x='!rm y' x", "git -c 'alias.x=!rm y' x",
    "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='!rm y' git x",
    "A='!rm y' git --config-env=alias.x=A x"]),
    ("perl", ["perl -e 'system \"rm x\"'", "perl -le '`rm x`'", "perl -e 'exec qw(rm x)'",
    "perl -ne 'system(\"rm\",\"x\")' <<< a"]),
    ("python3", ["python3 -ISc 'import os; os.system(\"rm x\")'",
    "python3 -IS - <<< 'import os; os.execvp(\"rm\", [\"rm\", \"x\"])'"]),
    ("ed", ["ed -s a <<< '!rm x'"]),
    ("make", ["make --eval='$(shell rm x)'", "make SHELL=rm --eval 'a:;:' a"]),
]  # fmt: skip
"""With programs that may be missing here: those lines are left out."""

BY_LAUNCHERS: Final = [f"{name} rm x" for name in LAUNCHERS]

LINES: Final = [
    *WHEREVER_BASH_IS,
    *BY_LAUNCHERS,
    *(line for name, lines in BY_PROGRAMS if shutil.which(name) for line in lines),
]
TOOLS: Final = (
    "sh",
    "bash",
    "cat",
    "tr",
    "rev",
    "base64",
    "chmod",
    "cp",
    "ln",
    "tee",
    "sleep",
    "mv",
    "dirname",
    "script",
)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None or os.name != "posix", reason="needs bash")
def test_what_bash_turns_into_rm_never_passes(tmp_path: Path) -> None:
    assert len(LINES) >= 150
    real = {name for name in (*TOOLS, *(name for name, _ in BY_PROGRAMS)) if shutil.which(name)}
    run = real_bash.programs_run(LINES, tmp_path, real_bash.Programs(("rm",), sorted(real), LAUNCHERS))
    assert [line for line, programs in zip(LINES, run, strict=True) if not programs] == []
    runs = command_matcher("rm *")
    assert [line for line in LINES if runs(line.replace(real_bash.BIN, "/usr/bin"), WorkBudget()) == (False, "")] == []
